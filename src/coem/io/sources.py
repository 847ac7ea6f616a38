"""Bytes of a table: from files, plain or compressed, and standard input."""

import difflib
import errno
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from coem.io.unpacking import Bounded, TooLarge
from coem.stored import work_beside

CHUNK = 1 << 22
MAGIC = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".xlsx",
}
PACKED = (".gz", ".zst")
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)  # a disk
NAMES = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)  # errors of the path, not of the content
WHOLE = (".json", ".parquet", ".xlsx")  # no tables of lines


class TableError(ValueError):
    """A table cannot be read; the message names the file, the row and what can be done."""


@dataclass(frozen=True)
class Content:
    """What was read from one source."""

    source: str
    data: bytes
    fingerprint: str
    suffix: str = ""
    """``.csv`` and its like, without that of a compression."""

    packed: int | None = None
    """Bytes of the file, if it was packed as a whole."""

    @property
    def n_packed(self) -> int:
        """Bytes that all of this was made of."""
        return len(self.data) if self.packed is None else self.packed


# -- bytes --------------------------------------------------------------------------------------


def check_there(path: Path) -> None:
    """Refuse a file or folder that is not there."""
    with explained(path):
        path.stat()


def read_file(path: Path, suffix: str, packed: str, max_line: int) -> Content:
    """Return the content of a file, unpacked if `packed` is ``.gz`` or ``.zst``."""
    limit = None if suffix in WHOLE else max_line
    with explained(path):
        if packed:
            size = path.stat().st_size
            with unpacked(path, packed) as file:
                bounded = Bounded(file, size, suffix)
                return replace(_read(bounded, str(path), suffix, limit), packed=size)
        with open(path, "rb") as file:
            return _read(file, str(path), suffix, limit)


def read_stdin(max_line: int) -> Content:
    """Return what standard input holds; what it is follows from its first bytes."""
    source, stream = "standard input", sys.stdin.buffer
    first = stream.read(4)
    kind = next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "")
    with explained(source):
        content = _read(stream, source, kind, None if kind else max_line, first)
        if kind in PACKED:
            with unpacked(io.BytesIO(content.data), kind) as file:
                return _read(Bounded(file, len(content.data)), source, "", max_line)
    return content


@contextmanager
def unpacked(packed: Any, how: str) -> Iterator[Any]:
    """Open a path or a file of bytes that is packed."""
    if how == ".gz":
        with gzip.open(packed, "rb") as file:
            yield file
        return
    raw = pa.OSFile(str(packed)) if isinstance(packed, Path) else pa.PythonFile(packed, "r")
    with raw, pa.CompressedInputStream(raw, "zstd") as file:
        yield file


@contextmanager
def explained(source: Any) -> Iterator[None]:
    """Say what is wrong with a file in one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise TableError(f"there is no file {source}{_meant(Path(source))}") from error
    except PermissionError as error:
        raise TableError(f"{source}: no permission to read it; ask its owner (chmod +r)") from error
    except TooLarge as error:
        raise TableError(f"{source} {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL:  # what is written has no room
            raise
        if isinstance(error, OSError) and error.errno in NAMES:
            raise TableError(
                f"{source} cannot be read ({str(error.strerror).lower()}); check the name"
            ) from error
        raise TableError(
            f"{source} is damaged or cut short ({_short(error)}); fetch it again"
        ) from error


def _meant(path: Path) -> str:
    """Return a name that may have been meant."""
    if work_beside(path).is_dir():
        return ": coem ingest was stopped before it was complete; give its call with --resume"
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return f"; nor is there a folder {path.parent}"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; check the name"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _read(file: Any, source: str, suffix: str, max_line: int | None, first: bytes = b"") -> Content:
    """Read everything; raise if a line is too long."""
    digest, parts, length, n_lines = hashlib.sha256(), [], 0, 0
    size = CHUNK if max_line is None else min(CHUNK, max_line)
    part = first or file.read(size)
    while part:
        digest.update(part)
        parts.append(part)
        if max_line is not None:
            head, tail = part.find(b"\n"), part.rfind(b"\n")
            # No longer than `max_line`, a part can hold no such line between two ends of lines.
            if length + (len(part) if head < 0 else head) > max_line:
                raise TableError(
                    f"{source}, row {n_lines + 1}: the line has more than {max_line:,} bytes; it "
                    "is not a table of documents (in Python, max_line sets the limit)"
                )
            length = length + len(part) if head < 0 else len(part) - tail - 1
            n_lines += part.count(b"\n")
        part = file.read(size)
    return Content(source, b"".join(parts), digest.hexdigest(), suffix)


def lines_of(data: bytes, start: int = 0) -> Iterator[bytes]:
    """Return the lines of some bytes, with their ends."""
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end
