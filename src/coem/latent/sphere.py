"""Spherical k-means: one cluster per row and view, partitions handed on from view to view."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coem.agreement import agreeing
from coem.coupling import handed_on
from coem.kernels.lloyd import Lloyd, pooled_rows, unit_rows
from coem.latent.block import Partition
from coem.protocols import Clock, Value
from coem.typing import Array


class Learnt(NamedTuple):
    """Concept vectors that are the directions of the sums of a partition, not computed yet."""

    labels: Array


class Move(NamedTuple):
    """A row that became a cluster of its own, because the cluster had lost all its rows."""

    view: int
    cluster: int
    row: int


@dataclass(frozen=True)
class Concepts:
    """Concept vectors of every view, (n_clusters, n_features) of unit length; None if unknown."""

    directions: tuple[Array | Learnt | None, ...]
    version: tuple[int, ...]  # counts their updates
    moves: tuple[tuple[Move, ...], ...] = ()  # of each view's latest M step

    @property
    def started(self) -> bool:
        """True if every view has concept vectors."""
        return all(number > 0 for number in self.version)

    def without(self, turn: int) -> Self:
        """Return all concept vectors: a cluster that loses its direction keeps the old one."""
        return self


class SphereSummary(NamedTuple):
    """What the E step knows of all rows."""

    objective: float
    log_likelihood: tuple[float, ...]  # per view, Eq. 10: the cosines stand for log likelihoods
    agreement_rate: float
    moves: tuple[Move, ...]  # of the round
    dissent: float = 0.0


@dataclass
class SphereState:
    """The clusters of the rows in every view. The kernels change its sums from step to step."""

    views: list[Lloyd]
    version: list[int]
    summed: list[Learnt | None]  # the partitions that the sums of the views belong to


@dataclass(frozen=True)
class Sphere:
    """Spherical k-means over one or several views (Bickel & Scheffer 2004, Sec. 4.3).

    It is the mixture of von Mises-Fisher components of one concentration, with hard posteriors;
    a partition takes the place of the responsibilities, so that a step costs what has changed. A
    view learns from the partition of the view before it. The objective is Eq. 10, summed over the
    views.

    It is a `Latent` and no `AdditiveLatent`: sums lose the rows that leave a cluster and gain those
    that come, and a cluster without rows takes the worst row of all. Both need all rows in one
    place.

    Parameters
    ----------
    n_views, n_clusters : int
        Number of views and of clusters.
    refills : bool
        Whether a cluster that has lost its rows is given the row that fits worst. If not, it takes
        the direction of all rows.
    """

    n_views: int
    n_clusters: int
    refills: bool = True

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return self.n_views

    def value(self, summary: SphereSummary, theta: Concepts) -> Value:
        """Return the objective; there is no prior."""
        return Value(summary.objective, summary.objective)

    def never_falls(self, clock: Clock, summary: SphereSummary) -> bool:
        """Return True for one view; several need not converge."""
        return self.n_views == 1

    def begin(self, concepts: Array) -> Concepts:
        """Return the start from concept vectors of the last view (Table 1, step 1)."""
        others = self.n_views - 1
        return Concepts((None,) * others + (concepts,), (0,) * others + (1,), ((),) * self.n_views)

    def unknown(self) -> Concepts:
        """Return concept vectors that no view has yet: the data has a given partition."""
        return Concepts((None,) * self.n_views, (0,) * self.n_views, ((),) * self.n_views)

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: Partition, theta: Concepts, clock: Clock, state: SphereState | None
    ) -> SphereState:
        """Bring the partitions of all views up to date (Eq. 8)."""
        state = self._new_state(part) if state is None else state
        for v, directions in enumerate(theta.directions):
            if directions is None or state.version[v] == theta.version[v]:
                continue
            if isinstance(directions, Learnt):
                self._sum(part, state, v, directions).assign_to_sums()
            else:
                state.views[v].assign(directions)
            state.version[v] = theta.version[v]
        return state

    def _new_state(self, part: Partition) -> SphereState:
        views = [
            Lloyd(X, [(block.rows, block.views[v]) for block in part.blocks], self.n_clusters)
            for v, X in enumerate(part.views)
        ]
        return SphereState(views, [0] * self.n_views, [None] * self.n_views)

    def summarise(
        self, part: Partition, theta: Concepts, clock: Clock, state: SphereState
    ) -> SphereSummary:
        """Return Eq. 10 of every view and their sum, and the share of rows that views agree on."""
        weights = [part.view_weight(v) for v in range(self.n_views)]
        values = np.array(
            [
                view.cosines.sum() if weight is None else weight @ view.cosines
                for weight, view in zip(weights, state.views, strict=True)
            ]
        )
        moves = tuple(move for view in theta.moves for move in view)
        rate = self._agreement_rate(part, state)
        return SphereSummary(float(values.sum()), tuple(values.tolist()), rate, moves)

    def _agreement_rate(self, part: Partition, state: SphereState) -> float:
        """Return the weighted share of pairs of views that agree on a row (Eq. 16 for two)."""
        if self.n_views == 1:
            return 1.0
        labels = view_labels(part, state).T
        share, weight = agreeing(labels, (labels >= 0).astype(np.float64))
        weight = weight if part.weight is None else weight * part.weight
        return float(weight @ share / weight.sum()) if weight.sum() > 0 else 1.0

    # -- concept vectors ---------------------------------------------------------------------

    def with_arrays(self, part: Partition, theta: Concepts, state: SphereState) -> Concepts:
        """Return the same concept vectors, all as arrays."""
        directions = tuple(self._as_array(part, theta, v, state) for v in range(self.n_views))
        # Another version than any before, so that partitions become those of the arrays to the bit.
        version = (max(state.version) + 1,) * self.n_views
        return replace(theta, directions=directions, version=version)

    def _as_array(
        self, part: Partition, theta: Concepts, v: int, state: SphereState
    ) -> Array | None:
        directions = theta.directions[v]
        if not isinstance(directions, Learnt):
            return directions
        view = self._sum(part, state, v, directions)
        return unit_rows(view.sums, view.lengths, pooled_rows(view.sums), view.X.dtype)

    def _sum(self, part: Partition, state: SphereState, v: int, learnt: Learnt) -> Lloyd:
        """Return the rows of a view, with the sums of a partition."""
        if state.summed[v] is not learnt:
            state.views[v].sum_rows(learnt.labels, part.weight)
            state.summed[v] = learnt
        return state.views[v]

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: Partition, theta: Concepts, turn: int, clock: Clock, state: SphereState
    ) -> Concepts:
        """Return the concept vectors of a view for the partition handed on to it (Eq. 9)."""
        labels, cosines = self._handed_on(part, theta, turn, state)
        moves = []
        if self.refills and cosines is not None:
            present = labels if part.weight is None else np.where(part.weight > 0, labels, -1)
            for cluster, row in refill(present, cosines, self.n_clusters):
                labels[row] = cluster
                moves.append(Move(turn, cluster, row))
        learnt = self._learn(part, theta, turn, labels, state)
        return Concepts(
            _replaced(theta.directions, turn, learnt),
            _replaced(theta.version, turn, theta.version[turn] + 1),
            _replaced(theta.moves, turn, tuple(moves)),
        )

    def _learn(
        self, part: Partition, theta: Concepts, turn: int, labels: Array, state: SphereState
    ) -> Array | Learnt:
        """Return the directions of clusters; one without a direction keeps the one it had."""
        learnt = Learnt(labels)
        view = self._sum(part, state, turn, learnt)
        if view.ready:
            return learnt
        sums, lengths = view.sums, view.lengths
        if lengths.all():
            return unit_rows(sums, lengths, sums, view.X.dtype)
        sums = sums.copy()  # computing the old directions changes the sums
        old = self._as_array(part, theta, turn, state) if self.refills else None
        fallback = pooled_rows(sums) if old is None else old
        return unit_rows(sums, lengths, fallback, view.X.dtype)

    def _handed_on(
        self, part: Partition, theta: Concepts, turn: int, state: SphereState
    ) -> tuple[Array, Array | None]:
        """Return the partition that a turn learns from, -1 for no cluster, and its cosines."""
        if not any(theta.version):
            return self._given(part, turn), None
        if self.n_views == 1 and part.empty is None:
            return state.views[0].labels.copy(), state.views[0].cosines
        source, rows = self._source(part, theta, turn), np.arange(part.n_rows)
        labels = np.stack([view.labels for view in state.views])[source, rows]
        labels[source < 0] = -1
        return labels, np.stack([view.cosines for view in state.views])[source, rows]

    def _given(self, part: Partition, turn: int) -> Array:
        """Return the partition that the data starts with; empty rows have no cluster."""
        assert part.given is not None
        labels = np.array(np.broadcast_to(part.given, (self.n_views, part.n_rows))[turn], np.int32)
        if part.empty is not None:
            labels[part.empty[:, turn]] = -1
        return labels

    def _source(self, part: Partition, theta: Concepts, turn: int) -> Array:
        """Return the view whose partition each row has in a turn, -1 if it takes no part."""
        ready = np.array(theta.version) > 0
        there = np.broadcast_to(ready, (part.n_rows, self.n_views))
        if part.empty is None:
            return handed_on(there, turn)
        return np.where(part.empty[:, turn], -1, handed_on(there & ~part.empty, turn))


def view_labels(part: Partition, state: SphereState) -> Array:
    """Return the partitions of all views, (n_rows, n_views), -1 where a row is empty."""
    labels = np.stack([view.labels for view in state.views], axis=1)
    if part.empty is not None:
        labels[part.empty] = -1
    return labels


def refill(labels: Array, cosines: Array, n_clusters: int) -> list[tuple[int, int]]:
    """Return (cluster, row) for clusters without rows: the row that fits worst becomes each.

    `labels` are -1 for rows that take no part. Of equals the first row goes; no row leaves a
    cluster of which it is the last.
    """
    sizes = np.bincount(labels + 1, minlength=n_clusters + 1)[1:]
    if sizes.all():
        return []
    rows = np.flatnonzero(labels >= 0)
    candidates = iter(rows[np.argsort(cosines[rows], kind="stable")].tolist())
    moves = []
    for cluster in np.flatnonzero(sizes == 0).tolist():
        row = next((i for i in candidates if sizes[labels[i]] > 1), None)
        if row is None:
            break
        sizes[labels[row]] -= 1
        moves.append((cluster, row))
    return moves


def _replaced(items: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*items[:index], value, *items[index + 1 :])
