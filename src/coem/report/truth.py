"""Groups beside classes that are known."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from coem.labels import read_knowledge
from coem.metrics import (
    aligned_accuracy,
    cluster_entropy,
    expected_calibration_error,
    reliability_curve,
)
from coem.report.reading import Reading
from coem.runs import warn_user

N_BINS = 10


@dataclass(frozen=True)
class Truth:
    """What labels say of the groups.

    Attributes
    ----------
    n_rows : int
        Rows with a label.
    classes : list of str
        The classes in the order of the table's columns: beside the groups that they match best.
    table : list of list of int
        Labelled rows of every group (row) and class (column).
    scores : dict of str to float
        Accuracy for a classifier; entropy in bits, normalised mutual information, adjusted Rand
        index and accuracy under the best one-to-one matching for clusters.
    reliability : dict, optional
        `confidence`, `accuracy` and `rows` of bins of the probability, and their mean gap `error`.
        A cluster stands for the class that most of its labelled rows have. None if the model has
        no probabilities.
    supervised : bool
        Whether groups are classes.
    held_out : dict, optional
        `folds`, and the standard `error` of the accuracy, if everything here is about rows whose
        labels the model that judged them had not seen. None: the model may have learnt from them.
    """

    n_rows: int
    classes: list
    table: list
    scores: dict
    reliability: dict | None
    supervised: bool
    held_out: dict | None = None


def compare(reading, labels):
    """Return what labels say of the groups; None without any that the model could know."""
    if labels is None:
        return None
    knowledge = read_knowledge(labels, len(reading.groups))
    rows = np.flatnonzero(knowledge.exact)
    if len(rows) == 0:
        return None
    classes, codes = knowledge.classes, knowledge.codes[rows]
    if reading.noun == "class" and not set(classes.tolist()) & set(reading.keys):
        warn_user(
            f"no label is a class of the model: labels are such as {classes.tolist()[0]!r}, "
            f"classes such as {reading.keys[0]!r}. The page leaves the labels out; give them in "
            "the form in which the model learnt them.",
            UserWarning,
        )
        return None
    groups, k = reading.groups[rows], reading.n_groups
    table = np.bincount(groups * len(classes) + codes, minlength=k * len(classes))
    table = table.reshape(k, len(classes))
    supervised = reading.noun == "class"
    if supervised:
        order = np.argsort([_place(reading.keys, c) for c in classes.tolist()], kind="stable")
        truth = classes[codes]
        scores = {"accuracy": float(np.mean(np.asarray(reading.keys)[groups] == truth))}
    else:
        order = _beside(table)
        scores = _clustering_scores(codes, groups)
    return Truth(
        n_rows=len(rows),
        classes=[str(c) for c in classes[order].tolist()],
        table=table[:, order].tolist(),
        scores=scores,
        reliability=_reliability(reading, rows, table, classes, codes),
        supervised=supervised,
    )


def known_labels(labels, n_rows):
    """Return the label of every row as text, None where it is not known; None without labels."""
    if labels is None:
        return None
    knowledge = read_knowledge(labels, n_rows)
    names = [str(c) for c in knowledge.classes.tolist()]
    rows = zip(knowledge.exact.tolist(), knowledge.codes.tolist(), strict=True)
    return [names[code] if exact else None for exact, code in rows]


def compare_held_out(reading, labels, held_out):
    """Return what labels say of the predictions for rows whose labels were held out.

    Parameters
    ----------
    reading : Reading
        The classifier that was fitted with all labels.
    labels : sequence of length n_rows
        The labels.
    held_out : HeldOut or dict
        What `coem.selection.held_out` found, or the `truth` of an earlier story as a dict.
    """
    if reading.noun != "class" or labels is None:
        raise ValueError("held_out belongs to a classifier and the labels that it was judged by")
    if not hasattr(held_out, "proba"):
        return _earlier(held_out, reading)
    if list(held_out.classes) != list(reading.keys):
        raise ValueError("held_out has other classes than the model")
    known, rows = np.full(len(reading.groups), None), held_out.rows
    known[rows] = np.asarray(labels, dtype=object)[rows]
    groups, proba = reading.groups.copy(), reading.proba.copy()
    groups[rows], proba[rows] = held_out.proba.argmax(axis=1), held_out.proba
    truth = compare(replace(reading, groups=groups, proba=proba), known)
    return replace(
        truth,
        scores={"accuracy": held_out.accuracy},
        held_out={"error": held_out.error, "folds": held_out.n_folds},
    )


def judged(labels, held_out):
    """Return what `compare_held_out` says, of the rows that were held out alone.

    Parameters
    ----------
    labels : sequence of length n_tested
        The labels of these rows, in the order of `held_out`.
    held_out : HeldOut
        What `coem.selection.held_out` found.
    """
    n_rows, k = held_out.proba.shape
    nothing = np.zeros((n_rows, k))
    reading = Reading(
        views=None,
        noun="class",
        keys=list(held_out.classes),
        groups=np.zeros(n_rows, dtype=np.int64),
        closeness=nothing,
        weights=nothing,
        proba=nothing.astype(held_out.proba.dtype),
    )
    return compare_held_out(reading, labels, replace(held_out, rows=np.arange(n_rows)))


def _earlier(truth, reading):
    """Return the figures of an earlier story; raise unless they fit this model."""
    whole = isinstance(truth, Mapping) and truth.keys() == {f.name for f in fields(Truth)}
    if not whole or not truth["held_out"] or len(truth["table"]) != reading.n_groups:
        raise ValueError("held_out is neither of coem.selection.held_out nor of a story")
    return Truth(**truth)


def _place(keys, label):
    """Return the place of a class among those of the model; a class it does not know is last."""
    return keys.index(label) if label in keys else len(keys)


def _clustering_scores(codes, groups):
    return {
        "entropy": cluster_entropy(codes, groups),
        "normalised mutual information": float(normalized_mutual_info_score(codes, groups)),
        "adjusted Rand index": float(adjusted_rand_score(codes, groups)),
        "matched accuracy": aligned_accuracy(codes, groups),
    }


def _beside(table):
    """Return an order of the classes in which matching groups are on the diagonal."""
    groups, classes = linear_sum_assignment(table, maximize=True)
    place = np.full(table.shape[1], len(table))
    place[classes] = groups
    return np.argsort(place, kind="stable")


def _reliability(reading, rows, table, classes, codes):
    """Return the curve of confidence and accuracy over the labelled rows, or None."""
    if reading.proba is None:
        return None
    proba, columns = reading.proba[rows], classes
    if reading.noun == "class":
        columns = np.asarray(reading.keys)
    else:
        stands_for = np.eye(len(classes))[table.argmax(axis=1)]
        proba = proba @ stands_for
    given = {"classes": columns, "n_bins": N_BINS}
    curve = reliability_curve(classes[codes], proba, **given)
    return {
        "confidence": curve.confidence.tolist(),
        "accuracy": curve.accuracy.tolist(),
        "rows": curve.weight.astype(int).tolist(),
        "error": expected_calibration_error(classes[codes], proba, **given),
    }
