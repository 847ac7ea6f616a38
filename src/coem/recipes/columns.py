"""What each column of a table is taken for, said before the work."""

from typing import Any

from coem.recipes.dates import date_column
from coem.recipes.documents import Documents
from coem.recipes.listener import Listener
from coem.text.guess import few_of, guess_columns, guess_views

Rows = list[list[str]]
HEADER = ["column", "taken as", "why"]
LEFT_OUT = "left out"
SHOWN = 100  # columns; coem info shows all


def tell_columns(
    reader: Any, documents: Documents, listener: Listener, *, label: str | None, date: str | None
) -> None:
    """Say which columns are views, ids, labels and dates, and which are left out and why."""
    table = documents.looked_at
    rest = table.drop_columns([label]) if label in table.column_names else table
    reasons = guess_columns(rest, documents.id_column) if reader.views is None else None
    roles = {documents.id_column: "ids", label: "labels"}
    date = date_column(date, table.column_names)
    rows = taken_as(table.column_names, reader.views_, reasons, roles, date)
    more = len(rows) - SHOWN
    if more > 0:
        rows = [*rows[:SHOWN], [f"and {more:,} more", "", ""]]
    listener.columns(HEADER, rows, few_of(reader.guesses_, SHOWN))
    if documents.corpus is None:  # whose views are fixed
        _tell_more(reasons or {}, listener)


def look_at_columns(documents: Documents, listener: Listener, *, date: str | None) -> Rows:
    """Return which view each column of a table would become by default."""
    table = documents.table
    reasons = guess_columns(table, documents.id_column)
    try:
        views, _ = guess_views(table, documents.id_column)
    except ValueError as error:  # a table without documents can be looked at, too
        views = {}
        listener.note(str(error).split(". ")[0])
    rows = taken_as(table.column_names, views, reasons, {documents.id_column: "ids"}, date)
    _tell_more(reasons, listener)
    return rows


def taken_as(
    names: list[str],
    views: dict[str, Any],
    reasons: dict[str, Any] | None,
    roles: dict[str | None, str],
    date: str | None,
) -> Rows:
    """Return column, what it is taken for, and why; `reasons` is None if views were named."""
    known = _taken(views)
    rows = []
    for name in names:
        if name in roles:
            rows.append([name, roles[name], ""])
        elif name == date and name not in known:
            rows.append([name, "dates", ""])
        elif reasons is None:
            why = "you named it" if name in known else "no view names it"
            rows.append([name, known.get(name, LEFT_OUT), why])
        else:
            rows.append([name, known.get(name, LEFT_OUT), reasons[name].why])
    return sorted(rows, key=lambda row: row[1] == LEFT_OUT)


def _taken(views: dict[str, Any]) -> dict[str, str]:
    """Return what the columns that views are made of are taken for; one may be in several."""
    found: dict[str, list[str]] = {}
    for view, spec in views.items():
        for name in spec["columns"]:
            found.setdefault(name, []).append(f"view {view!r}, {spec['kind']}")
    return {name: "; ".join(uses) for name, uses in found.items()}


def _tell_more(reasons: dict[str, Any], listener: Listener) -> None:
    """Say how columns that were left out can be views."""
    more = [
        f"{name}={name}:{guess.could}"
        for name, guess in reasons.items()
        if guess.kind is None and guess.could
    ]
    if more:
        shown = ", ".join(more[:3]) + (" ..." if len(more) > 3 else "")
        listener.note(f"categories and numbers beside texts are views if you ask: views {shown}")
