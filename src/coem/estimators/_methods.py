"""Methods of fitted mixtures: posteriors, likelihoods, criteria, samples, features."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_number
from coem.estimators._base import BaseMixture
from coem.estimators._corpora import check_result
from coem.estimators._features import FeatureMethods
from coem.estimators._types import Seed
from coem.kernels import threads
from coem.latent.block import Block, Partition
from coem.latent.fitted import Fitted, Reading
from coem.typing import Array, Matrix
from coem.views import Views


class MixtureMethods(FeatureMethods, BaseMixture):
    """Methods that clusterer and classifier have in common."""

    def view_proba(self, X: Any) -> Array:
        """Return the posterior of every view by itself.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.

        Returns
        -------
        proba : ndarray of shape (n_rows, n_views, n_components)
            P(component | view of row), Bickel & Scheffer (2005), Eq. 14, tempered by the last
            `beta`, with the weights that the view used in its last E step. With
            ``posterior="hard"`` the fit gives all of it to the best component. An empty view has a
            likelihood of one, so that its posterior is its weights.
        """
        return self._map_blocks(X, lambda fitted, block: _by_row(fitted.view_posteriors(block)))

    def disagreement(self, X: Any) -> Array:
        """Return how much the views of every row disagree, of shape (n_rows,).

        This is the share of a row in the dissent of Bickel & Scheffer (2005), Eq. 10, in nats: the
        sum of the symmetric Kullback-Leibler divergences between the untempered posteriors of its
        non-empty views. It is 0 if these views agree, or if there is only one.
        """
        return self._map_blocks(X, Fitted.disagreement)

    def read(self, X: Any) -> Reading:
        """Return all that the model says of rows, from one pass over them.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.

        Returns
        -------
        reading : Reading
            A named tuple of `proba` (n_rows, n_components), the posterior that assigns rows;
            `view_proba`, `disagreement` and `log_likelihood`, as `view_proba`, `disagreement` and
            `score_samples` return them; and `empty` (n_rows, n_views).
        """
        rows, fitted = self._rows(X), self._fitted()
        check_result(rows.n_rows, 8 * self._n_components() * (1 + len(self.view_names_)))

        def each(part: Partition) -> list[Reading]:
            return threads.spread(fitted.read, part.blocks)

        with self._engine() as engine:
            found = [block for part in engine.each_part(each, rows.parts()) for block in part]
        return Reading(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    # -- likelihoods and criteria ------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """Return log p(row), all views together, of shape (n_rows,).

        The density of a row is a mixture, with the weights `weights_`, of products of the
        densities of its views. The sum over the rows is Eq. 17 of Bickel & Scheffer (2004). An
        empty view has a likelihood of one. `view_betas_` have no part in it, so that models with
        other numbers of components can be compared.
        """
        return self._map_blocks(X, lambda fitted, block: fitted.plain.joint(block, 1.0).evidence)

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on `X`; lower is better."""
        value: float = -2 * self.score_samples(X).sum() + 2 * self._n_parameters()
        return value

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on `X`; lower is better."""
        log_likelihood = self.score_samples(X)
        penalty = self._n_parameters() * np.log(len(log_likelihood))
        value: float = -2 * log_likelihood.sum() + penalty
        return value

    def icl(self, X: Any) -> float:
        """Return the integrated completed likelihood on `X`; lower is better.

        This is the Bayesian information criterion plus twice the entropy of the posteriors. It
        prefers components that do not overlap.
        """

        def entropy(fitted: Fitted, block: Block) -> Array:
            result = fitted.plain.joint(block, 1.0)
            logs = np.maximum(result.log_posterior, -1e3)
            return np.asarray(-np.einsum("nk,nk->n", result.resp, logs))

        value: float = self.bic(X) + 2 * self._map_blocks(X, entropy).sum()
        return value

    def _n_parameters(self) -> int:
        """Return the number of free parameters, including the weights."""
        own = sum(f.n_parameters(self.theta_[name]) for name, f in self.families_.items())
        return own + (0 if self.weights == "uniform" else len(self.weights_) - 1)

    # -- samples -------------------------------------------------------------------------

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[Matrix | Views, Array]:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Source of random numbers. None takes the `random_state` of the estimator.

        Returns
        -------
        X : matrix or Views
            The rows; a matrix if the model has one view.
        labels : ndarray of shape (n_samples,)
            The component that each row was drawn from.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, Integral, 1)
        seed = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(check_random_state(seed).randint(np.iinfo(np.int32).max))
        weights = self.weights_ / self.weights_.sum()
        labels = rng.choice(len(weights), size=n_samples, p=weights)
        drawn = {
            name: family.sample(self.theta_[name], labels, rng)
            for name, family in self.families_.items()
        }
        return (drawn[self.view_names_[0]] if len(drawn) == 1 else Views(drawn)), labels


def _by_row(posteriors: Array) -> Array:
    """Return posteriors (n_views, n, k) as (n, n_views, k)."""
    return posteriors.transpose(1, 0, 2)
