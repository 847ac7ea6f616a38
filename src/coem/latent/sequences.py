"""Partitions whose rows come in sequences."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from coem.latent.block import Block, Partition
from coem.typing import Array

PACKED = 4  # blocks of rows per sequence block: a call costs as much as some hundred steps


@dataclass(frozen=True)
class SequenceBlock(Block):
    """Some whole sequences, one after the other: one task for one thread."""

    offsets: Array = field(kw_only=True)  # (n_sequences + 1,), where they begin, from 0
    first: int = field(kw_only=True)  # number of the first sequence
    pieces: tuple[Block, ...] = field(kw_only=True)  # the same rows, cut anywhere

    @property
    def sequence_weight(self) -> Array | None:
        """The weights of the sequences, or None if all are one."""
        return None if self.weight is None else self.weight[self.offsets[:-1]]


@dataclass(frozen=True)
class Sequences(Partition):
    """Rows in sequences, which are never cut. All rows of a sequence have the same weight."""

    offsets: Array = field(kw_only=True)  # (n_sequences + 1,), int64, from 0 to the number of rows
    first: int = field(default=0, kw_only=True)  # number of the first sequence, for messages

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows only; what is cached is computed again."""
        _, fields = super().__reduce__()
        return _restored, (fields, self.offsets, self.first)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @cached_property
    def sequence_blocks(self) -> list[SequenceBlock]:
        """The sequences, packed until they have as many rows as some blocks."""
        n_blocks = -(-self.n_rows // (PACKED * self.block_rows))
        n_blocks += n_blocks % 2 if n_blocks > 1 else 0  # an even number divides well among threads
        targets = np.linspace(0, self.n_rows, n_blocks + 1)[1:-1]
        cuts = np.unique([0, *np.searchsorted(self.offsets, targets), self.n_sequences]).tolist()
        return [self._sequence_block(lo, hi) for lo, hi in pairwise(cuts)]

    def _sequence_block(self, lo: int, hi: int) -> SequenceBlock:
        """Return sequences `lo` to `hi`."""
        begin, end = int(self.offsets[lo]), int(self.offsets[hi])
        block = self._block(begin, end)
        pieces: tuple[Block, ...] = (block,)
        if (
            hi - lo == 1 and block.n_rows > self.block_rows
        ):  # a long sequence is work for all threads
            inner = [*range(begin, end, self.block_rows), end]
            pieces = tuple(self._block(a, b) for a, b in pairwise(inner))
        return SequenceBlock(
            **vars(block),
            offsets=self.offsets[lo : hi + 1] - begin,
            first=self.first + lo,
            pieces=pieces,
        )

    def cut(self, bounds: Sequence[int]) -> list[Self]:
        """Cut between the sequences that are nearest to the rows `bounds`, without copying.

        There are fewer parts if a part would have no sequence.
        """
        inner = np.searchsorted(self.offsets, bounds)
        ends = np.unique([0, *inner, self.n_sequences]).tolist()
        parts = super().cut(self.offsets[ends[1:-1]].tolist())
        return [
            replace(
                part,
                offsets=self.offsets[lo : hi + 1] - self.offsets[lo],
                first=self.first + lo,
            )
            for part, (lo, hi) in zip(parts, pairwise(ends), strict=True)
        ]


def _restored(fields: tuple[Any, ...], offsets: Array, first: int) -> Sequences:
    return Sequences(*fields, offsets=offsets, first=first)
