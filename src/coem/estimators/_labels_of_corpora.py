"""Labels of rows in a corpus: which rows choices are made on, and what labels allow."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coem.corpus import RowStore
from coem.estimators._fit import Lesson
from coem.estimators._restarts import Rows
from coem.labels import Knowledge
from coem.latent.block import Partition
from coem.latent.stored import SAMPLE
from coem.typing import Array

LABELLED = 5 * SAMPLE  # most labelled rows that a start learns from


class Judged(NamedTuple):
    """Rows that the parameters of a classifier are chosen on, by held-out labels."""

    X: Any
    y: Any
    weight: Array | None
    knowledge: Knowledge


def judged_rows(X: Any, y: Any, weight: Array | None, knowledge: Knowledge) -> Judged:
    """Return all rows; of a large corpus, a sample whose weights stand for all of them.

    The sample has rows with a label and rows without one, each drawn by their content.
    """
    if not isinstance(X, RowStore):
        return Judged(X, y, weight, knowledge)
    known = knowledge.certainty > 0
    mass = np.ones(len(X)) if weight is None else weight
    rows, scaled = [], []
    for group in (np.flatnonzero(known), np.flatnonzero(~known)):
        some = X.sample(SAMPLE, among=group)
        own = mass[some]
        rows.append(some)
        scaled.append(own * (mass[group].sum() / max(own.sum(), np.finfo(float).tiny)))
    numbers = np.concatenate(rows)
    order = np.argsort(numbers)
    numbers, stand_for = numbers[order], np.concatenate(scaled)[order]
    plain = weight is None and len(numbers) == len(X)
    part = knowledge_of(knowledge, numbers)
    return Judged(X.take(numbers), part.labels(), None if plain else stand_for, part)


def knowledge_of(knowledge: Knowledge, rows: Array) -> Knowledge:
    """Return what is known of some rows."""
    return Knowledge(knowledge.classes, knowledge.allowed[rows], knowledge.exact[rows])


def lesson_of(knowledge: Knowledge, weight: Array | None, X: Any) -> Lesson:
    """Return what rows teach their classes: all rows, or the rows of a corpus that have labels.

    Of very many labelled rows in a corpus, some are drawn by their content.
    """
    if not isinstance(X, RowStore):
        return Lesson(np.arange(len(knowledge.exact)), knowledge.shares(weight))
    rows = X.sample(LABELLED, among=np.flatnonzero(knowledge.certainty > 0))
    own = None if weight is None else weight[rows]
    return Lesson(rows, knowledge_of(knowledge, rows).shares(own))


def with_labels(rows: Rows, allowed: Array, component_classes: Array, weight: Array | None) -> Rows:
    """Return rows with weights, and with the components that their labels allow.

    `allowed` (n_rows, n_classes) are the classes that they allow. For a corpus, the few different
    rows of it are kept once.
    """
    if isinstance(rows, Partition):
        return replace(rows, weight=weight, allowed=allowed[:, component_classes])
    packed = np.packbits(allowed, axis=1)
    _, first, kinds = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    choices = allowed[first][:, component_classes]
    encoding = replace(rows.encoding, choices=choices)
    codes = kinds.reshape(-1).astype(np.int32)
    return replace(rows, encoding=encoding, weight=weight, kinds=codes)
