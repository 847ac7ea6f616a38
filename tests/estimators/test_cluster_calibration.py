"""Probabilities of clusters that other groupings of the same rows support."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import coem
from coem import MixtureClusterer, Views
from coem.calibration import best_limit, bounded
from coem.latent.shared_rows import translated
from coem.selection import stability


def counts(n=240, k=4, seed=0, length=25):
    """Return counts of groups that overlap, and the group of every row."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(30, 0.5), size=k)
    truth = np.arange(n) % k
    return rng.poisson(length * topics[truth]), truth


def noisy(labels, share, k, seed):
    """Return labels of which a share is drawn anew, under other numbers."""
    rng = np.random.default_rng(seed)
    new = np.where(rng.random(len(labels)) < share, rng.integers(k, size=len(labels)), labels)
    return rng.permutation(k)[new]


@pytest.fixture(scope="module")
def rows():
    return counts()[0]


@pytest.fixture(scope="module")
def model(rows):
    return MixtureClusterer(4, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def others(model):
    return [noisy(model.labels_, 0.4, 4, seed) for seed in range(5)]


def fresh(rows):
    return MixtureClusterer(4, random_state=0).fit(rows)


# -- an independent twin, row by row ------------------------------------------------------------


def twin_translation(labels, others, k, weight):
    out = np.zeros((len(labels), k))
    for other in others:
        for i, group in enumerate(other):
            together = [j for j in range(len(labels)) if other[j] == group]
            rest = {j: weight[j] - min(weight[i], 1) * (i == j) for j in together}
            if len(together) == 1:  # the row alone says nothing
                rest = dict(enumerate(weight))
            for j in rest:
                out[i, labels[j]] += rest[j] / sum(rest.values()) / len(others)
    return out


def twin_bounded(log_proba, prior, limit):
    out = np.empty_like(log_proba)
    for i, row in enumerate(log_proba):
        best = max(row)
        there = [c for c in range(len(row)) if row[c] > -np.inf]
        evidence = sum(prior[c] * (best - row[c]) for c in there) / sum(prior[c] for c in there)
        scale = 1.0 / (1.0 + evidence / limit)
        powers = [np.exp(scale * (p - best)) if p > -np.inf else 0.0 for p in row]
        out[i] = np.array(powers) / sum(powers)
    return out


def twin_loss(log_proba, prior, target, weight, limit):
    n, k = weight.sum(), log_proba.shape[1]
    total = 0.0
    for row, says, w in zip(twin_bounded(log_proba, prior, limit), target, weight, strict=True):
        for p, t in zip(row, says, strict=True):
            total -= w * (n * t + 2 / k) / (n + 2) * np.log(p) if p > 0 else 0.0
    return total


def test_translation_is_that_of_the_twin(model, others):
    weight = np.random.default_rng(1).uniform(0.5, 2, len(model.labels_))
    ours = translated(model.labels_, others, 4, weight)
    np.testing.assert_allclose(ours, twin_translation(model.labels_, others, 4, weight))
    np.testing.assert_allclose(ours.sum(axis=1), 1.0)


@pytest.mark.parametrize("limit", [0.3, 4.0, 1e5])
def test_bounded_is_that_of_the_twin(limit):
    rng = np.random.default_rng(0)
    log_proba = np.log(rng.dirichlet(np.full(5, 0.3), size=40))
    log_proba[3, 1] = log_proba[3, 4] = -np.inf
    prior = rng.dirichlet(np.ones(5))
    ours = np.exp(bounded(log_proba, prior, limit))
    np.testing.assert_allclose(ours, twin_bounded(log_proba, prior, limit), rtol=1e-9)
    assert ours[3, 1] == 0.0


def test_the_best_limit_is_the_best_of_a_grid(model, rows, others):
    log_proba = model.predict_log_proba(rows)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(rows))
    target = translated(model.labels_, others, 4, weight)
    found = best_limit(log_proba, model.weights_, target, weight)
    args = log_proba, model.weights_, target, weight
    grid = np.exp(np.linspace(-3, 6, 181))
    losses = [twin_loss(*args, limit) for limit in grid]
    assert twin_loss(*args, found) <= min(losses) + 1e-6
    assert found == pytest.approx(grid[np.argmin(losses)], rel=0.05)


