"""Gaussian rows with missing entries: the density and EM against slow twins, row by row.

The twins invert the matrix of every row's observed entries. Their rounding and ours is some 1e-13
a step; tolerances of 1e-9 leave room for the steps of a fit.
"""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer
from coem.families import Gaussian
from coem.families.gaussian import GaussianTheta
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.metrics import aligned_accuracy
from coem.protocols import Clock

TYPES = ["full", "tied", "diag", "spherical", "unit"]
TOL: Any = {"rtol": 1e-9, "atol": 1e-9}

every_type = pytest.mark.parametrize("covariance", TYPES)
dependent = pytest.mark.parametrize("covariance", ["full", "tied"])


def some_rows(n: int = 60, d: int = 4, share: float = 0.25, seed: int = 0) -> np.ndarray:
    """Return rows of three groups whose columns depend on each other; no row is empty."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    X += np.repeat(4 * rng.standard_normal((3, d)), n // 3, axis=0) + np.arange(d)
    gone = rng.random(X.shape) < share
    gone[np.arange(n), rng.integers(d, size=n)] = False
    gone[::4] = False  # some rows are complete
    X[gone] = np.nan
    return X


def some_theta(covariance: Any, k: int = 3, d: int = 4, seed: int = 1) -> GaussianTheta:
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((k, d, 2 * d))
    matrices = factors @ factors.transpose(0, 2, 1) / (2 * d) + 0.1 * np.eye(d)
    covariances = {
        "full": matrices,
        "tied": np.broadcast_to(matrices[0], (k, d, d)),
        "diag": rng.uniform(0.3, 2.0, (k, d)),
        "spherical": rng.uniform(0.3, 2.0, k),
        "unit": np.ones(k),
    }
    return GaussianTheta(3 * rng.standard_normal((k, d)), covariances[covariance])


def matrices_of(theta: GaussianTheta) -> np.ndarray:
    d = theta.means.shape[1]
    return np.stack(
        [c if c.ndim == 2 else np.diag(np.broadcast_to(c, (d,))) for c in theta.covariances]
    )


def some_resp(n: int = 60, k: int = 3, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


# -- twins -----------------------------------------------------------------------------------------


def slow_log_prob(X: Any, theta: GaussianTheta) -> np.ndarray:
    """Return the log density of the observed entries of each row."""
    out = np.empty((len(X), len(theta.means)))
    components = list(zip(theta.means, matrices_of(theta), strict=True))
    for i, x in enumerate(X):
        o = ~np.isnan(x)
        for j, (mean, matrix) in enumerate(components):
            own, z = matrix[np.ix_(o, o)], x[o] - mean[o]
            log_det = np.linalg.slogdet(2 * np.pi * own).logabsdet
            out[i, j] = -0.5 * (z @ np.linalg.solve(own, z) + log_det)
    return out


def slow_moments(X: Any, resp: Any, theta: GaussianTheta) -> tuple[Any, Any, Any]:
    """Return the expected sums of 1, x and xx' under `theta`, row by row."""
    k, d = theta.means.shape
    mass, sums, squares = resp.sum(axis=0), np.zeros((k, d)), np.zeros((k, d, d))
    components = list(zip(theta.means, matrices_of(theta), strict=True))
    for x, own in zip(X, resp, strict=True):
        o, m = np.flatnonzero(~np.isnan(x)), np.flatnonzero(np.isnan(x))
        for j, (mean, matrix) in enumerate(components):
            slope = matrix[np.ix_(m, o)] @ np.linalg.inv(matrix[np.ix_(o, o)])
            expected = x.copy()
            expected[m] = mean[m] + slope @ (x[o] - mean[o])
            spread = np.zeros((d, d))
            spread[np.ix_(m, m)] = matrix[np.ix_(m, m)] - slope @ matrix[np.ix_(o, m)]
            sums[j] += own[j] * expected
            squares[j] += own[j] * (np.outer(expected, expected) + spread)
    return mass, sums, squares


def slow_columns(X: Any, resp: Any, covariance: str) -> GaussianTheta:
    """Return means and variances of the observed entries of each column."""
    k, d = resp.shape[1], X.shape[1]
    means, around, count = np.zeros((k, d)), np.zeros((k, d)), np.zeros((k, d))
    for j in range(k):
        for w in range(d):
            there = ~np.isnan(X[:, w])
            x, r = X[there, w], resp[there, j]
            means[j, w], count[j, w] = np.average(x, weights=r), r.sum()
            around[j, w] = (r * (x - means[j, w]) ** 2).sum()
    covariances = {
        "diag": around / count,
        "tied": np.broadcast_to(around.sum(axis=0) / count.sum(axis=0), (k, d)),
        "spherical": around.sum(axis=1) / count.sum(axis=1),
        "unit": np.ones(k),
    }
    covariances["full"] = covariances["diag"]
    return GaussianTheta(means, covariances[covariance])


