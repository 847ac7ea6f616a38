"""Columns that are no views of their kind: what is wrong where, in the words of the program."""

import csv
import json

import numpy as np
import pytest

from .conftest import posts, read_json, write_csv

OUT = ("-k", "3", "--restarts", "2", "--out", "out")


@pytest.fixture
def odd(here):
    """A file with columns of all kinds, some of which are broken."""
    path = here / "odd.jsonl"
    rows = [
        {
            **row,
            "price": float(row["price"]),
            "gap": None if i == 4 else 1.0,
            "ragged": [1.0] * (2 if i == 6 else 3),
            "nothing": None,
        }
        for i, row in enumerate(posts())
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


# -- rows ---------------------------------------------------------------------------------------


def test_rows_are_counted_as_in_the_file(here, coem):
    rows = posts()
    rows[7]["price"] = "dear"
    write_csv(here / "a.csv", rows)
    told = coem("cluster", "a.csv", "--view", "p=price:number", *OUT, code=1).stderr
    assert told.startswith("coem: error: a.csv, row 9, view 'p': 'dear' in column 'price'")
    lines = (here / "a.csv").read_text(encoding="utf-8").splitlines()
    assert "dear" in lines[9 - 1]
    (here / "b.csv").write_text("\n".join([*lines[:3], "a bad row", *lines[3:]]), encoding="utf-8")
    given = ("--view", "p=price:number", "--skip-bad")
    assert "b.csv, row 10, view 'p'" in coem("cluster", "b.csv", *given, *OUT, code=1).stderr


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("v=ragged:vector", "odd.jsonl, row 7, view 'v' has 2 numbers"),
        ("v=title:vector", "odd.jsonl, row 1, view 'v': '"),
        ("v=holes.npy", "odd.jsonl, row 6, view 'v': some of its values are NaN"),
    ],
)
@pytest.mark.parametrize("verb", ["cluster", "choose-k"])
def test_bad_rows_of_views(verb, view, message, odd, coem):
    # Where k is chosen, fits see a part of the rows, and must not be the first to complain.
    holes = np.eye(3)[np.arange(90) % 3]
    holes[5, 1] = np.nan
    np.save("holes.npy", holes)
    assert message in coem(verb, odd, "--view", view, code=1).stderr


def test_a_bad_row_of_new_documents(odd, coem):
    coem("cluster", odd, "--view", "p=price:number", *OUT)
    rows = posts(5)
    rows[2]["price"] = "dear"
    write_csv(odd.parent / "new.csv", rows)
    assert "new.csv, row 4, view 'p'" in coem("predict", "out", "new.csv", code=1).stderr


# -- kinds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "price"], "write --view NAME=price:number, or make it text"),
        (["--text", "refs"], "write --view NAME=refs:list"),
        (["--text", "ragged"], "write --view NAME=ragged:vector"),
        (["--view", "v=refs:number"], "write --view NAME=refs:list"),
        (["--view", "v=refs:vector"], "write --view NAME=refs:list"),
        (["--view", "v=price:vector"], "write --view NAME=price:number"),
        (["--view", "v=price:list"], "write --view NAME=price:number"),
        (["--view", "v=ragged:list"], "write --view NAME=ragged:vector"),
        (["--view", "v=title:text+price:number"], "text and number; make it several views"),
        (["--view", "v=refs:wrong"], "kinds are text, list, inbound, number, vector"),
        (["--view", "v=nothing:number"], "every row is missing"),
        (["--view", "v=few.npy"], "write --view NAME=COLUMN:vector"),
        (["--view", "v=flat.npy"], "two dimensions"),
        (["--view", "v=words.npy"], "must hold numbers"),
        (["--view", "v=junk.npy"], "no .npy file of numbers; write it with numpy.save"),
        (["--text", "body", "--min-df", "91"], "there are only 90 rows, and --min-df (91)"),
        (["--text", "id"], "lower --min-df or raise --max-df"),
    ],
)
def test_columns_of_another_kind(arguments, message, odd, coem):
    np.save("few.npy", np.eye(5))
    np.save("flat.npy", np.arange(90.0))
    np.save("words.npy", np.full((90, 2), "word"))
    (odd.parent / "junk.npy").write_text("junk")
    told = coem("cluster", odd, *arguments, *OUT, code=1).stderr
    assert message in told
    assert "={" not in told


def test_links_to_rows_without_names(here, coem):
    write_csv(here / "a.csv", [{k: v for k, v in row.items() if k != "id"} for row in posts()])
    assert "--id COLUMN" in coem("cluster", "a.csv", "--view", "v=refs:inbound", code=1).stderr


@pytest.mark.parametrize(("verb", "code"), [("cluster", 1), ("info", 0)])
def test_a_table_without_documents(verb, code, here, coem):
    write_csv(here / "a.csv", [{"id": row["id"], "kind": "post"} for row in posts()])
    result = coem(verb, "a.csv", code=code)
    assert "name one, as in --text COLUMN" in result.stdout + result.stderr


def test_more_groups_than_rows_of_a_part(odd, coem):
    result = coem("choose-k", odd, "--text", "body", "--among", "2,80", code=1)
    assert "--among: 80 components cannot be fitted to 45 rows" in result.stderr


def test_warnings_speak_of_options(odd, coem):
    given = ("--text", "body", "--label", "topic", "--unlabeled-weight", "0.5")
    told = coem("classify", odd, *given, "--max-iter", "1", "--out", "out").stderr
    assert "no convergence after 1 rounds; raise --max-iter\n" in told
    assert not read_json("out/run.json")["result"]["converged"]


def test_one_row_is_said_to_be_one(here, coem):
    write_csv(here / "a.csv", posts(1))
    told = coem("cluster", "a.csv", "--text", "body", *OUT, code=1).stderr
    assert "there is only 1 row, and --min-df (2)" in told
    assert "add rows" in told


def lists_between(sign, here):
    """Write lists of three items with a sign between them, and return the first."""
    rows = [{"id": f"p{i}", "refs": sign.join([f"a{i}", "b", "c"])} for i in range(20)]
    with (here / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "refs"])
        writer.writeheader()
        writer.writerows(rows)
    return rows[0]["refs"]


@pytest.mark.parametrize("sign", [",", ", "])
def test_lists_may_have_commas(sign, here, coem):
    lists_between(sign, here)
    told = coem("cluster", "a.csv", "--view", "v=refs:list", *OUT).stderr
    assert "views: v (2 columns)" in told


def test_lists_between_blanks_are_shown(here, coem):
    first = lists_between(" ", here)
    told = coem("cluster", "a.csv", "--view", "v=refs:list", *OUT, code=1).stderr
    assert f"{first!r} is read as one item: write | or ; between" in told
    assert "JSON list" in told


def test_items_of_several_words_are_no_mistake(here, coem):
    rows = [{"id": f"p{i}", "refs": [f"the first {i}", f"a second {i}"]} for i in range(20)]
    write_csv(here / "a.csv", rows)
    told = coem("cluster", "a.csv", "--view", "v=refs:list", *OUT, code=1).stderr
    assert "leave no word" in told
    assert "one item" not in told
