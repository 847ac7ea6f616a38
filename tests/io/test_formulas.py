"""Cells that a spreadsheet would run: which they are, in Python and on the page."""

import re
from importlib.resources import files

import pyarrow as pa
import pytest

from coem.io.formulas import are_formulas, as_text_cells, as_they_were, n_formulas
from coem.io.tables import as_it_was, read_table, table_as, write_table

FORMULAS = [
    *("=1+2", "=cmd|' /C calc'!A0", "+cmd|x", "-2+3+cmd|x", "@SUM(A1)", "\t=1", "\rx", "\nx"),
    *("  =1", "\uff1d1+2", "\uff0b1x", "\uff0da", "\uff20a", "-e5", "+A1", "--1", "- item", "=1"),
]
OTHERS = [
    *("", "a", "a=1", "1", "-3.5", "+1e6", "-1,234.50", "-.5", "+5 %", "-1.5e-3", "-", "+", " - "),
    *("p=1", "'=1", '"=1"', "[=1]", "2024-01-01", "\u22123", "e5", "#N/A"),
]


@pytest.mark.parametrize(("cells", "wanted"), [(FORMULAS, True), (OTHERS, False)])
def test_formulas_are_known(cells, wanted):
    found = are_formulas(pa.array(cells, pa.string())).to_pylist()
    assert dict(zip(cells, found, strict=True)) == dict.fromkeys(cells, wanted)


def test_the_page_knows_the_same():
    script = files("coem.report").joinpath("assets/filter.js").read_text(encoding="utf-8")
    formula, number = (
        re.compile(re.search(rf"const {name} = /(.+)/;", script)[1])
        for name in ("formula", "number")
    )
    found = [bool(formula.match(c)) and not number.match(c) for c in FORMULAS + OTHERS]
    assert found == [True] * len(FORMULAS) + [False] * len(OTHERS)


def test_only_formulas_get_an_apostrophe():
    column = pa.array(["=1", None, "-3.5", "a"])
    assert as_text_cells(column).to_pylist() == ["'=1", None, "-3.5", "a"]
    numbers = pa.array([-1, 2])
    assert as_text_cells(numbers) is numbers
    assert n_formulas(pa.table({"a": column, "b": [-1, -2, -3, -4]})) == 1


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_the_apostrophe_can_be_taken_off_again(kind):
    cells = [before + cell for cell in FORMULAS + OTHERS for before in ("", "'", "''", "' ")]
    column = pa.array([*cells, None, "'", "''"], kind)
    safe = as_text_cells(column)
    assert not any(are_formulas(safe).to_pylist())
    assert as_they_were(safe).to_pylist() == column.to_pylist()
    assert len(set(safe.to_pylist())) == len(set(column.to_pylist()))
    assert as_text_cells(pa.array(["=x", "'=x", "'x"], kind)).to_pylist() == ["'=x", "''=x", "'x"]


def test_names_of_columns_are_cells():
    assert n_formulas(pa.table({"=a": ["b"], "-1": ["=c"], "list": [["=d"]]})) == 2
    for column in (pa.array(["=1"], pa.large_string()), pa.array(["=1"]).dictionary_encode()):
        assert n_formulas(pa.table({"a": column})) == 1
        assert table_as(".csv", pa.table({"a": column}), safe=True) == b'"a"\n"\'=1"\n'


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_tables_are_exact_unless_they_shall_be_safe(suffix, tmp_path):
    data = pa.table({"=id": ["=1+1", "b"], "n": [-1.5, 2.0], "list": [["=1"], []]})
    path = tmp_path / f"a{suffix}"
    write_table(data, path)
    assert read_table(path).data.column("=id").to_pylist() == ["=1+1", "b"]
    write_table(data, path, safe=True)
    told = read_table(path).data
    assert told.to_pydict() == {"'=id": ["'=1+1", "b"], "n": [-1.5, 2.0], "list": ['["=1"]', "[]"]}
    assert as_it_was(told).select(["=id", "n"]).equals(data.select(["=id", "n"]))


def test_other_formats_are_exact():
    data = pa.table({"id": ["=1+1"]})
    assert table_as(".jsonl", data, safe=True) == b'{"id": "=1+1"}\n'
    assert table_as(".csv", data) == b'"id"\n"=1+1"\n'
