"""Test a classifier on labelled rows whose labels it has not seen."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from coem.input import as_rows, take_rows
from coem.labels import read_knowledge
from coem.selection.splitters import LabeledKFold


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What `held_out` found.

    Attributes
    ----------
    rows : ndarray of shape (n_tested,)
        The rows that were held out, fold by fold.
    folds : ndarray of shape (n_tested,)
        The fold of each of these rows.
    classes : ndarray of shape (n_classes,)
        The classes.
    proba : ndarray of shape (n_tested, n_classes)
        P(class | row) by the model that was fitted without this fold.
    right : ndarray of bool of shape (n_tested,)
        True where the most probable class is the label.
    """

    rows: np.ndarray
    folds: np.ndarray
    classes: np.ndarray
    proba: np.ndarray
    right: np.ndarray

    @property
    def n_folds(self):
        """Number of folds."""
        return len(np.unique(self.folds))

    @property
    def accuracy(self):
        """Share of the rows that are classified correctly; the mean over the folds."""
        return float(self._by_fold().mean())

    @property
    def error(self):
        """Standard error of `accuracy`, from its spread over the folds; NaN with one fold."""
        shares = self._by_fold()
        return float(shares.std(ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else np.nan

    def _by_fold(self):
        return np.array([self.right[self.folds == fold].mean() for fold in np.unique(self.folds)])


def held_out(estimator, X, y, *, cv=None, on_fold=None):
    """Predict the class of each labelled row by a classifier that was fitted without it.

    Parameters
    ----------
    estimator : MixtureClassifier, or any classifier that takes the labels of `y`
        A clone is fitted for every fold.
    X : matrix, list, dict or Views
        The rows.
    y : array of shape (n_rows,)
        Labels; -1, None, NaN or "" for a row without one.
    cv : splitter or iterable, optional
        How to hold out rows; ``LabeledKFold(5)`` by default.
    on_fold : callable, optional
        Called with the fitted model after every fold.

    Returns
    -------
    held_out : HeldOut
        With `accuracy` and its standard `error`; `coem.report.tell` takes it.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClassifier
    >>> from coem.selection import LabeledKFold, held_out
    >>> X = np.random.default_rng(0).poisson(np.repeat([[9, 1], [1, 9]], 30, axis=0))
    >>> y = np.repeat(["a", "b"], 30).astype(object)
    >>> y[::3] = ""
    >>> found = held_out(MixtureClassifier(), X, y, cv=LabeledKFold(4, random_state=0))
    >>> len(found.rows), found.n_folds, found.accuracy
    (40, 4, 1.0)
    """
    X = as_rows(X)
    y = np.asarray(y, dtype=object)
    knowledge = read_knowledge(y, len(y))
    splits = check_cv(LabeledKFold() if cv is None else cv).split(np.zeros((len(y), 1)), y)
    rows, parts, folds = [], [], []
    for fold, (train, test) in enumerate(splits):
        model = clone(estimator).fit(take_rows(X, train), y[train])
        if not np.array_equal(model.classes_, knowledge.classes):
            raise ValueError(f"cv, fold {fold}: a class has no labelled row to train on")
        rows.append(test)
        parts.append(model.predict_proba(take_rows(X, test)))
        folds.append(np.full(len(test), fold))
        if on_fold is not None:
            on_fold(model)
    rows, proba = np.concatenate(rows), np.concatenate(parts)
    right = proba.argmax(axis=1) == knowledge.codes[rows]
    return HeldOut(rows, np.concatenate(folds), knowledge.classes, proba, right)
