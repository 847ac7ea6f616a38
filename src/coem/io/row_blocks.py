"""Rows of a stream: columns that all sources share, and blocks that depend on the rows alone."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coem.io.sources import TableError
from coem.typing import Array

ROWS = 1 << 16  # of a block at most
BYTES = 1 << 26  # of its texts, lists and numbers, unless one row has more


def row_blocks(tables: Iterable[Any], rows: int = ROWS, size: int = BYTES) -> Iterator[Any]:
    """Return the rows of tables in blocks, however the tables are cut."""
    waiting: list[Any] = []
    sizes = np.zeros(0, np.int64)
    for table in tables:
        waiting.append(table)
        sizes = np.concatenate([sizes, row_sizes(table)])
        ends = _ends(sizes, rows, size)
        if not ends:
            continue
        whole, first = pa.concat_tables(waiting), 0
        for end in ends:
            yield whole.slice(first, end - first)
            first = end
        waiting, sizes = [whole.slice(first)], sizes[first:]
    if len(sizes):
        yield pa.concat_tables(waiting)


def _ends(sizes: Array, rows: int, size: int) -> list[int]:
    """Return where blocks end that cannot take another row."""
    total = np.append(0, np.cumsum(sizes))
    ends: list[int] = []
    first = 0
    while True:
        fits = int(np.searchsorted(total, total[first] + size, side="right")) - 1
        end = min(max(fits, first + 1), first + rows)
        if end >= len(sizes):  # the last one may go on
            return ends
        ends.append(end)
        first = end


def row_sizes(table: Any) -> Array:
    """Return about how many bytes each row has."""
    total = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        total += _sizes(column)
    return total


def _sizes(column: Any) -> Any:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0), np.int64) + 4
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return 8 * np.asarray(pc.fill_null(pc.list_value_length(column), 0), np.int64) + 4
    return 8


# -- columns of several sources -----------------------------------------------------------------


class Columns(Protocol):
    """The columns of one source."""

    source: str

    @property
    def nothing(self) -> Collection[str]:
        """Columns without any value, whose type says nothing."""

    def schema(self) -> Any:
        """Return the names and types of the columns."""


def common(parts: Sequence[Columns], known: Any = None) -> Any:
    """Return the columns of all sources; one without any value has the type that is known."""
    types: dict[str, tuple[str, Any]] = {}
    for part in parts:
        for own in part.schema():
            kind = pa.null() if own.name in part.nothing else own.type
            first, before = types.get(own.name, (part.source, kind))
            both = _both(before, kind)
            if both is None:
                raise TableError(
                    f"column {own.name!r} holds {before} in {first}, and {kind} in {part.source}; "
                    "make it the same in both"
                )
            types[own.name] = first, both
    nothing = {name: pa.string() for part in parts for name in part.nothing}
    nothing |= {own.name: own.type for own in known or () if own.name in nothing}
    none = pa.types.is_null
    found = [(n, nothing.get(n, kind) if none(kind) else kind) for n, (_, kind) in types.items()]
    return pa.schema(found)


def _both(one: Any, other: Any) -> Any:
    """Return the type that holds the values of two, or None."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    numbers = pa.types.is_integer, pa.types.is_floating
    if all(any(is_kind(kind) for is_kind in numbers) for kind in (one, other)):
        return pa.int64() if all(map(pa.types.is_integer, (one, other))) else pa.float64()
    return None


def fitted(tables: Iterable[Any], schema: Any, place: Callable[[int], str]) -> Iterator[Any]:
    """Yield tables that follow each other with the columns of a schema.

    `place` says where a row is, in the words of errors.
    """
    first = 0
    for table in tables:
        if table.schema.equals(schema):
            yield table
        else:
            columns = [_column(table, own, first, place) for own in schema]
            yield pa.table(columns, schema=schema)
        first += table.num_rows


def _column(table: Any, own: Any, first: int, place: Callable[[int], str]) -> Any:
    """Return a column in its type; one of text that is to hold anything else has no values."""
    if own.name not in table.column_names:
        return pa.nulls(table.num_rows, own.type)
    column = table.column(own.name)
    if pa.types.is_string(column.type) and not pa.types.is_string(own.type):
        return pa.nulls(table.num_rows, own.type)
    try:
        return column.cast(own.type)
    except pa.ArrowInvalid as error:
        row = next((i for i, value in enumerate(column) if not _fits(value, own.type)), None)
        if row is None:
            raise
        raise TableError(
            f"{place(first + row)}: column {own.name!r} holds {column[row].as_py()!s:.40}, and "
            f"{own.type}, in which the column is kept, has no such number; round it, leave the "
            "column out, or ingest all documents with text in the column"
        ) from error


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a type holds a value."""
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
