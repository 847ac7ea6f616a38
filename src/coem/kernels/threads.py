"""Threads and scratch memory that an engine lends to the kernels while it runs.

Kernels are serial and release the GIL. The Python functions that call them may divide the work into
independent parts, and run the parts on the threads of the running engine, if there is one. The
number of threads never changes a bit of the result.

Ctrl-C reaches the main thread alone. So threads that work for another one look at its `Flag` before
every part, and end with `Stopped` once it is up.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from functools import cache
from threading import Thread, get_ident
from typing import Any, NamedTuple, Protocol, TypeVar
from weakref import ref

import numpy as np

from coem.kernels import _compiled
from coem.typing import Array

Result = TypeVar("Result")

PAUSE = 0.002  # seconds between two looks at work that was called off
WORTH_KEEPING = 1 << 20  # bytes: malloc keeps less than that by itself
ROUND = 1 << 20  # bytes
MOST_LENT = 8  # arrays for one purpose whose memory is looked at, and at times kept
WAVE = 16  # results per worker that may wait to be added


class Pool(Protocol):
    """A number of workers and an ordered map."""

    n_workers: int

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results in the order of the items."""
        ...


class Serial:
    """The calling thread alone."""

    n_workers = 1

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results in the order of the items."""
        return one_by_one(function, items)


class _Lease:
    """What an array has its memory from: it ends with the last array that refers to it.

    Nothing is called when it ends. Python runs the handler of a signal where the next function
    begins, which after a kernel would often be that one, and drops what is raised there: Ctrl-C
    would be lost.
    """

    def __init__(self, memory: Array, used: Array) -> None:
        self.__array_interface__ = used.__array_interface__
        self._memory = memory
        self.notes: dict[str, float] = {}


class _Lent(NamedTuple):
    """Memory, and the lease that it was last lent with."""

    memory: Array
    lease: "ref[_Lease]"


@dataclass
class _Loan:
    pool: Pool
    scratch: dict[str, Array] = field(default_factory=dict)
    lent: dict[str, list[_Lent]] = field(default_factory=dict)  # by purpose, the latest last
    ended: bool = False

    def take_back(self, purpose: str, n_bytes: int) -> Array | None:
        """Return unused memory of this size, and release all other unused memory."""
        lent = self.lent.pop(purpose, [])  # at once: another thread would find none
        free = [one.memory for one in lent if one.lease() is None]
        self.lent[purpose] = [one for one in lent if one.lease() is not None]
        return next((memory for memory in reversed(free) if memory.nbytes == n_bytes), None)

    def remember(self, purpose: str, memory: Array, lease: _Lease) -> None:
        """Look at some memory when the next is needed; the oldest of too many is forgotten."""
        known = self.lent.get(purpose, [])
        self.lent[purpose] = [*known, _Lent(memory, ref(lease))][-MOST_LENT:]


_loan: ContextVar[_Loan | None] = ContextVar("coem_loan", default=None)


class Stopped(BaseException):
    """The work was called off, because the thread that waits for it was interrupted.

    It is no `Exception`, so that code that mends errors does not take it for one.
    """


class Flag:
    """A flag that one thread puts up to call off what other threads do for it."""

    def __init__(self) -> None:
        self._up = False
        self._outer = _flag.get()  # of the thread that this one works for, if there is one
        self._at_work: set[int] = set()  # threads

    @property
    def is_up(self) -> bool:
        """True once this flag is up, or that of work which this work is a part of."""
        return self._up or (self._outer is not None and self._outer.is_up)

    def heed(self) -> None:
        """Raise `Stopped` once the flag is up."""
        if self.is_up:
            raise Stopped

    def guard(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns in a context of its own, in which the flag is heeded.

        The code inside a task is serial: a task that waited for another task of the same threads
        could wait for itself. But a task may be a whole fit, and use its memory again.
        """

        def guarded() -> Result:
            _flag.set(self)
            self.heed()
            with lend(Serial()):
                return work()

        self._at_work.add(get_ident())
        try:
            return Context().run(guarded)
        finally:
            self._at_work.discard(get_ident())

    def call_off(self) -> None:
        """Put the flag up, and wait until no other thread is at work.

        A thread that is left behind in a kernel would crash the interpreter when that ends.
        """
        self._up = True
        while self._at_work - {get_ident()}:
            time.sleep(PAUSE)


