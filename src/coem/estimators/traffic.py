"""The traffic model: counts between nodes, explained by hubs and the traffic between them."""

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_number, undo_on_error
from coem.engine import LocalEngine
from coem.estimators._aspect_scores import per_count
from coem.estimators._aspect_starts import given_traffic
from coem.estimators._count_coupling import couple_traffic
from coem.estimators._count_model import CountModel
from coem.estimators._counts import precision
from coem.estimators._types import Folder, Precision, Seed
from coem.io.packing import TrafficPacking
from coem.kernels.aspect import Pairs
from coem.latent.traffic import Traffic, TrafficFlow, TrafficTheta
from coem.run_coupling import HUB_VIAS, RunCoupling
from coem.schedules import Schedule
from coem.typing import Array, Matrix
from coem.views import is_several


class TrafficModel(CountModel):
    r"""Fit :math:`p(x, x') = \sum_{h, h'} \alpha(x|h)\, \beta(h, h')\, \alpha(x'|h')` to traffic.

    A trip from node x to node x' enters a highway at hub h and leaves it at hub h'. A node has the
    same share of the traffic of a hub in both directions (Lin 2006, Sec. 5). If the nodes link to
    each other, the hubs are communities, and `beta_` is the traffic between them.

    Parameters
    ----------
    n_hubs : int, default=10
        Number of hubs.
    coupling : {None, "x"} or RunCoupling, default=None
        "x" couples runs through the nodes (Sec. 5). A `RunCoupling` also sets which run learns
        from which. None: no coupling.
    n_runs : int, default=2
        Number of runs. Without coupling they are restarts, and the best is kept.
    rounds : int, default=1
        Number of couplings, with `max_iter` iterations before and after each.
    self_coupling : bool, default=False
        Couple every run with itself.
    beta : float or Schedule, default=1.0
        Inverse temperature above 0, as in the other models. (The traffic between hubs is `beta_`.)
        A schedule that rises to 1 is deterministic annealing. It goes on through all phases.
    init : "random", (alpha, beta), fitted model, or list of these, default="random"
        "random" draws alpha near the share of each node in all traffic, from it and to it, and the
        traffic between hubs from symmetric matrices. A list has one start per run.
    max_iter : int, default=100
        Iterations of each phase. There is a phase before, between and after the couplings.
    tol : float, default=0.0
        End a phase when the relative change of the objective is smaller. 0 runs all iterations.
    validation : matrix of shape (n_nodes, n_nodes), optional
        Held-out counts between the same nodes. A phase then ends when their likelihood has
        reached no new maximum for `patience` iterations, and goes back to the parameters with the
        largest likelihood; these may be the ones that it began with. The best parameters of all
        phases and runs are kept. Iterations count once a schedule of beta has ended.
    patience : int, default=5
        Used only with `validation`.
    smoothing : float, default=0.0
        Pseudo-counts of every cell of alpha: a Dirichlet prior.
    dtype : dtype, optional
        ``np.float32`` computes with float32 parameters and float64 sums, ``np.float64`` everything
        in float64. None takes float32 if a round has more than a million products.
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
        The transitions of every coupling: `coupling` (its number), `run` (the run that learns) and
        `other` (the run that it learns from), `through` ("x"), `matrix` (p(h of other | h of run),
        which translates `alpha_`), `back` (p(h of run | h of other), which translates `beta_`).

    Notes
    -----
    The time per round grows with nnz k for the expected counts, and with n k^2 for the products
    with `beta_`. A node is both a row and a column, so the weight of a row would be the weight of
    half a node. For this reason there is no `sample_weight`.

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

    alpha_: Array
    beta_: Array

    def __init__(
        self,
        n_hubs: int = 10,
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
        smoothing: float = 0.0,
        dtype: Precision = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        checkpoint: Folder | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_nodes)
            Counts from the node of the row to the node of the column, dense or sparse.
        y : ignored
            Accepted because scikit-learn passes it.

        Returns
        -------
        self : TrafficModel
            The fitted estimator.
        """
        plan = self._plan("n_hubs", HUB_VIAS)
        check_number("smoothing", self.smoothing, Real, 0)
        if not self.smoothing < np.inf:
            raise ValueError(f"smoothing must be finite, got {self.smoothing!r}")
        counts = self._read(X, reset=True)
        n, k = counts.shape[0], self.n_hubs
        dtype = precision(self.dtype, counts, k, extra=n * k**2)
        model = TrafficFlow(k, float(self.smoothing), dtype)
        given = given_traffic(self.init, k, n)
        starts = None if given is None else [TrafficTheta.of(start, dtype) for start in given]
        packing = TrafficPacking(counts.shape, k, dtype)
        best = self._fit_runs(plan, model, couple_traffic, packing, counts, None, starts, "hubs")
        self.alpha_, self.beta_ = best.theta.plain
        return self

    def _read(self, X: Any, *, reset: bool) -> Matrix:
        """Return checked counts between nodes."""
        if is_several(X):
            raise ValueError("TrafficModel takes one matrix of counts between nodes")
        counts = self._read_counts(X, reset=reset)
        n, m = counts.shape
        if n != m:
            raise ValueError(
                f"X must be square, from every node to every node in the same order; it has {n} "
                f"rows and {m} columns: give each node a row and a column, or use AspectModel"
            )
        return counts

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log likelihood per count; larger is better.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_nodes)
            Counts between the nodes of `fit`, held out or not.
        y : ignored
            Accepted because scikit-learn passes it.

        Returns
        -------
        score : float
            In nats. A pair that is impossible under the model counts as log(tiny), about -708.
        """
        check_is_fitted(self)
        counts = self._read(X, reset=False)
        theta = TrafficTheta.of(Traffic(self.alpha_, self.beta_), self.alpha_.dtype)
        with LocalEngine(self.n_jobs):
            return per_count(Pairs.of(counts, None, theta.x.dtype), theta)
