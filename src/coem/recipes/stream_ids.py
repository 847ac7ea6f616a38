"""The ids of the documents of a stream, so that none is assigned twice."""

from collections.abc import Iterable, Sequence

import numpy as np

from coem.typing import Array


class KnownIds:
    """The ids so far, in eight bytes each: their hashes.

    The key of the hashes is new in every process, so that no text can be made to have that of
    another one. Among ten million ids, one stream in 300,000 has two with the same hash.

    Parameters
    ----------
    parts : iterable of sequences of str
        The ids of earlier calls. They are read when they are needed, which may be never.
    """

    def __init__(self, parts: Iterable[Sequence[str]] = ()) -> None:
        self._parts = iter(parts)
        self._runs: list[Array] = []  # sorted, and each of them longer than the next

    def has(self, ids: Sequence[str]) -> Array:
        """Return which of some ids are known."""
        return self._has(_hashes(ids))

    def fresh(self, ids: Sequence[str | None]) -> Array:
        """Return which documents are new: the first of each id that is not known.

        A document without an id is new.
        """
        rows = np.array([row for row, name in enumerate(ids) if name is not None], np.int64)
        hashes = _hashes([name for name in ids if name is not None])
        is_first = np.zeros(len(hashes), bool)
        is_first[np.unique(hashes, return_index=True)[1]] = True
        found = np.ones(len(ids), bool)
        found[rows] = is_first & ~self._has(hashes)
        return found

    def add(self, ids: Sequence[str]) -> None:
        """Let some ids be known."""
        self._add(_hashes(ids))

    def _has(self, hashes: Array) -> Array:
        for part in self._parts:
            self._add(_hashes(part))
        found = np.zeros(len(hashes), bool)
        for run in self._runs:
            places = np.searchsorted(run, hashes).clip(max=len(run) - 1)
            found |= run[places] == hashes
        return found

    def _add(self, hashes: Array) -> None:
        """Add a run, and merge it with shorter ones: there are few, and each is sorted rarely."""
        run = np.sort(hashes)
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)


def _hashes(ids: Sequence[str]) -> Array:
    return np.fromiter(map(hash, ids), np.int64, len(ids))
