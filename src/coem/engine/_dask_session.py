"""A run on a Dask cluster: partitions stay on their workers, parameters and sums travel."""

import weakref
from collections.abc import Sequence
from typing import Any, Generic, cast
from uuid import uuid4

from coem.engine._dask_cluster import GONE, Cluster, release, retried
from coem.engine._dask_data import Placed
from coem.engine._dask_parcels import Parcel, pack
from coem.engine._dask_tasks import Job, Sums, add, work
from coem.engine.corpus import is_up_to_date
from coem.protocols import AdditiveLatent, Clock, Part, State, Sum, SummaryOut, Theta
from coem.typing import Array

TABLE = 1 << 16  # bytes of an array of parameters that is sent by itself, once


class DaskSession(Generic[Part, Theta, State, SummaryOut, Sum]):
    """One run on the partitions of a cluster.

    Every step is one task per partition and a tree of sums. The tree depends on the number of
    partitions alone, so that the bits of a result do not depend on who did what, and when. The E
    step also gathers what the first M step of the next round needs.
    """

    def __init__(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Sum],
        data: Placed,
        given: Sequence[Array | None],
        theta: Theta,
        ended: list[str],
    ) -> None:
        self.latent, self.theta = latent, theta
        self._data, self._cluster = data, data.cluster
        self._post = Post(data.cluster)
        self._given: Sequence[Array | None] = given
        self._starts: list[Any] = []  # futures of the given start, until it is no longer needed
        self._next: tuple[Clock, Sum] | None = None  # what the first turn of a round learns from
        self._clock: Clock | None = None  # of the last step
        self._name = uuid4().hex
        self._room = data.room if latent.n_turns > 1 else 0
        self._finalizer = weakref.finalize(self, ended.append, self._name)

    @property
    def states(self) -> list[State]:
        """The states of the partitions, fetched; an empty list before the first step."""
        if self._clock is None:
            return []
        job = Job(self._name, self._clock)
        return retried(lambda: self._fetch_all(job))

    def e_step(self, clock: Clock) -> SummaryOut:
        """Infer the states of all rows, and return their summary."""
        self._next, self._clock = None, clock  # frees old statistics before there are new ones
        sums = self._sum(Job(self._name, clock, 0, True, self._room))
        self._next = clock, sums.stats
        return cast(SummaryOut, sums.summary)

    def m_step(self, turn: int, clock: Clock) -> None:
        """Infer the states of all rows, unless that was done, and do the M step of a turn."""
        stats: Any = None
        if turn == 0 and self._next and is_up_to_date(self._next[0], clock, self.latent.n_turns):
            stats = self._next[1]
        self._next, self._clock = None, clock
        if stats is None:
            stats = self._sum(Job(self._name, clock, turn, False, self._room)).stats
        self.theta = self.latent.estimate(stats, self.theta, turn)

    def close(self) -> None:
        """Let go of what the workers hold for this run; the parameters stay."""
        self._cluster.cancel([*self._post.futures(), *self._starts])
        self._post, self._starts = Post(self._cluster), []
        self._finalizer()

    def _sum(self, job: Job) -> Sums:
        """Return what all partitions add up to."""
        return retried(lambda: self._sum_once(job))

    def _sum_once(self, job: Job) -> Sums:
        futures = self._start(job)
        level, n_levels = futures, 0
        try:
            while len(level) > 1:
                n_levels += 1  # sums go first, so that few statistics wait for them
                pairs = level[: len(level) // 2 * 2]
                above = self._cluster.start(add, pairs[::2], pairs[1::2], priority=n_levels)
                level = [*above, *level[len(pairs) :]]
                futures = [*futures, *above]
            found: Sums = self._cluster.fetch(level[0], self._fragile())
            release(futures)
            return found
        except BaseException:
            self._cluster.cancel(futures)
            raise

    def _fetch_all(self, job: Job) -> list[State]:
        futures = self._start(job)
        try:
            states = [self._cluster.fetch(future, self._fragile()) for future in futures]
            release(futures)
            return states
        except BaseException:
            self._cluster.cancel(futures)
            raise

    def _start(self, job: Job) -> list[Any]:
        """Return the futures of a job on every partition."""
        data = self._data
        sources, makes = data.sources()
        skeleton, tables = self._post.send((self.latent, self.theta))
        numbers = list(range(len(sources)))
        items = (sources, makes, self._given_starts(), numbers)
        shared = {"job": job, "skeleton": skeleton, "tables": tables}
        return self._cluster.start_at_home(work, data.homes, *items, **shared)

    def _given_starts(self) -> list[Any]:
        """Return the given start of every partition, while views without parameters need it."""
        if self.theta.started or self._given[0] is None:
            release(self._starts)
            self._given, self._starts = [None] * len(self._given), []
            return [*self._given]
        if not self._starts or any(start.status in GONE for start in self._starts):
            pairs = zip(self._given, self._data.homes, strict=True)
            self._starts = [self._cluster.send([Parcel(own)], [home])[0] for own, home in pairs]
        return self._starts

    def _fragile(self) -> list[Any]:
        """Return the futures that the driver has to send again when their worker is gone."""
        return [*self._data.fragile(), *self._post.futures(), *self._starts]


class Post:
    """Parameters for all workers. A table that has not changed is not sent again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tables: dict[int, tuple[Array, Any]] = {}  # by identity, with their futures
        self._last: tuple[Any, Any] | None = None  # the last value, and the future of its skeleton

    def send(self, value: tuple[Any, Any]) -> tuple[Any, list[Any]]:
        """Return futures of a pickled value without its tables, and of the tables."""
        skeleton, arrays = pack(value, TABLE)
        self._drop_lost()
        new = [array for array in arrays if id(array) not in self._tables]
        known = self._last is not None and self._last[0] == skeleton
        letters = [] if known else [Parcel(skeleton)]
        futures = self._cluster.send([*map(Parcel, new), *letters]) if new or letters else []
        sent = {id(array): (array, future) for array, future in zip(new, futures, strict=False)}
        before = self.futures()
        self._tables = {id(a): sent.get(id(a)) or self._tables[id(a)] for a in arrays}
        if not known:
            self._last = skeleton, futures[-1]
        assert self._last is not None
        kept = {future.key for future in self.futures()}
        release(future for future in before if future.key not in kept)
        return self._last[1], [self._tables[id(array)][1] for array in arrays]

    def futures(self) -> list[Any]:
        """Return the futures of all that was sent."""
        last = [] if self._last is None else [self._last[1]]
        return [*last, *(future for _, future in self._tables.values())]

    def _drop_lost(self) -> None:
        """Forget what no worker has any more."""
        kept = self._tables.items()
        self._tables = {name: pair for name, pair in kept if pair[1].status not in GONE}
        if self._last is not None and self._last[1].status in GONE:
            self._last = None
