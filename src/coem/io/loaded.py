"""Checks of models that were read from a file.

The digests in a file reveal damage, but not who wrote it. These checks refuse a file that was not
written by `save`.
"""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator


def need(fits: bool, what: str) -> None:
    """Raise unless a part of a loaded model fits the other parts; `what` names the part."""
    if not fits:
        raise ValueError(f"{what} does not fit the rest")


def is_table_of(array: object, *shape: int) -> bool:
    """Return whether `array` is an array of real numbers of this shape."""
    return isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == shape


def widths_of(model: BaseEstimator) -> dict[str, int]:
    """Return the number of columns by view; raise unless what the model says of them agrees."""
    names, widths = model.view_names_, model.view_widths_
    need(isinstance(names, tuple) and all(isinstance(name, str) for name in names), "view_names_")
    whole = all(isinstance(width, Integral) and int(width) >= 0 for width in widths)
    need(isinstance(widths, tuple) and whole and len(widths) == len(names) > 0, "view_widths_")
    need(model.n_features_in_ == sum(widths), "n_features_in_")
    columns = getattr(model, "feature_names_in_", None)
    need(columns is None or np.shape(columns) == (sum(widths),), "feature_names_in_")
    return dict(zip(names, widths, strict=True))
