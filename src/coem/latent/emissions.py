"""Emissions: one family per view, from hidden components to rows."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coem.families.base import AnyFamily
from coem.kernels import threads
from coem.latent.block import Block, Partition
from coem.stats import Stats
from coem.typing import Array, Matrix, Resp, Theta


@dataclass(frozen=True)
class Emissions:
    """The families of the views, whatever the prior over the hidden components is.

    `betas` are the inverse temperatures of the views, which multiply their log likelihoods and log
    priors; without any, all are 1. M steps do not depend on them: a factor does not move a maximum.
    """

    families: tuple[AnyFamily, ...]
    betas: tuple[float, ...] = ()

    def __len__(self) -> int:
        """Return the number of views."""
        return len(self.families)

    def tempered(self, betas: tuple[float, ...]) -> Self:
        """Return the same families with other inverse temperatures."""
        return replace(self, betas=betas)

    def beta(self, v: int) -> float:
        """Return the inverse temperature of view `v`."""
        return self.betas[v] if self.betas else 1.0

    @property
    def exact(self) -> bool:
        """True if no M step of a family can lower the objective except by rounding."""
        return all(family.exact for family in self.families)

    def needed(self, params: tuple[Theta | None, ...]) -> tuple[Theta | None, ...]:
        """Return the parameters that the next M step needs: those of families that are `hidden`."""
        pairs = zip(self.families, params, strict=True)
        return tuple(theta if family.hidden else None for family, theta in pairs)

    @property
    def takes_labels(self) -> bool:
        """True if every family takes `OneHot` responsibilities."""
        return all(family.takes_labels for family in self.families)

    def log_prob(self, block: Block, params: Theta, v: int) -> Array:
        """Return beta log p(x | component) of view `v` (n, k); zero where the view is empty."""
        log_prob = self.families[v].log_prob(block.views[v], params)
        if self.betas:
            log_prob = log_prob * self.betas[v]
        blank = block.blank(v)
        if blank is not None:
            log_prob[blank] = 0.0
        return log_prob

    def lists_words(self, views: tuple[Matrix, ...], n_components: int) -> bool:
        """Return whether there is one view, and its parameters would be too large as a table."""
        return len(self) == 1 and self.families[0].lists_words(n_components, views[0].shape[1])

    def score_table(self, params: tuple[Theta | None, ...]) -> Any:
        """Return the table whose product with rows is `log_prob`, if there is one view that has it.

        See `Family.score_table`.
        """
        if len(self) > 1 or self.betas or params[0] is None:
            return None
        return self.families[0].score_table(params[0])

    def log_prior(self, params: tuple[Theta, ...]) -> float:
        """Return the log prior density of the parameters of all views, each times its beta."""
        pairs = enumerate(zip(self.families, params, strict=True))
        return sum(self.beta(v) * family.log_prior(theta) for v, (family, theta) in pairs)

    def weighted(self, part: Partition, v: int, resp: Resp) -> Resp:
        """Return the responsibilities times the row weights, zero where view `v` is empty."""
        weight = part.view_weight(v)
        # In double: 3 r is r + r + r only if nothing is rounded.
        return resp if weight is None else resp * weight[:, np.newaxis]

    def stats(
        self,
        part: Partition,
        v: int,
        weighted: Resp,
        params: Theta | None,
        total: Stats | None = None,
    ) -> Stats:
        """Return the statistics of view `v` under weighted responsibilities, added to `total`.

        `params` are the current parameters of the view; None before there are any. Do not read
        `total` after the call.
        """
        family = self.families[v]
        stats: Stats
        if family.wide and total is not None:
            stats = family.add_stats(total, part.views[v], weighted, params)
            return stats
        if family.wide:
            stats = family.stats_under(part.views[v], weighted, params)
            return stats
        stats = threads.add_up(
            lambda block: family.stats_under(block.views[v], weighted[block.rows], params),
            part.blocks,
        )
        if total is None:
            return stats
        total += stats
        return total

    def estimate(self, v: int, stats: Stats | None) -> Theta:
        """Return the parameters of view `v` for the statistics of all rows."""
        theta: Theta = self.families[v].estimate(stats)
        return theta

    def maximise(self, part: Partition, v: int, resp: Resp, params: Theta | None) -> Theta:
        """Return the parameters of view `v` for responsibilities of all rows.

        `params` are those before the M step; None if there are none yet.
        """
        family, weighted = self.families[v], self.weighted(part, v, resp)
        if family.wide:
            theta: Theta = family.maximise(part.views[v], weighted, params)
            return theta
        return self.estimate(v, self.stats(part, v, weighted, params))


def pooled(family: AnyFamily, X: Matrix, weight: Array | None, empty: Array | None) -> Stats:
    """Return the statistics of all rows as one component."""
    mass = np.ones(X.shape[0]) if weight is None else weight
    mass = mass if empty is None else mass * ~empty
    stats: Stats = family.stats(X, np.asarray(mass, dtype=np.float64)[:, np.newaxis])
    return stats
