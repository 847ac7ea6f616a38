"""Hidden Markov models that learn from one batch of sequences after another."""

from typing import Any, Self

import numpy as np

from coem.checks import undo_on_error
from coem.estimators._chain_fit import ChainFit
from coem.estimators._chain_methods import ChainMethods
from coem.estimators._corpora import refuse_corpus
from coem.estimators._online import warn_faded
from coem.latent.chain import ChainStats
from coem.latent.sequences import Sequences
from coem.online import Running, begin, learn
from coem.protocols import Clock
from coem.schedules import as_step
from coem.sequences import naming_impossible, read_sequences, read_states, read_weights
from coem.typing import Array


class ChainOnline(ChainFit, ChainMethods):
    """The `partial_fit` of `HiddenMarkovModel`: stepwise EM (`coem.online`)."""

    @undo_on_error
    def partial_fit(
        self, X: Any, y: Any = None, lengths: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Go on with another batch of whole sequences, by stepwise EM.

        The first call is `fit`. Every later call is one round on the new sequences: an E step with
        the fitted parameters, a step of the running statistics towards those of the batch (see
        `step`), and an M step. `labels_` are those of the last batch, and `weights_` the shares of
        the states in the running statistics; `history_`, `objective_` and `n_iter_` stay those of
        the first batch. `fit` itself keeps no statistics: if you call `partial_fit` after `fit`,
        they start with this batch, from the posteriors of the fitted parameters.

        Parameters
        ----------
        X, y, lengths, sequence_weight
            The sequences of the batch, as in `fit`.

        Returns
        -------
        self : HiddenMarkovModel
            The estimator.
        """
        self._check_params()
        refuse_corpus(X, "partial_fit")
        step = as_step(self.step)
        if not hasattr(self, "theta_"):
            weight = _first_weight(X, lengths, sequence_weight, step.n_rows)
            self._fit_whole(X, y, lengths, weight)
            part, n_rows = self._batch(X, y, lengths, sequence_weight)
            theta, clock = self._theta(), self._clock()
            with self._engine(), naming_impossible():
                self._stats = begin(self._chain(), part, n_rows, theta, clock, step)
            return self
        self._check_made_with()
        chain, before = self._chain(), self._stats
        part, n_rows = self._batch(X, y, lengths, sequence_weight)
        theta, clock = self._theta(), self._clock()
        with self._engine() as engine, naming_impossible():
            theta, after = learn(chain, part, n_rows, theta, clock, before, step)
            assert after is not None  # a sequence has rows, and one has a weight
            self._set_theta(theta)
            paths = engine.map(self._fitted().decode, part.sequence_blocks)
        self._stats = after
        self.weights_ = _mass(after) / _mass(after).sum()
        self.labels_ = np.concatenate([path.states for path in paths])
        if before is not None:
            warn_faded(_mass(before), _mass(after), n_rows / part.n_rows, "states")
        return self

    def _batch(self, X: Any, y: Any, lengths: Any, sequence_weight: Any) -> tuple[Sequences, float]:
        """Return the sequences of a batch, and the weight of their rows."""
        part = self._part(X, lengths)
        weight = read_weights(sequence_weight, part.n_sequences)
        rows = None if weight is None else np.repeat(weight, np.diff(part.offsets))
        allowed = read_states(y, part.offsets, self.n_components)
        known = Sequences(part.views, part.empty, rows, allowed, offsets=part.offsets)
        # Rows without content count too: the chain passes through them.
        return known, float(part.n_rows if rows is None else rows.sum())

    def _clock(self) -> Clock:
        """Return the clock at the end of the fit."""
        return Clock(self.n_iter_, (self.beta_,), 1.0)


def _first_weight(X: Any, lengths: Any, sequence_weight: Any, n_rows: float | None) -> Any:
    """Return weights with which the rows of a first batch stand for `n_rows` rows."""
    if n_rows is None:
        return sequence_weight
    _, offsets = read_sequences(X, lengths)
    weight = read_weights(sequence_weight, len(offsets) - 1)
    weight = np.ones(len(offsets) - 1) if weight is None else weight
    return weight * (n_rows / (weight @ np.diff(offsets)))


def _mass(running: Running[ChainStats]) -> Array:
    """Return the expected number of rows in every state, of those that are stood for."""
    counts = running.stats[0].counts
    return np.asarray(counts.starts + counts.steps.sum(axis=0))
