"""The mixture: one hidden component per row, seen through one or several views.

It is composed of emissions (a family per view), mixture weights, a coupling of the views and a
posterior rule. Each is a value with a small interface; this file only brings them together.
"""

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np

from coem.coupling import CoEM, Coupling, Joint
from coem.kernels import threads
from coem.kernels.row_lists import RowLists
from coem.latent.block import Block, Partition, fill_resp
from coem.latent.emissions import Emissions
from coem.latent.pruning import Bounds, Moved, Pause, advance, of_all, worth_it
from coem.latent.summaries import (
    Look,
    Looks,
    MixtureSummary,
    compare,
    disagreement,
    look_at,
    mass_of,
)
from coem.latent.weights import GlobalWeights, Weights, safe_log
from coem.posterior import Rule, Soft
from coem.protocols import Clock, Value
from coem.stats import Stats
from coem.typing import Array, Resp, Theta


@dataclass(frozen=True)
class MixtureTheta:
    """Parameters of a mixture.

    The posterior of a view follows from its family's parameters and its row of `log_weights`;
    `version` counts their updates, so that a state knows which of its posteriors are stale.
    """

    params: tuple[Theta | None, ...]
    log_weights: Array  # (n_views, n_components)
    version: tuple[int, ...]
    latest: int = 0  # the view whose row of log_weights is the most recent

    @property
    def started(self) -> bool:
        """True if every view has parameters."""
        return all(p is not None for p in self.params)

    def of_view(self, v: int) -> Theta:
        """Return the parameters of view `v`, which must have some."""
        params = self.params[v]
        assert params is not None
        return params

    @property
    def of_views(self) -> tuple[Theta, ...]:
        """The parameters of all views, which must all have some."""
        return tuple(self.of_view(v) for v in range(len(self.params)))

    @property
    def weights(self) -> Array:
        """Mixture weights of the most recent M step, of shape (n_components,)."""
        return np.asarray(np.exp(self.log_weights[self.latest]))

    def without(self, turn: int) -> Self:
        """Return the parameters without the tables that a turn replaces."""
        kept = tuple(None if v == turn else p for v, p in enumerate(self.params))
        return replace(self, params=kept)


@dataclass(frozen=True)
class Expected(Stats):
    """Statistics for one M step."""

    views: tuple[Stats | None, ...]  # None: a view that is not updated
    mass: Array  # (n_components,), for the mixture weights


@dataclass(frozen=True)
class MixtureState:
    """Posteriors of the rows of a partition, one slot per posterior of the coupling."""

    resp: Resp  # (n_slots, n, k)
    log_posterior: Array | None  # the same shape; only where views are compared
    evidence: Array  # (n_slots, n)
    version: tuple[int, ...]  # of the parameters behind every slot
    params: tuple[Theta | None, ...]  # those behind the slots that the next M step needs
    looks: tuple[Look | None, ...]  # what the E step saw in every slot; None for a given start
    bounds: Bounds | Pause | None = None  # of scores, where many components can be left out


