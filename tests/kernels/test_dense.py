"""The kernels of k-means, and labels that stand for responsibilities, against plain NumPy."""

import numpy as np
import pytest
from scipy.special import logsumexp

from coem.kernels import _compiled
from coem.kernels.dense import closeness, sum_by_label
from coem.kernels.one_hot import OneHot
from coem.posterior import Hard, Soft, posterior

SIZES = [(1, 1, 1), (3, 2, 3), (33, 5, 8), (70, 32, 64), (100, 13, 41), (40, 130, 300)]


def closeness_of(rows, means, constant=0.0):
    out = np.empty((len(rows), len(means)))
    closeness(rows, means, constant, out)
    return out


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_closeness(n, d, k):
    rng = np.random.default_rng(n)
    rows, means = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    expected = 2.5 - 0.5 * ((rows[:, None] - means) ** 2).sum(axis=2)
    np.testing.assert_allclose(closeness_of(rows, means, 2.5), expected, rtol=1e-12, atol=1e-12)


def test_closeness_far_from_the_origin():
    rng = np.random.default_rng(0)
    rows, means = rng.standard_normal((50, 7)), rng.standard_normal((5, 7))
    near, far = closeness_of(rows, means), closeness_of(rows + 2.0**20, means + 2.0**20)
    np.testing.assert_allclose(far, near, rtol=1e-8)  # the cost of rounding the rows, no more


def test_closeness_does_not_depend_on_the_neighbours():
    rng = np.random.default_rng(1)
    rows, means = rng.standard_normal((75, 9)), rng.standard_normal((11, 9))
    whole = closeness_of(rows, means)
    for part in (slice(0, 1), slice(7, 40), slice(38, 75)):
        np.testing.assert_array_equal(closeness_of(rows[part], means), whole[part])


def test_equal_means_are_equally_close():
    rng = np.random.default_rng(2)
    rows, means = rng.standard_normal((37, 6)), rng.standard_normal((21, 6))
    means[[4, 20]] = means[0]
    got = closeness_of(rows, means)
    np.testing.assert_array_equal(got[:, [4, 20]], got[:, [0, 0]])


# -- hard posteriors as labels -------------------------------------------------------------------


def assigned(log_prob, log_weights, allowed=None):
    out = Hard().compact(log_prob.shape)
    result = Hard().apply(log_prob, log_weights, allowed=allowed, out=out)
    assert result.resp is out
    return result


@pytest.mark.parametrize("k", [1, 3, 8, 17, 64, 300, 600])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("spread", [1.0, 20.0, 1000.0])
def test_labels_are_those_of_the_dense_posterior(k, masked, spread):
    rng = np.random.default_rng(k)
    log_prob = spread * rng.standard_normal((50, k))
    log_weights = np.log(rng.dirichlet(np.ones(k)))
    allowed = rng.random((50, k)) < 0.5
    allowed[np.arange(50), rng.integers(k, size=50)] = True
    allowed = allowed if masked else None
    dense = posterior(log_prob.copy(), log_weights, rule="hard", allowed=allowed)
    got = assigned(log_prob.copy(), log_weights, allowed)
    np.testing.assert_array_equal(np.asarray(got.resp), dense.resp)
    np.testing.assert_array_equal(got.objective, dense.objective)
    np.testing.assert_allclose(got.evidence, dense.evidence, rtol=1e-14, atol=1e-14)
    assert got.log_posterior.shape == (0, k)


@pytest.mark.parametrize("k", [1, 4, 6, 64, 65, 200])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 10.0, 30.0, 1000.0])
def test_evidence_of_labels_has_all_digits(k, spread):
    """Few or many components near the best one, and evidences near zero."""
    rng = np.random.default_rng(k)
    log_prob = spread * rng.standard_normal((301, k))
    log_prob -= logsumexp(log_prob, axis=1, keepdims=True)
    log_prob[100:200] -= 50.0
    got = assigned(log_prob, np.zeros(k))
    np.testing.assert_array_equal(got.resp.labels, log_prob.argmax(axis=1))
    np.testing.assert_array_equal(got.objective, log_prob.max(axis=1))
    np.testing.assert_allclose(got.evidence, logsumexp(log_prob, axis=1), rtol=1e-15, atol=4e-15)


def test_labels_do_not_depend_on_the_neighbours():
    rng = np.random.default_rng(3)
    log_prob, log_weights = 5.0 * rng.standard_normal((75, 19)), np.log(rng.dirichlet(np.ones(19)))
    whole = assigned(log_prob, log_weights)
    for part in (slice(0, 1), slice(6, 41), slice(38, 75)):
        got = assigned(log_prob[part], log_weights)
        np.testing.assert_array_equal(got.resp.labels, whole.resp.labels[part])
        np.testing.assert_array_equal(got.evidence, whole.evidence[part])


