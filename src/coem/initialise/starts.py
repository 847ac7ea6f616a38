"""The starts that `init` can name."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import Generic, Literal, NamedTuple

from coem.engine.sessions import WholeSession
from coem.families.base import AnyFamily
from coem.initialise.seeds import Distances, choose, scaled
from coem.initialise.spherical import spherical
from coem.latent.block import Partition
from coem.latent.emissions import pooled
from coem.latent.mixture import Expected, Mixture, MixtureTheta
from coem.latent.stored import StoredRows
from coem.protocols import Clock, Engine, Theta
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
        return _random(model, _pool(part, model.emissions.families))
    draw = _labeller(model, part, init)
    return lambda rng: Start(model.unknown(), draw(rng))


def stored_starter(
    model: Mixture, rows: StoredRows, init: Init, engine: Engine, clock: Clock
) -> Callable[[Rng], Start[MixtureTheta]]:
    """Return a function that draws a start for rows of a corpus.

    "random" looks at all rows. The others draw from a sample of the rows, and do an M step on the
    sample: the start has parameters.
    """
    if init == "random":
        pool = partial(_pool, families=model.emissions.families)
        return _random(model, reduce(add, engine.each_part(pool, rows.parts())))
    sample = rows.sample
    if model.n_components > sample.n_rows:
        raise ValueError(
            f"init={init!r} draws a start from a sample of {sample.n_rows:,} of the "
            f"{rows.n_rows:,} rows, too few for {model.n_components:,} components; ask for fewer, "
            "or pass init='random', which looks at all rows"
        )
    draw = _labeller(model, sample, init)

    def start(rng: Rng) -> Start[MixtureTheta]:
        session = WholeSession(model, sample.starting_from(draw(rng)), model.unknown())
        for turn in range(model.n_turns):
            session.m_step(turn, clock)
        return Start(session.theta)

    return start


def _random(model: Mixture, pools: Expected) -> Callable[[Rng], Start[MixtureTheta]]:
    """Return a function that draws parameters near those of all rows pooled."""

    def draw(rng: Rng) -> Start[MixtureTheta]:
        pairs = zip(model.emissions.families, pools.views, strict=True)
        drawn = (family.start(pool, model.n_components, rng) for family, pool in pairs)
        return Start(model.from_params(tuple(drawn)))

    return draw


def _pool(part: Partition, families: Sequence[AnyFamily]) -> Expected:
    """Return the statistics of the rows of a partition as one component."""
    blanks = [None if part.empty is None else part.empty[:, v] for v in range(part.n_views)]
    triples = zip(families, part.views, blanks, strict=True)
    pools = (pooled(family, X, part.weight, blank) for family, X, blank in triples)
    return Expected(tuple(pools), part.row_weight().sum(keepdims=True))


def _labeller(model: Mixture, part: Partition, init: Init) -> Callable[[Rng], Array]:
    """Return a function that draws a component for every row."""
    return spherical(model, part) if init == "spherical" else _nearest(model, part, init)


def _nearest(model: Mixture, part: Partition, init: Init) -> Callable[[Rng], Array]:
    """Return a function that draws rows as seeds and gives every row to the nearest seed."""
    scaled_views = [scaled(X, part.view_weight(v)) for v, X in enumerate(part.views)]
    distances = Distances(scaled_views, part.empty)
    weight = part.row_weight()

    def draw(rng: Rng) -> Array:
        seeds = choose(weight, distances, model.n_components, rng, spread_out=init == "k-means++")
        return distances.nearest(seeds)

    return draw
