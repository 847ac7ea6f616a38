"""Partitions and blocks: rows with their weights, labels and empty views."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from coem.typing import CSR, Array, Matrix, is_sparse

# The largest number of rows in a block. Blocks depend only on the data, never on the number of
# threads, so that sums over blocks are the same bit for bit.
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Block:
    """Some rows of every view, with their weights, their labels and where they are empty."""

    rows: slice
    views: tuple[Matrix, ...]
    empty: Array | None  # (n, n_views) bool, or None if no row is empty in any view
    weight: Array | None  # (n,), or None if all weights are one
    allowed: Array | None  # (n, n_components) bool, or None without labels

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)

    def row_weight(self) -> Array:
        """Return the weights of the rows; zero for rows that are empty in every view."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        return weight if self.empty is None else weight * ~self.empty.all(axis=1)

    def blank(self, v: int) -> Array | None:
        """Return which rows are empty in view `v`, or None if there are none."""
        return None if self.empty is None or not self.empty[:, v].any() else self.empty[:, v]

    def view_weight(self, v: int) -> Array:
        """Return the weights of the rows; zero for rows that are empty in view `v`."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        return weight if self.empty is None else weight * ~self.empty[:, v]

    def one_row(self, i: int) -> "Block":
        """Return a block that has only row `i`."""
        empty = None if self.empty is None else self.empty[i : i + 1]
        views = tuple(rows_of(X, i, i + 1) for X in self.views)
        return Block(slice(0, 1), views, empty, None, None)


@dataclass(frozen=True)
class Partition:
    """Encoded views with the weights and labels of their rows, cut into blocks without copying.

    `given` takes the place of the posteriors until the views have parameters. It has either
    responsibilities of shape (n_rows, n_components), the same for all views, or (n_views, n_rows,
    n_components); or the component of every row, as integers of shape (n_rows,), (1, n_rows) or
    (n_views, n_rows).
    """

    views: tuple[Matrix, ...]
    empty: Array | None = None  # (n, n_views) bool, or None if no row is empty in any view
    weight: Array | None = None  # (n,), or None if all weights are one
    allowed: Array | None = None  # (n, n_components) bool, or None without labels
    given: Array | None = None
    block_rows: int = BLOCK_ROWS

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows only; the blocks are computed again from them."""
        fields = self.views, self.empty, self.weight, self.allowed, self.given, self.block_rows
        return Partition, fields

    @cached_property
    def blocks(self) -> list[Block]:
        """The rows in blocks; each block is one task for one thread."""
        n_blocks = -(-self.n_rows // self.block_rows)
        n_blocks += n_blocks % 2 if n_blocks > 1 else 0  # an even number divides well among threads
        cuts = np.linspace(0, self.n_rows, n_blocks + 1).astype(int).tolist()
        return [self._block(lo, hi) for lo, hi in pairwise(cuts)]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.views[0].shape[0])

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.views)

    @property
    def sample(self) -> Self:
        """The rows that starts are drawn from: all of them. `StoredRows` has a sample."""
        return self

    def parts(self, given: Array | None = None) -> list[Self]:
        """Return the rows as one partition with `given` as their start."""
        return [self.starting_from(given)]

    def starting_from(self, given: Array | None) -> Self:
        """Return the same rows with `given` as their start."""
        return replace(self, given=given)

    def take(self, rows: Array) -> "Partition":
        """Return some rows, without their start."""

        def some(array: Array | None) -> Array | None:
            return None if array is None else array[rows]

        views = tuple(X[rows] for X in self.views)
        return Partition(views, some(self.empty), some(self.weight), some(self.allowed))

    def without_labels(self) -> "Partition":
        """Return the same rows, of which nothing is known but their weights."""
        return Partition(self.views, self.empty, self.weight)

    def silenced(self, silent: Array) -> Self:
        """Return the rows with some views left out, (n_views,) bool: all rows are empty there."""
        if not silent.any():
            return self
        shape = self.n_rows, self.n_views
        empty = np.zeros(shape, dtype=bool) if self.empty is None else self.empty.copy()
        empty[:, silent] = True
        return replace(self, empty=empty)

    def has_rows(self) -> Array:
        """Return which views have rows that are not empty there; if none has any, all."""
        if self.empty is None or self.empty.all():
            return np.ones(self.n_views, dtype=bool)
        return np.logical_not(self.empty.all(axis=0))

    def content(self) -> list[Any]:
        """Return the rows and what is known of them, for a fingerprint."""
        return [*self.views, self.empty, self.weight, self.allowed]

    def cut(self, bounds: Sequence[int]) -> list[Self]:
        """Cut the rows at `bounds` and return the parts as partitions, without copying."""
        parts = []
        for lo, hi in pairwise([0, *bounds, self.n_rows]):
            block = self._block(lo, hi)
            parts.append(
                replace(
                    self,
                    views=block.views,
                    empty=block.empty,
                    weight=block.weight,
                    allowed=block.allowed,
                    given=None if self.given is None else given_rows(self.given, slice(lo, hi)),
                )
            )
        return parts

    def view_weight(self, v: int) -> Array | None:
        """Return the weights of the rows, zero where view `v` is empty; None if all are one."""
        blank = None if self.empty is None or not self.empty[:, v].any() else self.empty[:, v]
        if blank is None:
            return self.weight
        return (~blank).astype(np.float64) if self.weight is None else self.weight * ~blank

    def row_weight(self) -> Array:
        """Return the weights of the rows; zero for rows that are empty in every view."""
        return np.concatenate([block.row_weight() for block in self.blocks])

    def _block(self, lo: int, hi: int) -> Block:
        rows = slice(lo, hi)

        def part(array: Array | None) -> Array | None:
            return None if array is None else array[rows]

        views = tuple(rows_of(X, lo, hi) for X in self.views)
        return Block(rows, views, part(self.empty), part(self.weight), part(self.allowed))


def given_rows(given: Array, rows: slice) -> Array:
    """Return some rows of a start, which has either components or responsibilities."""
    return given[..., rows] if given.dtype.kind in "iu" else given[..., rows, :]


def fill_resp(resp: Array, given: Array) -> None:
    """Set the responsibilities (n_slots, n, k) of all slots to the start `given`."""
    if given.dtype.kind not in "iu":
        resp[...] = given
        return
    resp[...] = 0
    for slot, labels in zip(resp, np.broadcast_to(given, resp.shape[:2]), strict=True):
        slot[np.arange(len(labels)), labels] = 1


def rows_of(X: Matrix, lo: int, hi: int) -> Matrix:
    """Return rows `lo` to `hi` as a view of the same memory."""
    if not is_sparse(X):
        return X[lo:hi]
    first, last = X.indptr[lo], X.indptr[hi]
    # A shallow copy: the constructor takes longer than many rows do, and copies 64-bit indices.
    part: CSR = copy(X)
    part.indptr, part.indices = X.indptr[lo : hi + 1] - first, X.indices[first:last]
    part.data = X.data[first:last]
    part.resize((hi - lo, X.shape[1]))
    return part


def any_empty(columns: Sequence[Array]) -> Array | None:
    """Return which rows are empty in which view, (n_rows, n_views), or None if there are none."""
    return np.stack(columns, axis=1) if any(column.any() for column in columns) else None
