"""Stop fits after a round, when their state has been written.

The program asks for this when it gets a signal (`ask`). A fit with a checkpoint looks at the end of
every round whether it was asked, writes its state, and raises `StoppedAfterRound`.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.RLock()  # a signal may come while its own thread holds it
_asked = threading.Event()
_under_way = 0  # fits with a checkpoint that are between two rounds


class StoppedAfterRound(Exception):
    """A fit was stopped after a round; its state is in its checkpoint.

    It is an `Exception`, because pools of threads hand on no others.
    """


def ask() -> bool:
    """Ask all fits with a checkpoint to stop; return False if none is under way."""
    _asked.set()
    return _under_way > 0


def forget() -> None:
    """Take back what was asked, before other fits begin."""
    _asked.clear()


def asked() -> bool:
    """Return whether fits should stop after their round."""
    return _asked.is_set()


@contextmanager
def rounds() -> Iterator[None]:
    """Count a fit as under way; raise at the end if it was asked to stop in the meantime."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)
    if asked():
        raise StoppedAfterRound


def _count(change: int) -> None:
    global _under_way
    with _lock:
        _under_way += change
