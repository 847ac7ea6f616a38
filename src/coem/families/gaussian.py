"""Gaussian components with the covariance types of scikit-learn, and the unit type of k-means."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from scipy.linalg import lapack, solve_triangular

from coem.families.base import Family, check_magnitude, check_missing_rows
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng

Covariance = Literal["full", "tied", "diag", "spherical", "unit"]

# Sums with less weight than this are close to underflow, so that their quotients are useless.
_NO_MASS = 1e-200
_cholesky = partial(lapack.dpotrf, lower=True, clean=True)  # returns a code, and does not raise
_solve = partial(solve_triangular, lower=True, check_finite=False)


class GaussianTheta(NamedTuple):
    """Means (k, d) and covariances: (k, d, d) if full or tied, (k, d) if diag, else (k,)."""

    means: Array
    covariances: Array


@dataclass(frozen=True)
class GaussianStats(Stats):
    """Weighted sums of 1 (k,), x (k, d) and xx': full (k, d, d), tied (1, d, d), diag (k, d) ..."""

    mass: Array
    sums: Array
    squares: Array | None


@dataclass(frozen=True)
class Gaussian(Family[GaussianTheta, GaussianStats, Matrix]):
    """Gaussian components, computed in float64. A row of which all values are NaN is empty.

    Parameters
    ----------
    covariance : {"full", "tied", "diag", "spherical", "unit"}, default="full"
        Any matrix; one matrix for all components; a diagonal matrix; a multiple of the identity; or
        the identity (with ``posterior="hard"`` and uniform weights this is Lloyd's k-means).
    reg : float, default=1e-6
        The M step adds it to each variance, as scikit-learn does with ``reg_covar``.

    Notes
    -----
    `reg` is not a prior: `log_prior` is 0, and a step of EM may lower the objective a little. With
    ``reg=0`` the M step is exact. If the mean of a column is much larger than its standard
    deviation, centre the column first.
    """

    covariance: Covariance = "full"
    reg: float = 1e-6
    theta_type: ClassVar[Any] = GaussianTheta

    def __post_init__(self) -> None:
        """Raise unless the hyper-parameters are valid."""
        if self.covariance not in get_args(Covariance):
            names = ", ".join(get_args(Covariance))
            raise ValueError(f"covariance must be one of {names}, not {self.covariance!r}")
        if not (isinstance(self.reg, Real) and 0 <= self.reg < np.inf):
            raise ValueError(f"reg must be finite and 0 or more, not {self.reg!r}")

    @property
    def exact(self) -> bool:
        """True if the M step finds the maximum of the likelihood: there is no `reg`."""
        return self.reg == 0 or self.covariance == "unit"

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if it is real and finite, except for rows that are NaN as a whole."""
        X = check_missing_rows(X, view)
        check_magnitude(X, view)
        return X

    def empty(self, X: Matrix) -> Array:
        """Return which rows are NaN as a whole. A sparse row without non-zeros is not empty."""
        if isinstance(X, np.ndarray):
            return np.asarray(np.isnan(X).all(axis=1))
        return np.zeros(X.shape[0], dtype=bool)

    def encode(self, X: Matrix) -> Matrix:
        """Return `X` in float64 with 0 for NaN; empty rows have no responsibilities."""
        if not isinstance(X, np.ndarray):
            return X.tocsr().astype(np.float64, copy=False)
        rows = np.ascontiguousarray(X, dtype=np.float64)
        missing = np.isnan(rows)
        return np.where(missing, 0.0, rows) if missing.any() else rows

    def log_prob(self, X: Matrix, theta: GaussianTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        scales, log_det = self._scales(theta)
        out: Array = np.empty((X.shape[0], len(theta.means)))
        for rows, values in _chunks(X):
            out[rows] = self._distances(values, theta.means, scales)
        out += log_det + X.shape[1] * np.log(2 * np.pi)
        return np.multiply(out, -0.5, out=out)

    def _scales(self, theta: GaussianTheta) -> tuple[Array, Array]:
        """Return factors (k, d, d), tied (1, d, d), or variances (k, d) or (k, 1); log det."""
        if theta.covariances.ndim == 3:
            matrices = theta.covariances[: 1 if self.covariance == "tied" else None]
            factors, failures = zip(*map(_cholesky, matrices), strict=True)
            scales, positive = np.stack(factors), np.equal(failures, 0)
            pivots = np.diagonal(scales, axis1=1, axis2=2) ** 2
        else:
            scales = pivots = theta.covariances.reshape(len(theta.means), -1)
            positive = (pivots > 0).all(axis=1)
        if not positive.all():
            raise ValueError(
                f"component {positive.argmin()}: its covariance is not positive definite, its rows "
                f"lie too close together; raise reg (now {self.reg:g})"
            )
        return scales, np.log(pivots).mean(axis=1) * theta.means.shape[1]

    def _distances(self, rows: Array, means: Array, scales: Array) -> Array:
        """Return squared Mahalanobis distances, of shape (n_rows, n_components)."""
        if self.covariance == "full":
            white = (_solve(s, (rows - mean).T) for mean, s in zip(means, scales, strict=True))
            return np.stack([(part * part).sum(axis=0) for part in white], axis=1)
        # Distances do not depend on the origin, but rounding errors are smallest near it.
        centre = means.mean(axis=0)
        rows, means = rows - centre, means - centre
        if self.covariance == "tied":
            rows, means = _solve(scales[0], rows.T).T, _solve(scales[0], means.T).T
            scales = np.ones((len(means), 1))
        squares, offsets = rows * rows, means * means
        if scales.shape[1] == 1:
            squares, offsets = (part.sum(axis=1, keepdims=True) for part in (squares, offsets))
        distances: Array = squares @ (1 / scales).T + (offsets / scales).sum(axis=1)
        distances -= rows @ (2 * means / scales).T
        return np.maximum(distances, 0.0, out=distances)

    def n_parameters(self, theta: GaussianTheta) -> int:
        """Return the number of free means and (co)variances."""
        k, d = map(int, theta.means.shape)
        cells = d * (d + 1) // 2
        free = {"full": k * cells, "tied": cells, "diag": k * d, "spherical": k, "unit": 0}
        return k * d + free[self.covariance]

    def stats(self, X: Matrix, resp: Array) -> GaussianStats:
        """Return the weighted sums for means and covariances."""
        resp = np.asarray(resp, dtype=np.float64)
        parts = (self._sums(values, resp[rows]) for rows, values in _chunks(X))
        return reduce(GaussianStats.__add__, parts)

    def _sums(self, rows: Array, resp: Array) -> GaussianStats:
        squares: Array | None = None
        if self.covariance == "diag":
            squares = resp.T @ (rows * rows)
        elif self.covariance == "spherical":
            squares = resp.T @ (rows * rows).sum(axis=1)
        elif self.covariance != "unit":
            weights = resp if self.covariance == "full" else resp.sum(axis=1, keepdims=True)
            # NumPy recognises A'A: that is half the work, and exactly symmetric.
            weighted = (rows * root[:, None] for root in np.sqrt(weights).T)
            squares = np.stack([part.T @ part for part in weighted])
        return GaussianStats(resp.sum(axis=0), resp.T @ rows, squares)

    def estimate(self, stats: GaussianStats) -> GaussianTheta:
        """Return means and covariances; a component without mass gets those of all rows."""
        k, d = stats.sums.shape
        if not stats.mass.sum() > _NO_MASS:
            shape = (k,) if stats.squares is None else (k, *stats.squares.shape[1:])
            ones = np.eye(d) if len(shape) == 3 else np.ones(())
            return GaussianTheta(np.zeros((k, d)), np.broadcast_to(ones, shape))
        dead = ~(stats.mass > _NO_MASS)
        mass = _pool(stats.mass, dead)
        means = _pool(stats.sums, dead) / mass[:, None]
        if stats.squares is None:
            return GaussianTheta(means, np.ones(k))
        if self.covariance == "tied":
            matrix = self._lift((stats.squares - (means.T * stats.mass) @ means) / stats.mass.sum())
            return GaussianTheta(means, np.broadcast_to(matrix, (k, d, d)))
        second, first = (_pool(stats.squares, dead).T / mass).T, means * means
        if self.covariance == "full":
            return GaussianTheta(means, self._lift(second - means[:, :, None] * means[:, None]))
        if self.covariance == "spherical":
            second, first = second / d, first.mean(axis=1)
        # By rounding, a variance may be below 0, or be 0 if reg is 0.
        lowest = self.reg or 1e-16 * second
        return GaussianTheta(means, np.maximum(second - first + self.reg, lowest))

    def _lift(self, matrices: Array) -> Array:
        """Return matrices with reg on the diagonals and no eigenvalue below it."""
        matrices = matrices + self.reg * np.eye(matrices.shape[-1])
        if self.reg == 0 or not any(_cholesky(matrix)[1] for matrix in matrices):
            return matrices
        values, vectors = np.linalg.eigh(matrices)
        values = np.maximum(values, np.maximum(self.reg, 1e-14 * values[:, -1:]))
        lifted: Array = (vectors * values[:, None]) @ vectors.transpose(0, 2, 1)
        return lifted

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
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            rows[labels == component] = rows[labels == component] @ root.T
        return rows + theta.means[labels]


def _chunks(X: Matrix) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows with their dense values, at most 32 MB each; at least one slice."""
    size = int(np.clip(2**22 // max(X.shape[1], 1), 1, 4096))
    for begin in range(0, max(X.shape[0], 1), size):
        rows = slice(begin, begin + size)
        yield rows, X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()


def _pool(values: Array, dead: Array) -> Array:
    """Return the values with the sum over all components for the dead ones (first axis)."""
    return np.where(np.expand_dims(dead, tuple(range(1, values.ndim))), values.sum(axis=0), values)
