"""`classify`: learn from a few labels, and predict the others."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone

from coem import selection
from coem.estimators import MixtureClassifier
from coem.recipes.defaults import (
    CLASS_LENGTH,
    FOLDS,
    MAX_DF,
    MAX_ITER,
    MIN_DF,
    NGRAMS,
    STOP_WORDS,
    TOL,
    UNLABELED_WEIGHT,
)
from coem.recipes.labels import check_labels, labels_of, needed_label
from coem.recipes.listener import Listener
from coem.recipes.result import Job, Result, begin
from coem.recipes.views import class_families, n_jobs, text_views, to_views


def classify(
    table: Any,
    *,
    label: str | None = None,
    text: Any = None,
    views: Any = None,
    id: str | None = None,
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    max_length: float | None = CLASS_LENGTH,
    evidence: str = "auto",
    unlabeled_weight: float | str = UNLABELED_WEIGHT,
    doctor: bool = False,
    folds: int = FOLDS,
    max_iter: int = MAX_ITER,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_bad: bool = False,
    listener: Listener | None = None,
) -> Result:
    """Learn classes from rows with a label, and predict the others, as ``coem classify`` does.

    Rows without a label help to learn (semi-supervised EM).

    Parameters
    ----------
    table, text, views, id : table or path, and what is in it
        As in `cluster`.
    label : str
        The column of the classes, which become text. Empty, NA, NaN, None, null and -1 mark rows
        without a label. Texts in sub-folders of a folder need no column.
    stop_words, min_df, max_df, max_features, ngrams : optional
        Which words count, as in `cluster`.
    max_length : float, default=20
        Words that a text counts at most: longer ones are scaled down. None counts all.
    evidence : {"auto", "fixed"}, default="auto"
        As in `cluster`.
    unlabeled_weight : float or "auto", default="auto"
        The weight of a row without a label, between 0 and 1. "auto" finds it by held-out labels,
        as `MixtureClassifier` does.
    doctor : bool, default=False
        Test whether the unlabelled rows help, and act on it.
    folds : int, default=5
        Folds of the labelled rows, from which the accuracy is estimated.
    max_iter : int, default=200
        The most rounds of a fit.
    seed, threads, encoding, delimiter, skip_bad, listener : optional
        As in `cluster`.

    Returns
    -------
    result : Result
        `labels` are the predictions for all rows; ``columns["given"]`` has the labels of the
        table, and ``figures["accuracy"]`` the accuracy on held-out labels.

    Examples
    --------
    >>> import coem
    >>> ships, bread = "captain and crew sail the ship", "flour and butter for the bread"
    >>> table = {"text": [ships, bread] * 5, "kind": ["sea", "food"] * 2 + [None] * 6}
    >>> found = coem.classify(table, label="kind", text="text")
    >>> found.labels[-2:].tolist()
    ['sea', 'food']
    """
    job = begin("classify", dict(locals()))
    settings, documents, listener = job.settings, job.documents, job.listener
    settings["label"] = needed_label(label, documents, listener)
    labels = labels_of(documents, settings["label"], listener)
    check_labels(labels, settings["label"])
    reader = text_views(settings, documents, latent="auto")
    data = to_views(reader, documents, listener, leave_out=settings["label"])
    parts = _folds(settings, labels)
    with listener.noting_warnings(), _without_restarts():
        family = class_families(reader, data)
        model, advice = _model(settings, data, labels, parts, family, listener)
        found = _fit(model, data, labels, parts, listener)
    return _result(job, reader, data, labels, model, found, advice)


def _folds(settings: dict[str, Any], labels: np.ndarray) -> list[Any]:
    """Return the rows to train and to test on per fold; no folds if there are too few labels."""
    most = int(min(settings["folds"], (labels != "").sum() - len(set(labels) - {""})))
    if most < 2:
        return []
    folds = selection.LabeledKFold(most, random_state=settings["seed"])
    return list(folds.split(np.zeros((len(labels), 1)), labels))


def _can_hold_out(labels: np.ndarray) -> bool:
    """Return whether two labels can be held out while each class keeps one to learn from."""
    _, sizes = np.unique(labels[labels != ""].astype(str), return_counts=True)
    return bool(sizes[sizes > 1].sum() >= 2)


def _model(
    settings: dict[str, Any],
    views: Any,
    labels: np.ndarray,
    folds: list[Any],
    family: Any,
    listener: Listener,
) -> tuple[Any, dict[str, str]]:
    """Return the model to fit, and the advice of the doctor if it is asked for."""
    spare = all(_can_hold_out(labels[train]) for train, _ in folds) and _can_hold_out(labels)
    if not spare:
        listener.note(
            "too few labels to calibrate by: the probabilities are surer than they should be"
        )
    model = MixtureClassifier(
        family=family,
        evidence=settings["evidence"],
        unlabeled_weight=settings["unlabeled_weight"],
        calibrate=spare,
        max_iter=settings["max_iter"],
        tol=TOL,
        n_jobs=n_jobs(settings),
        random_state=settings["seed"],
    )
    if not settings["doctor"]:
        return model, {}
    with listener.fitting("the doctor's fits", None):
        advice = selection.doctor(model, views, labels, random_state=settings["seed"])
    listener.note(advice.recommendation)
    return advice.estimator, {"doctor": advice.recommendation}


@contextmanager
def _without_restarts() -> Iterator[None]:
    """Remove the advice to use restarts from warnings: classes start once, from their labels."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        advice = "; use fewer components or more restarts (n_init)"
        text = str(warning.message).replace(advice, "; their classes need more labels")
        warnings.warn(text, warning.category, stacklevel=2)