def slow_m_step(X: Any, resp: Any, covariance: str, theta: GaussianTheta | None) -> GaussianTheta:
    """Return the M step, from independent columns if there are no parameters yet."""
    columns = slow_columns(X, resp, covariance)
    if covariance not in ("full", "tied"):
        return columns
    mass, sums, squares = slow_moments(X, resp, columns if theta is None else theta)
    means = sums / mass[:, None]
    full = squares / mass[:, None, None] - means[:, :, None] * means[:, None]
    if covariance == "tied":
        full = np.broadcast_to(np.average(full, axis=0, weights=mass), full.shape)
    return GaussianTheta(means, full)


def slow_em(X: Any, resp: Any, covariance: str, rounds: int) -> tuple[GaussianTheta, list[float]]:
    """Return the parameters after some rounds from responsibilities, and all objectives."""
    theta, objectives = None, []
    for _ in range(rounds):
        theta = slow_m_step(X, resp, covariance, theta)
        log_joint = slow_log_prob(X, theta) + np.log(resp.mean(axis=0))
        evidence = logsumexp(log_joint, axis=1, keepdims=True)
        objectives.append(float(evidence.sum()))
        resp = np.exp(log_joint - evidence)
    assert theta is not None
    return theta, objectives


def assert_equal(found: GaussianTheta, expected: GaussianTheta, **tol: Any) -> None:
    np.testing.assert_allclose(found.means, expected.means, **(tol or TOL))
    np.testing.assert_allclose(matrices_of(found), matrices_of(expected), **(tol or TOL))


# -- the family ------------------------------------------------------------------------------------


@every_type
@pytest.mark.parametrize("share", [0.05, 0.6, 1.0])
def test_density_is_that_of_the_observed_entries(covariance: Any, share: float) -> None:
    X, theta = some_rows(share=share), some_theta(covariance)
    assert np.isnan(X).any()
    log_prob = Gaussian(covariance).log_prob(X, theta)
    np.testing.assert_allclose(log_prob, slow_log_prob(X, theta), **TOL)
    for x, own in zip(X, log_prob, strict=True):
        o = ~np.isnan(x)
        matrix = matrices_of(theta)[1][np.ix_(o, o)]
        scipys = stats.multivariate_normal.logpdf(x[o], theta.means[1][o], matrix)
        assert own[1] == pytest.approx(scipys, rel=1e-9)


@dependent
def test_density_beside_a_nearly_singular_matrix(covariance: Any) -> None:
    # Two columns that are equal to 1e-6 of a deviation: one tells the other when it is missing.
    theta = some_theta(covariance)
    turn = np.eye(4)
    turn[3] = [1.0, 0.0, 0.0, 1e-6]
    theta = theta._replace(covariances=turn @ theta.covariances @ turn.T)
    X = some_rows()
    expected = slow_log_prob(
        X[:, [0, 1, 2]], GaussianTheta(theta.means[:, :3], theta[1][:, :3, :3])
    )
    X[:, 3] = np.nan
    # The condition of the matrices is 1e13: their factors have three digits in the last pivot,
    # which is none of the observed entries.
    np.testing.assert_allclose(Gaussian(covariance).log_prob(X, theta), expected, rtol=1e-9)


@every_type
def test_m_step_without_parameters(covariance: Any) -> None:
    X, resp = some_rows(), some_resp()
    family = Gaussian(covariance, reg=0.0)
    found = family.estimate(family.stats(X, resp))
    assert_equal(found, slow_m_step(X, resp, covariance, None))


@dependent
def test_expected_moments(covariance: Any) -> None:
    X, resp, theta = some_rows(), some_resp(), some_theta(covariance)
    mass, sums, squares = slow_moments(X, resp, theta)
    found = Gaussian(covariance).stats_under(X, resp, theta)
    np.testing.assert_allclose(found.mass, mass, **TOL)
    np.testing.assert_allclose(found.sums, sums, **TOL)
    expected = squares if covariance == "full" else squares.sum(axis=0, keepdims=True)
    assert found.squares is not None
    np.testing.assert_allclose(found.squares, expected, **TOL)
    np.testing.assert_array_equal(found.squares, found.squares.transpose(0, 2, 1))


