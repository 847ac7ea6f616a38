"""A model that was pickled or copied does no more work for a row than the fitted one."""

import copy
import pickle

import numpy as np
import pytest

from coem.kernels import counts
from tests.io import fits

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deep copy": copy.deepcopy,
    "copy": copy.copy,
}
CASES = ("one view", "double", "mixed", "bernoulli", "one component", "classes", "pool", "chain")


def tables_made(model, X, monkeypatch):
    """Return how many tables are packed while a model predicts one row."""
    made, new_table = [], counts.new_table
    monkeypatch.setattr(counts, "new_table", lambda *a: made.append(a) or new_table(*a))
    model.predict(X[:1])
    monkeypatch.undo()
    return len(made)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_no_table_is_packed_for_a_row(case, way, monkeypatch):
    model, X = fits.fitted(case), fits.data_of(case)
    again = WAYS[way](model)
    assert tables_made(again, X, monkeypatch) == tables_made(model, X, monkeypatch) == 0
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_work_is_counted(monkeypatch):
    model = copy.deepcopy(fits.fitted("one view"))
    ((view, theta),) = model.theta_.items()
    model.theta_[view] = np.array(theta)  # without the spare cells
    assert tables_made(model, fits.WORDS, monkeypatch) == 1
