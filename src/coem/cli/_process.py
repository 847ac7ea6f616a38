"""The process that the program runs in: its streams, the signals that end it, what it wrote."""

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from weakref import ref

import click

from coem.phrases import enumerated

STOPPED = "coem.cli.stopped"  # in the context: what a stopped verb has written, as a sentence
GO_ON = "coem.cli.go_on"  # in the context: how a stopped verb can go on, as a sentence
TARGETS = "coem.cli.targets"  # in the context: what a verb is to write, and what was there before
ENDING = tuple(  # Windows has no SIGHUP
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))  # by their number


class Terminated(KeyboardInterrupt):
    """The program was asked to end: what Ctrl-C undoes is undone then, too."""

    latest: "ref[Terminated] | None" = None

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        Terminated.latest = ref(self)

    @classmethod
    def on_its_way(cls) -> bool:
        """Return whether the latest one still exists.

        Python drops one that is raised in a method that is called when an object ends.
        """
        return cls.latest is not None and cls.latest() is not None


def open_streams() -> None:
    """Let streams that are closed lead nowhere.

    A file must not get their number: all output to that number would be written to the file.
    """
    for number, (name, mode) in enumerate(STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # The smallest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, it stays


def spare_addresses() -> None:
    """Let Arrow take memory from the system, if the address space of the process is limited.

    Its own allocator reserves 1 GiB of addresses at once, and a limit counts those. Arrow reads the
    variable when it is imported, and a choice of the user stays.
    """
    if sys.platform == "win32":
        return
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Let signals that end a process be an exception, so that nothing half written is left.

    One that is ignored stays so: nohup means it.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are not its business
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    heard = [number for number in ENDING if before[number] != signal.SIG_IGN]
    Terminated.latest = None  # a caller may have kept one that ended an earlier call
    try:
        for number in heard:
            signal.signal(number, _stop)
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number] or signal.SIG_DFL)


def _stop(number: int, frame: FrameType | None) -> None:
    """Raise `Terminated`, but not twice: a second one would cut the cleaning up.

    It is given no name here, since the frame of this call would then keep it when it is dropped.
    """
    if not Terminated.on_its_way():
        raise Terminated(number)


@contextmanager
def stopping_after_rounds(say: Callable[[], None]) -> Iterator[None]:
    """Let the first signal stop fits after their round, when their state is written.

    The second one, and the first one if no round is under way, stop the program at once. `say` is
    called when the program waits for the end of a round.
    """
    from coem.io import stopping

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if not numbers and stopping.ask():
            numbers.append(number)
            say()
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        _stop(number, frame)

    stopping.forget()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    heard = [number for number in before if before[number] != signal.SIG_IGN]
    try:
        for number in heard:
            signal.signal(number, hear)
        yield
    except stopping.StoppedAfterRound:
        raise Terminated(numbers[0] if numbers else signal.SIGINT) from None
    finally:
        stopping.forget()
        for number in heard:
            signal.signal(number, before[number] or signal.SIG_DFL)


def will_write(*paths: Path, by: str = "") -> None:
    """Record what a verb is about to write, so that `written` can say later if that was done.

    If a folder stays the same and gets more files, `by` is the file in it that is replaced last.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        known = {path: (path / by, _known_by(path / by)) for path in paths}
        context.meta.setdefault(TARGETS, {}).update(known)


def written(context: click.Context) -> str:
    """Return a sentence about what a verb has written so far: new or changed files and folders.

    Files are looked at, since a signal may come between the last step and any note of it.
    """
    if STOPPED in context.meta:
        return str(context.meta[STOPPED])
    return finished(context) or f"nothing was written{go_on(context)}"


def finished(context: click.Context) -> str:
    """Return a sentence that names the files and folders a verb has written, or nothing."""
    targets = context.meta.get(TARGETS, {}).items()
    done = [str(path) for path, (by, before) in targets if _known_by(by) not in (None, before)]
    return f"{enumerated(done)} {'was' if len(done) == 1 else 'were'} written" if done else ""


def go_on(context: click.Context) -> str:
    """Return how a verb that was stopped can go on, or nothing if it kept no state."""
    return f"; {context.meta[GO_ON]}" if GO_ON in context.meta else ""


def _known_by(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file or a folder from any other that had the name."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    changed = 0 if stat.S_ISDIR(info.st_mode) else info.st_ctime_ns  # by others, in a folder
    return info.st_dev, info.st_ino, changed
