"""Starts: parameters or responsibilities for the first round."""

from typing import Literal

import numpy as np
import scipy.sparse as sp

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
    seeds = _choose(data, model.n_components, rng, spread_out=init == "k-means++")
    return model.from_resp(data, _nearest(data, seeds))


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


def _choose(data: Partition, k: int, rng: Rng, *, spread_out: bool) -> Array:
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
            new = _distances(data, np.array(chosen[-1:]))[:, 0]
            distance = new if len(chosen) == 1 else np.minimum(distance, new)
    return np.array(chosen)


def _nearest(data: Partition, seeds: Array) -> Array:
    """Return responsibilities that give every row to the nearest seed."""
    resp = np.zeros((data.n_rows, len(seeds)))
    resp[np.arange(data.n_rows), _distances(data, seeds).argmin(axis=1)] = 1.0
    resp[seeds] = np.eye(len(seeds))  # equal rows must not leave a component without any
    return resp


def _distances(data: Partition, seeds: Array) -> Array:
    """Return squared distances to the seeds, averaged over the views that both have."""
    total = np.zeros((data.n_rows, len(seeds)))
    shared = np.zeros((data.n_rows, len(seeds)))
    for v, X in enumerate(data.views):
        there = np.ones(data.n_rows, dtype=bool) if data.empty is None else ~data.empty[:, v]
        both = there[:, np.newaxis] & there[seeds]
        total += np.where(both, _squared(X, seeds), 0.0)
        shared += both
    # Rows that share no view with a seed are as far from it as unit rows can be.
    return np.where(shared > 0, total / np.maximum(shared, 1), 2.0)


def _squared(X: Matrix, seeds: Array) -> Array:
    """Return squared distances: between unit rows if sparse, else in units of the variance."""
    if sp.issparse(X):
        X = X.astype(np.float64)  # products of small integers or bools would not fit their type
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
        cosine = np.asarray((X @ X[seeds].T).todense())
        cosine /= np.maximum(norms[:, np.newaxis] * norms[seeds], np.finfo(np.float64).tiny)
        return np.clip(2.0 - 2.0 * cosine, 0.0, None)
    X = np.asarray(X, dtype=np.float64)
    centred = X - X.mean(axis=0)
    squares = np.einsum("nd,nd->n", centred, centred)
    apart = squares[:, np.newaxis] + squares[seeds] - 2.0 * centred @ centred[seeds].T
    scale = max(float(squares.mean()), float(np.finfo(np.float64).tiny))
    return np.asarray(np.clip(apart, 0.0, None) / scale)
