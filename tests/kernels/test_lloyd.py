"""The steps of spherical k-means against plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from coem.engine import LocalEngine
from coem.kernels import counts
from coem.kernels.lloyd import Lloyd, unit_rows
from coem.latent.block import Partition

ERROR = {np.float32: 1e-6, np.float64: 1e-13}


def make(n, d, precision, *, sparse, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    X[rng.random(n) < 0.1] = 0.0
    X = normalize(X).astype(precision)
    return sp.csr_matrix(X) if sparse else X


def steps(X, k):
    blocks = Partition((X,), block_rows=16).blocks
    return Lloyd(X, [(block.rows, block.views[0]) for block in blocks], k)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (70, 9, 3), (200, 40, 20), (130, 33, 65)])
def test_steps(n, d, k, precision, sparse):
    rng = np.random.default_rng(1)
    X = make(n, d, precision, sparse=sparse)
    dense = X.toarray() if sparse else X
    rows, weight = steps(X, k), rng.uniform(0.0, 2.0, size=n)
    labels = None
    for turn in range(6):
        directions = normalize(rng.standard_normal((k, d))).astype(precision)
        rows.assign(directions)
        cosines = dense.astype(float) @ directions.astype(float).T
        np.testing.assert_allclose(rows.cosines, cosines.max(axis=1), atol=ERROR[precision])
        chosen = cosines[np.arange(n), rows.labels]
        np.testing.assert_allclose(chosen, cosines.max(axis=1), atol=ERROR[precision])
        # Most rows stay where they are, some move, some are nowhere.
        fresh = rng.integers(-1, k, size=n).astype(np.int32)
        labels = fresh if turn == 0 else np.where(rng.random(n) < 0.2, fresh, labels)
        lengths = rows.sum_rows(labels, weight)
        sums = rows.sums
        np.testing.assert_allclose(lengths, np.linalg.norm(sums, axis=1), rtol=1e-14)
        resp = np.where(labels[:, None] == np.arange(k), weight[:, None], 0.0)
        np.testing.assert_allclose(sums, resp.T @ dense.astype(float), atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "k"), [(70, 300, 3), (300, 200, 20), (130, 400, 9)])
def test_rows_are_moved_from_sum_to_sum(n, d, k, precision, weighted, monkeypatch):
    """Few changes are made in the sums, in their table and in their lengths, and nothing else."""
    moves = []
    move = Lloyd._move
    monkeypatch.setattr(Lloyd, "_move", lambda *args: moves.append(1) or move(*args))
    rng = np.random.default_rng(4)
    X = make(n, d, precision, sparse=True, seed=4)
    rows, dense = steps(X, k), X.toarray().astype(float)
    weight = rng.uniform(0.1, 2.0, size=n) if weighted else None
    labels = rng.integers(k, size=n).astype(np.int32)
    for _ in range(40):
        lengths = rows.sum_rows(labels, weight)
        resp = np.where(labels[:, None] == np.arange(k), 1.0, 0.0)
        sums = (resp if weight is None else resp * weight[:, None]).T @ dense
        np.testing.assert_allclose(rows.sums, sums, atol=1e-12)
        np.testing.assert_allclose(lengths, np.linalg.norm(sums, axis=1), rtol=1e-12)
        rows.assign_to_sums()
        cosines = dense @ (sums / lengths[:, None]).T
        np.testing.assert_allclose(rows.cosines, cosines.max(axis=1), atol=ERROR[precision])
        chosen = cosines[np.arange(n), rows.labels]
        np.testing.assert_allclose(chosen, cosines.max(axis=1), atol=ERROR[precision])
        labels = labels.copy()
        labels[rng.integers(n)] = rng.integers(-1, k)
    assert len(moves) > 30  # or the test is of something else


@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-7, 1e-3])
def test_lengths_of_sums_that_cancel(jitter, monkeypatch):
    """A cluster is left with a row and nearly its opposite: what it grew by is rounding."""
    rng = np.random.default_rng(7)
    dense = normalize(rng.standard_normal((60, 300)) * (rng.random((60, 300)) < 0.2))
    dense[1] = -dense[0] + jitter * dense[2]
    rows = steps(sp.csr_matrix(dense), 2)
    labels = np.zeros(60, dtype=np.int32)
    labels[-1] = 1
    monkeypatch.setattr("coem.kernels.lloyd.DEAR", 0.1)
    for row in range(2, 59):
        lengths = rows.sum_rows(labels, None)
        np.testing.assert_allclose(lengths, np.linalg.norm(rows.sums, axis=1), rtol=1e-9)
        assert rows.ready
        rows.assign_to_sums()
        labels = labels.copy()
        labels[row] = 1
    lengths = rows.sum_rows(labels, None)
    np.testing.assert_allclose(lengths, np.linalg.norm(rows.sums, axis=1), rtol=1e-9)
    assert lengths[0] == pytest.approx(jitter, abs=1e-15)


def test_numbers_that_are_no_one_piece_of_memory():
    X = make(40, 9, np.float32, sparse=True)
    spread = sp.csr_matrix(X.shape, dtype=np.float32)
    spread.indptr, spread.indices = X.indptr, np.repeat(X.indices, 2)[::2]
    spread.data = np.repeat(X.data, 2)[::2]
    found = []
    for data in (X, spread):
        rows = steps(data, 3)
        rows.sum_rows((np.arange(40) % 3).astype(np.int32), None)
        rows.assign_to_sums()
        found.append((rows.sums, rows.cosines))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_moving_rows_does_not_depend_on_threads():
    X = make(400, 500, np.float32, sparse=True, seed=5)
    found = []
    for n_jobs in (1, 2, 3):
        rng, rows = np.random.default_rng(6), steps(X, 5)
        labels = rng.integers(5, size=400).astype(np.int32)
        with LocalEngine(n_jobs):
            for _ in range(12):
                rows.sum_rows(labels, None)
                rows.assign_to_sums()
                labels = np.where(rng.random(400) < 0.01, rows.labels, labels)
        found.append((rows.sums, rows.lengths, rows.cosines))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_of_equal_cosines_the_first_wins():
    X = sp.csr_matrix(np.eye(4))
    rows = steps(X, 3)
    rows.assign(np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1.0, 0, 0]]))
    np.testing.assert_array_equal(rows.labels, [0, 2, 0, 0])


def test_unit_rows():
    sums = np.array([[3.0, 4.0], [0.0, 0.0]])
    unit = unit_rows(sums, np.array([5.0, 0.0]), np.eye(2), np.float64)
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0.0, 1.0]])


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("k", [1, 3, 8, 20, 65])
def test_resultants(k, dense, precision):
    rng = np.random.default_rng(2)
    X = make(90, 31, np.float64, sparse=True)
    resp = rng.random((90, k)) * (1.0 if dense else rng.random((90, k)) < 0.1)
    resp[:, -1] = 0.0
    sums = resp.T @ X.toarray()
    wanted = np.linalg.norm(sums, axis=1)
    directions, lengths = counts.resultants(X, resp.astype(precision), precision)
    np.testing.assert_allclose(lengths, wanted, rtol=1e-6 if precision is np.float32 else 1e-13)
    unit = sums / np.where(wanted > 0, wanted, 1.0)[:, None]
    np.testing.assert_allclose(directions, unit, atol=ERROR[precision])
    with LocalEngine(2):
        again, _ = counts.resultants(X, resp.astype(precision), precision)
    np.testing.assert_array_equal(directions, again)


@pytest.mark.parametrize("sparse", [True, False])
def test_heavy_rows_leave_nothing_behind(sparse):
    X = make(40, 7, np.float64, sparse=sparse, seed=3)
    weight = np.where(np.arange(40) < 20, 1e12, 1e-6)
    rows = steps(X, 2)
    rows.sum_rows(np.zeros(40, dtype=np.int32), weight)
    labels = np.where(np.arange(40) < 20, 1, 0).astype(np.int32)
    dense = X.toarray() if sparse else X
    rows.sum_rows(labels, weight)
    np.testing.assert_allclose(rows.sums[0], weight[20:] @ dense[20:], rtol=1e-9)
    assert rows.sum_rows(np.ones(40, dtype=np.int32), weight)[0] == 0
    assert not rows.sums[0].any()
