"""Spherical k-means: one cluster a row and view, partitions handed on from view to view."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coem.coupling import agreeing, handed_on
from coem.engine import Engine
from coem.kernels.lloyd import Lloyd, pooled_rows, unit_rows
from coem.latent.block import Partition
from coem.typing import Array


class Learnt(NamedTuple):
    """Concept vectors that are the directions of the sums of a partition, and not made yet."""

    labels: Array


@dataclass(frozen=True)
class Concepts:
    """Concept vectors of every view, (n_clusters, n_features) of unit length; None if unknown."""

    directions: tuple[Array | Learnt | None, ...]
    version: tuple[int, ...]  # counts their updates

    @property
    def started(self) -> bool:
        """True if every view has concept vectors."""
        return all(number > 0 for number in self.version)

    def without(self, v: int) -> Self:
        """Return the same: a cluster that loses its direction keeps the one it had."""
        return self


class Move(NamedTuple):
    """A row that was made a cluster of its own, because the cluster had lost all its rows."""

    view: int
    cluster: int
    row: int


class Summary(NamedTuple):
    """What the E step knows of all rows."""

    objective: float
    log_likelihood: Array  # (n_views,), Eq. 10: the cosines stand for log likelihoods
    dissent: float
    agreement_rate: float


@dataclass
class Partitions:
    """The clusters of the rows in every view, and the rows that have been moved by hand."""

    views: list[Lloyd]
    version: list[int]
    summed: list[Learnt | None]  # what the sums of the views are of
    moves: list[Move] = field(default_factory=list)


@dataclass(frozen=True)
class Sphere:
    """Spherical k-means over one or several views (Bickel & Scheffer 2004, Sec. 4.3).

    It is the mixture of von Mises-Fisher components of one concentration, with hard posteriors;
    a partition takes the place of the responsibilities, so that a step costs what has changed. A
    view learns from the partition of the view before it. The objective is Eq. 10, summed over the
    views. A cluster that has lost its rows is given the one that fits worst.
    """

    n_views: int
    n_clusters: int

    @property
    def monotone(self) -> bool:
        """True if the objective never falls."""
        return self.n_views == 1

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round."""
        return self.n_views

    def penalty(self, theta: Concepts) -> float:
        """Return 0: there is no prior."""
        return 0.0

    def begin(self, data: Partition, concepts: Array) -> Concepts:
        """Return the start from concept vectors of the last view (Table 1, step 1)."""
        others = self.n_views - 1
        return Concepts((None,) * others + (concepts,), (0,) * others + (1,))

    # -- E step ------------------------------------------------------------------------------

    def e_step(
        self, engine: Engine, data: Partition, theta: Concepts, beta: float, eta: float
    ) -> Summary | None:
        """Bring all partitions up to date (Eq. 8). Returns None if a view has none yet."""
        if data.cache is None:
            data.cache = self._new_cache(data)
        for v in range(self.n_views):
            self.refresh(engine, data, theta, v, beta)
        return self._summary(data) if theta.started else None

    def refresh(
        self, engine: Engine, data: Partition, theta: Concepts, v: int, beta: float
    ) -> None:
        """Bring the partition of view `v` up to date."""
        cache: Partitions = data.cache
        directions = theta.directions[v]
        if directions is None or cache.version[v] == theta.version[v]:
            return
        if isinstance(directions, Learnt):
            self._sum(data, v, directions).assign_to_sums()
        else:
            cache.views[v].assign(directions)
        cache.version[v] = theta.version[v]

    def made(self, data: Partition, theta: Concepts) -> Concepts:
        """Return the same with all concept vectors as arrays."""
        directions = tuple(self._made(data, theta, v) for v in range(self.n_views))
        # Another version than any before, so that partitions become those of the arrays to the bit.
        return Concepts(directions, (max(data.cache.version) + 1,) * self.n_views)

    def _made(self, data: Partition, theta: Concepts, v: int) -> Array | None:
        directions = theta.directions[v]
        if not isinstance(directions, Learnt):
            return directions
        view = self._sum(data, v, directions)
        return unit_rows(view.sums, view.lengths, pooled_rows(view.sums), view.X.dtype)

    def _sum(self, data: Partition, v: int, learnt: Learnt) -> Lloyd:
        """Return the rows of a view, with the sums of a partition."""
        cache: Partitions = data.cache
        if cache.summed[v] is not learnt:
            cache.views[v].sum_rows(learnt.labels, data.weight)
            cache.summed[v] = learnt
        return cache.views[v]

    def _new_cache(self, data: Partition) -> Partitions:
        views = [
            Lloyd(X, [(block.rows, block.views[v]) for block in data.blocks], self.n_clusters)
            for v, X in enumerate(data.views)
        ]
        return Partitions(views, [0] * self.n_views, [None] * self.n_views)

    def _summary(self, data: Partition) -> Summary:
        """Return Eq. 10 of every view and their sum, and the share of rows that views agree on."""
        weights = [data.view_weight(v) for v in range(self.n_views)]
        values = np.array(
            [
                view.cosines.sum() if weight is None else weight @ view.cosines
                for weight, view in zip(weights, data.cache.views, strict=True)
            ]
        )
        return Summary(float(values.sum()), values, 0.0, self._agreement_rate(data))

    def _agreement_rate(self, data: Partition) -> float:
        """Return the weighted share of pairs of views that agree on a row (Eq. 16 for two)."""
        if self.n_views == 1:
            return 1.0
        labels = view_labels(data).T
        share, weight = agreeing(labels, (labels >= 0).astype(np.float64))
        weight = weight if data.weight is None else weight * data.weight
        return float(weight @ share / weight.sum()) if weight.sum() > 0 else 1.0

    # -- M step ------------------------------------------------------------------------------

    def m_step(
        self, engine: Engine, data: Partition, theta: Concepts, turn: int, eta: float
    ) -> Concepts:
        """Return the concept vectors of a view for the partition handed on to it (Eq. 9)."""
        cache: Partitions = data.cache
        labels, cosines = self._handed_on(data, turn)
        present = labels if data.weight is None else np.where(data.weight > 0, labels, -1)
        for cluster, row in refill(present, cosines, self.n_clusters):
            labels[row] = cluster
            cache.moves.append(Move(turn, cluster, row))
        return replace(
            theta,
            directions=_replaced(theta.directions, turn, self._learn(data, theta, turn, labels)),
            version=_replaced(theta.version, turn, theta.version[turn] + 1),
        )

    def _learn(self, data: Partition, theta: Concepts, turn: int, labels: Array) -> Array | Learnt:
        """Return the directions of clusters; one without a direction keeps the one it had."""
        learnt = Learnt(labels)
        view = self._sum(data, turn, learnt)
        if view.ready:
            return learnt
        sums, lengths = view.sums, view.lengths
        if lengths.all():
            return unit_rows(sums, lengths, sums, view.X.dtype)
        sums = sums.copy()  # to make the old ones takes the sums back
        old = self._made(data, theta, turn)
        fallback = pooled_rows(sums) if old is None else old
        return unit_rows(sums, lengths, fallback, view.X.dtype)

    def _handed_on(self, data: Partition, turn: int) -> tuple[Array, Array]:
        """Return the partition that a turn learns from, -1 for no cluster, and its cosines."""
        views: list[Lloyd] = data.cache.views
        if self.n_views == 1 and data.empty is None:
            return views[0].labels.copy(), views[0].cosines
        source, rows = self._source(data, turn), np.arange(data.n_rows)
        labels = np.stack([view.labels for view in views])[source, rows]
        labels[source < 0] = -1
        return labels, np.stack([view.cosines for view in views])[source, rows]

    def _source(self, data: Partition, turn: int) -> Array:
        """Return the view whose partition each row has in a turn, -1 if it takes no part."""
        ready = np.array(data.cache.version) > 0
        there = np.broadcast_to(ready, (data.n_rows, self.n_views))
        if data.empty is None:
            return handed_on(there, turn)
        return np.where(data.empty[:, turn], -1, handed_on(there & ~data.empty, turn))


def view_labels(data: Partition) -> Array:
    """Return the partitions of all views, (n_rows, n_views), -1 where a row is empty."""
    labels = np.stack([view.labels for view in data.cache.views], axis=1)
    if data.empty is not None:
        labels[data.empty] = -1
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
