"""Log probabilities of codes, looked up where there is nothing to add up."""

import numpy as np
import pytest

from coem.families import Categorical
from coem.kernels import counts


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [(1,), (7,), (7, 3)])
@pytest.mark.parametrize("k", [1, 5, 8])
@pytest.mark.parametrize("missing", [False, True])
def test_log_prob_is_the_sum_over_the_columns(precision, levels, k, missing):
    rng = np.random.default_rng(k)
    codes = rng.integers(levels, size=(60, len(levels))).astype(np.float64)
    codes[::7] = np.nan if missing else codes[::7]
    family = Categorical(levels=levels).bind(codes, precision)
    X = family.encode(codes)
    theta = family.start(family.stats(X, np.ones((60, 1))), k, rng)
    got = family.log_prob(X, theta)
    assert got.dtype == np.float64
    assert got.shape == (60, k)
    assert got.flags.c_contiguous
    dense = X.toarray().astype(np.float64)
    expected = dense @ np.asarray(theta, dtype=np.float64).T
    np.testing.assert_allclose(got, expected, rtol=1e-6 if precision == np.float32 else 1e-14)
    np.testing.assert_array_equal(got, counts.scores(X, theta))


def test_the_log_probabilities_are_a_copy():
    """Callers write into them."""
    family = Categorical(levels=(3,), dtype=np.float64)
    X = family.encode(np.arange(3)[:, np.newaxis])
    theta = family.estimate(family.stats(X, np.eye(3)))
    family.log_prob(X, theta)[...] = 0.0
    assert (np.asarray(theta) < 0).all()
