"""Predict labelled rows by models that were fitted without them, and calibrate by the result."""

import warnings
from collections.abc import Iterable
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_random_state

from coem.calibration import best_temperature
from coem.estimators._classifier_methods import ClassifierMethods
from coem.estimators._types import Seed
from coem.io.kept import Content, Kept, Part, once
from coem.labels import Knowledge, deal, read_knowledge, rows_by_class
from coem.metrics import expected_calibration_error
from coem.typing import Array
from coem.views import as_views

Split = tuple[Array, Array]  # the rows to train on, and the rows to test on
Classifier = TypeVar("Classifier", bound=ClassifierMethods)


def held_out(
    model: ClassifierMethods,
    X: Any,
    sample_weight: Any,
    knowledge: Knowledge,
    splits: Iterable[Split],
    *,
    stay: bool = False,
    kept: Kept | None = None,
    name: str = "",
) -> tuple[Array, Array, Array]:
    """Return the rows of all folds, their log P(class | row), and the number of their fold.

    For each fold of `splits`, a model with the parameters of `model` is fitted to the other rows.
    With `stay`, the rows of the fold stay in the fit without their labels, so that they are judged
    as the unlabelled rows of a fit are. Later folds then leave out the views that the first fold
    has found to be silent. `kept` keeps the result of each fold, under `name` and its number.
    """
    views, y = as_views(X), knowledge.labels()
    rows, parts, folds = [], [], []
    heard: Bunch | None = None
    for fold, (train, test) in enumerate(splits):
        _check_train(y[train], knowledge, fold)

        def fit(
            part: Part | None,
            train: Array = train,
            test: Array = test,
            heard: Bunch | None = heard,
        ) -> Content:
            one, shown = like(model, checkpoint=part), y
            if stay:
                shown = y.copy()
                shown[test] = None
                train = np.union1d(train, test)
                if heard is not None:
                    one.hear_as(heard)
            if not isinstance(model.init, str):
                one.set_params(init=np.asarray(model.init)[train])  # responsibilities of the rows
            weight = None if sample_weight is None else np.asarray(sample_weight)[train]
            _fit_quietly(one, views[train], shown[train], weight)
            return _answers(one, views[test])

        record, arrays = once(kept, f"{name}fold-{fold}", fit)
        heard = Bunch(**record, shared_information_=arrays["shared"])
        rows.append(test)
        parts.append(arrays["log_proba"])
        folds.append(np.full(len(test), fold))
    return np.concatenate(rows), np.concatenate(parts), np.concatenate(folds)


def _fit_quietly(model: ClassifierMethods, X: Any, y: Array, weight: Array | None) -> None:
    """Fit without the warnings that the fit to all rows gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model.fit(X, y, sample_weight=weight)


def _answers(model: ClassifierMethods, X: Any) -> Content:
    """Return what is needed of the fit of a fold: its predictions, and which views it heard."""
    heard = {"view_names_": model.view_names_, "silent_views_": model.silent_views_}
    shared = np.asarray(getattr(model, "shared_information_", np.empty(0)))
    return heard, {"log_proba": model.predict_log_proba(X), "shared": shared}


def like(model: Classifier, **changes: Any) -> Classifier:
    """Return an unfitted model with the same parameters, except those that only a full fit uses."""
    fold = {"calibrate": False, "checkpoint": None, "cv": 5}
    return type(model)(**model.get_params(deep=False) | fold | changes)


def is_leave_one_out(cv: Any) -> bool:
    """Return whether the parameter `cv` asks for leave-one-out."""
    return isinstance(cv, str) and cv == "loo"


def splits_of(
    cv: Any, n_rows: int, knowledge: Knowledge, weight: Array | None, random_state: Seed
) -> list[Split]:
    """Return the rows to train on and the rows to test on, per fold.

    Only labelled rows with a weight above 0 are tested. If `cv` is a number, the only labelled row
    of a class is never tested, because no model of the class can be fitted without it.
    """
    known = knowledge.exact if weight is None else knowledge.exact & (weight > 0)
    everyone = np.arange(n_rows)
    if not isinstance(cv, Integral):
        folds = check_cv(cv).split(np.zeros((n_rows, 1)), np.where(known, knowledge.codes, -1))
        pairs = [(everyone[train], everyone[test]) for train, test in folds]
        pairs = [(train, np.intersect1d(test, np.flatnonzero(known))) for train, test in pairs]
        if not any(len(test) for _, test in pairs):
            raise ValueError("cv has no fold that tests a labelled row")
        return [(train, test) for train, test in pairs if len(test)]
    rng = check_random_state(random_state)
    by_class = [rng.permutation(rows) for rows in rows_by_class(knowledge.codes, known)]
    testable = sum(len(rows) for rows in by_class if len(rows) > 1)
    if testable < 2:
        raise ValueError(
            "no row can be held out, because every class has only one labelled row; label more "
            "rows, or leave calibrate at False and components_per_class at a number"
        )
    n_folds = min(int(cv), testable)
    return [(np.setdiff1d(everyone, test), test) for test in deal(by_class, n_folds)]


def _check_train(y: Array, knowledge: Knowledge, fold: int) -> None:
    """Raise unless every class has a labelled row to train on."""
    lost = np.setdiff1d(knowledge.classes, read_knowledge(y, None).classes).tolist()
    if lost:
        raise ValueError(
            f"cv, fold {fold}: class {lost[0]!r} has no labelled row to train on; use fewer folds, "
            "or coem.selection.LabeledKFold, which keeps one"
        )


def calibration(
    model: ClassifierMethods,
    X: Any,
    sample_weight: Any,
    knowledge: Knowledge,
    splits: Iterable[Split],
    kept: Kept | None = None,
) -> Bunch:
    """Return the best inverse temperature for held-out rows, and the errors before and after.

    For the errors after calibration, the inverse temperature of each fold is the best one for the
    other folds.
    """
    rows, log_proba, folds = held_out(
        model, X, sample_weight, knowledge, splits, kept=kept, name="calibration-"
    )
    truth = knowledge.codes[rows]
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight)[rows]
    after = np.empty_like(log_proba)
    for fold in np.unique(folds):
        mine = folds == fold
        others = ~mine if not mine.all() else mine
        inverse_temperature = best_temperature(log_proba[others], truth[others], weight[others])
        after[mine] = log_softmax(inverse_temperature * log_proba[mine], axis=1)
    pick = np.arange(len(rows)), truth
    ece = partial(expected_calibration_error, truth, sample_weight=weight)
    return Bunch(
        inverse_temperature=best_temperature(log_proba, truth, weight),
        n_rows=len(rows),
        ece_before=ece(np.exp(log_proba)),
        ece_after=ece(np.exp(after)),
        log_loss_before=float(-np.average(log_proba[pick], weights=weight)),
        log_loss_after=float(-np.average(after[pick], weights=weight)),
    )
