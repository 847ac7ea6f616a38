"""What needs all rows in memory loads a corpus, or says that it is too large."""

import numpy as np
import pytest

import coem.estimators._sphere_fit as sphere_fit
import coem.latent.stored as stored_rows
import coem.row_store as module
from coem import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    SphericalKMeans,
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


def test_methods_that_need_all_rows_load_a_corpus(tmp_path, monkeypatch):
    views = views_of("words")
    corpus = stored(tmp_path / "corpus", views)
    one, other = (MixtureClassifier().fit(X, groups()) for X in (views, corpus))
    loo = one.leave_one_out(views, groups())
    np.testing.assert_allclose(other.leave_one_out(corpus, groups()), loo, atol=1e-5)
    model = MixtureClusterer(K, random_state=0, max_iter=2).fit(corpus)
    gains = [model.start_batches(X).gain_over_one(X) for X in (views, corpus)]
    np.testing.assert_array_equal(*gains)
    monkeypatch.setattr(module, "MOST_IN_MEMORY", 1000)
    with pytest.raises(ValueError, match="this method needs all rows in memory"):
        other.leave_one_out(corpus, groups())


@pytest.mark.parametrize("init", ["rows", "k-means++", "spherical"])
def test_more_components_than_the_sample_has_rows_are_refused(corpus, monkeypatch, init):
    monkeypatch.setattr(stored_rows, "SAMPLE", 40)
    monkeypatch.setattr(sphere_fit, "SAMPLE", 40)
    with pytest.raises(ValueError, match=r"sample of 40 of the 420 rows.* init='random'"):
        MixtureClusterer(60, init=init).fit(corpus)
    assert len(MixtureClusterer(60, init="random", max_iter=1, tol=0).fit(corpus).labels_) == 420
    with pytest.raises(ValueError, match=r"sample of 40 rows, too few for n_clusters=60"):
        SphericalKMeans(60).fit(corpus)
