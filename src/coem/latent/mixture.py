"""The mixture: one hidden component per row, seen through one or several views."""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal, Self

import numpy as np

from coem.coupling import Coupling, agreement, average, blend, dissent
from coem.engine import Engine
from coem.families.base import Family
from coem.latent.block import Block, Partition
from coem.posterior import Rule, posterior
from coem.stats import Stats
from coem.typing import Array, Matrix, Theta

Weights = Literal["global", "per_view", "uniform"]

WEIGHTS: tuple[Weights, ...] = ("global", "per_view", "uniform")


@dataclass(frozen=True)
class MixtureTheta:
    """Parameters of a mixture.

    The posterior of a view is a function of its family's parameters and its row of
    `log_weights`; `version` counts their updates, so that a cached posterior knows if it is old.
    """

    params: tuple[Theta | None, ...]
    log_weights: Array  # (n_views, n_components)
    version: tuple[int, ...]
    latest: int = 0  # the view whose row of log_weights is the most recent

    @property
    def started(self) -> bool:
        """True if every view has parameters."""
        return all(p is not None for p in self.params)

    @property
    def weights(self) -> Array:
        """Mixture weights of the most recent M step, of shape (n_components,)."""
        return np.asarray(np.exp(self.log_weights[self.latest]))

    def without(self, v: int) -> Self:
        """Return the parameters less those of view `v`, so that their memory can be freed."""
        return replace(self, params=_replaced(self.params, v, None))


@dataclass(frozen=True)
class Summary(Stats):
    """What the E step knows of all rows: sums of row weight times what the row is worth."""

    objective: float
    log_likelihood: Array  # (n_views,), of each view by itself; (1,) for the joint coupling
    dissent: float
    agreeing: float
    comparable: float  # weight of the rows in which two views or more can agree
    mass: Array | None = None  # (n_components,), where there is one posterior for all views

    @property
    def agreement_rate(self) -> float:
        """Share of agreeing rows; 1 if no row has two views to compare."""
        return self.agreeing / self.comparable if self.comparable > 0 else 1.0


@dataclass(frozen=True)
class Expected(Stats):
    """Statistics for one M step."""

    views: tuple[Stats | None, ...]  # None: a view that is not updated
    mass: Array  # (n_components,), for the mixture weights


@dataclass
class Cache:
    """Posteriors of the rows of a partition, one slot a view, one for all under joint coupling."""

    resp: Array  # (n_slots, n, k)
    log_posterior: Array | None  # the same shape; only where views are compared
    evidence: Array  # (n_slots, n)
    version: list[int]
    mass: Array | None = None  # of the components, if the E step has added it up


