"""The compiled kernels against slow dense NumPy twins: values, dtypes, shapes, threads, bits.

Sums over rows are in double: they differ from the twin by the order of additions, 1e-12 of the sum
of absolute terms. In single precision sixteen products are added before they join a double, so a
score is good to some 1e-6 of that sum; exp and log are good to 2e-7.
"""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from coem.engine import LocalEngine
from coem.families import Bernoulli, Multinomial
from coem.kernels import _compiled, counts, instruction_set, summing, threads
from coem.kernels.dense import closeness
from coem.latent.block import Partition, rows_of
from coem.posterior import Hard, posterior

KS = (1, 2, 7, 8, 9, 20, 65, 130)
WIDTHS = (1, 7, 9000)  # 9000 is more than one chunk of `counts.WORDS` features
NATIVE = (np.float32, np.float64, np.int32, np.int64)
DTYPES = (*NATIVE, np.bool_, np.uint8)
SCORE_ERROR = {np.float32: 2e-6, np.float64: 1e-13}

every_precision = pytest.mark.parametrize("precision", [np.float32, np.float64])
every_k = pytest.mark.parametrize("k", KS)
every_width = pytest.mark.parametrize("width", WIDTHS)
every_index = pytest.mark.parametrize("index", [np.int32, np.int64])
every_data = pytest.mark.parametrize("data", DTYPES)


# -- what the kernels are given ----------------------------------------------------------------


def make_csr(rng, n, width, *, data=np.float64, index=np.int32, per_row=6, messy=False):
    """Return random CSR rows, every third of them empty; messy ones unsorted with duplicates."""
    lengths = rng.integers(1, per_row + 1, size=n)
    lengths[::3] = 0
    if messy:
        columns = [rng.integers(width, size=m) for m in lengths]
    else:
        columns = [np.unique(rng.integers(width, size=m)) for m in lengths]
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    nnz = int(indptr[-1])
    values = rng.gamma(2.0, size=nnz) if np.dtype(data).kind == "f" else rng.integers(1, 9, nnz)
    X = sp.csr_matrix((n, width), dtype=data)
    # Set, not passed: the constructor would make 32-bit indices of 64-bit ones.
    X.data, X.indptr = values.astype(data), indptr.astype(index)
    X.indices = np.concatenate([np.empty(0, int), *columns]).astype(index)
    return X


def dense(X):
    """Return the entries of a CSR matrix added up in a dense array, by hand."""
    out = np.zeros(X.shape)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    np.add.at(out, (rows, X.indices), X.data.astype(np.float64))
    return out


def make_table(rng, k, width, precision):
    table = counts.new_table(k, width, precision)
    table[...] = -rng.gamma(2.0, 3.0, size=(k, width))
    return table


