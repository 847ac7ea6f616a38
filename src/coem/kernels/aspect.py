"""The aspect model over the non-zeros of a matrix of counts.

A *table* holds p(x|h) or p(y|h). It has one row per x or y, and the components of a row are next to
each other, padded with zeros to a multiple of eight. The E step runs over rows, so that one task
computes all sums over y for a row. The M step of p(y|h) runs over columns, so that one task
computes all sums over x for a column. So each sum is added in one order, whatever the number of
threads. Totals are added over pieces of the rows, and the pieces depend only on the data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, threads
from coem.typing import CSR, Array, Matrix

LANES = 8
PIECES = 16  # the largest number of parts that rows or columns are cut into
NONZEROS = 4096  # the smallest number of non-zeros per part
CELLS = 1 << 16  # cells of a table per task
ALIGNED = 64  # bytes of a cache line

Cuts = list[tuple[int, int]]


@dataclass(frozen=True)
class Pairs:
    """The non-zeros of a matrix of counts, by rows and by columns; computed once for all runs.

    Counts are divided by `unit`, a power of two near their mean. This division is exact, and keeps
    float32 products far from overflow and underflow.
    """

    shape: tuple[int, int]
    indptr: Array
    columns: Array  # int32, of every non-zero
    counts: Array
    turned: Array  # the indptr of the columns
    rows: Array  # int32, of every non-zero, column by column
    places: Array  # the position in `counts` of every non-zero, column by column
    unit: float
    total: float  # of all counts
    entropy: float  # of the counts as a distribution, in nats
    row_cuts: Cuts
    column_cuts: Cuts

    @classmethod
    def of(cls, X: Matrix, weight: Array | None, dtype: Any) -> Self:
        """Return the non-zeros of `X`, with every row multiplied by its weight."""
        counts = sp.csr_matrix(X, dtype=np.float64, copy=True)
        if weight is not None:
            counts.data *= np.repeat(weight, np.diff(counts.indptr))
        counts.sum_duplicates()
        counts.eliminate_zeros()
        total, unit = _total(counts.data)
        turned = sp.csr_matrix(
            (np.arange(counts.nnz), counts.indices, counts.indptr), shape=counts.shape
        ).tocsc()
        by_row, by_column = counts.indptr.astype(np.int64), turned.indptr.astype(np.int64)
        return cls(
            counts.shape,
            by_row,
            counts.indices.astype(np.int32),
            (counts.data / unit).astype(dtype),
            by_column,
            turned.indices.astype(np.int32),
            turned.data.astype(np.int64),
            unit,
            total,
            _entropy(counts.data, total),
            _cuts(by_row),
            _cuts(by_column),
        )

    @property
    def matrix(self) -> CSR:
        """The counts as a CSR matrix, in units of `unit`."""
        matrix: CSR = sp.csr_matrix((self.counts, self.columns, self.indptr), shape=self.shape)
        return matrix

    @property
    def marginals(self) -> tuple[Array, Array]:
        """The share of each row, and of each column, in all counts."""
        n, m = self.shape
        counts = self.counts.astype(np.float64)
        owners = np.repeat(np.arange(n), np.diff(self.indptr))
        of_row = np.bincount(owners, counts, minlength=n)
        of_column = np.bincount(self.columns, counts, minlength=m)
        whole = max(float(counts.sum()), np.finfo(np.float64).tiny)
        return of_row / whole, of_column / whole


def _total(counts: Array) -> tuple[float, float]:
    """Return the sum of the counts, and the power of two nearest to their mean."""
    total = float(counts.sum())
    if not total > 0:
        return 0.0, 1.0
    return total, float(2.0 ** np.clip(np.round(np.log2(total / len(counts))), -1000, 1000))


def _entropy(counts: Array, total: float) -> float:
    if not total > 0:
        return 0.0
    shares = counts / total
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def _cuts(indptr: Array, most: int = PIECES) -> Cuts:
    """Cut rows or columns into pieces with about equal numbers of non-zeros."""
    n, nnz = len(indptr) - 1, int(indptr[-1])
    pieces = int(np.clip(nnz // NONZEROS, 1, most))
    inner = np.searchsorted(indptr, np.linspace(0, nnz, pieces + 1)[1:-1])
    ends = sorted({0, n, *inner.tolist()})
    return list(pairwise(ends))


def width_of(n_components: int) -> int:
    """Return the number of cells per row of a table for `n_components`."""
    return -(-n_components // LANES) * LANES


def new_table(n: int, n_components: int, dtype: Any) -> Array:
    """Return an uninitialised table that begins at a cache line."""
    width, size = width_of(n_components), np.dtype(dtype).itemsize
    memory = np.empty(n * width + ALIGNED // size, dtype)
    skip = -(memory.ctypes.data // size) % (ALIGNED // size)
    return memory[skip : skip + n * width].reshape(n, width)


def table_like(table: Array) -> Array:
    """Return an uninitialised table of the same shape."""
    n, width = table.shape
    return new_table(n, width, table.dtype)


def as_table(values: Array, dtype: Any) -> Array:
    """Convert probabilities of shape (n_components, n) to a table."""
    k, n = values.shape
    table = new_table(n, k, dtype)
    table[:, :k] = values.T
    table[:, k:] = 0
    return table


def padded(values: Array, width: int, dtype: Any) -> Array:
    """Return values (n_components,) padded with zeros to `width`."""
    cells = np.zeros(width, dtype)
    cells[: len(values)] = values
    return cells


def expect(
    pairs: Pairs, x: Array, y: Array, weights: Array, ratios: Array, sums: Array
) -> tuple[float, Array]:
    """E step: fill `ratios` with count / p(x, y), and `sums` with the expected counts of rows.

    `weights` (width,) multiply the products of the tables. Return the sum of count log p(x, y)
    and the expected counts of the components, both divided by `pairs.unit`.
    """

    def work(cut: tuple[int, int]) -> tuple[float, Array]:
        totals = np.zeros(len(weights))
        args = (pairs.indptr, pairs.columns, pairs.counts, x, y, weights, *cut)
        return _compiled.aspect_rows(*args, ratios, sums, totals), totals

    parts = threads.spread(work, pairs.row_cuts)
    return sum(part[0] for part in parts), np.sum([part[1] for part in parts], axis=0)


def maximise(
    pairs: Pairs, x: Array, y: Array, weights: Array, ratios: Array, affine: tuple[Array, Array]
) -> Array:
    """M step: return the table of the expected counts of columns, times scale, plus shift."""
    out = table_like(y)

    def work(cut: tuple[int, int]) -> None:
        lines = pairs.turned, pairs.rows, pairs.places, ratios
        _compiled.aspect_columns(*lines, y, x, weights, *cut, *affine, out)

    threads.spread(work, pairs.column_cuts)
    return out


def rescale(table: Array, affine: tuple[Array, Array]) -> Array:
    """Return a table times scale, plus shift."""
    out = table_like(table)
    by_cells(table, lambda lo, hi: _compiled.aspect_rescale(table, lo, hi, *affine, out))
    return out


def power(table: Array, beta: float, out: Array) -> None:
    """Set `out` to the power `beta` of a table; zeros stay zero."""
    by_cells(table, lambda lo, hi: _compiled.aspect_power(table, lo, hi, beta, out))


def evidence(pairs: Pairs, x: Array, y: Array, weights: Array) -> float:
    """Return the sum of count log p(x, y), divided by `pairs.unit`."""
    lines = pairs.indptr, pairs.columns, pairs.counts
    parts = threads.spread(
        lambda cut: _compiled.aspect_evidence(*lines, x, y, weights, *cut), pairs.row_cuts
    )
    return float(sum(parts))


def fold_in(pairs: Pairs, y: Array, weights: Array, max_iter: int, tol: float) -> Array:
    """Return p(h | row), of shape (n, width), for rows that the model has not seen."""
    shares = np.empty((pairs.shape[0], len(weights)))
    lines = pairs.indptr, pairs.columns, pairs.counts

    def work(cut: tuple[int, int]) -> None:
        _compiled.aspect_fold_in(*lines, y, weights, *cut, max_iter, tol, shares)

    # Nothing is added up, and rows take up to `max_iter` rounds: small parts, for Ctrl-C.
    threads.spread(work, _cuts(pairs.indptr, most=pairs.shape[0]))
    return shares


def log_sum(table: Array, n_components: int) -> float:
    """Return the sum of the logarithms of a table; zeros count as the smallest positive number."""
    parts = by_cells(table, lambda lo, hi: _compiled.aspect_log_sum(table, n_components, lo, hi))
    return float(sum(parts))


def by_cells(table: Array, work: Callable[[int, int], Any]) -> list[Any]:
    """Call `work` with pieces of the rows of a table; the pieces depend only on its shape."""
    n, width = table.shape
    step = max(1, CELLS // width)
    return threads.spread(lambda lo: work(lo, min(lo + step, n)), range(0, n, step))
