"""Weighted sums of Gaussian rows: products of matrices, in pieces that fit the cache.

Sums of squares lose as many digits as there are in the square of the mean in units of the standard
deviation. So columns that lie far from 0 are summed about a centre, which `far_centre` finds.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from coem.families import _collapse
from coem.kernels import threads
from coem.kernels.one_hot import OneHot
from coem.stats import Stats
from coem.typing import Array, Resp

CELLS = 2**15  # of a piece of rows: 256 kB
FAR = 1e3  # a column with a larger mean, in units of its standard deviation, lies far from 0


@dataclass(frozen=True)
class GaussianStats(Stats):
    """Weighted sums of 1 (k,), x (k, d) and xx': full (k, d, d), tied (1, d, d), diag (k, d) ...

    Here x is a row less the `centre` of the family. If entries are missing, the sums are those of
    observed entries, and `observed` is the weight of the rows that have an entry (k, d), or two
    entries (k, d, d) if full or tied. In the latter case `crossed` are the sums of the first entry
    over the rows that have both.
    """

    mass: Array
    sums: Array
    squares: Array | None
    observed: Array | None = None  # None: no entry is missing
    crossed: Array | None = None

    def __add__(self, other: Self) -> Self:
        """Return the statistics of both sets of rows."""
        mine, theirs = self, other
        if self.observed is None and other.observed is not None:
            mine = self._spelt_out(other.observed.shape)
        elif other.observed is None and self.observed is not None:
            theirs = other._spelt_out(self.observed.shape)
        return super(GaussianStats, mine).__add__(theirs)

    def __iadd__(self, other: Self) -> Self:
        """Return the statistics of both sets of rows, in the memory of the first where it fits."""
        if (self.observed is None) != (other.observed is None):
            return self + other
        return super().__iadd__(other)

    @property
    def spread(self) -> Array:
        """The variances (d,) of all rows, or () if there is one for all columns."""
        assert self.squares is not None
        weights = self.mass[:, np.newaxis] if self.observed is None else self.observed
        weights = np.diagonal(weights, axis1=1, axis2=2) if weights.ndim == 3 else weights
        return _collapse.spread(np.broadcast_to(weights, self.sums.shape), self.sums, self.squares)

    def _spelt_out(self, shape: tuple[int, ...]) -> Self:
        """Return the statistics of rows without missing entries in the form for missing entries."""
        mass = self.mass.reshape(-1, *(1,) * (len(shape) - 1))
        crossed = None if len(shape) == 2 else np.broadcast_to(self.sums[:, :, np.newaxis], shape)
        return replace(self, observed=np.broadcast_to(mass, shape), crossed=crossed)


def as_centre(given: Any) -> tuple[float, ...]:
    """Return a centre that a user gives; raise unless it holds finite numbers."""
    try:
        centre = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        centre = np.empty(())
    if centre.ndim != 1 or not np.isfinite(centre).all():
        raise ValueError(f"centre must hold one finite number per column, not {given!r}")
    return tuple(centre.tolist())


class Spread(NamedTuple):
    """Of each column, how many entries there are, the least and the largest, and two moments."""

    n_seen: Array
    low: Array
    high: Array
    mean: Array
    squares: Array  # sums of squares about the mean


def spread_of(pieces: Iterable[Array]) -> Spread:
    """Return what is known of the columns of rows in pieces. NaN marks a missing entry."""
    total: Spread | None = None
    for rows in pieces:
        seen = ~np.isnan(rows)
        n = seen.sum(axis=0)
        mean = np.where(seen, rows, 0.0).sum(axis=0) / np.maximum(n, 1)
        about = np.where(seen, rows - mean, 0.0)
        low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
        own = Spread(n, low, high, mean, np.einsum("nd,nd->d", about, about))
        total = own if total is None else _joined(total, own)
    assert total is not None
    return total


def _joined(one: Spread, other: Spread) -> Spread:
    """Return what is known of the rows of both: Chan, Golub and LeVeque (1983)."""
    total = np.maximum(one.n_seen + other.n_seen, 1)
    shift = other.mean - one.mean
    between = shift**2 * one.n_seen * other.n_seen / total
    return Spread(
        one.n_seen + other.n_seen,
        np.fmin(one.low, other.low),
        np.fmax(one.high, other.high),
        one.mean + shift * other.n_seen / total,
        one.squares + other.squares + between,
    )


def far_centre(spreads: Iterable[Spread]) -> tuple[float, ...] | None:
    """Return the mean of each column that lies far from 0, and 0 for others; None if all do not.

    `spreads` are those of all rows in pieces. The mean is near enough if rounding moves it; a
    column of equal entries has its entry as mean, so that it is exactly 0 about it.
    """
    count, low, high, mean, squares = reduce(_joined, spreads)
    far = (mean**2 > FAR**2 * squares / np.maximum(count, 1)) & (count > 0)
    return tuple(np.where(far, np.clip(mean, low, high), 0.0).tolist()) if far.any() else None


def totals(resp: Resp) -> Array:
    """Return the weight of every component, (k,)."""
    if isinstance(resp, OneHot):
        return resp.sum()
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
        threads.heed()
        some = slice(begin, begin + len(work))
        for own, root in zip(total, roots[some].T, strict=True):
            weighted = np.multiply(rows[some], root[:, np.newaxis], out=work[: len(root)])
            own += weighted.T @ weighted  # NumPy recognises A'A: that is half the work
    return total


def _work(rows: Array) -> Array:
    """Return memory for a piece of rows."""
    n, d = rows.shape
    return np.empty((int(max(1, min(n, CELLS // max(d, 1)))), d))
