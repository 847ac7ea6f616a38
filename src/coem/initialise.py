"""Starts: parameters or responsibilities for the first round."""

from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureTheta, pooled
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng

Init = Literal["random", "rows", "k-means++"]

INITS: tuple[Init, ...] = ("random", "rows", "k-means++")


def start(
    model: Mixture, data: Partition, init: Init, rng: Rng, pools: list[Stats]
) -> MixtureTheta:
    """Return the start that `init` names; `pools` are what `pool_views` returned."""
    if init == "random":
        draws = zip(model.families, pools, strict=True)
        params = tuple(family.start(pool, model.n_components, rng) for family, pool in draws)
        return model.from_params(params)
    distances = _Distances(data)
    spread_out = init == "k-means++"
    seeds = _choose(data, distances, model.n_components, rng, spread_out=spread_out)
    resp = np.eye(len(seeds))[distances.to(seeds).argmin(axis=1)]
    resp[seeds] = np.eye(len(seeds))  # equal rows must not leave a component without any
    return model.from_resp(data, resp)


def pool_views(model: Mixture, data: Partition) -> list[Stats]:
    """Return the statistics of every view with all rows in one component."""
    blanks = [None if data.empty is None else data.empty[:, v] for v in range(len(data.views))]
    triples = zip(model.families, data.views, blanks, strict=True)
    return [pooled(family, X, data.weight, blank) for family, X, blank in triples]


def prime(model: Mixture, data: Partition, resp: Array) -> MixtureTheta:
    """Return the parameters that an M step on `resp` gives in every view (Nigam 2006, Table 3.1).

    `resp` sums to the weight of a row, and is zero for rows that take no part.
    """
    params = []
    for v, family in enumerate(model.families):
        mine = resp if data.empty is None else resp * ~data.empty[:, v, np.newaxis]
        params.append(family.estimate(family.stats(data.views[v], mine)))
    somewhere = resp if data.empty is None else resp[~data.empty.all(axis=1)]
    mass = somewhere.sum(axis=0, dtype=np.float64) + model.weight_prior
    uniform = model.weights == "uniform" or not mass.sum() > 0
    return model.from_params(tuple(params), None if uniform else mass / mass.sum())


class _Distances:
    """Squared distances between rows, averaged over the views that both have."""

    def __init__(self, data: Partition) -> None:
        self.views = [_scaled(X) for X in data.views]
        self.there = np.ones((data.n_rows, len(data.views)), dtype=bool)
        if data.empty is not None:
            self.there = ~data.empty

    def to(self, seeds: Array) -> Array:
        """Return the distances of all rows to some of them, of shape (n_rows, n_seeds)."""
        total = np.zeros((len(self.there), len(seeds)))
        shared = np.zeros(total.shape)
        for v, (X, squares) in enumerate(self.views):
            both = self.there[:, v, np.newaxis] & self.there[seeds, v]
            product = X @ X[seeds].T
            product = product.toarray() if sp.issparse(product) else product
            apart = squares[:, np.newaxis] + squares[seeds] - 2.0 * product
            total += np.where(both, np.maximum(apart, 0.0), 0.0)
            shared += both
        # Rows that share no view with a seed are as far from it as unit rows can be.
        return np.asarray(np.where(shared > 0, total / np.maximum(shared, 1), 2.0))


def _scaled(X: Matrix) -> tuple[Matrix, Array]:
    """Return unit rows if sparse, else centred ones of unit mean square, and their squares."""
    if sp.issparse(X):
        X = X.astype(np.float64, copy=True)  # in double: small integers do not hold products
        X.sum_duplicates()
        X = normalize(X, copy=False)
        return X, np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    squares = np.einsum("id,id->i", X, X)
    scale = max(float(squares.mean()), float(np.finfo(np.float64).tiny))
    return X / np.sqrt(scale), squares / scale


def _choose(data: Partition, distances: _Distances, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` different rows, at random by weight, or far apart (k-means++)."""
    weight = np.concatenate([block.row_weight() for block in data.blocks]).astype(np.float64)
    chosen: list[int] = []
    distance = np.ones(data.n_rows)
    for _ in range(k):
        chance = weight * distance if spread_out else weight.copy()
        chance[chosen] = 0.0
        if not chance.sum() > 0:  # fewer different rows than components: any row will do
            chance = np.ones(data.n_rows)
            chance[chosen] = 0.0
        edges = np.cumsum(chance)
        chosen.append(int(np.searchsorted(edges, rng.random() * edges[-1], side="right")))
        if spread_out:
            new = distances.to(np.array(chosen[-1:]))[:, 0]
            distance = new if len(chosen) == 1 else np.minimum(distance, new)
    return np.array(chosen)
