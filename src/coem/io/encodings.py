"""From bytes to text: encodings that are given, marked or guessed."""

import codecs
import re
from dataclasses import dataclass
from typing import Any

from coem.io.sources import Content, TableError

SAMPLE = 1 << 14  # bytes that tell UTF-16 from text with a stray NUL
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
TRY = "give its encoding, such as cp1252 (--encoding cp1252, encoding='cp1252')"
NUL = f"a NUL byte: the file is not text, or is in UTF-16; {TRY}"
WINDOWS = "cp1252"  # Latin-1 is a part of it
FOREIGN = 0.3  # of the letters are beyond ASCII: no language in Latin letters has so many
FEW = 10  # letters beyond ASCII tell nothing of the alphabet
CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1f]")
LETTERS = re.compile(rb"[A-Za-z]")
UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")  # which cp1252 has not
BAD, GOOD = re.compile("[\udc80-\udcff]"), re.compile("[^\x00-\x7f\udc80-\udcff]")


class NoText(TableError):
    """A source cannot be read in its encoding."""

    def __init__(self, source: str, row: int, reason: str) -> None:
        super().__init__(f"{source}, row {row}: {reason}")
        self.flaw = row, reason


@dataclass(frozen=True)
class Text:
    """Text in UTF-8, lines ending in a line feed, and the first place that is not UTF-8."""

    data: bytes
    flaw: tuple[int, str] | None = None
    """Row, counted from 1, and what is wrong there."""

    guessed: str | None = None
    """The encoding, if it was neither given nor marked, and is not UTF-8."""


def decode(content: Content, encoding: str | None) -> Text:
    """Return the text of some content: in the encoding given, that of its mark, or a guess."""
    data, guessed = content.data, None
    if encoding is not None:
        data = _recode(data, encoding, content.source)
    else:
        mark, named = next(((m, n) for m, n in BOMS if data.startswith(m)), (b"", None))
        data = data[len(mark) :]
        guessed = None if mark else guess_wide(data)
        named = named or guessed
        if named is not None and named != "utf-8":
            data = _recode(data, named, content.source)
    flaw = _first_flaw(data, encoding)
    if flaw is not None and encoding is None and guessed is None and _is_windows(data):
        data, flaw, guessed = _recode(data, WINDOWS, content.source), None, WINDOWS
    if b"\n" not in data and b"\r" in data:  # as old Macs end their lines
        data = data.replace(b"\r", b"\n")
    return Text(data, flaw, guessed)


def said_of(text: Any, source: str) -> list[str]:
    """Return a sentence about an encoding of a text that was guessed."""
    if text.guessed is None:
        return []
    name = "cp1252 (Western European)" if text.guessed == WINDOWS else text.guessed.upper()
    return [
        f"{source} is not UTF-8, and is read as {name}; if letters look wrong, give its encoding "
        "(--encoding, encoding=)"
    ]


def _recode(data: bytes, encoding: str, source: str) -> bytes:
    """Return data as UTF-8; bytes that are invalid in the encoding stay unchanged."""
    try:
        text = data.decode(encoding, "surrogateescape")
        return text.removeprefix("\ufeff").encode("utf-8", "surrogateescape")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        reason = f"the bytes are not {encoding.upper()} ({error.reason}); {TRY}"
        raise NoText(source, row, reason) from error
    except UnicodeEncodeError as error:
        row = error.object.count("\n", 0, error.start) + 1
        raise NoText(source, row, f"half a character in {encoding.upper()}; {TRY}") from error
    except (LookupError, ValueError) as error:  # codecs of Python that are for other things, too
        raise TableError(f"{source}: there is no encoding {encoding!r}; try 'cp1252'") from error


def guess_wide(data: bytes) -> str | None:
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


def _is_windows(data: bytes) -> bool:
    """Return whether bytes that are not UTF-8 seem to be text of Western Europe.

    They are not if most bytes beyond ASCII are good UTF-8, which is damaged then; if there are
    control characters; or if so many letters are beyond ASCII that the alphabet is another one.
    """
    signs = Signs()
    signs.add(data, last=True)
    return signs.are_windows


class Signs:
    """Counts of the kinds of bytes in data that is not UTF-8, added part by part."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._strange = False
        self._bad = self._good = self._letters = 0

    def add(self, data: bytes, *, last: bool = False) -> None:
        """Look at some more bytes."""
        self._strange |= b"\x00" in data or CONTROLS.search(data) is not None
        self._strange |= UNDEFINED.search(data) is not None
        text = self._decoder.decode(data, last)
        self._bad += len(BAD.findall(text))
        self._good += len(GOOD.findall(text))
        self._letters += len(LETTERS.findall(data))

    @property
    def are_windows(self) -> bool:
        """Whether they seem to be text of Western Europe."""
        bad = self._bad
        foreign = bad > FEW and bad > FOREIGN * (bad + self._letters)
        return not self._strange and self._good < bad and not foreign


def _first_flaw(data: bytes, encoding: str | None) -> tuple[int, str] | None:
    """Return the row and the reason of the first byte that is not text."""
    places = []
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        places.append((error.start, no_text(data[error.start], encoding)))
    zero = data.find(b"\x00")
    if zero >= 0:
        places.append((zero, NUL))
    if not places:
        return None
    place, reason = min(places)
    return data.count(b"\n", 0, place) + 1, reason


def no_text(byte: int, encoding: str | None) -> str:
    """Return what is wrong with a byte."""
    return f"the byte {byte:#04x} is not {'UTF-8' if encoding is None else encoding}; {TRY}"


def flaw_of(text: str) -> str | None:
    """Return what is wrong with the text of one row that was decoded with "surrogateescape"."""
    if "\x00" in text:
        return "a NUL byte"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return f"bytes that are not UTF-8; {TRY}"
    return None