def test_support_is_what_the_other_runs_say_of_the_component(rows):
    found = stability(MixtureClusterer(4, init="rows"), rows, n_runs=4, random_state=0)
    said = twin_translation(found.labels, found.others, 4, np.ones(len(rows)))
    np.testing.assert_allclose(found.support, said[np.arange(len(rows)), found.labels])


# -- laws ---------------------------------------------------------------------------------------


def test_the_order_of_runs_and_the_numbers_of_groups_do_not_matter(rows, others):
    first = fresh(rows).calibrate(rows, others).calibration_
    renamed = [np.array(list("xaqf"))[other] for other in reversed(others)]
    second = fresh(rows).calibrate(rows, renamed).calibration_
    assert second.limit == pytest.approx(first.limit, rel=1e-6)
    assert second.support == pytest.approx(first.support, rel=1e-12)


def test_a_weight_of_two_is_a_row_twice(model, rows, others):
    weight = np.where(np.arange(len(rows)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(rows)), weight.astype(int))
    one, two = fresh(rows), fresh(rows)
    one.calibrate(rows, others, sample_weight=weight)
    two.calibrate(rows[twice], [other[twice] for other in others])
    for name in ("limit", "sure_before", "sure_after", "support"):
        assert one.calibration_[name] == pytest.approx(two.calibration_[name], rel=1e-6)


def test_the_less_the_others_agree_the_less_sure_it_is(rows, model):
    sure = []
    for share in (0.0, 0.2, 0.5, 1.0):
        groupings = [noisy(model.labels_, share, 4, seed) for seed in range(8)]
        sure.append(fresh(rows).calibrate(rows, groupings).calibration_.sure_after)
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > 0.9
    assert sure[-1] < 0.5


