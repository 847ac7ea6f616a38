"""What is wrong with a table is said in one sentence: the file, the row, and what can be done."""

import io
import os
import random
import re
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from coem.io.tables import TableError, read_table
from tests.io.test_tables import FORMS, packed
from tests.io.test_tables_of_people import workbook


def said(path, **options):
    """Return what is said about a table that cannot be read."""
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message or path == "-"
    return message


@pytest.fixture
def write(tmp_path):
    def put(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return put


CSV = {
    "empty": ("", "is empty; a table has a header and rows"),
    "blank": ("\n \n\n", "is empty"),
    "header only": ("a,b\n", "has a header and no rows; add some"),
    "header only, blank lines": ("a,b\n" + "\n" * 200, "has a header and no rows"),
    "header without an end": ("a,b", "has a header and no rows"),
    "numbers as header": ("1,2.5\n3,4\n", "row 1: all cells are numbers, .*; add a header"),
    "document as header": ("x" * 600 + "\ny\n", "row 1: .* as long as a document; add a header"),
    "words as header": (
        "p1,one two three four five six seven eight nine\np2,ten\n",
        "row 1: the first row looks like data, not like names of columns, .*; add a header line",
    ),
    "two columns of a name": (
        "a,b,a\n1,2,3\n",
        "row 1: columns 1 and 3 are both called 'a'; rename",
    ),
    "too many": (
        "a,b\n1,2\n1,2,3\n",
        "row 3: 3 cells where the header has 2; quote cells .*skip-bad",
    ),
    "too few": ("a,b\n1,2\n\n7\n", "row 4: 1 cells where the header has 2; fill it up, .*skip-bad"),
    "after lines": ('\na,b\n1,"x\ny"\n1\n', "row 5: 1 cells where the header has 2"),
    "open quote": ('a,b\n1,"x\n2,y\n', "row 2: a quote that is never closed; close it"),
    "last quote": ('a,b\n1,x\n2,"y', "row 3: a quote that is never closed"),
    "zeros": ("a,b\n1,x\n2,y\x00z\n", "row 3: a NUL byte: the file is not text, or is in UTF-16"),
    "no Latin": (b"a,b\n1,x\n2,x\x81\n", r"row 3: the byte 0x81 is not UTF-8; give its encoding"),
    "no Latin header": (b"a,x\x81\n1,2\n", "row 1: the byte 0x81 is not UTF-8"),
    "damaged UTF-8": (
        b"a,b\n1,\xc3\xa4\xc3\xb6\n2,\xc3\n",
        "row 3: the byte 0xc3 is not UTF-8; give its encoding",
    ),
    "Cyrillic": (
        ("a,b\n1," + "\u0445\u043e\u043a\u043a\u0435\u0439 " * 3 + "\n").encode("cp1251"),
        "row 2: the byte 0xf5 is not UTF-8; give its encoding",
    ),
    "controls": (b"a,b\n1,\x01\x02\xe9\n", "row 2: the byte 0xe9 is not UTF-8"),
    "a workbook": (b"PK\x03\x04" + bytes(90), "is an Excel workbook or a .zip file; name it .xlsx"),
    "half a UTF-16": (b"\xff\xfea\x00,\x00\x00\xd8\n\x00", "row 1: the bytes are not UTF-16-LE"),
    "lone return": (
        "a,b\n1,x\ry\n",
        "row 2: a carriage return in a cell that is not quoted; mend it",
    ),
    "binary": (bytes(range(256)) * 20, "row 1: "),
}


@pytest.mark.parametrize("case", CSV)
def test_csv(case, write):
    content, message = CSV[case]
    path = write(content)
    with pytest.raises(TableError, match=f"^{path},? {message}"):
        read_table(path)
    assert said(path)


def test_a_header_of_bad_bytes_cannot_be_skipped(write):
    path = write(b"a,x\x81\n1,2\n")
    assert "row 1: the header has bytes that are not UTF-8" in said(path, skip_bad=True)


JSON = {
    "empty": ("\n\n", "is empty; write one JSON object a line"),
    "no JSON": (
        '{"a": 1}\n{"a": \n',
        r"row 2: no JSON \(.* at character \d+\); mend it, .*skip-bad",
    ),
    "a list": ("[1]\n", "row 1: a JSON list and not an object"),
    "a string": ('\n"x"\n', "row 2: a JSON string and not an object"),
    "null": ("null\n", "row 1: a JSON null and not an object"),
    "a number": ("3\n", "row 1: a JSON number and not an object"),
    "true": ("true\n", "row 1: a JSON true or false and not an object"),
    "no keys": ("{}\n{}\n", "has objects without keys"),
    "half a character": ('{"a": "\\ud800"}\n', "row 1: half a character"),
    "deep": ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "row 1: no JSON that can be read"),
    "digits": ('{"a": ' + "1" * 10_000 + "}\n", "row 1: no JSON that can be read"),
    "zeros": ('{"a": "\x00"}\n', "row 1: a NUL byte"),
    "no Latin": (
        b'{"a": 1}\n{"a": "x\x81"}\n',
        "row 2: bytes that are not UTF-8; give its encoding",
    ),
}


