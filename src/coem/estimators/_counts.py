"""Counts as a user gives them to an aspect or a traffic model."""

from numbers import Real
from typing import Any

import numpy as np

from coem.estimators._types import Precision
from coem.families.base import check_magnitude, check_values
from coem.input import column_names
from coem.kernels.aspect import Pairs
from coem.typing import Array, Matrix, is_sparse
from coem.views import as_views

SMALL = 1 << 20  # with fewer products per round, float32 does not save time


def check_counts(X: Matrix, name: str) -> Matrix:
    """Return counts; raise unless they are finite and not negative."""
    check_values(X, name, nonnegative=True, advice="")
    check_magnitude(X, name)
    return X


def as_counts(X: Any, name: str) -> Matrix:
    """Return a matrix of counts that is not the `X` of an estimator."""
    views = as_views(X, what=name)
    if len(views.names) > 1:
        raise ValueError(f"{name} must be one matrix of counts, got {len(views.names)} views")
    return check_counts(views[views.names[0]], name)


def precision(dtype: Precision, counts: Matrix, n_components: int, extra: int = 0) -> np.dtype[Any]:
    """Return the dtype of the parameters.

    `extra` is the number of products per round that does not depend on the counts.
    """
    if dtype is not None:
        return np.dtype(dtype)
    size = counts.nnz if is_sparse(counts) else np.count_nonzero(counts)
    return np.dtype(np.float64 if size * n_components + extra < SMALL else np.float32)


def held_out_pairs(
    validation: Any, shape: tuple[int, int], names: Array | None, dtype: Any
) -> Pairs | None:
    """Return the held-out counts of a user, or None if there are none.

    `shape` is that of `X`, and `names` are the names of its columns, or None.
    """
    if validation is None:
        return None
    counts = as_counts(validation, "validation")
    if counts.shape != shape:
        raise ValueError(
            f"validation must have the rows and columns of X, and so the shape {shape}; it has the "
            f"shape {counts.shape}"
        )
    own_names = column_names(validation)
    if names is not None and own_names is not None and (names != own_names).any():
        where = int(np.flatnonzero(names != own_names)[0])
        raise ValueError(
            f"validation must have the columns of X in the same order: column {where} is "
            f"{own_names[where]!r} in validation and {names[where]!r} in X"
        )
    pairs = Pairs.of(counts, None, dtype)
    if not pairs.total > 0:
        raise ValueError("validation has no counts: hold some out, or leave it None")
    return pairs


def pseudo_counts(smoothing: Any) -> tuple[float, float]:
    """Return the pseudo-counts of p(x|h) and p(y|h); a single number is for p(y|h)."""
    pair = smoothing if isinstance(smoothing, tuple | list) else (0.0, smoothing)
    usable = len(pair) == 2 and all(
        isinstance(v, Real) and not isinstance(v, bool) and 0 <= float(v) < np.inf for v in pair
    )
    if not usable:
        raise ValueError(
            "smoothing must be a number of 0 or more for p(y|h), or two for (p(x|h), p(y|h)), "
            f"got {smoothing!r}"
        )
    of_x, of_y = map(float, pair)
    return of_x, of_y
