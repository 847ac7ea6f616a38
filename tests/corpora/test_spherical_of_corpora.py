"""Spherical k-means and latent directions: a corpus gives what rows in memory give."""

import numpy as np
import pytest

import coem.estimators._sphere_fit as sphere_fit
from coem import MixtureClusterer, SphericalKMeans
from coem.io import checkpoint
from coem.records import watch
from coem.text import LatentDirections
from tests.corpora.stores import K, N, stored, views_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def both(tmp_path):
    def make(*names):
        views = views_of(*names)
        return views, stored(tmp_path / "-".join(names), views)

    return make


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [K, 20])
@pytest.mark.parametrize("names", ["words", "unit", "words unit", "unit words", "words unit marks"])
def test_spherical_k_means_of_a_corpus(both, names, n_clusters, weighted):
    views, corpus = both(*names.split())
    weight = np.random.default_rng(0).integers(3, size=N).astype(float) if weighted else None
    # One run: of two that end alike, rounding decides which is the best, and so the numbers.
    settings = {"random_state": 1, "dtype": np.float64}
    one = SphericalKMeans(n_clusters, **settings).fit(views, sample_weight=weight)
    other = SphericalKMeans(n_clusters, **settings).fit(corpus, sample_weight=weight)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-12)
    assert other.n_iter_ == one.n_iter_
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_array_equal(other.view_labels_, one.view_labels_)
    assert [r.reseeded for r in other.history_] == [r.reseeded for r in one.history_]
    for view in names.split():
        for centres in ("cluster_centers_", "consensus_centers_"):
            mine, theirs = (getattr(model, centres)[view] for model in (one, other))
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    np.testing.assert_array_equal(other.predict(corpus), one.predict(views))
    np.testing.assert_allclose(other.transform(corpus), one.transform(views), atol=1e-7)
    assert other.score(corpus) == pytest.approx(one.score(views))


def test_concept_vectors_may_be_given(both):
    views, corpus = both("words", "unit")
    init = np.random.default_rng(0).standard_normal((K, 6))
    one, other = (SphericalKMeans(K, init=init).fit(X) for X in (views, corpus))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_array_equal(other.labels_, one.labels_)


def test_threads_give_the_same_bits(both):
    _, corpus = both("words", "unit")
    one, two = (SphericalKMeans(5, n_init=3, random_state=0, n_jobs=n).fit(corpus) for n in (1, 2))
    assert [r.objective for r in one.runs_] == [r.objective for r in two.runs_]
    np.testing.assert_array_equal(one.cluster_centers_["words"], two.cluster_centers_["words"])


@pytest.mark.parametrize("n_rounds", [2, 5])
@pytest.mark.parametrize("names", ["words", "unit words"])
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(
    both, tmp_path, monkeypatch, names, n_rounds
):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    _, corpus = both(*names.split())
    settings = {"n_init": 2, "max_iter": 4, "patience": None, "random_state": 0}
    truth = SphericalKMeans(20, **settings).fit(corpus)
    model = SphericalKMeans(20, checkpoint=tmp_path / "state", **settings)
    seen = []

    def look(record):
        seen.append(record)
        if len(seen) == n_rounds:
            raise InterruptedError

    with watch(look), pytest.raises(InterruptedError):
        model.fit(corpus)
    assert (tmp_path / "state" / "run-0.zip").exists()
    seen.append(None)
    with watch(look):
        again = model.fit(corpus)
    assert len(seen) == 1 + 2 * 4 + 1  # the round that was stopped was not kept
    np.testing.assert_array_equal(again.labels_, truth.labels_)
    for view in names.split():
        for centres in ("cluster_centers_", "consensus_centers_"):
            mine, theirs = (getattr(m, centres)[view] for m in (again, truth))
            np.testing.assert_array_equal(mine, theirs)
    assert [(r.objective, r.reseeded) for r in again.history_] == [
        (r.objective, r.reseeded) for r in truth.history_
    ]
    assert not (tmp_path / "state").exists()


def test_a_sample_for_the_start_has_rows_of_the_last_view(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sphere_fit, "SAMPLE", 40)
    views = views_of("words", "unit")
    views["unit"][60:] = np.nan
    corpus = stored(tmp_path / "corpus", views)
    model = SphericalKMeans(30, random_state=0, verbose=1).fit(corpus)
    assert model.n_start_rows_ == 40
    assert "starts are drawn from 40 of 420 rows" in capsys.readouterr().err
    with pytest.raises(ValueError, match="view 'unit' cannot fill n_clusters=80"):
        SphericalKMeans(80).fit(corpus)


# -- latent directions -------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["words", "words marks unit"])
def test_latent_directions_of_a_corpus(both, names):
    views, corpus = both(*names.split())
    settings = {"n_passes": 4, "oversampling": 8}
    one, other = (LatentDirections(5, **settings).fit(X) for X in (views, corpus))
    assert other.count_views_ == one.count_views_
    np.testing.assert_array_equal(other.words_, one.words_)
    np.testing.assert_allclose(other.idf_, one.idf_, rtol=1e-12)
    np.testing.assert_allclose(other.singular_values_, one.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(other.components_, one.components_, atol=2e-5)
    np.testing.assert_allclose(other.mean_, one.mean_, atol=1e-5)
    assert other.explained_share_ == pytest.approx(one.explained_share_, rel=1e-6)
    mine, theirs = other.transform(corpus), one.transform(views)
    np.testing.assert_allclose(mine.load()["latent"], theirs["latent"], atol=1e-4)
    again = LatentDirections(5, **settings).fit_transform(corpus)
    np.testing.assert_array_equal(again.load()["latent"], mine.load()["latent"])
    # The rows of a model do not depend on where they are.
    np.testing.assert_array_equal(mine.load()["latent"], other.transform(views)["latent"])


def test_threads_give_the_same_directions(both):
    _, corpus = both("words")
    one, two = (LatentDirections(5, n_passes=3, n_jobs=n).fit(corpus) for n in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("coupling", ["co-em", "joint"])
def test_words_and_their_directions_are_two_views_of_a_corpus(both, coupling):
    views, corpus = both("words")
    model = LatentDirections(5).fit(views)
    settings = {"coupling": coupling, "max_iter": 5, "tol": 0, "random_state": 0, "dtype": float}
    one, other = (
        MixtureClusterer(K, init="random", **settings).fit(model.transform(X))
        for X in (views, corpus)
    )
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_array_equal(other.predict(model.transform(corpus)), one.labels_)


def test_rows_that_are_no_counts_are_named(both):
    _, corpus = both("words")
    path = corpus.path / "shard-000002" / "0.data.npy"
    data = np.load(path)
    data[0] = -1
    np.save(path, data)
    with pytest.raises(ValueError, match=r"rows 91 to 299 of the corpus.*'words', row"):
        LatentDirections(2).fit(corpus)
    with pytest.raises(ValueError, match="no word occurs in min_df=400 rows"):
        LatentDirections(2, min_df=400).fit(corpus[:90])
