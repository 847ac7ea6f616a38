"""The groups of two runs, matched by the documents that they share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.optimize import linear_sum_assignment

MAJORITY = 0.5  # of the shared documents of a group; more than this is most of them


@dataclass(frozen=True, eq=False)
class Shared:
    """How many documents each group of a run has in common with each group of another.

    Attributes
    ----------
    first, second : list of str
        The labels of the groups of both runs, in order.
    counts : ndarray of int of shape (len(first), len(second))
        Shared documents.
    """

    first: list[str]
    second: list[str]
    counts: np.ndarray

    @property
    def n_rows(self) -> int:
        """The number of documents that are in both runs."""
        return int(self.counts.sum())

    @property
    def of_first(self) -> np.ndarray:
        """The share that each count has in the shared documents of the first run's group."""
        return self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)

    @property
    def of_second(self) -> np.ndarray:
        """The share that each count has in the shared documents of the second run's group."""
        return self.counts / np.maximum(self.counts.sum(axis=0, keepdims=True), 1)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the one-to-one matching with the most shared documents, as places.

        Only pairs of groups that have most of each other's documents are in it.
        """
        rows, columns = linear_sum_assignment(self.counts, maximize=True)
        sure = (self.of_first > MAJORITY) & (self.of_second > MAJORITY)
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return [(i, j) for i, j in pairs if sure[i, j]]


def fates(common: Shared) -> list[tuple[str, list[int]]]:
    """Return what became of each group of the first run, and the groups of the second it is in.

    A group *recurs* if it and a group of the second run have most of each other's documents. It is
    *merged* if most of it is in a group that has more documents of others, and *split* if groups
    that consist mostly of its documents have most of them. Otherwise it is *scattered*, and the
    group with the largest part is named. A group without shared documents is *gone*.
    """
    recur, of_first, of_second = dict(common.pairs()), common.of_first, common.of_second
    found: list[tuple[str, list[int]]] = []
    for i, counts in enumerate(common.counts):
        best = int(counts.argmax()) if counts.size else 0
        parts = (of_second[i] > MAJORITY).nonzero()[0].tolist()
        parts.sort(key=lambda j, row=counts: -row[j])
        if not counts.sum():
            found.append(("gone", []))
        elif i in recur:
            found.append(("recurs", [recur[i]]))
        elif of_first[i, best] > MAJORITY:
            found.append(("merged", [best]))
        elif of_first[i, parts].sum() > MAJORITY:
            found.append(("split", parts))
        else:
            found.append(("scattered", [best]))
    return found


def names_by_label(run: Path) -> dict[str, str]:
    """Return label -> name of the groups of a run, as its table of groups has them."""
    from coem.recipes.run_file import CLUSTERS

    path = run / CLUSTERS
    if not path.is_file():
        return {}
    data = _only(path, _read(run, path), "label", "name")
    labels, names = data.column("label").to_pylist(), data.column("name").to_pylist()
    return {str(label): str(name) for label, name in zip(labels, names, strict=True)}


@dataclass(frozen=True, eq=False)
class Assigned:
    """The groups of documents by their ids: some bytes for each, and no object of Python.

    Attributes
    ----------
    ids : pyarrow.ChunkedArray
        What the documents are called.
    labels : list of str
        The labels of the groups, in order.
    codes : ndarray of int of shape (n_rows,)
        The place of the label of each document.
    """

    ids: Any
    labels: list[str]
    codes: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[Sequence[Any]]) -> Self:
        """Return the groups of documents whose ids and labels come in parts."""
        ids: list[Any] = []
        codes, places = [np.empty(0, np.int32)], dict[str, int]()
        for names, labels in parts:
            ids += pa.chunked_array([names]).cast(pa.string()).chunks
            texts = pa.chunked_array([labels]).cast(pa.string()).fill_null("")
            coded = texts.combine_chunks().dictionary_encode()
            own = [places.setdefault(label, len(places)) for label in coded.dictionary.to_pylist()]
            codes.append(np.array(own, np.int32)[coded.indices.to_numpy()])
        ordered = sorted(places, key=_order)
        ranks = np.empty(len(places), np.int32)
        ranks[[places[label] for label in ordered]] = np.arange(len(places))
        return cls(pa.chunked_array(ids, pa.string()), ordered, ranks[np.concatenate(codes)])

    def beside(self, other: Self) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of the documents that are in both, here and there."""
        rows = pc.index_in(self.ids, value_set=other.ids).combine_chunks()
        there = np.asarray(rows.is_valid())
        return self.codes[there], other.codes[rows.drop_null().to_numpy()]


