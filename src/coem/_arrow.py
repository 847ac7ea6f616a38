"""Arrow files without their data: whether parts of one are compressed.

pyarrow unpacks compressed parts as soon as they are read, however large they become, and does not
say before that they are compressed. So the FlatBuffers that describe the parts are read here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import calcsize, unpack_from
from typing import Any, Self

MAGIC = b"ARROW1"
END = 4 + len(MAGIC)  # bytes behind the footer: its length, and the mark
DICTIONARIES, BATCHES = 2, 3  # fields of the footer: lists of blocks
BLOCK = 24  # bytes: where a message begins, the length of its description, that of its body
VERSION, TYPE, HEADER = 0, 1, 2  # fields of a message
NEWEST = 4  # version V5: older ones can say elsewhere that they are compressed
CONTENT = {2: 1, 3: None}  # types of messages, and the field that has the record batch
COMPRESSION = 3  # a field of a record batch
MOST_BLOCKS = 1 << 16


def check_plain(data: memoryview) -> None:
    """Raise ValueError if an Arrow file has compressed parts, or is not an Arrow file."""
    end = len(data) - END
    length = _number(data, "<i", end)
    if bytes(data[-len(MAGIC) :]) != MAGIC or length < 0:
        raise ValueError("it has no end")
    footer = _Table.root(data, end - length)
    for place in (*footer.blocks(DICTIONARIES), *footer.blocks(BATCHES)):
        if _is_compressed(data, place):
            raise ValueError("it is compressed")


def _is_compressed(data: memoryview, place: int) -> bool:
    """Return whether the record batch of a message is compressed."""
    # Its length comes first; before that, unless it is from an old version, four bytes of ones.
    prefix = 8 if _number(data, "<i", place) == -1 else 4
    message = _Table.root(data, place + prefix)
    kind = message.number(TYPE, "<B")
    if message.number(VERSION, "<h") != NEWEST or kind not in CONTENT:
        raise ValueError("it has parts of another kind")
    header, field = message.inner(HEADER), CONTENT[kind]
    batch = header if field is None else header.inner(field)
    return batch.place_of(COMPRESSION) is not None


@dataclass(frozen=True)
class _Table:
    """A table of a FlatBuffer: its fields are found by their numbers."""

    data: memoryview
    place: int

    @classmethod
    def root(cls, data: memoryview, place: int) -> Self:
        """Return the table that a buffer begins with."""
        return cls(data, place + _number(data, "<I", place))

    def place_of(self, field: int) -> int | None:
        """Return the place of a field, or None if the table does not have it."""
        known = self.place - _number(self.data, "<i", self.place)
        entry = 4 + 2 * field
        if entry >= _number(self.data, "<H", known):
            return None
        offset = _number(self.data, "<H", known + entry)
        return self.place + offset if offset else None

    def number(self, field: int, kind: str) -> int:
        """Return a field that is a number; 0 if the table does not have it."""
        place = self.place_of(field)
        return 0 if place is None else _number(self.data, kind, place)

    def inner(self, field: int) -> Self:
        """Return the table that a field refers to."""
        place = self.place_of(field)
        if place is None:
            raise ValueError("it has parts without content")
        return self.root(self.data, place)

    def blocks(self, field: int) -> Iterator[int]:
        """Yield where the messages of a list begin."""
        place = self.place_of(field)
        if place is None:
            return
        first = place + _number(self.data, "<I", place)
        n = _number(self.data, "<I", first)
        if n > MOST_BLOCKS:
            raise ValueError("it has too many parts")
        for i in range(n):
            yield _number(self.data, "<q", first + 4 + BLOCK * i)


def _number(data: memoryview, kind: str, place: int) -> Any:
    """Return a number at a place; raise ValueError if that is outside."""
    if not 0 <= place <= len(data) - calcsize(kind):
        raise ValueError("its parts are not where they should be")
    return unpack_from(kind, data, place)[0]
