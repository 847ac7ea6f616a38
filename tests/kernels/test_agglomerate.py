"""The merges of the compiled kernel against a slow NumPy twin, exactly, and against scipy."""

import _thread
import threading
from functools import partial
from operator import call

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist, squareform

from coem.kernels import _compiled
from coem.kernels.agglomerate import LINKAGES, agglomerate

every_linkage = pytest.mark.parametrize("linkage", LINKAGES)
every_precision = pytest.mark.parametrize("precision", [np.float32, np.float64])
several_views = pytest.mark.parametrize("n_views", [1, 2, 3])


def join(linkage, x, y, size_x, size_y):
    """Return the distances from a union, in the precision of the distances from its parts."""
    if linkage == "single":
        return np.minimum(x, y)
    if linkage == "complete":
        return np.maximum(x, y)
    mean = (size_x * x.astype(np.float64) + size_y * y.astype(np.float64)) / (size_x + size_y)
    return mean.astype(x.dtype)


def twin(cells, n, linkage):
    """Return children, distances and sizes: every turn looks at all pairs, in their order."""
    views = [squareform(view) for view in cells]
    for view in views:
        view[np.tril_indices(n)] = np.inf  # pairs (i, j), i < j
    sizes, clusters, merges = np.ones(n), np.arange(n), []
    for t in range(n - 1):
        turn = views[t % len(views)]
        a, b = divmod(int(turn.argmin()), n)  # the first of the least in the order of pairs
        merges.append((*sorted((clusters[a], clusters[b])), turn[a, b], sizes[a] + sizes[b]))
        for view in views:
            both = np.minimum(view, view.T)
            row = join(linkage, both[a], both[b], sizes[a], sizes[b])
            row[[a, b]] = np.inf
            view[:a, a], view[a, a + 1 :] = row[:a], row[a + 1 :]
            view[:, b] = view[b] = np.inf
        sizes[a], sizes[b], clusters[a] = sizes[a] + sizes[b], 0, n + t
    children = np.array([merge[:2] for merge in merges]).reshape(-1, 2)
    return children, np.array([m[2] for m in merges]), np.array([m[3] for m in merges])


def check_against_twin(cells, n, linkage):
    expected = twin(cells, n, linkage)
    got = agglomerate(cells.copy(), n, linkage)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_linkage
@every_precision
@several_views
@pytest.mark.parametrize("n", [2, 3, 17, 120])
def test_random_distances(n, n_views, precision, linkage):
    rng = np.random.default_rng(n + n_views)
    check_against_twin(rng.random((n_views, n * (n - 1) // 2)).astype(precision), n, linkage)


@every_linkage
@every_precision
@several_views
@pytest.mark.parametrize("levels", [1, 2, 5, 50])
def test_tied_distances(levels, n_views, precision, linkage):
    n = 90
    rng = np.random.default_rng(levels)
    cells = rng.integers(levels, size=(n_views, n * (n - 1) // 2)).astype(precision)
    check_against_twin(cells, n, linkage)


@every_linkage
@every_precision
@pytest.mark.parametrize("distance", [0.0, 0.1, 1 / 3])
def test_equal_distances(distance, precision, linkage):
    """Means of equal numbers may differ from them by rounding, to either side."""
    n = 60
    check_against_twin(np.full((2, n * (n - 1) // 2), distance, dtype=precision), n, linkage)


@every_linkage
@several_views
def test_points_on_a_grid(n_views, linkage):
    rng = np.random.default_rng(7)
    cells = np.array([pdist(rng.integers(4, size=(100, 3))) for _ in range(n_views)])
    check_against_twin(cells, 100, linkage)


@every_linkage
@every_precision
def test_many_orders_of_magnitude(precision, linkage):
    n = 70
    exponents = np.random.default_rng(0).uniform(-30, 30, size=(2, n * (n - 1) // 2))
    check_against_twin((10.0**exponents).astype(precision), n, linkage)


@every_linkage
@pytest.mark.parametrize("seed", range(5))
def test_one_view_is_scipys_linkage(seed, linkage):
    cells = pdist(np.random.default_rng(seed).normal(size=(500, 8)))
    expected = scipy_linkage(cells, linkage)
    children, distances, sizes = agglomerate(cells[None].copy(), 500, linkage)
    np.testing.assert_array_equal(children, expected[:, :2])
    np.testing.assert_allclose(distances, expected[:, 2], rtol=1e-12)
    np.testing.assert_array_equal(sizes, expected[:, 3])


@every_linkage
def test_single_precision_keeps_the_heights(linkage):
    """Each mean is rounded to 6e-8 of its value; 1e-6 is many such errors of one sign."""
    cells = pdist(np.random.default_rng(1).normal(size=(500, 8)))
    expected = scipy_linkage(cells, linkage)
    distances = agglomerate(cells[None].astype(np.float32), 500, linkage).distances
    np.testing.assert_allclose(distances, expected[:, 2], rtol=1e-6)


@every_linkage
def test_heights_of_one_view_never_fall_but_by_rounding(linkage):
    rng = np.random.default_rng(3)
    distances = agglomerate(rng.random((1, 79_800)), 400, linkage).distances
    assert (np.diff(distances) >= -1e-12).all()


def test_arrays_that_do_not_fit_are_refused():
    out = np.empty((3, 2), np.int64), np.empty(3), np.empty(3, np.int64)
    with pytest.raises(ValueError, match="all pairs"):
        _compiled.agglomerate(np.zeros((1, 5)), 0, *out)
    with pytest.raises(ValueError, match="linkage"):
        _compiled.agglomerate(np.zeros((1, 6)), 3, *out)
    with pytest.raises(ValueError, match="one row a merge"):
        _compiled.agglomerate(np.zeros((1, 6)), 0, out[0], np.empty(2), out[2])
    with pytest.raises(TypeError):
        _compiled.agglomerate(np.zeros((1, 6), np.int64), 0, *out)


def test_a_signal_ends_the_merges():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("Python hands signals to the main thread only")
    n = 4000
    cells = np.random.default_rng(0).random((1, n * (n - 1) // 2))
    children = np.full((n - 1, 2), -1)
    out = children, np.empty(n - 1), np.empty(n - 1, np.int64)
    merge = partial(_compiled.agglomerate, cells, 2, *out)
    # Both are called from C: Python has no place in between where it could run the handler.
    calls = map(call, [_thread.interrupt_main, merge])
    with pytest.raises(KeyboardInterrupt):
        list(calls)
    assert (children[0] >= 0).all()
    assert (children[-1] == -1).all()  # it did not run to its end
