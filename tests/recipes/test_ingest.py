"""`coem.ingest` and ``coem ingest``: a corpus has what the same documents have in memory."""

import gzip
import io
import json
import os
import pickle
import shutil
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner

from coem import Corpus, classify, cluster, ingest, open_corpus, segment, stream, topics
from coem.cli import main
from coem.cli._process import written
from coem.cli.ingest import command
from coem.io import corpus_work, streams
from coem.io.corpus_writer import CorpusWriter
from coem.io.row_blocks import row_blocks
from coem.io.tables import read_table, write_table
from coem.recipes import corpora, ingesting
from coem.recipes.listener import Listener
from coem.text import TextViews
from coem.views import Views

SEA = ["ship", "crew", "captain", "sail", "sea", "harbour", "anchor", "deck", "mast", "storm"]
FOOD = ["bread", "flour", "butter", "oven", "yeast", "dough", "sugar", "salt", "egg", "milk"]


def documents(n_rows=60, first=0):
    rng = np.random.default_rng(first)
    rows = []
    for i in range(first, first + n_rows):
        words = (SEA, FOOD)[i % 2]
        rows.append(
            {
                "id": f"d{i}",
                "title": " ".join(rng.choice(words, 3)),
                "body": "the " + " ".join(rng.choice([*words, "and", f"x{i % 9}"], 20)),
                "refs": f"d{(i * 7) % 30}|d{(i * 3) % 40}",
                "tags": "|".join(rng.choice(["a", "b", "c"], 2)),
                "kind": ("sea", "food")[i % 2],
                "price": None if i % 7 == 0 else float(i % 5),
                "when": f"2024-03-{1 + i % 28:02d}",
            }
        )
    return pa.Table.from_pylist(rows)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(ingesting, "row_blocks", partial(row_blocks, rows=17))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(A, B):
    assert A.names == B.names
    for name in A.names:
        a, b = A[name], B[name]
        assert a.dtype == b.dtype
        a, b = (x.toarray() if hasattr(x, "toarray") else x for x in (a, b))
        assert np.array_equal(a, b, equal_nan=True)


VIEWS = {
    "body": "body",
    "tags": "tags:list",
    "cited": "refs:inbound",
    "kind": "kind:category",
    "price": "price:number",
}


@pytest.mark.parametrize(
    "name", ["d.csv", "d.tsv", "d.jsonl", "d.parquet", "d.csv.gz", "d.csv.zst"]
)
def test_rows_and_views_are_those_of_the_table(name, here):
    write_table(documents(), here / name)
    corpus = ingest(name, "c", views=VIEWS, min_df=1)
    table = read_table(here / name).data
    reader = TextViews(VIEWS, id="id", stop_words="english", n_jobs=1)
    same(corpus.load(), reader.fit_transform(table))
    assert len(corpus.shards) == 4
    assert corpus.bounds == [0, 17, 34, 51, 60]
    assert corpus.table().equals(table)
    assert corpus.ids == table.column("id").to_pylist()
    for view in corpus.names:
        assert corpus.feature_names(view).tolist() == reader.vocabulary_[view].tolist()
    corpus.verify()


def test_several_files_are_one_table(here):
    write_table(documents(20), here / "a.csv")
    write_table(documents(20, 20).drop_columns(["tags"]), here / "b.csv")
    write_table(documents(5, 40), here / "c.jsonl")
    corpus = ingest(["a.csv", "b.csv", "c.jsonl"], "out", text="body")
    assert len(corpus) == 45
    assert corpus.ids == [f"d{i}" for i in range(45)]
    assert corpus.table().column("tags").null_count == 20
    whole = cluster(corpus.table(), text="body", k=2, restarts=2, latent=None)
    found = cluster("out", k=2, restarts=2, latent=None)
    assert found.labels.tolist() == whole.labels.tolist()


def test_columns_that_differ_are_refused(here):
    (here / "a.csv").write_text("id,n\n1,text here\n")
    parquet.write_table(pa.table({"id": [3], "n": [[1, 2]]}), here / "b.parquet")
    with pytest.raises(ValueError, match=r"column 'n' holds string in a\.csv, and list.* in b"):
        ingest(["a.csv", "b.parquet"], "c")