def make_resp(rng, n, k, precision, *, sparse):
    """Return responsibilities for the list path (an eighth of the cells) or for the tile path."""
    resp = rng.gamma(1.0, size=(n, k)).astype(precision) + np.finfo(np.float32).tiny
    if sparse:
        keep = rng.permutation(n * k)[: n * k // 8]
        mask = np.zeros(n * k, dtype=bool)
        mask[keep] = True
        resp *= mask.reshape(n, k)
    return resp


def freeze(*arrays):
    """Make the memory of arrays and CSR matrices read-only, so that no kernel can write to it."""
    for array in arrays:
        for part in (array.data, array.indices, array.indptr) if sp.issparse(array) else (array,):
            part.setflags(write=False)
            if isinstance(part.base, np.ndarray):
                part.base.setflags(write=False)


# -- scores --------------------------------------------------------------------------------------


def check_scores(X, table):
    freeze(X, table)
    got = counts.scores(X, table)
    assert got.dtype == np.float64
    assert got.shape == (X.shape[0], table.shape[0])
    assert got.flags.c_contiguous
    full, wide = dense(X), np.asarray(table, np.float64)
    error = SCORE_ERROR[table.dtype.type] * (np.abs(full) @ np.abs(wide).T)
    assert (np.abs(got - full @ wide.T) <= error).all()
    assert not got[full.sum(axis=1) == 0].any()


@every_precision
@every_k
@every_width
def test_scores(k, width, precision):
    rng = np.random.default_rng(k * width)
    check_scores(make_csr(rng, 40, width), make_table(rng, k, width, precision))


@every_precision
@every_index
@every_data
def test_scores_take_every_dtype(data, index, precision):
    rng = np.random.default_rng(1)
    X = make_csr(rng, 50, 30, data=data, index=index)
    assert X.indices.dtype == X.indptr.dtype == index
    check_scores(X, make_table(rng, 9, 30, precision))


@every_precision
@every_index
def test_scores_take_unsorted_indices_and_duplicates(index, precision):
    rng = np.random.default_rng(2)
    X = make_csr(rng, 60, 7, index=index, per_row=12, messy=True)
    assert not X.has_sorted_indices
    assert not X.has_canonical_format
    check_scores(X, make_table(rng, 20, 7, precision))


@every_precision
def test_scores_of_long_rows_keep_their_digits(precision):
    rng = np.random.default_rng(3)
    X = make_csr(rng, 6, 9000, per_row=9000, data=np.int64)
    check_scores(X, make_table(rng, 9, 9000, precision))


# -- accumulate ----------------------------------------------------------------------------------


def check_accumulate(X, resp):
    freeze(X, resp)
    got = counts.accumulate(X, resp)
    assert got.dtype == np.float64
    assert got.shape == (resp.shape[1], X.shape[1])
    full, wide = dense(X), resp.astype(np.float64)
    assert (np.abs(got - wide.T @ full) <= 1e-12 * (wide.T @ full)).all()


@every_precision
@every_k
@every_width
@pytest.mark.parametrize("sparse", [True, False], ids=["lists", "tiles"])
def test_accumulate(k, width, precision, sparse):
    rng = np.random.default_rng(k * width + sparse)
    check_accumulate(make_csr(rng, 40, width), make_resp(rng, 40, k, precision, sparse=sparse))


@every_precision
@pytest.mark.parametrize(
    ("sparse", "name"), [(True, "accumulate_list"), (False, "accumulate_tile")]
)
def test_sparse_responsibilities_go_by_lists_and_dense_ones_by_tiles(
    sparse, name, precision, monkeypatch
):
    called = set()

    class Spy:
        def __getattr__(self, kernel):
            called.add(kernel)
            return getattr(_compiled, kernel)

    rng = np.random.default_rng(0)
    X, resp = make_csr(rng, 40, 30), make_resp(rng, 40, 20, precision, sparse=sparse)
    monkeypatch.setattr(summing, "_compiled", Spy())
    counts.accumulate(X, resp)
    assert {kernel for kernel in called if kernel.startswith("accumulate")} == {name}


@every_precision
@every_index
@every_data
@pytest.mark.parametrize("sparse", [True, False], ids=["lists", "tiles"])
def test_accumulate_takes_every_dtype(data, index, precision, sparse):
    rng = np.random.default_rng(4)
    X = make_csr(rng, 50, 30, data=data, index=index)
    check_accumulate(X, make_resp(rng, 50, 9, precision, sparse=sparse))


@every_precision
@every_index
@pytest.mark.parametrize("sparse", [True, False], ids=["lists", "tiles"])
def test_accumulate_takes_unsorted_indices_and_duplicates(index, precision, sparse):
    rng = np.random.default_rng(5)
    X = make_csr(rng, 60, 7, index=index, per_row=12, messy=True)
    check_accumulate(X, make_resp(rng, 60, 20, precision, sparse=sparse))


@every_precision
def test_accumulate_cuts_large_components_into_pieces(precision):
    rng = np.random.default_rng(6)
    n = 3 * summing.ENTRIES + 5
    resp = np.zeros((n, 9), dtype=precision)
    resp[np.arange(n), np.where(rng.random(n) < 0.9, 2, 7)] = rng.random(n) + 0.5
    assert (resp > 0).sum(axis=0).max() > 2 * summing.ENTRIES
    check_accumulate(make_csr(rng, n, 11), resp)


@every_precision
@pytest.mark.parametrize("sparse", [True, False], ids=["lists", "tiles"])
def test_accumulate_adds_to_a_total_in_its_memory(sparse, precision):
    rng = np.random.default_rng(k := 20)
    X, resp = make_csr(rng, 40, 30), make_resp(rng, 40, k, precision, sparse=sparse)
    freeze(X, resp)
    before = rng.gamma(1.0, size=(k, 30))
    total = before.copy()
    got = counts.accumulate(X, resp, total)
    assert got is total
    np.testing.assert_allclose(got, before + resp.T.astype(np.float64) @ dense(X), rtol=1e-12)


def test_accumulate_copies_a_total_that_it_cannot_write_to():
    rng = np.random.default_rng(8)
    X, resp = make_csr(rng, 30, 6), make_resp(rng, 30, 5, np.float64, sparse=True)
    before = rng.gamma(1.0, size=(5, 6)).astype(np.float32).astype(np.float64)
    expected = counts.accumulate(X, resp, before.copy())
    frozen = before.copy()
    freeze(frozen)
    for total in (frozen, np.asfortranarray(before), before.astype(np.float32)):
        np.testing.assert_array_equal(counts.accumulate(X, resp, total), expected)
        np.testing.assert_array_equal(total, before)
    with pytest.raises(ValueError, match=r"shape \(5, 6\) cannot be added to .* \(5, 7\)"):
        counts.accumulate(X, resp, np.zeros((5, 7)))


@every_precision
def test_accumulate_without_any_responsibility_is_zero(precision):
    X = make_csr(np.random.default_rng(7), 12, 5)
    got = counts.accumulate(X, np.zeros((12, 3), dtype=precision))
    np.testing.assert_array_equal(got, np.zeros((3, 5)))


def test_accumulate_takes_responsibilities_in_any_memory_order():
    rng = np.random.default_rng(8)
    X = make_csr(rng, 30, 6)
    resp = make_resp(rng, 30, 5, np.float64, sparse=False)
    expected = counts.accumulate(X, resp)
    np.testing.assert_array_equal(counts.accumulate(X, np.asfortranarray(resp)), expected)
    doubled = np.repeat(resp, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(counts.accumulate(X, doubled), expected)


# -- nothing there -------------------------------------------------------------------------------


@every_precision
@every_index
@every_data
@pytest.mark.parametrize("n", [0, 1, 5])
def test_matrices_without_entries(n, data, index, precision):
    X = sp.csr_matrix((n, 4), dtype=data)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    table = make_table(np.random.default_rng(0), 3, 4, precision)
    np.testing.assert_array_equal(counts.scores(X, table), np.zeros((n, 3)))
    for resp in (np.ones((n, 3), precision), np.zeros((n, 3), precision)):
        np.testing.assert_array_equal(counts.accumulate(X, resp), np.zeros((3, 4)))


# -- tables --------------------------------------------------------------------------------------


def log_table_twin(sums, alpha, precision):
    mass = sums + alpha
    totals = sums.sum(axis=1, keepdims=True) + alpha * sums.shape[1]
    seen = mass >= np.finfo(precision).tiny
    logs = np.log(np.where(seen, mass, 1.0)) - np.log(np.where(totals > 0, totals, 1.0))
    return np.where(totals > 0, np.where(seen, logs, counts.LOG_ZERO), -np.log(sums.shape[1]))


def make_sums(rng, k, width):
    """Return sums over ten orders of magnitude, a third of them zero, one component all zero."""
    sums = 10.0 ** rng.uniform(-5, 5, size=(k, width)) * (rng.random((k, width)) < 0.67)
    sums[k // 2] = 0.0 if k > 1 else sums[k // 2]
    return sums


@every_precision
@every_k
@every_width
@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
def test_log_table(k, width, precision, alpha):
    sums = make_sums(np.random.default_rng(k + width), k, width)
    freeze(sums)
    got = counts.log_table(sums, alpha, precision)
    assert got.dtype == precision
    assert got.shape == sums.shape
    error = 2e-6 if precision == np.float32 else 1e-13
    np.testing.assert_allclose(got, log_table_twin(sums, alpha, precision), error, 10 * error)
    assert np.isfinite(got).all()
    if alpha:
        np.testing.assert_allclose(np.exp(got.astype(float)).sum(axis=1), 1.0, rtol=10 * error)


@every_precision
@every_k
@every_width
@pytest.mark.parametrize("sparse", [True, False], ids=["lists", "tiles"])
def test_maximise_is_accumulate_and_log_table(k, width, precision, sparse):
    rng = np.random.default_rng(k * width + sparse)
    X, resp = make_csr(rng, 40, width), make_resp(rng, 40, k, precision, sparse=sparse)
    freeze(X, resp)
    for alpha in (0.0, 1.0):
        expected = counts.log_table(counts.accumulate(X, resp), alpha, precision)
        got = counts.maximise(X, resp, alpha, precision)
        few = summing.Rows(X, resp).with_few_words()
        np.testing.assert_array_equal(got[~few], expected[~few])
        # Their totals are added in another order.
        np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(precision).eps)


@every_precision
def test_log_of_zero_and_of_nothing(precision):
    got = counts.log_table(np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), 0.0, precision)
    expected = [np.log(0.75), counts.LOG_ZERO, np.log(0.25)], [-np.log(3)] * 3
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@every_precision
@every_k
@every_width
def test_table_sum(k, width, precision):
    table = make_table(np.random.default_rng(k), k, width, precision)
    freeze(table)
    expected = np.asarray(table, np.float64).sum()
    assert counts.table_sum(table) == pytest.approx(expected, rel=1e-12)
    packed = counts.log_table(np.ones((k, width)), 1.0, precision)
    assert counts.table_sum(packed) == pytest.approx(packed.astype(float).sum(), rel=1e-12)


@every_precision
@every_k
def test_new_tables_are_used_where_they_are(k, precision):
    for width in WIDTHS:
        table = counts.new_table(k, width, precision)
        assert table.shape == (k, width)
        assert table.dtype == precision
        assert not counts.memory_of(table)[-summing.LANES :].any()  # the spare cells are read
        table[...] = 1.0
        assert np.shares_memory(counts.memory_of(table), table)
        assert counts.table_sum(table) == k * width


def unpacked(table):
    """Yield the same numbers in memory that is no table's."""
    yield np.ascontiguousarray(table)
    yield np.asfortranarray(np.array(table))
    yield np.repeat(table, 2, axis=0)[::2]
    yield np.flip(np.flip(table, 1).copy(), 1)
    yield np.array(table)[:, :]


@every_precision
@every_k
@every_width
def test_unpacked_tables_equal_packed_ones(k, width, precision):
    rng = np.random.default_rng(9)
    X, table = make_csr(rng, 20, width), make_table(rng, k, width, precision)
    scores, total = counts.scores(X, table), counts.table_sum(table)
    for other in unpacked(table):
        freeze(other)
        np.testing.assert_array_equal(counts.scores(X, other), scores)
        assert counts.table_sum(other) == total


@every_precision
@pytest.mark.parametrize("part", [slice(0, 5), slice(1, 6), slice(3, 8), slice(0, 1)], ids=str)
def test_some_components_of_a_table_are_a_table(part, precision):
    # The memory behind them is that of a table, but of another one.
    rng = np.random.default_rng(10)
    X, table = make_csr(rng, 20, 7), make_table(rng, 8, 7, precision)[part]
    copy = table.copy()
    np.testing.assert_array_equal(counts.scores(X, table), counts.scores(X, copy))
    assert counts.table_sum(table) == pytest.approx(counts.table_sum(copy), rel=1e-12)


# -- the caller's memory -------------------------------------------------------------------------


@every_index
@every_data
def test_csr_arrays_are_taken_as_they_are(data, index):
    X = make_csr(np.random.default_rng(11), 10, 5, data=data, index=index)
    indptr, indices, values = summing.csr_arrays(X, 5)
    assert indptr is X.indptr
    assert indices is X.indices
    if data in NATIVE:
        assert values is X.data
    else:
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, X.data)


