"""Families and views as a user names them."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
from sklearn.utils.validation import validate_data

from coem.families import Multinomial, VonMisesFisher, as_family
from coem.views import as_views

AUTO = "auto"


def families_for(family, views):
    """Return one family a view, before it has seen any data."""
    if not isinstance(family, dict):
        return {name: _for_view(family, views[name]) for name in views.names}
    missing = [name for name in views.names if name not in family]
    unknown = [name for name in family if name not in views.names]
    if missing or unknown:
        raise ValueError(
            f"family must name every view once: the views are {list(views.names)}, "
            f"the families are for {list(family)}"
        )
    return {name: _for_view(family[name], views[name]) for name in views.names}


def _for_view(family, X):
    """Return the family that a value stands for; "auto" looks at the rows of the view."""
    if not isinstance(family, str) or family != AUTO:
        return as_family(family)
    return VonMisesFisher() if has_unit_rows(X) else Multinomial()


def has_unit_rows(X):
    """Tell if rows are dense directions: of unit length or missing, and no zeros and ones."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return False
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(X.astype(np.float64, copy=False), axis=1)
    gone = np.isnan(lengths) | (lengths == 0)
    if gone.all() or (np.abs(lengths[~gone] - 1) > 1e-2).any():  # half precision is enough
        return False
    return bool((X[~gone] % 1).any())


def family_parts(family):
    """Return (prefix, family) for everything in a `family` parameter that is a dataclass."""
    parts = family.items() if isinstance(family, dict) else [(None, family)]
    found = []
    for name, value in parts:
        try:
            value = as_family("multinomial" if isinstance(value, str) and value == AUTO else value)
        except ValueError:
            continue
        if is_dataclass(value):
            found.append(("family" if name is None else f"family__{name}", value))
    return found


def with_field(family, path, value):
    """Return `family` with one hyper-parameter replaced."""
    *view, field = path
    family = "multinomial" if isinstance(family, str) and family == AUTO else family
    if isinstance(family, dict):
        name = "__".join(view)  # the name of a view may have underscores of its own
        if name in family:
            return family | {name: with_field(family[name], [field], value)}
    elif not view and field in {f.name for f in fields(as_family(family))}:
        return replace(as_family(family), **{field: value})
    raise ValueError(f"invalid parameter 'family__{'__'.join(path)}' for family {family!r}")


def shape_of(family):
    """Return what decides the shape of a family's parameters."""
    return type(family), getattr(family, "covariance", None), getattr(family, "levels", None)


def read_views(estimator, X, *, reset):
    """Return checked views, and see that their names and widths are those of `fit`."""
    views = as_views(X)
    if not reset and hasattr(estimator, "view_names_"):
        if set(views.names) == set(estimator.view_names_):
            views = views[list(estimator.view_names_)]  # by name, in whatever order they came
        _check_same_views(
            views, estimator.view_names_, estimator.view_widths_, type(estimator).__name__
        )
    validate_data(
        estimator, X if hasattr(X, "columns") else views, reset=reset, skip_check_array=True
    )
    if reset:
        estimator.view_names_ = tuple(views.names)
        estimator.view_widths_ = tuple(views[name].shape[1] for name in views.names)
    return views


def _check_same_views(views, names, widths, who):
    """Refuse views of other names or widths than those of `fit`."""
    if tuple(views.names) != tuple(names):
        raise ValueError(
            f"X has the views {list(views.names)}, but {who} was fitted on {list(names)}"
        )
    for name, width in zip(names, widths, strict=True):
        got = views[name].shape[1]
        if got != width:
            where = f" in view {name!r}" if len(names) > 1 else ""
            raise ValueError(
                f"X has {got} features{where}, but {who} is expecting {width} features as input"
            )
