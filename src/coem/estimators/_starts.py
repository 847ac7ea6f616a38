"""Starts that a user gives: responsibilities, or a fitted model."""

from copy import deepcopy

import numpy as np
from sklearn.base import _clone_parametrized

from coem.families.named import shape_of
from coem.initialise import INITS


def as_responsibilities(init, n_rows, n_components):
    """Return `init` as an array whose rows sum to one."""
    try:
        resp = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError):
        resp = np.empty(())
    if resp.ndim == 0:
        raise ValueError(
            f"init must be one of {', '.join(map(repr, INITS))}, an array of responsibilities "
            f"(rows by components) or a fitted mixture, got {init!r}"
        )
    if resp.shape != (n_rows, n_components):
        raise ValueError(
            f"init must have shape ({n_rows}, {n_components}), rows by components, got {resp.shape}"
        )
    return check_responsibilities(resp, "init")


def check_responsibilities(given, name):
    """Return an array in double whose rows sum to one."""
    resp = np.asarray(given, dtype=np.float64)
    if resp.ndim != 2 or not np.isfinite(resp).all() or resp.min(initial=0.0) < 0:
        raise ValueError(f"{name} must hold responsibilities, finite and 0 or more")
    sums = resp.sum(axis=1, keepdims=True)
    if not sums.all():
        raise ValueError(f"{name}: row {int(sums.argmin())} has no responsibility above 0")
    return resp / sums if np.abs(sums - 1).max(initial=0.0) > 1e-6 else resp


def check_warm(other, estimator):
    """Refuse a fitted model that an estimator cannot go on from."""
    same = (
        other.view_names_ == estimator.view_names_ and other.view_widths_ == estimator.view_widths_
    )
    if not same or len(other.weights_) != estimator._n_components():
        raise ValueError(
            "init: the fitted model has other views, features or components "
            f"({list(other.view_names_)}, {list(other.view_widths_)}, {len(other.weights_)}); fit "
            "the same views, or give responsibilities, such as its predict_proba, as init"
        )
    mine, theirs = estimator.families_.values(), other.families_.values()
    if [shape_of(f) for f in mine] != [shape_of(f) for f in theirs]:
        raise ValueError("init: the fitted model has other families than this one")


def first_classes(init, classes, sizes):
    """Return the class of every component: side by side, or as a fitted classifier has them."""
    theirs = getattr(init, "component_classes_", None)
    if theirs is None:
        return np.repeat(np.arange(len(sizes)), sizes)
    same = np.array_equal(init.classes_, classes)
    if not same or not np.array_equal(np.bincount(theirs, minlength=len(sizes)), sizes):
        raise ValueError(
            "init: the fitted model has other classes, or other numbers of components for them"
        )
    return np.array(theirs)


class KeepsInit:
    """A clone of an estimator with a fitted model for its `init` starts from that model, too."""

    def __sklearn_clone__(self):
        """Return an unfitted copy; fitted models that serve as `init` stay fitted."""
        copied = _clone_parametrized(self)
        init = getattr(self, "init", None)
        parts = init if isinstance(init, list | tuple) else [init]
        if any(hasattr(part, "fit") for part in parts):
            copied.init = deepcopy(init)
        return copied
