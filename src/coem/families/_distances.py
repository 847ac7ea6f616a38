"""Log densities of complete Gaussian rows: products of matrices, in pieces that fit the cache.

Distances do not depend on the origin, and rounding errors are smallest if it is among the means.
"""

import numpy as np

from coem.kernels import threads
from coem.typing import Array

CELLS = 2**15  # of an array of a piece: 256 kB
WIDEST = 1024  # columns of a product, unless a single component has more


def expanded(rows: Array, means: Array, variances: Array, constant: Array, out: Array) -> None:
    """Fill `out` (n, k) with log densities for independent columns.

    `variances` are (k, d), or (k, 1) if a component has one for all columns. `constant` (k,) is
    the log density at the mean.
    """
    (k, d), width = means.shape, variances.shape[1]
    size = _size(len(rows), max(k, d))
    centre = means.mean(axis=0)
    offsets = means - centre
    of_squares, of_values = -0.5 / variances.T, (offsets / variances).T
    least = 0.5 * (offsets * offsets / variances).sum(axis=1)
    # Whole arrays, because NumPy is slow if it has to repeat short rows.
    shift, at_centre, top = (_tiled(row, size) for row in (centre, constant - least, constant))
    values, squares, linear = np.empty((size, d)), np.empty((size, width)), np.empty((size, k))
    for begin in range(0, len(rows), size):
        threads.heed()
        part, found = rows[begin : begin + size], out[begin : begin + size]
        n = len(part)
        centred = np.subtract(part, shift[:n], out=values[:n])
        if width == d:
            np.multiply(centred, centred, out=squares[:n])
        else:
            np.einsum("nd,nd->n", centred, centred, out=squares[:n, 0])
        np.matmul(squares[:n], of_squares, out=found)
        found += np.matmul(centred, of_values, out=linear[:n])
        found += at_centre[:n]
        np.minimum(found, top[:n], out=found)  # no distance is below 0


def whitened(rows: Array, means: Array, whites: Array, constant: Array, out: Array) -> None:
    """Fill `out` (n, k) with log densities; ``(x - mean) @ white`` has unit covariance."""
    k, d = means.shape
    centre = means.mean(axis=0)
    step = max(1, WIDEST // d)
    size = _size(len(rows), min(step, k) * d // 4)
    work, centred = np.empty((size, min(step, k) * d)), np.ones((size, d + 1))
    for first in range(0, k, step):
        some = slice(first, first + step)
        offsets = (means[some, np.newaxis] - centre) @ whites[some]
        # A column of ones takes the means into the product.
        table = np.vstack([whites[some].transpose(1, 0, 2).reshape(d, -1), -offsets.reshape(1, -1)])
        for begin in range(0, len(rows), size):
            threads.heed()
            part = rows[begin : begin + size]
            n = len(part)
            np.subtract(part, centre, out=centred[:n, :d])
            white = np.matmul(centred[:n], table, out=work[:n, : table.shape[1]])
            white = white.reshape(n, -1, d)
            np.einsum("nkd,nkd->nk", white, white, out=out[begin : begin + size, some])
    out *= -0.5
    out += constant


def _tiled(row: Array, size: int) -> Array:
    return np.repeat(row[np.newaxis], size, axis=0)


def _size(n: int, width: int) -> int:
    """Return the number of rows of a piece."""
    return int(max(1, min(n, max(CELLS // max(width, 1), 128), 4096)))