@pytest.mark.parametrize("case", JSON)
def test_json_lines(case, write):
    content, message = JSON[case]
    path = write(content, "data.jsonl")
    with pytest.raises(TableError, match=f"^{path},? {message}"):
        read_table(path)
    assert said(path)


WHOLE_JSON = {
    "empty": (" \n", "is empty; write a JSON list of objects"),
    "an empty list": ("[]", "is an empty list; write a list of objects"),
    "a number": ("3", "is a JSON number; write a list of objects"),
    "a string": ('"x"', "is a JSON string; write a list of objects"),
    "no list": ('{"a": {"b": [1, 2]}}', "is one object without a list of objects in it"),
    "two lists": ('{"a": [{"x": 1}], "b": [{"x": 2}]}', "has several lists of objects, 'a', 'b'"),
    "lists in a list": ("[[1], [2]]", "row 1: a JSON list and not an object"),
    "mixed": ('[{"a": 1}, null]', "row 2: a JSON null and not an object .*skip-bad"),
    "cut off": ('[{"a": 1},\n {"a": ', r"no JSON \(.* at line 2, character \d+\); mend it"),
    "no keys": ("[{}, {}]", "has objects without keys"),
    "half a character": ('[{"a": "\\ud800"}]', "half a character"),
    "deep": ("[" * 100_000 + "]" * 100_000, "no JSON that can be read"),
    "zeros": ('[{"a": "\x00"}]', "row 1: a NUL byte"),
    "no text": (b'[{"a": "x\x81"}]', "row 1: the byte 0x81 is not UTF-8"),
}


@pytest.mark.parametrize("case", WHOLE_JSON)
def test_json(case, write):
    content, message = WHOLE_JSON[case]
    path = write(content, "data.json")
    with pytest.raises(TableError, match=f"^{path}[:,]? {message}"):
        read_table(path)
    assert said(path)


# -- workbooks -------------------------------------------------------------------------------------

SHEETS = {
    "empty": ([], "sheet 'a' is empty; a table has a header and rows"),
    "blank": ([[None, " "]], "sheet 'a' is empty"),
    "header only": ([["x", "y"]], "sheet 'a' has a header and no rows; add some"),
    "numbers as header": ([[1, 2], [3, 4]], "sheet 'a', row 1: all cells are numbers"),
    "two columns of a name": ([["x", "x"], [1, 2]], "row 1: columns 1 and 2 are both called 'x'"),
    "beside the header": (
        [["x"], [1], [2, 3]],
        "sheet 'a', row 3: column 2 has a value, but no name in the header; name it, .*skip-bad",
    ),
    "document as header": ([["x" * 600], ["y"]], "row 1: .* as long as a document"),
}


@pytest.mark.parametrize("case", SHEETS)
def test_sheets(case, tmp_path):
    rows, message = SHEETS[case]
    path = workbook(tmp_path / "data.xlsx", {"a": rows})
    with pytest.raises(TableError, match=f"^{path}, {message}|^{path}, sheet 'a', {message}"):
        read_table(path)
    assert said(path)


def test_a_sheet_that_is_not_there(tmp_path, write):
    path = workbook(tmp_path / "data.xlsx", {"a": [["x"], [1]], "b": [["x"], [1]]})
    assert "has no sheet 'c'; it has 'a', 'b' (--sheet, sheet=)" in said(path, sheet="c")
    assert "has no sheets" in said(write("a\nx\n"), sheet="a")
    assert "has no sheets" in said(tmp_path, sheet="a")