@dataclass(frozen=True)
class Mixture:
    """A mixture over one or several views. With one view every coupling is `Joint`."""

    emissions: Emissions
    n_components: int
    coupling: Coupling = field(default_factory=CoEM)
    rule: Rule = field(default_factory=Soft)
    prior: Weights = field(default_factory=GlobalWeights)
    dtype: Any = np.float32  # of responsibilities

    def __post_init__(self) -> None:
        """Replace the coupling if there is nothing to couple."""
        if len(self.emissions) == 1:
            object.__setattr__(self, "coupling", Joint())

    @property
    def slots(self) -> tuple[tuple[int, ...], ...]:
        """For each posterior that is kept, the views that it is inferred from."""
        return self.coupling.slots(len(self.emissions))

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return len(self.slots)

    def from_params(self, params: tuple[Theta, ...], weights: Array | None = None) -> MixtureTheta:
        """Return a start from parameters of every view; uniform weights by default."""
        k, s = self.n_components, len(self.emissions)
        weights = np.full(k, 1.0 / k) if weights is None else weights
        log_weights = np.broadcast_to(safe_log(weights), (s, k)).copy()
        return MixtureTheta(params, log_weights, (1,) * s)

    def unknown(self) -> MixtureTheta:
        """Return parameters that no view has yet: the partitions have a given start."""
        k, s = self.n_components, len(self.emissions)
        return MixtureTheta((None,) * s, np.full((s, k), -np.log(k)), (0,) * s)

    def overall_weights(self, theta: MixtureTheta, has_rows: Array) -> Array:
        """Return one set of mixture weights (k,); `has_rows` marks views with any rows."""
        if self.n_turns == 1:
            return theta.weights
        return self.prior.overall(theta.log_weights, theta.latest, has_rows)

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: Partition, theta: MixtureTheta, clock: Clock, state: MixtureState | None
    ) -> MixtureState:
        """Return the posteriors of all rows under `theta`."""
        state = self._new_state(part) if state is None else state
        versions = tuple(theta.version[slot[0]] for slot in self.slots)
        stale = [s for s, number in enumerate(versions) if state.version[s] != number]
        if not stale:
            return state
        params = self.emissions.needed(theta.params)
        state = replace(self._compact(state), version=versions, params=params)
        table = self._table(part, theta, clock.betas[0])
        if table is not None:
            return self._infer_few(part, theta, clock.betas[0], state, table)
        state = self._with_room(state)

        def work(block: Block) -> Looks:
            looks = (self._infer_slot(block, theta, s, clock.betas[s], state) for s in stale)
            return Looks(tuple(looks))

        new = dict(zip(stale, threads.add_up(work, part.blocks).slots, strict=True))
        return replace(state, looks=tuple(new.get(s, look) for s, look in enumerate(state.looks)))

    def _new_state(self, part: Partition) -> MixtureState:
        """Return a state that is stale, or the given start of views without parameters."""
        shape = (self.n_turns, part.n_rows, self.n_components)
        logs = np.empty(shape, dtype=self.dtype) if self.n_turns > 1 else None
        resp: Resp = np.empty(shape, dtype=self.dtype)  # takes no memory until it is filled
        version = -1
        if part.given is not None:
            version, wide = 0, self.emissions.lists_words(part.views, self.n_components)
            if wide and self.n_turns == 1 and part.given.dtype.kind in "iu":
                resp = RowLists.of_labels(part.given.ravel(), self.n_components, self.dtype)
            else:
                fill_resp(resp, part.given)
        versions, looks = (version,) * self.n_turns, (None,) * self.n_turns
        none = (None,) * len(self.emissions)
        return MixtureState(resp, logs, np.empty(shape[:2]), versions, none, looks)

    def _compact(self, state: MixtureState) -> MixtureState:
        """Return the state of a single posterior with memory for the compact form of the rule.

        Nothing changes where there is none, nor after the first E step, which drops the start.
        """
        if state.looks != (None,) or not self.emissions.takes_labels:
            return state
        resp = self.rule.compact(state.resp.shape)
        return state if resp is None else replace(state, resp=resp)

    def _table(self, part: Partition, theta: MixtureTheta, beta: float) -> Any:
        """Return the table of scores if components may be left out, and that can save time."""
        if self.n_turns > 1 or self.dtype != np.float32:
            return None
        table = self.emissions.score_table(theta.params)
        if table is None or self.rule.reach(beta, self.n_components) is None:
            return None
        return table if worth_it(part, table) else None

    def _with_room(self, state: MixtureState) -> MixtureState:
        """Return the state with memory for all responsibilities, and without bounds."""
        if not isinstance(state.resp, RowLists):
            return state
        return replace(state, resp=np.empty(state.resp.shape, dtype=self.dtype), bounds=None)

    def _infer_few(
        self, part: Partition, theta: MixtureTheta, beta: float, state: MixtureState, table: Any
    ) -> MixtureState:
        """Return the new state of one slot; a row has scores of the components that can matter."""
        log_weights, k = theta.log_weights[0], self.n_components
        reach = self.rule.reach(beta, k)
        assert reach is not None
        bounds = advance(state.bounds, part, table, log_weights, reach)

        def work(block: Block) -> tuple[Look, RowLists]:
            few = None
            if isinstance(bounds, Moved):
                chances = bounds.chances(block, log_weights, reach)
                few = None if chances.are_many(k) else chances.posterior(self.rule, beta, k)
            if few is None:
                log_prob = self.emissions.log_prob(block, theta.of_view(0), 0)
                if isinstance(bounds, Bounds):
                    bounds.note(block, log_prob)
                log_prob += log_weights  # in place: a new array of that size takes as long
                few = of_all(log_prob, self.rule, beta, reach, block.allowed)
            state.evidence[0, block.rows] = few.evidence
            return look_at(block, few, block.row_weight()), few.resp

        parts = threads.spread(work, part.blocks)
        resp = replace(RowLists.joined([lists for _, lists in parts]), slots=True)
        look = reduce(add, [look for look, _ in parts])
        kept = bounds.bounds if isinstance(bounds, Moved) else bounds
        return replace(state, resp=resp, looks=(look,), bounds=kept)

    def _infer_slot(
        self, block: Block, theta: MixtureTheta, s: int, beta: float, state: MixtureState
    ) -> Look:
        """Compute one slot of the state for one block."""
        views = self.slots[s]
        parts = [self.emissions.log_prob(block, theta.of_view(v), v) for v in views]
        log_weights = theta.log_weights[views[0]]
        result = self.rule.apply(
            reduce(np.add, parts),  # all views together (2005, Eq. 19) if they share a posterior
            log_weights,
            beta=beta,
            allowed=block.allowed,
            out=state.resp[s, block.rows],
        )
        state.evidence[s, block.rows] = result.evidence
        if state.log_posterior is not None:
            state.log_posterior[s, block.rows] = result.log_posterior
        own = block.row_weight() if self.n_turns == 1 else block.view_weight(views[0])
        return look_at(block, result, own, disagreement(block, log_weights, parts))

    def summarise(
        self, part: Partition, theta: MixtureTheta, clock: Clock, state: MixtureState
    ) -> MixtureSummary:
        """Return objectives, log likelihoods, and how far the views agree."""
        looks = [look for look in state.looks if look is not None]
        if self.n_turns == 1:
            return MixtureSummary.of_one(looks[0])

        def work(block: Block) -> MixtureSummary:
            resp, logs = state.resp[:, block.rows], state.log_posterior
            assert logs is not None
            return compare(
                block,
                logs[:, block.rows].astype(np.float64),
                state.evidence[:, block.rows],
                lambda turn: self.coupling.lesson(resp, turn, clock.eta, block.empty),
            )

        summary: MixtureSummary = threads.add_up(work, part.blocks)
        return summary.with_looks(looks)

    def value(self, summary: MixtureSummary, theta: MixtureTheta) -> Value:
        """Return the penalised objective and the penalised free energy.

        With several posteriors the objective is Q^MV (2005, Eq. 12). The free energy is that of
        each posterior under the parameters at hand. Global weights change in every turn, so that
        the earlier views of a round used older weights than the latest: their posteriors count
        with the latest ones.
        """
        rows = theta.log_weights[[slot[0] for slot in self.slots]]
        prior = self.emissions.log_prior(theta.of_views)
        objective = summary.objective + (prior + self.prior.log_prior(rows))
        if self.n_turns == 1:
            return Value(objective, objective)
        latest = np.broadcast_to(theta.log_weights[theta.latest], rows.shape)
        latest = latest if self.prior.shared else rows
        free_energy = summary.free_energy + float((summary.mass * (latest - rows)).sum())
        return Value(objective, free_energy + (prior + self.prior.log_prior(latest)))

    def never_falls(self, clock: Clock, summary: MixtureSummary) -> bool:
        """Return True if theory says that the free energy cannot fall at a fixed clock.

        Global weights give all rows the same say, however many views a row has. With rows that are
        empty in some views that is not the maximum of the free energy.
        """
        complete = not self.prior.shared or self.n_turns == 1 or summary.incomplete == 0
        return self.emissions.exact and self.coupling.never_falls(clock.eta) and complete

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: Partition, theta: MixtureTheta, turn: int, clock: Clock, state: MixtureState
    ) -> MixtureTheta:
        """Return the parameters after the M step of a turn (2005, Eq. 17, 22)."""
        resp, mass = self.lesson(part, turn, clock.eta, state)
        views = self.slots[turn]
        params = {v: self.emissions.maximise(part, v, resp, state.params[v]) for v in views}
        return self._next(theta, params, mass, turn)

    def gather(
        self,
        part: Partition,
        theta: MixtureTheta,
        turn: int,
        clock: Clock,
        state: MixtureState,
        total: Expected | None = None,
    ) -> Expected:
        """Return the statistics of the M step of a turn, added to those of other rows."""
        resp, mass = self.lesson(part, turn, clock.eta, state)
        stats: list[Stats | None] = [None] * len(self.emissions)
        for v in self.slots[turn]:
            weighted = self.emissions.weighted(part, v, resp)
            known = None if total is None else total.views[v]
            stats[v] = self.emissions.stats(part, v, weighted, state.params[v], known)
        # A new array: the mass of a state is a part of its summary, too.
        return Expected(tuple(stats), mass + (0.0 if total is None else total.mass))

    def estimate(self, stats: Expected, theta: MixtureTheta, turn: int) -> MixtureTheta:
        """Return the parameters for the statistics of all rows."""
        params = {v: self.emissions.estimate(v, stats.views[v]) for v in self.slots[turn]}
        return self._next(theta, params, stats.mass, turn)

    def lesson(
        self, part: Partition, turn: int, eta: float, state: MixtureState
    ) -> tuple[Resp, Array]:
        """Return the responsibilities that a turn learns from, and the mass of the components."""
        look = state.looks[0]
        if self.n_turns == 1 and look is not None:
            return state.resp[0], look.mass
        mixed = state.resp[0] if self.n_turns == 1 else np.empty(state.resp.shape[1:], self.dtype)

        def work(block: Block) -> Array:
            resp = state.resp[:, block.rows]
            if self.n_turns > 1:
                mixed[block.rows] = self.coupling.lesson(resp, turn, eta, block.empty)
            learnt = self.prior.lesson(resp, mixed[block.rows], block.empty)
            return mass_of(block, learnt, block.row_weight())

        return mixed, threads.add_up(work, part.blocks)

    def _next(
        self, theta: MixtureTheta, params: dict[int, Theta], mass: Array, turn: int
    ) -> MixtureTheta:
        """Return `theta` with new parameters of some views, and new weights."""
        views = range(len(self.emissions))
        log_weights = theta.log_weights.copy()
        log_weights[list(self.slots[turn])] = self.prior.estimate(mass)
        return MixtureTheta(
            tuple(params.get(v, theta.params[v]) for v in views),
            log_weights,
            tuple(theta.version[v] + (v in params) for v in views),
            self.slots[turn][0],
        )
