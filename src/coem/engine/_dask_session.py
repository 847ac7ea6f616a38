"""A run on a Dask cluster: partitions stay on their workers, parameters and sums travel."""

import time
import weakref
from collections.abc import Sequence
from functools import reduce
from typing import Any, Generic, cast
from uuid import uuid4

from coem.engine._dask_cluster import GONE, Cluster, release, retried
from coem.engine._dask_data import Placed
from coem.engine._dask_parcels import Parcel, pack
from coem.engine._dask_shared import SharedParcel, parcel
from coem.engine._dask_tasks import Job, Sums, add, added, state_of, work
from coem.engine._dask_tree import Plan, leaves, plan
from coem.engine.corpus import is_up_to_date
from coem.protocols import AdditiveLatent, Clock, Part, State, Sum, SummaryOut, Theta
from coem.typing import Array

TABLE = 1 << 16  # bytes of an array of parameters that is sent by itself, once
LONG, SEVERAL = 2.0, 8  # a step that takes so many seconds is cut into more tasks, up to a number


class DaskSession(Generic[Part, Theta, State, SummaryOut, Sum]):
    """One run on the partitions of a cluster.

    The sums of a step are added in a tree. It depends on the number of partitions alone, so that
    the bits of a result do not depend on the workers or the order. A task adds up a branch of it.
    The E step also gathers what the first M step of the next round needs.
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
        self._seconds = 0.0  # that the last sum took
        self._n_steps = 0
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
        sums = self._sum(self._job(clock, 0, summary=True))
        self._next = clock, sums.stats
        return cast(SummaryOut, sums.summary)

    def m_step(self, turn: int, clock: Clock) -> None:
        """Infer the states of all rows, unless that was done, and do the M step of a turn."""
        stats: Any = None
        if turn == 0 and self._next and is_up_to_date(self._next[0], clock, self.latent.n_turns):
            stats = self._next[1]
        self._next, self._clock = None, clock
        if stats is None:
            stats = self._sum(self._job(clock, turn)).stats
        self.theta = self.latent.estimate(stats, self.theta, turn)

    def close(self) -> None:
        """Let go of what the workers hold for this run; the parameters stay."""
        self._cluster.cancel([*self._post.futures(), *self._starts])
        self._post, self._starts = Post(self._cluster), []
        self._finalizer()

    def _job(self, clock: Clock, turn: int, *, summary: bool = False) -> Job:
        self._n_steps += 1
        return Job(self._name, clock, turn, summary, self._room, self._n_steps)

    def _sum(self, job: Job) -> Sums:
        """Return what all partitions add up to."""
        began = time.monotonic()
        sums = retried(lambda: self._sum_once(job))
        self._seconds = time.monotonic() - began
        return sums

    def _sum_once(self, job: Job) -> Sums:
        futures: list[Any] = []
        try:
            tree, shares = self._plan(job, futures), self._cluster.shares
            levels = tree.levels
            wanted: tuple[int, ...] = (-1,)
            if shares and levels:  # mapping two tables takes less than a task that adds them
                levels, wanted = levels[:-1], levels[-1][0]
            for height, level in enumerate(levels, 1):  # sums go first: they free memory
                pairs = [[futures[pair[side]] for pair in level] for side in (0, 1)]
                futures += self._cluster.start(add, *pairs, priority=height, shares=shares)
            last = [futures[i] for i in wanted]
            sums: list[Sums] = self._cluster.fetch_all(last, self._fragile())
            release(futures)
            return reduce(added, sums)
        except BaseException:
            self._cluster.cancel(futures)
            raise

    def _plan(self, job: Job, futures: list[Any]) -> Plan:
        """Return how the sums are added, and start what each thread of a worker has of them.

        A thread has one branch or a few, or several if they take long: then other threads can take
        some of them when a worker is lost. The branches do not change any bit.
        """
        same, *columns = self._inputs(job)
        data = self._data
        cuts = leaves(len(data.homes))
        several = max(1, min(SEVERAL, int(self._seconds / LONG)))
        tree = plan(data.owners(several))
        own = [cuts[lo:hi] for lo, hi in tree.branches]
        homes = [data.homes[some[0][0]] for some in own]
        items = [[column[some[0][0] : some[-1][1]] for some in own] for column in columns]
        futures += self._cluster.start_at_home(work, homes, *items, own, **same)
        return tree

    def _fetch_all(self, job: Job) -> list[State]:
        futures: list[Any] = []
        try:
            same, *columns = self._inputs(job)
            numbers = range(len(self._data.homes))
            homes = self._data.homes
            futures += self._cluster.start_at_home(state_of, homes, *columns, numbers, **same)
            states = [self._cluster.fetch(future, self._fragile()) for future in futures]
            release(futures)
            return states
        except BaseException:
            self._cluster.cancel(futures)
            raise

    def _inputs(self, job: Job) -> tuple[dict[str, Any], list[Any], list[Any], list[Any]]:
        """Return what all tasks of a job take, and what each partition brings."""
        sources, makes = self._data.sources()
        skeleton, tables = self._post.send((self.latent, self.theta))
        shares = self._cluster.shares
        same = {"job": job, "skeleton": skeleton, "tables": tables, "shares": shares}
        return same, sources, makes, self._given_starts()

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
        # By identity, with their futures.
        self._tables: dict[int, tuple[Parcel[Array], Any]] = {}
        self._last: tuple[Any, Any] | None = None  # the last value, and the future of its skeleton

    def send(self, value: tuple[Any, Any]) -> tuple[Any, list[Any]]:
        """Return futures of a pickled value without its tables, and of the tables."""
        skeleton, arrays = pack(value, TABLE)
        self._drop_lost()
        new = [array for array in arrays if id(array) not in self._tables]
        known = self._last is not None and self._last[0] == skeleton
        letters = [] if known else [Parcel(skeleton)]
        tables = [parcel(array, self._cluster.shares) for array in new]
        futures = self._cluster.send([*tables, *letters]) if new or letters else []
        sent = {id(table.value): (table, at) for table, at in zip(tables, futures, strict=False)}
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
        """Forget what no worker has any more, or cannot reach."""
        for name, (table, future) in [*self._tables.items()]:
            reached = self._cluster.shares or not isinstance(table, SharedParcel)
            if future.status in GONE or not reached:
                del self._tables[name]
        if self._last is not None and self._last[1].status in GONE:
            self._last = None
