"""What each view of a table is counted or made from."""

import pyarrow as pa

from coem.text import _tables, dense
from coem.text._inbound import inbound_items
from coem.text.lists import USUAL
from coem.text.specs import check_columns, needed_columns


def read_source(table, view, spec, *, given, id, links):
    """Return the source of one view: texts, items or a matrix.

    Parameters
    ----------
    table : pyarrow.Table
    view : str
    spec : dict
        Kind and columns of the view.
    given : dict or None
        What the user wrote for the views: arrays and their files are in it.
    id : str or None
        The column of the ids.
    links : dict
        The known links of views of inbound links.
    """
    kind, columns = spec["kind"], spec["columns"]
    if kind in ("text", "embed"):
        return _tables.read_text(table, columns, view)
    if kind == "list":
        return _tables.read_items(table, columns[0], view, spec.get("between", USUAL))
    if kind == "category":
        return _tables.read_categories(table, columns, view)
    if kind == "inbound":
        return inbound_items(links[view], _tables.read_ids(table, id, view))
    if kind == "number":
        return dense.read_numbers(table, columns, view)
    if kind == "vector":
        return dense.read_vectors(table, columns[0], view)
    return dense.read_array(given[view], table.num_rows, view)


def read_rows(X):
    """Return a table with one row at least."""
    table = _tables.as_arrow(X)
    if not table.num_rows:
        raise ValueError("the table has no rows")
    return table


def fill_gaps(table, specs, id_column):
    """Return a table with the columns that fitted views need, and a sentence for each new one.

    A column that is not there is empty in all rows. A table without any of the columns is an error.
    """
    known = set(table.column_names)
    needed = {
        view: [name for name in needed_columns(spec, id_column) if name not in known]
        for view, spec in specs.items()
    }
    if not any(
        spec["kind"] == "array" or len(needed[view]) < len(needed_columns(spec, id_column))
        for view, spec in specs.items()
    ):
        check_columns(specs, table.column_names, id_column, fitted=True)
    sentences = [
        f"view {view!r}: there is no column {name!r} in the table; it counts as empty"
        for view, names in needed.items()
        for name in names
    ]
    gaps = list(dict.fromkeys(name for names in needed.values() for name in names))
    nothing = pa.nulls(table.num_rows)
    columns = [*table.columns, *(nothing for _ in gaps)]
    return pa.table(columns, names=[*table.column_names, *gaps]), sentences
