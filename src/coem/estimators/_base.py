"""The base of the mixture estimators: data, fitted parameters, and what they say of rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.coupling import as_coupling
from coem.estimators._corpora import joined
from coem.estimators._params import MixtureParams
from coem.estimators._views_model import ViewsModel
from coem.evidence import Speaking, listen, warn_silent
from coem.input import read_rows, read_views
from coem.kernels import threads
from coem.latent.block import Block, Partition
from coem.latent.fitted import Fitted
from coem.latent.mixture import Expected, Mixture, MixtureState, MixtureTheta
from coem.latent.stored import Encoding, StoredRows
from coem.latent.weights import WEIGHTS, safe_log
from coem.online import Running
from coem.posterior import Rule, Soft, as_rule
from coem.protocols import Clock
from coem.records import Records
from coem.row_store import RowStore
from coem.typing import Array
from coem.view_betas import find_betas
from coem.views import Views, as_views


class BaseMixture(ViewsModel, MixtureParams, ABC):
    """A mixture over views.

    The abstract methods say what a label means. The mixins of `MixtureClusterer` and
    `MixtureClassifier` inherit from this class, and rely on nothing else.
    """

    view_weights_: Array
    transition_: Records
    silent_views_: tuple[str, ...]
    shared_information_: Array
    view_betas_: dict[str, float]

    _heard: Speaking  # what an earlier fit to the same rows has found; see `hear_as`

    _has_rows: Array  # which views count in the mixture weights
    _stats: Running[Expected] | None  # of the batches of `partial_fit`; None after `fit`

    # -- model -------------------------------------------------------------------------------

    def _mixture(self, rule: Rule | None = None) -> Mixture:
        """Return the mixture over the fitted families."""
        emissions = self._emissions()
        single = all(family.single_precision for family in emissions.families)
        return Mixture(
            emissions,
            self._n_components(),
            as_coupling(self.coupling),
            rule or as_rule(self.posterior),
            WEIGHTS[self.weights](self._pseudo_rows(), self._classes()),
            self.dtype or (np.float32 if single else np.float64),
        )

    def _theta(self) -> MixtureTheta:
        """Return the fitted parameters as the latent structure reads them."""
        params = tuple(self.theta_[name] for name in self.view_names_)
        return MixtureTheta(params, safe_log(self.view_weights_), (1,) * len(params))

    def _set_theta(self, mixture: Mixture, theta: MixtureTheta) -> None:
        """Set the fitted parameters. Each view keeps the weights of its last E step."""
        self.theta_ = dict(zip(self.view_names_, theta.of_views, strict=True))
        self.view_weights_ = np.exp(theta.log_weights)
        self.weights_ = mixture.overall_weights(theta, self._has_rows)

    def _fitted(self) -> Fitted:
        """Return the fitted mixture."""
        mixture = self._mixture(Soft())
        return Fitted(mixture, self._theta(), self.weights_, self.assign, self.beta_, self._limit())

    def _limit(self) -> float:
        """Return the most evidence that a row can have, in nats."""
        return np.inf

    # -- views that speak --------------------------------------------------------------------

    def _rows_of_fit(self, views: Views | RowStore, weight: Array | None) -> Partition | StoredRows:
        """Return the rows of a fit, encoded; those of a corpus stay there."""
        if isinstance(views, RowStore):
            return self._survey(views, weight)
        return Partition(*self._encode(views, reset=True, weight=weight), weight)

    def _listened(
        self, part: Partition | StoredRows, weight: Array | None
    ) -> Partition | StoredRows:
        """Return the rows of a fit without the views that share nothing with the others.

        `weight` are the weights of the user: what views share does not depend on how much rows
        without a label count in the fit.
        """
        self.silent_views_, self.shared_information_ = (), np.zeros((0, 0))
        self.view_betas_ = dict.fromkeys(self.view_names_, 1.0)
        if isinstance(self.init, BaseMixture):  # its parameters were made without these views
            self.silent_views_ = self.init._left_out()
        elif self.evidence == "auto" and part.n_views > 1:
            found = self.__dict__.pop("_heard", None)  # by an earlier fit to the same rows
            if found is None:
                rows = replace(part, weight=weight).sample
                found = listen(self._emissions().families, rows, self._n_components())
            self.shared_information_ = found.shared
            names = zip(self.view_names_, found.silent, strict=True)
            self.silent_views_ = tuple(name for name, silent in names if silent)
            warn_silent(self.view_names_, found)
        return part.silenced(self._silent())

    def hear_as(self, other: Any) -> None:
        """Let the next fit leave out the views that `other` left out of the same rows."""
        if self.evidence == "auto" and len(getattr(other, "shared_information_", ())):
            silent = np.isin(other.view_names_, other.silent_views_)
            self._heard = Speaking(silent, other.shared_information_)

    def _find_betas(self, part: Partition | StoredRows) -> None:
        """Find how loudly each view speaks, where views have posteriors that can be compared."""
        if self.evidence != "auto":
            return
        if isinstance(self.init, BaseMixture):
            self.view_betas_ |= getattr(self.init, "view_betas_", {})
            return
        mixture, eta = self._mixture(), self._schedules()[0](0)
        if mixture.n_turns > 1 and eta > 0 and isinstance(mixture.rule, Soft):
            betas = find_betas(mixture, part.sample, eta)
            self.view_betas_ = dict(zip(self.view_names_, betas, strict=True))

    def _silent(self) -> Array:
        """Return which views are left out, (n_views,) bool."""
        return np.isin(self.view_names_, self._left_out())

    def _left_out(self) -> tuple[str, ...]:
        """Return the views that are left out; none in models of older files."""
        return tuple(getattr(self, "silent_views_", ()))

    # -- new rows ----------------------------------------------------------------------------

    def _part(self, X: Any) -> Partition:
        """Return new rows, checked and encoded; all rows of a corpus."""
        check_is_fitted(self)
        views = read_views(self, X, reset=False)
        return Partition(*self._encode(views, reset=False)).silenced(self._silent())

    def _rows(self, X: Any) -> Partition | StoredRows:
        """Return new rows, checked and encoded; those of a corpus stay there."""
        X = self._opened(X)
        if not isinstance(X, RowStore):
            return self._part(X)
        check_is_fitted(self)
        corpus = read_rows(self, X, reset=False)
        assert isinstance(corpus, RowStore)
        families = tuple(self.families_[name] for name in corpus.names)
        return StoredRows(corpus, Encoding(families, self._silent()))

    def _map_blocks(self, X: Any, work: Callable[[Fitted, Block], Array]) -> Array:
        """Return the results of `work` on every block of `X`, joined in the order of the rows."""
        return self._map_rows(self._rows(X), work)

    def _map_rows(
        self, rows: Partition | StoredRows, work: Callable[[Fitted, Block], Array]
    ) -> Array:
        """Return what `_map_blocks` returns, for rows that are checked."""
        fitted = self._fitted()

        def each(part: Partition) -> Array:
            return np.concatenate(threads.spread(lambda block: work(fitted, block), part.blocks))

        with self._engine() as engine:
            return joined(engine.each_part(each, rows.parts()), rows.n_rows)

    def _infer(self, X: Any, y: Any, sample_weight: Any) -> tuple[Partition, MixtureState, Clock]:
        """Return rows with their weights and labels, their posteriors, and the clock of the fit."""
        part, clock, mixture = self._known(X, y, sample_weight), self._clock(), self._mixture()
        return part, mixture.infer(part, self._theta(), clock, None), clock

    def _known(self, X: Any, y: Any, sample_weight: Any) -> Partition:
        """Return rows with their weights and labels."""
        rows = self._part(X)
        weight, allowed = self._knowledge(as_views(X), y, sample_weight)
        return Partition(rows.views, rows.empty, weight, allowed)

    def _first_clock(self) -> Clock:
        """Return the clock before the first round of a fit."""
        eta, beta = self._schedules()
        return Clock(0, (beta(0),) * self._mixture().n_turns, eta(0))

    def _clock(self) -> Clock:
        """Return the clock at the end of the fit."""
        return Clock(self.n_iter_, (self.beta_,) * self._mixture().n_turns, self.history_[-1].eta)

    # -- hooks: what a label means -----------------------------------------------------------

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the mixture."""

    @abstractmethod
    def predict(self, X: Any) -> Array:
        """Return the label of every row, of shape (n_rows,)."""

    @abstractmethod
    def _pseudo_rows(self) -> float:
        """Return the pseudo-rows per component, and per class, in the mixture weights."""

    @abstractmethod
    def _classes(self) -> tuple[int, ...] | None:
        """Return the class of every component, or None if there are no classes."""

    @abstractmethod
    def _label_of(self, component: int) -> Any:
        """Return the label that `predict` uses for a component."""

    @abstractmethod
    def _labels(self, proba: Array) -> Array:
        """Return the labels of rows that have the posteriors `proba`."""

    @abstractmethod
    def _knowledge(
        self, views: Views, y: Any, sample_weight: Any
    ) -> tuple[Array | None, Array | None]:
        """Return the row weights, and which components every row may have."""

    @abstractmethod
    def _say(self, y: Any, weight: Array) -> Array:
        """Return how much every row of a first batch counts, given the weights of the rows."""
