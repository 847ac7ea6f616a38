"""Classification by a mixture when some rows have labels."""

from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from coem.estimators._base import BaseMixture
from coem.estimators._methods import MixtureMethods
from coem.estimators._online import OnlineMixin
from coem.estimators._params import check_number, undo_on_error
from coem.estimators.clusterer import check_weight
from coem.initialise import prime


class MixtureClassifier(ClassifierMixin, OnlineMixin, MixtureMethods, BaseMixture):
    r"""Classify rows by EM over labelled and unlabelled ones.

    Naive Bayes where all rows are labelled; with unlabelled rows, the semi-supervised EM of
    Nigam, McCallum & Mitchell (2006, Table 3.1), and over several views co-EM with labels. There
    is one component a class. Labels are a constraint on the E step: a labelled row belongs to its
    class whatever the model thinks.

    Parameters
    ----------
    unlabeled_weight : float, default=1.0
        Weight of an unlabelled row, between 0 (they are not used) and 1.
    family, coupling, eta, beta, posterior, weights, assign, max_iter, tol, patience, dtype, n_jobs,
    random_state, engine, checkpoint, verbose
        As for `MixtureClusterer`. Mixture weights are class priors here, estimated with one
        pseudo-row a class (2006, Eq. 3.6).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the components.
    labels_ : ndarray of shape (n_rows,)
        Class of every training row as `predict` gives it.
    weights_, theta_, families_, objective_, history_, runs_, n_iter_, converged_
        As for `MixtureClusterer`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClassifier
    >>> X = np.array([[5, 1, 0], [4, 0, 0], [0, 1, 3], [0, 0, 6]])
    >>> model = MixtureClassifier().fit(X, ["spam", "", "", "ham"])
    >>> model.predict(X).tolist()
    ['spam', 'spam', 'ham', 'ham']
    """

    def __init__(
        self,
        *,
        unlabeled_weight=1.0,
        family="multinomial",
        coupling="co-em",
        eta=1.0,
        beta=1.0,
        posterior="soft",
        weights="global",
        assign="joint",
        max_iter=200,
        tol=1e-6,
        patience=None,
        dtype=None,
        n_jobs=None,
        random_state=None,
        engine=None,
        checkpoint=None,
        verbose=0,
    ):
        self.unlabeled_weight = unlabeled_weight
        self.family = family
        self.coupling = coupling
        self.eta = eta
        self.beta = beta
        self.posterior = posterior
        self.weights = weights
        self.assign = assign
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Tell scikit-learn that unlabelled rows are fine, and what the families take."""
        tags = super().__sklearn_tags__()
        # Counts say little about scikit-learn's blobs, as for its own MultinomialNB.
        tags.classifier_tags.poor_score = tags.input_tags.positive_only
        return tags

    @undo_on_error
    def fit(self, X, y, sample_weight=None):
        """Fit the classifier.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through one or several views.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" for a row without one.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : MixtureClassifier
            The fitted estimator.
        """
        self._check_params()
        check_number("unlabeled_weight", self.unlabeled_weight, Real, 0)
        if self.unlabeled_weight > 1:
            raise ValueError(
                f"unlabeled_weight must lie between 0 and 1, got {self.unlabeled_weight!r}"
            )
        views = self._read(X, reset=True)
        labels, known = read_labels(y, len(views))
        if not known.any():
            raise ValueError("y has no labelled row; label some, or use MixtureClusterer")
        self.classes_ = np.unique(labels[known])
        matrices, empty = self._encode(views, reset=True)
        weight, allowed = self._know(labels, known, views, sample_weight)
        if weight is not None:
            _check_class_weights(labels[known], weight[known], self.classes_)

        def labelled_rows(model, data):
            mass = np.ones(len(known)) if weight is None else weight
            resp = (allowed & known[:, np.newaxis]) * mass[:, np.newaxis]
            return prime(model, data, resp.astype(model.dtype))

        return self._fit(matrices, empty, weight, allowed, labelled_rows)

    def predict(self, X):
        """Return the class of every row, of shape (n_rows,)."""
        return self._labels(self.predict_proba(X))

    def predict_proba(self, X):
        """Return P(class | row) as `assign` says, of shape (n_rows, n_classes)."""
        return self._proba(X)

    @undo_on_error
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on with the rows of another batch; see `MixtureClusterer.partial_fit`.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of the batch.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" for a row without one.
        classes : array, optional
            All the classes there are. The first batch must have a labelled row of each.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : MixtureClassifier
            The estimator.
        """
        if classes is not None:
            labels, known = read_labels(y, None)
            seen = self.classes_ if hasattr(self, "classes_") else np.unique(labels[known])
            seen, classes = seen.tolist(), np.asarray(classes).tolist()
            missing = [label for label in classes if label not in seen]
            if missing:
                raise ValueError(f"class {missing[0]!r} has no labelled row; label one first")
            strange = [label for label in seen if label not in classes]
            if strange:
                raise ValueError(f"label {strange[0]!r} is none of the classes {classes}")
        return super().partial_fit(X, y, sample_weight=sample_weight)

    def _n_components(self):
        return len(self.classes_)

    def _weight_prior(self):
        return 1.0

    def _name(self, component):
        return self.classes_[component]

    def _labels(self, proba):
        return self.classes_[proba.argmax(axis=1)]

    def _knowledge(self, X, y, sample_weight):
        """Return the row weights, and which classes every row may have."""
        return self._know(*read_labels(y, len(X)), X, sample_weight)

    def _know(self, labels, known, X, sample_weight):
        strange = ~np.isin(labels[known], self.classes_)
        if strange.any():
            label = labels[known][strange].tolist()[0]
            raise ValueError(f"label {label!r} is none of the classes {self.classes_.tolist()}")
        allowed = np.ones((len(labels), len(self.classes_)), dtype=bool)
        allowed[known] = labels[known, np.newaxis] == self.classes_
        weight = check_weight(sample_weight, X)
        if self.unlabeled_weight != 1 and not known.all():
            weight = np.ones(len(labels)) if weight is None else weight
            weight[~known] *= self.unlabeled_weight
        return weight, allowed


