"""Sparse rows times tables of components.

A *table* is an array of shape (n_components, n_features) whose memory holds the components of one
feature side by side, padded to whole vectors; `new_table` makes one. Any other array of that
shape is packed first, at the cost of a copy.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from coem import _kernels
from coem.kernels import threads
from coem.typing import Array, Matrix

LANES = 8
WORDS = 8192  # features that one task of a table-wide job takes
LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))  # what log(0) is taken to be, about -708

_NATIVE = (np.float32, np.float64, np.int32, np.int64)


def new_table(n_components: int, n_features: int, dtype: Any) -> Array:
    """Return an uninitialised table."""
    width = -(-n_components // LANES) * LANES
    return np.empty((n_features, width), dtype=dtype).T[:n_components]


def scores(X: Matrix, table: Array) -> Array:
    """Return ``X @ table.T`` as float64, multiplied in the precision of `table`."""
    out = np.empty((X.shape[0], table.shape[0]))
    _kernels.scores(*_csr(X, table.shape[1]), _memory(table), out)
    return out


def accumulate(X: Matrix, resp: Array) -> Array:
    """Return ``resp.T @ X`` of shape (n_components, n_features), summed in float64.

    In single precision, responsibilities below 1e-9 of their row are left out: after a few rounds
    most rows have one or two components left, and each component then visits its own rows only.
    Every cell is summed in the order of the rows, so the bits do not depend on the threads.
    """
    n, k = resp.shape
    csr = _csr(X, X.shape[1])
    resp = np.ascontiguousarray(resp)
    sums = np.zeros((k, X.shape[1]))
    capacity = n * k // 4  # lists pay while at most a quarter of the cells matter
    lists = np.empty(k + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity, resp.dtype)
    if _kernels.list_active(resp, *lists):
        shares = _balanced(lists[0], 4 * threads.n_workers())
        threads.spread(lambda s: _kernels.accumulate_lists(*csr, *lists, *s, sums), shares)
    else:
        shares = [(lo, min(lo + LANES, k)) for lo in range(0, k, LANES)]
        threads.spread(lambda s: _kernels.accumulate_tile(*csr, resp, *s, sums), shares)
    return sums


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
        _kernels.log_table(sums, lo, hi, alpha, shift, LOG_ZERO, memory)

    threads.spread(fill, range(0, n_features, WORDS))
    table[totals <= 0] = -shift[totals <= 0, np.newaxis]
    return table


def table_sum(table: Array) -> float:
    """Return the sum of all cells in float64, the same for any number of threads."""
    columns = table.T
    parts = threads.spread(
        lambda lo: columns[lo : lo + WORDS].sum(dtype=np.float64),
        range(0, table.shape[1], WORDS),
    )
    return float(sum(parts))


def _balanced(offsets: Array, n_shares: int) -> list[tuple[int, int]]:
    """Return ranges of components that own about equally many list entries."""
    wanted = np.linspace(0, offsets[-1], n_shares + 1)
    cuts = np.searchsorted(offsets, wanted[1:-1])
    cuts = np.unique(np.concatenate([[0], cuts, [len(offsets) - 1]]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _memory(table: Array) -> Array:
    """Return the padded memory (n_features, width) behind a table, packing it if need be."""
    k, n_features = table.shape
    base = table.base
    width = -(-k // LANES) * LANES
    if isinstance(base, np.ndarray) and base.shape == (n_features, width) and _is_view(table, base):
        return base
    packed = new_table(k, n_features, table.dtype)
    packed[...] = table
    memory = packed.base
    assert memory is not None
    memory[:, k:] = 0
    return memory


def _is_view(table: Array, base: Array) -> bool:
    same_start = table.__array_interface__["data"][0] == base.__array_interface__["data"][0]
    return bool(base.flags.c_contiguous and same_start and table.strides == base.strides[::-1])


def _csr(X: Matrix, n_features: int) -> tuple[Array, Array, Array]:
    """Return the arrays of a CSR matrix, converting its values only if no kernel reads them."""
    if not sp.issparse(X) or X.format != "csr":
        raise TypeError("the kernels take CSR matrices")
    if X.shape[1] != n_features or n_features >= 2**31:
        raise ValueError(f"{X.shape[1]} features do not fit a table of {n_features}")
    data = X.data if X.data.dtype in _NATIVE else X.data.astype(np.float32)
    return X.indptr, X.indices, data