def test_a_row_far_beyond_the_others():
    log_prob = np.array([[0.0, np.inf, 0.0], [-1e308, -1e308, -5.0], [-np.inf, -2.0, np.nan]])
    got = assigned(log_prob, np.zeros(3))
    np.testing.assert_array_equal(got.resp.labels, [1, 2, 1])
    np.testing.assert_array_equal(got.evidence, [np.inf, -5.0, -2.0])


def test_of_equals_the_first_wins():
    log_prob = np.zeros((5, 200))
    log_prob[1, :4] = -1.0
    log_prob[3] = -np.inf
    log_prob[4, :150] = -1.0
    allowed = np.ones((5, 200), dtype=bool)
    allowed[2, :11] = False
    got = assigned(log_prob, np.zeros(200), allowed)
    np.testing.assert_array_equal(got.resp.labels, [0, 4, 11, 0, 150])


def test_labels_of_nan_are_labels():
    got = assigned(np.full((2, 3), np.nan), np.zeros(3))
    assert ((got.resp.labels >= 0) & (got.resp.labels < 3)).all()


@pytest.mark.parametrize("top", [0.0, -1e5])
def test_exp_has_all_digits(top):
    """Responsibilities in double precision down to the smallest normal number."""
    below = -np.linspace(0.0, 700.0, 20_001)
    log_prob = np.stack([np.full_like(below, top), top + below], axis=1)
    resp = Soft().apply(log_prob.copy(), np.zeros(2)).resp
    ratio = np.exp(log_prob[:, 1] - top)
    np.testing.assert_allclose(resp[:, 1], ratio / (1 + ratio), rtol=2e-15)
    np.testing.assert_array_equal(Soft().apply(np.array([[0.0, -1e4]]), np.zeros(2)).resp, [[1, 0]])


# -- labels as an array --------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_one_hot_is_the_array_it_stands_for(n, d, k, weighted):
    rng = np.random.default_rng(n)
    labels = rng.integers(k, size=n).astype(np.int32)
    weight, other, rows = rng.random(n), rng.random(n), rng.standard_normal((n, d))
    resp, dense = OneHot(labels, k), np.eye(k)[labels]
    if weighted:
        resp, dense = resp * weight[:, None], dense * weight[:, None]
    assert resp.shape == dense.shape
    assert len(resp) == n
    np.testing.assert_array_equal(np.asarray(resp), dense)
    np.testing.assert_array_equal(np.asarray(resp, dtype=np.float32), dense.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(resp[n // 2 :]), dense[n // 2 :])
    np.testing.assert_array_equal(np.asarray(resp * other[:, None]), dense * other[:, None])
    np.testing.assert_array_equal(resp.argmax(axis=1), dense.argmax(axis=1))
    np.testing.assert_allclose(resp.sum(axis=0), dense.sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(other @ resp, other @ dense, rtol=1e-13)
    np.testing.assert_allclose(resp.T @ rows, dense.T @ rows, rtol=1e-12, atol=1e-13)
    with pytest.raises(ValueError, match="no dense array"):
        resp.__array__(copy=False)


def test_slots_of_a_one_hot_array_share_its_labels():
    resp = OneHot(np.zeros((1, 6), dtype=np.int32), 3)
    resp[0, 2:4].labels[...] = 2
    np.testing.assert_array_equal(resp.labels, [[0, 0, 2, 2, 0, 0]])
    assert np.asarray(resp).shape == resp.shape == (1, 6, 3)


X, LABELS = np.ones((4, 3)), np.zeros(4, dtype=np.int32)
BAD = {
    "narrow means": lambda: closeness_of(X, np.ones((2, 2))),
    "no means": lambda: closeness_of(X, np.ones((0, 3))),
    "small out": lambda: closeness(X, np.ones((2, 3)), 0.0, np.empty((3, 2))),
    "too few labels": lambda: sum_by_label(X, LABELS[1:], None, 2),
    "labels that are too large": lambda: sum_by_label(X, LABELS + 2, None, 2),
    "labels below zero": lambda: sum_by_label(X, LABELS - 1, None, 2),
    "labels of 64 bits": lambda: sum_by_label(X, LABELS.astype(np.int64), None, 2),
    "too few weights": lambda: sum_by_label(X, LABELS, np.ones(3), 2),
    "narrow sums": lambda: _compiled.sum_by_label(X, LABELS, None, np.zeros((2, 2))),
    "too few log weights": lambda: assigned(X.copy(), np.zeros(2)),
    "small mask": lambda: assigned(X.copy(), np.zeros(3), np.ones((3, 3), dtype=bool)),
    "too little room": lambda: Hard().apply(X.copy(), np.zeros(3), out=OneHot(LABELS[1:], 3)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_shapes_and_dtypes_raise(case):
    with pytest.raises((ValueError, TypeError)):
        BAD[case]()
