"""What a fitted mixture can tell: likelihoods, criteria, samples, explanations."""

from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_number
from coem.coupling import dissent
from coem.posterior import posterior
from coem.ranking import wllr
from coem.views import Views


class MixtureMethods:
    """Methods that clusterer and classifier have in common."""

    def view_proba(self, X):
        """Return the posterior of every view by itself.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through the views of `fit`.

        Returns
        -------
        proba : ndarray of shape (n_rows, n_views, n_components)
            P(component | view of row), Bickel & Scheffer (2005), Eq. 14, tempered by the last
            `beta`. An empty view has a likelihood of one: only its weights speak.
        """
        return self._map(X, lambda *args: self._view_posteriors(*args).transpose(1, 0, 2))

    def disagreement(self, X):
        """Return how much the views of every row disagree, of shape (n_rows,).

        A row's share of the dissent of Bickel & Scheffer (2005), Eq. 10, in nats: the symmetric
        Kullback-Leibler divergences between the untempered posteriors of its non-empty views. 0
        when they agree, or when there is only one.
        """

        def work(block, theta, model):
            views = range(len(model.families))
            logs = [
                posterior(model.log_prob(block, theta, v), theta.log_weights[v]).log_posterior
                for v in views
            ]
            return np.maximum(dissent(np.stack(logs), block.empty), 0.0)

        return self._map(X, work)

    def score_samples(self, X):
        """Return log p(row), all views together, of shape (n_rows,).

        The mixture of the products of the views' densities, with `weights_`: the sum over the rows
        is Eq. 17 of Bickel & Scheffer (2004). An empty view has a likelihood of one.
        """
        return self._map(X, lambda block, *args: self._joint(block, *args, 1.0).evidence)

    def aic(self, X):
        """Return Akaike's criterion on `X`; lower is better."""
        return -2 * self.score_samples(X).sum() + 2 * self._n_parameters()

    def bic(self, X):
        """Return the Bayesian information criterion on `X`; lower is better."""
        log_likelihood = self.score_samples(X)
        return -2 * log_likelihood.sum() + self._n_parameters() * np.log(len(log_likelihood))

    def icl(self, X):
        """Return the integrated completed likelihood on `X`; lower is better.

        The Bayesian information criterion plus twice the entropy of the posteriors: it prefers
        components that do not overlap.
        """

        def work(block, theta, model):
            result = self._joint(block, theta, model, 1.0)
            return -np.einsum("nk,nk->n", result.resp, np.maximum(result.log_posterior, -1e3))

        return self.bic(X) + 2 * self._map(X, work).sum()

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Source of random numbers; None takes that of the estimator.

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

    def top_features(self, view=None, n=10, by="wllr"):
        """Return the features that tell most about every component.

        Parameters
        ----------
        view : str, optional
            The view; may be left out if there is only one.
        n : int, default=10
            Number of features for each component.
        by : {"wllr", "prob"}, default="wllr"
            "prob" ranks by p(feature | component); "wllr" by the weighted log-likelihood ratio
            p(f | c) log(p(f | c) / p(f | not c)), which asks for frequent *and* telling features.

        Returns
        -------
        features : list of list of (feature, value)
            For each component its best features, as column numbers, or as names if `X` was a
            data frame; (column, level) for categorical columns. A single component has nothing to
            be told from: it is ranked by probability.
        """
        check_is_fitted(self)
        view = self.view_names_[0] if view is None and len(self.view_names_) == 1 else view
        if view not in self.families_:
            raise ValueError(f"view must be one of {list(self.view_names_)}, got {view!r}")
        if by not in ("wllr", "prob"):
            raise ValueError(f"by must be 'wllr' or 'prob', got {by!r}")
        check_number("n", n, Integral, 1)
        prob = self.families_[view].feature_probs(self.theta_[view])
        if prob is None:
            kind = type(self.families_[view]).__name__
            raise ValueError(
                f"view {view!r}: the features of a {kind} have no probabilities to rank"
            )
        value = prob if by == "prob" or len(prob) == 1 else wllr(prob, self.weights_)
        best = np.argsort(-value, axis=1, kind="stable")[:, :n]
        pairs = zip(value, best, strict=True)
        return [[(self._feature(view, f), float(row[f])) for f in top] for row, top in pairs]

    def _feature(self, view, place):
        """Return the name of a feature: its column, by name if there is one, and its level."""
        column, *level = np.atleast_1d(self.families_[view].locate(int(place))).tolist()
        names = getattr(self, "feature_names_in_", None)
        column = column if names is None or len(self.view_names_) > 1 else names[column]
        return (column, *level) if level else column

    def explain(self, X):
        """Say what speaks for a row's component and against the next best one.

        The components are those of the joint posterior of all views (2005, Eq. 19), untempered.

        Returns
        -------
        explanations : list of Bunch
            For each row: `label` and `against` (the best and the second best, as `predict` names
            them), `log_odds` between the two (of classes with several components: between the best
            component of each), `prior` (the part of the mixture weights), and `views`: for
            each view that is not empty a Bunch of `features`, their `contributions`, and `rest`
            (what no single feature accounts for). `prior` and all contributions and rests add up
            to `log_odds`.
        """
        data = self._data(X)
        theta, model = self._theta(), self._model(rule="soft")
        if len({self._name(component) for component in range(model.n_components)}) < 2:
            raise ValueError("a model with one component, or one class, has nothing to explain")
        rows = [block.one_row(i) for block in data.blocks for i in range(block.n_rows)]
        with self._engine() as engine:
            return engine.map(lambda row: self._explain(row, theta, model), rows)

    def _explain(self, one, theta, model):
        log_joint = self._joint(one, theta, model, 1.0).log_posterior[0]
        label, against = self._rivals(log_joint)
        log_weights = self._log_weights()
        prior = float(log_weights[label] - log_weights[against])
        parts = {}
        for v, name in enumerate(self.view_names_):
            if one.empty is None or not one.empty[0, v]:
                parts[name] = _contributions(model, one, theta, v, label, against)
        total = sum(float(np.sum(part.contributions)) + part.rest for part in parts.values())
        return Bunch(
            label=self._name(label),
            against=self._name(against),
            log_odds=prior + total,
            prior=prior,
            views=parts,
        )

    def _rivals(self, log_joint):
        """Return the best component and the next."""
        return np.argsort(-log_joint, kind="stable")[:2].tolist()

    def _n_parameters(self):
        """Return the number of free parameters, the weights included."""
        own = sum(f.n_parameters(self.theta_[name]) for name, f in self.families_.items())
        return own + (0 if self.weights == "uniform" else len(self.weights_) - 1)


def _contributions(model, one, theta, v, label, against):
    """Return what the features of one row and view add to the log odds."""
    family, X = model.families[v], one.views[v]
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    apart = family.terms(X, theta.params[v])
    if apart is None:
        whole = model.log_prob(one, theta, v)[0]
        apart = np.empty(0, dtype=int), np.empty((0, len(whole))), whole
    features, terms, rest = apart
    return Bunch(
        features=np.asarray(features),
        contributions=terms[:, label] - terms[:, against],
        rest=float(rest[label] - rest[against]),
    )
