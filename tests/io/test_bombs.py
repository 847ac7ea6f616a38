"""Files that are small and hold much: what they take is known before it is made."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from coem.io import parquet_files, unpacking
from coem.io.batches import open_source
from coem.io.parquet_footer import n_values
from coem.io.streams import Reading, Stream
from coem.io.tables import TableError, read_table
from tests.io.test_tables_of_people import workbook

LONG, N = "word " * 2000, 20_000  # 10 kB each, 200 MB together
MADE = 60_000_000  # bytes that nobody asks for


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(unpacking, "FLOOR", 1_000_000)


def texts():
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(N, np.int32)), [LONG])


COLUMNS = {
    "codes": texts,
    "text": lambda: texts().cast(pa.string()),
    "bytes": lambda: texts().cast(pa.string()).cast(pa.binary()),
    "views": lambda: texts().cast(pa.string()).cast(pa.string_view()),
    "lists": lambda: pa.ListArray.from_arrays(np.arange(N + 1, dtype=np.int32), texts()),
    "objects": lambda: pa.StructArray.from_arrays([texts()], ["a"]),
    "long list": lambda: pa.array([[]]).cast(pa.list_(pa.int64())).take([0] * 3),
    "same length": lambda: pa.array([b"x" * 10_000], pa.binary(10_000)).take([0] * N),
}


def in_parts(path, scratch):
    return list(Stream([str(path)], scratch, Reading()))


@pytest.mark.parametrize("kind", COLUMNS)
def test_parquet_files(kind, small, tmp_path):
    """No more than the columns themselves is ever in memory; this test makes them first."""
    path = tmp_path / "a.parquet"
    try:
        column = COLUMNS[kind]()
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not cast to views")
    if kind == "long list":
        values = pa.array(np.zeros(3_000_000, np.int64))
        column = pa.ListArray.from_arrays(np.array([0, len(values)], np.int32), values)
    parquet.write_table(pa.table({"a": column}), path)
    del column
    assert path.stat().st_size < 40_000
    for read in (read_table, lambda path: in_parts(path, tmp_path)):
        before = pa.total_allocated_bytes()
        with pytest.raises(TableError, match=r"a\.parquet unpacks to more than 1,000,000 bytes"):
            read(path)
        assert pa.total_allocated_bytes() - before < MADE


LISTS = {"a": [[1, 2]] * 50, "b": ["x"] * 50, "c": [{"u": 1, "v": [True]}] * 50}


@pytest.mark.parametrize("rows", [7, 50])
def test_values_of_columns_are_found_in_the_footer(rows):
    sink = io.BytesIO()
    parquet.write_table(pa.table(LISTS), sink, row_group_size=rows)
    about = parquet.read_metadata(sink)
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    known = [[group.column(i).num_values for i in range(4)] for group in groups]
    assert n_values(sink) == known


DAMAGED = """
import sys
from coem.io.tables import TableError, read_table
good = open("a.parquet", "rb").read()
for place in range(len(good) - 8 - int.from_bytes(good[-8:-4], "little"), len(good)):
    open("b.parquet", "wb").write(good[:place] + bytes([good[place] ^ 16]) + good[place + 1 :])
    try:
        read_table("b.parquet")
    except TableError:
        pass