def test_a_folder_has_its_sub_folders_as_labels(here):
    for i in range(12):
        folder = here / "texts" / ("sea", "food")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.txt").write_text(" ".join((SEA, FOOD)[i % 2]))
    corpus = ingest("texts", "c")
    assert corpus.labels.tolist() == ["food"] * 6 + ["sea"] * 6
    assert corpus.names == ("text",)
    assert corpus.texts([0]) == [" ".join(FOOD)]


def test_labels_are_no_view(here):
    write_table(documents(), here / "d.jsonl")
    corpus = ingest("d.jsonl", "c", label="kind")
    assert "kind" not in corpus.names
    assert corpus.labels.tolist() == ["sea", "food"] * 30
    with pytest.raises(ValueError, match="no column 'sort' for the labels; there are id, title"):
        ingest("d.jsonl", "e", label="sort")


def test_bad_ids_are_told_with_file_and_row(here):
    table = documents(40)
    ids = table.column("id").to_pylist()
    for name, new in (("twice", "d1"), ("none", None)):
        changed = pa.array([*ids[:30], new, *ids[31:]])
        write_table(table.set_column(0, "id", changed), here / f"{name}.jsonl")
    with pytest.raises(ValueError, match=r"twice\.jsonl, row 2 and .*row 31 are both called 'd1'"):
        ingest("twice.jsonl", "c")
    with pytest.raises(ValueError, match=r"none\.jsonl, row 31 has none; mend it"):
        ingest("none.jsonl", "e", id="id")
    heard = Listener()
    assert ingest("none.jsonl", "f", listener=heard).ids[-1] == "40"
    assert any("is not used for the ids" in note for note in heard.notes)


def test_bad_rows_are_refused_or_left_out(here):
    (here / "d.csv").write_text("id,text\n1,the ship sails\n2,a,b\n3,the ship sinks\n")
    with pytest.raises(ValueError, match=r"d\.csv, row 3: 3 cells where the header has 2"):
        ingest("d.csv", "c", text="text", min_df=1)
    assert not os.path.exists("c")
    assert ingest("d.csv", "c", text="text", min_df=1, skip_bad=True).ids == ["1", "3"]


def test_nothing_is_overwritten(here):
    write_table(documents(), here / "d.csv")
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="is there, and not empty; name another folder"):
        ingest("d.csv", "mine", force=True)
    ingest("d.csv", "c")
    with pytest.raises(FileExistsError, match="is a corpus already; add rows to it with --append"):
        ingest("d.csv", "c")
    assert len(ingest("d.csv", "c", text="title", force=True).names) == 1
    assert sorted(os.listdir()) == ["c", "d.csv", "mine"]


@pytest.mark.parametrize(
    "mine", ["thesis.txt", "shard-000000/thesis.txt", "shard-1", "corpus.json/x"]
)
def test_force_spares_what_no_ingest_wrote(mine, here):
    write_table(documents(), here / "d.csv")
    corpus = ingest("d.csv", "c")
    if mine.startswith("corpus.json"):
        (here / "c" / "views.coem").unlink()
        mine = mine.replace("corpus.json", "views.coem")
    (here / "c" / mine).parent.mkdir(exist_ok=True)
    (here / "c" / mine).write_text("all of it")
    name = mine.removesuffix("/x")
    with pytest.raises(FileExistsError, match=f"c also holds {name}, which would be lost; move it"):
        ingest("d.csv", "c", text="title", force=True)
    assert (here / "c" / mine).read_text() == "all of it"
    assert corpus.digest == open_corpus("c").digest


def test_force_spares_what_came_while_it_was_at_work(here, monkeypatch):
    write_table(documents(), here / "d.csv")
    ingest("d.csv", "c")
    finish = corpus_work.Work.finish

    def late(*args):
        (here / "c" / "thesis.txt").write_text("all of it")
        finish(*args)

    monkeypatch.setattr(corpus_work.Work, "finish", late)
    with pytest.raises(FileExistsError, match=r"also holds thesis\.txt"):
        ingest("d.csv", "c", text="title", force=True)
    (here / "c" / "thesis.txt").unlink()
    again = ingest("d.csv", "c", text="title", force=True, resume=True)
    assert len(again.names) == 1
    assert sorted(os.listdir()) == ["c", "d.csv"]


# -- append ----------------------------------------------------------------------------------------


