"""What is not complete: under a hidden name beside its place, and locked.

The name is such as ``.model.coem.1234-5e6f7a8b.part``, with the number of the process that writes
there. The lock ends with the process, however it ends. So what has no lock was left by a process
that was killed, and goes when something is written to the same place again. A file system without
locks keeps it, and it can be deleted by hand at any time.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from coem.io._lock import CAREFULLY, HAS_LOCKS, lock
from coem.stored import stem_of

PART, OLD = "part", "old"  # what becomes a file or a folder, and what was one


def beside(target: Path, kind: str) -> Path:
    """Return an unused name in the same folder, so that a rename is enough."""
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    return target.parent / f".{stem_of(target.name)}.{token}.{kind}"


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or a folder, where the system has locks; say whether that is so.

    Raises
    ------
    BlockingIOError
        If another process holds it.
    OSError
        If there is nothing of that name, or it is a link.
    """
    if not HAS_LOCKS:  # what is open can neither be renamed nor removed there
        os.lstat(path)
        yield False
        return
    handle = os.open(path, os.O_RDONLY | CAREFULLY)
    try:
        yield lock(handle)
    finally:
        os.close(handle)


@contextmanager
def part_of(target: Path, *, folder: bool) -> Iterator[Path]:
    """Give an empty file or folder beside its place; what has its name in the end is removed."""
    with ExitStack() as held:
        yield _claimed(target, folder, held)


def _claimed(target: Path, folder: bool, held: ExitStack) -> Path:
    """Return a part that is locked.

    Before it is, it looks as if a killed process had left it, and another process may remove it.
    """
    while True:
        part = beside(target, PART)
        held.callback(remove, part)
        part.mkdir() if folder else part.touch(exist_ok=False)
        with suppress(BlockingIOError, FileNotFoundError):
            held.enter_context(locked(part))
            if part.exists():
                return part


def recover(target: Path) -> None:
    """Clear away what killed processes left beside a place; put back what had it.

    If the system cannot exchange two folders in one step, a process that is killed between two
    steps leaves nothing in the place, and what was there under a hidden name.
    """
    for path in _left(target):
        with suppress(OSError), locked(path) as ours:
            if path.suffix == f".{OLD}" and not os.path.lexists(target):
                path.rename(target)
            elif ours:
                remove(path)


def _left(target: Path) -> list[Path]:
    """Return what has such a name and is this user's, the latest first."""
    token = re.compile(rf"\.{re.escape(stem_of(target.name))}\.\d+-[0-9a-f]{{8}}\.({PART}|{OLD})")
    found = []
    user = getattr(os, "geteuid", None)  # Windows has none
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if token.fullmatch(entry.name):
                info = entry.stat(follow_symlinks=False)
                known = stat.S_ISDIR(info.st_mode) or stat.S_ISREG(info.st_mode)
                if known and (user is None or info.st_uid == user()):
                    found.append((info.st_ctime_ns, entry.path))
    return [Path(path) for _, path in sorted(found, reverse=True)]


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()