def read_labels(y, n_rows):
    """Return the labels as an array, and which rows have one."""
    if y is None:
        raise ValueError(
            "MixtureClassifier requires y to be passed, but the target y is None; "
            "mark rows without a label by -1, None, NaN or ''"
        )
    labels = column_or_1d(_as_array(y), warn=True)
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels for {n_rows} rows; give one for each row")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity or a value too large for a label")
    known = ~np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    lost = {"nan", "None", "-1", "<NA>"}.intersection(labels[known].tolist())
    if labels.dtype.kind == "U" and lost:
        raise ValueError(
            f"label {lost.pop()!r} looks like the mark of an unlabelled row that became text; use "
            "'' instead, or np.array(y, dtype=object)"
        )
    if known.any():
        labels = labels.copy() if labels.dtype != object else _narrowed(labels, known)
        check_classification_targets(labels[known])
    return labels, known


def _check_class_weights(labels, weight, classes):
    for label in classes.tolist():
        if not weight[labels == label].any():
            raise ValueError(
                f"class {label!r} has no labelled row: sample_weight is 0 for all of them"
            )


def _as_array(y):
    """Return an array in which markers of no label and labels of any type can stand together."""
    if hasattr(y, "to_numpy"):
        return y.to_numpy()
    if isinstance(y, list | tuple) and any(_is_missing(label) for label in y):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)


def _is_missing(label):
    if label is None or is_pandas_na(label) or is_scalar_nan(label):
        return True
    if isinstance(label, str):
        return label == ""
    return isinstance(label, Real) and not isinstance(label, bool | np.bool_) and label == -1


def _narrowed(labels, known):
    """Return labels of one type with its dtype."""
    there = labels[known].tolist()
    if len({isinstance(label, str) for label in there}) > 1:
        raise ValueError("y mixes text and numbers; make all labels the one or the other")
    there = np.asarray(there)
    out = np.zeros(len(labels), dtype=there.dtype)
    out[known] = there
    return out
