"""What Dask workers do for a session. Everything here runs on a worker.

A worker keeps the states of its partitions from one turn to the next, while there is room. A state
that is not there, because another worker has it or had it, is inferred again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from coem.engine import blas
from coem.engine._dask_parcels import Parcel, n_bytes, unpack
from coem.protocols import Clock
from coem.typing import Array


@dataclass(frozen=True)
class Job:
    """What a step asks of every partition."""

    session: str  # names the session among all that the workers know
    clock: Clock
    turn: int | None = None  # gather the statistics of this turn
    summary: bool = False  # summarise the rows
    room: int = 0  # bytes of states that a worker may keep


class Sums(NamedTuple):
    """What a partition adds to the summary and the statistics of all rows."""

    summary: Any
    stats: Any


_states: dict[tuple[str, int], tuple[Any, int]] = {}  # with their bytes
_lock = Lock()


def settle(source: Any, make: Callable[[Any], Any]) -> Parcel[Any]:
    """Return a partition that a worker keeps, made where it will be needed."""
    with blas.one_thread():
        return Parcel(make(source))


def work(
    source: Any,
    make: Callable[[Any], Any] | None,
    given: Parcel[Array] | None,
    number: int,
    *,
    job: Job,
    skeleton: Parcel[bytes],
    tables: Sequence[Parcel[Array]],
) -> Parcel[Any]:
    """Return what a step asks of a partition; without a turn and a summary, its state.

    `source` is the partition in a parcel, or what `make` makes it of.
    """
    latent, theta = unpack(skeleton.value, [table.value for table in tables])
    with blas.one_thread():
        part = source.value if make is None else make(source)
        part = part if given is None else part.starting_from(given.value)
        state = latent.infer(part, theta, job.clock, _taken(job.session, number))
        if job.turn is None and not job.summary:
            return Parcel(state)
        summary = latent.summarise(part, theta, job.clock, state) if job.summary else None
        stats = None
        if job.turn is not None:
            stats = latent.gather(part, theta, job.turn, job.clock, state)
    _keep(job, number, state)
    return Parcel(Sums(summary, stats))


def add(one: Parcel[Sums], other: Parcel[Sums]) -> Parcel[Sums]:
    """Return the sums of the partitions of both."""
    pairs = zip(one.value, other.value, strict=True)
    return Parcel(Sums(*(None if a is None else a + b for a, b in pairs)))


def call(
    source: Any, make: Callable[[Any], Any] | None, asked: Parcel[Callable[[Any], Any]]
) -> Parcel[Any]:
    """Return the result of a function for a partition."""
    with blas.one_thread():
        return Parcel(asked.value(source.value if make is None else make(source)))


def forget(sessions: Sequence[str]) -> None:
    """Free the states of sessions that have ended."""
    with _lock:
        for key in [key for key in _states if key[0] in sessions]:
            del _states[key]


def n_kept() -> int:
    """Return the number of states that this process keeps."""
    return len(_states)


def load(stored: Any) -> Any:
    """Return a stored partition, read where this is called."""
    return stored.load()


def _taken(session: str, number: int) -> Any:
    """Return the kept state of a partition, which only the caller has from now on; or None."""
    with _lock:
        state, _ = _states.pop((session, number), (None, 0))
    return state


def _keep(job: Job, number: int, state: Any) -> None:
    """Keep a state for the next turn, if there is room for it."""
    size = n_bytes(state) if job.room else 0
    with _lock:
        if size and sum(other for _, other in _states.values()) + size <= job.room:
            _states[job.session, number] = state, size
