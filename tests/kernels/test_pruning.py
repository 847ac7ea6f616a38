"""Bounds of scores, lists of responsibilities and tables of few words, against NumPy twins."""

import numpy as np
import pytest
import scipy.sparse as sp

from coem.engine import LocalEngine
from coem.kernels import counts, pruning, summing
from coem.kernels.row_lists import RowLists
from tests.kernels.test_counts import make_csr, make_table

KS = (1, 7, 8, 9, 20, 130)
every_k = pytest.mark.parametrize("k", KS)
every_precision = pytest.mark.parametrize("precision", [np.float32, np.float64])
REACH = 12.0


# -- bounds --------------------------------------------------------------------------------------


def as_float(gaps):
    """Return bounds as the numbers that they stand for."""
    return (gaps.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def bounds_of(scores):
    level, gaps = pruning.new_bounds(*scores.shape)
    pruning.set_bounds(scores, level, gaps)
    return level, gaps


@every_k
def test_bounds_are_above_their_scores_by_less_than_a_hundredth(k):
    rng = np.random.default_rng(k)
    scores = -(10.0 ** rng.uniform(-8, 6, size=(50, k)))
    level, gaps = bounds_of(scores)
    np.testing.assert_array_equal(level, scores.max(axis=1))
    behind = level[:, np.newaxis] - scores
    bound = as_float(gaps)[:, :k]
    assert (bound >= -behind).all()
    assert (bound <= -behind + behind / 100 + 1e-30).all()


def test_some_bounds_are_set_again_below_or_above_the_level():
    rng = np.random.default_rng(0)
    scores = rng.normal(-500.0, 100.0, size=(30, 11))
    level, gaps = bounds_of(scores)
    before, levels = as_float(gaps), level.copy()
    columns, new = np.array([9, 2]), rng.normal(-300.0, 100.0, size=(30, 2))
    pruning.set_bounds(new, level, gaps, columns)
    after = as_float(gaps)
    np.testing.assert_array_equal(level, levels)
    others = np.setdiff1d(np.arange(11), columns)
    np.testing.assert_array_equal(after[:, others], before[:, others])
    above = after[:, columns] - (new - level[:, np.newaxis])
    assert (above >= 0).all()
    assert (above <= np.abs(new - level[:, np.newaxis]) / 100 + 1e-30).all()


@every_precision
@every_k
def test_rises(k, precision):
    rng = np.random.default_rng(k)
    before, after = (make_table(rng, k, 20_000, precision) for _ in range(2))
    got = pruning.rises(before, after)
    np.testing.assert_array_equal(got, np.max(np.asarray(after - before), axis=1))
    np.testing.assert_array_equal(pruning.rises(before, before), np.zeros(k))


@every_precision
def test_a_table_of_some_components(precision):
    table = make_table(np.random.default_rng(0), 21, 17_000, precision)
    columns = np.array([20, 0, 13])
    part = pruning.some_components(table, columns)
    assert counts.is_table(part)
    np.testing.assert_array_equal(part, table[columns])


# -- what can matter -----------------------------------------------------------------------------


def dense_joint(found, n, k):
    """Return the log joints that were computed (n, k); NaN where none was."""
    offsets, units, joint = found
    out = np.full((n, -(-k // 8) * 8), np.nan)
    for i in range(n):
        entries = range(offsets[i], offsets[i + 1])
        assert (np.diff(units[entries]) > 0).all()
        for e in entries:
            out[i, units[e] * 8 : units[e] * 8 + 8] = joint[e]
    assert not np.isfinite(out[:, k:]).any()
    return out[:, :k]


def moved_tables(rng, k, width, precision):
    before = make_table(rng, k, width, precision)
    after = counts.new_table(k, width, precision)
    after[...] = before + 0.3 * rng.normal(size=before.shape) * (rng.random((k, 1)) < 0.5)
    return before, after


@pytest.mark.parametrize("known", ["nothing", "labels", "blanks"])
@every_precision
@every_k
def test_nothing_within_reach_is_left_out(k, precision, known):
    rng = np.random.default_rng(k)
    n, width = 60, 50
    X = make_csr(rng, n, width, data=np.float32, per_row=30)
    before, after = moved_tables(rng, k, width, precision)
    allowed = rng.random((n, k)) < 0.5 if known == "labels" else None
    if allowed is not None:
        allowed[np.arange(n), rng.integers(k, size=n)] = True
    blank = rng.random(n) < 0.3 if known == "blanks" else None
    log_weights = np.log(rng.dirichlet(np.ones(k)))
    scores = counts.scores(X, before)
    if blank is not None:
        scores[blank] = 0.0
    bounds = bounds_of(scores)
    rise = pruning.rises(before, after)
    found = pruning.chances(
        X, after, log_weights, bounds, rise, REACH, allowed=allowed, blank=blank
    )
    joint = counts.scores(X, after)
    if blank is not None:
        joint[blank] = 0.0
    joint += log_weights
    if allowed is not None:
        joint[~allowed] = -np.inf
    got = dense_joint(found, n, k)
    there = ~np.isnan(got)
    np.testing.assert_array_equal(got[there], joint[there])  # to the bit
    top = joint.max(axis=1, keepdims=True)
    assert there[joint > top - REACH].all()
    if k == 130 and known == "nothing":
        assert there.mean() < 0.9


def test_room_is_made_where_many_components_matter():
    rng = np.random.default_rng(0)
    X = make_csr(rng, 300, 9, data=np.float32)
    table = make_table(rng, 100, 9, np.float32)
    bounds = bounds_of(counts.scores(X, table))
    found = pruning.chances(X, table, np.zeros(100), bounds, np.zeros(100), 1e6)
    assert len(found[1]) == 300 * 13
    np.testing.assert_array_equal(dense_joint(found, 300, 100), counts.scores(X, table))


def test_no_rows():
    table = make_table(np.random.default_rng(0), 9, 5, np.float32)
    X = sp.csr_matrix((0, 5), dtype=np.float32)
    bounds = pruning.new_bounds(0, 9)
    offsets, units, joint = pruning.chances(X, table, np.zeros(9), bounds, np.zeros(9), 1.0)
    assert offsets.tolist() == [0]
    assert len(units) == 0
    assert joint.shape == (0, 8)


@every_k
def test_what_is_near_the_best_of_all(k):
    rng = np.random.default_rng(k)
    joint = rng.normal(scale=20.0, size=(40, k))
    joint[rng.random((40, k)) < 0.2] = -np.inf
    joint[:, 0] = np.maximum(joint[:, 0], -30.0)
    near = joint >= joint.max(axis=1, keepdims=True) - REACH
    units = np.unique(np.argwhere(near) // [1, 8], axis=0)
    found = pruning.near(joint, REACH, len(units))
    np.testing.assert_array_equal(np.repeat(np.arange(40), np.diff(found[0])), units[:, 0])
    np.testing.assert_array_equal(found[1], units[:, 1])
    got = dense_joint(found, 40, k)
    np.testing.assert_array_equal(
        np.where(np.isnan(got), -np.inf, got), np.where(near, joint, -np.inf)
    )
    assert pruning.near(joint, REACH, len(units) - 1) is None


@every_precision
@every_k
def test_what_is_not_zero_is_listed(k, precision):
    resp = some_resp(np.random.default_rng(k), 40, k, share=0.3).astype(precision)
    resp[3], resp[-1] = 0.0, 1.0
    lists = pruning.list_rows(resp)
    rows, components = np.nonzero(resp)
    np.testing.assert_array_equal(lists.rows(), rows)
    np.testing.assert_array_equal(lists.components, components)
    np.testing.assert_array_equal(lists.values, resp[rows, components])
    assert lists.dtype == precision
    np.testing.assert_array_equal(lists, resp)


# -- lists of responsibilities -------------------------------------------------------------------


def some_resp(rng, n, k, share=0.1):
    return (rng.random((n, k)) * (rng.random((n, k)) < share)).astype(np.float32)


def listed(dense):
    X = sp.csr_matrix(dense)
    return RowLists(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, dense.shape[1])


def test_lists_are_used_like_the_array():
    rng = np.random.default_rng(0)
    dense = some_resp(rng, 40, 9)
    lists, weight = listed(dense), rng.gamma(1.0, size=40)
    assert lists.shape == dense.shape
    assert lists.dtype == dense.dtype
    assert len(lists) == 40
    np.testing.assert_array_equal(lists, dense)
    for rows in (slice(3, 17), np.array([5, 1, 1]), slice(4, 4)):
        np.testing.assert_array_equal(np.asarray(lists[rows]), dense[rows])
    np.testing.assert_array_equal(
        np.asarray(lists * weight[:, np.newaxis]), dense * weight[:, np.newaxis]
    )
    np.testing.assert_array_equal(lists.sum(axis=0), dense.sum(axis=0, dtype=np.float64))
    np.testing.assert_allclose(weight @ lists, weight @ dense.astype(float), rtol=1e-14)
    np.testing.assert_array_equal(lists.argmax(axis=1), dense.argmax(axis=1))
    assert lists.astype(np.float64).dtype == np.float64
    joined = RowLists.joined([lists[:13], lists[13:]])
    np.testing.assert_array_equal(joined, dense)


def test_lists_of_a_slot():
    dense = some_resp(np.random.default_rng(0), 12, 5)
    lists = listed(dense)
    slot = RowLists(lists.offsets, lists.components, lists.values, 5, slots=True)
    assert slot.shape == (1, 12, 5)
    assert len(slot) == 1
    np.testing.assert_array_equal(slot, dense[np.newaxis])
    np.testing.assert_array_equal(slot[0], dense)
    np.testing.assert_array_equal(slot[0, 2:7], dense[2:7])
    np.testing.assert_array_equal(slot[:, 2:7], dense[np.newaxis, 2:7])


@every_precision
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("width", [30, 9000])
@every_k
def test_m_steps_on_lists_are_those_on_the_array(k, width, alpha, precision):
    rng = np.random.default_rng(k)
    X = make_csr(rng, 60, width, data=np.float32)
    dense = some_resp(rng, 60, k).astype(precision)
    np.testing.assert_array_equal(counts.accumulate(X, listed(dense)), counts.accumulate(X, dense))
    np.testing.assert_array_equal(
        counts.maximise(X, listed(dense), alpha, precision),
        counts.maximise(X, dense, alpha, precision),
    )


# -- components with few words -------------------------------------------------------------------


@every_precision
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_components_with_few_and_with_many_words(alpha, precision):
    rng = np.random.default_rng(0)
    X = make_csr(rng, 600, 500, data=np.float32, messy=True)
    labels = np.where(rng.random(600) < 0.7, 3, rng.integers(40, size=600))
    labels[labels == 11] = 12  # a component without rows
    resp = np.zeros((600, 40), dtype=precision)
    resp[np.arange(600), labels] = rng.random(600)
    few = summing.Rows(X, resp).with_few_words()
    assert few.sum() == 39
    assert not few[3]
    got = counts.maximise(X, resp, alpha, precision)
    expected = counts.log_table(counts.accumulate(X, resp), alpha, precision)
    np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(precision).eps)
    np.testing.assert_array_equal(got[3], expected[3])
    np.testing.assert_array_equal(got[11], expected[11])


def test_values_that_vanish_are_no_second_word():
    X = sp.csr_matrix(np.array([[1e-300, 2.0, 0, 0, 0, 0, 0, 0]] * 3))
    resp = np.array([[1e-300], [1.0], [1.0]])
    got = counts.maximise(X, resp, 0.5, np.float64)
    expected = counts.log_table(counts.accumulate(X, resp), 0.5, np.float64)
    np.testing.assert_allclose(got, expected, rtol=1e-14)


# -- threads -------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    X = make_csr(rng, 500, 20_000, data=np.float32)
    resp = np.zeros((500, 300), dtype=np.float32)
    resp[np.arange(500), rng.integers(300, size=500)] = rng.random(500)
    results = []
    for n_jobs in (1, 2, 4):
        with LocalEngine(n_jobs):
            table = counts.maximise(X, resp, 0.1, np.float32)
            other = counts.maximise(X, resp[::-1], 0.1, np.float32)
            results.append((table.tobytes(), pruning.rises(table, other).tobytes()))
    assert results[0] == results[1] == results[2]


def test_memory_of_tables_is_used_again_while_an_engine_runs():
    def place(table):
        return table.__array_interface__["data"][0]

    with LocalEngine(1):
        first, second = (counts.new_table(100, 5_000, np.float32) for _ in range(2))
        assert counts.is_table(first)
        assert place(first) != place(second)
        old = place(first)
        del first
        third = counts.new_table(100, 5_000, np.float32)
        assert place(third) == old
        fourth = counts.new_table(100, 5_000, np.float32)
        assert place(fourth) not in (old, place(second))
        del second
    third[...] = 1.0  # it outlives the engine
    assert counts.is_table(third)
    assert third.sum() == 500_000
