"""Starts from labelled rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coem.families.base import AnyFamily, stack
from coem.initialise.seeds import Distances, choose, scaled
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureTheta
from coem.typing import Array, Rng, Theta


def prime(model: Mixture, part: Partition, resp: Array) -> MixtureTheta:
    """Return the parameters after an M step on `resp` in every view (Nigam 2006, Table 3.1).

    The responsibilities of a row sum to its weight. They are zero for rows that are left out.
    """
    params = tuple(family.estimate(stats) for family, stats in _view_stats(model, part, resp))
    return model.from_params(params, np.exp(model.prior.estimate(_mass(part, resp))))


def prime_apart(
    model: Mixture, part: Partition, shares: Array, init: str
) -> Callable[[Rng], MixtureTheta]:
    """Return a function that draws starts in which the components of a class differ.

    `shares` (n_rows, n_classes) is the weight of every row in each class. "random" draws parameters
    near those of all rows of the class. "rows" and "k-means++" choose seeds among the rows of the
    class, and give every row to the nearest seed; if a class has fewer rows than components,
    they draw parameters instead. Components are ordered by class.
    """
    assert model.prior.classes is not None
    classes = np.asarray(model.prior.classes)
    sizes = np.bincount(classes, minlength=shares.shape[1])
    if init == "random" or ((shares > 0).sum(axis=0) < sizes).any():  # too few rows for seeds
        return lambda rng: _drawn(model, part, shares, rng)
    scaled_views = [scaled(X, part.view_weight(v)) for v, X in enumerate(part.views)]
    distances = Distances(scaled_views, part.empty)

    def draw(rng: Rng) -> MixtureTheta:
        resp = np.zeros((part.n_rows, model.n_components))
        for c, share in enumerate(shares.T):
            members = np.flatnonzero(classes == c)
            seeds = choose(share, distances, len(members), rng, spread_out=init == "k-means++")
            resp[np.arange(part.n_rows), members[distances.nearest(seeds)]] = share
        return prime(model, part, resp)

    return draw


def _drawn(model: Mixture, part: Partition, shares: Array, rng: Rng) -> MixtureTheta:
    """Draw parameters near those of each class; a class with one component keeps its own."""
    sizes = np.bincount(np.asarray(model.prior.classes), minlength=shares.shape[1])
    params = []
    for v, (family, stats) in enumerate(_view_stats(model, part, shares)):
        whole = family.estimate(stats)
        parts = [_part(whole, slice(c, c + 1)) for c in range(len(sizes))]
        for c in np.flatnonzero(sizes > 1).tolist():
            own = shares[:, c] * (1.0 if part.empty is None else ~part.empty[:, v])
            rows = np.flatnonzero(own)
            pool = family.stats(part.views[v][rows], own[rows, np.newaxis])
            parts[c] = family.start(pool, int(sizes[c]), rng)
        params.append(stack(parts))
    mass = (_mass(part, shares) / sizes)[list(model.prior.classes or ())]
    return model.from_params(tuple(params), np.exp(model.prior.estimate(mass)))


def _view_stats(model: Mixture, part: Partition, resp: Array) -> Iterator[tuple[AnyFamily, Any]]:
    """Yield the family and the statistics of every view."""
    for v, family in enumerate(model.emissions.families):
        in_view = resp if part.empty is None else resp * ~part.empty[:, v, np.newaxis]
        yield family, family.stats(part.views[v], in_view)


def _mass(part: Partition, resp: Array) -> Array:
    """Return the mass of the components, without rows that are empty in every view."""
    somewhere = resp if part.empty is None else resp[~part.empty.all(axis=1)]
    return np.asarray(somewhere.sum(axis=0, dtype=np.float64))


def _part(theta: Theta, components: slice) -> Theta:
    """Return the parameters of some components."""
    if isinstance(theta, tuple):
        return type(theta)(*(part[components] for part in theta))
    return theta[components]
