"""`stream`: groups of documents that keep coming."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coem.checks import check_number
from coem.io.batches import Record, TableSource, open_source
from coem.io.folder_source import FolderSource
from coem.io.rows import Bad
from coem.io.tables import check_sheet
from coem.recipes.clustering import cluster
from coem.recipes.corpora import as_path
from coem.recipes.documents import Documents
from coem.recipes.listener import Listener
from coem.recipes.settings import normal
from coem.recipes.stream_corpus import CorpusSource
from coem.recipes.stream_folder import StreamFolder
from coem.recipes.stream_ids import KnownIds
from coem.recipes.stream_inputs import Inputs, Pieces, Source
from coem.recipes.stream_state import Batch, Groups, first_batch, with_columns
from coem.stored import is_corpus
from coem.text import as_arrow

BATCH = 1000  # documents of a pipe
Place = Callable[[int], str]  # where a row is, in the words of errors
MOST_NOTES = 1000  # that a listener keeps: a stream has no end
READING = ("encoding", "delimiter", "sheet", "skip_bad")
FOLDER_ID = "id"  # the column of the names of files
# Parameters of `cluster` that a stream has no use for, and why.
REFUSED = {
    "label": "classes judge all documents at once",
    "names_from": "groups of a stream keep their names",
    "encoder": "a stream cannot keep an encoder between two calls",
}
SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


def stream(
    source: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    batch: int | None = None,
    force: bool = False,
    report: bool = True,
    safe_csv: bool = False,
    listener: Listener | None = None,
    **settings: Any,
) -> Iterator[Batch]:
    """Find groups in the first batch of a stream, and keep them up to date with later batches.

    ``coem cluster --stream`` gives the same bits. Every batch is assigned to the groups, and moves
    them a step (`MixtureClusterer.partial_fit`). Groups keep their numbers and names, and the
    labels of old documents never change. If documents come that fit no group and belong together,
    they are a new group, with the next number.

    Parameters
    ----------
    source : path, "-" or iterable of tables
        A file of JSON lines or CSV, standard input, the folder of a corpus, or tables as
        `coem.cluster` takes them, each a batch. Other files and folders are read as a whole.
    out : path, optional
        The folder that keeps the stream. If an earlier call wrote it, this one goes on from there:
        documents that were read are skipped if they come again, and those whose ids are there
        already are left out. Without it nothing is written.
    batch : int, optional
        Documents of a batch. By default, all that there are in a file or a corpus (of a corpus, no
        more than 1 GB of views), 1,000 of standard input, and the rows of each table.
    force : bool, default=False
        Replace the folder of another run, and begin anew.
    report : bool, default=True
        Write report.html: after the first batch, when a group is new, and at the end.
    safe_csv : bool, default=False
        Put an apostrophe before cells of .csv files that a spreadsheet would run as formulas.
    listener : Listener, optional
        Gets notes and progress.
    **settings
        Parameters of `coem.cluster`, for the first batch. `label`, `names_from`, `encoder`, k-means
        and views of .npy files, inbound links and encoders need all documents at once, and are
        refused.

    Yields
    ------
    batch : Batch
        With `ids`, `labels`, `new` and `faded` groups, and the share of `unknown` words. It is in
        the folder when it is yielded.

    Examples
    --------
    >>> import coem
    >>> ships, bread = "captain and crew sail the ship", "flour and butter for the bread"
    >>> nights = [{"text": [ships, bread] * 5}, {"text": [bread, ships]}]
    >>> first, second = coem.stream(nights, text="text", k=2, restarts=2)
    >>> first.labels[:2].tolist() == second.labels[::-1].tolist()
    True
    """
    check_number("batch", batch, Integral, 1, optional=True)
    source, given = as_path(source), _checked(settings)
    listener = Listener() if listener is None else listener
    folder = None
    if out is not None:
        pages = {"report": report, "safe_csv": safe_csv}
        folder = StreamFolder(Path(out), given, _called(source), **pages)
    return _batches(source, folder, given, batch, force, listener)


def _batches(
    source: Any,
    folder: StreamFolder | None,
    given: dict[str, Any],
    size: int | None,
    force: bool,
    listener: Listener,
) -> Iterator[Batch]:
    """Yield the batches; the folder is complete whenever one is yielded."""
    with ExitStack() as held:
        if folder is not None:
            held.enter_context(folder)
        kept = None if folder is None or force else folder.resume()
        groups, inputs = kept or (None, Inputs())
        known = KnownIds()
        if kept is None and folder is not None:
            folder.check_place(force=force)
        if groups is not None and folder is not None:
            known = KnownIds(folder.ids())
            so_far = f"{len(groups.names)} groups of {groups.counts.n_rows:,} documents"
            listener.note(f"the stream goes on with {so_far}")
        opened = _opened(source, given, groups, known)
        held.callback(opened.close)
        for sentence in getattr(opened, "notes", ()):
            listener.note(sentence)
        documents = opened.documents if isinstance(opened, CorpusSource) else None
        work = _Work(folder, given, force, listener, inputs, groups, known, documents)
        if size is None and isinstance(opened, CorpusSource):
            size = opened.usual_batch
        size = BATCH if size is None and isinstance(source, str) and source == "-" else size
        yield from _each(Pieces(opened, inputs), size, work)


def _each(pieces: Pieces, size: int | None, work: "_Work") -> Iterator[Batch]:
    """Yield the batches of an input, and write the page when there are no more."""
    inputs, listener = work.inputs, work.listener
    if pieces.n_skipped:
        listener.note(f"{pieces.n_skipped:,} documents were read before, and are skipped")
    stopped: BaseException | None = None
    while stopped is None:
        records, stopped = _taken(pieces, size, work)
        if not records:
            break
        inputs.read(records)
        table, bad = pieces.source.table(records, work.texts)
        if bad:
            row, why = bad[0]
            listener.note(f"{len(bad)} bad rows were left out; the first is row {row}: {why}")
        place = _places(pieces.source.source, records, bad)
        table, place = (None, place) if table is None else work.new_rows(table, place)
        listener.rows_are(place)
        if table is not None:
            found, late = work.do(table)
            stopped = stopped or late
            try:
                yield found
            except GeneratorExit:  # the caller wants no more batches
                work.finish()
                raise
    if pieces.source.left is not None:
        listener.note(pieces.source.left)
    if work.groups is None:
        raise ValueError(f"{pieces.source.source} has no documents; a stream needs a first batch")
    work.finish()
    if stopped is not None:
        raise stopped


def _places(source: str, records: list[Record], bad: Bad) -> Place:
    """Return a function that says where a row of a batch is, in the words of errors."""
    gone = {row for row, _ in bad}
    numbers = [row for row, _ in records if row not in gone]
    return lambda row: f"{source}, row {numbers[row]}"


def _taken(pieces: Pieces, size: int | None, work: "_Work") -> tuple[Any, BaseException | None]:
    """Return the records of the next batch, and what stopped the wait for more, if it did.

    Before the first batch there is nothing that could be kept.
    """
    try:
        return pieces.take(size), None
    except KeyboardInterrupt as error:
        if work.groups is None:
            raise
        return pieces.drain(), error


@dataclass
class _Work:
    """What is done with each batch."""

    folder: StreamFolder | None
    given: dict[str, Any]
    force: bool
    listener: Listener
    inputs: Inputs
    groups: Groups | None
    known: KnownIds
    documents: Documents | None = None  # of the corpus that is the source, if it is one

    @property
    def texts(self) -> list[str]:
        """Columns that are text in the batches before."""
        known = () if self.groups is None else self.groups.window.schema
        return [own.name for own in known if pa.types.is_string(own.type)]

    def new_rows(self, table: Any, place: Place) -> tuple[Any, Place]:
        """Return the documents whose ids are new, and where they are; None if there are none.

        The first batch decides which column has the ids, and refuses ids that are there twice.
        """
        if self.groups is None or self.groups.id_column is None:
            return table, place
        table = with_columns(table, self.groups.window.schema)
        ids = self.groups.own_ids(table)
        fresh = self.known.fresh(ids)
        old, new = np.flatnonzero(~fresh), np.flatnonzero(fresh)
        if not len(old):
            return table, place
        self.listener.note(
            f"{len(old):,} documents are left out, because their ids were assigned before; the "
            f"first is {place(int(old[0]))}: {ids[old[0]]!r:.60}"
        )
        rows = table.filter(pa.array(fresh)) if len(new) else None
        return rows, lambda row: place(int(new[row]))

    def do(self, table: Any) -> tuple[Batch, BaseException | None]:
        """Learn from a batch and keep it; return it, and what is to stop the stream after it."""
        found, late = self._done(table)
        if self.groups is not None and self.groups.id_column is not None:
            self.known.add(found.ids)
        return found, late

    def _done(self, table: Any) -> tuple[Batch, BaseException | None]:
        if self.groups is None:
            settings = {name: v for name, v in self.given.items() if name not in READING}
            about = settings, self.listener, self.documents
            self.groups, found = first_batch(table, *about)
            if self.folder is not None:
                self.folder.begin(self.groups, found, self.inputs, force=self.force)
            return found, None
        heard: list[Any] = []
        with _holding(heard):
            found = self.groups.learn(table, self.listener)
            if self.folder is not None:
                self.folder.commit(self.groups, found, self.inputs)
            self._say(found, self.groups)
        del self.listener.notes[:-MOST_NOTES]
        return found, _late(heard)

    def finish(self) -> None:
        """Write the page, and the table of the groups."""
        if self.folder is not None and self.groups is not None:
            self.folder.finish(self.groups)

    def _say(self, found: Batch, groups: Groups) -> None:
        """Say what became of a batch."""
        usual = groups.counts.usual
        self.listener.note(
            f"batch {found.number}: {len(found.ids):,} documents, {found.n_rows:,} so far; "
            f"{found.unknown:.0%} of the words are unknown (first batch: {usual:.0%})"
        )
        for group in found.new:
            size = int((found.labels == group).sum())
            name = groups.names[group]
            self.listener.note(f"group {group} is new: {name!r}, {size:,} documents of this batch")
        for what, which in (("has faded", found.faded), ("is back", found.back)):
            for group in which:
                self.listener.note(f"group {group} {what}: {groups.names[group]!r}")


# -- signals -----------------------------------------------------------------------------------


@contextmanager
def _holding(heard: list[Any]) -> Iterator[None]:
    """Delay the first signal until a batch is done, and keep it in `heard`; obey a second one."""
    if threading.current_thread() is not threading.main_thread():  # signals are not its business
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    held = {number: act for number, act in before.items() if callable(act)}

    def hear(number: int, frame: Any) -> None:
        if heard:
            held[number](number, frame)
        heard.append((held[number], number))

    try:
        for number in held:
            signal.signal(number, hear)
        yield
    finally:
        for number, act in held.items():
            signal.signal(number, act)


def _late(heard: list[Any]) -> BaseException | None:
    """Return the exception that a signal would have raised while a batch was at work."""
    for act, number in heard[:1]:
        try:
            act(number, None)
        except KeyboardInterrupt as error:
            return error
    return None


# -- parameters --------------------------------------------------------------------------------


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of `cluster` in their normal form; refuse those of no use."""
    known = signature(cluster).parameters
    defaults = {name: p.default for name, p in known.items() if name not in ("table", "listener")}
    for name in settings.keys() - defaults.keys():
        raise TypeError(f"stream() got an unexpected keyword argument {name!r}")
    for name, why in REFUSED.items():
        if settings.pop(name, None) is not None:
            raise ValueError(f"{name} is not for streams: {why}")
        del defaults[name]
    if settings.get("method", "em") != "em":
        raise ValueError("method='k-means' is not for streams: only mixtures learn from batches")
    given = normal({**defaults, **settings})
    for view, spec in given["views"].items():
        if not isinstance(spec, str) or spec.endswith((".npy", ":inbound", ":embed")):
            raise ValueError(
                f"view {view!r} is not for streams: {spec!r} needs all documents at once; name "
                "columns of text, lists, vectors, categories or numbers"
            )
    return given


