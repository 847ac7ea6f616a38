"""Hidden Markov models over one or several views."""

from typing import Any, Self

from sklearn.utils import ClassifierTags

from coem.checks import undo_on_error
from coem.estimators._chain_online import ChainOnline
from coem.estimators._types import EngineLike, Folder, Precision, Seed
from coem.families.named import Named
from coem.schedules import Schedule, StepSize
from coem.typing import Array


class HiddenMarkovModel(ChainOnline):
    r"""Find the hidden states of sequences by EM (Baum-Welch) or by Viterbi training.

    Every row has a hidden state, which depends on the state of the row before it. Given its state,
    a row is drawn from a component, as in a mixture. Views are multiplied.

    Parameters
    ----------
    n_components : int, default=2
        Number of states.
    family : str, Family or dict, default="auto"
        Density of a state in a view: a name ("multinomial", "bernoulli", "categorical",
        "gaussian", "von_mises_fisher"), an object of `coem.families`, or a dict from view to name
        or object. "auto" decides by the values of a view, as for `MixtureClusterer`.
    startprob : array of shape (n_components,), optional
        Start probabilities at the beginning of the fit. By default all states are equally likely.
        A probability of 0 stays 0.
    transmat : array of shape (n_components, n_components), optional
        Transition probabilities at the beginning of the fit, from the row's state to the column's.
        By default all are equal. A probability of 0 stays 0, so that an upper triangular matrix
        makes a left-right model.
    startprob_prior, transmat_prior : float or array, default=1.0
        Parameters of Dirichlet priors, 1 or more: a number, or one for every entry of `startprob`
        or `transmat`. Each adds its excess over 1 to the number of starts or transitions. A large
        diagonal of `transmat_prior` makes states last.
    beta : float or Schedule, default=1.0
        Inverse temperature: the posterior of a path is proportional to its probability to the power
        of beta. A schedule that rises to 1 is deterministic annealing. It must be above 0.
    posterior : {"soft", "hard"}, default="soft"
        "hard" gives all of a sequence to its best path (Viterbi training).
    init : str, array or model, default="auto"
        How the emissions start. "spherical", "random", "rows" and "k-means++" are those of
        `MixtureClusterer`. "segments" cuts every sequence into consecutive parts, one per state;
        the shares of the parts are drawn. "auto" is "segments" if no state can come back (a
        left-right model), and "spherical" otherwise. Start and transition probabilities are then
        `startprob` and `transmat`, and clusters get the numbers of the states that rows are
        labelled with. An array of shape (n_rows, n_components) holds
        responsibilities: the first M step takes the start probabilities from the first rows of the
        sequences, the transitions from the sums of r_t r_{t+1}^T over consecutive rows, and the
        emissions from all rows. A fitted `HiddenMarkovModel` gives all its parameters. A fitted
        mixture is a chain whose next state does not depend on the last. With an array or a model
        there is only one run.
    n_init : int, default=1
        Number of restarts. The one with the largest objective is kept.
    max_iter : int, optional
        Largest number of rounds. None allows 200 after the schedule of `beta` has ended.
    tol : float, default=1e-6
        Stop when the relative change of the objective in a round is smaller. 0 runs all rounds.
    patience : int, optional
        Stop instead when the log likelihood has not reached a new maximum for this number of
        rounds, and return the best parameters.
    step : {"forget", "sum"} or StepSize, default="forget"
        How much a batch of `partial_fit` counts beside the batches before, as in
        `MixtureClusterer`. Rows are those of all sequences.
    dtype : dtype, optional
        Precision of the parameters. None is float64.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    engine : Engine, distributed.Client or "dask", optional
        What holds the rows, as in `MixtureClusterer`. By default threads of this process.
    checkpoint : path, optional
        A folder that keeps the state of a fit while it runs, as in `MixtureClusterer`.
    verbose : int, default=0
        Write progress to stderr.

    Attributes
    ----------
    startprob_ : ndarray of shape (n_components,)
        Start probabilities.
    transmat_ : ndarray of shape (n_components, n_components)
        Transition probabilities, from the row's state to the column's.
    theta_ : dict
        View -> parameters of its family. The first axis is the state.
    families_ : dict
        View -> its family, bound to the data.
    labels_ : ndarray of shape (n_rows,)
        State of every row on the best path that agrees with the labels in `y`.
    weights_ : ndarray of shape (n_components,)
        Expected share of the rows in each state.
    objective_ : float
        Penalised, tempered log likelihood; with ``posterior="hard"`` the penalised log probability
        of the rows and their best paths.
    history_ : list of records
        One per round: `objective`, `free_energy` (the same), `log_likelihood`, `beta`, `seconds`.
        ``history_.to_frame()`` returns a DataFrame.
    runs_ : list of records
        One per restart: `seed`, `objective`, `n_iter`, `converged`, `seconds`.
    n_start_rows_ : int
        Number of rows that the starts were drawn from: all rows, or those of some sequences of a
        large corpus, which are drawn by their content.
    collapsed_ : dict
        View -> states whose rows do not vary in some direction in which all rows do. A Gaussian
        family keeps their variance at the least that is allowed; see its notes.
    n_iter_ : int
        Rounds of the best run.
    converged_ : bool
        Whether the best run converged.

    Notes
    -----
    A row that is empty in every view (all NaN, or no counts) says nothing about its state. The
    chain passes through it.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import HiddenMarkovModel
    >>> X = np.array([[0.1], [0.2], [5.1], [4.9], [0.0], [5.2], [5.0], [0.1]])
    >>> model = HiddenMarkovModel(2, family="gaussian", random_state=0).fit(X, lengths=[5, 3])
    >>> states = model.predict(X, lengths=[5, 3])
    >>> bool(states[0] == states[1] != states[2])
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        family: Named | dict[str, Named] = "auto",
        startprob: Any = None,
        transmat: Any = None,
        startprob_prior: Any = 1.0,
        transmat_prior: Any = 1.0,
        beta: float | Schedule = 1.0,
        posterior: str = "soft",
        init: Any = "auto",
        n_init: int = 1,
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
        self.startprob = startprob
        self.transmat = transmat
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.beta = beta
        self.posterior = posterior
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
        tags.estimator_type = "clusterer"  # not by ClusterMixin, as in MixtureClusterer
        tags.classifier_tags = ClassifierTags(multi_class=self.n_components != 2)
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any = None, lengths: Any = None, sequence_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : matrix, Views or Corpus, or list of matrices or Views
            The rows of all sequences, one sequence after the other; or a list with one matrix,
            dict or `Views` per sequence. A corpus is read a few whole sequences at a time.
        y : array of shape (n_rows,), or list of arrays, optional
            The states of rows that are known, and -1 for the others. Known states stay fixed. A
            list has one array per sequence, or None for a sequence without labels.
        lengths : array-like of int, optional
            Number of rows of each sequence; they add up to the number of rows. By default all rows
            are one sequence.
        sequence_weight : array of shape (n_sequences,), optional
            A sequence with a weight of 2 counts like two equal sequences.

        Returns
        -------
        self : HiddenMarkovModel
            The fitted estimator.
        """
        self._fit_whole(X, y, lengths, sequence_weight)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, lengths: Any = None, sequence_weight: Any = None
    ) -> Array:
        """Fit the model and return the state of every row, of shape (n_rows,)."""
        return self.fit(X, y, lengths, sequence_weight).labels_
