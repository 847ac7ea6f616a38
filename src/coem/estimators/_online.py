"""Learning from one batch of rows after another."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from coem.checks import check_weight
from coem.estimators._base import BaseMixture
from coem.estimators._corpora import refuse_corpus
from coem.estimators._restarts import DEAD
from coem.latent.block import Partition
from coem.latent.mixture import Expected
from coem.online import Running, begin, learn
from coem.runs import warn_dead
from coem.schedules import as_step
from coem.typing import Array
from coem.views import as_views


class OnlineMixin(BaseMixture):
    """The common part of `partial_fit`: stepwise EM (`coem.online`)."""

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the first batch; for each later batch, do one round with running statistics."""
        self._check_params()
        refuse_corpus(X, "partial_fit")
        step = as_step(self.step)
        if not hasattr(self, "weights_"):
            self.fit(X, y, sample_weight=self._first_weight(X, y, sample_weight, step.n_rows))
            part, n_rows = self._batch(X, y, sample_weight)
            theta, clock = self._theta(), self._clock()
            with self._engine():
                self._stats = begin(self._mixture(), part, n_rows, theta, clock, step)
            return self
        self._check_made_with()
        mixture, before = self._mixture(), self._stats
        part, n_rows = self._batch(X, y, sample_weight)
        with self._engine():
            theta, self._stats = learn(
                mixture, part, n_rows, self._theta(), self._clock(), before, step
            )
        self._set_theta(mixture, theta)
        self.__dict__.pop("calibration_", None)  # of the parameters before
        if before is not None and self._stats is not None:
            warn_faded(_mass(before), _mass(self._stats), n_rows / part.n_rows)
        self.labels_ = self.predict(X)
        return self

    def _first_weight(self, X: Any, y: Any, sample_weight: Any, n_rows: float | None) -> Any:
        """Return weights with which the rows of a first batch stand for `n_rows` rows."""
        if n_rows is None:
            return sample_weight
        views = as_views(X)
        weight = check_weight(sample_weight, views)
        weight = np.ones(len(views)) if weight is None else weight
        total = self._say(y, weight).sum()
        return weight * (n_rows / total) if total > 0 else weight

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> tuple[Partition, float]:
        """Return the rows of a batch, and the weight of those that are not empty everywhere."""
        part = self._known(X, y, sample_weight)
        return part, float(part.row_weight().sum())


def _mass(running: Running[Expected]) -> Array:
    """Return the mass of the components in the last turn, for the rows that are stood for."""
    return running.stats[-1].mass


def warn_faded(before: Array, after: Array, mean_weight: float, what: str = "components") -> None:
    """Warn of components that died in a batch; `before` and `after` (k,) are their masses."""
    least = DEAD * mean_weight
    faded = np.flatnonzero((after < least) & (before >= least)).tolist()
    advice = f"use fewer {what}, larger batches, or a step with a larger power"
    warn_dead(faded, len(after), what, "row", advice)


def check_classes(classes: Sequence[Any], seen: Sequence[Any]) -> None:
    """Raise unless `classes` are exactly the classes that have labelled rows."""
    missing = [label for label in classes if label not in seen]
    if missing:
        raise ValueError(f"class {missing[0]!r} has no labelled row; label one first")
    unknown = [label for label in seen if label not in classes]
    if unknown:
        raise ValueError(f"label {unknown[0]!r} is not one of the classes {classes}")
