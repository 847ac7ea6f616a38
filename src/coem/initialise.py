"""Starts: parameters or responsibilities for the first round."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from coem.engine import LocalEngine
from coem.families import VonMisesFisher
from coem.families.base import Family
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureTheta, pooled
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta

Init = Literal["random", "rows", "k-means++", "spherical"]

INITS: tuple[Init, ...] = ("random", "rows", "k-means++", "spherical")

SPHERICAL_ROUNDS = 10

SAME = 1e-12  # squared distance below which two rows count as one


def start(
    model: Mixture, data: Partition, init: Init, rng: Rng, pools: list[Stats]
) -> MixtureTheta:
    """Return the start that `init` names; `pools` are what `pool_views` returned."""
    if init == "random":
        draws = zip(model.families, pools, strict=True)
        params = tuple(family.start(pool, model.n_components, rng) for family, pool in draws)
        return model.from_params(params)
    if init == "spherical":
        return model.from_resp(data, _spherical(model, data, rng))
    return model.from_resp(data, _nearest(model, data, rng, spread_out=init == "k-means++"))


def _nearest(model: Mixture, data: Partition, rng: Rng, *, spread_out: bool) -> Array:
    """Return responsibilities that give every row to the nearest of some rows."""
    distances = _Distances(data)
    weight = np.concatenate([block.row_weight() for block in data.blocks])
    seeds = _choose(weight, distances, model.n_components, rng, spread_out=spread_out)
    resp = np.eye(len(seeds))[distances.to(seeds).argmin(axis=1)]
    resp[seeds] = np.eye(len(seeds))  # equal rows must not leave a component without any
    return np.asarray(resp)


def _spherical(model: Mixture, data: Partition, rng: Rng) -> Array:
    """Return the partition that a few rounds of spherical k-means find, all views together.

    The rows of every view have unit length, those of counts after weighting by how rare words are;
    a row goes to the component whose directions are nearest in the sum over its views.
    """
    pairs = zip(model.families, data.views, strict=True)
    rows = tuple(_directions(family, X, data.weight) for family, X in pairs)
    sphere = Mixture(
        tuple(VonMisesFisher().bind(X, None) for X in rows),
        model.n_components,
        coupling="joint",
        rule="hard",
        weights="uniform",
    )
    turned = Partition(rows, data.empty, data.weight)
    engine = LocalEngine(1)  # the kernels have the threads that were lent
    theta = sphere.from_resp(turned, _nearest(sphere, turned, rng, spread_out=True))
    for _ in range(SPHERICAL_ROUNDS):
        theta = sphere.m_step(engine, turned, theta, 0, 0.0)
        sphere.e_step(engine, turned, theta, 1.0, 0.0)
    resp: Array = turned.cache.resp[0]
    return resp


def _directions(family: Family, X: Matrix, weight: Array | None) -> Matrix:
    """Return unit rows: TF-IDF of counts, directions as they are, other rows about their mean."""
    if sp.issparse(X):
        X = X.astype(np.float32, copy=True)
        X.sum_duplicates()
        mass = np.ones(X.shape[0]) if weight is None else weight
        there = np.repeat(mass, np.diff(X.indptr)) * (X.data > 0)
        frequency = np.bincount(X.indices, weights=there, minlength=X.shape[1])
        rarity = np.log((1 + mass.sum()) / (1 + frequency)) + 1
        X.data = np.log1p(X.data) * rarity[X.indices].astype(np.float32)
        return normalize(X, copy=False)
    if not isinstance(family, VonMisesFisher):
        spread = np.nanstd(X, axis=0)
        X = (X - np.nanmean(X, axis=0)) / np.where(spread > 0, spread, 1.0)
        X = np.where(np.isnan(X), 0.0, X)
    return normalize(X)


def seed_rows(X: Matrix, weight: Array, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` rows to start clusters from, at random by weight, or far apart (k-means++).

    Rows of unit length are apart by twice one less their cosine.
    """
    return _choose(weight, _Distances(Partition((X,))), k, rng, spread_out=spread_out)


def pool_views(model: Mixture, data: Partition) -> list[Stats]:
    """Return the statistics of every view with all rows in one component."""
    blanks = [None if data.empty is None else data.empty[:, v] for v in range(len(data.views))]
    triples = zip(model.families, data.views, blanks, strict=True)
    return [pooled(family, X, data.weight, blank) for family, X, blank in triples]


def prime(model: Mixture, data: Partition, resp: Array) -> MixtureTheta:
    """Return the parameters that an M step on `resp` gives in every view (Nigam 2006, Table 3.1).

    `resp` sums to the weight of a row, and is zero for rows that take no part.
    """
    params = tuple(family.estimate(stats) for family, stats in _primed(model, data, resp))
    return model.from_params(params, np.exp(model.log_weights(_mass(data, resp))))


