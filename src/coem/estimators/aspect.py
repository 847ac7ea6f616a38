"""The aspect model: counts of pairs, explained by hidden states."""

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_weight, undo_on_error
from coem.engine import LocalEngine
from coem.estimators._aspect_scores import FOLD_IN, completion, per_count
from coem.estimators._aspect_starts import given_aspects
from coem.estimators._count_coupling import couple_aspects
from coem.estimators._count_model import CountModel
from coem.estimators._counts import precision, pseudo_counts
from coem.estimators._ranking import By, best_features
from coem.estimators._types import Folder, Precision, Seed
from coem.io.packing import AspectPacking
from coem.kernels.aspect import Pairs
from coem.latent.aspect import Aspect, Aspects, AspectTheta, fold_in
from coem.run_coupling import VIAS, RunCoupling
from coem.schedules import Schedule
from coem.typing import Array, Matrix
from coem.views import is_several


class AspectModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CountModel):
    r"""Fit :math:`p(x, y) = \sum_h p(h)\, p(x|h)\, p(y|h)` to a matrix of counts.

    This is also known as probabilistic latent semantic analysis. If rows are documents and columns
    are words, the components are topics. Several runs from different starts can be coupled (Lin
    2006): each run takes over what another has learnt, translated into its own components.

    Parameters
    ----------
    n_components : int, default=10
        Number of components.
    coupling : {None, "xy", "a", "b", "c", "d"} or RunCoupling, default=None
        How runs are coupled. "xy" couples p(x|h) through the columns and p(y|h) through the rows
        (Sec. 3.3). "a" to "d" couple both through the columns, through the rows, through columns
        then rows, or through rows then columns (Sec. 4.3, where D are the rows and W the columns).
        A `RunCoupling` also sets which run learns from which. None: no coupling.
    n_runs : int, default=2
        Number of runs. Without coupling they are restarts, and the best is kept.
    rounds : int, default=1
        Number of couplings, with `max_iter` iterations before and after each.
    self_coupling : bool, default=False
        Couple every run with itself (Sec. 4.3, SCoEM), as `coupling` says.
    beta : float or Schedule, default=1.0
        Inverse temperature above 0. A schedule that rises to 1 is deterministic annealing (DAEM).
        It goes on through all phases, and does not start again after a coupling.
    init : "random", (p_h, x_given_h, y_given_h), fitted model, or list of these, default="random"
        "random" draws p(y|h) near p(y), and starts with p(x) for every p(x|h). A list has one
        start per run; `n_runs` is then not used.
    max_iter : int, default=100
        Iterations of each phase. There is a phase before, between and after the couplings.
    tol : float, default=0.0
        End a phase when the relative change of the objective is smaller. 0 runs all iterations.
    validation : matrix of shape (n_rows, n_columns), optional
        Held-out counts of the *same* rows and columns, as in Sec. 4.4. A phase then ends when
        their likelihood has reached no new maximum for `patience` iterations, and goes back to the
        parameters with the largest likelihood; these may be the ones that it began with. The best
        parameters of all phases and runs are kept. Iterations count once a schedule of beta has
        ended.
    patience : int, default=5
        Used only with `validation`.
    smoothing : float or pair of floats, default=0.0
        Pseudo-counts of every cell of p(y|h), or of (p(x|h), p(y|h)): Dirichlet priors. With
        smoothing, no pair is impossible.
    dtype : dtype, optional
        ``np.float32`` computes with float32 parameters and float64 sums, ``np.float64`` everything
        in float64. None takes float64 if non-zeros times components are fewer than a million,
        where it costs little time, and else float32.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    checkpoint : path, optional
        A folder that keeps the state of all runs while they go on, coupled or not, as in
        `MixtureClusterer`. With couplings that take `max_iter` rounds, `max_iter` must stay too.
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
        One per iteration of the best run: `phase`, `round`, `objective`, `kl` (None while beta is
        not 1), `held_out` (log likelihood per held-out count), `beta`, `seconds`.
        ``history_.to_frame()`` returns a DataFrame.
    runs_ : list of records
        One per run and phase: `run`, `phase` (0 before the first coupling), `kl_before` (at the
        start of the phase, after the coupling), `kl` (at its end), `objective`, `held_out`,
        `n_iter`, `converged`, `seconds`.
    transition_ : list of records
        The transitions of every coupling: `coupling` (its number), `run` (the run that learns) and
        `other` (the run that it learns from), `through` ("y", "x", "yx", "xy"), `matrix`
        (p(h of other | h of run)).
    best_run_ : int
        The run that the parameters are from.
    n_iter_ : int
        Its iterations in all phases.
    converged_ : bool
        Whether its last phase converged.

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

    weights_: Array
    x_given_h_: Array
    y_given_h_: Array

    def __init__(
        self,
        n_components: int = 10,
        *,
        coupling: str | RunCoupling | None = None,
        n_runs: int = 2,
        rounds: int = 1,
        self_coupling: bool = False,
        beta: float | Schedule = 1.0,
        init: Any = "random",
        max_iter: int = 100,
        tol: float = 0.0,
        validation: Any = None,
        patience: int = 5,
        smoothing: float | tuple[float, float] = 0.0,
        dtype: Precision = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        checkpoint: Folder | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.checkpoint = checkpoint
        self.verbose = verbose

    @undo_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_columns)
            Counts, dense or sparse.
        y : ignored
            Accepted because scikit-learn passes it.
        sample_weight : array of shape (n_rows,), optional
            The counts of a row are multiplied by its weight.

        Returns
        -------
        self : AspectModel
            The fitted estimator.
        """
        plan = self._plan("n_components", VIAS)
        priors = pseudo_counts(self.smoothing)
        counts = self._read(X, reset=True)
        weight = check_weight(sample_weight, counts)
        dtype = precision(self.dtype, counts, self.n_components)
        model = Aspect(self.n_components, *priors, dtype)
        given = given_aspects(self.init, self.n_components, counts.shape)
        starts = None if given is None else [AspectTheta.of(start, dtype) for start in given]
        packing = AspectPacking(counts.shape, self.n_components, dtype)
        best = self._fit_runs(
            plan, model, couple_aspects, packing, counts, weight, starts, "components"
        )
        self.weights_, self.x_given_h_, self.y_given_h_ = best.theta.plain
        return self

    def _read(self, X: Any, *, reset: bool) -> Matrix:
        """Return checked counts."""
        if is_several(X):
            raise ValueError(
                "AspectModel takes one matrix of counts; put views side by side with "
                "Views(...).concat()"
            )
        return self._read_counts(X, reset=reset)

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def _theta(self) -> AspectTheta:
        """Return the fitted parameters as the kernels read them."""
        aspects = Aspects(self.weights_, self.x_given_h_, self.y_given_h_)
        return AspectTheta.of(aspects, self.y_given_h_.dtype)

    def transform(self, X: Any) -> Array:
        """Return p(h | row) of any rows, of shape (n_rows, n_components).

        The rows are folded in: EM runs for each row by itself, and p(y|h) does not change. It ends
        when no share changes by more than 1e-6, or after 200 rounds; if the likelihood of a row is
        flat, it may then be short of its maximum. A row without counts gets p(h).
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = self._theta()
        with LocalEngine(self.n_jobs):
            return fold_in(Pairs.of(counts, None, theta.y.dtype), theta, *FOLD_IN)

    def score(self, X: Any, y: Any = None, *, new_rows: bool = False) -> float:
        """Return the log likelihood per count; larger is better.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_columns)
            Counts, held out or not.
        y : ignored
            Accepted because scikit-learn passes it.
        new_rows : bool, default=False
            False: the rows are those of `fit`, in the same order, and the score is the mean of
            log p(x, y) over the counts. True: they are other rows, and the score is the mean of
            log p(y | x). Each row is then folded in on every other of its non-zeros, plus one
            count that is shared out by p(h), and scored on the rest. Cross-validation holds rows
            out: give it ``scoring=lambda model, X, y=None: model.score(X, new_rows=True)``.
            Otherwise, a fold with as many rows as `fit` would be taken for the rows of `fit`.

        Returns
        -------
        score : float
            In nats. A pair that is impossible under the model counts as log(tiny), about -708.
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = self._theta()
        with LocalEngine(self.n_jobs):
            if new_rows:
                return completion(counts, theta)
            if counts.shape[0] != self.x_given_h_.shape[1]:
                raise ValueError(
                    f"X has {counts.shape[0]} rows, but the model has {self.x_given_h_.shape[1]}; "
                    "pass counts of the rows of fit, or new_rows=True"
                )
            return per_count(Pairs.of(counts, None, theta.y.dtype), theta)

    def top_features(self, n: int = 10, by: By = "wllr") -> list[list[tuple[Hashable, float]]]:
        """Return the columns that are most typical of every component.

        Parameters
        ----------
        n : int, default=10
            Number of columns per component.
        by : {"wllr", "prob"}, default="wllr"
            "prob" ranks by p(y|h). "wllr" ranks by the weighted log-likelihood ratio
            p(y|h) log(p(y|h) / p(y|not h)), which prefers columns that are frequent in the
            component *and* rare in the others. Without `smoothing`, p(y|not h) is zero for many
            columns. It then counts as no less than p(y) of the rarest column, so that a column
            that occurs once does not come first.

        Returns
        -------
        features : list of list of (feature, value)
            The best columns of each component, by name if `X` was a data frame.
        """
        check_is_fitted(self)
        prob = np.asarray(self.y_given_h_, dtype=np.float64)
        best = best_features(prob, self.weights_, n, by)
        names = getattr(self, "feature_names_in_", np.arange(prob.shape[1])).tolist()
        return [[(names[f], value) for f, value in top] for top in best]
