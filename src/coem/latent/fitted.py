"""A fitted mixture: what it says of rows that it may not have seen."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, Self

import numpy as np
from scipy.special import log_softmax

from coem.agreement import dissent
from coem.calibration import bounded
from coem.coupling import average
from coem.latent.block import Block
from coem.latent.mixture import Mixture, MixtureTheta
from coem.latent.weights import safe_log
from coem.posterior import Posterior, posterior
from coem.typing import Array


class Reading(NamedTuple):
    """All that a mixture says of some rows, from one pass over their views."""

    proba: Array  # (n, k): the posterior that assigns rows
    view_proba: Array  # (n, n_views, k): the posterior of every view by itself
    disagreement: Array  # (n,): how much the views of a row disagree, in nats
    log_likelihood: Array  # (n,): log p(row), all views together
    empty: Array  # (n, n_views) bool


@dataclass(frozen=True)
class Fitted:
    """A mixture with its parameters, and the rule by which it assigns rows.

    `weights` (k,) are those of the joint posterior; each view's own are in `theta`.
    """

    mixture: Mixture
    theta: MixtureTheta
    weights: Array
    assign: str  # "joint" (2005, Eq. 18-19) or "average" (2004, Eq. 7)
    beta: float  # inverse temperature
    limit: float = np.inf  # the most evidence of a row, in nats, in `proba` and `log_proba`

    @property
    def plain(self) -> Self:
        """The same parameters with all inverse temperatures at 1: a density of rows."""
        emissions = self.mixture.emissions.tempered(())
        return replace(self, mixture=replace(self.mixture, emissions=emissions), beta=1.0)

    def log_prob(self, block: Block, v: int) -> Array:
        """Return beta log p(x | component) of one view, (n, k)."""
        return self.mixture.emissions.log_prob(block, self.theta.of_view(v), v)

    def joint(self, block: Block, beta: float) -> Posterior:
        """Return the posterior of all views together, 2005, Eq. 19."""
        return self._joint(self._log_probs(block), beta)

    def view_posteriors(self, block: Block) -> Array:
        """Return the posteriors (n_views, n, k) of every view by itself, as the fit has them."""
        return _resp(self._by_view(self._log_probs(block), self.beta))

    def proba(self, block: Block) -> Array:
        """Return the posterior that assigns rows, (n, k)."""
        if self.assign == "joint":
            return self._placed(block, self._of_joint(self.joint(block, self.beta)))
        return self._placed(block, self._of_views(self.view_posteriors(block), block))

    def log_proba(self, block: Block) -> Array:
        """Return the logarithm of that posterior, which distinguishes unlikely components."""
        if self.assign == "joint":
            log_proba = self.joint(block, 1.0).log_posterior
            # For beta = 1 too: beside an evidence of 1e8 the differences have lost their sum.
            log_proba = log_softmax(self.beta * log_proba, axis=1)
        else:
            log_proba = safe_log(average(self.view_posteriors(block), block.empty))
        if np.isfinite(self.limit):
            log_proba = bounded(log_proba, self.weights, self.limit)
        if block.empty is not None:
            log_proba[block.empty.all(axis=1)] = safe_log(self._prior)
        return np.asarray(log_proba)

    def disagreement(self, block: Block) -> Array:
        """Return the share of each row in the dissent (2005, Eq. 10), untempered, (n,)."""
        return _dissent(self._by_view(self._log_probs(block), 1.0), block.empty)

    def read(self, block: Block) -> Reading:
        """Return all of the above; every view is evaluated once.

        The evidence and the log posterior of a `Posterior` do not depend on beta, so that one
        posterior serves for both the tempered and the untempered values, if views are not tempered.
        """
        plain = self.plain._log_probs(block)
        betas = self.mixture.emissions.betas
        log_probs = [x * beta for x, beta in zip(plain, betas, strict=True)] if betas else plain
        joint = self._joint([log_probs[0].copy(), *log_probs[1:]], self.beta)
        evidence = self._joint(plain, 1.0).evidence if betas else joint.evidence
        by_view = self._by_view(log_probs, self.beta)
        view_proba = _resp(by_view)
        of_views = self.assign != "joint"
        proba = self._of_views(view_proba, block) if of_views else self._of_joint(joint)
        empty = np.zeros((block.n_rows, len(log_probs)), dtype=bool)
        return Reading(
            self._placed(block, proba),
            view_proba.transpose(1, 0, 2),
            _dissent(by_view, block.empty),
            evidence,
            empty if block.empty is None else block.empty,
        )

    # `posterior` overwrites the log probabilities that it is given.

    def _log_probs(self, block: Block) -> list[Array]:
        return [self.log_prob(block, v) for v in range(len(self.mixture.emissions))]

    def _joint(self, log_probs: list[Array], beta: float) -> Posterior:
        return posterior(reduce(np.add, log_probs), self.log_weights, beta=beta)

    def _by_view(self, log_probs: list[Array], beta: float) -> list[Posterior]:
        pairs = zip(log_probs, self.theta.log_weights, strict=True)
        return [posterior(part, own, beta=beta) for part, own in pairs]

    def _of_joint(self, joint: Posterior) -> Array:
        if np.isinf(self.limit):
            return np.asarray(joint.resp)
        return self._limited(joint.resp, self.beta * joint.log_posterior)

    def _of_views(self, view_proba: Array, block: Block) -> Array:
        proba = average(view_proba, block.empty)
        return proba if np.isinf(self.limit) else self._limited(proba, safe_log(proba))

    def _limited(self, proba: Array, log_proba: Array) -> Array:
        """Return probabilities with limited evidence; rounding gives no row another label."""
        labels = proba.argmax(axis=1)
        modest: Array = np.exp(bounded(log_proba, self.weights, self.limit))
        rows = np.flatnonzero(modest.argmax(axis=1) != labels)
        modest[rows, labels[rows]] = np.nextafter(modest[rows].max(axis=1), 2.0)
        return modest

    def _placed(self, block: Block, proba: Array) -> Array:
        """Set the posterior of rows that are empty in every view to the weights, in place."""
        if block.empty is not None:
            proba[block.empty.all(axis=1)] = self._prior
        return proba

    @property
    def log_weights(self) -> Array:
        """The logarithms of the weights."""
        return safe_log(self.weights)

    @property
    def _prior(self) -> Array:
        """The weights as a distribution, for rows that are empty in every view."""
        return np.asarray(self.weights / self.weights.sum())


def _resp(by_view: list[Posterior]) -> Array:
    """Return the responsibilities (n_views, n, k) of all views."""
    return np.stack([own.resp for own in by_view])


def _dissent(by_view: list[Posterior], empty: Array | None) -> Array:
    """Return how much the views of each row disagree, (n,); 0 if there is only one view."""
    if len(by_view) == 1:
        return np.zeros(len(by_view[0].resp))
    logs = np.stack([own.log_posterior for own in by_view])
    return np.maximum(dissent(logs, empty), 0.0)
