"""Explanations: which features speak for the component of a row."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.estimators._base import BaseMixture
from coem.estimators._contributions import log_odds
from coem.latent.block import Block
from coem.latent.fitted import Fitted
from coem.typing import Array


class ExplainMixin(BaseMixture):
    """The method `explain` of clusterer and classifier."""

    def explain(self, X: Any) -> list[Bunch]:
        """Return which features speak for the best component of each row, against the second best.

        The components are those of the joint posterior of all views (Bickel & Scheffer 2005,
        Eq. 19), untempered.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.

        Returns
        -------
        explanations : list of Bunch
            One per row. `label` and `against` are the best and the second best label, as `predict`
            names them. `log_odds` are the log odds between the two; if classes have several
            components, between the best components of the two classes. `prior` is the part of the
            log odds that comes from the mixture weights. `views` maps each view that is not empty
            to a Bunch of `features`, their `contributions`, and `rest`, the part that belongs to no
            single feature. `prior`, all contributions and all rests add up to `log_odds`.
        """
        return self._explain_rows(X, None)

    def explain_pairs(self, X: Any, pairs: Array) -> list[Bunch]:
        """Return what `explain` does, between two given components or classes of each row.

        `pairs` is of shape (n_rows, 2); of a classifier it has places in `classes_`.
        """
        return self._explain_rows(X, pairs)

    def _explain_rows(self, X: Any, pairs: Array | None) -> list[Bunch]:
        """Return the explanations of rows, between two given classes each if there are `pairs`."""
        part, fitted = self._part(X), self._fitted()
        if len({self._label_of(component) for component in range(self._n_components())}) < 2:
            raise ValueError(
                "explain compares two components, or two classes, and the model has only one"
            )
        rows = [block.one_row(i) for block in part.blocks for i in range(block.n_rows)]
        asked = [None] * len(rows) if pairs is None else pairs.tolist()
        with self._engine() as engine:
            return engine.map(
                lambda task: self._explain_row(fitted, *task), list(zip(rows, asked, strict=True))
            )

    def _explain_row(self, fitted: Fitted, row: Block, pair: list[int] | None) -> Bunch:
        """Return the explanation of a block of one row."""
        label, against = self._rivals(fitted.joint(row, 1.0).log_posterior[0], pair)
        log_weights = fitted.log_weights
        prior = float(log_weights[label] - log_weights[against])
        return Bunch(
            label=self._label_of(label),
            against=self._label_of(against),
            **log_odds(self.theta_, self._emissions(), row, label, against, prior),
        )

    def _rivals(self, log_joint: Array, pair: list[int] | None) -> tuple[int, int]:
        """Return the best and the second best component for the log joint (k,) of a row."""
        best, second = pair or np.argsort(-log_joint, kind="stable")[:2].tolist()
        return best, second
