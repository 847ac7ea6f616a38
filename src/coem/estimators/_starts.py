"""Starts that a user gives to a mixture: responsibilities, or a fitted model."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coem.initialise import INITS
from coem.typing import Array


def as_responsibilities(init: Any, n_rows: int, n_components: int) -> Array:
    """Return `init` as an array whose rows sum to one; raise unless it has the right shape."""
    try:
        resp = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError, NotImplementedError):  # the last from SciPy 1.12, of sparse rows
        resp = np.empty(())
    if resp.ndim == 0:
        raise ValueError(
            f"init must be one of {', '.join(map(repr, INITS))}, an array of responsibilities "
            "(rows by components) or a fitted mixture, got "
            f"{init if np.isscalar(init) else type(init).__name__!r}"
        )
    if resp.shape != (n_rows, n_components):
        raise ValueError(
            f"init must have shape ({n_rows}, {n_components}), rows by components, got {resp.shape}"
        )
    return check_responsibilities(resp, "init")


def check_responsibilities(given: ArrayLike, name: str) -> Array:
    """Return responsibilities as float64, with rows that sum to one; raise if they cannot."""
    resp = np.asarray(given, dtype=np.float64)
    if resp.ndim != 2 or not np.isfinite(resp).all() or resp.min(initial=0.0) < 0:
        raise ValueError(f"{name} must hold responsibilities, finite and 0 or more")
    sums = resp.sum(axis=1, keepdims=True)
    if not sums.all():
        raise ValueError(f"{name}: row {int(sums.argmin())} has no responsibility above 0")
    return resp / sums if np.abs(sums - 1).max(initial=0.0) > 1e-6 else resp


def first_classes(init: Any, classes: Array, sizes: Array) -> Array:
    """Return the class of every component at the start.

    The components of a class are next to each other. If `init` is a fitted classifier, they are in
    its order.
    """
    theirs = getattr(init, "component_classes_", None)
    if theirs is None:
        return np.repeat(np.arange(len(sizes)), sizes)
    same = np.array_equal(init.classes_, classes)
    if not same or not np.array_equal(np.bincount(theirs, minlength=len(sizes)), sizes):
        raise ValueError(
            "init: the fitted model has other classes, or other numbers of components per class"
        )
    return np.array(theirs)


class KeepsInit:
    """Make clones of an estimator keep a fitted model that is its `init`."""

    init: Any

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy. A fitted model that is the `init` stays fitted."""
        copied: Self = super().__sklearn_clone__()  # type: ignore[misc]
        init = getattr(self, "init", None)
        parts = init if isinstance(init, list | tuple) else [init]
        if any(hasattr(part, "fit") for part in parts):
            copied.init = deepcopy(init)
        return copied
