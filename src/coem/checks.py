"""Checks of the values that a user passes: each raises an error that names the parameter."""

import sys
import warnings
from collections.abc import Callable, Collection
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_non_negative

LARGEST_WEIGHT = 1e100  # the squares of larger weights overflow when they are summed

P = ParamSpec("P")
Estimator = TypeVar("Estimator")
Returned = TypeVar("Returned")


class HasShape(Protocol):
    """Anything with rows: an array, a sparse matrix or a `Views`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, then of columns."""


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_number(
    name: str, value: Any, kind: type[Any], least: float, *, optional: bool = False
) -> None:
    """Raise unless `value` is a `kind` (Integral or Real) and at least `least`.

    A bool is not a number. None passes if `optional` is True.
    """
    if optional and value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:
        word = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {word} of {least} or more, got {value!r}")


def check_dtype(dtype: DTypeLike | None) -> None:
    """Raise unless `dtype` is None, float32 or float64."""
    try:
        known = dtype is None or np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"dtype must be None, float32 or float64, got {dtype!r}")


def check_folder(name: str, path: object) -> None:
    """Raise unless `path` is None or a path where a folder is, or can be made."""
    if path is None:
        return
    if not isinstance(path, str | PathLike) or str(path) == "":
        raise ValueError(f"{name} must be None or the path of a folder, got {path!r}")
    if Path(path).exists() and not Path(path).is_dir():
        what = "a file" if Path(path).is_file() else "none"
        raise ValueError(f"{name} must be a folder, and {path} is {what}")


def check_workers(n_jobs: object, verbose: object) -> None:
    """Raise unless the parameters say how to run the blocks and how much to print."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}")
    if not isinstance(verbose, Integral | bool):
        raise ValueError(f"verbose must be an integer, got {verbose!r}")


def check_weight(sample_weight: ArrayLike | None, X: HasShape) -> NDArray[np.float64] | None:
    """Return the weights of the rows of `X` as a new float64 array, or None if there are none.

    Raise unless there is one finite weight per row, none is negative, and one is above 0.
    """
    if sample_weight is None:
        return None
    weight = _one_per_row(sample_weight, X.shape[0])
    check_non_negative(weight, "`sample_weight`")
    if not weight.sum() > 0:
        raise ValueError("sample_weight is zero for every row")
    if weight.max() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight: row {int(weight.argmax())} has {weight.max():g}, which is too large; "
            "divide all weights by the largest"
        )
    return weight


def _one_per_row(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Return finite weights as a new array: one number stands for all rows."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight, dtype=np.float64)
    weight: NDArray[np.float64] = check_array(
        sample_weight,
        ensure_2d=False,
        dtype=np.float64,
        order="C",
        copy=True,
        input_name="sample_weight",
    )
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array")
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n_rows,)}!")
    return weight


def undo_on_error(
    fit: Callable[Concatenate[Estimator, P], Returned],
) -> Callable[Concatenate[Estimator, P], Returned]:
    """Decorate a method so that an estimator keeps its old attributes if the method raises.

    An estimator that was not fitted stays unfitted; one that was keeps its old model.
    """

    @wraps(fit)
    def wrapped(self: Estimator, /, *args: P.args, **kwargs: P.kwargs) -> Returned:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped


def warn_user(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the line of the user's code that called coem."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_own(module: str) -> bool:
    return module == "coem" or module.startswith(("coem.", "contextlib", "functools"))
