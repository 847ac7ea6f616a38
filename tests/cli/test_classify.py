"""From a few labels to all rows, and how far that can be trusted."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coem as library
from coem.io.tables import read_table

from .conftest import TOPICS, posts, read_json, write_csv


def noisy(path, n_labels, seed=0):
    """Rows of three topics, with labels of which every fourth is wrong."""
    rng = np.random.default_rng(seed)
    rows = [{key: row[key] for key in ("id", "body", "topic")} for row in posts()]
    for i, row in enumerate(rows):
        wrong = str(rng.choice(list(TOPICS)))
        row["topic"] = (wrong if i % 4 == 0 else row["topic"]) if i < n_labels else ""
    return write_csv(path, rows)


def test_accuracy_is_that_of_held_out_labels(here, coem):
    noisy(here / "a.csv", 60)
    told = json.loads(coem("classify", "a.csv", "--label", "topic", "--json").stdout)
    assert told["accuracy"] < 0.95
    record = read_json(here / "coem-a" / "run.json")["held_out"]
    assert np.sum(record["table"]) == 60
    right = np.trace(np.array(record["table"])) / 60
    assert right == pytest.approx(told["accuracy"])
    assert record["scores"] == {"accuracy": told["accuracy"]}
    assert record["held_out"] == {"error": told["accuracy_error"], "folds": 5}
    assert sum(record["reliability"]["rows"]) == 60


def test_accuracy_is_that_of_labels_that_were_held_out(here, coem):
    noisy(here / "a.csv", 60)
    told = json.loads(coem("classify", "a.csv", "--label", "topic", "--json").stdout)
    model = library.load(here / "coem-a" / "model.coem")[1]
    with (here / "a.csv").open(encoding="utf-8") as file:
        labels = np.array([row["topic"] for row in csv.DictReader(file)])
    found = model.held_out_
    right = model.classes_[found.proba.argmax(axis=1)] == labels[found.rows]
    assert set(found.rows.tolist()) == set(np.flatnonzero(labels != "").tolist())
    shares = [right[found.folds == fold].mean() for fold in range(5)]
    assert told["accuracy"] == pytest.approx(np.mean(shares))
    assert told["accuracy_error"] == pytest.approx(np.std(shares, ddof=1) / np.sqrt(5))
    assert told["mixture_counts"] == model.pool_.own_mixture
    assert told["regression_counts"] == model.pool_.own_linear


def test_the_page_tells_the_accuracy_on_held_out_labels(here, coem):
    noisy(here / "a.csv", 60)
    told = json.loads(coem("classify", "a.csv", "--label", "topic", "--json").stdout)
    page = (here / "coem-a" / "report.html").read_text(encoding="utf-8")
    shown = f"{100 * told['accuracy']:.1f}% ± {100 * told['accuracy_error']:.1f}%"
    assert page.count(f"<dt>accuracy, held out</dt><dd>{shown}</dd>") == 2
    assert "held out in 5 folds" in page
    assert "rows that may have taught" not in page
    coem("report", "coem-a")
    assert (here / "coem-a" / "report.html").read_text(encoding="utf-8") == page


def test_held_out_labels_are_not_told_of_other_documents(here, coem):
    noisy(here / "a.csv", 60)
    coem("classify", "a.csv", "--label", "topic", "--out", "out")
    noisy(here / "b.csv", 60, seed=1)
    coem("report", "out", "--file", "b.csv", "--out", "b.html")
    page = (here / "b.html").read_text(encoding="utf-8")
    assert "held out" not in page
    assert "may have taught" in page


@pytest.mark.parametrize("n_labels", [3, 4, 6])
def test_very_few_labels(n_labels, here, coem):
    rows = [{**row, "topic": row["topic"] if i < n_labels else ""} for i, row in enumerate(posts())]
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--out", "out")
    assert ("accuracy is not known" in result.stdout) == (n_labels == 3)
    assert ("no label can be held out" in result.stderr) == (n_labels == 3)
    page = (here / "out" / "report.html").read_text(encoding="utf-8")
    assert ("accuracy, held out" in page) == (n_labels > 3)


def test_two_labels_for_each_of_two_classes(here, coem):
    rows = [row for row in posts() if row["topic"] != "sea"]
    for i, row in enumerate(rows):
        row["topic"] = row["topic"] if i < 4 else ""
    write_csv(here / "a.csv", rows)
    assert "4 folds" in coem("classify", "a.csv", "--text", "body", "--label", "topic").stdout


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_assignments_tell_which_rows_taught(form, here, coem):
    noisy(here / "a.csv", 60)
    coem("classify", "a.csv", "--label", "topic", "--format", form, "--out", "out")
    found = read_table(here / "out" / f"assignments.{form}").data
    with (here / "a.csv").open(encoding="utf-8") as file:
        labels = [row["topic"] or None for row in csv.DictReader(file)]
    assert [label or None for label in found["given"].to_pylist()] == labels
    assert found["given"].to_pylist()[:60] != found["label"].to_pylist()[:60]


@pytest.mark.parametrize("word", ["-1", "-1.0", "NaN", "nan", "None", "null", "NA", "N/A"])
def test_words_for_no_label_are_no_class(word, here, coem):
    rows = [{**row, "topic": row["topic"] if i < 60 else word} for i, row in enumerate(posts())]
    rows[89]["topic"] = ""
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--json")
    told = json.loads(result.stdout)
    assert (told["k"], told["unlabelled"]) == (3, 30)
    said = [line for line in result.stderr.splitlines() if "taken as no label" in line]
    assert len(said) == 1
    assert f"{word!r} in 29 rows" in said[0]


@pytest.mark.parametrize("missing", [-1, -1.0, float("nan")])
def test_numbers_for_no_label_are_no_class(missing, here, coem):
    labels = [i % 3 if i < 60 else missing for i in range(90)]
    columns = {"body": [row["body"] for row in posts()], "y": labels}
    pq.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), here / "a.parquet")
    told = json.loads(coem("classify", "a.parquet", "--label", "y", "--json").stdout)
    assert (told["k"], told["unlabelled"]) == (3, 30)


def test_no_note_advises_an_option_that_is_not_there(here, coem):
    rows = [{**row, "topic": row["topic"] if i < 60 else ""} for i, row in enumerate(posts())]
    rows[0] |= {"body": "", "topic": "rare"}
    write_csv(here / "a.csv", rows)
    told = coem("classify", "a.csv", "--text", "body", "--label", "topic").stderr
    assert "died" in told
    assert "their classes need more labels" in told
    assert "--restarts" not in told


@pytest.mark.slow
def test_the_doctor_speaks_of_options(here, coem):
    rows = [{**row, "topic": row["topic"] if i < 45 else ""} for i, row in enumerate(posts())]
    rows[4]["body"] = ""
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--doctor")
    assert "(--unlabeled-weight 0)" in result.stderr
    assert "unlabeled_weight" not in result.stderr
    assert "(--unlabeled-weight 0)" in read_json(here / "coem-a" / "run.json")["result"]["doctor"]


def test_the_doctor_speaks_of_components():
    from coem.cli._talk import in_options

    said = "components_per_class={'sea': 2} (0.9). EM, components_per_class=3: unlabeled_weight=0.1"
    told = "2 for 'sea' (0.9). EM, 3 a class: --unlabeled-weight 0.1"
    assert in_options(said) == told


def test_explain_agrees_with_predict(here, coem):
    noisy(here / "a.csv", 60)
    coem("classify", "a.csv", "--label", "topic", "--out", "out")
    rows = list(csv.DictReader(coem("predict", "out", "a.csv").stdout.splitlines()))
    for row in rows[:3]:
        told = json.loads(coem("explain", "out", "--id", row["id"], "--json").stdout)
        assert (told["label"], told["against"]) == (row["label"], row["second"])
        first, second = float(row["probability"]), float(row["second_probability"])
        assert (told["probability"], told["against_probability"]) == pytest.approx((first, second))
        assert told["log_odds"] == pytest.approx(np.log(first / second), rel=1e-4)
        text = coem("explain", "out", "--id", row["id"]).stdout
        assert f"log odds {told['log_odds']:.2f}, probability {first:.3f}" in text


# -- lists of labels, labels of another file ------------------------------------------------------


def json_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def assigned(folder):
    text = (folder / "assignments.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_lists_of_labels(here, coem):
    rows = posts(60)
    for i, row in enumerate(rows):
        other = "kitchen" if row["topic"] == "sea" else "sea"
        row["topics"] = [[row["topic"]], [], [row["topic"], other]][i % 4 % 3]
    json_lines(here / "a.jsonl", rows)
    fast = ("--text", "body", "--threads", "1", "--no-report", "--format", "jsonl")
    told = coem("classify", "a.jsonl", "--label", "topics", *fast, "--out", "out").stderr
    assert "15 rows have several labels in column 'topics', and are taken to be in one of" in told
    found = assigned(here / "out")
    assert [row["given"] for row in found[:3]] == ["sea", None, "court | sea"]
    right = [row["label"] == own["topic"] for row, own in zip(found, rows, strict=True)]
    assert np.mean(right) > 0.9
    # The same labels as text.
    for row in rows:
        row["topics"] = ";".join(row["topics"])
    json_lines(here / "b.jsonl", rows)
    coem("classify", "b.jsonl", "--label", "topics:list", *fast, "--out", "text")
    assert assigned(here / "text") == found


def test_labels_of_another_file(here, coem):
    rows = posts(60)
    write_csv(here / "a.csv", rows)
    for row in rows:
        del row["topic"]
    write_csv(here / "bare.csv", rows)
    labels = "".join(f"{row['id']},{row['topic']}\n" for row in posts(60)[:30])
    (here / "l.csv").write_text(f"id,kind\n{labels}", encoding="utf-8")
    fast = ("--text", "body", "--threads", "1")
    coem("classify", "bare.csv", "--labels", "l.csv", *fast, "--out", "out")
    told = read_json(here / "out" / "run.json")
    assert told["result"]["labelled"] == 30
    assert told["arguments"]["label"] == "kind"
    assert "--labels" in told["inputs"]
    page = (here / "out" / "report.html").read_text(encoding="utf-8")
    coem("report", "out")
    assert (here / "out" / "report.html").read_text(encoding="utf-8") == page
    assert "the same" in coem("rerun", "out").stdout
    (here / "l.csv").write_text(f"id,kind\n{labels}p59,sea\n", encoding="utf-8")
    assert "the labels have changed" in coem("rerun", "out", code=1).stdout
    (here / "l.csv").write_text(f"id,kind\n{labels}q1,sea\n", encoding="utf-8")
    arguments = ("classify", "bare.csv", "--labels", "l.csv", *fast, "--skip-bad", "--out", "b")
    assert "1 ids that bare.csv has not: 'q1'; they are left out" in coem(*arguments).stderr


def test_rows_that_all_have_several_labels(here, coem):
    rows = [
        row | {"label": ["sea|court", "court|kitchen"][i % 2]} for i, row in enumerate(posts(30))
    ]
    write_csv(here / "posts.csv", rows)
    call = ["classify", "posts.csv", "--text", "body", "--label", "label:list"]
    told = coem(*call, code=1).stderr
    assert "every row with a label in column 'label:list' has several" in told
    assert "Mixture" not in told