@pytest.mark.parametrize("covariance", ["diag", "spherical", "unit"])
def test_independent_columns_need_no_parameters(covariance: Any) -> None:
    X, resp, family = some_rows(), some_resp(), Gaussian(covariance)
    given = family.estimate(family.stats_under(X, resp, some_theta(covariance)))
    assert_equal(given, family.estimate(family.stats(X, resp)), rtol=0, atol=0)


def test_sums_over_observed_entries_are_where_imputation_ends() -> None:
    # Expected entries under the last means and variances take many steps to the same place.
    X, resp = some_rows(), some_resp()
    theta = some_theta("diag")
    for _ in range(40):
        mass, sums, squares = slow_moments(X, resp, theta)
        means = sums / mass[:, None]
        second = np.diagonal(squares, axis1=1, axis2=2) / mass[:, None]
        theta = GaussianTheta(means, second - means**2)
    family = Gaussian("diag", reg=0.0)
    assert_equal(family.estimate(family.stats(X, resp)), theta)


@every_type
def test_many_patterns_and_blocks_leave_no_trace(covariance: Any) -> None:
    # 9 columns have 511 patterns; the rows are cut at 4,096.
    rng = np.random.default_rng(0)
    X = some_rows(6_000, 9, 0.4)
    theta, resp, family = some_theta(covariance, d=9), some_resp(6_000), Gaussian(covariance)
    few = rng.choice(6_000, 50, replace=False)
    log_prob = family.log_prob(X, theta)
    np.testing.assert_allclose(log_prob[few], slow_log_prob(X[few], theta), **TOL)
    pieces = [family.stats_under(X[i::7], resp[i::7], theta) for i in range(7)]
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    assert_equal(family.estimate(total), family.estimate(family.stats_under(X, resp, theta)))


@pytest.mark.parametrize("covariance", ["diag", "spherical", "unit"])
def test_terms_are_those_of_observed_columns(covariance: Any) -> None:
    family, theta = Gaussian(covariance), some_theta(covariance)
    for x in some_rows()[1:9]:
        found = family.terms(x[np.newaxis], theta)
        assert found is not None
        columns, terms, rest = found
        np.testing.assert_array_equal(columns, np.flatnonzero(~np.isnan(x)))
        sd = np.sqrt(np.diagonal(matrices_of(theta), axis1=1, axis2=2))
        expected = stats.norm(theta.means, sd).logpdf(x)[:, columns].T
        np.testing.assert_allclose(terms, expected, **TOL)
        np.testing.assert_array_equal(rest, 0.0)


@every_type
def test_a_component_that_never_sees_a_column(covariance: Any) -> None:
    X, resp = some_rows(), np.repeat(np.eye(3), 20, axis=0)
    X[:20, 2] = np.nan  # not seen by the first component
    X[:, 3] = np.nan  # not seen by any
    family = Gaussian(covariance, reg=0.0)
    theta = family.estimate(family.stats(X, resp))
    assert theta.means[0, 2] == pytest.approx(np.nanmean(X[:, 2]))
    np.testing.assert_array_equal(theta.means[:, 3], 0.0)
    if covariance not in ("spherical", "unit"):
        np.testing.assert_allclose(matrices_of(theta)[:, 3, 3], 1.0)
    after = family.estimate(family.stats_under(X, resp, theta))
    for values in (*theta, *after, family.log_prob(X, theta), family.log_prob(X, after)):
        assert np.isfinite(values).all()


def test_only_rows_without_entries_are_empty() -> None:
    X, family = some_rows(), Gaussian()
    X[7] = np.nan
    assert family.check(X, "v") is X
    np.testing.assert_array_equal(np.flatnonzero(family.empty(X)), [7])
    encoded = family.encode(X)
    np.testing.assert_array_equal(encoded[7], 0.0)
    np.testing.assert_array_equal(np.delete(encoded, 7, 0), np.delete(X, 7, 0))
    assert np.isnan(X[7]).all(), "the input is left alone"
    assert family.encode(some_rows()[1:2]).flags.c_contiguous


# -- fits ------------------------------------------------------------------------------------------


def fitted(covariance: Any, X: Any, **options: Any) -> MixtureClusterer:
    options = {"tol": 0, "max_iter": 6, "random_state": 0, **options}
    family = Gaussian(covariance, reg=options.pop("reg", 0.0))
    return MixtureClusterer(3, family=family, **options).fit(X)


