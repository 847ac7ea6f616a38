"""Sparse rows times tables of components.

A *table* is an array of shape (n_components, n_features) whose memory holds the components of one
feature side by side, with a few spare cells at the end so that whole vectors can be read;
`new_table` makes one. Any other array of that shape is packed first, at the cost of a copy.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, threads
from coem.typing import CSR, Array

LANES = 8
ENTRIES = 4096  # fewest rows of a component that are worth sums of their own
PIECES = 10  # most such sums, besides one for each component: each is as wide as a row
CUTS = 8  # parts of the rows that are listed one by one
WORDS = 16384  # features that one task of a table-wide job takes
LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))  # what log(0) is taken to be, about -708

_NATIVE = (np.float32, np.float64, np.int32, np.int64)


Triple = tuple[Array, Array, Array]


def new_table(n_components: int, n_features: int, dtype: Any) -> Array:
    """Return a table to be filled."""
    memory = np.empty(n_components * n_features + LANES, dtype=dtype)
    memory[-LANES:] = 0
    return memory[:-LANES].reshape(n_features, n_components).T


def as_table(values: Array) -> Array:
    """Return an array (n_components, n_features) as a table, itself if it is one."""
    if is_table(values):
        return values
    k, n_features = values.shape
    table = new_table(k, n_features, values.dtype)
    table[...] = values
    return table


def again_a_table(values: Array) -> Array:
    """Return an array as a table if it is laid out as one but for the spare cells, else as it is.

    That is what a table becomes when it is pickled.
    """
    return as_table(values) if values.ndim == 2 and values.flags.f_contiguous else values


def scores(X: CSR, table: Array) -> Array:
    """Return ``X @ table.T`` as float64, multiplied in the precision of `table`."""
    out = np.empty((X.shape[0], table.shape[0]))
    _compiled.scores(*csr_arrays(X, table.shape[1]), memory_of(table), out)
    return out


def accumulate(X: CSR, resp: Array) -> Array:
    """Return ``resp.T @ X`` of shape (n_components, n_features), summed in float64.

    Where most responsibilities are zero, each component visits its own rows only. The order of
    the sums depends on the data alone, so the bits do not depend on the threads.
    """
    rows = _Rows(X, resp)
    sums = np.empty((resp.shape[1], X.shape[1]))
    for first in range(0, len(sums), rows.width):
        sums[first : first + rows.width] = rows.sums(first)
    return sums


def nearest(X: CSR, table: Array, scale: Array, rows: slice, labels: Array, values: Array) -> None:
    """Set `labels` and `values` of some rows to the largest of ``X @ table.T * scale``.

    Of equals the first wins. `labels` (int32) and `values` (float64) have an entry for every row.
    """
    csr = csr_arrays(X, table.shape[1])
    _compiled.nearest(*csr, memory_of(table), scale, rows.start, rows.stop, labels, values)


def log_table(sums: Array, alpha: float, dtype: Any) -> Array:
    """Return the logarithms of the rows of ``sums + alpha``, each normalised to one.

    A zero becomes `LOG_ZERO`, and a row of zeros the uniform distribution.
    """
    k, n_features = sums.shape
    table = new_table(k, n_features, dtype)
    _fill(table, sums, alpha, 0)
    return table


def maximise(X: CSR, resp: Array, alpha: float, dtype: Any) -> Array:
    """Return ``log_table(accumulate(X, resp), alpha, dtype)``, bit by bit, in less memory.

    Only the sums of some components exist at a time, and are still in the cache when their
    logarithms are taken.
    """
    _, k = resp.shape
    table = new_table(k, X.shape[1], dtype)  # first: it fits where the table before it was
    rows = _Rows(X, resp)
    for first in range(0, len(table), rows.width):
        _fill(table, rows.sums(first), alpha, first)
    return table


def resultants(X: CSR, resp: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the rows of ``resp.T @ X`` scaled to unit length, as a table, and their lengths.

    A row of zeros stays one. As in `maximise`, only the sums of some components exist at a time.
    """
    _, k = resp.shape
    table, lengths = new_table(k, X.shape[1], dtype), np.empty(k)
    rows = _Rows(X, resp)
    for first in range(0, k, rows.width):
        sums = rows.sums(first)
        part = lengths[first : first + len(sums)]
        part[...] = np.sqrt(threads.spread(lambda row: np.dot(row, row), sums))
        _unit(table, sums, part, first)
    return table, lengths