@every_index
@every_data
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_blocks_share_the_callers_memory(kind, data, index):
    whole = make_csr(np.random.default_rng(12), 50, 8, data=data, index=index)
    X = kind(whole)
    X.indices, X.indptr = whole.indices, whole.indptr
    Z = np.random.default_rng(12).normal(size=(50, 3))
    assert (Multinomial().encode(X) is X) == (np.dtype(data) in NATIVE)  # or converted once
    for block in Partition((X, Z), block_rows=7).blocks:
        part, rows = block.views
        assert part.indices.dtype == part.indptr.dtype == index
        if part.nnz:
            assert np.shares_memory(part.data, X.data)
            assert np.shares_memory(part.indices, X.indices)
        assert np.shares_memory(rows, Z)
        np.testing.assert_array_equal(dense(part), dense(X)[block.rows])
    np.testing.assert_array_equal(dense(rows_of(X, 3, 3)), np.zeros((0, 8)))


def test_presence_does_not_change_the_callers_counts():
    X = make_csr(np.random.default_rng(13), 20, 5, messy=True)
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    freeze(X)
    ones = Bernoulli().encode(X)
    assert ones is not X
    np.testing.assert_array_equal(dense(ones), dense(X) > 0)
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


@every_precision
def test_csr_arrays_need_not_be_contiguous(precision):
    X = make_csr(np.random.default_rng(14), 10, 5)
    table = make_table(np.random.default_rng(14), 3, 5, precision)
    expected = counts.scores(X, table)
    strided = sp.csr_matrix((np.repeat(X.data, 2)[::2], X.indices, X.indptr), shape=X.shape)
    assert not strided.data.flags.c_contiguous
    np.testing.assert_array_equal(counts.scores(strided, table), expected)


