"""The chain: a hidden state per row that depends on the state of the row before.

It is a Markov prior over the same emissions as those of a mixture. Baum-Welch is the loop of
`coem.em` with this latent structure.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from coem.kernels import chain as kernel
from coem.kernels import threads
from coem.latent.block import Block, fill_resp
from coem.latent.emissions import Emissions
from coem.latent.markov import Markov, MarkovStats, MarkovTheta, counts_of
from coem.latent.sequences import SequenceBlock, Sequences
from coem.protocols import Clock, Value
from coem.stats import Stats
from coem.typing import Array, Theta


@dataclass(frozen=True)
class ChainTheta:
    """Parameters of a chain; `version` counts their updates.

    Before the first M step there are no emissions. If there is a `markov` then, that M step keeps
    it: the given start is for the emissions alone.
    """

    params: tuple[Theta, ...] | None
    markov: MarkovTheta | None
    version: int

    @property
    def started(self) -> bool:
        """True if there are parameters."""
        return self.version > 0

    @property
    def of_views(self) -> tuple[Theta, ...]:
        """The parameters of all views, which must have some."""
        assert self.params is not None
        return self.params

    @property
    def of_chain(self) -> MarkovTheta:
        """The probabilities of the chain, which must have some."""
        assert self.markov is not None
        return self.markov

    def without(self, turn: int) -> Self:
        """Return the parameters without the tables that the M step replaces."""
        return replace(self, params=None)


@dataclass(frozen=True)
class ChainSummary(Stats):
    """Results of the E step: sums of sequence weight times a value of the sequence."""

    objective: float  # what the posterior maximises
    evidence: float  # log likelihood
    counts: MarkovStats

    @property
    def log_likelihood(self) -> tuple[float]:
        """Log likelihood of all views together."""
        return (self.evidence,)

    @property
    def dissent(self) -> float:
        """Zero: the views share one posterior."""
        return 0.0

    @property
    def agreement_rate(self) -> float:
        """One: the views share one posterior."""
        return 1.0


@dataclass(frozen=True)
class ChainState:
    """Posteriors of the rows of a partition."""

    resp: Array  # (n, k)
    version: int  # of the parameters behind them
    params: tuple[Theta | None, ...]  # those that the next M step needs
    summary: ChainSummary | None  # None for a given start


@dataclass(frozen=True)
class ChainStats(Stats):
    """Statistics for one M step."""

    views: tuple[Stats, ...]
    counts: MarkovStats


@dataclass(frozen=True)
class Chain:
    """A hidden Markov model over one or several views: their densities are multiplied."""

    emissions: Emissions
    n_components: int
    prior: Markov
    hard: bool = False  # the best path in place of all paths: Viterbi training
    dtype: Any = field(default=np.float64)  # of responsibilities

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return 1

    def unknown(self, markov: MarkovTheta | None = None) -> ChainTheta:
        """Return parameters without emissions: the partitions have a given start.

        The first M step keeps `markov`, or estimates it from the given start if it is None.
        """
        return ChainTheta(None, markov, 0)

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: Sequences, theta: ChainTheta, clock: Clock, state: ChainState | None
    ) -> ChainState:
        """Return the posteriors of all rows under `theta`."""
        state = self._new_state(part) if state is None else state
        if state.version == theta.version:
            return state
        resp, blocks = state.resp, part.sequence_blocks

        def work(block: SequenceBlock) -> ChainSummary:
            return self._infer_block(block, theta, clock.betas[0], resp[block.rows])

        summary: ChainSummary
        if len(blocks) < threads.n_workers():  # the threads then share the pieces of each block
            summary = reduce(add, [work(block) for block in blocks])
        else:
            summary = threads.add_up(work, blocks)
        return ChainState(resp, theta.version, self.emissions.needed(theta.of_views), summary)

    def _new_state(self, part: Sequences) -> ChainState:
        """Return a state that is stale, or the given start."""
        resp = np.empty((part.n_rows, self.n_components), dtype=self.dtype)
        none = (None,) * len(self.emissions)
        if part.given is None:
            return ChainState(resp, -1, none, None)
        fill_resp(resp[np.newaxis], part.given)
        return ChainState(resp, 0, none, None)

    def _infer_block(
        self, block: SequenceBlock, theta: ChainTheta, beta: float, resp: Array
    ) -> ChainSummary:
        """Fill the posteriors of some sequences."""
        log_prob, weight, markov = (
            self.log_prob(block, theta),
            block.sequence_weight,
            theta.of_chain,
        )
        chain = block.offsets, markov.log_start, markov.log_transition, block.allowed
        with numbered(block):
            if self.hard:
                evidence = kernel.evidence(log_prob, *chain)
                best = kernel.viterbi(log_prob, *chain, weights=weight, resp=resp)
                objective, counts = best.log_joint, MarkovStats(best.starts, best.transitions)
            else:
                all_paths = kernel.forward_backward(
                    log_prob, *chain, beta=beta, weights=weight, resp=resp
                )
                evidence, objective = all_paths.evidence, all_paths.objective
                counts = MarkovStats(all_paths.starts, all_paths.transitions)
        return ChainSummary(_total(objective, weight), _total(evidence, weight), counts)

    def log_prob(self, block: SequenceBlock, theta: ChainTheta) -> Array:
        """Return log p(row | state) of all views together, in float64."""
        views = range(len(self.emissions))

        def of_piece(piece: Block) -> Array:
            parts = (self.emissions.log_prob(piece, theta.of_views[v], v) for v in views)
            return np.ascontiguousarray(reduce(np.add, parts), dtype=np.float64)

        pieces = threads.spread(of_piece, block.pieces)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def summarise(
        self, part: Sequences, theta: ChainTheta, clock: Clock, state: ChainState
    ) -> ChainSummary:
        """Return objective, log likelihood and counts."""
        assert state.summary is not None
        return state.summary

    def value(self, summary: ChainSummary, theta: ChainTheta) -> Value:
        """Return the penalised objective, which is also the free energy."""
        prior = self.emissions.log_prior(theta.of_views) + self.prior.log_prior(theta.of_chain)
        return Value(summary.objective + prior, summary.objective + prior)

    def never_falls(self, clock: Clock, summary: ChainSummary) -> bool:
        """Return True if theory says that the objective cannot fall at a fixed clock."""
        return self.emissions.exact

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: Sequences, theta: ChainTheta, turn: int, clock: Clock, state: ChainState
    ) -> ChainTheta:
        """Return the parameters after an M step."""
        before = enumerate(state.params)
        params = tuple(self.emissions.maximise(part, v, state.resp, old) for v, old in before)
        return self._next(theta, params, self._counts(part, state))

    def gather(
        self,
        part: Sequences,
        theta: ChainTheta,
        turn: int,
        clock: Clock,
        state: ChainState,
        total: ChainStats | None = None,
    ) -> ChainStats:
        """Return the statistics of an M step, added to those of other sequences."""
        stats = []
        for v, before in enumerate(state.params):
            weighted = self.emissions.weighted(part, v, state.resp)
            known = None if total is None else total.views[v]
            stats.append(self.emissions.stats(part, v, weighted, before, known))
        # The counts of a state are a part of its summary, too: nothing is added to their memory.
        counts = self._counts(part, state)
        return ChainStats(tuple(stats), counts if total is None else total.counts + counts)

    def estimate(self, stats: ChainStats, theta: ChainTheta, turn: int) -> ChainTheta:
        """Return the parameters for the statistics of all sequences."""
        params = tuple(self.emissions.estimate(v, own) for v, own in enumerate(stats.views))
        return self._next(theta, params, stats.counts)

    def _counts(self, part: Sequences, state: ChainState) -> MarkovStats:
        if state.summary is not None:
            return state.summary.counts
        return counts_of(state.resp, part.offsets, part.weight)

    def _next(
        self, theta: ChainTheta, params: tuple[Theta, ...], counts: MarkovStats
    ) -> ChainTheta:
        markov = None if theta.started else theta.markov
        return ChainTheta(params, markov or self.prior.estimate(counts), theta.version + 1)


@contextmanager
def numbered(block: SequenceBlock) -> Iterator[None]:
    """Make errors of the kernels name a sequence by its number among all sequences."""
    try:
        yield
    except kernel.ImpossibleSequence as error:
        raise kernel.ImpossibleSequence(block.first + error.sequence) from None


def _total(values: Array, weight: Array | None) -> float:
    return float(values.sum() if weight is None else weight @ values)
