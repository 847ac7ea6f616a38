"""The files of a corpus: what its manifest says of them, and arrays that are mapped when needed.

A corpus may come from a stranger. So sizes and types are checked before anything is allocated or
read, and no name in the manifest leads to a file: all names follow from numbers.
"""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from coem._arrow import check_plain
from coem.typing import Array

MANIFEST = "corpus.json"
READER = "views.coem"  # the fitted `TextViews`
TABLE, KEYS = "table.arrow", "keys.npy"  # of a shard
WORK = ".ingest"  # what an ingest that is not finished needs
FORMAT, SCHEMA = "coem corpus", 2
LARGEST = 1 << 28  # bytes of a manifest
LONGEST = 200  # bytes of a name; systems allow 255, and hidden ones have more to them
MOST_ROWS = 1 << 40
MOST_VIEWS = 10_000
DTYPES = (
    "bool",
    *(f"float{n}" for n in (16, 32, 64)),
    *(f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)),
)
INDICES = ("int32", "int64")
DIGEST = re.compile(r"[0-9a-f]{32}")
SPARSE, DENSE = ("indptr", "indices", "data"), ("values",)
CHUNK = 1 << 22
ADVICE = "take it from a copy, or ingest again"


@dataclass(frozen=True)
class StoredView:
    """What a corpus says of one view."""

    name: str
    width: int
    sparse: bool
    dtype: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its arrays."""
        return SPARSE if self.sparse else DENSE


@dataclass(frozen=True)
class StoredFile:
    """The size and the digest of a file."""

    size: int
    digest: str


Files = dict[str, StoredFile]


@dataclass(frozen=True)
class StoredShard:
    """The rows and the files of a shard."""

    n_rows: int
    files: Files


@dataclass(frozen=True)
class Manifest:
    """What the manifest of a corpus says."""

    views: tuple[StoredView, ...] = ()
    shards: tuple[StoredShard, ...] = ()
    files: Files = field(default_factory=dict)
    """Beside the shards."""

    columns: dict[str, str | None] = field(default_factory=dict)
    """Which columns of the table have the ids and the labels."""

    ingests: tuple[dict[str, Any], ...] = ()
    """What was read, and how; the first made the views."""

    @property
    def digest(self) -> str:
        """What stands for all that the corpus holds."""
        digest = hashlib.blake2b(digest_size=16)
        for files in (self.files, *(shard.files for shard in self.shards)):
            known = {name: [file.size, file.digest] for name, file in sorted(files.items())}
            digest.update(json.dumps(known).encode())
        digest.update(json.dumps([vars(view) for view in self.views]).encode())
        digest.update(json.dumps(self.columns, sort_keys=True).encode())
        return digest.hexdigest()

    def as_json(self) -> bytes:
        """Return it as the file has it."""
        content = {
            "format": FORMAT,
            "schema": SCHEMA,
            "views": [vars(view) for view in self.views],
            "columns": self.columns,
            "files": _as_pairs(self.files),
            "ingests": list(self.ingests),
            "shards": [
                {"n_rows": shard.n_rows, "files": _as_pairs(shard.files)} for shard in self.shards
            ],
            "digest": self.digest,
        }
        return (json.dumps(content, indent=1) + "\n").encode()


def _as_pairs(files: Files) -> dict[str, Any]:
    return {name: [file.size, file.digest] for name, file in sorted(files.items())}


def shard_name(number: int) -> str:
    """Return the name of the folder of a shard."""
    return f"shard-{number:06d}"


def array_names(views: tuple[StoredView, ...]) -> list[str]:
    """Return the files of the arrays of a shard."""
    found = [f"{i}.{part}.npy" for i, view in enumerate(views) for part in view.parts]
    return [KEYS, *found]


def work_beside(folder: Path) -> Path:
    """Return where a corpus is made before it has its name."""
    return folder.parent / f".{stem_of(folder.name)}{WORK}"


def stem_of(name: str) -> str:
    """Return a name in so few bytes that there is room for more; of two names never the same."""
    spelt = os.fsencode(name)
    if len(spelt) <= LONGEST:
        return name
    short = spelt[: LONGEST - 9].decode("utf-8", "ignore")  # not half of a letter
    return f"{short}~{hashlib.sha256(spelt).hexdigest()[:8]}"


def is_corpus(path: Any) -> bool:
    """Return whether a path is the folder of a corpus."""
    return isinstance(path, str | os.PathLike) and (Path(path) / MANIFEST).is_file()


# -- the manifest -------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest:
    """Return what the manifest of a corpus says, checked.

    Raises
    ------
    ValueError
        If there is no corpus in the folder, or its manifest is damaged.
    """
    own = Path(os.path.realpath(folder))  # a link may lead to a corpus, and none out of it
    path = own / MANIFEST
    if not path.exists() and work_beside(own).is_dir():
        raise ValueError(
            f"{folder} is not a corpus yet: coem ingest has begun it and was stopped; give the "
            "same call again with --resume"
        )
    try:
        _check_regular(path)
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{folder} is not a corpus; write one with `coem ingest`") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{folder} is not a corpus, or its {MANIFEST} is damaged ({error!s:.120}); {ADVICE}"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by coem; write a corpus with `coem ingest`")
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{folder} is a corpus of another version of coem; ingest it again")
    try:
        manifest = _manifest(content)
        _need(content.get("digest") == manifest.digest, "the digest")
        return manifest
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!s:.120}; {ADVICE}") from error


def _manifest(content: Mapping[str, Any]) -> Manifest:
    views = tuple(_view(view) for view in _list(content["views"], MOST_VIEWS))
    _need(len({view.name for view in views}) == len(views), "two views of one name")
    names = {*array_names(views), TABLE}
    shards = tuple(_shard(shard, names) for shard in _list(content["shards"], MOST_ROWS))
    _need(sum(shard.n_rows for shard in shards) <= MOST_ROWS, "the number of rows")
    columns = content["columns"]
    texts = isinstance(columns, dict) and all(isinstance(v, str | None) for v in columns.values())
    _need(texts and set(columns) <= {"id", "label"}, "columns")
    ingests = _list(content["ingests"], MOST_ROWS)
    _need(all(isinstance(one, dict) for one in ingests), "ingests")
    files = _files(content["files"], {READER})
    return Manifest(views, shards, files, dict(columns), tuple(ingests))


def _need(good: bool, what: str) -> None:
    if not good:
        raise ValueError(f"wrong {what}")


def _list(value: Any, most: int) -> list[Any]:
    _need(isinstance(value, list) and len(value) <= most, "list")
    return list(value)


def _view(value: Any) -> StoredView:
    _need(isinstance(value, dict) and set(value) == {"name", "width", "sparse", "dtype"}, "view")
    name, width = value["name"], value["width"]
    _need(isinstance(name, str) and bool(name), "name of a view")
    _need(type(width) is int and 0 < width < 1 << 31, "width of a view")
    _need(isinstance(value["sparse"], bool) and value["dtype"] in DTYPES, "kind of a view")
    return StoredView(name, width, value["sparse"], value["dtype"])


def _shard(value: Any, names: set[str]) -> StoredShard:
    _need(isinstance(value, dict) and set(value) == {"n_rows", "files"}, "shard")
    n_rows = value["n_rows"]
    _need(type(n_rows) is int and 0 < n_rows <= MOST_ROWS, "number of rows")
    files = _files(value["files"], names)
    _need(names - {TABLE} <= set(files), "files of a shard")
    return StoredShard(n_rows, files)


def _files(value: Any, names: set[str]) -> Files:
    _need(isinstance(value, dict) and set(value) <= names, "files")
    return {name: stored_file(pair) for name, pair in value.items()}


def stored_file(pair: Any) -> StoredFile:
    """Return what JSON says of a file."""
    _need(isinstance(pair, list) and len(pair) == 2, "file")
    size, digest = pair
    _need(type(size) is int and 0 <= size < 1 << 60, "size of a file")
    _need(isinstance(digest, str) and DIGEST.fullmatch(digest) is not None, "digest of a file")
    return StoredFile(size, digest)


# -- files --------------------------------------------------------------------------------------


def damaged(path: Path, what: str) -> NoReturn:
    """Raise an error about a file of a corpus."""
    raise ValueError(f"the corpus is damaged: {path} {what}; {ADVICE}")


def _check_regular(path: Path) -> int:
    """Refuse links and devices; return the size."""
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode) or os.path.islink(path.parent):
        raise ValueError("it is not a regular file")
    return info.st_size


def check_size(path: Path, known: StoredFile) -> None:
    """Refuse a file that is not there, or has another size than the manifest says."""
    try:
        size = _check_regular(path)
    except FileNotFoundError:
        damaged(path, "is gone")
    except (OSError, ValueError) as error:
        damaged(path, f"cannot be read ({error!s:.120})")
    if size != known.size:
        damaged(path, f"has {size:,} bytes and not {known.size:,}")


def digest_of(path: Path) -> str:
    """Return the digest of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while part := file.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()