# -- posterior -----------------------------------------------------------------------------------


def posterior_twin(log_prob, log_weights, rule, beta, allowed):
    """Return resp, log posterior (-inf where forbidden), evidence and objective."""
    joint = log_prob + log_weights
    joint = joint if allowed is None else np.where(allowed, joint, -np.inf)
    top = joint.max(axis=1, keepdims=True)
    evidence = top[:, 0] + np.log(np.exp(joint - top).sum(axis=1))
    if rule == "hard":
        resp = np.eye(joint.shape[1])[joint.argmax(axis=1)]
        objective = top[:, 0]
    elif beta == 0:
        resp = np.isfinite(joint) / np.isfinite(joint).sum(axis=1, keepdims=True)
        objective = np.where(np.isfinite(joint), joint, 0.0).sum(axis=1)
        objective = objective / np.isfinite(joint).sum(axis=1)
    else:
        powers = np.exp(beta * (joint - top))
        resp = powers / powers.sum(axis=1, keepdims=True)
        objective = top[:, 0] + np.log(powers.sum(axis=1)) / beta
    return resp, joint - evidence[:, np.newaxis], evidence, objective


def posterior_in(precision, log_prob, log_weights, **options):
    """Return the posterior with responsibilities of the precision asked for."""
    out = np.empty(np.shape(log_prob), dtype=precision)
    result = posterior(log_prob, log_weights, out=out, **options)
    assert result.resp is out
    return result


