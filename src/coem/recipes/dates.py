"""Dates of documents: which column has them, and what they are."""

from collections.abc import Collection
from typing import Any

from coem.recipes.corpora import shown_rows
from coem.recipes.documents import Documents, column_of
from coem.recipes.listener import Listener
from coem.text.dates import ORDERS, SAY_ORDER, Dates, guess_dates, read_dates


def find_dates(
    date: Any, documents: Documents, listener: Listener
) -> tuple[str | None, Dates | None]:
    """Return the column of the dates, asked for or guessed, and its dates, or (None, None).

    Of documents that are too many for memory, the dates are those of the rows that are shown.
    """
    if date is None or date == "none":
        return None, None
    if not isinstance(date, str):
        raise TypeError(f"date must be the name of a column, 'auto' or None, got {date!r:.80}")
    if documents.in_parts:
        documents = documents.take(shown_rows(documents.corpus))
    guessed = date == "auto" and "auto" not in documents.table.column_names
    column = guess_dates(documents.table, [documents.id_column]) if guessed else date
    if column is None:
        return None, None
    try:
        dates = dates_of(documents, column)
    except ValueError:
        if not guessed:
            raise
        return None, None  # some rows that the guess did not see are not dates
    name = date_column(column, documents.table.column_names)
    listener.note(f"dates are in column {name!r} (date={column!r}): {dates}")
    return column, dates


def date_column(date: str | None, columns: Collection[str] = ()) -> str | None:
    """Return the column of ``when`` or ``when:dmy``; `columns` may have one called like that."""
    name, _, order = (date or "").rpartition(":")
    return name if name and order in ORDERS and date not in columns else date


def dates_of(documents: Documents, date: str | None) -> Dates | None:
    """Return the dates of the rows, or None if there is no column of dates."""
    column = date_column(date, documents.table.column_names)
    if date is None or column is None:
        return None
    values = column_of(documents.table, documents.source, column, "dates")
    try:
        return read_dates(values, None if column == date else date[-3:])
    except ValueError as error:
        fix = f"say which with date='{column}:dmy' or date='{column}:mdy'"
        reason = str(error).replace(SAY_ORDER, fix)
        raise ValueError(f"column {column!r} cannot be read as dates: {reason}") from None