@pytest.mark.parametrize("damage", ["cut", "other zip", "text", "old", "no sheet"])
def test_damaged_workbooks(damage, tmp_path, write):
    whole = workbook(tmp_path / "whole.xlsx", {"a": [["x"], [1]]}).read_bytes()
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("a.txt", "words")
    bare = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(bare, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"<x" if name.startswith("xl/worksheets/") else old.read(name))
    data = {
        "cut": whole[:-200],
        "other zip": other.getvalue(),
        "text": b"a,b\n1,2\n",
        "old": b"\xd0\xcf\x11\xe0" + bytes(100),
        "no sheet": bare.getvalue(),
    }[damage]
    message = said(write(data, "data.xlsx"))
    assert re.search(r"not an Excel workbook, or is damaged \(.+\); save|old \.xls file", message)


@pytest.mark.parametrize("name", ["a.xls", "a.ods", "a.xlsb", "a.numbers"])
def test_sheets_of_other_programs(name, write):
    assert "is not read; save it as .xlsx or .csv" in said(write(b"x", name))


# -- rows that are left out ------------------------------------------------------------------------


def test_bad_rows_are_left_out_and_listed(write):
    path = write(b'a,b\n1,x\n2\n3,"y\nz"\n4,q,\n5,\xff\n6,\x00\n7,w\n8,"open\n9,v\n')
    table = read_table(path, skip_bad=True)
    assert table.data.to_pydict() == {"a": [1, 3, 7, 9], "b": ["x", "y\nz", "w", "v"]}
    assert [row for row, _ in table.bad] == [3, 6, 7, 8, 10]
    reasons = [reason for _, reason in table.bad]
    assert reasons[0] == "1 cells where the header has 2"
    assert "not UTF-8" in reasons[2]
    assert reasons[3] == "a NUL byte"
    assert reasons[4] == "a quote that is never closed"


def test_bad_bytes_in_an_encoding_that_is_given(write):
    path = write(b"a,b\n1,x\xe9\n2,\x81\n")
    assert "row 3: the byte 0x81 is not cp1252" in said(path, encoding="cp1252")
    table = read_table(path, encoding="cp1252", skip_bad=True)
    assert table.data.to_pydict() == {"a": [1], "b": ["x\u00e9"]}
    assert [row for row, _ in table.bad] == [3]


def test_bad_lines_of_json(write):
    path = write(b'{"a": 1}\n[]\nx\n\n{"a": "\x81"}\n{"a": 2}\n', "data.jsonl")
    table = read_table(path, skip_bad=True)
    assert table.data.to_pydict() == {"a": [1, 2]}
    assert [row for row, _ in table.bad] == [2, 3, 5]


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl"])
def test_no_good_row(name, write):
    path = write("a,b\n1\n2\n", name)
    assert "has no good row; the first, row " in said(path, skip_bad=True)


def test_no_good_row_but_an_open_quote(write):
    told = said(write('a,b\n"1,2\n'), skip_bad=True)
    assert "has no good row; the first, row 2, has a quote that is never closed" in told


def test_rows_have_the_numbers_of_the_file(write):
    path = write("\na,b\n1,2\n3\n5,6\n7\n9\n11,12\n")
    table = read_table(path, skip_bad=True)
    assert [row for row, _ in table.bad] == [4, 6, 7]
    assert [table.number(row) for row in range(3)] == [3, 5, 8]
    path = write('{"a": 1}\nx\n{"a": 3}\n', "data.jsonl")
    table = read_table(path, skip_bad=True)
    assert [table.number(row) for row in range(2)] == [1, 3]


@pytest.mark.parametrize("delimiter", ["", "::", "\u00e9"])
def test_delimiters_that_are_none(delimiter):
    with pytest.raises(ValueError, match="must be one ASCII character"):
        read_table("nothing.csv", delimiter=delimiter)