@every_type
def test_em_is_that_of_the_twin(covariance: Any) -> None:
    X, resp = some_rows(), some_resp()
    model = fitted(covariance, X, init=resp, max_iter=6)
    theta, objectives = slow_em(X, resp, covariance, 6)
    assert_equal(model.theta_["view0"], theta, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose([record.objective for record in model.history_], objectives)
    assert model.score_samples(X).sum() == pytest.approx(objectives[-1])


@every_type
@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_the_objective_never_falls(covariance: Any, posterior: str) -> None:
    X = some_rows(300, 5, 0.4, seed=3)
    start = np.repeat(np.eye(3), 100, axis=0) * 0.7 + 0.1
    model = fitted(covariance, X, init=start, max_iter=40, posterior=posterior)
    objectives = np.array([record.objective for record in model.history_])
    assert len(objectives) == 40
    assert np.diff(objectives).min() >= -1e-9 * np.abs(objectives).max()
    assert objectives[-1] > objectives[0]


@dependent
def test_a_chain_of_one_state_is_a_mixture_of_one_component(covariance: Any) -> None:
    X, family = some_rows(), Gaussian(covariance, reg=0.0)
    options: Any = {"family": family, "max_iter": 8, "tol": 0}
    chain = HiddenMarkovModel(1, **options).fit(X, lengths=[25, 35])
    mixture = MixtureClusterer(1, **options).fit(X)
    assert_equal(chain.theta_["view0"], mixture.theta_["view0"])
    objectives = [record.objective for record in chain.history_]
    np.testing.assert_allclose(objectives, [record.objective for record in mixture.history_])


def test_one_full_component_is_the_best_of_a_numeric_search() -> None:
    X = some_rows(45, 2, 0.4)
    model = MixtureClusterer(1, family=Gaussian("full", reg=0), tol=0, max_iter=300).fit(X)

    def loss(free: Any) -> float:
        factor = np.array([[np.exp(free[2]), 0.0], [free[4], np.exp(free[3])]])
        theta = GaussianTheta(free[None, :2], (factor @ factor.T)[None])
        return -float(slow_log_prob(X, theta).sum())

    start = np.concatenate([np.nanmean(X, axis=0), np.log(np.nanstd(X, axis=0)), [0.0]])
    found = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-5})
    assert model.objective_ == pytest.approx(-found.fun, abs=1e-6)
    np.testing.assert_allclose(model.theta_["view0"].means[0], found.x[:2], atol=1e-4)


def test_two_components_are_the_best_nearby() -> None:
    X = some_rows(30, 2, 0.4, seed=5)
    model = MixtureClusterer(
        2, family=Gaussian("diag", reg=0), tol=0, max_iter=800, random_state=0
    ).fit(X)
    theta, weights = model.theta_["view0"], model.weights_

    def loss(free: Any) -> float:
        means, logs = free[:4].reshape(2, 2), free[4:8].reshape(2, 2)
        log_prob = slow_log_prob(X, GaussianTheta(means, np.exp(logs)))
        share = np.array([free[8], -free[8]])
        return -float(logsumexp(log_prob + share - logsumexp(share), axis=1).sum())

    odds = (np.log(weights[0]) - np.log(weights[1])) / 2
    start = np.concatenate([theta.means.ravel(), np.log(theta.covariances).ravel(), [odds]])
    assert -loss(start) == pytest.approx(model.objective_, abs=1e-8)
    found = optimize.minimize(loss, start + 0.02, method="BFGS", options={"gtol": 1e-5})
    assert model.objective_ == pytest.approx(-found.fun, abs=1e-6)


@every_type
def test_partitions_are_the_whole(covariance: Any) -> None:
    X, resp = some_rows(), some_resp()
    model = Mixture(Emissions((Gaussian(covariance, reg=0.0),)), 3, dtype=np.float64)
    whole = Partition((X,), given=resp, block_rows=17)
    parts, clock = Partition((X,), given=resp).cut([1, 50]), Clock(0, (1.0,), 1.0)
    theta = other = model.unknown()
    for _ in range(4):
        state = model.infer(whole, theta, clock, None)
        theta = model.maximise(whole, theta.without(0), 0, clock, state)
        states = [model.infer(part, other, clock, None) for part in parts]
        pairs = zip(parts, states, strict=True)
        gathered = [model.gather(part, other, 0, clock, own) for part, own in pairs]
        other = model.estimate(gathered[0] + gathered[1] + gathered[2], other, 0)
        assert_equal(other.params[0], theta.params[0])  # type: ignore[arg-type]


