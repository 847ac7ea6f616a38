"""Families and views as a user names them."""

from dataclasses import fields, is_dataclass, replace

from coem.families import as_family


def family_parts(family):
    """Return (prefix, family) for everything in a `family` parameter that is a dataclass."""
    parts = family.items() if isinstance(family, dict) else [(None, family)]
    found = []
    for name, value in parts:
        try:
            value = as_family(value)
        except ValueError:
            continue
        if is_dataclass(value):
            found.append(("family" if name is None else f"family__{name}", value))
    return found


def with_field(family, path, value):
    """Return `family` with one hyper-parameter replaced."""
    *view, field = path
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


def check_same_views(views, names, widths, who):
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
