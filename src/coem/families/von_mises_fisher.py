"""Von Mises-Fisher components: directions, such as sentence embeddings or TF-IDF rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import tau
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import Polynomial

from coem.families.base import Family, check_magnitude, check_missing_rows
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, is_sparse

DEFAULT_KAPPA = 20.0  # the best value beside a view of words, see docs/papers/nigam-2006.md
MAX_KAPPA = 1e6  # the largest fitted value; equal rows would make it infinite
_CHUNK = 1024  # rows; float32 sums over so few of them are precise enough


class VonMisesFisherTheta(NamedTuple):
    """Unit rows `directions` (k, d) and concentrations `kappas` (k,)."""

    directions: Array
    kappas: Array


@dataclass(frozen=True)
class VonMisesFisherStats(Stats):
    """Weighted sums of 1, `mass` (k,), and of the unit rows, `resultant` (k, d)."""

    mass: Array
    resultant: Array


@dataclass(frozen=True)
class VonMisesFisher(Family[VonMisesFisherTheta, VonMisesFisherStats, Matrix]):
    r"""Directions on the sphere, with density :math:`C_d(\kappa) \exp(\kappa \mu^\top x)`.

    Rows are scaled to unit length. A row is empty if all its values are 0, or all are NaN.

    Parameters
    ----------
    kappa : float, "fit" or None, default=None
        The concentration: a fixed number for all components, "fit" to fit one per component, or
        None for `DEFAULT_KAPPA`.
    alpha : float, default=1.0
        With ``kappa="fit"``, the number of pseudo-rows without direction per component: the
        conjugate prior :math:`C_d(\kappa)^\alpha`. It has no effect on a fixed concentration.
    dtype : dtype, default=None
        The precision of the rows and of `log_prob`, float32 if None; `bind` sets it.

    References
    ----------
    .. [1] Banerjee et al. (2005), Journal of Machine Learning Research 6, 1345-1382.
    .. [2] Abramowitz and Stegun (1964), Handbook of Mathematical Functions, Sec. 9.3 and 9.7.
    """

    kappa: float | Literal["fit"] | None = None
    alpha: float = 1.0
    dtype: Any = None
    wide: ClassVar[bool] = True
    single_precision: ClassVar[bool] = True
    theta_type: ClassVar[Any] = VonMisesFisherTheta

    def __post_init__(self) -> None:
        """Raise unless the hyper-parameters are valid."""
        number = isinstance(self.kappa, Real) and 0 < self.kappa < np.inf
        if not (number or self.kappa is None or self.kappa == "fit"):
            raise ValueError(f"kappa must be a number above 0, 'fit' or None, not {self.kappa!r}")
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < np.inf):
            raise ValueError(f"alpha must be finite and 0 or more, not {self.alpha!r}")

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if it is real and finite, except for rows that are NaN as a whole."""
        X = check_missing_rows(X, view)
        check_magnitude(X, view)
        return X

    def empty(self, X: Matrix) -> Array:
        """Return which rows have no direction, because they are zero or NaN."""
        return ~(_lengths(X) > 0)

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with the requested precision, float32 by default."""
        return self.bind_pieces([X], dtype)

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with the requested precision, float32 by default."""
        wanted = self.dtype if dtype is None else dtype
        return replace(self, dtype=np.dtype(np.float32 if wanted is None else wanted))

    def encode(self, X: Matrix) -> Matrix:
        """Return rows of unit length, zero if they are empty; `X` itself if they are so already."""
        return self.split(X)[0]

    def split(self, X: Matrix) -> tuple[Matrix, Array]:
        """Return ``encode(X)`` and the lengths of the rows of `X`, 0 or NaN for empty rows."""
        lengths = _lengths(X)
        dtype = self.bind(X, None).dtype
        if ((np.abs(lengths - 1) <= 1e-6) | (lengths == 0)).all():
            if isinstance(X, np.ndarray):
                return np.ascontiguousarray(X, dtype=dtype), lengths
            return X.astype(dtype, copy=False), lengths
        by = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)[:, None]
        if not isinstance(X, np.ndarray):
            # NumPy 1 would multiply a single row by a single number in the precision of the row.
            double = X.astype(np.float64, copy=False)
            return double.multiply(by).tocsr().astype(dtype), lengths
        unit = np.zeros(X.shape, dtype)
        return np.multiply(X, by, out=unit, where=by > 0, casting="same_kind"), lengths

    def log_prob(self, X: Matrix, theta: VonMisesFisherTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        cosines = self.cosines(X, theta)
        cosines *= theta.kappas
        cosines += _bessel(theta.kappas, X.shape[1])[0]
        return cosines

    def cosines(self, X: Matrix, theta: VonMisesFisherTheta) -> Array:
        """Return the cosines of unit rows and directions, (n_rows, n_components) in float64."""
        directions = theta.directions
        if isinstance(X, np.ndarray):  # in single precision, the product would depend on the block
            return np.asarray(X.astype(np.float64, copy=False) @ directions.T)
        return counts.scores(X, directions.astype(self.bind(X, None).dtype, copy=False))

    def terms(self, X: Matrix, theta: VonMisesFisherTheta) -> tuple[Array, Array, Array]:
        """Return kappa times the products with the directions; the rest is log C_d(kappa)."""
        if isinstance(X, np.ndarray):
            features = np.flatnonzero(X[0])
            values = X[0, features]
        else:
            features, values = X.indices, X.data
        weights = np.asarray(theta.directions[:, features], np.float64).T * theta.kappas
        return features, values[:, np.newaxis] * weights, _bessel(theta.kappas, X.shape[1])[0]

    def log_prior(self, theta: VonMisesFisherTheta) -> float:
        """Return the log prior density of the concentrations, 0 if they are fixed."""
        if self.kappa != "fit" or not self.alpha:
            return 0.0
        return float(self.alpha * _bessel(theta.kappas, theta.directions.shape[1])[0].sum())

    def n_parameters(self, theta: VonMisesFisherTheta) -> int:
        """Return the number of free angles, plus that of the concentrations if they are fitted."""
        k, d = map(int, theta.directions.shape)
        return k * (d - 1) + (k if self.kappa == "fit" else 0)

    def stats(self, X: Matrix, resp: Array) -> VonMisesFisherStats:
        """Return the weighted sums of the rows, in float64."""
        mass = resp.sum(axis=0, dtype=np.float64)
        if not isinstance(X, np.ndarray):
            return VonMisesFisherStats(mass, counts.accumulate(X, resp))
        resultant = np.zeros((resp.shape[1], X.shape[1]))
        for begin in range(0, len(X), _CHUNK):
            rows = X[begin : begin + _CHUNK]
            share = resp[begin : begin + _CHUNK].T.astype(np.float64, copy=False)
            resultant += share @ rows.astype(np.float64, copy=False)
        return VonMisesFisherStats(mass, resultant)

    def add_stats(
        self,
        total: VonMisesFisherStats,
        X: Matrix,
        resp: Array,
        theta: VonMisesFisherTheta | None,
    ) -> VonMisesFisherStats:
        """Return ``total + stats(X, resp)``; sparse rows need no table of their own."""
        if isinstance(X, np.ndarray):
            return super().add_stats(total, X, resp, theta)
        mass = total.mass + resp.sum(axis=0, dtype=np.float64)
        return VonMisesFisherStats(mass, counts.accumulate(X, resp, total.resultant))

    def estimate(self, stats: VonMisesFisherStats) -> VonMisesFisherTheta:
        """Return the modes; without a direction, that of all rows, or else the first axis."""
        d = stats.resultant.shape[1]
        pooled = _unit(stats.resultant.sum(axis=0, keepdims=True), np.eye(1, d))
        lengths = np.linalg.norm(stats.resultant, axis=1)
        return VonMisesFisherTheta(
            _unit(stats.resultant, pooled), self._kappas(lengths, stats.mass, d)
        )

    def maximise(
        self, X: Matrix, resp: Array, theta: VonMisesFisherTheta | None = None
    ) -> VonMisesFisherTheta:
        """Return ``estimate(stats(X, resp))``, for sparse rows at the precision of the family."""
        if isinstance(X, np.ndarray):
            return self.estimate(self.stats(X, resp))
        directions, lengths = counts.resultants(X, resp, self.bind(X, None).dtype)
        if not lengths.all():  # as in `estimate`, for components without a direction
            pool = counts.accumulate(X, resp.sum(axis=1, keepdims=True, dtype=np.float64))
            directions[lengths == 0] = _unit(pool, np.eye(1, X.shape[1]))
        mass = resp.sum(axis=0, dtype=np.float64)
        return VonMisesFisherTheta(directions, self._kappas(lengths, mass, X.shape[1]))

    def _kappas(self, lengths: Array, mass: Array, d: int) -> Array:
        """Return the concentrations for the lengths of sums of `mass` unit rows."""
        if self.kappa != "fit":
            return np.full(len(mass), float(self.kappa or DEFAULT_KAPPA))
        mass = mass + self.alpha
        return _solve_kappa(np.divide(lengths, mass, out=np.zeros(len(mass)), where=mass > 0), d)

    def start(
        self, pooled: VonMisesFisherStats, n_components: int, rng: Rng
    ) -> VonMisesFisherTheta:
        """Return random directions near the mean row, spread like the rows."""
        mode, d = self.estimate(pooled), pooled.resultant.shape[1]
        mean = pooled.resultant / max(pooled.mass[0], 1e-300)
        spread = np.sqrt(max(0.0, 1.0 - np.sum(mean * mean)) / d)
        rows = _unit(mean + spread * rng.standard_normal((n_components, d)), mode.directions)
        return VonMisesFisherTheta(rows, np.repeat(mode.kappas, n_components))

    def sample(self, theta: VonMisesFisherTheta, labels: Array, rng: Rng) -> Array:
        """Return one row drawn from the component that each entry of `labels` names."""
        axes = theta.directions[labels]
        cosines = _cosines(theta.kappas[labels], axes.shape[1], rng)[:, None]
        noise = rng.standard_normal(axes.shape)
        noise = _unit(noise - (noise * axes).sum(axis=1, keepdims=True) * axes, axes)
        return _unit(cosines * axes + np.sqrt((1 - cosines) * (1 + cosines)) * noise, axes)


def _lengths(X: Matrix) -> Array:
    """Return the lengths of the rows (n,) in float64; NaN for rows with NaN."""
    lengths = _root_of_squares(X)
    small = np.flatnonzero(lengths < 1e-140)  # their squares may have underflowed
    if len(small):
        rows = X[small].astype(np.float64)
        top = _largest(rows)
        by = np.divide(1.0, top, out=np.zeros(len(top)), where=top > np.finfo(np.float64).tiny)
        scaled = sp.diags_array(by) @ rows if is_sparse(rows) else rows * by[:, None]
        lengths[small] = top * _root_of_squares(scaled)
    return lengths


def _largest(X: Matrix) -> Array:
    """Return the largest absolute value of each row, (n,)."""
    top = abs(X).max(axis=1).toarray() if is_sparse(X) else np.abs(X).max(axis=1)
    return np.asarray(top).ravel()


def _root_of_squares(X: Matrix) -> Array:
    if isinstance(X, np.ndarray):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64)))
    if not X.has_canonical_format:  # duplicates of an entry add up
        X = X.copy()
        X.sum_duplicates()
    squares = np.square(X.data[: X.indptr[-1]], dtype=np.float64)
    total, filled = np.zeros(X.shape[0]), np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        total[filled] = np.add.reduceat(squares, X.indptr[filled])
    return np.sqrt(total)


