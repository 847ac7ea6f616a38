"""Tables in every form that people have them, and out again."""

import csv
import gzip
import hashlib
import io
import json
import random
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from coem.io import sources
from coem.io.tables import Table, TableError, read_table, write_table

ROWS = 'id,text,label\n1,the cat,a\n2,"a, b\n and c",b\n3,d\u00e4\u4e2d,\n'
WANT = {
    "id": [1, 2, 3],
    "text": ["the cat", "a, b\n and c", "d\u00e4\u4e2d"],
    "label": ["a", "b", ""],
}


@pytest.fixture
def write(tmp_path):
    def put(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


def columns(path, **options):
    return read_table(path, **options).data.to_pydict()


def packed(data, how):
    if how == ".gz":
        return gzip.compress(data)
    if how == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()
    return data


def as_jsonl(rows):
    return "".join(
        json.dumps(dict(zip(rows, row, strict=True))) + "\n"
        for row in zip(*rows.values(), strict=True)
    )


def as_parquet(rows):
    sink = io.BytesIO()
    parquet.write_table(pa.table(rows), sink)
    return sink.getvalue()


FORMS = {
    ".csv": ROWS.encode(),
    ".tsv": ROWS.replace("a, b", "a@ b").replace(",", "\t").replace("@", ",").encode(),
    ".jsonl": as_jsonl(WANT).encode(),
    ".ndjson": as_jsonl(WANT).encode(),
    ".parquet": as_parquet(WANT),
}


@pytest.mark.parametrize("how", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", FORMS)
def test_by_extension(form, how, write):
    path = write(packed(FORMS[form], how), f"my.data{form}{how}".upper() if how else f"d{form}")
    table = read_table(path)
    assert table.data.to_pydict() == WANT
    assert (table.source, table.bad) == (str(path), [])
    assert table.fingerprint == hashlib.sha256(FORMS[form]).hexdigest()


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"],
)
@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_wide_encodings(form, encoding, write):
    text = FORMS[form].decode() + ("4,plain,\n" if form == ".csv" else "")
    got = columns(write(text.encode(encoding), f"data{form}"))
    assert {name: values[:3] for name, values in got.items()} == WANT


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_marks_of_both_orders(mark, write):
    order = "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"
    assert columns(write(mark + ROWS.encode(order))) == WANT


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_an_encoding_that_is_given(encoding, write):
    path = write("a,b\n1,na\u00efve \u00e9\n".encode(encoding))
    assert columns(path, encoding=encoding) == {"a": [1], "b": ["na\u00efve \u00e9"]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ends_of_lines(end, write):
    path = write(end.join(["", "a,b", "1,x", "", '2,"y,z"', ""]))
    assert columns(path) == {"a": [1, 2], "b": ["x", "y,z"]}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a;b\n1;x,y\n", {"a": [1], "b": ["x,y"]}),
        ("a\tb\n1\tx,y\n", {"a": [1], "b": ["x,y"]}),
        ("a|b\n1|x\n", {"a": [1], "b": ["x"]}),
        ('"a;b;c",d\nx,y\n', {"a;b;c": ["x"], "d": ["y"]}),
        ("text\nx; y\n\nz\n", {"text": ["x; y", "z"]}),
        (",a\n0,x\n1,y\n", {"column 1": [0, 1], "a": ["x", "y"]}),
        (' a , b \n1,"x ""y"" z"\n', {"a": [1], "b": ['x "y" z']}),
        ('a,b\n1,5" disk\n', {"a": [1], "b": ['5" disk']}),
        ('a,b\n1,"x"y\n', {"a": [1], "b": ["xy"]}),
        ("a,b\n1,x", {"a": [1], "b": ["x"]}),
        ('"a\n",b\n1,x\n', {"a": [1], "b": ["x"]}),
        ("a,b\n1,\n   \n,x\n", {"a": [1, None], "b": ["", "x"]}),
    ],
)
def test_cells(text, want, write):
    assert columns(write(text)) == want


def test_a_delimiter_that_is_given(write):
    assert columns(write("a:b\n1:x,y\n"), delimiter=":") == {"a": [1], "b": ["x,y"]}


@pytest.mark.parametrize(
    ("cells", "want"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["1", "2.5", "1e3", ".5"], [1, 2.5, 1000, 0.5]),
        (["1", "", "NA", " 4 "], [1, None, None, 4]),
        (["007", "8"], ["007", "8"]),
        (["1", "99999999999999999999"], ["1", "99999999999999999999"]),
        (["inf", "nan"], ["inf", "nan"]),
        (["NA", ""], ["NA", ""]),
        (["true", "false"], ["true", "false"]),
        (["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-02"]),
        (["0", "0.5"], [0, 0.5]),
        (["1"] * 200 + ["x"], ["1"] * 200 + ["x"]),
    ],
)
def test_numbers_only_where_nothing_is_lost(cells, want, write):
    path = write("n,t\n" + "".join(f"{cell},x\n" for cell in cells))
    assert columns(path)["n"] == want


