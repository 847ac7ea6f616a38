"""The sequences that a user passes: their rows, lengths, labels and weights, checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels.chain import ImpossibleSequence
from coem.sparse import sound_csr
from coem.typing import Array
from coem.views import RowError, Views, as_views


def read_sequences(X: Any, lengths: Any) -> tuple[Any, Array]:
    """Return the rows of all sequences together, and where the sequences begin.

    Parameters
    ----------
    X : matrix or Views, or list of them
        All rows, or one matrix, dict or `Views` per sequence.
    lengths : array-like of int, optional
        Number of rows of each sequence, if `X` has all rows. By default there is one sequence.

    Returns
    -------
    X : matrix or Views
        All rows.
    offsets : ndarray of shape (n_sequences + 1,), int64
        Where the sequences begin, from 0 to the number of rows.
    """
    if not is_list_of_sequences(X):
        return X, _offsets(lengths, None if lengths is None else _n_rows(X), X)
    if lengths is not None:
        raise ValueError(
            "X is a list of sequences, which have lengths of their own: leave lengths out (for "
            "several views of all rows, pass Views)"
        )
    offsets = _offsets([_n_rows(part) for part in X], None, None)
    if not _has_views(X[0]):
        return _stacked(X, ""), offsets
    parts = [_named(part, s, X[0]) for s, part in enumerate(X)]
    names = list(parts[0])
    return Views({n: _stacked([p[n] for p in parts], f", view {n!r}") for n in names}), offsets


def is_list_of_sequences(X: Any) -> bool:
    """Return True if `X` is a list, and an item of it has rows and columns, or views."""
    return isinstance(X, list | tuple) and any(map(_is_sequence, X))


def _is_sequence(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return len(item) > 0 and _is_array_like(item[0])
    return _has_views(item) or len(getattr(item, "shape", ())) == 2


def _is_array_like(item: Any) -> bool:
    sized = hasattr(item, "__len__") and not isinstance(item, str)
    return sized and getattr(item, "ndim", 1) > 0


def _has_views(part: Any) -> bool:
    return isinstance(part, Views | dict) and not sp.issparse(part)


def _named(part: Any, s: int, first: Any) -> dict[str, Any]:
    """Return the views of a sequence; raise unless they are those of the first one."""
    if not _has_views(part):
        raise ValueError(f"sequence {s}: it is a {type(part).__name__}, and the first has views")
    matrices, names = dict(part.items()), [name for name, _ in first.items()]
    if set(matrices) != set(names):
        raise ValueError(
            f"sequence {s}: it has the views {list(matrices)}, and the first sequence has {names}"
        )
    as_views(matrices, what=f"sequence {s}")  # all views must have the same rows
    return matrices


def _n_rows(X: Any) -> int:
    if _has_views(X):
        return min((_n_rows(matrix) for _, matrix in X.items()), default=0)
    return int(X.shape[0]) if len(getattr(X, "shape", ())) > 0 else len(X)


def _stacked(parts: Sequence[Any], where: str) -> Any:
    """Return the rows of all parts; raise unless they have the same columns."""
    found = [_matrix(part, f"sequence {s}{where}") for s, part in enumerate(parts)]
    columns = _columns(parts[0])
    for s, (part, matrix) in enumerate(zip(parts, found, strict=True)):
        if matrix.shape[1] != found[0].shape[1]:
            raise ValueError(
                f"sequence {s}{where}: it has {matrix.shape[1]} columns, and the first sequence "
                f"has {found[0].shape[1]}"
            )
        if _columns(part) != columns:
            raise ValueError(
                f"sequence {s}{where}: its columns are {_listed(_columns(part))}, and those of the "
                f"first sequence are {_listed(columns)}; give all of them the same names and order"
            )
    if not any(map(sp.issparse, found)):
        return np.concatenate(found)
    return sp.vstack([_sparse(part, s, where) for s, part in enumerate(found)], format="csr")


def _matrix(part: Any, label: str) -> Any:
    """Return a sequence as a matrix, sparse if it is so; raise unless it has two dimensions."""
    if _has_views(part):
        raise ValueError(f"{label}: it has views, and the first sequence is one matrix")
    if sp.issparse(part):
        return sound_csr(part, f"{label}: ")
    try:
        matrix = np.asarray(part)
    except ValueError:
        raise ValueError(f"{label}: its rows do not have the same number of columns") from None
    if matrix.ndim != 2:
        raise ValueError(f"{label}: it must have rows and columns (two dimensions)")
    return matrix


def _sparse(matrix: Any, s: int, where: str) -> Any:
    try:
        return matrix if sp.issparse(matrix) else sp.csr_matrix(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sequence {s}{where}: it must hold numbers") from None


def _columns(part: Any) -> list[Any] | None:
    """Return the names of the columns of a table, or None if it has no names."""
    names = getattr(part, "column_names", getattr(part, "columns", None))
    return None if names is None else list(names)


def _listed(columns: list[Any] | None) -> str:
    return "without names" if columns is None else str(columns)


def _offsets(lengths: Any, n_rows: int | None, X: Any) -> Array:
    """Return where sequences begin; raise unless their lengths make sense."""
    if lengths is None:
        return np.array([0, _n_rows(X)], dtype=np.int64)
    sizes = _numbers(lengths)
    if sizes is None or sizes.ndim != 1 or sizes.size == 0 or (sizes != np.floor(sizes)).any():
        raise ValueError("lengths must be a list of whole numbers, one per sequence")
    if sizes.min() < 1:
        s = int(np.argmax(sizes < 1))
        raise ValueError(
            f"sequence {s} has length {sizes[s]:g}; leave it out (all lengths must be 1 or more)"
        )
    if n_rows is not None and sizes.sum() != n_rows:
        raise ValueError(_misfit(sizes, n_rows))
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _numbers(values: Any) -> Array | None:
    """Return real and finite numbers as an array, or None if they are anything else."""
    try:
        found = np.asarray(values)
    except ValueError:  # lists of several lengths
        return None
    return found if found.dtype.kind in "iuf" and np.isfinite(found).all() else None


def _misfit(sizes: Array, n_rows: int) -> str:
    """Return the message for lengths that do not add up to the rows."""
    total = int(sizes.sum())
    text = f"lengths add up to {total}, but X has {n_rows} rows"
    if total > n_rows:
        s = int(np.argmax(np.cumsum(sizes) > n_rows))
        return f"{text}: sequence {s} ends after the last row"
    return f"{text}: {n_rows - total} rows come after sequence {len(sizes) - 1}, the last one"


def read_states(y: Any, offsets: Array, k: int) -> Array | None:
    """Return which states every row may have, (n, k) of bool, or None if no row has a label."""
    codes = read_codes(y, offsets, k)
    return None if codes is None else choices_of_codes(k)[codes]


def choices_of_codes(k: int) -> Array:
    """Return which states the codes of `read_codes` allow, (k + 1, k) of bool."""
    return np.vstack([np.eye(k, dtype=bool), np.ones((1, k), dtype=bool)])


def read_codes(y: Any, offsets: Array, k: int) -> Array | None:
    """Return the state of every row, `k` for a row without a label; None if no row has one.

    `y` has the state of each row, or -1 (or NaN) for a row without a label: one array for all rows,
    or a list with one array per sequence, which is None if no row of it has a label.
    """
    if y is None:
        return None
    states = _labels(y, offsets)
    unknown = np.isnan(states) | (states == -1)
    wrong = ~unknown & ~np.isin(states, np.arange(k))
    if wrong.any():
        row = int(np.argmax(wrong))
        s = int(np.searchsorted(offsets, row, side="right")) - 1
        raise ValueError(
            f"sequence {s}, row {row - offsets[s]} (row {row} of y): the label {states[row]:g} is "
            f"not a state; states are 0 to {k - 1}, and -1 means no label"
        )
    if unknown.all():
        return None
    return np.where(unknown, k, states).astype(np.int32)


def _labels(y: Any, offsets: Array) -> Array:
    """Return the labels of all rows as numbers; raise unless there is one per row."""
    labels = one_per_row(y, offsets, "fit")
    try:
        states = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold the numbers of states, and -1 where none is known") from None
    if states.ndim != 1:
        raise ValueError(
            f"y must have one label per row, shape ({offsets[-1]},), got {states.shape}"
        )
    return states


def one_per_row(y: Any, offsets: Array, method: str) -> Any:
    """Return the labels of all rows, which may be a list with one array per sequence.

    Raise unless there is one label per row. In hmmlearn, the second argument are lengths: the
    error says how to pass them to `method`.
    """
    labels = _joined(y, offsets)
    shape = np.shape(labels)
    if shape[:1] != (offsets[-1],):
        raise ValueError(
            f"y must have one label per row, shape ({offsets[-1]},), got {shape}; if these are "
            f"lengths of sequences, write {method}(X, lengths=...)"
        )
    return labels


def _joined(y: Any, offsets: Array) -> Any:
    """Return the labels of a list with one array per sequence as one array, else `y` itself.

    None in the place of an array means that a sequence has no labels.
    """
    sizes = np.diff(offsets)
    if not isinstance(y, list | tuple) or not _is_list_of_labels(y, len(sizes)):
        return y
    if len(y) != len(sizes):
        raise ValueError(f"y has {len(y)} sequences, and X has {len(sizes)}")
    parts = []
    for s, (given, size) in enumerate(zip(y, sizes, strict=True)):
        own = np.full(size, -1) if given is None else _one_dimensional(given, s)
        if len(own) != size:
            raise ValueError(f"sequence {s}: y has {len(own)} labels for {size} rows")
        parts.append(own)
    return np.concatenate(parts)


def _is_list_of_labels(y: Sequence[Any], n_sequences: int) -> bool:
    """Return True if `y` has an array per sequence, or None for some sequences."""
    nothing = len(y) == n_sequences and all(own is None for own in y)
    return nothing or any(map(_is_array_like, y))


def _one_dimensional(given: Any, s: int) -> Array:
    try:
        own = np.asarray(given)
    except ValueError:
        own = np.empty((0, 0))
    if own.ndim != 1:
        raise ValueError(f"sequence {s}: y must have one label per row (one dimension), or be None")
    return own


def read_weights(weights: Any, n_sequences: int) -> Array | None:
    """Return the weights of the sequences in float64, or None if all are one."""
    if weights is None:
        return None
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sequence_weight must hold numbers, one per sequence") from None
    if found.shape != (n_sequences,):
        raise ValueError(
            f"sequence_weight must have one number per sequence, shape ({n_sequences},), got "
            f"{found.shape}"
        )
    wrong = ~np.isfinite(found) | (found < 0)
    if wrong.any():
        s = int(np.argmax(wrong))
        raise ValueError(f"sequence {s}: the weight {found[s]} is not finite, or below 0")
    if not found.any():
        raise ValueError("sequence_weight is 0 for every sequence")
    return found


@contextmanager
def naming_sequences(offsets: Array) -> Iterator[None]:
    """Make errors that name a row of all rows also name its sequence, if there are several."""
    try:
        yield
    except RowError as error:
        if len(offsets) < 3:
            raise
        view, row, text, before = error.args
        s = int(np.searchsorted(offsets, row, side="right")) - 1
        before = f"{before}row {row - offsets[s]} of sequence {s}: "
        raise RowError(view, row, text, before) from None


@contextmanager
def naming_impossible() -> Iterator[None]:
    """Say what can be done about a sequence that the model cannot explain."""
    try:
        yield
    except ImpossibleSequence as error:
        raise ValueError(
            f"sequence {error.sequence}: every path through the states has probability zero. "
            "Zeros in startprob or transmat, labels in y, or rows that no state can emit forbid "
            "it: allow more transitions, correct the labels, or leave the sequence out"
        ) from None
