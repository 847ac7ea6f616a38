"""Von Mises-Fisher components: Bessel functions, the M step, and the laws of a family.

In float64 sums of a few hundred terms of order one round to about 1e-14; tolerances of 1e-10 leave
room for another order of summation. In float32 a row has rounding errors of 6e-8, and kappa times
a cosine of 50 times that; tolerances of 1e-5 times kappa leave room for sums.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, special, stats

from coem.families import von_mises_fisher as module
from coem.families.von_mises_fisher import (
    DEFAULT_KAPPA,
    MAX_KAPPA,
    VonMisesFisher,
    VonMisesFisherStats,
    VonMisesFisherTheta,
)

TOL: Any = {"rtol": 1e-10, "atol": 1e-10}
KAPPAS = np.logspace(-6, 6, 49)
EPS = np.finfo(np.float64).eps


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.fixture
def rows(rng: np.random.Generator) -> Any:
    return unit(rng.standard_normal((300, 5)) + np.array([1.0, 0.0, 0.0, -0.5, 0.0]))


@pytest.fixture
def resp(rng: np.random.Generator) -> np.ndarray:
    return rng.dirichlet(np.ones(3), 300)


def unit(X: Any) -> Any:
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


def double(kappa: Any = None, alpha: float = 1.0) -> VonMisesFisher:
    return VonMisesFisher(kappa, alpha, dtype=np.float64)


def log_c(kappa: Any, d: int) -> Any:
    return module._bessel(np.asarray(kappa, dtype=np.float64), d)[0]


def mean_cosine(kappa: Any, d: int) -> Any:
    return kappa * module._bessel(np.asarray(kappa, dtype=np.float64), d)[1]


def some_theta(rng: np.random.Generator, k: int = 3, d: int = 4) -> VonMisesFisherTheta:
    return VonMisesFisherTheta(unit(rng.standard_normal((k, d))), rng.uniform(1.0, 30.0, k))


def assert_equal(a: Any, b: Any, **tol: Any) -> None:
    pairs = zip(a, b, strict=True) if isinstance(a, tuple) else _fields(a, b)
    for mine, other in pairs:
        np.testing.assert_allclose(mine, other, **(tol or TOL))


def _fields(a: VonMisesFisherStats, b: VonMisesFisherStats) -> list[tuple[Any, Any]]:
    return [(a.mass, b.mass), (a.resultant, b.resultant)]


# -- Bessel functions ----------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 7, 20, 40, 59, 60, 61, 62, 63, 64, 80, 200, 1000])
def test_bessel_functions_are_those_of_scipy(d: int) -> None:
    # On both sides of order 30, where the expansions begin, as long as scipy does not underflow.
    order = d / 2 - 1
    low, high = special.ive(order, KAPPAS), special.ive(order + 1, KAPPAS)
    fine = high > 1e-290
    assert fine.sum() > 10
    kappas, low, high = KAPPAS[fine], low[fine], high[fine]
    expected = order * np.log(kappas) - d / 2 * np.log(2 * np.pi) - np.log(low) - kappas
    # A sum of terms as large as kappa, or as log C, rounds in proportion to them.
    size = 1e-12 * (1 + np.abs(expected)) + 8 * EPS * kappas
    np.testing.assert_array_less(np.abs(log_c(kappas, d) - expected), size)
    np.testing.assert_allclose(mean_cosine(kappas, d), high / low, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 61, 62, 384, 5000, 100_000])
def test_recurrences_and_bounds(d: int) -> None:
    above, here = mean_cosine(KAPPAS, d + 2), mean_cosine(KAPPAS, d)
    # I_{v-1} - I_{v+1} = 2 v I_v / kappa (A&S 9.6.26), here for the ratios; a few roundings.
    np.testing.assert_allclose(here, KAPPAS / (d + KAPPAS * above), rtol=20 * EPS)
    base = np.log(2 * np.pi) - np.log(d + KAPPAS * above)
    # Both sides are sums of terms as large as log C and kappa.
    size = 20 * EPS * (np.abs(log_c(KAPPAS, d)) + KAPPAS + d)
    np.testing.assert_array_less(np.abs(log_c(KAPPAS, d) - log_c(KAPPAS, d + 2) - base), size)
    # The bounds of Amos (1974), Mathematics of Computation 28, 239-251.
    half = (d - 1) / 2
    lower = KAPPAS / (half + np.hypot(KAPPAS, half + 1))
    upper = KAPPAS / (half + np.hypot(KAPPAS, half))
    assert (here >= lower * (1 - 20 * EPS)).all()
    assert (here <= upper * (1 + 20 * EPS)).all()
    assert np.isfinite(log_c(np.array([0.0, 1e-6, 1e6, 1e9]), d)).all()


@pytest.mark.parametrize("d", [1, 2, 5, 61, 62, 100_000])
def test_without_concentration_the_density_is_uniform(d: int) -> None:
    area = np.log(2) + d / 2 * np.log(np.pi) - special.gammaln(d / 2)
    np.testing.assert_allclose(log_c(0.0, d), -area, rtol=1e-13)
    np.testing.assert_allclose(module._bessel(np.zeros(1), d)[1], 1 / d, rtol=1e-13)


def test_closed_forms() -> None:
    kappas = KAPPAS[KAPPAS < 300]
    # Two points; and Fisher's density on the sphere, kappa / (4 pi sinh kappa).
    np.testing.assert_allclose(log_c(kappas, 1), -np.log(2 * np.cosh(kappas)), **TOL)
    expected = np.log(kappas / (4 * np.pi * np.sinh(kappas)))
    np.testing.assert_allclose(log_c(kappas, 3), expected, **TOL)
    np.testing.assert_allclose(mean_cosine(kappas, 1), np.tanh(kappas), rtol=1e-13)


@pytest.mark.parametrize("d", [3, 10, 62, 500])
@pytest.mark.parametrize("kappa", [0.1, 5.0, 80.0])
def test_density_integrates_to_one(d: int, kappa: float) -> None:
    # Over the cosine w: the sphere at w has radius (1 - w^2)^(1/2) and d - 1 dimensions.
    area = np.log(2) + (d - 1) / 2 * np.log(np.pi) - special.gammaln((d - 1) / 2)

    def density(w: float) -> float:
        edge = (d - 3) / 2 * np.log1p(-w * w) if d > 3 else 0.0
        return float(np.exp(log_c(kappa, d) + kappa * w + area + edge))

    near = float(mean_cosine(kappa, d))
    total, _ = integrate.quad(density, -1, 1, points=[near], epsabs=1e-11, epsrel=1e-11, limit=200)
    # log C of some hundreds has an error of 1e-13.
    assert total == pytest.approx(1.0, rel=1e-9)
    mean, _ = integrate.quad(
        lambda w: w * density(w), -1, 1, points=[near], epsabs=1e-11, epsrel=1e-11, limit=200
    )
    assert mean == pytest.approx(near, rel=1e-9)


def test_density_integrates_to_one_on_the_circle(rng: Any) -> None:
    angles = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    density = np.exp(double().log_prob(X, some_theta(rng, d=2)))
    # The trapezoidal rule converges geometrically on a period.
    np.testing.assert_allclose(density.mean(axis=0) * 2 * np.pi, 1.0, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 5, 62, 384, 100_000])
def test_kappa_is_solved_to_full_precision(d: int) -> None:
    means = mean_cosine(KAPPAS, d)
    found = module._solve_kappa(means, d)
    # One rounding of the mean moves kappa by the condition number, at most some 1e6 near the pole.
    slope = 1 - means**2 - (d - 1) * means / KAPPAS
    np.testing.assert_array_less(
        np.abs(found / KAPPAS - 1), 20 * EPS * (1 + means / slope / KAPPAS)
    )
    # Rounding at the end of the range may ask for a little more than there is.
    np.testing.assert_array_less(np.abs(mean_cosine(found, d) - means), 20 * EPS)


def test_kappa_at_the_ends_of_its_range() -> None:
    for d in (2, 3, 384):
        found = module._solve_kappa(np.array([0.0, 1.0, 1.0 + 1e-7]), d)
        np.testing.assert_array_equal(found, [0.0, MAX_KAPPA, MAX_KAPPA])
    # On two points, the mean is tanh(kappa).
    np.testing.assert_allclose(module._solve_kappa(np.array([0.3, 0.9]), 1), np.arctanh([0.3, 0.9]))


# -- the density ---------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 8, 100])
def test_log_prob_is_that_of_scipy(d: int, rng: Any) -> None:
    theta, X = some_theta(rng, d=d), unit(rng.standard_normal((40, d)))
    pairs = zip(*theta, strict=True)
    expected = np.transpose([stats.vonmises_fisher(mu, kappa).logpdf(X) for mu, kappa in pairs])
    np.testing.assert_allclose(double().log_prob(X, theta), expected, **TOL)
    single = VonMisesFisher().bind(X, None)
    assert single.dtype == np.float32
    scores = single.log_prob(single.encode(X), theta)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5 * 30)


# -- the M step ----------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [None, 7.0, "fit"])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 30.0])
def test_no_perturbation_raises_the_posterior(
    kappa: Any, alpha: float, rows: Any, resp: Any, rng: Any
) -> None:
    family = double(kappa, alpha)
    theta = family.estimate(family.stats(rows, resp))

    def value(theta: VonMisesFisherTheta) -> float:
        return float((resp * family.log_prob(rows, theta)).sum()) + family.log_prior(theta)

    best = value(theta)
    for size in np.repeat([1e-1, 1e-2, 1e-3], 20):
        directions = unit(theta.directions + size * rng.standard_normal((3, 5)))
        # 1e-10 is rounding; the smallest steps cost about n size^2, 1e-4.
        assert value(theta._replace(directions=directions)) <= best + 1e-10
        if kappa == "fit":
            kappas = theta.kappas * np.exp(size * rng.standard_normal(3))
            assert value(theta._replace(kappas=kappas)) <= best + 1e-10
            assert value(VonMisesFisherTheta(directions, kappas)) <= best + 1e-10


def test_estimate_in_words(rows: Any, resp: Any) -> None:
    gathered = double().stats(rows, resp)
    theta = double("fit", alpha=2.0).estimate(gathered)
    np.testing.assert_allclose(theta.directions, unit(resp.T @ rows), **TOL)
    means = np.linalg.norm(resp.T @ rows, axis=1) / (resp.sum(axis=0) + 2.0)
    np.testing.assert_allclose(mean_cosine(theta.kappas, 5), means, rtol=1e-12)
    for kappa, expected in [(None, DEFAULT_KAPPA), (3, 3.0), (np.float32(2.5), 2.5)]:
        fixed = double(kappa).estimate(gathered)
        np.testing.assert_array_equal(fixed.kappas, np.full(3, expected))
        assert double(kappa).log_prior(fixed) == 0.0


def test_scipy_fits_the_same_without_a_prior(rows: Any) -> None:
    family = double("fit", alpha=0.0)
    theta = family.estimate(family.stats(rows, np.ones((300, 1))))
    mu, kappa = stats.vonmises_fisher.fit(rows)
    np.testing.assert_allclose(theta.directions[0], mu, **TOL)
    # scipy's root finder stops at a relative 1e-9 or so.
    np.testing.assert_allclose(theta.kappas[0], kappa, rtol=1e-7)


def test_the_prior_holds_back_a_single_row(rng: Any) -> None:
    X = unit(rng.standard_normal((1, 384)))
    resp = np.ones((1, 1))
    with_prior, without = double("fit"), double("fit", alpha=0.0)
    kappa = with_prior.estimate(with_prior.stats(X, resp)).kappas[0]
    np.testing.assert_allclose(mean_cosine(kappa, 384), 0.5, rtol=1e-12)
    assert without.estimate(without.stats(X, resp)).kappas[0] == MAX_KAPPA


@pytest.mark.parametrize("kappa", [None, "fit"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_component_without_direction(kappa: Any, alpha: float, rows: Any, resp: Any) -> None:
    family = double(kappa, alpha)
    dead = np.column_stack([resp[:, :2], np.zeros(300)])
    theta = family.estimate(family.stats(rows, dead))
    np.testing.assert_allclose(theta.directions[2], unit((dead.T @ rows).sum(axis=0)), **TOL)
    assert theta.kappas[2] == (0.0 if kappa == "fit" else DEFAULT_KAPPA)
    assert np.isfinite(family.log_prob(rows, theta)).all()
    both = np.concatenate([rows, -rows])
    for weights in (np.ones((600, 2)), np.zeros((600, 2))):
        gathered = family.stats(both, weights)
        exact = replace(gathered, resultant=np.zeros((2, 5)))
        theta = family.estimate(exact)
        np.testing.assert_array_equal(theta.directions, np.eye(1, 5).repeat(2, axis=0))
        assert np.isfinite(family.log_prob(rows, theta)).all()
        assert np.isfinite(family.log_prior(theta))


# -- the laws of statistics ----------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 1, 137, 300])
def test_stats_add(cut: int, rows: Any, resp: Any) -> None:
    family = double()
    parts = family.stats(rows[:cut], resp[:cut]) + family.stats(rows[cut:], resp[cut:])
    assert_equal(parts, family.stats(rows, resp))


def test_stats_scale(rows: Any, resp: Any) -> None:
    family = double()
    assert_equal(family.stats(rows, 2.5 * resp), family.stats(rows, resp).scaled(2.5))
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)[:, None]
    twice = np.concatenate([np.arange(300), np.arange(100)])
    assert_equal(family.stats(rows, weights * resp), family.stats(rows[twice], resp[twice]))


def test_components_and_rows_may_change_places(rows: Any, resp: Any) -> None:
    family, order = double("fit"), np.array([2, 0, 1])
    theta = family.estimate(family.stats(rows, resp))
    moved = family.estimate(family.stats(rows[::-1], resp[::-1, order]))
    assert_equal(tuple(moved), tuple(part[order] for part in theta))
    log_prob = family.log_prob(rows, moved)
    np.testing.assert_allclose(log_prob, family.log_prob(rows, theta)[:, order], **TOL)


def test_single_precision_sums_are_float64(rng: Any) -> None:
    X, resp = unit(rng.standard_normal((20_000, 8)) + 1), rng.dirichlet(np.ones(3), 20_000)
    single = VonMisesFisher().bind(X, None)
    gathered = single.stats(single.encode(X), resp.astype(np.float32))
    assert gathered.resultant.dtype == gathered.mass.dtype == np.float64
    # Rows and responsibilities err by 6e-8 each, at random; a float32 sum would err by 1e-4.
    np.testing.assert_allclose(gathered.resultant, resp.T @ X, rtol=1e-6)
    np.testing.assert_allclose(gathered.mass, resp.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_sparse_is_dense(dtype: Any, make: Any, rng: Any) -> None:
    X = rng.standard_normal((200, 40)) * (rng.random((200, 40)) < 0.2)
    X[3] = 0.0
    family = VonMisesFisher("fit").bind(X, dtype)
    dense, sparse = family.encode(X), family.encode(make(X))
    assert dense.dtype == sparse.dtype == dtype
    tol = 1e-10 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(sparse.toarray(), dense, atol=tol)
    np.testing.assert_array_equal(family.empty(make(X)), family.empty(X))
    resp = rng.dirichlet(np.ones(5), 200) * ~family.empty(X)[:, None]
    mine, other = family.stats(sparse, resp.astype(dtype)), family.stats(dense, resp.astype(dtype))
    assert_equal(mine, other, atol=10 * tol, rtol=tol)
    theta = family.estimate(other)
    scores = family.log_prob(sparse, theta)
    assert scores.dtype == np.float64
    scale = theta.kappas.max()
    np.testing.assert_allclose(scores, family.log_prob(dense, theta), atol=scale * tol, rtol=tol)


# -- starting and sampling -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3, 10, 200])
def test_sample_then_estimate_recovers(d: int, rng: Any) -> None:
    truth = VonMisesFisherTheta(unit(rng.standard_normal((3, d))), d * np.array([0.5, 2.0, 9.0]))
    labels = rng.integers(0, 3, 60_000)
    family = double("fit", alpha=0.0)
    X = family.sample(truth, labels, rng)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, rtol=1e-12)
    found = family.estimate(family.stats(X, np.eye(3)[labels]))
    # The mean cosine has standard error sd / sqrt(20,000), with variance A'(kappa); five of them.
    means = mean_cosine(truth.kappas, d)
    slope = 1 - means**2 - (d - 1) * means / truth.kappas
    error = 5 * np.sqrt(slope / 20_000)
    cosines = (X * truth.directions[labels]).sum(axis=1)
    observed = np.bincount(labels, cosines) / np.bincount(labels)
    np.testing.assert_array_less(np.abs(observed - means), error)
    # So has kappa, with 1 / (sd sqrt(20,000)); the direction takes a little off, hence one more.
    np.testing.assert_array_less(
        np.abs(found.kappas - truth.kappas), 6 / np.sqrt(20_000 * slope) + d / 2000
    )
    # In each of d - 1 directions the resultant errs by (A / kappa / 20,000)^(1/2).
    off = np.linalg.norm(found.directions - truth.directions, axis=1)
    spread = np.sqrt((d - 1) / (means * truth.kappas * 20_000))
    np.testing.assert_array_less(off, spread * (1 + 5 / np.sqrt(d)) + 1e-9)
    start = family.start(family.stats(X, np.ones((len(X), 1))), 3, rng)
    assert (np.linalg.norm(start.directions - truth.directions, axis=1) > spread).any()


@pytest.mark.parametrize(("d", "kappa"), [(2, 0.0), (2, 3.0), (3, 20.0), (30, 40.0), (384, 1e6)])
def test_sampled_cosines_have_their_distribution(d: int, kappa: float, rng: Any) -> None:
    theta = VonMisesFisherTheta(np.eye(1, d), np.array([kappa]))
    cosines = double().sample(theta, np.zeros(2000, dtype=int), rng)[:, 0]
    area = np.log(2) + (d - 1) / 2 * np.log(np.pi) - special.gammaln((d - 1) / 2)

    def density(angle: Any) -> Any:
        # By the angle, since the density over the cosine has poles at the ends if d = 2.
        sines = np.sin(angle)
        powers = (d - 2) * np.log(sines, where=sines > 0, out=np.full(np.shape(angle), -1e5))
        return np.exp(log_c(kappa, d) + kappa * np.cos(angle) + area + (powers if d > 2 else 0.0))

    top = min(np.pi, 60 / np.sqrt(max(kappa, 1e-9)))
    grid = np.linspace(0, top, 20_001)
    below = integrate.cumulative_trapezoid(density(grid), grid, initial=0)
    # log C of 1e6 leaves an error of 1e-9 or so in the density, and the grid one of 1e-6.
    assert below[-1] == pytest.approx(1.0, abs=1e-5)
    result = stats.kstest(np.arccos(np.clip(cosines, -1, 1)), lambda a: np.interp(a, grid, below))
    assert result.pvalue > 1e-4, "the seed is fixed: one in 10,000 would be ours to have picked"


def test_samples_on_two_points(rng: Any) -> None:
    theta = VonMisesFisherTheta(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]))
    labels = np.repeat([0, 1], 20_000)
    X = double().sample(theta, labels, rng)
    assert set(X.ravel()) == {-1.0, 1.0}
    expected = np.tanh(0.5) * np.array([1, -1])
    means = X.reshape(2, -1).mean(axis=1)
    np.testing.assert_allclose(means, expected, atol=5 / np.sqrt(20_000))  # five standard errors


@pytest.mark.parametrize("kappa", [None, "fit"])
def test_start_spreads_as_the_rows_do(kappa: Any, rng: Any) -> None:
    X = unit(rng.standard_normal((500, 300)) + 0.05)
    family = double(kappa)
    pooled = family.stats(X, np.ones((500, 1)))
    theta = family.start(pooled, 400, rng)
    np.testing.assert_allclose(np.linalg.norm(theta.directions, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(theta.kappas, np.repeat(family.estimate(pooled).kappas, 400))
    mean = pooled.resultant[0] / 500
    # Cosines with the mean row, among rows and among starts: standard errors are 0.06 / 20.
    assert np.mean(theta.directions @ unit(mean)) == pytest.approx(
        np.mean(X @ unit(mean)), abs=0.02
    )
    again = family.start(pooled, 5, np.random.default_rng(1))
    assert_equal(tuple(again), tuple(family.start(pooled, 5, np.random.default_rng(1))))


def test_no_rows(rng: Any) -> None:
    family, theta = double(), some_theta(rng, d=4)
    for X in (np.empty((0, 4)), sp.csr_array((0, 4))):
        assert family.encode(X).shape == (0, 4)
        assert family.log_prob(X, theta).shape == (0, 3)
        gathered = family.stats(X, np.empty((0, 3)))
        assert not gathered.mass.any()
        assert not gathered.resultant.any()


def test_start_without_rows(rng: Any) -> None:
    nothing = VonMisesFisherStats(np.zeros(1), np.zeros((1, 4)))
    theta = double("fit").start(nothing, 3, rng)
    np.testing.assert_allclose(np.linalg.norm(theta.directions, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(theta.kappas, 0.0)


# -- parameters, rows, errors --------------------------------------------------------------


def test_n_parameters(rng: Any) -> None:
    theta = some_theta(rng, k=3, d=7)
    assert VonMisesFisher().n_parameters(theta) == 18
    assert VonMisesFisher("fit").n_parameters(theta) == 21


def test_bind_sets_the_precision(rows: Any) -> None:
    assert VonMisesFisher().bind(rows, None).dtype == np.float32
    assert VonMisesFisher().bind(rows, np.float64).dtype == np.float64
    assert VonMisesFisher().encode(rows).dtype == np.float32, "the same without bind"
    assert VonMisesFisher.wide


def test_encode_copies_only_if_it_must(rows: Any) -> None:
    family = double()
    rows[5] = 0.0
    nearly = rows * (1 + 5e-7)
    assert family.encode(nearly) is nearly
    S = sp.csr_array(nearly)
    assert np.shares_memory(family.encode(S).data, S.data)
    for X in (rows * 3, np.asfortranarray(rows * 2), (1000 * rows).astype(int)):
        encoded = family.encode(X)
        assert encoded.flags.c_contiguous
        np.testing.assert_allclose(np.linalg.norm(encoded, axis=1), np.arange(300) != 5, rtol=1e-12)
        np.testing.assert_allclose(family.encode(sp.csr_array(X)).toarray(), encoded, **TOL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_empty_rows(dtype: Any, rows: Any, resp: Any) -> None:
    X = rows.astype(dtype)
    X[3], X[7] = 0.0, np.nan
    family = double().bind(X, dtype)
    assert family.check(X, "v") is X
    np.testing.assert_array_equal(np.flatnonzero(family.empty(X)), [3, 7])
    encoded = family.encode(X)
    assert np.isnan(X[7]).all(), "the input is left alone"
    np.testing.assert_array_equal(encoded[[3, 7]], 0.0)
    resp[[3, 7]] = 0.0
    keep = ~family.empty(X)
    tol = 1e-10 if dtype == np.float64 else 1e-5
    assert_equal(family.stats(encoded, resp), family.stats(X[keep], resp[keep]), atol=tol)


def test_errors_name_view_row_and_fix(rows: Any) -> None:
    family = VonMisesFisher()
    for value, message in [
        (np.nan, r"view 'meaning', row 5: .*fill it in or make the whole row NaN"),
        (-np.inf, r"view 'meaning', row 5: the value -inf is not finite"),
    ]:
        X = rows.copy()
        X[5, 2] = value
        with pytest.raises(ValueError, match=message):
            family.check(X, "meaning")
        with pytest.raises(ValueError, match=r"view 'meaning', row 5: .*not finite"):
            family.check(sp.csr_array(X), "meaning")


def test_errors_of_hyper_parameters() -> None:
    for kappa in (0, -1.0, np.inf, np.nan, "fitted"):
        with pytest.raises(ValueError, match="kappa must be a number above 0, 'fit' or None"):
            VonMisesFisher(kappa)  # type: ignore[arg-type]
    for alpha in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="alpha must be finite and 0 or more"):
            VonMisesFisher("fit", alpha=alpha)
