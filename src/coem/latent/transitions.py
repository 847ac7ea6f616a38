"""Transitions between runs: translate what one run has learnt into the components of another.

The components of two runs have no common order, and a component of one run may be a mixture of
several components of the other. A *transition* p(h2|h1) maps all components of one run to all
components of the other. It is computed from what both runs say about the same x or y. A coupled
run replaces each of its distributions by a mixture of the other run's distributions (Lin 2006, Sec.
3.3). This splits and merges any number of components at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from coem.latent.aspect import Aspects
from coem.latent.traffic import Traffic
from coem.run_coupling import PATHS, Path, RunCoupling, Via
from coem.typing import CSR, Array

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Link:
    """A transition that was used."""

    run: int  # H1, the run that learns
    other: int  # H2, the run that it learns from
    through: str  # "y", "x", "yx" or "xy"
    matrix: Array  # (k1, k2): p(h2|h1), rows sum to one


@dataclass(frozen=True, eq=False)
class HubLink(Link):
    """The two transitions between the hubs of two traffic models."""

    back: Array  # (k2, k1): p(h1|h2)


Learnt = tuple[dict[str, Array], list[Any]]  # new parameters by name, and the links used


def couple_runs(
    runs: Sequence[Aspects], coupling: RunCoupling, counts: CSR | None = None, turn: int = 0
) -> tuple[list[Aspects], list[Link]]:
    """Return the coupled parameters of every run, and the transitions; p(h) does not change."""

    def learn(run: int, other: int) -> Learnt:
        to_x, to_y = _links(runs, run, other, coupling.via, counts)
        x, y = to_x.matrix @ runs[other].x_given_h, to_y.matrix @ runs[other].y_given_h
        return {"x_given_h": x, "y_given_h": y}, [*dict.fromkeys((to_x, to_y))]

    return _couple_each(runs, coupling, turn, learn)


def couple_hubs(
    runs: Sequence[Traffic], coupling: RunCoupling, counts: CSR | None = None, turn: int = 0
) -> tuple[list[Traffic], list[HubLink]]:
    """Return the coupled parameters of every run of a traffic model (Lin 2006, Sec. 5).

    The new alpha of a run mixes the other run's alpha by p(h2|h1), as in an aspect model. The new
    beta is the other run's beta, with entrances and exits translated to the run's own hubs by
    p(h1|h2).
    """
    ends = [Aspects(run.weights, run.alpha, run.alpha) for run in runs]

    def learn(run: int, other: int) -> Learnt:
        to = transition(ends[run], ends[other], ("x",))
        back = transition(ends[other], ends[run], ("x",))
        alpha, beta = to @ runs[other].alpha, back.T @ runs[other].beta @ back
        return {"alpha": alpha, "beta": beta}, [HubLink(run, other, "x", to, back)]

    return _couple_each(runs, coupling, turn, learn)


def _couple_each(
    runs: Sequence[Any], coupling: RunCoupling, turn: int, learn: Callable[[int, int], Learnt]
) -> tuple[list[Any], list[Any]]:
    """Return every run with its new parameters, and the transitions.

    All runs learn from the old parameters of the others. A run that learns from several others
    takes the mean. `turn` is the number of the coupling; "pairs" needs it.
    """
    new, links = [], []
    for run, others in enumerate(coupling.partners(len(runs), turn)):
        learnt = [learn(run, other) for other in others]
        links += [link for _, used in learnt for link in used]
        names = learnt[0][0] if learnt else {}
        if coupling.includes_self:
            learnt.append(({name: getattr(runs[run], name) for name in names}, []))
        means = {name: _mean([values[name] for values, _ in learnt]) for name in names}
        new.append(runs[run]._replace(**means))
    return new, links


def _mean(tables: list[Array]) -> Array:
    return np.asarray(reduce(np.add, tables) / len(tables))


def _links(
    runs: Sequence[Aspects], run: int, other: int, via: Via, counts: CSR | None
) -> tuple[Link, Link]:
    """Return the transitions for p(x|h) and p(y|h); one object for both if the path is the same."""
    # The run with the lower number is H1. Seen from H2, the path is reversed.
    x_path, y_path = (path if run <= other else path[::-1] for path in PATHS[via])
    a, b = runs[run], runs[other]
    to_x = Link(run, other, "".join(x_path), transition(a, b, x_path, counts))
    if x_path == y_path:
        return to_x, to_x
    return to_x, Link(run, other, "".join(y_path), transition(a, b, y_path, counts))


def transition(a: Aspects, b: Aspects, path: Path, counts: CSR | None = None) -> Array:
    """Return p(h2|h1) of shape (k1, k2) for the states of `a` and `b`, along a path.

    Through one variable z it is sum_z p(z|h1) p(h2|z). Through two variables, p~(z2|z1) of the
    counts is in between (Lin 2006, Sec. 4.1 and 4.3).
    """
    first, last = _given_h(a, path[0]), _posterior(b, path[-1])
    if len(path) > 1:
        assert counts is not None
        last = _step(counts if path[0] == "x" else counts.T, last)
    product = np.asarray(first @ last)
    # Sums differ from one by rounding, and by the mass of rows or columns without counts.
    whole = product.sum(axis=1, keepdims=True)
    uniform = np.full(product.shape, 1.0 / product.shape[1])
    return np.where(whole > TINY, product / np.maximum(whole, TINY), uniform)


def _given_h(aspects: Aspects, variable: str) -> Array:
    """Return p(z|h) of shape (k, n), in float64."""
    table = aspects.x_given_h if variable == "x" else aspects.y_given_h
    return np.asarray(table, dtype=np.float64)


def _posterior(aspects: Aspects, variable: str) -> Array:
    """Return p(h|z) of shape (n, k); p(h) for a z to which the run gives probability zero."""
    joint = (_given_h(aspects, variable) * aspects.weights[:, np.newaxis]).T
    whole = joint.sum(axis=1, keepdims=True)
    return np.where(whole > TINY, joint / np.maximum(whole, TINY), aspects.weights)


def _step(counts: Any, values: Array) -> Array:
    """Return sum_z2 p~(z2|z1) values(z2); zero for a z1 without counts.

    `counts` is CSR, or a transposed CSR matrix.
    """
    whole = np.asarray(counts.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    return np.asarray(counts @ values) / np.maximum(whole, TINY)
