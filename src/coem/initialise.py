"""Starts: parameters or responsibilities for the first round."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from coem.families import Gaussian, VonMisesFisher
from coem.families.base import Family
from coem.kernels import counts
from coem.latent.block import Partition
from coem.latent.means import Directions, Means, one_hot, row_weight
from coem.latent.mixture import Mixture, MixtureTheta, pooled
from coem.latent.sphere import refill
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta

Init = Literal["random", "rows", "k-means++", "spherical"]

INITS: tuple[Init, ...] = ("random", "rows", "k-means++", "spherical")

# The figures behind these are in docs/starts.md.
BEGINNINGS = 8
FIRST_ROUNDS = 3  # of every beginning
MORE_ROUNDS = 7  # of the best one

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
    distances = _Distances([_scaled(X) for X in data.views], data.empty)
    weight = row_weight(data)
    seeds = _choose(weight, distances, model.n_components, rng, spread_out=spread_out)
    return one_hot(distances.nearest(seeds), model.n_components)


def _spherical(model: Mixture, data: Partition, rng: Rng) -> Array:
    """Return the partitions that a few rounds of k-means find, with the coupling of the model.

    Every view is seen through a ruler of its own (`_turned`), by which its rows have unit length on
    average. Of several beginnings from seeds far apart, the one that is best after a few rounds is
    carried on. Under co-EM every view has a partition of its own, learnt from those of the others:
    the multi-view k-means of Bickel & Scheffer (2004, Sec. 4.3).
    """
    views = enumerate(zip(model.families, data.views, strict=True))
    families, rows = zip(*(_turned(f, X, data.view_weight(v)) for v, (f, X) in views), strict=True)
    turned, k = Partition(rows, data.empty, data.weight), model.n_components
    means: Directions | Means
    if len(rows) == 1 and isinstance(families[0], VonMisesFisher):
        means = Directions(turned, k)
    else:
        means = Means(
            Mixture(families, k, coupling=model.coupling, rule="hard", weights="uniform"), turned
        )
    distances = _Distances([(X, _squares(X)) for X in rows], data.empty)
    _, beginnings = _choose_apart(
        row_weight(data), distances, k, rng, BEGINNINGS, order=_by_content(rows)
    )
    tries = [means.improve(labels, FIRST_ROUNDS) for labels in beginnings]
    _, best = max(tries, key=lambda run: run[0])
    _, best = means.improve(best, MORE_ROUNDS)
    for labels, fit, weight in zip(best, means.fits, means.weights, strict=True):
        _fill_gaps(labels, fit, weight, k)
    return one_hot(best, k)


def _fill_gaps(labels: Array, fit: Array, weight: Array | None, k: int) -> None:
    """Give every component without rows the row that fits worst, but not another's only one."""
    present = labels if weight is None else np.where(weight > 0, labels, -1)
    for component, row in refill(present, fit, k):
        labels[row] = component


def _turned(family: Family, X: Matrix, weight: Array | None) -> tuple[Family, Matrix]:
    """Return the rows of a view as k-means is to see them, and the family that does so.

    Directions stay as they are; counts become directions, TF-IDF rows of unit length. Any other
    rows are measured in standard deviations of their columns and have unit length about their
    mean, on average. Each of these families loses half a squared distance, so that views add up.
    """
    if isinstance(family, VonMisesFisher):
        return replace(family, kappa=1.0), X
    mass = np.ones(X.shape[0]) if weight is None else weight
    if family.nonnegative and sp.issparse(X):
        return VonMisesFisher(1.0), _tf_idf(X, mass)
    return Gaussian("unit"), _standardised(X, mass)


def _tf_idf(X: Matrix, mass: Array) -> Matrix:
    """Return unit rows of log(1 + count) by how rare the word is."""
    X = X.astype(np.float32, copy=True)
    X.sum_duplicates()
    there = np.repeat(mass, np.diff(X.indptr)) * (X.data > 0)
    frequency = np.bincount(X.indices, weights=there, minlength=X.shape[1])
    rarity = np.log((1 + mass.sum()) / (1 + frequency)) + 1
    X.data = np.log1p(X.data) * rarity[X.indices].astype(np.float32)
    return normalize(X, copy=False)


def _standardised(X: Matrix, mass: Array) -> Matrix:
    """Return rows whose columns have one variance, together 1; sparse ones are not centred."""
    share = mass / max(float(mass.sum()), 1e-300)
    mean = np.asarray(share @ X)
    if sp.issparse(X):
        squares = np.asarray(share @ X.multiply(X).tocsr())
        spread = np.sqrt(np.maximum(squares - mean * mean, 0.0))
    else:
        X = X - mean
        spread = np.sqrt(share @ (X * X))
    varied = spread > 1e-12 * np.abs(mean)  # what rounding leaves of a constant is no spread
    by = np.divide(1.0, spread, out=np.zeros(len(spread)), where=varied)
    by /= np.sqrt(max(int(varied.sum()), 1))
    return X.multiply(by).tocsr() if sp.issparse(X) else X * by


