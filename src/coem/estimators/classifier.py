"""Classification by a mixture when some rows have labels."""

from numbers import Integral, Real

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.base import ClassifierMixin

from coem.checks import check_number, check_weight, undo_on_error
from coem.estimators._base import BaseMixture
from coem.estimators._correspondence import (
    allowed_components,
    by_hand,
    by_labels,
    by_model,
    check_correspondence,
)
from coem.estimators._held_out import calibration, like, splits_of
from coem.estimators._labelled import LabelledMethods
from coem.estimators._methods import MixtureMethods
from coem.estimators._online import OnlineMixin, check_classes
from coem.estimators._starts import first_classes
from coem.estimators._subtopics import check_spec, choose, is_choice, sizes_of
from coem.initialise import prime, prime_apart
from coem.input import read_views
from coem.labels import read_knowledge
from coem.latent.block import Partition
from coem.schedules import as_schedule


class MixtureClassifier(LabelledMethods, ClassifierMixin, OnlineMixin, MixtureMethods, BaseMixture):
    r"""Classify rows by EM over labelled and unlabelled ones.

    Naive Bayes where all rows are labelled; with unlabelled rows, the semi-supervised EM of
    Nigam, McCallum & Mitchell (2006), and over several views co-EM with labels. Labels are a
    constraint on the E step: a labelled row belongs to its class whatever the model thinks.

    Parameters
    ----------
    components_per_class : int, dict, "cv" or list, default=1
        Number of components of every class (Sec. 3.4), for all alike or by class; a class that a
        dict leaves out has one. A list of such values is a list of candidates, of which the one
        that does best on labelled rows held out (see `cv`) is taken; "cv" tries 1 to 40 for all
        classes and for each by itself.
    unlabeled_weight : float, default=1.0
        Weight of an unlabelled row, between 0 (they are not used) and 1: EM-lambda. A row that may
        belong to m of M classes has a weight in between, in proportion to M - m.
    correspondence : {"labels", "em"} or dict, default="labels"
        Which class a component stands for after annealing (Sec. 3.5), that is if `beta` is a
        schedule: as the labelled rows say, or as the most similar component of a fit without
        annealing. A dict from component to class is a person's word for it (see
        `top_features`), and holds in any case; `relabel` does the same without a new fit.
    calibrate : bool, default=False
        Fit one inverse temperature on held-out labelled rows and use it in `predict_proba`: naive
        Bayes is far too sure of itself. It takes a fit for every fold of `cv`.
    cv : int, "loo", splitter or iterable, default=5
        How labelled rows are held out to choose `components_per_class` and to calibrate: in so
        many folds, or as scikit-learn's `cv`; unlabelled rows are never tested. "loo" chooses by
        leave-one-out, which takes no further fit (see `leave_one_out`) but leans to more
        components than folds do; it calibrates by five folds.
    init : {"random", "rows", "k-means++"}, array or fitted model, default="random"
        How the components of a class start apart: drawn about what its labelled rows give
        together, or around some of these rows, chosen at random or far apart. A class of one
        component starts from its labelled rows. An array of shape (n_rows, n_components) holds the
        first responsibilities of all rows; a fitted model goes on from its parameters.
    n_init : int, default=1
        Number of restarts, if some class has several components; the one with the largest
        objective is kept.
    eta : float or Schedule, default=0.7
        Consensus weight of several views, as for `MixtureClusterer`: a view that hears itself as
        well holds on to what its labelled rows taught it.
    family, coupling, beta, posterior, weights, assign, max_iter, tol, patience, dtype, n_jobs,
    random_state, engine, checkpoint, verbose
        As for `MixtureClusterer`. Mixture weights are P(class) P(component | class) here, with one
        pseudo-row for each class and for each component of a class (Eq. 3.10, 3.11).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    component_classes_ : ndarray of shape (n_components,)
        For each component the place of its class in `classes_`.
    labels_ : ndarray of shape (n_rows,)
        Class of every training row as `predict` gives it.
    cv_results_ : list of records
        One a candidate of `components_per_class`: `score`, `n_components`, `objective`.
    calibration_ : Bunch
        With ``calibrate=True``: `inverse_temperature`, and expected calibration error and log loss
        on held-out rows, before and after.
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

    _inits = ("random", "rows", "k-means++")

    def __init__(
        self,
        *,
        components_per_class=1,
        unlabeled_weight=1.0,
        correspondence="labels",
        calibrate=False,
        cv=5,
        family="auto",
        coupling="co-em",
        eta=0.7,
        beta=1.0,
        posterior="soft",
        weights="global",
        assign="joint",
        init="random",
        n_init=1,
        max_iter=None,
        tol=1e-6,
        patience=None,
        dtype=None,
        n_jobs=None,
        random_state=None,
        engine=None,
        checkpoint=None,
        verbose=0,
    ):
        self.components_per_class = components_per_class
        self.unlabeled_weight = unlabeled_weight
        self.correspondence = correspondence
        self.calibrate = calibrate
        self.cv = cv
        self.family = family
        self.coupling = coupling
        self.eta = eta
        self.beta = beta
        self.posterior = posterior
        self.weights = weights
        self.assign = assign
        self.init = init
        self.n_init = n_init
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

    # -- fit ---------------------------------------------------------------------------------

    @undo_on_error
    def fit(self, X, y, sample_weight=None):
        """Fit the classifier.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through one or several views.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" for a row without one. A set holds the classes that a row
            may belong to, `coem.Not` those that it does not belong to.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : MixtureClassifier
            The fitted estimator.
        """
        self._check_params()
        views = read_views(self, X, reset=True)
        knowledge = read_knowledge(y, len(views))
        if not knowledge.certainty.any():
            raise ValueError("y has no labelled row; label some, or use MixtureClusterer")
        self._forget()
        self.classes_ = knowledge.classes
        weight = check_weight(sample_weight, views)
        chosen, saved = self.components_per_class, None
        if is_choice(chosen):
            best, table = choose(self, X, y, weight, knowledge)
            chosen, params = best.components_per_class, self.get_params(deep=False)
            vars(self).update(vars(best) | params)
            self.cv_results_ = table
        else:
            saved = self._fit_known(views, knowledge, weight)
        if self.calibrate:
            cv = 5 if self._by_loo() else self.cv
            splits = splits_of(cv, len(views), knowledge, weight, self.random_state)
            fold = like(self, components_per_class=chosen)
            self.calibration_ = calibration(fold, X, weight, knowledge, splits)
        if saved:
            saved.clear()
        return self

    def _forget(self):
        """Drop what an earlier fit with other settings may have left."""
        for name in ("cv_results_", "calibration_"):
            vars(self).pop(name, None)

    def _check_params(self):
        super()._check_params()
        check_number("unlabeled_weight", self.unlabeled_weight, Real, 0)
        if self.unlabeled_weight > 1:
            raise ValueError(
                f"unlabeled_weight must lie between 0 and 1, got {self.unlabeled_weight!r}"
            )
        check_spec(self.components_per_class)
        check_correspondence(self.correspondence)
        if (self.cv is None or isinstance(self.cv, Real | str)) and not self._by_loo():
            check_number("cv", self.cv, Integral, 2)
        if not isinstance(self.calibrate, bool | np.bool_):
            raise ValueError(f"calibrate must be True or False, got {self.calibrate!r}")
        choice = is_choice(self.components_per_class)
        if choice and self.checkpoint is not None:
            raise ValueError(
                "checkpoint keeps one fit, and a choice of components_per_class takes many; choose "
                "first, then fit with the number that was chosen"
            )
        if (choice or self.calibrate) and isinstance(self.init, BaseMixture):
            raise ValueError(
                "init is a fitted model, which may have seen the rows that are to be held out; "
                "leave calibrate at False and components_per_class at a number"
            )

    def _by_loo(self):
        return isinstance(self.cv, str) and self.cv == "loo"

    def _fit_known(self, views, knowledge, weight):
        """Fit with a given number of components a class; return the files of the fit."""
        sizes = sizes_of(self.components_per_class, self.classes_)
        self.component_classes_ = first_classes(self.init, self.classes_, sizes)
        if isinstance(self.correspondence, dict):  # before any work
            by_hand(self.correspondence, self.classes_, self.component_classes_)
        shares = knowledge.shares(weight)
        if sizes.sum() > len(views):
            raise ValueError(
                f"n_samples={len(views)} rows cannot fill {sizes.sum()} components; lower "
                "components_per_class"
            )
        matrices, empty = self._encode(views, reset=True)
        draw = self._given_start(len(views))
        several = draw is None and sizes.max() > 1

        def primed(model, data, rng):
            if several:
                return prime_apart(model, data, shares, self.init, rng)
            return prime(model, data, shares.astype(model.dtype))

        self._shares = shares
        allowed = knowledge.allowed[:, self.component_classes_]
        n_runs = self.n_init if several else 1
        weight = self._weigh(knowledge, weight)
        saved = self._fit(matrices, empty, weight, allowed, draw or primed, n_runs)
        del self._shares
        return saved

    def _settle(self, model, data, engine, plain):
        """Say which class each component stands for, as `correspondence` has it."""
        annealed = len(as_schedule(self.beta, "beta")) > 0
        if isinstance(self.correspondence, dict):
            self.relabel(self.correspondence)
        elif annealed and self.correspondence == "labels":
            rows = np.flatnonzero(self._shares.any(axis=1))
            empty = None if data.empty is None else data.empty[rows]
            labelled = Partition(tuple(X[rows] for X in data.views), empty)
            args = self._theta(), labelled, self._shares[rows]
            self.component_classes_ = by_labels(model, *args, self.component_classes_)
        elif annealed:
            args = self._theta(), plain().theta, data
            self.component_classes_ = by_model(model, *args, self.component_classes_)

    # -- predict -----------------------------------------------------------------------------

    def predict(self, X):
        """Return the class of every row, of shape (n_rows,)."""
        best = self._log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X):
        """Return P(class | row) as `assign` says, of shape (n_rows, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        """Return the logarithm of `predict_proba`, which tells the unlikely apart."""
        log_proba = self._log_proba(X)
        if not hasattr(self, "calibration_"):
            return log_proba
        return log_softmax(self.calibration_.inverse_temperature * log_proba, axis=1)

    def _log_proba(self, X):
        """Return log P(class | row) before any calibration."""
        return self._map(X, lambda *args: self._by_class(self._log_assign(*args)))

    def _by_class(self, log_proba):
        """Return the logarithms of the sums over the components of each class (Eq. 3.13)."""
        if len(self.component_classes_) == len(self.classes_) == log_proba.shape[1]:
            order = np.argsort(self.component_classes_, kind="stable")
            if (self.component_classes_[order] == np.arange(len(order))).all():
                return log_proba[:, order]
        out = np.full((len(log_proba), len(self.classes_)), -np.inf)
        for c in np.unique(self.component_classes_):
            out[:, c] = logsumexp(log_proba[:, self.component_classes_ == c], axis=1)
        return out

    @undo_on_error
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on with the rows of another batch; see `MixtureClusterer.partial_fit`.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of the batch.
        y : array of shape (n_rows,)
            Labels, as for `fit`.
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
            fitted = hasattr(self, "classes_")
            seen = (self.classes_ if fitted else read_knowledge(y, None).classes).tolist()
            check_classes(np.asarray(classes).tolist(), seen)
        return super().partial_fit(X, y, sample_weight=sample_weight)

    # -- what the base asks ------------------------------------------------------------------

    def _n_components(self):
        return len(self.component_classes_)

    def _classes(self):
        return tuple(self.component_classes_.tolist())

    def _weight_prior(self):
        return 1.0

    def _name(self, component):
        return self.classes_[self.component_classes_[component]]

    def _rivals(self, log_joint):
        """Return the best component of the best class, and of the next."""
        of_class = self._by_class(log_joint[np.newaxis])[0]
        return [
            int(np.where(self.component_classes_ == c, log_joint, -np.inf).argmax())
            for c in np.argsort(-of_class, kind="stable")[:2]
        ]

    def _labels(self, proba):
        members = np.eye(len(self.classes_))[self.component_classes_]
        return self.classes_[(proba @ members).argmax(axis=1)]

    def _knowledge(self, X, y, sample_weight):
        """Return the row weights, and which components every row may have."""
        knowledge = read_knowledge(y, len(X), self.classes_)
        return self._known(knowledge, check_weight(sample_weight, X))

    def _known(self, knowledge, weight):
        weight = self._weigh(knowledge, weight)
        return allowed_components(knowledge.allowed, self.component_classes_, weight)

    def _weigh(self, knowledge, weight):
        """Return the weights of the rows: less of those of which less is known (EM-lambda)."""
        if self.unlabeled_weight == 1:
            return weight
        certainty = knowledge.certainty
        own = self.unlabeled_weight + (1 - self.unlabeled_weight) * certainty
        return own if weight is None else weight * own
