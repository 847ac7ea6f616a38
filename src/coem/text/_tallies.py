"""Words of a collection that is counted one part after the other."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coem.kernels.words import Tally
from coem.text._tables import strings

MOST = 1 << 23  # different words of a view that are kept


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
        found = self._runs[0].sort_by("word")
        words = found.column("word").combine_chunks()
        words = words.chunk(0) if isinstance(words, pa.ChunkedArray) else words
        n_rows, n_times = (found.column(name).to_numpy() for name in ("n_rows", "n_times"))
        return Tally(strings(words), n_rows, n_times, ())

    def _merge(self, n_runs):
        """Make one run of the last ones; drop rare words if it is too long."""
        whole = pa.concat_tables(self._runs[-n_runs:])
        if n_runs > 1:
            whole = whole.group_by("word").aggregate([("n_rows", "sum"), ("n_times", "sum")])
            whole = whole.rename_columns(["word", "n_rows", "n_times"])
        if whole.num_rows > self._most:
            kept = whole.filter(pc.greater(whole.column("n_rows"), 1))
            self.n_dropped += whole.num_rows - kept.num_rows
            whole = kept
        self._runs[-n_runs:] = [whole]


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
    return pa.table(list(map(pa.array, columns)), names=["word", "n_rows", "n_times"])