def seeder(X: Matrix, weight: Array, k: int, *, spread_out: bool) -> Callable[[Rng], Array]:
    """Return what draws `k` rows to start clusters from, by weight, or far apart (k-means++).

    Rows of unit length are apart by twice one less their cosine.
    """
    distances = _Distances([_scaled(X)], None)
    return lambda rng: _choose(weight, distances, k, rng, spread_out=spread_out)


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
    distances = _Distances([_scaled(X) for X in data.views], data.empty)
    for c, share in enumerate(shares.T):
        mine = np.flatnonzero(classes == c)
        seeds = _choose(share, distances, len(mine), rng, spread_out=init == "k-means++")
        resp[np.arange(data.n_rows), mine[distances.nearest(seeds)]] = share
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

    def __init__(self, views: list[tuple[Matrix, Array]], empty: Array | None) -> None:
        self.views = views  # with the squared lengths of their rows
        self.there = np.ones((len(views[0][1]), len(views)), dtype=bool)
        if empty is not None:
            self.there = ~empty

    def nearest(self, seeds: Array) -> Array:
        """Return for every row which of the seeds is nearest; a seed is nearest to itself."""
        labels: Array = self.to(seeds).argmin(axis=1)
        labels[seeds] = np.arange(len(seeds))  # equal rows must not leave a component without any
        return labels

    def to(self, seeds: Array) -> Array:
        """Return the distances of all rows to some of them, of shape (n_rows, n_seeds)."""
        total = np.zeros((len(self.there), len(seeds)))
        shared = np.zeros(total.shape)
        for v, (X, squares) in enumerate(self.views):
            both = self.there[:, v, np.newaxis] & self.there[seeds, v]
            sparse = sp.issparse(X)
            product = counts.scores(X, X[seeds].toarray()) if sparse else X @ X[seeds].T
            apart = squares[:, np.newaxis] + squares[seeds] - 2.0 * product
            # What rounding leaves between equal rows is no distance.
            noise = 1e-6 if X.dtype == np.float32 else SAME
            total += np.where(both & (apart > noise * squares[seeds]), apart, 0.0)
            shared += both
        # Rows that share no view with a seed are as far from it as unit rows can be.
        return np.asarray(np.where(shared > 0, total / np.maximum(shared, 1), 2.0))


def _scaled(X: Matrix) -> tuple[Matrix, Array]:
    """Return unit rows if sparse, else centred ones of unit mean square, and their squares."""
    if sp.issparse(X):
        X = X.astype(np.float64, copy=True)  # in double: small integers do not hold products
        X.sum_duplicates()
        X = normalize(X, copy=False)
        return X, _squares(X)
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    squares = _squares(X)
    scale = max(float(squares.mean()), float(np.finfo(np.float64).tiny))
    return X / np.sqrt(scale), squares / scale


def _squares(X: Matrix) -> Array:
    """Return the squared lengths of the rows, in double."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("id,id->i", X, X, dtype=np.float64))


def _choose(weight: Array, distances: _Distances, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` different rows, at random by weight, or far apart (k-means++)."""
    order = _by_content([X for X, _ in distances.views], rng)
    if spread_out:
        return np.asarray(_choose_apart(weight, distances, k, rng, 1, order)[0][0])
    chosen: list[int] = []
    unlike = np.ones(len(weight), dtype=bool)  # copies of a row that is chosen are not
    for _ in range(k):
        chosen.append(_draw(weight * unlike, weight, chosen, rng, order))
        unlike &= distances.to(np.array(chosen[-1:]))[:, 0] > SAME
    return np.array(chosen)


def _choose_apart(
    weight: Array,
    distances: _Distances,
    k: int,
    rng: Rng,
    n: int,
    order: Array,
) -> tuple[Array, Array]:
    """Return `n` choices of `k` different rows far apart (k-means++), and every row's nearest.

    Of shapes (n, k) and (n, n_rows). They are drawn side by side, because the distances to several
    rows cost little more than to one, and from the rows in a given order.
    """
    chosen: list[list[int]] = [[] for _ in range(n)]
    left, nearest = np.ones((len(weight), n)), np.zeros((n, len(weight)), dtype=np.intp)
    for j in range(k):
        for mine, distance in zip(chosen, left.T, strict=True):
            mine.append(_draw(weight * distance, weight, mine, rng, order))
        new = distances.to(np.array([mine[-1] for mine in chosen]))
        nearest[(new < left).T & (j > 0)] = j
        left = new if j == 0 else np.minimum(left, new, out=left)
    seeds = np.array(chosen)
    np.put_along_axis(nearest, seeds, np.arange(k), axis=1)  # whatever rows are equal
    return seeds, nearest


def _draw(chance: Array, weight: Array, chosen: list[int], rng: Rng, order: Array) -> int:
    """Return a row by chance, but none that is chosen already."""
    # Fewer different rows than components: any row will do, of no weight if need be.
    for chances in (chance, weight, np.ones(len(weight))):
        chances = chances.astype(np.float64)
        chances[chosen] = 0.0
        if chances.sum() > 0:
            break
    edges = np.cumsum(chances[order])
    return int(order[np.searchsorted(edges, rng.random() * edges[-1], side="right")])


def _by_content(views: Sequence[Matrix], rng: Rng | None = None) -> Array:
    """Return the rows in an order that follows from what they hold, whatever order they are in.

    It is that of their places on a line, a random one or always the same. Copies of a row are
    beside each other: together they are drawn as one of their weight.
    """
    key = np.zeros(views[0].shape[0])
    for X in views:
        ruler = (rng or np.random.default_rng(0)).standard_normal((1, X.shape[1]))
        key += counts.scores(X, ruler)[:, 0] if sp.issparse(X) else X @ ruler[0].astype(X.dtype)
    return np.argsort(key, kind="stable")
