"""Checks of what a user passes to an estimator."""

from functools import wraps
from numbers import Integral
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.utils.validation import _check_sample_weight

LARGEST_WEIGHT = 1e100  # sums of more would overflow where they are squared


def check_choice(name, value, choices):
    """Refuse a value that is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_number(name, value, kind, least, *, optional=False):
    """Refuse what is no number of the kind, or below the least."""
    if optional and value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:
        word = "an integer" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {word} of {least} or more, got {value!r}")


def check_dtype(dtype):
    """Refuse a precision that is neither single nor double."""
    try:
        known = dtype is None or np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"dtype must be None, float32 or float64, got {dtype!r}")


def check_folder(name, path):
    """Refuse what is no path, or the path of a file."""
    if path is None:
        return
    if not isinstance(path, str | PathLike) or str(path) == "":
        raise ValueError(f"{name} must be None or the path of a folder, got {path!r}")
    if Path(path).exists() and not Path(path).is_dir():
        raise ValueError(f"{name} must be a folder, and {path} is a file")


def check_workers(n_jobs, engine, verbose):
    """Refuse what cannot run the blocks or tell of them."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer but 0, got {n_jobs!r}")
    needed = ("map", "reduce", "n_workers", "__enter__", "__exit__")
    if engine is not None and not all(hasattr(engine, name) for name in needed):
        raise ValueError(f"engine must be None or an engine of coem.engine, got {engine!r}")
    if not isinstance(verbose, Integral | bool):
        raise ValueError(f"verbose must be an integer, got {verbose!r}")


def check_weight(sample_weight, views):
    """Return checked row weights as float64, or None."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(
        sample_weight, views, dtype=np.float64, copy=True, ensure_non_negative=True
    )
    if not weight.sum() > 0:
        raise ValueError("sample_weight is 0 for every row")
    if weight.max() > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight: row {int(weight.argmax())} has {weight.max():g}, which is too large; "
            "divide all weights by the largest"
        )
    return weight


def undo_on_error(fit):
    """Leave an estimator as it was if fitting it fails: unfitted, or with its old model."""

    @wraps(fit)
    def wrapped(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped


def max_rounds(max_iter, eta, beta):
    """Return the largest number of rounds: as asked for, or 200 after the schedules have ended."""
    return 200 + max(len(eta), len(beta)) if max_iter is None else max_iter
