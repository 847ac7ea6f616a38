"""Encoders by name, and the store of their vectors."""

import json
import multiprocessing
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

import coem
from coem.text import Embed, NamedEncoder, TextViews, _store
from coem.text import embed as embedding
from coem.text.encoders import PROBES, fingerprint, full_name
from tests.encoders import save_tiny

WORDS = [["ship", "sail", "wave"], ["oven", "bread", "salt"]]
TEXTS = ["ship sail", None, "bread salt", "  ", "wave ship ship", "bread salt"]


@pytest.fixture
def tiny(tmp_path):
    return save_tiny(tmp_path / "tiny", WORDS)


class Transformer:
    """The face of `sentence_transformers.SentenceTransformer` that coem uses, and no more."""

    def __init__(self, name, *, trust_remote_code):
        assert trust_remote_code is False
        if "none" in name:
            raise OSError("no route to the hub\nand more lines")
        self.name = name

    def encode(self, texts, *, show_progress_bar, convert_to_numpy):
        assert not show_progress_bar
        assert convert_to_numpy
        return np.array([[len(text), text.count("e"), 1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def transformers(monkeypatch):
    """A stand-in for sentence-transformers, which needs torch and is not installed for tests."""
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Transformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.fixture
def static(monkeypatch):
    """A stand-in for model2vec where names are asked for and no model is loaded."""
    monkeypatch.setitem(sys.modules, "model2vec", ModuleType("model2vec"))


# -- names -----------------------------------------------------------------------------------------


def test_a_folder_says_whose_it_is(tiny, tmp_path, monkeypatch, transformers):
    monkeypatch.chdir(tmp_path)
    assert NamedEncoder("tiny").name == f"model2vec:{tiny}"
    assert full_name("model2vec:./tiny") == f"model2vec:{tiny}"
    (tiny / "modules.json").unlink()  # older versions wrote none
    assert full_name(str(tiny)) == f"model2vec:{tiny}"
    deep = tmp_path / "deep"
    deep.mkdir()
    (deep / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert full_name("deep") == f"sentence-transformers:{deep}"
    parts = [{"type": "sentence_transformers.models.Transformer"}]
    (deep / "modules.json").write_text(json.dumps(parts))
    assert full_name("deep") == f"sentence-transformers:{deep}"
    (deep / "modules.json").write_text(json.dumps([*parts, {"type": "own.Layer"}]))
    with pytest.raises(ValueError, match=r"code of its own \(own\.Layer\), which is not run"):
        full_name("deep")


def test_other_names_are_models_of_one_library(transformers, static):
    assert full_name("minishlab/potion-base-8M") == "model2vec:minishlab/potion-base-8M"
    assert full_name("all-MiniLM-L6-v2") == "sentence-transformers:all-MiniLM-L6-v2"
    assert full_name("me/mine") == "sentence-transformers:me/mine"
    assert full_name("model2vec:me/mine") == "model2vec:me/mine"
    assert full_name("model2vec:minishlab/potion-base-8M") == "model2vec:minishlab/potion-base-8M"


def test_a_missing_library_is_said_with_the_install_line(monkeypatch, tiny):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    line = r"pip install 'coem\[sentence-transformers\]'"
    with pytest.raises(ImportError, match=rf"{line}, or write model2vec:me/mine"):
        NamedEncoder("me/mine")
    with pytest.raises(ImportError, match=rf"{line}$"):
        NamedEncoder("sentence-transformers:me/mine")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ImportError, match=r"needs model2vec: pip install 'coem\[model2vec\]'$"):
        NamedEncoder(str(tiny))


# -- vectors ---------------------------------------------------------------------------------------


def test_the_vectors_are_those_of_the_library(tiny):
    StaticModel = pytest.importorskip("model2vec").StaticModel

    encoder = NamedEncoder(str(tiny))
    X = TextViews({"m": Embed("text", encoder)}).fit_transform({"text": TEXTS})["m"]
    there = [0, 2, 4, 5]
    expected = StaticModel.from_pretrained(tiny).encode([TEXTS[i] for i in there])
    np.testing.assert_array_equal(X[there], expected)
    assert np.isnan(X[[1, 3]]).all()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).probe, encoder.probe)


def test_sentence_transformers_is_asked_for_arrays_without_a_bar(transformers):
    encoder = NamedEncoder("all-tiny")
    X = TextViews({"m": Embed("text", encoder)}).fit_transform({"text": ["see", "me"]})["m"]
    assert X.tolist() == [[3, 2, 1], [2, 1, 1]]
    with pytest.raises(ValueError, match=r"not a folder, .* no route to the hub; check the name"):
        NamedEncoder("none-of-it").encode(["a"])


def test_texts_are_encoded_once_and_in_batches(monkeypatch):
    monkeypatch.setattr(embedding, "BATCH", 2)
    asked, seen = [], []

    def encode(texts):
        asked.append(texts)
        return [[len(text), 1.0] for text in texts]

    with embedding.watch_encoding(lambda done, total: seen.append((done, total))):
        X = Embed("text", encode)(["a", "bb", "a", "ccc", None, "bb"], "m")
    assert asked == [["a", "bb"], ["ccc"]]
    assert seen == [(2, 3), (3, 3)]
    np.testing.assert_array_equal(X[:, 0], [1, 2, 1, 3, np.nan, 2])
    wide = Embed("text", lambda texts: np.ones((len(texts), len(texts))))
    with pytest.raises(ValueError, match=r"view 'm': .* of 2 numbers, and then of 1"):
        wide(["a", "b", "c"], "m")


# -- the store -------------------------------------------------------------------------------------


def length(texts):
    return np.array([[len(text), 1.0, 2.0] for text in texts], dtype=np.float32)


def test_many_files_become_one_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "MANY", 3)
    embed = Embed("text", length, cache=tmp_path)
    counts = []
    for n in range(1, 8):
        embed(["x" * n], "m")
        counts.append(len(list(tmp_path.glob("*.npy"))))
    assert counts == [1, 2, 3, 1, 2, 3, 1]
    silent = Embed(
        "text", lambda texts: length(texts) if texts == list(PROBES) else 1 / 0, tmp_path
    )
    np.testing.assert_array_equal(
        silent(["x" * n for n in (7, 1, 3)], "m")[:, 0], [7, 1, 3]
    )  # all is known: nothing is encoded


