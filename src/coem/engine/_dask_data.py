"""Partitions on the workers of a Dask cluster."""

from collections import Counter
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from coem.engine._dask_cluster import GONE, Cluster
from coem.engine._dask_parcels import Parcel, n_bytes
from coem.engine._dask_tasks import load, settle
from coem.engine._dask_tree import leaf_size, leaves, owners_of
from coem.protocols import OnWorker, Stored

# Rows in memory become partitions of about 128 MB: a task also fills and adds a table of
# statistics, which takes as long as some MB of rows do. Fewer rows become up to 8 smaller ones.
PART_BYTES, LEAST_BYTES, SMALL = 1 << 27, 1 << 22, 8
SHARE = 0.4  # of the memory of all workers, which partitions that stay there may take
STATES = 0.25  # of the memory of a worker, which states may take
ROOM = 1 << 28  # bytes of states, where a worker has no limit

Make = Callable[[Any], Any]


class Placed:
    """Partitions, and where they are.

    Parts that are stored are loaded by the workers. They stay there if there is room for all of
    them; otherwise every step loads them again. Parts in memory are sent, once.
    """

    def __init__(self, cluster: Cluster, parts: Sequence[Any], *, stays: bool = True) -> None:
        self.cluster = cluster
        self._lock = RLock()
        self._parts = parts
        self._workers = cluster.workers()  # first: it waits for one
        memory = cluster.memory()
        self.room = int(STATES * memory) if memory < float("inf") else ROOM
        n_leaves = len(leaves(len(parts)))
        self._owners = [self._workers[i * len(self._workers) // n_leaves] for i in range(n_leaves)]
        self._stored = isinstance(parts[0], Stored)
        share = SHARE * memory * len({*self._workers})
        self._stays = stays and (not self._stored or sum(part.n_bytes for part in parts) <= share)
        self._futures: list[Any] = [None] * len(parts)

    @property
    def homes(self) -> list[str]:
        """The worker of each partition; neighbours are together, so that their sums are too."""
        size = leaf_size(len(self._parts))
        return [self._owners[i // size] for i in range(len(self._parts))]

    def owners(self, several: int) -> list[int]:
        """Return an owner for each leaf: so many for each thread of its worker."""
        n_threads = Counter(self._workers)
        return owners_of(self._owners, {name: n * several for name, n in n_threads.items()})

    def sources(self) -> tuple[list[Any], list[Make | None]]:
        """Return what tasks work on, and how they make partitions of it; None if it is one."""
        workers = self.cluster.workers()
        if workers != self._workers:
            self._owners, self._workers = shared_out(self._owners, workers), workers
        if not self._stays:
            made = [_source(part) for part in self._parts]
            return [source for source, _ in made], [make for _, make in made]
        with self._lock:
            futures = enumerate(self._futures)
            missing = [i for i, own in futures if own is None or own.status in GONE]
            if missing:
                self._place(missing)
            return [*self._futures], [None] * len(self._parts)

    def fragile(self) -> list[Any]:
        """Return the futures that no worker can make again."""
        return [] if self._stored else [future for future in self._futures if future is not None]

    def release(self) -> None:
        """Let go of the partitions on the workers."""
        self.cluster.cancel(future for future in self._futures if future is not None)
        self._futures = [None] * len(self._parts)

    def _place(self, missing: Sequence[int]) -> None:
        homes = self.homes
        for i in missing:
            part, home = self._parts[i], homes[i]
            if self._stored:
                source, make = _source(part)
                (self._futures[i],) = self.cluster.start(settle, [source], [make], home=home)
            else:
                (self._futures[i],) = self.cluster.send([Parcel(part)], [home])


def _source(part: Any) -> tuple[Any, Make]:
    """Return what a stored partition is made of, and how."""
    return (part.block, part.maker) if isinstance(part, OnWorker) else (part, load)


def n_parts_of(part: Any) -> int:
    """Return how many partitions rows in memory become: a power of two, by their bytes alone."""
    size = n_bytes(part)
    several = min(SMALL, size // LEAST_BYTES)
    return 1 << int(max(size // PART_BYTES, several, 1) - 1).bit_length()


def even_cuts(part: Any, n_parts: int) -> list[Any]:
    """Return the rows of a partition in parts of equal numbers of rows."""
    n_rows = part.n_rows
    n_parts = max(1, min(n_parts, n_rows))
    return list(part.cut([n_rows * i // n_parts for i in range(1, n_parts)]))


def shared_out(owners: Sequence[str], workers: Sequence[str]) -> list[str]:
    """Return an owner for each leaf when workers have gone or come; as few as possible move.

    `workers` has a name for each of its threads. A worker with less than its share takes what
    others have beyond theirs, and what belonged to workers that are gone.
    """
    share = -(-len(owners) // len(workers))
    room = Counter({name: n * share for name, n in Counter(workers).items()})
    found = [*owners]
    homeless = []
    for leaf, owner in enumerate(owners):
        room[owner] -= 1
        if room[owner] < 0:
            homeless.append(leaf)
    free = [name for name in sorted(room) for _ in range(max(room[name], 0))]
    for leaf, name in zip(homeless, free, strict=False):
        found[leaf] = name
    return found
