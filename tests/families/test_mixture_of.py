"""Components that are mixtures themselves: against slow NumPy, and in limiting cases."""

import pickle
from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import (
    Bernoulli,
    Categorical,
    Family,
    Gaussian,
    MixtureOf,
    Multinomial,
    VonMisesFisher,
)
from coem.families.gaussian import Covariance
from coem.families.mixture_of import MixtureOfTheta, innermost
from coem.families.named import family_parts, shape_of
from coem.initialise.spherical import rescaled
from coem.kernels.counts import is_table
from tests.engines import ENGINES

N, K, M = 160, 2, 2
RNG = np.random.default_rng(3)
PLACE = np.arange(N) % (K * M)  # the true inner component
GROUP = PLACE // M
POINTS = 6 * np.array([[0, 0, 1], [4, 0, 1], [0, 4, 1], [4, 4, 1]])[PLACE] + RNG.normal(size=(N, 3))
COUNTS = RNG.poisson(np.exp(RNG.standard_normal((K * M, 9)))[PLACE]).astype(float)
CODES = np.where(RNG.random((N, 3)) < 0.8, PLACE[:, np.newaxis], 1).astype(float)
CODES[5, 1] = np.nan
UNIT = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)

CASES = {
    "multinomial": (Multinomial(), COUNTS),
    "sparse multinomial": (Multinomial(0.1), sp.csr_matrix(COUNTS)),
    "bernoulli": (Bernoulli(), COUNTS > 1),
    "categorical": (Categorical(), CODES),
    **{covariance: (Gaussian(covariance), POINTS) for covariance in get_args(Covariance)},
    "von Mises-Fisher": (VonMisesFisher(), UNIT),
    "sparse von Mises-Fisher": (VonMisesFisher("fit"), sp.csr_matrix(COUNTS)),
}
every_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(autouse=True)
def one_thread():
    # Matrices of a few rows: threads of the BLAS would only wait for each other.
    with threadpool_limits(1):
        yield


def bound(case, m=M, **options):
    """Return the family of a case in double precision, its inner family, and the encoded rows."""
    family, X = CASES[case]
    inner = family.bind(family.check(X, "X"), np.float64)
    return MixtureOf(inner, m, **options), inner, inner.encode(X)


def shares(seed=0, k=K):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=N) * rng.uniform(0.5, 2.0, size=(N, 1))


# -- slow NumPy -----------------------------------------------------------------------------------


def slow_m_step(X, resp, weights, means, covariances, alpha):
    """Return new weights, means and covariances of Gaussians, one component after the other."""
    new = np.empty_like(weights), np.empty_like(means), np.empty_like(covariances)
    for j in range(K):
        dens = [
            weights[j, i] * multivariate_normal(means[j, i], covariances[j, i]).pdf(X)
            for i in range(M)
        ]
        for i in range(M):
            own = resp[:, j] * dens[i] / sum(dens)
            new[0][j, i] = own.sum() + alpha
            new[1][j, i] = own @ X / own.sum()
            centred = X - new[1][j, i]
            new[2][j, i] = (own[:, np.newaxis] * centred).T @ centred / own.sum()
        new[0][j] /= new[0][j].sum()
    return new


@pytest.mark.parametrize("alpha", [0.0, 2.5])
def test_gaussians_are_those_of_slow_numpy(alpha):
    family, resp = MixtureOf(Gaussian(reg=0.0), M, alpha=alpha), shares()
    weights = np.array([[0.3, 0.7], [0.6, 0.4]])
    means = RNG.normal(size=(K, M, 3)) + POINTS.mean(axis=0)
    covariances = np.array([[20 * np.eye(3), 9 * np.eye(3)], [15 * np.eye(3), 30 * np.eye(3)]])
    theta = MixtureOfTheta(np.log(weights), means, covariances)
    for _ in range(3):
        densities = [
            sum(
                weights[j, i] * multivariate_normal(means[j, i], covariances[j, i]).pdf(POINTS)
                for i in range(M)
            )
            for j in range(K)
        ]
        expected = np.log(np.stack(densities, axis=1))
        np.testing.assert_allclose(family.log_prob(POINTS, theta), expected, rtol=1e-10)
        assert family.log_prior(theta) == pytest.approx(alpha * np.log(weights).sum())
        theta = family.maximise(POINTS, resp, theta)
        weights, means, covariances = slow_m_step(POINTS, resp, weights, means, covariances, alpha)
        np.testing.assert_allclose(np.exp(theta.log_weights), weights, rtol=1e-9)
        np.testing.assert_allclose(theta[1], means, rtol=1e-9)
        np.testing.assert_allclose(theta[2], covariances, rtol=1e-7, atol=1e-7)