def test_a_folder_without_a_good_document(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\x81")
    assert "has no text that can be read; a.txt" in said(tmp_path, skip_bad=True)


def test_nothing_is_left_out_of_a_good_table(write):
    assert read_table(write(FORMS[".csv"]), skip_bad=True).bad == []


# -- lines without an end --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["", ".gz", ".zst"])
def test_a_long_line(how, write):
    data = b"a,b\n1,x\n2," + b"y" * 5000 + b"\n3,z\n"
    path = write(packed(data, how), f"data.csv{how}")
    message = said(path, max_line=1000)
    assert "row 3: the line has more than 1,000 bytes; " in message
    assert read_table(path, max_line=5002).data.num_rows == 3
    assert "row 3" in said(path, max_line=5001)


@pytest.mark.slow
def test_a_line_of_two_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "data.csv"
    with open(path, "wb") as file:
        file.write(b"a,b\n1,")
        file.truncate(2 << 30)  # zeros that take no room on the disk
    code = (
        "import resource, sys\n"
        "from coem.io.tables import TableError, read_table\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    read_table(sys.argv[1])\n"
        "except TableError as error:\n"
        "    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    run = [sys.executable, "-c", code, str(path)]
    message, memory = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:2]
    assert "row 2: the line has more than 67,108,864 bytes" in message
    assert int(memory) < 300_000  # kilobytes


# -- files -----------------------------------------------------------------------------------------


def test_no_such_file(write, tmp_path):
    write("a\n1\n", "documents.csv")
    assert "there is no file" in said(tmp_path / "x" / "a.csv")
    assert said(tmp_path / "document.csv").endswith("did you mean 'documents.csv'?")
    assert said(tmp_path / "zzz").endswith("; check the name")


@pytest.mark.parametrize(
    "name", ["data.xlsm", "data", "data.csv.zip", "data.gz", "data.xml", ".csv"]
)
def test_an_unknown_extension(name, write):
    message = said(write("a\nx\n", name))
    assert "is not known; give csv, tsv, jsonl" in message


def test_a_folder_without_documents(tmp_path):
    (tmp_path / "a.pdf").write_text("x")
    assert "is a folder without .txt, .md or .html files; if it holds tables" in said(tmp_path)


@pytest.mark.parametrize("how", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "other", "flip", "empty"])
def test_damaged_archives(how, damage, write):
    whole = packed(b"a,b\n" + os.urandom(3000).hex().encode() + b",2\n", how)
    middle = len(whole) // 2
    data = {
        "cut": whole[:middle],
        "other": b"a,b\n1,2\n",
        # The check sum of a gzip is at its end; those that pyarrow packs as zst have none.
        "flip": whole[: middle if how == ".gz" else 5] + bytes(20) + whole[middle + 20 :],
        "empty": b"",
    }[damage]
    message = said(write(data, f"data.csv{how}"))
    assert "is damaged or cut short (" in message or "is empty" in message


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", FORMS[".parquet"][:-9]]
)
def test_damaged_parquet(data, write):
    assert "is not a parquet file, or is damaged (" in said(write(data, "data.parquet"))


def test_parquet_without_rows_or_columns(write):
    for table, message in (
        (pa.table({"a": pa.array([], pa.string())}), "has no rows"),
        (pa.table({}), "has no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "columns 1 and 2 are both called 'a'"),
    ):
        sink = io.BytesIO()
        parquet.write_table(table, sink)
        assert message in said(write(sink.getvalue(), "data.parquet"))


def test_no_permission(write, monkeypatch):
    path = write("a\n1\n")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(TableError, match="no permission to read it"):
        read_table(path)


def test_an_unknown_encoding(write):
    path = write("a\nx\n")
    for name in ("klingon", "hex", "rot13"):
        assert f"there is no encoding '{name}'; try 'cp1252'" in said(path, encoding=name)


def test_a_wrong_encoding(write):
    path = write("a\nx\u00e9\n".encode("latin-1"))
    assert "row 2: the byte 0xe9 is not ascii" in said(path, encoding="ascii")


@pytest.mark.parametrize("content", [b"", b"\n", b"a,b\n", b'{"a": 1}\n[]\n', b"\x1f\x8bxx"])
def test_standard_input(content, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert "standard input" in said("-")


PIECES = [
    b'"',
    b",",
    b"\n",
    b"\r",
    b"a",
    b"1",
    b"\x00",
    b"\xff",
    b"{",
    b"}",
    b":",
    b" ",
    b"\xfe",
    b'{"a": 2}\n',
]


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl"])
def test_any_bytes_are_a_table_or_an_error_in_one_sentence(name, skip_bad, write):
    rng = random.Random(0)
    outcomes = []
    for _ in range(400):
        first = b'{"a": 1}\n' if name.endswith("jsonl") else b"a,b\n"
        path = write(first + b"".join(rng.choices(PIECES, k=rng.randrange(30))), name)
        try:
            outcomes.append(read_table(path, skip_bad=skip_bad).data.num_rows)
        except TableError:
            outcomes.append(said(path, skip_bad=skip_bad))
    assert len(set(outcomes)) > 2


@pytest.mark.parametrize(
    "name",
    [
        "one two three four five six seven eight",
        "How satisfied are you with all that you have got so far?",
        "How much do you agree with each of these [The staff is kind]",
    ],
)
def test_long_names_of_columns_are_names(name, write):
    assert read_table(write(f"id,{name}\n1,x\n")).data.column_names == ["id", name]
