"""The traffic model: p(x, x') = sum over hubs h, h' of alpha(x|h) beta(h, h') alpha(x'|h').

Write gamma(x'|h) = sum_h' beta(h, h') alpha(x'|h'). Then p(x, x') = sum_h alpha(x|h) gamma(x'|h):
this is an aspect model, and gamma includes p(h). So the kernels of the aspect model do the work
that grows with the counts (nnz k). Products with a k by k matrix do the rest (n k^2). See Lin
(2006), Sec. 5.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from coem.kernels import aspect as kernel
from coem.kernels import traffic as products
from coem.kernels.aspect import Pairs
from coem.latent.aspect import AspectData, AspectSummary, shares, summarise
from coem.protocols import Clock, Value
from coem.typing import Array, Rng

NEGLIGIBLE = 1e-150  # the product of two smaller numbers would be denormal, which is slow


class Traffic(NamedTuple):
    """The parameters in the form that users see; the first axis is the hub."""

    alpha: Array  # (k, n): p(x|h), the same for sources and destinations
    beta: Array  # (k, k): p(h, h'), from entrance h to exit h'

    @property
    def weights(self) -> Array:
        """The share of the ends of all trips (entrances and exits) that each hub has.

        Choose one of the two ends of a trip with probability 1/2. Because alpha is the same for
        both ends, the chosen end is at x and h with probability alpha(x|h) times the mean of the
        two marginals of beta. So this mean is the p(h) for computing p(h|x).
        """
        return np.asarray((self.beta.sum(axis=0) + self.beta.sum(axis=1)) / 2)


@dataclass(frozen=True)
class TrafficTheta:
    """The parameters in the form that the kernels read; `x`, `y`, `cells` are as in `Tables`."""

    x: Array  # (n, width), the table of alpha
    beta: Array  # (k, k), float64

    @property
    def started(self) -> bool:
        """True: a start always has parameters."""
        return True

    def without(self, turn: int) -> Self:
        """Return all parameters: the M step needs the old ones to compute the new ones."""
        return self

    @cached_property
    def y(self) -> Array:
        """The table of gamma."""
        return products.times(self.x, square(self.beta, self.x).T)

    @property
    def cells(self) -> Array:
        """Ones, because gamma includes p(h)."""
        return kernel.padded(np.ones(len(self.beta)), self.x.shape[1], self.x.dtype)

    @property
    def plain(self) -> Traffic:
        """The parameters in the form that users see; the table is not copied."""
        return Traffic(self.x[:, : len(self.beta)].T, self.beta)

    @classmethod
    def of(cls, traffic: Traffic, dtype: Any) -> Self:
        """Convert parameters to the form that the kernels read."""
        return cls(
            kernel.as_table(np.asarray(traffic.alpha), dtype),
            np.array(traffic.beta, dtype=np.float64),
        )


def square(matrix: Array, table: Array) -> Array:
    """Return a matrix (k, k) padded with zeros to the width of a table, in the table's dtype."""
    k, width = len(matrix), table.shape[1]
    cells = np.zeros((width, width), table.dtype)
    cells[:k, :k] = matrix
    return cells


@dataclass
class TrafficState:
    """What the E step passes to the M step, in memory that is reused in every round."""

    theta: TrafficTheta | None  # the parameters of the last E step
    alpha: Array  # the tempered table that the E step used
    beta: Array  # (k, k), tempered
    ratios: Array  # count / p(x, x') of every non-zero
    sums: Array  # (n, width), expected counts of sources and entrances
    ones: Array  # (n, width)
    evidence: float = 0.0  # sum of counts log p(x, x'), if beta was 1
    tempered: Array | None = None


