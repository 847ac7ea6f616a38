"""Tables that are made to do harm: no crash, no endless work, no memory without a bound."""

import csv
import datetime
import io
import json
import random
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from coem.io import excel, json_lines, markup, row_by_row, unpacking
from coem.io.row_by_row import OPEN, Lines, Rows, Tail, read_rows
from coem.io.streams import Reading, Stream
from coem.io.tables import TableError, read_table
from coem.recipes.documents import read_documents
from coem.recipes.label_files import join_labels
from coem.recipes.listener import Listener
from coem.text import TextViews
from tests.io.hostile import KINDS, hostile_table, read_everything
from tests.io.test_bad_tables import said, write  # noqa: F401  (a fixture)
from tests.io.test_tables import packed
from tests.io.test_tables_of_people import workbook
from tests.work import work_of

N_CASES = 100


# -- quotes that are never closed ---------------------------------------------------------------


@pytest.mark.parametrize("row", ['x","\n', '"x\n', 'a,"b\n', '"a""\n', 'x\ny,"\n'])
def test_open_quotes_are_work_in_proportion_to_the_file(row, write):  # noqa: F811
    def work(n):
        path = write("a,b\n1,2\n" + row * n)
        return work_of(lambda: read_table(path, skip_bad=True))

    work(10)  # what is imported or made once
    assert work(2000) < 3 * work(1000)


def slowly(text):
    """Return rows and bad rows as a reader finds them that begins again after every open quote."""
    lines = io.StringIO(text, newline="\n").readlines()
    good, bad, at = [], [], 0
    while at < len(lines):
        reader = csv.reader([*lines[at:], "the end"])
        try:
            cells = next(reader)
        except csv.Error:
            bad.append(at + 1)
        else:
            if at + reader.line_num > len(lines):
                bad.append(at + 1)
                at += 1
                continue
            if cells and not (len(cells) == 1 and not cells[0].strip()):
                good.append(cells) if len(cells) == 2 else bad.append(at + 1)
        at += reader.line_num
    return good, bad


@pytest.mark.parametrize("source", [lambda data: data, lambda data: Tail(io.BytesIO(data))])
def test_rows_are_those_of_a_reader_that_begins_again(source):
    rng = random.Random(0)
    n_open = 0
    for _ in range(3000):
        text = "".join(rng.choices(['"', ",", "\n", "\n", "a", "b", "\r"], k=rng.randrange(40)))
        rows = Rows("file", 2, skip_bad=True)
        for _ in read_rows(source(text.encode()), 0, 0, ",", rows):
            pass
        good, bad = slowly(text)
        assert [list(row) for row in zip(*rows.columns, strict=True)] == good, text
        assert [row for row, _ in rows.bad] == bad, text
        n_open += any(reason == OPEN for _, reason in rows.bad)
    assert n_open > 300


@pytest.mark.parametrize("end", ["", "\n", "\r\n", '""', "\n3,x\n", "\n\n3,x"])
def test_an_open_quote_is_found_if_another_cell_has_one(end, write, tmp_path):  # noqa: F811
    path = write('a,b\n1,5" pipe\n2,"abc' + end)
    assert "row 3: a quote that is never closed" in said(path)
    with pytest.raises(TableError, match="row 3: a quote that is never closed"):
        list(Stream([str(path)], tmp_path, Reading()))
    found = read_table(path, skip_bad=True)
    parts = Stream([str(path)], tmp_path, Reading(skip_bad=True))
    assert found.bad == [(3, OPEN)]
    assert [row["b"] for row in found.data.to_pylist()] == ['5" pipe', "x"][: 1 + ("3" in end)]
    assert pa.concat_tables(parts).to_pylist() == found.data.to_pylist()


@pytest.mark.parametrize("last", ['2,"x"', '2,"x"\n', '2,""', '2,"x\n"\n', '2,x""', '"2","x"""'])
def test_a_file_whose_last_quote_is_closed_is_read_at_once(last, write, monkeypatch):  # noqa: F811
    monkeypatch.delattr("coem.io.delimited._read_slowly")
    assert read_table(write('a,b\n1,"y"\n' + last)).data.num_rows == 2


def test_lines_end_a_row_that_cannot_end():
    lines = Lines(b'"a\nb",1\n"c\nd\n', 0, ",")
    assert next(lines) == '"a\n'
    assert next(lines) == 'b",1\n'
    assert lines.end_row() == 2
    assert next(lines) == '"c\n'
    with pytest.raises(row_by_row.OpenQuote):
        next(lines)


