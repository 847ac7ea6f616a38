"""Rows on the workers of a Dask cluster.

``engine="dask"`` uses the client that is current, ``engine=client`` any other one. See
docs/dask.md for what is sent when, and for what happens when a worker is lost.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from threading import Lock
from typing import Any, Self, cast
from weakref import WeakSet

from coem.engine._dask_cluster import Cluster, release, resumed
from coem.engine._dask_data import Placed, even_cuts, n_parts_of
from coem.engine._dask_parcels import Parcel
from coem.engine._dask_session import DaskSession
from coem.engine._dask_signals import signals
from coem.engine._dask_tasks import call, forget
from coem.engine.local import LocalEngine
from coem.engine.sessions import WholeSession
from coem.protocols import (
    AdditiveLatent,
    Item,
    Latent,
    Part,
    Result,
    Session,
    State,
    Stored,
    SummaryOut,
    Theta,
)

HOW = "from distributed import Client; client = Client('tcp://scheduler:8786')"


class DaskEngine:
    """Keep partitions and their posteriors on the workers of a Dask cluster.

    Each fit sends its rows once. Inside ``with engine:``, all fits to the same arrays share what
    was sent: do not change the arrays there.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the current client when the engine is first used.
    n_jobs : int, optional
        Number of threads of this process, for starts and M steps; as in `LocalEngine`.
    n_parts : int, optional
        Number of partitions that rows in memory are cut into. By default it depends on the size of
        the rows alone, so that the bits of a result do not depend on the cluster.
    """

    def __init__(
        self, client: Any = None, n_jobs: int | None = None, n_parts: int | None = None
    ) -> None:
        self._client = None if client is None else checked_client(client)
        self.n_parts = n_parts
        self._here = LocalEngine(n_jobs)
        self._lock = Lock()
        self._n_entered = 0
        self._placed: dict[tuple[Any, ...], tuple[Any, Placed]] = {}
        self._sessions: WeakSet[DaskSession[Any, Any, Any, Any, Any]] = WeakSet()
        self._ended: list[str] = []  # sessions whose states the workers may still keep

    def __deepcopy__(self, memo: object) -> Self:
        """Return another engine with the same client, which cannot be copied."""
        return type(self)(self._client, self._here.n_workers, self.n_parts)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle no client: where the engine is loaded, it takes the current one."""
        return type(self), (None, self._here.n_workers, self.n_parts)

    @property
    def client(self) -> Any:
        """The client."""
        return self._cluster.client

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster(current_client() if self._client is None else self._client)

    @property
    def n_workers(self) -> int:
        """Number of threads of this process: `map` works here, sessions work on the cluster."""
        return self._here.n_workers

    def __enter__(self) -> Self:
        """Start the threads of this process; raise unless the cluster can be reached."""
        self._cluster.check_running()
        self._here.__enter__()
        signals.listen()
        with self._lock:
            self._n_entered += 1
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the threads, and free what the workers hold for this engine."""
        for error in exception[1:2]:
            signals.forget(error)  # this engine may be held, and fit again
        with self._lock:
            self._n_entered -= 1
            last = self._n_entered == 0
            placed = [*self._placed.values()] if last else []
            sessions = [*self._sessions] if last else []
            if last:
                self._placed = {}
        try:
            for session in sessions:
                session.close()
            for _, data in placed:
                data.release()
            self._sweep()
        finally:
            signals.leave()
            self._here.__exit__(*exception)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of `function` in the order of the items, computed in this process."""
        return self._here.map(function, items)

    def each_part(
        self, function: Callable[[Part], Result], parts: Sequence[Part | Stored[Part]]
    ) -> Iterator[Result]:
        """Yield the results of `function` for partitions, in their order, as they are ready.

        Partitions in memory that were not sent to the workers before are worked on here.
        """
        stored = isinstance(parts[0], Stored)
        known = self._placed.get(_key(parts))
        if known is None and not stored:
            return map(function, cast(Sequence[Part], parts))
        data = known[1] if known else Placed(self._cluster, parts, stays=False)
        return self._on_workers(function, data)

    def open(
        self, latent: Latent[Part, Theta, State, SummaryOut], part: Part, theta: Theta
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session in this process, for rows that have to stay together."""
        return WholeSession(latent, part, theta)

    def open_parts(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Any],
        parts: Sequence[Part | Stored[Part]],
        theta: Theta,
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session on the cluster. Rows in memory are cut, and sent once for all runs."""
        self._sweep()
        pieces: list[Any] = [*parts]
        if not isinstance(parts[0], Stored):
            pieces = [piece for part in pieces for piece in self._cut(part)]
        data = self._place(parts, [piece.starting_from(None) for piece in pieces])
        given = [piece.given for piece in pieces]
        session = DaskSession(latent, data, given, theta, self._ended)
        self._sessions.add(session)
        return session

    def _cut(self, part: Any) -> list[Any]:
        return even_cuts(part, n_parts_of(part) if self.n_parts is None else self.n_parts)

    def _place(self, parts: Sequence[Any], pieces: Sequence[Any]) -> Placed:
        """Return the pieces of partitions on the workers, where they may be already."""
        key = _key(parts)
        with self._lock:
            if key not in self._placed:
                self._placed[key] = parts, Placed(self._cluster, pieces)
            return self._placed[key][1]

    def _on_workers(self, function: Callable[[Part], Result], data: Placed) -> Iterator[Result]:
        """Yield the results of workers. If data are lost, the rest is started again."""
        return resumed(partial(self._calls, function, data), len(data.homes))

    def _calls(
        self, function: Callable[[Part], Result], data: Placed, first: int
    ) -> Iterator[Result]:
        """Yield the results of workers for all partitions from the first on."""
        sources, makes = data.sources()
        (sent,) = self._cluster.send([Parcel(function)])
        items = data.homes[first:], sources[first:], makes[first:]
        futures = self._cluster.start_at_home(call, *items, asked=sent)
        try:
            while futures:
                result = self._cluster.fetch(futures[0], [sent, *data.fragile()])
                release([futures.pop(0)])
                yield result
        finally:
            self._cluster.cancel([sent, *futures])

    def _sweep(self) -> None:
        """Free the states of sessions that have ended."""
        names, self._ended[:] = self._ended[:], []
        if names:
            self._cluster.on_workers(forget, names)


def _key(parts: Sequence[Any]) -> tuple[int, ...]:
    """Return what stands for the rows of partitions, wherever they start from."""
    return tuple(id(found) for part in parts for found in part.content())


def is_client(found: object) -> bool:
    """Return True if something is a `distributed.Client`, without importing it."""
    library = sys.modules.get("distributed")
    return library is not None and isinstance(found, library.Client)


def checked_client(client: Any) -> Any:
    """Return a client that an engine can use; raise if it cannot."""
    if not is_client(client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}; make one: {HOW}")
    if client.asynchronous:
        raise ValueError(f"engine must be a client that is not asynchronous; make one: {HOW}")
    Cluster(client).check_running()
    return client


def current_client() -> Any:
    """Return the current client; raise if there is none, and start nothing."""
    try:
        from distributed import default_client
    except ImportError as error:
        raise ImportError(
            'engine="dask" needs dask and distributed: pip install "coem[dask]"'
        ) from error
    try:
        return checked_client(default_client())
    except ValueError as error:
        raise ValueError(
            f'engine="dask" needs a Dask client, and there is none. Make one first: {HOW}; on '
            "this machine alone: client = Client(processes=True)"
        ) from error
