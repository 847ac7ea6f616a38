"""One view of spherical k-means: find the nearest direction of each row, and sum up clusters.

The sums are updated: rows that left a cluster are subtracted, rows that joined it are added. So a
round costs little more than its cosines. (Bounds that rule out cosines, Elkan 2003, were tried.
With twenty clusters they left four or five cosines per row in most rounds, and to compute these one
by one took twice as long as to compute all twenty together.)
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from coem.kernels import _compiled, counts, summing, threads
from coem.typing import CSR, Array, Matrix, is_sparse

CHUNK = 1024  # dense rows that are converted to float64 at a time
# A sum is computed again from its rows when the weight that has joined or left it is this many
# times the weight of its rows. Otherwise rounding errors of large numbers that cancel would remain.
WORN = 30
PARTS = 2  # parts of the words; one thread per part moves rows
# Large numbers may have cancelled in a sum if its squared length, relative to its squared weight,
# is smaller than this.
CANCELLED = 1e-3
SHORTEST, LONGEST = 1e-25, 1e30  # lengths of sums that float32 holds without loss of digits
DEAR = 7  # moving one number takes as long as filling this many cells of a table


class _Changes(NamedTuple):
    """Rows that change their cluster, and their weights; cluster -1 means no cluster."""

    rows: Array
    came_from: Array
    go_to: Array
    weights: Array


class _Lists(NamedTuple):
    """Rows and their weights, ordered by cluster; the rows of a cluster begin at its offset."""

    rows: Array
    weights: Array
    offsets: Array  # (n_clusters + 1,)
    fresh: Array  # (n_clusters,): 1 where the sum starts from zero


class Lloyd:
    """The rows of one view, of unit length or zero, with their labels and the sums of clusters.

    `parts` holds the same rows, cut into one part per task, each with its slice of the rows. `sums`
    are those of other rows, to which these are added.
    """

    def __init__(
        self,
        X: Matrix,
        parts: Sequence[tuple[slice, Matrix]],
        n_clusters: int,
        sums: Array | None = None,
    ) -> None:
        n, d = X.shape
        self.X = X
        self._csr = summing.csr_arrays(X, d) if is_sparse(X) else None
        self.parts = parts
        self.k = n_clusters
        self.labels = np.zeros(n, dtype=np.int32)
        self.cosines = np.zeros(n)  # between every row and the direction of its cluster
        self.sums = np.zeros((n_clusters, d)) if sums is None else sums
        self._summed = np.full(n, -1, dtype=np.int32)  # the labels that `sums` were made from
        self._squares = np.zeros(n_clusters)  # squared lengths of the sums
        self._passed = np.zeros(n_clusters)  # weight that has joined or left each cluster
        self._table: Array | None = None  # the sums in the form that the kernels read
        self._table_is_new = False

    def assign(self, directions: Array) -> None:
        """Give every row to the direction with the largest cosine; of equals the first wins."""
        if is_sparse(self.X):
            self._assign(self.X, counts.as_table(directions), np.ones(self.k))
            return

        def work(part: tuple[slice, Matrix]) -> None:
            rows, X = part
            # Use float64, because float32 products would depend on how rows are cut into parts.
            values = X.astype(np.float64, copy=False) @ directions.T
            best = values.argmax(axis=1)
            self.labels[rows] = best
            self.cosines[rows] = values[np.arange(len(values)), best]

        threads.spread(work, self.parts)

    @property
    def ready(self) -> bool:
        """True if `assign_to_sums` can be used, which needs no directions.

        Rows must be sparse, no sum may be zero, and float32 must hold the length of every sum.
        """
        if self._csr is None:
            return False
        lengths = self.lengths
        return bool(lengths.min() > SHORTEST and lengths.max() < LONGEST)

    def assign_to_sums(self) -> None:
        """Give every row to the sum with the largest cosine; only if `ready` is True.

        It costs less to scale the twenty cosines of a row than all words of twenty directions.
        """
        assert is_sparse(self.X)
        self._assign(self.X, self._filled(), 1.0 / self.lengths)

    def _filled(self) -> Array:
        """Return the table of the sums."""
        if self._table is None:
            self._table = counts.new_table(self.k, self.X.shape[1], self.X.dtype)
        if not self._table_is_new:
            counts.fill_table(self._table, self.sums)
            self._table_is_new = True
        return self._table

    def _assign(self, X: CSR, table: Array, scale: Array) -> None:
        def work(part: tuple[slice, Matrix]) -> None:
            counts.nearest(X, table, scale, part[0], self.labels, self.cosines)

        threads.spread(work, self.parts)

    @property
    def lengths(self) -> Array:
        """The lengths of the sums."""
        return np.sqrt(np.maximum(self._squares, 0.0))

    # -- checkpoints -------------------------------------------------------------------------

    def kept(self) -> dict[str, Array]:
        """Return the sums and what belongs to them; labels and cosines follow from these.

        The last digits of sums that were updated depend on all labels before.
        """
        return {
            "sums": self.sums,
            "summed": self._summed,
            "squares": self._squares,
            "passed": self._passed,
            "in_table": np.array(int(self._table_is_new)),
        }

    def restore(self, kept: Mapping[str, Array]) -> None:
        """Take what `kept` returned for the same rows; raise KeyError or ValueError if it did not.

        Updates of the sums then give the same bits as without the interruption.
        """
        own = self.kept()
        for name, array in own.items():
            if (kept[name].shape, kept[name].dtype) != (array.shape, array.dtype):
                raise ValueError(f"its {name} are of other rows or clusters")
        summed = kept["summed"]
        if summed.min(initial=0) < -1 or summed.max(initial=0) >= self.k:
            raise ValueError("it has rows in clusters that are not there")
        for name, array in own.items():
            array[...] = kept[name]
        self._table_is_new = False
        if kept["in_table"]:
            self._filled()

    # -- sums --------------------------------------------------------------------------------

    def sum_rows(self, labels: Array, weight: Array | None) -> Array:
        """Update `sums` (n_clusters, n_features) to new labels, and return their lengths.

        A label of -1 means no cluster.
        """
        rows = np.flatnonzero(labels != self._summed).astype(np.int32)
        mass = np.ones(len(rows)) if weight is None else weight[rows]
        changes = _Changes(rows, self._summed[rows], labels[rows], mass)
        worn = self._worn(changes, labels, weight)
        table, csr = self._table, self._csr
        if table is not None and csr is not None and self._is_little(rows) and not worn.any():
            self._move(changes, csr, counts.memory_of(table))
            self._measure(_totals(labels, weight, self.k))
        else:
            self._add_all(self._lists(changes, worn, labels, weight))
        self._summed[...] = labels
        return self.lengths

    def _is_little(self, rows: Array) -> bool:
        """Tell if it costs less to move rows than to make the table of all sums again."""
        X = self.X
        if not (self._table_is_new and is_sparse(X) and X.has_sorted_indices):
            return False
        moved = int((X.indptr[rows + 1] - X.indptr[rows]).sum())
        return DEAR * moved < self.sums.size

    def _move(self, changes: _Changes, csr: summing.Triple, memory: Array) -> None:
        """Move rows between sums, also in the memory of the table; each thread takes some words."""
        n_words = self.sums.shape[1]
        step = max(-(-n_words // PARTS), 1)
        grown = np.zeros((-(-n_words // step), self.k))

        def work(first: int) -> None:
            words, growth = (first, min(first + step, n_words)), grown[first // step]
            _compiled.move_rows(*csr, *changes, *words, self.sums, memory, growth)

        threads.spread(work, range(0, n_words, step))
        self._squares += grown.sum(axis=0)

    def _measure(self, present: Array) -> None:
        """Compute the lengths of short sums again, because their updates may be rounding errors."""
        for j in np.flatnonzero(self._squares < CANCELLED * present**2):
            self._squares[j] = self.sums[j] @ self.sums[j]

    def _add_all(self, lists: _Lists) -> None:
        # Use few tasks: starting one takes as long as a thousand sums. But share the work evenly.
        step = -(-self.k // (4 * threads.n_workers()))

        def work(first: int) -> None:
            self._add(lists, first, min(first + step, self.k))

        threads.spread(work, range(0, self.k, step))
        self._table_is_new = False

    def _lists(
        self, changes: _Changes, fresh: Array, labels: Array, weight: Array | None
    ) -> _Lists:
        """Return the rows to add to every sum; those to subtract have a negative weight."""
        clusters = np.concatenate([changes.came_from, changes.go_to])
        rows = np.concatenate([changes.rows, changes.rows])
        signed = np.concatenate([-changes.weights, changes.weights])
        if fresh.any():
            kept = ~fresh[clusters]
            members = np.flatnonzero((labels >= 0) & fresh[labels]).astype(np.int32)
            mass = np.ones(len(members)) if weight is None else weight[members]
            clusters = np.concatenate([clusters[kept], labels[members]])
            rows = np.concatenate([rows[kept], members])
            signed = np.concatenate([signed[kept], mass])
        order = np.argsort(clusters, kind="stable")
        offsets = np.searchsorted(clusters[order], np.arange(self.k + 1))
        return _Lists(rows[order], signed[order], offsets, fresh.view(np.uint8))

    def _worn(self, changes: _Changes, labels: Array, weight: Array | None) -> Array:
        """Return which sums to compute again from all their rows."""
        sizes = _totals(labels, None, self.k)
        present = sizes if weight is None else _totals(labels, weight, self.k)
        ends = changes.came_from, changes.go_to
        self._passed += sum(_totals(end, changes.weights, self.k) for end in ends)
        worn = self._passed > WORN * present
        # Also where a sum has fewer rows than changes, which is less work.
        worn |= sum(_totals(end, None, self.k) for end in ends) > sizes
        self._passed[worn] = present[worn]
        return np.asarray(worn)

    def _add(self, lists: _Lists, first: int, last: int) -> None:
        """Update the sums of some clusters, and their squared lengths."""
        if self._csr is not None:
            _compiled.sum_lists(*self._csr, *lists, first, last, self.sums, self._squares)
            return
        for j in range(first, last):
            if lists.fresh[j]:
                self.sums[j] = 0.0
            for begin in range(lists.offsets[j], lists.offsets[j + 1], CHUNK):
                part = slice(begin, min(begin + CHUNK, lists.offsets[j + 1]))
                rows = self.X[lists.rows[part]].astype(np.float64, copy=False)
                self.sums[j] += lists.weights[part] @ rows
            self._squares[j] = self.sums[j] @ self.sums[j]


def _totals(labels: Array, weight: Array | None, k: int) -> Array:
    """Return the weight of every cluster, or its number of rows; label -1 means no cluster."""
    if weight is not None:
        weight = np.where(labels >= 0, weight, 0.0)  # rows without a cluster may have any weight
    return np.bincount(labels + 1, weight, minlength=k + 1)[1:]


def unit_rows(sums: Array, lengths: Array, fallback: Array, dtype: Any) -> Array:
    """Return `sums` scaled to unit length, as a table; zeros are replaced by rows of `fallback`."""
    rows = counts.unit_table(sums, lengths, dtype)
    for j in np.flatnonzero(lengths == 0):
        rows[j] = fallback[j]
    return rows


def pooled_rows(sums: Array) -> Array:
    """Return the direction of the sum of all rows for every cluster; if it is 0, the first axis."""
    whole = sums.sum(axis=0)
    length = np.sqrt(whole @ whole)
    return np.broadcast_to(whole / length if length > 0 else np.eye(1, len(whole)), sums.shape)
