r"""Gaussian rows with missing entries (NaN): their density, and what is expected of the entries.

Split a row into its observed entries o and its missing entries m. With precision
:math:`\Lambda = \Sigma^{-1}`, given the observed entries, the missing ones are Gaussian with
covariance :math:`\Lambda_{mm}^{-1}` about the mean that minimises the Mahalanobis distance of the
completed row. That least distance is the distance of the observed entries alone, and
:math:`\log |\Sigma_{oo}| = \log |\Sigma| + \log |\Lambda_{mm}|`. So all rows share two products
with one square root of :math:`\Lambda`, whatever their gaps are, and a pattern of gaps costs only
a QR decomposition with as many columns as there are missing entries.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coem.families._collapse import NO_MASS
from coem.kernels import threads
from coem.typing import Array

SEVERAL = 8  # rows of a pattern, on average, for which a product of matrices pays


class Gaps(NamedTuple):
    """Rows that have the same number of missing entries."""

    rows: Array  # (n,) their places, pattern after pattern
    pattern: Array  # (n,) of each row
    columns: Array  # (n_patterns, m): the missing entries of each pattern


class Condition(NamedTuple):
    """What a component says about the missing entries of some patterns."""

    gains: Array  # (n_patterns, m, d): from whitened rows to minus the expected entries
    log_det: Array  # (n_patterns,) of the precisions of the missing entries


def log_prob(rows: Array, means: Array, whites: Array, log_det: Array) -> Array:
    """Return the log densities (n, k) of the observed entries of rows that all have gaps.

    `whites` (k or 1, d, d) are such that ``(x - mean) @ white`` has unit covariance; `log_det`
    are the log determinants of the covariances, (k,) or (1,).
    """
    missing = np.isnan(rows)
    out: Array = np.empty((len(rows), len(means)))
    for part in _parts(missing):
        gaps = _group(missing[part])
        for j, (mean, white, conditions) in enumerate(_components(means, whites, gaps)):
            centred = _completed(rows[part] - mean, white, gaps, conditions) @ white
            own = out[part, j]  # a view
            np.einsum("nd,nd->n", centred, centred, out=own)
            for gap, condition in zip(gaps, conditions, strict=True):
                own[gap.rows] += condition.log_det[gap.pattern]
    out += log_det + (~missing).sum(axis=1, keepdims=True) * np.log(2 * np.pi)
    return np.multiply(out, -0.5, out=out)


def independent_log_prob(rows: Array, means: Array, variances: Array) -> Array:
    """Return the log densities (n, k) of observed entries if columns are independent.

    `variances` are (k, d), or (k, 1) if a component has one for all columns.
    """
    missing = np.isnan(rows)
    centre = means.mean(axis=0)
    rows, means = np.where(missing, 0.0, rows - centre), means - centre
    seen = (~missing).astype(np.float64)
    squares = rows * rows
    if variances.shape[1] == 1:
        squares = squares.sum(axis=1, keepdims=True)
    out: Array = squares @ (1 / variances).T + seen @ (means * means / variances).T
    out -= rows @ (2 * means / variances).T
    np.maximum(out, 0.0, out=out)
    out += seen @ np.broadcast_to(np.log(2 * np.pi * variances), means.shape).T
    return np.multiply(out, -0.5, out=out)


def moments(rows: Array, resp: Array, means: Array, whites: Array) -> tuple[Array, Array]:
    """Return the expected weighted sums of x (k, d) and of xx' (k, d, d) of rows with gaps."""
    k, d = means.shape
    missing = np.isnan(rows)
    sums, squares = np.zeros((k, d)), np.zeros((k, d, d))
    for part in _parts(missing):
        gaps, weights = _group(missing[part]), resp[part]
        for j, (mean, white, conditions) in enumerate(_components(means, whites, gaps)):
            expected = _completed(rows[part] - mean, white, gaps, conditions) + mean
            sums[j] += weights[:, j] @ expected
            expected *= np.sqrt(weights[:, j, np.newaxis])
            squares[j] += expected.T @ expected
            for gap, condition in zip(gaps, conditions, strict=True):
                squares[j] += _spread(gap, condition, weights[gap.rows, j], d)
    return sums, squares


def observed_moments(rows: Array, missing: Array, resp: Array) -> tuple[Array, Array, Array]:
    """Return weighted sums over pairs of observed entries, each (k, d, d).

    These are the sums of x_a x_b, of x_a, and of 1 over the rows that have both a and b.
    """
    seen = (~missing).astype(np.float64)
    filled = np.where(missing, 0.0, rows)
    sums = []
    for root in np.sqrt(resp).T:
        threads.heed()
        values, there = filled * root[:, np.newaxis], seen * root[:, np.newaxis]
        sums.append((values.T @ values, values.T @ there, there.T @ there))
    squares, crossed, observed = map(np.stack, zip(*sums, strict=True))
    return squares, crossed, observed


