"""Streams of a corpus that grows: the rows that an ingest has appended are new documents."""

import json
import shutil
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import coem
from coem import ingest
from coem.cli import main
from coem.io.row_blocks import row_blocks
from coem.io.sources import TableError
from coem.io.tables import write_table
from coem.recipes import ingesting, stream_corpus
from coem.recipes.stream_corpus import CorpusSource
from tests.recipes.test_streams import OLD, posts

HOW = {"k": 3, "restarts": 2, "threads": 1, "latent": None, "report": False}
PARTS = [posts(150, OLD), posts(100, OLD, 150), posts(60, OLD, 250)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ingesting, "row_blocks", partial(row_blocks, rows=40))


def add(*parts, to="posts", **settings):
    """Append documents to a corpus, or make it."""
    for number, rows in enumerate(parts):
        write_table(pa.Table.from_pylist(rows), "part.jsonl")
        append = (number > 0 or not settings) and to == "posts"
        ingest("part.jsonl", to, append=append, **({} if append else settings))


def journal(folder):
    with open(f"{folder}/assignments.csv", "rb") as file:
        return file.read()


def follow(folder="groups", source="posts", **more):
    return list(coem.stream(source, out=folder, **{**HOW, **more}))


def test_rows_that_are_appended_are_new_documents():
    add(PARTS[0], text="body")
    (first,) = follow()
    assert list(first.ids) == [f"p{i}" for i in range(150)]
    assert follow() == []
    add(PARTS[1])
    (second,) = follow()
    assert list(second.ids) == [f"p{i}" for i in range(150, 250)]
    add(PARTS[2])
    (third,) = follow()
    assert (third.number, third.n_rows) == (3, 310)
    topics = np.arange(310) % 3
    labels = np.concatenate([batch.labels for batch in (first, second, third)]).astype(int)
    which = [labels[topics == t] for t in range(3)]
    assert all((own == np.bincount(own).argmax()).mean() > 0.97 for own in which)
    assert len(journal("groups").splitlines()) == 311
    # All at once, in the same batches: the same bits.
    batches = coem.stream("posts", out="again", batch=150, **HOW)
    assert next(batches).n_rows == 150
    batches.close()
    follow("again", batch=100)
    assert journal("again") == journal("groups")


def test_the_views_of_the_corpus_are_used():
    add(PARTS[0], text="body", min_df=1, max_features=20)
    (first,) = follow()
    with open("groups/run.json") as file:
        assert json.load(file)["arguments"]["max_features"] == 20
    reader = coem.load("groups/model.coem").steps[0][1]
    corpus = coem.open_corpus("posts")
    assert reader.vocabulary_["text"].tolist() == corpus.feature_names("text").tolist()
    rows = corpus.shortened({"text": 150.0}).load()
    model = coem.load("groups/model.coem").steps[1][1]
    assert model.predict(rows).tolist() == first.labels.tolist()


def test_batches_may_end_within_a_shard_and_go_on_there():
    add(PARTS[0], PARTS[1], text="body")
    whole = follow("whole", batch=90)
    assert [len(batch.ids) for batch in whole] == [90, 90, 70]
    part = coem.stream("posts", out="part", batch=90, **HOW)
    next(part)
    part.close()
    assert [len(batch.ids) for batch in follow("part", batch=90)] == [90, 70]
    assert journal("part") == journal("whole")


def test_a_corpus_that_was_replaced_is_refused():
    add(PARTS[0], PARTS[1], text="body")
    follow()
    before = journal("groups")
    changed = [dict(row) for row in PARTS[0]]
    changed[45]["body"] = " ".join(sorted(PARTS[0][45]["body"].split()))  # the same words
    shutil.rmtree("posts")
    add(changed, PARTS[1], text="body")
    with pytest.raises(TableError, match=r"its rows 41 to 80 \(shard 1\) are not those that were"):
        follow()
    shutil.rmtree("posts")
    add(PARTS[0], text="body", min_df=5)
    with pytest.raises(TableError, match="its views were made anew, with other columns or words"):
        follow()
    shutil.rmtree("posts")
    add(PARTS[0], text="body")
    with pytest.raises(TableError, match="it has 150 rows, and 250 were read"):
        follow()
    assert journal("groups") == before
    shutil.rmtree("posts")
    add(*PARTS, text="body")  # the same rows again, and more
    (more,) = follow()
    assert more.ids[0] == "p250"


def test_a_corpus_that_has_moved_goes_on():
    add(PARTS[0], text="body")
    follow()
    add(PARTS[1])
    shutil.move("posts", "moved")
    (second,) = follow(source="moved")
    assert len(second.ids) == 100


def test_a_stream_of_files_does_not_go_on_with_a_corpus():
    add(PARTS[0], text="body")
    list(coem.stream([PARTS[0]], out="groups", text="body", **HOW))
    with pytest.raises(ValueError, match=r"text was .* when the stream groups began"):
        follow()
    with pytest.raises(TableError, match="began with the tables, whose words it counts"):
        follow(text="body")


def test_what_is_for_files_is_refused():
    add(PARTS[0], text="body")
    with pytest.raises(ValueError, match="encoding is for files, and posts is a corpus"):
        follow(encoding="cp1252")
    with pytest.raises(ValueError, match="min_df: the views of posts were made by coem ingest"):
        follow(min_df=7)


def test_a_batch_of_a_large_corpus_is_a_part_of_it(monkeypatch):
    add(PARTS[0], PARTS[1], text="body")
    source = CorpusSource("posts")
    assert source.usual_batch == 250
    monkeypatch.setattr(stream_corpus, "MOST", source.corpus.n_bytes // 2)
    assert source.usual_batch == 125
    assert [len(batch.ids) for batch in follow()] == [125, 125]


def test_the_program_follows_a_corpus():
    add(PARTS[0], text="body")
    call = ["cluster", "posts", "--stream", "--out", "groups", "-k", "3", "--restarts", "2"]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    add(PARTS[1])
    done = CliRunner().invoke(main, call)
    assert "150 documents were read before, and are skipped" in done.output
    assert "batch 2: 100 documents, 250 so far" in done.output
    for verb in (["report", "groups"], ["predict", "groups", "posts"], ["name", "groups", "0=Sea"]):
        done = CliRunner().invoke(main, verb)
        assert done.exit_code == 0, done.output
