"""A vocabulary of the words that say most about the class."""

from collections.abc import Mapping
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_number, check_weight, undo_on_error
from coem.families.base import check_magnitude, check_values
from coem.io.loaded import is_dict_of, need
from coem.io.registry import register
from coem.labels import read_loose_labels
from coem.text._base import CountTransformer, check_counts, check_transformer, per_view
from coem.views import Views, is_several

EVENTS = ("token", "document")


class SelectWords(CountTransformer):
    r"""Keep the words that have the highest mutual information with the class.

    Parameters
    ----------
    n_features : int or dict, default=4000
        Number of words to keep, in every view; or a dict from view to a number, or to None for a
        view to be left alone. A view with fewer words keeps them all.
    by : {"token", "document"}, default="token"
        What is drawn at random: a position in the text of the labelled rows, or a labelled row.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,), or dict
        Mutual information of every word in nats; for several views a dict. None for a view that is
        left alone.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of columns, of all views together.
    view_names_, view_widths_ : tuple
        Names and numbers of columns of the views.

    Notes
    -----
    The score of word :math:`w` is that of McCallum & Nigam [1]_, the mutual information of the
    class and the event :math:`W_w \in \{0, 1\}` that the word is there,

    .. math:: I(C; W_w) = \sum_c \sum_{f \in \{0, 1\}} P(c, f) \log \frac{P(c, f)}{P(c) P(f)}.

    With ``by="token"`` the event is that a position of the text holds the word, and the
    probabilities are shares of all occurrences of words (the event of the multinomial model); with
    ``by="document"`` it is that a row holds the word at all, and they are shares of rows (the event
    of the Bernoulli model). The paper that used the 4,000 best words [2]_ (Sec. 3.5.2) says only
    "mutual information"; "token" is the event of the model that it fits.

    Only rows with exactly one label count; a weight of 2 counts as the row given twice. Of words
    with the same information, such as those that no labelled row has, the one more frequent in all
    rows comes first, labelled or not, then the one further left.

    References
    ----------
    .. [1] A. McCallum, K. Nigam (1998), A comparison of event models for naive Bayes text
       classification, AAAI workshop on learning for text categorization.
    .. [2] K. Nigam, A. McCallum, T. Mitchell (2006), Semi-supervised text classification using EM.

    Examples
    --------
    >>> from coem.text import SelectWords
    >>> X = [[2, 1, 0], [3, 1, 0], [0, 1, 2], [0, 5, 0]]
    >>> selector = SelectWords(2).fit(X, ["spam", "spam", "ham", ""])
    >>> selector.get_support().tolist()
    [True, False, True]
    >>> selector.transform(X).tolist()
    [[2, 0], [3, 0], [0, 2], [0, 0]]
    """

    def __init__(self, n_features=4000, *, by="token"):
        self.n_features = n_features
        self.by = by

    def __sklearn_tags__(self):
        """Tell scikit-learn that labels are needed, and that values stay as they are."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @undo_on_error
    def fit(self, X, y, sample_weight=None):
        """Score all words and choose the best.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Counts.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" for a row without one.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : SelectWords
            The fitted transformer.
        """
        check_choice("by", self.by, EVENTS)
        if y is None:
            raise ValueError("SelectWords requires y to be passed, but the target y is None")
        views = self._read(X, reset=True)
        numbers = _numbers(self.n_features, views)
        labels, known, _ = read_loose_labels(y, len(views))
        if not known.any():
            raise ValueError("y has no labelled row; label some, words are chosen by their classes")
        weight = check_weight(sample_weight, views)
        weight = np.ones(len(views)) if weight is None else weight
        if not weight[known].any():
            raise ValueError("sample_weight is 0 for every labelled row")
        self.classes_, codes = np.unique(labels[known], return_inverse=True)
        scores, self._chosen = dict.fromkeys(views.names), dict.fromkeys(views.names)
        for name, matrix in views.items():
            if numbers[name] is not None:
                _check(matrix, name)
                table = _class_by_word(matrix, codes, np.flatnonzero(known), weight, self.by)
                scores[name] = _information(*table)
                self._chosen[name] = _best(scores[name], weight @ matrix, numbers[name])
        self.scores_ = self._of_kind(scores)
        return self

    def transform(self, X):
        """Return the chosen columns: a matrix for a matrix, `Views` for several views.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Counts.
        """
        check_is_fitted(self, "scores_")
        views = self._read(X, reset=False)
        data = {}
        for name, matrix in views.items():
            columns = self._chosen[name]
            if columns is not None:
                matrix = check_values(matrix, name, nonnegative=False)[:, columns]
            data[name] = matrix
        return Views(data) if is_several(X) else data[self.view_names_[0]]

    @property
    def _n_features_out(self):
        widths = zip(self.view_names_, self.view_widths_, strict=True)
        chosen = self._chosen
        return sum(w if chosen[view] is None else len(chosen[view]) for view, w in widths)

    def get_support(self, indices=False):
        """Return which words are kept; for several views a dict from view to them.

        Parameters
        ----------
        indices : bool, default=False
            Return the numbers of the columns, not a mask of all.
        """
        check_is_fitted(self, "scores_")
        support = {}
        for name, width in zip(self.view_names_, self.view_widths_, strict=True):
            chosen = self._chosen[name]
            columns = np.arange(width) if chosen is None else chosen
            support[name] = columns.copy() if indices else np.isin(np.arange(width), columns)
        return self._of_kind(support)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the words that are kept; for several views a dict of them.

        Parameters
        ----------
        input_features : array of str, dict or None
            Names of all columns; for several views a dict from view to them.
        """
        check_is_fitted(self, "scores_")
        names, chosen = self._names_in(input_features), self._chosen
        every = slice(None)
        return self._of_kind(
            {view: n[every if chosen[view] is None else chosen[view]] for view, n in names.items()}
        )


