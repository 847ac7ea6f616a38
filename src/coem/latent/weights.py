"""Mixture weights: a prior over components that is the same for every row."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coem.coupling import average
from coem.typing import Array


@dataclass(frozen=True)
class Weights:
    """Mixture weights: what they learn from, and how they are estimated.

    With classes the weight of a component is P(class) P(component | class), each with its
    pseudo-rows (Nigam et al. 2006, Eq. 3.10-3.11).

    Parameters
    ----------
    pseudo_rows : float
        Pseudo-rows of every component, or of every class and every component of a class.
    classes : tuple of int, optional
        The class of every component, if there are classes.
    """

    pseudo_rows: float = 0.0
    classes: tuple[int, ...] | None = None

    shared: ClassVar[bool] = False
    """True if the views have one set of weights, whose latest estimate holds for all of them."""

    def lesson(self, posteriors: Array, own: Array, empty: Array | None) -> Array:
        """Return the responsibilities that the weights of a turn learn from.

        `posteriors` are those of all slots; `own` are what the views of the turn learn from.
        """
        return own

    def estimate(self, mass: Array) -> Array:
        """Return the log weights (k,) for the mass of the components."""
        if self.classes is None:
            return safe_log(self._shares(mass))
        members = self._members
        weights = members @ self._shares(mass @ members)
        for own in members.T.astype(bool):
            weights[own] *= self._shares(mass[own])
        return safe_log(weights)

    def log_prior(self, log_weights: Array) -> float:
        """Return the log prior of some sets of log weights (n_sets, k), without its constant."""
        if not self.pseudo_rows:
            return 0.0
        if self.classes is None:
            return self.pseudo_rows * float(log_weights.sum())
        members = self._members
        of_class = np.log(np.exp(log_weights) @ members)  # (n_sets, n_classes)
        within = log_weights - of_class @ members.T
        return self.pseudo_rows * float(of_class.sum() + within.sum())

    def overall(self, log_weights: Array, latest: int, has_rows: Array) -> Array:
        """Return one set of weights for all views, from those of every view (n_views, k).

        `latest` is the view of the most recent M step; `has_rows` marks views with any rows.
        """
        return np.asarray(np.exp(log_weights[latest]))

    @property
    def _members(self) -> Array:
        """Which class each component belongs to: (n_components, n_classes) of zeros and ones."""
        present, codes = np.unique(np.asarray(self.classes), return_inverse=True)
        return np.eye(len(present))[codes]

    def _shares(self, mass: Array) -> Array:
        """Return the shares of the mass, pseudo-rows added."""
        mass = mass + self.pseudo_rows
        return np.asarray(mass / mass.sum()) if mass.sum() > 0 else _uniform(len(mass))


@dataclass(frozen=True)
class GlobalWeights(Weights):
    """One set for all views: from the average posterior of every row (2005, Eq. 17)."""

    shared: ClassVar[bool] = True

    def lesson(self, posteriors: Array, own: Array, empty: Array | None) -> Array:
        """Return the mean over each row's non-empty views."""
        return own if len(posteriors) == 1 else average(posteriors, empty)


@dataclass(frozen=True)
class ViewWeights(Weights):
    """One set per view, from what the view learns from."""

    def overall(self, log_weights: Array, latest: int, has_rows: Array) -> Array:
        """Return the mean over the views (2005, Eq. 16)."""
        return np.asarray(np.exp(log_weights)[has_rows].mean(axis=0))


@dataclass(frozen=True)
class UniformWeights(Weights):
    """All components, or all classes, are equally likely (Bickel & Scheffer 2004)."""

    def log_prior(self, log_weights: Array) -> float:
        """Return 0: nothing is estimated."""
        return 0.0

    def _shares(self, mass: Array) -> Array:
        return _uniform(len(mass))


WEIGHTS: dict[str, type[Weights]] = {
    "global": GlobalWeights,
    "per_view": ViewWeights,
    "uniform": UniformWeights,
}


def safe_log(weights: Array) -> Array:
    """Return logarithms that stay finite for components without rows."""
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))


def _uniform(k: int) -> Array:
    return np.full(k, 1.0 / k)
