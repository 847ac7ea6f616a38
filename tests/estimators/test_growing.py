"""Components that are added to a fitted mixture: `start_batches` and `add_components`."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer, Views, load
from coem.families import Gaussian, VonMisesFisher
from coem.schedules import StepSize

K, N = 3, 120


def rows(seed=0, n=N, k=K + 2):
    """Return two views of counts in `k` groups, and the group of every row."""
    rng = np.random.default_rng(7)
    topics = rng.dirichlet(np.full(20, 0.2), size=(2, k))
    group, rng = np.arange(n) % k, np.random.default_rng(seed)
    title, body = (rng.poisson(15 * topics[v][group]).astype(float) for v in range(2))
    return Views(title=sp.csr_matrix(title), body=sp.csr_matrix(body)), group


VIEWS, GROUP = rows()
KNOWN, STRANGE = np.flatnonzero(GROUP < K), np.flatnonzero(GROUP >= K)

WAYS = {
    "co-em": {},
    "joint": {"coupling": "joint"},
    "per view": {"weights": "per_view"},
    "uniform": {"weights": "uniform"},
    "hard": {"posterior": "hard", "coupling": "joint"},
    "bernoulli": {"family": "bernoulli"},
    "rows given": {"step": StepSize(n_rows=500.0)},
}
way = pytest.mark.parametrize("name", WAYS)


def fitted(name="co-em"):
    return MixtureClusterer(K, random_state=0, **WAYS[name]).partial_fit(VIEWS[KNOWN])


def starts():
    """Return the component that every strange row starts."""
    return GROUP[STRANGE]  # K and K + 1, the next ones


def of_views(model, view):
    theta = model.theta_[view]
    return [np.array(p) for p in (theta if isinstance(theta, tuple) else (theta,))]


def tables(model):
    return [part for view in model.view_names_ for part in of_views(model, view)]


@way
def test_other_components_keep_their_numbers_and_their_parameters(name):
    model, before = fitted(name), fitted(name)
    model.add_components(VIEWS[STRANGE], starts())
    assert model.n_components == K + 2
    for view in VIEWS.names:
        for new, old in zip(of_views(model, view), of_views(before, view), strict=True):
            assert new.shape == (K + 2, *old.shape[1:])
            np.testing.assert_array_equal(new[:K], old)
    if name != "uniform":
        share = model.weights_[:K] / before.weights_
        np.testing.assert_allclose(share, share[0])


@way
def test_weights_sum_to_one(name):
    model = fitted(name).add_components(VIEWS[STRANGE], starts())
    assert model.weights_.shape == (K + 2,)
    np.testing.assert_allclose(model.weights_.sum(), 1)
    np.testing.assert_allclose(model.view_weights_.sum(axis=1), 1)


@way
def test_new_components_have_the_rows_that_they_start_from(name):
    model = fitted(name).add_components(VIEWS[STRANGE], starts())
    assert (model.predict(VIEWS[STRANGE]) == starts()).mean() > 0.9
    assert (model.predict(VIEWS[KNOWN]) == fitted(name).predict(VIEWS[KNOWN])).mean() > 0.95


@way
def test_a_component_without_rows_changes_nothing(name):
    model, before = fitted(name), fitted(name)
    start, weight = np.where(GROUP < K, -1, GROUP), np.where(GROUP < K, 1.0, 0.0)
    model.add_components(VIEWS, start, sample_weight=weight)
    proba = model.predict_proba(VIEWS[KNOWN])
    if name == "uniform":  # where every component has the same weight, whatever its rows
        assert model.weights_.tolist() == [1 / (K + 2)] * (K + 2)
        return
    assert model.weights_[K:].tolist() == [0, 0]
    np.testing.assert_allclose(proba[:, :K], before.predict_proba(VIEWS[KNOWN]), atol=1e-6)
    later = VIEWS[KNOWN][:20]
    model.partial_fit(later), before.partial_fit(later)
    proba = model.predict_proba(VIEWS[KNOWN])
    np.testing.assert_allclose(proba[:, :K], before.predict_proba(VIEWS[KNOWN]), atol=1e-6)


def test_the_order_of_the_rows_is_irrelevant():
    order = np.random.default_rng(1).permutation(len(STRANGE))
    one = fitted().add_components(VIEWS[STRANGE], starts())
    other = fitted().add_components(VIEWS[STRANGE[order]], starts()[order])
    for a, b in zip(tables(one), tables(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(one.weights_, other.weights_)


def test_a_weight_of_2_is_the_row_given_twice():
    twice = np.concatenate([STRANGE, STRANGE])
    one = fitted().add_components(VIEWS[STRANGE], starts(), np.full(len(STRANGE), 2.0))
    other = fitted().add_components(VIEWS[twice], np.tile(starts(), 2))
    for a, b in zip(tables(one), tables(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(one.weights_, other.weights_)


@way
def test_statistics_and_parameters_belong_together(name):
    """An M step on the running statistics gives the parameters of the new components."""
    model = fitted(name).add_components(VIEWS[STRANGE], starts())
    mixture, theta = model._mixture(), model._theta()
    for turn, stats in enumerate(model._stats.stats):
        theta = mixture.estimate(stats, theta, turn)
    again = MixtureClusterer()
    again.view_names_ = model.view_names_
    again.theta_ = dict(zip(model.view_names_, theta.of_views, strict=True))
    for found, own in zip(tables(again), tables(model), strict=True):
        np.testing.assert_allclose(found[K:], own[K:])
    assert model._stats.n_seen == len(KNOWN) + len(STRANGE)


@way
def test_two_at_once_are_one_after_the_other(name):
    both = fitted(name).add_components(VIEWS[STRANGE], starts())
    each = fitted(name)
    for component in (K, K + 1):
        own = STRANGE[starts() == component]
        each.add_components(VIEWS[own], np.full(len(own), component))
    for a, b in zip(tables(both), tables(each), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(both.weights_, each.weights_)


@way
def test_files_and_pickles_hold_a_grown_model(name, tmp_path):
    model = fitted(name).add_components(VIEWS[STRANGE], starts())
    model.save(tmp_path / "m.coem")
    read, pickled = load(tmp_path / "m.coem"), pickle.loads(pickle.dumps(model))
    expected = model.partial_fit(VIEWS[:30]).predict_proba(VIEWS)
    for again in (read, pickled):
        assert again.n_components == K + 2
        np.testing.assert_array_equal(again.partial_fit(VIEWS[:30]).predict_proba(VIEWS), expected)


def test_dense_families_grow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * 0.1 + 5 * np.eye(4)[np.arange(90) % 3]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for family, data in ((Gaussian("diag"), X), (Gaussian("full"), X), (VonMisesFisher(), unit)):
        model = MixtureClusterer(2, family=family, random_state=0)
        model.partial_fit(data[np.arange(90) % 3 < 2])
        new = data[np.arange(90) % 3 == 2]
        model.add_components(new, np.full(30, 2))
        assert (model.predict(new) == 2).all()


def test_components_that_share_statistics_cannot_grow():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = MixtureClusterer(2, family=Gaussian("tied"), random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="components share some of the statistics"):
        model.add_components(X[:5], np.full(5, 2))
    assert model.n_components == 2
    model.partial_fit(X)


def test_start_batches_is_the_first_batch_of_partial_fit():
    one = MixtureClusterer(K, random_state=0).fit(VIEWS[KNOWN]).start_batches(VIEWS[KNOWN])
    other = MixtureClusterer(K, random_state=0).partial_fit(VIEWS[KNOWN])
    for model in (one, other):
        model.partial_fit(VIEWS[STRANGE])
    np.testing.assert_array_equal(one.predict_proba(VIEWS), other.predict_proba(VIEWS))


def test_bad_starts_are_refused():
    model = fitted()
    for start, message in (
        ([K], "one for each of"),
        (np.full(len(STRANGE), 0.5), "whole numbers"),
        (np.full(len(STRANGE), K + 1), "from 3 on, without a gap"),
        (np.full(len(STRANGE), 0), "from 3 on"),
    ):
        with pytest.raises(ValueError, match=message):
            model.add_components(VIEWS[STRANGE], start)
    alone = MixtureClusterer(K, random_state=0).fit(VIEWS[KNOWN])
    with pytest.raises(ValueError, match="needs running statistics"):
        alone.add_components(VIEWS[STRANGE], starts())
    none = np.full(len(STRANGE), -1)
    assert fitted().add_components(VIEWS[STRANGE], none).n_components == K


def test_rows_of_a_new_kind_gain_nothing():
    model = fitted()
    gain = model.gain_over_one(VIEWS)
    assert gain.shape == (N, 2)
    assert gain[KNOWN].mean() > 0.2 > gain[STRANGE].mean()
    model.add_components(VIEWS[STRANGE], starts())
    assert model.gain_over_one(VIEWS)[STRANGE].mean() > 0.2
    with pytest.raises(ValueError, match="gain_over_one needs running statistics"):
        MixtureClusterer(K, random_state=0).fit(VIEWS[KNOWN]).gain_over_one(VIEWS)


def test_the_gain_of_an_empty_row_is_nan():
    empty = Views(title=sp.csr_matrix((1, 20)), body=VIEWS["body"][:1])
    assert np.isnan(fitted().gain_over_one(empty)).tolist() == [[True, False]]
