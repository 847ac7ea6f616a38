"""Topics: what they are found in, and what is written of them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from coem.io.tables import read_table

from .conftest import posts, read_json


@pytest.fixture
def mixed(here):
    """Texts, lists, vectors (one is too short) and numbers."""
    rows = [
        {**row, "price": float(row["price"]), "vector": [1.0] * (2 if i == 6 else 3)}
        for i, row in enumerate(posts())
    ]
    path = here / "mixed.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_columns_of_other_kinds_are_left_out(mixed, coem):
    told = coem("topics", mixed, "-k", "3", "--out", "out").stderr
    assert "Column 'refs' is left out: topics are found in text, and it is a list." in told
    assert re.search(r"^vector +left out +one value is in nearly all", told, re.MULTILINE)
    assert re.search(r"^body +view 'text', text|^body +view 'body', text", told, re.MULTILINE)
    assert read_json("out/run.json")["result"]["k"] == 3
    assert coem("predict", "out", mixed).stdout.count("\n") == 91
    assert "the same, to the last bit" in coem("rerun", "out").stdout


def test_lists_alone_have_topics(here, coem):
    rows = [{"id": row["id"], "refs": row["refs"]} for row in posts()]
    (here / "a.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows), encoding="utf-8")
    assert "left out" not in coem("topics", "a.jsonl", "-k", "3").stderr


def test_several_views_that_were_asked_for(mixed, coem):
    given = ("--text", "body", "--view", "refs=refs:list")
    told = coem("topics", mixed, *given, "-k", "3", code=1).stderr
    assert "there are text, refs; name the text columns with --text and no other view" in told


@pytest.mark.parametrize(("view", "kind"), [("p=price:number", "number"), ("p=v.npy", "array")])
def test_views_that_are_no_counts(view, kind, mixed, coem):
    np.save("v.npy", np.eye(3)[np.arange(90) % 3])
    told = coem("topics", mixed, "--view", view, "-k", "3", code=1).stderr
    assert f"view 'p' is of kind {kind!r}, and topics are found in words or lists" in told


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_all_shares_are_written(form, table, coem):
    coem("topics", table, "--text", "body", "-k", "4", "--format", form, "--out", "out")
    found = read_table(f"out/assignments.{form}").data
    shares = found["shares"].to_pylist()
    shares = np.array([json.loads(row) if form == "csv" else row for row in shares])
    assert shares.shape == (90, 4)
    assert np.abs(shares.sum(axis=1) - 1).max() < 4e-6
    ordered = np.sort(shares, axis=1)
    for column, place in (("probability", -1), ("second_probability", -2)):
        said = np.array(found[column].to_pylist(), dtype=float)
        assert np.abs(ordered[:, place] - said).max() < 1e-6
    assert (shares.argmax(axis=1) == np.array(found["label"].to_pylist(), dtype=int)).all()


def test_a_fixed_number_of_rounds_is_no_failure(table, coem):
    coem("topics", table, "--text", "body", "-k", "3", "--max-iter", "7", "--out", "out")
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "14 rounds." in page
    assert "converged" not in page.partition("<dl")[0]


def test_rounds_that_were_to_converge_are_told_so(table, coem):
    coem("cluster", table, "--text", "body", "-k", "3", "--max-iter", "1", "--out", "out")
    assert "stopped before it converged" in Path("out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verb", "own", "left_out"),
    [("topics", ["-k", "3"], "topics "), ("classify", ["--label", "topic"], "classes")],
)
def test_info_of_a_run_shows_no_lists(verb, own, left_out, table, coem):
    coem(verb, table, "--text", "body", *own, "--out", "out")
    lines = coem("info", "out").stdout.splitlines()
    assert any(line.startswith("k ") for line in lines)
    assert not any(line.startswith(left_out) for line in lines)
    assert "[{" not in "".join(lines)
    assert left_out.strip() in json.loads(coem("info", "out", "--json").stdout)["result"]