def test_what_is_finished_stays_when_the_encoder_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "BATCH", len(PROBES) + 1)

    def fail(texts):
        if "five" in texts:
            raise KeyboardInterrupt
        return length(texts)

    with pytest.raises(KeyboardInterrupt):
        Embed("text", fail, tmp_path)(["one", "four", *map(str, range(6)), "five"], "m")
    assert [p.suffix for p in tmp_path.iterdir()] == [".npy", ".npy"]
    store = _store.Store(tmp_path, "m")
    kept = [_store.digest(text) in store for text in (*PROBES, "one", "four", "five")]
    assert kept == [*([True] * len(PROBES)), True, True, False]


def fill(folder, start):
    for n in range(start, start + 40):
        Embed("text", length, cache=folder)(["x" * (n % 50 + 1), "y" * (n + 1)], "m")


def test_two_processes_fill_one_store(tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "MANY", 5)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=fill, args=(tmp_path, start)) for start in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert not list(tmp_path.glob(".*"))
    store = _store.Store(tmp_path, "m")
    texts = ["y" * (n + 1) for n in range(60)]
    np.testing.assert_array_equal(store.take(list(map(_store.digest, texts)))[:, 0], range(1, 61))


@pytest.mark.parametrize("content", [b"", b"junk", "cut", "form"])
def test_a_damaged_file_is_named(tmp_path, content):
    Embed("text", length, cache=tmp_path)(["some", "texts"], "m")
    (path,) = tmp_path.iterdir()
    if content == "cut":
        content = path.read_bytes()[:-5]
    if content == "form":
        np.save(path, np.ones(3))
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"view 'm': {path} holds no vectors .*; delete it"):
        Embed("text", length, cache=tmp_path)(["some"], "m")


