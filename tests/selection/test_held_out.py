"""What a classifier says of labels that it has not seen."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from coem import MixtureClassifier, Views
from coem.selection import LabeledKFold, held_out


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    means = 1 + 2 * np.eye(3)[truth]
    y = np.array(["a", "b", "c"], dtype=object)[truth]
    y[::4] = ""
    return Views(first=rng.poisson(means), second=rng.poisson(means)), y


def test_it_is_cross_validation(rows):
    views, y = rows
    folds, seen = LabeledKFold(4, random_state=0), []
    found = held_out(MixtureClassifier(), views, y, cv=folds, on_fold=seen.append)
    scores = cross_val_score(MixtureClassifier(), views, y, cv=folds)
    assert found.accuracy == pytest.approx(scores.mean())
    assert found.error == pytest.approx(scores.std(ddof=1) / 2)
    assert found.n_folds == len(seen) == 4
    assert sorted(found.rows) == np.flatnonzero(y != "").tolist()
    assert (found.classes[found.proba.argmax(axis=1)] == y[found.rows]).tolist() == (
        found.right.tolist()
    )


def test_no_label_is_seen_by_its_judge(rows):
    views, y = rows
    folds = LabeledKFold(4, random_state=0)
    found = held_out(MixtureClassifier(), views, y, cv=folds)
    train, test = next(iter(folds.split(np.zeros((len(y), 1)), y)))
    hidden = y.copy()
    hidden[test] = ""
    model = MixtureClassifier().fit(views[train], hidden[train])
    assert np.array_equal(found.proba[found.folds == 0], model.predict_proba(views[test]))


def test_a_fold_without_a_class_is_refused(rows):
    views, y = rows
    c = y == "c"
    with pytest.raises(ValueError, match="fold 0"):
        held_out(MixtureClassifier(), views, y, cv=[(np.flatnonzero(~c), np.flatnonzero(c))])
