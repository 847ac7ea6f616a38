"""Distances between all pairs of rows of a view, a few rows at a time."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from coem.families.base import check_magnitude, check_values
from coem.typing import CSR, Array, Matrix, is_sparse

TOLERANCE = 1e-6  # how far a given matrix may be from symmetric, relative to its largest distance
NOTHING = 2.0**-46  # a smaller relative difference between products is a rounding error
LARGEST = 1e150  # n times this does not overflow
NEGATIVE = "is negative or its mirror image is; distances must be 0 or more"

Blocks = Iterator[tuple[int, Array]]
"""The number of the first row of a block, and the distances of the block to all rows from it on."""


def condensed(X: Matrix, metric: str, view: str, out: Array) -> None:
    """Write the distances of all pairs of rows to `out`, in the order of scipy's pdist.

    Parameters
    ----------
    X : dense or CSR matrix of shape (n_rows, n_features)
    metric : {"cosine", "euclidean", "precomputed"}
    view : str
        The name of the view, for error messages.
    out : array of shape (n_rows * (n_rows - 1) / 2,)
        Its dtype is float32 or float64. Distances are always computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.distances import condensed
    >>> out = np.empty(3)
    >>> condensed(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), "cosine", "words", out)
    >>> out
    array([1., 1., 1.])
    """
    largest = min(LARGEST, float(np.finfo(out.dtype).max))
    n, at = X.shape[0], 0
    for start, block in METRICS[metric](X, view):
        if not block.max() <= largest:
            row = start + int(np.argmax(block.max(axis=1)))
            raise ValueError(
                f"view {view!r}, row {row}: a distance of {block.max():.3g} is too large for "
                f"{out.dtype}; scale the view down"
            )
        for i, distances in enumerate(block):
            n_after = n - start - i - 1
            out[at : at + n_after] = distances[i + 1 :]
            at += n_after


def _cuts(n: int) -> Iterator[slice]:
    """Yield slices of rows; a block takes about 2 % of the memory of the distances."""
    step = max(1, (1 << 17) // n, n // 128)
    return (slice(start, start + step) for start in range(0, n, step))


def _cosine(X: Matrix, view: str) -> Blocks:
    """Yield 1 - cosine. A row of zeros has a distance of 1 from every other row."""
    unit = _unit_rows(check_values(X, view, nonnegative=False))
    for rows in _cuts(X.shape[0]):
        block = _products(unit, rows)
        np.subtract(1.0, block, out=block)
        block[block < NOTHING] = 0.0
        yield rows.start, block


def _euclidean(X: Matrix, view: str) -> Blocks:
    check_magnitude(check_values(X, view, nonnegative=False), view)
    if not is_sparse(X):
        X = X.astype(np.float64, copy=False)
        for rows in _cuts(X.shape[0]):
            yield rows.start, cdist(X[rows], X[rows.start :])  # the same bits as pdist
        return
    X = X.astype(np.float64)
    X.sum_duplicates()
    squares = _row_sums(X.data**2, X)
    for rows in _cuts(X.shape[0]):
        block = _products(X, rows)
        block *= -2.0
        lengths: Array = squares[rows, None] + squares[None, rows.start :]
        block += lengths
        lengths *= NOTHING
        block[block < lengths] = 0.0
        yield rows.start, np.sqrt(block, out=block)


def _precomputed(X: Matrix, view: str) -> Blocks:
    """Yield what is given, if it can be distances."""
    if is_sparse(X):
        raise TypeError(
            f"view {view!r}: precomputed distances must be dense, not sparse; call X.toarray()"
        )
    check_values(X, view, nonnegative=False)
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"view {view!r}: precomputed distances must be a square matrix, one row and one "
            f"column per row of data; got shape {X.shape}"
        )
    scale = float(X.max())
    for rows in _cuts(X.shape[0]):
        block = X[rows, rows.start :].astype(np.float64)
        _check_distances(block, X[rows.start :, rows].T, scale, (view, rows.start))
        yield rows.start, block


def _check_distances(block: Array, mirror: Array, scale: float, where: tuple[str, int]) -> None:
    """Raise unless distances are at least 0, symmetric, and 0 from a row to itself."""
    view, start = where
    itself = np.abs(block[np.arange(len(block)), np.arange(len(block))])
    faults = (
        ((block < 0) | (mirror < 0), NEGATIVE),
        (
            np.abs(block - mirror) > TOLERANCE * scale,
            "differs from its mirror image; the matrix must be symmetric: pass (D + D.T) / 2",
        ),
        (
            np.diag(itself > TOLERANCE * scale),
            "is the distance of the row from itself and must be 0; if you have similarities S up "
            "to 1, pass 1 - S",
        ),
    )
    for bad, fault in faults:
        if bad.any():
            i, j = np.argwhere(bad)[0]
            what = "Negative values in data: " if fault is NEGATIVE else ""
            raise ValueError(
                f"{what}view {view!r}, row {start + i}: the distance {block[i, j]:.6g} in column "
                f"{start + j} {fault}"
            )


def _products(X: Matrix, rows: slice) -> Array:
    """Return the products of some rows with the rows from the first of them on, dense."""
    if not is_sparse(X):
        return np.asarray(X[rows] @ X[rows.start :].T)
    # Unlike X[rows.start :], `tail` copies nothing. The transposed product has short rows.
    first = X.indptr[rows.start]
    parts = X.data[first:], X.indices[first:], X.indptr[rows.start :] - first
    as_csr: Any = type(X)  # scipy's matrix or array; the protocol has no constructor
    tail = as_csr(parts, shape=(X.shape[0] - rows.start, X.shape[1]))
    return np.asarray((tail @ X[rows].T).toarray(order="F").T)


def _unit_rows(X: Matrix) -> Matrix:
    """Return rows of length one in float64; zeros stay. Squares neither overflow nor underflow."""
    X = X.astype(np.float64, copy=True)
    if not is_sparse(X):
        lengths = np.maximum(X.max(axis=1), -X.min(axis=1))
        X /= np.where(lengths > 0, lengths, 1.0)[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
        X /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return X
    X.sum_duplicates()
    rows = _row_of(X)
    lengths = np.zeros(X.shape[0])
    np.maximum.at(lengths, rows, np.abs(X.data))
    X.data /= np.where(lengths > 0, lengths, 1.0)[rows]
    lengths = np.sqrt(_row_sums(X.data**2, X))
    X.data /= np.where(lengths > 0, lengths, 1.0)[rows]
    return X


def _row_of(X: CSR) -> Array:
    """Return the row of every stored value of a CSR matrix."""
    return np.repeat(np.arange(X.shape[0], dtype=np.int32), np.diff(X.indptr))


def _row_sums(values: Array, X: CSR) -> Array:
    """Return the sums over rows of values that belong to the stored values of a CSR matrix."""
    # Without any values bincount would return integers.
    return np.bincount(_row_of(X), values, minlength=X.shape[0]).astype(np.float64, copy=False)


METRICS: dict[str, Callable[[Matrix, str], Blocks]] = {
    "cosine": _cosine,
    "euclidean": _euclidean,
    "precomputed": _precomputed,
}
