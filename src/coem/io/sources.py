"""Bytes of a table: from files, plain or compressed, and standard input, as UTF-8."""

import difflib
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

CHUNK = 1 << 22
SAMPLE = 1 << 14  # bytes that tell UTF-16 from text with a stray NUL
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"PAR1": ".parquet"}
TRY = "give its encoding, such as cp1252 (--encoding cp1252, encoding='cp1252')"


class TableError(ValueError):
    """A table cannot be read; the message names the file, the row and what can be done."""


class NoText(TableError):
    """A source as a whole is no text of its encoding."""

    def __init__(self, source: str, row: int, reason: str) -> None:
        super().__init__(f"{source}, row {row}: {reason}")
        self.flaw = row, reason


@dataclass(frozen=True)
class Content:
    """What was read from one source."""

    source: str
    data: bytes
    fingerprint: str
    suffix: str = ""
    """``.csv`` and its like, without that of a compression."""


# -- bytes --------------------------------------------------------------------------------------


def check_there(path: Path) -> None:
    """Refuse a file or folder that is not there."""
    with _explained(path):
        path.stat()


def read_file(path: Path, suffix: str, packed: str, max_line: int) -> Content:
    """Return the content of a file, unpacked if `packed` is ``.gz`` or ``.zst``."""
    limit = None if suffix == ".parquet" else max_line
    with _explained(path):
        if packed == ".gz":
            with gzip.open(path, "rb") as file:
                return _read(file, str(path), suffix, limit)
        if packed == ".zst":
            with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, "zstd") as file:
                return _read(file, str(path), suffix, limit)
        with open(path, "rb") as file:
            return _read(file, str(path), suffix, limit)


def read_stdin(max_line: int) -> Content:
    """Return what standard input holds; what it is follows from its first bytes."""
    source, stream = "standard input", sys.stdin.buffer
    first = stream.read(4)
    kind = next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "")
    with _explained(source):
        content = _read(stream, source, kind, None if kind else max_line, first)
        if kind == ".gz":
            with gzip.open(io.BytesIO(content.data)) as file:
                content = _read(file, source, "", max_line)
        if kind == ".zst":
            with pa.CompressedInputStream(pa.BufferReader(content.data), "zstd") as file:
                content = _read(file, source, "", max_line)
    return content


@contextmanager
def _explained(source: Any) -> Iterator[None]:
    """Say what is wrong with a file in one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise TableError(f"there is no file {source}{_meant(Path(source))}") from error
    except PermissionError as error:
        raise TableError(f"{source}: no permission to read it; ask its owner (chmod +r)") from error
    except (EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException, OSError) as error:
        raise TableError(
            f"{source} is damaged or cut short ({_short(error)}); fetch it again"
        ) from error


def _meant(path: Path) -> str:
    """Return a name that may have been meant."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return f"; nor is there a folder {path.parent}"
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; check the name"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _read(file: Any, source: str, suffix: str, max_line: int | None, first: bytes = b"") -> Content:
    """Read everything, but for a line that is longer than it may be."""
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
                    "is no table of documents (in Python, max_line sets the limit)"
                )
            length = length + len(part) if head < 0 else len(part) - tail - 1
            n_lines += part.count(b"\n")
        part = file.read(size)
    return Content(source, b"".join(parts), digest.hexdigest(), suffix)


# -- text ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """Text in UTF-8, lines ending in a line feed, and the first place where it is none."""

    data: bytes
    flaw: tuple[int, str] | None = None
    """Row, counted from 1, and what is wrong there."""


def decode(content: Content, encoding: str | None) -> Text:
    """Return the text of some content: in the encoding given, that of its mark, or UTF-8."""
    data = content.data
    if encoding is not None:
        data = _recode(data, encoding, content.source)
    else:
        mark, named = next(((m, n) for m, n in BOMS if data.startswith(m)), (b"", None))
        data = data[len(mark) :]
        named = named or _guess_wide(data)
        if named is not None and named != "utf-8":
            data = _recode(data, named, content.source)
    if b"\n" not in data and b"\r" in data:  # as old Macs end their lines
        data = data.replace(b"\r", b"\n")
    return Text(data, _first_flaw(data, encoding))


def _recode(data: bytes, encoding: str, source: str) -> bytes:
    """Return data as UTF-8; bytes that are none in the encoding stay what they are."""
    try:
        text = data.decode(encoding, "surrogateescape")
    except LookupError as error:
        raise TableError(f"{source}: there is no encoding {encoding!r}; try 'cp1252'") from error
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        reason = f"the bytes are no {encoding.upper()} ({error.reason}); {TRY}"
        raise NoText(source, row, reason) from error
    return text.removeprefix("\ufeff").encode("utf-8", "surrogateescape")


def _guess_wide(data: bytes) -> str | None:
    """Return the encoding of text in two or four bytes a character that has no mark, or None."""
    sample = data[: min(SAMPLE, len(data) // 4 * 4)]
    if len(sample) < 4 or b"\x00" not in sample:
        return None
    size = len(sample) // 4
    zeros = [sample[i::4].count(0) / size for i in range(4)]
    if min(zeros[1:]) > 0.9 and zeros[0] < 0.1:
        return "utf-32-le"
    if min(zeros[:3]) > 0.9 and zeros[3] < 0.1:
        return "utf-32-be"
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    # Half of the characters from the first 256 are enough: commas, digits, ends of lines.
    if max(even, odd) > 0.5 and min(even, odd) < 0.05:
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _first_flaw(data: bytes, encoding: str | None) -> tuple[int, str] | None:
    """Return the row and the reason of the first byte that is no text."""
    places = []
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        known = "UTF-8" if encoding is None else encoding
        places.append((error.start, f"the byte {byte:#04x} is no {known}; {TRY}"))
    zero = data.find(b"\x00")
    if zero >= 0:
        places.append((zero, f"a NUL byte: the file is no text, or in UTF-16; {TRY}"))
    if not places:
        return None
    place, reason = min(places)
    return data.count(b"\n", 0, place) + 1, reason


def flaw_of(text: str) -> str | None:
    """Return what is wrong with the text of one row that was decoded with "surrogateescape"."""
    if "\x00" in text:
        return "a NUL byte"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return f"bytes that are no UTF-8; {TRY}"
    return None


def lines_of(data: bytes, start: int = 0) -> Iterator[bytes]:
    """Return the lines of some bytes, with their ends."""
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end