def make_joint(k, *, masked):
    rng = np.random.default_rng(k)
    log_prob = rng.normal(-50.0, 3.0, size=(30, k))
    log_prob[3] = -1e5 + log_prob[3]
    log_prob[4] *= 300
    log_weights = np.log(rng.dirichlet(np.ones(k)))
    allowed = rng.random((30, k)) < 0.5
    allowed[np.arange(30), rng.integers(k, size=30)] = True
    return log_prob, log_weights, allowed if masked else None


@every_precision
@every_k
@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize(
    ("rule", "beta"), [("soft", 1.0), ("soft", 0.3), ("soft", 0.0), ("hard", 1.0), ("hard", 0.3)]
)
def test_posterior(k, rule, beta, masked, precision):
    log_prob, log_weights, allowed = make_joint(k, masked=masked)
    freeze(log_weights, *([allowed] if masked else []))
    resp, logs, evidence, objective = posterior_twin(log_prob, log_weights, rule, beta, allowed)
    got = posterior_in(
        precision, log_prob.copy(), log_weights, rule=rule, beta=beta, allowed=allowed
    )
    tol = {"rtol": 0, "atol": 2e-6 if precision == np.float32 else 1e-13}
    assert got.resp.dtype == precision
    assert got.evidence.dtype == got.objective.dtype == got.log_posterior.dtype == np.float64
    np.testing.assert_allclose(got.resp, resp, **tol)
    np.testing.assert_allclose(got.resp.sum(axis=1), 1.0, rtol=1e-6)
    scale = {"rtol": 1e-13, "atol": tol["atol"]}
    np.testing.assert_allclose(got.evidence, evidence, **scale)
    np.testing.assert_allclose(got.objective, objective, rtol=1e-13, atol=4 * tol["atol"])
    known = np.isfinite(logs)
    np.testing.assert_allclose(got.log_posterior[known], logs[known], **scale)
    assert np.isfinite(got.log_posterior).all()
    assert (got.log_posterior[~known] < -1e29).all()
    assert not got.resp[~known].any()  # exactly


@every_precision
def test_of_equals_the_first_wins(precision):
    log_prob = np.zeros((3, 20))
    log_prob[1, :4] = -1.0
    allowed = np.ones((3, 20), dtype=bool)
    allowed[2, :11] = False
    got = posterior_in(precision, log_prob, np.zeros(20), rule="hard", allowed=allowed)
    np.testing.assert_array_equal(got.resp.argmax(axis=1), [0, 4, 11])
    np.testing.assert_array_equal(got.resp.sum(axis=1), 1.0)


