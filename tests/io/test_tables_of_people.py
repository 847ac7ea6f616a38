"""Tables as other programs write them: decimal commas, workbooks, lists of objects, pages."""

import datetime
import io
import json
import sys

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

from coem.io.folders import read_folder
from coem.io.markup import markdown_text, page_text
from coem.io.numbers import with_numbers
from coem.io.tables import TableError, read_table


def workbook(path, sheets):
    """Write a workbook: the name of a sheet -> its rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


# -- numbers ------------------------------------------------------------------------------------

NUMBERS = {
    "point": (["1.5", "-2", "1e3"], [1.5, -2.0, 1000.0]),
    "comma": (["1.234,56", "3,50"], [1234.56, 3.5]),
    "comma alone": (["1,5", "2"], [1.5, 2.0]),
    "thousands": (["1,234.56", "3.50"], [1234.56, 3.5]),
    "whole thousands": (["1,234", "12,345,678"], [1234, 12345678]),
    "Swiss": (["1'234.50", "2.00"], [1234.5, 2.0]),
    "French": (["1\u202f234,50", "2\u00a0000"], [1234.5, 2000.0]),
    "currency behind": (["1.234,50 €", "3,00 €"], [1234.5, 3.0]),
    "currency in front": (["$1,234.50", "$3.25"], [1234.5, 3.25]),
    "per cent": (["12 %", "7 %"], [12, 7]),
    "missing": (["1", "NULL", "n/a", "-", "NA", "#N/A", ""], [1, *[None] * 6]),
    "some with a currency": (["1.234,50 €", "3,00", "NULL"], [1234.5, 3.0, None]),
    "a currency on either side": (["€ 2", "3 €", "-€ 4"], [2, 3, -4]),
    "blanks": (["1 234,50", "12\u2009345", "7,5"], [1234.5, 12345.0, 7.5]),
    "minus signs": (["\u22121.5", "2.5", "\u2212"], [-1.5, 2.5, None]),
    "accounts": (["(3,986.64)", "($2.50)", "1.25"], [-3986.64, -2.5, 1.25]),
    "decimals with a zero": (["0,125", "3,250"], [0.125, 3.25]),
    "not stated": (["1", "k. A."], [1, None]),
    "numbers in brackets": (["(1)", "(2)"], None),
    "codes between blanks": (["101 205", "333", "101 205 333"], None),
    "some per cent": (["12 %", "0.5"], None),
    "two currencies": (["$5", "€6"], None),
    "some without a unit": (["5 kg", "6"], None),
    "a list of names": (["101,205", "333", "101,205,333"], None),
    "zeros in front": (["0123,5", "1,5"], None),
    "versions": (["1,1", "1,10"], None),
    "an address": (["192.168.1.1", "10.0.0.1"], None),
    "a day": (["12.03.2020", "13.03.2020"], None),
    "all missing": (["NULL", "-"], None),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers(case):
    cells, want = NUMBERS[case]
    found, notes = with_numbers({"x": pa.chunked_array([pa.array(cells)])}, commas=False)
    assert found["x"].to_pylist() == (cells if want is None else want)
    assert want is not None or not notes


def test_other_columns_say_what_a_point_is():
    def read(commas=False, **columns):
        arrays = {name: pa.chunked_array([pa.array(cells)]) for name, cells in columns.items()}
        found, _ = with_numbers(arrays, commas=commas)
        return {name: column.to_pylist() for name, column in found.items()}

    doubtful = ["1.234", "12.500"]
    assert read(x=doubtful) == {"x": [1.234, 12.5]}
    assert read(x=doubtful, y=["3,50", "2,25"])["x"] == [1234, 12500]
    assert read(x=doubtful, y=["3.50", "2.25"])["x"] == [1.234, 12.5]
    assert read(x=["1,234", "2,500"])["x"] == [1234, 2500]
    assert read(True, x=["1,234", "2,500"])["x"] == [1.234, 2.5]


def read_text(tmp_path, text):
    path = tmp_path / "numbers.csv"
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    return table.data.to_pydict(), table.notes


def test_thousands_with_points_follow_the_decimal_commas_of_the_file(tmp_path):
    columns, notes = read_text(tmp_path, "Preis;Gross\n3.986,64;143.325\n433,25;498.664\n")
    assert columns == {"Preis": [3986.64, 433.25], "Gross": [143325, 498664]}
    assert notes == ["read as numbers: 'Preis' (3.986,64 is 3986.64), 'Gross' (143.325 is 143325)"]
    columns, _ = read_text(tmp_path, "Preis;Anteil\n3.986,64;0.325\n433,25;1.664\n")
    assert columns["Anteil"] == [0.325, 1.664]  # no thousands begin with a zero


@pytest.mark.parametrize("other", ["", ";3.5"])
def test_points_that_may_part_thousands_are_said(other, tmp_path):
    header = "Name;Gross" + (";x" if other else "")
    columns, notes = read_text(tmp_path, f"{header}\na;143.325{other}\nb;498.664{other}\n")
    assert columns["Gross"] == [143.325, 498.664]
    (note,) = notes
    assert note.startswith("read with decimal points: 'Gross' (143.325 could be 143325); if the")
    columns, notes = read_text(tmp_path, "Name,Gross\na,143.325\nb,498.664\n")
    assert (columns["Gross"], notes) == ([143.325, 498.664], [])


def test_numbers_agree_with_a_slow_twin():
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0, 1e5, 300), 2)
    english = [f"{value:,.2f}" for value in values]
    german = [cell.translate(str.maketrans(",.", ".,")) for cell in english]
    for cells in (english, german):
        found, notes = with_numbers({"x": pa.chunked_array([pa.array(cells)])}, commas=False)
        assert found["x"].to_pylist() == [float(f"{value:.2f}") for value in values]
        assert notes[0].startswith("read as numbers: 'x' (")


def test_a_file_says_how_its_numbers_were_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("Name;Preis\nTür;1.234,50\nÖl;-\nAal;2,00\n".encode("cp1252"))
    table = read_table(path)
    assert table.data.to_pydict() == {"Name": ["Tür", "Öl", "Aal"], "Preis": [1234.5, None, 2.0]}
    assert [note.split(" (")[0].split(": ")[0] for note in table.notes] == [
        f"{path} is not UTF-8, and is read as cp1252",
        "read as numbers",
        "taken as missing numbers",
    ]


# -- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_marked_and_wide_encodings(encoding, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes("id\ttext\n1\tnaïve café déjà\n".encode(encoding))
    table = read_table(path)
    assert table.data.to_pydict() == {"id": [1], "text": ["naïve café déjà"]}
    assert bool(table.notes) == (encoding in ("utf-16-le", "utf-16-be"))


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_guessed_encodings(encoding, tmp_path):
    text = "id,text\n1,Überall gibt es Öl und Käse in der Straße\n2,déjà vu\n"
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    table = read_table(path)
    assert table.data.column("text").to_pylist()[1] == "déjà vu"
    assert "read as cp1252 (Western European)" in table.notes[0]
    assert not read_table(path, encoding=encoding).notes


# -- workbooks ----------------------------------------------------------------------------------


def test_a_workbook(tmp_path):
    day = datetime.datetime(2020, 3, 1)
    rows = [
        [],
        ["id", "name", "price", "when", "n", "old", None],
        [1, "Tür", 2.5, day, "1.234,50", True],
        [],
        [2, 7, "#N/A", None, "3,50", False],
        [3, None, 4, day],
    ]
    path = workbook(tmp_path / "a.xlsx", {"goods": rows, "more": [["x"], [1]]})
    table = read_table(path)
    assert table.data.to_pydict() == {
        "id": [1, 2, 3],
        "name": ["Tür", "7", None],
        "price": [2.5, None, 4.0],
        "when": [day, None, day],
        "n": [1234.5, 3.5, None],
        "old": [True, False, None],
    }
    assert [table.number(row) for row in range(3)] == [3, 5, 6]
    assert "the first sheet, 'goods', is read, and not 'more'" in table.notes[0]
    assert read_table(path, sheet="more").data.to_pydict() == {"x": [1]}


def test_a_workbook_from_standard_input(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", {"a": [["x"], ["words"]]})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert read_table("-").data.to_pydict() == {"x": ["words"]}


def test_rows_beside_the_header_can_be_left_out(tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"a": [["x", "y"], [1, 2], [3, 4, 5], [6, 7]]})
    with pytest.raises(TableError, match="row 3: column 3 has a value, but no name in the header"):
        read_table(path)
    table = read_table(path, skip_bad=True)
    assert table.data.to_pydict() == {"x": [1, 6], "y": [2, 7]}
    assert [table.number(row) for row in range(2)] == [2, 4]


def test_lines_above_the_header_are_left_out_and_named(tmp_path):
    goods = [["id", "name", "price", "size"], [1, "Tür", 2.5, 2], [], [2, "Öl"], [3, "Aal", 4, 5]]
    titles = [["Export of 2024"], [], ["by", "Ann"]]
    table = read_table(workbook(tmp_path / "a.xlsx", {"goods": titles + goods}))
    assert table.data.column("name").to_pylist() == ["Tür", "Öl", "Aal"]
    assert table.notes == ["the header is row 4; left out above it: 'Export of 2024', 'by Ann'"]
    assert [table.number(row) for row in range(3)] == [5, 7, 8]


def test_a_header_that_is_not_clear_is_named(tmp_path):
    goods = [["id", "name", "name"], [1, "Tür", 2.5], [2, "Öl", 3.5], [3, "Aal", 4.5]]
    path = workbook(tmp_path / "a.xlsx", {"goods": [["Export"], *goods]})
    message = "sheet 'goods': row 2 seems to be the header, with lines above it; delete these"
    with pytest.raises(TableError, match=message):
        read_table(path)


@pytest.mark.parametrize("skip_bad", [False, True])
def test_bad_rows_are_not_to_be_left_out_if_all_are_bad(skip_bad, tmp_path):
    path = workbook(tmp_path / "a.xlsx", {"goods": [["name"], ["Tür", 2], ["Öl", 3]]})
    with pytest.raises(TableError, match="no good row; in the first, row 2, column 2 has") as said:
        read_table(path, skip_bad=skip_bad)
    assert "skip" not in str(said.value)


def test_a_header_that_lacks_a_name_is_no_title(tmp_path):
    rows = [["a", "b"], ["x", "y"], ["x", "y", "z"], ["x", "y", "w"]]
    with pytest.raises(TableError, match="row 3: column 3 has a value, but no name in the header"):
        read_table(workbook(tmp_path / "a.xlsx", {"goods": rows}))


def test_sparse_rows_and_one_column_keep_their_header(tmp_path):
    rows = [["a", "b", "c", "d"], ["x", "y"], ["x", "z"], ["w", "z"]]
    table = read_table(workbook(tmp_path / "a.xlsx", {"goods": rows}))
    assert table.data.column_names == ["a", "b", "c", "d"]
    table = read_table(workbook(tmp_path / "b.xlsx", {"goods": [["text"], ["one"], ["two"]]}))
    assert table.data.to_pydict() == {"text": ["one", "two"]}


def test_the_first_sheet_with_rows_is_read(tmp_path):
    sheets = {"Tabelle1": [], "Info": [["read me"]], "Data": [["a", "b"], [1, 2]], "More": []}
    table = read_table(workbook(tmp_path / "a.xlsx", sheets))
    assert table.data.to_pydict() == {"a": [1], "b": [2]}
    assert table.notes == [
        "the first sheet with rows, 'Data', is read, and not 'Tabelle1', 'Info', 'More' "
        "(--sheet, sheet=)"
    ]
    path = workbook(tmp_path / "b.xlsx", {"one": [], "two": [[None]]})
    with pytest.raises(TableError, match=r"no sheet with cells \(sheets: 'one', 'two'\)"):
        read_table(path)


def test_without_openpyxl_the_line_to_install_it_is_said(tmp_path, monkeypatch):
    path = workbook(tmp_path / "a.xlsx", {"a": [["x"], [1]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"pip install 'coem\[excel\]'"):
        read_table(path)


# -- JSON ---------------------------------------------------------------------------------------

ROWS = [{"id": 1, "text": "a"}, {"id": 2, "text": "b", "tags": [3, 4]}]
WANT = {"id": [1, 2], "text": ["a", "b"], "tags": [None, [3, 4]]}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        json.dumps({"total": 2, "items": ROWS}),
        json.dumps({"meta": {"page": 1}, "data": {"items": ROWS, "next": None}}),
        "\n".join(map(json.dumps, ROWS)),
    ],
)
def test_lists_of_objects(content, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text(content, encoding="utf-8")
    assert read_table(path).data.to_pydict() == WANT


def test_a_list_of_objects_from_standard_input(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(ROWS, indent=1).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert read_table("-").data.to_pydict() == WANT


def test_objects_within_objects_are_columns(tmp_path):
    rows = [
        {"user": {"name": "a", "at": {"x": 1}}, "mixed": {"a": 1}},
        {"user": None, "mixed": 3, "clash": {"b": 1}, "clash.b": 2},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert read_table(path).data.to_pydict() == {
        "user.name": ["a", None],
        "user.at.x": [1, None],
        "mixed": ['{"a": 1}', "3"],
        "clash": [None, '{"b": 1}'],
        "clash.b": [None, 2],
    }


def test_bad_items_of_a_list_can_be_left_out(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"a": 1}, 3, {"a": 2}]', encoding="utf-8")
    with pytest.raises(TableError, match="row 2: a JSON number and not an object"):
        read_table(path)
    assert read_table(path, skip_bad=True).data.to_pydict() == {"a": [1, 2]}


# -- Markdown and pages -------------------------------------------------------------------------


def test_markdown():
    text = (
        "---\ntitle: not this\n---\n# Ships & *sails*\n\nThe [crew](http://a.org/x) of `a_b`"
        " ![mast](m.png) <b>bold</b> <!-- no -->\n\n- one\n1. two\n> three\n\n"
        "```python\nx = 1\n```\n"
        "| a | b |\n|---|---|\n| c | __d__ |\n\n[1]: http://b.org\n"
    )
    words = [" ".join(part.split()) for part in markdown_text(text).split("\n\n")]
    assert words == [
        "Ships & sails",
        "The crew of a_b mast bold",
        "one two three",
        "x = 1",
        "a b c d",
    ]


def test_pages():
    page = (
        "<!doctype html><html><head><title>Ships</title><style>p {}</style></head><body>"
        "<script>var x = 1 < 2;</script><p>The <b>cr</b>ew &amp; mast</p><p>sail<br>deck</p></body>"
    )
    assert page_text(page) == "Ships The crew & mast sail deck"
    assert page_text(page, paragraphs=True) == "Ships\n\nThe crew & mast\n\nsail deck"
    assert "malformed" in page_text("<![if malformed <p>malformed")


def test_a_folder_of_pages_and_notes(tmp_path):
    files = {
        "a/1.md": b"# Sea\n",
        "a/2.HTML": b"<p>Sh&uuml;ps</p>",
        "b/3.htm": b'<meta charset="windows-1251"><p>' + "хоккей".encode("cp1251") + b"</p>",
        "b/4.txt": b"x *y*",
        "b/5.pdf": b"%PDF",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found, _ = read_folder(tmp_path, None, False, 1 << 20)
    assert found.data.to_pydict() == {
        "id": ["a/1.md", "a/2.HTML", "b/3.htm", "b/4.txt"],
        "text": ["Sea", "Shüps", "хоккей", "x *y*"],
        "label": ["a", "a", "b", "b"],
    }
    assert "1 .md" in found.notes[0]
