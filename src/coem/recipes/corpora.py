"""A corpus in the place of a table: its documents, what was decided when it was made, its views."""

import os
from pathlib import Path
from typing import Any

from sklearn.base import clone

from coem.corpus import Corpus
from coem.recipes.defaults import MAX_DF, MIN_DF, NGRAMS, STOP_WORDS
from coem.recipes.listener import Listener

# What `ingest` decides, and what these parameters are if nobody says anything.
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
READING = {"encoding": None, "delimiter": None, "sheet": None, "skip_bad": False, "plain": False}
MOST = 1 << 32  # bytes of views that are loaded
IN_PARTS = False  # whether recipes hand a larger corpus to estimators, which read parts of it


def adopt(settings: dict[str, Any], corpus: Corpus) -> None:
    """Put what was decided when a corpus was made into the settings of a recipe.

    Raises
    ------
    ValueError
        If a parameter says otherwise.
    """
    made = reader_of(corpus)
    known = dict(corpus.manifest.ingests[0].get("settings", {}))
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


def rows_of(corpus: Corpus, reader: Any, listener: Listener) -> Any:
    """Return the rows that models are fitted to: all in memory, or the corpus itself.

    This is the one place that decides it. A corpus of more than `MOST` bytes is refused unless
    `IN_PARTS` is set: estimators can read one a part at a time, but the checks and pages of the
    recipes still go through all rows.

    Raises
    ------
    ValueError
        If the rows take too much memory. The message says what to do.
    """
    if corpus.n_bytes <= MOST or not IN_PARTS:
        return reader.fit_counts(corpus.load(MOST, what="this verb"))
    limits = reader.fit_limits(shard.read() for shard in corpus.shards)
    listener.note(
        f"{corpus.path} has {corpus.n_bytes / 1e9:.1f} GB of views, and is read a part at a time"
    )
    return corpus.shortened(limits)


def place_of(corpus: Corpus) -> Any:
    """Return a function that says where a row is, in the words of errors."""
    return lambda row: f"{corpus.path}, row {row + 1}"


def described(corpus: Corpus) -> dict[str, Any]:
    """Return the fields of `Documents` that follow from a corpus."""
    return {
        "table": corpus.table(),
        "source": str(corpus.path),
        "fingerprint": corpus.digest,
        "ids": corpus.ids,
        "id_column": corpus.manifest.columns.get("id"),
        "n_bad": 0,
        "path": str(Path(os.path.realpath(corpus.path))),
        "called": Path(os.path.realpath(corpus.path)).name,
        "corpus": corpus,
    }
