"""`classify`: learn from a few labels, and predict the others."""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from coem import selection
from coem.estimators import MixtureClassifier, PooledClassifier
from coem.io.kept import Content, Part, once
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
from coem.recipes.in_parts import (
    Few,
    assigned,
    counted,
    few_of,
    held_out_truth,
    labelled_few,
)
from coem.recipes.label_files import join_labels
from coem.recipes.labels import all_labels_of, check_labels, exact, needed_label
from coem.recipes.listener import Listener, duration
from coem.recipes.result import Job, Result, begin
from coem.recipes.views import class_families, latent_of, n_jobs, text_views, to_views

EXAMINED = ("components_per_class", "unlabeled_weight")  # what a doctor recommends


def classify(
    table: Any,
    *,
    label: str | None = None,
    labels: Any = None,
    multi: bool = False,
    text: Any = None,
    views: Any = None,
    encoder: Any = None,
    id: str | None = None,
    date: str | None = "auto",
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    max_length: float | None = CLASS_LENGTH,
    latent: int | str | None = "auto",
    evidence: str = "auto",
    unlabeled_weight: float | str = UNLABELED_WEIGHT,
    doctor: bool = False,
    folds: int = FOLDS,
    max_iter: int = MAX_ITER,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Result:
    """Learn classes from rows with a label, and predict the others, as ``coem classify`` does.

    Rows without a label help to learn (semi-supervised EM). A regression on the labelled rows
    helps too; labels that are held out decide how much each counts.

    Parameters
    ----------
    table, text, views, encoder, id, date : table or path, and what is in it
        As in `cluster`.
    label : str
        The column of the classes, which become text. Empty, NA, NaN, None, null and -1 mark rows
        without a label, and so do empty lists. A row with a list of several labels may be in any
        of these classes; write ``"topics:list"`` for lists that are text. Texts in sub-folders of a
        folder need no column.
    labels : table or path, optional
        A second table with the labels: a column of ids, called as in `table` or "id", and `label`.
        Rows that it has not are unlabelled; ids that `table` has not are an error, unless
        `skip_bad`.
    multi : bool, default=False
        Refuse rows with several labels, and say why.
    stop_words, min_df, max_df, max_features, ngrams : optional
        Which words count, as in `cluster`.
    max_length : float, default=20
        Words that a text counts at most: longer ones are scaled down. None counts all.
    latent : int, "auto" or None, default="auto"
        The number of latent directions of the texts, which are a further view. None leaves them
        out. "auto" takes 100, unless there are too few rows or words.
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
    seed, threads, encoding, delimiter, sheet, skip_bad, checkpoint, listener : optional
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
    if labels is not None:
        documents, settings["label"] = join_labels(
            documents, labels, label, listener, skip_bad=skip_bad
        )
        job = replace(job, documents=documents)
    settings["label"] = needed_label(settings["label"], documents, listener)
    given = all_labels_of(documents, settings["label"], listener, multi=multi)
    check_labels(given, settings["label"])
    with job.fits():
        reader = text_views(settings, documents, latent=latent_of(settings))
        data = to_views(reader, documents, settings, listener, label=settings["label"])
        few = few_of(job, data)
        with listener.noting_warnings(), _without_restarts():
            examined = labelled_few(few, data, given)
            mixture, advice = _mixture(job, *examined, class_families(reader, data))
            mixture.set_params(checkpoint=job.part("classes"))
            model = _fit(mixture, settings, data, given, listener)
            mixture.set_params(checkpoint=None)
        return _result(few, reader, data, given, model, advice)


def _mixture(job: Job, views: Any, labels: np.ndarray, family: Any) -> tuple[Any, dict[str, str]]:
    """Return the mixture to fit, and the advice of the doctor if it is asked for."""
    settings = job.settings
    model = MixtureClassifier(
        family=family,
        evidence=settings["evidence"],
        unlabeled_weight=settings["unlabeled_weight"],
        max_iter=settings["max_iter"],
        tol=TOL,
        n_jobs=n_jobs(settings),
        random_state=settings["seed"],
    )
    if not settings["doctor"]:
        return model, {}

    def examine(part: Part | None) -> Content:
        return _examine(model, settings, views, labels, job.listener), {}

    found, _ = once(job.kept, "doctor", examine)
    job.listener.note(found["recommendation"])
    model.set_params(**found["params"])
    return model, {"doctor": found["recommendation"]}


def _examine(
    model: Any, settings: dict[str, Any], views: Any, labels: np.ndarray, listener: Listener
) -> dict[str, Any]:
    """Return what the doctor recommends, in a sentence and as parameters of the mixture."""
    cost = selection.doctor_cost(labels)
    listener.note(f"the doctor makes up to {cost.n_fits:,} fits, with labels held out")
    seconds = _seconds_of_a_fit(model, views, labels, listener)
    expected = duration(cost.plain_fits * seconds)
    listener.note(f"one plain fit took {seconds:.2g} s: the doctor will take {expected}")
    with listener.fitting("the doctor's fits", cost.n_fits) as bar:
        how = {"random_state": settings["seed"], "on_fit": bar.step}
        advice = selection.doctor(model, views, labels, **how)
    params = {name: getattr(advice.estimator, name) for name in EXAMINED}
    return {"recommendation": advice.recommendation, "params": params}


def _seconds_of_a_fit(model: Any, views: Any, labels: np.ndarray, listener: Listener) -> float:
    """Return how long a plain fit takes: what a doctor tries takes as long, many times."""
    plain = clone(model).set_params(unlabeled_weight=1.0)
    started = time.perf_counter()
    with listener.fitting("a plain fit", None), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits that follow say the same
        plain.fit(views, labels)
    return time.perf_counter() - started


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


def _fit(
    mixture: Any, settings: dict[str, Any], views: Any, labels: Any, listener: Listener
) -> PooledClassifier:
    """Fit the pool of the mixture and a regression, and say what it found."""
    model = PooledClassifier(mixture, cv=int(settings["folds"]))
    with listener.fitting("the fits, with folds of the labels held out", None):
        model.fit(views, labels)
    if mixture.unlabeled_weight == "auto" and (labels == "").any():
        listener.note(_said_weight(model))
    listener.note(_said_pool(model))
    return model


def _said_weight(model: Any) -> str:
    """Say how much a row without a label counts, and why."""
    said = f"a row without a label counts {model.unlabeled_weight_:g} (unlabeled_weight="
    if not model.cv_results_:
        return f"{said}{model.unlabeled_weight_:g}): there are too few labels to choose it by"
    tried = model.cv_results_
    losses = ", ".join(f"{r.log_loss:.3f} with {r.unlabeled_weight:g}" for r in tried)
    return f"{said}{model.unlabeled_weight_:g}): log loss on held-out labels {losses}"


def _said_pool(model: Any) -> str:
    """Say how much mixture and regression count, and why."""
    found = model.pool_
    said = (
        f"the mixture counts {found.own_mixture:.2g}, the regression {found.own_linear:.2g}, and "
        f"the evidence of a row at most {found.own_limit:.2g} nats"
    )
    if "n_rows" not in found:
        return (
            f"{said}: no class has two rows that differ, so that no label can be held out, and "
            "probabilities may be too sure"
        )
    return f"{said}, by {found.n_rows:,} labels that were held out"


def _result(
    few: Few,
    reader: Any,
    views: Any,
    given: np.ndarray,
    model: PooledClassifier,
    advice: dict[str, str],
) -> Result:
    """Return what was found. The story reads the rows; all figures use that reading."""
    labels, job = exact(given), few.job
    found = _held_out(model, labels)
    more = {"labels": few.of(labels), "held_out": held_out_truth(few, labels, found)}
    story = job.tell(model, few.views, reader, **more)
    rows = assigned(few, views, model, story)
    story = counted(story, rows)
    known, mixture = labels != "", model.mixture_
    figures = {
        "k": len(model.classes_),
        "unlabeled_weight": float(model.unlabeled_weight_),
        "mixture_counts": model.pool_.own_mixture,
        "regression_counts": model.pool_.own_linear,
        "limit": model.pool_.own_limit,
        "labelled": int(known.sum()),
        "unlabelled": int((~known).sum()),
        "objective": float(mixture.objective_),
        "rounds": int(mixture.n_iter_),
        "converged": bool(mixture.converged_),
        "classes": _class_sizes(model.classes_, labels, rows or story.assignments),
        "accuracy": None if found is None else found.accuracy,
        "accuracy_error": None if found is None else found.error,
        "folds": 0 if found is None else found.n_folds,
        **advice,
    }
    columns = {"given": np.array([_shown(found) for found in given], dtype=object)}
    job = job if few.rows is None else replace(job, documents=few.whole)
    return job.result(model, views, reader, story, figures=figures, columns=columns, rows=rows)


def _shown(found: Any) -> str | None:
    """Return the labels of a row as text, None if there is none."""
    return (found if isinstance(found, str) else " | ".join(sorted(found))) or None


def _held_out(model: PooledClassifier, labels: np.ndarray) -> Any:
    """Return what the fit said of labels that it held out, or None if there are none."""
    rows, folds, proba = (model.held_out_[name] for name in ("rows", "folds", "proba"))
    if not len(rows):
        return None
    right = model.classes_[proba.argmax(axis=1)] == labels[rows]
    return selection.HeldOut(rows, folds, model.classes_, proba, right)


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
