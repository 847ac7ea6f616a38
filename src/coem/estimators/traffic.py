"""The traffic model: counts between nodes, explained by hubs and the traffic between them."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_number, undo_on_error
from coem.engine import LocalEngine
from coem.estimators._aspects import (
    check_counts,
    given_traffic,
    per_count,
    precision,
)
from coem.estimators._runs import Plan, fit_runs, warn_of_dead
from coem.estimators._starts import KeepsInit
from coem.input import read_views
from coem.io.model_file import Saves
from coem.kernels.aspect import Pairs
from coem.latent.runs import HUB_VIAS, couple_hubs
from coem.latent.traffic import Traffic, TrafficFlow, TrafficTheta
from coem.views import is_several


class TrafficModel(Saves, KeepsInit, BaseEstimator):
    r"""Fit :math:`p(x, x') = \sum_{h, h'} \alpha(x|h)\, \beta(h, h')\, \alpha(x'|h')` to traffic.

    A trip from node x to node x' enters the highway at hub h and leaves it at hub h'. What share
    of a hub's traffic a node has is the same in both directions (Lin 2006, Sec. 5). With nodes
    that link to each other the hubs are communities, and `beta_` the traffic between them.

    Parameters
    ----------
    n_hubs : int, default=10
        Number of hubs.
    coupling : {None, "x"} or RunCoupling, default=None
        "x" couples runs through the nodes (Sec. 5). A `RunCoupling` also says who learns from
        whom among more than two runs. None: no coupling.
    n_runs : int, default=2
        Number of runs. Without coupling they are restarts, of which the best is kept.
    rounds : int, default=1
        Number of couplings, with `max_iter` iterations before and after each.
    self_coupling : bool, default=False
        Couple every run with itself.
    beta : float or Schedule, default=1.0
        Inverse temperature above 0, as in the other models; the traffic between hubs is `beta_`.
        A schedule that rises to 1 is deterministic annealing. It runs on through the phases.
    init : "random", (alpha, beta), fitted model, or list of these, default="random"
        "random" draws alpha about the share that a node has in all traffic, from and to it, and
        the traffic between hubs from symmetric matrices. A list has one start for each run.
    max_iter : int, default=100
        Iterations of each phase: before, between and after the couplings.
    tol : float, default=0.0
        End a phase when the objective changes by less, relative. 0 runs all iterations.
    validation : matrix of shape (n_nodes, n_nodes), optional
        Held-out counts between the same nodes. A phase then ends when their likelihood has
        reached no new maximum for `patience` iterations, and goes back to the parameters that had
        the largest, be they those that it began with. What is kept is the best of all phases of
        all runs. Iterations count once a schedule of beta has ended.
    patience : int, default=5
        Used with `validation` alone.
    smoothing : float, default=0.0
        Pseudo-counts of every cell of alpha: a Dirichlet prior.
    dtype : dtype, optional
        ``np.float32`` computes with float32 parameters and float64 sums, ``np.float64`` all in
        double. None takes single where a round has more than a million products.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    verbose : int, default=0
        Write progress to stderr.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_hubs, n_nodes)
        p(x|h), of sources at an entrance and of destinations at an exit.
    beta_ : ndarray of shape (n_hubs, n_hubs)
        p(h, h'), the traffic on the highway from entrance h to exit h'; sums to one.
    kl_ : float
        KL divergence from the counts, as a distribution, to the model, in nats.
    objective_ : float
        Penalised, tempered log likelihood of these parameters; larger is better.
    history_, runs_, best_run_, n_iter_, converged_
        As those of `AspectModel`.
    transition_ : list of records
        The transitions of every coupling: `coupling` (its number), `run` and `other` (who learnt
        from whom), `through` ("x"), `matrix` (p(h of other | h of run), which `alpha_` was mixed
        by), `back` (p(h of run | h of other), which `beta_` was told by).

    Notes
    -----
    The expected counts cost nnz k, products with `beta_` n k^2. Nodes are rows and columns at
    once, so that weighting a row would weight half of a node: there is no `sample_weight`.

    References
    ----------
    J. K. Lin (2006), Probabilistic Multi-State Split-Merge Algorithm for Coupling Parameter
    Estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import TrafficModel
    >>> X = np.kron([[0, 1], [1, 0]], [[9, 3], [3, 1]])  # all goes from one side to the other
    >>> model = TrafficModel(2, coupling="x", random_state=0).fit(X)
    >>> model.beta_.round(2).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """

    def __init__(
        self,
        n_hubs=10,
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
        self.n_hubs = n_hubs
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
        """Tell scikit-learn that counts are square, may be sparse and are not negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = tags.input_tags.pairwise = True
        return tags

    @undo_on_error
    def fit(self, X, y=None):
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_nodes)
            Counts from the node of the row to that of the column, dense or sparse.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : TrafficModel
            The fitted estimator.
        """
        plan = Plan.of(self, "n_hubs", couple_hubs, HUB_VIAS)
        check_number("smoothing", self.smoothing, Real, 0)
        if not self.smoothing < np.inf:
            raise ValueError(f"smoothing must be finite, got {self.smoothing!r}")
        counts = self._read(X, reset=True)
        n, k = counts.shape[0], self.n_hubs
        dtype = precision(self.dtype, counts, k, extra=n * k**2)
        model = TrafficFlow(k, float(self.smoothing), dtype)
        given = given_traffic(self.init, k, n)
        starts = given and [TrafficTheta.of(start, dtype) for start in given]
        best = fit_runs(self, plan, model, counts, None, starts)
        self.alpha_, self.beta_ = best.kept.theta.plain
        warn_of_dead(best.kept.theta.plain.weights, best, "hubs")
        return self

    def _read(self, X, *, reset):
        """Return checked counts between nodes."""
        if is_several(X):
            raise ValueError("TrafficModel takes one matrix of counts between nodes")
        views = read_views(self, X, reset=reset)
        counts = check_counts(views[views.names[0]], "X")
        n, m = counts.shape
        if n != m:
            raise ValueError(
                f"X must be square, from every node to every node in the same order; it has {n} "
                f"rows and {m} columns: give each node a row and a column, or use AspectModel"
            )
        return counts

    def score(self, X, y=None):
        """Return the log likelihood per count; larger is better.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_nodes)
            Counts between the nodes of `fit`, held out or not.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        score : float
            In nats. A pair that the model holds impossible counts as log(tiny), about -708.
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = TrafficTheta.of(Traffic(self.alpha_, self.beta_), self.alpha_.dtype)
        with LocalEngine(self.n_jobs):
            return per_count(Pairs.of(counts, None, theta.x.dtype), theta)
