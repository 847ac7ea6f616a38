"""Read the specifications of views that a user writes into plain dicts of kind and columns."""

from collections.abc import Mapping
from os import PathLike

import scipy.sparse as sp

from coem.phrases import first_few
from coem.text.embed import Embed

KINDS = (
    "text",
    "list",
    "inbound",
    "number",
    "vector",
    "category",
    "embed",
)  # what a specification may end with, after a colon
COUNTS = ("text", "list", "inbound", "category")  # these become matrices of counts
SEVERAL = ("text", "number", "embed", "category")  # these may have more than one column


def parse_views(views):
    """Return the kind and the columns of each view.

    Parameters
    ----------
    views : dict of str to specification
        See `TextViews`.

    Returns
    -------
    specs : dict of str to dict
        For each view, "kind" and "columns".
    """
    if not isinstance(views, Mapping) or not views:
        raise ValueError(
            f"views must be None or a dict from the name of a view to its columns, such as "
            f'{{"body": "text", "links": "refs:list"}}, got {views!r:.80}'
        )
    for name in views:
        if not isinstance(name, str) or not name:
            raise ValueError(f"names of views must be non-empty text, got {name!r}")
    return {name: _parse(spec, name) for name, spec in views.items()}


def _parse(spec, view):
    """Return the kind and the columns of one view."""
    if isinstance(spec, Embed):
        columns = [spec.column] if isinstance(spec.column, str) else list(spec.column)
        return _checked("embed", columns, view)
    if isinstance(spec, str) and not spec.endswith(".npy"):
        spec = [spec]
    if isinstance(spec, str | PathLike) or sp.issparse(spec) or hasattr(spec, "shape"):
        return {"kind": "array", "columns": []}
    if not isinstance(spec, list | tuple) or not all(isinstance(part, str) for part in spec):
        raise ValueError(
            f"view {view!r} must be a column ('title', 'refs:list', 'maker:category', "
            f"'price:number', 'vec:vector'), a list of columns, an Embed, a two-dimensional array "
            f"or the path of a .npy file, got {spec!r:.80}"
        )
    pairs = [_split(part) for part in spec]
    kinds = list(dict.fromkeys(kind for _, kind in pairs))
    if len(kinds) > 1:
        raise ValueError(f"view {view!r} is to be {' and '.join(kinds)}; make it several views")
    if "embed" in kinds:
        raise ValueError(
            f"view {view!r}: sentence vectors need an encoder; write Embed({pairs[0][0]!r}, "
            "encoder)"
        )
    return _checked(kinds[0] if kinds else "text", [column for column, _ in pairs], view)


def embedded(spec):
    """Return the columns of a specification such as ``"body:embed"``; None for other kinds."""
    parts = [spec] if isinstance(spec, str) else spec
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return None
    pairs = [_split(part) for part in parts]
    return [column for column, _ in pairs] if {kind for _, kind in pairs} == {"embed"} else None


def _split(part):
    """Return column and kind. The text after the last colon is a kind only if it is in KINDS."""
    column, _, kind = part.rpartition(":")
    return (column, kind) if column and kind in KINDS else (part, "text")


def _checked(kind, columns, view):
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise ValueError(f"view {view!r} names no column")
    if len(columns) > 1 and kind not in SEVERAL:
        raise ValueError(f"view {view!r}: a view of kind {kind!r} has one column; got {columns}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"view {view!r} names a column twice: {columns}")
    return {"kind": kind, "columns": columns}


def needed_columns(spec, id_column):
    """Return the columns that a fitted view needs: inbound links are known, and are found by id."""
    return [id_column] if spec["kind"] == "inbound" else list(spec["columns"])


def check_columns(specs, names, id_column, *, fitted=False):
    """Raise unless the table has the columns of all views, and ids if links are to be found.

    After `fit` the links are known, so that the table needs its ids but no column of links.
    """
    known = set(names)
    for view, spec in specs.items():
        columns = list(spec["columns"])
        if spec["kind"] == "inbound":
            if id_column is None:
                raise ValueError(
                    f"view {view!r}: inbound links are found by the ids of the rows; give id="
                    f"'COLUMN'"
                )
            columns = [id_column] if fitted else [*columns, id_column]
        for column in columns:
            if column not in known:
                hint = f" (kinds are {', '.join(KINDS)})" if ":" in column else ""
                raise ValueError(
                    f"view {view!r}: there is no column {column!r}{hint} in the table, which has "
                    f"{first_few(map(repr, names)) or 'no columns'}"
                )


def by_view(what, value, specs, default, kinds=COUNTS):
    """Return the value of an option by view, for the views of some kinds.

    `value` is one value for all of them, or a dict. Views that the dict leaves out get `default`.
    """
    names = [name for name, spec in specs.items() if spec["kind"] in kinds]
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    unknown = [name for name in value if name not in names]
    if unknown:
        raise ValueError(
            f"{what} is given for {unknown[0]!r}, which is not a view of kind {', '.join(kinds)}; "
            f"there are {first_few(map(repr, names)) or 'none'}"
        )
    return {name: value.get(name, default) for name in names}
