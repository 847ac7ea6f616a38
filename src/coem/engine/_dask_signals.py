"""Signals that must not get lost.

Python drops an exception that is raised while it frees an object. A client of Dask frees futures
all the time, so that one Ctrl-C in some dozens would have no effect.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

NUMBERS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


class Signals:
    """The handlers of signals during a fit: what they raise is remembered until it is heeded.

    Handlers belong to the main thread. In another thread nothing is done. There is one object for
    all engines, which may be left in any order.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[..., Any]] = {}
        self._raised: BaseException | None = None
        self._n_listening = 0  # fits and `with` blocks of the main thread

    def listen(self) -> None:
        """Remember what handlers raise, until `leave` was called as often as this."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._n_listening += 1
        if self._n_listening > 1:
            return
        for number in NUMBERS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._before[number] = handler
                signal.signal(number, self._hear)

    def heed(self) -> None:
        """Raise what a handler has raised, if the fit has not ended because of it."""
        error = self._raised
        if error is not None and threading.current_thread() is threading.main_thread():
            self._raised = None
            try:
                raise error
            finally:
                del error  # or it and this frame hold each other, and all frames below

    def forget(self, error: object) -> None:
        """Forget what a handler has raised if it is the error that ends a fit."""
        if error is self._raised:
            self._raised = None

    def leave(self) -> None:
        """Put back the handlers that were there before, unless others still listen."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._n_listening -= 1
        if self._n_listening:
            return
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._hear:  # no other handler was set meanwhile
                signal.signal(number, handler)
        self._before, self._raised = {}, None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before[number](number, frame)
        except BaseException as error:
            self._raised = error
            raise


signals = Signals()
