"""What Dask workers do for a session. Everything here runs on a worker.

A worker keeps the states of its partitions from one turn to the next, while there is room. A state
that is not there, because another worker has it or had it, is inferred again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from coem.engine import blas
from coem.engine._dask_parcels import Parcel, n_bytes, unpack
from coem.engine._dask_shared import Reference, parcel
from coem.engine._dask_tree import fold
from coem.engine.local import LocalEngine
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
    step: int = 0  # of the session; a state that is older than the step before is of no use


class Sums(NamedTuple):
    """What partitions add to the summary and the statistics of all rows."""

    summary: Any
    stats: Any


_states: dict[tuple[str, int], tuple[Any, int, int]] = {}  # with their bytes and their step
_ended: deque[str] = deque(maxlen=1000)  # sessions; a task of theirs may still be at work
_lock = Lock()


def settle(source: Any, make: Callable[[Any], Any]) -> Parcel[Any]:
    """Return a partition that a worker keeps, made where it will be needed."""
    with blas.one_thread():
        return Parcel(make(source))


def work(
    sources: Sequence[Any],
    makes: Sequence[Callable[[Any], Any] | None],
    starts: Sequence[Parcel[Array] | None],
    cuts: Sequence[tuple[int, int]],
    *,
    job: Job,
    skeleton: Parcel[bytes],
    tables: Sequence[Parcel[Array] | Reference[Array]],
    shares: bool,
) -> Parcel[Sums]:
    """Return what a step asks of a branch of the tree.

    The sources are its partitions in parcels, or what each of `makes` makes one of. `cuts` are the
    first partition of each leaf, and the one after its last. `shares` says whether other processes
    may be able to map what it returns.
    """
    latent, theta = unpack(skeleton.value, [table.value for table in tables])
    first = cuts[0][0]

    def leaf(number: int) -> Sums:
        total = Sums(None, None)
        for i in range(*cuts[number]):
            part = _part(sources[i - first], makes[i - first], starts[i - first])
            state = latent.infer(part, theta, job.clock, _taken(job.session, i))
            summary, stats = total
            if job.summary:
                seen = latent.summarise(part, theta, job.clock, state)
                summary = seen if summary is None else summary + seen
            if job.turn is not None:
                stats = latent.gather(part, theta, job.turn, job.clock, state, stats)
            _keep(job, i, state)
            total = Sums(summary, stats)
            del part, state  # before there are others
        return total

    with LocalEngine(1):  # kernels use their memory again
        return parcel(fold(0, len(cuts), leaf, _added_to), shares)


def state_of(
    source: Any,
    make: Callable[[Any], Any] | None,
    start: Parcel[Array] | None,
    number: int,
    *,
    job: Job,
    skeleton: Parcel[bytes],
    tables: Sequence[Parcel[Array] | Reference[Array]],
    shares: bool,
) -> Parcel[Any]:
    """Return the state of a partition."""
    latent, theta = unpack(skeleton.value, [table.value for table in tables])
    with LocalEngine(1):
        kept = _taken(job.session, number)
        state = latent.infer(_part(source, make, start), theta, job.clock, kept)
        return parcel(state, shares)


def _part(source: Any, make: Callable[[Any], Any] | None, start: Parcel[Array] | None) -> Any:
    """Return a partition, with its given start while there is one."""
    part = source.value if make is None else make(source)
    return part if start is None else part.starting_from(start.value)


def _added_to(one: Sums, other: Sums) -> Sums:
    """Return the sums of both, in the memory of the first, which has no other user."""
    summary = None if one.summary is None else one.summary + other.summary
    stats = one.stats
    if stats is not None:
        stats += other.stats
    return Sums(summary, stats)


def add(
    one: Parcel[Sums] | Reference[Sums], other: Parcel[Sums] | Reference[Sums], *, shares: bool
) -> Parcel[Sums]:
    """Return the sums of two branches."""
    return parcel(added(one.value, other.value), shares)


def added(one: Sums, other: Sums) -> Sums:
    """Return the sums of both."""
    return Sums(*(None if a is None else a + b for a, b in zip(one, other, strict=True)))


def call(
    source: Any, make: Callable[[Any], Any] | None, asked: Parcel[Callable[[Any], Any]]
) -> Parcel[Any]:
    """Return the result of a function for a partition."""
    with blas.one_thread():
        return Parcel(asked.value(source.value if make is None else make(source)))


def forget(sessions: Sequence[str]) -> None:
    """Free the states of sessions that have ended."""
    with _lock:
        _ended.extend(sessions)
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
        state, *_ = _states.pop((session, number), (None, 0, 0))
    return state


def _keep(job: Job, number: int, state: Any) -> None:
    """Keep a state for the next turn, if there is room for it."""
    size = n_bytes(state) if job.room else 0
    with _lock:
        if not size or job.session in _ended:
            return
        room = job.room - size - sum(other for _, other, _ in _states.values())
        # The process of another session may be dead, and another worker have an old state's rows.
        useless = [k for k, s in _states.items() if k[0] != job.session or s[2] < job.step - 1]
        for key in useless:
            if room >= 0:
                break
            room += _states.pop(key)[1]
        if room >= 0:
            _states[job.session, number] = state, size, job.step
