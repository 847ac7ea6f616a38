"""Documents as sequences of paragraphs: what `segment` and its models begin with."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from coem.phrases import first_few
from coem.recipes.corpora import decided
from coem.recipes.documents import Documents, is_text_file
from coem.recipes.listener import Listener
from coem.text.guess import SAID, few_of, guess_views
from coem.text.paragraphs import WAYS, read_texts, split_paragraphs

LONG = 200  # characters of a paragraph of 40 words
TEXT = "text"  # the column of the paragraphs, and the view that is made of it
# What documents were cut by, as notes say it.
CUT = {
    "paragraphs": "at blank lines",
    "lines": "at the ends of lines",
    "sentences": "into runs of sentences",
    "words": "into runs of words",
}


@dataclass(frozen=True)
class Sequences(Documents):
    """Documents whose rows are paragraphs, named by their document and their number."""

    names: list[str]  # of the documents
    lengths: np.ndarray  # paragraphs of each document; 0 if it is empty
    ways: list[str]  # how each document was cut

    @property
    def filled(self) -> np.ndarray:
        """Numbers of paragraphs of the documents that have any."""
        return self.lengths[self.lengths > 0]

    @property
    def texts(self) -> list[str]:
        """The paragraphs."""
        texts: list[str] = self.table.column(TEXT).to_pylist()
        return texts

    def segment_of(self, topics: np.ndarray) -> np.ndarray:
        """Return the number of each paragraph's segment in its document, from 1."""
        starts = np.cumsum(self.filled) - self.filled
        changes = np.concatenate([[True], topics[1:] != topics[:-1]])
        changes[starts] = True
        total = np.cumsum(changes)
        return total - np.repeat(total[starts] - 1, self.filled)

    def columns(self) -> dict[str, np.ndarray]:
        """Return document and number of each paragraph, as columns."""
        owner = np.repeat(np.arange(len(self.names)), self.lengths)
        before = np.cumsum(self.lengths) - self.lengths
        return {
            "document": np.array(self.names, dtype=object)[owner],
            "paragraph": np.arange(len(owner)) - before[owner] + 1,
        }


class NoText(ValueError):
    """Documents have no text in the columns that were named."""


def text_columns(settings: dict[str, Any], documents: Documents, listener: Listener) -> list[str]:
    """Return the columns of text: those that were named, or those that look like it.

    Those of a corpus were named when it was made, or have become its views of text.
    """
    named = settings["text"] or _named_for(documents.corpus)
    if named:
        return list(named)
    is_text = documents.path is not None and is_text_file(documents.path)
    if settings["plain"] or is_text or documents.are_in_a_folder:
        return [TEXT]
    columns = _columns_of_views(documents.corpus) or _guessed(documents)
    kept, short = _long(documents.table, columns), ""
    left = [repr(name) for name in columns if name not in kept]
    if left:
        why = "is left out: its texts are" if len(left) == 1 else "are left out: their texts are"
        short = f"; {first_few(left)} {why} shorter than a paragraph"
    if documents.table.num_columns > 2 or len(columns) > 1:
        names = first_few(map(repr, kept))
        listener.note(f"the text is in {names}{short} (text= names other columns)")
    return kept


def _named_for(corpus: Any) -> list[str]:
    """Return the columns of text that were named when a corpus was made, if there are any."""
    named = [] if corpus is None else decided(corpus).get("text") or []
    return [named] if isinstance(named, str) else list(named)


def _columns_of_views(corpus: Any) -> list[str]:
    """Return the columns that are in the views of text of a corpus, if there are any."""
    reader = None if corpus is None else corpus.text_views
    specs = [] if reader is None else reader.views_.values()
    names = [name for spec in specs if spec["kind"] == "text" for name in spec["columns"]]
    return list(dict.fromkeys(names))


def _guessed(documents: Documents) -> list[str]:
    """Return the columns that look like text."""
    guessed, sentences = guess_views(documents.table, documents.id_column)
    columns = [name for name, spec in guessed.items() if spec["kind"] == "text"]
    if not columns:
        raise ValueError(
            "no column looks like text; name one with text='COLUMN'. "
            + " ".join(few_of(sentences, SAID))
        )
    return columns


