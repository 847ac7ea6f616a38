"""What a stream has read: so that a later call goes on after it, and no document comes twice."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coem.io.batches import LineSource, Record, TableSource, mark_of
from coem.io.folder_source import FolderSource
from coem.io.sources import TableError
from coem.recipes.stream_corpus import CorpusSource

# source, first (the mark of its first record; of folders, NAMES), rows, digest. Of a corpus: digest
# is that of its views, and shards has those of the rows that were read.
Input = dict[str, Any]
NAMES = "names"
Source = LineSource | TableSource | CorpusSource


@dataclass
class Inputs:
    """The inputs of all calls, and where the last one is.

    An input is known by its first record. If it comes again, the records that were read are
    skipped; their digest must be the one that they had. Files of a folder are known by their names:
    a new one may come before all others.
    """

    seen: list[Input] = field(default_factory=list)
    now: Input | None = None

    def begin(self, source: Source) -> tuple[list[Record], int]:
        """Return the first new record of an input, if there is one, and how many were skipped."""
        if isinstance(source, CorpusSource):
            return self._begin_corpus(source)
        if isinstance(source, FolderSource):
            return self._begin_folder(source)
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

    def _begin_folder(self, source: FolderSource) -> tuple[list[Record], int]:
        """Do the same for a folder, whose source has left out what was read."""
        known = next((one for one in self.seen if one["first"] == NAMES), None)
        if known is None:
            known = {"source": source.source, "first": NAMES, "rows": 0, "digest": ""}
            self.seen.append(known)
        self.now = known
        record = source.record()
        return [] if record is None else [record], source.n_known

    def _begin_corpus(self, source: CorpusSource) -> tuple[list[Record], int]:
        """Do the same for a corpus: a stream has one, and knows it by the digests of its shards."""
        known = next((one for one in self.seen if "shards" in one), None)
        if known is None and self.seen:
            first = self.seen[0]["source"]
            raise TableError(
                f"{source.source} is a corpus, and this stream began with {first}, whose words it "
                "counts; give it the files, or begin anew with another folder"
            )
        if known is None:
            known = {"source": source.source, "first": "", "rows": 0}
            known |= {"digest": source.views, "shards": []}
            self.seen.append(known)
        difference = source.difference(known)
        if difference is not None:
            raise TableError(
                f"{source.source} is not the corpus that the stream has read: {difference}; append "
                "to that one with coem ingest --append, or begin anew with another folder"
            )
        self.now = known
        source.skip(known["rows"])
        record = source.record()
        return [] if record is None else [record], known["rows"]

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
            self.now["rows"] += 1
            if "shards" not in self.now:
                self.now["digest"] = chained(self.now["digest"], record)
                continue
            number, digest = record.decode().split()
            if int(number) == len(self.now["shards"]):
                self.now["shards"].append(digest)


def chained(digest: str, record: bytes) -> str:
    """Return the digest of some records and one more, wherever batches end."""
    return hashlib.blake2b(digest.encode() + mark_of(record), digest_size=16).hexdigest()


class Pieces:
    """Batches of records of a source.

    `pending` are records that were read and are in no batch yet: they are kept if the process is
    stopped while it waits for more.
    """

    def __init__(self, source: Source, inputs: Inputs) -> None:
        self.source, self.inputs = source, inputs
        self.pending, self.n_skipped = inputs.begin(source)

    def take(self, size: int | None) -> list[Record]:
        """Return the next records, `size` of them if so many come; all if `size` is None."""
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
