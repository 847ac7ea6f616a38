"""K-means as a mixture: labels in place of responsibilities change nothing but the cost."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Gaussian
from coem.kernels.one_hot import OneHot
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.posterior import Hard
from coem.protocols import Clock
from tests.engines import CutEngine, ForgetfulEngine, PicklingEngine

K, D = 5, 6
UNIT = Gaussian("unit")


@dataclass(frozen=True)
class Plain(Hard):
    """The hard rule, with responsibilities in an array."""

    def compact(self, shape):
        return None


def rows_of(seed, n=300, d=D, apart=2.0):
    rng = np.random.default_rng(seed)
    centres = apart * rng.standard_normal((K, d))
    return centres[rng.integers(K, size=n)] + rng.standard_normal((n, d))


def k_means(rule="hard", rounds=6, **options):
    standard = {"family": UNIT, "weights": "uniform", "tol": 0, "random_state": 0, "init": "rows"}
    return MixtureClusterer(K, posterior=rule, max_iter=rounds, **standard | options)


def fit(model, X, **data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # components without rows
        return model.fit(X, **data)


def same(one, other):
    """Compare two fits: all figures, rounds and labels."""
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-12)
    for name, theta in one.theta_.items():
        np.testing.assert_allclose(theta.means, other.theta_[name].means, rtol=1e-10, atol=1e-12)
    for mine, theirs in zip(one.history_, other.history_, strict=True):
        assert mine.objective == pytest.approx(theirs.objective, rel=1e-12)
        for name, value in mine.log_likelihood.items():
            assert value == pytest.approx(theirs.log_likelihood[name], rel=1e-12)


def missing(X):
    X = X.copy()
    X[::7] = np.nan
    return X


WEIGHT = np.random.default_rng(9).integers(0, 4, size=300) / 2
CASES = {
    "plain": (rows_of(0), {}, {}),
    "weighted rows": (rows_of(1), {}, {"sample_weight": WEIGHT}),
    "global weights": (rows_of(2), {"weights": "global"}, {}),
    "responsibilities to start from": (
        rows_of(3),
        {"init": np.random.default_rng(3).dirichlet(np.ones(K), size=300)},
        {},
    ),
    "default start": (rows_of(4), {"init": "spherical"}, {}),
    "two views together": (
        Views(one=rows_of(5), two=missing(rows_of(6, d=3))),
        {"coupling": "joint"},
        {"sample_weight": WEIGHT},
    ),
    "co-EM": (Views(one=rows_of(5), two=missing(rows_of(6, d=3))), {}, {}),
    "empty rows": (missing(rows_of(7)), {}, {"sample_weight": WEIGHT}),
    "sparse rows": (sp.csr_matrix(rows_of(8)), {}, {}),
    "coupled runs": (rows_of(9), {"coupling_of_runs": "rows", "n_init": 3}, {}),
    "annealed": (rows_of(10), {"beta": 0.3}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_labels_give_what_responsibilities_give(case):
    X, options, data = CASES[case]
    same(fit(k_means(**options), X, **data), fit(k_means(Plain(), **options), X, **data))


def test_labels_of_some_rows_are_respected():
    X = rows_of(11)
    y = np.where(np.arange(300) < 40, np.random.default_rng(0).integers(3, size=300), -1)
    options = {"family": UNIT, "max_iter": 5, "tol": 0, "random_state": 0}
    one = fit(MixtureClassifier(posterior="hard", **options), X, y=y)
    other = fit(MixtureClassifier(posterior=Plain(), **options), X, y=y)
    same(one, other)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_partial_fit():
    one, other = k_means(rounds=2), k_means(Plain(), rounds=2)
    for seed in (12, 13):
        one.partial_fit(rows_of(seed))
        other.partial_fit(rows_of(seed))
    same(one, other)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [3, 8, 19])
def test_each_round_is_one_of_lloyds(k, weighted):
    X = rows_of(14, n=500)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, size=500) if weighted else None
    centres = X[np.random.default_rng(2).choice(500, k, replace=False)]
    start = MixtureClusterer(
        k, family=UNIT, posterior="hard", weights="uniform", init=np.eye(k), max_iter=1, tol=0
    ).fit(centres)
    np.testing.assert_allclose(start.theta_["view0"].means, centres, rtol=1e-15)
    for rounds in (1, 2, 3, 8):
        model = clone(start).set_params(init=start, max_iter=rounds).fit(X, sample_weight=weight)
        truth = KMeans(k, init=centres, n_init=1, tol=0, max_iter=rounds, algorithm="lloyd")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            truth.fit(X, sample_weight=weight)
        np.testing.assert_array_equal(model.labels_, truth.labels_)
        np.testing.assert_allclose(
            model.theta_["view0"].means, truth.cluster_centers_, rtol=1e-9, atol=1e-9
        )
        mass = np.ones(500) if weight is None else weight
        constant = mass.sum() * (np.log(k) + D / 2 * np.log(2 * np.pi))
        assert -2 * (model.objective_ + constant) == pytest.approx(truth.inertia_, rel=1e-9)


def test_ties_and_clusters_without_rows():
    """Equal rows, a row between two centres, and centres that no row is near."""
    X = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0)
    means = np.array([[0.0], [2.0], [2.0], [50.0], [86.0]])  # their mean is not rounded
    start = fit(k_means(init=np.eye(K), rounds=1), means)
    for rule in ("hard", Plain()):
        model = fit(k_means(rule, init=start, rounds=1), X)
        # The first of equals: of the centres 0 and 2, and of the two centres at 2. A centre
        # without rows becomes the mean of all rows.
        expected = [[0.5], [2.0], [1.0], [1.0], [1.0]]
        np.testing.assert_allclose(model.theta_["view0"].means, expected, rtol=1e-12)
    same(fit(k_means(init=start), X), fit(k_means(Plain(), init=start), X))


def test_bits_do_not_depend_on_the_threads():
    X = rows_of(15, n=20_000)
    models = [k_means(n_jobs=n_jobs).fit(X) for n_jobs in (1, 2, 3)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.theta_["view0"].means, models[0].theta_["view0"].means)
        assert model.objective_ == models[0].objective_
        np.testing.assert_array_equal(model.labels_, models[0].labels_)


@pytest.mark.parametrize("engine", [CutEngine, PicklingEngine, ForgetfulEngine])
def test_engines_may_cut_move_and_lose_labels(engine):
    X = rows_of(16)
    same(fit(k_means(engine=engine(3)), X), fit(k_means(), X))


def test_no_array_of_rows_by_components_is_kept():
    mixture = Mixture(Emissions((UNIT,)), K, rule=Hard())
    part, clock = Partition((rows_of(17),), given=np.arange(300) % K), Clock(0, (1.0,), 1.0)
    state = mixture.infer(part, mixture.unknown(), clock, None)
    theta = mixture.maximise(part, mixture.unknown(), 0, clock, state)
    state = mixture.infer(part, theta, clock, state)
    kept = state.resp
    assert isinstance(kept, OneHot)
    theta = mixture.maximise(part, theta, 0, clock, state)
    assert mixture.infer(part, theta, clock, state).resp is kept  # the same memory again


@pytest.mark.parametrize("family", [UNIT, "multinomial"])
def test_clusters_without_rows_are_reported(family):
    """Equal means share the posteriors, but the first of them takes all rows."""
    X = np.repeat(np.eye(3), 5, axis=0)
    model = MixtureClusterer(
        5, family=family, posterior="hard", weights="uniform", random_state=0, max_iter=9, tol=0
    )
    with pytest.warns(ConvergenceWarning, match=r"components \[.*\] of 5 died") as seen:
        model.fit(X)
    empty = np.flatnonzero(np.bincount(model.labels_, minlength=5) == 0).tolist()
    assert len(empty) >= 2
    assert f"components {empty} of 5 died" in str(seen[0].message)


def test_labels_count_for_clusters_without_other_rows():
    """A class that keeps its labelled row has not died."""
    X = np.repeat(np.eye(2), 10, axis=0)
    y = np.full(20, -1)
    y[[0, 10, 11]] = [0, 1, 2]  # classes 1 and 2 have equal rows
    model = MixtureClassifier(family=UNIT, posterior="hard", weights="uniform")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert (model.predict(X) != 2).all()
