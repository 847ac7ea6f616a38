"""Methods of fitted hidden Markov models: paths, posteriors, likelihoods, criteria, samples."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_number
from coem.estimators._chain_model import ChainModel
from coem.estimators._contributions import log_odds
from coem.estimators._corpora import check_result
from coem.estimators._features import FeatureMethods
from coem.estimators._types import Seed
from coem.latent.fitted_chain import FittedChain
from coem.latent.sequences import SequenceBlock
from coem.row_store import RowStore
from coem.sequences import one_per_row, read_sequences
from coem.typing import Array, Matrix, Rng
from coem.views import Views


class ChainMethods(FeatureMethods, ChainModel):
    """Methods of `HiddenMarkovModel` that need no data of the fit."""

    def decode(self, X: Any, lengths: Any = None) -> tuple[float, Array]:
        """Return the best path of all sequences, by Viterbi's algorithm.

        Parameters
        ----------
        X : matrix, Views or RowStore, or list of matrices or Views
            Sequences, as in `fit`.
        lengths : array-like of int, optional
            Number of rows of each sequence.

        Returns
        -------
        log_prob : float
            Log probability of all rows together with their states.
        states : ndarray of shape (n_rows,)
            The state of each row.
        """
        found = self._map_sequences(X, lengths, FittedChain.decode)
        total = sum(float(decoded.log_joint.sum()) for decoded in found)
        return total, np.concatenate([decoded.states for decoded in found])

    def predict(self, X: Any, lengths: Any = None) -> Array:
        """Return the states of the best path (Viterbi), of shape (n_rows,)."""
        return self.decode(X, lengths)[1]

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Return P(state | whole sequence) of every row, of shape (n_rows, n_components).

        The state of the largest probability need not be the one of the best path, which `predict`
        returns.
        """
        if isinstance(X, RowStore):
            check_result(len(X), 8 * self.n_components)
        return np.concatenate(self._map_sequences(X, lengths, FittedChain.proba))

    def score_samples(self, X: Any, lengths: Any = None) -> Array:
        """Return log p(sequence) of every sequence, of shape (n_sequences,).

        It is -inf if the model has no path for a sequence.
        """
        return np.concatenate(self._map_sequences(X, lengths, FittedChain.evidence))

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return the log likelihood of all sequences together; larger is better.

        It is the sum over the sequences, as in hmmlearn. Scikit-learn passes `y`, one label per
        row, which has no effect. Lengths must be named: ``score(X, lengths=lengths)``.
        """
        if y is not None:
            one_per_row(y, read_sequences(X, lengths)[1], "score")
        return float(self.score_samples(X, lengths).sum())

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Return Akaike's information criterion on `X`; lower is better."""
        return -2 * self.score(X, lengths=lengths) + 2 * self._n_parameters()

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Return the Bayesian information criterion on `X`; lower is better."""
        n_rows = int(read_sequences(X, lengths)[1][-1])
        return -2 * self.score(X, lengths=lengths) + self._n_parameters() * float(np.log(n_rows))

    def _n_parameters(self) -> int:
        """Return the number of free parameters, including start probabilities and transitions."""
        own = sum(f.n_parameters(self.theta_[name]) for name, f in self.families_.items())
        return own + self._markov().n_parameters()

    def sample(
        self, n_samples: int = 1, random_state: Seed = None, n_sequences: int = 1
    ) -> tuple[Matrix | Views, Array]:
        """Draw sequences from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows of each sequence.
        random_state : int, RandomState or None, default=None
            Source of random numbers. None takes the `random_state` of the estimator.
        n_sequences : int, default=1
            Number of sequences. Their rows come one sequence after the other.

        Returns
        -------
        X : matrix or Views
            The rows; a matrix if the model has one view.
        states : ndarray of shape (n_samples * n_sequences,)
            The state that each row was drawn from.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, Integral, 1)
        check_number("n_sequences", n_sequences, Integral, 1)
        seed = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(check_random_state(seed).randint(np.iinfo(np.int32).max))
        states = _paths(self.startprob_, self.transmat_, n_samples, n_sequences, rng)
        drawn = {
            name: family.sample(self.theta_[name], states, rng)
            for name, family in self.families_.items()
        }
        return (drawn[self.view_names_[0]] if len(drawn) == 1 else Views(drawn)), states

    def explain(self, X: Any, lengths: Any = None) -> list[Bunch]:
        """Return which features speak for the most probable state of each row.

        It is compared with the second most probable one, given the whole sequence.

        Parameters
        ----------
        X : matrix, Views or RowStore, or list of matrices or Views
            Sequences, as in `fit`.
        lengths : array-like of int, optional
            Number of rows of each sequence.

        Returns
        -------
        explanations : list of Bunch
            One per row. `label` and `against` are the two states, and `log_odds` the log odds
            between them. `prior` is the part of the log odds that comes from the other rows of the
            sequence, by way of the transitions. `views` maps each view that is not empty to a
            Bunch of `features`, their `contributions`, and `rest`, the part that belongs to no
            single feature. `prior`, all contributions and all rests add up to `log_odds`.
        """
        check_is_fitted(self)
        if self.n_components < 2:
            raise ValueError("explain compares two states, and the model has only one")
        X = X.load(what="explain") if isinstance(X, RowStore) else X
        found = self._map_sequences(X, lengths, self._explain_block)
        return [row for rows in found for row in rows]

    def _explain_block(self, fitted: FittedChain, block: SequenceBlock) -> list[Bunch]:
        """Return the explanations of all rows of some sequences."""
        context, log_prob = fitted.log_context(block)
        emissions = self._emissions()
        best = np.argsort(-(context + log_prob), axis=1, kind="stable")[:, :2].tolist()
        return [
            Bunch(
                label=label,
                against=against,
                **log_odds(
                    self.theta_,
                    emissions,
                    block.one_row(i),
                    label,
                    against,
                    float(context[i, label] - context[i, against]),
                ),
            )
            for i, (label, against) in enumerate(best)
        ]


def _paths(start: Array, transition: Array, n_steps: int, n_paths: int, rng: Rng) -> Array:
    """Return paths through the states, one after the other, of shape (n_paths * n_steps,)."""
    k = len(start)
    first, later = (np.cumsum(prob, axis=-1) for prob in (start, transition))
    states = np.empty((n_paths, n_steps), dtype=np.int64)
    for t in range(n_steps):
        bounds = np.broadcast_to(first, (n_paths, k)) if t == 0 else later[states[:, t - 1]]
        drawn = rng.random((n_paths, 1)) * bounds[:, -1:]  # sums of shares may end beside 1
        states[:, t] = (drawn >= bounds).sum(axis=1)
    return states.ravel()