def _check_choice(model):
    """Refuse a loaded selector if its words are not among the columns."""
    check_transformer(model)
    if hasattr(model, "scores_"):
        widths = dict(zip(model.view_names_, model.view_widths_, strict=True))
        need(is_dict_of(model._chosen, widths), "the chosen words")
        for name, columns in model._chosen.items():
            if columns is not None:
                whole = (
                    isinstance(columns, np.ndarray)
                    and columns.ndim == 1
                    and columns.dtype.kind == "i"
                    and len(columns) > 0
                )
                inside = whole and columns.min() >= 0 and columns.max() < widths[name]
                need(inside, "the chosen words")


register(SelectWords, check=_check_choice)


def _numbers(n_features, views):
    """Return the number of words to keep by view."""
    numbers = per_view("n_features", n_features, views.names)
    for value in numbers.values():
        check_number("n_features", value, Integral, 1, optional=isinstance(n_features, Mapping))
    return numbers


def _check(X, view):
    """Refuse values that are not counts."""
    check_counts(X, view, f"to leave the view alone give n_features={{{view!r}: None, ...}}")
    check_magnitude(X, view)


def _class_by_word(X, codes, rows, weight, by):
    """Return how often each class comes with each word, (n_classes, n_words), and by itself."""
    shape = (codes.max() + 1, len(rows))
    classes = sp.csr_array((weight[rows], (codes, np.arange(len(rows)))), shape=shape)
    X = X[rows]  # a copy
    if by == "token":
        table = classes @ (sp.csr_array(X) if sp.issparse(X) else X)
        return table, np.asarray(table.sum(axis=1)).ravel()
    if sp.issparse(X):
        X = sp.csr_array(X)
        X.sum_duplicates()
        X.data = (X.data > 0).astype(np.float64)
    else:
        X = (X > 0).astype(np.float64)
    return classes @ X, np.asarray(classes.sum(axis=1)).ravel()


def _information(table, classes):
    """Return the mutual information of the class and each word, in nats."""
    words = np.asarray(table.sum(axis=0), dtype=np.float64).ravel()
    scores, total = np.zeros(len(words)), classes.sum()
    if not total:
        return scores
    for c, size in enumerate(classes):
        # One class after the other, because sparse counts of all need not fit in memory as dense.
        row = table[[c]].toarray().ravel() if sp.issparse(table) else table[c]
        scores += _term(row, size * (words / total))
        scores += _term(size - row, size * ((total - words) / total))
    return np.maximum(scores / total, 0.0)


def _term(seen, expected):
    """Return seen log(seen / expected), and 0 where either is 0 or less by rounding."""
    there = (seen > 0) & (expected > 0)
    ratio = np.divide(seen, expected, out=np.ones_like(expected), where=there)
    return np.where(there, seen * np.log(ratio), 0.0)


def _best(scores, frequency, number):
    """Return the columns with the highest scores, of equal ones the more frequent, in order."""
    order = np.lexsort((-np.asarray(frequency).ravel(), -scores))
    return np.sort(order[:number])