def _fit(model: Any, views: Any, labels: Any, folds: list[Any], listener: Listener) -> Any:
    """Fit the model, and return the predictions for held-out labels, or None without folds.

    The folds take the weight of unlabelled rows that all labels together have found.
    """
    found = None
    with listener.fitting("the fit, and folds", len(folds) + 1) as bar:
        model.fit(views, labels)
        bar.step()
        if folds:
            like = clone(model).set_params(unlabeled_weight=model.unlabeled_weight_)
            step = {"on_fold": lambda fold: bar.step()}
            found = selection.held_out(like, views, labels, cv=folds, **step)
    if model.unlabeled_weight == "auto":
        listener.note(_said_weight(model))
    return found


def _said_weight(model: Any) -> str:
    """Say how much a row without a label counts, and why."""
    tried = getattr(model, "cv_results_", ())
    said = f"a row without a label counts {model.unlabeled_weight_:g} (unlabeled_weight="
    if not tried:
        return f"{said}{model.unlabeled_weight_:g}): there are too few labels to choose it by"
    losses = ", ".join(f"{r.log_loss:.3f} with {r.unlabeled_weight:g}" for r in tried)
    return f"{said}{model.unlabeled_weight_:g}): log loss on held-out labels {losses}"


def _result(
    job: Job,
    reader: Any,
    views: Any,
    labels: np.ndarray,
    model: Any,
    found: Any,
    advice: dict[str, str],
) -> Result:
    """Return what was found. The story reads the rows; all figures use that reading."""
    story = job.tell(model, views, reader, labels=labels, held_out=found)
    known = labels != ""
    figures = {
        "k": len(model.classes_),
        "unlabeled_weight": float(model.unlabeled_weight_),
        "labelled": int(known.sum()),
        "unlabelled": int((~known).sum()),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "classes": _class_sizes(model.classes_, labels, story.assignments),
        "accuracy": None if found is None else found.accuracy,
        "accuracy_error": None if found is None else found.error,
        "folds": 0 if found is None else found.n_folds,
        **advice,
    }
    given = {"given": np.where(known, labels, None)}
    return job.result(model, views, reader, story, figures=figures, columns=given)


def _class_sizes(classes: Any, labels: np.ndarray, assignments: Any) -> list[dict[str, Any]]:
    """Return how many rows per class have the label, and how many others are predicted."""
    unknown = labels == ""
    predicted = assignments.label[unknown]
    predicted_empty = assignments.label[unknown & assignments.empty]
    return [
        {
            "class": str(name),
            "labelled": int((labels == name).sum()),
            "predicted": int((predicted == name).sum()),
            "empty": int((predicted_empty == name).sum()),
        }
        for name in classes
    ]