def test_multinomials_are_those_of_slow_numpy():
    (family, inner, X), resp = bound("multinomial", alpha=0.5), shares()
    probs, weights = RNG.dirichlet(np.ones(9), size=(K, M)), RNG.dirichlet(np.ones(M), size=K)
    theta = MixtureOfTheta(np.log(weights), np.log(probs))
    joint = np.log(weights) + np.einsum("nw,jlw->njl", COUNTS, np.log(probs))
    log_prob = logsumexp(joint, axis=2)
    np.testing.assert_allclose(family.log_prob(X, theta), log_prob, rtol=1e-12)
    own = resp[:, :, np.newaxis] * np.exp(joint - log_prob[:, :, np.newaxis])
    counts = np.einsum("njl,nw->jlw", own, COUNTS)
    stats, new = family.stats_under(X, resp, theta), family.maximise(X, resp, theta)
    np.testing.assert_allclose(stats.mass, own.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(stats.inner.counts, counts.reshape(K * M, 9), rtol=1e-12)
    expected = (counts + inner.alpha) / (counts + inner.alpha).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(np.exp(new[1]), expected, rtol=1e-9)
    mass = own.sum(axis=0) + 0.5
    np.testing.assert_allclose(
        np.exp(new.log_weights), mass / mass.sum(axis=1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_allclose(
        family.feature_probs(theta), np.einsum("jl,jlw->jw", weights, probs), rtol=1e-12
    )
    assert family.n_parameters(theta) == K * M * 8 + K * (M - 1)
    assert family.terms(X[:1], theta) is None


@every_case
def test_the_fast_m_step_is_the_slow_one(case):
    family, _, X = bound(case)
    theta, resp = family.maximise(X, shares()), shares(1)
    one = family.maximise(X, resp, theta)
    two = family.estimate(family.stats_under(X, resp, theta))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert [part.shape[:2] for part in one] == [(K, M)] * len(one)


@every_case
def test_many_rows_are_divided_in_chunks(case, monkeypatch):
    family, _, X = bound(case)
    theta, resp = family.maximise(X, shares()), shares(1)
    whole = family.stats_under(X, resp, theta).mass
    monkeypatch.setattr("coem.families.mixture_of._CHUNK", 37)
    np.testing.assert_allclose(family.stats_under(X, resp, theta).mass, whole, rtol=1e-12)


# -- limiting cases -------------------------------------------------------------------------------


@every_case
def test_one_inner_component_is_the_inner_family(case):
    family, X = CASES[case]
    for init in ("random", "spherical"):
        fits = [
            MixtureClusterer(3, family=f, init=init, max_iter=4, tol=0, random_state=1).fit(X)
            for f in (family, MixtureOf(family, 1))
        ]
        plain, nested = (model.theta_["view0"] for model in fits)
        plain = plain if isinstance(plain, tuple) else (plain,)
        for a, b in zip(plain, nested.flat, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(*(model.predict_proba(X) for model in fits))
        np.testing.assert_array_equal(*(model.aic(X) for model in fits))
        assert fits[0].history_[-1].objective == fits[1].history_[-1].objective
        drawn = [model.sample(5, random_state=0)[0] for model in fits]
        dense = [x.toarray() if sp.issparse(x) else x for x in drawn]
        np.testing.assert_array_equal(*dense)


@every_case
def test_one_component_with_m_inner_ones_is_a_mixture_of_m(case):
    family, X = CASES[case]
    options = {"init": "random", "max_iter": 12, "tol": 0, "random_state": 0, "dtype": np.float64}
    plain = MixtureClusterer(M + 1, family=family, **options).fit(X)
    nested = MixtureClusterer(1, family=MixtureOf(family, M + 1, alpha=0.0), **options).fit(X)
    theta = nested.theta_["view0"]
    np.testing.assert_allclose(np.exp(theta.log_weights[0]), plain.weights_, rtol=1e-7)
    parts = plain.theta_["view0"]
    parts = parts if isinstance(parts, tuple) else (parts,)
    for a, b in zip(parts, theta.flat, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    objectives = ([r.objective for r in model.history_] for model in (nested, plain))
    np.testing.assert_allclose(*objectives, rtol=1e-9)
    assert nested.bic(X) == pytest.approx(plain.bic(X))


def test_a_tied_covariance_is_shared_by_all_inner_components():
    family, _, X = bound("tied")
    theta = family.maximise(X, shares())
    for _ in range(2):
        theta = family.maximise(X, shares(1), theta)
        assert (theta[2] == theta[2][0, 0]).all()
    assert family.n_parameters(theta) == K * M * 3 + 6 + K * (M - 1)


# -- fits -----------------------------------------------------------------------------------------


@every_case
def test_the_objective_of_fits_never_falls(case):
    family, X = CASES[case]
    nested = MixtureOf(family)
    options = {"family": nested, "dtype": np.float64, "max_iter": 15, "tol": 0}
    labels = np.where(np.arange(N) % 3, -1, GROUP)
    for model in (MixtureClusterer(K, **options, random_state=0), MixtureClassifier(**options)):
        model.fit(X, labels)
        energy = np.array([r.free_energy for r in model.history_])
        slack = (1e-9 if nested.exact else 1e-6) * np.abs(energy[:-1])
        assert (np.diff(energy) >= -slack).all()
        assert energy[-1] > energy[0]
    assert (model.predict(X) == GROUP).mean() > 0.7


def test_groups_with_two_centres_each():
    """The classes are the two diagonals of a square: one Gaussian for each cannot tell them."""
    rng, corner = np.random.default_rng(0), np.arange(200) % 4
    X = 6 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[corner] + rng.normal(size=(200, 2))
    y = np.where(np.arange(200) % 5, -1, corner // 2)
    plain = MixtureClassifier(family=Gaussian("spherical")).fit(X, y)
    nested = MixtureClassifier(family=MixtureOf(Gaussian("spherical"))).fit(X, y)
    assert (plain.predict(X) == corner // 2).mean() < 0.8
    assert (nested.predict(X) == corner // 2).mean() > 0.95


@pytest.mark.parametrize("engine", ENGINES)
def test_a_start_from_rows_is_the_same_in_any_partitions(engine):
    views = Views(points=POINTS, words=COUNTS)
    family = {"points": MixtureOf("gaussian", 3), "words": MixtureOf(Multinomial(), 2, seed=5)}
    model = MixtureClusterer(K, family=family, init=shares() / shares().sum(1, keepdims=True))
    model.set_params(max_iter=4, tol=0, dtype=np.float64).fit(views)
    other = clone(model).set_params(engine=ENGINES[engine]()).fit(views)
    for view in views.names:
        for a, b in zip(model.theta_[view], other.theta_[view], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    reseeded = clone(model).set_params(family__points__seed=1).fit(views)
    assert not np.allclose(reseeded.theta_["points"][1], model.theta_["points"][1])


def test_a_dead_component_starts_from_all_rows():
    for case in CASES:
        family, _, X = bound(case)
        theta = family.maximise(X, np.ones((N, 1)) * [1.0, 0.0])
        for part in theta:
            np.testing.assert_array_equal(part[0], part[1])


def test_a_row_that_is_left_out():
    """Leave-one-out equals an M step on the other rows, with the shares of the fit."""
    for case in CASES:
        family, _, X = bound(case)
        resp = shares()
        theta = family.maximise(X, resp)
        stats = family.stats_under(X, resp, theta)
        found = family.log_prob_without(X[:4], resp[:4], stats, theta)
        for i in range(4):
            others = np.arange(N) != i
            rest = family.estimate(family.stats_under(X[others], resp[others], theta))
            np.testing.assert_allclose(found[i], family.log_prob(X[i : i + 1], rest)[0], rtol=1e-7)


def test_a_classifier_leaves_rows_out():
    y = np.where(np.arange(N) % 3, -1, GROUP)
    model = MixtureClassifier(family=MixtureOf("gaussian"), max_iter=5, tol=0).fit(POINTS, y)
    proba = model.leave_one_out(POINTS, y)
    assert proba.shape == (np.sum(y >= 0), K)
    assert (proba.argmax(axis=1) == y[y >= 0]).mean() > 0.9


def test_more_batches_and_several_components_per_class():
    family = MixtureOf(Multinomial())
    model = MixtureClusterer(K, family=family, step="sum", random_state=0, max_iter=5, tol=0)
    for rows in np.split(np.arange(N), 4):
        model.partial_fit(COUNTS[rows])
    kept = model._stats.stats[0].views[0]
    assert set(vars(kept)) == {"inner", "mass"}
    assert kept.mass.sum() == pytest.approx(N, rel=1e-5)
    for init in ("random", "rows"):
        sub = MixtureClassifier(family=family, components_per_class=2, init=init, random_state=0)
        sub.fit(COUNTS, np.where(np.arange(N) % 3, -1, GROUP))
        assert sub.theta_["view0"].log_weights.shape == (2 * K, M)


# -- around the fits ------------------------------------------------------------------------------


@every_case
def test_a_model_file_and_a_pickle_hold_it(case, tmp_path):
    family, X = CASES[case]
    model = MixtureClusterer(K, family=MixtureOf(family), random_state=0, max_iter=3, tol=0)
    model.partial_fit(X)
    model.save(tmp_path / "model.coem")
    for again in (coem.load(tmp_path / "model.coem"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.families_ == model.families_
        assert type(again.theta_["view0"]) is MixtureOfTheta
        again.partial_fit(X)
    loaded = coem.load(tmp_path / "model.coem").theta_["view0"].flat
    kept = [is_table(part) for part in model.theta_["view0"].flat]
    assert [is_table(part) for part in loaded] == kept


def test_a_model_file_holds_shared_covariances_of_many_views(tmp_path):
    """Arrays are told apart by their ids, which Python gives again to new arrays."""
    views = Views({f"v{i}": POINTS + i for i in range(6)})
    family = MixtureOf(Gaussian("tied"))
    model = MixtureClusterer(K, family=family, random_state=0, max_iter=2, tol=0).fit(views)
    model.save(tmp_path / "model.coem")
    again = coem.load(tmp_path / "model.coem")
    for view in views.names:
        for a, b in zip(model.theta_[view], again.theta_[view], strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_row_that_is_infinitely_far_away():
    theta = MixtureOfTheta(np.log([[0.5, 0.5]]), np.zeros((1, 2, 2)), np.full((1, 2, 2), 1e-9))
    family, X = MixtureOf(Gaussian("diag")), np.array([[1e150, 1e150], [0.0, 0.0]])
    with np.errstate(over="ignore"):
        log_prob, stats = family.log_prob(X, theta), family.stats_under(X, np.ones((2, 1)), theta)
    assert np.isfinite(log_prob).all()
    np.testing.assert_allclose(stats.mass, [[1.0, 1.0]])


def test_a_fitted_model_is_a_start():
    family = MixtureOf(Gaussian("diag"))
    first = MixtureClusterer(K, family=family, random_state=0, max_iter=3, tol=0).fit(POINTS)
    more = MixtureClusterer(K, family=family, init=first, max_iter=2, tol=0).fit(POINTS)
    whole = MixtureClusterer(K, family=family, random_state=0, max_iter=5, tol=0).fit(POINTS)
    np.testing.assert_allclose(more.theta_["view0"][1], whole.theta_["view0"][1], rtol=1e-10)
    for other in (MixtureOf(Gaussian("diag"), 3), MixtureOf(Gaussian("full")), Gaussian("diag")):
        with pytest.raises(ValueError, match="other families"):
            MixtureClusterer(K, family=other, init=first).fit(POINTS)
    assert shape_of(family) != shape_of(MixtureOf(Gaussian("diag"), 3))


def test_parameters_of_the_inner_family_have_names():
    model = MixtureClusterer(K, family=MixtureOf(Multinomial(), 3))
    params = model.get_params()
    assert params["family__n_components"] == 3
    assert params["family__family__alpha"] == 1.0
    model.set_params(family__family__alpha=0.5, family__alpha=2.0)
    assert model.family == MixtureOf(Multinomial(0.5), 3, alpha=2.0)
    model.set_params(family={"a__b": MixtureOf("bernoulli"), "c": "gaussian"})
    model.set_params(family__a__b__family__alpha=0.1, family__a__b__n_components=4)
    model.set_params(family__c__reg=0.0)
    assert model.family == {"a__b": MixtureOf(Bernoulli(0.1), 4), "c": Gaussian(reg=0.0)}
    assert "family__a__b__family__alpha" in model.get_params()
    for name in ("family__c__family__reg", "family__a__b__family__reg", "family__d__alpha"):
        with pytest.raises(ValueError, match="invalid parameter"):
            model.set_params(**{name: 1.0})
    deep = MixtureOf(MixtureOf("gaussian"))
    prefixes = [prefix for prefix, _ in family_parts(deep)]
    assert prefixes == ["family", "family__family", "family__family__family"]
    assert innermost(deep) == Gaussian()


@every_case
def test_the_tags_are_those_of_the_inner_family(case):
    family, X = CASES[case]
    nested = MixtureOf(family)
    for tag in ("wide", "nonnegative", "allows_nan", "single_precision", "exact"):
        assert getattr(nested, tag) == getattr(family, tag)
    assert nested.hidden
    assert MixtureOf(family, 1).hidden == family.hidden
    assert MixtureOf(nested, 1).hidden
    tags = [MixtureClusterer(K, family=f).__sklearn_tags__().input_tags for f in (family, nested)]
    assert tags[0] == tags[1]
    encoded = family.bind(X, None).encode(X)
    # k-means sees the same rows in its own way, whatever is inside a component.
    assert rescaled(nested, encoded, None)[0] == rescaled(family, encoded, None)[0]


def test_features_and_samples():
    model = MixtureClusterer(K, family=MixtureOf(Categorical()), random_state=0, max_iter=9, tol=0)
    model.fit(CODES)
    column, level = model.top_features(n=1)[0][0][0]
    assert 0 <= column < 3
    assert 0 <= level < 4
    assert len(model.explain(CODES[:2])) == 2
    theta = MixtureOfTheta(
        np.log([[0.9, 0.1], [0.25, 0.75]]),
        np.array([[[0.0], [10.0]], [[20.0], [30.0]]]),
        np.ones((K, M)),
    )
    family = MixtureOf(Gaussian("unit"))
    drawn = family.sample(theta, np.repeat([0, 1], 4000), np.random.default_rng(0))
    nearest = np.bincount(np.rint(drawn[:, 0] / 10).astype(int), minlength=4) / 4000
    np.testing.assert_allclose(nearest, [0.9, 0.1, 0.25, 0.75], atol=0.03)
    with pytest.raises(ValueError, match="a MixtureOf family has no feature probabilities"):
        MixtureClusterer(1, family=family).fit(POINTS).top_features()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "gauss"}, "unknown family 'gauss'"),
        ({"family": None}, "unknown family None"),
        ({"n_components": 0}, "n_components must be an integer of 1 or more, not 0"),
        ({"n_components": 1.5}, "n_components must be an integer of 1 or more, not 1.5"),
        ({"seed": -1}, "seed must be an integer of 0 or more, not -1"),
        ({"alpha": -0.1}, "alpha must be finite and 0 or more, not -0.1"),
        ({"alpha": np.inf}, "alpha must be finite and 0 or more, not inf"),
    ],
)
def test_impossible_hyper_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        MixtureOf(**({"family": "gaussian"} | options))


def test_bad_rows_are_named_by_the_inner_family():
    with pytest.raises(ValueError, match="view 'view0', row 1"):
        MixtureClusterer(1, family=MixtureOf("multinomial")).fit([[1, 2], [3, -1]])


def test_statistics_that_components_share_cannot_be_taken_apart():
    """A family with such statistics needs its own `start_within`, as tied Gaussians have."""
    family, X = Gaussian("tied"), POINTS
    with pytest.raises(ValueError, match="GaussianStats: the components share some"):
        Family.start_within(family, family.stats(X, shares()), K, M, 0)
