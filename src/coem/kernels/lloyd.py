"""One view of spherical k-means: rows to the nearest directions, sums of the rows of clusters.

Sums lose the rows that left a cluster and gain those that came, so that a round costs little more
than its cosines. (Bounds that rule cosines out, Elkan 2003, were tried: of twenty clusters they
left four or five cosines a row for most rounds, which one by one took twice as long as all twenty.)
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, counts, threads
from coem.typing import Array, Matrix

CHUNK = 1024  # dense rows that are turned to double at a time
# A sum is made anew when so many times its rows' weight have come and gone: what is left of large
# numbers that cancel is rounding.
WORN = 1e3


class _Lists(NamedTuple):
    """Rows and their weights, of every cluster those from its offset on."""

    rows: Array
    weights: Array
    offsets: Array  # (n_clusters + 1,)
    fresh: Array  # (n_clusters,): 1 where the sum starts from zero


class Lloyd:
    """The rows of one view, of unit length or zero, and what is known of their clusters.

    `parts` are the rows again, cut into what is one task each, with their places.
    """

    def __init__(self, X: Matrix, parts: Sequence[tuple[slice, Matrix]], n_clusters: int) -> None:
        n, d = X.shape
        self.X = X
        self.parts = parts
        self.k = n_clusters
        self.labels = np.zeros(n, dtype=np.int32)
        self.cosines = np.zeros(n)  # of every row and the direction of its cluster
        self._summed = np.full(n, -1, dtype=np.int32)  # the clusters that `_sums` are of
        self._sums = np.zeros((n_clusters, d))
        self._passed = np.zeros(n_clusters)  # the weight of the rows that came or went

    def assign(self, directions: Array) -> None:
        """Give every row to the direction with the largest cosine; of equals the first wins."""
        if sp.issparse(self.X):
            directions = counts.as_table(directions)

        def work(part: tuple[slice, Matrix]) -> None:
            rows, X = part
            if sp.issparse(X):
                counts.nearest(self.X, directions, rows, self.labels, self.cosines)
                return
            # In double: a product in single would depend on the part.
            values = X.astype(np.float64, copy=False) @ directions.T
            best = values.argmax(axis=1)
            self.labels[rows] = best
            self.cosines[rows] = values[np.arange(len(values)), best]

        threads.spread(work, self.parts)

    def sum_rows(self, labels: Array, weight: Array | None) -> tuple[Array, Array]:
        """Return weighted sums (n_clusters, n_features) of rows, and their lengths.

        A label of -1 is no cluster. The sums are the object's own, and hold until the next call.
        """
        lists = self._lists(labels, weight)
        squares = np.empty(self.k)
        # Few tasks, because each costs the time of a thousand sums, but enough for even shares.
        step = -(-self.k // (4 * threads.n_workers()))

        def work(first: int) -> None:
            self._add(lists, first, min(first + step, self.k), squares)

        threads.spread(work, range(0, self.k, step))
        self._summed[...] = labels
        return self._sums, np.sqrt(squares)

    def _lists(self, labels: Array, weight: Array | None) -> _Lists:
        """Return the rows to be added to every sum, or with a weight below zero taken from it."""
        mass = np.ones(len(labels)) if weight is None else weight
        changed = np.flatnonzero(labels != self._summed)
        clusters = np.concatenate([self._summed[changed], labels[changed]])
        rows = np.concatenate([changed, changed])
        signed = np.concatenate([-mass[changed], mass[changed]])
        fresh = self._worn(clusters, np.abs(signed), labels, weight)
        if fresh.any():
            kept = ~fresh[clusters]
            members = np.flatnonzero((labels >= 0) & fresh[labels])
            clusters = np.concatenate([clusters[kept], labels[members]])
            rows = np.concatenate([rows[kept], members])
            signed = np.concatenate([signed[kept], mass[members]])
        order = np.argsort(clusters, kind="stable")
        offsets = np.searchsorted(clusters[order], np.arange(self.k + 1))
        rows = rows[order].astype(np.int32)
        return _Lists(rows, signed[order], offsets, fresh.view(np.uint8))

    def _worn(self, clusters: Array, mass: Array, labels: Array, weight: Array | None) -> Array:
        """Return which sums are to be made anew, for what comes and goes and for what is there."""
        sizes = _totals(labels, None, self.k)
        present = sizes if weight is None else _totals(labels, weight, self.k)
        self._passed += _totals(clusters, mass, self.k)
        worn = self._passed > WORN * present
        # Also where that is less work than what has changed.
        worn |= _totals(clusters, None, self.k) > sizes
        self._passed[worn] = present[worn]
        return np.asarray(worn)

    def _add(self, lists: _Lists, first: int, last: int, squares: Array) -> None:
        """Bring the sums of some clusters up to date, and set the squares of their lengths."""
        if sp.issparse(self.X):
            X = self.X.indptr, self.X.indices, self.X.data
            _compiled.sum_lists(*X, *lists, first, last, self._sums, squares)
            return
        for j in range(first, last):
            if lists.fresh[j]:
                self._sums[j] = 0.0
            for begin in range(lists.offsets[j], lists.offsets[j + 1], CHUNK):
                part = slice(begin, min(begin + CHUNK, lists.offsets[j + 1]))
                rows = self.X[lists.rows[part]].astype(np.float64, copy=False)
                self._sums[j] += lists.weights[part] @ rows
            squares[j] = self._sums[j] @ self._sums[j]


def _totals(labels: Array, weight: Array | None, k: int) -> Array:
    """Return the weight of every cluster, or the number of its rows; -1 is no cluster."""
    if weight is not None:
        weight = np.where(labels >= 0, weight, 0.0)  # a weight there may be of any size
    return np.bincount(labels + 1, weight, minlength=k + 1)[1:]


def unit_rows(sums: Array, lengths: Array, fallback: Array, dtype: Any) -> Array:
    """Return rows scaled to unit length, as a table; a row of zeros becomes that of `fallback`."""
    rows = counts.unit_table(sums, lengths, dtype)
    for j in np.flatnonzero(lengths == 0):
        rows[j] = fallback[j]
    return rows


def pooled_rows(sums: Array) -> Array:
    """Return the direction of all rows for every cluster, the first axis if there is none."""
    whole = sums.sum(axis=0)
    length = np.sqrt(whole @ whole)
    return np.broadcast_to(whole / length if length > 0 else np.eye(1, len(whole)), sums.shape)
