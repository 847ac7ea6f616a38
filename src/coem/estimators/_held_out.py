"""What a classifier says of labelled rows that it has not seen, and how sure it may be."""

import warnings
from numbers import Integral

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_random_state

from coem.labels import deal, read_knowledge, rows_by_class
from coem.metrics import expected_calibration_error
from coem.views import as_views


def held_out(model, X, y, sample_weight, knowledge, cv):
    """Return labelled rows, log P(class | row) by models without them, and their folds.

    Every fold is left out of the fit of a clone of `model`. Only rows with exactly one label are
    tested.
    """
    views, y = as_views(X), _as_objects(y)
    rows, parts, folds = [], [], []
    for fold, (train, test) in enumerate(_splits(cv, views, knowledge, model.random_state)):
        _check_train(y[train], knowledge, fold)
        one = clone(model).set_params(calibrate=False, checkpoint=None)
        if not isinstance(model.init, str | BaseEstimator):
            one.set_params(init=np.asarray(model.init)[train])  # responsibilities of the rows
        weight = None if sample_weight is None else np.asarray(sample_weight)[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit to all rows tells
            one.fit(views[train], y[train], sample_weight=weight)
        rows.append(test)
        parts.append(one.predict_log_proba(views[test]))
        folds.append(np.full(len(test), fold))
    return np.concatenate(rows), np.concatenate(parts), np.concatenate(folds)


def _splits(cv, views, knowledge, random_state):
    """Yield the rows to train and to test on.

    Dealt into so many folds, the only labelled row of a class is never left out: no model of the
    class could be fitted without it.
    """
    everyone, codes = np.arange(len(views)), knowledge.allowed.argmax(axis=1)
    if not isinstance(cv, Integral):
        for train, test in check_cv(cv).split(views, np.where(knowledge.exact, codes, -1)):
            test = np.intersect1d(everyone[test], np.flatnonzero(knowledge.exact))
            if len(test):
                yield everyone[train], test
        return
    rng = check_random_state(random_state)
    by_class = [rng.permutation(rows) for rows in rows_by_class(codes, knowledge.exact)]
    testable = sum(len(rows) for rows in by_class if len(rows) > 1)
    if testable < 2:
        raise ValueError(
            "nothing can be held out: every class has one labelled row and needs it; label more, "
            "or leave calibrate at False and components_per_class at a number"
        )
    for test in deal(by_class, min(cv, testable)):
        yield np.setdiff1d(everyone, test), test


def _check_train(y, knowledge, fold):
    """Refuse a fold that leaves a class without rows to train on."""
    lost = np.setdiff1d(knowledge.classes, read_knowledge(y, None).classes).tolist()
    if lost:
        raise ValueError(
            f"cv, fold {fold}: class {lost[0]!r} has no labelled row to train on; take fewer "
            "folds, or coem.selection.LabeledKFold, which leaves one"
        )


def _as_objects(y):
    """Return labels of any kind, sets of them too, as an array that can be cut."""
    out = np.empty(len(y), dtype=object)
    out[:] = list(y)
    return out


def calibration(model, X, y, sample_weight, knowledge, cv):
    """Return the inverse temperature that serves held-out rows best, and what it does for them.

    The figures "after" are for each fold with the temperature that the other folds ask for.
    """
    rows, log_proba, folds = held_out(model, X, y, sample_weight, knowledge, cv)
    truth = knowledge.allowed.argmax(axis=1)[rows]
    after = np.empty_like(log_proba)
    for fold in np.unique(folds):
        mine = folds == fold
        others = ~mine if not mine.all() else mine
        heat = best_temperature(log_proba[others], truth[others])
        after[mine] = log_softmax(heat * log_proba[mine], axis=1)
    pick = np.arange(len(rows)), truth
    return Bunch(
        inverse_temperature=best_temperature(log_proba, truth),
        n_rows=len(rows),
        ece_before=expected_calibration_error(truth, np.exp(log_proba)),
        ece_after=expected_calibration_error(truth, np.exp(after)),
        log_loss_before=float(-np.mean(log_proba[pick])),
        log_loss_after=float(-np.mean(after[pick])),
    )


def best_temperature(log_proba, truth):
    """Return the inverse temperature of the least log loss.

    The right class counts (n + 1) / (n + 2), as Platt (1999) does it, and the others share the
    rest: n rows that are all right do not ask for certainty.
    """
    n, n_classes = log_proba.shape
    if n_classes == 1:
        return 1.0
    target = np.full((n, n_classes), 1.0 / ((n + 2.0) * (n_classes - 1)))
    target[np.arange(n), truth] = (n + 1.0) / (n + 2.0)
    target[np.isneginf(log_proba)] = 0.0  # a class without components has no temperature
    finite = np.maximum(log_proba, -1e300)

    def loss(log_heat):
        return -float((target * log_softmax(np.exp(log_heat) * finite, axis=1)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-10.0, 3.0), method="bounded").x))
