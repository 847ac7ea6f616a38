"""Blocks: rows, what is known about them, and the posteriors that were last computed for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.typing import Array, Matrix

# Most rows of a block. Blocks depend on the data alone, never on the number of threads, so that
# sums over them come out the same, bit by bit, whoever adds them up.
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Block:
    """Some rows in every view, and what is known about them."""

    rows: slice
    views: tuple[Matrix, ...]
    empty: Array | None  # (n, n_views) bool, or None: no view is empty anywhere
    weight: Array | None  # (n,), or None: ones
    allowed: Array | None  # (n, n_components) bool, or None: no labels

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)

    def row_weight(self) -> Array:
        """Return the weights, zero for rows that are empty in every view."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        return weight if self.empty is None else weight * ~self.empty.all(axis=1)

    def blank(self, v: int) -> Array | None:
        """Return which rows are empty in view `v`, or None if no row is."""
        return None if self.empty is None or not self.empty[:, v].any() else self.empty[:, v]

    def one_row(self, i: int) -> "Block":
        """Return the block of row `i` alone."""
        empty = None if self.empty is None else self.empty[i : i + 1]
        views = tuple(rows_of(X, i, i + 1) for X in self.views)
        return Block(slice(0, 1), views, empty, None, None)


@dataclass
class Partition:
    """Encoded views with what is known about their rows, cut into blocks without copying.

    `cache` is the partition's own state: the posteriors of its rows, which can always be had
    again from the parameters.
    """

    views: tuple[Matrix, ...]
    empty: Array | None = None
    weight: Array | None = None
    allowed: Array | None = None
    block_rows: int = BLOCK_ROWS
    blocks: list[Block] = field(init=False)
    cache: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Cut the rows into blocks."""
        n_blocks = -(-self.n_rows // self.block_rows)
        n_blocks += n_blocks % 2 if n_blocks > 1 else 0  # even shares for two, four, ... threads
        cuts = np.linspace(0, self.n_rows, n_blocks + 1).astype(int).tolist()
        self.blocks = [self._block(lo, hi) for lo, hi in pairwise(cuts)]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.views[0].shape[0])

    def view_weight(self, v: int) -> Array | None:
        """Return the weights of the rows in view `v`, zero where it is empty; None for all ones."""
        blank = None if self.empty is None or not self.empty[:, v].any() else self.empty[:, v]
        if blank is None:
            return self.weight
        return (~blank).astype(np.float64) if self.weight is None else self.weight * ~blank

    def _block(self, lo: int, hi: int) -> Block:
        rows = slice(lo, hi)

        def part(array: Array | None) -> Array | None:
            return None if array is None else array[rows]

        views = tuple(rows_of(X, lo, hi) for X in self.views)
        return Block(rows, views, part(self.empty), part(self.weight), part(self.allowed))


def rows_of(X: Matrix, lo: int, hi: int) -> Matrix:
    """Return rows `lo` to `hi` as a view of the same memory."""
    if not sp.issparse(X):
        return X[lo:hi]
    first, last = X.indptr[lo], X.indptr[hi]
    part = sp.csr_matrix((hi - lo, X.shape[1]), dtype=X.dtype)
    # Set, not passed to the constructor, which would copy or recast 64-bit indices.
    part.indptr, part.indices = X.indptr[lo : hi + 1] - first, X.indices[first:last]
    part.data = X.data[first:last]
    return part


def any_empty(columns: Sequence[Array]) -> Array | None:
    """Return the (n_rows, n_views) array of empty rows, or None if there are none."""
    return np.stack(columns, axis=1) if any(column.any() for column in columns) else None
