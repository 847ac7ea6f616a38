"""Posterior rules: from the log joint of some rows to responsibilities and their value.

A rule is a value. To add one, write a class with the method of `Rule` and `register` it; the laws
of rules then run on it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coem.kernels import posterior as kernel
from coem.kernels.one_hot import OneHot
from coem.typing import Array, Resp

LOST = 1e-9  # the largest share of a row that components without a score may have


class Posterior(NamedTuple):
    """What one view knows of the rows of a block."""

    resp: Resp  # (n, k)
    log_posterior: Array  # (n, k) float64, log p(component | row) at beta = 1; see `Rule.compact`
    evidence: Array  # (n,) float64, log p(row)
    objective: Array  # (n,) float64, what the rule maximises, before the row weight


class Rule(ABC):
    """How responsibilities follow from the log joint. A subclass is a frozen dataclass."""

    @abstractmethod
    def apply(
        self,
        log_prob: Array,
        log_weights: Array,
        *,
        beta: float = 1.0,
        allowed: Array | None = None,
        out: Resp | None = None,
    ) -> Posterior:
        """Return the posterior of some rows.

        Parameters
        ----------
        log_prob : ndarray of shape (n, k), float64
            Log p(x | component). Overwritten.
        log_weights : ndarray of shape (k,)
            Log mixture weights; must be finite.
        beta : float
            Inverse temperature. At 0 every allowed component gets the same.
        allowed : ndarray of bool of shape (n, k), optional
            Which components a row may belong to: how labels enter.
        out : ndarray of shape (n, k), optional
            Where the responsibilities go, float32 or float64; by default a new float64 array. In
            single precision those below 1e-9 are zero: after a few rounds most rows have one or
            two components left, and the M step skips the others. If the rule has a `compact`
            form, some rows of it can also be `out`.
        """

    def compact(self, shape: tuple[int, ...]) -> OneHot | None:
        """Return memory for responsibilities of a shape (..., n, k) that is smaller than an array.

        Return None if the rule needs the array. The compact form is used where no views are
        compared, with families that take labels (`Family.takes_labels`). A posterior in compact
        form has no log posterior: that array has no rows.
        """
        return None

    def reach(self, beta: float, n_components: int) -> float | None:
        """Return how far behind the best log joint of a row a component can still matter.

        Components that are further behind have less than `LOST` of the row, all together, and may
        be left out. Return None if every component matters. It is asked for in single precision.
        """
        return None

    @abstractmethod
    def entropy(self, resp: Array) -> Array:
        """Return the entropy (n,) of responsibilities that counts in the free energy.

        The objective of a row is its expected log joint plus this entropy divided by beta. Of all
        responsibilities that a rule may return, it returns those with the largest objective.
        """


@dataclass(frozen=True)
class _KernelRule(Rule):
    """A rule that the compiled kernel knows."""

    hard: ClassVar[bool]

    def reach(self, beta: float, n_components: int) -> float | None:
        """Return how far behind the best log joint a component can still matter; see `Rule`."""
        if beta <= 0:
            return None
        # The evidence, which is not tempered, is to lose no more than the responsibilities.
        return float(np.log(n_components / LOST)) / min(beta, 1.0)

    def apply(
        self,
        log_prob: Array,
        log_weights: Array,
        *,
        beta: float = 1.0,
        allowed: Array | None = None,
        out: Array | None = None,
    ) -> Posterior:
        """Return the posterior of some rows; see `Rule`."""
        log_joint = np.ascontiguousarray(log_prob, dtype=np.float64)
        resp = np.empty(log_joint.shape) if out is None else out
        evidence, objective = kernel.posterior(
            log_joint, log_weights, allowed, beta=beta, hard=self.hard, resp=resp
        )
        return Posterior(resp, log_joint, evidence, objective)


@dataclass(frozen=True)
class Soft(_KernelRule):
    r"""Responsibilities :math:`\propto (\alpha_j p(x \mid j))^\beta`.

    The objective is the tempered free energy
    :math:`\frac{1}{\beta} \log \sum_j (\alpha_j p(x \mid j))^\beta`.
    """

    hard: ClassVar[bool] = False

    def entropy(self, resp: Array) -> Array:
        """Return Shannon's entropy in nats."""
        prob = np.asarray(resp, dtype=np.float64)
        logs = np.log(np.where(prob > 0, prob, 1.0))
        return np.asarray(-np.einsum("nk,nk->n", prob, logs))


@dataclass(frozen=True)
class Hard(_KernelRule):
    """All to the best component, whose log joint is the objective (classification EM)."""

    hard: ClassVar[bool] = True

    def apply(
        self,
        log_prob: Array,
        log_weights: Array,
        *,
        beta: float = 1.0,
        allowed: Array | None = None,
        out: Resp | None = None,
    ) -> Posterior:
        """Return the posterior of some rows; see `Rule`."""
        if not isinstance(out, OneHot):
            return super().apply(log_prob, log_weights, beta=beta, allowed=allowed, out=out)
        log_joint = np.ascontiguousarray(log_prob, dtype=np.float64)
        values = kernel.assign(log_joint, log_weights, allowed, out.labels)
        return Posterior(out, log_joint[:0], *values)

    def compact(self, shape: tuple[int, ...]) -> OneHot | None:
        """Return memory for one label per row."""
        return OneHot(np.empty(shape[:-1], dtype=np.int32), shape[-1])

    def entropy(self, resp: Array) -> Array:
        """Return zeros: no other assignment is considered."""
        return np.zeros(len(resp))


RULES: dict[str, Rule] = {}


def register(name: str, rule: Rule) -> None:
    """Let estimators take a posterior rule by its name."""
    if not isinstance(rule, Rule):
        raise TypeError(f"rule must be a Rule, got {rule!r}")
    RULES[name] = rule


register("soft", Soft())
register("hard", Hard())


def as_rule(value: str | Rule) -> Rule:
    """Return the posterior rule that a name stands for, or the rule itself."""
    if isinstance(value, Rule):
        return value
    if not isinstance(value, str) or value not in RULES:
        raise ValueError(f"posterior must be one of {', '.join(map(repr, RULES))}, got {value!r}")
    return RULES[value]


def posterior(
    log_prob: Array, log_weights: Array, *, rule: str | Rule = "soft", **settings: Any
) -> Posterior:
    """Return the posterior of some rows by a rule; see `Rule.apply` for the settings."""
    return as_rule(rule).apply(log_prob, log_weights, **settings)
