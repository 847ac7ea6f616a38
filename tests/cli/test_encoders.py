"""Sentence vectors by the name of an encoder: a run and what is done with it, and bad input."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import coem as library
from coem.recipes import Listener
from coem.text.encoders import PROBES
from tests.encoders import save_tiny

from .conftest import TOPICS, posts, read_json, write_csv

VIEWS = ("--text", "body", "--view", "meaning=title+body:embed")
OUT = ("-k", "3", "--restarts", "2", "--out", "out")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COEM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.fixture
def tiny(here, cache):
    return save_tiny(here / "tiny", TOPICS.values())


@pytest.fixture
def run(table, tiny, coem):
    """A run with sentence vectors of the tiny model."""
    coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT)
    return table.parent / "out"


def encoded(monkeypatch):
    """Return a list that grows by the texts that models are asked for."""
    StaticModel = pytest.importorskip("model2vec").StaticModel

    asked, encode = [], StaticModel.encode

    def listen(self, texts, **how):
        asked.extend(texts)
        return encode(self, texts, **how)

    monkeypatch.setattr(StaticModel, "encode", listen)
    return asked


@pytest.mark.slow
def test_a_run_and_what_is_done_with_it(run, table, tiny, cache, coem, monkeypatch):
    told = read_json(run / "run.json")
    assert told["arguments"]["encoder"] == f"model2vec:{tiny}"
    assert told["arguments"]["views"] == {"meaning": "title+body:embed"}
    assert {"model2vec"} <= told["versions"].keys()
    assert str(tiny) not in (run / "report.html").read_text(encoding="utf-8")
    asked = encoded(monkeypatch)
    rows = posts()
    write_csv(table.parent / "new.csv", [rows[0], {**rows[1], "body": "", "title": ""}])
    lines = coem("predict", "out", "new.csv").stdout.splitlines()
    labels = [line.split(",")[1] for line in (run / "assignments.csv").read_text().splitlines()]
    assert lines[1].split(",")[1] == labels[1]
    assert lines[2].endswith("true")
    page = (run / "report.html").read_bytes()
    coem("report", "out")
    assert (run / "report.html").read_bytes() == page
    assert "the same, to the last bit" in coem("rerun", "out").stdout
    assert "(the vector as a whole)" in coem("explain", "out", "--id", "p3").stdout
    coem("name", "out", "0=Named")
    assert "Named" in (run / "clusters.csv").read_text(encoding="utf-8")
    assert not set(asked) - set(PROBES)  # all come from the store
    assert len(list(cache.iterdir())) == 1
    shutil.rmtree(cache)
    assert "the same, to the last bit" in coem("rerun", "out").stdout


def test_library_and_program_find_the_same(run, table, tiny):
    how = {"text": "body", "views": {"meaning": "title+body:embed"}, "encoder": tiny, "k": 3}
    found = library.cluster(str(table), **how, restarts=2)
    found.save("python")
    for name in ("model.coem", "assignments.csv", "report.html"):
        assert (run / name).read_bytes() == (run.parent / "python" / name).read_bytes()


def test_a_function_may_encode(table, coem, cache):
    def lengths(texts):
        return np.array([[text.count(word) for word in ("sh", "br", "ju")] for text in texts]) + 0.1

    views = {"meaning": "body:embed"}
    found = library.cluster(str(table), views=views, encoder=lengths, k=3, restarts=2)
    assert found.reader.views_["meaning"] == {"kind": "embed", "columns": ["body"]}
    found.save("out")
    assert not cache.exists()
    told = coem("rerun", "out", code=1).stderr
    assert "view 'meaning' was an object in Python; repeat the run there" in told
    told = coem("predict", "out", table, code=1).stderr
    assert "made by the encoder (function), and a model file loads none; name it with" in told


@pytest.mark.slow
def test_classes_sizes_and_vectors_alone(table, tiny, coem):
    views = ("--view", "m=body:embed", "--encoder", "tiny")
    rows = [{**row, "topic": row["topic"] if i < 30 else ""} for i, row in enumerate(posts())]
    write_csv(table.parent / "few.csv", rows)
    told = coem("classify", "few.csv", "--label", "topic", *views, "--out", "classes", "--json")
    assert json.loads(told.stdout)["accuracy"] > 0.9
    told = coem("choose-k", table, *views, "--among", "2,3", "--json")
    assert json.loads(told.stdout)["k"] in (2, 3)
    coem("cluster", table, *views, *OUT, "--method", "k-means", "--label", "topic")
    assert read_json("out/run.json")["result"]["nmi"] > 0.9
    assert posts()[0]["body"][:20] in (table.parent / "out/report.html").read_text("utf-8")


def test_a_cache_that_cannot_be_written_is_a_note(table, tiny, coem, monkeypatch):
    (table.parent / "file").write_text("in the way")
    monkeypatch.setenv("COEM_CACHE", str(table.parent / "file"))
    told = coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT).stderr
    assert "the vectors are not kept for another time" in told
    assert "COEM_CACHE can name another place" in told


def test_encoding_has_a_bar(table, tiny):
    class Seen(Listener):
        bars = ()

        def progress(self, what, total):
            self.bars = (*self.bars, (what, total))
            return super().progress(what, total)

    seen = Seen()
    views = {"m": "body:embed", "n": "title:embed"}
    library.cluster(str(table), views=views, encoder=tiny, k=3, restarts=2, listener=seen)
    assert seen.bars == (("batches of texts encoded", 2),)


# -- models ----------------------------------------------------------------------------------------


def test_a_model_file_alone_asks_for_its_encoder(run, table, tiny, coem):
    shutil.copy(run / "model.coem", "alone.coem")
    told = coem("predict", "alone.coem", table, code=1).stderr
    assert f"view 'meaning' was made by the encoder (model2vec:{tiny})" in told
    assert "name it with --encoder NAME" in told
    told = coem("serve", "alone.coem", code=1).stderr
    assert "name it with --encoder NAME" in told
    given = coem("predict", "alone.coem", table, "--encoder", "tiny").stdout
    assert given == coem("predict", "out", table).stdout


def test_a_model_that_moved_or_changed(run, table, tiny, coem):
    before = coem("predict", "out", table).stdout
    tiny.rename("moved")
    told = coem("predict", "out", table, code=1).stderr
    assert "is neither a folder" in told
    assert "if it has moved, name it with --encoder" in told
    assert coem("predict", "out", table, "--encoder", "moved").stdout == before
    save_tiny(tiny, TOPICS.values(), seed=1)
    told = coem("predict", "out", table, code=1).stderr
    assert f"the encoder 'model2vec:{tiny}' is not the one of the fit: it gives a known" in told
    assert "the encoder has changed" in coem("rerun", "out", code=1).stdout


def test_a_run_is_repeated_with_a_model_that_moved(run, tiny, coem, here):
    tiny.rename("moved")
    told = coem("rerun", "out", code=1).stderr
    assert "is neither a folder" in told
    assert "if it has moved, name it with --encoder" in told
    assert "the same, to the last bit" in coem("rerun", "out", "--encoder", "moved").stdout
    save_tiny(here / "other", TOPICS.values(), seed=1)
    told = coem("rerun", "out", "--encoder", "other", code=1).stderr
    assert "other' is not the one of the fit: it gives a known sentence another vector" in told


def test_an_encoder_for_a_run_without_vectors(finished, tiny, coem):
    told = coem("rerun", finished, "--encoder", "tiny", code=1).stderr
    assert "has no view that an encoder made; leave --encoder out" in told


def test_runs_with_one_model_at_two_places_are_ranked(run, table, tiny, coem, here):
    shutil.copytree(tiny, "copied")
    coem("cluster", table, *VIEWS, "--encoder", "copied", *OUT[:-1], "second")
    told = json.loads(coem("compare", "out", "second", "--json").stdout)
    assert [found["rank"] for found in told["runs"]] == [1, 1]
    save_tiny(here / "other", TOPICS.values(), seed=1)
    coem("cluster", table, *VIEWS, "--encoder", "other", *OUT[:-1], "third")
    told = json.loads(coem("compare", "out", "third", "--json").stdout)
    assert told["not_ranked"].startswith("The runs differ in vectors:")


def test_a_column_of_two_views_is_told_with_both(table, tiny, coem):
    told = coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT).stderr
    lines = [line for line in told.splitlines() if line.split()[:1] == ["body"]]
    assert len(lines) == 1
    assert "view 'text', text; view 'meaning', embed" in lines[0]


def test_another_model_that_knows_no_known_word(table, tiny, coem, cache):
    save_tiny(tiny, TOPICS.values(), probed=())
    coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT)
    save_tiny(tiny, TOPICS.values(), probed=(), seed=1)
    told = coem("predict", "out", table, code=1).stderr
    assert "is not the one of the fit: it has other files" in told
    coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT, "--force")
    assert len(list(cache.iterdir())) == 2


def test_a_model_that_cannot_be_told_from_others_keeps_no_vectors(table, tiny, coem, cache):
    from coem.text import NamedEncoder

    save_tiny(tiny, TOPICS.values(), probed=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NamedEncoder, "files", None)  # as of a model that is downloaded
        told = coem("cluster", table, *VIEWS, "--encoder", "tiny", *OUT).stderr
    assert "not kept for another time: the encoder gives all known sentences a vector of" in told
    assert not cache.exists()


def test_an_encoder_for_a_model_without_vectors(finished, tiny, coem):
    file = finished.parent / "posts.csv"
    told = coem("predict", finished, file, "--encoder", "tiny", code=1).stderr
    assert "has no view that an encoder made; leave --encoder out" in told


# -- bad input -------------------------------------------------------------------------------------

EMBED = ("--view", "m=body:embed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*EMBED], "view 'm': sentence vectors need an encoder; name a model with --encoder NAME"),
        (["--encoder", "tiny"], "no view for it; add one with --view meaning=COLUMN:embed"),
        ([*EMBED, "--encoder", "openai:ada"], "write the folder of a saved model, model2vec:NAME"),
        ([*EMBED, "--encoder", "./nowhere"], "'./nowhere' is neither a folder"),
        ([*EMBED, "--encoder", "a/b/c"], "'a/b/c' is neither a folder"),
        ([*EMBED, "--encoder", ""], "'' is neither a folder nor the name of a model"),
        ([*EMBED, "--encoder", "posts.csv"], "is a file; name the folder of a saved model"),
        ([*EMBED, "--encoder", "empty"], "empty' is not the folder of a model: it has no"),
        ([*EMBED, "--encoder", "broken"], "broken' cannot be loaded: "),
        ([*EMBED, "--encoder", "code"], "brings code of its own (mine.Layer), which is not run"),
        ([*EMBED, "--encoder", "all-tiny"], "pip install 'coem[sentence-transformers]', or write"),
        ([*EMBED, "--encoder", "minishlab/none"], "is not a folder, and cannot be downloaded: "),
        (["--view", "m=nobody:embed", "--encoder", "tiny"], "there is no column 'nobody'"),
        (["--view", "m=price:embed", "--encoder", "tiny"], "write --view NAME=price:number"),
        (["--view", "m=title+refs:list:embed", "--encoder", "tiny"], "there is no column"),
        (["--view", "m=blank:embed", "--encoder", "tiny"], "every row is missing"),
    ],
)
def test_bad_encoders(arguments, message, here, tiny, coem, monkeypatch):
    StaticModel = pytest.importorskip("model2vec").StaticModel

    write_csv(here / "posts.csv", [{**row, "blank": ""} for row in posts()])
    for name in ("empty", "code"):
        (here / name).mkdir()
    (here / "code" / "modules.json").write_text(json.dumps([{"type": "mine.Layer"}]))
    shutil.copytree(tiny, "broken")
    (here / "broken" / "model.safetensors").write_bytes(b"junk")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load = StaticModel.from_pretrained

    def without_network(place, **how):
        if "minishlab" in str(place):
            raise OSError("Cannot reach the hub.\nMore lines")
        return load(place, **how)

    monkeypatch.setattr(StaticModel, "from_pretrained", without_network)
    told = coem("cluster", "posts.csv", *arguments, *OUT, code=1).stderr
    assert message in told
    assert told.splitlines()[-1].startswith("coem: error: ")
    assert "={" not in told
    assert not (here / "out").exists()


def test_topics_take_no_vectors(table, coem):
    told = coem("topics", table, *EMBED, code=1).stderr
    assert "view 'm' is of kind 'embed', and topics are found in words or lists" in told
    told = coem("topics", table, "--encoder", "tiny", code=2).stderr
    assert "coem topics takes no --encoder: its model counts words" in told
    told = coem("segment", table, "--encoder", "tiny", code=2).stderr
    assert "coem segment takes no --encoder: it cuts by words" in told
    assert "--encoder" not in coem("topics", "--help").stdout
    Path("coem.toml").write_text('encoder = "tiny"\n', encoding="utf-8")
    coem("topics", table, "--text", "body", "-k", "2", "--config", "coem.toml", "--out", "found")
    Path("coem.toml").write_text('[topics]\nencoder = "tiny"\n', encoding="utf-8")
    told = coem("topics", table, "--config", "coem.toml", code=2).stderr
    assert "[topics] has no option 'encoder'" in told


@pytest.mark.parametrize("encoder", [7, ["tiny"]])
def test_what_is_no_encoder_in_python(table, encoder):
    with pytest.raises(TypeError, match="encoder must be the name of a model, an object with"):
        library.cluster(str(table), views={"m": "body:embed"}, encoder=encoder)
    with pytest.raises(ValueError, match=r"view 'm': .* write Embed\('body', encoder\)"):
        library.text.TextViews({"m": "body:embed"}).fit(posts())
