"""Transitions between runs through the rows that their components share.

Any model that assigns rows to components has such transitions, whatever its families and views:
p(h2|h1) is the share of the rows of h1, by mass, that the other run gives to h2 (the path
H1 - D - H2 of Lin 2006, Sec. 4.3). They translate what one run has learnt into the components of
another, and show which components recur.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from coem.latent.transitions import Link
from coem.run_coupling import RunCoupling
from coem.typing import Array

MOST = 0.5 + 1e-9  # exactly one half does not count as most, even after rounding
TIGHT = 1e-12


def shared_mass(a: Array, b: Array, weight: Array | None = None) -> Array:
    """Return the mass of rows that components of two runs share, (k1, k2), in float64.

    `a` and `b` are responsibilities (n, k1) and (n, k2) of the same rows.
    """
    weighted = np.asarray(a, dtype=np.float64)
    weighted = weighted if weight is None else weighted * weight[:, np.newaxis]
    return np.asarray(weighted.T @ np.asarray(b, dtype=np.float64))


def shared_rows(a: Array, b: Array, shape: tuple[int, int], weight: Array | None = None) -> Array:
    """Return the mass of rows that clusters share; `a` and `b` are labels (n,) from 0 on."""
    pairs = np.ravel_multi_index((a, b), shape)
    counts = np.bincount(pairs, weights=weight, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def rand_index(mass: Array) -> float:
    """Return the adjusted Rand index of two clusterings, from the mass of rows that they share.

    A row of weight 2 counts as two rows. scikit-learn's `adjusted_rand_score` takes no weights.
    """

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1.0)).sum()) / 2

    both, first, second = pairs(mass), pairs(mass.sum(axis=1)), pairs(mass.sum(axis=0))
    whole = pairs(mass.sum(keepdims=True))
    chance = first * second / whole if whole > 0 else 0.0
    room = (first + second) / 2 - chance
    return (both - chance) / room if abs(room) > 1e-12 * max(whole, 1.0) else 1.0


def transition_of(mass: Array) -> Array:
    """Return p(h2|h1), given the mass that h1 and h2 share; p(h2) for an h1 without rows."""
    rows = mass.sum(axis=1, keepdims=True)
    there = rows > 0
    return np.where(there, mass / np.where(there, rows, 1.0), _shares(mass.sum(axis=0)))


def _shares(mass: Array) -> Array:
    """Return p(h); uniform if there are no rows at all."""
    whole = mass.sum()
    return np.asarray(mass / whole) if whole > 0 else np.full(len(mass), 1.0 / len(mass))


def translated(
    labels: Array, others: Sequence[Array], n_components: int, weight: Array | None = None
) -> Array:
    """Return what other groupings say of rows, in the components of one grouping, (n, k).

    A row of group g of another grouping is in component c with the probability p(c|g), the share
    of the other rows of g: a row does not support itself. For a group of one row it is the share
    of all rows. The result is the mean over the other groupings.

    Parameters
    ----------
    labels : ndarray of int of shape (n,)
        The component of each row.
    others : sequence of ndarrays of int of shape (n,)
        The groups of the same rows in other groupings, from 0 on.
    n_components : int
        The number of components k.
    weight : ndarray of shape (n,), optional
        A weight of 2 counts as the row given twice.
    """
    total, rows = np.zeros((len(labels), n_components)), np.arange(len(labels))
    own = np.ones(len(labels)) if weight is None else np.minimum(weight, 1.0)
    for other in others:
        mass = shared_rows(other, labels, (int(other.max()) + 1, n_components), weight)
        rest = mass[other]
        rest[rows, labels] -= own
        left = rest.sum(axis=1, keepdims=True)
        there = left > 1e-9
        total += np.where(there, rest / np.where(there, left, 1.0), _shares(mass.sum(axis=0)))
    return total / len(others)


# -- coupling -----------------------------------------------------------------------------------


def couple_resp(
    runs: Sequence[Array],
    coupling: RunCoupling,
    weight: Array | None = None,
    turn: int = 0,
    means: Sequence[Array] | None = None,
) -> tuple[list[Array], list[Link]]:
    """Return new responsibilities for each run: those of the others, in the run's own components.

    A run with responsibilities R1 (n, k1) that learns from R2 takes R2 p(h1|h2). An M step on that
    gives p(x|h1) = sum_h2 p(h2|h1) p(x|h2), the coupling of Lin (2006), for any family. Runs may
    have responsibilities per view, (n_views, n, k). Then `means` (n, k) decides which rows the
    components share.
    """
    means = runs if means is None else means
    new, links = [], []
    for run, others in enumerate(coupling.partners(len(runs), turn)):
        own = [np.asarray(runs[run], dtype=np.float64)]
        votes = own if coupling.includes_self or not others else []
        for other in others:
            mass = shared_mass(means[run], means[other], weight)
            links.append(Link(run, other, "rows", transition_of(mass)))
            votes.append(runs[other] @ transition_of(mass.T))
        new.append(np.asarray(reduce(np.add, votes) / len(votes), dtype=runs[run].dtype))
    return new, links


# -- recurrence ---------------------------------------------------------------------------------


class Fate(NamedTuple):
    """What happens to the components of one run, H1, in another run, H2."""

    transition: Array  # (k1, k2): p(h2|h1)
    strength: Array  # (k1,): how well the best h2 matches; 0 as by chance, 1 with the same rows
    match: Array  # (k1,): the h2 that is the same component, or -1
    split: Array  # (k1,) bool: no single h2 matches, but several h2 together do
    whole: Array  # (k1,): the larger h2 that h1 is merged into, or -1

    @property
    def scattered(self) -> Array:
        """True for components that do not recur and are neither split nor merged."""
        return (self.match < 0) & ~self.split & (self.whole < 0)


def excess(mass: Array) -> Array:
    """Return p(h2|h1) corrected for chance: 0 where it equals p(h2), 1 where it equals 1.

    If two runs were independent, p(h2|h1) would equal p(h2), which is one half for two components
    of equal size. The result is 0 for an h1 without rows.
    """
    there = mass.sum(axis=1, keepdims=True) > 0
    return np.where(there, _above(transition_of(mass), _shares(mass.sum(axis=0))), 0.0)


def _above(p: Array, chance: Array) -> Array:
    """Return (p - chance) / (1 - chance); if chance is 1, return 1 where p is 1 and else 0."""
    room = 1 - chance
    tight = room < TIGHT
    return np.where(tight, p > 1 - TIGHT, (p - chance) / np.where(tight, 1.0, room))


def fate(mass: Array) -> Fate:
    """Return the fate of every h1, from the mass that the components of two runs share.

    h1 and h2 match if most of each lies in the other: p(h2|h1) and p(h1|h2) are both more than
    half way from chance to one. Then both are more than one half. So no component has two matches,
    and there is no assignment problem to solve. h1 is split if it matches the union of all h2 that
    lie mostly in h1. h1 is merged if it is not split and lies mostly in one h2.
    """
    into, back = excess(mass), excess(mass.T).T
    both = np.minimum(into, back)
    best = both.argmax(axis=1)
    strength = np.clip(np.take_along_axis(both, best[:, np.newaxis], axis=1)[:, 0], 0.0, 1.0)
    match = np.where(strength > MOST, best, -1)
    parts = back > MOST
    transition = transition_of(mass)
    union, chance = (transition * parts).sum(axis=1), parts @ _shares(mass.sum(axis=0))
    split = (match < 0) & parts.any(axis=1) & (_above(union, chance) > MOST)
    whole = np.where((match < 0) & ~split & (into.max(axis=1) > MOST), into.argmax(axis=1), -1)
    return Fate(transition, strength, match, split, whole)
