"""Emissions: one family per view, from hidden components to rows."""

from dataclasses import dataclass

import numpy as np

from coem.families.base import Family
from coem.kernels import threads
from coem.latent.block import Block, Partition
from coem.stats import Stats
from coem.typing import Array, Matrix, Theta


@dataclass(frozen=True)
class Emissions:
    """The families of the views, whatever the prior over the hidden components is."""

    families: tuple[Family, ...]

    def __len__(self) -> int:
        """Return the number of views."""
        return len(self.families)

    @property
    def exact(self) -> bool:
        """True if no M step of a family can lower the objective except by rounding."""
        return all(family.exact for family in self.families)

    def log_prob(self, block: Block, params: Theta, v: int) -> Array:
        """Return log p(x | component) of view `v` (n, k); zero where the view is empty."""
        log_prob = self.families[v].log_prob(block.views[v], params)
        blank = block.blank(v)
        if blank is not None:
            log_prob[blank] = 0.0
        return log_prob

    def log_prior(self, params: tuple[Theta, ...]) -> float:
        """Return the log prior density of the parameters of all views."""
        pairs = zip(self.families, params, strict=True)
        return sum(family.log_prior(theta) for family, theta in pairs)

    def weighted(self, part: Partition, v: int, resp: Array) -> Array:
        """Return the responsibilities times the row weights, zero where view `v` is empty."""
        weight = part.view_weight(v)
        # In double: 3 r is r + r + r only if nothing is rounded.
        return resp if weight is None else resp * weight[:, np.newaxis]

    def stats(self, part: Partition, v: int, weighted: Array) -> Stats:
        """Return the statistics of view `v` under weighted responsibilities."""
        family = self.families[v]
        if family.wide:
            return family.stats(part.views[v], weighted)
        gathered: Stats = threads.add_up(
            lambda block: family.stats(block.views[v], weighted[block.rows]), part.blocks
        )
        return gathered

    def estimate(self, v: int, stats: Stats | None) -> Theta:
        """Return the parameters of view `v` for the statistics of all rows."""
        return self.families[v].estimate(stats)

    def maximise(self, part: Partition, v: int, resp: Array) -> Theta:
        """Return the parameters of view `v` for responsibilities of all rows."""
        family, weighted = self.families[v], self.weighted(part, v, resp)
        if family.wide:
            return family.maximise(part.views[v], weighted)
        return family.estimate(self.stats(part, v, weighted))


def pooled(family: Family, X: Matrix, weight: Array | None, empty: Array | None) -> Stats:
    """Return the statistics of all rows as one component."""
    mass = np.ones(X.shape[0]) if weight is None else weight
    mass = mass if empty is None else mass * ~empty
    return family.stats(X, np.asarray(mass, dtype=np.float64)[:, np.newaxis])