def _unit(rows: Array, fallback: Array) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, rows / np.maximum(lengths, 1e-300), fallback)


@lru_cache(maxsize=64)
def _debye(v: float) -> tuple[Polynomial, Polynomial]:
    """Return the sum U of A&S 9.7.7, and W, so that 9.7.9 is U - t (1 - t^2) W, by 9.3.14."""
    t, u, U, W = (Polynomial(c) for c in ([0.0, 1.0], [1.0], [0.0], [0.0]))
    for j in range(10):
        U, W = U + u / v**j, W + (u / 2 + t * u.deriv()) / v ** (j + 1)
        u = t**2 * (1 - t**2) * u.deriv() / 2 + ((1 - 5 * t**2) * u).integ() / 8  # 9.3.10
    return U, W


def _bessel(kappa: Array, d: int) -> tuple[Array, Array]:
    """Return log C_d(kappa) and A_d(kappa) / kappa for kappa >= 0; A_d is the mean cosine."""
    # The expansions are exact, except for rounding, from order 30 on. For lower orders we use
    # recurrences, which add positive terms only: nothing cancels, underflows or overflows.
    top = d + 2 * max(0, 31 - d // 2)
    v = top / 2 - 1
    s = np.hypot(1.0, kappa / v)
    U, W = (polynomial(1 / s) for polynomial in _debye(v))
    log_c = v * (np.log(v * (1 + s) / tau) - s) + np.log(v * s / tau) / 2 - np.log(U)
    ratio = (1 / (1 + s) - W / U / s**2) / v
    for below in range(top - 2, d - 1, -2):
        base = below + kappa**2 * ratio
        log_c, ratio = log_c + np.log(tau / base), 1 / base
    return log_c, ratio


def _solve_kappa(mean: Array, d: int) -> Array:
    """Return kappa (k,) with A_d(kappa) = mean, by Newton steps, or by bisection if they fail."""
    mean = np.minimum(mean, 1 - 1e-12)
    low, high = np.zeros(mean.shape), np.full(mean.shape, MAX_KAPPA)
    kappa: Array = np.minimum(mean * (d - mean**2) / (1 - mean**2), high)  # Banerjee et al., 4.4
    for _ in range(100):
        ratio = _bessel(kappa, d)[1]
        excess = kappa * ratio - mean
        low, high = np.where(excess < 0, kappa, low), np.where(excess > 0, kappa, high)
        if ((np.abs(excess) <= 1e-15 * mean) | (low == high)).all():
            break
        kappa = kappa - excess / np.maximum(1 - (kappa * ratio) ** 2 - (d - 1) * ratio, 1e-300)
        kappa = np.where((low <= kappa) & (kappa <= high), kappa, (low + high) / 2)
    return kappa


def _cosines(kappa: Array, d: int, rng: Rng) -> Array:
    """Return random cosines of rows and directions, by the rejection sampler of Wood (1994)."""
    if d == 1:
        return np.where(rng.random(kappa.shape) * (1 + np.exp(-2 * kappa)) < 1, 1.0, -1.0)
    b = (d - 1) / (2 * kappa + np.hypot(2 * kappa, d - 1))
    x = (1 - b) / (1 + b)
    level = kappa * x + (d - 1) * np.log(4 * b / (1 + b) ** 2)
    out, todo = np.empty(kappa.shape), np.arange(len(kappa))
    while todo.size:
        z = rng.beta((d - 1) / 2, (d - 1) / 2, todo.size)
        w = np.clip((1 - (1 + b[todo]) * z) / (1 - (1 - b[todo]) * z), -1.0, 1.0)
        score = kappa[todo] * w + (d - 1) * np.log(1 - x[todo] * w) - level[todo]
        good = score >= -rng.standard_exponential(todo.size)
        out[todo[good]], todo = w[good], todo[~good]
    return out
