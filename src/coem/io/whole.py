"""Files and folders that are written whole or not at all.

What is not complete has a hidden name beside its place (`coem.io._parts`). Only a file can be
replaced. What is written to a device, a FIFO or an open descriptor such as ``/dev/stdout`` goes
there when all of it is known.
"""

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from coem.io._parts import part_of
from coem.io._parts import recover as recover_place
from coem.io._swap import take_place

Name = str | os.PathLike[str]
LINKS = 40  # that are followed, as Linux does
MOST_DIGITS = 9  # of a descriptor
NO_DESCRIPTOR = (1 << 31) - 1  # more than any system has open


@contextmanager
def new_file(path: Name) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name once it is complete.

    `path` has the old content or the new one at any time, also if the machine stops in between.
    A stream (see `is_stream`) gets all of the content at once, or nothing.

    Raises
    ------
    OSError
        With the name of `path`, if it cannot be written.
    ValueError
        If `path` holds a NUL byte.
    """
    try:
        with _streamed(path) if is_stream(path) else _replaced(path) as file:
            yield file
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def is_stream(path: Name) -> bool:
    """Return whether a path leads to what cannot be replaced: a device, a FIFO, a descriptor."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def recover(path: Name) -> None:
    """Put back the folder that a killed process has moved away from its place, if it has."""
    _check_name(path)
    recover_place(Path(os.path.realpath(path)))


@contextmanager
def _replaced(path: Name) -> Iterator[BinaryIO]:
    target = _place(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    recover_place(target)
    with part_of(target, folder=False) as part:
        with open(part, "r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)


@contextmanager
def _streamed(path: Name) -> Iterator[BinaryIO]:
    """Collect what is written, since writers may go back in a file, and hand it on in the end."""
    with _opened(path) as stream, tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, stream)


def _opened(path: Name) -> BinaryIO:
    """Open an existing path for writing; do not create, truncate or replace it."""
    number = descriptor_of(path)
    if number is not None:
        return os.fdopen(os.dup(number), "wb")  # which goes on where the descriptor is
    mode = os.stat(path).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        raise OSError(errno.ENOTSUP, "It is a disk or a socket; name a file")
    return os.fdopen(os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0)), "wb")


def descriptor_of(path: Name) -> int | None:
    """Return which open file of this process a path stands for, such as 1 for /dev/stdout.

    The file that it was opened as must not be replaced: others may write to it, too.
    """
    _check_name(path)
    own = re.compile(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd")
    place = os.path.abspath(path)
    for _ in range(LINKS):
        folder, name = os.path.split(place)
        folder = os.path.realpath(folder)
        if name.isascii() and name.isdigit() and own.fullmatch(folder):
            return int(name) if len(name) <= MOST_DIGITS else NO_DESCRIPTOR
        try:
            place = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:
            return None
    return None


def _check_name(path: Name) -> None:
    """Refuse what no file can be called; the system would not say which it is."""
    if "\0" in os.fsdecode(path):
        raise ValueError(f"{os.fsdecode(path)!r} holds a NUL byte, which no name of a file can")


def _place(path: Name) -> Path:
    """Return the place that a path leads to, through all links.

    Raises
    ------
    OSError
        If links lead in a circle, or a name is too long.
    """
    _check_name(path)
    with suppress(FileNotFoundError):
        os.stat(path)
    return Path(os.path.realpath(path))


@contextmanager
def new_folder(
    path: Name,
    *,
    force: bool = False,
    mark: str | None = None,
    names: Collection[str] | None = None,
) -> Iterator[Path]:
    """Give a temporary folder to write to, which becomes `path` once it is complete.

    Parameters
    ----------
    path : path
        The folder to make, and the folders above it. It may be there and empty.
    force : bool, default=False
        Replace a folder that is not empty. The old one goes when the new one is complete: in one
        step, if the system can exchange two folders. If it cannot, and the process is killed
        between two steps, the old one is put back when the place is written to again.
    mark : str, optional
        The name of a file that every such folder has: with `force`, a folder without it is not
        replaced. It keeps ``force`` from deleting what was never written here.
    names : collection of str, optional
        All files that such a folder may hold: with `force`, one that holds another, or a folder of
        such a name, is not replaced.

    Raises
    ------
    FileExistsError
        Before anything is written, if `path` is not to be replaced.
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from coem.io import new_folder
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with new_folder(Path(home) / "run") as folder:
    ...         _ = (folder / "a.txt").write_text("all there")
    ...     (Path(home) / "run" / "a.txt").read_text()
    'all there'
    """
    target = _place(path)
    recover_place(target)
    _check_place(path, target, force, mark, names)
    target.parent.mkdir(parents=True, exist_ok=True)
    with part_of(target, folder=True) as part:
        yield part
        _sync(part)
        _check_place(path, target, force, mark, names)  # a long time may have passed
        take_place(part, target)
        _sync_folder(target.parent)


def check_new_folder(
    path: Name,
    *,
    force: bool = False,
    mark: str | None = None,
    names: Collection[str] | None = None,
) -> None:
    """Raise what `new_folder` would raise, before any work is done."""
    target = _place(path)
    recover_place(target)
    _check_place(path, target, force, mark, names)


def _check_place(
    path: Name,
    target: Path,
    force: bool,
    mark: str | None,
    names: Collection[str] | None,
) -> None:
    """Refuse what must not be replaced."""
    if is_stream(path):
        raise FileExistsError(f"{path} is a stream; name a folder that is not there yet")
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise FileExistsError(f"{path} is a file; name a folder that is not there yet")
    if Path.cwd().is_relative_to(target):
        raise FileExistsError(f"{path} is the folder you are in, or above it; name another one")
    if not any(target.iterdir()):
        return
    if not force:
        raise FileExistsError(
            f"{path} is there already and not empty; name another folder, or force its replacement"
        )
    if mark is not None and not (target / mark).is_file():
        raise FileExistsError(
            f"{path} has no {mark} in it and may hold something else; delete it yourself, or name "
            "another folder"
        )
    strange = [] if names is None else _strange(target, names)
    if strange:
        raise FileExistsError(
            f"{path} also holds {strange[0]}, which would be lost; move it, or name another folder"
        )


def _strange(folder: Path, names: Collection[str]) -> list[str]:
    """Return what is in a folder and not among the files that it may hold."""
    with os.scandir(folder) as entries:
        kinds = {
            entry.name: "link" if entry.is_symlink() else "folder"
            for entry in entries
            if entry.name not in names or not entry.is_file(follow_symlinks=False)
        }
    return sorted(f"a {kind} {name}" if name in names else name for name, kind in kinds.items())


def _sync(folder: Path) -> None:
    """See to it that all files of a folder are on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            with open(Path(place, name), "rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(place))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
