"""Sparse rows times tables of components.

A *table* is an array of shape (n_components, n_features) whose memory holds the components of one
feature side by side, with a few spare cells at the end so that whole vectors can be read;
`new_table` makes one. Any other array of that shape is packed first, at the cost of a copy.
"""

from typing import Any

import numpy as np

from coem.kernels import _compiled, threads
from coem.kernels.summing import LANES, Rows, csr_arrays
from coem.typing import CSR, Array, Resp

TASK = 16  # components with few words that one task takes: their cells share a cache line
WORDS = 16384  # features that one task of a table-wide job takes
LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))  # what log(0) is taken to be, about -708


def new_table(n_components: int, n_features: int, dtype: Any) -> Array:
    """Return a table to be filled."""
    memory = threads.recycled(n_components * n_features + LANES, dtype)
    memory[-LANES:] = 0
    return memory[:-LANES].reshape(n_features, n_components).T  # either may be 0


def table_in(memory: Array, n_components: int) -> Array:
    """Return the table that is in an array of all of its cells, spare ones included."""
    return memory[:-LANES].reshape(-1, n_components).T


def as_table(values: Array) -> Array:
    """Return an array (n_components, n_features) as a table, itself if it is one."""
    if is_table(values):
        return values
    k, n_features = values.shape
    table = new_table(k, n_features, values.dtype)
    table[...] = values
    return table


def again_a_table(values: Array) -> Array:
    """Return an array as a table if only the spare cells of a table are missing, else unchanged.

    That is what a table becomes when it is pickled.
    """
    if not isinstance(values, np.ndarray):
        return values  # a sparse table lays itself out
    return as_table(values) if values.ndim == 2 and values.flags.f_contiguous else values


def scores(X: CSR, table: Array) -> Array:
    """Return ``X @ table.T`` as float64, multiplied in the precision of `table`."""
    shape = X.shape[0], table.shape[0]
    out = threads.recycled(shape[0] * shape[1], np.float64, "scores").reshape(shape)
    _compiled.scores(*csr_arrays(X, table.shape[1]), memory_of(table), out)
    return out


def accumulate(X: CSR, resp: Resp, total: Array | None = None) -> Array:
    """Return `total` plus ``resp.T @ X``, (n_components, n_features), summed in float64.

    The memory of `total` is that of the result where possible: do not read it after the call. By
    default it is zero. Where most responsibilities are zero, each component visits its own rows
    only, and adds them to `total` one by one: the result is that of a sum up to rounding. The order
    of the sums depends on the data alone, so the bits do not depend on the threads.
    """
    rows = Rows(X, resp)
    shape = rows.k, X.shape[1]
    if total is None:
        total = np.zeros(shape)
    elif total.shape != shape:
        raise ValueError(f"sums of shape {shape} cannot be added to sums of shape {total.shape}")
    total = np.require(total, np.float64, ["C", "W"])
    rows.add_to(total)
    return total


def nearest(X: CSR, table: Array, scale: Array, rows: slice, labels: Array, values: Array) -> None:
    """Set `labels` and `values` of some rows to the largest of ``X @ table.T * scale``.

    Of equals the first wins. `labels` (int32) and `values` (float64) have an entry for every row.
    """
    csr = csr_arrays(X, table.shape[1])
    _compiled.nearest(*csr, memory_of(table), scale, rows.start, rows.stop, labels, values)


def log_table(sums: Array, alpha: float, dtype: Any) -> Array:
    """Return the logarithms of the rows of ``sums + alpha``, each normalised to one.

    A zero becomes `LOG_ZERO`, and a row of zeros the uniform distribution.
    """
    k, n_features = sums.shape
    table = new_table(k, n_features, dtype)
    _note_sum(table, _fill(table, sums, alpha, 0))
    return table


def maximise(X: CSR, resp: Resp, alpha: float, dtype: Any) -> Array:
    """Return ``log_table(accumulate(X, resp), alpha, dtype)`` in less memory.

    The bits are the same, except for the rounding of the total of components with few words.

    Only the sums of some components exist at a time, and are still in the cache when their
    logarithms are taken. Of a component whose rows have few words, most cells are the same, and
    only the others are computed.
    """
    _, k = resp.shape
    table = new_table(k, X.shape[1], dtype)  # first: it fits where the table before it was
    rows = Rows(X, resp)
    few = rows.with_few_words()
    if few.sum() * 2 < k:  # all cells are written twice, and the others in narrow runs
        few[:] = False
    total = _fill_few(table, rows, np.flatnonzero(few), alpha) if few.any() else 0.0
    for first in range(0, len(table), rows.width):
        for lo, hi in _runs(~few[first : first + rows.width], first):
            total += _fill(table, rows.sums(lo, hi), alpha, lo)
    _note_sum(table, total)
    return table


