"""One view of spherical k-means: rows to the nearest directions, sums of the rows of clusters.

Sums lose the rows that left a cluster and gain those that came, so that a round costs little more
than its cosines. (Bounds that rule cosines out, Elkan 2003, were tried: of twenty clusters they
left four or five cosines a row for most rounds, which one by one took twice as long as all twenty.)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, counts, threads
from coem.typing import Array, Matrix

CHUNK = 1024  # dense rows that are turned to double at a time
# A sum is made anew when so many times its rows' weight have come and gone: what is left of large
# numbers that cancel is rounding.
WORN = 1e3


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
        changed = np.flatnonzero(labels != self._summed)
        clusters = np.concatenate([self._summed[changed], labels[changed]])
        order = np.argsort(clusters, kind="stable")
        rows = np.tile(changed, 2)[order]
        mine = np.ones(len(changed)) if weight is None else weight[changed]
        mass = np.concatenate([-mine, mine])[order]
        offsets = np.searchsorted(clusters[order], np.arange(self.k + 1)).tolist()
        sizes = _totals(labels, None, self.k)
        worn = self._worn(
            _totals(clusters, np.tile(mine, 2), self.k),
            sizes if weight is None else _totals(labels, weight, self.k),
        )
        worn |= np.diff(offsets) > sizes  # also where that is less work than what has changed

        def work(j: int) -> float:
            if worn[j]:
                self._sums[j] = 0.0
                members = np.flatnonzero(labels == j)
                self._add(j, members, np.ones(len(members)) if weight is None else weight[members])
            else:
                part = slice(offsets[j], offsets[j + 1])
                self._add(j, rows[part], mass[part])
            return float(np.dot(self._sums[j], self._sums[j]))  # while they are in the cache

        lengths = np.sqrt(threads.spread(work, range(self.k)))
        self._summed[changed] = labels[changed]
        return self._sums, lengths

    def _worn(self, passing: Array, present: Array) -> Array:
        """Return which sums are to be made anew, for the weights that come or go and are there."""
        self._passed += passing
        worn = self._passed > WORN * present
        self._passed[worn] = present[worn]
        return np.asarray(worn)

    def _add(self, j: int, rows: Array, mass: Array) -> None:
        """Add weighted rows to the sum of a cluster."""
        if sp.issparse(self.X):
            X = self.X.indptr, self.X.indices, self.X.data
            rows = rows.astype(np.int32)
            _compiled.accumulate_list(*X, rows, mass, 0, len(rows), self._sums[j])
            return
        for begin in range(0, len(rows), CHUNK):
            part = slice(begin, begin + CHUNK)
            self._sums[j] += mass[part] @ self.X[rows[part]].astype(np.float64, copy=False)


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
