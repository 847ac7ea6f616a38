"""How many values the column chunks of a Parquet file have, read from its footer.

To ask pyarrow for the metadata of a damaged chunk can end the process: the C++ library raises an
error in a method that is declared to raise none (pyarrow 26). So the few numbers that are needed
are read here. The footer is in the compact protocol of Thrift
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
"""

import os
from typing import Any

END = 8  # bytes after the footer: its length, and a mark
# Numbers of fields, as parquet.thrift has them: the row groups of a file, the columns of a row
# group, what is known of a column, and the number of its values.
PATH: dict[int, Any] = {4: {1: {3: {5: {}}}}}
YES, NO, BYTE, DOUBLE, BYTES, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


def n_values(file: Any) -> list[list[int]]:
    """Return the number of values of each column, for each row group of an open file.

    Raises
    ------
    ValueError
        If the footer is damaged.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - END, 0))
    length = int.from_bytes(file.read(END)[:4], "little")
    file.seek(max(size - END - length, 0))
    try:
        about = Compact(file.read(length)).struct(PATH)
        return [[column[3][5] for column in group[1]] for group in about[4]]
    except (IndexError, KeyError, RecursionError, TypeError) as error:
        raise ValueError("its footer is damaged") from error


class Compact:
    """Values in the compact protocol, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def struct(self, kept: dict[int, Any]) -> dict[int, Any]:
        """Return the fields in `kept`, and those within them that it has in their place."""
        found: dict[int, Any] = {}
        field = 0
        while header := self._byte():
            field = field + (header >> 4) if header >> 4 else self._signed()
            value = self._value(header & 15, kept.get(field, {}))
            if field in kept:
                found[field] = value
        return found

    def _value(self, kind: int, kept: dict[int, Any]) -> Any:
        """Return a value, or None if its type is not needed."""
        if kind == STRUCT:
            return self.struct(kept)
        if kind in (LIST, SET):
            return self._list(kept)
        if kind in (BYTE, DOUBLE, BYTES):
            self._skip({BYTE: 1, DOUBLE: 8}.get(kind) or self._number())
        elif kind == MAP:
            self._map()
        elif kind not in (YES, NO):
            return self._signed()
        return None

    def _list(self, kept: dict[int, Any]) -> list[Any]:
        header = self._byte()
        size, kind = header >> 4, header & 15
        size = self._number() if size == 15 else size
        return [self._item(kind, kept) for _ in range(size)]

    def _item(self, kind: int, kept: dict[int, Any]) -> Any:
        """Return what is in a list or a map, where true and false have a byte of their own."""
        return self._value(BYTE if kind in (YES, NO) else kind, kept)

    def _map(self) -> None:
        size = self._number()
        kinds = self._byte() if size else 0
        for _ in range(size):
            for kind in (kinds >> 4, kinds & 15):
                self._item(kind, {})

    def _skip(self, n: int) -> None:
        self._place += n
        if self._place > len(self._data):  # a list of any length could follow
            raise IndexError

    def _byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1]

    def _number(self) -> int:
        """Return a number of any length, seven bits a byte."""
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _signed(self) -> int:
        found = self._number()
        return found >> 1 ^ -(found & 1)