# -- other errors than those of coem ------------------------------------------------------------


@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_carriage_return_in_a_header(skip_bad, write):  # noqa: F811
    message = said(write(b"a\rb,c\n1,2\n"), skip_bad=skip_bad)
    assert "row 1: the header has a carriage return in a cell that is not quoted; mend" in message


@pytest.mark.parametrize(
    "cell", ["[" + "9" * 401 + "]", "[" * 100_000 + "]" * 100_000, '"12"', '{"1": 2}', "[[1], 2]"]
)
def test_vectors_that_are_none(cell):
    with pytest.raises(ValueError, match=r"row 1: .* is not a JSON list of numbers; write \[0\.5"):
        TextViews({"v": "v:vector"}).fit({"v": ["[1, 2]", cell]})


def test_codes_of_a_parquet_column_that_are_not_in_its_list(write):  # noqa: F811
    sink = io.BytesIO()
    words = pa.array(["word", "other", "third"] * 5)
    table = pa.table({"a": words.dictionary_encode()})
    parquet.write_table(table, sink, compression="none")
    whole, n_damaged = sink.getvalue(), 0
    for place in range(0, len(whole), 2):
        data = whole[:place] + bytes([whole[place] ^ 0x22]) + whole[place + 1 :]
        try:
            read_table(write(data, "a.parquet"))
        except TableError as error:
            n_damaged += "is not a parquet file, or is damaged (" in str(error)
    assert n_damaged > 50


@pytest.mark.parametrize("name", ["idna", "punycode", "undefined", "unicode_escape", "a\x00b"])
def test_codecs_that_are_no_encodings(name, write):  # noqa: F811
    message = said(write("a,b\n1,\\ud800x..\u00e4\n"), encoding=name)
    assert "encoding" in message


def test_a_page_in_a_codec_that_is_none(tmp_path):
    page = b"<meta charset=zlib><p>caf\xe9 au lait</p>"
    (tmp_path / "a.html").write_bytes(page)
    assert read_table(tmp_path).data["text"].to_pylist() == ["caf\u00e9 au lait"]


def test_dates_that_are_lists():
    from coem.text.dates import read_dates

    with pytest.raises(ValueError, match="2 of 2 values are not dates"):
        read_dates([["2024-01-01"], {"a": 1}])


def test_numbers_with_an_exponent_beside_semicolons(write):  # noqa: F811
    table = read_table(write("a;b\n1e5;x\n2e5;y\n")).data
    assert table.to_pydict() == {"a": [1e5, 2e5], "b": ["x", "y"]}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([0, 2**62]).cast(pa.timestamp("ms")),
        pa.array([[0], [2**62]]).cast(pa.list_(pa.timestamp("ms"))),
    ],
)
def test_times_that_python_has_not(column, write):  # noqa: F811
    sink = io.BytesIO()
    parquet.write_table(pa.table({"when": column}), sink)
    message = said(write(sink.getvalue(), "a.parquet"))
    assert "column 'when' has a date or time that cannot be read (" in message


def test_nanoseconds_are_read_without_pandas(write):  # noqa: F811
    sink = io.BytesIO()
    parquet.write_table(pa.table({"when": pa.array([1_500], pa.timestamp("ns"))}), sink)
    table = read_table(write(sink.getvalue(), "a.parquet")).data
    assert table["when"].to_pylist() == [datetime.datetime(1970, 1, 1, 0, 0, 0, 1)]


def test_a_long_id_is_cut_in_a_message(tmp_path):
    (tmp_path / "a.csv").write_text(f"id,text\n{'x' * 9000},a b\n{'x' * 9000},c d\n")
    (tmp_path / "labels.csv").write_text(f"id,label\n{'y' * 9000},a\n")
    listener = Listener()
    with pytest.raises(ValueError, match="both called 'xxx") as caught:
        read_documents(tmp_path / "a.csv", listener)
    assert len(str(caught.value)) < 500
    documents = replace(read_documents(tmp_path / "a.csv", listener, id="none"), id_column="id")
    with pytest.raises(ValueError, match=r"labels of 1 ids that .* has not: 'yyy") as caught:
        join_labels(documents, tmp_path / "labels.csv", None, listener, skip_bad=False)
    assert len(str(caught.value)) < 500


