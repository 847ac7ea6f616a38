"""The threads of this process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, cast

import joblib

from coem.engine import blas
from coem.engine.corpus import StreamedSession, read_ahead
from coem.engine.sessions import PartedSession, WholeSession
from coem.kernels import threads
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

# Results do not depend on it, and more threads than that gain nothing and take memory.
MOST_THREADS = max(16, 4 * joblib.cpu_count())


class Crew:
    """The threads of one fit: the calling thread and some helpers."""

    def __init__(self, n_workers: int, helpers: ThreadPoolExecutor | None) -> None:
        self.n_workers = n_workers
        self._helpers = helpers

    def disband(self) -> None:
        """Send the helpers away; the calling thread does the rest, if there is any."""
        self.n_workers, self._helpers = 1, None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of `function` in the order of the items."""
        items, helpers = list(items), self._helpers
        if helpers is None or len(items) < 2:
            return threads.one_by_one(function, items)
        results: list[Any] = [None] * len(items)
        places = iter(range(len(items)))  # shared: a free thread takes the next one
        flag = threads.Flag()

        def work() -> None:
            try:
                for place in places:
                    flag.heed()
                    results[place] = function(items[place])
            finally:
                for _ in places:  # after an error no thread starts another item
                    pass

        # Wake every thread once and not once per item, which costs more than many items do.
        waiting: list[Future[None]] = []
        try:
            for _ in range(min(self.n_workers, len(items)) - 1):
                waiting.append(helpers.submit(flag.guard, work))
            flag.guard(work)
            wait(waiting)
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C: the results under way are not needed
                flag.call_off()
            wait(waiting)
            raise
        for future in waiting:
            future.result()
        return results


class _Entry(NamedTuple):
    """An engine that was entered, its crew, and how it is left."""

    engine: "LocalEngine"
    crew: Crew
    stack: ExitStack


# What a thread has entered, one inside the other. It belongs to the thread and not to the engine,
# so that fits in several threads can share an engine.
_entered: ContextVar[tuple[_Entry, ...]] = ContextVar("coem_entered", default=())
_running: list[_Entry] = []  # of all threads


class LocalEngine:
    """Keep all partitions in this process, and work on them with its threads.

    Several threads may fit with one engine at the same time. Each fit then has `n_jobs` threads of
    its own.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1 (or what a joblib context says), -1 all
        processors. There are at most 16, or 4 for each processor if that is more. The number
        never changes a bit of any result.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = int(min(joblib.effective_n_jobs(n_jobs), MOST_THREADS))

    def __enter__(self) -> Self:
        """Start the threads, lend them to the kernels and keep BLAS to one thread."""
        with ExitStack() as stack:
            stack.enter_context(blas.one_thread())
            helpers = None
            if self.n_workers > 1:
                helpers = stack.enter_context(ThreadPoolExecutor(self.n_workers - 1))
            crew = Crew(self.n_workers, helpers)
            stack.callback(crew.disband)
            stack.enter_context(threads.lend(crew))
            entry = _Entry(self, crew, stack.pop_all())
            _running.append(entry)
            _entered.set((*_entered.get(), entry))
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the threads.

        Frameworks may leave an engine in another thread or context than they entered it.
        """
        entry = self._last(_entered.get()) or self._last(_running)
        if entry is None:
            raise RuntimeError("this engine is left more often than it was entered")
        _entered.set(tuple(other for other in _entered.get() if other is not entry))
        with suppress(ValueError):
            _running.remove(entry)
        entry.stack.close()

    def _last(self, entries: Sequence[_Entry]) -> _Entry | None:
        """Return the last entry of this engine, or None if there is none."""
        return next((entry for entry in reversed(entries) if entry.engine is self), None)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of `function` in the order of the items.

        A thread that has not entered this engine does all the work itself.
        """
        entry = self._last(_entered.get())
        crew = Crew(1, None) if entry is None else entry.crew
        return crew.map(function, items)

    def each_part(
        self, function: Callable[[Part], Result], parts: Sequence[Part | Stored[Part]]
    ) -> Iterator[Result]:
        """Yield the results of `function` for partitions, in their order."""
        if isinstance(parts[0], Stored):
            return map(function, read_ahead(cast(Sequence[Stored[Part]], parts)))
        return map(function, cast(Sequence[Part], parts))

    def open(
        self, latent: Latent[Part, Theta, State, SummaryOut], part: Part, theta: Theta
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows that have to stay together."""
        return WholeSession(latent, part, theta)

    def open_parts(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Any],
        parts: Sequence[Part | Stored[Part]],
        theta: Theta,
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows in partitions; one partition takes the fast path."""
        if isinstance(parts[0], Stored):
            return StreamedSession(latent, cast(Sequence[Stored[Part]], parts), theta)
        here = cast(Sequence[Part], parts)
        if len(here) == 1:
            return WholeSession(latent, here[0], theta)
        return PartedSession(latent, here, theta)