def test_the_slow_path_reads_what_the_fast_one_does(write):
    """One stray quote makes the count odd, so that every row is looked at by itself."""
    rng = random.Random(0)
    pieces = ["a", '"', ",", "\n", "\u4e2d", " ", "12", "\t"]
    rows = [["".join(rng.choices(pieces, k=6)) or "x" for _ in range(3)] for _ in range(500)]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["a", "b", "c"], *rows])
    fast = read_table(write(out.getvalue()))
    slow = read_table(write(out.getvalue() + 'x,y,5" disk\n', "slow.csv"))
    assert slow.data.slice(0, 500).equals(fast.data)
    assert fast.data.to_pydict()["a"] == [row[0] for row in rows]


def test_a_cell_longer_than_a_block(write):
    long = "x\n" * 1_500_000
    path = write(f'a,b\n1,"{long}"\n2,y\n')
    got = columns(path)
    assert got["a"] == [1, 2]
    assert got["b"][0] == long


def test_many_rows_in_their_order(write):
    n = 50_000
    path = write("id,text\n" + "".join(f'{i},"row {i}\nof {n}"\n' for i in range(n)))
    got = columns(path)
    assert got["id"] == list(range(n))
    assert got["text"][-1] == f"row {n - 1}\nof {n}"


# -- JSON ------------------------------------------------------------------------------------------


def test_json_columns(write):
    rows = [
        {"s": "x", "i": 1, "f": 1, "b": True, "l": ["a", "b"], "v": [1, 2.5], "d": {"k": [1]}},
        {"s": None, "i": -5, "f": 0.5, "b": None, "l": [], "v": None, "d": 3, "late": "\u00e4"},
    ]
    table = read_table(write("\n".join(map(json.dumps, rows)) + "\n\n", "data.jsonl")).data
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {
        "s": "string",
        "i": "int64",
        "f": "double",
        "b": "bool",
        "l": "list<item: string>",
        "v": "list<item: double>",
        "d": "string",
        "late": "string",
    }
    assert table.to_pylist() == [
        rows[0] | {"d": '{"k": [1]}', "late": None},
        rows[1] | {"d": "3"},
    ]


@pytest.mark.parametrize("value", [2**70, [True], [[1]], {}])
def test_json_that_has_no_column_is_text(value, write):
    path = write(json.dumps({"a": value}) + "\n", "data.jsonl")
    assert columns(path)["a"] == [json.dumps(value, ensure_ascii=False)]


# -- parquet ---------------------------------------------------------------------------------------


def test_text_of_parquet_is_plain(tmp_path):
    data = pa.table(
        {
            "a": pa.array(["x", "y", "x"]).dictionary_encode(),
            "b": pa.array(["x", None, "z"], pa.large_string()),
            "c": pa.array([[1.0], [2.0], None]),
            "d": pa.array([1, 2, 1]).dictionary_encode(),
        }
    )
    parquet.write_table(data, tmp_path / "d.parquet")
    got = read_table(tmp_path / "d.parquet").data
    assert [str(kind) for kind in got.schema.types][:2] == ["string", "string"]
    assert str(got.schema.types[3]) == "int64"
    assert got.to_pydict() == data.to_pydict()


