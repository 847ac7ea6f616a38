"""Products of tables with small matrices, which is all that the traffic model adds.

BLAS does them, some rows of a table at a time. How many depends on the table alone, and sums over
the pieces are added up in their order, so that the number of threads does not change a bit.
"""

import numpy as np

from coem.kernels.aspect import by_cells, table_like
from coem.typing import Array


def times(table: Array, matrix: Array) -> Array:
    """Return a table times a matrix (width, width)."""
    out = table_like(table)
    by_cells(table, lambda lo, hi: np.matmul(table[lo:hi], matrix, out=out[lo:hi]))
    return out


def gather(alpha: Array, inflow: Array, beta: Array, sums: Array) -> tuple[Array, Array]:
    """M step: add the expected counts of destinations and exits to `sums`.

    `inflow` (x', h) is the sum over x of ratio(x, x') alpha(x|h), and `beta` (width, width) the
    highway traffic. Returns the sums over the rows of `sums`, and those of inflow (x', h) times
    alpha (x', h') for every pair (h, h'), both in double.
    """

    def work(lo: int, hi: int) -> tuple[Array, Array]:
        own, given = alpha[lo:hi], inflow[lo:hi]
        sums[lo:hi] += own * (given @ beta)
        crossed = given.astype(np.float64, copy=False).T @ own.astype(np.float64, copy=False)
        return sums[lo:hi].sum(axis=0, dtype=np.float64), crossed

    totals, crossed = zip(*by_cells(alpha, work), strict=True)
    return np.sum(totals, axis=0), np.sum(crossed, axis=0)
