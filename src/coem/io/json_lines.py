"""JSON: one object a line, or a list of objects."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from coem.io.delimited import check_short, unique_names
from coem.io.encodings import Text, flaw_of
from coem.io.rows import SKIP, Bad, Parsed
from coem.io.sources import TableError, lines_of
from coem.phrases import first_few

MOST = 1 << 63
CELLS = 20_000_000  # of a table that may be empty for the most part
FILLED = 0.01  # the share of the cells of a larger one that must have something in them
EMPTY = "{} is empty; write one JSON object a line"
DEEPEST = 100  # lists and objects in each other that are read at all
DEEP = 3  # objects in objects: the names of columns are joined by points, or records are found


def read_json_lines(text: Text, source: str, *, skip_bad: bool) -> Parsed:
    """Return a table of objects, a column for each key."""
    lines = ((row, line) for row, line in enumerate(lines_of(text.data), 1) if line.strip())
    records, bad = _good(((row, parse_record(line)) for row, line in lines), source, skip_bad)
    if not records:
        raise TableError(EMPTY.format(source))
    return Parsed(_table(records, source), bad)


def read_json(text: Text, source: str, *, skip_bad: bool) -> Parsed:
    """Return a table of the objects of a list, or of the only list of objects within an object.

    Objects one after the other, with no list around them, are JSON lines.
    """
    if text.flaw is not None:
        row, reason = text.flaw
        raise TableError(f"{source}, row {row}: {reason}")
    if not text.data.strip():
        raise TableError(f"{source} is empty; write a JSON list of objects")
    whole = load(text.data)
    if isinstance(whole, str) and "Extra data" in whole:
        return read_json_lines(text, source, skip_bad=skip_bad)
    if isinstance(whole, str):
        raise TableError(f"{source}: {whole}; mend it, or write one object a line (.jsonl)")
    place, items = _records(whole[0], source)
    found = ((row, _as_record(item)) for row, item in enumerate(items, 1))
    records, bad = _good(found, source, skip_bad)
    notes = [f"the rows are the {len(items):,} items of {place!r} in {source}"] if place else []
    return Parsed(_table(records, source), bad, notes=notes)


def _records(value: Any, source: str) -> tuple[str, list[Any]]:
    """Return the list of records in a value, and the place where it is ("" if it is the value)."""
    if isinstance(value, list) and value:
        return "", value
    if not isinstance(value, dict):
        what = "an empty list" if isinstance(value, list) else f"a JSON {_kind(value)}"
        raise TableError(f"{source} is {what}; write a list of objects, [{{...}}, {{...}}]")
    lists = dict(_lists(value, DEEP))
    if not lists:
        raise TableError(
            f"{source} is one object without a list of objects in it; write a list, [{{...}}, ...]"
        )
    if len(lists) > 1:
        names = first_few(map(repr, lists))
        raise TableError(
            f"{source} has several lists of objects, {names}; write the one that you mean to a "
            "file of its own"
        )
    return next(iter(lists.items()))


def _lists(value: dict[str, Any], depth: int, prefix: str = "") -> Any:
    """Give the lists of objects in an object, by the path of keys that leads there."""
    for key, item in value.items():
        if isinstance(item, list) and item and all(isinstance(part, dict) for part in item):
            yield f"{prefix}{key}", item
        elif isinstance(item, dict) and depth > 1:
            yield from _lists(item, depth - 1, f"{prefix}{key}.")


def _good(found: Any, source: str, skip_bad: bool) -> tuple[list[dict[str, Any]], Bad]:
    """Return the records among rows of a record or of what is wrong there, and the bad rows."""
    records: list[dict[str, Any]] = []
    bad: Bad = []
    for row, record in found:
        if not isinstance(record, str):
            records.append(record)
        elif skip_bad:
            bad.append((row, record))
        else:
            raise TableError(f"{source}, row {row}: {record}; mend it, {SKIP}")
    if not records and bad:
        raise TableError(f"{source} has no good row; the first, row {bad[0][0]}, has {bad[0][1]}")
    return records, bad


def _table(records: list[dict[str, Any]], source: str) -> Any:
    """Return a table of records, a column for each key."""
    names = dict.fromkeys(name for record in records for name in record)
    if not names:
        raise TableError(f"{source} has objects without keys; a table has columns")
    flat = _flat(_columns(records, names, source), DEEP, source)
    check_short(list(flat), source, "shorten it")
    columns = [as_column(values) for values in flat.values()]
    return pa.table(columns, names=unique_names(list(flat)))


def _columns(records: list[Any], names: Any, source: str) -> dict[str, list[Any]]:
    """Return the values of records by key; a record may be None."""
    check_filled(len(names), len(records), sum(map(len, filter(None, records))), source)
    return {name: [(record or {}).get(name) for record in records] for name in names}


def check_filled(n_names: int, n_records: int, n_filled: int, source: str) -> None:
    """Refuse objects that hardly share a key: a table of them would have few cells in use."""
    n_cells = n_names * n_records
    if n_cells > CELLS and n_filled < FILLED * n_cells:
        raise TableError(
            f"{source} has {n_names:,} different keys in {n_records:,} objects, and hardly "
            "any object has the keys of another; give all objects the same keys"
        )


def _flat(columns: dict[str, list[Any]], depth: int, source: str) -> dict[str, list[Any]]:
    """Return columns of objects as a column for each of their keys, "user.name"."""
    found: dict[str, list[Any]] = {}
    taken = set(columns)
    for name, values in columns.items():
        there = [value for value in values if value is not None]
        objects = bool(there) and all(isinstance(value, dict) for value in there)
        keys = dict.fromkeys(key for value in there for key in value) if objects else {}
        parts = _columns(values, keys, source) if depth and keys else {}
        parts = _flat({f"{name}.{key}": p for key, p in parts.items()}, depth - 1, source)
        new = {name: values} if not parts or taken & parts.keys() else parts
        taken |= new.keys()
        found |= new
    return found


def parse_record(line: bytes) -> Any:
    """Return the object of a line, or what is wrong with it."""
    found = load(line)
    return found if isinstance(found, str) else _as_record(found[0])


def load(data: bytes) -> tuple[Any] | str:
    """Return the value of some JSON, or what is wrong with it."""
    text = data.decode("utf-8", "surrogateescape")
    flaw = flaw_of(text)
    if flaw is not None:
        return flaw
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > DEEPEST and is_deeper(value, DEEPEST):
            return f"no JSON that can be read (it is nested more than {DEEPEST} deep)"
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        lines = f"line {error.lineno}, " if "\n" in text.strip() else ""
        place = error.colno if lines else error.pos + 1
        return f"no JSON ({error.msg} at {lines}character {place})"
    except UnicodeEncodeError:
        return "half a character (an escape such as \\ud800 alone)"
    except (RecursionError, ValueError) as error:
        return f"no JSON that can be read ({str(error)[:80]})"
    return (value,)


def is_deeper(value: Any, most: int) -> bool:
    """Return whether a value has more than `most` lists and objects in each other.

    What is parsed need not be deep enough for an error there, and may be for one later on.
    """
    within = [value] if isinstance(value, list | dict) else []
    for _ in range(most):
        parts = (v.values() if isinstance(v, dict) else v for v in within)
        within = [item for part in parts for item in part if isinstance(item, list | dict)]
    return bool(within)


def _as_record(value: Any) -> Any:
    """Return an object, or what is wrong with it."""
    if not isinstance(value, dict):
        return f"a JSON {_kind(value)} and not an object {{...}} of names and values"
    return value


def _kind(value: Any) -> str:
    names = {list: "list", str: "string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")


def as_column(values: list[Any]) -> Any:
    """Return values as a column of one type; as text, what is not a string being JSON, if not."""
    for fits, kind in COLUMNS:
        if all(value is None or fits(value) for value in values):
            return pa.array(values, kind)
    return pa.array(list(map(as_json, values)), pa.string())


def as_json(value: Any) -> str | None:
    """Return text as it is, and any other value as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_int(value: Any) -> bool:
    return type(value) is int and -MOST <= value < MOST


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= 1 << 53)


def _is_list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(v is None or fits(v) for v in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


COLUMNS: list[tuple[Callable[[Any], bool], Any]] = [
    (_is_text, pa.string()),
    (lambda value: isinstance(value, bool), pa.bool_()),
    (_is_int, pa.int64()),
    (_is_number, pa.float64()),
    (_is_list_of(_is_text), pa.list_(pa.string())),
    (_is_list_of(_is_int), pa.list_(pa.int64())),
    (_is_list_of(_is_number), pa.list_(pa.float64())),
]
