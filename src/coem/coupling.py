"""Couplings of views: which posteriors there are, and what each view learns from.

A coupling is a value. To add one, write a class with the methods of `Coupling` and `register` it;
the laws of couplings then run on it (docs/adding-a-coupling.md).

Posteriors are stacked as (n_slots, n_rows, n_components). `empty` (n_rows, n_views) marks the rows
that are empty in a view; None says that no row is empty anywhere.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from coem.typing import Array


class Coupling(ABC):
    """How views are coupled. A subclass is a frozen dataclass."""

    @abstractmethod
    def slots(self, n_views: int) -> tuple[tuple[int, ...], ...]:
        """Return the posteriors that are kept: for each slot the views that it is inferred from.

        Every view belongs to one slot, in the order of the views. A round has one turn per slot,
        in which the views of the slot get new parameters. With more than one slot, each slot is
        one view: slot `v` is view `v`.
        """

    @abstractmethod
    def lesson(self, posteriors: Array, turn: int, eta: float, empty: Array | None) -> Array:
        """Return the responsibilities (n_rows, n_components) that a turn learns from.

        With several slots, a row that is empty in the view of the turn has no part: zero.
        """

    @abstractmethod
    def never_falls(self, eta: float) -> bool:
        """Return True if every turn learns from the posterior that its own parameters gave.

        All steps then maximise one free energy, which cannot fall.
        """


@dataclass(frozen=True)
class Joint(Coupling):
    """One posterior from the product of the views (Bickel & Scheffer 2005, Eq. 19)."""

    def slots(self, n_views: int) -> tuple[tuple[int, ...], ...]:
        """Return one slot for all views."""
        return (tuple(range(n_views)),)

    def lesson(self, posteriors: Array, turn: int, eta: float, empty: Array | None) -> Array:
        """Return the one posterior."""
        return np.asarray(posteriors[0])

    def never_falls(self, eta: float) -> bool:
        """Return True: this is EM."""
        return True


@dataclass(frozen=True)
class CoEM(Coupling):
    """One posterior per view; each view learns from those of the others (2005, Table 1)."""

    def slots(self, n_views: int) -> tuple[tuple[int, ...], ...]:
        """Return one slot per view."""
        return tuple((v,) for v in range(n_views))

    def lesson(self, posteriors: Array, turn: int, eta: float, empty: Array | None) -> Array:
        """Return the posteriors of the view and of the others, mixed by `eta`."""
        return blend(posteriors, turn, eta, empty)

    def never_falls(self, eta: float) -> bool:
        """Return True if the views do not listen to each other."""
        return eta == 0


COUPLINGS: dict[str, Coupling] = {}


def register(name: str, coupling: Coupling) -> None:
    """Let estimators take a coupling by its name."""
    if not isinstance(coupling, Coupling):
        raise TypeError(f"coupling must be a Coupling, got {coupling!r}")
    COUPLINGS[name] = coupling


register("co-em", CoEM())
register("joint", Joint())


def as_coupling(value: str | Coupling) -> Coupling:
    """Return the coupling that a name stands for, or the coupling itself."""
    if isinstance(value, Coupling):
        return value
    if not isinstance(value, str) or value not in COUPLINGS:
        raise ValueError(
            f"coupling must be one of {', '.join(map(repr, COUPLINGS))}, got {value!r}"
        )
    return COUPLINGS[value]


def average(posteriors: Array, empty: Array | None) -> Array:
    """Return the mean over each row's non-empty views; zero where all of them are empty."""
    if empty is None:
        return np.asarray(posteriors.mean(axis=0))
    present = ~empty
    n_present = present.sum(axis=1)
    total = np.einsum("vnk,nv->nk", posteriors, present.astype(posteriors.dtype))
    return np.asarray(total / np.maximum(n_present, 1)[:, np.newaxis].astype(posteriors.dtype))


def blend(posteriors: Array, v: int, eta: float, empty: Array | None) -> Array:
    r"""Return what view `v` learns from in co-EM: Bickel & Scheffer (2005), Eq. 13.

    :math:`(1 - \eta) P_v + \frac{\eta}{s - 1} \sum_{u \neq v} P_u`, where the average runs over the
    other views that are not empty. A row whose other views are all empty keeps the posterior of
    view `v`. A row that is empty in view `v` has no part: zero.
    """
    own = posteriors[v]
    if len(posteriors) == 1 or eta == 0:
        return own if empty is None else np.asarray(own * ~empty[:, v, np.newaxis])
    others = np.delete(posteriors, v, axis=0)
    if empty is None:
        return np.asarray((1 - eta) * own + eta * others.mean(axis=0), dtype=own.dtype)
    elsewhere = np.delete(empty, v, axis=1)
    alone = np.asarray(elsewhere.all(axis=1))[:, np.newaxis]
    mean = np.where(alone, own, average(others, elsewhere))
    mixed = (1 - eta) * own + eta * mean
    return np.asarray(mixed * ~empty[:, v, np.newaxis], dtype=own.dtype)


def handed_on(there: Array, v: int) -> Array:
    """Return which view's partition view `v` learns from, for each row (2004, Table 1).

    It is the view before `v`; the last view comes before the first. If that view is empty in a row,
    it is the one before it, and so on, until `v` itself. `there` (n_rows, n_views) is True where
    a view has a partition; -1 stands for rows without any.
    """
    n_rows, n_views = there.shape
    order = [(v - step) % n_views for step in range(1, n_views + 1)]
    first = there[:, order].argmax(axis=1)
    source = np.array(order)[first]
    return np.where(there[np.arange(n_rows), source], source, -1)