def shared(first: Assigned, second: Assigned) -> Shared:
    """Return what two runs have in common."""
    k = len(second.labels)
    here, there = first.beside(second)
    counts = np.bincount(here.astype(np.int64) * k + there, minlength=len(first.labels) * k)
    return Shared(first.labels, second.labels, counts.reshape(len(first.labels), k))


def _order(label: str) -> tuple[int, int, str]:
    """Return what sorts numbers by their value, before other labels."""
    number = label.isascii() and label.isdigit()
    return (0, int(label), "") if number else (1, 0, label)


def labels_by_id(run: Path) -> Assigned:
    """Return the groups of the documents of a run."""
    tables = (table.combine_chunks() for table in assignments(run, "id", "label"))
    return Assigned.of([column.chunk(0) for column in table.columns] for table in tables)


def assignments(run: Path, *columns: str) -> Iterator[Any]:
    """Yield some columns of the assignments of a run, a part of the rows at a time."""
    from coem.io.regular import check_regular
    from coem.io.streams import Reading, Stream
    from coem.recipes.run_file import ASSIGNMENTS, read_run
    from coem.report import Assignments

    found = sorted(run.glob(f"{ASSIGNMENTS}.*"))
    if not found:
        raise ValueError(f"{run} has no {ASSIGNMENTS}: it is not the folder of a run")
    check_regular(found[0])
    run_json = read_run(run)
    into = _into(run) if run_json["verb"] == "stream" and "label" in columns else {}
    names = [*(own.name for own in fields(Assignments)), "trust"]
    known = pa.schema([(name, pa.string()) for name in names])  # cells as they are written
    with TemporaryDirectory() as scratch:
        for table in Stream([str(found[0])], Path(scratch), Reading(), known):
            part = _only(found[0], _as_it_was(run_json, found[0], table), *columns)
            yield _merged(part, into) if into else part


def _into(run: Path) -> dict[str, str]:
    """Return the labels of the groups of a stream that were merged, and what they count as now.

    The journal of a stream has the labels that were written first: its rows never change.
    """
    from coem.recipes.record import naming_in

    naming = naming_in(run)
    parts = () if naming is None else enumerate(naming.into.tolist())
    return {str(group): str(whole) for group, whole in parts if whole != group}


def _merged(table: Any, into: dict[str, str]) -> Any:
    """Return a table whose labels are those of merged groups."""
    coded = table.column("label").combine_chunks().dictionary_encode()
    labels = [into.get(label, label) for label in coded.dictionary.to_pylist()]
    column = pa.array(labels, pa.string()).take(coded.indices)
    return table.set_column(table.column_names.index("label"), "label", column)


def _only(path: Path, data: Any, *columns: str) -> Any:
    """Return some columns of a table of a run, which a user may have edited."""
    for name in columns:
        if name not in data.column_names:
            raise ValueError(
                f"{path} has no column {name!r}, which a run writes there; put it back, or run it "
                "again"
            )
    return data.select(columns)


def _read(run: Path, path: Path) -> Any:
    """Return a table of a run, without the apostrophes of safe tables."""
    from coem.io.tables import read_table
    from coem.recipes.run_file import read_run

    return _as_it_was(read_run(run), path, read_table(str(path)).data)


def _as_it_was(run_json: dict[str, Any], path: Path, data: Any) -> Any:
    from coem.io.tables import DELIMITED, as_it_was

    safe = run_json["written"].get("safe_csv", False) and path.suffix in DELIMITED
    return as_it_was(data) if safe else data