# -- model files -----------------------------------------------------------------------------------


def test_a_model_file_names_its_encoder_and_loads_none(tiny, tmp_path):
    table, path = {"text": ["ship sail", "bread salt"]}, tmp_path / "model.coem"
    encoder = NamedEncoder(str(tiny))
    model = TextViews({"m": Embed("text", encoder, probe=encoder.probe)}).fit(table)
    coem.save(model, path)
    loaded = coem.load(path)
    with pytest.raises(coem.ModelFileError, match=rf"its encoder \(model2vec:{tiny}\), .*fill="):
        loaded.transform(table)
    filled = coem.load(path, fill={"encoder": NamedEncoder(str(tiny))})
    np.testing.assert_array_equal(filled.transform(table)["m"], model.transform(table)["m"])
    name = coem.load(path, fill={"encoder": str(tiny)})
    with pytest.raises(ValueError, match="view 'm': the encoder must have a method encode"):
        name.transform(table)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"seed": 1}, "gives a known sentence another vector"), ({"width": 5}, "has 5 numbers")],
)
def test_another_model_under_the_same_name_is_refused(tiny, change, reason):
    first = NamedEncoder(str(tiny))
    embed = Embed("text", first, probe=first.probe)
    save_tiny(tiny, WORDS, **change)
    again = NamedEncoder(str(tiny))
    assert fingerprint(again.probe) != fingerprint(first.probe)
    with pytest.raises(ValueError, match=rf"view 'm': the encoder 'model2vec:.*{reason}"):
        Embed("text", again, probe=embed.probe)(["ship"], "m")


def test_another_model_that_knows_no_known_word_is_refused(tiny):
    save_tiny(tiny, WORDS, probed=())
    first = NamedEncoder(str(tiny))
    assert not first.probe.any()
    told = {"probe": first.probe, "files": first.files}
    save_tiny(tiny, WORDS, probed=(), seed=1)
    again = NamedEncoder(str(tiny))
    prints = {fingerprint(encoder.probe, encoder.files) for encoder in (first, again)}
    assert len(prints) == 2
    with pytest.raises(ValueError, match="is not the one of the fit: it has other files"):
        Embed("text", again, **told)(["ship"], "m")


def test_the_files_of_a_model_are_known_wherever_they_are(tiny, tmp_path):
    was = NamedEncoder(str(tiny)).files
    (tiny / "README.md").write_text("other words for people")
    tiny.rename(tmp_path / "moved")
    moved = tmp_path / "moved"
    assert NamedEncoder(str(moved)).files == was
    (moved / "config.json").write_text((moved / "config.json").read_text() + " ")
    assert NamedEncoder(str(moved)).files != was
    (moved / "config.json").write_text((moved / "config.json").read_text()[:-1])
    (moved / "tokenizer.json").rename(moved / "other.json")
    assert NamedEncoder(str(moved)).files != was


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_encoders_of_any_scale_are_told_apart(tmp_path, scale):
    probe = scale * np.array([[0.5, -0.25, 1.0], [0.0, 0.0, 0.0]])
    shifted = probe + scale * np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 0.0]])
    others = [2 * probe, probe[:, ::-1], shifted, probe * 0]
    assert len({fingerprint(p) for p in (probe, *others)}) == 5
    assert fingerprint(probe * (1 + 1e-6)) == fingerprint(probe)
    Embed("text", lambda texts: scale * length(texts), cache=tmp_path)(["some"], "m")
    Embed("text", lambda texts: scale * (1 + 1e-6) * length(texts), cache=tmp_path)(["a"], "m")
    with pytest.raises(ValueError, match="holds vectors of another encoder"):
        Embed("text", lambda texts: 1.1 * scale * length(texts), cache=tmp_path)(["a"], "m")