def test_rows_that_are_appended_have_the_first_vocabulary(here):
    write_table(documents(30), here / "a.csv")
    more = documents(30, 30).set_column(2, "body", pa.array(["ship unheard words"] * 30))
    write_table(more, here / "b.csv")
    first = ingest("a.csv", "c", text="body")
    digest, reader = first.digest, first.text_views
    heard = Listener()
    corpus = ingest("b.csv", "c", append=True, listener=heard)
    assert corpus.ids == [f"d{i}" for i in range(60)]
    assert corpus.digest != digest
    assert corpus.feature_names("text").tolist() == reader.vocabulary_["text"].tolist()
    same(corpus.rows(30, 60), reader.transform(more))
    assert any("60 of 90 words (66.7%) are not in the vocabulary" in note for note in heard.notes)
    corpus.verify()


def test_hashed_rows_know_every_word(here):
    write_table(documents(30), here / "a.csv")
    (here / "b.csv").write_text("id,body\nnew,wholly unheard things\n")
    ingest("a.csv", "c", text="body", hash_features=64)
    corpus = ingest("b.csv", "c", append=True)
    assert corpus.widths == (64,)
    assert corpus[[30]]["text"].sum() == 3
    with pytest.raises(ValueError, match="min_df chooses words of a vocabulary"):
        ingest("a.csv", "e", text="body", hash_features=64, min_df=3)


def test_ids_that_are_there_cannot_be_appended(here):
    write_table(documents(30), here / "a.csv")
    ingest("a.csv", "c", text="body")
    before = Corpus("c").digest
    told = r"row 1 of the corpus and .*a\.csv, row 2 are both .*; mend it, or ingest all documents"
    with pytest.raises(ValueError, match=told):
        ingest("a.csv", "c", append=True)
    done = CliRunner().invoke(main, ["ingest", "a.csv", "--out", "c", "--append"])
    assert "to a new corpus with --id COLUMN or --id none" in done.output
    assert Corpus("c").digest == before


def test_a_resumed_append_that_was_complete_adds_nothing(here):
    write_table(documents(30), here / "a.csv")
    write_table(documents(5, 30), here / "b.csv")
    ingest("a.csv", "c", text="body")
    assert len(ingest("a.csv", "c", text="body", resume=True)) == 30
    ingest("b.csv", "c", append=True)
    heard = Listener()
    assert len(ingest("b.csv", "c", append=True, resume=True, listener=heard)) == 35
    assert "is complete: there is nothing to resume" in heard.notes[0]


def test_shards_that_nobody_names_are_removed(here):
    write_table(documents(30), here / "a.csv")
    write_table(documents(5, 30), here / "b.csv")
    ingest("a.csv", "c", text="body")
    shutil.copytree("c/shard-000000", "c/shard-000002")
    heard = Listener()
    ingest("b.csv", "c", append=True, listener=heard).verify()
    assert "has left is removed" in heard.notes[0]
    assert sorted(os.listdir("c")) == [
        "corpus.json",
        *(f"shard-00000{i}" for i in range(3)),
        "views.coem",
    ]


def test_another_call_does_not_go_on(here, monkeypatch):
    write_table(documents(30), here / "a.csv")
    with monkeypatch.context() as patch:
        patch.setattr(ingesting, "write_views", stop)
        with pytest.raises(KeyboardInterrupt):
            ingest("a.csv", "c", text="body")
    with pytest.raises(ValueError, match=r"is not a corpus yet: .* again with --resume"):
        Corpus("c")
    with pytest.raises(ValueError, match="had other parameters: id, text; give the same call"):
        ingest("a.csv", "c", text="title", id="none", resume=True)
    was = os.stat("a.csv").st_mtime_ns
    os.utime("a.csv", ns=(was, was + 1))
    with pytest.raises(ValueError, match="a source has changed since"):
        ingest("a.csv", "c", text="body", resume=True)
    os.utime("a.csv", ns=(was, was))
    assert len(ingest("a.csv", "c", text="body", resume=True)) == 30