@every_precision
@pytest.mark.parametrize("rule", ["soft", "hard"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_hopeless_rows_stay_finite(rule, beta, precision):
    log_prob = np.array([[-1e5, -1e5 - 1, -2e5], [-1e5, -1e9, -1e12], [-1e12, -1e12, -1e12]])
    got = posterior_in(precision, log_prob, np.log([0.2, 0.3, 0.5]), rule=rule, beta=beta)
    assert all(np.isfinite(part).all() for part in got)
    np.testing.assert_allclose(got.resp.sum(axis=1), 1.0, rtol=1e-6)


def test_single_precision_drops_what_is_below_a_billionth():
    share = np.array([1.0, 1.1e-9, 0.9e-9, 1e-12, 1e-30])
    log_prob = np.log(share)[np.newaxis]
    single = posterior_in(np.float32, log_prob.copy(), np.zeros(5)).resp[0]
    double = posterior_in(np.float64, log_prob.copy(), np.zeros(5)).resp[0]
    np.testing.assert_array_equal(single > 0, [True, True, False, False, False])
    np.testing.assert_allclose(single[1], 1.1e-9, rtol=1e-5)
    np.testing.assert_allclose(double, share / share.sum(), rtol=1e-12)


def test_a_row_may_have_no_columns_in_common_with_its_neighbours():
    # k that is no multiple of eight: the padding must not leak from one row to the next.
    log_prob = np.array([[0.0] * 9, [-700.0] * 9, [0.0] * 9])
    got = posterior_in(np.float32, log_prob, np.zeros(9))
    np.testing.assert_allclose(got.resp, 1 / 9, rtol=1e-6)
    np.testing.assert_allclose(got.evidence, np.array([0.0, -700.0, 0.0]) + np.log(9))


# -- threads -------------------------------------------------------------------------------------


def face_results():
    """Return what every face gives on data that exercise every path, as bytes-comparable arrays."""
    rng = np.random.default_rng(15)
    n = 2 * summing.ENTRIES + 100
    X = make_csr(rng, n, 9000, data=np.float32)
    few = np.zeros((n, 20), dtype=np.float32)
    few[np.arange(n), np.where(rng.random(n) < 0.8, 3, rng.integers(20, size=n))] = rng.random(n)
    many = rng.dirichlet(np.ones(20), size=n).astype(np.float32)
    logs = rng.normal(-100.0, 5.0, size=(n, 20))  # the same for all, whatever `scores` gives
    results = {}
    for precision in (np.float32, np.float64):
        name = np.dtype(precision).name
        lists = counts.accumulate(X, few.astype(precision))
        tiles = counts.accumulate(X, many.astype(precision))
        table = counts.log_table(tiles, 0.5, precision)
        result = posterior_in(precision, logs.copy(), np.full(20, -np.log(20)))
        results |= {
            f"lists {name}": lists,
            f"lists added to tiles {name}": counts.accumulate(
                X, few.astype(precision), tiles.copy()
            ),
            f"tiles {name}": tiles,
            f"log_table {name}": np.array(table),
            f"maximise lists {name}": np.array(counts.maximise(X, few, 0.5, precision)),
            f"maximise tiles {name}": np.array(counts.maximise(X, many, 0.5, precision)),
            f"table_sum {name}": np.array(counts.table_sum(table)),
            f"scores {name}": counts.scores(X, table),
            f"resp {name}": result.resp,
            f"evidence {name}": result.evidence,
        }
    return results | dense_results(rng)


def dense_results(rng):
    """Return the results of the kernels of dense rows, by name."""
    rows, means = rng.normal(size=(70, 13)), rng.normal(size=(19, 13))
    close = np.empty((70, 19))
    closeness(rows, means, 0.5, close)
    hard = Hard().apply(close.copy(), np.zeros(19), out=Hard().compact(close.shape))
    return {
        "closeness": close,
        "labels": hard.resp.labels,
        "evidence of labels": hard.evidence,
        "sums by label": hard.resp.T @ rows,
    }


def test_bits_do_not_depend_on_the_threads():
    expected = face_results()
    for n_jobs in (1, 2, 4):
        with LocalEngine(n_jobs) as engine, threads.lend(engine):
            assert threads.n_workers() == n_jobs
            got = face_results()
        for name, value in expected.items():
            assert got[name].dtype == value.dtype
            assert got[name].tobytes() == value.tobytes(), (name, n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_left_in_scratch_memory_does_not_matter(n_jobs):
    rng = np.random.default_rng(16)
    cases = []
    for width, k, n in [(30, 20, 50), (7, 3, 9), (30, 9, 20), (30, 20, 50), (9000, 9, 30)]:
        X = make_csr(rng, n, width)
        for sparse in (False, True, False):
            resp = make_resp(rng, n, k, np.float32, sparse=sparse)
            cases.append((X, resp, counts.accumulate(X, resp)))
    with LocalEngine(n_jobs) as engine, threads.lend(engine):
        results = [counts.accumulate(X, resp) for X, resp, _ in cases]
    for (_, _, expected), got in zip(cases, results, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_scores_use_their_memory_again_and_not_that_of_others():
    rng = np.random.default_rng(17)
    table = counts.as_table(rng.standard_normal((40, 30)).astype(np.float32))
    blocks = [make_csr(rng, n, 30) for n in (4000, 4001, 4000)]
    plain = [counts.scores(X, table) for X in blocks]
    with LocalEngine(1):
        found, places = [], []
        for X in blocks:
            scores = counts.scores(X, table)
            places.append(scores.__array_interface__["data"][0])
            found.append(scores.copy())
            del scores
        assert len({*places}) == 1
        held = [counts.scores(X, table) for X in blocks]
    for results in (found, held):
        for mine, expected in zip(results, plain, strict=True):
            np.testing.assert_array_equal(mine, expected)


def place_of(array):
    return array.__array_interface__["data"][0]


def test_tables_of_several_views_use_their_memory_again():
    sizes = [(30, 50_000), (30, 90_000), (30, 70_000)]
    with threads.lend(threads.Serial()):
        tables = [counts.new_table(*size, np.float32) for size in sizes]
        places = [place_of(table) for table in tables]
        for _ in range(2):
            for view, size in enumerate(sizes):
                tables[view] = None  # as in an M step
                tables[view] = counts.new_table(*size, np.float32)
        assert [place_of(table) for table in tables] == places


def test_one_array_that_nobody_uses_is_kept_at_most():
    with threads.lend(threads.Serial()):
        loan = threads._loan.get()
        held = [threads.recycled(threads.WORTH_KEEPING, np.uint8) for _ in range(20)]
        assert len({place_of(array) for array in held}) == 20
        assert len(loan.lent["table"]) == threads.MOST_LENT
        last = place_of(held[-1])
        held.clear()
        assert place_of(threads.recycled(threads.WORTH_KEEPING, np.uint8)) == last
        assert len(loan.lent["table"]) == 1
    assert not loan.lent


def test_threads_are_lent_in_a_context_only():
    assert threads.n_workers() == 1
    with ExitStack() as stack:
        stack.enter_context(LocalEngine(2))
        assert threads.n_workers() == 2
        assert threads.spread(lambda _: threads.n_workers(), range(3)) == [1, 1, 1]
    assert threads.n_workers() == 1
    assert threads.spread(str, range(3)) == ["0", "1", "2"]


def test_an_error_in_a_thread_reaches_the_caller():
    with LocalEngine(2), pytest.raises(ZeroDivisionError):
        threads.spread(lambda x: 1 // x, [1, 0, 2])


# -- instruction sets ----------------------------------------------------------------------------

ISAS = ("baseline", "avx2", "avx512")


def results_with(isa, folder):
    """Return what the faces give in a process of their own, and the instruction set it reports."""
    path = folder / f"{isa or 'best'}.npz"
    environment = os.environ | {"COEM_ISA": isa}
    command = [sys.executable, __file__, str(path)]
    subprocess.run(command, env=environment, check=True, timeout=120)
    with np.load(path) as archive:
        results = dict(archive)
    return results.pop("instruction_set").item(), results


@pytest.mark.parametrize("wish", ["avx", "AVX2", "sse", "baseline "])
def test_an_instruction_set_that_there_is_not_is_refused(wish):
    command = [sys.executable, "-c", "import coem.kernels"]
    done = subprocess.run(
        command, env=os.environ | {"COEM_ISA": wish}, capture_output=True, text=True, check=False
    )
    assert f"ImportError: COEM_ISA is {wish!r} in the environment" in done.stderr


def test_the_program_says_so_in_one_sentence(tmp_path):
    command = [sys.executable, "-m", "coem", "info", str(tmp_path)]
    environment = os.environ | {"COEM_ISA": "avx"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("coem: error: COEM_ISA is 'avx' in the environment")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_instruction_sets_agree(tmp_path):
    best, _ = results_with("", tmp_path)
    assert best in ISAS
    expected = face_results()
    for isa in ISAS[: ISAS.index(best) + 1]:
        reported, got = results_with(isa, tmp_path)
        assert reported == isa
        for name, value in expected.items():
            # Responsibilities near the threshold of a billionth may be zero in one of them.
            error = 2e-9 if name.startswith("resp") else 0.0
            np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=error, err_msg=name)


def test_the_instruction_set_has_a_name():
    assert instruction_set() in ISAS


# -- bad input -----------------------------------------------------------------------------------

X = sp.csr_matrix(np.eye(3))
ONES = np.ones((2, 3))

BAD = {
    "table too narrow": lambda: counts.scores(X, np.ones((2, 2))),
    "table too wide": lambda: counts.scores(X, np.ones((2, 4))),
    "dense rows": lambda: counts.scores(np.eye(3), ONES),
    "csc": lambda: counts.scores(X.tocsc(), ONES),
    "coo": lambda: counts.scores(X.tocoo(), ONES),
    "table of integers": lambda: counts.scores(X, np.ones((2, 3), dtype=int)),
    "table of half precision": lambda: counts.scores(X, np.ones((2, 3), dtype=np.float16)),
    "accumulate dense rows": lambda: counts.accumulate(np.eye(3), np.ones((3, 2))),
    "too few responsibilities, tiles": lambda: counts.accumulate(X, np.ones((2, 20))),
    "too many responsibilities, tiles": lambda: counts.accumulate(X, np.ones((4, 20))),
    "too few responsibilities, lists": lambda: counts.accumulate(X, np.eye(2, 20)),
    "responsibilities of integers": lambda: counts.accumulate(X, np.ones((3, 2), dtype=int)),
    "responsibilities of one row": lambda: counts.accumulate(X, np.ones(3)),
    "sums in single precision": lambda: counts.log_table(ONES.astype("f4"), 1.0, np.float64),
    "sums of one component": lambda: counts.log_table(np.ones(3), 1.0, np.float64),
    "table of half precision asked for": lambda: counts.log_table(ONES, 1.0, np.float16),
    "sum of a vector": lambda: counts.table_sum(np.ones(3)),
    "too few weights": lambda: posterior(np.ones((4, 3)), np.zeros(2)),
    "too many weights": lambda: posterior(np.ones((4, 3)), np.zeros(4)),
    "mask of too few rows": lambda: posterior(
        np.ones((4, 3)), np.zeros(3), allowed=np.ones((3, 3), dtype=bool)
    ),
    "mask of too few components": lambda: posterior(
        np.ones((4, 3)), np.zeros(3), allowed=np.ones((4, 2), dtype=bool)
    ),
    "mask of numbers": lambda: posterior(np.ones((4, 3)), np.zeros(3), allowed=np.ones((4, 3))),
    "half precision": lambda: posterior_in(np.float16, np.ones((4, 3)), np.zeros(3)),
    "responsibilities of another shape": lambda: posterior(
        np.ones((4, 3)), np.zeros(3), out=np.empty((3, 3))
    ),
    "responsibilities in another order": lambda: posterior(
        np.ones((4, 3)), np.zeros(3), out=np.empty((3, 4)).T
    ),
    "log probabilities of one row": lambda: posterior(np.ones(3), np.zeros(3)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_shapes_and_dtypes_raise(case):
    with pytest.raises((ValueError, TypeError)):
        BAD[case]()


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("indptr", [[0, 2, 9], [-3, 1, 2], [2, 1, 1]])
def test_rows_that_point_beyond_the_non_zeros_are_refused(indptr, index):
    csr = np.array(indptr, index), np.zeros(2, index), np.ones(2)
    table, scale, resp = np.ones(3 * 2 + 8), np.ones(2), np.ones((2, 2))
    some = np.zeros(2, np.int32), np.ones(2)
    calls = (
        lambda: _compiled.scores(*csr, table, np.empty((2, 2))),
        lambda: _compiled.nearest(*csr, table, scale, 0, 2, np.empty(2, np.int32), np.empty(2)),
        lambda: _compiled.accumulate_list(*csr, *some, 0, 2, np.zeros(3)),
        lambda: _compiled.accumulate_tile(*csr, resp, 0, 2, 0, 3, True, np.zeros((3, 8))),
    )
    for call in calls:
        with pytest.raises(ValueError, match="indptr points beyond the indices"):
            call()


# What may read beyond an array runs in a process of its own.
DANGEROUS = {
    "more responsibilities than rows, lists": (
        "resp = np.zeros((2_000_000, 4)); resp[:, 0] = 1",
        "counts.accumulate(X, resp)",
    ),
    "hard posterior of NaN": (
        "logs = np.full((1, 2), np.nan)",
        "posterior(logs, np.zeros(2), rule='hard')",
    ),
}


@pytest.mark.parametrize("case", DANGEROUS)
def test_bad_input_never_kills_the_process(case):
    setup, call = DANGEROUS[case]
    code = f"""
import numpy as np, scipy.sparse as sp
from coem.kernels import counts
from coem.posterior import posterior
X = sp.csr_matrix(np.eye(3))
{setup}
try:
    {call}
except (ValueError, TypeError):
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr or f"killed by signal {-done.returncode}"


if __name__ == "__main__":
    # See `results_with`.
    np.savez(Path(sys.argv[1]), instruction_set=instruction_set(), **face_results())
