"""Sequences of a corpus as partitions that are loaded when they are needed."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from coem.latent.block import given_rows
from coem.latent.sequences import Sequences
from coem.latent.stored import SAMPLE, RowRange, StoredPartition, StoredRows
from coem.row_store import lots
from coem.typing import Array


@dataclass(frozen=True)
class StoredSequences(StoredPartition):
    """Some whole sequences of a corpus, with what is known about their rows."""

    offsets: Array = field(kw_only=True)  # (n_sequences + 1,), where they begin, from 0
    first: int = field(kw_only=True)  # number of the first sequence

    def load(self) -> Sequences:
        """Return the rows, encoded."""
        part = super().load()
        known = part.views, part.empty, part.weight, part.allowed, part.given
        return Sequences(*known, offsets=self.offsets, first=self.first)

    def outline(self) -> Sequences:
        """Return the sequences without the content of their rows, which stays where it is."""
        choices, kinds = self.known.encoding.choices, self.known.kinds
        allowed = None if kinds is None or choices is None else choices[kinds]
        nothing = np.empty((self.n_rows, 0))
        return Sequences(
            (nothing,), None, self.known.weight, allowed, offsets=self.offsets, first=self.first
        )


@dataclass(frozen=True)
class SequenceRows(StoredRows):
    """All sequences of a corpus, in the place of `Sequences`.

    A partition has whole sequences. It begins and ends at the sequences that are nearest to the
    ends of a shard, and so may have rows of two shards, or of more if a sequence is that long.
    """

    offsets: Array = field(kw_only=True)  # (n_sequences + 1,), from 0 to the number of rows

    def parts(self, given: Array | None = None) -> list[StoredSequences]:
        """Return the partitions, with `given` as the start of their rows."""
        places = np.searchsorted(self.offsets, self.corpus.bounds)
        ends = self.offsets[places], self.offsets[np.maximum(places - 1, 0)]
        nearer = np.abs(ends[1] - self.corpus.bounds) < np.abs(ends[0] - self.corpus.bounds)
        cuts = np.unique([0, *(places - nearer), len(self.offsets) - 1]).tolist()
        return [self._sequences(lo, hi, given) for lo, hi in pairwise(cuts)]

    def _sequences(self, lo: int, hi: int, given: Array | None) -> StoredSequences:
        """Return sequences `lo` to `hi`."""
        begin, end = int(self.offsets[lo]), int(self.offsets[hi])
        offsets = self.offsets[lo : hi + 1] - begin
        start = None if given is None else given_rows(given, slice(begin, end))
        rows, known = RowRange(self.corpus, begin, end), self._known(begin, end)
        return StoredSequences(rows, known, start, offsets=offsets, first=lo)

    @cached_property
    def sample(self) -> Sequences:
        """Some whole sequences in memory, drawn by their content; all of them if they are few.

        If there are labels, as many rows are drawn from sequences with a label as from the others.
        """
        drawn = np.arange(len(self.offsets) - 1)
        if self.n_rows > SAMPLE:
            known = self._labelled()
            drawn = np.concatenate([self._draw(known), self._draw(~known)])
            drawn = np.sort(drawn)
        sizes = np.diff(self.offsets)[drawn]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[drawn] - offsets[:-1], sizes)
        part = self.take(rows)
        return Sequences(part.views, part.empty, part.weight, part.allowed, offsets=offsets)

    def _labelled(self) -> Array:
        """Return which sequences have a row with a label."""
        choices = self.encoding.choices
        if self.kinds is None or choices is None:
            return np.zeros(len(self.offsets) - 1, dtype=bool)
        known = np.asarray(~choices.all(axis=1))[self.kinds]
        return np.logical_or.reduceat(known, self.offsets[:-1])

    def _draw(self, among: Array) -> Array:
        """Return the numbers of some sequences, drawn by their content, of `SAMPLE` rows or more.

        There are fewer rows if those of `among` (n_sequences,) are not enough.
        """
        sequences = np.flatnonzero(among)
        order = sequences[np.lexsort((sequences, lots(self._keys[sequences])))]
        ends = np.cumsum(np.diff(self.offsets)[order])
        return order[: int(np.searchsorted(ends, SAMPLE)) + 1]

    @cached_property
    def _keys(self) -> Array:
        """A number for each sequence that stands for the content of its rows, and their order."""
        lengths = np.diff(self.offsets)
        place = np.arange(self.n_rows) - np.repeat(self.offsets[:-1], lengths)
        keys = np.concatenate([shard.keys for shard in self.corpus.shards])
        placed = lots(keys.view(np.uint64) ^ lots(place))
        return np.add.reduceat(placed, self.offsets[:-1])
