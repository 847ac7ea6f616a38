"""What each column of a table is taken for, said before the work."""

from typing import Any

from coem.recipes.documents import Documents
from coem.recipes.listener import Listener
from coem.text.guess import guess_columns

HEADER = ["column", "taken as", "why"]
LEFT_OUT = "left out"


def tell_columns(
    reader: Any, documents: Documents, listener: Listener, *, label: str | None, date: str | None
) -> None:
    """Say which columns are views, ids, labels and dates, and which are left out and why."""
    table = documents.table
    known = _taken(reader)
    guessed = reader.views is None
    rest = table.drop_columns([label]) if label in table.column_names else table
    reasons = guess_columns(rest, documents.id_column) if guessed else {}
    rows = []
    for name in table.column_names:
        why = reasons[name].why if name in reasons else "you named it" if name in known else ""
        if name == documents.id_column:
            rows.append([name, "ids", ""])
        elif name == label:
            rows.append([name, "labels", ""])
        elif name == date and name not in known:
            rows.append([name, "dates", ""])
        else:
            unused = _unused(reasons[name]) if guessed else "no view names it"
            rows.append([name, known.get(name, LEFT_OUT), why if name in known else unused])
    rows.sort(key=lambda row: row[1] == LEFT_OUT)
    listener.columns(HEADER, rows, reader.guesses_)
    _tell_more(reasons, listener)


def _unused(guess: Any) -> str:
    """Return why a column is left out."""
    return "its values are numbers" if guess.could == "number" else str(guess.why)


def _taken(reader: Any) -> dict[str, str]:
    """Return what the columns that views are made of are taken for; one may be in several."""
    found: dict[str, list[str]] = {}
    for view, spec in reader.views_.items():
        for name in spec["columns"]:
            found.setdefault(name, []).append(f"view {view!r}, {spec['kind']}")
    return {name: "; ".join(views) for name, views in found.items()}


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
