"""Spherical k-means over rows in partitions: sums of clusters, and the rows that fit worst."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from coem.kernels.lloyd import Lloyd, pooled_rows, unit_rows
from coem.latent.block import Partition
from coem.latent.sphere import (
    Concepts,
    LazyConcepts,
    Move,
    SphereBase,
    SphereSummary,
    refill,
    sizes_of,
)
from coem.protocols import Clock
from coem.row_store import below
from coem.stats import Stats
from coem.typing import Array, Matrix, is_sparse


@dataclass(frozen=True)
class WorstRows:
    """The rows that fit their clusters worst, of all rows that were seen.

    A cluster without rows takes the first of them that is not the last row of its cluster. Of each
    cluster at most one row is passed over, and each empty cluster takes one. So as many rows as
    there are clusters are enough.
    """

    most: int  # how many are kept
    n_seen: int  # rows, in which `rows` are counted
    rows: Array  # (m,), the number of each row
    labels: Array  # (m,), its cluster
    cosines: Array  # (m,), rising; of equals the first row comes first
    weights: Array  # (m,)
    X: Matrix  # (m, n_features)

    def __add__(self, other: Self) -> Self:
        """Return the worst rows of both; those of `other` come after those of this one."""
        cosines = np.concatenate([self.cosines, other.cosines])
        kept = np.argsort(cosines, kind="stable")[: self.most]
        return replace(
            self,
            n_seen=self.n_seen + other.n_seen,
            rows=np.concatenate([self.rows, other.rows + self.n_seen])[kept],
            labels=np.concatenate([self.labels, other.labels])[kept],
            cosines=cosines[kept],
            weights=np.concatenate([self.weights, other.weights])[kept],
            X=below([self.X, other.X])[kept],
        )


@dataclass(frozen=True)
class SphereStats(Stats):
    """Statistics for one M step."""

    sums: Array  # (n_clusters, n_features), of weighted unit rows
    sizes: Array  # (n_clusters,), numbers of rows
    worst: WorstRows


@dataclass
class PartedState:
    """The clusters of the rows of a partition in every view, and how well they fit."""

    labels: Array  # (n_views, n)
    cosines: Array  # (n_views, n)
    version: tuple[int, ...]


@dataclass(frozen=True)
class PartedSphere(SphereBase):
    """Spherical k-means whose sums are made anew in every step, so that they add up over rows."""

    def infer(
        self, part: Partition, theta: Concepts, clock: Clock, state: PartedState | None
    ) -> PartedState:
        """Return the labels of all views under their concept vectors (Eq. 8)."""
        if state is None:
            shape = self.n_views, part.n_rows
            nothing = np.zeros(shape, dtype=np.int32), np.zeros(shape)
            state = PartedState(*nothing, (0,) * self.n_views)
        for v, directions in enumerate(theta.directions):
            if directions is None or state.version[v] == theta.version[v]:
                continue
            assert not isinstance(directions, LazyConcepts)
            blocks = [(block.rows, block.views[v]) for block in part.blocks]
            rows = Lloyd(part.views[v], blocks, self.n_clusters)
            rows.assign(directions)
            state.labels[v], state.cosines[v] = rows.labels, rows.cosines
        return replace(state, version=theta.version)

    def summarise(
        self, part: Partition, theta: Concepts, clock: Clock, state: PartedState
    ) -> SphereSummary:
        """Return Eq. 10 per view, the sum over the views, and the agreement rate."""
        return self._summary(part, theta, list(state.labels), list(state.cosines))

    def gather(
        self,
        part: Partition,
        theta: Concepts,
        turn: int,
        clock: Clock,
        state: PartedState,
        total: SphereStats | None = None,
    ) -> SphereStats:
        """Return the sums of the clusters in one view, and the rows that fit worst.

        Those of other rows, `total`, are added.
        """
        handed = self._handed_on(part, theta, turn, list(state.labels), list(state.cosines))
        labels, cosines = handed
        before = None if total is None else total.sums
        rows = Lloyd(part.views[turn], [], self.n_clusters, before)
        rows.sum_rows(labels, part.weight)
        present = labels if part.weight is None else np.where(part.weight > 0, labels, -1)
        if not self.refills or cosines is None:
            worst = self._worst(part, turn, np.full(part.n_rows, -1), np.zeros(part.n_rows))
        else:
            worst = self._worst(part, turn, present, cosines)
        sizes = sizes_of(present, self.n_clusters)
        if total is None:
            return SphereStats(rows.sums, sizes, worst)
        return SphereStats(rows.sums, total.sizes + sizes, total.worst + worst)

    def _worst(self, part: Partition, turn: int, labels: Array, cosines: Array) -> WorstRows:
        """Return the rows that fit worst, of those with a label of 0 or more."""
        rows = np.flatnonzero(labels >= 0)
        rows = rows[np.argsort(cosines[rows], kind="stable")[: self.n_clusters]]
        weights = np.ones(len(rows)) if part.weight is None else part.weight[rows]
        known = rows, labels[rows], cosines[rows], weights, part.views[turn][rows]
        return WorstRows(self.n_clusters, part.n_rows, *known)

    def estimate(self, stats: SphereStats, theta: Concepts, turn: int) -> Concepts:
        """Return the concept vectors of one view for the sums of all rows (Eq. 9)."""
        sums, worst = stats.sums, stats.worst
        moves: list[Move] = []
        if self.refills and any(theta.version):
            changes = refill(worst.labels, worst.cosines, self.n_clusters, stats.sizes)
            sums = sums.copy() if changes else sums
            for cluster, place in changes:
                row = worst.X[[place]]
                dense = np.asarray(row.toarray() if is_sparse(row) else row, np.float64)[0]
                sums[worst.labels[place]] -= worst.weights[place] * dense
                sums[cluster] += worst.weights[place] * dense
                moves.append(Move(turn, cluster, int(worst.rows[place])))
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        old = theta.directions[turn] if self.refills else None
        fallback = pooled_rows(sums) if old is None else old
        assert not isinstance(fallback, LazyConcepts)
        directions = unit_rows(sums, lengths, fallback, worst.X.dtype)
        return self._next(theta, turn, directions, tuple(moves))

    def maximise(
        self, part: Partition, theta: Concepts, turn: int, clock: Clock, state: PartedState
    ) -> Concepts:
        """Return the concept vectors after the M step of a turn on all rows."""
        return self.estimate(self.gather(part, theta, turn, clock, state), theta, turn)
