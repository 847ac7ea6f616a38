"""Tables of many columns, and labels without an end: messages stay short, and work is bounded."""

import pytest

import coem
from coem.recipes.columns import SHOWN
from coem.text.guess import MOST_VIEWS
from tests.cli.conftest import posts, write_csv

N = 30


def wide(tmp_path, n, cell, **more):
    columns = {f"c{j}": [cell(i, j) for i in range(N)] for j in range(n)} | more
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return write_csv(tmp_path / "wide.csv", rows)


def text(i, j):
    return f"some words about article number {i} and its friends {j}"


VERBS = {
    "cluster": ["-k", "2"],
    "topics": ["-k", "2"],
    "segment": ["-k", "2"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_table_without_texts(verb, tmp_path, coem):
    """Times are no views, not even in a table of nothing else."""
    file = wide(tmp_path, 300, lambda i, j: f"2024-01-{1 + i % 28:02} 12:{j % 60:02}:00")
    told = coem(verb, file, *VERBS[verb], code=1).stderr
    assert "no column looks like text" in told
    assert "Column 'c4' is left alone: its values are dates or times." in told
    assert "There are 295 more columns." in told
    assert len(told) < 1500


@pytest.mark.parametrize("verb", VERBS)
def test_more_texts_than_views_are_guessed(verb, tmp_path, coem):
    file = wide(tmp_path, MOST_VIEWS + 1, text)
    told = coem(verb, file, *VERBS[verb], "--out", tmp_path / "run", code=1).stderr
    assert "51 columns look like text, lists or vectors ('c0', 'c1', 'c2' and 48 more)" in told
    assert "name those that matter, as in --text COLUMN" in told
    assert len(told) < 1000
    if verb == "cluster":
        coem(verb, file, *VERBS[verb], "--text", "c0", "--out", tmp_path / "run")
        assert "51 columns look like text" in coem("info", file).stderr


def test_columns_that_are_told_are_few(tmp_path, coem):
    file = wide(tmp_path, 300, lambda i, j: i * j % 7, text=[text(i, 0) for i in range(N)])
    told = coem("cluster", file, "-k", "2", "--out", tmp_path / "run").stderr
    assert "text" in told
    assert f"and {301 - SHOWN} more" in told
    assert len(told) < 20_000
    assert "c299" in coem("info", file).stdout


def test_columns_that_topics_leave_out_are_few(tmp_path):
    table = {f"c{j}": [f"x{i % 5}|y{(i + j) % 3}" for i in range(N)] for j in range(40)}
    heard = []

    class Listener(coem.recipes.Listener):
        def note(self, text):
            heard.append(text)

    table["text"] = [text(i, 0) for i in range(N)]
    coem.topics(table, k=2, listener=Listener())
    assert sum("is left out: topics are found in text" in said for said in heard) == 5
    assert "There are 35 more columns." in heard


LONG = "x" * 20_000
LABELS = {
    "must be two classes or more": (lambda i: LONG, "label"),
    "rows have several labels": (
        lambda i: f"{LONG}|{i % 2}" if i % 3 else str(i % 2),
        "label:list",
    ),
}


@pytest.mark.parametrize("said", LABELS)
def test_labels_without_an_end(said, tmp_path, coem):
    label, column = LABELS[said]
    file = write_csv(
        tmp_path / "posts.csv", [r | {"label": label(i)} for i, r in enumerate(posts(N))]
    )
    told = coem("classify", file, "--text", "body", "--label", column, "--multi", code=1).stderr
    assert said in told
    assert len(told) < 1000
