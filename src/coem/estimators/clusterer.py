"""Clustering by a mixture over one or several views."""

from numbers import Integral

import numpy as np
from sklearn.utils import ClassifierTags

from coem.checks import check_number, check_weight, undo_on_error
from coem.estimators._base import BaseMixture
from coem.estimators._coupled import as_coupling
from coem.estimators._methods import MixtureMethods
from coem.estimators._online import OnlineMixin
from coem.initialise import pool_views, start
from coem.input import read_views
from coem.latent.block import Partition


class MixtureClusterer(OnlineMixin, MixtureMethods, BaseMixture):
    r"""Cluster rows by EM, co-EM or classification EM over one or several views.

    Parameters
    ----------
    n_components : int, default=8
        Number of components (clusters).
    family : str, Family or dict, default="auto"
        Density of a component in a view: a name ("multinomial", "bernoulli", "categorical",
        "gaussian", "von_mises_fisher"), an object of `coem.families`, or a dict from view to
        either. "auto" is "von_mises_fisher" for a dense view of unit rows, such as sentence
        vectors, and "multinomial" for any other.
    coupling : {"co-em", "joint"}, default="co-em"
        "co-em": every view has a posterior of its own and learns from those of the others
        (Bickel & Scheffer 2005, Table 1). "joint": one posterior from the product of the views.
        The two are the same for one view.
    eta : float or Schedule, default=1.0
        Consensus weight of co-EM (Eq. 13), between 0 (views apart) and 1.
    beta : float or Schedule, default=1.0
        Inverse temperature: posteriors are proportional to (weight times likelihood) to the power
        of beta. A schedule that rises to 1 is deterministic annealing.
    posterior : {"soft", "hard"}, default="soft"
        "hard" is classification EM; with ``Gaussian("unit")`` and uniform weights it is k-means.
    weights : {"global", "per_view", "uniform"}, default="global"
        Mixture weights: one set for all views (Eq. 17), one a view, or all equal.
    assign : {"joint", "average"}, default="joint"
        Assign rows by the posterior of all views together (Eq. 18-19), or by the average of the
        posteriors of the views (Bickel & Scheffer 2004, Eq. 7).
    init : {"spherical", "random", "rows", "k-means++"}, array or model, default="spherical"
        "spherical" begins with ten rounds of k-means, the best of eight beginnings: on directions
        (counts as TF-IDF rows of unit length) or, for dense values, in standard deviations; views
        are coupled as `coupling` says. "random" draws parameters and so depends on no single row;
        "rows" gives rows to the nearest of `n_components` random rows; "k-means++" chooses those
        far apart. An array of shape (n_rows, n_components) holds
        responsibilities that stand for every view's posterior until the view has parameters;
        rows are scaled to sum to one.
        A fitted model goes on from its parameters. Given a start, there is one run.
    n_init : int, default=1
        Number of restarts; the one with the largest objective is kept.
    coupling_of_runs : {None, "rows"} or RowCoupling, default=None
        Couple the `n_init` runs through the rows: after every 15 rounds, three times, each run
        takes the mean of what all runs say of every row, told in its own components, and goes on
        from there. With one view of documents that found larger objectives than as many rounds
        spent on restarts; with co-EM over several views it did not. All runs keep their
        posteriors meanwhile. A `RowCoupling` says how often, and who learns from whom.
        `max_iter`, `tol` and `patience` are for the rounds after the last coupling.
    max_iter : int, optional
        Largest number of rounds over all views. None allows 200 after the schedules of `eta` and
        `beta` have ended.
    tol : float, default=1e-6
        Stop when the objective changes by less, relative, over a round. 0 runs all rounds.
    patience : int, optional
        Stop instead when no view's log likelihood has reached a new maximum for so many rounds,
        and return the best parameters (2004, Sec. 4.2).
    dtype : dtype, optional
        None computes count families with float32 parameters and float64 sums, and Gaussians in
        float64; ``np.float64`` computes everything in double.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    engine : object, optional
        Where the blocks of rows live; by default threads of this process.
    checkpoint : path, optional
        A folder where the state of a fit is kept while it runs, at the cost of at most a
        twentieth of its time. A `fit` on the same data with the same parameters (but for
        `max_iter`, `n_jobs` and `verbose`) that finds such a state goes on from there and ends
        with the same bits; when it ends, the files are removed.
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
        View -> parameters of its family, first axis the component.
    families_ : dict
        View -> its family, bound to the data.
    objective_ : float
        Penalised, tempered log likelihood; for co-EM the penalised criterion Q^MV (Eq. 12).
    history_ : list of records
        One a round: `objective`, `log_likelihood` (view -> value; one for all views under joint
        coupling), `dissent` (Eq. 10) and `agreement_rate` of the views, `eta`, `beta`, `seconds`.
        ``history_.to_frame()`` gives a DataFrame.
    runs_ : list of records
        One a restart: `seed`, `objective`, `n_iter`, `converged`, `seconds`.
    transition_ : list of records
        With `coupling_of_runs`, the transitions: `coupling` (its number), `run` and `other` (who
        learnt from whom), `through` ("rows"), `matrix` (p(component of other | component)).
    n_iter_ : int
        Rounds of the best run.
    converged_ : bool
        Whether the best run stopped by itself.

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
        n_components=8,
        *,
        family="auto",
        coupling="co-em",
        eta=1.0,
        beta=1.0,
        posterior="soft",
        weights="global",
        assign="joint",
        init="spherical",
        n_init=1,
        coupling_of_runs=None,
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
        self.n_components = n_components
        self.family = family
        self.coupling = coupling
        self.eta = eta
        self.beta = beta
        self.posterior = posterior
        self.weights = weights
        self.assign = assign
        self.init = init
        self.n_init = n_init
        self.coupling_of_runs = coupling_of_runs
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
        """Tell scikit-learn what the families take, and what `predict_proba` returns."""
        tags = super().__sklearn_tags__()
        # By tag, not by ClusterMixin: scikit-learn feeds negative numbers to all that inherit it.
        tags.estimator_type = "clusterer"
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components != 2)
        return tags

    @undo_on_error
    def fit(self, X, y=None, sample_weight=None):
        """Fit the mixture.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through one or several views.
        y : ignored
            Here for scikit-learn's sake.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : MixtureClusterer
            The fitted estimator.
        """
        self._check_params()
        check_number("n_components", self.n_components, Integral, 1)
        self._coupling_of_runs()
        views = read_views(self, X, reset=True)
        weight = check_weight(sample_weight, views)
        n_rows = len(views) if weight is None else np.count_nonzero(weight)
        if self.n_components > n_rows:
            raise ValueError(
                f"n_samples={n_rows} rows cannot fill n_components={self.n_components} components"
            )
        matrices, empty = self._encode(views, reset=True)
        draw, n_runs = self._given_start(len(views)), 1
        if draw is None:
            # Pooled once for all restarts.
            data = Partition(matrices, empty, weight)
            pools = pool_views(self._model(), data) if self.init == "random" else []
            n_runs = self.n_init

            def draw(model, data, rng):
                return start(model, data, self.init, rng, pools)

        saved = self._fit(matrices, empty, weight, draw=draw, n_runs=n_runs)
        if saved:
            saved.clear()
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit the mixture and return the component of every row, of shape (n_rows,)."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def predict(self, X):
        """Return the component of every row, of shape (n_rows,)."""
        return self._labels(self.predict_proba(X))

    def predict_proba(self, X):
        """Return P(component | row) as `assign` says, of shape (n_rows, n_components)."""
        return self._proba(X)

    def score(self, X, y=None):
        """Return the mean log likelihood of the rows, all views together; larger is better."""
        return float(self.score_samples(X).mean())

    def _n_components(self):
        return self.n_components

    def _weight_prior(self):
        return 0.0

    def _classes(self):
        return None

    def _coupling_of_runs(self):
        return as_coupling(self.coupling_of_runs, self.init, self.n_init, self.checkpoint)

    def _name(self, component):
        return int(component)

    def _labels(self, proba):
        return proba.argmax(axis=1)

    def _knowledge(self, X, y, sample_weight):
        return check_weight(sample_weight, X), None
