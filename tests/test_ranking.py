"""The features that tell a component: the plain ratio, and its limit where there are zeros."""

import numpy as np
import pytest

from coem.ranking import wllr


def slow_wllr(prob, weights, floor=0.0):
    """Return p(f|c) log(p(f|c) / p(f|not c)), one number after the other."""
    out = np.zeros_like(prob)
    for c in range(len(prob)):
        others = [j for j in range(len(prob)) if j != c]
        for f in range(prob.shape[1]):
            rest = sum(weights[j] * prob[j, f] for j in others) / sum(weights[j] for j in others)
            if prob[c, f] > 0:
                out[c, f] = prob[c, f] * np.log(prob[c, f] / max(rest, floor))
    return out


def tables(seed, alpha, k=5, n_features=30):
    """Return p(f|c) of counts with pseudo-counts, and weights."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.1, 20, size=(k, n_features)))
    counts[0, 0] += 1  # so that no component is empty
    counts[1:, 0] += 5
    prob = (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)
    return prob, rng.dirichlet(np.ones(k))


@pytest.mark.parametrize("alpha", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("seed", range(5))
def test_with_pseudo_counts_it_is_the_plain_ratio(seed, alpha):
    prob, weights = tables(seed, alpha)
    np.testing.assert_allclose(wllr(prob, weights), slow_wllr(prob, weights), rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-30])
@pytest.mark.parametrize("seed", range(5))
def test_without_them_others_have_at_least_what_the_rarest_feature_has(seed, alpha):
    prob, weights = tables(seed, alpha)
    overall = weights @ prob
    twin = slow_wllr(prob, weights, floor=overall[overall > 1e-20].min())
    np.testing.assert_allclose(wllr(prob, weights), twin, rtol=1e-9, atol=1e-25)


def test_a_word_that_occurs_once_in_one_component_is_not_the_first():
    counts = np.array([[50.0, 1, 49], [5, 0, 95]])
    prob = counts / counts.sum(axis=1, keepdims=True)
    ratios = wllr(prob, np.array([0.5, 0.5]))
    assert ratios.argmax(axis=1).tolist() == [0, 2]


def test_columns_without_any_counts_set_no_floor():
    counts = np.array([[50.0, 1, 49, 0], [5, 0, 95, 0]])
    prob = counts / counts.sum(axis=1, keepdims=True)
    weights = np.array([0.5, 0.5])
    np.testing.assert_array_equal(wllr(prob, weights)[:, :3], wllr(prob[:, :3], weights))
    assert not wllr(prob, weights)[:, 3].any()
