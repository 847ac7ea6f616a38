"""Labels of rows in a corpus: which rows choices are made on, and what labels allow."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from coem.estimators._base import BaseMixture
from coem.estimators._fit import Lesson
from coem.estimators._restarts import Rows
from coem.estimators._subtopics import is_choice
from coem.labels import Knowledge
from coem.latent.block import Partition
from coem.latent.stored import SAMPLE
from coem.row_store import RowStore
from coem.typing import Array

LEAST = 20  # rows of a class that choices are made on, if it has so many
LABELLED = 5 * SAMPLE  # most labelled rows that a start learns from


class Judged(NamedTuple):
    """Rows that the parameters of a classifier are chosen on, by held-out labels."""

    X: Any
    y: Any
    weight: Array | None
    knowledge: Knowledge


def judged_rows(
    X: Any, y: Any, weight: Array | None, knowledge: Knowledge, model: Any, cv: Any
) -> Judged:
    """Return all rows; of a large corpus, a sample whose weights stand for all of them.

    The sample has rows of every class, of every other kind of label, and rows without one, each
    drawn by their content. `model` is the classifier that is chosen, and `cv` says how labelled
    rows are held out; raise if these are given for all rows of a corpus.
    """
    if not isinstance(X, RowStore):
        return Judged(X, y, weight, knowledge)
    _check_held_out(cv, model)
    mass = np.ones(len(X)) if weight is None else weight
    n_known = max(int((knowledge.certainty > 0).sum()), 1)
    rows, scaled = [], []
    for group, known in _kinds(knowledge, mass):
        share = SAMPLE * len(group) // n_known if known else SAMPLE
        some = X.sample(max(share, LEAST), among=group)
        own = mass[some]
        rows.append(some)
        scaled.append(own * (mass[group].sum() / own.sum()))
    numbers = np.concatenate(rows)
    order = np.argsort(numbers)
    numbers, stand_for = numbers[order], np.concatenate(scaled)[order]
    plain = weight is None and len(numbers) == len(X)
    part = knowledge_of(knowledge, numbers)
    return Judged(X.take(numbers), part.labels(), None if plain else stand_for, part)


def _kinds(knowledge: Knowledge, mass: Array) -> Iterator[tuple[Array, bool]]:
    """Yield the rows of every class, those with other labels, and those without, if there are any.

    Rows without a weight are left out. The second value says whether the rows have labels.
    """
    known, there = knowledge.certainty > 0, mass > 0
    codes = np.where(knowledge.exact, knowledge.codes, -1)
    for code in np.unique(codes[known & there]):
        yield np.flatnonzero(known & there & (codes == code)), True
    if (there & ~known).any():
        yield np.flatnonzero(there & ~known), False


def _check_held_out(cv: Any, model: Any) -> None:
    """Raise if the folds, which are made of a sample of the rows, would be given for all rows."""
    if not (cv is None or isinstance(cv, Integral | str) or hasattr(cv, "split")):
        raise ValueError(
            "cv: labelled rows of a corpus are held out of a sample of its rows; give a number of "
            "folds or a splitter, and not the folds themselves"
        )
    if not isinstance(model.init, str | BaseMixture) and _holds_out(model):
        raise ValueError(
            "init: responsibilities of all rows of a corpus cannot start the fits to a sample of "
            "its rows that choose or calibrate something; give the name of a start"
        )


def _holds_out(model: Any) -> bool:
    """Return whether a fit of a classifier holds out labelled rows."""
    chosen = is_choice(model.components_per_class) or isinstance(model.unlabeled_weight, str)
    return bool(chosen or model.calibrate)


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