def test_a_call_that_must_change_leaves_nothing(here):
    write_table(documents(30), here / "a.csv")
    for source, text in (("a.csv", "Body"), ("nothing.csv", "body")):
        heard = Listener()
        with pytest.raises(ValueError, match=r"no column 'Body'|no file nothing\.csv"):
            ingest(source, "c", text=text, listener=heard)
        assert os.listdir() == ["a.csv"]
    ingest("a.csv", "c", text="body")
    was = sorted(os.listdir("c"))
    with pytest.raises(ValueError, match="both called 'd0'"):
        ingest("a.csv", "c", append=True, listener=heard)
    assert sorted(os.listdir("c")) == was
    assert not any("resume" in note for note in heard.notes)


@pytest.mark.parametrize("step", ["row_blocks", "write_views"])
def test_what_is_said_of_an_ingest_that_is_stopped(step, here, monkeypatch):
    write_table(documents(30), here / "a.csv")
    monkeypatch.setattr(ingesting, step, stop)
    context = command.make_context("ingest", ["a.csv", "--out", "c", "--text", "body", "-q"])
    with context, pytest.raises(KeyboardInterrupt):
        command.invoke(context)
    kept = step == "write_views"  # before that nothing is done, and nothing is kept
    assert sorted(os.listdir()) == ([".c.ingest", "a.csv"] if kept else ["a.csv"])
    assert written(context).endswith("--resume goes on" if kept else "nothing was written")
    with pytest.raises(ValueError, match="coem ingest was stopped" if kept else "check the name"):
        cluster("c", k=2)


def stop(*_):
    raise KeyboardInterrupt


def test_two_writers_are_refused(here):
    fcntl = pytest.importorskip("fcntl")
    write_table(documents(30), here / "a.csv")
    write_table(documents(3, 30), here / "b.csv")
    ingest("a.csv", "c", text="body")
    handle = os.open("c", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ValueError, match="is being written by another process"):
        ingest("b.csv", "c", append=True)
    os.close(handle)
    assert len(ingest("b.csv", "c", append=True)) == 33


# -- verbs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("latent", ["auto", 3])
def test_groups_of_a_corpus_are_those_of_its_file(latent, here):
    write_table(documents(140), here / "posts.csv")
    ingest("posts.csv", "c", label="kind")
    settings = {"k": 2, "restarts": 2, "latent": latent}
    cluster("posts.csv", label="kind", **settings).save("one")
    cluster("c", **settings).save("two")
    for name in ("assignments.csv", "clusters.csv"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()


def test_views_that_a_corpus_cannot_get_are_not_offered(here):
    write_table(documents(), here / "d.csv")
    heard = [Listener(), Listener()]
    ingest("d.csv", "c", listener=heard[0])
    cluster("c", k=2, restarts=2, latent="none", listener=heard[1])
    assert [any("are views if you ask" in n for n in one.notes) for one in heard] == [True, False]


def test_what_was_decided_at_the_ingest_cannot_be_changed(here):
    write_table(documents(), here / "d.csv")
    ingest("d.csv", "c", text="body")
    for name, value in {"text": "title", "min_df": 5, "ngrams": 2, "stop_words": "german"}.items():
        with pytest.raises((ValueError, ImportError), match=name):
            cluster("c", k=2, **{name: value})
    with pytest.raises(ValueError, match="encoding is for files, and c is a corpus"):
        cluster("c", k=2, encoding="cp1252")
    with pytest.raises(ValueError, match="column 'body' is part of view 'text'"):
        cluster("c", k=2, label="body")
    assert cluster("c", k=2, text="body", restarts=2).settings["text"] == ["body"]


def test_a_corpus_in_parts_has_the_rows_of_one_in_memory(here, monkeypatch):
    write_table(documents(), here / "d.csv")
    corpus = ingest("d.csv", "c", text="body")
    one, two = (corpora.corpus_reader(corpus, max_length=5.0) for _ in range(2))
    whole = corpora.rows_of(corpus, one, Listener(), in_parts=False)
    parts = corpora.rows_of(corpus, two, Listener(), in_parts=True)
    assert isinstance(parts, Corpus)
    same(parts.load(), whole)
    assert two.kept_ == pytest.approx(one.kept_, rel=1e-12)
    assert 0 < two.kept_["text"] < 1


def test_a_corpus_of_matrices_has_no_documents(here):
    CorpusWriter("c").append(Views(a=np.ones((3, 2))))
    assert open_corpus("c").text_views is None
    assert open_corpus("c").feature_names("a") is None
    with pytest.raises(ValueError, match="was written from matrices, and holds no documents"):
        cluster("c", k=2)


def test_a_corpus_is_pickled_by_its_path(here):
    write_table(documents(), here / "d.csv")
    corpus = ingest("d.csv", "c", text="body").shortened({"text": 3.0})
    other = pickle.loads(pickle.dumps(corpus))
    same(other.load(), corpus.load())
    assert other.load()["text"].sum(axis=1).max() <= 3.001
    assert other.digest == corpus.digest != Corpus("c").digest


def test_stdin_and_packed_lines(here, coem_program):
    lines = "".join(json.dumps(row) + "\n" for row in documents(20).to_pylist())
    code, out, err = coem_program(
        "ingest", "-", "--out", "c", "--json", stdin=gzip.compress(lines.encode())
    )
    assert code == 0, err
    assert json.loads(out)["rows"] == 20
    code, out, _ = coem_program("info", "c")
    assert "standard input" in out
    assert code == 0


@pytest.fixture
def coem_program(here):
    import subprocess
    import sys

    def call(*arguments, stdin=b""):
        start = "from coem.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", start, *arguments], input=stdin, capture_output=True, cwd=here
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return call


