"""Ids and names that a spreadsheet would run as formulas."""

import pytest

from .conftest import posts, read_json, rows_of, write_csv

FIT = ("--text", "body", "-k", "3", "--restarts", "2", "--no-report", "--out", "out")


@pytest.fixture
def hostile(here):
    rows = posts(30)
    rows[0]["id"], rows[1]["id"], rows[2]["id"] = "=cmd|' /C calc'!A0", "@user", "-3.5"
    return write_csv(here / "a.csv", rows)


def test_files_are_exact_and_a_note_says_what_is_in_them(hostile, here, coem):
    told = coem("cluster", hostile, *FIT)
    assert "2 cells begin like formulas in .csv output" in told.stderr
    assert "--safe-csv" in told.stderr
    ids = [row["id"] for row in rows_of(here / "out" / "assignments.csv")]
    assert ids[:4] == ["=cmd|' /C calc'!A0", "@user", "-3.5", "p3"]
    told = coem("predict", "out", hostile)
    assert "2 cells begin like formulas" in told.stderr
    assert "\n\"=cmd|' /C calc'!A0\"," in told.stdout


def test_a_run_may_be_safe_and_stays_so(hostile, here, coem):
    told = coem("cluster", hostile, *FIT, "--safe-csv")
    assert "formula" not in told.stderr
    ids = [row["id"] for row in rows_of(here / "out" / "assignments.csv")]
    assert ids[:4] == ["'=cmd|' /C calc'!A0", "'@user", "-3.5", "p3"]
    assert read_json(here / "out" / "run.json")["written"]["safe_csv"] is True
    assert coem("rerun", "out").stdout == "the same, to the last bit\n"
    coem("name", "out", "0==HYPERLINK(1)")
    assert "'=HYPERLINK(1)" in (here / "out" / "assignments.csv").read_text()
    told = coem("predict", "out", hostile, "--safe-csv", "--out", "new.csv")
    assert [row["id"] for row in rows_of(here / "new.csv")][:2] == ids[:2]
    assert "formula" not in told.stderr


def test_other_formats_need_no_note(hostile, coem):
    assert "formula" not in coem("cluster", hostile, *FIT, "--format", "parquet").stderr
    assert "formula" not in coem("predict", "out", hostile, "--json").stderr
