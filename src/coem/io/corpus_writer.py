"""Write a corpus: a folder of rows, one shard after the other."""

import hashlib
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from coem.io._parts import locked, remove
from coem.io.whole import new_file
from coem.stored import (
    KEYS,
    MANIFEST,
    TABLE,
    Files,
    Manifest,
    StoredFile,
    StoredShard,
    StoredView,
    read_manifest,
    shard_name,
)
from coem.typing import Array, is_sparse
from coem.views import Views, as_views, row_keys


class CorpusWriter:
    """Append rows to a corpus; every call of `append` writes a shard.

    A shard counts once the manifest names it. What a killed process left behind is not named, and
    is removed when the next shard is written.

    Parameters
    ----------
    path : path
        The folder; a new one is made if there is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(exist_ok=True)
        self.manifest = Manifest()
        if (self.path / MANIFEST).exists():
            self.manifest = read_manifest(self.path)

    def append(self, X: Any, table: Any = None) -> None:
        """Write rows as the next shard.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The same views in every call.
        table : pyarrow.Table, optional
            The rows that the views come from; their texts are shown on a page.
        """
        views = as_views(X)
        described = describe(views)
        if self.manifest.shards and described != self.manifest.views:
            known = [vars(view) for view in self.manifest.views]
            raise ValueError(f"the corpus has the views {known}, not {list(map(vars, described))}")
        if table is not None and table.num_rows != len(views):
            raise ValueError(f"the table has {table.num_rows:,} rows, the views {len(views):,}")
        with writing_in(Path(os.path.realpath(self.path))):
            self._check_unchanged()
            clear(self.path, len(self.manifest.shards))
            folder = self.path / shard_name(len(self.manifest.shards))
            folder.mkdir()
            files = write_views(folder, views)
            files |= {} if table is None else write_table(folder, table)
            sync(folder)
            shards = *self.manifest.shards, StoredShard(len(views), files)
            self.manifest = replace(self.manifest, views=described, shards=shards)
            write_manifest(self.path, self.manifest)

    def _check_unchanged(self) -> None:
        known = read_manifest(self.path) if (self.path / MANIFEST).exists() else Manifest()
        if known.digest != self.manifest.digest:
            raise ValueError(f"{self.path} was changed by another writer; open it again")


class writing_in:
    """Hold the lock of a folder against other writers."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, locked(folder)

    def __enter__(self) -> None:
        try:
            self._lock.__enter__()
        except BlockingIOError:
            raise ValueError(
                f"{self._folder} is being written by another process; wait until it has ended"
            ) from None

    def __exit__(self, *error: Any) -> None:
        self._lock.__exit__(*error)


def describe(views: Views) -> tuple[StoredView, ...]:
    """Return what a manifest says of views."""
    return tuple(
        StoredView(name, int(X.shape[1]), is_sparse(X), str(X.dtype)) for name, X in views.items()
    )


def clear(folder: Path, n_shards: int) -> int:
    """Remove the shards that a manifest of `n_shards` does not name; return how many they were."""
    found = 0
    while (folder / shard_name(n_shards + found)).exists():
        remove(folder / shard_name(n_shards + found))
        found += 1
    return found


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest, in one step."""
    with new_file(folder / MANIFEST) as file:
        file.write(manifest.as_json())
    sync(folder)


# -- files --------------------------------------------------------------------------------------


class Writing:
    """A new file that is digested while it is written, and on the disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb")  # noqa: SIM115, it is closed below
        self._digest, self._size = hashlib.blake2b(digest_size=16), 0

    def write(self, data: Any) -> int:
        """Write some bytes."""
        part = memoryview(data).cast("B")
        self._file.write(part)
        self._digest.update(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        """Return how many bytes there are."""
        return self._size

    def flush(self) -> None:
        """Hand on what waits."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed

    def close(self) -> None:
        """Close the file; it may not be complete."""
        self._file.close()

    def end(self) -> StoredFile:
        """See to it that all is on the disk, and return what it is."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return StoredFile(self._size, self._digest.hexdigest())


def write_views(folder: Path, views: Views) -> Files:
    """Write the arrays of a shard."""
    return {name: write_array(folder / name, array) for name, array in _arrays(views).items()}


def write_array(path: Path, array: Array) -> StoredFile:
    """Write an array as a .npy file."""
    array = np.ascontiguousarray(array)
    file = Writing(path)
    try:
        npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(array))
        file.write(array.reshape(-1).view(np.uint8) if array.size else b"")
        return file.end()
    finally:
        file.close()


def write_table(folder: Path, table: Any) -> Files:
    """Write the table of a shard."""
    batch = pa.record_batch([_tidy(column) for column in table.columns], table.column_names)
    file = Writing(folder / TABLE)
    try:
        with pa.ipc.new_file(pa.PythonFile(file, "w"), batch.schema) as writer:
            writer.write_batch(batch)
        return {TABLE: file.end()}
    finally:
        file.close()


def _tidy(column: Any) -> Any:
    """Return a column in one piece, without the noise that may be in the place of a null."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # in older versions
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    if not array.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return array
    there = pa.array(np.asarray(array.is_valid()))
    values = array.fill_null(0)
    size = values.offset, values.buffers()[1]
    return pa.Array.from_buffers(kind, len(array), [there.buffers()[1], size[1]], offset=size[0])


def sync(folder: Path) -> None:
    """See to it that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(handle)
    finally:
        os.close(handle)


def _arrays(views: Views) -> dict[str, Array]:
    """Return the arrays of a shard by the names of their files."""
    arrays: dict[str, Array] = {KEYS: row_keys(views)}
    for i, (_, X) in enumerate(views.items()):
        if is_sparse(X):
            index = np.int32 if X.nnz < 1 << 31 else np.int64
            parts = {"indptr": X.indptr.astype(index), "indices": X.indices.astype(index)}
            parts["data"] = X.data
        else:
            parts = {"values": np.asarray(X)}
        arrays |= {f"{i}.{part}.npy": array for part, array in parts.items()}
    return arrays