def column_means(observed: Array, sums: Array, default: float) -> Array:
    """Return the means (k, d) of observed entries.

    A component that has none in a column gets the mean over all components; if they have none
    either, the default.
    """
    unseen = ~(observed > NO_MASS)
    total = np.where(unseen, sums.sum(axis=0), sums)
    count = np.where(unseen, observed.sum(axis=0), observed)
    unseen = ~(count > NO_MASS)
    return np.asarray(np.where(unseen, default, total / np.where(unseen, 1.0, count)))


def covariances(
    means: Array, mass: Array, squares: Array, observed: Array, crossed: Array
) -> Array:
    """Return covariances (k, d, d), or (1, d, d) if that is the shape of `squares`.

    The sums are those of `observed_moments`. Missing entries are taken to be independent of the
    others, with the mean and the variance of the observed entries of their column: the M step
    from parameters of that kind.
    """
    half = means[:, np.newaxis] * crossed
    shift = (
        half + half.transpose(0, 2, 1) - means[:, :, np.newaxis] * means[:, np.newaxis] * observed
    )
    columns = np.diagonal(observed, axis1=1, axis2=2)
    if len(squares) < len(means):
        shift, columns, mass = (part.sum(axis=0, keepdims=True) for part in (shift, columns, mass))
    centred = squares - shift
    variances = column_means(columns, np.maximum(np.diagonal(centred, axis1=1, axis2=2), 0.0), 1.0)
    unseen = np.maximum(mass[:, np.newaxis] - columns, 0.0)
    centred += np.eye(means.shape[1]) * (variances * unseen)[:, np.newaxis]
    return np.asarray(centred / mass[:, np.newaxis, np.newaxis])


def _parts(missing: Array) -> Iterator[slice]:
    """Yield slices of rows whose gains take 16 MB at most."""
    n, d = missing.shape
    most = int(missing.sum(axis=1).max(initial=1))
    size = max(1, 2**21 // (d * max(most, 1)))
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def _group(missing: Array) -> list[Gaps]:
    """Return the rows by their number of missing entries, and their patterns."""
    packed = np.packbits(missing, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    patterns, which = missing[first], which.reshape(-1)
    sizes = patterns.sum(axis=1)
    groups = []
    for size in np.unique(sizes).tolist():
        mine = np.flatnonzero(sizes == size)
        rows = np.flatnonzero(sizes[which] == size)
        rows = rows[np.argsort(which[rows], kind="stable")]
        columns = np.nonzero(patterns[mine])[1].reshape(len(mine), size)
        groups.append(Gaps(rows, np.searchsorted(mine, which[rows]), columns))
    return groups


def _components(
    means: Array, whites: Array, gaps: list[Gaps]
) -> Iterator[tuple[Array, Array, list[Condition]]]:
    """Yield mean, white and conditions of each component; a single white serves for all."""
    conditions: list[Condition] = []
    for j, mean in enumerate(means):
        threads.heed()
        if j < len(whites):
            conditions = [_condition(whites[j], gap.columns) for gap in gaps]
        yield mean, whites[min(j, len(whites) - 1)], conditions


def _condition(white: Array, columns: Array) -> Condition:
    """Return what a component says about the missing entries of some patterns."""
    q, r = np.linalg.qr(white[columns].transpose(0, 2, 1))
    pivots = np.abs(np.diagonal(r, axis1=1, axis2=2))
    return Condition(np.linalg.solve(r, q.transpose(0, 2, 1)), 2 * np.log(pivots).sum(axis=1))


def _completed(
    centred: Array, white: Array, gaps: list[Gaps], conditions: list[Condition]
) -> Array:
    """Return centred rows with the expected values in the place of NaN. Overwrites `centred`."""
    np.copyto(centred, 0.0, where=np.isnan(centred))
    whitened = centred @ white
    for (rows, pattern, columns), (gains, _) in zip(gaps, conditions, strict=True):
        found = _expected(whitened[rows], pattern, gains)
        centred[rows[:, np.newaxis], columns[pattern]] = -found
    return centred


def _expected(whitened: Array, pattern: Array, gains: Array) -> Array:
    """Return minus the expected entries (n, m) of rows that come pattern after pattern."""
    if len(pattern) < SEVERAL * len(gains):
        return np.asarray((gains[pattern] @ whitened[:, :, np.newaxis])[:, :, 0])
    cuts = np.searchsorted(pattern, np.arange(1, len(gains)))
    pairs = zip(np.split(whitened, cuts), gains, strict=True)
    return np.concatenate([part @ gain.T for part, gain in pairs])


def _spread(gap: Gaps, condition: Condition, weights: Array, d: int) -> Array:
    """Return the weighted sum (d, d) of the covariances of missing entries."""
    mass = np.bincount(gap.pattern, weights, minlength=len(gap.columns))
    spread = condition.gains @ condition.gains.transpose(0, 2, 1) * mass[:, np.newaxis, np.newaxis]
    places = gap.columns[:, :, np.newaxis] * d + gap.columns[:, np.newaxis]
    total = np.bincount(places.ravel(), spread.ravel(), minlength=d * d).reshape(d, d)
    return np.asarray((total + total.T) / 2)
