"""`ingest`: documents of any amount as a corpus."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coem.corpus import Corpus
from coem.io.corpus_work import CALL, Work, working
from coem.io.corpus_writer import describe, write_table, write_views
from coem.io.row_blocks import fitted, row_blocks
from coem.io.streams import Reading, Stream
from coem.recipes.columns import tell_columns
from coem.recipes.defaults import MAX_DF, MIN_DF, NGRAMS, STOP_WORDS
from coem.recipes.documents import Documents
from coem.recipes.ingested import (
    call_of,
    check_appended,
    check_hashing,
    check_ids,
    check_label,
    check_sources,
    check_vectors,
    fitted_columns,
    id_column,
    known_columns,
    names_of,
    unknown_words,
)
from coem.recipes.labels import FOLDERS, label_column
from coem.recipes.listener import Listener
from coem.recipes.settings import READING, normal
from coem.recipes.views import said_stop_words, text_views
from coem.stored import (
    READER,
    TABLE,
    Files,
    Manifest,
    StoredFile,
    StoredShard,
    StoredView,
    check_size,
    digest_of,
    map_table,
    stored_file,
)
from coem.text import TextViews
from coem.text.guess import sampled_rows

SHAPING = (
    "text",
    "views",
    "id",
    "label",
    "stop_words",
    "min_df",
    "max_df",
    "max_features",
    "ngrams",
    "hash_features",
)
MOVING = "a source has changed while it was read; if it keeps growing, ingest a copy of it"
KEPT = "what is done so far is kept: the same call with resume=True goes on"


def ingest(
    sources: Any,
    out: str | os.PathLike[str],
    *,
    text: Any = None,
    views: Any = None,
    id: str | None = None,
    label: str | None = None,
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    hash_features: int | None = None,
    append: bool = False,
    resume: bool = False,
    force: bool = False,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
    listener: Listener | None = None,
) -> Corpus:
    """Write documents of any amount to a corpus, as ``coem ingest`` does.

    Memory holds a part of the rows and the vocabularies. The views are those that `cluster` makes
    of the same documents, bit by bit; long documents are scaled down when a corpus is used.

    Parameters
    ----------
    sources : path or list of paths
        Files and folders as `cluster` takes them, and ``"-"`` for standard input. All have the same
        columns; a column that one of them does not have is empty in its rows.
    out : path
        The folder of the corpus.
    text, views, id, stop_words, min_df, max_df, max_features, ngrams : optional
        As in `cluster`. Views are made of columns: no files of vectors, and no encoders.
    label : str, optional
        The column of the classes. It does not become a view.
    hash_features : int, optional
        Put words into so many columns by a hash, as `coem.text.TextViews` does. There is no
        vocabulary then: rows are read once less, and words that are new in appended rows count.
        Several words share a column, which has the name of the most frequent one.
    append : bool, default=False
        Add the rows to the corpus in `out`. Its views and vocabularies stay as they are.
    resume : bool, default=False
        Go on with an ingest of the same call that was interrupted, if there is one.
    force : bool, default=False
        Replace the corpus in `out`.
    threads : int, optional
        The number of threads; None takes all processors. It never changes a bit of the result.
    encoding, delimiter, sheet, skip_bad, listener : optional
        As in `cluster`.

    Returns
    -------
    corpus : Corpus
        What estimators take in the place of `X`.
    """
    given = dict(locals())
    names = names_of(sources)
    check_vectors(views)
    if append and force:
        raise ValueError("append adds rows to a corpus, and force replaces it; choose one of them")
    if hash_features is not None:
        check_hashing(given)
    settings = normal({n: given[n] for n in (*SHAPING, "threads", *READING) if n in given})
    listener = Listener() if listener is None else listener
    call = call_of(names, settings, append)
    with working(Path(out), call, append=append, resume=resume, force=force) as work:
        job = _Ingest(work, call, names, settings, listener)
        try:
            job.run()
        except BaseException as error:
            for_user = isinstance(error, ValueError) and not isinstance(error.__cause__, OSError)
            if (for_user and not work.resumed) or not work.found("table"):
                work.discard()  # the call or a source must change, or nothing is done
            elif isinstance(error, Exception):
                listener.note(KEPT)
            raise
    return Corpus(out)


@dataclass
class _Tables:
    """The tables of the new shards. They can be read several times."""

    work: Work
    shards: list[tuple[int, Files]]
    without: str | None = None

    def __iter__(self) -> Iterator[Any]:
        for number, (n_rows, files) in enumerate(self.shards):
            table = map_table(self.work.shard(number) / TABLE, files[TABLE], n_rows)
            yield table.drop_columns([self.without]) if self.without else table


class _Ingest:
    """One ingest, in steps. A step that the journal has as done is skipped."""

    def __init__(
        self,
        work: Work,
        call: dict[str, Any],
        names: list[str],
        settings: dict[str, Any],
        listener: Listener,
    ) -> None:
        self.work, self.call, self.names = work, call, names
        self.settings, self.listener = settings, listener

    @property
    def appends(self) -> bool:
        """Whether rows are added to a corpus."""
        return bool(self.call["append"])

    def run(self) -> None:
        """Do what is not done."""
        if self.work.is_done:
            self.listener.note(f"{self.work.target} is complete: there is nothing to resume")
            return
        if self.work.left:
            self.listener.note("what an ingest that was interrupted has left is removed")
        base = self._base()
        if base is not None:
            check_appended(self.settings, base)
        read = self._read()
        tables = _Tables(self.work, self._shards("table"), read["label"])
        reader, files = self._fit(read, tables)
        described = self._write_arrays(reader, tables, read)
        self._finish(read, described, files)

    # -- rows --

    def _read(self) -> dict[str, Any]:
        """Write the tables of the shards; return what was read."""
        done = self.work.found("read")
        if done:
            return dict(done[0]["read"])
        reading = {name: self.settings[name] for name in READING if name in self.settings}
        with self.listener.progress("looking at the columns", None):
            known = known_columns(self._base())
            stream = Stream(self.names, self.work.scratch, Reading(**reading), known)
        check_sources(self.work, stream.parts)
        self.listener.rows_are(stream.place)
        _tell(stream, self.listener)
        schema = fitted_columns(stream.schema, self._base(), self.listener)
        done = len(self._shards("table"))
        with self.listener.progress("rows", stream.n_rows) as bar:
            tables = row_blocks(fitted(stream, schema, stream.place))
            for number, table in enumerate(tables):
                if number >= done:
                    folder = self.work.new_shard(number)
                    self._add("table", number, table.num_rows, write_table(folder, table))
                bar.step_by(table.num_rows)
        n_rows = sum(n_rows for n_rows, _ in self._shards("table"))
        if n_rows != stream.n_rows or call_of(self.names, self.settings, self.appends) != self.call:
            raise ValueError(MOVING)
        read = self._described(stream, schema)
        self.work.add({"read": read})
        return read

    def _described(self, stream: Stream, schema: Any) -> dict[str, Any]:
        base = self._base()
        tables = _Tables(self.work, self._shards("table"))
        if base is not None:
            columns = base.manifest.columns
            ids, label = columns.get("id"), columns.get("label")
        else:
            ids = id_column(self.settings["id"], schema.names, stream.parts[0].source)
            label = self._label(stream, schema)
            check_label(label, ids, self.settings)
        ids = check_ids(ids, tables, base, stream.place, self.settings["id"], self.listener)
        sources = [
            {"name": os.path.basename(p.source), "rows": p.n_rows, "sha256": p.fingerprint}
            for p in stream.parts
        ]
        about = {"id": ids, "label": label, "rows": stream.n_rows, "bad_rows": len(stream.bad)}
        return {**about, "sources": sources}

    def _label(self, stream: Stream, schema: Any) -> str | None:
        """Return the column of the labels: what was asked for, or sub-folders of a folder."""
        label = self.settings["label"]
        if label is None:
            if not (len(stream.parts) == 1 and os.path.isdir(self.call["sources"][0])):
                return None
            tables = _Tables(self.work, self._shards("table"))
            found = {
                name for table in tables for name in table.column(FOLDERS).unique().to_pylist()
            }
            return FOLDERS if len(found - {None}) > 1 else None
        label = label_column(label, schema.empty_table())
        if label not in schema.names:
            names = ", ".join(schema.names)
            raise ValueError(f"there is no column {label!r} for the labels; there are {names}")
        return label

    def _base(self) -> Corpus | None:
        """Return the corpus that rows are added to."""
        return Corpus(self.work.target) if self.appends else None

    # -- the journal --

    def _add(self, what: str, number: int, n_rows: int, files: Files) -> None:
        pairs = {name: [file.size, file.digest] for name, file in files.items()}
        self.work.add({what: number, "n_rows": n_rows, "files": pairs})

    def _shards(self, what: str) -> list[tuple[int, Files]]:
        """Return the rows and files of the new shards, as the journal has them."""
        return [
            (line["n_rows"], {name: stored_file(pair) for name, pair in line["files"].items()})
            for line in self.work.found(what)
        ]

    # -- views --

    def _fit(self, read: dict[str, Any], tables: _Tables) -> tuple[TextViews, Files]:
        """Return what makes the views, and the file that it is in."""
        base = self._base()
        if base is not None:
            if base.text_views is None:
                raise ValueError(f"{base.path} was written as views, and no table can be added")
            return base.text_views, base.manifest.files
        path = self.work.root / READER
        if not self.work.found("views"):
            reader = self._learn(read, tables)
            reader.save(path)
            self._add("views", 0, read["rows"], {READER: _known(path)})
        [(_, files)] = self._shards("views")
        check_size(path, files[READER])
        from coem.models import load

        return load(path), files

    def _learn(self, read: dict[str, Any], tables: _Tables) -> TextViews:
        first = next(iter(tables))
        few = Documents(first, "", "", [], read["id"], 0, None, "")
        reader = text_views(self.settings, few, hash_features=self.settings["hash_features"])
        with self.listener.progress("the vocabulary", None), self.listener.noting_warnings():
            reader.fit_parts(tables)
        from coem.text import take_rows

        rows = sampled_rows(read["rows"])
        whole = _Tables(self.work, tables.shards)
        sample = Documents(take_rows(whole, rows), "", "", [], read["id"], 0, None, "")
        tell_columns(reader, sample, self.listener, label=read["label"], date=None)
        sizes = ", ".join(f"{name} ({len(w):,} columns)" for name, w in reader.vocabulary_.items())
        words = said_stop_words(reader, dict(self.settings))
        self.listener.note(f"{read['rows']:,} rows; views: {sizes}{words}")
        return reader

    def _write_arrays(
        self, reader: TextViews, tables: _Tables, read: dict[str, Any]
    ) -> tuple[StoredView, ...]:
        """Write the arrays of the shards; return what the views are."""
        done = len(self._shards("arrays"))
        described: tuple[StoredView, ...] = ()
        unknown = {"words": 0, "unknown": 0}
        reader.set_params(n_jobs=self.settings["threads"] or -1)
        with self.listener.progress("rows as views", read["rows"]) as bar:
            for number, table in enumerate(tables):
                if number >= done or not described:
                    views = reader.transform(table)
                    described = describe(views)
                if number >= done:
                    files = write_views(self.work.shard(number), views)
                    fixed = self.appends and reader.hash_features is None
                    lost = unknown_words(reader, table, views) if fixed else {}
                    pairs = {name: [file.size, file.digest] for name, file in files.items()}
                    line = {"n_rows": table.num_rows, "files": pairs, "lost": lost}
                    self.work.add({"arrays": number, **line})
                bar.step_by(table.num_rows)
        for line in self.work.found("arrays"):
            for name, number in line.get("lost", {}).items():
                unknown[name] += number
        self._tell_unknown(unknown)
        return described

    def _tell_unknown(self, unknown: dict[str, int]) -> None:
        if not self.appends or not unknown["words"]:
            return
        if not unknown["unknown"]:
            self.listener.note(f"all {unknown['words']:,} words are in the vocabulary")
            return
        share = unknown["unknown"] / unknown["words"]
        self.listener.note(
            f"{unknown['unknown']:,} of {unknown['words']:,} words ({share:.1%}) are not in "
            "the vocabulary, which the first ingest has fixed; they do not count"
        )

    def _finish(
        self, read: dict[str, Any], described: tuple[StoredView, ...], files: Files
    ) -> None:
        base = self.work.base
        pairs = zip(self._shards("table"), self._shards("arrays"), strict=True)
        shards = [StoredShard(n_rows, {**table, **own}) for (n_rows, table), (_, own) in pairs]
        one = {
            "sources": read["sources"],
            "rows": read["rows"],
            "bad_rows": read["bad_rows"],
            "settings": self.call["settings"],
            CALL: self.call[CALL],
        }
        columns = {"id": read["id"], "label": read["label"]}
        self.work.finish(
            Manifest(described, (*base.shards, *shards), files, columns, (*base.ingests, one))
        )


def _known(path: Path) -> StoredFile:
    return StoredFile(path.stat().st_size, digest_of(path))


def _tell(stream: Stream, listener: Listener) -> None:
    """Say how the sources were read, and which rows were left out."""
    for sentence in stream.notes:
        listener.note(sentence)
    if stream.bad:
        source, row, why = stream.bad[0]
        listener.note(
            f"{len(stream.bad)} bad rows were left out; the first is {source}, row {row}: {why}"
        )
