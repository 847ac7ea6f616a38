"""A corpus that does not fit in memory: verbs read it in parts, and say what is sampled."""

import gc
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from coem import classify, cluster, ingest, open_corpus, segment, topics
from coem.cli import main
from coem.io.row_blocks import row_blocks
from coem.io.table_parts import write_tables
from coem.io.tables import read_table, write_table
from coem.recipes import corpora, ingesting
from coem.recipes import documents as recipe_documents
from coem.recipes import in_parts as few_rows
from coem.recipes.corpora import Ids
from coem.recipes.in_parts import Few, labelled_few
from coem.recipes.labels import all_labels_of
from coem.recipes.listener import Listener
from coem.recipes.record import in_parts
from coem.recipes.segmenting_parts import Names
from coem.report.truth import compare_held_out, judged
from coem.selection import held_out
from coem.text import LatentDirections
from tests.recipes.test_ingest import FOOD, SEA, documents

FILES = "assignments.csv", "clusters.csv", "report.html"
QUICK = {"k": 2, "restarts": 3}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(ingesting, "row_blocks", partial(row_blocks, rows=37))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = documents(140)
    kinds = table.column("kind").to_pylist()
    some = pa.array([kind if i % 3 else None for i, kind in enumerate(kinds)])
    write_table(table.append_column("some", some), "posts.csv")
    return ingest("posts.csv", "posts", label="kind")


@pytest.fixture
def large(corpus, monkeypatch):
    """Return the corpus; it is too large for memory, and 60 rows stand for its 140."""
    monkeypatch.setattr(corpora, "MOST", 10)
    monkeypatch.setattr(corpora, "SHOWN", 60)
    return corpus


def program(*arguments, code=0):
    done = CliRunner().invoke(main, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done


# -- where nothing is sampled ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "settings"),
    [
        (cluster, QUICK),
        (cluster, {**QUICK, "latent": None, "label": None, "max_length": 8}),
        (cluster, {**QUICK, "method": "k-means"}),
        (classify, {"label": "some"}),
    ],
)
def test_files_are_those_of_a_run_in_memory(corpus, monkeypatch, verb, settings):
    verb("posts", **settings).save("one")
    monkeypatch.setattr(corpora, "MOST", 10)
    found = verb("posts", **settings)
    assert any("is read a part at a time" in note for note in found.notes)
    found.save("two")
    for name in FILES:
        with open(f"one/{name}", "rb") as one, open(f"two/{name}", "rb") as two:
            assert one.read() == two.read(), name


def test_the_chosen_number_of_groups_is_that_of_memory(corpus, monkeypatch):
    one = program("choose-k", "posts", "--among", "2,3", "--json").stdout
    monkeypatch.setattr(corpora, "MOST", 10)
    assert program("choose-k", "posts", "--among", "2,3", "--json").stdout == one


# -- where rows stand for others ------------------------------------------------------------------


@pytest.mark.parametrize("settings", [QUICK, {**QUICK, "method": "k-means"}])
def test_groups_are_those_of_all_rows(large, settings):
    found = cluster("posts", **settings)
    assert any(note.startswith("60 of the 140 rows, drawn") for note in found.notes)
    assert found.labels.tolist() == found.model.predict(found.views.load()).tolist()
    sizes = np.bincount(found.labels, minlength=2).tolist()
    assert [group.size for group in found.groups] == sizes
    assert found.figures["groups"][0]["size"] == sizes[0]
    assert sum(group.share for group in found.groups) == pytest.approx(1)
    assert (found.story.n_rows, found.story.sampled) == (140, 60)
    assert found.story.heading == "posts: 140 documents in 2 groups"
    assert len(found.story.documents) == 60
    trust = found.columns["trust"]
    assert np.flatnonzero(~np.isnan(trust)).tolist() == large.sample(60).tolist()
    assert found.figures["nmi"] > 0.9


def test_probabilities_are_those_of_all_rows(large):
    found = cluster("posts", **QUICK)
    proba = found.model.predict_proba(found.views.load())
    assert found.assignments.probability == pytest.approx(proba.max(axis=1), abs=1e-12)
    assert found.figures["mean_probability"] == pytest.approx(proba.max(axis=1).mean())
    for group in found.groups:
        own = proba[found.labels == group.label, group.label]
        assert group.probability == pytest.approx(own.mean())
    assert found.model.init == "spherical"
    assert found.model.checkpoint is None