# -- names of columns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("column 2,", ["column 2", "column 2 (2)"]),
        (",column 1,", ["column 1 (2)", "column 1", "column 3"]),
        ("column 2,,column 2 (2)", ["column 2", "column 2 (3)", "column 2 (2)"]),
    ],
)
def test_a_column_without_a_name_has_one_of_its_own(header, names, write):  # noqa: F811
    n = header.count(",") + 1
    table = read_table(write(f"{header}\n{','.join(map(str, range(n)))}\n")).data
    assert table.column_names == names
    assert [column[0].as_py() for column in table.columns] == list(range(n))


def test_keys_without_a_name_and_paths_that_are_keys(write):  # noqa: F811
    record = {"": 1, "a": {"b": {"c": 2}}, "a.b.c": 3}
    table = read_table(write(json.dumps(record) + "\n", "a.jsonl")).data
    assert table.to_pydict() == {"column 1": [1], "a": ['{"b": {"c": 2}}'], "a.b.c": [3]}


# -- marks that never end -----------------------------------------------------------------------

MARKS = [
    *("[", "[](", "![a](b", "[a](b]", "[a](b] [", "<a", "<a:", "<!--", "</a", "<![CDATA["),
    *("a____", " ", "<a b='", "&#"),
]
LONG = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))  # seconds of work, whatever the clock says
from coem.io.markup import markdown_text, page_text
for mark in sys.argv[1:]:
    text = mark * (150_000 // len(mark)) + "end"
    assert "end" in markdown_text(text)
    assert "end" in page_text(text, paragraphs=True)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of resources")
def test_marks_that_never_end_are_little_work():
    told = subprocess.run([sys.executable, "-c", LONG, *MARKS], capture_output=True, text=True)
    assert told.stdout == "done\n", told.stderr


def test_pages_that_break_off():
    assert markup.page_text("<p>one</p> two &amp; <b") == "one two & <b"
    assert markup.page_text("<p>one</p><script>var x = 1; two") == "one"
    assert markup.page_text("<p>one</p> <!-- two <p>three") == "one <!-- two <p>three"
    assert markup.page_text("<p>a</p><!-- b --> c") == "a c"


def test_marks_within_marks():
    assert markup.markdown_text("a <!-- b\n --> c <!-- d") == "a   c <!-- d"
    assert markup.markdown_text("[![alt](a.png)](b.html) word") == "alt word"
    assert markup.markdown_text("a_b__ __c__ | d") == "a_b c d"
    assert markup.markdown_text("[a](b?c[0]=1) [d](e [f](g)") == "a [d](e f"
    assert markup.markdown_text(f"[a]({'b' * 5000})") == "a"


def test_links_that_never_end_take_little_longer_than_others():
    def seconds(text):
        started = time.process_time()
        markup.markdown_text(text)
        return time.process_time() - started

    assert seconds("![a](b" * 50_000) < 6 * seconds("![a](b) " * 50_000)


# -- wide tables --------------------------------------------------------------------------------


WIDE = {
    "numbers.csv": lambda n: ",".join(f"c{i}" for i in range(n)) + "\n" + "1," * (n - 1) + "2\n",
    "objects.jsonl": lambda n: json.dumps({f"c{i}": {"a": i} for i in range(n)}) + "\n",
}


@pytest.mark.parametrize("name", WIDE)
def test_columns_are_work_in_proportion_to_their_number(name, write):  # noqa: F811
    def work(n):
        path = write(WIDE[name](n), name)
        return work_of(lambda: TextViews().fit_transform(read_table(path).data))

    work(10)
    assert work(160) < 2.5 * work(80)


def test_columns_of_one_kind_are_gathered_once(monkeypatch):
    from coem.text import guess

    class Counted(str):
        n = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.n += 1
            return str.__eq__(self, other)

    def compared(n):
        Counted.n = 0
        monkeypatch.setattr(
            guess,
            "guess_columns",
            lambda *_: {i: guess.Guess(Counted("number"), "") for i in range(n)},
        )
        guess.guess_views(None)
        return Counted.n

    assert compared(400) < 2.5 * compared(200)


def test_objects_that_share_no_keys_are_refused(monkeypatch, write):  # noqa: F811
    monkeypatch.setattr(json_lines, "CELLS", 1000)
    apart = "".join(json.dumps({f"k{i}": i}) + "\n" for i in range(200))
    assert "200 different keys in 200 objects" in said(write(apart, "a.jsonl"))
    apart = "".join(json.dumps({"a": {f"k{i}": i}}) + "\n" for i in range(200))
    assert "200 different keys in 200 objects" in said(write(apart, "a.jsonl"))
    alike = json.dumps({f"k{i}": i for i in range(200)}) + "\n"
    assert read_table(write(alike * 10, "a.jsonl")).data.shape == (10, 200)


# -- bombs --------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(unpacking, "FLOOR", 100_000)


@pytest.mark.parametrize("how", [".gz", ".zst"])
def test_packed_files_may_not_grow_without_a_bound(how, small, monkeypatch, write):  # noqa: F811
    bomb = packed(b"a\n" + b"x\n" * 5_000_000, how)
    path = write(bomb, f"a.csv{how}")
    message = said(path)
    assert "unpacks to more than" in message
    assert "unpack it, or save it as .csv" in message
    stream = io.TextIOWrapper(io.BytesIO(bomb))
    monkeypatch.setattr(sys, "stdin", stream)
    assert "unpacks to more than" in said("-")
    usual = b"a,b\n" + b"".join(b"%d,some words\n" % i for i in range(20_000))
    assert len(usual) > unpacking.FLOOR
    assert read_table(write(packed(usual, how), f"b.csv{how}")).data.num_rows == 20_000


def test_a_parquet_file_of_one_value_many_times(small, write):  # noqa: F811
    sink = io.BytesIO()
    parquet.write_table(pa.table({"a": pa.array(["word " * 100] * 100_000)}), sink)
    assert len(sink.getvalue()) < 10_000
    assert "unpacks to more than" in said(write(sink.getvalue(), "a.parquet"))


def test_a_workbook_of_one_value_many_times(small, tmp_path, write):  # noqa: F811
    data = workbook(tmp_path / "a.xlsx", {"S": [["a"], ["b"]]}).read_bytes()
    assert "unpacks to more than" in said(write(with_part(data, bytes(9_000_000)), "b.xlsx"))


@pytest.mark.parametrize("place", ["A999999999"])
def test_a_cell_in_a_row_that_no_sheet_has(place, tmp_path, monkeypatch, write):  # noqa: F811
    monkeypatch.setattr(excel, "ROWS", 1000)
    data = workbook(tmp_path / "a.xlsx", {"S": [["a"], ["b"]]}).read_bytes()
    cell = f'<row r="{place[1:]}"><c r="{place}"><v>1</v></c></row></sheetData>'
    message = said(write(with_part(data, cell.encode(), at=b"</sheetData>"), "b.xlsx"))
    assert "more than 1,000 rows" in message


def test_cells_far_to_the_right_of_many_rows(monkeypatch, tmp_path, write):  # noqa: F811
    monkeypatch.setattr(excel, "CELLS", 100_000)
    data = workbook(tmp_path / "a.xlsx", {"S": [["a"], ["b"]]}).read_bytes()
    cells = "".join(f'<row r="{i}"><c r="ZZZ{i}"><v>1</v></c></row>' for i in range(3, 30))
    message = said(
        write(with_part(data, cells.encode() + b"</sheetData>", at=b"</sheetData>"), "b.xlsx")
    )
    assert "100,000 cells" in message


def with_part(data, new, at=None):
    """Return a workbook with other content in its sheet, or with one part more."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as book, zipfile.ZipFile(sink, "w", 8) as out:
        for name in book.namelist():
            part = book.read(name)
            part = part.replace(at, new) if at and name.endswith("sheet1.xml") else part
            out.writestr(name, part)
        if at is None:
            out.writestr("xl/more.xml", new)
    return sink.getvalue()


# -- everything ---------------------------------------------------------------------------------


def test_damaged_tables_are_read_or_explained(tmp_path):
    kinds, n_said = set(), 0
    for seed in range(N_CASES):
        case = hostile_table(seed, tmp_path / str(seed))
        try:
            n_said += len(read_everything(case))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {case.kind}: {error}") from error
        kinds.add(case.kind)
    assert kinds == set(KINDS)
    assert n_said > N_CASES


def test_a_seed_makes_the_same_file(tmp_path):
    for seed in range(40):
        one, two = (hostile_table(seed, tmp_path / place) for place in (f"{seed}a", f"{seed}b"))
        assert one.options == two.options
        if one.kind != "folder":
            assert one.path.read_bytes() == two.path.read_bytes(), one.kind
