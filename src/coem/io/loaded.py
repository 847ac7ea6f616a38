"""Checks of models that were read from a file.

The digests in a file reveal damage, but not the author of the file. These checks refuse a file
that was not written by `save`.
"""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def need(fits: bool, what: str) -> None:
    """Raise unless a part of a loaded model fits the other parts; `what` names the part."""
    if not fits:
        raise ValueError(f"{what} does not fit the rest")


def is_table_of(array: object, *shape: int) -> bool:
    """Return whether `array` is one of this shape, in a precision that the kernels know."""
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        return False
    return tuple(array.shape) == shape


def widths_of(model: BaseEstimator) -> dict[str, int]:
    """Return the number of columns by view; raise unless what the model says of them agrees."""
    names, widths = model.view_names_, model.view_widths_
    need(isinstance(names, tuple) and all(isinstance(name, str) for name in names), "view_names_")
    need(isinstance(widths, tuple) and len(widths) == len(names) > 0, "view_widths_")
    need(all(is_count(width) for width in widths), "view_widths_")
    need(is_count(model.n_features_in_) and model.n_features_in_ == sum(widths), "n_features_in_")
    columns: Any = getattr(model, "feature_names_in_", None)
    named = is_text(columns) and columns.shape == (sum(widths),)
    need(columns is None or named, "feature_names_in_")
    return dict(zip(names, widths, strict=True))


def is_text(words: Any) -> bool:
    """Return whether a value is an array of words: one-dimensional, of objects that are str."""
    plain = isinstance(words, np.ndarray) and words.dtype == object and words.ndim == 1
    return plain and all(type(word) is str for word in words.tolist())


def is_texts(values: Iterable[object]) -> bool:
    """Return whether all values are str."""
    return all(isinstance(value, str) for value in values)


def is_count(value: object) -> bool:
    """Return whether a value is a number of things: an integer of 0 or more."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def is_dict_of(value: object, names: Iterable[str]) -> bool:
    """Return whether a value is a dict with these keys, in this order."""
    return isinstance(value, dict) and list(value) == list(names)
