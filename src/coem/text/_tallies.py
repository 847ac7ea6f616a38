"""Words of a collection that is counted one part after the other."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coem.kernels.words import Tally
from coem.text._tables import strings

MOST = 1 << 23  # different words of a view that are kept
COUNTS = ("n_rows", "n_times")


class Words:
    """Words, the rows that have them, and how often they are there, summed over parts.

    Sorted lists of about the same size are merged, as a sort by merging does, so that the work is
    nearly linear in the words of all parts.

    Attributes
    ----------
    n_rows : int
        Rows that were counted.
    n_dropped : int
        Words that were dropped because there were too many: each was in one row so far.
    """

    def __init__(self, most=MOST):
        self.n_rows = self.n_dropped = 0
        self._runs, self._most = [], most

    def add(self, tally, n_rows):
        """Add the words of some rows."""
        self.n_rows += n_rows
        self._runs.append(_as_table(tally))
        while len(self._runs) > 1 and self._runs[-2].num_rows <= 2 * self._runs[-1].num_rows:
            self._merge(2)

    def tally(self):
        """Return the sum, with the words in the order of their code points."""
        if not self._runs:
            self._runs = [_as_table(None)]
        self._merge(len(self._runs))
        found = self._runs[0]
        words = _one_piece(found.column("word"))
        n_rows, n_times = (found.column(name).to_numpy() for name in COUNTS)
        return Tally(strings(words), n_rows, n_times, ())

    def _merge(self, n_runs):
        """Make one run of the last ones; drop rare words if it is too long."""
        whole = pa.concat_tables(self._runs[-n_runs:])
        if n_runs > 1:
            whole = _summed(whole.sort_by("word"))
        if whole.num_rows > self._most:
            kept = whole.filter(pc.greater(whole.column("n_rows"), 1))
            self.n_dropped += whole.num_rows - kept.num_rows
            whole = kept
        self._runs[-n_runs:] = [whole]


def _summed(runs):
    """Return the sums of neighbours that are the same word.

    Words are not hashed: the hash of Arrow has no key, so that chosen words could make its tables
    slow. And runs that are sorted take little work to be sorted together.
    """
    words = _one_piece(runs.column("word"))
    differs = pc.not_equal(words.slice(1), words.slice(0, max(len(words) - 1, 0)))
    first = np.flatnonzero(np.append(True, differs.to_numpy(zero_copy_only=False))[: len(words)])
    sums = [np.add.reduceat(runs.column(name).to_numpy(), first) for name in COUNTS]
    return pa.table([words.take(pa.array(first)), *sums], names=["word", *COUNTS])


def _one_piece(column):
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _as_table(tally):
    """Return the words of a tally, copied: its memory belongs to the kernel."""
    if tally is None or not len(tally.n_rows):
        empty = np.zeros(0, np.int64)
        columns = pa.array([], pa.large_string()), empty, empty
    else:
        offsets, data = tally.words
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data.tobytes())]
        words = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
        columns = words, tally.n_rows, tally.n_times
    return pa.table(list(map(pa.array, columns)), names=["word", *COUNTS])
