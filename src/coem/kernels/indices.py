"""What an index of a table means, by the rules of NumPy."""

from typing import Any, TypeAlias, TypeGuard

import numpy as np

from coem.typing import Array

ALL = slice(None)

Index: TypeAlias = slice | Array
"""What selects components or words: a slice, or an array of integers."""


def axes(key: Any, shape: tuple[int, int]) -> tuple[Index, Index]:
    """Return which components and which words an index means; raise if they are not there.

    Masks become integers, and negative integers what they mean. A mask of all cells becomes pairs.
    """
    keys = [_index(one) for one in (key if isinstance(key, tuple) else (key,))]
    first = keys[0] if len(keys) == 1 else ALL
    if _is_mask(first) and first.ndim == 2:
        if first.shape != shape:
            raise IndexError(f"a mask of shape {first.shape} for a table {shape}")
        keys = list(np.nonzero(first))
    if len(keys) > 2:
        raise IndexError(f"a table has 2 axes, and there are {len(keys)} indices")
    rows, words = (*keys, ALL, ALL)[:2]
    return _known(rows, shape[0], "component"), _known(words, shape[1], "feature")


def _index(key: Any) -> Index:
    """Return an index as a slice, or as an array of integers or booleans; raise otherwise."""
    if isinstance(key, slice):
        return key
    try:
        found = np.asarray(key)
    except ValueError:  # lists of different lengths
        found = np.asarray(None)
    if not found.size and isinstance(key, list | tuple):
        return found.astype(np.intp)  # NumPy takes it for floats
    if found.dtype.kind not in "iub" or (_is_mask(found) and not found.ndim):
        got = f"an array of {found.dtype}" if found.ndim else f"{key!r:.80}"
        raise IndexError(
            "a sparse table takes integers, slices, arrays of integers and masks as indices, "
            f"got {got}"
        )
    return found


def _is_mask(key: Index) -> TypeGuard[Array]:
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


def _known(key: Index, n: int, what: str) -> Index:
    """Return an index without masks and negative integers; raise if one of `n` is not there."""
    if isinstance(key, slice):
        return key
    if _is_mask(key):
        if key.shape != (n,):
            raise IndexError(f"a mask of shape {key.shape} for {n:,} {what}s")
        return np.flatnonzero(key)
    for number in (int(key.min()), int(key.max())) if key.size else ():
        if not -n <= number < n:
            raise IndexError(f"{what} {number} is not there; the table has {n:,} {what}s")
    key = key.astype(np.intp)
    return np.where(key < 0, key + n, key)


def places_of(key: Index, n: int) -> Array:
    """Return the places that an index means, of `n`, as an array."""
    return np.arange(*key.indices(n)) if isinstance(key, slice) else key
