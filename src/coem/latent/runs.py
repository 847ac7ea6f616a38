"""Coupling of runs: what one run has learnt, told to another in the other's own states.

The states of two runs are in no order, and one may be a mixture of several of the other. A
*transition* p(h2|h1) maps all states of one run to all of another, and follows from what both runs
say of the same x or y; a run then takes the other's distributions, each a mixture of those of the
other's states (Lin 2006, Sec. 3.3). That splits and merges any number of states at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np

from coem.checks import check_choice, check_flag
from coem.latent.aspect import Aspects
from coem.latent.traffic import Traffic
from coem.typing import Array, Matrix

Via = Literal["xy", "a", "b", "c", "d", "x"]
Among = Literal["all", "ring", "pairs"]
Path = tuple[str, ...]  # the observed variables between H1 and H2, in their order

VIAS: tuple[Via, ...] = ("xy", "a", "b", "c", "d")
HUB_VIAS: tuple[Via, ...] = ("x",)  # of the traffic model, whose X and Y are the same
AMONG: tuple[Among, ...] = ("all", "ring", "pairs")

# The paths by which p(x|h) and p(y|h) are coupled; X is the paper's D, Y its W.
PATHS: dict[Via, tuple[Path, Path]] = {
    "xy": (("y",), ("x",)),  # Sec. 3.3, steps 2 (a) and (b)
    "a": (("y",), ("y",)),  # Sec. 4.3: H1 - W - H2
    "b": (("x",), ("x",)),  # H1 - D - H2
    "c": (("y", "x"), ("y", "x")),  # H1 - W - D - H2
    "d": (("x", "y"), ("x", "y")),  # H1 - D - W - H2
}

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class RunCoupling:
    """How runs are coupled.

    Parameters
    ----------
    via : {"xy", "a", "b", "c", "d"}, or "x" for a traffic model; default="xy"
        Which observed variables lie between the states of two runs.
    among : {"all", "ring", "pairs"}, default="all"
        Who learns from whom where there are more than two runs: every run from the mean of all
        others; every run from the next one; or runs two by two, with other partners every time.
        For two runs these are the same; for more, "all" was the best in every case measured.
    itself : bool, default=False
        Every run is coupled with itself, not with another (SCoEM, Sec. 4.3).
    """

    via: Via = "xy"
    among: Among = "all"
    itself: bool = False

    def __post_init__(self) -> None:
        """Refuse what says nothing."""
        check_choice("RunCoupling: via", self.via, (*VIAS, *HUB_VIAS))
        check_choice("RunCoupling: among", self.among, AMONG)
        check_flag("RunCoupling: itself", self.itself)

    @property
    def needs_counts(self) -> bool:
        """True if a path has a step from X to Y, which only the counts can tell."""
        return any(len(path) > 1 for path in PATHS.get(self.via, ()))


@dataclass(frozen=True, eq=False)
class Link:
    """A transition that was used."""

    run: int  # the run that learns, H1
    other: int  # the run that it learns from, H2
    through: str  # "y", "x", "yx" or "xy"
    matrix: Array  # (k1, k2): p(h2|h1), rows sum to one


@dataclass(frozen=True, eq=False)
class HubLink(Link):
    """The two transitions between the hubs of two traffic models."""

    back: Array  # (k2, k1): p(h1|h2)


Learnt = tuple[dict[str, Array], list[Any]]  # parameters by name, and the links used


def couple_runs(
    runs: Sequence[Aspects], coupling: RunCoupling, counts: Matrix = None, turn: int = 0
) -> tuple[list[Aspects], list[Link]]:
    """Return the coupled parameters of every run, and the transitions; p(h) stays as it is."""

    def learn(run: int, other: int) -> Learnt:
        to_x, to_y = _links(runs, run, other, coupling.via, counts)
        x, y = to_x.matrix @ runs[other].x_given_h, to_y.matrix @ runs[other].y_given_h
        return {"x_given_h": x, "y_given_h": y}, [*dict.fromkeys((to_x, to_y))]

    return _each_learns(runs, coupling, turn, learn)


def couple_hubs(
    runs: Sequence[Traffic], coupling: RunCoupling, counts: Matrix = None, turn: int = 0
) -> tuple[list[Traffic], list[HubLink]]:
    """Return the coupled parameters of every run of a traffic model (Lin 2006, Sec. 5).

    A run's alpha are mixtures of the other's by p(h2|h1), as in an aspect model; its highway
    traffic is the other's, with entrances and exits both told in its own hubs by p(h1|h2).
    """
    ends = [Aspects(run.weights, run.alpha, run.alpha) for run in runs]

    def learn(run: int, other: int) -> Learnt:
        to = transition(ends[run], ends[other], ("x",))
        back = transition(ends[other], ends[run], ("x",))
        alpha, beta = to @ runs[other].alpha, back.T @ runs[other].beta @ back
        return {"alpha": alpha, "beta": beta}, [HubLink(run, other, "x", to, back)]

    return _each_learns(runs, coupling, turn, learn)


def _each_learns(
    runs: Sequence[Any], coupling: RunCoupling, turn: int, learn: Callable[[int, int], Learnt]
) -> tuple[list[Any], list[Any]]:
    """Return every run with what it learns, and the transitions.

    All runs learn from what the others were before, and one that learns from several takes the
    mean. `turn` counts the couplings, for "pairs".
    """
    new, links = [], []
    for run, others in enumerate(partners(len(runs), coupling, turn)):
        learnt = [learn(run, other) for other in others]
        links += [link for _, used in learnt for link in used]
        names = learnt[0][0] if learnt else {}
        means = {name: _mean([values[name] for values, _ in learnt]) for name in names}
        new.append(runs[run]._replace(**means))
    return new, links


def _mean(tables: list[Array]) -> Array:
    return np.asarray(reduce(np.add, tables) / len(tables))


def partners(n_runs: int, coupling: RunCoupling, turn: int) -> list[list[int]]:
    """Return for every run the runs that it learns from."""
    runs = range(n_runs)
    if coupling.itself:
        return [[run] for run in runs]
    if coupling.among == "all":
        return [[other for other in runs if other != run] for run in runs]
    if coupling.among == "ring":
        return [[(run + 1) % n_runs] if n_runs > 1 else [] for run in runs]
    # As in a tournament: the last seat stays, the others move on; an odd one waits a round.
    seats = [*runs] if n_runs % 2 == 0 else [*runs, -1]
    moving = seats[:-1]
    shift = turn % max(len(moving), 1)
    moving = moving[shift:] + moving[:shift]
    seats = [seats[-1], *moving]
    found: dict[int, int] = {}
    for i in range(len(seats) // 2):
        a, b = seats[i], seats[-1 - i]
        found |= {a: b, b: a}
    return [[found[run]] if found[run] >= 0 else [] for run in runs]


def _links(
    runs: Sequence[Aspects], run: int, other: int, via: Via, counts: Matrix
) -> tuple[Link, Link]:
    """Return the transitions for p(x|h) and p(y|h), the same one where they share a path."""
    # The run with the lower number is H1: read from H2, the path goes the other way round.
    x_path, y_path = (path if run <= other else path[::-1] for path in PATHS[via])
    a, b = runs[run], runs[other]
    to_x = Link(run, other, "".join(x_path), transition(a, b, x_path, counts))
    if x_path == y_path:
        return to_x, to_x
    return to_x, Link(run, other, "".join(y_path), transition(a, b, y_path, counts))


def transition(a: Aspects, b: Aspects, path: Path, counts: Matrix = None) -> Array:
    """Return p(h2|h1) of shape (k1, k2) for the states of `a` and `b`, along a path.

    Through one variable z it is sum_z p(z|h1) p(h2|z); through two, p~(z2|z1) of the counts
    stands between them (Lin 2006, Sec. 4.1 and 4.3).
    """
    first, last = _given_h(a, path[0]), _posterior(b, path[-1])
    if len(path) > 1:
        last = _step(counts if path[0] == "x" else counts.T, last)
    product = np.asarray(first @ last)
    # Rounding, and mass that lies on rows or columns without counts.
    whole = product.sum(axis=1, keepdims=True)
    uniform = np.full(product.shape, 1.0 / product.shape[1])
    return np.where(whole > TINY, product / np.maximum(whole, TINY), uniform)


def _given_h(aspects: Aspects, variable: str) -> Array:
    """Return p(z|h) of shape (k, n), in double."""
    table = aspects.x_given_h if variable == "x" else aspects.y_given_h
    return np.asarray(table, dtype=np.float64)


def _posterior(aspects: Aspects, variable: str) -> Array:
    """Return p(h|z) of shape (n, k); p(h) for a z that the run holds impossible."""
    joint = (_given_h(aspects, variable) * aspects.weights[:, np.newaxis]).T
    whole = joint.sum(axis=1, keepdims=True)
    return np.where(whole > TINY, joint / np.maximum(whole, TINY), aspects.weights)


def _step(counts: Matrix, values: Array) -> Array:
    """Return sum_z2 p~(z2|z1) values(z2); zero for a z1 without counts."""
    whole = np.asarray(counts.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    return np.asarray(counts @ values) / np.maximum(whole, TINY)
