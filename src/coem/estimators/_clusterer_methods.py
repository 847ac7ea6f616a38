"""Methods of fitted clusterers: assignments, and probabilities that other groupings support."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from coem.calibration import best_limit, bounded, matching_limit
from coem.checks import check_weight, undo_on_error
from coem.estimators._methods import MixtureMethods
from coem.latent.block import Block
from coem.latent.fitted import Fitted
from coem.latent.shared_rows import translated
from coem.row_store import RowStore
from coem.typing import Array
from coem.views import as_views

FAR = 0.1  # how far the mean probability may be from what the other groupings say


class ClustererMethods(MixtureMethods):
    """What a fitted clusterer says of rows."""

    calibration_: Bunch

    def predict(self, X: Any) -> Array:
        """Return the component of every row, of shape (n_rows,)."""
        return self._map_blocks(X, lambda fitted, block: self._labels(fitted.proba(block)))

    def predict_proba(self, X: Any) -> Array:
        """Return P(component | row) as `assign` says, of shape (n_rows, n_components).

        After `calibrate`, the evidence of a row has a limit.
        """
        return self._map_blocks(X, Fitted.proba)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        It distinguishes components that are so unlikely that their probability is rounded to 0.
        """
        return self._map_blocks(X, Fitted.log_proba)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log likelihood of the rows, all views together; larger is better."""
        return float(self.score_samples(X).mean())

    @undo_on_error
    def calibrate(self, X: Any, others: Sequence[Any], sample_weight: Any = None) -> Self:
        """Make `predict_proba` as sure as other groupings of the same rows support.

        The posterior of a mixture takes the words of a text for independent evidence. They are
        not, so that it is nearly always certain. `calibrate` limits the evidence of a row, and
        finds the limit that best predicts, by log loss, the other groupings translated into the
        components of this model. If the mean probability is then off by more than a tenth, the
        limit is the one with which the mean is that of the other groupings. The order of the
        components of a row, and so `predict`, stay as they were. `coem.selection.stability` makes
        such groupings by other starts, and ``stability(...).calibrated(X)`` calls this method. A
        new `fit` or `partial_fit` forgets the limit.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.
        others : sequence of arrays of shape (n_rows,)
            Groups of these rows in other groupings, one at least; their numbers need not match.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : MixtureClusterer
            The estimator, with `calibration_`.
        """
        check_is_fitted(self)
        weight = check_weight(sample_weight, X if isinstance(X, RowStore) else as_views(X))
        there = self._rows(X)
        n_rows = there.n_rows
        groupings = [_codes(other, n_rows, place) for place, other in enumerate(others)]
        if not groupings:
            raise ValueError("others is empty: calibrate needs another grouping of the rows")
        self.__dict__.pop("calibration_", None)  # so that the evidence has no limit
        log_proba = self._map_rows(there, Fitted.log_proba)
        blank = self._map_rows(there, _is_blank)
        labels, rows = log_proba.argmax(axis=1), np.arange(n_rows)
        target = translated(labels, groupings, self._n_components(), weight)
        counts = np.where(blank, 0.0, 1.0 if weight is None else weight)
        total = max(float(counts.sum()), np.finfo(float).tiny)
        support = float(counts @ target[rows, labels] / total)

        def sure(limit: float) -> float:
            after = bounded(log_proba, self.weights_, limit)
            return float(counts @ np.exp(after[rows, labels]) / total)

        limit = best_limit(log_proba, self.weights_, target, counts)
        if abs(sure(limit) - support) > FAR:
            # A few rows that are far from all components of the others can decide the log loss.
            limit = matching_limit(log_proba, self.weights_, support, counts)
        self.calibration_ = Bunch(
            limit=limit,
            n_others=len(groupings),
            sure_before=sure(np.inf),
            sure_after=sure(limit),
            support=support,
        )
        return self

    def _limit(self) -> float:
        return float(self.calibration_.limit) if hasattr(self, "calibration_") else np.inf


def _is_blank(fitted: Fitted, block: Block) -> Array:
    """Return which rows of a block are empty in every view."""
    nothing = np.zeros(block.n_rows, dtype=bool)
    return nothing if block.empty is None else np.asarray(block.empty.all(axis=1))


def _codes(labels: Any, n_rows: int, place: int) -> Array:
    """Return the groups of a grouping as numbers from 0 on, after a check."""
    found = np.asarray(labels)
    if found.shape != (n_rows,):
        raise ValueError(
            f"others[{place}] has shape {found.shape}; it needs a group for each of {n_rows} rows"
        )
    return np.asarray(np.unique(found, return_inverse=True)[1])
