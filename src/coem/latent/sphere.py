"""Spherical k-means: every view gives each row one cluster and learns from another view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coem.agreement import agreeing
from coem.coupling import handed_on
from coem.kernels.lloyd import Lloyd, pooled_rows, unit_rows
from coem.latent.block import Partition
from coem.protocols import Clock, Value
from coem.typing import Array


class LazyConcepts(NamedTuple):
    """Concept vectors that are not computed yet: the directions of the sums of these clusters."""

    labels: Array  # (n_rows,), the cluster of every row


class Move(NamedTuple):
    """A row that was moved to a cluster, because the cluster had lost all its rows."""

    view: int
    cluster: int
    row: int


@dataclass(frozen=True)
class Concepts:
    """Concept vectors per view: unit vectors (n_clusters, n_features), or None if unknown."""

    directions: tuple[Array | LazyConcepts | None, ...]
    version: tuple[int, ...]  # number of updates, per view
    moves: tuple[tuple[Move, ...], ...] = ()  # in the latest M step of each view

    @property
    def started(self) -> bool:
        """True if every view has concept vectors."""
        return all(number > 0 for number in self.version)

    def without(self, turn: int) -> Self:
        """Return all concept vectors: a cluster without a direction keeps its old one."""
        return self


@dataclass(frozen=True)
class SphereSummary:
    """What the E step computes: sums over rows."""

    values: Array  # (n_views,): Eq. 10, sums of cosines
    agreeing: float  # weight of the pairs of views that agree on a row
    comparable: float  # weight of all pairs of views of a row
    moves: tuple[Move, ...]  # of all views in this round

    def __add__(self, other: Self) -> Self:
        """Return the summary of both sets of rows."""
        return replace(
            self,
            values=self.values + other.values,
            agreeing=self.agreeing + other.agreeing,
            comparable=self.comparable + other.comparable,
        )

    @property
    def objective(self) -> float:
        """Eq. 10, summed over the views."""
        return float(self.values.sum())

    @property
    def log_likelihood(self) -> tuple[float, ...]:
        """Eq. 10 of every view."""
        return tuple(self.values.tolist())

    @property
    def agreement_rate(self) -> float:
        """Share of pairs of views that agree on a row (Eq. 16 for two)."""
        return self.agreeing / self.comparable if self.comparable > 0 else 1.0

    @property
    def dissent(self) -> float:
        """Zero: views have partitions and no posteriors."""
        return 0.0


@dataclass
class SphereState:
    """The clusters of the rows in every view. The kernels update the sums in place."""

    views: list[Lloyd]
    version: list[int]
    summed: list[LazyConcepts | None]  # per view: the clusters that the sums belong to

    @property
    def labels(self) -> list[Array]:
        """The cluster of every row, by view."""
        return [view.labels for view in self.views]

    @property
    def cosines(self) -> list[Array]:
        """How well every row fits its cluster, by view."""
        return [view.cosines for view in self.views]

    def kept(self) -> dict[str, Array]:
        """Return what does not follow from the concept vectors, with which a fit can go on."""
        parts = [
            (v, name, a) for v, view in enumerate(self.views) for name, a in view.kept().items()
        ]
        return {f"{v}.{name}": array for v, name, array in parts}


@dataclass(frozen=True)
class SphereBase:
    """What spherical k-means is, wherever its rows are (Bickel & Scheffer 2004, Sec. 4.3).

    It is a mixture of von Mises-Fisher components with one shared concentration and hard
    posteriors. Cluster labels take the place of the responsibilities. A view learns from the labels
    of the view before it. The objective is Eq. 10, summed over the views.

    Parameters
    ----------
    n_views, n_clusters : int
        Number of views and of clusters.
    refills : bool
        If True, a cluster that has lost all its rows gets the row that fits worst. If False, it
        gets the direction of the sum of all rows.
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
        """Return True for one view; the objective of several views may fall."""
        return self.n_views == 1

    def begin(self, concepts: Array) -> Concepts:
        """Return a start from concept vectors of the last view (Table 1, step 1)."""
        others = self.n_views - 1
        return Concepts((None,) * others + (concepts,), (0,) * others + (1,), ((),) * self.n_views)

    def unknown(self) -> Concepts:
        """Return a start without concept vectors, for data that has given clusters."""
        return Concepts((None,) * self.n_views, (0,) * self.n_views, ((),) * self.n_views)

    def _summary(
        self, part: Partition, theta: Concepts, labels: Sequence[Array], cosines: Sequence[Array]
    ) -> SphereSummary:
        """Return Eq. 10 per view, and the agreement rate."""
        weights = [part.view_weight(v) for v in range(self.n_views)]
        values = [
            own.sum() if weight is None else weight @ own
            for weight, own in zip(weights, cosines, strict=True)
        ]
        moves = tuple(move for view in theta.moves for move in view)
        if self.n_views == 1:
            return SphereSummary(np.array(values), 0.0, 0.0, moves)
        known = blanked(part, labels).T
        share, weight = agreeing(known, (known >= 0).astype(np.float64))
        weight = weight if part.weight is None else weight * part.weight
        return SphereSummary(np.array(values), float(weight @ share), float(weight.sum()), moves)

    def _next(
        self,
        theta: Concepts,
        turn: int,
        directions: Array | LazyConcepts,
        moves: tuple[Move, ...],
    ) -> Concepts:
        """Return `theta` with new concept vectors of one view."""
        return Concepts(
            _replaced(theta.directions, turn, directions),
            _replaced(theta.version, turn, theta.version[turn] + 1),
            _replaced(theta.moves, turn, moves),
        )

    # -- partitions that are passed on -------------------------------------------------------

    def _handed_on(
        self,
        part: Partition,
        theta: Concepts,
        turn: int,
        labels: Sequence[Array],
        cosines: Sequence[Array],
    ) -> tuple[Array, Array | None]:
        """Return the labels that a turn learns from (-1 for no cluster), and their cosines."""
        if not any(theta.version):
            return self._given(part, turn), None
        if self.n_views == 1 and part.empty is None:
            return labels[0].copy(), cosines[0]
        source, rows = self._source(part, theta, turn), np.arange(part.n_rows)
        found = np.stack(labels)[source, rows]
        found[source < 0] = -1
        return found, np.stack(cosines)[source, rows]

    def _given(self, part: Partition, turn: int) -> Array:
        """Return the labels that the data starts with; -1 for rows that are empty in this view."""
        assert part.given is not None
        labels = np.array(np.broadcast_to(part.given, (self.n_views, part.n_rows))[turn], np.int32)
        if part.empty is not None:
            labels[part.empty[:, turn]] = -1
        return labels

    def _source(self, part: Partition, theta: Concepts, turn: int) -> Array:
        """Return the view that each row takes its label from, -1 if the row is left out."""
        ready = np.array(theta.version) > 0
        there = np.broadcast_to(ready, (part.n_rows, self.n_views))
        if part.empty is None:
            return handed_on(there, turn)
        return np.where(part.empty[:, turn], -1, handed_on(there & ~part.empty, turn))


