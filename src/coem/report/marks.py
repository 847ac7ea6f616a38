"""What words weigh for every group, in few bytes, so that a page can mark them in a text."""

from dataclasses import dataclass

import numpy as np

from coem.kernels.sparse_tables import SparseTable
from coem.ranking import best_columns
from coem.report.packing import pack
from coem.report.words import table_of

OF_A_GROUP = 40  # words that are looked at, where all of a table are too many
ENTRIES = 80_000  # weights of a view at most
TITLES = ("title", "subject", "headline")  # views of the titles


@dataclass(frozen=True, eq=False)
class Marks:
    """The words of a view, and what one occurrence of each adds to every group.

    `weights` (n_words, n_groups) are int8, in units of `step` nats. Only differences of two groups
    mean something: that of the group of a document and its second choice is what `explain` says
    of one occurrence. `place` says where the words of the view are: in the "title", the "text" or
    "both".
    """

    view: str
    place: str
    words: list
    weights: np.ndarray
    step: float

    def packed(self):
        """Return the words and their weights as parts of a pack."""
        words = "\0".join(self.words).encode("utf-8")
        return [pack(words), pack(np.ascontiguousarray(self.weights).tobytes())]


def marks_of(reading, names, titles=False):
    """Return the marks of the views that have probabilities of words.

    Parameters
    ----------
    reading : Reading
    names : dict of view to sequence of str
        Names of the columns.
    titles : bool, default=False
        Whether the titles of documents are apart from their texts.
    """
    if reading.n_groups < 2:
        return []
    spoken = [v for v in reading.views.names if v in names and v not in reading.silent]
    own = [v for v in spoken if titles and v.lower() in TITLES]
    found = []
    for view in spoken:
        table, locate = table_of(reading, view, reading.views[view])
        if table is None or locate(0) != 0 or table.shape[1] != len(names[view]):
            continue  # its features are not words
        place = "both" if not own else "title" if view in own else "text"
        words = list(names[view])
        if isinstance(table, SparseTable):  # an array of all its cells would be too large
            columns = best_columns(table, reading.weights, OF_A_GROUP)
            table, words = table[:, columns], [words[column] for column in columns]
        found.append(_marks(view, place, table, words, reading.weights))
    return [marks for marks in found if marks.words]


def _marks(view, place, table, words, weights):
    """Return the marks of a view: the words that tell most, by what they say and how often."""
    table = np.asarray(table, dtype=np.float64)
    there = table.sum(axis=1) > 0
    floor = table[table > 0].min(initial=1.0) / 2
    logs = np.log(np.maximum(table, floor))
    logs[~there] = np.log(np.maximum(weights @ table, floor))  # a group of nothing says nothing
    spread = logs.max(axis=0) - logs.min(axis=0)
    worth = table.max(axis=0) * spread
    n = max(1, min(len(words), ENTRIES // len(table)))
    best = np.sort(np.argsort(-worth, kind="stable")[:n])
    best = best[worth[best] > 0]
    middle = (logs.max(axis=0) + logs.min(axis=0)) / 2
    values = (logs - middle)[:, best].T
    step = max(float(np.abs(values).max(initial=0.0)) / 127, 1e-9)
    kept = [str(words[w]).lower() for w in best.tolist()]
    return Marks(view, place, kept, np.rint(values / step).astype(np.int8), step)
