"""What the transformers of counts share: one matrix or several views in, the same kind out."""

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coem.corpus import Corpus
from coem.families.base import check_values
from coem.input import read_rows, read_views
from coem.io.loaded import need, widths_of
from coem.io.model_file import Saves
from coem.views import is_several


class CountTransformer(Saves, TransformerMixin, BaseEstimator):
    """Transformer of one matrix of counts, or of some of several views."""

    _takes_corpora = False  # whether a corpus is read a shard at a time, and not as a whole

    def __sklearn_tags__(self):
        """Tell scikit-learn that counts may be sparse and are not negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _read(self, X, *, reset):
        """Return checked views, and see that their names and widths are those of `fit`."""
        keep = self._takes_corpora and isinstance(X, Corpus)
        views = read_rows(self, X, reset=reset) if keep else read_views(self, X, reset=reset)
        if reset:
            self._several = is_several(X) or isinstance(X, Corpus)
        return views

    @property
    def _n_features_out(self):
        """How many columns there are after `transform`, of all views together."""
        return self.n_features_in_

    def _names_in(self, input_features):
        """Return the names of the columns by view."""
        check_is_fitted(self, "view_names_")
        if not self._several:
            names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
            return {self.view_names_[0]: names}
        given = {} if input_features is None else input_features
        if not isinstance(given, Mapping) or not set(given) <= set(self.view_names_):
            raise ValueError(
                f"input_features must be None or a dict from view to names; the views are "
                f"{list(self.view_names_)}"
            )
        names = {}
        for view, width in zip(self.view_names_, self.view_widths_, strict=True):
            columns = given.get(view, [f"x{i}" for i in range(width)])
            names[view] = np.asarray(columns, dtype=object)
            if len(names[view]) != width:
                raise ValueError(
                    f"view {view!r} has {width} columns, input_features names {len(columns)}"
                )
        return names

    def _of_kind(self, by_view):
        """Return a dict as it is if `fit` was given several views, else the value of the one."""
        return by_view if self._several else by_view[self.view_names_[0]]


def per_view(what, value, names):
    """Return a setting by view: one for all of them, or a dict that names every view."""
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    if set(value) != set(names):
        raise ValueError(
            f"{what} must name every view once: the views are {list(names)}, "
            f"{what} is for {list(value)}"
        )
    return {name: value[name] for name in names}


def check_counts(X, view, remedy):
    """Raise an error that names the view and the row if a value is not finite or negative."""
    check_values(X, view, nonnegative=False)
    values = X.data if sp.issparse(X) else X.ravel()
    if values.size and values.min() < 0:
        place = int((values < 0).argmax())
        starts = X.indptr if sp.issparse(X) else np.arange(X.shape[0] + 1) * X.shape[1]
        row = int(np.searchsorted(starts, place, side="right")) - 1
        raise ValueError(
            f"Negative values in data: view {view!r}, row {row} has {values[place]}; counts must "
            f"be 0 or more ({remedy})"
        )


def check_transformer(model):
    """Refuse a loaded transformer that does not know its views."""
    if hasattr(model, "view_names_"):
        widths_of(model)
        need(isinstance(model._several, bool), "the kind of input")