def test_ids_are_looked_at_one_table_at_a_time():
    from coem.recipes.ingested import check_ids

    class Tables:
        n_open = most = 0

        def __iter__(self):
            for i in range(5):
                self.n_open += 1
                self.most = max(self.most, self.n_open)
                yield pa.table({"id": [f"{i}-{j}" for j in range(3)]})
                self.n_open -= 1

    tables = Tables()
    assert check_ids("id", tables, None, str, None, Listener()) == "id"
    assert tables.most == 1


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"min_df": 5}, "min_df: the first ingest to .*c has fixed its views"),
        ({"text": "title"}, "text: the first ingest"),
        ({"label": "tags"}, "label: the first ingest"),
        ({"id": "none"}, "id: the first ingest"),
        ({"hash_features": 64}, "(hash_features|min_df): the first ingest"),
        ({"force": True}, "append adds rows to a corpus, and force"),
    ],
)
def test_what_the_first_ingest_has_fixed_is_refused(params, told, here):
    write_table(documents(30), here / "a.csv")
    write_table(documents(5, 30), here / "b.csv")
    ingest("a.csv", "c", text="body", label="kind")
    with pytest.raises(ValueError, match=told):
        ingest("b.csv", "c", append=True, **params)
    assert len(ingest("b.csv", "c", append=True, text="body", label="kind", id="id")) == 35


def test_sources_and_labels_that_cannot_be(here):
    write_table(documents(30), here / "a.csv")
    for column, what in (("id", "the ids"), ("body", "a text")):
        with pytest.raises(ValueError, match=f"cannot be both {what} and the labels"):
            ingest("a.csv", "c", text="body", label=column)
    with pytest.raises(TypeError, match="sources are names of files and folders, got dict"):
        ingest([{"body": "ship"}], "c")
    ingest("a.csv", "c", text="body")
    with pytest.raises(ValueError, match="c is a corpus; name the files"):
        ingest("c", "d", text="body")


def test_a_label_that_is_no_number_is_none(here):
    table = pa.table({"body": ["ship sail", "oven bread"] * 2, "y": [1.0, float("nan"), None, 2.0]})
    parquet.write_table(table, "d.parquet")
    assert ingest("d.parquet", "c", text="body", label="y").labels.tolist() == [
        "1.0",
        None,
        None,
        "2.0",
    ]


@pytest.mark.parametrize("order", [1, -1])
def test_a_number_that_a_column_cannot_hold_is_told_of_with_its_place(order, here):
    large = 2**53 + 1
    whole = {"id": [1, 2], "body": ["ship sail", "ship crew"], "u": [large - 1, large]}
    parquet.write_table(pa.table(whole), "a.parquet")
    parquet.write_table(pa.table({**whole, "id": [3, 4], "u": [0.5, 2.5]}), "b.parquet")
    told = f"row 2: column 'u' holds {large}, and double, in which the column is kept, has no such"
    with pytest.raises(ValueError, match=rf"a\.parquet, {told} number; round it"):
        ingest(["a.parquet", "b.parquet"][::order], "c", text="body", min_df=1)
    assert sorted(os.listdir()) == ["a.parquet", "b.parquet"]
    base = ingest("b.parquet", "c", text="body", min_df=1)
    (here / "c.csv").write_text(f"id,body,u\n5,ship,3\n6,ship,{large}\n")
    with pytest.raises(ValueError, match=rf"c\.csv, {told.replace('2', '3', 1)} number"):
        ingest("c.csv", "c", append=True)
    parquet.write_table(pa.table({**whole, "id": [7, 8], "u": [2**63 - 1, 0]}), "d.parquet")
    unsigned = pa.table({**whole, "u": pa.array([1, 2**63], pa.uint64())})
    parquet.write_table(unsigned, "e.parquet")
    with pytest.raises(ValueError, match=rf"e\.parquet, row 2: .*{2**63}, and int64"):
        ingest(["d.parquet", "e.parquet"], "e", text="body", min_df=1)
    assert open_corpus("c").digest == base.digest