# -- folders ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "docs"
    for name, text in {
        "sport/b.txt": "goal",
        "sport/deep/a.TXT": "puck",
        "art/c.txt": "",
        "top.txt": "\ufeffd\u00e4",
        "art/notes.md": "no",
        ".git/x.txt": "hidden",
        "art/.hidden.txt": "hidden",
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return home


def test_a_folder(folder):
    table = read_table(folder)
    assert table.data.to_pydict() == {
        "id": ["art/c.txt", "art/notes.md", "sport/b.txt", "sport/deep/a.TXT", "top.txt"],
        "text": ["", "no", "goal", "puck", "d\u00e4"],
        "label": ["art", "art", "sport", "sport", None],
    }
    before = table.fingerprint
    assert read_table(folder).fingerprint == before
    (folder / "top.txt").rename(folder / "other.txt")
    assert read_table(folder).fingerprint != before


def test_a_flat_folder_has_no_labels(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert str(read_table(tmp_path).data.schema.field("label").type) == "string"
    assert columns(tmp_path)["label"] == [None]


def test_a_document_in_another_encoding(folder):
    (folder / "art" / "d.txt").write_bytes(b"x\xe9 \n")
    table = read_table(folder)
    assert "x\u00e9 \n" in table.data.column("text").to_pylist()
    assert table.notes[1].startswith("not UTF-8: 1 file is read as cp1252; if letters look wrong")
    (folder / "art" / "d.txt").write_bytes(b"x\x81 \n")
    with pytest.raises(TableError, match=r"art/d\.txt, row 1: the byte 0x81 is not UTF-8; give"):
        read_table(folder)
    table = read_table(folder, skip_bad=True)
    assert [number for number, _ in table.bad] == [2]
    assert "art/d.txt" in table.bad[0][1]
    assert table.data.num_rows == 5
    assert "x\x81 \n" in columns(folder, encoding="latin-1")["text"]


def test_a_document_that_cannot_be_decoded_at_all(folder):
    (folder / "art" / "d.txt").write_bytes(b"\xff\xfea")  # the mark of UTF-16, and half a letter
    with pytest.raises(TableError, match=r"art/d\.txt, row 1: the bytes are not UTF-16-LE"):
        read_table(folder)
    table = read_table(folder, skip_bad=True)
    assert [(row, why[:9]) for row, why in table.bad] == [(2, "art/d.txt")]
    assert table.data.num_rows == 5
    with pytest.raises(TableError, match="no encoding 'klingon'"):
        read_table(folder, encoding="klingon", skip_bad=True)


# -- standard input --------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_standard_input(form, how, monkeypatch):
    if form == ".parquet" and how:
        pytest.skip("parquet is packed within")
    stream = io.TextIOWrapper(io.BytesIO(packed(FORMS[form], how)))
    monkeypatch.setattr(sys, "stdin", stream)
    table = read_table("-")
    assert table.data.to_pydict() == WANT
    assert table.source == "standard input"
    assert table.fingerprint == hashlib.sha256(FORMS[form]).hexdigest()


# -- plain text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "noname", "a.txt.gz"])
def test_a_plain_text_is_one_row(name, write):
    text = "id,text\n\n{1: d\u00e4}\n"
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    table = read_table(write(content, name), plain=True)
    assert table.data.to_pydict() == {"id": [name], "text": [text]}
    assert table.fingerprint == hashlib.sha256(text.encode()).hexdigest()


def test_a_plain_text_of_another_encoding(write):
    path = write("d\u00e4".encode("latin-1"), "a.txt")
    table = read_table(path, plain=True)
    assert table.data.column("text").to_pylist() == ["d\u00e4"]
    assert "a.txt is not UTF-8, and is read as cp1252" in table.notes[0]
    with pytest.raises(TableError, match=r"b\.txt, line 1: the byte 0x81 is not UTF-8"):
        read_table(write(b"d\x81", "b.txt"), plain=True)
    assert columns(path, plain=True, encoding="latin-1")["text"] == ["d\u00e4"]


def test_standard_input_as_plain_text(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{a, b\n\nc")))
    assert columns("-", plain=True) == {"id": ["stdin"], "text": ["{a, b\n\nc"]}


# -- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read(form, how, tmp_path):
    data = pa.table(WANT | {"x": [0.1, None, 1e300]})
    path = tmp_path / f"out{form}{how}"
    write_table(data, path)
    assert read_table(path).data.equals(data)
    first = path.read_bytes()
    write_table(data, path)
    assert path.read_bytes() == first


def test_lists_are_written_as_json_where_they_must(tmp_path):
    data = pa.table({"a": [["x", "y"], None], "b": [1, 2]})
    for name in ("o.jsonl", "o.parquet"):
        write_table(data, tmp_path / name)
        assert read_table(tmp_path / name).data.to_pydict() == data.to_pydict()
    write_table(data, tmp_path / "o.csv")
    assert columns(tmp_path / "o.csv")["a"] == ['["x", "y"]', ""]


def test_an_unknown_form_is_not_written(tmp_path):
    with pytest.raises(TableError, match=r"the extension '\.xlsx' is not known"):
        write_table(pa.table(WANT), tmp_path / "a.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    write_table(pa.table(WANT), path)
    before = path.read_bytes()
    monkeypatch.setattr("coem.io.whole.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*a\.jsonl"):
        write_table(pa.table({"other": [1]}), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def full(handle):
    raise OSError(28, "No space left on device")


def test_a_table_has_a_fingerprint_and_no_bad_rows():
    table = Table(pa.table(WANT), "here", "f00")
    assert table.bad == []


def test_chunks_do_not_matter(write, monkeypatch):
    text = "id,text\n" + "".join(f"{i},{'x' * (i % 50)}\n" for i in range(300))
    whole = read_table(write(text))
    monkeypatch.setattr(sources, "CHUNK", 7)
    parts = read_table(write(text), max_line=60)
    assert parts.data.equals(whole.data)
    assert parts.fingerprint == whole.fingerprint
    assert np.array_equal(whole.data["id"].to_numpy(), np.arange(300))


def test_versions_are_no_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("id,price\n1.1,2.5\n1.10,3.5\n")
    data = read_table(tmp_path / "a.csv").data
    assert data.column("id").to_pylist() == ["1.1", "1.10"]
    assert data.column("price").to_pylist() == [2.5, 3.5]
