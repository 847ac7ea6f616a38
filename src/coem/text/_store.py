"""A store of vectors on disk: files that are whole or not there, for several processes at once."""

import hashlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from coem.io.whole import new_file

DIGEST = 16  # bytes that stand for a text
MANY = 100  # files; more of them become one


def digest(text):
    """Return the key of a text."""
    return hashlib.blake2b(text.encode(), digest_size=DIGEST).digest()


class Store:
    """The vectors of one encoder in a folder, by the digests of their texts.

    Every file is written once, under a name that its content decides. So processes that add at the
    same time do not disturb each other, and one that is killed leaves what it has finished.

    Parameters
    ----------
    folder : path
        It is made if it is not there.
    view : str
        The view that the vectors are for, for errors.
    """

    def __init__(self, folder, view):
        self.folder, self.view = Path(folder), view
        self.folder.mkdir(parents=True, exist_ok=True)
        self._parts, self._places = {}, {}
        for path in sorted(self.folder.glob("*.npy")):
            with suppress(FileNotFoundError):  # another process has just put files together
                self._keep(path, self._read(path))

    def __len__(self):
        return len(self._places)

    def __contains__(self, key):
        return key in self._places

    def take(self, keys):
        """Return the vectors of some keys, as rows."""
        places = [self._places[key] for key in keys]
        parts = {path: self._parts[path]["vector"] for path, _ in places}
        if len({part.shape[1] for part in parts.values()}) > 1:
            raise ValueError(
                f"view {self.view!r}: {self.folder} holds vectors of different lengths; empty it"
            )
        first = next(iter(parts.values()))
        found = np.empty((len(keys), first.shape[1]), np.result_type(*parts.values()))
        owners = np.array([path.name for path, _ in places])
        rows = np.array([row for _, row in places])
        for path, part in parts.items():
            mine = owners == path.name
            found[mine] = part[rows[mine]]
        return found

    def add(self, keys, vectors):
        """Write vectors to a file of their own, and have them from now on."""
        kind = [("key", np.uint8, DIGEST), ("vector", vectors.dtype, (vectors.shape[1],))]
        rows = np.empty(len(keys), kind)
        rows["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, DIGEST)
        rows["vector"] = vectors
        self._keep(self._write(rows), rows)

    def tidy(self):
        """Put many files together as one; those that others add meanwhile stay."""
        if len(self._parts) <= MANY or len({part.dtype for part in self._parts.values()}) > 1:
            return
        whole = self._write(np.concatenate(list(self._parts.values())))
        for path in self._parts:
            if path != whole:
                path.unlink(missing_ok=True)

    def _keep(self, path, rows):
        self._parts[path] = rows
        whole = np.ascontiguousarray(rows["key"]).tobytes()
        for row in range(len(rows)):
            self._places[whole[row * DIGEST : (row + 1) * DIGEST]] = path, row

    def _read(self, path):
        """Return the rows of a file, which stay on the disk until they are needed."""
        try:
            rows = np.load(path, mmap_mode="r", allow_pickle=False)
            if rows["key"].shape != (len(rows), DIGEST) or rows["vector"].ndim != 2:
                raise ValueError("its rows are of another form")
        except FileNotFoundError:
            raise
        except (OSError, ValueError, EOFError, IndexError) as error:
            raise ValueError(
                f"view {self.view!r}: {path} holds no vectors ({error}); delete it"
            ) from error
        return rows

    def _write(self, rows):
        keys = np.ascontiguousarray(rows["key"]).tobytes()
        path = self.folder / f"{hashlib.blake2b(keys, digest_size=16).hexdigest()}.npy"
        with new_file(path) as file:
            np.save(file, rows, allow_pickle=False)
        return path
