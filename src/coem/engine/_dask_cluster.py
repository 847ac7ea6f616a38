"""A Dask client as engines need it: send, start, wait, and notice what was lost."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, TypeVar

from coem.engine._dask_shared import CAN_SHARE, NotSharedError
from coem.engine._dask_signals import signals
from coem.kernels import threads

BEAT = 0.5  # seconds between two looks at work that is under way
PATIENCE = 60  # seconds to wait for the first worker
TRIES = 10  # times that work is started again after data were lost
GONE = ("lost", "cancelled")

Result = TypeVar("Result")


class Lost(Exception):
    """Data that only the driver can send again were on a worker that is no longer there."""


class Cluster:
    """The workers that a client reaches.

    Parameters
    ----------
    client : distributed.Client
        A running client.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    def workers(self) -> list[str]:
        """Return the address of each worker, once for each of its threads.

        Raises
        ------
        RuntimeError
            If no worker comes within a minute.
        """
        with self._reaching():
            found = self.client.nthreads()
            if not found:
                self._wait_for_worker()
                found = self.client.nthreads()
        return [address for address in sorted(found) for _ in range(found[address])]

    def memory(self) -> float:
        """Return the least memory of a worker in bytes; infinite if it has no limit."""
        with self._reaching():
            try:
                known = self.client.scheduler_info(n_workers=-1)
            except TypeError:  # older versions list all workers anyway
                known = self.client.scheduler_info()
        limits = [worker["memory_limit"] for worker in known["workers"].values()]
        return float(min((limit for limit in limits if limit), default=float("inf")))

    def send(self, values: Sequence[Any], workers: Sequence[str] | None = None) -> list[Any]:
        """Return futures of values, each of which is sent to one worker: one of `workers`, or any.

        The other workers fetch a value from there when a task needs it, once each. It is not
        broadcast, because Dask may wait without end if a worker is lost meanwhile.
        """
        with self._reaching():
            try:
                how = {"direct": self._direct, "hash": False}
                return list(self.client.scatter([*values], workers=workers, **how))
            except KeyError as error:  # the worker was lost before the scheduler heard of it
                raise Lost from error

    def start(
        self,
        function: Callable[..., Any],
        *items: Sequence[Any],
        home: str | None = None,
        priority: int = 0,
        **shared: Any,
    ) -> list[Any]:
        """Return futures of a function for all items; it runs on the worker `home` if it can."""
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with self._reaching():
            started = self.client.map(
                function,
                *items,
                key=f"coem-{function.__name__}",
                pure=False,
                priority=priority,
                **where,
                **shared,
            )
        return list(started)

    def start_at_home(
        self, function: Callable[..., Any], homes: Sequence[str], *items: Sequence[Any], **more: Any
    ) -> list[Any]:
        """Return futures of a function for all items, each on its own worker if it can."""
        futures: list[Any] = []
        for lo, hi in _runs(homes):
            some = [column[lo:hi] for column in items]
            futures += self.start(function, *some, home=homes[lo], **more)
        return futures

    def fetch(self, future: Any, fragile: Sequence[Any] = ()) -> Any:
        """Return the value in the parcel of a future, as `fetch_all` does."""
        return self.fetch_all([future], fragile)[0]

    def fetch_all(self, futures: Sequence[Any], fragile: Sequence[Any] = ()) -> list[Any]:
        """Return the values in the parcels of futures, when all are there.

        Raises
        ------
        Lost
            If one of the `fragile` futures is gone, which only the driver can make again.
        """
        from distributed import KilledWorker, wait

        with self._reaching(lambda: any(future.status == "error" for future in futures)):
            while True:
                signals.heed()
                try:
                    with self.client.as_current():  # it need not be the default client
                        wait(futures, timeout=BEAT)
                    break
                except TimeoutError as error:  # look, and listen to Ctrl-C
                    # Dask's frames and the error hold each other, and all frames below them: what
                    # the callers hold would stay on the workers until Python looks for cycles.
                    error.__traceback__ = None
                    threads.heed()
                    self.check_running()
                if any(other.status in GONE for other in fragile):
                    raise Lost
            try:
                parcels = self.client.gather([*futures], direct=self._direct)
                return [parcel.value for parcel in parcels]
            except NotSharedError:
                self.shares = False
                raise Lost from None
            except KilledWorker as error:  # a task was at work on several workers that were lost
                self.client.retry([future for future in futures if future.status == "error"])
                raise Lost from error

    def cancel(self, futures: Iterable[Any]) -> None:
        """Call off what is under way, and let go of it."""
        futures = [*futures]
        with suppress(Exception):  # the scheduler may be gone, and the work with it
            self.client.cancel(futures)
        release(futures)

    def on_workers(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function on every worker that answers."""
        with suppress(Exception):
            self.client.run(function, *args, on_error="ignore")

    def check_running(self) -> None:
        """Raise unless the client is connected to its scheduler."""
        if self.client.status != "running":
            raise ConnectionError(
                f"the Dask client is not connected to its scheduler (its status is "
                f"{self.client.status!r}); connect a new client and pass it as engine. With "
                "checkpoint, a fit goes on from its last saved round"
            )

    @cached_property
    def shares(self) -> bool:
        """Whether to try and share memory with the workers; False once one could not reach it."""
        return CAN_SHARE and self._is_near

    @cached_property
    def _is_near(self) -> bool:
        """Whether all workers have addresses of this machine; a tunnel may lead elsewhere."""
        return all(re.match(r"(tcp|tls)://127\.", address) for address in self.client.nthreads())

    @property
    def _direct(self) -> bool | None:
        """Return whether to talk to workers without the scheduler: as the user says, or if near."""
        if self.client.direct_to_workers is not None:
            return bool(self.client.direct_to_workers)
        return True if self._is_near else None

    def _wait_for_worker(self) -> None:
        asked = self.client.submit(int, pure=False)  # adaptive clusters start workers for tasks
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise RuntimeError(
                "the Dask cluster has no worker; start one, for example with `dask worker "
                "ADDRESS-OF-THE-SCHEDULER`, or `cluster.scale(2)`"
            ) from None
        finally:
            asked.release()

    @contextmanager
    def _reaching(self, failed: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Raise errors that say what is gone: data of a worker, or the scheduler.

        `failed` returns True if a task has raised the error, and not the way to it.
        """
        try:
            yield
        except Lost:
            raise
        except Exception as error:
            self.check_running()
            # A worker may end while something is sent to it. Errors of tasks are raised unchanged.
            if isinstance(error, CancelledError | OSError) and not failed():
                raise Lost from error
            raise


def release(futures: Iterable[Any]) -> None:
    """Let go of results at once. Python would, when it next looks for cycles of references."""
    for future in futures:
        future.release()


def retried(attempt: Callable[[], Result]) -> Result:
    """Return what `attempt` returns; call it again if data were lost on the way."""
    n_lost = 0
    while True:
        try:
            return attempt()
        except Lost:
            n_lost += 1
            check_tries(n_lost)


def resumed(begin: Callable[[int], Iterator[Result]], n_items: int) -> Iterator[Result]:
    """Yield what `begin(0)` yields; begin again at the first missing item if data were lost."""
    n_done = n_lost = 0
    while n_done < n_items:
        try:
            for item in begin(n_done):
                n_done, n_lost = n_done + 1, 0
                yield item
        except Lost:
            n_lost += 1
            check_tries(n_lost)


def check_tries(n_lost: int) -> None:
    """Give the scheduler time to notice a loss; raise after too many losses in a row."""
    if n_lost >= TRIES:
        raise RuntimeError(
            f"data were lost {n_lost} times in a row. If Dask workers have ended, look at their "
            "logs, and at their limits of memory. Blocks that were sent with scatter, and those of "
            "another client, cannot be made again: let tasks load them, and use this client"
        )
    time.sleep(BEAT)


def _runs(homes: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where runs of equal items begin and end."""
    lo = 0
    for hi in range(1, len(homes) + 1):
        if hi == len(homes) or homes[hi] != homes[lo]:
            yield lo, hi
            lo = hi
