"""Components whose rows do not vary: the least variance without `reg`, and the warning."""

import warnings
from typing import Any

import numpy as np
import pytest

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views
from coem.families import Gaussian, MixtureOf, Multinomial
from coem.families._collapse import FLOOR

TYPES = ["full", "tied", "diag", "spherical"]
every_type = pytest.mark.parametrize("covariance", TYPES)


def two_groups(n: int = 60, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, of which the last three lie apart, and the group of each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.zeros(n, dtype=int)
    X[-3:] += 50.0
    y[-3:] = 1
    return X, y


def estimated(covariance: Any, X: Any, y: Any, reg: float = 0.0) -> Any:
    family = Gaussian(covariance, reg=reg)
    return family, family.estimate(family.stats(X, np.eye(2)[y]))


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
@pytest.mark.parametrize("reg", [0.0, 1e-6])
def test_rows_all_alike(covariance: Any, reg: float) -> None:
    X, y = two_groups()
    X[-3:] = X[-1]
    family, theta = estimated(covariance, X, y, reg)
    assert np.isfinite(family.log_prob(X, theta)).all()
    np.testing.assert_array_equal(family.collapsed(theta, np.array([0.95, 0.05])), [1])
    if reg == 0:
        least = np.linalg.eigvalsh(theta.covariances[1])[0] if covariance == "full" else None
        least = theta.covariances[1].min() if least is None else least
        assert 0.5 * FLOOR < least / X.var() < 2 * FLOOR
    # The M step of the other component is what it would be alone.
    _, alone = estimated(covariance, X[:-3], y[:-3], reg)
    np.testing.assert_allclose(theta.covariances[0], alone.covariances[0], rtol=1e-9, atol=1e-12)


def test_fewer_rows_than_columns() -> None:
    # Three rows span a plane of four dimensions: full has collapsed, diag has not.
    X, y = two_groups()
    weights = np.array([0.95, 0.05])
    for reg in (0.0, 1e-6):
        family, theta = estimated("full", X, y, reg)
        np.testing.assert_array_equal(family.collapsed(theta, weights), [1])
        assert np.linalg.eigvalsh(theta.covariances).min() > 0
        assert np.isfinite(family.log_prob(X, theta)).all()
        for covariance in ("diag", "spherical", "tied"):
            family, theta = estimated(covariance, X, y, reg)
            assert not len(family.collapsed(theta, weights))


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_a_column_that_is_constant_in_a_component(covariance: Any) -> None:
    X, y = two_groups()
    y[30:] = 1
    X[30:, 2] = 7.0
    family, theta = estimated(covariance, X, y)
    np.testing.assert_array_equal(family.collapsed(theta, np.full(2, 0.5)), [1])


@every_type
def test_where_no_row_varies_nothing_has_collapsed(covariance: Any) -> None:
    X, y = two_groups()
    y[30:] = 1
    X[:, 1], X[:, 2] = 7.0, 0.0
    X[:, 3] = X[:, 0]  # and a direction besides
    for reg in (0.0, 1e-6):
        family, theta = estimated(covariance, X, y, reg)
        assert np.isfinite(family.log_prob(X, theta)).all()
        assert not len(family.collapsed(theta, np.full(2, 0.5)))
    family, theta = estimated(covariance, np.zeros((60, 4)), y)
    assert np.isfinite(family.log_prob(X, theta)).all()
    assert not len(family.collapsed(theta, np.full(2, 0.5)))


def test_a_tied_covariance_collapses_for_all() -> None:
    X = np.repeat([[0.0, 0.0], [1.0, 3.0]], 20, axis=0)
    family, theta = estimated("tied", X, np.repeat([0, 1], 20))
    assert np.isfinite(family.log_prob(X, theta)).all()
    np.testing.assert_array_equal(family.collapsed(theta, np.full(2, 0.5)), [0, 1])


@pytest.mark.parametrize("covariance", ["full", "tied", "diag"])
def test_the_least_variance_has_the_scale_of_the_columns(covariance: Any) -> None:
    X, y = two_groups()
    X[-3:] = X[-1]
    scale = np.array([1e-3, 1.0, 1e5, 10.0])
    _, theta = estimated(covariance, X, y)
    _, other = estimated(covariance, X * scale, y)
    outer = np.outer(scale, scale) if theta.covariances.ndim == 3 else scale**2
    np.testing.assert_allclose(other.covariances / outer, theta.covariances, rtol=1e-6, atol=1e-14)


@every_type
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_does_not_fall_at_the_least_variance(covariance: Any) -> None:
    # Rows that are there many times, in as many components: every variance ends at the floor.
    X = np.repeat(np.random.default_rng(0).standard_normal((3, 4)), 20, axis=0)
    model = MixtureClusterer(
        3,
        family=Gaussian(covariance, reg=0.0),
        init="k-means++",
        max_iter=40,
        tol=0,
        random_state=0,
    ).fit(X)
    objectives = np.array([record.objective for record in model.history_])
    assert np.isfinite(objectives).all()
    assert np.diff(objectives).min() >= -1e-9 * np.abs(objectives).max()
    assert np.isfinite(model.predict_proba(X)).all()


# -- the warning -----------------------------------------------------------------------------------


def messages(fit: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if "collapsed" in str(w.message)]


@pytest.mark.parametrize("reg", [0.0, 1e-6])
def test_the_estimator_names_components_and_view(reg: float) -> None:
    X, y = two_groups()
    views = Views(words=np.random.default_rng(0).poisson(2.0, (60, 5)), points=X)
    family = {"words": Multinomial(), "points": Gaussian(reg=reg)}
    start = np.eye(2)[y]
    model = MixtureClusterer(2, family=family, coupling="joint", init=start, max_iter=3, tol=0)
    (message,) = messages(lambda: model.fit(views))
    assert "components [1] of view 'points' have collapsed: in some direction" in message
    assert "set to the least that is allowed; raise reg" in message
    assert model.collapsed_ == {"words": [], "points": [1]}
    (message,) = messages(lambda: MixtureClassifier(family=Gaussian(reg=reg)).fit(X, y))
    assert "components [1] of view 'view0' have collapsed" in message


def test_a_part_of_a_component_counts_for_it() -> None:
    X, y = two_groups()
    X[-3:] = X[-1]  # a part of the second component, as far as its parts are apart
    X[-33:-3] += 20.0
    y[-33:] = 1
    family = MixtureOf(Gaussian("diag"))
    model = MixtureClassifier(family=family, random_state=0, n_init=4, max_iter=50)
    (message,) = messages(lambda: model.fit(X, y))
    assert "components [1] of view 'view0' have collapsed" in message
    assert model.collapsed_ == {"view0": [1]}


def test_states_of_a_chain() -> None:
    X, y = two_groups()
    X[-3:] = X[-1]
    model = HiddenMarkovModel(2, family=Gaussian("diag"), init=np.eye(2)[y], max_iter=3, tol=0)
    (message,) = messages(lambda: model.fit(X))
    assert "states [1] of view 'view0' have collapsed" in message
    assert "use fewer states" in message


@every_type
def test_no_warning_without_a_collapse(covariance: Any) -> None:
    X, _ = two_groups(600)
    X = np.concatenate([X[:-3], X[:-3] + 6.0])
    model = MixtureClusterer(2, family=Gaussian(covariance), max_iter=30, random_state=0)
    assert messages(lambda: model.fit(X)) == []
