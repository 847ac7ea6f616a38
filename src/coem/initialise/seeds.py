"""Choose rows as seeds: at random by weight, or far apart (k-means++)."""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.preprocessing import normalize

from coem.kernels import counts
from coem.typing import Array, Matrix, Rng, is_sparse

TIE, TIE_OF_SINGLE = 1e-9, 1e-6  # two distances that differ by less count as equal
CELLS = 1 << 27  # of seeds as dense rows: 1 GB in double precision
LEAST_SEEDS = 8  # at a time: a kernel has so many side by side
SAME = 1e-12  # two rows with a smaller squared distance count as equal


def seeder(X: Matrix, weight: Array, k: int, *, spread_out: bool) -> Callable[[Rng], Array]:
    """Return a function that draws `k` seeds: rows at random by weight, or far apart (k-means++).

    Two rows of unit length have a squared distance of 2 (1 - cosine).
    """
    distances = Distances([scaled(X, weight)], None)
    return lambda rng: choose(weight, distances, k, rng, spread_out=spread_out)


class Distances:
    """Squared distances between rows, averaged over the views in which neither row is empty."""

    def __init__(self, views: list[tuple[Matrix, Array]], empty: Array | None) -> None:
        self.views = views  # each with the squared lengths of its rows
        self.there = np.ones((len(views[0][1]), len(views)), dtype=bool)
        if empty is not None:
            self.there = ~empty
        single = any(X.dtype == np.float32 for X, _ in views)
        self._tie = TIE_OF_SINGLE if single else TIE

    def nearest(self, seeds: Array) -> Array:
        """Return the number of the nearest seed for every row; a seed is nearest to itself."""
        n_features = max(X.shape[1] for X, _ in self.views)
        step = max(CELLS // n_features, LEAST_SEEDS)
        if len(seeds) <= step:
            apart = self.to(seeds)
            # The first of equally near seeds: rounding must not decide between them.
            labels = self.is_nearer(apart.min(axis=1, keepdims=True), apart).argmin(axis=1)
        else:
            labels = self._nearest(seeds, step)
        labels[seeds] = np.arange(len(seeds))  # even if two seeds are equal, each has a row
        return np.asarray(labels)

    def _nearest(self, seeds: Array, step: int) -> Array:
        """Return the number of the nearest seed for every row; some seeds at a time are dense."""
        starts = range(0, len(seeds), step)
        best = np.full((len(self.there), 1), np.inf)
        for lo in starts:
            near = self.to(seeds[lo : lo + step]).min(axis=1, keepdims=True)
            np.minimum(best, near, out=best)
        labels = np.full(len(self.there), -1)
        for lo in starts:
            as_near = ~self.is_nearer(best, self.to(seeds[lo : lo + step]))
            first = (labels < 0) & as_near.any(axis=1)
            labels[first] = lo + as_near[first].argmax(axis=1)
        return labels

    def is_nearer(self, one: Array, other: Array) -> Array:
        """Return where a distance is smaller than another one, by more than rounding."""
        limit = other * (1.0 - self._tie)
        limit -= self._tie
        return np.asarray(one < limit)

    def to(self, seeds: Array) -> Array:
        """Return the distances of all rows to the seeds, of shape (n_rows, n_seeds)."""
        total = np.zeros((len(self.there), len(seeds)))
        shared = np.zeros(total.shape)
        for v, (X, squares) in enumerate(self.views):
            both = self.there[:, v, np.newaxis] & self.there[seeds, v]
            product = counts.scores(X, X[seeds].toarray()) if is_sparse(X) else X @ X[seeds].T
            apart = squares[:, np.newaxis] + squares[seeds] - 2.0 * product
            # A tiny distance between equal rows is a rounding error.
            noise = 1e-6 if X.dtype == np.float32 else SAME
            total += np.where(both & (apart > noise * squares[seeds]), apart, 0.0)
            shared += both
        # A row without a view in common with a seed gets 2, as for orthogonal unit rows.
        return np.asarray(np.where(shared > 0, total / np.maximum(shared, 1), 2.0))


def scaled(X: Matrix, weight: Array | None) -> tuple[Matrix, Array]:
    """Return unit rows if sparse, else centred ones of unit mean square, and their squares.

    The means are weighted. A missing entry (NaN) counts as the mean of its column.
    """
    if is_sparse(X):
        X = X.astype(np.float64, copy=True)  # in double: small integers do not hold products
        X.sum_duplicates()
        X = normalize(X, copy=False)
        return X, squares_of(X)
    share = np.full(X.shape[0], 1.0) if weight is None else np.asarray(weight, dtype=np.float64)
    share = share / share.sum() if share.any() else share
    X = filled(np.asarray(X, dtype=np.float64), share)
    X = X - share @ X
    squares = squares_of(X)
    scale = float(share @ squares)
    if not scale > np.finfo(np.float64).tiny:  # all rows that count are equal
        scale = 1.0
    return X / np.sqrt(scale), squares / scale


def filled(X: Array, weight: Array | None = None) -> Array:
    """Return dense rows with the mean of the observed entries of a column in the place of NaN."""
    if not np.isnan(np.vdot(X, X)):
        return X
    seen = ~np.isnan(X)
    by = seen.astype(np.float64) if weight is None else seen * weight[:, np.newaxis]
    total = np.einsum("nd,nd->d", by, np.where(seen, X, 0.0))
    return np.where(seen, X, total / np.maximum(by.sum(axis=0), np.finfo(np.float64).tiny))


def squares_of(X: Matrix) -> Array:
    """Return the squared lengths of the rows, in double."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("id,id->i", X, X, dtype=np.float64))


def choose(weight: Array, distances: Distances, k: int, rng: Rng, *, spread_out: bool) -> Array:
    """Return `k` different rows, drawn at random by weight, or far apart (k-means++)."""
    order = by_content([X for X, _ in distances.views], rng)
    if spread_out:
        return np.asarray(choose_apart(weight, distances, k, rng, 1, order)[0][0])
    chosen: list[int] = []
    unlike = np.ones(len(weight), dtype=bool)  # False for copies of a chosen row
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
    """Return `n` choices of `k` different rows far apart (k-means++), and every row's nearest seed.

    The shapes are (n, k) and (n, n_rows). All `n` choices are drawn together, because distances to
    several rows cost little more than to one. Rows are drawn from `order`.
    """
    chosen: list[list[int]] = [[] for _ in range(n)]
    left, nearest = np.ones((len(weight), n)), np.zeros((n, len(weight)), dtype=np.intp)
    for j in range(k):
        for seeds, distance in zip(chosen, left.T, strict=True):
            seeds.append(_draw(weight * distance, weight, seeds, rng, order))
        new = distances.to(np.array([seeds[-1] for seeds in chosen]))
        nearest[distances.is_nearer(new, left).T & (j > 0)] = j
        left = new if j == 0 else np.minimum(left, new, out=left)
    rows = np.array(chosen)
    np.put_along_axis(nearest, rows, np.arange(k), axis=1)  # a seed is nearest to itself
    return rows, nearest


def _draw(chance: Array, weight: Array, chosen: list[int], rng: Rng, order: Array) -> int:
    """Draw a row with probability proportional to `chance`; never one of `chosen`."""
    # With fewer different rows than components, take a copy, or even a row of weight zero.
    for chances in (chance, weight, np.ones(len(weight))):
        chances = chances.astype(np.float64)
        chances[chosen] = 0.0
        if chances.sum() > 0:
            break
    edges = np.cumsum(chances[order])
    return int(order[np.searchsorted(edges, rng.random() * edges[-1], side="right")])


def by_content(views: Sequence[Matrix], rng: Rng | None = None) -> Array:
    """Return the rows in an order that depends only on their values, not on their input order.

    Rows are sorted by their projection on a line: a random line, or without `rng` always the same.
    Copies of a row are next to each other, so they are drawn like one row with their total weight.
    """
    key = np.zeros(views[0].shape[0])
    for X in views:
        ruler = (rng or np.random.default_rng(0)).standard_normal((1, X.shape[1]))
        key += counts.scores(X, ruler)[:, 0] if is_sparse(X) else X @ ruler[0].astype(X.dtype)
    return np.argsort(key, kind="stable")