def test_numbers_in_both_types_are_kept(here):
    table = {"id": [1, 2], "body": ["ship sail", "ship crew"], "u": [1, 2**53]}
    parquet.write_table(pa.table(table), "a.parquet")
    parquet.write_table(pa.table({**table, "id": [3, 4], "u": [0.5, None]}), "b.parquet")
    found = ingest(["a.parquet", "b.parquet"], "c", text="body", min_df=1).table().column("u")
    assert found.to_pylist() == [1.0, 2.0**53, 0.5, None]


def test_topics_are_found_in_the_texts_of_a_corpus(here):
    """Its views are fixed, so that nobody can leave out the others."""
    write_table(documents(), here / "d.csv")
    views = {"tags": "tags:list", "price": "price:number"}
    ingest("d.csv", "one", text="body")
    ingest("d.csv", "more", text="body", views=views)
    settings = {"k": 2, "max_iter": 5}
    one, more = (topics(name, **settings) for name in ("one", "more"))
    assert more.columns["shares"].tolist() == one.columns["shares"].tolist()
    assert "View 'price' is left out: topics are found in text, and it is a number." in more.notes
    more.save("run")
    for call in (["report", "run"], ["predict", "run", "d.csv", "--out", "new.csv"]):
        assert CliRunner().invoke(main, call).exit_code == 0
    assert "the same, to the last bit" in CliRunner().invoke(main, ["rerun", "run"]).output
    ingest("d.csv", "several", views={"t": "title", "b": "body", **views})
    assert topics("several", **settings).reader.views == {"text": ["title", "body"]}


def test_what_is_said_of_a_corpus_without_text_can_be_done(here):
    write_table(documents(), here / "d.csv")
    lists = {"tags": "tags:list", "refs": "refs:list"}
    ingest("d.csv", "lists", views=lists)
    ingest("d.csv", "numbers", views={"price": "price:number"})
    for name in ("lists", "numbers"):
        with pytest.raises(ValueError, match="; ingest the documents again with text columns, or"):
            topics(name, k=2)
    with pytest.raises(ValueError, match="name the text columns with text= and no other view"):
        topics("d.csv", views=lists, k=2)


def test_segments_are_cut_from_the_texts_of_a_corpus(here):
    rows = [{"id": str(i), "t": "|".join((SEA, FOOD)[i % 2]), "n": f"note {i}"} for i in range(30)]
    write_table(pa.Table.from_pylist(rows), here / "d.csv")
    how = {"k": 2, "restarts": 2, "split": "words", "words": 3, "min_df": 1}
    with pytest.raises(ValueError, match="no column looks like text"):
        segment(read_table("d.csv").data.drop_columns(["n"]), **how)
    wanted = segment("d.csv", text="t", **how)
    for name, given in {"a": {"text": "t"}, "b": {"views": {"v": "t"}}}.items():
        ingest("d.csv", name, min_df=1, **given)
        found = segment(name, **how)
        assert found.labels.tolist() == wanted.labels.tolist()
        assert found.extra["paragraphs"]["columns"] == ["t"]
    assert segment("a", text="n", **how).extra["paragraphs"]["columns"] == ["n"]