def _long(table: Any, columns: list[str]) -> list[str]:
    """Return the columns whose texts are as long as a paragraph, or the longest one.

    A title would be a paragraph of its own at the head of each document.
    """
    sizes = {}
    for name in columns:
        filled = [len(text) for text in table.column(name).to_pylist() if text]
        sizes[name] = sum(filled) / max(len(filled), 1)
    return [n for n in columns if sizes[n] >= LONG] or [max(columns, key=sizes.__getitem__)]


def cut(documents: Documents, how: dict[str, Any], listener: Listener) -> Sequences:
    """Return documents cut into paragraphs, and say how; `how` has columns, by and words."""
    _check_columns(documents, how["columns"])
    texts = read_texts(documents.table, how["columns"])
    found = split_paragraphs(texts, how["by"], how["words"])
    if not found.texts:
        named = first_few(map(repr, how["columns"]))
        where = "" if how["columns"] == [TEXT] else f" in {named}"
        raise NoText(f"{documents.source} has no text{where}")
    ways = Counter(way for way in found.ways if way)
    tell_cut(ways, len(found.ways), len(found.texts), listener)
    places = [
        (name, i + 1)
        for name, n in zip(documents.ids, found.lengths.tolist(), strict=True)
        for i in range(n)
    ]
    listener.rows_are(
        lambda row: f"{documents.source}, document {places[row][0]!r}, paragraph {places[row][1]}"
    )
    return Sequences(
        table=pa.table({TEXT: found.texts}),
        source=documents.source,
        fingerprint=documents.fingerprint,
        ids=[f"{name}#{number}" for name, number in places],
        id_column=None,
        n_bad=documents.n_bad,
        path=documents.path,
        called=documents.called,
        names=documents.ids,
        lengths=found.lengths,
        ways=found.ways,
    )


def _check_columns(documents: Documents, columns: list[str]) -> None:
    """Refuse a table without the columns of text."""
    known = documents.table.column_names
    missing = next((name for name in columns if name not in known), None)
    if missing is not None:
        raise ValueError(
            f"{documents.source} has no column {missing!r} of text; it has {first_few(known)}: "
            "name one with text='COLUMN'"
        )


def tell_cut(ways: Counter[str], n_rows: int, n_paragraphs: int, listener: Listener) -> None:
    """Say how many of some documents were cut in which way, and how many are empty."""
    n_documents = sum(ways.values())
    if len(ways) == 1:
        how = f"cut {CUT[next(iter(ways))]}"
    else:
        how = ", ".join(f"{n:,} cut {CUT[way]}" for way, n in ways.most_common())
    documents, paragraphs = (
        f"{n:,} {what}{'' if n == 1 else 's'}"
        for n, what in ((n_documents, "document"), (n_paragraphs, "paragraph"))
    )
    listener.note(f"{documents}, {how}: {paragraphs}")
    empty = n_rows - n_documents
    if empty:
        are = "document is empty: it has" if empty == 1 else "documents are empty: they have"
        listener.note(f"{empty:,} {are} no segments")


def check_cut(sequences: Sequences) -> None:
    """Refuse a single paragraph."""
    if len(sequences) < 2:
        raise ValueError(
            f"{sequences.source} is one paragraph, and there is nothing to cut; split='sentences' "
            "or fewer words= make smaller ones"
        )


def read_how(how: Any) -> dict[str, Any] | None:
    """Return how the documents of a model file are cut, or None if they are not."""
    if how is None:
        return None
    good = (
        isinstance(how, dict)
        and set(how) == {"columns", "by", "words"}
        and isinstance(how["columns"], list)
        and all(isinstance(name, str) for name in how["columns"])
        and bool(how["columns"])
        and how["by"] in WAYS
        and type(how["words"]) is int
        and how["words"] > 0
    )
    if not good:
        raise ValueError(f"the model file does not say how documents are cut, but {how!r:.80}")
    return dict(how)
