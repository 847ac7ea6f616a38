"""Gaussian components with the covariance types of scikit-learn, and the unit type of k-means."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from scipy.linalg import lapack

from coem.families import _collapse, _distances, _gaps, _moments
from coem.families._collapse import NO_MASS, cholesky
from coem.families._moments import GaussianStats as GaussianStats  # its public place is here
from coem.families.base import Family, check_magnitude, check_real, each_piece
from coem.kernels.dense import closeness
from coem.typing import Array, Matrix, Resp, Rng

Covariance = Literal["full", "tied", "diag", "spherical", "unit"]

_invert = partial(lapack.dtrtri, lower=True)


class GaussianTheta(NamedTuple):
    """Means (k, d) and covariances: (k, d, d) if full or tied, (k, d) if diag, else (k,)."""

    means: Array
    covariances: Array


@dataclass(frozen=True)
class Gaussian(Family[GaussianTheta, GaussianStats, Matrix]):
    """Gaussian components, computed in float64. NaN marks a missing entry.

    Parameters
    ----------
    covariance : {"full", "tied", "diag", "spherical", "unit"}, default="full"
        Any matrix; one matrix for all components; a diagonal matrix; a multiple of the identity; or
        the identity (with ``posterior="hard"`` and uniform weights this is Lloyd's k-means).
    reg : float, default=1e-6
        The M step adds it to each variance, as scikit-learn does with ``reg_covar``.
    centre : tuple of float, optional
        What is subtracted from each column before sums are taken; it changes nothing but rounding.
        By default the estimators take it from the rows of the fit: the mean of a column that is
        more than 1,000 times its standard deviation (such as a time stamp), and 0 otherwise.

    Notes
    -----
    `reg` is not a prior: `log_prior` is 0, and a step of EM may lower the objective a little. With
    ``reg=0`` the M step is exact.

    No variance is below 1e-12 of that of all rows, in any direction and in units of the columns.
    So components that have fewer rows than columns, or equal rows, have densities even without
    `reg`. The estimators warn of components that have collapsed like this, and name them in
    `collapsed_`.

    A row with missing entries has the density of its observed entries. This is right if entries
    are missing at random: whether an entry is missing may depend on the observed entries, but not
    on its own value. A row that is NaN as a whole is empty. A column that is missing in all rows
    has the mean 0 and the variance 1 in every component, and so decides nothing.

    If "diag", "spherical" or "unit", columns are independent given the component, and sums over
    the observed entries are all that the M step needs. If "full" or "tied", it takes the expected
    values and products of the missing entries under the current parameters [1]_. At a start there
    are none yet: it then treats the columns as independent.

    References
    ----------
    .. [1] Ghahramani & Jordan (1994), Supervised learning from incomplete data via an EM approach.
    """

    covariance: Covariance = "full"
    reg: float = 1e-6
    centre: tuple[float, ...] | None = None
    allows_nan: ClassVar[bool] = True
    theta_type: ClassVar[Any] = GaussianTheta

    def __post_init__(self) -> None:
        """Raise unless the hyper-parameters are valid."""
        if self.covariance not in get_args(Covariance):
            names = ", ".join(get_args(Covariance))
            raise ValueError(f"covariance must be one of {names}, not {self.covariance!r}")
        if not (isinstance(self.reg, Real) and 0 <= self.reg < np.inf):
            raise ValueError(f"reg must be finite and 0 or more, not {self.reg!r}")
        if self.centre is not None:
            object.__setattr__(self, "centre", _moments.as_centre(self.centre))

    @property
    def exact(self) -> bool:
        """True if the M step finds the maximum of the likelihood: there is no `reg`."""
        return self.reg == 0 or self.covariance == "unit"

    @property
    def hidden(self) -> bool:
        """True if columns depend on each other, so that one tells about another that is missing."""
        return self.covariance in ("full", "tied")

    @property
    def takes_labels(self) -> bool:
        """True for the unit covariance: its M step is the mean of the rows of each label."""
        return self.covariance == "unit"

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if it is real, and finite except for NaN, which marks missing entries."""
        X = check_real(X, view)
        check_magnitude(X, view)
        if self.centre is not None and len(self.centre) != X.shape[1]:
            raise ValueError(
                f"view {view!r}: centre has {len(self.centre)} numbers for {X.shape[1]} columns"
            )
        return X

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with a centre for the columns that lie far from 0."""
        return self.bind_pieces([X], dtype)

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with a centre for the columns that lie far from 0."""
        if self.centre is not None or self.covariance == "unit":  # there are no sums of squares
            return self
        centre = _moments.far_centre(each_piece(_spread_of, pieces))
        return replace(self, centre=centre) if centre is not None else self

    def empty(self, X: Matrix) -> Array:
        """Return which rows are NaN as a whole. A sparse row without non-zeros is not empty."""
        empty = np.zeros(X.shape[0], dtype=bool)
        if isinstance(X, np.ndarray) and X.shape[1] > 0:
            candidates = np.flatnonzero(np.isnan(X[:, 0]))  # usually none
            empty[candidates] = np.isnan(X[candidates]).all(axis=1)
        return empty

    def encode(self, X: Matrix) -> Matrix:
        """Return `X` in float64 with 0 for empty rows, which have no responsibilities."""
        if not isinstance(X, np.ndarray):
            return X.tocsr().astype(np.float64, copy=False)
        rows = np.ascontiguousarray(X, dtype=np.float64)
        empty = self.empty(rows)
        return np.where(empty[:, np.newaxis], 0.0, rows) if empty.any() else rows

    def log_prob(self, X: Matrix, theta: GaussianTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        scales, log_det = self._scales(theta)
        out: Array = np.empty((X.shape[0], len(theta.means)))
        for rows, values in _chunks(X):
            found = out[rows]  # a view
            self._fill(found, values, theta.means, scales, log_det)
            if not np.isnan(found[:, :1].sum()):  # all densities of a row with a gap are NaN
                continue
            gap = np.isnan(values).any(axis=1)
            if self.hidden:
                found[gap] = _gaps.log_prob(values[gap], theta.means, scales, log_det)
            else:
                found[gap] = _gaps.independent_log_prob(values[gap], theta.means, scales)
        return out

    def _scales(self, theta: GaussianTheta) -> tuple[Array, Array]:
        """Return what whitens (k, d, d), tied (1, d, d), or variances (k, d) or (k, 1); log det.

        A matrix whitens if ``(x - mean) @ white`` has the unit covariance.
        """
        if self.covariance == "unit":
            return np.ones((len(theta.means), 1)), np.zeros(len(theta.means))
        if theta.covariances.ndim == 3:
            matrices = theta.covariances[: 1 if self.covariance == "tied" else None]
            factors, failures = zip(*map(cholesky, matrices), strict=True)
            positive = np.equal(failures, 0)
            pivots = np.stack([np.diagonal(factor) for factor in factors]) ** 2
        else:
            pivots = theta.covariances.reshape(len(theta.means), -1)
            positive = (pivots > 0).all(axis=1)
        if not positive.all():
            raise ValueError(
                f"component {positive.argmin()}: its covariance is not positive definite, its rows "
                f"lie too close together; raise reg (now {self.reg:g})"
            )
        log_det = np.log(pivots).mean(axis=1) * theta.means.shape[1]
        if theta.covariances.ndim == 3:
            return np.stack([_invert(factor)[0].T for factor in factors]), log_det
        return pivots, log_det

    def _fill(self, out: Array, rows: Array, means: Array, scales: Array, log_det: Array) -> None:
        """Fill `out` with the log densities of rows without missing entries."""
        constant = -0.5 * (log_det + rows.shape[1] * np.log(2 * np.pi))
        if self.covariance == "unit":
            closeness(rows, means, float(constant[0]), out)
            return
        if self.covariance == "full":
            _distances.whitened(rows, means, scales, constant, out)
            return
        if self.covariance == "tied":
            centre = means.mean(axis=0)
            rows, means = (rows - centre) @ scales[0], (means - centre) @ scales[0]
            scales, constant = np.ones((len(means), 1)), np.repeat(constant, len(means))
        _distances.expanded(rows, means, scales, constant, out)

    def terms(self, X: Matrix, theta: GaussianTheta) -> tuple[Array, Array, Array] | None:
        """Return the terms of the observed columns of one row; None if columns are dependent."""
        if self.hidden:
            return None
        row = X[0] if isinstance(X, np.ndarray) else X.toarray()[0]
        seen = np.flatnonzero(~np.isnan(row))
        k, d = theta.means.shape
        variances = np.broadcast_to(theta.covariances.reshape(k, -1), (k, d))[:, seen]
        distances = (row[seen] - theta.means[:, seen]) ** 2 / variances
        return seen, -0.5 * (distances + np.log(2 * np.pi * variances)).T, np.zeros(k)

    def n_parameters(self, theta: GaussianTheta) -> int:
        """Return the number of free means and (co)variances."""
        k, d = map(int, theta.means.shape)
        cells = d * (d + 1) // 2
        free = {"full": k * cells, "tied": cells, "diag": k * d, "spherical": k, "unit": 0}
        return k * d + free[self.covariance]

    def stats(self, X: Matrix, resp: Resp) -> GaussianStats:
        """Return the weighted sums for means and covariances, over the observed entries."""
        resp = resp.astype(np.float64, copy=False)
        parts = (self._sums(values, resp[rows]) for rows, values in self._about_centre(X))
        return reduce(GaussianStats.__add__, parts)

    def stats_under(self, X: Matrix, resp: Array, theta: GaussianTheta | None) -> GaussianStats:
        """Return the expected sums under `theta` if columns are dependent, else `stats`."""
        if theta is None or not self.hidden:
            return self.stats(X, resp)
        resp, whites = np.asarray(resp, dtype=np.float64), self._scales(theta)[0]
        means = theta.means if self.centre is None else theta.means - self.centre
        parts = (
            self._expected(values, resp[rows], means, whites)
            for rows, values in self._about_centre(X)
        )
        return reduce(GaussianStats.__add__, parts)

    def _about_centre(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """Yield slices of rows with their values less the centre."""
        if self.centre is None:
            return _chunks(X)
        centre = np.asarray(self.centre)
        return ((rows, values - centre) for rows, values in _chunks(X))

    def _expected(self, rows: Array, resp: Array, means: Array, whites: Array) -> GaussianStats:
        whole = self._complete(rows, resp)
        if whole is not None:
            return whole
        gap = np.isnan(rows).any(axis=1)
        sums, squares = _gaps.moments(rows[gap], resp[gap], means, whites)
        squares = squares if self.covariance == "full" else squares.sum(axis=0, keepdims=True)
        whole = self._sums(rows[~gap], resp[~gap])
        return whole + GaussianStats(resp[gap].sum(axis=0), sums, squares)

    def _sums(self, rows: Array, resp: Resp) -> GaussianStats:
        whole = self._complete(rows, resp)
        if whole is not None:
            return whole
        missing = np.isnan(rows)
        if self.hidden:
            squares, crossed, pairs = _gaps.observed_moments(rows, missing, resp)
            sums = np.diagonal(crossed, axis1=1, axis2=2)
            squares = squares if self.covariance == "full" else squares.sum(axis=0, keepdims=True)
            return GaussianStats(_moments.totals(resp), sums, squares, pairs, crossed)
        filled = self._complete(np.where(missing, 0.0, rows), resp)
        assert filled is not None
        return replace(filled, observed=resp.T @ (~missing).astype(np.float64))

    def _complete(self, rows: Array, resp: Resp) -> GaussianStats | None:
        """Return the sums of rows without missing entries, or None if there are any."""
        sums = resp.T @ rows
        if np.isnan(sums).any() and np.isnan(rows).any():
            return None
        squares: Array | None = None
        if self.covariance == "diag":
            squares = _moments.column_squares(rows, resp)
        elif self.covariance == "spherical":
            squares = _moments.squares(rows, resp)
        elif self.covariance != "unit":
            weights = resp if self.covariance == "full" else resp.sum(axis=1, keepdims=True)
            squares = _moments.products(rows, weights)
        return GaussianStats(_moments.totals(resp), sums, squares)

    def estimate(self, stats: GaussianStats) -> GaussianTheta:
        """Return means and covariances; a component without mass gets those of all rows."""
        theta = self._estimate(stats)
        return theta if self.centre is None else theta._replace(means=theta.means + self.centre)

    def _estimate(self, stats: GaussianStats) -> GaussianTheta:
        """Return the parameters for rows less the centre."""
        k, d = stats.sums.shape
        if not stats.mass.sum() > NO_MASS:
            shape = (k,) if stats.squares is None else (k, *stats.squares.shape[1:])
            ones = np.eye(d) if len(shape) == 3 else np.ones(())
            return GaussianTheta(np.zeros((k, d)), np.broadcast_to(ones, shape))
        dead = ~(stats.mass > NO_MASS)
        if stats.observed is not None:
            return self._estimate_observed(stats, dead)
        mass = _pool(stats.mass, dead)
        means = _pool(stats.sums, dead) / mass[:, None]
        if stats.squares is None:
            return GaussianTheta(means, np.ones(k))
        if self.covariance == "tied":
            centred = stats.squares - (means.T * stats.mass) @ means
            matrix = _collapse.lifted(centred / stats.mass.sum(), stats.spread, self.reg)
            return GaussianTheta(means, np.broadcast_to(matrix, (k, d, d)))
        second, first = (_pool(stats.squares, dead).T / mass).T, means * means
        if self.covariance == "full":
            matrices = second - means[:, :, None] * means[:, None]
            return GaussianTheta(means, _collapse.lifted(matrices, stats.spread, self.reg))
        if self.covariance == "spherical":
            second, first = second / d, first.mean(axis=1)
        return GaussianTheta(means, self._raise(second - first, stats))

    def _estimate_observed(self, stats: GaussianStats, dead: Array) -> GaussianTheta:
        """Return the parameters for sums over observed entries."""
        observed, squares, crossed = stats.observed, stats.squares, stats.crossed
        assert observed is not None
        columns = observed if crossed is None else np.diagonal(observed, axis1=1, axis2=2)
        means = _gaps.column_means(columns, stats.sums, 0.0)
        if squares is None:
            return GaussianTheta(means, np.ones(len(means)))
        if crossed is not None:
            sums = [stats.mass, squares, observed, crossed]
            if self.covariance == "full":
                sums = [_pool(part, dead) for part in sums]
            matrices = _gaps.covariances(means, *sums)
            matrices = _collapse.lifted(matrices, stats.spread, self.reg)
            return GaussianTheta(means, np.broadcast_to(matrices, observed.shape))
        if self.covariance == "diag":
            second, first = _gaps.column_means(columns, squares, 1.0), means * means
        else:
            columns = _pool(columns, dead)
            total = columns.sum(axis=1)
            second = _pool(squares, dead) / total
            first = (columns * means * means).sum(axis=1) / total
        return GaussianTheta(means, self._raise(second - first, stats))

    def _raise(self, variances: Array, stats: GaussianStats) -> Array:
        """Return variances plus reg; none is below reg or FLOOR times the variance of all rows."""
        least = np.maximum(self.reg, _collapse.FLOOR * stats.spread)
        return np.maximum(variances + self.reg, least)

    def collapsed(self, theta: GaussianTheta, weights: Array) -> Array:
        """Return the components that do not vary in some direction in which all rows do."""
        if self.covariance == "unit":
            return super().collapsed(theta, weights)
        means = theta.means if self.centre is None else theta.means - self.centre
        return _collapse.collapsed(means, theta.covariances, self.reg, weights)

    def start(self, pooled: GaussianStats, n_components: int, rng: Rng) -> GaussianTheta:
        """Return means drawn from the Gaussian of all rows, each with its covariance."""
        theta = self.estimate(pooled)
        means = self.sample(theta, np.zeros(n_components, dtype=np.intp), rng)
        shape = (n_components, *theta.covariances.shape[1:])
        return GaussianTheta(means, np.broadcast_to(theta.covariances, shape))

    def start_within(
        self, stats: GaussianStats, n_components: int, n_parts: int, seed: int
    ) -> GaussianTheta:
        """Return means drawn from each component, and its covariance, which may be tied."""
        if self.covariance != "tied":
            return super().start_within(stats, n_components, n_parts, seed)
        theta = self.estimate(stats)
        labels = (np.full(n_parts, j) for j in range(n_components))
        drawn = [self.sample(theta, same, np.random.default_rng(seed)) for same in labels]
        covariances = np.repeat(theta.covariances, n_parts, axis=0)
        return GaussianTheta(np.concatenate(drawn), covariances)

    def sample(self, theta: GaussianTheta, labels: Array, rng: Rng) -> Array:
        """Return one row drawn from the component that each entry of `labels` names."""
        rows = rng.standard_normal((len(labels), theta.means.shape[1]))
        if theta.covariances.ndim < 3:
            return theta.means[labels] + (rows.T * np.sqrt(theta.covariances[labels]).T).T
        for component in np.unique(labels):
            # By eigenvalues, so that a start does not fail if the rows lie in a plane.
            values, vectors = np.linalg.eigh(theta.covariances[component])
            # The vectors of equal values are up to rounding; this root does not depend on them.
            root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
            rows[labels == component] = rows[labels == component] @ root
        return rows + theta.means[labels]


def _chunks(X: Matrix) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows with their dense values, at most 32 MB each; at least one slice."""
    size = min(max(2**22 // max(X.shape[1], 1), 1), 4096)
    for begin in range(0, max(X.shape[0], 1), size):
        rows = slice(begin, begin + size)
        yield rows, X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()


def _spread_of(X: Matrix) -> _moments.Spread:
    """Return what is known of the columns of some rows."""
    return _moments.spread_of(np.asarray(rows, dtype=np.float64) for _, rows in _chunks(X))


def _pool(values: Array, dead: Array) -> Array:
    """Return the values with the sum over all components for the dead ones (first axis)."""
    return np.where(np.expand_dims(dead, tuple(range(1, values.ndim))), values.sum(axis=0), values)
