"""The groups of a stream: the model, what it is compared with, and what became of each group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from coem.io.json_lines import as_column, as_json
from coem.io.numbers import MISSING
from coem.io.tables import Table
from coem.recipes.clustering import cluster
from coem.recipes.dates import dates_of
from coem.recipes.documents import Documents, as_documents
from coem.recipes.listener import Listener
from coem.recipes.novelty import LEAST_REFERENCE, new_groups
from coem.recipes.result import story_of
from coem.recipes.views import n_jobs, named_columns
from coem.report import Assignments, Naming, assign, tell

WINDOW = 2000  # documents that new groups are looked for in, and that the page shows
SEARCH = 500  # documents after which they are looked for again
HELD_OUT = 4  # one of this number of documents of the first batch is not learned from,
MOST_HELD_OUT = 1000  # and no more than this
FADED = 0.1  # of the largest share that a group had


@dataclass(frozen=True, eq=False)
class Batch:
    """What became of one batch of a stream.

    Attributes
    ----------
    number : int
        Of the batch, from 1 on, over all calls.
    assignments : coem.report.Assignments
        Ids, labels, names and probabilities of its documents.
    new, faded, back : list of int
        Groups that were added; groups whose share has fallen below a tenth of the largest that
        they had; and groups that had faded and are back.
    unknown : float
        The share of its words that the vocabulary of the first batch does not have.
    n_rows : int
        Documents of all batches so far.
    """

    number: int
    assignments: Assignments
    new: list[int]
    faded: list[int]
    back: list[int]
    unknown: float
    n_rows: int

    @property
    def ids(self) -> Any:
        """The ids of the documents."""
        return self.assignments.id

    @property
    def labels(self) -> Any:
        """The groups of the documents."""
        return self.assignments.label


@dataclass
class Counts:
    """What is known of the groups beside the model; it fits in JSON."""

    sizes: list[int]  # documents of each group so far
    since: list[int]  # the batch in which a group was added
    largest: list[float]  # share that it had
    faded: list[int] = field(default_factory=list)
    n_rows: int = 0
    n_batches: int = 0
    waiting: int = 0  # documents since the last search for new groups
    first: int = 0  # documents of the first batch
    usual: float = 0.0  # share of unknown words in the held-out documents


@dataclass
class Groups:
    """A stream at work. Its memory does not depend on how many documents there were."""

    settings: dict[str, Any]
    reader: Any
    model: Any
    names: list[str]
    id_column: str | None
    reference: Any  # a table: documents of the first batch that were not learned from
    window: Any  # a table: the latest documents
    counts: Counts

    @property
    def n_first(self) -> int:
        """The number of groups of the first batch."""
        return self.counts.since.count(1)

    def check(self) -> None:
        """Raise KeyError or TypeError unless all parts are those of one stream."""
        counts, k = self.counts, self.model.n_components
        for each in (self.names, counts.sizes, counts.since, counts.largest):
            if len(each) != k:
                raise TypeError(f"a list has {len(each)} items, and there are {k} groups")
        if not set(counts.faded) <= set(range(k)):
            raise TypeError("a group that has faded is not there")
        if self.id_column is not None:
            self.window.column(self.id_column)
        for name in {"seed", "date"} - self.settings.keys():
            raise KeyError(name)

    # -- batches -------------------------------------------------------------------------------

    def learn(self, table: Any, listener: Listener) -> Batch:
        """Learn from a batch after the first, and assign its documents."""
        table = with_columns(table, self.window.schema)
        ids = self.ids(table, self.counts.n_rows)
        self.window = last(joined([self.window, table]), max(WINDOW, table.num_rows))
        self.counts.waiting += table.num_rows
        limit = self.model.__dict__.get("calibration_")
        with listener.noting_warnings():
            views = self.reader.transform(table)
            new, started = self._grow(table.num_rows)
            rest = np.setdiff1d(np.arange(table.num_rows), started)
            if len(rest):
                self.model.partial_fit(views[rest])
            if limit is not None:  # how sure the runs of the first batch were of each other
                self.model.calibration_ = limit
        if new:
            self._name(new)
        return self._batch(assign(self.model, views, ids, self.names), table, new)

    def _grow(self, n_batch: int) -> tuple[list[int], Any]:
        """Add new groups, and return them and the rows of the batch that they start from."""
        nothing = np.empty(0, dtype=np.int64)
        if self.counts.waiting < min(SEARCH, WINDOW) or self.reference.num_rows < LEAST_REFERENCE:
            return [], nothing
        self.counts.waiting = 0
        # As a whole: rounding may depend on the rows beside a row, and a later call has no others.
        later = last(self.window, self.counts.n_rows + n_batch - self.counts.first)
        window = self.reader.transform(later)
        reference = self.reader.transform(self.reference)
        known = self.model.predict(window) >= self.n_first
        threads = n_jobs(self.settings)
        found = new_groups(self.model, reference, window, known, n_jobs=threads)
        if not found:
            return [], nothing
        k = self.model.n_components
        start = np.full(len(window), -1)
        for place, group in enumerate(found):
            start[group.rows] = k + place
        self.model.add_components(window, start)
        first = len(window) - n_batch
        return list(range(k, k + len(found))), np.flatnonzero(start[first:] >= 0)

    def _name(self, new: Sequence[int]) -> None:
        """Name new groups after their words; other groups keep their names."""
        story = tell(
            self.model,
            self.reader.transform(self.window),
            feature_names=named_columns(self.reader),
            map=False,
        )
        self.names = [*self.names, *(story.groups[group].name for group in new)]

    def _batch(self, assignments: Assignments, table: Any, new: list[int]) -> Batch:
        """Count the documents of a batch, and return what became of it."""
        counts, k = self.counts, self.model.n_components
        counts.n_batches += 1
        counts.n_rows += table.num_rows
        counts.sizes += [0] * (k - len(counts.sizes))
        counts.since += [counts.n_batches] * (k - len(counts.since))
        counts.largest += [0.0] * (k - len(counts.largest))
        added = np.bincount(assignments.label.astype(np.int64), minlength=k)
        counts.sizes = [old + int(n) for old, n in zip(counts.sizes, added, strict=True)]
        weights = self.model.weights_.tolist()
        pairs = zip(counts.largest, weights, strict=True)
        counts.largest = [max(old, float(now)) for old, now in pairs]
        low = [g for g in range(k) if weights[g] < FADED * counts.largest[g]]
        faded = [g for g in low if g not in counts.faded]
        back = [g for g in counts.faded if g not in low]
        counts.faded = low
        unknown = share_unknown(self.reader, table)
        about = new, faded, back, unknown, counts.n_rows
        return Batch(counts.n_batches, assignments, *about)

    def ids(self, table: Any, before: int) -> list[str]:
        """Return what documents are called: by the column of the first batch, or by numbers.

        `before` is the number of documents before them.
        """
        first = before + 1
        if self.id_column is None:
            return [str(first + i) for i in range(table.num_rows)]
        names = self.own_ids(table)
        return [str(first + i) if name is None else name for i, name in enumerate(names)]

    def own_ids(self, table: Any) -> list[str | None]:
        """Return what the column of the ids calls documents; None for those without an id."""
        table = with_columns(table, self.window.schema)
        values = table.column(self.id_column).to_pylist()
        return [None if value is None else str(value) for value in values]

    # -- the page ------------------------------------------------------------------------------

    def documents(self, called: str) -> Documents:
        """Return the documents of the window, which the page shows."""
        before = self.counts.n_rows - self.window.num_rows
        ids = self.ids(self.window, before)
        return Documents(self.window, called, "", ids, self.id_column, 0, None, called)

    def story(self, called: str, naming: Any = None) -> Any:
        """Return the story about the documents of the window."""
        documents, views = self.documents(called), self.reader.transform(self.window)
        so_far = f"{self.counts.n_rows:,} documents so far in {len(self.names)} groups"
        return story_of(
            self.model,
            views,
            self.reader,
            documents,
            self.settings,
            heading=f"{called}: {so_far}, the last {len(documents):,} of them here",
            naming=naming or Naming(tuple(self.names)),
            dates=dates_of(documents, self.settings["date"]),
        )


def first_batch(
    table: Any, settings: dict[str, Any], listener: Listener, documents: Documents | None = None
) -> tuple[Groups, Batch]:
    """Fit the groups to the first batch, and assign its documents.

    `documents` are those of a corpus, of which the batch is the first rows. Its views are used.
    """
    heard = Listener()
    column = _id_column(table, settings["id"], heard) if documents is None else documents.id_column
    held = held_out(table.num_rows, settings["seed"])
    kept = np.setdiff1d(np.arange(table.num_rows), held)
    learned = table.take(kept) if documents is None else documents.take(kept)
    result = cluster(learned, **settings, listener=listener)
    model = result.model.start_batches(result.views)
    names = [group.name for group in result.story.groups]
    k = len(names)
    counts = Counts([0] * k, [1] * k, [0.0] * k, first=table.num_rows)
    if column != result.documents.id_column:  # a document that was held out has no id
        listener.note(heard.notes[0])
    reference = table.take(held) if documents is None else documents.take(held).table
    tables = reference, last(table, WINDOW)
    groups = Groups(result.settings, result.reader, model, names, column, *tables, counts)
    counts.usual = share_unknown(groups.reader, groups.reference) if len(held) else 0.0
    with listener.noting_warnings():
        views = groups.reader.transform(table)
    batch = groups._batch(assign(model, views, groups.ids(table, 0), names), table, [])
    return groups, batch


def _id_column(table: Any, given: str | None, listener: Listener) -> str | None:
    """Return the column of the ids if it tells all documents of a batch apart.

    `cluster` sees only those that it learns from.
    """
    return as_documents(Table(table, "the first batch", ""), table, listener, id=given).id_column


def held_out(n_rows: int, seed: int) -> Any:
    """Return the rows of the first batch that are not learned from, in order.

    Too few of them could tell nothing, and then all rows are learned from.
    """
    size = min(n_rows // HELD_OUT, MOST_HELD_OUT)
    if size < LEAST_REFERENCE:
        return np.empty(0, dtype=np.int64)
    return np.sort(np.random.default_rng(seed).permutation(n_rows)[:size])


def share_unknown(reader: Any, table: Any) -> float:
    """Return the share of the words of documents that the vocabulary does not have."""
    n_known, n_words = reader.known_words(table)
    return 1.0 - n_known / n_words if n_words else 0.0


# -- tables ------------------------------------------------------------------------------------


def joined(tables: Sequence[Any]) -> Any:
    """Return the rows of several tables with the same columns.

    A column that is of another type in one of them is text.
    """
    names = tables[0].column_names
    columns = []
    for name in names:
        parts = [table.column(name) for table in tables]
        if len({part.type for part in parts}) == 1:
            chunks = [chunk for part in parts for chunk in part.chunks]
            columns.append(pa.chunked_array(chunks, parts[0].type))
        else:
            columns.append(as_column([value for part in parts for value in part.to_pylist()]))
    return pa.table(columns, names=names)


def with_columns(table: Any, known: Any) -> Any:
    """Return a table with the columns of a schema: others are left out, and missing ones empty.

    What is text there is text here, and cells that stand for nothing are null where it has none.
    """
    columns = [
        _as_known(table.column(own.name), own.type)
        if own.name in table.column_names
        else pa.nulls(table.num_rows, own.type)
        for own in known
    ]
    return pa.table(columns, names=known.names)


def _as_known(column: Any, kind: Any) -> Any:
    """Return a column as text, or without its words for nothing, as earlier batches have it."""
    is_text = pa.types.is_string(column.type)
    if pa.types.is_string(kind):
        as_is = is_text or pa.types.is_temporal(column.type)
        return column if as_is else pa.array(map(as_json, column.to_pylist()), kind)
    if is_text and all(cell is None or cell.strip() in MISSING for cell in column.to_pylist()):
        return pa.nulls(len(column), kind)
    return column


def last(table: Any, n_rows: int) -> Any:
    """Return the last rows of a table."""
    return table.slice(max(table.num_rows - n_rows, 0))
