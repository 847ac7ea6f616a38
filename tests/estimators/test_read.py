"""`read` returns what the methods for single questions return, bit by bit."""

import numpy as np
import pytest

from coem import MixtureClassifier, MixtureClusterer, Views


def views(n_views):
    """Return counts; row 3 is empty in the first view, row 5 in all of them."""
    rng = np.random.default_rng(0)
    counts = [rng.poisson(rate, (60, 9)) for rate in (1, 2, 1)[:n_views]]
    counts[0][3] = 0
    for X in counts:
        X[5] = 0
    return Views(counts)


@pytest.mark.parametrize("n_views", [1, 3])
@pytest.mark.parametrize("assign", ["joint", "average"])
@pytest.mark.parametrize("beta", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("estimator", [MixtureClusterer(3), MixtureClassifier()])
def test_read_returns_what_single_methods_return(estimator, beta, assign, n_views):
    X, y = views(n_views), np.arange(60) % 3
    settings = {"beta": beta, "assign": assign, "max_iter": 3, "tol": 0, "random_state": 0}
    model = estimator.set_params(**settings).fit(X, y)
    reading = model.read(X)
    np.testing.assert_array_equal(reading.view_proba, model.view_proba(X))
    np.testing.assert_array_equal(reading.disagreement, model.disagreement(X))
    np.testing.assert_array_equal(reading.log_likelihood, model.score_samples(X))
    np.testing.assert_array_equal(reading.empty, X.empty)
    if isinstance(model, MixtureClusterer):
        np.testing.assert_array_equal(reading.proba, model.predict_proba(X))
    else:  # by component, and the classes are in the order of the components
        np.testing.assert_allclose(reading.proba, model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(reading.proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(reading.proba[5], model.weights_)