def test_an_empty_name_is_not_the_folder_one_is_in(here, monkeypatch):
    (here / "a.txt").write_text("ship sail")
    for sources in ("", ["a.txt", ""]):
        with pytest.raises(ValueError, match="the name of a source is empty"):
            ingest(sources, "c")
    done = CliRunner().invoke(main, ["ingest", "", "--out", "c"])
    assert (done.exit_code, "name of a source is empty" in done.output) == (1, True)
    done = CliRunner().invoke(main, ["cluster", "", "-k", "2"])
    assert (done.exit_code, "the name is empty" in done.output) == (2, True)
    assert os.listdir() == ["a.txt"]


def test_a_corpus_behind_a_link_is_used_as_any_other(here):
    write_table(documents(), here / "d.csv")
    ingest("d.csv", "c", text="body")
    os.symlink("c", "link")
    write_table(documents(10, 60), here / "e.csv")
    assert len(ingest("e.csv", "link", append=True)) == 70
    settings = {"k": 2, "restarts": 2, "latent": None}
    assert cluster("link", **settings).labels.tolist() == cluster("c", **settings).labels.tolist()
    assert CliRunner().invoke(main, ["info", "link"]).exit_code == 0
    os.symlink("not-yet", "later")
    os.mkdir(".not-yet.ingest")
    with pytest.raises(ValueError, match=r"later is not a corpus yet: .* --resume"):
        open_corpus("later")


# -- sources that change ---------------------------------------------------------------------------


def stopped_after_two_shards(monkeypatch, call):
    """Stop an ingest before the third of its shards is written."""
    write, left = ingesting.write_table, [2]

    def stop_later(*about):
        left[0] -= 1
        return stop() if left[0] < 0 else write(*about)

    with monkeypatch.context() as patch:
        patch.setattr(ingesting, "write_table", stop_later)
        with pytest.raises(KeyboardInterrupt):
            call()


def test_an_ingest_does_not_go_on_with_other_documents(here, monkeypatch):
    for i in range(60):
        (here / "texts").mkdir(exist_ok=True)
        (here / "texts" / f"{i:03d}.txt").write_text(f"ship crew {i} sails the sea")
    stopped_after_two_shards(monkeypatch, lambda: ingest("texts", "c", min_df=1))
    (here / "texts" / "000-new.txt").write_text("bread and butter")
    (here / "texts" / "059.txt").rename("059.txt")
    heard = Listener()
    with pytest.raises(ValueError, match=r"the documents are not those that the ingest to .*c had"):
        ingest("texts", "c", min_df=1, resume=True, listener=heard)
    assert "what is done so far is kept" in heard.notes[-1]
    (here / "texts" / "000-new.txt").unlink()
    (here / "059.txt").rename(here / "texts" / "059.txt")
    corpus = ingest("texts", "c", min_df=1, resume=True)
    assert corpus.ids == [f"{i:03d}.txt" for i in range(60)]
    assert corpus.manifest.ingests[0]["rows"] == 60


def test_other_standard_input_does_not_go_on(here, monkeypatch):
    def give(first):
        rows = "".join(f"{i},ship crew {i} sails\n" for i in range(first, first + 60))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"id,body\n{rows}".encode())))

    give(0)
    stopped_after_two_shards(monkeypatch, lambda: ingest("-", "c", min_df=1))
    give(1000)
    with pytest.raises(ValueError, match="the documents are not those"):
        ingest("-", "c", min_df=1, resume=True)
    give(0)
    assert ingest("-", "c", min_df=1, resume=True).ids == [str(i) for i in range(60)]


def test_a_file_that_grows_while_it_is_read_is_refused(here, monkeypatch):
    write_table(documents(30), here / "a.jsonl")
    cut = ingesting.row_blocks

    def grow(tables):
        with open("a.jsonl", "a") as file:
            file.write(json.dumps({"id": "late", "body": "ship"}) + "\n")
        return cut(tables)

    monkeypatch.setattr(ingesting, "row_blocks", grow)
    with pytest.raises(ValueError, match="a source has changed while it was read"):
        ingest("a.jsonl", "c", text="body")
    assert os.listdir() == ["a.jsonl"]


