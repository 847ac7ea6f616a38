"""Tables of any kind as pyarrow's, and their columns as the views need them."""

from collections.abc import Mapping
from functools import reduce

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coem.kernels.words import Strings
from coem.phrases import first_few
from coem.text.lists import USUAL, between_parts, split


def as_arrow(table):
    """Return a table as a `pyarrow.Table`; what is missing is null there.

    Parameters
    ----------
    table : pandas or polars DataFrame, pyarrow Table or RecordBatch, list of dict, or dict
        A dict goes from the name of a column to its values.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.Table):
        return _usual_table(table)
    if isinstance(table, Mapping):
        return _from_columns(table)
    if isinstance(table, list) and all(isinstance(row, Mapping) for row in table):
        names = list(dict.fromkeys(name for row in table for name in row))
        return _from_columns({name: [row.get(name) for row in table] for name in names})
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"a table is a pandas or polars DataFrame, a pyarrow Table, a list of dicts or a dict "
            f'of columns, not {_kind(table)}; one column is {{"text": [...]}}'
        ) from error
    found = _from_columns({name: frame[name].to_native() for name in frame.columns})
    return _usual_table(found)


def _usual_table(table):
    """Return a table whose columns are of types that Arrow can work with."""
    for i, own in enumerate(table.schema):
        usual = _usual(own.type)
        if usual != own.type:
            table = table.set_column(i, own.name, table.column(i).cast(usual))
    return table


def _usual(kind):
    """Return the type to work with: Arrow has few functions for half precision and for views."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if _is_view(kind, "string"):
        return pa.large_string()
    return pa.large_binary() if _is_view(kind, "binary") else kind


def _is_view(kind, of):
    """Tell if a type is a view of texts or bytes, which versions of Arrow before 16 have not."""
    check = getattr(pa.types, f"is_{of}_view", None)
    return check is not None and check(kind)


def _kind(table):
    """Return what a user gave instead of a table."""
    if isinstance(table, list) and table:
        return f"a list that holds {type(table[0]).__name__}"
    return type(table).__name__


def _from_columns(columns):
    """Return named columns as a table, or say which one does not fit."""
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise TypeError(f"names of columns must be text, and one is {name!r}")
        if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
            raise TypeError(f"column {name!r} must be a list or an array, not {values!r:.40}")
        arrays[name] = _array(name, values)
        first = next(iter(arrays))
        if len(arrays[first]) != len(arrays[name]):
            raise ValueError(
                f"column {first!r} has {len(arrays[first])} rows but column {name!r} has "
                f"{len(arrays[name])}; all columns must describe the same rows"
            )
    return pa.table(arrays)


def _array(name, values):
    """Return the values of a column as an Arrow array."""
    try:
        if hasattr(values, "to_arrow"):  # polars
            return values.to_arrow()
        if getattr(values, "ndim", 1) == 2:
            values = list(values)
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        row = _bad_row(values)
        raise ValueError(
            f"column {name!r}, row {row}: {values[row] if row < len(values) else ''!r:.60} does "
            f"not go with the values before it, or is not valid text ({error}); make all values of "
            f"the column of one type"
        ) from error


def _bad_row(values):
    """Return the first row that an array cannot hold beside the ones before it."""
    values = list(values)
    low, high = 0, len(values)  # the first `low` rows are fine, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pa.array(values[:middle], from_pandas=True)
            low = middle
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            high = middle
    return high - 1


def column(table, name, view):
    """Return one column in one piece; raise unless there is exactly one."""
    places = table.schema.get_all_field_indices(name)
    if len(places) != 1:
        what = f"{len(places)} columns" if places else "no column"
        raise ValueError(
            f"view {view!r}: there is {what} {name!r} in the table, which has "
            f"{first_few(map(repr, table.column_names)) or 'no columns'}"
        )
    array = table.column(places[0]).combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of a table without rows, in older versions
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"view {view!r}, column {name!r} is damaged: {error}") from error
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    usual = _usual(array.type)
    return array if usual == array.type else array.cast(usual)


def is_text(kind):
    """Tell if a type of Arrow is text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_view(kind, "string")


def is_list(kind):
    """Tell if a type of Arrow is a list."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in lists)


def advice(name, kind):
    """Say how to make a view of a column of some type of Arrow."""
    if is_text(kind):
        return f"write '{name}'"
    if pa.types.is_temporal(kind):
        return "leave it out"
    if not is_list(kind):
        return f"write '{name}:number'"
    if _nameable(kind.value_type):
        return f"write '{name}:list'"
    return f"write '{name}:vector'" if pa.types.is_floating(kind.value_type) else "leave it out"


def read_text(table, names, view):
    """Return columns of text, joined by line breaks; null where a row has none."""
    arrays = []
    for name in names:
        array = column(table, name, view)
        kind = array.type
        if not is_text(kind) and not pa.types.is_null(kind):
            raise ValueError(
                f"view {view!r}: column {name!r} is not text but {kind}; {advice(name, kind)}, or "
                f"make it text"
            )
        arrays.append(array.cast(pa.large_string()))
    if len(arrays) == 1:
        return arrays[0]
    breaks = pa.scalar("\n", pa.large_string())
    gone = reduce(pc.and_, map(pc.is_null, arrays))
    # Some versions of pyarrow leave out the rows in which all are null.
    arrays[0] = pc.if_else(gone, "", arrays[0])
    joined = pc.binary_join_element_wise(*arrays, breaks, null_handling="skip")
    return pc.if_else(gone, None, joined)


