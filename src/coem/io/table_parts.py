"""Tables that are written a part at a time, because all of their rows do not fit in memory."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from coem.io import new_file
from coem.io.formulas import n_formulas
from coem.io.tables import table_as, write_table

CSV = ".csv"


def write_tables(tables: Iterable[Any], path: str | os.PathLike[str], *, safe: bool = False) -> int:
    """Write tables with the same columns to one file, and return how many formulas they have.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        One at least. Each is written before the next one is asked for.
    path : path
        ``.csv``, ``.jsonl`` or ``.parquet``; of one table, whatever `write_table` takes.
    safe : bool, default=False
        As in `write_table`.
    """
    first, second, rest = first_two(tables)
    suffix = Path(path).suffix
    found = n_formulas(first) if suffix == CSV else 0
    if second is None:
        write_table(first, path, safe=safe)
        return found
    with ExitStack() as opened:  # after an error, the writer is closed before the file
        file = opened.enter_context(new_file(path))
        writer = None
        if suffix == ".parquet":
            writer = opened.enter_context(parquet.ParquetWriter(file, first.schema))
        for number, table in enumerate(chain((first, second), rest)):
            found += n_formulas(table) if number and suffix == CSV else 0
            if writer is not None:
                writer.write_table(table)
            else:
                file.write(part_as(suffix, table, first=not number, safe=safe))
    return found


def first_two(tables: Iterable[Any]) -> tuple[Any, Any, Iterator[Any]]:
    """Return the first table, the second or None, and the others."""
    rest = iter(tables)
    return next(rest), next(rest, None), rest


def part_as(suffix: str, table: Any, *, first: bool, safe: bool = False) -> bytes:
    """Return the bytes of a part of a table; that of a CSV begins with the names if it is first."""
    found = table_as(suffix, table, safe=safe)
    if first or suffix != CSV:
        return found
    header = table_as(suffix, table.slice(0, 0), safe=safe)
    return found.removeprefix(header)
