"""A corpus in the place of a table: its documents, what was decided when it was made, its views."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

from sklearn.base import clone

from coem.corpus import Corpus
from coem.recipes.defaults import MAX_DF, MIN_DF, NGRAMS, STOP_WORDS
from coem.recipes.listener import Listener
from coem.stored import MANIFEST, damaged
from coem.typing import Array

# Parameters that `ingest` fixes, and their defaults.
DECIDED = {
    "text": [],
    "views": {},
    "id": None,
    "stop_words": STOP_WORDS,
    "min_df": MIN_DF,
    "max_df": MAX_DF,
    "max_features": None,
    "ngrams": NGRAMS,
}
KINDS = {  # of their values; the reader of the corpus knows the stop words
    "text": str | list | None,
    "views": dict,
    "id": str | None,
    "min_df": float | int,
    "max_df": float | int,
    "max_features": int | None,
    "ngrams": int,
}
READING = {"encoding": None, "delimiter": None, "sheet": None, "skip_bad": False, "plain": False}
MOST = 1 << 30  # bytes of views; verbs that can read a larger corpus a part at a time do so
SHOWN = 20_000  # rows of such a corpus that stand for all where all would not fit in memory,
MOST_SHOWN = 1 << 30  # and the bytes that their views take at most, about
LEAST_SHOWN = 1000
AT_A_TIME = 1 << 16  # rows whose ids are in memory


def adopt(settings: dict[str, Any], corpus: Corpus) -> None:
    """Put what was decided when a corpus was made into the settings of a recipe.

    Raises
    ------
    ValueError
        If a parameter says otherwise.
    """
    made = reader_of(corpus)
    known = decided(corpus)
    known |= {"id": corpus.manifest.columns.get("id"), "stop_words": made.stop_words}
    for name, default in DECIDED.items():
        given = settings.get(name, default)
        if name in settings and given != default and given != known.get(name, default):
            raise ValueError(
                f"{name}: the views of {corpus.path} were made by coem ingest; leave {name} out, "
                "or ingest the documents again with it"
            )
        if name in settings:
            settings[name] = known.get(name, default)
    for name, nothing in READING.items():
        if settings.get(name, nothing) != nothing:
            raise ValueError(f"{name} is for files, and {corpus.path} is a corpus; leave it out")
    if settings.get("encoder") is not None:
        raise ValueError(
            f"encoder: {corpus.path} has the views that coem ingest made; leave the encoder out"
        )


def decided(corpus: Corpus) -> dict[str, Any]:
    """Return the parameters of the first ingest; none if the corpus was written in another way."""
    ingests = corpus.manifest.ingests
    known = ingests[0].get("settings", {}) if ingests else {}
    if not isinstance(known, dict):
        damaged(corpus.path / MANIFEST, "has settings that no ingest writes")
    for name, kind in KINDS.items():
        value = known.get(name, DECIDED[name])
        names = value if isinstance(value, list) else []
        if not isinstance(value, kind) or not all(isinstance(one, str) for one in names):
            damaged(corpus.path / MANIFEST, f"has settings that no ingest writes ({name})")
    return dict(known)


def label_in(label: str | None, corpus: Corpus) -> str | None:
    """Return the column of the labels: what was asked for, or what the corpus knows."""
    if label is None:
        return corpus.manifest.columns.get("label")
    bare = label.removesuffix(":list")
    for view, spec in reader_of(corpus).views_.items():
        if {bare, label} & set(spec["columns"]):
            raise ValueError(
                f"label: column {bare!r} is part of view {view!r} of {corpus.path}; ingest the "
                "documents again with it as the label"
            )
    return label


def as_path(table: Any) -> Any:
    """Return the folder of an opened corpus; anything else unchanged."""
    if not isinstance(table, Corpus):
        return table
    if type(table) is not Corpus or table.max_length or table.views != table.manifest.views:
        raise ValueError(
            f"{table.path}: a recipe takes a corpus with the views that coem ingest made, as they "
            "are; give it coem.open_corpus of the folder"
        )
    return table.path


def reader_of(corpus: Corpus) -> Any:
    """Return what made the views of a corpus."""
    if corpus.text_views is None:
        raise ValueError(
            f"{corpus.path} was written from matrices, and its words and texts are not known; use "
            "an estimator in Python, or coem ingest"
        )
    return corpus.text_views


def corpus_reader(corpus: Corpus, **params: Any) -> Any:
    """Return a fitted `TextViews` that goes on from the counts of a corpus."""
    made = reader_of(corpus)
    reader = clone(made)
    for name, value in vars(made).items():
        if name.endswith("_"):
            setattr(reader, name, value)
    return reader.set_params(**params)


def goes_in_parts(corpus: Corpus) -> bool:
    """Return whether the rows of a corpus are too many to be loaded, on any machine."""
    return corpus.n_bytes > MOST


def rows_of(
    corpus: Corpus,
    reader: Any,
    listener: Listener,
    rows: Array | None = None,
    *,
    in_parts: bool,
) -> Any:
    """Return the rows that models are fitted to: all in memory, or the corpus itself.

    `rows` are the numbers of those that are wanted, if they are some; they are loaded.
    """
    if rows is not None:
        return reader.fit_counts(corpus.take(rows))
    if not in_parts:
        return reader.fit_counts(corpus.load(what="this verb"))
    listener.note(
        f"{corpus.path} has {corpus.n_bytes / 1e9:.1f} GB of views, and is read a part at a time"
    )
    return reader.fit_corpus(corpus)


def shown_rows(corpus: Corpus) -> Array:
    """Return the rows that stand for all where all would not fit, drawn by their content."""
    room = int(MOST_SHOWN * len(corpus) / max(corpus.n_bytes, 1))
    return corpus.sample(min(SHOWN, max(room, LEAST_SHOWN)))


class Called(Sequence[str], ABC):
    """What very many rows are called, in their order; no string of them is kept in memory."""

    @abstractmethod
    def _some(self, lo: int, hi: int) -> list[str]:
        """Return what rows that follow each other are called, one of them at least."""

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...

    def __getitem__(self, key: int | slice) -> str | list[str]:
        """Return what a row is called, or several rows that follow each other."""
        if isinstance(key, slice):
            lo, hi, _ = key.indices(len(self))
            return self._some(lo, hi) if hi > lo else []
        place = range(len(self))[key]
        return self._some(place, place + 1)[0]

    def __iter__(self) -> Iterator[str]:
        """Yield what the rows are called, one after the other."""
        for lo in range(0, len(self), AT_A_TIME):
            yield from self[lo : lo + AT_A_TIME]

    def __contains__(self, name: object) -> bool:
        """Return whether a row is called so."""
        return any(own == name for own in self)

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first row that is called so."""
        for row, own in enumerate(self[start:stop] if start or stop else self, start):
            if own == name:
                return row
        raise ValueError(f"no row is called {name!r}")


