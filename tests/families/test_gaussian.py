"""Gaussian components: scikit-learn's M step, scipy's density, and the laws of a family.

Sums of a few hundred terms of order one round to about 1e-14; tolerances of 1e-10 leave room for
another order of summation and for the cancellation of uncentred moments, and would not let a
wrong formula pass.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, stats
from sklearn.mixture import GaussianMixture
from sklearn.mixture._gaussian_mixture import _estimate_gaussian_parameters

from coem.families import _distances
from coem.families.gaussian import Gaussian, GaussianTheta

TYPES = ["full", "tied", "diag", "spherical", "unit"]
SKLEARN_TYPES = TYPES[:-1]
TOL: Any = {"rtol": 1e-10, "atol": 1e-10}

every_type = pytest.mark.parametrize("covariance", TYPES)
sklearn_type = pytest.mark.parametrize("covariance", SKLEARN_TYPES)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4)) + [3.0, -1.0, 0.0, 10.0]


@pytest.fixture
def resp(rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.ones(3), 300)


def assert_equal_stats(a: Any, b: Any) -> None:
    for name in ("mass", "sums", "squares"):
        mine, other = getattr(a, name), getattr(b, name)
        if mine is None or other is None:
            assert mine is None
            assert other is None
        else:
            np.testing.assert_allclose(mine, other, **TOL)


def assert_equal_theta(a: GaussianTheta, b: GaussianTheta, **tol: Any) -> None:
    for mine, other in zip(a, b, strict=True):
        np.testing.assert_allclose(mine, other, **(tol or TOL))


def some_theta(covariance: Any, rng: np.random.Generator, k: int = 3, d: int = 2) -> GaussianTheta:
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


def as_matrices(theta: GaussianTheta) -> list[np.ndarray]:
    d = theta.means.shape[1]
    return [c if c.ndim == 2 else np.diag(np.broadcast_to(c, (d,))) for c in theta.covariances]


# -- the M step ----------------------------------------------------------------------------


@sklearn_type
@pytest.mark.parametrize("reg", [0.0, 1e-6, 0.5])
def test_m_step_is_that_of_scikit_learn(covariance: Any, reg: float, rows: Any, resp: Any) -> None:
    # scikit-learn adds 10 eps to every mass, a relative change of 1e-17 here.
    _, means, covariances = _estimate_gaussian_parameters(rows, resp, reg, covariance)
    family = Gaussian(covariance, reg=reg)
    theta = family.estimate(family.stats(rows, resp))
    if covariance == "tied":
        covariances = np.broadcast_to(covariances, (3, 4, 4))
    assert_equal_theta(theta, GaussianTheta(means, covariances))


@sklearn_type
def test_m_step_with_weights(covariance: Any, rows: Any, resp: Any, rng: Any) -> None:
    # Whole weights against scikit-learn on rows written out so many times: its tied estimate
    # takes X'X without the responsibilities, so that weights cannot be given to it otherwise.
    weights = rng.integers(0, 4, len(rows))
    times = np.repeat(np.arange(len(rows)), weights)
    _, means, covariances = _estimate_gaussian_parameters(rows[times], resp[times], 0.1, covariance)
    family = Gaussian(covariance, reg=0.1)
    theta = family.estimate(family.stats(rows, weights[:, None] * resp))
    if covariance == "tied":
        covariances = np.broadcast_to(covariances, (3, 4, 4))
    assert_equal_theta(theta, GaussianTheta(means, covariances))


def test_tied_is_the_weighted_mean_of_full(rows: Any, resp: Any, rng: Any) -> None:
    resp = rng.uniform(0, 2, (len(rows), 1)) * resp
    full = Gaussian("full", reg=0.0).estimate(Gaussian("full").stats(rows, resp))
    tied = Gaussian("tied", reg=0.0).estimate(Gaussian("tied").stats(rows, resp))
    mean = np.average(full.covariances, axis=0, weights=resp.sum(axis=0))
    np.testing.assert_allclose(tied.covariances, np.broadcast_to(mean, (3, 4, 4)), **TOL)
    assert tied.covariances.strides[0] == 0, "one matrix, seen k times"


def test_unit_needs_the_means_alone(rows: Any, resp: Any) -> None:
    gathered = Gaussian("unit").stats(rows, resp)
    assert gathered.squares is None
    theta = Gaussian("unit").estimate(gathered)
    np.testing.assert_allclose(theta.means, (resp.T @ rows) / resp.sum(axis=0)[:, None], **TOL)
    np.testing.assert_array_equal(theta.covariances, np.ones(3))


@every_type
def test_no_perturbation_raises_the_likelihood(
    covariance: Any, rows: Any, resp: Any, rng: Any
) -> None:
    family = Gaussian(covariance, reg=0.0)
    theta = family.estimate(family.stats(rows, resp))

    def value(theta: GaussianTheta) -> float:
        return float((resp * family.log_prob(rows, theta)).sum())

    best = value(theta)
    for size in np.repeat([1e-1, 1e-2, 1e-3], 20):
        means = theta.means + size * rng.standard_normal(theta.means.shape)
        noise = size * rng.standard_normal(theta.covariances.shape)
        if covariance == "unit":
            noise[:] = 0
        if covariance == "tied":
            noise[:] = noise[0]
        if noise.ndim == 3:
            turn = np.eye(4) + noise
            covariances = turn @ theta.covariances @ turn.transpose(0, 2, 1)
        else:
            covariances = theta.covariances * np.exp(noise)
        # 1e-10 is rounding; the smallest steps cost about n size^2, 1e-4.
        assert value(theta._replace(means=means)) <= best + 1e-10
        assert value(theta._replace(covariances=covariances)) <= best + 1e-10
        assert value(GaussianTheta(means, covariances)) <= best + 1e-10


# -- the density ---------------------------------------------------------------------------


@every_type
@pytest.mark.parametrize("d", [1, 2, 6])
def test_log_prob_is_that_of_scipy(covariance: Any, d: int, rng: Any) -> None:
    theta = some_theta(covariance, rng, k=4, d=d)
    X = 4 * rng.standard_normal((50, d))
    pairs = zip(theta.means, as_matrices(theta), strict=True)
    expected = [stats.multivariate_normal(m, c).logpdf(X) for m, c in pairs]
    np.testing.assert_allclose(
        Gaussian(covariance).log_prob(X, theta), np.transpose(expected), **TOL
    )


@every_type
def test_log_prob_far_from_the_origin(covariance: Any, rng: Any) -> None:
    # A shift by 2^26 is exact for rows on a grid of 2^-20; only the centring can then round.
    theta = some_theta(covariance, rng)
    theta = theta._replace(means=np.round(theta.means * 2**20) / 2**20)
    X = np.round(rng.standard_normal((50, 2)) * 2**20) / 2**20
    near = Gaussian(covariance).log_prob(X, theta)
    far = Gaussian(covariance).log_prob(X + 2.0**26, theta._replace(means=theta.means + 2.0**26))
    # The centre of the means has 27 bits before the point and so errs by 2^-27 at most: the
    # distances, a few dozen, by some 1e-6.
    np.testing.assert_allclose(far, near, atol=1e-6)


@every_type
def test_density_integrates_to_one(covariance: Any, rng: Any) -> None:
    theta = some_theta(covariance, rng, k=2, d=2)
    grid = np.linspace(-20, 20, 801)
    X = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density = np.exp(Gaussian(covariance).log_prob(X, theta)).reshape(801, 801, 2)
    # The trapezoidal rule is exact but for tails beyond 8 standard deviations, below 1e-14.
    total = integrate.trapezoid(integrate.trapezoid(density, grid, axis=0), grid, axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)


def test_many_rows_are_cut_without_trace(rng: Any) -> None:
    X, resp = rng.standard_normal((10_000, 3)), rng.dirichlet(np.ones(2), 10_000)
    family = Gaussian()
    theta = family.estimate(family.stats(X, resp))
    parts = [family.log_prob(X[i : i + 999], theta) for i in range(0, 10_000, 999)]
    np.testing.assert_allclose(family.log_prob(X, theta), np.concatenate(parts), **TOL)
    expected = np.einsum("ik,ia,ib->kab", resp, X, X)
    # Sums of 10,000 terms: their rounding is some 1e-12.
    squares: Any = family.stats(X, resp).squares
    np.testing.assert_allclose(squares, expected, rtol=1e-9, atol=1e-9)


@every_type
@pytest.mark.parametrize(("n", "k", "d"), [(3, 2, 40), (700, 6, 10), (2500, 1, 20)])
def test_pieces_of_rows_and_of_components_leave_no_trace(
    covariance: Any, n: int, k: int, d: int, rng: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(_distances, "WIDEST", 32)  # less than 40 columns, or 6 times 10
    monkeypatch.setattr(_distances, "CELLS", 2**11)
    means, X = rng.standard_normal((k, d)), rng.standard_normal((n, d))
    shape = {"full": (k, d, d), "tied": (k, d, d), "diag": (k, d)}.get(covariance, (k,))
    covariances = np.ones(shape) + np.eye(d) if len(shape) == 3 else np.full(shape, 2.0)
    if covariance == "unit":
        covariances = np.ones(k)
    family, theta = Gaussian(covariance), GaussianTheta(means, covariances)
    found = family.log_prob(X, theta)
    for row in (0, n // 2, n - 1):
        np.testing.assert_allclose(
            found[row], family.log_prob(X[row : row + 1], theta)[0], rtol=1e-12
        )
        z = X[row] - means
        distances = (z * z).sum(axis=1) / (1 if covariance == "unit" else 2)
        log_det = 0.0 if covariance == "unit" else d * np.log(2)
        if len(shape) == 3:  # identity plus ones (Sherman-Morrison)
            distances = (z * z).sum(axis=1) - z.sum(axis=1) ** 2 / (1 + d)
            log_det = np.log1p(d)
        expected = -0.5 * (distances + log_det + d * np.log(2 * np.pi))
        np.testing.assert_allclose(found[row], expected, rtol=1e-10)
    resp = rng.dirichlet(np.ones(k), n)
    whole, cut = family.stats(X, resp), n // 3
    parts = family.stats(X[:cut], resp[:cut]) + family.stats(X[cut:], resp[cut:])
    assert_equal_stats(whole, parts)


@every_type
def test_no_rows(covariance: Any, rng: Any) -> None:
    family, theta = Gaussian(covariance), some_theta(covariance, rng)
    assert family.log_prob(np.empty((0, 2)), theta).shape == (0, 3)
    assert not family.stats(np.empty((0, 2)), np.empty((0, 3))).mass.any()


# -- the laws of statistics ----------------------------------------------------------------


@every_type
@pytest.mark.parametrize("cut", [0, 1, 137, 300])
def test_stats_add(covariance: Any, cut: int, rows: Any, resp: Any) -> None:
    family = Gaussian(covariance)
    parts = family.stats(rows[:cut], resp[:cut]) + family.stats(rows[cut:], resp[cut:])
    assert_equal_stats(parts, family.stats(rows, resp))


@every_type
def test_stats_scale(covariance: Any, rows: Any, resp: Any) -> None:
    family = Gaussian(covariance)
    assert_equal_stats(family.stats(rows, 2.5 * resp), family.stats(rows, resp).scaled(2.5))
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)[:, None]
    twice = np.concatenate([np.arange(300), np.arange(100)])
    assert_equal_stats(family.stats(rows, weights * resp), family.stats(rows[twice], resp[twice]))


@every_type
def test_components_and_rows_may_change_places(covariance: Any, rows: Any, resp: Any) -> None:
    family, order = Gaussian(covariance), np.array([2, 0, 1])
    theta = family.estimate(family.stats(rows, resp))
    moved = family.estimate(family.stats(rows[::-1], resp[::-1, order]))
    assert_equal_theta(moved, GaussianTheta(*(part[order] for part in theta)))
    log_prob = family.log_prob(rows, moved)
    np.testing.assert_allclose(log_prob, family.log_prob(rows, theta)[:, order], **TOL)


@every_type
def test_sparse_is_dense(covariance: Any, rng: Any) -> None:
    X = rng.standard_normal((200, 5)) * (rng.random((200, 5)) < 0.4)
    resp, family = rng.dirichlet(np.ones(3), 200), Gaussian(covariance)
    theta = family.estimate(family.stats(X, resp))
    for make in (sp.csr_matrix, sp.csr_array):
        S = family.encode(family.check(make(X.astype(np.float32)), "v"))
        assert S.dtype == np.float64
        S = make(X)
        assert not family.empty(S).any(), "a sparse row of zeros is a row of zeros"
        assert_equal_stats(family.stats(S, resp), family.stats(X, resp))
        np.testing.assert_allclose(family.log_prob(S, theta), family.log_prob(X, theta), **TOL)


# -- components without rows, and degenerate rows ------------------------------------------


@every_type
def test_an_empty_component_gets_what_all_rows_give(covariance: Any, rows: Any, resp: Any) -> None:
    family = Gaussian(covariance)
    dead = np.column_stack([resp[:, :2], np.zeros(300)])
    theta = family.estimate(family.stats(rows, dead))
    pooled = family.estimate(family.stats(rows, dead.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(theta.means[2], pooled.means[0], **TOL)
    if covariance != "tied":
        np.testing.assert_allclose(theta.covariances[2], pooled.covariances[0], **TOL)
    alive = family.estimate(family.stats(rows, dead[:, :2]))
    assert_equal_theta(GaussianTheta(*(part[:2] for part in theta)), alive)
    assert np.isfinite(family.log_prob(rows, theta)).all()


@every_type
@pytest.mark.parametrize("mass", [0.0, 1e-320])
def test_no_mass_at_all(covariance: Any, mass: float, rows: Any) -> None:
    family = Gaussian(covariance)
    theta = family.estimate(family.stats(rows, np.full((300, 2), mass)))
    np.testing.assert_array_equal(theta.means, 0.0)
    for matrix in as_matrices(theta):
        np.testing.assert_array_equal(matrix, np.eye(4))
    assert (
        theta.covariances.shape == family.estimate(family.stats(rows, np.ones((300, 2))))[1].shape
    )


@sklearn_type
def test_rows_all_alike_keep_the_variance_of_reg(covariance: Any, resp: Any, rng: Any) -> None:
    # E x^2 - (E x)^2 is a rounding error of either sign here, up to 1e12 eps, far above reg.
    X = np.tile(rng.uniform(0.1, 1e6, 8), (300, 1))
    family = Gaussian(covariance, reg=1e-6)
    theta = family.estimate(family.stats(X, resp))
    for matrix in as_matrices(theta):
        values = np.linalg.eigvalsh(matrix)
        # A matrix can tell no eigenvalues apart that are 1e-15 of the largest.
        assert values[0] >= 1e-6 * (1 - 1e-9) - 1e-15 * values[-1]
        assert values[-1] < 1.0
    assert np.isfinite(family.log_prob(X, theta)).all()


@pytest.mark.parametrize("covariance", ["diag", "spherical"])
def test_rows_all_alike_without_reg(covariance: Any, resp: Any, rng: Any) -> None:
    X = np.tile(rng.uniform(0.1, 1e6, 8), (300, 1))
    family = Gaussian(covariance, reg=0.0)
    theta = family.estimate(family.stats(X, resp))
    raw = resp.T @ X**2 / resp.sum(axis=0)[:, None] - theta.means**2
    assert (raw <= 0).any(), "rounding alone would leave no variance"
    assert (theta.covariances > 0).all()
    assert np.isfinite(family.log_prob(X, theta)).all()


@sklearn_type
def test_a_singular_covariance_is_an_error(covariance: Any, rows: Any, rng: Any) -> None:
    # No M step makes one, but a user can.
    theta = some_theta(covariance, rng, k=2, d=4)
    singular = theta.covariances.copy()
    singular[-1] = 0.0
    bad = 0 if covariance == "tied" else 1
    theta = theta._replace(covariances=singular[::-1] if covariance == "tied" else singular)
    with pytest.raises(ValueError, match=rf"component {bad}: .*raise reg \(now 0\)"):
        Gaussian(covariance, reg=0.0).log_prob(rows, theta)


# -- starting and sampling -----------------------------------------------------------------


@every_type
def test_sample_then_estimate_recovers(covariance: Any, rng: Any) -> None:
    truth = some_theta(covariance, rng, k=3, d=3)
    labels = rng.integers(0, 3, 60_000)
    family = Gaussian(covariance)
    X = family.sample(truth, labels, rng)
    found = family.estimate(family.stats(X, np.eye(3)[labels]))
    # Standard errors with 20,000 rows are about (1 or 2) / sqrt(20,000), 0.015; we allow five.
    assert_equal_theta(found, truth, atol=0.075, rtol=0.0)
    other = family.start(family.stats(X, np.ones((len(X), 1))), 3, rng)
    assert not np.allclose(other.means, truth.means, atol=0.075), "the start must not match"


@every_type
def test_start_is_drawn_from_all_rows(covariance: Any, rows: Any, rng: Any) -> None:
    family = Gaussian(covariance)
    pooled = family.stats(rows, np.ones((300, 1)))
    theta = family.start(pooled, 20_000, rng)
    whole = family.estimate(pooled)
    assert theta.means.shape == (20_000, 4)
    assert theta.covariances.shape == (20_000, *whole.covariances.shape[1:])
    np.testing.assert_array_equal(theta.covariances[7], whole.covariances[0])
    # A mean of 20,000 draws errs by sd / sqrt(20,000), and a variance by twice that; we allow five.
    matrix = as_matrices(whole)[0]
    sd = np.sqrt(np.diag(matrix))
    np.testing.assert_array_less(abs(theta.means.mean(axis=0) - whole.means[0]) / sd, 0.035)
    np.testing.assert_array_less(abs(np.cov(theta.means.T) - matrix) / np.outer(sd, sd), 0.07)
    again = family.start(pooled, 5, np.random.default_rng(1))
    assert_equal_theta(again, family.start(pooled, 5, np.random.default_rng(1)))


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_start_where_rows_lie_in_a_plane(covariance: Any, rows: Any, rng: Any) -> None:
    X = rows @ np.diag([1.0, 1.0, 0.0, 0.0])
    family = Gaussian(covariance, reg=0.0)
    theta = family.start(family.stats(X, np.ones((300, 1))), 5, rng)
    # The eigenvalues are 1e-12 of a variance, which is about 3 here; the draws are as its root.
    np.testing.assert_allclose(theta.means[:, 2:], 0.0, atol=1e-5)
    assert np.ptp(theta.means[:, 0]) > 0


# -- parameters, rows, errors --------------------------------------------------------------


@sklearn_type
def test_n_parameters_is_that_of_scikit_learn(covariance: Any, rng: Any) -> None:
    theta = some_theta(covariance, rng, k=3, d=5)
    model = GaussianMixture(3, covariance_type=covariance)
    model.means_ = theta.means
    assert Gaussian(covariance).n_parameters(theta) == model._n_parameters() - 2


def test_unit_has_free_means_only(rng: Any) -> None:
    assert Gaussian("unit").n_parameters(some_theta("unit", rng, k=3, d=5)) == 15
    assert Gaussian("unit").log_prior(some_theta("unit", rng)) == 0.0


def test_empty_rows(rows: Any, resp: Any) -> None:
    family = Gaussian()
    X = rows.copy()
    X[[3, 7]] = np.nan
    assert family.check(X, "v") is X
    np.testing.assert_array_equal(np.flatnonzero(family.empty(X)), [3, 7])
    encoded = family.encode(X)
    assert np.isnan(X[3]).all(), "the input is left alone"
    resp[[3, 7]] = 0.0
    keep = ~family.empty(X)
    assert_equal_stats(family.stats(encoded, resp), family.stats(rows[keep], resp[keep]))


def test_encode_copies_only_if_it_must(rows: Any) -> None:
    family = Gaussian()
    assert family.encode(rows) is rows
    S = sp.csr_array(rows)
    assert np.shares_memory(family.encode(S).data, S.data)
    for X in (rows.astype(np.float32), np.asfortranarray(rows), rows.astype(int)):
        encoded = family.encode(X)
        assert encoded.dtype == np.float64
        assert encoded.flags.c_contiguous
        np.testing.assert_array_equal(encoded, X)


def test_errors_name_view_row_and_fix(rows: Any) -> None:
    family = Gaussian()
    for value, message in [
        (np.inf, r"view 'meaning', row 5: the value inf is not finite"),
        (-np.inf, r"view 'meaning', row 5: the value -inf is not finite"),
    ]:
        X = rows.copy()
        X[5, 2] = value
        with pytest.raises(ValueError, match=message):
            family.check(X, "meaning")
        X[5, 2] = np.nan  # a sparse matrix has no place for missing entries
        with pytest.raises(ValueError, match=r"view 'meaning', row 5: .*not finite"):
            family.check(sp.csr_array(X), "meaning")
    with pytest.raises(ValueError, match=r"view 'meaning': .*real numbers, not complex128"):
        family.check(rows * 1j, "meaning")


def test_errors_of_hyper_parameters() -> None:
    with pytest.raises(ValueError, match="full, tied, diag, spherical, unit, not 'diagonal'"):
        Gaussian("diagonal")  # type: ignore[arg-type]
    for reg in (-1e-9, np.inf, np.nan):
        with pytest.raises(ValueError, match="reg must be finite and 0 or more"):
            replace(Gaussian(), reg=reg)
