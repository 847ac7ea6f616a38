"""Which documents are shown: typical, doubtful and disputed ones, and those to search in."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coem.report.wording import views_in_words

SHORT = 100  # characters of a document in the table of documents
PAGE = 7_950_000  # bytes of a page
PACKED = 250  # about the bytes that the words and the beginning of a text take
BUDGET = 4_200_000  # bytes of a page of segments that documents and groups may take
CARD = 10_000  # about the bytes of a group
LEAST = 500_000  # bytes that are left for the search however many groups there are


@dataclass(frozen=True)
class Document:
    """A row, what it says and where it was put.

    `group` and `second` are places in the list of groups; `votes` maps a view to the name of the
    group that it prefers, where views were compared. `said` is the place of what the views do in
    `coem.report.wording.VIEWS`, `label` the known class, and `day` the date, in days since
    1970.
    """

    row: int
    id: str
    title: str
    excerpt: str
    group: int
    probability: float | None
    second: int | None
    second_probability: float | None
    disagreement: float | None
    votes: dict | None = None
    said: int | None = None
    label: str | None = None
    day: int | None = None


class Teller:
    """Chooses documents and tells about them."""

    def __init__(self, reading, texts, names, labels=None, dates=None):
        self._reading, self._texts, self._names = reading, texts, names
        self._labels = labels
        self._days = None if dates is None else dates.values.astype("M8[D]")
        if reading.proba is None:
            self._central = reading.closeness[np.arange(len(reading.groups)), reading.groups]
        else:
            self._central = reading.space.centrality(reading.groups, reading.n_groups)

    def typical(self, group, n):
        """Return the documents with the highest posterior, of equals (to 1 %) the most central."""
        rows = self._rows(group)
        sure = np.zeros(len(rows))
        if self._reading.proba is not None:
            sure = np.round(self._reading.proba[rows, group].astype(np.float64), 2)
        return self._first(rows[np.lexsort((rows, -self._central[rows], -sure))], n)

    def doubtful(self, group, n):
        """Return the documents with the smallest margin over the second choice."""
        if self._reading.n_whole < 2:
            return []
        rows = self._rows(group)
        return self._first(rows[np.lexsort((rows, self._reading.margin[rows]))], n)

    def disputed(self, n):
        """Return the documents on which the views disagree most."""
        value, views = self._reading.disagreement, self._reading.view_groups
        if views is None:
            return []
        rows = np.flatnonzero(self._differ)
        return self._first(rows[np.lexsort((rows, -value[rows]))], n, votes=True)

    @cached_property
    def _differ(self):
        """Of which rows two views choose different groups."""
        views = self._reading.view_groups
        low = np.where(views >= 0, views, self._reading.n_groups).min(axis=1)
        return views.max(axis=1) > low

    def all(self):
        """Return all documents."""
        return [self._document(row, length=SHORT) for row in range(len(self._reading.groups))]

    def some(self, groups, agreement):
        """Return the documents to search in: all, or as many as the budget has room for.

        Those that are shown elsewhere on the page come first, then rows at equal distances.
        """
        n_rows = len(self._reading.groups)
        shown = [d.row for g in groups for d in (*g.typical, *g.doubtful)]
        shown += [d.row for d in agreement.documents] if agreement else []
        room = self._room(n_rows)
        rows = np.unique(np.array(shown, dtype=int))
        if room < n_rows:
            spread = np.linspace(0, n_rows - 1, max(room - len(rows), 0)).astype(int)
            rows = np.unique(np.concatenate([rows, spread]))
        else:
            rows = np.arange(n_rows)
        return [self._document(row, length=SHORT) for row in rows.tolist()]

    def _room(self, n_rows, sample=500):
        """Return how many documents fit, by the size of some of them."""
        rows = np.linspace(0, n_rows - 1, min(sample, n_rows)).astype(int).tolist()
        texts = self._texts
        parts = (texts.ids[r] + texts.title(r) for r in rows)
        size = sum(len(part.encode("utf-8")) + 40 for part in parts) / len(rows) + PACKED
        return int(max(PAGE - CARD * self._reading.n_groups, LEAST) / size)

    def _rows(self, group):
        """Return the rows of a group, without those that are empty in every view."""
        return np.flatnonzero((self._reading.groups == group) & ~self._reading.blank)

    def _first(self, rows, n, votes=False):
        """Return the first documents that do not say the same."""
        found, seen = [], set()
        for row in rows.tolist():
            if len(found) == n:
                break
            document = self._document(row, votes=votes)
            text = document.excerpt or document.id
            if text not in seen:
                seen.add(text)
                found.append(document)
        return found

    def _document(self, row, length=None, votes=False):
        reading = self._reading
        first, second = reading.order[row].tolist()
        second = second if second >= 0 else None

        def chance(group):
            return None if reading.proba is None else float(reading.proba[row, group])

        return Document(
            row=row,
            id=self._texts.ids[row],
            title=self._texts.title(row),
            excerpt=self._texts.excerpt(row, *([length] if length else [])),
            group=first,
            probability=chance(first),
            second=second,
            second_probability=None if second is None else chance(second),
            disagreement=None if reading.disagreement is None else float(reading.disagreement[row]),
            votes=self._votes(row) if votes else None,
            said=self._said(row),
            label=None if self._labels is None else self._labels[row],
            day=self._day(row),
        )

    def _day(self, row):
        """Return the date of a row, if it has one."""
        if self._days is None or np.isnat(self._days[row]):
            return None
        return int(self._days[row].astype(int))

    def _said(self, row):
        """Return a text about what the views do."""
        reading = self._reading
        if reading.view_groups is None or reading.disagreement is None:
            return None
        differ, value = bool(self._differ[row]), float(reading.disagreement[row])
        return views_in_words(differ, value, reading.dissent)

    def _votes(self, row):
        """Return what every view alone would say; a view that is empty says nothing."""
        choice = zip(self._reading.views.names, self._reading.view_groups[row], strict=True)
        return {view: self._names[g] if g >= 0 else None for view, g in choice}
