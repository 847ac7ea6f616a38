"""Mixtures that get more components while they learn from batches."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from coem.checks import check_weight, undo_on_error
from coem.estimators._online import OnlineMixin
from coem.estimators._views_model import laid_out
from coem.families.base import stack
from coem.latent.block import Partition
from coem.latent.mixture import Expected, Mixture, MixtureTheta
from coem.latent.weights import safe_log
from coem.online import Running, begin
from coem.schedules import as_step
from coem.typing import Array, Theta, is_sparse
from coem.views import as_views

NO_STATISTICS = (
    "{} needs running statistics: call partial_fit, or start_batches with the rows of fit, first"
)


class GrowingMixin(OnlineMixin):
    """What a clusterer needs for a stream beside `partial_fit`: a beginning, and new components."""

    n_components: int

    @undo_on_error
    def start_batches(self, X: Any, sample_weight: Any = None) -> Self:
        """Make the rows of `fit` the first batch of `partial_fit`.

        `fit` keeps no statistics. This method gathers those of the rows under the fitted
        parameters, which do not change. Later batches move them, as if the first batch had been
        given to `partial_fit`.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of `fit`.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : MixtureClusterer
            The estimator.
        """
        self._check_params()
        part, n_rows = self._batch(X, None, sample_weight)
        self._check_made_with()
        with self._engine():
            theta, clock, step = self._theta(), self._clock(), as_step(self.step)
            self._stats = begin(self._mixture(), part, n_rows, theta, clock, step)
        return self

    @undo_on_error
    def add_components(self, X: Any, start: Any, sample_weight: Any = None) -> Self:
        """Add components that start from some rows, after those that are there.

        The components that are there keep their numbers and their parameters, and their weights
        stay in proportion. The new ones have the parameters of an M step on their rows, which are
        added to the running statistics of `partial_fit`. So do not give the same rows to
        `partial_fit` again. `n_components` becomes the new number. The limit of `calibrate` is
        forgotten.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows with the views of `fit`.
        start : array of int of shape (n_rows,)
            The number of the component that a row starts, as it will be in the grown model: from
            `n_components` on. -1 for a row that starts none.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows. A component whose rows have no weight begins with a weight of 0,
            and with the parameters of the prior.

        Returns
        -------
        self : MixtureClusterer
            The estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from coem import MixtureClusterer
        >>> X = np.array([[9, 1, 0], [8, 0, 0], [1, 9, 0], [0, 7, 0]])
        >>> model = MixtureClusterer(2, random_state=0).partial_fit(X)
        >>> before = model.predict(X)
        >>> new = np.array([[0, 0, 9], [1, 0, 8]])
        >>> model.add_components(new, [2, 2]).predict(new)
        array([2, 2])
        >>> bool((model.predict(X) == before).all())
        True
        """
        rows, weight = self._part(X), check_weight(sample_weight, as_views(X))
        if self._stats is None:
            raise ValueError(NO_STATISTICS.format("add_components"))
        start = _checked(start, rows.n_rows, self.n_components)
        n_new = int(start.max(initial=self.n_components - 1)) + 1 - self.n_components
        if not n_new:
            return self
        mixture = replace(self._mixture(), n_components=n_new)
        with self._engine():
            stats, theta, n_rows = self._new(mixture, rows, weight, start - self.n_components)
        self._join(theta, stats, n_rows)
        return self

    def gain_over_one(self, X: Any) -> Array:
        """Return how much better the mixture explains rows than a single component would.

        The single component has the statistics of all components together. A row that resembles
        one of the components has a large gain. A row of a new kind has none, however frequent or
        rare its features are.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows with the views of `fit`.

        Returns
        -------
        gain : ndarray of shape (n_rows, n_views)
            Difference of the log likelihoods, for rows of counts per count. NaN where a view is
            empty.
        """
        part, mixture = self._part(X), self._mixture()
        if self._stats is None:
            raise ValueError(NO_STATISTICS.format("gain_over_one"))
        found = np.full((part.n_rows, part.n_views), np.nan)
        with self._engine():
            for turn, views in enumerate(mixture.slots):
                for v in views:
                    stats = self._stats.stats[turn].views[v]
                    assert stats is not None
                    one = reduce(add, stats.apart(self.n_components))
                    found[:, v] = self._gain(part, v, mixture.emissions.estimate(v, one))
        return found

    def _gain(self, part: Partition, v: int, one: Theta) -> Array:
        """Return the gain of the rows in one view over the parameters of a single component."""
        name = self.view_names_[v]
        family, X = self.families_[name], part.views[v]
        weights = safe_log(self.view_weights_[v])
        gain = logsumexp(family.log_prob(X, self.theta_[name]) + weights, axis=1)
        gain = gain - family.log_prob(X, one)[:, 0]
        if is_sparse(X):
            gain /= np.maximum(np.asarray(X.sum(axis=1)).ravel(), 1.0)
        return np.where(part.empty[:, v], np.nan, gain) if part.empty is not None else gain

    def _new(
        self, mixture: Mixture, rows: Partition, weight: Array | None, start: Array
    ) -> tuple[list[Expected], MixtureTheta, float]:
        """Return the statistics of every turn, the parameters and the weight of new components."""
        chosen = np.flatnonzero(start >= 0)
        own = Partition(rows.views, rows.empty, weight).take(chosen)
        resp = np.eye(mixture.n_components)[start[chosen]]
        part, theta, clock = own.starting_from(resp), mixture.unknown(), self._clock()
        state = mixture.infer(part, theta, clock, None)
        stats = []
        for turn in range(mixture.n_turns):
            found = mixture.gather(part, mixture.unknown(), turn, clock, state)
            theta = mixture.estimate(found, theta, turn)
            stats.append(found)
        return stats, theta, float(part.row_weight().sum())

    def _join(self, theta: MixtureTheta, stats: list[Expected], n_rows: float) -> None:
        """Put new components after those that are there."""
        running, k, n_new = self._stats, self.n_components, len(stats[0].mass)
        assert running is not None
        pairs = zip(running.stats, stats, strict=True)
        kept = tuple(old.beside(new, k, n_new) for old, new in pairs)
        seen = running.n_rows + n_rows, running.n_seen + n_rows, running.n_batches
        self._stats = Running(kept, *seen)
        mass = stats[-1].mass
        new = mass / max(float(mass.sum()), np.finfo(float).tiny) * (n_rows / seen[0])
        self.weights_ = self._weights_beside(self.weights_, new)
        self.view_weights_ = np.array([self._weights_beside(w, new) for w in self.view_weights_])
        tables = zip(self.theta_.items(), theta.of_views, strict=True)
        self.theta_ = {
            view: laid_out(self.families_[view], stack([old, own])) for (view, old), own in tables
        }
        self.n_components = k + n_new
        self._made_with = {**self._made_with, "n_components": k + n_new}
        self.__dict__.pop("calibration_", None)  # of the parameters before

    def _weights_beside(self, weights: Array, new: Array) -> Array:
        """Return mixture weights with those of new components after them."""
        if self.weights == "uniform":
            return np.full(len(weights) + len(new), 1.0 / (len(weights) + len(new)))
        return np.concatenate([weights * (1.0 - new.sum()), new])


def _checked(start: Any, n_rows: int, k: int) -> Array:
    """Return the components that rows start; raise unless they are the next ones."""
    found = np.asarray(start)
    if found.shape != (n_rows,) or found.dtype.kind not in "iu":
        raise ValueError(f"start must be whole numbers, one for each of {n_rows} rows")
    new = np.unique(found[found != -1])
    if not np.array_equal(new, np.arange(k, k + len(new))):
        raise ValueError(
            f"start must name the components from {k} on, without a gap, or -1; got "
            f"{new.tolist()[:5]}"
        )
    return found
