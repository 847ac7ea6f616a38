"""Segments: what documents are cut into, what is written of them, and models on new documents."""

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from coem.io.tables import read_table

from .conftest import TOPICS, read_json

ROWS = (("sea", 4), ("kitchen", 6), ("court", 5), ("sea", 5)), (("court", 7), ("kitchen", 6))


def paragraphs(plan, rng):
    """Return paragraphs of a document whose topics follow a plan."""
    rest = "and the rest"
    return [
        f"{' '.join(rng.choice(TOPICS[topic], 20))} {rest}." for topic, n in plan for _ in range(n)
    ]


def documents(n=6, seed=0):
    """Return the paragraphs of some documents, and where segments begin."""
    rng = np.random.default_rng(seed)
    plans = [ROWS[i % 2] for i in range(n)]
    starts = [np.cumsum([1, *(size for _, size in plan)])[:-1].tolist() for plan in plans]
    return [paragraphs(plan, rng) for plan in plans], starts


def read_segments(folder):
    with Path(folder, "segments.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def starts_of(rows):
    found = {}
    for row in rows:
        found.setdefault(row["document"], []).append(int(row["first_paragraph"]))
    return list(found.values())


@pytest.fixture
def folder(here):
    """A folder of .txt files."""
    texts, _ = documents()
    (here / "letters").mkdir()
    for i, parts in enumerate(texts):
        (here / "letters" / f"l{i}.txt").write_text("\n\n".join(parts), encoding="utf-8")
    return here / "letters"


@pytest.fixture
def cut(folder, coem):
    """The folder of a run."""
    coem("segment", folder, "-k", "3", "--restarts", "2", "--out", "out")
    return Path("out")


def test_the_true_segments_are_found(cut):
    rows = read_segments(cut)
    assert starts_of(rows) == documents()[1]
    assert [row["document"] for row in rows[:4]] == ["l0.txt"] * 4
    assert [row["segment"] for row in rows[:6]] == ["1", "2", "3", "4", "1", "2"]
    assert rows[0]["topic"] == rows[3]["topic"] != rows[1]["topic"]
    assert all(0.5 < float(row["probability"]) <= 1 for row in rows)
    named = {row["topic"]: set(row["name"].split(", ")) for row in rows}
    assert len(named) == 3
    assert all(any(words <= set(own) for own in TOPICS.values()) for words in named.values())
    for before, row in pairwise(rows):
        if before["document"] == row["document"]:
            assert int(row["first_paragraph"]) == int(before["last_paragraph"]) + 1


def test_paragraphs_have_their_segments(cut):
    found = read_table(str(cut / "assignments.csv")).data.to_pylist()
    assert len(found) == read_json("out/run.json")["rows"] == 99
    assert found[0]["id"] == "l0.txt#1"
    for row in read_segments(cut):
        first, last = int(row["first_paragraph"]), int(row["last_paragraph"])
        own = [p for p in found if p["document"] == row["document"]][first - 1 : last]
        assert [p["paragraph"] for p in own] == list(range(first, last + 1))
        assert {str(p["segment"]) for p in own} == {row["segment"]}
        assert {str(p["label"]) for p in own} == {row["topic"]}
        mean = np.mean([p["probability"] for p in own])
        assert float(row["probability"]) == pytest.approx(mean)


def test_a_run_can_be_made_again(cut, coem):
    page = (cut / "report.html").read_bytes()
    assert "the same, to the last bit" in coem("rerun", cut).stdout
    coem("report", cut, "--out", "page.html")
    assert Path("page.html").read_bytes() == page
    told = coem("info", cut).stdout
    assert "segment" in told
    lines = coem("compare", cut, cut).stdout.splitlines()
    assert sum("recurs" in line and line.count("1.000") == 2 for line in lines) == 3


def test_a_model_cuts_new_documents(cut, coem, here):
    texts, starts = documents(2, seed=1)
    for i, parts in enumerate(texts):
        (here / f"new{i}.txt").write_text("\n\n".join(parts), encoding="utf-8")
        lines = coem("predict", cut, f"new{i}.txt").stdout.splitlines()
        rows = list(csv.DictReader(lines))
        assert [row["id"] for row in rows][:2] == [f"new{i}.txt#1", f"new{i}.txt#2"]
        segments = [int(row["segment"]) for row in rows]
        assert [segments.index(s) + 1 for s in sorted(set(segments))] == starts[i]
    again = coem("predict", cut, "-", "--plain", input="\n\n".join(texts[1])).stdout
    assert again.replace("stdin", "new1.txt").splitlines() == lines


def test_known_documents_are_cut_as_in_the_fit(cut, folder, coem):
    again = coem("predict", cut, folder).stdout
    assert again == (cut / "assignments.csv").read_text(encoding="utf-8")


def test_a_paragraph_is_explained_with_those_around_it(cut, coem):
    told = coem("explain", cut, "--id", "l0.txt#2").stdout
    assert "the other paragraphs" in told
    data = json.loads(coem("explain", cut, "--id", "l0.txt#2", "--json").stdout)
    rows = read_table(str(cut / "assignments.csv")).data.to_pylist()
    assert data["label"] == rows[1]["label"]
    assert data["probability"] == pytest.approx(rows[1]["probability"])
    assert sum(part["contribution"] for part in data["parts"]) == pytest.approx(data["log_odds"])
    told = coem("explain", cut, "--id", "l0.txt", code=1).stderr
    assert "--id l0.txt#1 is its first, and l0.txt#20 the last" in told
    told = coem("explain", cut, "--id", "l0.txt#21", code=1).stderr
    assert "no paragraph with the id 'l0.txt#21'" in told


# -- inputs ----------------------------------------------------------------------------------------


def as_table(here, name):
    """Return a file of the documents of `folder` in another form."""
    rows = [{"id": f"l{i}", "body": "\n\n".join(parts)} for i, parts in enumerate(documents()[0])]
    path = here / name
    with path.open("w", newline="", encoding="utf-8") as file:
        if name.endswith(".csv"):
            writer = csv.DictWriter(file, ["id", "body"])
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_tables_are_cut_like_files(name, here, coem):
    path = as_table(here, name)
    coem("segment", path, "-k", "3", "--restarts", "2", "--out", "out")
    rows = read_segments("out")
    assert starts_of(rows) == documents()[1]
    assert rows[0]["document"] == "l0"
    text = path.read_text(encoding="utf-8")
    given = ("-k", "3", "--restarts", "2", "--text", "body", "--out", "again")
    coem("segment", "-", *given, input=text)
    assert read_segments("again") == rows


@pytest.mark.parametrize("source", ["long.txt", "-"])
def test_one_long_text(source, here, coem):
    parts = documents()[0][0]
    text = "\n\n".join(parts)
    (here / "long.txt").write_text(text, encoding="utf-8")
    options = ("--plain",) if source == "-" else ()
    result = coem("segment", source, "-k", "3", *options, "--out", "out", input=text)
    assert "1 document, cut at blank lines: 20 paragraphs" in result.stderr
    assert starts_of(read_segments("out")) == [documents()[1][0]]
    header, *rows = result.stdout.split("\n\n")[0].splitlines()
    assert header.split() == ["document", "from", "to", "topic", "name"]
    assert [row.split()[1] for row in rows] == ["1", "5", "11", "16"]


def test_columns_of_text_are_joined(here, coem):
    rows = [{"title": "A ship", "body": "\n\n".join(parts)} for parts in documents()[0]]
    (here / "a.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows), encoding="utf-8")
    coem("segment", "a.jsonl", "-k", "3", "--text", "title", "--text", "body", "--out", "out")
    last = [int(row["last_paragraph"]) for row in read_segments("out")]
    assert max(last) == 21


def test_short_texts_are_no_paragraphs_unless_they_are_named(here, coem):
    rows = [
        {"id": f"l{i}", "title": f"A ship and its captain, part {i}", "body": "\n\n".join(parts)}
        for i, parts in enumerate(documents()[0])
    ]
    (here / "a.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows), encoding="utf-8")
    told = coem("segment", "a.jsonl", "-k", "3", "--out", "out").stderr
    assert "the text is in 'body'; 'title' is left out: its texts are shorter" in told
    assert starts_of(read_segments("out")) == documents()[1]
    assert read_json("out/run.json")["rows"] == 99
    # If all are short, the longest is the text.
    short = [{"a": f"{i} or two words", "b": f"the ship {i}\n\nthe sea {i}"} for i in range(6)]
    (here / "b.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in short), encoding="utf-8")
    told = coem("segment", "b.jsonl", "-k", "1", "--out", "b").stderr
    assert "the text is in 'b'; 'a' is left out: its texts are shorter than a paragraph" in told


def test_a_model_reads_other_columns_of_text(cut, here, coem):
    path = as_table(here, "a.csv")
    told = coem("predict", cut, path, code=1).stderr
    assert "has no column 'text' of text; it has id, body: name one with --text COLUMN" in told
    found = list(csv.DictReader(coem("predict", cut, path, "--text", "body").stdout.splitlines()))
    known = read_table(str(cut / "assignments.csv")).data.to_pylist()
    assert [row["label"] for row in found] == [str(row["label"]) for row in known]
    given = ("--id", "l0#2", "--file", path)
    told = coem("explain", cut, *given, "--text", "body").stdout
    assert told == coem("explain", cut, "--id", "l0.txt#2").stdout
    assert "name one with --text COLUMN" in coem("explain", cut, *given, code=1).stderr


def test_only_models_of_segment_read_other_columns(here, coem):
    path = as_table(here, "a.csv")
    coem("cluster", path, "-k", "2", "--text", "body", "--out", "groups")
    for verb in (("predict", "groups", path), ("explain", "groups", "--id", "l0")):
        assert "--text is for models of coem segment" in coem(*verb, "--text", "x", code=1).stderr


def test_the_number_of_topics_is_said(folder, coem):
    told = coem("segment", folder, "--out", "out").stderr
    assert "-k was not given: 10 topics (a segment is expected to have 10 paragraphs" in told
    told = coem("segment", folder, "--segment-length", "25", "--out", "two").stderr
    assert "-k was not given: 4 topics" in told


def test_without_blank_lines_sentences_are_taken_and_it_is_said(here, coem):
    texts = documents()[0]
    for i, parts in enumerate(texts[:2]):
        (here / f"{i}.txt").write_text(" ".join(parts), encoding="utf-8")
    told = coem("segment", "0.txt", "-k", "3", "--words", "20", "--out", "out").stderr
    assert "1 document, cut into runs of sentences: 20 paragraphs" in told
    assert starts_of(read_segments("out")) == [documents()[1][0]]
    told = coem("segment", "0.txt", "-k", "3", "--split", "words", "--out", "words").stderr
    assert "cut into runs of words" in told
    (here / "both").mkdir()
    (here / "0.txt").rename(here / "both" / "0.txt")
    (here / "both" / "1.txt").write_text("\n\n".join(texts[1]), encoding="utf-8")
    (here / "both" / "2.txt").write_text("", encoding="utf-8")
    told = coem("segment", "both", "-k", "3", "--out", "three").stderr
    assert "2 documents, 1 cut into runs of sentences, 1 cut at blank lines" in told
    assert "1 document is empty: it has no segments" in told


def test_a_longer_segment_is_asked_for(here, coem):
    texts, _ = documents(1)
    (here / "a.txt").write_text("\n\n".join(texts[0]), encoding="utf-8")
    counts = []
    for length, words in (("1.1", "0"), ("1000000000", "0.2")):
        out = f"out{length}"
        given = ("-k", "3", "--segment-length", length, "--max-length", words)
        told = json.loads(coem("segment", "a.txt", *given, "--json", "--out", out).stdout)
        counts.append(told["segments"])
    assert counts[0] >= 4 > counts[1]


# -- what cannot be done ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-k", "999"), "-k 999 groups cannot be made of 99 rows"),
        (("--text", "nothing"), "no column 'nothing'"),
    ],
)
def test_what_does_not_fit_is_said(arguments, said, folder, coem):
    assert said in coem("segment", folder, *arguments, code=1).stderr
    assert not Path("coem-letters").exists()


def test_documents_without_text(here, coem):
    (here / "a.txt").write_text(" \n", encoding="utf-8")
    assert coem("segment", "a.txt", code=1).stderr.rstrip().endswith("a.txt has no text")
    (here / "a.csv").write_text("id,body\n1, \n2,\n", encoding="utf-8")
    told = coem("segment", "a.csv", "--text", "body", code=1).stderr
    assert "a.csv has no text in 'body'" in told
    (here / "b.txt").write_text("a single ship and its captain", encoding="utf-8")
    told = coem("segment", "b.txt", code=1).stderr
    assert "b.txt is one paragraph" in told
    assert told.startswith("1 document, cut into runs of words: 1 paragraph\n")
    (here / "b.txt").write_text("a b\n\nc d", encoding="utf-8")
    assert "no row has a word" in coem("segment", "b.txt", code=1).stderr
    (here / "c.csv").write_text("n,m\n1,2\n3,4\n", encoding="utf-8")
    assert "no column looks like text" in coem("segment", "c.csv", code=1).stderr


def test_options_in_a_file_mean_the_same_in_both_verbs(cut, coem, here):
    (here / "a.toml").write_text("k = 3\nwords = 1\n", encoding="utf-8")
    shown = [
        coem("explain", cut, "--id", "l0.txt#2", *given).stdout
        for given in ((), ("--config", "a.toml"), ("-n", "1"))
    ]
    assert shown[0] == shown[1] != shown[2]  # the words of explain are others
    (here / "b.txt").write_text(" ".join(documents()[0][0]), encoding="utf-8")
    coem("segment", "b.txt", "--config", "a.toml", "--out", "b")
    found = read_json("b/run.json")["result"]
    assert (found["k"], found["paragraphs"], found["cut"]) == (3, 20, {"sentences": 1})


def test_usage(folder, coem):
    coem("segment", folder, "--segment-length", "1", code=2)
    coem("segment", folder, "--split", "pages", code=2)
    given = ("-k", "3", "--max-iter", "1", "--strict", "--out", "out")
    assert "no convergence" in coem("segment", folder, *given, code=3).stderr


def test_other_verbs_read_no_plain_text(here, coem):
    (here / "a.txt").write_text("a b\n\nc d", encoding="utf-8")
    assert "the extension '.txt' is not known" in coem("cluster", "a.txt", code=1).stderr


def test_a_model_file_that_does_not_say_how_to_cut(cut, coem):
    import coem as library

    model = library.load(cut / "model.coem")
    library.save(model, "bare.coem")
    assert "coem segment did not write" in coem("predict", "bare.coem", "letters", code=1).stderr
    library.save(model, "forged.coem", extra={"paragraphs": {"by": "pages"}})
    assert "how documents are cut" in coem("predict", "forged.coem", "letters", code=1).stderr
