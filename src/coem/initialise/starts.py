"""The starts that `init` can name."""

from collections.abc import Callable
from typing import Generic, Literal, NamedTuple

from coem.initialise.seeds import Distances, choose, scaled
from coem.initialise.spherical import spherical
from coem.latent.block import Partition
from coem.latent.emissions import pooled
from coem.latent.mixture import Mixture, MixtureTheta
from coem.protocols import Theta
from coem.typing import Array, Rng

Init = Literal["random", "rows", "k-means++", "spherical"]

INITS: tuple[Init, ...] = ("random", "rows", "k-means++", "spherical")


class Start(NamedTuple, Generic[Theta]):
    """The start of a run: parameters, or `given`, which replaces the posteriors at first."""

    theta: Theta
    given: Array | None = None  # as in `Partition`


def starter(model: Mixture, part: Partition, init: Init) -> Callable[[Rng], Start[MixtureTheta]]:
    """Return a function that draws a start of the kind that `init` names."""
    if init == "random":
        return _random(model, part)
    draw = spherical(model, part) if init == "spherical" else _nearest(model, part, init)
    return lambda rng: Start(model.unknown(), draw(rng))


def _random(model: Mixture, part: Partition) -> Callable[[Rng], Start[MixtureTheta]]:
    """Return a function that draws parameters near those of all rows pooled."""
    blanks = [None if part.empty is None else part.empty[:, v] for v in range(len(part.views))]
    triples = zip(model.emissions.families, part.views, blanks, strict=True)
    pools = [(family, pooled(family, X, part.weight, blank)) for family, X, blank in triples]

    def draw(rng: Rng) -> Start[MixtureTheta]:
        drawn = (family.start(pool, model.n_components, rng) for family, pool in pools)
        return Start(model.from_params(tuple(drawn)))

    return draw


def _nearest(model: Mixture, part: Partition, init: Init) -> Callable[[Rng], Array]:
    """Return a function that draws rows as seeds and gives every row to the nearest seed."""
    distances = Distances([scaled(X, part.weight) for X in part.views], part.empty)
    weight = part.row_weight()

    def draw(rng: Rng) -> Array:
        seeds = choose(weight, distances, model.n_components, rng, spread_out=init == "k-means++")
        return distances.nearest(seeds)

    return draw
