"""Classification by a mixture and a linear classifier together."""

from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from coem.calibration import counted, pool
from coem.checks import check_weight, undo_on_error
from coem.estimators._corpora import over_shards
from coem.estimators._keeping import kept_folds
from coem.estimators._labels_of_corpora import judged_rows
from coem.estimators._linear import LinearModel, features_of
from coem.estimators._pool import (
    NEW,
    OWN,
    Ballot,
    find_shares,
    regress,
    shares_of,
    vote,
    weigh,
)
from coem.estimators._pool_checks import check_exact, check_params, is_mixture
from coem.estimators._pool_explain import explained
from coem.estimators.classifier import MixtureClassifier
from coem.input import read_rows, read_views
from coem.io.model_file import Saves
from coem.labels import accuracy, read_knowledge
from coem.records import Records
from coem.typing import Array
from coem.views import Views, row_keys


def _of_mixture(name: str) -> Any:
    """Return a property that is the attribute of the fitted mixture."""
    return property(lambda self: getattr(self.mixture_, name), doc=f"`{name}` of the mixture.")


class PooledClassifier(Saves, ClassifierMixin, BaseEstimator):
    r"""Classify rows by a mixture and a logistic regression together, when some rows have labels.

    The mixture learns from all rows, the logistic regression from those with labels. With few
    labels the mixture knows more, with many labels often the regression does. How much each counts
    is found on labelled rows that are held out, and makes the probabilities calibrated at once:

    .. math:: \log P(c \mid x) = a \log P_{mixture}(c \mid x) + b \log P_{linear}(c \mid x)
        + \log \frac{P(c)}{P_{labels}(c)} + const

    A row with much evidence has smaller weights: they are multiplied by
    limit / (limit + evidence), where the evidence is how far all classes are below the best one,
    on average. So a long text is not surer than the held-out labels allow.

    The last part is the change of the class shares from the labelled rows to the others, which EM
    finds (Saerens, Latinne & Decaestecker 2002): people label as many rows of a rare class as of a
    frequent one.

    The regression sees the same views: counts as roots, weighted by how rare they are, in rows of
    length 1; directions as they are; numbers standardised. Views that are left out of the mixture
    are left out here too.

    Parameters
    ----------
    mixture : MixtureClassifier, optional
        The mixture; None stands for ``MixtureClassifier(unlabeled_weight="auto")``. It is cloned.
        Its `n_jobs`, `random_state` and `checkpoint` serve the whole fit.
    C : float, default=10.0
        Inverse strength of the penalty of the regression, as in scikit-learn.
    cv : int, splitter, iterable or None, default=5
        How labelled rows are held out, as for `MixtureClassifier`. A number of folds is dealt by
        the content of the rows: copies of a row are held out together, and no seed is needed. A
        row that is held out stays in the fit without its label, if there are rows without labels.
        None holds out nothing.
    class_shares : {"auto", "labels"}, default="auto"
        "auto" finds the shares of the classes among the rows without labels, if labels could be
        held out. "labels" takes those of the labelled rows: use it if new rows have these shares.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    mixture_ : MixtureClassifier
        The fitted mixture.
    linear_ : LinearModel
        The fitted regression: `weights` by view, with `columns` and `coef`, and `intercept`.
    pool_ : Bunch
        `mixture` and `linear`, the weights a and b for new rows, and the `limit` of the evidence,
        in nats; `own_mixture`, `own_linear` and `own_limit`, those for rows of the fit, of which a
        mixture is surer; and `log_change`, of shape (n_classes,), the change of the class shares.
        If rows were held out: their number `n_rows`, and the `accuracy`, `log_loss` and `ece`
        (expected calibration error) of the pool on them as rows of the fit, each with settings
        that were found on the other folds, and with the class shares of the labels.
    held_out_ : Bunch
        The held-out `rows`, the number of their `folds`, and their `proba`, of shape
        (n_held_out, n_classes); without any rows if nothing was held out.
    unlabeled_weight_ : float
        The weight of an unlabelled row in the mixture.
    cv_results_ : list of records
        One per weight of unlabelled rows that was tried, as for `MixtureClassifier`.
    labels_ : ndarray of shape (n_rows,)
        Class of every training row, as `predict` returns it.
    view_names_ : tuple of str
        The views.
    objective_, history_, runs_, n_iter_, converged_, families_, silent_views_
        Those of the mixture.

    Notes
    -----
    A row that was in the fit is judged by weights that were found on rows in the fit, and a new row
    by weights that were found on rows that were not. Rows are recognised by their content.

    With too few labels to hold any out, a is 0.1, b is 1, and the limit is 10. A number that is e
    times as large, or as small, must improve the log likelihood of the held-out labels by 1 nat.
    docs/evidence.md has the measurements.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import PooledClassifier
    >>> X = np.array([[5, 1, 0], [4, 0, 0], [0, 1, 3], [0, 0, 6]])
    >>> model = PooledClassifier().fit(X, ["spam", "", "", "ham"])
    >>> model.predict(X).tolist()
    ['spam', 'spam', 'ham', 'ham']
    """

    classes_: Array
    mixture_: MixtureClassifier
    linear_: LinearModel
    pool_: Bunch
    held_out_: Bunch
    unlabeled_weight_: float
    cv_results_: Records
    labels_: Array
    view_names_: tuple[str, ...]
    view_widths_: tuple[int, ...]
    _own_rows: Array  # the keys of the rows of the fit

    objective_ = _of_mixture("objective_")
    history_ = _of_mixture("history_")
    runs_ = _of_mixture("runs_")
    n_iter_ = _of_mixture("n_iter_")
    converged_ = _of_mixture("converged_")
    families_ = _of_mixture("families_")
    silent_views_ = _of_mixture("silent_views_")

    def __init__(
        self,
        mixture: MixtureClassifier | None = None,
        *,
        C: float = 10.0,
        cv: Any = 5,
        class_shares: str = "auto",
    ) -> None:
        self.mixture = mixture
        self.C = C
        self.cv = cv
        self.class_shares = class_shares

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn, which are those of the mixture."""
        tags = super().__sklearn_tags__()
        own = (
            self._mixture() if is_mixture(self.mixture) else MixtureClassifier()
        ).__sklearn_tags__()
        tags.input_tags, tags.classifier_tags = own.input_tags, own.classifier_tags
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with one or several views.
        y : array of shape (n_rows,)
            Labels, as for `MixtureClassifier`. Every class needs a row that has it alone.
        sample_weight : array of shape (n_rows,), optional
            A row with a weight of 2 counts like two equal rows.

        Returns
        -------
        self : PooledClassifier
            The fitted estimator.
        """
        check_params(self)
        views = read_rows(self, X, reset=True)
        knowledge = read_knowledge(y, len(views))
        weight = check_weight(sample_weight, views)
        if not knowledge.certainty.any():
            raise ValueError("y has no labelled row; label some, or use MixtureClusterer")
        judged = judged_rows(views, y, weight, knowledge, self._mixture(), self.cv)
        ballot = Ballot(judged.X, judged.knowledge, judged.weight, self.cv)
        check_exact(knowledge, Ballot(judged.X, knowledge, weight, None).labelled)
        self._own_rows = np.unique(over_shards(views, row_keys))
        self.classes_ = knowledge.classes
        mixture = self._mixture()
        params = mixture.get_params() | self.get_params(deep=False) | {"mixture": None}
        kept = kept_folds(mixture.checkpoint, params, views, knowledge, weight)
        with kept or nullcontext():
            found = vote(mixture, ballot, views, knowledge.labels(), weight, kept)
            self.mixture_, self.cv_results_ = found.mixture, found.table
            self.unlabeled_weight_ = found.mixture.unlabeled_weight_
            self.linear_, answers = regress(ballot, found, self.C, kept)
        if kept:
            kept.clear()
        self.pool_, self.held_out_ = weigh(ballot, found, answers)
        if self.class_shares == "auto" and found.splits:
            shares = find_shares(self._log_proba(ballot.views), ballot)
            self.pool_.log_change = np.log(shares) - np.log(shares_of(ballot))
        best = over_shards(views, lambda some: self._log_proba(some).argmax(axis=1))
        self.labels_ = self.classes_[best]
        return self

    def _mixture(self) -> MixtureClassifier:
        return MixtureClassifier(unlabeled_weight="auto") if self.mixture is None else self.mixture

    def predict(self, X: Any) -> Array:
        """Return the class of every row, of shape (n_rows,)."""
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        best = over_shards(rows, lambda views: self._log_proba(views).argmax(axis=1))
        labels: Array = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return P(class | row), of shape (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`."""
        check_is_fitted(self)
        return over_shards(read_rows(self, X, reset=False), self._log_proba)

    def _log_proba(self, views: Views) -> Array:
        votes = pool(self._votes(views), self._settings(views))
        return np.asarray(log_softmax(votes + self.pool_.log_change, axis=1))

    def _votes(self, views: Views) -> tuple[Array, Array]:
        """Return what mixture and regression say: log P(class | row)."""
        features = features_of(self.linear_.scales, self.mixture_.families_, views)
        return self.mixture_.predict_log_proba(views), self.linear_.log_proba(features)

    def _settings(self, views: Views) -> Array:
        """Return the weights of mixture and regression and the limit of each row, (n_rows, 3)."""
        own = np.isin(row_keys(views), self._own_rows)[:, np.newaxis]
        of_own, of_new = ([self.pool_[name] for name in names] for names in (OWN, NEW))
        return np.where(own, of_own, of_new)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows that have a label, as for `MixtureClassifier`."""
        return accuracy(self.predict(X), y, self.classes_, sample_weight)

    def explain(self, X: Any) -> list[Bunch]:
        """Return which features speak for the best class of each row, against the second best.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.

        Returns
        -------
        explanations : list of Bunch
            One per row, as `MixtureClassifier.explain` returns them. `contributions` are those of
            mixture and regression together, each times what it counts in the row. `prior` has the
            mixture weights, the intercepts and the change of the class shares. They add up to the
            log odds of `predict_log_proba` if classes have one component and `assign` is "joint".
        """
        check_is_fitted(self)
        if len(self.classes_) < 2:
            raise ValueError("explain compares two classes, and the model has only one")
        views = read_views(self, X, reset=False)
        votes, settings, change = self._votes(views), self._settings(views), self.pool_.log_change
        weights, log_proba = counted(votes, settings), pool(votes, settings) + change
        return explained(self.mixture_, self.linear_, weights, change, views, votes, log_proba)

    def top_features(self, *args: Any, **kwargs: Any) -> Any:
        """Return the most telling features of each class, as the mixture has them."""
        check_is_fitted(self)
        return self.mixture_.top_features(*args, **kwargs)
