"""Products of tables with small matrices, which the traffic model needs besides `kernels.aspect`.

BLAS computes them for some rows of a table at a time. The number of rows depends only on the shape
of the table, and results of the pieces are added in order. So the number of threads does not change
a bit of the result.
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

    `inflow` (x', h) is the sum over x of ratio(x, x') alpha(x|h), and `beta` (width, width) is the
    highway traffic. Return the sum over the rows of `sums`, and for every pair (h, h') the sum
    over x' of inflow (x', h) times alpha (x', h'); both in float64.
    """

    def work(lo: int, hi: int) -> tuple[Array, Array]:
        own, given = alpha[lo:hi], inflow[lo:hi]
        sums[lo:hi] += own * (given @ beta)
        crossed = given.astype(np.float64, copy=False).T @ own.astype(np.float64, copy=False)
        return sums[lo:hi].sum(axis=0, dtype=np.float64), crossed

    totals, crossed = zip(*by_cells(alpha, work), strict=True)
    return np.sum(totals, axis=0), np.sum(crossed, axis=0)
