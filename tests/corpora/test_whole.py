"""What needs all rows in memory loads a corpus, or says that it is too large."""

import numpy as np
import pytest

import coem.row_store as module
from coem import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    TrafficModel,
)
from coem.selection import choose_k, doctor, stability
from coem.views import Views
from tests.corpora.stores import K, groups, stored, views_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def corpus(tmp_path):
    return stored(tmp_path / "corpus", views_of("words"))


MODELS = {
    "AspectModel": lambda: AspectModel(2, max_iter=3, random_state=0),
    "MultiViewAgglomerative": lambda: MultiViewAgglomerative(3),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_small_corpus_is_loaded_and_a_large_one_refused(corpus, monkeypatch, name):
    one, other = (MODELS[name]().fit(X) for X in (corpus.load()["words"], corpus))
    labels = "labels_" if hasattr(one, "labels_") else "x_given_h_"
    np.testing.assert_array_equal(getattr(other, labels), getattr(one, labels))
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 1000)
    with pytest.raises(ValueError, match=rf"{name} needs all rows in memory.*GB.*sample"):
        MODELS[name]().fit(corpus)


def test_a_model_of_counts_takes_one_view(tmp_path):
    corpus = stored(tmp_path / "two", views_of("words", "marks"))
    with pytest.raises(ValueError, match=r"AspectModel takes one view.*corpus\[\['words'\]\]"):
        AspectModel(2).fit(corpus)
    assert AspectModel(2, max_iter=2, random_state=0).fit(corpus[["marks"]]).kl_ > 0


def test_traffic_of_a_corpus(tmp_path, monkeypatch):
    counts = views_of("words")["words"][:30]
    corpus = stored(tmp_path / "square", Views(flow=counts), (0, 10, 30))
    assert TrafficModel(2, max_iter=2, random_state=0).fit(corpus).alpha_.shape == (2, 30)
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 1000)
    with pytest.raises(ValueError, match="TrafficModel needs all rows in memory"):
        TrafficModel(2).fit(corpus)


def test_functions_of_selection_load_a_corpus_or_refuse_it(corpus, monkeypatch):
    model = MixtureClusterer(K, max_iter=2, tol=0, random_state=0)
    one, other = (stability(model, X, n_runs=2, random_state=0) for X in (corpus.load(), corpus))
    np.testing.assert_array_equal(one.labels, other.labels)
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 1000)
    y = np.where(np.arange(len(corpus)) % 5 == 0, groups(), -1)
    for call in (
        lambda: stability(model, corpus),
        lambda: choose_k(model, corpus),
        lambda: doctor(MixtureClassifier(), corpus, y),
    ):
        with pytest.raises(ValueError, match=r"needs all rows in memory.*sample"):
            call()
