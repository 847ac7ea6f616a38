"""What each view of a table is counted or made from."""

from coem.text import _tables, dense
from coem.text._inbound import inbound_items


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
        return _tables.read_items(table, columns[0], view)
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
