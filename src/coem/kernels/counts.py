"""Sparse rows times tables of components.

A *table* is an array of shape (n_components, n_features) whose memory holds the components of one
feature side by side, padded to whole vectors; `new_table` makes one. Any other array of that
shape is packed first, at the cost of a copy.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, threads
from coem.typing import Array, Matrix

LANES = 8
ENTRIES = 4096  # rows that one task of a sparse accumulation takes
WORDS = 8192  # features that one task of a table-wide job takes
LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))  # what log(0) is taken to be, about -708

_NATIVE = (np.float32, np.float64, np.int32, np.int64)


Triple = tuple[Array, Array, Array]


def new_table(n_components: int, n_features: int, dtype: Any) -> Array:
    """Return a table to be filled."""
    # Zeros, not empty: the padding takes part in sums, and fresh pages are zero anyway.
    return np.zeros((n_features, -(-n_components // LANES) * LANES), dtype=dtype).T[:n_components]


def scores(X: Matrix, table: Array) -> Array:
    """Return ``X @ table.T`` as float64, multiplied in the precision of `table`."""
    out = np.empty((X.shape[0], table.shape[0]))
    _compiled.scores(*_csr(X, table.shape[1]), _memory(table), out)
    return out


def accumulate(X: Matrix, resp: Array) -> Array:
    """Return ``resp.T @ X`` of shape (n_components, n_features), summed in float64.

    Where most responsibilities are zero, each component visits its own rows only. The order of the sums depends on the data alone, so the bits do not depend on the threads.
    """
    n, k = resp.shape
    csr = _csr(X, X.shape[1])
    resp = np.ascontiguousarray(resp)
    sums = np.zeros((k, X.shape[1]))
    capacity = n * k // 4  # lists pay while at most a quarter of the cells matter
    lists = np.empty(k + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity, resp.dtype)
    if _compiled.list_active(resp, *lists):
        _accumulate_lists(csr, lists, sums)
    else:
        tiles = range(0, k, LANES)
        threads.spread(
            lambda lo: _compiled.accumulate_tile(*csr, resp, lo, min(lo + LANES, k), sums), tiles
        )
    return sums


def _accumulate_lists(csr: Triple, lists: Triple, sums: Array) -> None:
    """Add up what each component's own rows give it.

    A component with many rows is cut into pieces with sums of their own, or one large component
    would keep one thread busy and the others idle.
    """
    offsets = lists[0].tolist()
    pieces = [
        (j, lo, min(lo + ENTRIES, end))
        for j, (start, end) in enumerate(pairwise(offsets))
        for lo in range(start, end, ENTRIES)
    ]
    first = {piece for piece in pieces if piece[1] == offsets[piece[0]]}

    def work(piece: tuple[int, int, int]) -> Array:
        j, lo, hi = piece
        target = sums[j] if piece in first else np.zeros(sums.shape[1])
        _compiled.accumulate_list(*csr, *lists, lo, hi, target)
        return target

    for piece, target in zip(pieces, threads.spread(work, pieces), strict=True):
        if piece not in first:
            sums[piece[0]] += target


def log_table(sums: Array, alpha: float, dtype: Any) -> Array:
    """Return the logarithms of the rows of ``sums + alpha``, each normalised to one.

    A zero becomes `LOG_ZERO`, and a row of zeros the uniform distribution.
    """
    k, n_features = sums.shape
    totals = np.asarray(threads.spread(np.sum, sums)) + alpha * n_features
    shift = np.log(np.where(totals > 0, totals, n_features))
    table = new_table(k, n_features, dtype)
    memory = _memory(table)

    def fill(lo: int) -> None:
        hi = min(lo + WORDS, n_features)
        _compiled.log_table(sums, lo, hi, alpha, shift, LOG_ZERO, memory)

    threads.spread(fill, range(0, n_features, WORDS))
    table[totals <= 0] = -shift[totals <= 0, np.newaxis]
    return table


def table_sum(table: Array) -> float:
    """Return the sum of all cells in float64, the same for any number of threads."""
    memory, (k, n_features) = _memory(table), table.shape
    parts = threads.spread(
        lambda lo: _compiled.table_sum(memory, k, lo, min(lo + WORDS, n_features)),
        range(0, n_features, WORDS),
    )
    return float(sum(parts))


def _memory(table: Array) -> Array:
    """Return the padded memory (n_features, width) behind a table, packing it if need be."""
    k, n_features = table.shape
    base = table.base
    width = -(-k // LANES) * LANES
    if isinstance(base, np.ndarray) and base.shape == (n_features, width) and _is_view(table, base):
        return base
    packed = new_table(k, n_features, table.dtype)
    packed[...] = table
    return _memory(packed)


def _is_view(table: Array, base: Array) -> bool:
    same_start = table.__array_interface__["data"][0] == base.__array_interface__["data"][0]
    return bool(base.flags.c_contiguous and same_start and table.strides == base.strides[::-1])


def _csr(X: Matrix, n_features: int) -> Triple:
    """Return the arrays of a CSR matrix, converting its values only if no kernel reads them."""
    if not sp.issparse(X) or X.format != "csr":
        raise TypeError("the kernels take CSR matrices")
    if X.shape[1] != n_features or n_features >= 2**31:
        raise ValueError(f"{X.shape[1]} features do not fit a table of {n_features}")
    data = X.data if X.data.dtype in _NATIVE else X.data.astype(np.float32)
    return X.indptr, X.indices, data