@dataclass(frozen=True)
class Sphere(SphereBase):
    """Spherical k-means on rows in memory: the cost of a step depends on how many labels change.

    This is a `Latent`, not an `AdditiveLatent`: sums are updated by the rows that leave or join a
    cluster, and an empty cluster takes the row that fits worst of all rows. Both need all rows in
    one place. `coem.latent.parted_sphere` has the form for rows in partitions.
    """

    # -- E step ------------------------------------------------------------------------------

    def infer(
        self, part: Partition, theta: Concepts, clock: Clock, state: SphereState | None
    ) -> SphereState:
        """Update the labels of all views whose concept vectors have changed (Eq. 8)."""
        state = self._new_state(part) if state is None else state
        for v, directions in enumerate(theta.directions):
            if directions is None or state.version[v] == theta.version[v]:
                continue
            if isinstance(directions, LazyConcepts):
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

    def restored(self, part: Partition, theta: Concepts, kept: Mapping[str, Array]) -> SphereState:
        """Return a state from what `SphereState.kept` gave; raise ValueError if it is another's.

        The next steps give the same bits as if there had been no interruption.
        """
        state = self._new_state(part)
        for v, (view, directions) in enumerate(zip(state.views, theta.directions, strict=True)):
            view.restore({name: kept[f"{v}.{name}"] for name in view.kept()})
            if isinstance(directions, LazyConcepts):
                if not (view.ready and np.array_equal(directions.labels, kept[f"{v}.summed"])):
                    raise ValueError("it has sums of other clusters")
                state.summed[v] = directions
        return state

    def summarise(
        self, part: Partition, theta: Concepts, clock: Clock, state: SphereState
    ) -> SphereSummary:
        """Return Eq. 10 per view, the sum over the views, and the agreement rate."""
        return self._summary(part, theta, state.labels, state.cosines)

    # -- concept vectors ---------------------------------------------------------------------

    def with_arrays(self, part: Partition, theta: Concepts, state: SphereState) -> Concepts:
        """Return the same concept vectors, with all of them computed as arrays."""
        directions = tuple(self._as_array(part, theta, v, state) for v in range(self.n_views))
        # A new version number makes the next E step compute the labels again, from the arrays.
        version = (max(state.version) + 1,) * self.n_views
        return replace(theta, directions=directions, version=version)

    def _as_array(
        self, part: Partition, theta: Concepts, v: int, state: SphereState
    ) -> Array | None:
        directions = theta.directions[v]
        if not isinstance(directions, LazyConcepts):
            return directions
        view = self._sum(part, state, v, directions)
        return unit_rows(view.sums, view.lengths, pooled_rows(view.sums), view.X.dtype)

    def _sum(self, part: Partition, state: SphereState, v: int, lazy: LazyConcepts) -> Lloyd:
        """Return view `v` with its sums up to date for the clusters of `lazy`."""
        if state.summed[v] is not lazy:
            state.views[v].sum_rows(lazy.labels, part.weight)
            state.summed[v] = lazy
        return state.views[v]

    # -- M step ------------------------------------------------------------------------------

    def maximise(
        self, part: Partition, theta: Concepts, turn: int, clock: Clock, state: SphereState
    ) -> Concepts:
        """Update the concept vectors of one view from the labels that it learns from (Eq. 9)."""
        labels, cosines = self._handed_on(part, theta, turn, state.labels, state.cosines)
        moves = []
        if self.refills and cosines is not None:
            present = labels if part.weight is None else np.where(part.weight > 0, labels, -1)
            for cluster, row in refill(present, cosines, self.n_clusters):
                labels[row] = cluster
                moves.append(Move(turn, cluster, row))
        directions = self._learn(part, theta, turn, labels, state)
        return self._next(theta, turn, directions, tuple(moves))

    def _learn(
        self, part: Partition, theta: Concepts, turn: int, labels: Array, state: SphereState
    ) -> Array | LazyConcepts:
        """Return the directions of clusters; a cluster whose sum is zero keeps its old one."""
        lazy = LazyConcepts(labels)
        view = self._sum(part, state, turn, lazy)
        if view.ready:
            return lazy
        sums, lengths = view.sums, view.lengths
        if lengths.all():
            return unit_rows(sums, lengths, sums, view.X.dtype)
        sums = sums.copy()  # the next line may overwrite the sums
        old = self._as_array(part, theta, turn, state) if self.refills else None
        fallback = pooled_rows(sums) if old is None else old
        return unit_rows(sums, lengths, fallback, view.X.dtype)


def blanked(part: Partition, labels: Sequence[Array]) -> Array:
    """Return the labels of all views, (n_rows, n_views); -1 where a row is empty."""
    found = np.stack(labels, axis=1)
    if part.empty is not None:
        found[part.empty] = -1
    return found


def sizes_of(labels: Array, n_clusters: int) -> Array:
    """Return the number of rows of every cluster; label -1 means no cluster."""
    return np.bincount(labels + 1, minlength=n_clusters + 1)[1:]


def refill(
    labels: Array, cosines: Array, n_clusters: int, sizes: Array | None = None
) -> list[tuple[int, int]]:
    """Return (cluster, row) for every cluster without rows: the rows that fit worst move there.

    `labels` are -1 for rows that are left out. If rows fit equally badly, the first one moves. The
    last row of a cluster never moves. If the rows are some of more rows, `sizes` are the numbers of
    all rows in the clusters.
    """
    sizes = sizes_of(labels, n_clusters) if sizes is None else sizes.copy()
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
