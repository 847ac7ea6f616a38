"""Clustering by a mixture over one or several views."""

from contextlib import nullcontext
from typing import Any, Self

from sklearn.utils import ClassifierTags

from coem.checks import undo_on_error
from coem.coupling import Coupling
from coem.estimators._clusterer_methods import ClustererMethods
from coem.estimators._growing import GrowingMixin
from coem.estimators._types import EngineLike, Folder, Precision, Seed
from coem.estimators._unlabelled import UnlabelledMixture
from coem.families.named import Named
from coem.posterior import Rule
from coem.run_coupling import RunCoupling
from coem.schedules import Schedule, StepSize
from coem.typing import Array


class MixtureClusterer(UnlabelledMixture, GrowingMixin, ClustererMethods):
    r"""Cluster rows by EM, co-EM or classification EM over one or several views.

    Parameters
    ----------
    n_components : int, default=8
        Number of components (clusters).
    family : str, Family or dict, default="auto"
        Density of a component in a view: a name ("multinomial", "bernoulli", "categorical",
        "gaussian", "von_mises_fisher"), an object of `coem.families`, or a dict from view to
        name or object. "auto" decides by the values of a view, and `family_reasons_` has the
        reasons: "multinomial" for counts (whole numbers, also if they were scaled to other
        lengths), "von_mises_fisher" for rows of length 1, such as sentence vectors and sparse
        TF-IDF rows, and "gaussian" for real numbers ("tied", or "diag" if values are missing or
        there are fewer than five rows per column). `families.MixtureOf` gives every component
        several inner components.
    coupling : {"co-em", "joint"}, default="co-em"
        "co-em": every view has its own posterior and learns from the posteriors of the others
        (Bickel & Scheffer 2005, Table 1). "joint": one posterior from the product of the views.
        The two are the same for one view.
    eta : float or Schedule, default=1.0
        Consensus weight of co-EM (Eq. 13), between 0 (views do not learn from each other) and 1.
    beta : float or Schedule, default=1.0
        Inverse temperature: posteriors are proportional to (weight times likelihood) to the power
        of beta. A schedule that rises to 1 is deterministic annealing.
    posterior : {"soft", "hard"}, default="soft"
        "hard" is classification EM; with ``Gaussian("unit")`` and uniform weights it is k-means.
    weights : {"global", "per_view", "uniform"}, default="global"
        Mixture weights: one set for all views (Eq. 17), one set per view, or all equal.
    assign : {"joint", "average"}, default="joint"
        Assign rows by the posterior of all views together (Eq. 18-19), or by the average of the
        posteriors of the views (Bickel & Scheffer 2004, Eq. 7).
    evidence : {"auto", "fixed"}, default="auto"
        "auto" compares the groups of several views before the fit, and leaves out views that share
        nothing with the others, with a warning (see `silent_views_`). It finds how loudly each
        view speaks (see `view_betas_`), and starts again if nearly all rows end in one component.
        "fixed" uses every view as it is, and is the algorithm of the papers.
    init : {"spherical", "random", "rows", "k-means++"}, array or model, default="spherical"
        "spherical" runs ten rounds of k-means from eight starts and takes the best: on directions
        (counts as TF-IDF rows of length 1) or, for dense values, in standard deviations. Views are
        coupled as `coupling` says. "random" draws parameters, and so depends on no single row.
        "rows" draws `n_components` rows at random and gives each row to the nearest of them.
        "k-means++" draws rows that are far apart. An array of shape (n_rows, n_components) holds
        responsibilities, which replace the posterior of every view until the view has parameters;
        its rows are scaled to sum to one. A fitted model gives its parameters. With an array or a
        model there is only one run.
    n_init : int, default=1
        Number of restarts. The one with the largest objective is kept.
    coupling_of_runs : {None, "rows"} or RunCoupling, default=None
        Couple the `n_init` runs through the rows. This happens three times, each time after 15
        rounds: every run takes the mean of the posteriors of all runs, translated into its own
        components, and goes on from there. In tests with one view of documents, this found larger
        objectives than restarts with as many rounds; with co-EM over several views it did not. All
        runs keep their posteriors in memory. ``RunCoupling("rows", ...)`` sets how often runs are
        coupled, and which run learns from which. `max_iter`, `tol` and `patience` are for the
        rounds after the last coupling.
    max_iter : int, optional
        Largest number of rounds over all views. None allows 200 after the schedules of `eta` and
        `beta` have ended.
    tol : float, default=1e-6
        Stop when the relative change of the objective in a round is smaller. 0 runs all rounds.
    patience : int, optional
        Stop instead when no view's log likelihood has reached a new maximum for this number of
        rounds, and return the best parameters (2004, Sec. 4.2).
    step : {"forget", "sum"} or StepSize, default="forget"
        How much a batch of `partial_fit` counts beside the batches before. "forget" is
        ``StepSize(power=0.7, offset=1)`` of `coem.schedules`: steps become smaller, and old
        batches fade. "sum" is ``StepSize(power=1, offset=0)``: every row counts the same. If you
        pass over the same rows several times, use ``StepSize(n_rows=len(X))``.
    dtype : dtype, optional
        None computes count families with float32 parameters and float64 sums, and Gaussians in
        float64. ``np.float64`` computes everything in float64.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    engine : Engine, distributed.Client or "dask", optional
        What holds the rows and their posteriors: by default threads of this process; with a client,
        the workers of a Dask cluster; "dask" is the current client.
    checkpoint : path, optional
        A folder that keeps the state of a fit while it runs, coupled runs included. Writing takes
        at most a twentieth of the time. If a fit was stopped, call `fit` again with the same data
        and the same parameters (`max_iter`, `n_jobs`, `step` and `verbose` may differ): it goes on
        from the saved state and ends with the same bits. At the end, the files are removed. If a
        file cannot be written, there is a warning, and the fit goes on (docs/checkpoints.md).
    verbose : int, default=0
        Write progress to stderr.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Component of every row.
    weights_ : ndarray of shape (n_components,)
        Mixture weights; with ``weights="per_view"`` their mean over the views (Eq. 16).
    view_weights_ : ndarray of shape (n_views, n_components)
        The weights that each view's posterior uses.
    theta_ : dict
        View -> parameters of its family. The first axis is the component.
    families_ : dict
        View -> its family, bound to the data.
    family_reasons_ : dict
        View -> a sentence that says which family "auto" took, and why. Other views are not in it.
    objective_ : float
        Penalised, tempered log likelihood; for co-EM the penalised criterion Q^MV (Eq. 12).
    history_ : list of records
        One per round: `objective`, `free_energy` (what EM cannot lower; the objective unless
        views have posteriors of their own), `log_likelihood` (view -> value; one for all views
        under joint coupling), `dissent` (Eq. 10) and `agreement_rate` of the views, `eta`, `beta`,
        `seconds`.
        ``history_.to_frame()`` returns a DataFrame.
    runs_ : list of records
        One per restart: `seed`, `objective`, `n_iter`, `converged`, `seconds`, `silent_views`,
        `view_betas`.
    n_start_rows_ : int
        Number of rows that the starts were drawn from: all rows, or, for a corpus of more than
        20,000 rows, a sample that is drawn by their content ("random" takes all rows).
    transition_ : list of records
        With `coupling_of_runs`, the transitions: `coupling` (its number), `run` (the run that
        learns) and `other` (the run that it learns from), `through` ("rows"), `matrix`
        (p(component of other | component)).
    silent_views_ : tuple of str
        The views that were left out. Their rows count as empty, here and in new data.
    shared_information_ : ndarray of shape (n_views, n_views)
        What the groups of each two views have in common, from 0 (what chance gives) to 1; the
        diagonal compares two halves of the columns of a view. NaN where there are too few rows or
        columns to tell. An empty array with one view, or if `evidence` is "fixed".
    view_betas_ : dict
        View -> its inverse temperature, which multiplies its log likelihoods. With ``evidence=
        "auto"``, co-EM and soft posteriors, they are found before the first round, on 3,000 rows at
        most: each is the root of the one with which a view best predicts what the other views say.
        Their geometric mean is 1. They are the same in all runs and rounds, so that objectives can
        be compared. Otherwise, and with fewer than 200 rows, all are 1.
    collapsed_ : dict
        View -> components whose rows do not vary in some direction in which all rows do. A Gaussian
        family keeps their variance at the least that is allowed; see its notes.
    calibration_ : Bunch
        Only after `calibrate`: `limit`, the most evidence that a row has in `predict_proba`, in
        nats; `n_others`, the number of other groupings; the mean probability of the assigned
        component, `sure_before` and `sure_after`, and `support`, that of the other groupings.
    n_iter_ : int
        Rounds of the best run.
    converged_ : bool
        Whether the best run converged.

    Notes
    -----
    The two-view EM of Bickel & Scheffer (2004, Table 1) is ``MixtureClusterer(k, eta=1.0,
    weights="uniform", assign="average", patience=5, tol=0, init="random")``; the last view starts.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> X = np.array([[5, 1, 0, 0], [4, 2, 0, 0], [0, 0, 3, 3], [0, 0, 6, 1]])
    >>> model = MixtureClusterer(2, n_init=5, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    """

    def __init__(
        self,
        n_components: int = 8,
        *,
        family: Named | dict[str, Named] = "auto",
        coupling: str | Coupling = "co-em",
        eta: float | Schedule = 1.0,
        beta: float | Schedule = 1.0,
        posterior: str | Rule = "soft",
        weights: str = "global",
        assign: str = "joint",
        evidence: str = "auto",
        init: Any = "spherical",
        n_init: int = 1,
        coupling_of_runs: str | RunCoupling | None = None,
        max_iter: int | None = None,
        tol: float = 1e-6,
        patience: int | None = None,
        step: str | StepSize = "forget",
        dtype: Precision = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        engine: EngineLike = None,
        checkpoint: Folder | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
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
        self.coupling_of_runs = coupling_of_runs
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
        # By tag and not by ClusterMixin: for its subclasses, scikit-learn's checks use negative
        # numbers.
        tags.estimator_type = "clusterer"
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components != 2)
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with one or several views.
        y : ignored
            Accepted because scikit-learn passes it.
        sample_weight : array of shape (n_rows,), optional
            A row with a weight of 2 counts like two equal rows.

        Returns
        -------
        self : MixtureClusterer
            The fitted estimator.
        """
        part = self._read_rows(X, sample_weight)
        if hasattr(self, "calibration_"):  # of an earlier fit
            del self.calibration_
        saved = self._saved(part)
        self._fit(part, saved=saved)
        with saved or nullcontext():
            self._start_again_if_collapsed(part, saved)
        if saved:
            saved.clear()
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit the mixture and return the component of every row, of shape (n_rows,)."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    @undo_on_error
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on with the rows of another batch, by stepwise EM.

        The first call is `fit`. Every later call is one round on the new rows: an E step with the
        fitted parameters, a step of the running statistics towards those of the batch (see `step`),
        and an M step; with co-EM, for every view in turn. `labels_` are those of the last batch;
        `history_`, `objective_` and `n_iter_` stay those of the first. `fit` itself keeps no
        statistics: if you call `partial_fit` after `fit`, they start with this batch, from the
        posteriors of the fitted parameters.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of the batch.
        y : ignored
            Accepted because scikit-learn passes it.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : MixtureClusterer
            The estimator.
        """
        return self._partial_fit(X, y, sample_weight)
