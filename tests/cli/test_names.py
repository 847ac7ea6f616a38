"""Names and merges that people give to the groups of a run."""

import csv
import json
import shutil
from collections import Counter

import numpy as np
import pytest

import coem as library
from coem.cli._models import load_model
from coem.report import Naming, read

from .conftest import posts, read_json, write_csv

SMALL = ["--text", "body", "-k", "4", "--restarts", "2", "--latent", "none", "--quiet"]


@pytest.fixture
def run(finished, here):
    """A run that a test may change, with its documents beside it."""
    shutil.copy(finished.parent / "posts.csv", here / "posts.csv")
    return shutil.copytree(finished, here / "run")


def assigned(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# -- names -----------------------------------------------------------------------------------------


def test_names_are_everywhere(run, coem, here):
    said = coem("name", run, "1=Cooks", "2=Law & <Order>").stdout
    assert "Cooks" in said
    assert "Law & <Order>" in said
    names = {row["label"]: row["name"] for row in assigned(run / "assignments.csv").values()}
    assert (names["1"], names["2"]) == ("Cooks", "Law & <Order>")
    with open(run / "clusters.csv", newline="", encoding="utf-8") as file:
        assert [row["name"] for row in csv.DictReader(file)][1:] == ["Cooks", "Law & <Order>"]
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Law &amp; &lt;Order&gt;" in page
    assert "or were given by hand" in page
    coem("predict", run, "posts.csv", "--out", "new.csv")
    assert {row["label"]: row["name"] for row in assigned(here / "new.csv").values()} == names
    cook = next(i for i, row in assigned(run / "assignments.csv").items() if row["label"] == "1")
    assert "'Cooks' against" in coem("explain", run, "--id", cook).stdout
    coem("report", run, "--out", "page.html")
    assert (here / "page.html").read_text(encoding="utf-8") == page
    listed = json.loads(coem("name", run, "--json").stdout)
    assert [group["named"] for group in listed] == [False, True, True]
    assert sum(group["documents"] for group in listed) == 90


@pytest.mark.slow
def test_rerun_says_the_same_of_a_run_with_names_and_keeps_them(run, coem, here):
    coem("name", run, "0=Zero")
    coem("merge", run, "1", "2", "--name", "Both")
    assert "the same, to the last bit" in coem("rerun", run, "--out", "again").stdout
    assert bytes_of(here / "again").keys() == bytes_of(run).keys()
    for name in ("names.json", "assignments.csv", "clusters.csv", "report.html"):
        assert (here / "again" / name).read_bytes() == (run / name).read_bytes(), name
    (run / "clusters.csv").write_text("mine")
    assert "clusters.csv was changed" in coem("rerun", run, code=1).stdout


@pytest.mark.slow
def test_everything_can_be_taken_back(run, coem):
    before = bytes_of(run)
    coem("name", run, "0=Zero", "1=One")
    coem("name", run, "0=")
    assert read_json(run / "names.json")["names"] == {"1": "One"}
    coem("merge", run, "0", "2")
    assert bytes_of(run)["run.json"] == before["run.json"]
    assert bytes_of(run)["model.coem"] == before["model.coem"]
    coem("merge", run, "--undo")
    coem("name", run, "1=")
    assert bytes_of(run) == before
    coem("merge", run, "0", "2", "--name", "x")
    coem("name", run, "--reset")
    assert bytes_of(run) == before


def test_names_are_kept_if_the_documents_are_gone(run, coem, here):
    told = read_json(run / "run.json") | {"source": str(here / "gone.csv")}
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    assert "as they were" in coem("name", run, "1=Cooks").stderr
    assert read_json(run / "names.json")["names"] == {"1": "Cooks"}
    assert "Cooks" in coem("predict", run, "posts.csv").stdout
    write_csv(here / "other.csv", posts(seed=1))
    assert "other content" in coem("name", run, "1=Cooks", "--file", "other.csv").stderr
    coem("name", run, "1=Cooks", "--file", "posts.csv")
    assert "Cooks" in (run / "clusters.csv").read_text(encoding="utf-8")


# -- merges ----------------------------------------------------------------------------------------


def test_merged_posteriors_are_sums(run, coem, here):
    coem("merge", run, "0", "2")
    saved = load_model(run)
    rows = assigned(run / "assignments.csv")
    table = library.load(run / "model.coem")
    documents = read_rows(here / "posts.csv")
    proba = table.predict_proba(documents)
    sums = np.column_stack([proba[:, 0] + proba[:, 2], proba[:, 1]])
    found = np.array([float(row["probability"]) for row in rows.values()])
    np.testing.assert_allclose(found, sums.max(axis=1), atol=1e-6)
    labels = np.array([int(row["label"]) for row in rows.values()])
    np.testing.assert_array_equal(labels, sums.argmax(axis=1))
    assert saved.names[0] == saved.names[2] == " + ".join(saved.naming.own[::2])
    assert {row["second"] for row in rows.values()} == {"0", "1"}
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "2 groups" in page
    assert "Merged by hand from the groups 0, 2." in page
    assert 'id="group-2"' not in page


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_groups_that_are_one_already_are_not_merged_again(run, coem):
    coem("merge", run, "0", "2")
    assert "0 and 2 are one group already, 0" in coem("merge", run, "2", "0", code=1).stderr


def test_explain_compares_merged_groups(run, coem):
    coem("merge", run, "0", "2", "--name", "Both")
    rows = assigned(run / "assignments.csv")
    which = next(i for i, row in rows.items() if row["label"] == "0")
    told = json.loads(coem("explain", run, "--id", which, "--json").stdout)
    assert (told["name"], told["label"], told["against"]) == ("Both", 0, 1)
    assert told["probability"] == pytest.approx(float(rows[which]["probability"]), abs=1e-9)
    total = sum(part["contribution"] for part in told["parts"])
    assert total == pytest.approx(told["log_odds"])
    coem("merge", run, "0", "1")
    assert "all groups are merged" in coem("explain", run, "--id", which, code=1).stderr
    assert {row["second"] for row in assigned(run / "assignments.csv").values()} == {""}


def test_groups_without_probabilities_can_be_merged(table, coem, here):
    options = ["--method", "k-means", "-k", "4", "--restarts", "2"]
    coem("cluster", table, *options, "--out", "run")
    before = assigned(here / "run" / "assignments.csv")
    coem("merge", "run", "1", "3")
    after = assigned(here / "run" / "assignments.csv")
    for name, row in before.items():
        assert after[name]["label"] == ("1" if row["label"] == "3" else row["label"])
        assert after[name]["second"] not in ("3", after[name]["label"])


def test_topics_can_be_named_and_merged(table, coem, here):
    coem("topics", table, "--text", "body", "-k", "3", "--out", "run", "--quiet")
    before = assigned(here / "run" / "assignments.csv")
    coem("merge", "run", "0", "1", "--name", "Both")
    for name, row in assigned(here / "run" / "assignments.csv").items():
        shares, old = json.loads(row["shares"]), json.loads(before[name]["shares"])
        np.testing.assert_allclose(shares, [old[0] + old[1], 0, old[2]], atol=2e-6)
        assert row["name"] == ("Both" if row["label"] == "0" else before[name]["name"])
    coem("merge", "run", "1", "--undo")
    coem("name", "run", "--reset")
    assert assigned(here / "run" / "assignments.csv") == before


@pytest.mark.slow
def test_segments_have_names_and_are_not_merged(coem, here):
    text = "\n\n".join(row["body"] for row in posts(40))
    (here / "book.txt").write_text(text, encoding="utf-8")
    coem("segment", "book.txt", "-k", "3", "--restarts", "1", "--out", "run", "--quiet")
    coem("name", "run", "0=Sailing")
    for file in ("segments.csv", "clusters.csv", "report.html", "assignments.csv"):
        assert "Sailing" in (here / "run" / file).read_text(encoding="utf-8"), file
    assert "the same" in coem("rerun", "run").stdout
    assert "cannot be merged" in coem("merge", "run", "0", "1", code=1).stderr


# -- names of an earlier run -----------------------------------------------------------------------


def test_names_are_taken_over(run, coem, here):
    coem("name", run, "0=Zero", "1=One")
    other = ["--text", "body", "-k", "3", "--restarts", "2", "--seed", "5", "--latent", "none"]
    said = coem("cluster", "posts.csv", *other, "--names-from", run, "--out", "later").stderr
    before, after = (assigned(f / "assignments.csv") for f in (run, here / "later"))
    for name in ("Zero", "One"):
        old = {i for i, row in before.items() if row["name"] == name}
        new = {i for i, row in after.items() if row["name"] == name}
        assert len(old & new) > 0.9 * len(old | new)
        assert f"{name!r} of {run} is now group" in said
    assert "the same, to the last bit" in coem("rerun", "later").stdout
    assert "names_from" not in read_json(here / "later" / "run.json")["arguments"]
    said = coem("cluster", "posts.csv", *other, "--out", "later", "--force", code=1).stderr
    assert "--names-from 'later'" in said
    coem("cluster", "posts.csv", *other, "--out", "later", "--force", "--names-from", "later")
    assert sorted(read_json(here / "later" / "names.json")["names"].values()) == ["One", "Zero"]


def test_merges_are_taken_over_and_strangers_are_not(table, run, coem, here):
    coem("merge", run, "0", "2", "--name", "Both")
    coem("cluster", table, *SMALL, "--seed", "2", "--names-from", run, "--out", "later")
    told = read_json(here / "later" / "names.json")
    assert list(told["names"].values()) == ["Both"]
    both = {i for i, row in assigned(run / "assignments.csv").items() if row["label"] == "0"}
    now = assigned(here / "later" / "assignments.csv")
    assert len({i for i in both if now[i]["name"] == "Both"}) > 0.9 * len(both)
    strange = [{**row, "id": f"x{i}"} for i, row in enumerate(posts())]
    write_csv(here / "strange.csv", strange)
    options = ["--text", "body", "-k", "3", "--restarts", "2", "--latent", "none"]
    said = coem("cluster", "strange.csv", *options, "--names-from", run, "--out", "s").stderr
    assert "'Both' of" in said
    assert "is not taken over" in said
    assert not (here / "s" / "names.json").exists()
    unnamed = coem("cluster", table, *SMALL, "--names-from", "s", "--out", "t", code=1).stderr
    assert "have no names" in unnamed


@pytest.mark.slow
def test_the_library_offers_the_same(run, coem, here):
    settings = {"text": "body", "views": {"title": "title"}, "k": 3, "label": "topic"}
    found = library.cluster("posts.csv", **settings, restarts=3)
    named = found.name({0: "Zero"}).merge(1, 2, name="Both")
    assert [group.name for group in named.groups] == ["Zero", "Both"]
    assert sorted(set(named.labels.tolist())) == [0, 1]
    coem("name", run, "0=Zero")
    coem("merge", run, "1", "2", "--name", "Both")
    named.save("saved")
    for name in ("names.json", "assignments.csv", "clusters.csv", "model.coem", "report.html"):
        assert (here / "saved" / name).read_bytes() == (run / name).read_bytes(), name
    assert [g.name for g in named.name({0: ""}).groups] == [found.groups[0].name, "Both"]
    later = library.cluster("posts.csv", **settings, restarts=2, names_from="saved")
    assert {group.name for group in later.groups} == {"Zero", "Both"}
    assert any("'Zero' of saved is now group" in note for note in later.notes)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["name", "run", "3=x"], 1, "there is no group 3; groups are 0 to 2"),
        (["name", "run", "Hockey"], 2, "is not GROUP=NAME"),
        (["name", "run", "1=a", "1=b"], 2, "two names for group 1"),
        (["name", "run", "1=a\x1b[31m"], 1, "control character"),
        (["name", "run", "1=a\u202eb"], 1, "control character"),
        (["name", "run", "1=" + "a" * 121], 1, "at most 120 characters"),
        (["name", "run", "1=a", "--reset"], 2, "give names, or --reset"),
        (["merge", "run", "1"], 2, "two or more groups"),
        (["merge", "run", "1", "1"], 1, "two or more different groups"),
        (["merge", "run", "1", "9"], 1, "there is no group 9"),
        (["merge", "run", "--undo"], 1, "no groups of the run are merged"),
        (["merge", "run", "1", "2", "--undo", "--name", "x"], 2, "--undo parts them"),
        (["merge", "run", "a", "b"], 2, "not a valid integer"),
    ],
)
def test_bad_names_are_refused(run, coem, arguments, code, said):
    before = bytes_of(run)
    assert said in coem(*arguments, code=code).stderr
    assert bytes_of(run) == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"schema": 1, "names": {}, "merged": []}',
        '{"schema": 9, "names": {}, "merged": [], "files": {}}',
        '{"schema": 1, "names": {"x": "a"}, "merged": [], "files": {}}',
        '{"schema": 1, "names": {"7": "a"}, "merged": [], "files": {}}',
        '{"schema": 1, "names": {"1": 5}, "merged": [], "files": {}}',
        '{"schema": 1, "names": {"1": "\\u001b[2J"}, "merged": [], "files": {}}',
        '{"schema": 1, "names": {}, "merged": [[1]], "files": {}}',
        '{"schema": 1, "names": {}, "merged": [[0, 1], [1, 2]], "files": {}}',
        '{"schema": 1, "names": {}, "merged": [["a", 1]], "files": {}}',
        '{"schema": 1, "names": {}, "merged": 5, "files": {}}',
        '{"schema": 1, "names": {}, "merged": [], "files": {"a": 1}}',
        " " * 1_000_001,
    ],
)
def test_a_damaged_file_of_names_is_an_error(run, coem, content):
    (run / "names.json").write_text(content, encoding="utf-8")
    said = coem("predict", run, "posts.csv", code=1).stderr
    assert "names.json is" in said
    assert "delete it" in said


