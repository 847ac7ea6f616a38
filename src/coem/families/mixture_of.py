"""Components that are mixtures themselves: several components of another family for each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np

from coem.families.base import AnyFamily, Family
from coem.kernels import threads
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta

TAGS = ("wide", "nonnegative", "allows_nan", "single_precision")  # those of the inner family
_HOPELESS = -1e300  # the least log joint, so that no difference of two is NaN
_NEGLIGIBLE = 1e-9  # in single precision, the largest share that is nothing
_CHUNK = 4096  # rows; the densities of all inner components exist for so many rows at a time


class MixtureOfTheta(tuple[Array, ...]):
    """Log weights (k, m) of the inner components, and each array of their parameters (k, m, ...).

    In `flat`, and in a file, the arrays of the parameters are those of a mixture of k m components.
    """

    def __new__(cls, log_weights: Array, *parts: Array, **flat: Array) -> Self:
        """Return the parameters that consist of `parts`, or of arrays (k m, ...)."""
        apart = (part.reshape(*log_weights.shape, *part.shape[1:]) for part in flat.values())
        return super().__new__(cls, (log_weights, *parts, *apart))

    def __getnewargs__(self) -> tuple[Array, ...]:
        return tuple(self)

    def _asdict(self) -> Mapping[str, Array]:
        """Return the arrays by name, as model files have them."""
        return {"log_weights": self.log_weights} | _named(self.flat)

    @property
    def log_weights(self) -> Array:
        """The log weights of the inner components (k, m)."""
        return self[0]

    @property
    def flat(self) -> list[Array]:
        """The arrays of the parameters with all inner components on the first axis, (k m, ...)."""
        return [part.reshape(-1, *part.shape[2:]) for part in self[1:]]


@dataclass(frozen=True)
class MixtureOfStats(Stats):
    """Statistics of the inner components; before there are parameters, of the outer components."""

    inner: Stats  # of k m components, or of k
    mass: Array  # (k, m), or (k, 1)


@dataclass(frozen=True)
class MixtureOf(Family[MixtureOfTheta, MixtureOfStats, Matrix]):
    r"""Several components of another family for each component.

    Use it for components that are not of one piece: a group of rows with several centres, or a
    state of a chain that emits several kinds of rows.

    Parameters
    ----------
    family : Family or str
        The family of the inner components.
    n_components : int, default=2
        The number of inner components of each component.
    alpha : float, default=1.0
        Pseudo-count of each inner component: a symmetric Dirichlet prior on the inner weights with
        parameter ``alpha + 1``.
    seed : int, default=0
        Seed of the inner components of a start that has no parameters, but only says which rows
        belong to which component: the family draws them by its `start` near each component.

    Notes
    -----
    The density is :math:`p(x \mid j) = \sum_m c_{jm} f(x \mid \theta_{jm})`. The M step divides the
    responsibility of a component for a row among its inner components, by their posterior under
    the current parameters:
    :math:`r_{ijm} = r_{ij} c_{jm} f(x_i \mid \theta_{jm}) / p(x_i \mid j)`.
    Then :math:`c_{jm} \propto \alpha + \sum_i r_{ijm}`, and the inner family estimates
    :math:`\theta_{jm}` from :math:`r_{ijm}`. This is a step of EM within the M step, so that the
    objective of a fit cannot fall. ``beta`` tempers only the posterior of the outer components.
    What the components of the inner family share, such as a tied covariance, is shared by the
    inner components of all components.
    """

    family: AnyFamily | str
    n_components: int = 2
    alpha: float = 1.0
    seed: int = 0
    theta_type: ClassVar[Any] = MixtureOfTheta

    def __post_init__(self) -> None:
        """Raise unless the hyper-parameters are valid; take the tags of the inner family."""
        from coem.families import as_family  # it imports this module

        object.__setattr__(self, "family", as_family(self.family))
        for name, least in (("n_components", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of {least} or more, not {value!r}")
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < np.inf):
            raise ValueError(f"alpha must be finite and 0 or more, not {self.alpha!r}")
        for tag in TAGS:
            object.__setattr__(self, tag, getattr(self.inner, tag))

    @property
    def inner(self) -> AnyFamily:
        """The family of the inner components, with dense tables, which are read component-wise."""
        return cast(AnyFamily, self.family).dense

    @property
    def exact(self) -> bool:
        """True if that of the inner family is."""
        return self.inner.exact

    @property
    def hidden(self) -> bool:
        """True if there is anything to divide a responsibility among."""
        return self.n_components > 1 or self.inner.hidden

    # -- densities ---------------------------------------------------------------------------

    def log_prob(self, X: Matrix, theta: MixtureOfTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        log_joint = self._log_joint(X, theta)
        if self.n_components > 1:
            _, log_joint = _divide(log_joint)
        return log_joint.reshape(X.shape[0], len(theta.log_weights))

    def _log_joint(self, X: Matrix, theta: MixtureOfTheta) -> Array:
        """Return log c + log f(x) of the inner components, (n_rows * n_components, m)."""
        log_joint = self.inner.log_prob(X, self._flat(theta))
        log_joint += theta.log_weights.ravel()
        return np.asarray(log_joint.reshape(-1, self.n_components))

    def _shares(self, X: Matrix, resp: Array, theta: MixtureOfTheta) -> Array:
        """Return the responsibilities of the inner components, (n_rows, n_components * m)."""
        if self.n_components == 1:
            return resp
        out = np.empty((*resp.shape, self.n_components), resp.dtype)

        def work(cut: tuple[int, int]) -> None:
            rows = slice(*cut)
            shares, _ = _divide(self._log_joint(X[rows], theta))
            if resp.dtype == np.float32:  # as in the E step: the sums over rows skip zeros
                shares *= shares >= _NEGLIGIBLE
            out[rows] = resp[rows, :, np.newaxis] * shares.T.reshape(-1, *out.shape[1:])

        threads.spread(work, list(pairwise([*range(0, len(resp), _CHUNK), len(resp)])))
        return out.reshape(len(resp), -1)

    def log_prior(self, theta: MixtureOfTheta) -> float:
        """Return the log prior density of the inner weights and of the inner parameters."""
        of_weights = self.alpha * float(theta.log_weights.sum())
        return self.inner.log_prior(self._flat(theta)) + of_weights

    def n_parameters(self, theta: MixtureOfTheta) -> int:
        """Return the number of free parameters, including the inner weights."""
        k, m = theta.log_weights.shape
        return self.inner.n_parameters(self._flat(theta)) + int(k * (m - 1))

    def collapsed(self, theta: MixtureOfTheta, weights: Array) -> Array:
        """Return the components of which a part has collapsed."""
        shares = weights[:, np.newaxis] * np.exp(theta.log_weights)
        parts = self.inner.collapsed(self._flat(theta), shares.ravel())
        return np.unique(parts // theta.log_weights.shape[1])

    def feature_probs(self, theta: MixtureOfTheta) -> Array | None:
        """Return p(feature | component), the average over the inner components."""
        probs = self.inner.feature_probs(self._flat(theta))
        if probs is None:
            return None
        weights = np.exp(theta.log_weights)
        return np.asarray(np.einsum("km,kmf->kf", weights, probs.reshape(*weights.shape, -1)))

    def terms(self, X: Matrix, theta: MixtureOfTheta) -> tuple[Array, Array, Array] | None:
        """Return None: the log density is not a sum over features, unless m is 1."""
        return self.inner.terms(X, self._flat(theta)) if self.n_components == 1 else None

    # -- M step ------------------------------------------------------------------------------

    def stats(self, X: Matrix, resp: Array) -> MixtureOfStats:
        """Return the statistics of the outer components, which are not divided yet."""
        return MixtureOfStats(self.inner.stats(X, resp), _mass(resp)[:, np.newaxis])

    def stats_under(self, X: Matrix, resp: Array, theta: MixtureOfTheta | None) -> MixtureOfStats:
        """Return the statistics of the inner components, with shares that follow from `theta`."""
        if theta is None:
            return self.stats(X, resp)
        shares = self._shares(X, resp, theta)
        stats = self.inner.stats_under(X, shares, self._flat(theta))
        return MixtureOfStats(stats, _mass(shares).reshape(theta.log_weights.shape))

    def add_stats(
        self, total: MixtureOfStats, X: Matrix, resp: Array, theta: MixtureOfTheta | None
    ) -> MixtureOfStats:
        """Return ``total + stats_under(X, resp, theta)`` by `add_stats` of the inner family."""
        shares = resp if theta is None else self._shares(X, resp, theta)
        flat = None if theta is None else self._flat(theta)
        mass = total.mass + _mass(shares).reshape(total.mass.shape)
        return MixtureOfStats(self.inner.add_stats(total.inner, X, shares, flat), mass)

    def estimate(self, stats: MixtureOfStats) -> MixtureOfTheta:
        """Return the modes; if the statistics are not divided, inner components near them."""
        k, m = stats.mass.shape
        if m != self.n_components:
            return self.start_within(stats, k, 1, self.seed)
        return self._join(self.inner.estimate(stats.inner), self._log_weights(stats.mass))

    def maximise(
        self, X: Matrix, resp: Array, theta: MixtureOfTheta | None = None
    ) -> MixtureOfTheta:
        """Return ``estimate(stats_under(X, resp, theta))`` by `maximise` of the inner family."""
        if theta is None:
            one = self.n_components == 1
            return self._join(self.inner.maximise(X, resp)) if one else super().maximise(X, resp)
        shares = self._shares(X, resp, theta)
        new = self.inner.maximise(X, shares, self._flat(theta))
        return self._join(new, self._log_weights(_mass(shares).reshape(theta.log_weights.shape)))

    def start(self, pooled: MixtureOfStats, n_components: int, rng: Rng) -> MixtureOfTheta:
        """Return random inner components near `pooled`, with equal weights."""
        return self._join(self.inner.start(pooled.inner, n_components * self.n_components, rng))

    def start_within(
        self, stats: MixtureOfStats, n_components: int, n_parts: int, seed: int
    ) -> MixtureOfTheta:
        """Return inner components near each component, with equal weights."""
        n_inner = n_parts * self.n_components
        return self._join(self.inner.start_within(stats.inner, n_components, n_inner, seed))

    def sample(self, theta: MixtureOfTheta, labels: Array, rng: Rng) -> Matrix:
        """Return one row drawn from the component that each entry of `labels` names."""
        which = np.asarray(labels)
        if self.n_components > 1:
            bounds = np.exp(theta.log_weights).cumsum(axis=1)[which]
            above = rng.random((len(which), 1)) * bounds[:, -1:] > bounds
            which = which * self.n_components + above.sum(axis=1)
        return self.inner.sample(self._flat(theta), which, rng)

    def locate(self, feature: int) -> Any:
        """Return the column of a feature of `feature_probs`, or its (column, level)."""
        return self.inner.locate(feature)

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if the inner family can take its values, else raise an error."""
        return self.inner.check(X, view)

    def empty(self, X: Matrix) -> Array:
        """Return which rows carry no information for the inner family."""
        return self.inner.empty(X)

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with what the inner family learns from all rows."""
        return replace(self, family=self.inner.bind(X, dtype))

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with what the inner family learns from all rows."""
        return replace(self, family=self.inner.bind_pieces(pieces, dtype))

    def encode(self, X: Matrix) -> Matrix:
        """Return `X` in the form that the inner family computes with."""
        return cast(Matrix, self.inner.encode(X))

    def example(self, rng: Rng) -> Matrix:
        """Return rows that the inner family can take."""
        return self.inner.example(rng)

    def _flat(self, theta: MixtureOfTheta) -> Any:
        """Return the parameters of all inner components, as the inner family has them."""
        return self.inner.restore(theta.flat)

    def _join(self, inner: Theta, log_weights: Array | None = None) -> MixtureOfTheta:
        """Return parameters from those of all inner components; equal weights by default."""
        parts = inner if isinstance(inner, tuple) else (inner,)
        if log_weights is None:
            shape = len(parts[0]) // self.n_components, self.n_components
            log_weights = np.full(shape, -np.log(self.n_components))
        return MixtureOfTheta(log_weights, **_named(parts))

    def _log_weights(self, mass: Array) -> Array:
        """Return the log weights (k, m) at the mode; equal weights for a component without mass."""
        mass = mass + self.alpha
        dead = ~(mass.sum(axis=1, keepdims=True) > 0)
        shares = np.where(dead, 1.0, mass)
        shares /= shares.sum(axis=1, keepdims=True)
        return np.log(np.maximum(shares, np.finfo(np.float64).tiny))


def innermost(family: AnyFamily) -> AnyFamily:
    """Return the family of the inner components, or the family itself if there are none."""
    return innermost(family.inner) if isinstance(family, MixtureOf) else family


def _divide(log_joint: Array) -> tuple[Array, Array]:
    """Return the posteriors of the columns (m, n) of (n, m), and the log of the sum of each row."""
    shares = np.maximum(log_joint.T, _HOPELESS, order="C")  # vectors go along the many rows
    top = shares.max(axis=0)
    shares -= top
    np.exp(shares, out=shares)
    total = shares.sum(axis=0)
    shares /= total
    return shares, np.log(total) + top


def _mass(resp: Array) -> Array:
    return np.asarray(resp.sum(axis=0, dtype=np.float64))


def _named(parts: Any) -> dict[str, Array]:
    return {f"inner{i}": part for i, part in enumerate(parts)}