def test_columns_that_are_appended_hold_what_they_held(here):
    """No value says nothing of a type, and cells of text that look like numbers are text."""
    write_table(documents(30).drop_columns(["refs"]), here / "a.csv")
    ingest("a.csv", "c", text="body", views={"price": "price:number"})
    (here / "b.csv").write_text("id,body,price\n1.10,2024,n/a\n007,1e5,\n")
    corpus = ingest("b.csv", "c", append=True)
    assert corpus.ids[-2:] == ["1.10", "007"]
    table = corpus.table(30, 32)
    assert table.column("body").to_pylist() == ["2024", "1e5"]
    assert table.column("price").null_count == 2
    tags = [{"id": f"t{i}", "body": f"ship {i % 3} sails", "tags": ["a", "b"]} for i in range(9)]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tags))
    (here / "b.jsonl").write_text('{"id": "u", "body": "ship", "tags": null}\n')
    ingest("a.jsonl", "d", text="body", views={"tags": "tags:list"})
    assert ingest("b.jsonl", "d", append=True).table(9, 10).column("tags").to_pylist() == [None]
    (here / "c.jsonl").write_text('{"id": "v", "body": "ship", "tags": "a"}\n')
    with pytest.raises(ValueError, match=r"column 'tags' holds string, and in .*d it holds list"):
        ingest("c.jsonl", "d", append=True)


def test_a_column_that_is_empty_in_one_source_has_the_type_of_the_other(here):
    (here / "a.csv").write_text("id,body,price\n1,ship sails,\n")
    parquet.write_table(pa.table({"id": [2], "body": ["ship"], "price": [1.5]}), "b.parquet")
    for i, sources in enumerate((["a.csv", "b.parquet"], ["b.parquet", "a.csv"])):
        prices = ingest(sources, f"c{i}", text="body", min_df=1).table().column("price")
        assert sorted(prices.to_pylist(), key=str) == [1.5, None]


def test_large_rows_of_a_parquet_file_are_read_few_at_a_time(here, monkeypatch):
    table = pa.table({"body": [f"{i} " + "ship sails " * 50 for i in range(200)]})
    parquet.write_table(table, "d.parquet", use_dictionary=False)
    sizes = []
    for most in (streams.BYTES, 10_000):
        monkeypatch.setattr(streams, "BYTES", most)
        stream = streams.Stream(["d.parquet"], here, streams.Reading())
        found = list(stream)
        assert pa.concat_tables(found).equals(table)
        sizes.append(max(part.num_rows for part in found))
    assert sizes[0] == 200
    assert sizes[1] < 25


def test_recipes_take_a_corpus_that_is_open(here):
    write_table(documents(), here / "d.csv")
    corpus = ingest("d.csv", "c", views={"title": "title", "body": "body"}, label="kind")
    settings = {"k": 2, "restarts": 2, "latent": None}
    one, two = (cluster(table, **settings) for table in ("c", corpus))
    assert two.labels.tolist() == one.labels.tolist()
    assert two.documents.path == one.documents.path
    assert len(classify(open_corpus("c")).labels) == 60
    (batch,) = stream(corpus, **settings)
    assert len(batch.ids) == 60
    for other in (corpus[["body"]], corpus.shortened({"body": 3.0})):
        with pytest.raises(ValueError, match="a recipe takes a corpus with the views"):
            cluster(other, k=2)


def test_sentence_vectors_are_not_made_for_a_corpus(here):
    write_table(documents(), here / "d.csv")
    with pytest.raises(ValueError, match=r"view 'm': no sentence vectors .*'COLUMN:vector'"):
        ingest("d.csv", "c", views={"m": "body:embed"})
    done = CliRunner().invoke(main, ["ingest", "d.csv", "--out", "c", "--encoder", "x"])
    assert "coem ingest takes no --encoder: make the vectors a column" in done.output


@pytest.mark.parametrize(
    ("name", "value"), [("views", ["body"]), ("text", [3]), ("min_df", "2"), (None, [])]
)
def test_forged_settings_of_an_ingest_are_refused(name, value, tmp_path):
    table = pa.table({"body": ["cat dog", "dog ship", "ship cat"] * 4})
    parquet.write_table(table, tmp_path / "a.parquet")
    corpus = ingest(tmp_path / "a.parquet", out=tmp_path / "c", text="body", id="none")
    path = corpus.path / "corpus.json"
    told = json.loads(path.read_text())
    settings = told["ingests"][0]["settings"]
    told["ingests"][0]["settings"] = value if name is None else settings | {name: value}
    path.write_text(json.dumps(told))
    for use in (cluster, segment):
        with pytest.raises(ValueError, match=r"corpus.json has settings that no ingest writes"):
            use(corpus.path, k=2)
