"""The groups of two runs, matched by the documents that they share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
    data = _read(run, path)
    labels, names = data.column("label").to_pylist(), data.column("name").to_pylist()
    return {str(label): str(name) for label, name in zip(labels, names, strict=True)}


def shared(first: Mapping[str, str], second: Mapping[str, str]) -> Shared:
    """Return what two runs have in common, from the labels of their documents by id."""
    names = [sorted(set(labels.values()), key=_order) for labels in (first, second)]
    places = [{label: i for i, label in enumerate(found)} for found in names]
    counts = np.zeros((len(names[0]), len(names[1])), dtype=np.int64)
    for name, label in first.items():
        if name in second:
            counts[places[0][label], places[1][second[name]]] += 1
    return Shared(*names, counts)


def _order(label: str) -> tuple[int, int, str]:
    """Return what sorts numbers by their value, before other labels."""
    number = label.isascii() and label.isdigit()
    return (0, int(label), "") if number else (1, 0, label)


def labels_by_id(run: Path) -> dict[str, str]:
    """Return id -> label of a run."""
    data = read_assignments(run)
    ids, labels = data.column("id").to_pylist(), data.column("label").to_pylist()
    return {str(i): str(label) for i, label in zip(ids, labels, strict=True)}


def read_assignments(run: Path) -> Any:
    """Return the table of the assignments of a run."""
    from coem.recipes.run_file import ASSIGNMENTS

    found = sorted(run.glob(f"{ASSIGNMENTS}.*"))
    if not found:
        raise ValueError(f"{run} has no {ASSIGNMENTS}: it is no folder of a run")
    return _read(run, found[0])


def _read(run: Path, path: Path) -> Any:
    """Return a table of a run, without the apostrophes of safe tables."""
    from coem.io.tables import DELIMITED, as_it_was, read_table
    from coem.recipes.run_file import read_run

    safe = read_run(run)["written"].get("safe_csv", False) and path.suffix in DELIMITED
    data = read_table(str(path)).data
    return as_it_was(data) if safe else data