def resultants(X: CSR, resp: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the rows of ``resp.T @ X`` scaled to unit length, as a table, and their lengths.

    A row of zeros stays one. As in `maximise`, only the sums of some components exist at a time.
    """
    _, k = resp.shape
    table, lengths = new_table(k, X.shape[1], dtype), np.empty(k)
    rows = Rows(X, resp)
    for first in range(0, k, rows.width):
        sums = rows.sums(first)
        part = lengths[first : first + len(sums)]
        part[...] = np.sqrt(threads.spread(lambda row: np.dot(row, row), sums))
        _unit(table, sums, part, first)
    return table, lengths


def fill_table(table: Array, sums: Array) -> None:
    """Set a table to sums."""
    _write(table, sums, 0.0, np.ones(len(sums)), None, 0)


def unit_table(sums: Array, lengths: Array, dtype: Any) -> Array:
    """Return a table of rows of these lengths, scaled to unit length; a row of zeros stays one."""
    table = new_table(sums.shape[0], sums.shape[1], dtype)
    _unit(table, sums, lengths, 0)
    return table


def _unit(table: Array, sums: Array, lengths: Array, first: int) -> None:
    """Set components of a table to rows of these lengths, scaled to unit length."""
    _write(table, sums, 0.0, 1.0 / np.where(lengths > 0, lengths, 1.0), None, first)


def _runs(wanted: Array, first: int) -> list[tuple[int, int]]:
    """Return where runs of wanted components begin and end; the first is number `first`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]))) + first
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _fill(table: Array, sums: Array, alpha: float, first: int) -> float:
    """Set the components of a table from `first` on to normalised logarithms of `sums`.

    Return the sum of their cells; NaN if it is not known.
    """
    n_features = sums.shape[1]
    # Waking a thread costs as much as adding up some hundred thousand numbers.
    each_row = threads.spread if sums.size > 1 << 20 else map
    scale, nothing = _scale(list(each_row(np.sum, sums)), alpha * n_features)
    total = _write(table, sums, alpha, scale, LOG_ZERO, first)
    for j in np.flatnonzero(nothing):
        table[first + j] = -np.log(n_features)
    return np.nan if nothing.any() else total


def _scale(totals: Any, more: float) -> tuple[Array, Array]:
    """Return what normalises sums with these totals, and which components have nothing at all."""
    totals = np.asarray(totals) + more
    nothing = totals < np.finfo(np.float64).tiny  # the inverse would be infinite
    return 1.0 / np.where(nothing, 1.0, totals), nothing


def _fill_few(table: Array, rows: Rows, chosen: Array, alpha: float) -> float:
    """Do what `_fill` does for components with few words; cells of the others become undefined."""
    k, n_features = table.shape
    memory = memory_of(table)
    tasks = [chosen[lo : lo + TASK] for lo in range(0, len(chosen), TASK)]

    def count(some: Array) -> list[tuple[Array, Array, float]]:
        sums = np.zeros(n_features)
        return [rows.few(j, sums) for j in some]

    parts = threads.spread(count, tasks)
    scale = np.zeros(k)
    scale[chosen], nothing = _scale(
        [total for part in parts for _, _, total in part], alpha * n_features
    )

    def level(lo: int) -> None:
        hi = min(lo + WORDS, n_features)
        _compiled.fill_nothing(lo, hi, alpha, scale, LOG_ZERO, memory)

    def write(task: int) -> float:
        return sum(
            _compiled.fill_pairs(words, found, alpha, scale, LOG_ZERO, int(j), memory)
            for j, (words, found, _) in zip(tasks[task], parts[task], strict=True)
        )

    threads.spread(level, range(0, n_features, WORDS))
    total = n_features * float(table[chosen, 0].sum(dtype=np.float64))
    total += sum(threads.spread(write, range(len(tasks))))
    for j in chosen[nothing]:
        table[j] = -np.log(n_features)
    return np.nan if nothing.any() else total


def _write(
    table: Array, sums: Array, alpha: float, scale: Array, log_zero: float | None, first: int
) -> float:
    """Set components of a table to ``(sums + alpha) * scale``, or with `log_zero` to its log.

    Return the sum of their cells.
    """
    n_features, memory = sums.shape[1], memory_of(table)

    def work(lo: int) -> float:
        hi = min(lo + WORDS, n_features)
        return _compiled.fill_table(sums, lo, hi, alpha, scale, log_zero, memory, len(table), first)

    return float(sum(threads.spread(work, range(0, n_features, WORDS))))


def _note_sum(table: Array, total: float) -> None:
    """Take note of the sum of a table, unless it is not known."""
    if not np.isnan(total):
        threads.notes(memory_of(table))["sum"] = total


def table_sum(table: Array) -> float:
    """Return the sum of all cells in float64, the same for any number of threads."""
    memory = memory_of(table)
    known = threads.notes(memory).get("sum")
    if known is not None:
        return known
    step = WORDS * LANES
    parts = threads.spread(
        lambda lo: _compiled.table_sum(memory, lo, min(lo + step, table.size)),
        range(0, table.size, step),
    )
    return float(sum(parts))


def memory_of(table: Array) -> Array:
    """Return the memory behind a table, spare cells included, packing it if need be."""
    return np.asarray(as_table(table).base)


def is_table(values: Array) -> bool:
    """Tell if an array is laid out as `new_table` does it, spare cells included."""
    base = values.base
    if not isinstance(base, np.ndarray) or base.shape != (values.size + LANES,):
        return False
    same_start = values.__array_interface__["data"] == base.__array_interface__["data"]
    return bool(same_start and values.flags.f_contiguous)
