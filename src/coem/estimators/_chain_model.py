"""The base of hidden Markov models: parameters, fitted attributes, and the rows of sequences."""

from abc import ABC
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_number
from coem.engine.dask_rows import DaskRows
from coem.estimators._restarts import RestartFit
from coem.input import is_lazy, read_rows, read_views, refuse_blocks
from coem.kernels import threads
from coem.latent.chain import Chain, ChainStats, ChainTheta
from coem.latent.fitted_chain import FittedChain
from coem.latent.markov import Markov, MarkovTheta
from coem.latent.sequences import SequenceBlock, Sequences
from coem.latent.stored import Encoding
from coem.latent.stored_sequences import SequenceRows
from coem.online import Running
from coem.row_store import RowStore
from coem.schedules import as_schedule
from coem.sequences import (
    is_list_of_sequences,
    naming_impossible,
    naming_sequences,
    read_sequences,
)
from coem.typing import Array
from coem.views import Views

POSTERIORS = ("soft", "hard")

Found = TypeVar("Found")


class ChainModel(RestartFit, ABC):
    """A Markov chain of hidden states over views."""

    n_components: int
    startprob: Any
    transmat: Any
    startprob_prior: Any
    transmat_prior: Any
    posterior: str

    startprob_: Array
    transmat_: Array

    _stats: Running[ChainStats] | None  # of the batches of `partial_fit`; None after `fit`

    def _n_components(self) -> int:
        return self.n_components

    def _precision(self) -> Any:
        """Return float64 unless the user says otherwise: errors add up along a sequence."""
        return self.dtype or np.float64

    def _check_params(self) -> None:
        """Raise unless all parameters are valid."""
        check_number("n_components", self.n_components, Integral, 1)
        check_choice("posterior", self.posterior, POSTERIORS)
        super()._check_params()
        if as_schedule(self.beta, "beta").extremes()[0] <= 0:
            raise ValueError("beta must be above 0: at 0 all paths are equally likely")
        self._markov()

    def _markov(self) -> Markov:
        """Return how start probabilities and transitions are estimated."""
        k = self.n_components
        start, transition = self._first_markov()
        return Markov(
            _pseudo_counts("startprob_prior", self.startprob_prior, (k,)),
            _pseudo_counts("transmat_prior", self.transmat_prior, (k, k)),
            start > 0,
            transition > 0,
        )

    def _first_markov(self) -> tuple[Array, Array]:
        """Return the start probabilities and transitions that the user gives, or equal ones."""
        k = self.n_components
        return (
            _probabilities("startprob", self.startprob, (k,)),
            _probabilities("transmat", self.transmat, (k, k)),
        )

    def _chain(self) -> Chain:
        """Return the chain over the fitted families."""
        hard = self.posterior == "hard"
        return Chain(self._emissions(), self.n_components, self._markov(), hard, self._precision())

    def _theta(self) -> ChainTheta:
        """Return the fitted parameters as the latent structure reads them."""
        params = tuple(self.theta_[name] for name in self.view_names_)
        return ChainTheta(params, MarkovTheta.of(self.startprob_, self.transmat_), 1)

    def _set_theta(self, theta: ChainTheta) -> None:
        """Set the fitted parameters."""
        self.theta_ = dict(zip(self.view_names_, theta.of_views, strict=True))
        self.startprob_ = np.exp(theta.of_chain.log_start)
        self.transmat_ = np.exp(theta.of_chain.log_transition)

    def _fitted(self) -> FittedChain:
        """Return the fitted chain."""
        return FittedChain(self._chain(), self._theta(), self.beta_)

    # -- new rows ----------------------------------------------------------------------------

    def _part(self, X: Any, lengths: Any) -> Sequences:
        """Return new sequences, checked and encoded."""
        check_is_fitted(self)
        views, offsets = self._views(X, lengths, reset=False)
        assert isinstance(views, Views)
        with naming_sequences(offsets):
            return Sequences(*self._encode(views, reset=False), offsets=offsets)

    def _views(self, X: Any, lengths: Any, *, reset: bool) -> tuple[Views | RowStore, Array]:
        """Return the rows of all sequences, and where the sequences begin."""
        if is_lazy(X) or isinstance(X, DaskRows):
            raise ValueError(
                f"X is a dask collection, and {type(self).__name__} takes sequences in memory or "
                "in a corpus: pass dask.compute(X)[0], or write a corpus and open it; both work "
                'with engine="dask"'
            )
        refuse_blocks(X, type(self).__name__)
        rows, offsets = read_sequences(X, lengths)
        if isinstance(rows, RowStore):
            return read_rows(self, rows, reset=reset), offsets
        named = X[0] if is_list_of_sequences(X) else None
        return read_views(self, rows, reset=reset, named=named), offsets

    def _rows(self, X: Any, lengths: Any) -> Sequences | SequenceRows:
        """Return new sequences, checked and encoded; those of a corpus stay there."""
        if not isinstance(X, RowStore):
            return self._part(X, lengths)
        check_is_fitted(self)
        corpus, offsets = self._views(X, lengths, reset=False)
        assert isinstance(corpus, RowStore)
        families = tuple(self.families_[name] for name in corpus.names)
        encoding = Encoding(families, np.zeros(len(families), dtype=bool))
        return SequenceRows(corpus, encoding, offsets=offsets)

    def _map_sequences(
        self, X: Any, lengths: Any, work: Callable[[FittedChain, SequenceBlock], Found]
    ) -> list[Found]:
        """Return the results of `work` on all sequences, in their order."""
        rows, fitted = self._rows(X, lengths), self._fitted()

        def each(part: Sequences) -> list[Found]:
            return threads.spread(lambda block: work(fitted, block), part.sequence_blocks)

        with self._engine() as engine, naming_impossible():
            return [found for part in engine.each_part(each, rows.parts()) for found in part]


def _probabilities(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Return given probabilities, or equal ones; raise unless each row sums to one."""
    if given is None:
        return np.full(shape, 1.0 / shape[-1])
    found = _numbers(name, given, shape)
    if found.min() < 0:
        raise ValueError(f"{name} must hold probabilities, 0 or more, got {found.min():g}")
    sums = np.atleast_1d(found.sum(axis=-1))
    wrong = np.abs(sums - 1) > 1e-6
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f": row {row} sums" if len(shape) == 2 else " sums"
        raise ValueError(f"{name}{where} to {sums[row]:g}, and must sum to 1")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def _pseudo_counts(name: str, prior: Any, shape: tuple[int, ...]) -> Array:
    """Return the pseudo-counts of a Dirichlet prior: its parameters less one."""
    one = np.ndim(prior) == 0 and not isinstance(prior, str)
    found = _numbers(name, np.broadcast_to(prior, shape) if one else prior, shape)
    if found.min() < 1:
        raise ValueError(f"{name} must be 1 or more everywhere, got {found.min():g}")
    return found - 1.0


def _numbers(name: str, given: Any, shape: Sequence[int]) -> Array:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {given!r}") from None
    if found.shape != tuple(shape):
        raise ValueError(f"{name} must have shape {tuple(shape)}, got {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must hold finite numbers")
    return found
