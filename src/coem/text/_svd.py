"""Leading right singular directions of a sparse matrix, by a randomised method with few passes.

A few random directions are multiplied by the matrix and its transpose again and again. The
directions that are sought are combinations of all these products, not only of the last one: the
block Krylov method of Halko, Martinsson, Shkolnisky & Tygert (2011, SIAM Journal on Scientific
Computing 33, 2580-2594). The rows of a product are independent of each other, and sums over rows
are added block by block in order. So the number of threads never changes a bit of the result.
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
    A : CSR array of shape (n_rows, n_columns)
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
    basis, image = _krylov(A, width, n_passes, rng)
    squares, axes = la.eigh(_inner(image, image))
    n_found = min(n_directions, int((squares > SMALLEST * squares[-1]).sum()))
    best = np.arange(len(squares))[::-1][:n_found]
    directions = _times(basis, axes[:, best]).T
    return directions * _signs(directions)[:, np.newaxis], np.sqrt(squares[best])


def project(A, directions):
    """Return the rows of a CSR array times directions (d, n_columns), as float64 (n_rows, d)."""
    return _product(_cut(A), directions.T)


def _krylov(A, width, n_passes, rng):
    """Return an orthonormal basis of the products of all passes, and what `A` makes of it."""
    rows, columns = _cut(A), _cut(A.T.tocsr())
    basis = np.empty((A.shape[1], 0))
    # Random numbers belong to columns, so that the order of the rows does not matter.
    images = [_product(rows, rng.standard_normal((A.shape[1], width)))]
    for _ in range(n_passes):
        new = _news(_product(columns, images[-1]), basis)
        if not new.shape[1]:  # the rank of the matrix is reached
            break
        basis = np.hstack([basis, new])
        images.append(_product(rows, new))
    return basis, np.hstack(images[1:])


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
