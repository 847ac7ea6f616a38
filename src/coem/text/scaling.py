"""Documents of one length, with fractional counts."""

from collections.abc import Mapping
from numbers import Real

import numpy as np
import scipy.sparse as sp

from coem.checks import undo_on_error
from coem.families.auto import has_unit_rows
from coem.families.base import check_magnitude
from coem.io.registry import register
from coem.text._base import CountTransformer, check_counts, check_transformer, per_view
from coem.views import Views, as_views, is_several

DEFAULT_LENGTH = 600.0  # docs/papers/nigam-2006.md has the measurements


class ScaleLength(CountTransformer):
    """Scale the counts of every row to a constant total.

    A long document otherwise speaks louder than a short one in the M step, and its posterior is
    the more extreme. Nigam, McCallum & Mitchell (2006, Sec. 3.3) scale every document to the same
    length, with fractional counts; they do not say to which.

    Parameters
    ----------
    length : float or dict, default=600.0
        Total of a row: one for all views (but dense views of unit rows, such as sentence vectors,
        which are left alone), or a dict from view to a number, or to None to leave a view alone.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns, of all views together.
    view_names_, view_widths_ : tuple
        Names and numbers of columns of the views.

    Notes
    -----
    There is nothing to learn, so `transform` works without `fit`. Results are float32, sparse for
    sparse and dense for dense input, and sparse ones have sorted columns without duplicates. A row
    without counts stays without. The larger the length, the more extreme the posteriors, and the
    less the pseudo-counts of a family weigh.

    Examples
    --------
    >>> from coem.text import ScaleLength
    >>> ScaleLength(10).fit_transform([[1, 3, 0], [0, 0, 0], [20, 0, 20]]).tolist()
    [[2.5, 7.5, 0.0], [0.0, 0.0, 0.0], [5.0, 0.0, 5.0]]
    """

    def __init__(self, length=DEFAULT_LENGTH):
        self.length = length

    def __sklearn_tags__(self):
        """Tell scikit-learn that there is nothing to fit, and of the precision."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @undo_on_error
    def fit(self, X, y=None):
        """Check the rows, and remember the names and widths of the views.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Counts.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : ScaleLength
            The transformer.
        """
        views = self._read(X, reset=True)
        _check(views, _lengths(self.length, views), directions=True)
        return self

    def transform(self, X):
        """Return the scaled rows: a matrix for a matrix, `Views` for several views.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Counts.
        """
        views = self._read(X, reset=False)
        lengths = _lengths(self.length, views)
        # A few rows may have Euclidean length 1 by chance: only `fit` takes that for a mistake.
        _check(views, lengths, directions=False)
        scaled = _scale_views(views, lengths)
        return scaled if is_several(X) else scaled[scaled.names[0]]

    def get_feature_names_out(self, input_features=None):
        """Return the names of the columns, which stay; for several views a dict of them.

        Parameters
        ----------
        input_features : array of str, dict or None
            Names of the columns; for several views a dict from view to them.
        """
        return self._of_kind(self._names_in(input_features))


register(ScaleLength, check=check_transformer)


def scale_length(X, length=DEFAULT_LENGTH):
    """Return counts with every row scaled to a constant total; see `ScaleLength`.

    Parameters
    ----------
    X : matrix, list, dict or Views
        Counts. They are not changed.
    length : float or dict, default=600.0
        Total of a row: one for all views (but dense views of unit rows, such as sentence vectors,
        which are left alone), or a dict from view to a number, or to None to leave a view alone.

    Returns
    -------
    scaled : CSR matrix, ndarray or Views
        Fractional counts in float32, of the kind of `X`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.text import scale_length
    >>> views = {"words": np.array([[1, 1], [6, 2]]), "meaning": np.array([[0.6, -0.8], [1, 0]])}
    >>> scale_length(views, 4)["words"].tolist()
    [[2.0, 2.0], [3.0, 1.0]]
    """
    views = as_views(X)
    lengths = _lengths(length, views)
    _check(views, lengths, directions=True)
    scaled = _scale_views(views, lengths)
    return scaled if is_several(X) else scaled[scaled.names[0]]


def kept_share(X, shorter):
    """Return the share of all counts of a matrix that a shortened one has; 1 if there are none."""
    return share_of(*(float(matrix.sum(dtype=np.float64)) for matrix in (X, shorter)))


def share_of(before, after):
    """Return a part of a total as a share; 1 if there is nothing."""
    return min(1.0, after / before) if before else 1.0


def _lengths(length, views):
    """Return the length by view."""
    lengths = per_view("length", length, views.names)
    if not isinstance(length, Mapping) and len(views.names) > 1:
        # Sentence vectors beside words: one number is meant for the words.
        lengths |= {name: None for name, X in views.items() if has_unit_rows(X)}
    for value in lengths.values():
        if value is None and length is not None:
            continue
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < np.inf:
            raise ValueError(f"length must be a number above 0, got {value!r}")
    return lengths


def _scale_views(views, lengths):
    """Return the views; those with a length are scaled."""
    pairs = ((name, X, lengths[name]) for name, X in views.items())
    return Views({name: X if length is None else _scale(X, length) for name, X, length in pairs})


def _scale(X, length):
    """Return a scaled copy of one matrix."""
    scaled = X.astype(np.float64)  # a copy, for sparse matrices of the indices as well
    if not sp.issparse(X):
        totals = scaled.sum(axis=1, keepdims=True)
        # Divide first: a total may be so small that length / total is infinite.
        scaled /= np.where(totals > 0, totals, 1.0)
        scaled *= length
        return scaled.astype(np.float32)
    scaled.sum_duplicates()
    totals = np.asarray(scaled.sum(axis=1)).ravel()
    scaled.data /= np.repeat(np.where(totals > 0, totals, 1.0), np.diff(scaled.indptr))
    scaled.data *= length
    scaled.data = scaled.data.astype(np.float32)
    return scaled


def _check(views, lengths, *, directions):
    """Refuse values that are not counts in a view that has a length."""
    for name, X in views.items():
        if lengths[name] is not None:
            remedy = f"to leave the view alone give length={{{name!r}: None, ...}}"
            check_counts(X, name, remedy)
            check_magnitude(X, name)
            if directions and has_unit_rows(X):
                raise ValueError(
                    f"view {name!r}: all rows have Euclidean length 1 and are not counts; {remedy}"
                )
