"""The aspect model: p(x, y) = sum_h p(h) p(x|h) p(y|h), with one hidden component per count."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from coem.kernels import aspect as kernel
from coem.kernels.aspect import Pairs
from coem.protocols import Clock, Value
from coem.typing import Array, Rng

TINY = float(np.finfo(np.float64).tiny)


class Aspects(NamedTuple):
    """The parameters in the form that users see; the first axis is the component."""

    weights: Array  # (k,): p(h)
    x_given_h: Array  # (k, n)
    y_given_h: Array  # (k, m)


class Tables(Protocol):
    """The tables that p(x, y) is computed from.

    p(x, y) is the sum over the cells of: weight of the cell, times the cell of x, times that of y.
    """

    @property
    def x(self) -> Array:
        """A table (n, width)."""

    @property
    def y(self) -> Array:
        """A table (m, width)."""

    @property
    def cells(self) -> Array:
        """Weights (width,) of the products."""


@dataclass(frozen=True)
class AspectTheta:
    """The parameters in the form that the kernels read: padded tables of p(x|h) and p(y|h)."""

    weights: Array  # (k,), float64
    x: Array  # (n, width)
    y: Array  # (m, width)

    @property
    def started(self) -> bool:
        """True: a start always has parameters."""
        return True

    def without(self, turn: int) -> Self:
        """Return all parameters: the M step needs the old ones to compute the new ones."""
        return self

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def cells(self) -> Array:
        """The weights for the kernels, padded and in the precision of the tables."""
        return kernel.padded(self.weights, self.x.shape[1], self.x.dtype)

    @property
    def plain(self) -> Aspects:
        """The parameters in the form that users see; the tables are not copied."""
        k = self.n_components
        return Aspects(self.weights, self.x[:, :k].T, self.y[:, :k].T)

    @classmethod
    def of(cls, aspects: Aspects, dtype: Any) -> Self:
        """Convert parameters to the form that the kernels read."""
        weights = np.array(aspects.weights, dtype=np.float64)
        x, y = (kernel.as_table(np.asarray(table), dtype) for table in aspects[1:])
        return cls(weights, x, y)


@dataclass(frozen=True)
class AspectSummary:
    """What the E step computes from all counts.

    There is only one view, so dissent is 0 and the agreement rate is 1.
    """

    objective: float
    log_likelihood: tuple[float, ...]
    evidence: float  # sum of counts log p(x, y), if beta is 1

    dissent: float = 0.0
    agreement_rate: float = 1.0


@dataclass
class AspectState:
    """What the E step passes to the M step, in memory that is reused in every round."""

    theta: "AspectTheta | None"  # the parameters of the last E step
    x: Array  # the tempered tables that the E step used
    y: Array
    weights: Array  # (width,)
    ratios: Array  # count / p(x, y) of every non-zero
    sums: Array  # (n, width), expected counts of rows
    totals: Array  # (k,), expected counts of components
    evidence: float = 0.0  # sum of counts log p(x, y), if beta was 1
    tempered: tuple[Array, Array] | None = None


@dataclass(frozen=True)
class AspectData:
    """The counts, and the held-out counts for early stopping. All runs share them."""

    pairs: Pairs
    held_out: Pairs | None = None


@dataclass(frozen=True)
class Aspect:
    """The aspect model, also known as probabilistic latent semantic analysis (Lin 2006, Sec. 3.1).

    `x_prior` and `y_prior` are the pseudo-counts of every cell of p(x|h) and p(y|h). They are
    Dirichlet priors. The M step takes the mode, and the objective includes the log priors, so the
    objective never falls at a fixed beta.

    This is a `Latent`, not an `AdditiveLatent`: the E step runs over rows, the M step runs over
    columns, and every row has its own parameters.
    """

    n_components: int
    x_prior: float = 0.0
    y_prior: float = 0.0
    dtype: Any = np.float32

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return 1

    def never_falls(self, clock: Clock, summary: AspectSummary) -> bool:
        """Return True: this is EM."""
        return True

    # -- starts ------------------------------------------------------------------------------

    def random(self, pairs: Pairs, rng: Rng) -> AspectTheta:
        """Return a random start: p(x|h) = p(x) for every h, and a random p(y|h) near p(y).

        No random number belongs to a row. So a row of weight 2 leads to the same fit as the same
        row given twice. The first M step makes the p(x|h) differ.
        """
        n, m = pairs.shape
        k = self.n_components
        of_row, of_column = (p if p.any() else np.full(len(p), 1 / len(p)) for p in pairs.marginals)
        drawn = rng.exponential(size=(k, m)) * of_column
        y = drawn / np.maximum(drawn.sum(axis=1, keepdims=True), TINY)
        x = np.broadcast_to(of_row, (k, n))
        return AspectTheta.of(Aspects(np.full(k, 1 / k), x, y), self.dtype)

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: AspectData, theta: AspectTheta, clock: Clock, state: AspectState | None
    ) -> AspectState:
        """Compute the expected counts of rows and components; the M step computes those of columns.

        The posterior of DAEM is p(h|x, y) to the power of beta, normalised (Ueda & Nakano 1998).
        The factors are raised to that power once, not once for every non-zero.
        """
        if state is not None and state.theta is theta:
            return state
        state = self._new_state(part, theta) if state is None else state
        self._temper(state, theta, clock.betas[0])
        tables = state.x, state.y, state.weights
        value, totals = kernel.expect(part.pairs, *tables, state.ratios, state.sums)
        state.totals = totals[: self.n_components]
        state.evidence = value * part.pairs.unit
        state.theta = theta
        return state

    def _new_state(self, part: AspectData, theta: AspectTheta) -> AspectState:
        ratios = np.empty(part.pairs.counts.shape, self.dtype)
        sums = kernel.new_table(len(theta.x), self.n_components, self.dtype)
        none = np.empty(0)
        return AspectState(None, theta.x, theta.y, none, ratios, sums, none)

    def summarise(
        self, part: AspectData, theta: AspectTheta, clock: Clock, state: AspectState
    ) -> AspectSummary:
        """Return the objective and the log likelihood.

        The objective is the tempered log likelihood 1/beta sum n(x, y) log sum_h (p(h) p(x|h)
        p(y|h))^beta. The log likelihood is that of the held-out counts, if there are any. If there
        are none, it is that of the counts, and it is left out while beta is not 1, because it
        would take another pass over the counts.
        """
        return summarise(part, theta, state.evidence, clock.betas[0])

    def _temper(self, state: AspectState, theta: AspectTheta, beta: float) -> None:
        """Store the tempered factors of the posterior in `state`."""
        if beta == 1:
            state.x, state.y, state.weights = theta.x, theta.y, theta.cells
            return
        if state.tempered is None:
            state.tempered = kernel.table_like(theta.x), kernel.table_like(theta.y)
        state.x, state.y = state.tempered
        kernel.power(theta.x, beta, state.x)
        kernel.power(theta.y, beta, state.y)
        width, dtype = theta.x.shape[1], theta.x.dtype
        raised = np.where(theta.weights > 0, np.maximum(theta.weights, TINY) ** beta, 0.0)
        state.weights = kernel.padded(raised, width, dtype)

    def value(self, summary: AspectSummary, theta: AspectTheta) -> Value:
        """Return the objective plus the log prior of the parameters, up to a constant."""
        log_prior = 0.0
        for prior, table in ((self.x_prior, theta.x), (self.y_prior, theta.y)):
            if prior > 0:
                log_prior += prior * kernel.log_sum(table, self.n_components)
        return Value(summary.objective + log_prior, summary.objective + log_prior)

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: AspectData, theta: AspectTheta, turn: int, clock: Clock, state: AspectState
    ) -> AspectTheta:
        """Return the normalised expected counts (Lin 2006, Sec. 3.1).

        The expected counts of a component have the same sum over rows as over columns. So the
        counts of columns are normalised while they are computed.
        """
        pairs, totals = part.pairs, state.totals
        to_x = shares(totals, len(theta.x), self.x_prior / pairs.unit)
        to_y = shares(totals, len(theta.y), self.y_prior / pairs.unit)
        tables = state.x, state.y, state.weights
        y = kernel.maximise(pairs, *tables, state.ratios, to_y)
        x = kernel.rescale(state.sums, to_x)
        whole = totals.sum()
        k = self.n_components
        weights = totals / whole if whole > 0 else np.full(k, 1 / k)
        return AspectTheta(weights, x, y)


def shares(totals: Array, n: int, prior: float) -> tuple[Array, Array]:
    """Return scale and shift from expected counts to probabilities; uniform without counts."""
    mass = totals + n * prior
    gone = mass < TINY * 1e20  # the inverse would be almost infinite
    scale = np.where(gone, 0.0, 1.0 / np.where(gone, 1.0, mass))
    shift = np.where(gone, 1.0 / max(n, 1), prior * scale)
    width = kernel.width_of(len(totals))
    return kernel.padded(scale, width, np.float64), kernel.padded(shift, width, np.float64)


# -- scores of counts under a model -------------------------------------------------------------


def summarise(data: AspectData, theta: Tables, evidence: float, beta: float) -> AspectSummary:
    """Return the objective and the log likelihood of a round; see `Aspect.summarise`."""
    objective = evidence / beta
    if data.held_out is not None:
        return AspectSummary(objective, (log_likelihood(data.held_out, theta),), evidence)
    return AspectSummary(objective, (objective,) if beta == 1 else (), evidence)


def log_likelihood(pairs: Pairs, theta: Tables) -> float:
    """Return sum n(x, y) log p(x, y); an impossible pair counts as log(tiny), about -708."""
    return kernel.evidence(pairs, theta.x, theta.y, theta.cells) * pairs.unit


def divergence(pairs: Pairs, theta: Tables) -> float:
    """Return KL(p~ || p) in nats, which EM minimises (Lin 2006, Sec. 3.1); 0 without counts."""
    return to_divergence(pairs, log_likelihood(pairs, theta))


def to_divergence(pairs: Pairs, evidence: float) -> float:
    """Return KL(p~ || p) from the log likelihood of all counts; at least 0 despite rounding."""
    return max(-pairs.entropy - evidence / pairs.total, 0.0) if pairs.total > 0 else 0.0


def fold_in(pairs: Pairs, theta: AspectTheta, max_iter: int, tol: float) -> Array:
    """Return p(h | row) for rows that the model has not seen, of shape (n, k).

    EM estimates p(h | row) for each row separately, starting from p(h), while p(y|h) stays fixed.
    A row keeps p(h) if it has no counts, or if the model gives all of them probability zero.
    """
    shares = kernel.fold_in(pairs, theta.y, theta.cells, max_iter, tol)[:, : theta.n_components]
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
