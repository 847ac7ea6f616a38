"""Results of the E step of a mixture, summed over the rows of a block, a partition or a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from coem.agreement import agreement, dissent
from coem.kernels.one_hot import OneHot
from coem.latent.block import Block
from coem.posterior import posterior
from coem.stats import Stats
from coem.typing import Array, Resp


@dataclass(frozen=True)
class Look(Stats):
    """Results of the E step of one slot: sums of row weight times a value of the row."""

    objective: float  # what the posterior rule maximises
    evidence: float  # log likelihood
    mass: Array  # (n_components,), sums of the responsibilities
    dissent: float  # between the views that share the slot
    agreeing: float
    comparable: float


class Seen(Protocol):
    """The posterior of the rows of a block."""

    @property
    def resp(self) -> Resp:
        """Responsibilities (n, k)."""
        ...

    @property
    def evidence(self) -> Array:
        """Log likelihoods (n,)."""
        ...

    @property
    def objective(self) -> Array:
        """What the rule maximises (n,)."""
        ...


def look_at(
    block: Block, seen: Seen, own: Array, apart: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Look:
    """Return the results of the E step of a block; `own` are the weights of rows in the slot.

    `apart` is the `disagreement` of the views.
    """
    evidence = float(block.row_weight() @ seen.evidence)
    return Look(float(own @ seen.objective), evidence, mass_of(block, seen.resp, own), *apart)


@dataclass(frozen=True)
class Looks(Stats):
    """Results of the E steps of several slots."""

    slots: tuple[Look, ...]


@dataclass(frozen=True)
class MixtureSummary(Stats):
    """Results of the E step for all rows: sums of row weight times a value of the row."""

    objective: float
    log_likelihood: Array  # (n_slots,), of each slot separately
    dissent: float
    agreeing: float
    comparable: float  # weight of the rows that at least two views can be compared on
    incomplete: float = 0.0  # weight of the rows that are empty in some of the views
    free_energy: float = 0.0  # of every slot under its own weights, without log priors
    mass: Array = field(default_factory=lambda: np.zeros(0))  # (n_slots, n_components)

    @property
    def agreement_rate(self) -> float:
        """Share of the comparable weight on which views agree; 1 if no row has two views."""
        return self.agreeing / self.comparable if self.comparable > 0 else 1.0

    @classmethod
    def of_one(cls, look: Look) -> Self:
        """Return the summary for a mixture with one slot, which all views share."""
        return cls(
            look.objective,
            np.array([look.evidence]),
            look.dissent,
            look.agreeing,
            look.comparable,
            free_energy=look.objective,
            mass=look.mass[np.newaxis],
        )

    def with_looks(self, looks: Sequence[Look]) -> Self:
        """Return the summary with free energy and mass from the E steps of all slots."""
        value = float(sum(look.objective for look in looks))
        return replace(self, free_energy=value, mass=np.stack([look.mass for look in looks]))


def compare(
    block: Block, logs: Array, evidence: Array, lesson: Callable[[int], Array]
) -> MixtureSummary:
    """Return Q^MV (2005, Eq. 12), the log likelihood per view, and how far the views agree.

    `logs` (n_views, n, k) are log posteriors, `evidence` (n_views, n) log likelihoods, and
    ``lesson(v)`` are the responsibilities that view `v` learns from.
    """
    weight, empty = block.row_weight(), block.empty
    present = np.ones(evidence.shape) if empty is None else (~empty.T).astype(np.float64)
    objective = 0.0
    for v in range(len(logs)):
        # The log joint is log posterior + evidence. The lesson is zero in rows empty in view v.
        expected = np.einsum("nk,nk->n", lesson(v), logs[v]) + evidence[v] * present[v]
        objective += float(weight @ expected)
    incomplete = 0.0 if empty is None else float(weight @ empty.any(axis=1))
    likelihoods = (evidence * present) @ weight
    return MixtureSummary(objective, likelihoods, *_agreement(block, logs), incomplete)


def disagreement(
    block: Block, log_weights: Array, parts: list[Array]
) -> tuple[float, float, float]:
    """Return dissent and agreement of views that share a slot, from each view's own posterior."""
    if len(parts) == 1:
        return 0.0, 0.0, 0.0
    own = [posterior(part, log_weights, allowed=block.allowed) for part in parts]
    return _agreement(block, np.stack([view.log_posterior for view in own]))


def _agreement(block: Block, logs: Array) -> tuple[float, float, float]:
    """Return the dissent in a block, the weight that agrees, and the weight that is comparable."""
    weight = block.row_weight()
    agreeing, comparable = agreement(logs, block.empty)
    apart = float(weight @ dissent(logs, block.empty))
    return apart, float(weight @ (agreeing * comparable)), float(weight @ comparable)


def mass_of(block: Block, resp: Resp, weight: Array) -> Array:
    """Return the weighted sum of responsibilities over the rows of a block, in float64."""
    plain = block.weight is None and block.empty is None
    if plain and (isinstance(resp, OneHot) or resp.dtype != np.float64):
        # A product is faster, but not if it needs a copy.
        return np.asarray(resp.sum(axis=0, dtype=np.float64))
    return np.asarray(weight @ resp.astype(np.float64, copy=False))
