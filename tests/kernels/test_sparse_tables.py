"""Sums and tables that list words, against dense NumPy twins: values, types, threads, bits."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from coem.engine import LocalEngine
from coem.io.registry import entry_named
from coem.kernels import counts, sparse_sums, sparse_tables
from coem.kernels.row_lists import RowLists
from coem.kernels.sparse_sums import SparseSums, row_lists
from coem.kernels.sparse_tables import SparseTable, log_table
from tests.kernels.test_counts import NATIVE, dense, make_csr

KS = (1, 7, 8, 20, 130)
ALPHAS = (0.0, 0.1, 1.0)
every_k = pytest.mark.parametrize("k", KS)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)
every_precision = pytest.mark.parametrize("precision", [np.float32, np.float64])


def some_resp(rng, n, k, *, full=False):
    """Return responsibilities, most of them zero; one component has none."""
    resp = rng.dirichlet(np.full(k, 2.0 if full else 3 / k), n)
    resp[resp < (1e-2 if full else 2) / k] = 0
    if k > 1:
        resp[:, k // 2] = 0
    return resp


def twin_table(sums, alpha, precision):
    """Return logarithms of shares, row by row."""
    table = np.empty(sums.shape)
    for row, own in zip(table, sums + alpha, strict=True):
        row[:] = 1 / len(own) if own.sum() == 0 else own / own.sum()
    tiny = table < np.finfo(precision).tiny
    return np.where(tiny, counts.LOG_ZERO, np.log(np.where(tiny, 1.0, table)))


def case(k, alpha, precision=np.float64, seed=0, n=90, width=60):
    """Return rows, a sparse table of theirs, and its twin."""
    rng = np.random.default_rng(seed)
    X = make_csr(rng, n, width)
    resp = some_resp(rng, n, k)
    table = log_table(SparseSums.of(X, resp), alpha, precision)
    return X, table, twin_table(resp.T @ dense(X), alpha, precision)


# -- sums ----------------------------------------------------------------------------------------


@every_k
@pytest.mark.parametrize("messy", [False, True])
def test_sums_are_those_of_dense_rows(k, messy):
    rng = np.random.default_rng(k)
    data, index = NATIVE[k % 4], (np.int64 if k % 3 else np.int32)
    X = make_csr(rng, 80, 300, data=data, index=index, messy=messy)
    resp = some_resp(rng, 80, k, full=k % 2 == 0)
    expected = resp.T @ dense(X)
    for given in (resp, row_lists(resp)):
        sums = SparseSums.of(X, given)
        np.testing.assert_allclose(np.asarray(sums), expected, rtol=1e-12, atol=1e-300)
        assert (sums.sums != 0).all()
        sums.check()
    single = SparseSums.of(X, resp.astype(np.float32))
    np.testing.assert_allclose(np.asarray(single), expected, rtol=1e-6)


def test_threads_and_parts_change_no_bit(monkeypatch):
    rng = np.random.default_rng(0)
    X, resp = make_csr(rng, 400, 900), some_resp(rng, 400, 30)
    alone = SparseSums.of(X, resp)
    table = log_table(alone, 0.1, np.float32)
    scores = table.scores(X)
    monkeypatch.setattr(sparse_sums, "PART", 100)
    monkeypatch.setattr(sparse_tables, "WORDS", 64)
    for n_jobs in (1, 3):
        with LocalEngine(n_jobs):
            sums = SparseSums.of(X, resp)
            again = log_table(sums, 0.1, np.float32)
        for one, other in zip(vars(alone).values(), vars(sums).values(), strict=True):
            np.testing.assert_array_equal(one, other)
        for one, other in zip(table.parts, again.parts, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(again.scores(X), scores)


@pytest.mark.parametrize("shape", [(0, 9), (5, 0), (1, 1)])
def test_sums_of_nothing(shape):
    sums = SparseSums.of(sp.csr_matrix(shape), np.ones((shape[0], 3)))
    assert sums.shape == (3, shape[1])
    assert not sums.any()
    assert sums.sum(axis=1).tolist() == [0, 0, 0]


def test_rows_without_weight_leave_no_pairs():
    X = make_csr(np.random.default_rng(0), 30, 20)
    resp = np.zeros((30, 4))
    resp[:15, 1] = 1.0
    assert set(SparseSums.of(X, resp).components.tolist()) == {1}
    lists = RowLists(np.arange(31), np.ones(30, np.int32), np.repeat([1.0, 0.0], 15), 4)
    np.testing.assert_array_equal(SparseSums.of(X, lists).sums, SparseSums.of(X, resp).sums)


def test_operations_are_those_of_arrays():
    rng = np.random.default_rng(3)
    X = make_csr(rng, 70, 40)
    one, other = (SparseSums.of(X, some_resp(rng, 70, 9)) for _ in "ab")
    a, b = np.asarray(one), np.asarray(other)
    np.testing.assert_allclose(np.asarray(one + other), a + b, rtol=1e-15)
    np.testing.assert_array_equal(np.asarray(one + b), np.asarray(b + one))
    np.testing.assert_array_equal(np.asarray(one * 2.5), a * 2.5)
    np.testing.assert_array_equal(np.asarray(one.beside(other)), np.vstack([a, b]))
    np.testing.assert_array_equal(np.asarray(one[2:5]), a[2:5])
    np.testing.assert_array_equal(one[:, [7, 3, 7]], a[:, [7, 3, 7]])
    np.testing.assert_allclose(one.sum(axis=1), a.sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(one.totals(0.5), np.where(a >= 0.5, a, 0).sum(axis=1), rtol=1e-14)


def test_other_numbers_of_rows_are_refused():
    with pytest.raises(ValueError, match="3 rows of responsibilities for 4 rows"):
        SparseSums.of(sp.csr_matrix((4, 2)), np.ones((3, 2)))


# -- tables --------------------------------------------------------------------------------------


@every_k
@every_alpha
@every_precision
def test_cells_and_scores_are_those_of_dense_tables(k, alpha, precision):
    X, table, twin = case(k, alpha, precision)
    single = precision is np.float32
    np.testing.assert_allclose(np.asarray(table), twin, rtol=3e-7 if single else 1e-14)
    exact = dense(X) @ np.asarray(table, dtype=np.float64).T
    scores = table.scores(X)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, exact, rtol=2e-6 if single else 1e-12, atol=1e-9)
    np.testing.assert_allclose(table.total(), np.asarray(table, np.float64).sum(), rtol=1e-12)


@every_alpha
def test_cells_are_those_of_dense_tables_bit_by_bit(alpha):
    rng = np.random.default_rng(1)
    X, resp = make_csr(rng, 90, 60, data=np.int32), np.eye(20)[rng.integers(20, size=90)]
    table = log_table(SparseSums.of(X, resp), alpha, np.float32)
    known = counts.log_table(counts.accumulate(X, resp), alpha, np.float32)
    np.testing.assert_array_equal(np.asarray(table), known)


def test_sums_times_nothing_are_no_sums():
    rng = np.random.default_rng(3)
    sums = SparseSums.of(make_csr(rng, 40, 30), some_resp(rng, 40, 7)) * 0.0
    assert len(sums.sums)
    assert np.asarray(log_table(sums, 0.0, np.float64)) == pytest.approx(
        np.full((7, 30), -np.log(30))
    )


@pytest.mark.parametrize("common", [1, 2, 1000])
def test_what_is_common_changes_no_cell(monkeypatch, common):
    X, table, _ = case(20, 0.1)
    monkeypatch.setattr(sparse_tables, "COMMON", common)
    _, other, _ = case(20, 0.1)
    assert other.common.shape[1] != table.common.shape[1]
    np.testing.assert_array_equal(np.asarray(other), np.asarray(table))
    np.testing.assert_allclose(other.scores(X), table.scores(X), rtol=1e-12)


@every_precision
def test_parts_of_a_table(precision):
    _, table, _ = case(20, 0.1, precision)
    cells = np.asarray(table)
    order = np.roll(np.arange(20), 3)
    for some in (order, slice(4, 9), cells.sum(axis=1) < np.median(cells.sum(axis=1))):
        np.testing.assert_array_equal(np.asarray(table[some]), cells[some])
    np.testing.assert_array_equal(table[5], cells[5])
    np.testing.assert_array_equal(table[:, [9, 0, 9]], cells[:, [9, 0, 9]])
    np.testing.assert_array_equal(table[2:4, 7:9], cells[2:4, 7:9])
    np.testing.assert_allclose(np.asarray(table.exp()), np.exp(cells, dtype=np.float64), rtol=1e-14)
    np.testing.assert_allclose(np.asarray(SparseTable.of_dense(cells)), cells, rtol=1e-15)
    both = SparseTable.stacked([table, cells[:3]])
    np.testing.assert_allclose(np.asarray(both), np.vstack([cells, cells[:3]]), rtol=1e-6)
    share = np.random.default_rng(0).random((3, 20))
    shares = share @ table.exp()
    np.testing.assert_allclose(np.asarray(shares), share @ np.exp(cells, dtype=np.float64))


SOME = np.random.default_rng(5)
PLACES = {
    "integer": lambda n: n // 2,
    "last": lambda n: -1,
    "number of NumPy": lambda n: np.int8(-3),
    "array of no axes": lambda n: np.array(2),
    "all": lambda n: slice(None),
    "slice": lambda n: slice(2, n - 5),
    "backwards": lambda n: slice(-2, 1, -3),
    "no slice": lambda n: slice(5, 5),
    "far slice": lambda n: slice(-10 * n, 10 * n),
    "list": lambda n: [3, 0, -1],
    "tuple": lambda n: (1, -n, n - 1),
    "one of a list": lambda n: [4],
    "empty": lambda n: [],
    "again": lambda n: SOME.permutation(np.arange(-n, n))[: n + 7],
    "order": lambda n: SOME.permutation(n),
    "bytes": lambda n: np.array([7, 5, 6], np.uint8),
    "column": lambda n: [[2], [-4]],
    "square": lambda n: SOME.integers(-n, n, size=(3, 3)),
    "mask": lambda n: np.arange(n) % 7 == 3,
    "list of bools": lambda n: [i in (1, 4, 5) for i in range(n)],
    "nothing of a mask": lambda n: np.zeros(n, bool),
}


def tables():
    """Yield tables of several kinds with words in common or not."""
    _, table, _ = case(20, 0.1, np.float32)
    assert len(table.cells)
    assert table.common.size
    yield table
    yield SparseTable.of_dense(np.asarray(table))
    yield log_table(SparseSums.of(sp.csr_matrix((9, 60)), np.ones((9, 20))), 0.1, np.float64)


def check_cells(table, cells, key):
    """Check that an index of a table means what it means to NumPy, or that neither knows it."""
    try:
        expected = cells[key]
    except IndexError:
        with pytest.raises(IndexError, match="make no pairs; "):
            table[key]
        return
    found = table[key]
    assert type(found) in (SparseTable, type(expected))
    assert (found.shape, found.dtype, found.ndim) == (expected.shape, expected.dtype, expected.ndim)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("words", PLACES)
@pytest.mark.parametrize("components", PLACES)
def test_cells_by_components_and_words(components, words):
    for table in tables():
        key = PLACES[components](20), PLACES[words](60)
        check_cells(table, np.asarray(table), key)


@pytest.mark.parametrize("components", PLACES)
def test_cells_by_components(components):
    for table in tables():
        key, cells = PLACES[components](20), np.asarray(table)
        if components != "tuple":
            check_cells(table, cells, key)
        check_cells(table, cells, (key,))


def test_other_indices_of_cells():
    for table in tables():
        cells = np.asarray(table)
        for key in ((), np.ix_([3, -1, 3], [5, 0, 5, -2]), cells < np.median(cells), cells > 1):
            check_cells(table, cells, key)
        assert table[()] is table[:] is table[:, :] is table
        np.testing.assert_array_equal(list(table), cells)


def test_components_stay_a_table_and_other_cells_an_array():
    _, table, _ = case(20, 0.1)
    for key in ([1, 2], [], slice(3), np.arange(20) > 4, ([1, 2], slice(None))):
        assert isinstance(table[key], SparseTable)
    X = make_csr(np.random.default_rng(0), 5, 60)
    np.testing.assert_array_equal(table[[2, 2, 7]].scores(X), table.scores(X)[:, [2, 2, 7]])
    for key in (3, np.s_[:, 0:60], np.s_[[1, 2], 0:60], np.s_[[1, 2], [3, 4]], [[1, 2]]):
        assert isinstance(table[key], np.ndarray)
    assert isinstance(table[3, 4], np.float64)


REFUSED = {
    "None": (None, "takes integers, .* got None$"),
    "...": (..., "takes integers, .* got Ellipsis$"),
    "True": (True, "takes integers, .* got True$"),
    "bool": (np.s_[:, np.bool_(False)], "takes integers, .* got "),
    "number": (1.0, r"takes integers, .* got 1\.0$"),
    "numbers": (np.s_[:, [1.0]], "takes integers, .* got an array of float64$"),
    "empty array": (np.array([]), "takes integers, .* got an array of float64$"),
    "text": ("w", "takes integers, .* got 'w'$"),
    "texts": (["w"], "takes integers, .* got an array of <U1$"),
    "ragged": ([[1, 2], [3]], r"takes integers, .* got \[\[1, 2\], \[3\]\]$"),
    "far": (20, "^component 20 is not there; the table has 20 components$"),
    "far before": (np.s_[[0, -21]], "^component -21 is not there; the table has 20 components$"),
    "far feature": (np.s_[:, 60], "^feature 60 is not there; the table has 60 features$"),
    "huge": (np.array([2**64 - 1], np.uint64), "^component 18446744073709551615 is not there"),
    "three": ((1, 2, 3), "^a table has 2 axes, and there are 3 indices$"),
    "long mask": (np.ones(21, bool), r"^a mask of shape \(21,\) for 20 components$"),
    "wide mask": (np.s_[:, np.ones(59, bool)], r"^a mask of shape \(59,\) for 60 features$"),
    "other mask": (np.ones((20, 59), bool), r"^a mask of shape \(20, 59\) for a table \(20, 60\)$"),
    "mask and words": ((np.ones((20, 60), bool), 1), r"^a mask of shape \(20, 60\) for 20 comp"),
    "pairs": (
        ([1, 2], [1, 2, 3]),
        r"^components of shape \(2,\) and features of shape \(3,\) make no",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_indices_are_refused_in_a_sentence(what):
    _, table, _ = case(20, 0.1)
    key, message = REFUSED[what]
    with pytest.raises(IndexError, match=message):
        table[key]


def test_a_component_that_is_all_of_the_table_keeps_its_place():
    _, table, _ = case(7, 0.1)
    order = np.roll(np.arange(7), 3)
    np.testing.assert_array_equal(table[order, 2:50], np.asarray(table)[order, 2:50])


@pytest.mark.parametrize("many", [0, 10**6])
def test_few_words_are_the_same_by_either_way(monkeypatch, many):
    for table in tables():
        cells = np.asarray(table)
        monkeypatch.setattr(sparse_tables, "COMMON", many)
        for key in (np.s_[1:4, 3], np.s_[[4, 0, 4], 9:2:-1], np.s_[-1, 5:]):
            np.testing.assert_array_equal(table[key], cells[key])


def test_some_cells_need_no_array_of_all():
    rng, width = np.random.default_rng(0), 100_000
    words, rows = rng.integers(width, size=50_000), np.arange(50_000) % 500
    X = sp.csr_matrix((np.ones(50_000), (rows, words)), shape=(500, width))
    table = log_table(SparseSums.of(X, np.eye(200)[rng.integers(200, size=500)]), 0.1, np.float32)
    words = rng.integers(width, size=width)
    for key in (np.s_[3:5, 1:], np.s_[:, 3:9], (rng.integers(200, size=width), words), (7, words)):
        tracemalloc.start()
        try:
            table[key]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 12e6  # the dense array takes 80 MB


def test_functions_of_numpy_take_the_dense_array():
    _, table, _ = case(20, 0.1)
    cells = np.asarray(table)
    assert (table.ndim, np.ndim(table), np.shape(table)) == (2, 2, (20, 60))
    np.testing.assert_array_equal(table.T, cells.T)
    np.testing.assert_array_equal(np.exp(table), np.exp(cells))
    np.testing.assert_array_equal(np.maximum(-5.0, table), np.maximum(-5.0, cells))
    np.testing.assert_array_equal(np.sum(table, axis=1), cells.sum(axis=1))
    np.testing.assert_array_equal(np.add.reduce(table), cells.sum(axis=0))
    np.testing.assert_array_equal(2 * table - cells, cells)
    np.testing.assert_array_equal(table == table[:], np.ones((20, 60), bool))
    np.testing.assert_array_equal(table[table < -4], cells[cells < -4])
    np.testing.assert_array_equal(table @ cells.T, cells @ cells.T)
    np.testing.assert_array_equal(table @ table.T, cells @ cells.T)
    assert isinstance(np.ones((2, 20)) @ table, SparseTable)
    with pytest.raises(TypeError, match="a sparse table cannot be changed"):
        table += 1
    with pytest.raises(TypeError, match="a sparse table cannot be changed"):
        np.add.at(table, (0, 0), 1)
    with pytest.raises(TypeError, match="does not support item assignment"):
        table[0] = 1


def test_a_pickled_table_scores_as_before():
    X, table, _ = case(20, 0.1, np.float32)
    again = pickle.loads(pickle.dumps(table))
    assert counts.is_table(again.common)
    np.testing.assert_array_equal(again.scores(X), table.scores(X))


def test_a_large_array_is_refused_with_its_size(monkeypatch):
    _, table, _ = case(20, 0.1)
    monkeypatch.setattr(sparse_tables, "DENSE_CELLS", 100)
    with pytest.raises(ValueError, match=r"20 components and 60 features would take 0\.0 GB"):
        np.asarray(table)
    for function in (np.exp, np.transpose, lambda t: t.T, lambda t: t * 2, lambda t: t == t):
        with pytest.raises(ValueError, match=r"or table\.toarray\(\) for all$"):
            function(table)
    assert table.toarray().shape == (20, 60)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_small_sums_that_are_left_out_cost_less_than_the_bound(monkeypatch, alpha):
    rng = np.random.default_rng(0)
    X = make_csr(rng, 300, 60)
    sums = SparseSums.of(X, some_resp(rng, 300, 20, full=True) * 0.1)
    there, least = np.asarray(sums), float(np.median(sums.sums))
    monkeypatch.setattr(sparse_tables, "NEGLIGIBLE", least / alpha)
    small = (there < least) & (there > 0)
    assert small.sum() > 100
    found = np.asarray(log_table(sums, alpha, np.float64))
    np.testing.assert_allclose(found, twin_table(np.where(small, 0, there), alpha, np.float64))
    best = twin_table(there, alpha, np.float64)
    loss = ((there + alpha) * (best - found)).sum()
    assert 0 < loss <= (there[small] ** 2).sum() / alpha
    assert loss <= least**2 / alpha * small.sum()


def test_without_pseudo_counts_no_sum_is_left_out(monkeypatch):
    monkeypatch.setattr(sparse_tables, "NEGLIGIBLE", 0.5)
    _, table, twin = case(20, 0.0)
    np.testing.assert_allclose(np.asarray(table), twin, rtol=1e-14)


def damaged():
    """Yield tables whose arrays do not fit each other, and what is wrong with them."""
    _, table, _ = case(20, 0.1)
    unseen, places, common, offsets, components, cells = table.parts
    yield "a number for each component", (unseen.astype(np.float32), *table.parts[1:])
    yield "a place for each feature", (unseen, places[:-1], *table.parts[2:])
    yield "other types", (unseen, places, common.astype(np.float32), *table.parts[3:])
    yield "other components", (unseen, places, common[1:], *table.parts[3:])
    yield "places that are not there", (unseen, places + 1000, *table.parts[2:])
    yield "lengths", (unseen, places, common, offsets, components[:-1], cells)
    yield "lengths", (unseen, places, common, offsets[::-1].copy(), components, cells)
    yield "not there", (unseen, places, common, offsets, components + 20, cells)
    yield "other types", (unseen, places, common, offsets, components.astype(np.int64), cells)
    falls = np.append(0, offsets[1:])
    falls[1] = offsets[-1] + 1
    yield "not in order", (unseen, places, common, falls, components, cells)


@pytest.mark.parametrize("number", range(10))
def test_tables_of_a_file_are_checked(number):
    what, parts = list(damaged())[number]
    check = entry_named("SparseTable").check
    check(case(20, 0.1)[1])
    with pytest.raises(ValueError, match=what):
        check(SparseTable(*parts))
