"""Weighted sums of complete Gaussian rows: products of matrices, in pieces that fit the cache.

Sums of squares lose as many digits as there are in the square of the mean in units of the standard
deviation. So columns that lie far from 0 are summed about a centre, which `far_centre` finds.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from coem.typing import Array

CELLS = 2**15  # of a piece of rows: 256 kB
FAR = 1e3  # a column with a larger mean, in units of its standard deviation, lies far from 0


def as_centre(given: Any) -> tuple[float, ...]:
    """Return a centre that a user gives; raise unless it holds finite numbers."""
    try:
        centre = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        centre = np.empty(())
    if centre.ndim != 1 or not np.isfinite(centre).all():
        raise ValueError(f"centre must hold one finite number per column, not {given!r}")
    return tuple(centre.tolist())


def far_centre(pieces: Iterable[Array], d: int) -> tuple[float, ...] | None:
    """Return the mean of each column that lies far from 0, and 0 for others; None if all do not.

    `pieces` are all rows in pieces. NaN marks a missing entry. The mean is near enough if rounding
    moves it; a column of equal entries has its entry as mean, so that it is exactly 0 about it.
    """
    count, low, high = np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf)
    mean, squares = np.zeros(d), np.zeros(d)
    for rows in pieces:
        seen = ~np.isnan(rows)
        n = seen.sum(axis=0)
        own = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(n, 1)
        about = np.where(seen, rows - own, 0.0)
        low, high = np.fmin(low, np.fmin.reduce(rows)), np.fmax(high, np.fmax.reduce(rows))
        # Chan, Golub and LeVeque (1983): join means and sums of squares about them.
        total = np.maximum(count + n, 1)
        shift = own - mean
        squares += np.einsum("nd,nd->d", about, about) + shift**2 * count * n / total
        mean, count = mean + shift * n / total, count + n
    far = (mean**2 > FAR**2 * squares / np.maximum(count, 1)) & (count > 0)
    return tuple(np.where(far, np.clip(mean, low, high), 0.0).tolist()) if far.any() else None


def totals(resp: Array) -> Array:
    """Return the weight of every component, (k,)."""
    return np.asarray(np.ones(len(resp)) @ resp)  # much faster than a sum over the first axis


def column_squares(rows: Array, resp: Array) -> Array:
    """Return the sums of the squares of every column, (k, d)."""
    total, work = np.zeros((resp.shape[1], rows.shape[1])), _work(rows)
    for begin in range(0, len(rows), len(work)):
        part = rows[begin : begin + len(work)]
        squares = np.multiply(part, part, out=work[: len(part)])
        total += resp[begin : begin + len(work)].T @ squares
    return total


def squares(rows: Array, resp: Array) -> Array:
    """Return the sums of the squared lengths of the rows, (k,)."""
    return np.asarray(np.einsum("nd,nd->n", rows, rows) @ resp)


def products(rows: Array, resp: Array) -> Array:
    """Return the sums of the products of any two columns, (k, d, d), exactly symmetric."""
    roots, d, work = np.sqrt(resp), rows.shape[1], _work(rows)
    total = np.zeros((resp.shape[1], d, d))
    for begin in range(0, len(rows), len(work)):
        some = slice(begin, begin + len(work))
        for own, root in zip(total, roots[some].T, strict=True):
            weighted = np.multiply(rows[some], root[:, np.newaxis], out=work[: len(root)])
            own += weighted.T @ weighted  # NumPy recognises A'A: that is half the work
    return total


def _work(rows: Array) -> Array:
    """Return memory for a piece of rows."""
    n, d = rows.shape
    return np.empty((int(max(1, min(n, CELLS // max(d, 1)))), d))
