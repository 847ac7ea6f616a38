"""Families as a user names them: by a string, an object, or a dict with one of these per view."""

from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, TypeAlias, cast

import numpy as np

from coem.families import MixtureOf, as_family
from coem.families.auto import Choice, choose
from coem.families.base import AnyFamily
from coem.typing import Array, Matrix
from coem.views import Views

AUTO = "auto"

Named: TypeAlias = str | AnyFamily
"""One family: "auto", a name in `coem.families.FAMILIES`, or an object."""


class DataclassFamily(Protocol):
    """A family that is a dataclass, so that ``dataclasses.fields`` lists its hyper-parameters."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    nonnegative: ClassVar[bool]
    allows_nan: ClassVar[bool]


def choices_for(
    family: Named | dict[str, Named], views: Views, weight: Array | None = None
) -> dict[str, Choice]:
    """Return the family of each view, and why "auto" took it; "" if the user has chosen.

    The families have not seen the data yet. Rows with a `weight` (n_rows,) of 0 are not there.
    """
    if not isinstance(family, dict):
        family = dict.fromkeys(views.names, family)
    missing = [name for name in views.names if name not in family]
    unknown = [name for name in family if name not in views.names]
    if missing or unknown:
        raise ValueError(
            f"family must name every view once: the views are {list(views.names)}, "
            f"the families are for {list(family)}"
        )
    return {name: _for_view(family[name], views[name], weight) for name in views.names}


def named_families(family: Named | dict[str, Named]) -> Named | dict[str, Named]:
    """Return a `family` parameter with objects in the place of names, except "auto"."""
    if isinstance(family, dict):
        return {view: _object(own) for view, own in family.items()}
    return _object(family)


def _object(family: Named) -> Named:
    return family if is_auto(family) else as_family(family)


def _for_view(family: Named, X: Matrix, weight: Array | None) -> Choice:
    """Return the family of one view; "auto" chooses by the rows of the view."""
    if not is_auto(family):
        return Choice(as_family(family), "")
    if weight is None or not weight.any():
        return choose(X)
    return choose(X if weight.all() else X[np.flatnonzero(weight)], float(weight.sum()))


def is_auto(family: object) -> bool:
    """Return whether the family of a view is left to its rows."""
    return isinstance(family, str) and family == AUTO


def family_parts(family: object) -> list[tuple[str, DataclassFamily]]:
    """Return (prefix, family) for each family in a `family` parameter that is a dataclass.

    The prefix is that of its parameters in `get_params`: "family", or "family__<view>"; with
    "__family" at its end for the family of the inner components of a `MixtureOf`. Invalid families
    are left out, because `get_params` must not raise.
    """
    parts = family.items() if isinstance(family, dict) else [(None, family)]
    found: list[tuple[str, DataclassFamily]] = []
    for name, value in parts:
        try:
            part = _or_default(value)
        except ValueError:
            continue
        prefix = "family" if name is None else f"family__{name}"
        while is_dataclass(part):
            found.append((prefix, part))
            if not isinstance(part, MixtureOf):
                break
            prefix, part = f"{prefix}__family", cast(AnyFamily, part.family)
    return found


def with_field(
    family: Named | dict[str, Named], path: Sequence[str], value: object
) -> AnyFamily | dict[str, Named]:
    """Return `family` with one hyper-parameter replaced.

    `path` holds the parts of a parameter's name after ``family__``: the name of the field, or the
    name of the view and that of the field. A field of an inner family has "family" before it.
    """
    if not isinstance(family, dict):
        return _with_field(family, path, value)
    for cut in range(len(path) - 1, 0, -1):
        name = "__".join(path[:cut])  # the name of a view may contain underscores
        if name in family:
            return family | {name: _with_field(family[name], path[cut:], value)}
    raise _invalid(family, path)


def _with_field(family: Named, path: Sequence[str], value: object) -> AnyFamily:
    """Return the family with one hyper-parameter replaced; `path` ends with its name."""
    found = _or_default(family)
    if len(path) > 1 and path[0] == "family" and isinstance(found, MixtureOf):
        return replace(found, family=_with_field(cast(AnyFamily, found.family), path[1:], value))
    if len(path) == 1 and is_dataclass(found) and path[0] in {f.name for f in fields(found)}:
        return replace(found, **{path[0]: value})
    raise _invalid(family, path)


def _or_default(family: object) -> AnyFamily:
    """Return the family; for "auto" that of counts, whose parameters `get_params` shows."""
    return as_family("multinomial" if is_auto(family) else family)


def _invalid(family: object, path: Sequence[str]) -> ValueError:
    return ValueError(f"invalid parameter 'family__{'__'.join(path)}' for family {family!r}")


def shape_of(family: AnyFamily) -> tuple[object, ...]:
    """Return what the shape of the parameters of a family depends on, apart from the data."""
    if isinstance(family, MixtureOf):
        return MixtureOf, family.n_components, *shape_of(family.inner)
    return type(family), getattr(family, "covariance", None), getattr(family, "levels", None)
