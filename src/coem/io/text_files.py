"""Files of text that are read one part after the other: unpacked, and in UTF-8."""

import codecs
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from coem.io.encodings import BOMS, NUL, SAMPLE, TRY, WINDOWS, NoText, Signs, guess_wide, no_text
from coem.io.sources import CHUNK, MAGIC, TableError, explained, unpacked
from coem.io.unpacking import Bounded

Flaw = tuple[int, str]


@dataclass(frozen=True)
class PlainText:
    """A file of text in UTF-8 whose lines end in a line feed."""

    source: str
    path: Path
    start: int
    """Byte after the mark of the encoding."""

    size: int
    fingerprint: str
    """SHA-256 of what was read, unpacked."""

    n_quotes: int
    flaw: Flaw | None = None
    """Row, counted from 1, and what is wrong there."""

    guessed: str | None = None
    """The encoding, if it was neither given nor marked, and is not UTF-8."""

    def open(self, place: int | None = None) -> BinaryIO:
        """Open the file at a byte, or at its beginning."""
        with explained(self.source):
            file = open(self.path, "rb")  # noqa: SIM115, the caller closes it
            file.seek(self.start if place is None else place)
            return file

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        with self.open() as file:
            return file.read(size)

    def tail(self, size: int) -> bytes:
        """Return the last bytes."""
        with self.open(max(self.size - size, self.start)) as file:
            return file.read(size)


def spool_stdin(scratch: Path) -> tuple[Path, str]:
    """Write what standard input holds to a file; return it, and what its first bytes say it is."""
    path, stream = scratch / "stdin", sys.stdin.buffer
    first = stream.read(4)
    kind = next((kind for magic, kind in MAGIC.items() if first.startswith(magic)), "")
    with open(path, "wb") as file:
        file.write(first)
        for part in parts_of(stream, "standard input"):
            file.write(part)
    return path, kind


def unpack(path: Path, packed: str, place: Path, source: str, suffix: str = "") -> Path:
    """Write what a packed file holds to a place; `suffix` is that of what it holds, if known."""
    with explained(source):
        size = path.stat().st_size
        with unpacked(path, packed) as stream, open(place, "wb") as file:
            for part in parts_of(Bounded(stream, size, suffix), source):
                file.write(part)
    return place


def parts_of(file: Any, source: str, size: int = CHUNK) -> Iterator[bytes]:
    """Return the content of an open file, some bytes at a time."""
    while True:
        with explained(source):
            part = file.read(size)
        if not part:
            return
        yield bytes(part)


def fingerprint_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with explained(path), open(path, "rb") as file:
        for part in parts_of(file, str(path)):
            digest.update(part)
    return digest.hexdigest()


def plain_text(
    path: Path, source: str, place: Path, encoding: str | None, max_line: int
) -> PlainText:
    """Return the text of a file, as `coem.io.encodings.decode` does.

    Parameters
    ----------
    path : Path
        A file that is not packed.
    source : str
        What errors call it.
    place : Path
        Where the text is written if it must be recoded.
    encoding : str, optional
    max_line : int
        Bytes of the longest line.
    """
    scan = _scan(path, source, max_line=max_line)
    with open(path, "rb") as file:
        first = file.read(SAMPLE + 4)
    start, named, guessed = 0, encoding, None
    if encoding is None:
        mark, named = next(((m, n) for m, n in BOMS if first.startswith(m)), (b"", None))
        start = len(mark)
        guessed = None if mark else guess_wide(first[: min(SAMPLE, scan.size)])
        named = named or guessed
    found = scan
    if named is not None and (named != "utf-8" or encoding is not None):
        found = _recoded(path, place, named, source, start, encoding)
        start = 0
    elif start:
        found = _scan(path, source, start=start)
    if found.flaw and encoding is None and guessed is None and _seems_windows(found, start, source):
        found, guessed = _recoded(found.path, place, WINDOWS, source, start, None), WINDOWS
        start = 0
    if found.has_returns and not found.has_lines:  # as old Macs end their lines
        found, start = _with_line_feeds(found, place, source, start), 0
    about = found.path, start, found.size, scan.digest, found.n_quotes
    return PlainText(source, *about, found.flaw, guessed)


# -- one look at all bytes ----------------------------------------------------------------------


@dataclass
class _Scan:
    path: Path
    size: int = 0
    digest: str = ""
    n_quotes: int = 0
    n_lines: int = 0
    has_returns: bool = False
    flaw: Flaw | None = None

    @property
    def has_lines(self) -> bool:
        return self.n_lines > 0


