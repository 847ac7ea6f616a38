"""The sequences that a user passes: their rows, lengths, labels and weights, checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels.chain import ImpossibleSequence
from coem.typing import Array, is_sparse
from coem.views import Views, as_views


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
    if not _is_list_of_sequences(X):
        return X, _offsets(lengths, None if lengths is None else _n_rows(X), X)
    if lengths is not None:
        raise ValueError(
            "X is a list of sequences, which have lengths of their own: leave lengths out (for "
            "several views of all rows, pass Views)"
        )
    if isinstance(X[0], Views | dict):
        parts = [_named(part, s) for s, part in enumerate(X)]
        sizes = [len(part) for part in parts]
        stacked = {n: _stacked([p[n] for p in parts], f", view {n!r}") for n in parts[0].names}
        return Views(stacked), _offsets(sizes, sum(sizes), None)
    return _stacked(X, ""), _offsets([_n_rows(part) for part in X], None, None)


def _is_list_of_sequences(X: Any) -> bool:
    """Return True if `X` is a list whose items have rows and columns."""
    if not isinstance(X, list | tuple) or not X:
        return False
    first = X[0]
    return (
        isinstance(first, Views | dict)
        or len(getattr(first, "shape", ())) == 2
        or (isinstance(first, list | tuple) and len(first) > 0 and np.ndim(first[0]) == 1)
    )


def _named(part: Any, s: int) -> Views:
    if not isinstance(part, Views | dict):
        raise ValueError(f"sequence {s}: it is a {type(part).__name__}, and the first has views")
    return as_views(part)


def _n_rows(X: Any) -> int:
    if isinstance(X, dict):
        return len(as_views(X))
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _stacked(parts: Sequence[Any], where: str) -> Any:
    """Return the rows of all parts; raise unless they have the same columns."""
    parts = [part if is_sparse(part) or sp.issparse(part) else np.asarray(part) for part in parts]
    for s, part in enumerate(parts):
        if part.ndim != 2:
            raise ValueError(f"sequence {s}{where}: it must have rows and columns (two dimensions)")
        if part.shape[1] != parts[0].shape[1]:
            raise ValueError(
                f"sequence {s}{where}: it has {part.shape[1]} columns, and the first sequence has "
                f"{parts[0].shape[1]}"
            )
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _offsets(lengths: Any, n_rows: int | None, X: Any) -> Array:
    """Return where sequences begin; raise unless their lengths make sense."""
    if lengths is None:
        return np.array([0, _n_rows(X)], dtype=np.int64)
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.size == 0 or (sizes != np.floor(sizes)).any():
        raise ValueError("lengths must be a list of whole numbers, one per sequence")
    if sizes.min() < 1:
        s = int(np.argmax(sizes < 1))
        raise ValueError(
            f"sequence {s} has length {sizes[s]}; leave it out (all lengths must be 1 or more)"
        )
    if n_rows is not None and sizes.sum() != n_rows:
        raise ValueError(_misfit(sizes, n_rows))
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _misfit(sizes: Array, n_rows: int) -> str:
    """Return the message for lengths that do not add up to the rows."""
    total = int(sizes.sum())
    text = f"lengths add up to {total}, but X has {n_rows} rows"
    if total > n_rows:
        s = int(np.argmax(np.cumsum(sizes) > n_rows))
        return f"{text}: sequence {s} ends after the last row"
    return f"{text}: {n_rows - total} rows come after sequence {len(sizes) - 1}, the last one"


def read_states(y: Any, offsets: Array, k: int) -> Array | None:
    """Return which states every row may have, (n, k) of bool, or None if no row has a label.

    `y` has the state of each row, or -1 (or NaN) for a row without a label: one array for all rows,
    or a list with one array per sequence.
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
    return np.asarray(unknown[:, np.newaxis] | (states[:, np.newaxis] == np.arange(k)))


def _labels(y: Any, offsets: Array) -> Array:
    """Return the labels of all rows as one array; raise unless there is one per row."""
    if isinstance(y, list | tuple) and len(y) > 0 and np.ndim(y[0]) == 1:
        sizes = np.diff(offsets)
        if len(y) != len(sizes):
            raise ValueError(f"y has {len(y)} sequences, and X has {len(sizes)}")
        for s, (own, size) in enumerate(zip(y, sizes, strict=True)):
            if len(own) != size:
                raise ValueError(f"sequence {s}: y has {len(own)} labels for {size} rows")
        y = np.concatenate([np.asarray(own) for own in y])
    try:
        states = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must hold the numbers of states, and -1 where none is known") from None
    if states.shape != (offsets[-1],):
        raise ValueError(
            f"y must have one label per row, shape ({offsets[-1]},), got {states.shape}"
        )
    return states


def read_weights(weights: Any, n_sequences: int) -> Array | None:
    """Return the weights of the sequences in float64, or None if all are one."""
    if weights is None:
        return None
    found = np.asarray(weights, dtype=np.float64)
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
