"""Which features are typical of a component."""

from collections.abc import Hashable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.estimators._ranking import By, best_features
from coem.estimators._views_model import ViewsModel


class FeatureMethods(ViewsModel):
    """The method `top_features` of models with a family per view."""

    def top_features(
        self, view: str | None = None, n: int = 10, by: By = "wllr"
    ) -> list[list[tuple[Hashable, float]]]:
        """Return the features that are most typical of every component.

        Parameters
        ----------
        view : str, optional
            The view. You can leave it out if there is only one.
        n : int, default=10
            Number of features per component.
        by : {"wllr", "prob"}, default="wllr"
            "prob" ranks by p(feature | component). "wllr" ranks by the weighted log-likelihood
            ratio p(f | c) log(p(f | c) / p(f | not c)), which prefers features that are frequent
            in the component *and* rare in the others. With pseudo-counts, as families have them by
            default, it is the plain ratio of Nigam et al. (2006, Table 3.4). With ``alpha=0``,
            p(f | not c) counts as no less than p(f) of the rarest feature, so that a feature that
            occurs once does not come first.

        Returns
        -------
        features : list of list of (feature, value)
            The best features of each component: column numbers, or column names if `X` was a data
            frame; (column, level) for categorical columns. A model with a single component ranks
            by probability, because there is no other component to compare with.
        """
        check_is_fitted(self)
        view = self.view_names_[0] if view is None and len(self.view_names_) == 1 else view
        if view not in self.families_:
            raise ValueError(f"view must be one of {list(self.view_names_)}, got {view!r}")
        prob = self.families_[view].feature_probs(self.theta_[view])
        if prob is None:
            family = type(self.families_[view]).__name__
            raise ValueError(
                f"view {view!r}: a {family} family has no feature probabilities to rank by"
            )
        best = best_features(prob, self.weights_, n, by)
        return [[(self._feature(view, f), value) for f, value in top] for top in best]

    def _feature(self, view: str, place: int) -> Hashable:
        """Return a feature as its column (a name, if there are names), and its level if any."""
        column, *level = np.atleast_1d(self.families_[view].locate(place)).tolist()
        names = getattr(self, "feature_names_in_", None)
        column = column if names is None or len(self.view_names_) > 1 else names[column]
        return (column, *level) if level else column
