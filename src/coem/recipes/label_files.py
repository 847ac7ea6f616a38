"""Labels of a second file, which are joined to the documents by their ids."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from coem.io.tables import Table
from coem.phrases import first_few
from coem.recipes.documents import Documents, column_of, read_source
from coem.recipes.listener import Listener

NAME = "label"  # of the column, if the file has several
SHOWN = 3  # ids that are named in an error


def join_labels(
    documents: Documents, labels: Any, label: str | None, listener: Listener, *, skip_bad: bool
) -> tuple[Documents, str]:
    """Return the documents with a column of labels, and what it is called.

    Parameters
    ----------
    documents : Documents
        With ids.
    labels : table or path
        A column of ids, called as in the documents or "id", and one of labels.
    label : str or None
        The column of the labels, if there are several.
    listener : Listener
        Hears how many labels were found.
    skip_bad : bool
        Leave out labels of ids that no document has, which are an error otherwise.
    """
    found = read_source(labels)
    for sentence in found.notes:
        listener.note(sentence)
    if documents.id_column is None:
        raise ValueError(
            f"labels of {found.source} are joined by id, and {documents.source} has no ids; name "
            "their column: id='COLUMN'"
        )
    own = _id_column(found, documents.id_column)
    name = _label_column(found, own, label)
    if name in documents.table.column_names:
        raise ValueError(
            f"{documents.source} has a column {name!r}, and {found.source} has one, too; rename one"
        )
    rows = _rows(found, own)
    _check_known(found, rows, documents, listener, skip_bad)
    found_in = (rows.get(name) for name in documents.ids)
    places = pa.array(found_in, pa.int64(), size=len(documents))
    column = found.data.column(name).combine_chunks().take(places)
    n_given = len(places) - places.null_count
    listener.note(
        f"{n_given:,} of {len(documents):,} rows are in {found.source}, which has the labels in "
        f"column {name!r}"
    )
    return replace(documents, table=documents.table.append_column(name, column)), name


def _id_column(found: Table, wanted: str) -> str:
    """Return the column of the ids of the labels."""
    names = found.data.column_names
    lower = [n for n in names if n.lower() in (wanted.lower(), "id")]
    own = wanted if wanted in names else next(iter(lower), None)
    if own is None:
        raise ValueError(
            f"{found.source} has no column {wanted!r} for the ids; it has {first_few(names)}: "
            "rename the one with the ids"
        )
    return own


def _label_column(found: Table, own: str, label: str | None) -> str:
    """Return the column of the labels."""
    others = [name for name in found.data.column_names if name != own]
    if label is not None:
        column_of(found.data, found.source, label, "labels")
        return label
    if NAME in others or len(others) == 1:
        return NAME if NAME in others else others[0]
    if not others:
        raise ValueError(f"{found.source} has ids and no column of labels; add one")
    names = first_few(others)
    raise ValueError(f"{found.source} has the columns {names}; name the labels: label='COLUMN'")


def _rows(found: Table, own: str) -> dict[str, int]:
    """Return the row of each id; refuse an id that is empty, or there twice."""
    rows: dict[str, int] = {}
    for row, value in enumerate(found.data.column(own).to_pylist()):
        name = "" if value is None else str(value)
        if not name:
            raise ValueError(f"{found.source}, row {found.number(row)} has no id; fill it in")
        if name in rows:
            first, second = found.number(rows[name]), found.number(row)
            raise ValueError(
                f"{found.source}: rows {first} and {second} are both of {name!r:.60}; leave one of "
                "them out"
            )
        rows[name] = row
    return rows


def _check_known(
    found: Table, rows: dict[str, int], documents: Documents, listener: Listener, skip_bad: bool
) -> None:
    """Refuse labels of rows that are not there, or say how many they are."""
    known = {name for name in documents.ids if name in rows}
    strange = [name for name in rows if name not in known]
    if not strange:
        return
    shown = ", ".join(f"{name!r:.60}" for name in strange[:SHOWN]) + (
        " ..." if len(strange) > SHOWN else ""
    )
    said = f"{found.source} has labels of {len(strange):,} ids that {documents.source} has not: "
    if not skip_bad or len(strange) == len(rows):
        advice = "use other ids" if len(strange) == len(rows) else "leave them out (skip_bad=True)"
        raise ValueError(f"{said}{shown}; {advice}")
    listener.note(f"{said}{shown}; they are left out")
