"""A Markov prior over hidden states: where a sequence starts, and what follows what."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from coem.latent.weights import safe_log
from coem.stats import Stats
from coem.typing import Array


@dataclass(frozen=True)
class MarkovTheta:
    """Log probabilities of a chain; -inf where a start or a transition is impossible."""

    log_start: Array  # (k,)
    log_transition: Array  # (k, k), from the row's state to the column's

    @classmethod
    def of(cls, start: Array, transition: Array) -> Self:
        """Return the logarithms of probabilities."""
        with np.errstate(divide="ignore"):
            return cls(np.log(start), np.log(transition))


@dataclass(frozen=True)
class MarkovStats(Stats):
    """Expected numbers of starts and of transitions."""

    starts: Array  # (k,)
    steps: Array  # (k, k)


@dataclass(frozen=True)
class Markov:
    """How the probabilities of a chain are estimated.

    Pseudo-counts are added to what is counted. A Dirichlet prior with the parameter alpha has
    alpha - 1 of them. What is impossible stays impossible.
    """

    start_pseudo: Array  # (k,)
    step_pseudo: Array  # (k, k)
    can_start: Array  # (k,) bool
    can_follow: Array  # (k, k) bool

    @classmethod
    def free(cls, k: int) -> Self:
        """Return a prior without pseudo-counts, in which everything is possible."""
        shapes = (k,), (k, k)
        return cls(*(np.zeros(s) for s in shapes), *(np.ones(s, dtype=bool) for s in shapes))

    def uniform(self) -> MarkovTheta:
        """Return a chain in which all that is possible is equally likely."""
        k = len(self.can_start)
        return self.estimate(MarkovStats(np.zeros(k), np.zeros((k, k))), smooth=False)

    def estimate(self, stats: MarkovStats, *, smooth: bool = True) -> MarkovTheta:
        """Return the most probable chain for the expected numbers, with or without the prior."""
        weight = float(smooth)
        return MarkovTheta(
            _log_shares(stats.starts + weight * self.start_pseudo, self.can_start),
            _log_shares(stats.steps + weight * self.step_pseudo, self.can_follow),
        )

    def log_prior(self, theta: MarkovTheta) -> float:
        """Return the log prior density of the probabilities, without its constant."""
        pairs = (
            (self.start_pseudo, self.can_start, theta.log_start),
            (self.step_pseudo, self.can_follow, theta.log_transition),
        )
        return sum(float(pseudo[can] @ logs[can]) for pseudo, can, logs in pairs)

    def n_parameters(self) -> int:
        """Return the number of free probabilities."""
        tables = np.atleast_2d(self.can_start), self.can_follow
        return sum(int(table.sum() - table.any(axis=1).sum()) for table in tables)


def counts_of(resp: Array, offsets: Array, weight: Array | None) -> MarkovStats:
    """Return the numbers of starts and transitions for responsibilities of rows that are given.

    The states of consecutive rows are taken as independent: transitions are the sums of
    r_t r_{t+1}^T over the rows of each sequence. `weight` is that of the rows.
    """
    weighted = resp if weight is None else resp * weight[:, np.newaxis]
    follows = np.ones(len(resp), dtype=bool)
    follows[offsets[:-1]] = False
    later = np.flatnonzero(follows)
    return MarkovStats(
        np.asarray(weighted[offsets[:-1]].sum(axis=0), dtype=np.float64),
        np.asarray(weighted[later - 1].T @ resp[later], dtype=np.float64),
    )


def _log_shares(counts: Array, possible: Array) -> Array:
    """Return the logarithms of the shares of each row of counts.

    Where nothing was counted, all that is possible has the same share. A share of zero becomes a
    tiny number, because new rows may need what no row has shown; only what is impossible has -inf.
    """
    counts = np.where(possible, counts, 0.0)
    total = counts.sum(axis=-1, keepdims=True)
    even = possible / np.maximum(possible.sum(axis=-1, keepdims=True), 1)
    shares = np.where(total > 0, counts / np.where(total > 0, total, 1.0), even)
    return np.where(possible, safe_log(shares), -np.inf)
