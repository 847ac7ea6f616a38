"""unlabeled_weight="auto": how much a row without a label counts, found by held-out labels."""

from numbers import Real
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.utils import Bunch

from coem.calibration import best_temperature
from coem.checks import check_number
from coem.estimators._classifier_methods import ClassifierMethods
from coem.estimators._held_out import Classifier, held_out, like, splits_of
from coem.estimators._labelled import RULE
from coem.estimators._subtopics import is_choice
from coem.io.kept import Kept
from coem.labels import Knowledge, rows_by_class
from coem.records import Records
from coem.typing import Array

WEIGHTS = (0.01, 0.1, 1.0)  # what "auto" tries
FOLDS = 3
ENOUGH = 3  # labelled rows per class, on average, that can be held out


def check_unlabeled_weight(value: Any) -> None:
    """Raise unless `value` is "auto" or a number between 0 and 1."""
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, str):
        raise ValueError(f"unlabeled_weight must be 'auto' or a number, got {value!r}")
    check_number("unlabeled_weight", value, Real, 0)
    if value > 1:
        raise ValueError(f"unlabeled_weight must lie between 0 and 1, got {value!r}")


def set_unlabeled_weight(
    estimator: ClassifierMethods,
    X: Any,
    weight: Array | None,
    knowledge: Knowledge,
    kept: Kept | None = None,
) -> None:
    """Set the weight of an unlabelled row: the given one, or the one that predicts best."""
    if not isinstance(estimator.unlabeled_weight, str):
        estimator.unlabeled_weight_ = float(estimator.unlabeled_weight)
        return
    sizes = estimator.components_per_class
    sizes = 1 if is_choice(sizes) else sizes
    estimator.unlabeled_weight_, table = find_weight(estimator, X, weight, knowledge, sizes, kept)
    if table:
        estimator.cv_results_ = table


def with_weight(estimator: Classifier, **changes: Any) -> Classifier:
    """Return an unfitted classifier with the weight of unlabelled rows that was found."""
    params = estimator.get_params(deep=False) | {"unlabeled_weight": estimator.unlabeled_weight_}
    return type(estimator)(**params | changes)


def find_weight(
    estimator: Classifier,
    X: Any,
    sample_weight: Array | None,
    knowledge: Knowledge,
    sizes: Any,
    kept: Kept | None = None,
) -> tuple[float, Records]:
    """Return the weight of an unlabelled row, and a record for each weight that was tried.

    Labelled rows are held out in three folds. The weight with the least log loss on them is taken,
    after each is calibrated by one temperature: a small weight leaves posteriors less sure, which
    alone says nothing against it. With too few labels to hold out, and without unlabelled rows,
    nothing is tried. If all labels are sets, a row without one counts as any other: a small weight
    leaves nothing to learn from.
    """
    nothing = knowledge.certainty.all() or not knowledge.exact.any()
    if nothing or not enough(knowledge, sample_weight) or not isinstance(estimator.init, str):
        return (1.0 if nothing else RULE), Records()
    splits = splits_of(
        FOLDS, len(knowledge.exact), knowledge, sample_weight, estimator.random_state
    )
    tries = {}
    for weight in WEIGHTS:
        model = like(estimator, unlabeled_weight=weight, components_per_class=sizes)
        rows, tries[weight], _ = held_out(
            model, X, sample_weight, knowledge, splits, kept=kept, name=f"weight-{weight:g}-"
        )
    return best_weight(tries, rows, knowledge, sample_weight)


def best_weight(
    tries: dict[float, Array], rows: Array, knowledge: Knowledge, sample_weight: Array | None
) -> tuple[float, Records]:
    """Return the weight with the least log loss, and a record for each.

    `tries` maps each weight to the log P(class | row) of the held-out `rows`.
    """
    table = Records()
    truth = knowledge.codes[rows]
    mass = None if sample_weight is None else np.asarray(sample_weight)[rows]
    for weight, log_proba in tries.items():
        sharpness = best_temperature(log_proba, truth, mass)
        fair = log_softmax(sharpness * np.maximum(log_proba, -1e300), axis=1)
        picked = fair[np.arange(len(rows)), truth]
        right = log_proba.argmax(axis=1) == truth
        table.append(
            Bunch(
                unlabeled_weight=weight,
                log_loss=float(-np.average(picked, weights=mass)),
                accuracy=float(np.average(right, weights=mass)),
                n_rows=len(rows),
            )
        )
    return min(table, key=lambda record: record.log_loss).unlabeled_weight, table


def enough(knowledge: Knowledge, weight: Array | None) -> bool:
    """Return whether labels suffice: three per class on average, beyond the only ones."""
    known = knowledge.exact if weight is None else knowledge.exact & (weight > 0)
    sizes = [len(rows) for rows in rows_by_class(knowledge.codes, known)]
    return sum(size for size in sizes if size > 1) >= ENOUGH * len(sizes)
