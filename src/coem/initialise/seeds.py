"""Rows as seeds: distances between rows, and draws by weight or far apart."""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.preprocessing import normalize

from coem.kernels import counts
from coem.typing import Array, Matrix, Rng, is_sparse

SAME = 1e-12  # squared distance below which two rows count as one


def seeder(X: Matrix, weight: Array, k: int, *, spread_out: bool) -> Callable[[Rng], Array]:
    """Return what draws `k` rows to start clusters from, by weight, or far apart (k-means++).

    Two rows of unit length have a squared distance of 2 (1 - cosine).
    """
    distances = Distances([scaled(X)], None)
    return lambda rng: choose(weight, distances, k, rng, spread_out=spread_out)


class Distances:
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
            product = counts.scores(X, X[seeds].toarray()) if is_sparse(X) else X @ X[seeds].T
            apart = squares[:, np.newaxis] + squares[seeds] - 2.0 * product
            # What rounding leaves between equal rows is no distance.
            noise = 1e-6 if X.dtype == np.float32 else SAME
            total += np.where(both & (apart > noise * squares[seeds]), apart, 0.0)
            shared += both
        # Rows that share no view with a seed are as far from it as unit rows can be.
        return np.asarray(np.where(shared > 0, total / np.maximum(shared, 1), 2.0))


def scaled(X: Matrix) -> tuple[Matrix, Array]:
    """Return unit rows if sparse, else centred ones of unit mean square, and their squares."""
    if is_sparse(X):
        X = X.astype(np.float64, copy=True)  # in double: small integers do not hold products
        X.sum_duplicates()
        X = normalize(X, copy=False)
        return X, squares_of(X)
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    squares = squares_of(X)
    scale = max(float(squares.mean()), float(np.finfo(np.float64).tiny))
    return X / np.sqrt(scale), squares / scale


def squares_of(X: Matrix) -> Array:
    """Return the squared lengths of the rows, in double."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("id,id->i", X, X, dtype=np.float64))


def choose(weight: Array, distances: Distances, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` different rows, at random by weight, or far apart (k-means++)."""
    order = by_content([X for X, _ in distances.views], rng)
    if spread_out:
        return np.asarray(choose_apart(weight, distances, k, rng, 1, order)[0][0])
    chosen: list[int] = []
    unlike = np.ones(len(weight), dtype=bool)  # copies of a row that is chosen are not
    for _ in range(k):
        chosen.append(_draw(weight * unlike, weight, chosen, rng, order))
        unlike &= distances.to(np.array(chosen[-1:]))[:, 0] > SAME
    return np.array(chosen)


def choose_apart(
    weight: Array,
    distances: Distances,
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


def by_content(views: Sequence[Matrix], rng: Rng | None = None) -> Array:
    """Return the rows in an order that follows from what they hold, whatever order they are in.

    It is that of their places on a line, a random one or always the same. Copies of a row are
    beside each other: together they are drawn as one of their weight.
    """
    key = np.zeros(views[0].shape[0])
    for X in views:
        ruler = (rng or np.random.default_rng(0)).standard_normal((1, X.shape[1]))
        key += counts.scores(X, ruler)[:, 0] if is_sparse(X) else X @ ruler[0].astype(X.dtype)
    return np.argsort(key, kind="stable")