def _opened(source: Any, given: dict[str, Any], groups: Groups | None, known: KnownIds) -> Source:
    """Return where documents come from; files of a folder that are `known` are not read."""
    reading = {name: given[name] for name in READING}
    if is_corpus(source):
        given_too = next((name for name, value in reading.items() if value), None)
        if given_too is not None:
            raise ValueError(f"{given_too} is for files, and {source} is a corpus; leave it out")
        return CorpusSource(source, given["id"])
    if isinstance(source, str | os.PathLike):
        if os.path.isdir(source):
            return _opened_folder(Path(source), given, groups, known)
        return open_source(os.fspath(source), **reading)
    if not isinstance(source, Iterable):
        raise TypeError(f"a stream is a file, '-' or tables, got {type(source).__name__}")
    return TableSource(map(as_arrow, source), "the tables")


def _opened_folder(
    path: Path, given: dict[str, Any], groups: Groups | None, known: KnownIds
) -> FolderSource:
    """Return the new files of a folder; refuse one if the stream does not keep their names."""
    check_sheet(given["sheet"], ".txt", str(path))
    name = FOLDER_ID if groups is None and given["id"] is None else given["id"]
    if (name if groups is None else groups.id_column) != FOLDER_ID:
        raise ValueError(
            f"{path} is a folder, whose files are known by their names, and the ids of this stream "
            f"are others; leave id out, or begin a stream of the folder alone"
        )
    how = {"encoding": given["encoding"], "skip_bad": given["skip_bad"]}
    return FolderSource(path, known.has, **how)


def _called(source: Any) -> str:
    """Return what documents are called on the page."""
    if not isinstance(source, str | os.PathLike):
        return "the tables"
    name = os.fspath(source)
    return "standard input" if name == "-" else Path(name).resolve().name