@dataclass(frozen=True)
class TrafficFlow:
    """The traffic model of Lin (2006), Sec. 5, as a latent structure for `em`.

    `prior` is the pseudo-count of every cell of alpha: a Dirichlet prior. The M step takes the
    mode, and the objective includes the log prior, so the objective never falls at a fixed inverse
    temperature.

    This is a `Latent`, not an `AdditiveLatent`, for the same reasons as the aspect model.
    """

    n_components: int
    prior: float = 0.0
    dtype: Any = np.float32

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return 1

    def never_falls(self, clock: Clock, summary: AspectSummary) -> bool:
        """Return True: this is EM."""
        return True

    def random(self, pairs: Pairs, rng: Rng) -> TrafficTheta:
        """Return a random start: alpha is drawn near each node's share of the ends of all trips.

        Beta is random too. If it were the same for all pairs of hubs, the model would stay close
        to a model with a single hub for ten rounds or more. Beta is symmetric, so that reversed
        traffic gives the reversed model.
        """
        k = self.n_components
        ends = np.mean(pairs.marginals, axis=0)
        ends = ends if ends.any() else np.full(len(ends), 1 / len(ends))
        drawn = rng.exponential(size=(k, len(ends))) * ends
        alpha = drawn / drawn.sum(axis=1, keepdims=True)
        beta = rng.exponential(size=(k, k))
        beta += beta.T
        return TrafficTheta.of(Traffic(alpha, beta / beta.sum()), self.dtype)

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: AspectData, theta: TrafficTheta, clock: Clock, state: TrafficState | None
    ) -> TrafficState:
        """Compute the expected counts of sources and entrances; the M step computes the rest.

        q(h, h'|x, x') is raised to the power of the inverse temperature and normalised. The
        factors alpha and beta(h, h') are raised to that power once, not once for every non-zero.
        """
        if state is not None and state.theta is theta:
            return state
        state = self._new_state(part, theta) if state is None else state
        tables = self._temper(state, theta, clock.betas[0])
        cells = theta.cells
        value, _ = kernel.expect(part.pairs, *tables, cells, state.ratios, state.sums)
        state.evidence = value * part.pairs.unit
        state.theta = theta
        return state

    def _new_state(self, part: AspectData, theta: TrafficTheta) -> TrafficState:
        ratios = np.empty(part.pairs.counts.shape, self.dtype)
        ones = kernel.table_like(theta.x)
        ones[:] = 1
        return TrafficState(None, theta.x, theta.beta, ratios, kernel.table_like(theta.x), ones)

    def summarise(
        self, part: AspectData, theta: TrafficTheta, clock: Clock, state: TrafficState
    ) -> AspectSummary:
        """Return the objective and the log likelihood; see `Aspect.summarise`."""
        return summarise(part, theta, state.evidence, clock.betas[0])

    def _temper(self, state: TrafficState, theta: TrafficTheta, beta: float) -> tuple[Array, Array]:
        """Store the tempered factors in `state`, and return the tables of alpha and gamma."""
        if beta == 1:
            state.alpha, state.beta = theta.x, theta.beta
            return theta.x, theta.y
        if state.tempered is None:
            state.tempered = kernel.table_like(theta.x)
        kernel.power(theta.x, beta, state.tempered)
        raised = np.where(theta.beta > 0, np.maximum(theta.beta, NEGLIGIBLE) ** beta, 0.0)
        state.alpha, state.beta = state.tempered, raised
        return state.alpha, products.times(state.alpha, square(raised, state.alpha).T)

    def value(self, summary: AspectSummary, theta: TrafficTheta) -> Value:
        """Return the objective plus the log prior of the parameters, up to a constant."""
        total = summary.objective
        if self.prior > 0:
            total += self.prior * kernel.log_sum(theta.x, self.n_components)
        return Value(total, total)

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: AspectData, theta: TrafficTheta, turn: int, clock: Clock, state: TrafficState
    ) -> TrafficTheta:
        """Return the normalised expected counts (Lin 2006, Sec. 5, M-step).

        Let U(x', h) = sum_x ratio(x, x') alpha(x|h). The expected counts of destinations and exits
        are alpha(x'|h') sum_h U(x', h) beta(h, h'). Those of pairs of hubs are beta(h, h') times
        sum_x' U(x', h) alpha(x'|h').
        """
        pairs, k = part.pairs, self.n_components
        cells = theta.cells
        unscaled = cells.astype(np.float64), np.zeros(len(cells))
        tables = state.alpha, state.ones, cells
        inflow = kernel.maximise(pairs, *tables, state.ratios, unscaled)
        beta = square(state.beta, state.alpha)
        totals, crossed = products.gather(state.alpha, inflow, beta, state.sums)
        alpha = kernel.rescale(
            state.sums, shares(totals[:k], pairs.shape[0], self.prior / pairs.unit)
        )
        expected = state.beta * crossed[:k, :k]
        whole = expected.sum()
        if not whole > 0:
            return TrafficTheta(alpha, np.full((k, k), 1 / k**2))
        expected /= whole
        return TrafficTheta(alpha, np.where(expected < NEGLIGIBLE, 0.0, expected))
