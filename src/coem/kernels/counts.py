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
from coem.kernels.memory import zeros
from coem.typing import Array, Matrix

LANES = 8
ENTRIES = 4096  # fewest rows of a component that are worth sums of their own
PIECES = 8  # most such sums, besides one for each component: each is as wide as a row
WORDS = 8192  # features that one task of a table-wide job takes
LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))  # what log(0) is taken to be, about -708

_NATIVE = (np.float32, np.float64, np.int32, np.int64)


Triple = tuple[Array, Array, Array]


def new_table(n_components: int, n_features: int, dtype: Any) -> Array:
    """Return a table of zeros to be filled."""
    memory = zeros(n_components * n_features + LANES, dtype)
    return memory[:-LANES].reshape(n_features, n_components).T


def scores(X: Matrix, table: Array) -> Array:
    """Return ``X @ table.T`` as float64, multiplied in the precision of `table`."""
    out = np.empty((X.shape[0], table.shape[0]))
    _compiled.scores(*_csr(X, table.shape[1]), _memory(table), out)
    return out


def accumulate(X: Matrix, resp: Array) -> Array:
    """Return ``resp.T @ X`` of shape (n_components, n_features), summed in float64.

    Where most responsibilities are zero, each component visits its own rows only. The order of
    the sums depends on the data alone, so the bits do not depend on the threads.
    """
    n, k = resp.shape
    csr = _csr(X, X.shape[1])
    resp = np.ascontiguousarray(resp)
    sums = zeros((k, X.shape[1]))
    # Lists pay while a row has few components: one costs about 2/5 of what eight cost in a tile.
    capacity = n * min(k, 5 * -(-k // LANES) // 2)
    lists = zeros(k + 1, np.int64), zeros(capacity, np.int32), zeros(capacity, resp.dtype)
    if _compiled.list_active(resp, *lists):
        _accumulate_lists(csr, lists, sums)
    else:
        _accumulate_tiles(X, csr, resp, sums)
    return sums


def _accumulate_tiles(X: Matrix, csr: Triple, resp: Array, sums: Array) -> None:
    """Add up all rows for eight components at a time; threads divide the features."""
    k, n_features = sums.shape
    tile = zeros((n_features, LANES))
    ordered = bool(X.has_sorted_indices)
    cuts = list(pairwise(_feature_cuts(X.indices, n_features)))
    for lo in range(0, k, LANES):
        hi = min(lo + LANES, k)

        def work(cut: tuple[int, int], lo: int = lo, hi: int = hi) -> None:
            first, last = cut
            _compiled.accumulate_tile(*csr, resp, lo, hi, first, last, ordered, sums, tile)

        threads.spread(work, cuts)


def _feature_cuts(indices: Array, n_features: int) -> list[int]:
    """Return where to cut the features so that each thread meets about as many non-zeros."""
    n_parts = min(threads.n_workers(), n_features)
    sample = np.sort(indices[:: max(1, len(indices) // 4096)])
    inner = (
        [int(sample[len(sample) * i // n_parts]) for i in range(1, n_parts)] if len(sample) else []
    )
    return sorted({0, *inner, n_features})


def _accumulate_lists(csr: Triple, lists: Triple, sums: Array) -> None:
    """Add up what each component's own rows give it.

    A component with many rows is cut into pieces with sums of their own, or one large component
    would keep one thread busy and the others idle.
    """
    offsets = lists[0].tolist()
    step = max(ENTRIES, -(-offsets[-1] // PIECES))
    pieces = [
        (j, lo, min(lo + step, end))
        for j, (start, end) in enumerate(pairwise(offsets))
        for lo in range(start, end, step)
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
    memory = _memory(table)
    step = WORDS * LANES
    parts = threads.spread(
        lambda lo: _compiled.table_sum(memory, lo, min(lo + step, table.size)),
        range(0, table.size, step),
    )
    return float(sum(parts))


def _memory(table: Array) -> Array:
    """Return the memory behind a table, spare cells included, packing it if need be."""
    k, n_features = table.shape
    base = table.base
    if isinstance(base, np.ndarray) and base.shape == (k * n_features + LANES,):
        same_start = table.__array_interface__["data"] == base.__array_interface__["data"]
        if same_start and table.flags.f_contiguous:
            return base
    packed = new_table(k, n_features, table.dtype)
    packed[...] = table
    return _memory(packed)


def _csr(X: Matrix, n_features: int) -> Triple:
    """Return the arrays of a CSR matrix, converting its values only if no kernel reads them."""
    if not sp.issparse(X) or X.format != "csr":
        raise TypeError("the kernels take CSR matrices")
    if X.shape[1] != n_features or n_features >= 2**31:
        raise ValueError(f"{X.shape[1]} features do not fit a table of {n_features}")
    data = X.data if X.data.dtype in _NATIVE else X.data.astype(np.float32)
    return X.indptr, X.indices, data