@every_type
def test_threads_and_weights(covariance: Any) -> None:
    X = some_rows(6_000, 3)
    one, two = (fitted(covariance, X, n_jobs=n, max_iter=3) for n in (1, 2))
    for a, b in zip(one.theta_["view0"], two.theta_["view0"], strict=True):
        np.testing.assert_array_equal(a, b)
    X, resp = some_rows(), some_resp()
    weight = np.arange(60) % 3
    times = np.repeat(np.arange(60), weight)
    family = Gaussian(covariance)
    options: Any = {"family": family, "tol": 0, "max_iter": 5}
    weighted = MixtureClusterer(3, init=resp, **options).fit(X, sample_weight=weight)
    repeated = MixtureClusterer(3, init=resp[times], **options).fit(X[times])
    assert_equal(weighted.theta_["view0"], repeated.theta_["view0"])


@every_type
@pytest.mark.parametrize("init", ["random", "rows", "k-means++", "spherical"])
def test_every_start_takes_missing_entries(covariance: Any, init: str) -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 60)
    X = rng.standard_normal((180, 5)) + 8 * np.eye(5)[truth]
    X[rng.random(X.shape) < 0.15] = np.nan
    X[4] = np.nan
    model = fitted(covariance, X, init=init, n_init=4, max_iter=60, tol=1e-6, reg=1e-6)
    there = np.arange(180) != 4
    # Of five entries one or two tell the group; a row that lacks them cannot be placed.
    assert aligned_accuracy(truth[there], model.labels_[there]) > 0.9
    for values in (*model.theta_["view0"], model.predict_proba(X), model.score_samples(X)):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(model.predict_proba(X)[4], model.weights_)
    drawn, _ = model.sample(50)
    assert np.isfinite(drawn).all()


def test_an_explanation_leaves_missing_columns_out() -> None:
    X = some_rows()
    X[:, 3] = np.nan
    for covariance in TYPES:
        model = fitted(covariance, X, reg=1e-6)
        for x, why in zip(X[:5], model.explain(X[:5]), strict=True):
            part = why.views["view0"]
            own = [] if covariance in ("full", "tied") else np.flatnonzero(~np.isnan(x))
            np.testing.assert_array_equal(part.features, own)
            total = why.prior + part.contributions.sum() + part.rest
            assert total == pytest.approx(why.log_odds)


def test_the_tag_says_that_nan_is_allowed() -> None:
    for family, allowed in (("gaussian", True), ("multinomial", False)):
        for model in (MixtureClusterer(2, family=family), MixtureClassifier(family=family)):
            assert model.__sklearn_tags__().input_tags.allow_nan == allowed


@every_type
def test_a_classifier_learns_from_rows_with_gaps(covariance: Any) -> None:
    X, y = some_rows(), np.repeat([0, 1, 2], 20)
    unlabelled = np.where(np.arange(60) % 3 == 0, y, -1)
    model = MixtureClassifier(family=Gaussian(covariance, reg=1e-3)).fit(X, unlabelled)
    theta, weights = model.theta_["view0"], model.predict_proba(np.full((1, 4), np.nan))[0]
    log_joint = slow_log_prob(X, theta) + np.log(weights)
    expected = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
    assert (model.predict(X) == y).mean() > 0.9


@every_type
def test_leave_one_out(covariance: Any) -> None:
    X, y = some_rows(60), np.repeat([0, 1, 2], 20)
    family = Gaussian(covariance, reg=1e-3)
    model = MixtureClassifier(family=family, max_iter=5, tol=0).fit(X, y)
    found = model.leave_one_out(X, y)
    theta, resp = model.theta_["view0"], np.eye(3)[y]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        without = family.estimate(family.stats_under(X[rest], resp[rest], theta))
        counts = resp[rest].sum(axis=0) + 1.0  # Laplace
        log_joint = slow_log_prob(X[i : i + 1], without)[0] + np.log(counts / counts.sum())
        np.testing.assert_allclose(found[i], np.exp(log_joint - logsumexp(log_joint)), atol=1e-8)


@dependent
def test_batches_and_checkpoints(covariance: Any, tmp_path: Any) -> None:
    X = some_rows()
    options: Any = {"init": some_resp(), "max_iter": 8}
    whole = fitted(covariance, X, **options)
    fitted(covariance, X, checkpoint=tmp_path, **{**options, "max_iter": 3})
    again = fitted(covariance, X, checkpoint=tmp_path, **options)
    for a, b in zip(again.theta_["view0"], whole.theta_["view0"], strict=True):
        np.testing.assert_array_equal(a, b)
    whole.partial_fit(X[:50])
    assert np.isfinite(matrices_of(whole.theta_["view0"])).all()
    assert np.linalg.eigvalsh(matrices_of(whole.theta_["view0"])).min() > 0