_flag: ContextVar[Flag | None] = ContextVar("coem_flag", default=None)


def heed() -> None:
    """Raise `Stopped` if the work of this thread was called off."""
    flag = _flag.get()
    if flag is not None:
        flag.heed()


def aside(work: Callable[[], Result]) -> Result:
    """Return what `work` returns, done in a thread of its own.

    This is for one long call of a library that hears no signal and looks at no flag. After Ctrl-C
    coem does not wait for the call, and its result is lost.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run, name="coem-aside")
    thread.start()
    while thread.is_alive():
        thread.join(10 * PAUSE)
        heed()
    if errors:
        raise errors[0]
    return results[0]


@cache
def _keep_freed_memory() -> None:
    """Let malloc keep the memory of freed arrays for the next ones, in this process from now on.

    The malloc of glibc would ask the system for every array that is larger than all it has seen
    being freed, and give it back at once. Dask starts workers with settings that make it do so
    always. New pages cost more time than the work on them.
    """
    _compiled.keep_freed_memory()


@contextmanager
def lend(pool: Pool) -> Iterator[None]:
    """Let the kernels use `pool` inside this context."""
    _keep_freed_memory()
    loan = _Loan(pool)
    token = _loan.set(loan)
    try:
        yield
    finally:
        loan.ended, loan.lent = True, {}
        with suppress(ValueError):  # it is left in another context, where nothing was lent
            _loan.reset(token)


def n_workers() -> int:
    """Return how many threads the caller may use."""
    loan = _loan.get()
    return 1 if loan is None else loan.pool.n_workers


def spread(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call `function` with every item on the lent threads; return the results in order."""
    loan = _loan.get()
    return one_by_one(function, items) if loan is None else loan.pool.map(function, items)


def one_by_one(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call `function` with every item on this thread, until the work is called off."""
    flag = _flag.get()  # looked up once: there are many small items
    if flag is None:
        return [function(item) for item in items]
    results = []
    for item in items:
        flag.heed()
        results.append(function(item))
    return results


def add_up(function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
    """Return the sum of the results of `function`, added in the order of the items.

    Only `WAVE` results per worker exist at a time, however many items there are.
    """
    total: Any = None
    items, step = list(items), WAVE * n_workers()
    for first in range(0, len(items), step):
        for result in spread(function, items[first : first + step]):
            total = result if total is None else total + result
    return total


def scratch(name: str, shape: tuple[int, ...]) -> Array:
    """Return float64 memory for use within one call; its contents are undefined.

    While an engine runs, the same memory is reused in every round. New pages would cost more time
    than the sums that are written to them, and malloc would keep the old pages too.
    """
    loan = _loan.get()
    if loan is None:
        return np.empty(shape)
    kept = loan.scratch.get(name)
    if kept is None or kept.shape != shape:
        kept = loan.scratch[name] = np.empty(shape)
    return kept


def recycled(size: int, dtype: Any, purpose: str = "table") -> Array:
    """Return a new array (size,) to be filled, whatever its contents are.

    While an engine runs, its memory is that of the last such array of about this size that is not
    used any more. The system hands out pages of zeros, and to make them takes as long as to fill
    them. For each purpose, one array is kept: what else is free is let go of here.
    """
    loan = _loan.get()
    n_bytes = size * np.dtype(dtype).itemsize
    if loan is None or loan.ended or n_bytes < WORTH_KEEPING:
        used = np.empty(n_bytes, dtype=np.uint8).view(dtype)
        return np.asarray(_Lease(used, used))
    needed = -(-n_bytes // ROUND) * ROUND  # blocks differ by a row
    memory = loan.take_back(purpose, needed)
    if memory is None:
        memory = np.empty(needed, dtype=np.uint8)
    lease = _Lease(memory, memory[:n_bytes].view(dtype))
    loan.remember(purpose, memory, lease)
    return np.asarray(lease)


def notes(array: Array) -> dict[str, float]:
    """Return what is known of the contents of a `recycled` array; a new dict for any other.

    Code that fills the array may note what others would have to compute. The notes end with the
    array.
    """
    return array.base.notes if isinstance(array.base, _Lease) else {}
