"""A few rounds of k-means from given partitions, for a start."""

import numpy as np

from coem.engine import LocalEngine
from coem.kernels.lloyd import Lloyd, pooled_rows, unit_rows
from coem.latent.block import Partition
from coem.latent.mixture import Mixture
from coem.typing import Array


class Means:
    """K-means over views, with a coupling."""

    def __init__(self, model: Mixture, data: Partition) -> None:
        self.model, self.data = model, data

    def improve(self, labels: Array, rounds: int) -> tuple[float, Array]:
        """Return what some rounds from partitions achieve, larger being better, and where they end.

        The partitions that they end with are of shape (n_views, n_rows), or one for all views.
        """
        model, data = self.model, self.data
        engine = LocalEngine(1)  # the kernels have the threads that were lent
        theta, objective = model.from_resp(data, one_hot(labels, model.n_components)), -np.inf
        for _ in range(rounds):
            for turn in range(model.n_turns):
                if turn > 0:
                    model.refresh(engine, data, theta, turn - 1, 1.0)
                theta = model.m_step(engine, data, theta, turn, 1.0)
            summary = model.e_step(engine, data, theta, 1.0, 1.0)
            assert summary is not None
            objective = summary.objective
        return objective, data.cache.resp.argmax(axis=2)

    @property
    def fits(self) -> list[Array]:
        """How well every row fits, for every partition."""
        return list(self.data.cache.evidence)

    @property
    def weights(self) -> list[Array | None]:
        """The weights of the rows, for every partition."""
        if not self.model.separate:
            return [row_weight(self.data)]
        return [self.data.view_weight(v) for v in range(len(self.data.views))]


class Directions:
    """The same for the directions of one view, where a partition takes the place of posteriors."""

    def __init__(self, data: Partition, k: int) -> None:
        X = data.views[0]
        self.rows = Lloyd(X, [(block.rows, block.views[0]) for block in data.blocks], k)
        self.weight, self.weights = data.weight, [data.view_weight(0)]
        self.empty = slice(0, 0) if data.empty is None else data.empty[:, 0]

    def improve(self, labels: Array, rounds: int) -> tuple[float, Array]:
        """Return what some rounds from a partition achieve, and where they end."""
        mine = np.array(labels, dtype=np.int32).reshape(-1)
        for _ in range(rounds):
            mine[self.empty] = -1  # or they would count among the rows of a cluster
            lengths = self.rows.sum_rows(mine, self.weight)
            if self.rows.ready:
                self.rows.assign_to_sums()
            else:
                sums = self.rows.sums
                fallback = sums if lengths.all() else pooled_rows(sums)
                self.rows.assign(unit_rows(sums, lengths, fallback, self.rows.X.dtype))
            mine = self.rows.labels.copy()
        cosines, weight = self.rows.cosines, self.weights[0]
        return float(cosines.sum() if weight is None else weight @ cosines), mine[np.newaxis]

    @property
    def fits(self) -> list[Array]:
        """How well every row fits."""
        return [self.rows.cosines]


def one_hot(labels: Array, k: int) -> Array:
    """Return partitions as responsibilities."""
    return np.eye(k, dtype=np.float32)[labels]


def row_weight(data: Partition) -> Array:
    """Return the weights of the rows, zero for those that are empty in every view."""
    return np.concatenate([block.row_weight() for block in data.blocks])
