"""A corpus that grows, as the source of a stream: the rows that an ingest has appended are new."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from coem.corpus import Corpus
from coem.io.batches import Record
from coem.io.rows import Bad
from coem.recipes.corpora import reader_of
from coem.recipes.documents import Documents, read_corpus
from coem.recipes.listener import Listener
from coem.stored import READER, TABLE

MOST = 1 << 30  # bytes of the views of a batch, if its size is not given


class CorpusSource:
    """The rows of a corpus in their order; a record is the place and the digest of its shard.

    Parameters
    ----------
    path : path
        The folder. Rows that are appended after it was opened are for the next call.
    id : str, optional
        The column of the ids, if it is not the one that the ingest took.
    """

    def __init__(self, path: Any, id: str | None = None) -> None:
        self.documents: Documents = read_corpus(path, Listener(), id=id)
        self.corpus: Corpus = self.documents.corpus
        self.source = str(self.corpus.path)
        self.ends_batch = False
        self.left = None  # rows of a corpus are whole
        self._row = 0
        reader_of(self.corpus)  # raises if the corpus has no reader

    @property
    def views(self) -> str:
        """What stands for the views and their vocabularies."""
        return self.corpus.manifest.files[READER].digest

    @cached_property
    def digests(self) -> list[str]:
        """What stands for the rows of each shard."""
        return [shard.files[TABLE].digest for shard in self.corpus.manifest.shards]

    @property
    def usual_batch(self) -> int:
        """Number of documents of a batch by default: all, or what fits in memory."""
        n_rows = len(self.corpus)
        return max(min(n_rows, n_rows * MOST // max(self.corpus.n_bytes, 1)), 1)

    def skip(self, n_rows: int) -> None:
        """Go on after the first rows."""
        self._row = n_rows

    def record(self) -> Record | None:
        """Return the next record, or None at the end."""
        if self._row == len(self.corpus):
            return None
        self._row += 1
        shard = self._shard_of(self._row - 1)
        return self._row, f"{shard} {self.digests[shard]}".encode()

    def table(self, records: Sequence[Record], texts: Collection[str] = ()) -> tuple[Any, Bad]:
        """Return records that follow each other as a `pyarrow.Table`, and no bad rows."""
        return self.corpus.table(records[0][0] - 1, records[-1][0]), []

    def close(self) -> None:
        """Do nothing: shards are mapped when they are read."""

    def difference(self, known: dict[str, Any]) -> str | None:
        """Return how the corpus differs from what was read of one, or None if it goes on."""
        if self.views != known["digest"]:
            return "its views were made anew, with other columns or words"
        if len(self.corpus) < known["rows"]:
            return f"it has {len(self.corpus):,} rows, and {known['rows']:,} were read"
        spans = zip(self.digests, known["shards"], pairwise(self.corpus.bounds), strict=False)
        for number, (now, before, (lo, hi)) in enumerate(spans):
            if now != before:
                rows = f"{lo + 1:,} to {hi:,} (shard {number})"
                return f"its rows {rows} are not those that were read"
        return None

    def _shard_of(self, row: int) -> int:
        return bisect_right(self.corpus.bounds, row) - 1