print("all were read or refused")
"""


@pytest.mark.slow
def test_damaged_footers_of_files_with_lists_do_not_end_the_process(tmp_path):
    """Those of pyarrow 26 do, if anybody looks at the metadata of a chunk."""
    parquet.write_table(pa.table(LISTS), tmp_path / "a.parquet", store_schema=False)
    command = [sys.executable, "-c", DAMAGED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "all were read or refused\n", done.stderr


def test_a_parquet_file_is_not_unpacked_to_be_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "plain_column", lambda *_: pytest.fail("it is unpacked"))
    parquet.write_table(pa.table({"a": texts()}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="unpacks to more than"):
        read_table(tmp_path / "a.parquet")


def test_columns_of_a_parquet_file_are_what_they_were(tmp_path):
    words = ["a b", None, "\u00e4", ""] * 5000
    columns = {
        "text": pa.array(words),
        "large": pa.array(words, pa.large_string()),
        "codes": pa.array(words).dictionary_encode(),
        "lists": pa.array([[w, "x"] if w else w and [] for w in words], pa.list_(pa.string())),
        "objects": pa.array([{"a": w, "n": [1.5]} for w in words]),
        "bytes": pa.array([b"\xff\x00", None] * 10_000),
        "numbers": pa.array([[1, None], None] * 10_000),
        "map": pa.array([[("k", w)] for w in words], pa.map_(pa.string(), pa.string())),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=7000)
    whole = read_table(tmp_path / "a.parquet").data
    for table in (whole, pa.concat_tables(in_parts(tmp_path / "a.parquet", tmp_path))):
        for name, column in columns.items():
            assert table[name].to_pylist() == column.to_pylist(), name
        assert {str(table[name].type) for name in ("text", "large", "codes")} == {"string"}


@pytest.mark.parametrize("how", ["whole", "in parts"])
def test_a_packed_file_in_a_packed_file(how, small, tmp_path):
    plain = pa.array(["0" * 9] * 60_000)  # so that the inner file is large, and packed small
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000, np.int32)), ["word " * 10])
    sink = io.BytesIO()
    table = pa.table({"a": column, "b": plain})
    parquet.write_table(table, sink, compression="none", use_dictionary=["a"])
    assert len(sink.getvalue()) > 700_000
    path = tmp_path / "a.parquet.gz"
    path.write_bytes(gzip.compress(sink.getvalue()))
    assert path.stat().st_size < 5000
    with pytest.raises(TableError, match="unpacks to more than 1,000,000 bytes"):
        read_table(path) if how == "whole" else in_parts(path, tmp_path)


HELD = {
    "a.json": b'[{"id":1,"x":[' + b"[]," * 30_000 + b"[]]}]",
    "b.json": b"[" + b"[]," * 30_000 + b"[]]",
    "c.jsonl": b'{"x":[' + b"[]," * 30_000 + b"[]]}\n" + b'{"x":1}\n',
    "d.jsonl": b'{"x":1}\n' * 10_000,
    "e.csv": b"n\n" + b"1\n" * 20_000,
    "f.csv": b",".join(b"m%d" % i for i in range(100)) + b"\n" + (b"," * 99 + b"\n") * 700,
    "g.tsv": b"n\tm\n" + b"1\t1\n" * 15_000,
}


@pytest.mark.parametrize("name", HELD)
def test_values_are_counted_before_any_is_made(name, small, tmp_path, monkeypatch):
    """A byte or two of a packed file can stand for a value that takes fifty times as much."""
    monkeypatch.setattr(json, "loads", lambda *_: pytest.fail("values are made"))
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(HELD[name]))
    assert path.stat().st_size < 2000
    for read in (read_table, lambda path: in_parts(path, tmp_path)):
        with pytest.raises(TableError, match=r"holds rows and values that take more than 1,000,0"):
            read(path)


@pytest.mark.parametrize("name", HELD)
def test_values_of_a_packed_stream_are_counted(name, small, tmp_path, monkeypatch):
    packed = gzip.compress(HELD[name])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
    with pytest.raises(TableError, match="standard input holds rows and values that take more"):
        read_table("-")
    (tmp_path / f"{name}.gz").write_bytes(packed)
    with pytest.raises(TableError, match="holds rows and values that take more than 1,000,000"):
        all_records(tmp_path / f"{name}.gz")


def all_records(path):
    with closing(open_source(str(path))) as source:
        return list(iter(source.record, None))


def test_values_of_a_plain_file_have_no_limit_but_memory(small, tmp_path):
    (tmp_path / "a.csv").write_bytes(HELD["e.csv"])
    assert read_table(tmp_path / "a.csv").data.num_rows == 20_000


def test_rows_of_a_parquet_file_without_any_content(small, tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": pa.nulls(20_000), "b": pa.nulls(20_000)}), path)
    for read in (read_table, lambda path: in_parts(path, tmp_path)):
        with pytest.raises(TableError, match="unpacks to more than 1,000,000 bytes"):
            read(path)


def test_blank_cells_of_a_workbook(small, tmp_path):
    rows = [["a", "b"], *([None] * 3000 + [i] for i in range(30))]
    path = workbook(tmp_path / "a.xlsx", {"S": rows})
    with pytest.raises(TableError, match=r"unpacks to more than 1,\d+,\d+ bytes"):
        read_table(path)


SHARED = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>{}</t></si></sst>'
KIND = (
    '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
)


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_text_that_many_cells_of_a_workbook_share(packing, small, tmp_path):
    book = workbook(tmp_path / "a.xlsx", {"S": [["a"], ["b"]]}).read_bytes()
    cells = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(3, 300))
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as parts, zipfile.ZipFile(sink, "w", 8) as out:
        for name in set(parts.namelist()) - {"xl/sharedStrings.xml"}:
            part = parts.read(name).decode()
            part = part.replace("</sheetData>", f"{cells}</sheetData>")
            part = part if "sharedStrings.xml" in part else part.replace("</Types>", KIND)
            out.writestr(name, part)
        out.writestr("xl/sharedStrings.xml", SHARED.format(LONG))
    path = tmp_path / f"b.xlsx{packing}"
    path.write_bytes(gzip.compress(sink.getvalue()) if packing else sink.getvalue())
    for read in (read_table, lambda path: in_parts(path, tmp_path)):
        with pytest.raises(TableError, match=rf"{path.name} unpacks to more than 1,\d+,\d+ bytes"):
            read(path)
    assert path.exists()


@pytest.mark.parametrize("depth", [101, 500, 960, 979, 985, 5000])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_values_in_values(depth, name, tmp_path):
    for cell in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        record = f'{{"id": 1, "x": {cell}}}'
        (tmp_path / name).write_text(f"[{record}]" if name == "a.json" else record)
        with pytest.raises(TableError, match="no JSON that can be read"):
            read_table(tmp_path / name)


def test_values_in_a_few_values(tmp_path):
    value: object = "x"
    for _ in range(90):
        value = [value]
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "x": value}))
    assert read_table(tmp_path / "a.jsonl").data["x"].to_pylist() == [json.dumps(value)]


@pytest.mark.parametrize("nested", [b"\x1c", b"\x19", b"\x19\x1c"])
def test_a_footer_that_is_nested_too_deep_is_damaged(nested):
    body = nested * 20_000
    data = b"PAR1" + body + len(body).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match="its footer is damaged"):
        n_values(io.BytesIO(data))
