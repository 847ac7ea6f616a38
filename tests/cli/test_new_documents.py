"""Models on other documents than those of the fit."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import coem as library
from coem import MixtureClusterer
from coem.text import TextViews
from tests.io.forging import forge

from .conftest import posts, write_csv


@pytest.fixture
def model(table, coem):
    """A run with words and a file of vectors, and other documents in b.csv."""
    np.save("v.npy", np.eye(3)[np.arange(90) % 3])
    views = ["--text", "body", "--view", "m=v.npy"]
    coem("cluster", table, *views, "-k", "3", "--restarts", "2", "--out", "out", "-q")
    write_csv(table.parent / "b.csv", posts(60, seed=3))
    np.save("w.npy", np.eye(3)[np.arange(60) % 3])
    return "out"


def rows(text):
    return list(csv.DictReader(text.splitlines()))


def test_documents_of_the_fit_need_no_vectors(model, table, coem):
    assert len(rows(coem("predict", model, table).stdout)) == 90


def test_other_documents_come_with_vectors_of_their_own(model, coem):
    found = rows(coem("predict", model, "b.csv", "--view", "m=w.npy").stdout)
    groups = [{row["label"] for row in found[i::3]} for i in range(3)]
    assert sorted(groups, key=sorted) == [{"0"}, {"1"}, {"2"}]
    told = coem("explain", model, "--id", "p7", "--file", "b.csv", "--view", "m=w.npy", "--json")
    assert str(json.loads(told.stdout)["label"]) == found[7]["label"]
    coem("report", model, "--file", "b.csv", "--view", "m=w.npy", "--out", "b.html")


@pytest.mark.parametrize(
    "verb",
    [["predict", "out", "b.csv"], ["explain", "out", "--id", "p7"], ["report", "out", "--force"]],
    ids=lambda verb: verb[0],
)
def test_vectors_that_do_not_fit_are_refused(verb, model, coem):
    verb = verb if verb[0] == "predict" else [*verb, "--file", "b.csv"]
    np.save("short.npy", np.eye(3)[np.arange(59) % 3])
    np.save("wide.npy", np.eye(4)[np.arange(60) % 4])
    assert "--view m=FILE.npy" in coem(*verb, code=1).stderr
    for given, said in {
        "m=short.npy": "short.npy has 59 rows, the table 60",
        "m=wide.npy": "wide.npy has 4 columns, but the model was fitted with 3",
        "m=none.npy": "there is no file none.npy",
        "text=w.npy": "no view 'text' from a .npy file; it has m",
    }.items():
        assert said in coem(*verb, "--view", given, code=1).stderr
    for given in (["--view", "m"], ["--view", "m=w.csv"], ["--view", "m=w.npy"] * 2):
        assert "--view" in coem(*verb, *given, code=2).stderr


def test_vectors_that_have_moved(model, table, coem):
    (table.parent / "v.npy").rename("moved.npy")
    assert "not there any more" in coem("predict", model, table, code=1).stderr
    assert len(rows(coem("predict", model, table, "--view", "m=moved.npy").stdout)) == 90


def test_views_in_a_file_of_options_are_those_of_the_fit(table, coem):
    (table.parent / "c.toml").write_text('view = ["b=body"]\nk = 3\nrestarts = 2\n')
    coem("cluster", table, "--config", "c.toml", "--out", "out")
    assert len(rows(coem("predict", "out", table, "--config", "c.toml").stdout)) == 90


def test_inbound_links_of_new_documents_need_only_their_ids(table, coem):
    views = ["--text", "body", "--view", "cited=refs:inbound", "--id", "id"]
    coem("cluster", table, *views, "-k", "3", "--restarts", "2", "--out", "out")
    new = [{key: row[key] for key in ("id", "body")} for row in posts()]
    write_csv(table.parent / "new.csv", new)
    assert coem("predict", "out", "new.csv").stdout == coem("predict", "out", table).stdout
    write_csv(table.parent / "no.csv", [{"body": row["body"]} for row in new])
    assert "'id'" in coem("predict", "out", "no.csv", code=1).stderr


def test_vectors_that_have_changed_are_refused(model, coem):
    np.save("v.npy", np.eye(3)[np.arange(90) % 3][::-1])
    for verb in (["predict", "out", "posts.csv"], ["explain", "out", "--id", "p7"]):
        assert "has changed since the fit" in coem(*verb, code=1).stderr
        coem(*verb, "--view", "m=v.npy")


def test_documents_without_ids_are_numbered(finished, coem, here):
    rows_ = [{"body": row["body"], "title": row["title"]} for row in posts(6)]
    write_csv(here / "new.csv", rows_)
    found = rows(coem("predict", finished, "new.csv").stdout)
    assert [row["id"] for row in found] == list("123456")
    write_csv(here / "twice.csv", [{"id": "a", **row} for row in rows_])
    for options in ((), ("--id", "id")):
        told = coem("predict", finished, "twice.csv", *options, code=1).stderr
        assert "rows 2 and 3 are both called 'a'" in told
    result = coem("predict", finished, "twice.csv", "--id", "none")
    assert [row["id"] for row in rows(result.stdout)] == list("123456")
    write_csv(here / "gap.csv", [{"id": "" if i else "a", **row} for i, row in enumerate(rows_)])
    result = coem("predict", finished, "gap.csv")
    assert "is not used for the ids" in result.stderr
    assert [row["id"] for row in rows(result.stdout)] == list("123456")
    told = coem("predict", finished, "new.csv", "--out", "a.csv", "--json").stdout
    assert json.loads(told) == {"file": "a.csv", "rows": 6}


def test_columns_of_some_views_may_be_missing(finished, here, coem):
    bodies = [row["body"] for row in posts(6)]
    (here / "new.csv").write_text("body\n" + "\n".join(bodies) + "\n", encoding="utf-8")
    result = coem("predict", finished, "new.csv")
    assert "view 'title': there is no column 'title' in the table; it counts as empty" in (
        result.stderr
    )
    labels = [line.split(",")[1] for line in result.stdout.splitlines()[1:]]
    assert labels[:3] == labels[3:]
    assert len(set(labels)) == 3


def test_info_counts_empty_cells(here, coem):
    rows = [{"a": "x", "b": [1], "c": 1.5}, {"a": " ", "b": [], "c": None}, {"a": "", "b": None}]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (here / "a.jsonl").write_text(text, encoding="utf-8")
    told = json.loads(coem("info", "a.jsonl", "--json").stdout)
    assert [column["empty"] for column in told["columns"]] == [2, 2, 2]


FORGED_NAMES = {
    "text": ("x", "does not have the names of its groups, but 'x'"),
    "no list": ({"a": 1}, "does not have the names of its groups"),
    "numbers": ([1, 2, 3], "does not have the names of its groups"),
    "too few": (["a"], "has 1 names for 3 groups"),
    "too many": (["a"] * 4, "has 4 names for 3 groups"),
}


@pytest.mark.parametrize("case", FORGED_NAMES)
def test_forged_names_of_groups_are_refused(case, table, coem):
    names, message = FORGED_NAMES[case]
    coem("cluster", table, "--text", "body", "-k", "3", "--restarts", "2", "--out", "run")
    (table.parent / "run" / "model.coem").rename("model.coem")
    forge(Path("model.coem"), lambda meta: meta["extra"].update(names=names))
    told = coem("predict", "model.coem", table, code=1).stderr
    assert told.startswith(f"coem: error: model.coem {message}")


FORGED_INFO = [
    {"versions": {}},
    {"versions": {"coem": 1}},
    {"versions": []},
    {"summary": {"steps": [1]}},
    {"summary": {"steps": 1}},
    {"summary": [["a", 1]]},
    {"extra": []},
    {"left_out": [1]},
    {"left_out": "ab"},
    {"fingerprint": 1},
]


@pytest.mark.parametrize("forged", FORGED_INFO, ids=str)
def test_what_a_file_says_of_its_model_is_checked(forged, here, coem):
    library.save(MixtureClusterer(3), "model.coem")
    forge(Path("model.coem"), lambda meta: meta.update(forged))
    told = coem("info", "model.coem", code=1).stderr
    (key,) = forged
    assert f"model.coem is damaged, or is not a model file of coem: its {key}" in told


def test_a_pattern_of_your_own_is_trusted_by_name(table, coem):
    columns = {name: [row[name] for row in posts()] for name in posts()[0]}
    reader = TextViews({"words": "body"}, id="id", token_pattern=r"(?:[a-z]+)(?:-[a-z]+)*")
    pipeline = make_pipeline(reader, MixtureClusterer(3, random_state=0)).fit(columns)
    library.save(pipeline, "model.coem")
    for verb in (["predict", "model.coem", table], ["serve", "model.coem"]):
        said = coem(*verb, code=1).stderr
        assert "token_pattern of TextViews" in said
        assert "--trust-patterns" in said
    found = rows(coem("predict", "model.coem", table, "--trust-patterns").stdout)
    assert [int(row["label"]) for row in found] == pipeline.predict(columns).tolist()