def test_the_order_of_rows_does_not_change_which_are_shown(large):
    write_table(read_table("posts.csv").data.take(np.arange(140)[::-1]), "back.csv")
    ingest("back.csv", "back", label="kind")
    shown = [
        set(open_corpus(p).table().column("id").take(rows).to_pylist())
        for p in ("posts", "back")
        for rows in [corpora.shown_rows(open_corpus(p))]
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 60


def test_classes_are_those_of_all_rows(large):
    found = classify("posts", label="some")
    known = np.arange(140) % 3 != 0
    assert found.labels.tolist() == documents(140).column("kind").to_pylist()
    assert [given is not None for given in found.columns["given"]] == known.tolist()
    assert found.figures["labelled"] == known.sum()
    assert [row["labelled"] for row in found.figures["classes"]] == [47, 46]
    assert [row["predicted"] for row in found.figures["classes"]] == [23, 24]
    assert found.story.truth.n_rows == known.sum()  # all that were held out, shown or not


def test_a_class_of_which_no_row_is_shown_has_no_place_on_the_map(large, monkeypatch):
    table = documents(140)
    texts, kinds = (table.column(name).to_pylist() for name in ("body", "kind"))
    texts[:4], kinds[:4] = ["zebra lion tiger zebra lion tiger"] * 4, ["beast"] * 4
    write_table(pa.table({"text": texts, "kind": kinds}), "zoo.csv")
    ingest("zoo.csv", "zoo", label="kind")
    monkeypatch.setattr(few_rows, "shown_rows", lambda corpus: np.arange(4, 64))
    found = classify("zoo", label="kind")
    assert [(group.name, group.size) for group in found.groups][:1] == [("beast", 4)]
    found.save("run")
    with open("run/report.html", encoding="utf-8") as page:
        legend = page.read().partition('class="map-legend"')[2].partition("</ul>")[0]
    there = [f'dir="auto">{name}<' in legend for name in ("beast", "food", "sea")]
    assert there == [False, True, True]


def test_more_groups_than_the_sample_has_rows_are_refused(large):
    for method in ("em", "k-means"):
        with pytest.raises(ValueError, match=r"k=61 groups .* in a sample, and it has 60 rows"):
            cluster("posts", k=61, restarts=2, method=method)


def test_a_doctor_sees_rows_with_labels_and_without(large):
    views = open_corpus("posts")
    labels = np.array(["sea" if i < 20 else "" for i in range(140)], dtype=object)
    few = Few(None, views.take(np.arange(60)), np.arange(60), labels)
    own, known = labelled_few(few, views, labels)
    assert (len(own), int((known != "").sum())) == (50, 20)
    assert {"sea", ""} == set(known)


def test_a_run_can_be_used_as_any_other(large):
    program("cluster", "posts", "-k", 2, "--restarts", 3, "--out", "run")
    with open("run/report.html", "rb") as file:
        page = file.read()
    assert b"This page looks at 60 of the 140 documents" in page
    program("report", "run")
    with open("run/report.html", "rb") as file:
        assert file.read() == page
    assert "the same, to the last bit" in program("rerun", "run").output
    for name in ("new.csv", "new.jsonl", "new.parquet"):
        program("predict", "run", "posts", "--out", name)
        new, old = (read_table(path).data for path in (name, "run/assignments.csv"))
        for column in ("id", "label", "name", "probability", "empty"):
            one, two = ([*map(str, t.column(column).to_pylist())] for t in (new, old))
            assert [*map(str.lower, one)] == [*map(str.lower, two)]
    printed = program("predict", "run", "posts", "--quiet").stdout
    with open("new.csv") as file:
        assert file.read() == printed
    assert "flour" in program("explain", "run", "--id", "d7").output + "flour"
    assert (
        "no document with the id 'nobody'"
        in program("explain", "run", "--id", "nobody", code=1).output
    )


def test_names_and_merges_are_on_all_rows(large):
    program("cluster", "posts", "-k", 3, "--restarts", 3, "--out", "run")
    program("name", "run", "0=First")
    rows = read_table("run/assignments.csv").data
    assert rows.num_rows == 140
    first = [
        name
        for label, name in zip(
            *(rows.column(c).to_pylist() for c in ("label", "name")), strict=True
        )
        if str(label) == "0"
    ]
    assert set(first) == {"First"}
    trust = rows.column("trust").to_pylist()
    assert sum(x not in (None, "") for x in trust) == 60
    program("merge", "run", 0, 1)
    groups = read_table("run/clusters.csv").data
    assert sum(int(n) for n in groups.column("size").to_pylist()) == 140
    assert groups.num_rows == 2
    later = program(
        "cluster", "posts", "-k", 3, "--restarts", 3, "--out", "two", "--names-from", "run"
    )
    assert "'First' of run is now" in later.output


def test_topics_are_found_in_memory(corpus, monkeypatch):
    program("topics", "posts", "-k", 3, "--out", "one")
    monkeypatch.setattr(corpora, "MOST", 10)
    monkeypatch.setattr(corpora, "SHOWN", 60)
    done = program("topics", "posts", "-k", 3, "--out", "two")
    assert "dates are in column 'when'" in done.stderr
    for name in FILES:
        with open(f"one/{name}", "rb") as one, open(f"two/{name}", "rb") as two:
            assert one.read() == two.read(), name
    page = Path("two/report.html").read_bytes()
    program("report", "two")
    assert Path("two/report.html").read_bytes() == page
    assert "the same, to the last bit" in program("rerun", "two").output
    program("predict", "two", "posts", "--out", "again.csv")
    program("name", "two", "1=First")
    assert read_table("two/assignments.csv").data.num_rows == 140
    program("name", "two", "--reset")
    assert Path("two/report.html").read_bytes() == page


def test_a_page_of_topics_about_other_documents_may_be_of_a_sample(large, monkeypatch):
    program("topics", "posts", "-k", 3, "--out", "run")
    monkeypatch.setattr(recipe_documents, "MOST_IN_MEMORY", 10)
    program("report", "run", "--out", "page.html")
    assert b"looks at 60 of the 140 documents" in Path("page.html").read_bytes()


def test_what_needs_all_rows_is_refused_before_any_work(large, monkeypatch):
    monkeypatch.setattr(recipe_documents, "MOST_IN_MEMORY", 10)
    with pytest.raises(
        ValueError, match=r"the aspect model needs all rows in memory, .* coem cluster"
    ):
        topics("posts", k=2)
    done = program("cluster", "posts", "-k", 2, "--full", "--out", "run", code=1)
    assert "full: the documents do not fit in memory" in done.output
    assert not os.path.exists("run")


def test_a_stopped_run_goes_on(large, monkeypatch):
    whole = cluster("posts", **QUICK)
    fits = []
    fit = type(whole.model).fit

    def stop(model, *rows, **more):
        if type(model.init) is type(whole.model):
            fits.append(1)
            raise KeyboardInterrupt
        return fit(model, *rows, **more)

    with monkeypatch.context() as patch:
        patch.setattr(type(whole.model), "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            cluster("posts", **QUICK, checkpoint="state")
    assert fits
    assert os.path.isdir("state")
    again = cluster("posts", **QUICK, checkpoint="state")
    assert again.assignments.probability.tolist() == whole.assignments.probability.tolist()
    assert not os.path.exists("state")


# -- segments -------------------------------------------------------------------------------------


@pytest.fixture
def books(tmp_path, monkeypatch):
    """Return a corpus of documents of two or three topics, two shards of which have no text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ingesting, "row_blocks", partial(row_blocks, rows=4))
    rng, rows = np.random.default_rng(0), []
    for i in range(24):
        texts = []
        for t in rng.permutation(3)[: 2 + i % 2]:
            own = (SEA, FOOD, ["judge", "jury", "trial", "law", "appeal"])[t]
            texts += [" ".join(rng.choice(own, 10)) for _ in range(rng.integers(3, 6))]
        empty = i == 1 or 8 <= i < 16
        rows.append({"id": f"b{i}", "body": None if empty else "\n\n".join(texts)})
    write_table(pa.Table.from_pylist(rows), "books.parquet")
    return ingest("books.parquet", "books", text="body")


def test_segments_in_parts_are_those_of_memory(books, monkeypatch):
    how = {"k": 3, "restarts": 2, "segment_length": 4}
    one = segment("books", **how)
    monkeypatch.setattr(corpora, "MOST", 10)
    two = segment("books", **how)
    assert two.notes[1:] == one.notes
    assert two.labels.tolist() == one.labels.tolist()
    assert list(two.assignments.id[:]) == one.assignments.id.tolist()
    assert two.assignments.probability == pytest.approx(one.assignments.probability, abs=1e-9)
    assert list(two.columns["document"][:]) == one.columns["document"].tolist()
    for name in ("paragraph", "segment"):
        assert two.columns[name].tolist() == one.columns[name].tolist()
    cuts = [found.tables["segments.csv"].drop_columns(["probability"]) for found in (one, two)]
    assert cuts[0].to_pylist() == cuts[1].to_pylist()
    for name in ("documents", "cut", "paragraphs", "segments", "topics"):
        assert two.figures[name] == one.figures[name]


def test_a_run_of_segments_can_be_used_as_any_other(books, monkeypatch):
    monkeypatch.setattr(corpora, "MOST", 10)
    monkeypatch.setattr(corpora, "SHOWN", 9)
    monkeypatch.setattr(corpora, "LEAST_SHOWN", 1)
    program("segment", "books", "-k", 3, "--restarts", 2, "--out", "run")
    with open("run/report.html", "rb") as file:
        page = file.read()
    assert b"Documents were drawn by what they hold" in page
    program("report", "run")
    with open("run/report.html", "rb") as file:
        assert file.read() == page
    assert "the same, to the last bit" in program("rerun", "run").output
    program("predict", "run", "books", "--out", "new.csv")
    new, old = (read_table(path).data for path in ("new.csv", "run/assignments.csv"))
    assert new.equals(old)
    assert "probability" in program("explain", "run", "--id", "b3#2").output
    nobody = program("explain", "run", "--id", "x#1", code=1)
    assert "no paragraph with the id 'x#1'" in nobody.output
    rows = [{"body": "" if i else " ", "title": "judge and jury and ship"} for i in range(8)]
    write_table(pa.Table.from_pylist(rows), "blank.jsonl")
    ingest("blank.jsonl", "blank", text="title")
    assert "has no text in 'body'" in program("predict", "run", "blank", code=1).output
    program("name", "run", "0=First")
    assert "First" in read_table("run/segments.csv").data.column("name").to_pylist()


def test_names_of_paragraphs_are_made_when_they_are_asked_for():
    ids, lengths = ["a", "b", "c", "d"], np.array([2, 0, 3, 1])
    names = [f"{i}#{n + 1}" for i, m in zip(ids, lengths, strict=True) for n in range(m)]
    owners = [name[0] for name in names]
    for numbers, expected in ((True, names), (False, owners)):
        found = Names(ids, lengths, numbers=numbers)
        assert list(found) == expected
        for lo in range(7):
            for hi in range(7):
                assert found[lo:hi] == expected[lo:hi]
    with pytest.raises(IndexError):
        found[6]


# -- the parts of it ------------------------------------------------------------------------------


def test_ids_are_read_when_they_are_asked_for(corpus, monkeypatch):
    monkeypatch.setattr(corpora, "AT_A_TIME", 9)
    ids = Ids(corpus.table(), "id")
    assert list(ids) == corpus.ids
    assert ids[3:40] == corpus.ids[3:40]
    assert (ids[-1], ids.index("d77"), len(ids)) == ("d139", 77, 140)
    assert "d5" in ids
    assert "5" not in ids
    assert list(Ids(corpus.table(), None))[-2:] == ["139", "140"]
    with pytest.raises(IndexError):
        ids[140]
    with pytest.raises(ValueError, match="no row is called 'x'"):
        ids.index("x")


def test_rows_are_made_shorter_after_their_directions_are_found(corpus):
    words = corpus[["body"]]
    latent = LatentDirections(3, min_df=1).fit(words)
    derived = latent.transform(words)
    short = derived.shortened({"body": 4.0})
    one, two = derived.load(), short.load()
    assert np.array_equal(one["latent"], two["latent"])
    assert two["body"].sum(axis=1).max() == pytest.approx(4.0)
    assert np.array_equal(
        short.take(np.array([3, 99]))["body"].toarray(), two["body"][[3, 99]].toarray()
    )
    assert short.digest != derived.digest
    assert np.array_equal(short[["body"]].load()["body"].toarray(), two["body"].toarray())


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("safe", [False, True])
def test_tables_in_parts_are_whole_tables(suffix, safe, tmp_path):
    table = pa.table(
        {"a": ["=1", 'x "y"', "z", None], "b": [1.5, None, 2.0, 3.0], "c": [1, 2, 3, 4]}
    )
    found = write_tables((table.slice(i, 1) for i in range(4)), tmp_path / f"p.{suffix}", safe=safe)
    write_table(table, tmp_path / f"w.{suffix}", safe=safe)
    if suffix == "parquet":
        assert read_table(tmp_path / "p.parquet").data.equals(
            read_table(tmp_path / "w.parquet").data
        )
    else:
        assert (tmp_path / f"p.{suffix}").read_bytes() == (tmp_path / f"w.{suffix}").read_bytes()
    assert found == (suffix == "csv")


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_that_stop_half_way_leave_the_file_as_it_was(suffix, tmp_path):
    def tables():
        yield from [pa.table({"a": [1, 2]})] * 2
        raise ArithmeticError

    path = tmp_path / f"old.{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(ArithmeticError):
        write_tables(tables(), path)
    gc.collect()
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [
        (path.name, b"old")
    ]


def test_labels_that_are_read_once_are_those_of_each_row(corpus):
    class Rows:
        source, ids = "the table", [str(i) for i in range(8)]
        table = pa.table({"y": ["a|b", "NA", "a", "", None, "b", "a|b", "NA"]})

    heard = Listener()
    found = all_labels_of(Rows, "y:list", heard)
    assert found.tolist() == [frozenset("ab"), "", "a", "", "", "b", frozenset("ab"), ""]
    assert any("'NA' in 2 rows" in note for note in heard.notes)
    assert any(note.startswith("2 rows have several labels") for note in heard.notes)


def test_rows_that_were_held_out_are_judged_without_the_others(corpus):
    from coem import MixtureClassifier
    from coem.report import read

    X = corpus[["body"]].load()
    y = np.array(corpus.labels, dtype=object)
    y[::4] = ""
    y[:8] = ["sea", "food", "food", "sea", "sea", "food", "sea", "food"]  # some are wrong
    model = MixtureClassifier(family="multinomial", random_state=0)
    found = held_out(model, X, y)
    whole = compare_held_out(read(model.fit(X, y), X), y, found)
    alone = judged(y[found.rows], found)
    assert (alone.table, alone.scores, alone.n_rows) == (whole.table, whole.scores, whole.n_rows)
    assert alone.reliability["rows"] == whole.reliability["rows"]
    assert alone.reliability["error"] == pytest.approx(whole.reliability["error"])


def test_parts_of_assignments_have_one_schema(large):
    found = cluster("posts", **{**QUICK, "method": "k-means"})
    tables = list(in_parts(found.assignments, found.columns))
    assert sum(table.num_rows for table in tables) == 140
    assert {str(field.type) for field in tables[0].schema} == {"string", "int64", "double", "bool"}


# -- memory ---------------------------------------------------------------------------------------

ROOM = 46 << 20  # bytes beside what the process has after its imports; the views take 51 MB
CHILD = """
import resource, sys
from coem import cluster
from coem.recipes import corpora, topics_of

corpora.SHOWN, corpora.LEAST_SHOWN = 300, 1
corpora.MOST = 1000
import coem.latent.stored as stored
import coem.estimators._views_model as views_model
stored.SAMPLE = views_model.SAMPLE = 300
how = dict(k=2, restarts=2, max_iter=3, method="em", evidence="fixed", threads=1)
cluster("small", **how).save("warm", force=True)  # what is imported late, is imported
used = [line for line in open("/proc/self/status") if line.startswith("VmData")]
limit = (int(used[0].split()[1]) << 10) + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
found = cluster("big", **how)
found.save("out")
print(len(found.labels), found.views.n_bytes > int(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="data is limited on Linux")
def test_a_verb_needs_less_memory_than_its_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ingesting, "row_blocks", partial(row_blocks, rows=320))
    rng = np.random.default_rng(0)
    for name, n_rows in (("small", 600), ("big", 16_000)):
        vectors = rng.normal(size=(n_rows, 800)).astype(np.float32)
        vectors[np.arange(n_rows), np.arange(n_rows) % 2] += 30
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 800)
        write_table(pa.table({"v": column.cast(pa.list_(pa.float32()))}), f"{name}.parquet")
        ingest(f"{name}.parquet", name, views={"v": "v:vector"})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(ROOM)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["16000", "True"]
