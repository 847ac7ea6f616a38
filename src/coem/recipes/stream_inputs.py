"""What a stream has read: so that a later call goes on after it, and no document comes twice."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coem.io.batches import LineSource, Record, TableSource, mark_of
from coem.io.sources import TableError

Input = dict[str, Any]  # source, first (the mark of its first record), rows, digest


@dataclass
class Inputs:
    """The inputs of all calls, and where the last one is.

    An input is known by its first record. If it comes again, the records that were read are
    skipped; their digest must be the one that they had.
    """

    seen: list[Input] = field(default_factory=list)
    now: Input | None = None

    def begin(self, source: LineSource | TableSource) -> tuple[list[Record], int]:
        """Return the first new record of an input, if there is one, and how many were skipped."""
        record = source.record()
        if record is None:
            self.now = None
            return [], 0
        first = mark_of(record[1]).hex()
        known = next((one for one in self.seen if one["first"] == first), None)
        if known is None:
            self.now = {"source": source.source, "first": first, "rows": 0, "digest": ""}
            self.seen.append(self.now)
            return [record], 0
        self.now = known
        return self._skip(source, record, known), known["rows"]

    def _skip(self, source: Any, record: Record | None, known: Input) -> list[Record]:
        digest, rows = "", 0
        while record is not None and rows < known["rows"]:
            digest, rows = chained(digest, record[1]), rows + 1
            record = source.record()
        if rows < known["rows"] or digest != known["digest"]:
            raise TableError(
                f"{source.source} begins with a document that was read before, but the first "
                f"{known['rows']:,} documents are not those that were read; give the whole input "
                "again, or the new documents alone"
            )
        return [] if record is None else [record]

    def read(self, records: Iterable[Record]) -> None:
        """Note that records were read."""
        assert self.now is not None
        for _, record in records:
            self.now["digest"] = chained(self.now["digest"], record)
            self.now["rows"] += 1


def chained(digest: str, record: bytes) -> str:
    """Return the digest of some records and one more, wherever batches end."""
    return hashlib.blake2b(digest.encode() + mark_of(record), digest_size=16).hexdigest()


class Pieces:
    """Batches of records of a source.

    `pending` are records that were read and are in no batch yet: they are kept if the process is
    stopped while it waits for more.
    """

    def __init__(self, source: LineSource | TableSource, inputs: Inputs) -> None:
        self.source, self.inputs = source, inputs
        self.pending, self.n_skipped = inputs.begin(source)

    def take(self, size: int | None) -> list[Record]:
        """Return the next records, `size` of them if so many come; all if it is None."""
        while size is None or len(self.pending) < size:
            if self.pending and self.source.ends_batch:
                break
            record = self.source.record()
            if record is None:
                break
            self.pending.append(record)
        return self.drain()

    def drain(self) -> list[Record]:
        """Return the records that were read and not yet taken."""
        taken, self.pending = self.pending, []
        return taken
