"""Weighted sums of complete Gaussian rows: products of matrices, in pieces that fit the cache."""

import numpy as np

from coem.typing import Array

CELLS = 2**15  # of a piece of rows: 256 kB


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
