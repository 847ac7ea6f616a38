"""The `X` that a user passes to an estimator, as checked views."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from coem.row_store import RowStore
from coem.sparse import sound_csr
from coem.views import Views, as_views, is_several


def read_views(estimator: BaseEstimator, X: Any, *, reset: bool, named: Any = None) -> Views:
    """Return `X` as views, and compare them with the views that the estimator was fitted on.

    Parameters
    ----------
    estimator : estimator
        With `reset`, gets the attributes `view_names_` and `view_widths_`, and those that
        scikit-learn sets, such as `n_features_in_`.
    X : matrix, list, dict, Views or RowStore
        What `coem.views.as_views` takes, or a corpus, all of which is read. Named views may come in
        any order.
    reset : bool
        True in `fit`: remember the views. False elsewhere: raise unless the names and widths of
        the views are those of `fit`.
    named : DataFrame, optional
        A table with the names of the columns of `X`, if `X` has lost them.
    """
    if isinstance(X, RowStore):
        X = X.load(what=type(estimator).__name__)
    refuse_blocks(X, type(estimator).__name__)
    return _compared(estimator, as_views(X), X if named is None else named, reset=reset)


def read_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Views | RowStore:
    """Return `X` as `read_views` does; a corpus stays one, and its rows are not read."""
    if isinstance(X, RowStore):
        return _compared(estimator, X, X, reset=reset)
    return read_views(estimator, X, reset=reset)


RowsT = TypeVar("RowsT", Views, RowStore)


def _compared(estimator: BaseEstimator, views: RowsT, named: Any, *, reset: bool) -> RowsT:
    """Return views in the order of those that an estimator was fitted on, which they must equal."""
    if not reset and hasattr(estimator, "view_names_"):
        if set(views.names) == set(estimator.view_names_):
            views = views[list(estimator.view_names_)]
        _check_same_views(
            views, estimator.view_names_, estimator.view_widths_, type(estimator).__name__
        )
    validate_data(
        estimator, named if hasattr(named, "columns") else views, reset=reset, skip_check_array=True
    )
    if reset:
        estimator.view_names_ = tuple(views.names)
        estimator.view_widths_ = views.widths
    return views


def as_rows(X: Any) -> Any:
    """Return `X` as something that rows can be taken from, whatever model it is for.

    Several views become `Views`, a sparse matrix CSR, and a corpus is loaded, unless it is too
    large. Anything else stays as it is.
    """
    if isinstance(X, RowStore):
        return X.load(what="this function")
    refuse_blocks(X, "this function")
    if is_several(X):
        return as_views(X)
    return sound_csr(X, "X: ") if sp.issparse(X) else X


def refuse_blocks(X: Any, what: str) -> None:
    """Raise if `X` has dask collections inside, or is one other than an array.

    `what` needs rows in memory. A dask array that is all of `X` is computed, as any array is.
    """
    inside = X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else ()
    alone = is_lazy(X) and not hasattr(X, "__array__")
    if alone or any(map(is_lazy, inside)):
        raise ValueError(
            f"X has dask collections, and {what} needs rows in memory here: pass dask.compute(X)[0]"
            ", or a corpus; fit and predict of MixtureClusterer and MixtureClassifier take a dask "
            'array, a dask bag of row blocks or a list of dask.delayed blocks with engine="dask", '
            "where a block of several views is a dict of matrices"
        )


def is_lazy(X: Any) -> bool:
    """Return True if `X` is a dask collection, without importing dask."""
    return hasattr(X, "__dask_graph__")


def column_names(X: Any) -> Any:
    """Return the names of the columns of a table as scikit-learn reads them, or None."""
    if not hasattr(X, "columns"):
        return None
    reader = BaseEstimator()
    validate_data(reader, X, skip_check_array=True)
    return getattr(reader, "feature_names_in_", None)


def n_rows_of(X: Any) -> int:
    """Return the number of rows of a matrix, a table, a list or `Views`."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a matrix, a table, a list or `Views`, as what it is.

    `rows` are numbers of rows, or True for each that is taken.
    """
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    if isinstance(X, list | tuple):
        return [X[row] for row in rows]
    table = nw.from_native(X, eager_only=True, pass_through=True, allow_series=True)
    if isinstance(table, nw.DataFrame | nw.Series):  # by place, whatever their index says
        return table[rows.tolist()].to_native()
    return (X.tocsr() if sp.issparse(X) else X)[rows]


def _check_same_views(
    views: Views | RowStore, names: Sequence[str], widths: Sequence[int], estimator_name: str
) -> None:
    """Raise unless the views have these names and numbers of columns."""
    if tuple(views.names) != tuple(names):
        raise ValueError(
            f"X has the views {list(views.names)}, but {estimator_name} was fitted on {list(names)}"
        )
    for name, width, got in zip(names, widths, views.widths, strict=True):
        if got != width:
            where = f" in view {name!r}" if len(names) > 1 else ""
            raise ValueError(
                f"X has {got} features{where}, but {estimator_name} is expecting {width} features "
                "as input"
            )