def with_separator(table, spec, view):
    """Return the spec of a view; of a list as text with what is between its items, if unusual."""
    return with_separator_of([table], spec, view)


def with_separator_of(parts, spec, view):
    """Return the same for a table that comes in parts, which can be gone through twice."""
    if spec["kind"] not in ("list", "inbound") or "between" in spec:
        return spec
    texts = _Texts(parts, spec["columns"][0], view)
    found = between_parts(texts) if texts.are_there else USUAL
    return spec if found == USUAL else spec | {"between": found}


class _Texts:
    """The cells of a column of text, one part after the other."""

    def __init__(self, parts, name, view):
        self._parts, self._name, self._view = parts, name, view

    @property
    def are_there(self):
        """Whether the column is text."""
        return is_text(column(next(iter(self._parts)), self._name, self._view).type)

    def __iter__(self):
        return (column(part, self._name, self._view).to_pylist() for part in self._parts)


def read_items(table, name, view, separator=USUAL):
    """Return the items of a list column as starts of the rows and an array of text.

    A list is one of Arrow, or text with items between ``|`` or ``;`` or what `separator` says, or a
    JSON list. Items that are null or empty are left out.
    """
    array = column(table, name, view)
    if is_text(array.type):
        rows = [split(text, separator) for text in array.to_pylist()]
        array = pa.array(rows, pa.large_list(pa.large_string()))
    elif pa.types.is_null(array.type):
        array = array.cast(pa.large_list(pa.large_string()))
    elif pa.types.is_integer(array.type):
        rows = [None if i is None else [i] for i in array.to_pylist()]
        array = pa.array(rows, pa.list_(array.type))
    kind = array.type
    if not is_list(kind) or not _nameable(kind.value_type):
        raise ValueError(
            f"view {view!r}: column {name!r} holds {kind}, no lists of names; give lists of text "
            f"or of whole numbers, or text with items between | or ;, or {advice(name, kind)}"
        )
    return _flat(array)


def read_categories(table, names, view):
    """Return a category of every row as a list of one item; of several columns, "column=value"."""
    columns = [_categories(column(table, name, view), name, view) for name in names]
    if len(names) > 1:
        pairs = zip(names, columns, strict=True)
        columns = [[v and f"{name}={v}" for v in values] for name, values in pairs]
    rows = [[value for value in row if value] for row in zip(*columns, strict=True)]
    return _flat(pa.array(rows, pa.large_list(pa.large_string())))


def _categories(array, name, view):
    """Return the values of a column as text; None where there is none."""
    kind = array.type
    if pa.types.is_floating(kind):
        kind = pa.list_(kind) if _has_fractions(array) else pa.int64()
    if is_list(kind) or pa.types.is_nested(kind) or pa.types.is_temporal(kind):
        raise ValueError(
            f"view {view!r}: column {name!r} holds {array.type} and not categories; "
            f"{advice(name, array.type)}"
        )
    try:
        texts = array.cast(kind).cast(pa.large_string()).to_pylist()
    except pa.ArrowInvalid as error:  # of bytes, which may be text
        raise ValueError(
            f"view {view!r}: column {name!r} holds bytes that are not text; leave it out, or make "
            "it text"
        ) from error
    return [text and text.strip() for text in texts]


def _has_fractions(array):
    """Tell if any number is not whole, or is larger than whole numbers can be."""
    values = array.drop_null()
    small = pc.less(pc.abs(values), 2.0**63)
    whole = pc.and_(small, pc.equal(values, pc.round(values)))
    return not pc.all(whole, min_count=0).as_py()


def _flat(array):
    """Return lists as starts of the rows and an array of the items that are not empty."""
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(array)), sizes)
    words = array.flatten().cast(pa.large_string())
    there = pc.fill_null(pc.greater(pc.binary_length(words), 0), False)
    owners = owners[there.to_numpy(zero_copy_only=False)]
    starts = np.searchsorted(owners, np.arange(len(array) + 1))
    return starts.astype(np.int64), words.filter(there)


def _nameable(kind):
    """Tell if values of a type can be the names of features."""
    return is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)


def read_ids(table, name, view):
    """Return the ids of the rows as text; None where there is none."""
    array = column(table, name, view)
    if not _nameable(array.type):
        raise ValueError(
            f"view {view!r}: the ids in column {name!r} are {array.type}; make them text or whole "
            f"numbers"
        )
    return array.cast(pa.large_string()).to_pylist()


def strings(array):
    """Return an array of `large_string` without nulls as the kernels take it; nothing is copied."""
    _, offsets, data = array.buffers()
    # Arrow may leave out the buffers of an empty array.
    whole = np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, np.int64)
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Strings(whole[array.offset : array.offset + len(array) + 1], bytes_)


def from_strings(words, kept):
    """Return some strings of the kernels as an object array of str."""
    buffers = [None, pa.py_buffer(words.offsets), pa.py_buffer(words.data)]
    array = pa.Array.from_buffers(pa.large_string(), len(words.offsets) - 1, buffers)
    return np.array(array.take(pa.array(kept)).to_pylist(), dtype=object)


def to_strings(words):
    """Return a sequence of str as the kernels take it."""
    return strings(pa.array(list(words), pa.large_string()))
