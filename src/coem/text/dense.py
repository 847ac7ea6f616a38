"""Dense views: from columns of numbers, from columns of vectors, and from arrays in files."""

import json
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.lib.format as npy
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from coem.io.numbers import MISSING, could_be_number
from coem.sparse import sound_csr
from coem.text._tables import advice, column, is_list, is_text
from coem.views import RowError


def read_numbers(table, names, view):
    """Return columns of numbers as a float64 matrix, with NaN where a number is missing."""
    X = np.column_stack([_numbers(column(table, name, view), name, view) for name in names])
    _check_finite(X, view)
    return X


def _numbers(array, name, view):
    """Return one column as float64, with NaN where a value is missing."""
    kind = array.type
    if is_text(kind):
        trimmed = pc.utf8_trim_whitespace(array)
        array = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    elif not any(check(kind) for check in _NUMBERS):
        raise ValueError(
            f"view {view!r}: column {name!r} holds {kind} and not numbers; {advice(name, kind)}"
        )
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    try:
        array = array.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid as error:
        raise _no_number(array.to_pylist(), name, view) from error
    return array.to_numpy(zero_copy_only=False)  # null becomes NaN


def _no_number(values, name, view):
    """Return the error about the first value that keeps a column of text from being numbers."""
    odd = [i for i, value in enumerate(values) if not _is_number(value)]
    row = next((i for i in odd if not could_be_number(values[i])), None)
    if row is not None:
        what = "is not a number; write it as 1234.5, or leave it empty if it is missing"
        return RowError(view, row, f": {values[row]!r:.60} in column {name!r} {what}")
    row = next((i for i in odd if values[i] not in MISSING), odd[0])
    what = (
        "is not written like the other numbers; write all as 1234.5, and leave missing ones empty"
    )
    return RowError(view, row, f": {values[row]!r:.60} in column {name!r} {what}")


_NUMBERS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_null,
)


def _is_number(value):
    try:
        return value is None or pa.scalar(value).cast(pa.float64()) is not None
    except pa.ArrowInvalid:
        return False


def read_vectors(table, name, view):
    """Return a column of lists of numbers as a matrix. A row without a list becomes a row of NaN.

    If no row has a list, the matrix has no columns.
    """
    array = column(table, name, view)
    if pa.types.is_null(array.type):
        array = array.cast(pa.list_(pa.float64()))
    if is_text(array.type):
        array = _from_json(array, name, view)
    if not is_list(array.type) or not any(check(array.type.value_type) for check in _NUMBERS):
        raise ValueError(
            f"view {view!r}: column {name!r} holds {array.type}, no lists of numbers; "
            f"{advice(name, array.type)}"
        )
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    there = sizes > 0
    width = int(sizes.max(initial=0))
    if (sizes[there] != width).any():
        row = int((there & (sizes != sizes[there][0])).argmax())
        raise RowError(
            view,
            row,
            f" has {sizes[row]} numbers in column {name!r}, the rows before have "
            f"{sizes[there][0]}; vectors must be of one length",
        )
    values = array.flatten()
    half = pa.types.is_float32(values.type) or pa.types.is_float16(values.type)
    values = values.cast(pa.float32() if half else pa.float64(), safe=False)
    X = np.full((len(array), width), np.nan, np.float32 if half else np.float64)
    X[there] = values.to_numpy(zero_copy_only=False).reshape(int(there.sum()), width)
    gaps = there & np.isnan(X).any(axis=1)
    if gaps.any():
        row = int(gaps.argmax())
        raise RowError(
            view,
            row,
            f": a number is missing in the vector of column {name!r}; leave the whole vector out, "
            "or fill the gap",
        )
    _check_finite(X, view)
    return X


def _from_json(array, name, view):
    """Return a column of JSON texts as a column of lists of numbers."""
    rows = []
    for row, text in enumerate(array.to_pylist()):
        try:
            values = json.loads(text) if text and text.strip() else None
            if not isinstance(values, list | None):  # text and objects have items, too
                raise TypeError("no list")
            rows.append(None if values is None else [float(value) for value in values])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RowError(
                view,
                row,
                f": {text!r:.60} in column {name!r} is not a JSON list of numbers; "
                "write [0.5, -1.2]",
            ) from error
    return pa.array(rows, pa.list_(pa.float64()))


def read_array(source, n_rows, view):
    """Return an array of numbers that has one row per row of a table.

    Parameters
    ----------
    source : array, sparse matrix, or path of a .npy file
    n_rows : int
        The number of rows of the table.
    view : str
        The name of the view, for error messages.

    Returns
    -------
    array : ndarray or sparse matrix of shape (n_rows, n_columns)
    """
    where = "the array"
    if isinstance(source, str | PathLike):
        where = str(source)
        source = _load(Path(source), view)
    source = sound_csr(source, f"view {view!r}: ") if sp.issparse(source) else np.asarray(source)
    if source.ndim != 2 or source.dtype.kind not in "biuf" or 0 in source.shape:
        raise ValueError(
            f"view {view!r}: {where} must hold numbers in two dimensions, and has shape "
            f"{source.shape} and dtype {source.dtype}"
        )
    if source.shape[0] != n_rows:
        raise ValueError(
            f"view {view!r}: {where} has {source.shape[0]} rows, the table {n_rows}; an array "
            f"belongs to one table. For parts of it or other tables, make the vectors a column and "
            f"write 'COLUMN:vector'"
        )
    return source


def _load(path, view):
    """Return the array of a .npy file, which must be as large as it says before it is read."""
    if path.exists() and not path.is_file():  # a device may never end
        raise ValueError(f"view {view!r}: {path} is not a file")
    try:
        with open(path, "rb"):  # so that a missing file is not called damaged
            pass
        return np.array(npy.open_memmap(path, mode="r"))
    except FileNotFoundError:
        raise FileNotFoundError(f"view {view!r}: there is no file {path}") from None
    except OSError as error:
        raise ValueError(
            f"view {view!r}: {path} cannot be read ({error.strerror or error})"
        ) from error
    except Exception as error:  # whatever the bytes of a stranger make NumPy say
        raise ValueError(
            f"view {view!r}: {path} is no .npy file of numbers; write it with numpy.save"
        ) from error


def _check_finite(X, view):
    """Raise unless all numbers are finite or NaN."""
    infinite = np.isinf(X).any(axis=1)
    if infinite.any():
        raise RowError(view, int(infinite.argmax()), " has an infinite number; leave it out")
