"""Rows of Parquet files: a few bytes can stand for millions of rows, and for texts of any length.

So texts are read as codes of a list of different texts. What they take is known before they are
made, whatever a file says of itself.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from coem.io.parquet_footer import n_values
from coem.io.unpacking import ROW, TooLarge, most_unpacked

ROWS = 1 << 13  # that are read at once: codes are found by a hash that is publicly known
FEW = 1 << 8  # the same of a file with maps, whose texts Arrow cannot read as codes
FINE = "[ns"  # in the names of types of Arrow with nanoseconds
ITEM = 8  # bytes of a number, of the place of a text


def read_batches(source: Any, packed: int, rows: int = ROWS, **how: Any) -> Iterator[Any]:
    """Yield the rows of a Parquet file as tables with text as plain strings.

    Parameters
    ----------
    source : path or pyarrow.NativeFile
    packed : int
        Bytes of the file; if it is packed itself, of the packed one.
    rows : int
        Rows of a table at most.
    **how
        For `pyarrow.parquet.ParquetFile`.

    Raises
    ------
    TooLarge
        If all rows take more than a file of this size may.
    """
    most = most_unpacked(packed)
    with parquet.ParquetFile(source, **how) as file:
        about, schema = file.metadata, file.schema_arrow
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        nested = [i for i, leaf in enumerate(leaves) if leaf.max_repetition_level]
        if nested:
            _check_lists(source, nested, packed)
        maps = tuple(f"{own.name}." for own in schema if "map<" in str(own.type))
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        how |= {"read_dictionary": [path for path in texts if not path.startswith(maps)]}
        width = sum(max(leaf.length, 0) for leaf in leaves)  # of what has the same in every row
        at_once = max(1, min(rows, FEW if maps else ROWS, most // max(width, 1)))
        with parquet.ParquetFile(source, metadata=about, **how) as coded:
            for batch in _batches(coded, at_once):
                batch.validate(full=True)  # also that text is UTF-8, and codes are in their lists
                most -= ROW * batch.num_rows + sum(map(_size, batch.columns))
                if most < 0:
                    raise TooLarge(packed)
                columns = map(plain_column, batch.columns, schema.types)
                yield pa.table([*columns], names=schema.names)


def _batches(file: Any, rows: int) -> Iterator[Any]:
    """Yield the rows of one row group after the other, each of which has codes of its own."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(rows, row_groups=[group])


def _check_lists(source: Any, nested: list[int], packed: int) -> None:
    """Refuse lists of too many items, of which there may be any number in a row."""
    with nullcontext(source) if hasattr(source, "read") else open(source, "rb") as file:
        groups = n_values(file)
    for group in groups:
        if len(group) <= max(nested):
            raise ValueError("a row group has too few columns")
        if sum(max(group[i], 0) for i in nested) * ITEM > most_unpacked(packed):
            raise TooLarge(packed)


def _size(column: Any) -> int:
    """Return how many bytes a column takes without codes."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
        return ITEM * len(column) + int(pc.sum(lengths).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_size, column.flatten()))
    if pa.types.is_nested(kind) and not pa.types.is_map(kind):
        return ITEM * len(column) + _size(column.flatten())
    return int(column.nbytes)


def plain_column(column: Any, kind: Any = None) -> Any:
    """Return a column with text as strings, whatever its codes; `kind` is what the file calls it.

    Times have microseconds, as those of Python.
    """
    kind = column.type if kind is None else kind
    plain = _without_codes(kind)
    wanted = pa.string() if pa.types.is_large_string(plain) else plain
    if wanted == column.type:
        return column
    return column.cast(wanted, safe=FINE not in str(kind))  # nanoseconds are cut off


def _without_codes(kind: Any) -> Any:
    """Return a type in which texts have neither codes nor views, nor times nanoseconds."""
    if pa.types.is_dictionary(kind):
        return _without_codes(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_codes(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_of_items(kind), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_of_items(kind))
    return pa.list_(_of_items(kind)) if pa.types.is_list(kind) else kind


def _of_items(kind: Any) -> Any:
    return kind.value_field.with_type(_without_codes(kind.value_type))
