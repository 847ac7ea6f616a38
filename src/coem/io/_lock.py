"""Locks of files and folders, which end with the process that holds them, however it ends.

Windows has no such locks, and some file systems have none. Work goes on without a lock there.
"""

import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from coem.held_file import HeldFile

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None
NAME = ".coem-lock"
TRIES = 100  # to lock a folder that others remove all the time
# Flags to open a path of any kind: follow no link, and do not wait for a writer.
CAREFULLY = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY"))


def lock(file: int | FileIO) -> bool:
    """Lock an open file or folder; return False if there are no locks here.

    Raises
    ------
    BlockingIOError
        If another process holds the lock.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # some file systems have no locks, or none of folders
        return False
    return True


class FolderLock:
    """The right to be the only one that works in a folder.

    The lock belongs to a file object from the moment it is taken. So it ends with this object at
    the latest, wherever Ctrl-C comes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self._file: FileIO | None = None

    def take(self) -> None:
        """Create the folder and lock it.

        Raises
        ------
        ValueError
            If another process holds the lock, or the file of that name is not a lock of coem.
        """
        was_made, why = False, ""
        for _ in range(TRIES):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                was_made = True
                if fcntl is None or self._try():
                    return
            except (FileNotFoundError, FileExistsError) as error:
                # Another fit has just removed the folder, or there can be none.
                why = f" ({str(error.strerror).lower()})"
            except BaseException:
                self._close()
                raise
            self._close()
        what = "goes away again and again" if was_made else "cannot be made"
        if self.folder.is_symlink():
            why = " (it is a link that leads to no folder)"
        raise ValueError(f"the checkpoint folder {self.folder} {what}{why}; choose another one")

    def release(self) -> None:
        """Unlock the folder, if it is locked, and remove the file of the lock."""
        if self._file is None:
            return
        with suppress(OSError):
            if self._is_in_place(self._file):
                self.path.unlink()
        self._close()

    def _try(self) -> bool:
        """Return True if the folder is now ours, False if its last owner has just left."""
        self._file = file = self._open()
        try:
            lock(file)
        except BlockingIOError:
            owner = (file.read(20) or b"").decode(errors="replace").strip() or "of unknown number"
            raise ValueError(
                f"the checkpoint folder {self.folder} is in use: process {owner} fits with it now; "
                "wait until that has ended, or give this fit a folder of its own"
            ) from None
        if not self._is_in_place(file):
            return False
        try:
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        except OSError as error:  # the disk is full
            self.release()
            with suppress(OSError):  # it holds the state of a fit
                self.folder.rmdir()
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        return True

    def _open(self) -> FileIO:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | CAREFULLY, 0o666)
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
                raise self._strange() from error
            raise
        file = HeldFile(handle, "r+")
        info = os.fstat(handle)
        if stat.S_ISREG(info.st_mode) and info.st_nlink < 2:  # none if it was just removed
            return file
        file.close()
        raise self._strange()

    def _strange(self) -> ValueError:
        return ValueError(
            f"{self.path} is not a regular file, and the checkpoint needs this name for its lock; "
            "delete it, or choose another checkpoint folder"
        )

    def _is_in_place(self, file: FileIO) -> bool:
        """Return True if the file of the lock is still the one that was opened."""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
