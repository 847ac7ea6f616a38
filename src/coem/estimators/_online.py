"""Learning from one batch of rows after another."""

from collections.abc import Sequence
from typing import Any, Self

from coem.estimators._base import BaseMixture
from coem.latent.mixture import Expected


class OnlineMixin(BaseMixture):
    """The common part of `partial_fit`. Statistics of batches add up."""

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the first batch; for each later batch, add its statistics and do one M step."""
        if not hasattr(self, "weights_"):
            self.fit(X, y, sample_weight=sample_weight)
            self._stats = self._batch_stats(X, y, sample_weight)
            return self
        stats = self._batch_stats(X, y, sample_weight)
        if self._stats is not None:
            stats = [old + new for old, new in zip(self._stats, stats, strict=True)]
        self._stats = stats
        mixture, theta = self._mixture(), self._theta()
        for turn, expected in enumerate(stats):
            theta = mixture.estimate(expected, theta, turn)
        self._set_theta(mixture, theta)
        self.labels_ = self.predict(X)
        return self

    def _batch_stats(self, X: Any, y: Any, sample_weight: Any) -> list[Expected]:
        """Return the statistics of a batch for every turn of the mixture."""
        mixture, theta = self._mixture(), self._theta()
        with self._engine():
            part, state, clock = self._infer(X, y, sample_weight)
            turns = range(mixture.n_turns)
            return [mixture.gather(part, theta, turn, clock, state) for turn in turns]


def check_classes(classes: Sequence[Any], seen: Sequence[Any]) -> None:
    """Raise unless `classes` are exactly the classes that have labelled rows."""
    missing = [label for label in classes if label not in seen]
    if missing:
        raise ValueError(f"class {missing[0]!r} has no labelled row; label one first")
    unknown = [label for label in seen if label not in classes]
    if unknown:
        raise ValueError(f"label {unknown[0]!r} is not one of the classes {classes}")
