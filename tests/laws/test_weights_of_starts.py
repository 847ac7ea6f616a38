"""A weight of 2 is the row given twice, next to it or elsewhere, whatever draws the start."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

from coem import MixtureClassifier, MixtureClusterer, SphericalKMeans, Views
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.initialise import INITS
from coem.runs import best_of

N, K = 40, 3
ROWS = np.random.default_rng(0).integers(0, K, N)  # the groups that the rows are made of


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def levels(rng):
    """Return numbers of levels; the first rows, which keep their weight, show every level."""
    X = np.where(rng.random((N, 4)) < 0.6, ROWS[:, None], rng.integers(0, 3, (N, 4)))
    X[:3] = np.arange(3)[:, None]
    return X


# Rows on a grid are often as near to one seed as to another.
KINDS = {
    "full Gaussian": (
        Gaussian("full", reg=1e-2),
        lambda rng: rng.standard_normal((N, 2)) + 2 * ROWS[:, None],
    ),
    "tied Gaussian": (
        Gaussian("tied", reg=1e-2),
        lambda rng: 9 * rng.standard_normal((N, 3)) + 100 * ROWS[:, None],
    ),
    "grid": (
        Gaussian("diag", reg=1e-2),
        lambda rng: rng.integers(0, 4, (N, 3)) + 2.0 * ROWS[:, None],
    ),
    "gaps": (
        Gaussian("diag", reg=1e-2),
        lambda rng: (
            np.where(rng.random((N, 3)) < 0.2, np.nan, 1.0)
            * (rng.standard_normal((N, 3)) + 2 * ROWS[:, None])
        ),
    ),
    "counts": (
        Multinomial(),
        lambda rng: rng.poisson(np.exp(rng.standard_normal((K, 8)))[ROWS]) + 1,
    ),
    "bits": (Bernoulli(), lambda rng: (rng.random((N, 9)) < rng.random((K, 9))[ROWS]) * 1.0),
    "directions": (
        VonMisesFisher(),
        lambda rng: unit(rng.standard_normal((N, 4)) + 2 * np.eye(4)[ROWS]),
    ),
    "levels": (Categorical(), levels),
}
PAIRS = [
    ("tied Gaussian", "grid"),
    ("full Gaussian", "tied Gaussian"),
    ("grid", "counts"),
    ("gaps", "directions"),
    ("bits", "levels"),
]
CASES = [*(((kind,), "joint") for kind in KINDS), *product(PAIRS, ("co-em", "joint"))]


def made_of(kinds, seed):
    rng = np.random.default_rng(seed)
    views = Views({kind: KINDS[kind][1](rng) for kind in kinds})
    weight = rng.integers(0, 4, N) * np.where(ROWS == 0, 3, 1)  # they move the means
    weight[:3] = 1
    return views, {kind: KINDS[kind][0] for kind in kinds}, weight


def check(model, X, weight, y=None):
    """Fit rows with weights, and the rows as often, in their order and in another one."""
    given = {} if y is None else {"y": y}
    weighted = clone(model).fit(X, **given, sample_weight=weight)
    again = np.repeat(np.arange(N), weight)
    for rows in (again, np.random.default_rng(1).permutation(again)):
        given = {} if y is None else {"y": y[rows]}
        twice = clone(model).fit(X[rows], **given)
        np.testing.assert_allclose(
            [r.objective for r in twice.history_],
            [r.objective for r in weighted.history_],
            rtol=1e-9,
        )
        np.testing.assert_array_equal(twice.labels_, weighted.labels_[rows])


@pytest.mark.filterwarnings("ignore:component")
@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize(("kinds", "coupling"), CASES, ids=str)
def test_a_weight_is_a_number_of_rows(kinds, coupling, init):
    for seed, posterior in enumerate(("soft", "hard")):
        views, family, weight = made_of(kinds, seed)
        options = {"posterior": posterior, "coupling": coupling, "evidence": "fixed"}
        model = MixtureClusterer(
            K, family=family, init=init, max_iter=2, tol=0, random_state=seed, **options
        )
        check(model, views, weight)


@pytest.mark.parametrize("init", ["rows", "k-means++"])
def test_rows_that_are_empty_in_a_view_do_not_move_its_scale(init):
    """They are zeros when they are encoded, and these rows lie far from 0."""
    rng = np.random.default_rng(0)
    far = 1e5 + KINDS["full Gaussian"][1](rng)
    far[rng.random(N) < 0.3] = np.nan
    views, weight = Views(counts=KINDS["counts"][1](rng), far=far), rng.integers(1, 4, N)
    options = {"init": init, "max_iter": 2, "tol": 0, "random_state": 0}
    family = {"counts": Multinomial(), "far": Gaussian("diag")}
    check(MixtureClusterer(K, family=family, evidence="fixed", **options), views, weight)
    ends = [
        MixtureClusterer(K, family=Gaussian("diag"), **options).fit(rows).objective_
        for rows in (far, far[~np.isnan(far[:, 0])])
    ]
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


def test_of_restarts_that_end_alike_the_first_is_kept():
    rng = np.random.default_rng(3)
    X, weight = rng.standard_normal((N, 3)) + 9 * ROWS[:, None], rng.integers(1, 4, N)
    options = {"family": Gaussian("tied"), "n_init": 4, "max_iter": 20, "tol": 0}
    for seed in range(4):
        check(MixtureClusterer(K, random_state=seed, **options), X, weight)
    assert best_of([-3.0, -2.0 - 1e-13, -2.0, -2.1]) == 1
    assert best_of([np.nan, -1.0]) == 0


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_rows_in_a_plane_start_alike(covariance):
    """Which directions span a plane in which all variances are equal is up to rounding."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        line = np.outer(rng.standard_normal(N), rng.standard_normal(3)) + rng.standard_normal(3)
        options = {"init": "random", "max_iter": 2, "tol": 0, "random_state": seed}
        model = MixtureClusterer(2, family=Gaussian(covariance, reg=1e-2), **options)
        check(model, line, rng.integers(1, 4, N))


@pytest.mark.filterwarnings("ignore:component")
@pytest.mark.parametrize("init", ["random", "rows", "k-means++"])
@pytest.mark.parametrize("kinds", PAIRS, ids="+".join)
def test_a_weight_is_a_number_of_labelled_rows(kinds, init):
    for seed in range(2):
        views, family, weight = made_of(kinds, seed)
        y = np.where(np.random.default_rng(seed).random(N) < 0.6, ROWS, -1)
        model = MixtureClassifier(
            components_per_class=2,
            family=family,
            init=init,
            max_iter=3,
            tol=0,
            random_state=seed,
            evidence="fixed",
            unlabeled_weight=1.0,
        )
        check(model, views, weight, y)


@pytest.mark.parametrize("init", ["rows", "k-means++"])
def test_a_weight_is_a_number_of_directions(init):
    for seed in range(4):
        views, _, weight = made_of(["directions"], seed)
        model = SphericalKMeans(
            K, init=init, n_init=1, max_iter=3, patience=None, random_state=seed
        )
        check(model, views["directions"], weight)
