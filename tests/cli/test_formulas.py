"""Ids and names that a spreadsheet would run as formulas."""

import json

import pytest

from coem.recipes.matching import labels_by_id

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


def test_other_verbs_read_a_safe_run_as_a_plain_one(here, coem):
    rows = posts(30)
    for row in rows[:12]:  # nearly all of what the names would go by
        row["id"] = f"={row['id']}"
    rows[12]["id"], rows[13]["id"], rows[14]["id"] = "=x", "'=x", "''=x"
    table = write_csv(here / "a.csv", rows)
    coem("cluster", table, *FIT[:-1], "plain")
    coem("cluster", table, *FIT[:-1], "safe", "--safe-csv")
    plain, safe = (labels_by_id(here / name) for name in ("plain", "safe"))
    assert plain.ids.equals(safe.ids)
    assert plain.codes.tolist() == safe.codes.tolist()
    assert len(safe.ids) == 30
    for group in range(3):
        coem("name", "safe", f"{group}==GROUP({group})")
    told = json.loads(coem("compare", "plain", "safe", "--json").stdout)
    assert told["pairs"][0]["shared_rows"] == 30
    groups = told["became"][0]["groups"]
    assert [group["into"][0]["name"] for group in groups] == [f"=GROUP({i})" for i in range(3)]
    coem("cluster", table, *FIT[:-1], "next", "--names-from", "safe", "--safe-csv")
    assert read_json(here / "next" / "names.json")["names"] == {
        str(group): f"=GROUP({group})" for group in range(3)
    }
    assert coem("rerun", "safe").stdout == "the same, to the last bit\n"
    coem("report", "safe", "--out", "page.html")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert "=GROUP(1)" in page
    assert "&#39;=GROUP(1)" not in page


def test_names_of_groups_are_counted_once(hostile, here, coem):
    coem("cluster", hostile, *FIT)
    coem("name", "out", "0==1+1")
    told = coem("cluster", hostile, *FIT[:-1], "next", "--names-from", "out").stderr
    cells = [
        cell
        for name in ("assignments", "clusters")
        for row in rows_of(here / "next" / f"{name}.csv")
        for cell in row.values()
    ]
    assert f"{sum(cell.startswith(('=', '@')) for cell in cells)} cells begin like" in told


def test_names_that_are_given_later_are_told_of(hostile, here, coem):
    coem("cluster", hostile, *FIT, "--safe-csv")
    assert "formula" not in coem("name", "out", "0==1+1").stderr
    coem("cluster", hostile, *FIT[:-1], "plain")
    found = sum(
        cell.startswith(("=", "@"))
        for name in ("assignments", "clusters")
        for row in rows_of(here / "plain" / f"{name}.csv")
        for cell in row.values()
    )
    told = coem("name", "plain", "0==1+1").stderr
    assert "cells begin like formulas in .csv output" in told
    assert int(told.partition(" cells begin")[0].split()[-1]) > found


def test_a_stream_is_told_of(hostile, here, coem):
    stream = (*FIT[:-1], "stream", "--stream")
    told = coem("cluster", hostile, *stream).stderr
    assert "2 cells begin like formulas in .csv output" in told
    refused = coem("cluster", hostile, *stream, "--safe-csv", code=1).stderr
    assert "was not asked for when the stream stream began" in refused
    told = coem("cluster", hostile, *FIT[:-1], "safe", "--stream", "--safe-csv").stderr
    assert "formula" not in told
    ids = [row["id"] for row in rows_of(here / "safe" / "assignments.csv")]
    assert ids[:3] == ["'=cmd|' /C calc'!A0", "'@user", "-3.5"]
    assert "formula" not in coem("cluster", hostile, *FIT[:-1], "safe", "--stream").stderr