def _scan(
    path: Path,
    source: str,
    *,
    start: int = 0,
    encoding: str | None = None,
    max_line: int | None = None,
) -> _Scan:
    """Look at all bytes of a file from a place on."""
    scan, digest = _Scan(path), hashlib.sha256()
    look, length = _Flaws(encoding), 0
    with explained(source), open(path, "rb") as file:
        file.seek(start)
        for part in parts_of(file, source, min(CHUNK, max_line or CHUNK)):
            digest.update(part)
            if max_line is not None:
                length = _check_line(part, length, scan.n_lines, source, max_line)
            look.add(part)
            scan.n_quotes += part.count(b'"')
            scan.n_lines += part.count(b"\n")
            scan.has_returns = scan.has_returns or b"\r" in part
            scan.size += len(part)
    scan.size += start
    scan.digest, scan.flaw = digest.hexdigest(), look.end()
    return scan


def _check_line(part: bytes, length: int, n_lines: int, source: str, max_line: int) -> int:
    """Return how long the last line is so far; refuse one that is too long."""
    head, tail = part.find(b"\n"), part.rfind(b"\n")
    # No longer than `max_line`, a part can hold no such line between two ends of lines.
    if length + (len(part) if head < 0 else head) > max_line:
        raise TableError(
            f"{source}, row {n_lines + 1}: the line has more than {max_line:,} bytes; it is not "
            "a table of documents (in Python, max_line sets the limit)"
        )
    return length + len(part) if head < 0 else len(part) - tail - 1


class _Flaws:
    """Finds the first byte that is not text."""

    def __init__(self, encoding: str | None) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoding = encoding
        self._n_lines = 0
        self._flaw: Flaw | None = None

    def add(self, part: bytes, *, last: bool = False) -> None:
        if self._flaw is not None:
            return
        waiting = self._decoder.getstate()[0]
        places = []
        try:
            self._decoder.decode(part, last)
        except UnicodeDecodeError as error:
            byte = (waiting + part)[error.start]
            places.append((error.start, no_text(byte, self._encoding)))
        zero = part.find(b"\x00")
        if zero >= 0:
            places.append((zero + len(waiting), NUL))
        if places:
            place, reason = min(places)
            self._flaw = self._n_lines + (waiting + part).count(b"\n", 0, place) + 1, reason
        self._n_lines += part.count(b"\n")

    def end(self) -> Flaw | None:
        self.add(b"", last=True)
        return self._flaw


def _seems_windows(found: _Scan, start: int, source: str) -> bool:
    signs = Signs()
    with open(found.path, "rb") as file:
        file.seek(start)
        for part in parts_of(file, source):
            signs.add(part)
    signs.add(b"", last=True)
    return signs.are_windows


# -- another encoding ---------------------------------------------------------------------------


def _recoded(
    path: Path, place: Path, named: str, source: str, start: int, encoding: str | None
) -> _Scan:
    """Write a file as UTF-8; bytes that are invalid in the encoding stay unchanged."""
    place = place.with_suffix(f"{place.suffix}.utf-8")
    try:
        decoder = codecs.getincrementaldecoder(named)("surrogateescape")
        if not isinstance(decoder.decode(b""), str):
            raise LookupError(named)
    except (LookupError, ValueError, TypeError) as error:  # codecs that are for other things
        raise TableError(f"{source}: there is no encoding {named!r}; try 'cp1252'") from error
    n_lines, first = 0, True
    with open(path, "rb") as file, open(place, "wb") as out:
        file.seek(start)
        for part in _with_end(parts_of(file, source)):
            text = _decoded(decoder, part, named, source, n_lines)
            if first and text:
                text, first = text.removeprefix("\ufeff"), False
            n_lines += text.count("\n")
            try:
                out.write(text.encode("utf-8", "surrogateescape"))
            except UnicodeEncodeError as error:
                row = n_lines - text.count("\n") + text.count("\n", 0, error.start) + 1
                reason = f"half a character in {named.upper()}; {TRY}"
                raise NoText(source, row, reason) from error
    return _scan(place, source, encoding=encoding)


def _with_end(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Return parts, and an empty one at the end."""
    yield from parts
    yield b""


def _decoded(decoder: Any, part: bytes, named: str, source: str, n_lines: int) -> str:
    try:
        text: str = decoder.decode(part, not part)
        return text
    except UnicodeDecodeError as error:
        lines = n_lines
        with suppress(UnicodeDecodeError):
            lines += error.object[: error.start].decode(named, "replace").count("\n")
        reason = f"the bytes are not {named.upper()} ({error.reason}); {TRY}"
        raise NoText(source, lines + 1, reason) from error


def _with_line_feeds(found: _Scan, place: Path, source: str, start: int) -> _Scan:
    place = place.with_suffix(f"{place.suffix}.lines")
    with open(found.path, "rb") as file, open(place, "wb") as out:
        file.seek(start)
        for part in parts_of(file, source):
            out.write(part.replace(b"\r", b"\n"))
    scan = _scan(place, source)
    scan.flaw = found.flaw
    return scan
