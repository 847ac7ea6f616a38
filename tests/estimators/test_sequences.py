"""The sequences that a user passes to a hidden Markov model: lists, tables, labels, lengths."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from coem import HiddenMarkovModel, Views
from coem.families import Gaussian

RNG = np.random.default_rng(0)
STATES = np.tile(np.repeat([0, 1], 5), 4)
X = 4.0 * STATES[:, np.newaxis] + RNG.standard_normal((40, 2))
PARTS = [X[:15], X[15:]]


def model(**params):
    return HiddenMarkovModel(2, **{"family": "gaussian", "random_state": 0, **params})


# -- labels and lengths ---------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_known_states_stay_fixed_in_what_a_fit_says(posterior):
    rows = np.concatenate([RNG.standard_normal((50, 1)), 9 + RNG.standard_normal((50, 1))])
    y = np.full(100, -1)
    y[[0, 1]], y[[98, 99]], y[5] = 0, 1, 1  # the last one is not what the row looks like
    fitted = model(posterior=posterior).fit(rows, y)
    assert fitted.labels_[5] == 1
    assert fitted.predict(rows)[5] == 0
    assert (fitted.labels_[y != -1] == y[y != -1]).all()
    assert fitted.weights_[1] == pytest.approx(0.51, abs=1e-3)
    np.testing.assert_array_equal(model(posterior=posterior).fit_predict(rows, y), fitted.labels_)
    online = model(posterior=posterior).partial_fit(rows, y).partial_fit(rows, y)
    assert (online.labels_[y != -1] == y[y != -1]).all()


@pytest.mark.parametrize("init", ["random", "segments", "spherical", "rows"])
def test_states_of_every_start_have_the_numbers_of_the_labels(init):
    states = np.repeat([0, 1, 2] * 6, 10)
    names = np.array([2, 0, 1])[states]  # the numbers that the user gives them
    rng = np.random.default_rng(0)
    rows = np.array([[0, 0], [8, 0], [0, 8]])[states] + rng.standard_normal((180, 2))
    y = np.where(np.isin(np.arange(180), [0, 5, 10, 15, 20, 25]), names, -1)
    for seed in range(5):
        fitted = HiddenMarkovModel(3, family="gaussian", init=init, random_state=seed).fit(rows, y)
        assert (fitted.predict(rows) == names).mean() > 0.95


def test_labels_do_not_renumber_a_left_right_model():
    follow = [[0.9, 0.1], [0, 1]]
    rows = np.repeat([0.0, 9.0], 10)[:, np.newaxis] + RNG.standard_normal((20, 1))
    y = np.full(20, -1)
    y[1], y[18] = 0, 1
    fitted = model(startprob=[1, 0], transmat=follow, init="segments").fit(rows, y)
    np.testing.assert_array_equal(fitted.labels_, np.repeat([0, 1], 10))


def test_lengths_in_the_place_of_labels_are_refused():
    fitted = model().fit(X, lengths=[15, 25])
    with pytest.raises(ValueError, match=re.escape("write score(X, lengths=...)")):
        fitted.score(X, [15, 25])
    with pytest.raises(ValueError, match=re.escape("write score(X, lengths=...)")):
        fitted.score(X, 40)
    with pytest.raises(ValueError, match=re.escape("write fit(X, lengths=...)")):
        model().fit(X, [15, 25])
    both = fitted.score(X, lengths=[15, 25])
    assert fitted.score(PARTS) == fitted.score(X, STATES, [15, 25]) == both
    assert fitted.score(PARTS, [STATES[:15], None]) == fitted.score(PARTS, STATES) == both
    assert len(cross_val_score(model(), X, STATES, cv=2)) == 2


def test_a_sequence_may_have_no_labels():
    known = np.concatenate([np.full(15, -1), STATES[15:]])
    expected = model().fit(PARTS, known).transmat_
    np.testing.assert_array_equal(model().fit(PARTS, [None, STATES[15:]]).transmat_, expected)
    known = np.concatenate([STATES[:15], np.full(25, -1)])
    expected = model().fit(PARTS, known).transmat_
    np.testing.assert_array_equal(model().fit(PARTS, [STATES[:15], None]).transmat_, expected)
    free = model().fit(PARTS).transmat_
    np.testing.assert_array_equal(model().fit(PARTS, [None, None]).transmat_, free)


BAD = {
    "infinite": ({"lengths": [10, np.inf]}, "lengths must be a list of whole numbers"),
    "texts": ({"lengths": ["10", "10"]}, "lengths must be a list of whole numbers"),
    "ragged": ({"lengths": [[1], [2, 3]]}, "lengths must be a list of whole numbers"),
    "weights": ({"lengths": [15, 25], "sequence_weight": ["a", 1]}, "must hold numbers"),
    "ragged y": (
        {"lengths": [15, 25], "y": [[[1], [2, 3]], STATES[15:]]},
        "sequence 0: y must have one label per row",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_named(case):
    args, message = BAD[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        model().fit(X, **args)


# -- lists ----------------------------------------------------------------------------------------


def test_dense_and_sparse_sequences_may_be_mixed():
    counts = RNG.poisson(2.0, (40, 3))
    expected = model(family="multinomial").fit(counts, lengths=[15, 25])
    mixed = [[counts[:15], sp.csr_matrix(counts[15:])], [sp.csr_array(counts[:15]), counts[15:]]]
    for parts in mixed:
        found = model(family="multinomial").fit(parts)
        np.testing.assert_allclose(found.transmat_, expected.transmat_, rtol=1e-12)


LISTS = {
    "views after a matrix": ([PARTS[0], Views(a=PARTS[1])], "sequence 1: it has views"),
    "more views": (
        [{"a": PARTS[0]}, {"a": PARTS[1], "b": PARTS[1]}],
        "sequence 1: it has the views ['a', 'b'], and the first sequence has ['a']",
    ),
    "fewer views": (
        [Views(a=PARTS[0], b=PARTS[0]), Views(a=PARTS[1])],
        "sequence 1: it has the views ['a'], and the first sequence has ['a', 'b']",
    ),
    "rows of views": (
        [{"a": PARTS[0], "b": PARTS[0]}, {"a": PARTS[1], "b": PARTS[0]}],
        "sequence 1, view 'a' has 25 rows but view 'b' has 15",
    ),
    "empty list": ([[], PARTS[1].tolist()], "sequence 0 has length 0"),
    "empty dict": ([{"a": PARTS[0]}, {"a": PARTS[1][:0]}], "sequence 1 has length 0"),
    "ragged": (
        [PARTS[0].tolist(), [[1.0, 2.0], [1.0]]],
        "sequence 1: its rows do not have the same number of columns",
    ),
    "swapped": (
        [pd.DataFrame(PARTS[0], columns=["a", "b"]), pd.DataFrame(PARTS[1], columns=["b", "a"])],
        "sequence 1: its columns are ['b', 'a'], and those of the first sequence are ['a', 'b']",
    ),
    "swapped polars": (
        [pl.DataFrame(PARTS[0], schema=["a", "b"]), pl.DataFrame(PARTS[1], schema=["b", "a"])],
        "sequence 1: its columns are ['b', 'a']",
    ),
    "swapped in a view": (
        [
            {"v": pd.DataFrame(PARTS[0], columns=["a", "b"])},
            {"v": pd.DataFrame(PARTS[1], columns=["b", "a"])},
        ],
        "sequence 1, view 'v': its columns are ['b', 'a']",
    ),
    "no names": (
        [pd.DataFrame(PARTS[0], columns=["a", "b"]), PARTS[1]],
        "sequence 1: its columns are without names",
    ),
}


@pytest.mark.parametrize("case", LISTS)
def test_sequences_that_differ_from_the_first_are_named(case):
    parts, message = LISTS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        model().fit(parts)


def test_views_may_come_in_any_order():
    one = [{"a": part, "b": part[:, :1]} for part in PARTS]
    other = [one[0], {"b": one[1]["b"], "a": one[1]["a"]}]
    np.testing.assert_array_equal(model().fit(one).transmat_, model().fit(other).transmat_)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_keep_the_names_of_their_columns(frame):
    tables = [frame(dict(zip("ab", part.T, strict=True))) for part in PARTS]
    fitted = model().fit(tables)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(fitted.predict(tables), model().fit(PARTS).predict(PARTS))
    other = [frame(dict(zip("ac", part.T, strict=True))) for part in PARTS]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(other)


def test_a_bad_row_is_named_by_its_sequence():
    counts = RNG.poisson(2.0, (40, 3))
    counts[18, 1] = -1
    message = "row 3 of sequence 1: view 'view0', row 18 has -1"
    for data in ((counts, [15, 25]), ([counts[:15], counts[15:]], None)):
        with pytest.raises(ValueError, match=message):
            model(family="multinomial").fit(data[0], lengths=data[1])
    fitted = model().fit(X)
    rows = X.copy()
    rows[20] = np.inf
    with pytest.raises(ValueError, match="row 5 of sequence 1: view 'view0', row 20: the value"):
        fitted.predict(rows, [15, 25])
    with pytest.raises(ValueError, match=r"^view 'view0', row 20: the value"):
        fitted.predict(rows)


def test_states_that_no_path_goes_through_are_reported():
    rows = np.repeat(np.eye(3), 5, axis=0)
    unit = HiddenMarkovModel(
        5, family=Gaussian("unit"), posterior="hard", random_state=0, max_iter=9, tol=0
    )
    with pytest.warns(ConvergenceWarning, match=r"states \[.*\] of 5 died") as seen:
        unit.fit(rows, lengths=np.ones(15, dtype=int))
    empty = np.flatnonzero(np.bincount(unit.labels_, minlength=5) == 0).tolist()
    assert f"states {empty} of 5 died" in str(seen[0].message)
