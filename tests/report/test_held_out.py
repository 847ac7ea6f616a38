"""Labels that the judge of a row had not seen."""

import json

import numpy as np
import pytest

from coem import MixtureClassifier
from coem.metrics import expected_calibration_error
from coem.report import render, tell
from coem.selection import LabeledKFold, held_out


@pytest.fixture(scope="module")
def labels(collection):
    """Labels of two thirds of the rows, some of them wrong."""
    y = collection.labels.astype(object)
    y[::7] = "law"
    y[60:] = ""
    return y


@pytest.fixture(scope="module")
def found(collection, labels):
    folds = LabeledKFold(4, random_state=0)
    return held_out(MixtureClassifier(), collection.views, labels, cv=folds)


@pytest.fixture(scope="module")
def judge(collection, labels):
    return MixtureClassifier().fit(collection.views, labels)


def test_all_figures_are_those_of_held_out_rows(collection, labels, judge, found):
    story = tell(judge, collection.views, labels=labels, held_out=found)
    known = np.asarray(labels[found.rows], dtype=str)
    guess = found.classes[found.proba.argmax(axis=1)]
    table = [
        [int(((guess == p) & (known == c)).sum()) for c in found.classes] for p in judge.classes_
    ]
    assert story.truth.table == table
    assert story.truth.classes == found.classes.tolist()
    assert story.truth.n_rows == 60
    assert story.truth.scores == {"accuracy": found.accuracy}
    assert story.truth.held_out == {"error": found.error, "folds": 4}
    error = expected_calibration_error(known, found.proba, classes=found.classes, n_bins=10)
    assert story.truth.reliability["error"] == pytest.approx(error)
    # What is said of a group is said of its documents, as the model has them.
    assert story.groups == tell(judge, collection.views, labels=labels).groups


def test_held_out_rows_can_be_told_again(collection, labels, judge, found):
    story = tell(judge, collection.views, labels=labels, held_out=found)
    kept = json.loads(json.dumps(story.to_dict()["truth"], allow_nan=False))
    again = tell(judge, collection.views, labels=labels, held_out=kept)
    assert render(again) == render(story)


def test_labels_of_another_form_are_no_accuracy_of_0(collection, judge):
    with pytest.warns(UserWarning, match="no label is a class of the model: labels are such as 0"):
        story = tell(judge, collection.views, labels=collection.truth)
    assert story.truth is None


def test_rows_that_may_have_taught_are_no_accuracy(collection, labels, judge):
    page = render(tell(judge, collection.views, labels=labels))
    assert "may have taught" in page
    assert "<dt>accuracy" not in page


def test_what_does_not_belong_together_is_refused(collection, labels, judge, found, model):
    with pytest.raises(ValueError, match="belongs to a classifier"):
        tell(model, collection.views, labels=labels, held_out=found)
    with pytest.raises(ValueError, match="and the labels"):
        tell(judge, collection.views, held_out=found)
    with pytest.raises(ValueError, match="neither"):
        tell(judge, collection.views, labels=labels, held_out={"table": []})
    other = MixtureClassifier().fit(collection.views, np.where(labels == "law", "tax", labels))
    with pytest.raises(ValueError, match="other classes"):
        tell(other, collection.views, labels=labels, held_out=found)
