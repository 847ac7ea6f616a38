"""The threads of this process."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import Context
from typing import Any, Self

import joblib

from coem.engine import blas
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
    SummaryOut,
    Theta,
)


class LocalEngine:
    """Keep all partitions in this process, and work on them with its threads.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1 (or what a joblib context says), -1 all
        processors. The number never changes a bit of any result.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = int(joblib.effective_n_jobs(n_jobs))
        self._pool: ThreadPoolExecutor | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the threads, lend them to the kernels and keep BLAS to one thread."""
        self._stack.enter_context(blas.one_thread())
        if self.n_workers > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_workers - 1))
        self._stack.enter_context(threads.lend(self))
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the threads."""
        self._stack.close()
        self._pool = None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of `function` in the order of the items."""
        items = list(items)
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: list[Any] = [None] * len(items)
        places = iter(range(len(items)))  # shared: a free thread takes the next one

        def work() -> None:
            try:
                for place in places:
                    results[place] = function(items[place])
            finally:
                for _ in places:  # after an error no thread starts another item
                    pass

        # Wake every thread once and not once per item, which costs more than many items do. The
        # calling thread works too, in a context without a loan, so that its tasks are serial.
        helpers = min(self.n_workers, len(items)) - 1
        waiting = [self._pool.submit(work) for _ in range(helpers)]
        try:
            Context().run(work)
        finally:
            wait(waiting)
        for future in waiting:
            future.result()
        return results

    def open(
        self, latent: Latent[Part, Theta, State, SummaryOut], part: Part, theta: Theta
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows that have to stay together."""
        return WholeSession(latent, part, theta)

    def open_parts(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Any],
        parts: Sequence[Part],
        theta: Theta,
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows in partitions; one partition takes the fast path."""
        if len(parts) == 1:
            return WholeSession(latent, parts[0], theta)
        return PartedSession(latent, parts, theta)
