"""Rows of a stream in blocks whose ends depend on the rows alone."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
