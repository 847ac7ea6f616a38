"""Leading right singular directions of a sparse matrix, by a randomised method with few passes.

A few random directions are multiplied by the matrix and its transpose again and again. The
directions that are sought are combinations of all these products, not only of the last one: the
block Krylov method of Halko, Martinsson, Shkolnisky & Tygert (2011, SIAM Journal on Scientific
Computing 33, 2580-2594). The rows of a product are independent of each other, and sums over rows
are added block by block in order. So the number of threads never changes a bit of the result.

The rows are in memory (`WholeRows`), or read a part at a time in every pass (`PartedRows`).
"""

from itertools import pairwise

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from coem.kernels import counts, threads

ENTRIES = 1 << 16  # stored values of the rows that one task multiplies
ROWS = 4096  # rows of a dense matrix that one task takes
# Of a squared length: what is shorter may be the rounding of products in single precision.
SMALLEST = 1e-12


def leading_directions(A, n_directions, n_passes, oversampling, rng):
    """Return the leading right singular vectors as rows, and their singular values.

    Parameters
    ----------
    A : WholeRows, or any source of products with the same methods
    n_directions : int
        How many to return at most; there are fewer if the rank of `A` is smaller.
    n_passes : int
        How often directions are multiplied by `A` and its transpose.
    oversampling : int
        How many more directions than `n_directions` are searched.
    rng : numpy.random.Generator

    Returns
    -------
    directions : ndarray of shape (n_found, n_columns), in float64
    values : ndarray of shape (n_found,), the largest first
    """
    width = min(-(-(n_directions + oversampling) // n_passes), *A.shape)
    basis = _krylov(A, width, n_passes, rng)
    squares, axes = la.eigh(A.gram(basis))
    n_found = min(n_directions, int((squares > SMALLEST * squares[-1]).sum()))
    best = np.arange(len(squares))[::-1][:n_found]
    directions = _times(basis, axes[:, best]).T
    return directions * _signs(directions)[:, np.newaxis], np.sqrt(squares[best])


class WholeRows:
    """A CSR array in memory, and what it makes of directions."""

    def __init__(self, A):
        self.shape = A.shape
        self._rows, self._columns = _cut(A), _cut(A.T.tocsr())
        self._images = []

    def squared(self, B):
        """Return ``A.T @ (A @ B)``."""
        self._images.append(_product(self._rows, B))
        return _product(self._columns, self._images[-1])

    def gram(self, basis):
        """Return the products of the columns of ``A @ basis`` with each other.

        `basis` are the directions that were squared, except the first ones, and some more.
        """
        images = self._images[1:]
        done = sum(image.shape[1] for image in images)
        if done < basis.shape[1]:
            images = [*images, _product(self._rows, basis[:, done:])]
        image = np.hstack(images)
        return _inner(image, image)


class PartedRows:
    """CSR arrays, one below the other, of which one is in memory at a time.

    Sums over rows are added in the order of the parts. `parts` returns an iterator over them.
    """

    def __init__(self, parts, shape):
        self.parts, self.shape = parts, shape

    def squared(self, B):
        """Return ``A.T @ (A @ B)``."""
        total = np.zeros((self.shape[1], B.shape[1]))
        for part in self.parts():
            total += _product(_cut(part.T.tocsr()), _product(_cut(part), B))
        return total

    def gram(self, basis):
        """Return the products of the columns of ``A @ basis`` with each other."""
        total = np.zeros((basis.shape[1],) * 2)
        for part in self.parts():
            image = _product(_cut(part), basis)
            total += _inner(image, image)
        return total


def project(A, directions):
    """Return the rows of a CSR array times directions (d, n_columns), as float64 (n_rows, d)."""
    return _product(_cut(A), directions.T)


def _krylov(A, width, n_passes, rng):
    """Return an orthonormal basis of the products of all passes."""
    basis = np.empty((A.shape[1], 0))
    # Random numbers belong to columns, so that the order of the rows does not matter.
    new = rng.standard_normal((A.shape[1], width))
    for _ in range(n_passes):
        new = _news(A.squared(new), basis)
        if not new.shape[1]:  # the rank of the matrix is reached
            break
        basis = np.hstack([basis, new])
    return basis


def _news(Z, basis):
    """Return an orthonormal basis of what the columns of `Z` add to an orthonormal basis."""
    scale = np.square(Z).sum(axis=0).max()
    Z = Z - _times(basis, _inner(basis, Z))
    return _white(_white(Z, SMALLEST * scale), 0.0)  # the first time to few digits


def _white(Y, least):
    """Return nearly orthonormal combinations of the columns, without those that are too short."""
    if not Y.shape[1]:  # which older versions of SciPy do not take
        return Y
    squares, axes = la.eigh(_inner(Y, Y))
    kept = squares > least
    return _times(Y, axes[:, kept] / np.sqrt(squares[kept]))


def _signs(directions):
    """Return the signs of the largest entries, so that no direction depends on chance."""
    places = np.abs(directions).argmax(axis=1)
    return np.sign(directions[np.arange(len(directions)), places])


# -- products, in parts that do not depend on the number of threads ----------------------------


def _cut(A):
    """Return pairs of rows and the part of a CSR array that they are, which shares its memory."""
    places = np.arange(ENTRIES, A.nnz, ENTRIES)
    cuts = np.unique([0, *np.searchsorted(A.indptr, places), A.shape[0]]).tolist()
    parts = []
    for begin, end in pairwise(cuts):
        stored = slice(A.indptr[begin], A.indptr[end])
        indptr = A.indptr[begin : end + 1] - A.indptr[begin]
        part = sp.csr_array(
            (A.data[stored], A.indices[stored], indptr), shape=(end - begin, A.shape[1])
        )
        parts.append((slice(begin, end), part))
    return parts


def _product(parts, B):
    """Return a sparse matrix in parts times a dense one, multiplied in single precision."""
    table = counts.as_table(B.T.astype(np.float32))
    out = np.empty((parts[-1][0].stop, B.shape[1]))

    def work(item):
        rows, part = item
        out[rows] = counts.scores(part, table)

    threads.spread(work, parts)
    return out


def _inner(Y, Z):
    """Return ``Y.T @ Z``."""
    return threads.add_up(lambda rows: Y[rows].T @ Z[rows], _blocks(len(Y)))


def _times(Y, B):
    """Return ``Y @ B``."""
    return np.concatenate(threads.spread(lambda rows: Y[rows] @ B, _blocks(len(Y))))


def _blocks(n_rows):
    return [slice(begin, begin + ROWS) for begin in range(0, n_rows, ROWS)]
