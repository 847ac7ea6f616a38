"""Methods of fitted classifiers: predictions, accuracy, leave-one-out, and other labels."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from coem.estimators._correspondence import by_hand, check_correspondence
from coem.estimators._labelled import LabelledMixture
from coem.labels import accuracy, read_knowledge
from coem.latent.block import Block
from coem.latent.fitted import Fitted
from coem.latent.leave_out import leave_one_out
from coem.typing import Array
from coem.views import as_views


class ClassifierMethods(LabelledMixture):
    """What a fitted classifier says of rows."""

    calibration_: Bunch

    def predict(self, X: Any) -> Array:
        """Return the class of every row, of shape (n_rows,)."""

        def work(fitted: Fitted, block: Block) -> Array:
            return np.asarray(self._by_class(fitted.log_proba(block)).argmax(axis=1))

        best = self._map_blocks(X, work)
        labels: Array = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return P(class | row) as `assign` says, of shape (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        It distinguishes classes that are so unlikely that their probability is rounded to 0.
        """
        log_proba = self._log_proba(X)
        if not hasattr(self, "calibration_"):
            return log_proba
        scaled = self.calibration_.inverse_temperature * log_proba
        return np.asarray(log_softmax(scaled, axis=1))

    def _log_proba(self, X: Any) -> Array:
        """Return log P(class | row) before any calibration."""
        return self._map_blocks(X, lambda fitted, block: self._by_class(fitted.log_proba(block)))

    def component_proba(self, X: Any) -> Array:
        """Return P(component | row) as `assign` says, of shape (n_rows, n_components)."""
        return self._map_blocks(X, Fitted.proba)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows that have a label.

        Rows without a label do not count. A row with a set of classes counts as right if the
        prediction is one of them.
        """
        return accuracy(self.predict(X), y, self.classes_, sample_weight)

    def leave_one_out(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """Return P(class | row) of the labelled rows, each by the model without that row.

        `X` and `y` must be those of `fit`. The share of the row is taken out of the statistics,
        and the parameters are estimated from the rest. No model is fitted again.

        This is exact for the M step, but the posteriors of the other rows stay those of the fit
        with the row. They still depend on its label. The result is therefore too good if there are
        many unlabelled rows or several components per class. Example: with random labels on 40 of
        300 rows in two classes, 60 to 75 % of the rows come out right instead of 50 %.

        Returns
        -------
        proba : ndarray of shape (n_labelled_rows, n_classes)
            For the rows with exactly one label, in their order.
        """
        return np.exp(self._log_leave_one_out(X, y, sample_weight))

    def _log_leave_one_out(self, X: Any, y: Any, sample_weight: Any) -> Array:
        """Return the logarithm of `leave_one_out`."""
        check_is_fitted(self)
        views = as_views(X)
        knowledge = read_knowledge(y, len(views), self.classes_)
        if not knowledge.exact.any():
            raise ValueError("y has no row with exactly one label to leave out")
        exact = np.flatnonzero(knowledge.exact)
        with self._engine():
            part, state, clock = self._infer(views, y, sample_weight)
            log_joint = leave_one_out(self._mixture(), part, state, exact, clock.eta)
        return self._by_class(log_softmax(self.beta_ * log_joint, axis=1))

    def relabel(self, correspondence: Mapping[int, Any]) -> Self:
        """Set the class that some components stand for.

        Parameters
        ----------
        correspondence : dict
            Component -> class. The other components keep their class. `labels_` stay as they were.

        Returns
        -------
        self : MixtureClassifier
            The estimator.
        """
        check_is_fitted(self)
        if not isinstance(correspondence, dict):
            raise ValueError(
                f"correspondence must be a dict from component to class, got {correspondence!r}"
            )
        check_correspondence(correspondence)
        self.component_classes_ = by_hand(correspondence, self.classes_, self.component_classes_)
        return self