def prime_apart(
    model: Mixture, data: Partition, shares: Array, init: Init, rng: Rng
) -> MixtureTheta:
    """Return a start in which the components of a class differ.

    `shares` (n_rows, n_classes) is what every row teaches its classes. "random" draws parameters
    about what the rows of the class would give together; "rows" and "k-means++" choose seeds
    among those rows, and give each of them to the nearest seed (if a class has fewer rows than
    components, parameters are drawn). The components of a class are side by side, the classes in
    their order.
    """
    assert model.classes is not None
    classes = np.asarray(model.classes)
    sizes = np.bincount(classes, minlength=shares.shape[1])
    if init == "random" or ((shares > 0).sum(axis=0) < sizes).any():  # too few rows for seeds
        return _drawn(model, data, shares, rng)
    resp = np.zeros((data.n_rows, model.n_components))
    distances = _Distances(data)
    for c, share in enumerate(shares.T):
        mine = np.flatnonzero(classes == c)
        seeds = _choose(share, distances, len(mine), rng, spread_out=init == "k-means++")
        nearest = distances.to(seeds).argmin(axis=1)
        nearest[seeds] = np.arange(len(seeds))
        resp[np.arange(data.n_rows), mine[nearest]] = share
    return prime(model, data, resp)


def _drawn(model: Mixture, data: Partition, shares: Array, rng: Rng) -> MixtureTheta:
    """Return parameters drawn about those of each class; a class of one component has its own."""
    sizes = np.bincount(np.asarray(model.classes), minlength=shares.shape[1])
    params = []
    for v, (family, stats) in enumerate(_primed(model, data, shares)):
        whole = family.estimate(stats)
        parts = [_part(whole, slice(c, c + 1)) for c in range(len(sizes))]
        for c in np.flatnonzero(sizes > 1).tolist():
            own = shares[:, c] * (1.0 if data.empty is None else ~data.empty[:, v])
            rows = np.flatnonzero(own)
            pool = family.stats(data.views[v][rows], own[rows, np.newaxis])
            parts[c] = family.start(pool, int(sizes[c]), rng)
        params.append(_stack(parts))
    mass = (_mass(data, shares) / sizes)[list(model.classes or ())]
    return model.from_params(tuple(params), np.exp(model.log_weights(mass)))


def _primed(model: Mixture, data: Partition, resp: Array) -> Iterator[tuple[Family, Any]]:
    """Yield the family and the statistics of every view."""
    for v, family in enumerate(model.families):
        mine = resp if data.empty is None else resp * ~data.empty[:, v, np.newaxis]
        yield family, family.stats(data.views[v], mine)


def _mass(data: Partition, resp: Array) -> Array:
    """Return what the components have of the rows that are not empty everywhere."""
    somewhere = resp if data.empty is None else resp[~data.empty.all(axis=1)]
    return np.asarray(somewhere.sum(axis=0, dtype=np.float64))


def _part(theta: Theta, components: slice) -> Theta:
    """Return the parameters of some components."""
    if isinstance(theta, tuple):
        return type(theta)(*(part[components] for part in theta))
    return theta[components]


def _stack(parts: list[Theta]) -> Theta:
    """Return the parameters of one mixture after another as those of one."""
    if isinstance(parts[0], tuple):
        return type(parts[0])(*(np.concatenate(fields) for fields in zip(*parts, strict=True)))
    return np.concatenate(parts)


class _Distances:
    """Squared distances between rows, averaged over the views that both have."""

    def __init__(self, data: Partition) -> None:
        self.views = [_scaled(X) for X in data.views]
        self.there = np.ones((data.n_rows, len(data.views)), dtype=bool)
        if data.empty is not None:
            self.there = ~data.empty

    def project(self, rng: Rng) -> Array:
        """Return the rows as points on a random line: equal rows are equal points."""
        points = [X @ rng.standard_normal(X.shape[1]) for X, _ in self.views]
        return np.asarray(np.sum(points, axis=0))

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


def _choose(weight: Array, distances: _Distances, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` different rows, at random by weight, or far apart (k-means++)."""
    # Rows are drawn in an order of their own, by their values: the draw is the same in whatever
    # order they come, and for a row of weight 2 as for the row given twice.
    order = np.argsort(distances.project(rng), kind="stable")
    weight = weight.astype(np.float64)
    chosen: list[int] = []
    distance = np.ones(len(weight))
    for _ in range(k):
        chance = weight * (distance if spread_out else distance > SAME)
        chance[chosen] = 0.0
        # Fewer different rows than components: any row will do, of no weight if need be.
        for fallback in (weight, np.ones(len(weight))):
            if not chance.sum() > 0:
                chance = fallback.copy()
                chance[chosen] = 0.0
        edges = np.cumsum(chance[order])
        place = np.searchsorted(edges, rng.random() * edges[-1], side="right")
        chosen.append(int(order[place]))
        new = distances.to(np.array(chosen[-1:]))[:, 0]
        distance = new if len(chosen) == 1 else np.minimum(distance, new)
    return np.array(chosen)