def test_labels_and_the_order_of_components_stay(model, rows, others):
    modest = fresh(rows).calibrate(rows, others)
    assert modest.calibration_.sure_after < modest.calibration_.sure_before
    proba, exact = modest.predict_log_proba(rows), model.predict_log_proba(rows)
    np.testing.assert_array_equal(np.argsort(proba, axis=1), np.argsort(exact, axis=1))
    np.testing.assert_array_equal(modest.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(modest.predict_proba(rows).argmax(axis=1), model.labels_)
    np.testing.assert_allclose(np.exp(proba), modest.predict_proba(rows), rtol=1e-12)
    np.testing.assert_allclose(modest.predict_proba(rows).sum(axis=1), 1.0)


def test_rounding_gives_no_row_another_label(rows):
    twin = MixtureClusterer(4, random_state=0).fit(rows)
    theta = twin.theta_["X"] if "X" in twin.theta_ else next(iter(twin.theta_.values()))
    for table in theta if isinstance(theta, tuple) else (theta,):
        table[1] = table[0]  # two components that only their weights tell apart
    twin.weights_ = np.array([0.25, np.nextafter(0.25, 1), 0.25, 0.25])
    twin.calibrate(rows, [twin.predict(rows) % 2])
    proba = twin.predict_proba(rows)
    np.testing.assert_array_equal(proba.argmax(axis=1), twin.predict(rows))


# -- rows and models of other kinds -------------------------------------------------------------


def test_rows_without_anything_keep_the_weights(others):
    X = counts()[0]
    X[5] = 0
    modest = fresh(X).calibrate(X, others)
    np.testing.assert_allclose(modest.predict_proba(X)[5], modest.weights_ / modest.weights_.sum())


def test_several_views_are_read_with_the_same_probabilities(others):
    X = counts()[0]
    views = Views(a=X[:, ::2], b=X[:, 1::2])
    exact = MixtureClusterer(4, random_state=0).fit(views)
    before = exact.read(views)
    modest = exact.calibrate(views, others)
    after = modest.read(views)
    np.testing.assert_array_equal(after.proba, modest.predict_proba(views))
    np.testing.assert_array_equal(after.view_proba, before.view_proba)
    assert (after.proba.max(axis=1) < before.proba.max(axis=1)).mean() > 0.9


def test_a_new_fit_forgets_the_limit(rows, others):
    modest = fresh(rows).calibrate(rows, others)
    exact = fresh(rows).predict_proba(rows)
    np.testing.assert_array_equal(modest.fit(rows).predict_proba(rows), exact)
    assert not hasattr(modest, "calibration_")


def test_a_saved_model_is_as_modest(rows, others, tmp_path):
    modest = fresh(rows).calibrate(rows, others)
    modest.save(tmp_path / "model.coem")
    loaded = coem.load(tmp_path / "model.coem")
    assert loaded.calibration_ == modest.calibration_
    np.testing.assert_array_equal(loaded.predict_proba(rows), modest.predict_proba(rows))


def test_a_damaged_limit_is_refused(rows, others, tmp_path):
    modest = fresh(rows).calibrate(rows, others)
    modest.calibration_.limit = -1.0
    modest.save(tmp_path / "model.coem")
    with pytest.raises(ValueError, match="calibration_"):
        coem.load(tmp_path / "model.coem")


def test_stability_returns_a_copy_that_is_calibrated(rows):
    found = stability(MixtureClusterer(4, init="rows"), rows, n_runs=5, random_state=0)
    modest = found.calibrated(rows)
    assert not hasattr(found.estimator, "calibration_")
    assert modest.calibration_.n_others == 4
    by_hand = found.estimator.calibrate(rows, found.others)
    assert by_hand.calibration_ == modest.calibration_
    assert modest.calibration_.support == pytest.approx(found.support.mean())


def test_the_last_step_of_a_pipeline_is_calibrated(rows):
    pipeline = make_pipeline(
        FunctionTransformer(feature_names_out="one-to-one"), MixtureClusterer(4, init="rows")
    )
    found = stability(pipeline, rows, n_runs=3, random_state=0)
    modest = found.calibrated(rows)
    assert modest[-1].calibration_.n_others == 2
    np.testing.assert_array_equal(modest.predict(rows), found.labels)


def test_one_component_is_certain(rows):
    model = MixtureClusterer(1, random_state=0).fit(rows)
    model.calibrate(rows, [np.zeros(len(rows), int)])
    np.testing.assert_array_equal(model.predict_proba(rows), np.ones((len(rows), 1)))


def test_errors_say_what_is_missing(rows, model):
    with pytest.raises(ValueError, match="others is empty"):
        fresh(rows).calibrate(rows, [])
    with pytest.raises(ValueError, match=r"others\[1\] has shape \(3,\).*240 rows"):
        fresh(rows).calibrate(rows, [model.labels_, [0, 1, 2]])
    found = stability(KMeans(2, n_init=1), rows, n_runs=2, random_state=0)
    with pytest.raises(ValueError, match="KMeans has no probabilities to calibrate"):
        found.calibrated(rows)


def test_a_row_does_not_bear_itself_out():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    alone = translated(labels, [np.arange(300)], 3)
    np.testing.assert_allclose(alone, np.tile(np.bincount(labels) / 300, (300, 1)))
    noise = [rng.integers(100, size=300) for _ in range(20)]
    support = translated(labels, noise, 3)[np.arange(300), labels].mean()
    assert abs(support - 1 / 3) < 0.02


@pytest.mark.parametrize("k", [3, 10, 20])
def test_calibration_never_moves_away_from_the_support(k):
    """Far components of Gaussian views would decide the log loss."""
    X = load_iris().data
    model = MixtureClusterer(k, family="gaussian", init="rows", evidence="fixed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = stability(model, X, n_runs=6, keep="central", random_state=0)
        told = found.calibrated(X).calibration_
    before, after = (abs(told[name] - told.support) for name in ("sure_before", "sure_after"))
    assert after <= before + 1e-12
    assert after < 0.15
