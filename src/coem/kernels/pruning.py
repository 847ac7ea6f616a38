"""Bounds of the scores of rows, by which most of many components are left out.

A row's score of a component is the product of its counts with the component's table, so it rises by
no more than the sum of the counts times the largest rise of a cell. What a bound rules out needs no
score. Components are scored eight at a time, by the steps of `counts.scores`, to the same bits.
"""

import numpy as np

from coem.kernels import _compiled, threads
from coem.kernels.counts import WORDS, memory_of, new_table
from coem.kernels.row_lists import RowLists
from coem.kernels.summing import LANES, csr_arrays
from coem.typing import CSR, Array


def new_bounds(n_rows: int, n_components: int) -> tuple[Array, Array]:
    """Return levels (n,) and gaps (n, k rounded up to eight), to be set."""
    width = -(-n_components // LANES) * LANES
    gaps = np.empty((n_rows, width), dtype=np.uint16)
    gaps[:, n_components:] = 0
    return np.empty(n_rows), gaps


def set_bounds(scores: Array, level: Array, gaps: Array, columns: Array | None = None) -> None:
    """Set the bounds of rows to scores (n, m), rounded up to 16 bits below the level of the row.

    Without `columns`, the levels become the largest scores. With them (m,), only the bounds of
    these components are set.
    """
    chosen = None if columns is None else np.ascontiguousarray(columns, dtype=np.int32)
    _compiled.set_bounds(np.ascontiguousarray(scores), chosen, level, gaps)


def rises(before: Array, after: Array) -> Array:
    """Return by how much the cells of each component rose at most between two tables, (k,)."""
    k, n_features = before.shape
    old, new = memory_of(before), memory_of(after)

    def work(lo: int) -> Array:
        rise = np.empty(k, dtype=before.dtype)
        _compiled.rises(old, new, lo, min(lo + WORDS, n_features), rise)
        return rise

    parts = threads.spread(work, range(0, n_features, WORDS))
    return np.max(parts, axis=0).astype(np.float64) if parts else np.zeros(k)


def some_components(table: Array, columns: Array) -> Array:
    """Return a table of some components of a table."""
    part = new_table(len(columns), table.shape[1], table.dtype)
    cells, source = part.T, table.T

    def work(lo: int) -> None:
        np.take(source[lo : lo + WORDS], columns, axis=1, out=cells[lo : lo + WORDS], mode="clip")

    threads.spread(work, range(0, table.shape[1], WORDS))
    return part


def chances(
    X: CSR,
    table: Array,
    log_weights: Array,
    bounds: tuple[Array, Array],
    rise: Array,
    reach: float,
    *,
    allowed: Array | None = None,
    blank: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Return which components can matter to rows, eight at a time, and their log joints.

    These are all whose score plus log weight is within `reach` of the largest of the row, and
    those that share a vector of eight with one of them.

    Parameters
    ----------
    X : CSR matrix of shape (n, n_features), not negative
        The rows.
    table : table of shape (k, n_features)
        The parameters.
    log_weights : array of shape (k,)
        What is added to the scores.
    bounds : levels and gaps of the rows, as of `set_bounds`
        Bounds of the scores under an earlier table.
    rise : array of shape (k,)
        By how much the cells of each component rose at most since that table.
    reach : float
        How far behind the largest a component can still matter.
    allowed : bool array of shape (n, k), optional
        Which components a row may belong to.
    blank : bool array of shape (n,), optional
        Rows that count as empty.

    Returns
    -------
    offsets : int64 array of shape (n + 1,)
        Row `i` has the entries from ``offsets[i]`` to ``offsets[i + 1]``.
    units : int32 array
        For each entry the number of eight components, in order within a row.
    joint : float64 array of shape (len(units), 8)
        Their scores plus log weights; -inf beyond the last component, and where it is not allowed.
    """
    level, gaps = bounds
    n = X.shape[0]
    csr, memory = csr_arrays(X, table.shape[1]), memory_of(table)
    may, no_counts = _mask(allowed), _mask(blank)
    weights = np.ascontiguousarray(log_weights, dtype=np.float64)
    offsets, done, units, joint = np.zeros(n + 1, np.int64), 0, None, None
    room = 2 * n + gaps.shape[1] // LANES
    while done < n:
        more = np.empty(room, np.int32), np.empty((room, LANES))
        if units is not None and joint is not None:
            more[0][: len(units)], more[1][: len(units)] = units, joint
        units, joint = more
        done = _compiled.chances(
            *csr,
            memory,
            rise,
            weights,
            may,
            no_counts,
            reach,
            level,
            gaps,
            done,
            offsets,
            units,
            joint,
        )
        room = 2 * room
    if units is None or joint is None:
        return offsets, np.empty(0, np.int32), np.empty((0, LANES))
    return offsets, units[: offsets[-1]], joint[: offsets[-1]]


def near(joint: Array, reach: float, room: int) -> tuple[Array, Array, Array] | None:
    """Return what `chances` returns, without components out of reach, from all log joints (n, k).

    The log joint of a component that is further than `reach` behind the best of its row is -inf.
    Return None if there are more than `room` entries.
    """
    offsets = np.empty(len(joint) + 1, np.int64)
    units = np.empty(room, np.int32)
    found = threads.recycled(room * LANES, np.float64, "near").reshape(room, LANES)
    if not _compiled.near(joint, reach, offsets, units, found):
        return None
    return offsets, units[: offsets[-1]], found[: offsets[-1]]


def list_rows(resp: Array) -> RowLists:
    """Return responsibilities (n, k) as lists of those that are not zero."""
    n, k = resp.shape
    offsets = np.empty(n + 1, np.int64)
    components = threads.recycled(n * k, np.int32, "components")
    values = threads.recycled(n * k, resp.dtype, "values")
    _compiled.list_rows(resp, offsets, components, values)
    return RowLists(offsets, components[: offsets[-1]].copy(), values[: offsets[-1]].copy(), k)


def _mask(values: Array | None) -> Array | None:
    """Return a bool array in the form that kernels take."""
    return None if values is None else np.ascontiguousarray(values).view(np.uint8)