class Ids(Called):
    """What the rows of a corpus are called."""

    def __init__(self, table: Any, column: str | None) -> None:
        self._size = table.num_rows
        self._column = None if column is None else table.column(column)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._size

    def _some(self, lo: int, hi: int) -> list[str]:
        if self._column is None:
            return [str(i + 1) for i in range(lo, hi)]
        values = self._column.slice(lo, hi - lo).to_pylist()
        return ["" if value is None else str(value) for value in values]


def place_of(corpus: Corpus) -> Any:
    """Return a function that says where a row is, in the words of errors."""
    return lambda row: f"{corpus.path}, row {row + 1}"


def described(corpus: Corpus, id: str | None) -> dict[str, Any]:
    """Return the fields of `Documents` that follow from a corpus; `id` is a column or None."""
    in_parts = goes_in_parts(corpus)
    table = corpus.table()  # once: what is mapped is checked
    found = Ids(table, id)
    return {
        "table": table,
        "source": str(corpus.path),
        "fingerprint": corpus.digest,
        "ids": found if in_parts else list(found),
        "id_column": id,
        "n_bad": 0,
        "path": str(Path(os.path.realpath(corpus.path))),
        "called": Path(os.path.realpath(corpus.path)).name,
        "corpus": corpus,
        "in_parts": in_parts,
    }