def test_classes_keep_their_names(table, coem):
    coem("classify", table, "--label", "topic", "--text", "body", "--out", "run", "--quiet")
    assert "called what their labels say" in coem("name", "run", "0=x", code=1).stderr


def test_merging_a_reading_adds_up():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(30, 6)) + 3 * np.eye(6, dtype=int)[rng.integers(6, size=30)]
    model = library.MixtureClusterer(4, random_state=0).fit(X)
    naming = Naming(("a", "b", "c", "d")).merge([3, 1], "bd").merge([1, 0])
    assert naming.names == ["a + b + d", "a + b + d", "c", "a + b + d"]
    plain, merged = read(model, X), naming.of(read(model, X))
    np.testing.assert_allclose(merged.proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(merged.proba[:, 0], plain.proba[:, [0, 1, 3]].sum(axis=1))
    np.testing.assert_allclose(merged.weights.sum(), plain.weights.sum())
    (table,) = merged.tables.values()
    (old,) = plain.tables.values()
    share = plain.weights[[0, 1, 3]] / plain.weights[[0, 1, 3]].sum()
    np.testing.assert_allclose(table[0], share @ old[[0, 1, 3]])
    assert set(merged.order[:, 1].tolist()) <= {0, 2}


def test_a_merge_of_a_stream_counts_in_all_verbs(stream, coem):
    """The journal of a stream has the labels of before, and its rows never change."""
    journal = (stream / "assignments.csv").read_bytes()
    sizes = Counter(row["label"] for row in assigned(stream / "assignments.csv").values())
    whole = sizes["0"] + sizes["1"]
    listed = json.loads(coem("merge", stream, "0", "1", "--name", "Both", "--json").stdout)
    assert {g["group"]: g["documents"] for g in listed} == {0: whole, 2: sizes["2"]}
    assert json.loads(coem("name", stream, "--json").stdout) == listed
    with open(stream / "clusters.csv", newline="", encoding="utf-8") as file:
        counted = {row["label"]: int(row["size"]) for row in csv.DictReader(file)}
    assert counted == {"0": whole, "2": sizes["2"]}
    found = json.loads(coem("compare", stream, stream, "--json").stdout)["became"][0]["groups"]
    assert [(g["group"], g["name"], g["documents"]) for g in found] == [
        ("0", "Both", whole),
        ("2", found[1]["name"], sizes["2"]),
    ]
    said = coem("cluster", "posts.csv", *SMALL[:-1], "--names-from", stream, "--out", "run").stderr
    assert f"of its {whole} shared documents" in said
    assert (stream / "assignments.csv").read_bytes() == journal
    coem("merge", stream, "--undo")
    listed = json.loads(coem("name", stream, "--json").stdout)
    assert {str(g["group"]): g["documents"] for g in listed} == sizes


@pytest.fixture
def stream(table, coem, here):
    """A stream with three groups, of the documents in posts.csv."""
    options = ["--text", "body", "-k", "3", "--restarts", "2", "--latent", "none", "--no-report"]
    coem("cluster", table, "--stream", *options, "--out", "stream")
    return here / "stream"
