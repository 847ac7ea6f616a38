"""The aspect model: counts of pairs, explained by hidden states."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_number, check_weight, undo_on_error
from coem.engine import LocalEngine
from coem.estimators._aspects import (
    FOLD_IN,
    check_counts,
    completion,
    given_aspects,
    per_count,
    precision,
    pseudo_counts,
)
from coem.estimators._runs import Plan, fit_runs, warn_of_dead
from coem.estimators._starts import KeepsInit
from coem.input import read_views
from coem.io.model_file import Saves
from coem.kernels.aspect import Pairs
from coem.latent.aspect import Aspect, Aspects, AspectTheta, fold_in
from coem.latent.runs import VIAS, couple_runs
from coem.ranking import wllr
from coem.views import is_several


class AspectModel(
    Saves, KeepsInit, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Fit :math:`p(x, y) = \sum_h p(h)\, p(x|h)\, p(y|h)` to a matrix of counts.

    Also known as probabilistic latent semantic analysis; with documents for rows and words for
    columns the components are topics. Several runs from different starts may be coupled (Lin
    2006): each takes over what another has learnt, told in its own components, and goes on.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    coupling : {None, "xy", "a", "b", "c", "d"} or RunCoupling, default=None
        How runs are coupled: "xy" couples p(x|h) through the columns and p(y|h) through the rows
        (Sec. 3.3); "a" to "d" couple both through the columns, through the rows, through columns
        then rows, through rows then columns (Sec. 4.3, D being the rows and W the columns). A
        `RunCoupling` also says who learns from whom among more than two runs. None: no coupling.
    n_runs : int, default=2
        Number of runs. Without coupling they are restarts, of which the best is kept.
    rounds : int, default=1
        Number of couplings, with `max_iter` iterations before and after each.
    self_coupling : bool, default=False
        Couple every run with itself (Sec. 4.3, SCoEM), as `coupling` says.
    beta : float or Schedule, default=1.0
        Inverse temperature above 0. A schedule that rises to 1 is deterministic annealing (DAEM).
        It runs on through the phases: after a coupling nothing is heated again.
    init : "random", (p_h, x_given_h, y_given_h), fitted model, or list of these, default="random"
        "random" draws p(y|h) about p(y), and starts with p(x) for every p(x|h). A list has one
        start for each run, so that `n_runs` is not asked.
    max_iter : int, default=100
        Iterations of each phase: before, between and after the couplings.
    tol : float, default=0.0
        End a phase when the objective changes by less, relative. 0 runs all iterations.
    validation : matrix of shape (n_rows, n_columns), optional
        Held-out counts over the *same* rows and columns, as in Sec. 4.4. A phase then ends when
        their likelihood has reached no new maximum for `patience` iterations, and goes back to
        the parameters that had the largest, be they those that it began with. What is kept is the
        best of all phases of all runs. Iterations count once a schedule of beta has ended.
    patience : int, default=5
        Used with `validation` alone.
    smoothing : float or pair of floats, default=0.0
        Pseudo-counts of every cell of p(y|h), or of (p(x|h), p(y|h)): Dirichlet priors. With
        smoothing no pair is impossible.
    dtype : dtype, optional
        ``np.float32`` computes with float32 parameters and float64 sums, ``np.float64`` all in
        double. None takes double where that costs no time worth having, which is where non-zeros
        times components are less than a million, and single for anything larger.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    verbose : int, default=0
        Write progress to stderr.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        p(h).
    x_given_h_ : ndarray of shape (n_components, n_rows)
        p(x|h).
    y_given_h_ : ndarray of shape (n_components, n_columns)
        p(y|h).
    kl_ : float
        KL divergence from the counts, as a distribution, to the model, in nats (Sec. 3.1).
    objective_ : float
        Penalised, tempered log likelihood of these parameters; larger is better.
    history_ : list of records
        One an iteration of the best run: `phase`, `round`, `objective`, `kl` (None while beta is
        not 1), `held_out` (log likelihood per held-out count), `beta`, `seconds`.
        ``history_.to_frame()`` gives a DataFrame.
    runs_ : list of records
        One for each run and phase: `run`, `phase` (0 before the first coupling), `kl_before` (at
        its start, that is after the coupling), `kl` (at its end), `objective`, `held_out`,
        `n_iter`, `converged`, `seconds`.
    transition_ : list of records
        The transitions of every coupling: `coupling` (its number), `run` and `other` (who learnt
        from whom), `through` ("y", "x", "yx", "xy"), `matrix` (p(h of other | h of run)).
    best_run_ : int
        The run that the parameters are from.
    n_iter_ : int
        Its iterations, all phases together.
    converged_ : bool
        Whether its last phase stopped by itself.

    References
    ----------
    J. K. Lin (2006), Probabilistic Multi-State Split-Merge Algorithm for Coupling Parameter
    Estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import AspectModel
    >>> X = np.array([[5, 1, 0, 0], [4, 2, 0, 0], [0, 0, 3, 3], [0, 0, 6, 1]])
    >>> model = AspectModel(2, coupling="xy", random_state=0).fit(X)
    >>> shares = model.transform(X)  # p(h | row)
    >>> bool(shares[0].argmax() == shares[1].argmax() != shares[2].argmax())
    True
    """

    def __init__(
        self,
        n_components=10,
        *,
        coupling=None,
        n_runs=2,
        rounds=1,
        self_coupling=False,
        beta=1.0,
        init="random",
        max_iter=100,
        tol=0.0,
        validation=None,
        patience=5,
        smoothing=0.0,
        dtype=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.coupling = coupling
        self.n_runs = n_runs
        self.rounds = rounds
        self.self_coupling = self_coupling
        self.beta = beta
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.validation = validation
        self.patience = patience
        self.smoothing = smoothing
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Tell scikit-learn that counts may be sparse and are not negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    # -- fit ---------------------------------------------------------------------------------

    @undo_on_error
    def fit(self, X, y=None, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_columns)
            Counts, dense or sparse.
        y : ignored
            Here for scikit-learn's sake.
        sample_weight : array of shape (n_rows,), optional
            The counts of a row are multiplied by its weight.

        Returns
        -------
        self : AspectModel
            The fitted estimator.
        """
        plan = Plan.of(self, "n_components", couple_runs, VIAS)
        priors = pseudo_counts(self.smoothing)
        counts = self._read(X, reset=True)
        weight = check_weight(sample_weight, counts)
        dtype = precision(self.dtype, counts, self.n_components)
        model = Aspect(self.n_components, *priors, dtype)
        given = given_aspects(self.init, self.n_components, counts.shape)
        starts = given and [AspectTheta.of(start, dtype) for start in given]
        best = fit_runs(self, plan, model, counts, weight, starts)
        self.weights_, self.x_given_h_, self.y_given_h_ = best.kept.theta.plain
        warn_of_dead(self.weights_, best, "components")
        return self

    def _read(self, X, *, reset):
        """Return checked counts."""
        if is_several(X):
            raise ValueError(
                "AspectModel takes one matrix of counts; put views side by side with "
                "Views(...).concat()"
            )
        views = read_views(self, X, reset=reset)
        return check_counts(views[views.names[0]], "X")

    # -- what a fitted model can tell ----------------------------------------------------------

    @property
    def _n_features_out(self):
        return len(self.weights_)

    def _theta(self):
        aspects = Aspects(self.weights_, self.x_given_h_, self.y_given_h_)
        return AspectTheta.of(aspects, self.y_given_h_.dtype)

    def transform(self, X):
        """Return p(h | row) of rows that need not be those of `fit`, (n_rows, n_components).

        The rows are folded in: EM for each row by itself while p(y|h) stays as it is. It ends when
        no share moves by more than 1e-6, or after 200 rounds, which where the likelihood of a row
        is flat may be short of its maximum. A row without counts gets p(h).
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = self._theta()
        with LocalEngine(self.n_jobs):
            return fold_in(Pairs.of(counts, None, theta.y.dtype), theta, *FOLD_IN)

    def score(self, X, y=None, *, new_rows=False):
        """Return the log likelihood per count; larger is better.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_columns)
            Counts, held out or not.
        y : ignored
            Here for scikit-learn's sake.
        new_rows : bool, default=False
            False: the rows are those of `fit`, in their order, and the score is the mean of
            log p(x, y) over the counts. True: they are other rows, and the score is the mean of
            log p(y | x), where each row is folded in on every other of its non-zeros, and one
            count more of p(h), and scored on the rest. Cross-validation holds rows out: give it
            ``scoring=lambda model, X, y=None: model.score(X, new_rows=True)``, or folds of equal
            size pass for the rows of `fit`.

        Returns
        -------
        score : float
            In nats. A pair that the model holds impossible counts as log(tiny), about -708.
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = self._theta()
        with LocalEngine(self.n_jobs):
            if new_rows:
                return completion(counts, theta)
            if counts.shape[0] != self.x_given_h_.shape[1]:
                raise ValueError(
                    f"X has {counts.shape[0]} rows and the model {self.x_given_h_.shape[1]}; pass "
                    "counts of the rows of fit, or new_rows=True"
                )
            return per_count(Pairs.of(counts, None, theta.y.dtype), theta)

    def top_features(self, n=10, by="wllr"):
        """Return the columns that tell most about every component.

        Parameters
        ----------
        n : int, default=10
            Number of columns for each component.
        by : {"wllr", "prob"}, default="wllr"
            "prob" ranks by p(y|h); "wllr" by the weighted log-likelihood ratio
            p(y|h) log(p(y|h) / p(y|not h)), which asks for frequent *and* telling columns.

        Returns
        -------
        features : list of list of (feature, value)
            For each component its best columns, by name if `X` was a data frame.
        """
        check_is_fitted(self)
        check_number("n", n, Integral, 1)
        check_choice("by", by, ("wllr", "prob"))
        prob = np.asarray(self.y_given_h_, dtype=np.float64)
        value = prob if by == "prob" or len(prob) == 1 else wllr(prob, self.weights_)
        best = np.argsort(-value, axis=1, kind="stable")[:, :n]
        names = getattr(self, "feature_names_in_", np.arange(value.shape[1])).tolist()
        pairs = zip(value, best, strict=True)
        return [[(names[f], float(row[f])) for f in top] for row, top in pairs]
