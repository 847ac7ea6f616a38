"""Components that collapse onto a few rows: the least variance, and which components have it."""

from functools import partial

import numpy as np
from scipy.linalg import lapack

from coem.typing import Array

# Sums with less weight than this are close to underflow, so that their quotients are useless.
NO_MASS = 1e-200
FLOOR = 1e-12  # the least variance of a component, relative to that of all rows
COLLAPSED = 1e-10  # a component with less variance, relative to that of all rows, has collapsed
VARIED = 1e-4  # least eigenvalue of the correlations of all rows that counts as a direction

cholesky = partial(lapack.dpotrf, lower=True, clean=True)  # returns a code, and does not raise


def spread(weights: Array, sums: Array, squares: Array) -> Array:
    """Return the variances (d,) of all rows, or () if `squares` is (k,): of all columns together.

    `weights` (k, d) are those of the entries behind `sums` (k, d) and `squares`: (k, d, d),
    (1, d, d), (k, d) or (k,). The result is never 0, so that it can serve as a unit: rounding
    counts as variance, and a column of zeros gets the mean of the others.
    """
    count, total = weights.sum(axis=0), squares.sum(axis=0)
    seen = count > NO_MASS
    count = np.where(seen, count, 1.0)
    means = np.where(seen, sums.sum(axis=0) / count, 0.0)
    if total.ndim == 0:
        n = count[seen].sum()
        second, first = total / n, (count * means * means).sum() / n
    else:
        total = total if total.ndim == 1 else np.diagonal(total)
        second, first = np.where(seen, total / count, 1.0), means * means
    variances = np.maximum(second - first, 1e-4 * second)
    typical = float(np.mean(variances)) or 1.0
    return np.where(variances > 0, variances, typical)


def lifted(matrices: Array, variances: Array, reg: float) -> Array:
    """Return covariances plus reg; no eigenvalue is below reg or, in units of `variances`, FLOOR.

    Without reg, among such matrices these have the largest likelihood.
    """
    d = len(variances)
    units = np.sqrt(np.outer(variances, variances))
    raised = matrices + reg * np.eye(d)
    least = FLOOR * np.eye(d)
    low = [j for j, matrix in enumerate(raised) if cholesky(matrix / units - least)[1]]
    if not low:
        return raised
    values, vectors = np.linalg.eigh(matrices[low] / units)
    # What is 1e-13 of the largest eigenvalue is lost in rounding.
    values = np.maximum(values, np.maximum(FLOOR, 1e-13 * values[:, -1:]))
    parts = vectors * np.sqrt(values)[:, np.newaxis]
    raised[low] = parts @ parts.transpose(0, 2, 1) * units + reg * np.eye(d)
    return raised


def collapsed(means: Array, covariances: Array, reg: float, weights: Array) -> Array:
    """Return the components that do not vary in some direction in which all rows together do.

    `covariances` are (k, d, d), (k, d), or (k,). Their own variance is that above `reg`. The
    variance of all rows follows from the components and their weights.
    """
    share = weights / weights.sum()
    offsets = means - share @ means
    if covariances.ndim == 1:  # one variance for all columns: as if there were one column
        offsets = np.sqrt((offsets**2).mean(axis=1, keepdims=True))
        covariances = covariances[:, np.newaxis]
    if covariances.ndim == 2:
        own = covariances - reg
        total = share @ (own + offsets**2)
        return np.flatnonzero(((own <= COLLAPSED * total) & _varied(total, means, reg)).any(axis=1))
    own = covariances - reg * np.eye(means.shape[1])
    pool = np.einsum("k,kab->ab", share, own) + (offsets.T * share) @ offsets
    columns = np.flatnonzero(_varied(np.diagonal(pool), means, reg))
    return _flat(own[:, columns[:, np.newaxis], columns], pool[np.ix_(columns, columns)])


def _flat(matrices: Array, pool: Array) -> Array:
    """Return which of the matrices are singular in a direction in which `pool` is not."""
    if not len(pool):
        return np.empty(0, dtype=np.intp)
    units = np.sqrt(np.outer(np.diagonal(pool), np.diagonal(pool)))
    values, vectors = np.linalg.eigh(pool / units)
    basis = vectors[:, values > VARIED]
    least = COLLAPSED * np.eye(basis.shape[1])
    seen = (basis.T @ (matrix / units) @ basis for matrix in matrices)
    low = [j for j, matrix in enumerate(seen) if cholesky(matrix - least)[1]]
    return np.array(low, dtype=np.intp)


def _varied(variances: Array, means: Array, reg: float) -> Array:
    """Return which variances of all rows are more than rounding."""
    size = (means * means).max(axis=0) if len(variances) > 1 else (means * means).max()
    return np.asarray(variances > np.maximum(1e-10 * reg, 1e-12 * size))
