"""``coem classify``: learn from a few labels, and predict the others."""

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from coem.cli._options import (
    config_option,
    folder_options,
    machine_options,
    needed_label,
    reading_options,
    rounds_option,
    source_argument,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, in_options, table

EXAMPLE = """\b
Examples:
  coem classify mail.csv --text body --label folder
  coem classify posts.jsonl --label topic --view title=title --view body=text --doctor
"""


@click.command("classify", epilog=EXAMPLE)
@source_argument
@view_options
@click.option(
    "--label",
    metavar="COLUMN",
    callback=needed_label,
    help="The classes; empty, NA, NaN, None, null or -1 where unknown. "
    "[sub-folders, if FILE is a folder]",
)
@click.option(
    "--unlabeled-weight",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Weight of a row without a label.",
)
@click.option(
    "--doctor", "ask_doctor", is_flag=True, help="Test if the unlabelled rows help, and act on it."
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@rounds_option
@machine_options
@click.option("--strict", is_flag=True, help="Exit with 3 if there is no convergence.")
@folder_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Learn classes from rows with a label, and predict the classes of the other rows.

    Rows without a label help to learn (semi-supervised EM). Prints the number of rows per class,
    and the accuracy on labels that were held out. In the assignments, the column label is what
    the model predicts for each row, and the column given is the label in the file.
    """
    run(options, Talk(quiet=options["quiet"], as_json=options["as_json"]))


def run(options: dict[str, Any], talk: Talk) -> None:
    """Classify the documents, write the folder, and print the classes."""
    from coem.cli import _job, _run
    from coem.text import DEFAULT_LENGTH

    started = time.time()
    with _run.new_run(options) as folder:
        documents = _job.read_documents(options, talk)
        options["label"] = _job.label_of(options, documents, talk) or _job.FOLDERS
        labels = _job.labels_of(documents, options["label"], talk)
        check_labels(labels, options["label"])
        reader = _job.text_views(options, documents, scale_length=DEFAULT_LENGTH)
        views = _job.to_views(reader, documents, talk, leave_out=options["label"])
        folds = _folds(options, labels)
        with talk.noting_warnings(), _without_restarts():
            model, advice = _model(options, views, labels, folds, _job.families(reader), talk)
            found = _fit(model, views, labels, folds, talk)
        outcome = _outcome(options, documents, reader, views, labels, model, found, started)
        outcome.figures.update(advice)
        _run.write_run(folder, outcome)
    data = {"folder": str(_run.place(options)), **outcome.figures}
    talk.result(_printed(outcome.figures), data)
    _run.finish(talk, options, converged=model.converged_)


def check_labels(labels: np.ndarray, column: str) -> None:
    """Raise unless there are two classes or more, and the column is not an id or a text."""
    classes = sorted(set(labels) - {""})
    if not classes:
        raise ValueError(
            f"no row has a label in column {column!r}; fill in some (put texts into sub-folders), "
            "or use coem cluster"
        )
    if len(classes) == 1:
        raise ValueError(
            f"all labels in column {column!r} are {classes[0]!r}; there must be two classes or more"
        )
    if len(classes) > len(labels) / 2 and len(classes) > 20:
        raise ValueError(
            f"column {column!r} has {len(classes)} different labels in {len(labels)} rows; is it "
            "an id or a text?"
        )


def _folds(options: dict[str, Any], labels: np.ndarray) -> list[Any]:
    """Return the rows to train and to test on per fold; no folds if there are too few labels."""
    from coem.selection import LabeledKFold

    most = int(min(options["folds"], (labels != "").sum() - len(set(labels) - {""})))
    if most < 2:
        return []
    folds = LabeledKFold(most, random_state=options["seed"])
    return list(folds.split(np.zeros((len(labels), 1)), labels))


def _can_hold_out(labels: np.ndarray) -> bool:
    """Return whether two labels can be held out while each class keeps one to learn from."""
    _, sizes = np.unique(labels[labels != ""].astype(str), return_counts=True)
    return bool(sizes[sizes > 1].sum() >= 2)


def _model(
    options: dict[str, Any], views: Any, labels: Any, folds: list[Any], family: Any, talk: Talk
) -> Any:
    """Return the model to fit, and the advice of the doctor if the options ask for it."""
    from coem import MixtureClassifier
    from coem.cli._job import threads
    from coem.cli.defaults import TOL

    spare = all(_can_hold_out(labels[train]) for train, _ in folds) and _can_hold_out(labels)
    if not spare:
        talk.note("too few labels to calibrate by: the probabilities are surer than they should be")
    model = MixtureClassifier(
        family=family,
        unlabeled_weight=options["unlabeled_weight"],
        calibrate=spare,
        max_iter=options["max_iter"],
        tol=TOL,
        n_jobs=threads(options),
        random_state=options["seed"],
    )
    if not options["ask_doctor"]:
        return model, {}
    from coem.selection import doctor

    with talk.fitting("the doctor's fits", None):
        advice = doctor(model, views, labels, random_state=options["seed"])
    said = _in_options(advice.recommendation)
    talk.note(said)
    return advice.estimator, {"doctor": said}


def _in_options(text: str) -> str:
    """Return the advice of the doctor with options in place of parameters.

    The number of components per class has no option: the run sets it by itself.
    """
    text = re.sub(r"\bunlabeled_weight=", "--unlabeled-weight ", in_options(text))
    text = re.sub(r"\bcomponents_per_class=\{(.+?): (\d+)\}", r"\2 for \1", text)
    return re.sub(r"\bcomponents_per_class=(\d+)", r"\1 a class", text)


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


def _fit(model: Any, views: Any, labels: Any, folds: list[Any], talk: Talk) -> Any:
    """Fit the model, and return the predictions for held-out labels, or None without folds."""
    from coem.selection import held_out

    found = None
    with talk.fitting("folds, and the fit", len(folds) + 1) as bar:
        if folds:
            found = held_out(model, views, labels, cv=folds, on_fold=lambda fold: bar.step())
        model.fit(views, labels)
        bar.step()
    return found


def _outcome(options, documents, reader, views, labels, model, found, started):
    """Return everything that the folder of the run contains.

    The story reads the rows; all files and figures use that reading.
    """
    from sklearn.pipeline import Pipeline

    from coem.cli import _run

    story = _run.story_of(model, views, reader, documents, options, labels=labels, held_out=found)
    known = labels != ""
    figures = {
        "k": len(model.classes_),
        "labelled": int(known.sum()),
        "unlabelled": int((~known).sum()),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "classes": _class_sizes(model.classes_, labels, story.assignments),
        "accuracy": None if found is None else found.accuracy,
        "accuracy_error": None if found is None else found.error,
        "folds": 0 if found is None else found.n_folds,
    }
    pipeline = Pipeline([("views", reader), ("model", model)])
    given = {"given": np.where(known, labels, None)}
    return _run.Outcome("classify", options, documents, pipeline, story, figures, started, given)


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


def _printed(figures: dict[str, Any]) -> str:
    """Return the text to print: a table of the classes, and the accuracy."""
    rows = [[c["class"], c["labelled"], c["predicted"]] for c in figures["classes"]]
    empty = sum(c["empty"] for c in figures["classes"])
    lines = [
        table(["class", "labelled", "predicted"], rows),
        "",
        f"{figures['labelled']:,} rows had a label and taught, {figures['unlabelled']:,} were "
        f"predicted{f', {empty:,} of them empty' if empty else ''}",
    ]
    if figures["accuracy"] is None:
        lines.append("too few labels to hold some out, so that the accuracy is not known")
    else:
        lines.append(
            f"accuracy on held-out labels: {figures['accuracy']:.1%} "
            f"+- {figures['accuracy_error']:.1%} ({figures['folds']} folds)"
        )
    return "\n".join(lines)