def fill_table(table: Array, sums: Array) -> None:
    """Set a table to sums."""
    _write(table, sums, 0.0, np.ones(len(sums)), None, 0)


def unit_table(sums: Array, lengths: Array, dtype: Any) -> Array:
    """Return a table of rows of these lengths, scaled to unit length; a row of zeros stays one."""
    table = new_table(sums.shape[0], sums.shape[1], dtype)
    _unit(table, sums, lengths, 0)
    return table


def _unit(table: Array, sums: Array, lengths: Array, first: int) -> None:
    """Set components of a table to rows of these lengths, scaled to unit length."""
    _write(table, sums, 0.0, 1.0 / np.where(lengths > 0, lengths, 1.0), None, first)


class _Rows:
    """Rows with responsibilities, to be summed for `width` components at a time."""

    def __init__(self, X: CSR, resp: Array) -> None:
        n, k = resp.shape
        if n != X.shape[0]:
            raise ValueError(f"{n} rows of responsibilities for {X.shape[0]} rows")
        self.X = X
        self.csr = csr_arrays(X, X.shape[1])
        self.resp = np.ascontiguousarray(resp)
        # Lists pay while a row has few components: one costs about 2/5 of eight in a tile.
        capacity = n * min(k, 5 * -(-k // LANES) // 2)
        offsets, rows = np.empty(k + 1, np.int64), np.empty(capacity, np.int32)
        self.lists = offsets, rows, np.empty(capacity, resp.dtype)
        self.sparse = self._list_active()
        # A tile is eight wide. Lists can be any number; a quarter keeps the scratch memory small.
        self.width = LANES * max(1, k // (4 * LANES)) if self.sparse else LANES
        self.memory = threads.scratch("sums", (X.shape[1] * self.width,))

    def _list_active(self) -> bool:
        """List the rows of every component, in their order; False if there are too many."""
        offsets, rows, weights = self.lists
        n, k = self.resp.shape
        cuts = list(pairwise(np.linspace(0, n, min(n, CUTS) + 1).astype(int).tolist()))
        counts = np.array(
            threads.spread(lambda cut: _compiled.count_active(self.resp[slice(*cut)]), cuts)
        ).reshape(-1, k)
        offsets[0] = 0
        np.cumsum(counts.sum(axis=0), out=offsets[1:])
        if offsets[-1] > len(rows):
            return False
        places = offsets[:-1] + np.cumsum(counts, axis=0) - counts  # (n_cuts, k)

        def work(part: int) -> None:
            first, last = cuts[part]
            _compiled.list_active(self.resp[first:last], first, places[part], rows, weights)

        threads.spread(work, range(len(cuts)))
        return True

    def sums(self, first: int) -> Array:
        """Return the sums (m, n_features) of the components from `first` on, until next asked."""
        m = min(self.width, self.resp.shape[1] - first)
        return self._sum_lists(first, m) if self.sparse else self._sum_tile(first, m)

    def _sum_tile(self, first: int, m: int) -> Array:
        """Sum all rows; threads divide the features."""
        tile = self.memory.reshape(-1, LANES)
        ordered = bool(self.X.has_sorted_indices)

        def work(cut: tuple[int, int]) -> None:
            lo, hi = cut
            _compiled.accumulate_tile(*self.csr, self.resp, first, first + m, lo, hi, ordered, tile)

        threads.spread(work, pairwise(_feature_cuts(self.X.indices, len(tile))))
        return tile.T[:m]

    def _sum_lists(self, first: int, m: int) -> Array:
        """Sum each component's own rows; threads divide the components.

        A component with many rows is cut into pieces with sums of their own, or one large
        component would keep one thread busy and the others idle.
        """
        sums = self.memory.reshape(self.width, -1)[:m]
        offsets = self.lists[0].tolist()
        step = max(ENTRIES, -(-offsets[-1] // PIECES))
        spans = list(pairwise(offsets[first : first + m + 1]))
        pieces = [
            (j, lo, min(lo + step, end))
            for j, (start, end) in enumerate(spans)
            for lo in range(start, max(end, start + 1), step)  # at least one, to set zeros
        ]

        def work(piece: tuple[int, int, int]) -> Array | None:
            j, lo, hi = piece
            extra = None if lo == spans[j][0] else np.empty(sums.shape[1])
            target = sums[j] if extra is None else extra
            target[...] = 0.0
            _compiled.accumulate_list(*self.csr, *self.lists[1:], lo, hi, target)
            return extra

        for (j, _, _), extra in zip(pieces, threads.spread(work, pieces), strict=True):
            if extra is not None:
                sums[j] += extra
        return sums


def _feature_cuts(indices: Array, n_features: int) -> list[int]:
    """Return where to cut the features so that each thread meets about as many non-zeros."""
    n_parts = min(threads.n_workers(), n_features)
    sample = np.sort(indices[:: max(1, len(indices) // 4096)])
    places = [len(sample) * i // n_parts for i in range(1, n_parts)] if len(sample) else []
    return sorted({0, *sample[places].tolist(), n_features})


def _fill(table: Array, sums: Array, alpha: float, first: int) -> None:
    """Set the components of a table from `first` on to normalised logarithms of `sums`."""
    n_features = sums.shape[1]
    # Waking a thread costs as much as adding up some hundred thousand numbers.
    each_row = threads.spread if sums.size > 1 << 20 else map
    totals = np.array(list(each_row(np.sum, sums))) + alpha * n_features
    nothing = totals < np.finfo(np.float64).tiny  # the inverse would be infinite
    _write(table, sums, alpha, 1.0 / np.where(nothing, 1.0, totals), LOG_ZERO, first)
    for j in np.flatnonzero(nothing):
        table[first + j] = -np.log(n_features)


def _write(
    table: Array, sums: Array, alpha: float, scale: Array, log_zero: float | None, first: int
) -> None:
    """Set components of a table to ``(sums + alpha) * scale``, or with `log_zero` to its log."""
    n_features, memory = sums.shape[1], memory_of(table)

    def work(lo: int) -> None:
        hi = min(lo + WORDS, n_features)
        _compiled.fill_table(sums, lo, hi, alpha, scale, log_zero, memory, len(table), first)

    threads.spread(work, range(0, n_features, WORDS))


def table_sum(table: Array) -> float:
    """Return the sum of all cells in float64, the same for any number of threads."""
    memory = memory_of(table)
    step = WORDS * LANES
    parts = threads.spread(
        lambda lo: _compiled.table_sum(memory, lo, min(lo + step, table.size)),
        range(0, table.size, step),
    )
    return float(sum(parts))


def memory_of(table: Array) -> Array:
    """Return the memory behind a table, spare cells included, packing it if need be."""
    return np.asarray(as_table(table).base)


def is_table(values: Array) -> bool:
    """Tell if an array is laid out as `new_table` does it, spare cells included."""
    base = values.base
    if not isinstance(base, np.ndarray) or base.shape != (values.size + LANES,):
        return False
    same_start = values.__array_interface__["data"] == base.__array_interface__["data"]
    return bool(same_start and values.flags.f_contiguous)


def csr_arrays(X: CSR, n_features: int) -> Triple:
    """Return the arrays of a CSR matrix, converting its values only if no kernel reads them."""
    if not sp.issparse(X) or X.format != "csr":
        raise TypeError("the kernels take CSR matrices")
    if X.shape[1] != n_features or n_features >= 2**31:
        raise ValueError(f"{X.shape[1]} features do not fit a table of {n_features}")
    data = X.data if X.data.dtype in _NATIVE else X.data.astype(np.float32)
    # No copies but of what is not one piece of memory.
    parts = (np.ascontiguousarray(part) for part in (X.indptr, X.indices, data))
    indptr, indices, values = parts
    return indptr, indices, values
