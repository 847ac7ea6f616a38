"""JSON, one object a line."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from coem.io.delimited import SKIP, Bad
from coem.io.sources import TableError, Text, flaw_of, lines_of

MOST = 1 << 63


def read_json_lines(text: Text, source: str, *, skip_bad: bool) -> tuple[Any, Bad]:
    """Return a table of objects, a column for each key, and the rows that were left out."""
    records: list[dict[str, Any]] = []
    bad: Bad = []
    for row, line in enumerate(lines_of(text.data), start=1):
        if not line.strip():
            continue
        record = _parse(line)
        if not isinstance(record, str):
            records.append(record)
        elif skip_bad:
            bad.append((row, record))
        else:
            raise TableError(f"{source}, row {row}: {record}; mend it, {SKIP}")
    if not records and bad:
        raise TableError(f"{source} has no good row; the first, row {bad[0][0]}, has {bad[0][1]}")
    if not records:
        raise TableError(f"{source} is empty; write one JSON object a line")
    names = list(dict.fromkeys(name for record in records for name in record))
    if not names:
        raise TableError(f"{source} has objects without keys; a table has columns")
    columns = [_column([record.get(name) for record in records]) for name in names]
    return pa.table(columns, names=names), bad


def _parse(line: bytes) -> Any:
    """Return the object of a line, or what is wrong with it."""
    text = line.decode("utf-8", "surrogateescape")
    flaw = flaw_of(text)
    if flaw is not None:
        return flaw
    try:
        record = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(record, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        return f"no JSON ({error.msg} at character {error.pos + 1})"
    except UnicodeEncodeError:
        return "half a character (an escape such as \\ud800 alone)"
    except (RecursionError, ValueError) as error:
        return f"no JSON that can be read ({str(error)[:80]})"
    if not isinstance(record, dict):
        return f"a JSON {_kind(record)} and no object {{...}} of names and values"
    return record


def _kind(value: Any) -> str:
    names = {list: "list", str: "string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")


def _column(values: list[Any]) -> Any:
    """Return values as a column of one type; as text, what is not a string being JSON, if not."""
    for fits, kind in COLUMNS:
        if all(value is None or fits(value) for value in values):
            return pa.array(values, kind)
    texts = [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in values
    ]
    return pa.array(texts, pa.string())


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
    (_is_list_of(_is_number), pa.list_(pa.float64())),
]
