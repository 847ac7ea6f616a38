"""Files and folders that are written whole or not at all.

What is not complete has a name such as ``.model.coem.1234-5e6f.part`` beside its place: hidden,
with the number of the process that was writing it. A process that is killed leaves it behind; it
can be deleted at any time.
"""

import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

LONGEST = 200  # characters of a name; systems allow 255, and ours has more to it


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name once it is complete.

    Whoever opens `path` finds the old content or the new one, also if the machine stops in between.

    Raises
    ------
    OSError
        With the name of `path`, if it cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = _beside(target, "part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


@contextmanager
def new_folder(
    path: str | os.PathLike[str],
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
        Replace a folder that is not empty. The old one goes when the new one is complete, and
        comes back if that cannot take its name.
    mark : str, optional
        The name of a file that every such folder has: with `force`, a folder without it is not
        replaced. It keeps ``force`` from deleting what was never written here.
    names : collection of str, optional
        All names that such a folder may hold: with `force`, one that holds another is not replaced.

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
    target = Path(os.path.realpath(path))
    _check_place(path, target, force, mark, names)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(target, "part")
    temporary.mkdir()
    try:
        yield temporary
        _sync(temporary)
        _check_place(path, target, force, mark, names)  # a long time may have passed
        _swap(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _check_place(
    path: str | os.PathLike[str],
    target: Path,
    force: bool,
    mark: str | None,
    names: Collection[str] | None,
) -> None:
    """Refuse what must not be replaced."""
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
    strange = [] if names is None else sorted({p.name for p in target.iterdir()} - set(names))
    if strange:
        raise FileExistsError(
            f"{path} also holds {strange[0]}, which would be lost; move it, or name another folder"
        )


def _swap(temporary: Path, target: Path) -> None:
    """Let a folder take the place of another, or of none."""
    old = None
    if target.exists():
        old = _beside(target, "old")
        target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        if old is not None:
            old.rename(target)
        raise
    _sync_folder(target.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _beside(target: Path, kind: str) -> Path:
    """Return a name that nobody else has, in the same folder, so that a rename is enough."""
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    return target.parent / f".{target.name[:LONGEST]}.{token}.{kind}"


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
