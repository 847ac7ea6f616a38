"""Classification by a mixture when some rows have labels."""

from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from coem.checks import check_weight, undo_on_error
from coem.coupling import Coupling
from coem.estimators._classifier_fit import ClassifierFit
from coem.estimators._labels_of_corpora import judged_rows
from coem.estimators._methods import MixtureMethods
from coem.estimators._online import OnlineMixin, check_classes
from coem.estimators._subtopics import Sizes, choose, is_choice, kept_choices
from coem.estimators._types import EngineLike, Folder, Precision, Seed
from coem.estimators._unlabeled_weight import set_unlabeled_weight, with_weight
from coem.families.named import Named
from coem.input import read_rows
from coem.labels import read_knowledge
from coem.posterior import Rule
from coem.row_store import RowStore
from coem.schedules import Schedule, StepSize


class MixtureClassifier(ClassifierFit, ClassifierMixin, OnlineMixin, MixtureMethods):
    r"""Classify rows by EM over labelled and unlabelled rows.

    If all rows are labelled, this is naive Bayes. With unlabelled rows it is the semi-supervised
    EM of Nigam, McCallum & Mitchell (2006), and over several views it is co-EM with labels. Labels
    constrain the E step: a labelled row always belongs to its class.

    Parameters
    ----------
    components_per_class : int, dict, "cv" or list, default=1
        Number of components per class (Sec. 3.4): one number for all classes, or a dict from class
        to number. A class that a dict leaves out has one component. A list holds several such
        values as candidates; the one with the best accuracy on held-out labelled rows (see `cv`)
        is taken. "cv" tries 1 to 40 components for all classes together and for each class alone.
    unlabeled_weight : float or "auto", default=1.0
        Weight of an unlabelled row, between 0 (such rows are not used) and 1: EM-lambda. A row
        that may belong to m of M classes has a weight in between, in proportion to M - m. "auto"
        tries 0.01, 0.1 and 1 on held-out labelled rows, in three folds, and takes the one with the
        least log loss; 0.05 if there are fewer than three labelled rows per class, and 1 if all
        labels are sets.
    correspondence : {"labels", "em"} or dict, default="labels"
        How to find the class of a component after annealing (Sec. 3.5), that is, if `beta` is a
        schedule. "labels" asks the labelled rows; "em" takes the class of the most similar
        component of a fit without annealing. A dict from component to class is your own choice
        (see `top_features`); it is also used without annealing. `relabel` does the same without a
        new fit.
    calibrate : bool, default=False
        Fit one inverse temperature on held-out labelled rows, and use it in `predict_proba`. The
        probabilities of naive Bayes are usually too close to 0 and 1. It takes one fit per fold of
        `cv`.
    cv : int, "loo", splitter or iterable, default=5
        How labelled rows are held out, to choose `components_per_class` and to calibrate: a number
        of folds, or anything that scikit-learn takes as `cv`. Unlabelled rows are never tested.
        "loo" chooses by leave-one-out, which needs no further fit (see `leave_one_out`) but
        prefers more components than folds do; it calibrates by five folds.
    init : {"random", "rows", "k-means++"}, array or fitted model, default="random"
        How the components of a class start. "random" draws their parameters near those of all
        labelled rows of the class. "rows" and "k-means++" start from some of these rows, chosen at
        random or far apart. A class with one component starts from all its labelled rows. An array
        of shape (n_rows, n_components) holds the first responsibilities of all rows. A fitted
        model gives its parameters.
    n_init : int, default=1
        Number of restarts, if a class has several components. The one with the largest objective
        is kept.
    eta : float or Schedule, default=0.7
        Consensus weight of several views, as for `MixtureClusterer`. Below 1, a view also learns
        from its own posterior, and so keeps more of what its labelled rows taught it.
    step : {"forget", "sum"} or StepSize, default="sum"
        As for `MixtureClusterer`. By default all rows count the same, because the statistics of
        labelled rows do not become outdated.
    family, coupling, beta, posterior, weights, assign, evidence, max_iter, tol, patience, dtype,
    n_jobs, random_state, engine, checkpoint, verbose
        As for `MixtureClusterer`. A `checkpoint` also keeps the fits to folds; `random_state` must
        then be a number, and `max_iter` must stay. Here, mixture weights are P(class)
        P(component | class), with one pseudo-row per class and per component of a class (Eq. 3.10,
        3.11).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    component_classes_ : ndarray of shape (n_components,)
        The class of each component, as an index into `classes_`.
    labels_ : ndarray of shape (n_rows,)
        Class of every training row, as `predict` returns it.
    unlabeled_weight_ : float
        The weight of an unlabelled row that the fit used.
    cv_results_ : list of records
        One per candidate of `components_per_class`: `score`, `n_components`, `objective`. Or one
        per weight, if only that was chosen: `unlabeled_weight`, `log_loss`, `accuracy`, `n_rows`.
    calibration_ : Bunch
        With ``calibrate=True``: `inverse_temperature`, and the expected calibration error and the
        log loss on held-out rows, before and after.
    weights_, theta_, families_, family_reasons_, objective_, history_, runs_, silent_views_,
    shared_information_, view_betas_ (all 1), collapsed_, n_start_rows_ (rows with labels), n_iter_,
    converged_
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
        components_per_class: Sizes | str | list[Sizes] = 1,
        unlabeled_weight: float | str = 1.0,
        correspondence: str | dict[int, Any] = "labels",
        calibrate: bool = False,
        cv: Any = 5,
        family: Named | dict[str, Named] = "auto",
        coupling: str | Coupling = "co-em",
        eta: float | Schedule = 0.7,
        beta: float | Schedule = 1.0,
        posterior: str | Rule = "soft",
        weights: str = "global",
        assign: str = "joint",
        evidence: str = "auto",
        init: Any = "random",
        n_init: int = 1,
        max_iter: int | None = None,
        tol: float = 1e-6,
        patience: int | None = None,
        step: str | StepSize = "sum",
        dtype: Precision = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        engine: EngineLike = None,
        checkpoint: Folder | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.evidence = evidence
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.step = step
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        # Counts say little about scikit-learn's blobs, as for its own MultinomialNB.
        tags.classifier_tags.poor_score = tags.input_tags.positive_only
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with one or several views.
        y : array of shape (n_rows,)
            Labels; -1, None, NaN or "" for a row without a label. A set holds the classes that a
            row may belong to, `coem.Not` those that it does not belong to.
        sample_weight : array of shape (n_rows,), optional
            A row with a weight of 2 counts like two equal rows.

        Returns
        -------
        self : MixtureClassifier
            The fitted estimator.
        """
        self._check_params()
        X = self._opened(X)
        views = read_rows(self, X, reset=True)
        knowledge = read_knowledge(y, len(views))
        if not knowledge.certainty.any():
            raise ValueError("y has no labelled row; label some, or use MixtureClusterer")
        for name in ("cv_results_", "calibration_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.classes_, weight = knowledge.classes, check_weight(sample_weight, views)
        kept, sizes = kept_choices(self, views, knowledge, weight), self.components_per_class
        with kept or nullcontext():
            judged = judged_rows(X, y, weight, knowledge, self, self.cv)
            set_unlabeled_weight(self, judged.X, judged.weight, judged.knowledge, kept)
            if is_choice(sizes):
                best, table = choose(with_weight(self), *judged, kept)
                sizes, params = best.components_per_class, self.get_params(deep=False)
                self.__dict__.update(vars(best) | params)
                self._made_with = self._shape_params()  # the choice, and not what was chosen
                self.cv_results_ = table
            if not is_choice(self.components_per_class) or isinstance(views, RowStore):
                self._fit_sizes(sizes, views, knowledge, weight, kept)
            if self.calibrate:
                self.calibration_ = self._calibration(sizes, judged, kept)
        if kept:
            kept.clear()
        return self

    @undo_on_error
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with the rows of another batch; see `MixtureClusterer.partial_fit`.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of the batch.
        y : array of shape (n_rows,)
            Labels, as for `fit`.
        classes : array, optional
            All classes. The first batch must have a labelled row of each.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : MixtureClassifier
            The estimator.
        """
        if classes is not None:
            seen = self.classes_ if hasattr(self, "classes_") else read_knowledge(y, None).classes
            check_classes(np.asarray(classes).tolist(), seen.tolist())
        return self._partial_fit(X, y, sample_weight)
