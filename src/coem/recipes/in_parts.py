"""What recipes do with a corpus that does not fit in memory.

Models are fitted to all of its rows, and assign all of them, a shard at a time: labels,
probabilities and sizes of groups are those of all rows. A sample, drawn by the content of the rows,
stands for them where all rows would have to be in memory: on the page, for the number of groups,
and for what runs and views are compared on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from coem.recipes.corpora import shown_rows
from coem.recipes.documents import Documents
from coem.recipes.result import Job
from coem.recipes.views import n_filled
from coem.report import Assignments, assign, judged
from coem.row_store import RowStore
from coem.typing import Array


@dataclass(frozen=True)
class Few:
    """The rows that are in memory: all rows, or those of a corpus that stand for all."""

    job: Job  # whose documents are these rows
    views: Any
    rows: Array | None = None  # their numbers in the corpus; None if all rows are in memory
    whole: Any = None  # the documents of the corpus

    @property
    def stand_for_more(self) -> bool:
        """Whether there are rows beside these."""
        return self.rows is not None and len(self.rows) < len(self.whole)

    def of(self, values: Any) -> Any:
        """Return the values of these rows, of values of all rows or None."""
        return values if values is None or self.rows is None else values[self.rows]


def few_of(job: Job, data: Any) -> Few:
    """Return the rows that are in memory: all of `data`, or a sample of a corpus."""
    if not isinstance(data, RowStore):
        return Few(job, data)
    rows = shown_rows(job.documents.corpus)
    if len(rows) < len(data):
        job.listener.note(
            f"{len(rows):,} of the {len(data):,} rows, drawn by their content, stand for all on "
            "the page, for the number of groups, and where runs are compared"
        )
    own = replace(job, documents=job.documents.take(rows))
    return Few(own, data.take(rows), rows, job.documents)


def check_few(k: int, few: Few) -> None:
    """Refuse more groups than a sample has rows with anything in them."""
    filled = n_filled(few.views) if few.stand_for_more else k
    if k > filled:
        raise ValueError(
            f"k={k} groups are first looked for in a sample, and it has {filled:,} rows that are "
            "not empty; ask for fewer, or fit MixtureClusterer(k, init='random') to the corpus in "
            "Python"
        )


def labelled_few(few: Few, data: Any, labels: Array) -> tuple[Any, Array]:
    """Return views and labels of rows in memory, half of which have a label if so many do."""
    if not few.stand_for_more:
        return few.views, few.of(labels)
    known = np.array([label != "" for label in labels])
    half = max(len(few.views) // 2, 1)
    drawn = [data.sample(half, among=np.flatnonzero(which)) for which in (known, ~known)]
    rows = np.sort(np.concatenate(drawn))
    return data.take(rows), labels[rows]


def fit_all(few: Few, data: Any, found: Any) -> Any:
    """Return the stability of a model that is fitted to all rows, from the kept run on.

    `found` is the stability of the runs on the sample, with which the model is compared.
    """
    if not few.stand_for_more:
        return found
    kept, job = found.estimator, few.job
    model = clone(kept)
    first = model.init
    init = kept if hasattr(kept, "theta_") else kept.cluster_centers_[kept.view_names_[-1]]
    model.set_params(init=init, checkpoint=job.part("all"))
    with job.listener.fitting("the fit to all rows", None), job.listener.noting_warnings():
        model.fit(data).set_params(init=first, checkpoint=None)
    return found.against(model, few.views)


def assign_all(
    model: Any,
    parts: Iterable[Any],
    ids: Sequence[str],
    names: Sequence[str],
    naming: Any = None,
) -> Assignments:
    """Return the groups of all rows, which come in parts; their ids stay where they are."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        found = vars(assign(model, part, range(len(part)), names, naming=naming))
        for name, values in found.items():
            if name != "id":
                columns.setdefault(name, []).append(values)
    joined = {name: np.concatenate(values) for name, values in columns.items()}
    return Assignments(id=ids, **joined)


def assigned(few: Few, data: Any, model: Any, story: Any, naming: Any = None) -> Any:
    """Return the groups of all rows of a corpus; None if those of the story are all."""
    if few.rows is None:
        return None
    names = [group.name for group in story.groups]
    with few.job.listener.fitting("the groups of all rows", None):
        parts = (shard.read() for shard in data.shards)
        return assign_all(model, parts, few.whole.ids, names, naming)


def counted(story: Any, rows: Assignments | None) -> Any:
    """Return a story with sizes, shares and probabilities of the groups from all rows."""
    if rows is None:
        return story
    n_rows, k = len(rows.label), len(story.groups)
    codes = codes_of(rows.label, [group.label for group in story.groups])
    sizes = np.bincount(codes, minlength=k)
    empty = np.bincount(codes[rows.empty], minlength=k)
    sums = np.bincount(codes, weights=rows.probability, minlength=k)
    groups = [
        replace(
            group,
            size=int(sizes[g]),
            empty=int(empty[g]),
            share=float(sizes[g] / n_rows),
            probability=float(sums[g] / sizes[g]) if sizes[g] and sums[g] == sums[g] else None,
        )
        for g, group in enumerate(story.groups)
    ]
    n_few = len(story.assignments.label)
    there = [sum(group.size > 0 for group in of) for of in (story.groups, groups)]
    heading = story.heading.replace(f" in {there[0]} groups", f" in {there[1]} groups")
    heading = heading.replace(f"{n_few:,} documents", f"{n_rows:,} documents")
    sampled = n_few if n_few < n_rows else None
    return replace(story, groups=groups, n_rows=n_rows, heading=heading, sampled=sampled)


def codes_of(labels: Array, keys: Sequence[Any]) -> Array:
    """Return the place of every label among the keys."""
    places = {key: place for place, key in enumerate(keys)}
    found = np.empty(len(labels), dtype=np.int32)
    for lo, hi in pairwise([*range(0, len(labels), 1 << 16), len(labels)]):
        own, inverse = np.unique(labels[lo:hi], return_inverse=True)
        found[lo:hi] = np.array([places[label] for label in own.tolist()])[inverse]
    return found


def held_out_truth(few: Few, labels: Array, held_out: Any) -> Any:
    """Return what held-out labels say, of rows that need not be among the few."""
    if held_out is None or few.rows is None:
        return held_out
    return asdict(judged(labels[held_out.rows], held_out))


def shown_of(documents: Documents) -> tuple[Documents, Array | None]:
    """Return the documents that a page shows, and which rows they are; None if they are all."""
    if not documents.in_parts:
        return documents, None
    rows = shown_rows(documents.corpus)
    return documents.take(rows), rows
