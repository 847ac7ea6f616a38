"""Hostile tables: files of every kind that the program reads, damaged in a way that a seed says.

`hostile_table` writes one, and `read_everything` reads it in ways in which the program does: its
dates, labels and views, guessed or named. What comes back is a table or an error of coem in one
sentence; `complaint` says what else it was.
"""

import datetime
import gzip
import io
import json
import random
import re
import traceback
import warnings
import zipfile
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

KINDS = (
    *(".csv", ".tsv", "semicolon.csv", ".jsonl", ".json", ".parquet", ".xlsx", "folder"),
    *(".npy", "labels.csv"),
)
ODD = "odd"  # a column of a Parquet file of any type
LONGEST = 3000  # characters of a message

TOKENS = [
    *(b'"', b'""', b'"""', b",", b";", b"\t", b"|", b"\r", b"\n", b"\r\n", b"\n\n", b"\x00"),
    *(b"\xff", b"\xfe", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\x1b[31m"),
    *(b"{", b"}", b"[", b"]", b"[]", b"{}", b":", b"null", b"true", b"NaN", b"Infinity", b"-0"),
    *(b"1e999", b"-1e-999", b"1" * 401, b"9" * 5000, b"0x10", b"1_000", b"\xd9\xa3", b"1.234,5"),
    *(b"[" * 3000, b'{"a":' * 3000, b"[[1,2],[3]]", b'"\\ud800"', b"\\u0000", b'"\\u0000"'),
    *(b"2024-13-45", b"0000-00-00", b"9999-12-31T23:59:59+99:99", b"31/12/99", b"1e18"),
    *(b"=cmd|' /C calc'!A0", b"@SUM(1)", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xc2\x9b31m"),
    *(b"<![CDATA[", b"<!--", b"<script>", b"&#x110000;", b"<a" * 500, b"</html", b"---\n"),
    *(b"id", b"text", b"label", b"column 2", b"a" * 600, b" ".join([b"word"] * 9), b"\xf0\x9f\x98"),
    *(b"999999999", b"XFD1048576", b"ZZZ1", b"-1", b"18446744073709551616", b"1e400"),
]


@dataclass(frozen=True)
class Hostile:
    """A file that may be damaged, and how it is to be read."""

    path: Path
    kind: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    """For `read_table`."""


# -- making -------------------------------------------------------------------------------------


def hostile_table(seed: int, folder: Path) -> Hostile:
    """Write a table, damaged in a way that `seed` says, into a folder, which may be made for it."""
    folder.mkdir(exist_ok=True)
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    options: dict[str, Any] = {"skip_bad": rng.random() < 0.5}
    if rng.random() < 0.1:
        encodings = ("cp1252", "utf-16", "utf-8", "latin-1", "utf-7", "idna", "zlib", "no such")
        options["encoding"] = rng.choice(encodings)
    if kind == "folder":
        _write_folder(rng, folder)
        return Hostile(folder, kind, seed, options)
    name = kind if kind[0] != "." else f"data{kind}"
    data = _damaged(rng, kind, _good(rng, kind))
    packing = rng.choice(("", "", "", ".gz", ".zst")) if kind != ".npy" else ""
    if packing:
        data = gzip.compress(data, mtime=0) if packing == ".gz" else _zst(data)
        data = mutate(rng, data) if rng.random() < 0.3 else data
    path = folder / f"{name}{packing}"
    path.write_bytes(data)
    return Hostile(path, kind, seed, options)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Return bytes that are flipped, cut, repeated, inserted, or left out in some places."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        place = rng.randrange(len(data) + 1)
        end = min(len(data), place + rng.choice((1, 2, 8, 64, 1000)))
        how = rng.randrange(7)
        if how == 0:
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        elif how == 1:
            data = data[:place]
        elif how == 2:
            data = data[:place] + data[place:end] * rng.choice((2, 3, 50)) + data[end:]
        elif how == 3:
            data = data[:place] + data[end:]
        else:
            data = data[:place] + rng.choice(TOKENS) * rng.choice((1, 1, 1, 20)) + data[place:]
    return data


def _damaged(rng: random.Random, kind: str, data: bytes) -> bytes:
    """Return the bytes of a file with damage, inside its parts if it is made of some."""
    if rng.random() < (0.4 if kind == ".parquet" else 0.05):  # whose types are hostile enough
        return data
    if kind == ".xlsx" and rng.random() < 0.8:
        return _damaged_book(rng, data)
    if kind in (".parquet", ".npy"):
        # Any token there is a file that is no longer one: flips reach further.
        for _ in range(rng.choice((1, 1, 2, 5))):
            place = rng.randrange(len(data))
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        return data if rng.random() < 0.8 else mutate(rng, data)
    data = mutate(rng, data)
    if rng.random() < 0.15 and kind not in (".xlsx",):
        codec = rng.choice(("cp1252", "utf-16", "utf-16-le", "utf-32"))
        data = data.decode("utf-8", "replace").encode(codec, "replace")
        data = mutate(rng, data) if rng.random() < 0.5 else data
    return data


def _damaged_book(rng: random.Random, data: bytes) -> bytes:
    """Return a workbook with damage in one of its parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    chosen = rng.choice([n for n in parts if "sheet" in n or "String" in n or "book" in n])
    return _zip(parts | {chosen: mutate(rng, parts[chosen])})


def _zip(parts: dict[str, bytes]) -> bytes:
    """Return an archive without dates: equal is equal."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as out:
        for name, part in parts.items():
            out.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def _zst(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


# -- good tables --------------------------------------------------------------------------------


WORDS = ["apple", "pear", "plum", "cat", "dog", "red", "gr\u00fcn", "\u4e2d\u6587", "na\u00efve"]


def _rows(rng: random.Random) -> dict[str, list[Any]]:
    """Return columns of every kind that the program knows."""
    n = rng.choice((1, 2, 5, 12, 30))
    day = datetime.date(2024, 1, 1)
    days = [day + datetime.timedelta(rng.randrange(900)) for _ in range(n)]
    form = rng.choice(("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y"))
    return {
        "id": [f"p{i}" for i in range(n)],
        "text": [" ".join(rng.choices(WORDS, k=rng.randrange(12))) for _ in range(n)],
        "label": [rng.choice(("a", "b", "")) for _ in range(n)],
        "when": [day.strftime(form) for day in days],
        "price": [round(rng.uniform(-9, 1e4), 2) for _ in range(n)],
        "n": [rng.randrange(-5, 10**6) for _ in range(n)],
        "tags": ["|".join(rng.choices("uvwxyz", k=3)) for _ in range(n)],
        "refs": [f"p{rng.randrange(n)};p{rng.randrange(n)}" for _ in range(n)],
        "vec": [json.dumps([round(rng.gauss(0, 1), 2) for _ in range(3)]) for _ in range(n)],
    }


def _good(rng: random.Random, kind: str) -> bytes:
    """Return the bytes of a table that is as it should be."""
    rows = _rows(rng)
    if kind == ".npy":
        sink = io.BytesIO()
        kinds = (np.float32, np.float64, np.int64, np.float16)
        np.save(sink, np.ones((len(rows["id"]), 3), rng.choice(kinds)))
        return sink.getvalue()
    if kind == ".parquet":
        return _parquet(rng, rows)
    if kind == ".xlsx":
        return _book(rows)
    if kind in (".json", ".jsonl"):
        return _json(rng, kind, rows)
    if kind == "labels.csv":
        rows = {"id": rows["id"], "label": rows["label"]}
    between = {".tsv": "\t", "semicolon.csv": ";"}.get(kind, ",")
    lines = [list(rows), *zip(*rows.values(), strict=True)]
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    text = "".join(between.join(_cell(cell, between) for cell in line) + end for line in lines)
    return text.encode()


def _cell(value: Any, between: str) -> str:
    text = str(value)
    quoted = '"' in text or between in text or "\n" in text
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _json(rng: random.Random, kind: str, rows: dict[str, list[Any]]) -> bytes:
    rows = rows | {"tags": [tags.split("|") for tags in rows["tags"]]}
    rows |= {"vec": [json.loads(vec) for vec in rows["vec"]]}
    rows |= {"user": [{"name": name, "deep": {"er": 1}} for name in rows["id"]]}
    records = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    if kind == ".jsonl":
        return "".join(json.dumps(record) + "\n" for record in records).encode()
    whole = records if rng.random() < 0.7 else {"data": {"items": records}}
    return json.dumps(whole, indent=rng.choice((None, 1)), ensure_ascii=False).encode()


LEAVES = (
    *(pa.null(), pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(38, 2), pa.decimal256(70, 2)),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp("us", zone) for zone in ("UTC", "+05:30", "Europe/Berlin", "Mars/Base")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(3)),
)


def _leaf(rng: random.Random, kind: Any, n: int) -> Any:
    """Return an array of some type, of small values or of any bits, some of them missing."""
    small = rng.random() < 0.6
    if pa.types.is_null(kind):
        return pa.nulls(n)
    if pa.types.is_boolean(kind):
        return pa.array([rng.random() < 0.5 for _ in range(n)])
    if kind.id in (pa.string().id, pa.large_string().id, pa.binary().id, pa.large_binary().id):
        texts = [w.encode() if small else rng.randbytes(3) for w in rng.choices(WORDS, k=n)]
        large = kind.id in (pa.large_string().id, pa.large_binary().id)
        found = pa.array(texts, pa.large_binary() if large else pa.binary()).view(kind)
    else:
        width = kind.bit_width // 8
        bits = [i.to_bytes(width, "little") if small else rng.randbytes(width) for i in range(n)]
        found = pa.Array.from_buffers(kind, n, [None, pa.py_buffer(b"".join(bits))])
    gaps = rng.random() < 0.5
    return found.take(pa.array([None if gaps and i % 3 == 1 else i for i in range(n)], pa.int64()))


def _codes(array: Any) -> Any:
    """Return a dictionary array, or the array: older versions make none of half precision."""
    try:
        return array.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return array


def odd_column(rng: random.Random, n: int) -> Any:
    """Return a column of any type that a Parquet file can have, alone or inside another."""
    leaf, starts = _leaf(rng, rng.choice(LEAVES), 2 * n), np.arange(0, 2 * n + 1, 2)
    pairs = pa.ListArray.from_arrays(starts.astype(np.int32), leaf)
    ways = {
        "plain": lambda: leaf[:n],
        "codes": lambda: _codes(leaf[:n]),
        "list": lambda: pairs,
        "large": lambda: pa.LargeListArray.from_arrays(starts, leaf),
        "fixed": lambda: pa.FixedSizeListArray.from_arrays(leaf, 2),
        "ragged": lambda: pairs.take(pa.array([None if i % 5 == 4 else i for i in range(n)])),
        "object": lambda: pa.StructArray.from_arrays([leaf[:n]], ["a"]),
        "objects": lambda: pa.ListArray.from_arrays(
            starts.astype(np.int32), pa.StructArray.from_arrays([leaf], ["a"])
        ),
        "lists": lambda: pa.ListArray.from_arrays(np.arange(n + 1, dtype=np.int32), pairs),
        "map": lambda: pa.MapArray.from_arrays(
            starts.astype(np.int32), [f"k{i}" for i in range(2 * n)], leaf
        ),
    }
    return ways[rng.choice(["plain", "plain", "plain", *ways])]()


def _parquet(rng: random.Random, rows: dict[str, list[Any]]) -> bytes:
    columns = {name: pa.array(values) for name, values in rows.items()}
    columns["label"] = columns["label"].dictionary_encode()
    columns["vec"] = pa.array([json.loads(vec) for vec in rows["vec"]])
    columns["tags"] = pa.array([tags.split("|") for tags in rows["tags"]])
    columns["user"] = pa.array([{"name": name, "n": 1} for name in rows["id"]])
    columns["at"] = pa.array([datetime.datetime(2024, 1, 1)] * len(rows["id"]))
    how = {
        "compression": rng.choice(("none", "none", "snappy", "zstd")),
        "use_dictionary": rng.random() < 0.7,
    }
    sink = io.BytesIO()
    with suppress(pa.ArrowException):  # some types cannot be written
        parquet.write_table(
            pa.table(columns | {ODD: odd_column(rng, len(rows["id"]))}), sink, **how
        )
        return sink.getvalue()
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, **how)
    return sink.getvalue()


def _book(rows: dict[str, list[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(list(rows))
    for row in zip(*rows.values(), strict=True):
        sheet.append(row)
    sink = io.BytesIO()
    book.save(sink)
    with zipfile.ZipFile(sink) as found:
        parts = {name: found.read(name) for name in found.namelist()}
    core = "docProps/core.xml"  # openpyxl writes there when the book was saved
    return _zip(parts | {core: re.sub(rb"20\d\d-[\dT:-]+Z", b"2024-01-01T00:00:00Z", parts[core])})


def _write_folder(rng: random.Random, folder: Path) -> None:
    texts = {
        ".txt": b"apple pear\n\nplum cat dog\n",
        ".md": b"---\ntitle: x\n---\n# Head\n\n[words](http://a.b) *and* `code`\n\n| a | b |\n",
        ".html": b"<html><meta charset='latin-1'><body><p>one<br>two</p><!-- x --></body></html>",
    }
    for i in range(rng.choice((1, 2, 5))):
        place = folder / rng.choice(("", "red", "green"))
        place.mkdir(exist_ok=True)
        suffix = rng.choice(list(texts))
        (place / f"d{i}{suffix}").write_bytes(mutate(rng, texts[suffix]))


# -- reading ------------------------------------------------------------------------------------

# What is asked of the columns, by whatever names they have; a name that is gone is an error.
VIEWS = ("text", "price:number", "n:number", "tags:list", "refs:inbound", "vec:vector")
KINDS_OF_VIEWS = ("text", "list", "inbound", "number", "vector", "category")
VIEWS += ("label:category", "when", "price", "id:list", "label:list", "vec:list", "at:number")


def read_everything(case: Hostile) -> list[str]:
    """Read a file in ways in which the program does, and return what was wrong in sentences."""
    from coem.io.tables import read_table
    from coem.recipes.columns import look_at_columns
    from coem.recipes.dates import dates_of, find_dates
    from coem.recipes.documents import as_documents
    from coem.recipes.label_files import join_labels
    from coem.recipes.labels import all_labels_of
    from coem.recipes.listener import Listener
    from coem.text import TextViews
    from coem.text.dense import read_array

    said: list[str] = []
    if case.kind == ".npy":
        _try(said, lambda: read_array(str(case.path), 5, "view"))
        return said
    if case.kind in (".csv", ".tsv", "semicolon.csv", ".jsonl"):
        _try(said, lambda: _streamed(case))
    found = _try(said, lambda: read_table(case.path, **case.options))
    if found is None:
        return said
    _try(said, lambda: [found.number(row) for row in range(found.data.num_rows)])
    listener = Listener()
    documents = _try(said, lambda: as_documents(found, case.path, listener))
    documents = documents or as_documents(found, case.path, listener, id="none")
    if case.kind == "labels.csv":
        base = {"id": [f"p{i}" for i in range(30)], "text": ["a b c"] * 30}
        own = as_documents(_of(base), base, listener, id="id")
        _try(said, lambda: join_labels(own, str(case.path), None, listener, skip_bad=True))
        return said
    _try(said, lambda: find_dates("auto", documents, listener))
    _try(said, lambda: look_at_columns(documents, listener, date=None))
    rng = random.Random(case.seed)  # a few of the ways, so that many files can be tried
    names = documents.table.column_names
    for name in rng.sample(names, min(len(names), 3)):
        _try(said, lambda name=name: dates_of(documents, f"{name}:dmy"))
        _try(said, lambda name=name: all_labels_of(documents, name, listener))
        _try(said, lambda name=name: all_labels_of(documents, f"{name}:list", listener))
    odd = [f"{ODD}:{kind}" for kind in rng.sample(KINDS_OF_VIEWS, 2)] if ODD in names else []
    for spec in (None, *rng.sample(VIEWS, 3), *odd):
        views = None if spec is None else {"v": spec}
        reader = TextViews(views, id=documents.id_column)
        _try(said, lambda reader=reader: reader.fit(documents.table).transform(documents.table))
    return said


def _streamed(case: Hostile) -> None:
    """Read a file as a stream, a few records at a time."""
    from coem.io.batches import open_source

    with closing(open_source(str(case.path), **case.options)) as source:
        records = []
        for record in iter(source.record, None):
            records.append(record)
            if len(records) == 9 or source.ends_batch:
                source.table(records)
                records = []
        if records:
            source.table(records)


def _of(base: dict[str, list[str]]) -> Any:
    from coem.recipes.documents import read_source

    return read_source(base)


def _try(said: list[str], read: Any) -> Any:
    """Return what `read` does, or None if it raises an error that coem may raise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return read()
    except Exception as error:
        wrong = complaint(error)
        if wrong:
            raise AssertionError(wrong) from error
        said.append(str(error))
        return None


def complaint(error: BaseException) -> str | None:
    """Return why an error is not one that coem may raise for a bad file, or None if it is one."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
    kind, own = type(error), "coem" in Path(frames[-1].filename).parts if frames else False
    known = kind.__module__.startswith("coem") or kind in (ValueError, FileNotFoundError)
    if not isinstance(error, ValueError | FileNotFoundError) or not known or not own:
        return f"{kind.__name__} at {where}: {str(error)[:200]}"
    text = str(error)
    if len(text) > LONGEST or "\n" in text:
        return f"a message of {len(text)} characters or several lines at {where}: {text[:200]}"
    return None
