"""`segment` on a corpus that does not fit in memory: documents are cut a shard at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coem.corpus import Corpus
from coem.io.corpus_writer import CorpusWriter
from coem.recipes.corpora import Called, shown_rows
from coem.recipes.documents import Documents
from coem.recipes.in_parts import counted
from coem.recipes.listener import Listener
from coem.recipes.paragraphs import NoText, Sequences, cut, tell_cut
from coem.recipes.run_file import SEGMENTS
from coem.recipes.segments_told import page_of, segment_story, segment_table
from coem.report import Assignments, assign, read
from coem.segments import segments_of

ROWS = "rows"


class Names(Called):
    """What the paragraphs of very many documents are called.

    With `numbers` it is the name of the document and the number of the paragraph; without, the
    document alone.
    """

    def __init__(self, documents: Sequence[str], lengths: np.ndarray, *, numbers: bool) -> None:
        self._documents, self._lengths, self._numbers = documents, lengths, numbers
        self._ends = np.cumsum(lengths)

    def __len__(self) -> int:
        """Return the number of paragraphs."""
        return int(self._ends[-1])

    def _some(self, lo: int, hi: int) -> list[str]:
        first, last = np.searchsorted(self._ends, [lo, hi - 1], side="right").tolist()
        begins = (self._ends - self._lengths)[first : last + 1].tolist()
        ends = self._ends[first : last + 1].tolist()
        found = []
        documents = self._documents[first : last + 1]
        for name, begin, end in zip(documents, begins, ends, strict=True):
            rows = range(max(begin, lo), min(end, hi))
            found += [f"{name}#{row - begin + 1}" if self._numbers else name for row in rows]
        return found


@dataclass(frozen=True)
class Cutting:
    """The paragraphs of the documents of a corpus, in files, and how the documents were cut."""

    folder: Path
    n_files: int
    lengths: np.ndarray  # paragraphs of each document of the corpus
    ways: Counter[str]

    def __iter__(self) -> Iterator[Any]:
        """Yield the tables of the paragraphs, mapped into memory; it can be gone through again."""
        for number in range(self.n_files):
            with pa.memory_map(str(self.folder / f"{number}.arrow")) as source:
                yield pa.ipc.open_file(source).read_all()


def each_cut(documents: Documents, how: dict[str, Any]) -> Iterator[tuple[int, Sequences]]:
    """Yield the paragraphs of each shard that has any, and the number of its first document."""
    for lo, hi in pairwise(documents.corpus.bounds):
        with suppress(NoText):
            yield lo, cut(documents.part(lo, hi), how, Listener())


def cut_to_files(
    documents: Documents, how: dict[str, Any], folder: Path, listener: Listener
) -> Cutting:
    """Write the paragraphs of all documents to files, and say how they were cut."""
    lengths, ways = np.zeros(len(documents), dtype=np.int64), Counter[str]()
    number = 0
    for number, (lo, found) in enumerate(each_cut(documents, how), start=1):
        lengths[lo : lo + len(found.lengths)] = found.lengths
        ways.update(way for way in found.ways if way)
        place, schema = str(folder / f"{number - 1}.arrow"), found.table.schema
        with pa.OSFile(place, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_table(found.table)
    if not number:
        raise ValueError(f"{documents.source} has no text")
    tell_cut(ways, len(documents), int(lengths.sum()), listener)
    return Cutting(folder, number, lengths, ways)


def stored(cutting: Cutting, reader: Any) -> Corpus:
    """Return the views of the paragraphs as a corpus, after their words were learnt."""
    reader.fit_parts(cutting)
    writer = CorpusWriter(cutting.folder / ROWS)
    for table in cutting:
        writer.append(reader.transform(table))
    return Corpus(writer.path)


@dataclass(frozen=True)
class AllSegments:
    """What is known of all paragraphs and segments."""

    rows: Assignments
    columns: dict[str, Any]
    segments: Any  # a table
    n_segments: np.ndarray  # of each topic
    lengths: np.ndarray  # paragraphs of each document


def all_segments(
    model: Any,
    reader: Any,
    documents: Documents,
    how: dict[str, Any],
    names: list[str],
    naming: Any,
) -> AllSegments:
    """Return the topics of all paragraphs, and all segments, from one pass over the corpus."""
    lengths = np.zeros(len(documents), dtype=np.int64)
    columns: dict[str, list[Any]] = {}
    tables, n_segments = [], np.zeros(len(names), dtype=np.int64)
    for lo, part in each_cut(documents, how):
        lengths[lo : lo + len(part.lengths)] = part.lengths
        reading = read(model, reader.transform(part.table), part.filled)
        about = model, reading.views, range(len(part)), names, part.filled
        found = vars(assign(*about, naming, reading=reading))
        cuts = segments_of(reading.groups, reading.proba, part.lengths)
        own = part.columns() | {"segment": part.segment_of(found["label"])}
        for name, values in {**found, **own}.items():
            columns.setdefault(name, []).append(values)
        tables.append(segment_table(cuts, part.names, names))
        n_segments += np.bincount(cuts.topic, minlength=len(names))
    del columns["id"], columns["document"]
    joined = {name: np.concatenate(values) for name, values in columns.items()}
    ids, owners = (Names(documents.ids, lengths, numbers=numbers) for numbers in (True, False))
    more = {"document": owners, **{name: joined.pop(name) for name in ("paragraph", "segment")}}
    segments = pa.concat_tables(tables)
    return AllSegments(Assignments(id=ids, **joined), more, segments, n_segments, lengths)


def fields_in_parts(
    model: Any,
    reader: Any,
    documents: Documents,
    how: dict[str, Any],
    settings: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """Return what the files of a run have to say, by the fields of a result.

    The page shows documents that are drawn by their content; the tables have all of them.
    """
    few = cut(documents.take(shown_rows(documents.corpus)), how, Listener())
    views = reader.transform(few.table)
    story, cuts = segment_story(model, views, reader, few, settings, **more)
    names = [group.name for group in story.groups]
    every = all_segments(model, reader, documents, how, names, more.get("naming"))
    total = int(every.n_segments.sum())
    heading = f"{documents.called} in {total:,} segments"
    whole = {
        "n_segments": every.n_segments.tolist(),
        "total": total,
        "n_documents": int((every.lengths > 0).sum()),
    }
    return {
        "story": replace(counted(story, every.rows), heading=heading),
        "rows": every.rows,
        "columns": every.columns,
        "tables": {SEGMENTS: every.segments},
        "page": page_of(cuts, few, views, reader, whole),
        "n_segments": every.n_segments,
    }