def check_file(path: Path, known: StoredFile) -> None:
    """Refuse a file that is not what was written."""
    check_size(path, known)
    if digest_of(path) != known.digest:
        damaged(path, "has other content than was written")


def map_array(path: Path, known: StoredFile, shape: tuple[int | None, ...], dtypes: Any) -> Array:
    """Return an array of a file, mapped into memory; None in a shape is any length."""
    check_size(path, known)
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            _need(version == (1, 0), "version")
            found, fortran, dtype = npy.read_array_header_1_0(file)
            place = file.tell()
    except Exception as error:  # NumPy can raise anything for bytes from a stranger
        damaged(path, f"is not an array ({error!s:.120})")
    fits = len(found) == len(shape) and all(
        type(n) is int and n >= 0 and want in (None, n)
        for n, want in zip(found, shape, strict=True)
    )
    size = int(np.prod([float(n) for n in found])) * dtype.itemsize if fits else -1
    if not fits or fortran or str(dtype) not in dtypes or place + size != known.size:
        damaged(path, f"holds {dtype!s:.40} of shape {found!s:.80} and not what it should")
    if not size:
        return np.zeros(found, dtype)
    try:
        return np.asarray(np.memmap(path, dtype, "r", place, found))
    except OSError as error:
        raise MemoryError(f"there is no room to map {path} ({error})") from error


def map_table(path: Path, known: StoredFile, n_rows: int) -> Any:
    """Return the table of a shard, mapped into memory."""
    check_size(path, known)
    try:
        with pa.memory_map(str(path)) as source:
            check_plain(memoryview(source.read_buffer()))
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            _need(reader.num_record_batches == 1, "number of parts")
            table = pa.Table.from_batches([reader.get_batch(0)])
            table.validate(full=True)
            _need(table.nbytes <= known.size, "size")
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryError(f"there is no room to map {path} ({error})") from error
        damaged(path, f"is not a table ({error!s:.120})")
    if table.num_rows != n_rows:
        damaged(path, f"has {table.num_rows:,} rows and not {n_rows:,}")
    return table