@dataclass(frozen=True)
class Mixture:
    """A mixture model: which families, how the views are coupled, how weights are set."""

    families: tuple[Family, ...]
    n_components: int
    coupling: Coupling = "co-em"
    rule: Rule = "soft"
    weights: Weights = "global"
    weight_prior: float = 0.0  # pseudo-rows of every component (or class) in the mixture weights
    classes: tuple[int, ...] | None = None  # the class of every component, if there are classes
    dtype: Any = field(default=np.float32)  # of responsibilities

    @property
    def separate(self) -> bool:
        """True if every view keeps a posterior of its own."""
        return self.coupling == "co-em" and len(self.families) > 1

    @property
    def monotone(self) -> bool:
        """True if theory says that the objective never falls at a fixed beta."""
        return not self.separate and all(family.exact for family in self.families)

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return len(self.families) if self.separate else 1

    # -- starts ------------------------------------------------------------------------------

    def from_params(self, params: tuple[Theta, ...], weights: Array | None = None) -> MixtureTheta:
        """Return a start from parameters of every view; uniform weights by default."""
        k, s = self.n_components, len(self.families)
        weights = np.full(k, 1.0 / k) if weights is None else weights
        log_weights = np.broadcast_to(safe_log(weights), (s, k)).copy()
        return MixtureTheta(params, log_weights, (1,) * s)

    def from_resp(self, data: Partition, resp: Array) -> MixtureTheta:
        """Let given responsibilities stand for the views' posteriors until these have parameters.

        `resp` is (n_rows, n_components), the same for all, or has one such array a view.
        """
        k, s = self.n_components, len(self.families)
        cache = self._new_cache(data)
        cache.resp[...] = resp
        cache.version = [0] * len(cache.version)
        data.cache = cache
        return MixtureTheta((None,) * s, np.full((s, k), -np.log(k)), (0,) * s)

    def _new_cache(self, data: Partition) -> Cache:
        slots = len(self.families) if self.separate else 1
        shape = (slots, data.n_rows, self.n_components)
        logs = np.empty(shape, dtype=self.dtype) if self.separate else None
        return Cache(np.empty(shape, dtype=self.dtype), logs, np.empty(shape[:2]), [-1] * slots)

    # -- E step ------------------------------------------------------------------------------

    def e_step(
        self, engine: Engine, data: Partition, theta: MixtureTheta, beta: float, eta: float
    ) -> Summary | None:
        """Bring the posteriors of all rows up to date with `theta`.

        `eta` is used for the objective alone. Returns None if `theta` has no parameters yet.
        """
        if data.cache is None:
            data.cache = self._new_cache(data)
        cache: Cache = data.cache
        versions = theta.version if self.separate else theta.version[:1]
        stale = [v for v, number in enumerate(versions) if cache.version[v] != number]

        def work(block: Block) -> Summary | None:
            values = [self._refresh(block, theta, v, beta, cache) for v in stale]
            if not theta.started:
                return None
            return self._compare(block, cache, eta) if self.separate else values[0]

        summary: Summary | None = engine.reduce(work, data.blocks)
        cache.version = list(versions)
        cache.mass = None if summary is None else summary.mass
        return summary

    def refresh(
        self, engine: Engine, data: Partition, theta: MixtureTheta, v: int, beta: float
    ) -> None:
        """Bring the posterior of view `v` up to date."""
        cache: Cache = data.cache
        engine.map(lambda block: self._refresh(block, theta, v, beta, cache), data.blocks)
        cache.version[v] = theta.version[v]

    def _refresh(
        self, block: Block, theta: MixtureTheta, v: int, beta: float, cache: Cache
    ) -> Summary:
        """Compute one slot of the cache for one block."""
        views = [v] if self.separate else list(range(len(self.families)))
        parts = [self.log_prob(block, theta, u) for u in views]
        result = posterior(
            reduce(np.add, parts),  # all views together (2005, Eq. 19) if they share a posterior
            theta.log_weights[v if self.separate else theta.latest],
            rule=self.rule,
            beta=beta,
            allowed=block.allowed,
            out=cache.resp[v, block.rows],
        )
        cache.evidence[v, block.rows] = result.evidence
        if cache.log_posterior is not None:
            cache.log_posterior[v, block.rows] = result.log_posterior
        weight = block.row_weight()
        return Summary(
            float(weight @ result.objective),
            np.array([weight @ result.evidence]),
            *self._apart(block, theta, parts),
            None if self.separate else _mass(block, result.resp),
        )

    def _apart(
        self, block: Block, theta: MixtureTheta, parts: list[Array]
    ) -> tuple[float, float, float]:
        """Return dissent and agreement of views that share a posterior, from their own ones."""
        if len(parts) == 1:
            return 0.0, 0.0, 0.0
        log_weights = theta.log_weights[theta.latest]
        own = [posterior(part, log_weights, allowed=block.allowed) for part in parts]
        return _agreement(block, np.stack([view.log_posterior for view in own]))

    def log_prob(self, block: Block, theta: MixtureTheta, v: int) -> Array:
        """Return log p(x | component) of one view; zero where the view is empty."""
        log_prob = self.families[v].log_prob(block.views[v], theta.params[v])
        blank = block.blank(v)
        if blank is not None:
            log_prob[blank] = 0.0
        return log_prob

    def _compare(self, block: Block, cache: Cache, eta: float) -> Summary:
        """Return Q^MV (2005, Eq. 12), the views' log likelihoods, and how far they agree."""
        assert cache.log_posterior is not None
        weight, empty = block.row_weight(), block.empty
        resp = cache.resp[:, block.rows]
        logs = cache.log_posterior[:, block.rows].astype(np.float64)
        evidence = cache.evidence[:, block.rows]
        present = np.ones(evidence.shape) if empty is None else (~empty.T).astype(np.float64)
        objective = 0.0
        for v in range(len(resp)):
            mixed = blend(resp, v, eta, empty)
            # log joint = log posterior + evidence; `mixed` is zero in rows empty here
            expected = np.einsum("nk,nk->n", mixed, logs[v]) + evidence[v] * present[v]
            objective += float(weight @ expected)
        return Summary(objective, (evidence * present) @ weight, *_agreement(block, logs))

    def penalty(self, theta: MixtureTheta) -> float:
        """Return the log prior of the parameters."""
        pairs = zip(self.families, theta.params, strict=True)
        total = sum(family.log_prior(params) for family, params in pairs)
        if self.weight_prior and self.weights != "uniform":
            rows = theta.log_weights if self.separate else theta.log_weights[:1]
            total += self.weight_prior * self._log_weight_prior(rows)
        return total

    def _log_weight_prior(self, log_weights: Array) -> float:
        """Return the logarithms of P(class) and P(component | class), added up."""
        if self.classes is None:
            return float(log_weights.sum())
        members = self._members
        of_class = np.log(np.exp(log_weights) @ members)  # (n_views, n_classes)
        within = log_weights - of_class @ members.T
        return float(of_class.sum() + within.sum())

    # -- M step ------------------------------------------------------------------------------

    def m_step(
        self, engine: Engine, data: Partition, theta: MixtureTheta, turn: int, eta: float
    ) -> MixtureTheta:
        """Return the parameters after the M step of a turn (2005, Eq. 17, 22)."""
        resp, mass = self.learn_from(engine, data, turn, eta)
        params = {v: self._maximise(engine, data, v, resp) for v in self.updated(turn)}
        return self._next(theta, params, mass, turn)

    def gather(self, engine: Engine, data: Partition, turn: int, eta: float) -> Expected:
        """Return the statistics of the M step of a turn, to be added to those of other rows."""
        resp, mass = self.learn_from(engine, data, turn, eta)
        stats: list[Stats | None] = [None] * len(self.families)
        for v in self.updated(turn):
            stats[v] = self.stats(engine, data, v, self.weighted(data, v, resp))
        return Expected(tuple(stats), mass)

    def estimate(self, expected: Expected, theta: MixtureTheta, turn: int) -> MixtureTheta:
        """Return the parameters that given statistics lead to."""
        params = {v: self.families[v].estimate(expected.views[v]) for v in self.updated(turn)}
        return self._next(theta, params, expected.mass, turn)

    def updated(self, turn: int) -> list[int]:
        """Return the views that get new parameters in a turn."""
        return [turn] if self.separate else list(range(len(self.families)))

    def learn_from(
        self, engine: Engine, data: Partition, turn: int, eta: float
    ) -> tuple[Array, Array]:
        """Return the responsibilities that a turn learns from, and the mass of the components."""
        cache: Cache = data.cache
        if cache.mass is not None:
            return cache.resp[0], cache.mass
        mixed = np.empty(cache.resp.shape[1:], self.dtype) if self.separate else cache.resp[0]

        def work(block: Block) -> Array:
            resp = cache.resp[:, block.rows]
            if self.separate:
                mixed[block.rows] = blend(resp, turn, eta, block.empty)
            own = not self.separate or self.weights == "per_view"
            mine = mixed[block.rows] if own else average(resp, block.empty)
            return _mass(block, mine)

        return mixed, engine.reduce(work, data.blocks)

    def weighted(self, data: Partition, v: int, resp: Array) -> Array:
        """Return the responsibilities times the row weights, zero where the view is empty."""
        weight = data.view_weight(v)
        # In double: 3 r is r + r + r only if nothing is rounded.
        return resp if weight is None else resp * weight[:, np.newaxis]

    def stats(self, engine: Engine, data: Partition, v: int, resp: Array) -> Stats:
        """Return the statistics of one view under weighted responsibilities."""
        family = self.families[v]
        if family.wide:
            return family.stats(data.views[v], resp)
        gathered: Stats = engine.reduce(
            lambda block: family.stats(block.views[v], resp[block.rows]), data.blocks
        )
        return gathered

    def _maximise(self, engine: Engine, data: Partition, v: int, resp: Array) -> Theta:
        family, resp = self.families[v], self.weighted(data, v, resp)
        if family.wide:
            return family.maximise(data.views[v], resp)
        return family.estimate(self.stats(engine, data, v, resp))

    def _next(
        self, theta: MixtureTheta, params: dict[int, Theta], mass: Array, turn: int
    ) -> MixtureTheta:
        """Return `theta` with new parameters of some views, and new weights."""
        views = range(len(self.families))
        log_weights = theta.log_weights.copy()
        log_weights[turn if self.separate else slice(None)] = self.log_weights(mass)
        return MixtureTheta(
            tuple(params.get(v, theta.params[v]) for v in views),
            log_weights,
            tuple(theta.version[v] + (v in params) for v in views),
            turn,
        )

    @property
    def _members(self) -> Array:
        """Which class each component belongs to: (n_components, n_classes) of zeros and ones."""
        present, codes = np.unique(np.asarray(self.classes), return_inverse=True)
        return np.eye(len(present))[codes]

    def log_weights(self, mass: Array) -> Array:
        """Return the logarithms of the mixture weights for the mass of the components.

        With classes the weight of a component is P(class) P(component | class), each with its
        pseudo-rows (Nigam et al. 2006, Eq. 3.10-3.11).
        """
        if self.classes is None:
            return safe_log(self._shares(mass))
        members = self._members
        weights = members @ self._shares(mass @ members)
        for own in members.T.astype(bool):
            weights[own] *= self._shares(mass[own])
        return safe_log(weights)

    def _shares(self, mass: Array) -> Array:
        """Return the shares of the mass, pseudo-rows added."""
        mass = mass + self.weight_prior
        if self.weights == "uniform" or not mass.sum() > 0:
            return np.full(len(mass), 1.0 / len(mass))
        return np.asarray(mass / mass.sum())


def _agreement(block: Block, logs: Array) -> tuple[float, float, float]:
    """Return the dissent of the rows of a block, the weight that agrees and that could."""
    weight = block.row_weight()
    agreeing, comparable = agreement(logs, block.empty)
    apart = float(weight @ dissent(logs, block.empty))
    return apart, float(weight @ (agreeing * comparable)), float(weight @ comparable)


def _mass(block: Block, resp: Array) -> Array:
    """Return the weighted sum of responsibilities over the rows of a block, in double."""
    if block.weight is None and block.empty is None:
        return np.asarray(resp.sum(axis=0, dtype=np.float64))
    return np.asarray(block.row_weight() @ resp.astype(np.float64, copy=False))


def safe_log(weights: Array) -> Array:
    """Return logarithms that stay finite for components without rows."""
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))


def _replaced(items: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*items[:index], value, *items[index + 1 :])


def pooled(family: Family, X: Matrix, weight: Array | None, empty: Array | None) -> Stats:
    """Return the statistics of all rows as one component."""
    mass = np.ones(X.shape[0]) if weight is None else weight
    mass = mass if empty is None else mass * ~empty
    return family.stats(X, np.asarray(mass, dtype=np.float64)[:, np.newaxis])
