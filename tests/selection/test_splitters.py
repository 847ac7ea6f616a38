"""Splits of partly labelled rows: what is tested, what always trains, and how evenly."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, check_cv, cross_val_predict, cross_val_score

from coem import MixtureClassifier, Views
from coem.labels import Not
from coem.selection import LabeledKFold, LabeledShuffleSplit, exactly_labelled

Y = np.array([0] * 7 + [1] * 4 + [2] * 2 + [3] + [-1] * 6)[np.random.default_rng(1).permutation(20)]
SPLITTERS = [
    LabeledKFold(3, random_state=0),
    LabeledKFold(2, shuffle=False),
    LabeledShuffleSplit(6, random_state=0),
    LabeledShuffleSplit(6, test_size=8, train_size=0.4, random_state=0),
]

labels = st.lists(st.integers(-1, 5), min_size=1, max_size=60).map(np.array)
seeds = st.integers(0, 2**32 - 1)


def splits(cv, y):
    return list(cv.split(np.zeros((len(y), 1)), y))


def rows_to_test(y):
    """Return the rows that have a label which another row has as well."""
    sizes = Counter(y.tolist())
    return [i for i, label in enumerate(y.tolist()) if label != -1 and sizes[label] > 1]


def assert_sound(y, train, test):
    assert not set(train) & set(test)
    assert set(np.flatnonzero(y == -1)) <= set(train)
    assert (y[test] != -1).all()
    assert set(y[y != -1]) == set(y[train][y[train] != -1])  # every class keeps a row
    assert len(test) > 0
    np.testing.assert_array_equal(train, np.unique(train))
    np.testing.assert_array_equal(test, np.unique(test))


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_unlabelled_rows_always_train_and_every_class_keeps_a_row(cv):
    found = splits(cv, Y)
    assert len(found) == cv.get_n_splits() == cv.get_n_splits(Y, Y)
    for train, test in found:
        assert_sound(Y, train, test)


@given(labels, st.integers(2, 6), seeds)
def test_every_row_of_a_class_of_two_or_more_is_tested_once(y, n_splits, seed):
    rows = rows_to_test(y)
    assume(len(rows) >= n_splits)
    folds = splits(LabeledKFold(n_splits, random_state=seed), y)
    for train, test in folds:
        assert_sound(y, train, test)
        assert len(train) + len(test) == len(y)
    assert sorted(np.concatenate([test for _, test in folds])) == rows
    # As even as can be: over all classes, and within each.
    for members in (set(rows), *({i for i in rows if y[i] == label} for label in set(y))):
        sizes = [len(members.intersection(test)) for _, test in folds]
        assert max(sizes) - min(sizes) <= 1


@given(labels, st.integers(2, 6), seeds)
def test_a_permutation_keeps_the_classes_of_every_fold(y, n_splits, seed):
    assume(len(rows_to_test(y)) >= n_splits)
    order = np.random.default_rng(seed).permutation(len(y))
    cv = LabeledKFold(n_splits, random_state=seed)
    folds, moved = splits(cv, y), splits(cv, y[order])
    for (_, test), (_, other) in zip(folds, moved, strict=True):
        assert Counter(y[test].tolist()) == Counter(y[order][other].tolist())


@pytest.mark.slow
@given(labels, seeds, st.integers(1, 20))
def test_unlabelled_rows_do_not_change_the_folds(y, seed, n_more):
    assume(len(rows_to_test(y)) >= 2)
    places = np.random.default_rng(seed).integers(0, len(y) + 1, n_more)
    more = np.insert(y, places, -1)
    kept = np.insert(np.ones(len(y), dtype=bool), places, False)
    rows = np.flatnonzero(kept)  # where the old rows are now
    for cv in (
        LabeledKFold(2, random_state=seed),
        LabeledShuffleSplit(2, test_size=1, random_state=seed),
    ):
        for (_, test), (_, other) in zip(splits(cv, y), splits(cv, more), strict=True):
            np.testing.assert_array_equal(rows[test], other)


@pytest.mark.slow
@given(labels, seeds, st.integers(1, 60), st.integers(0, 40))
def test_shuffled_splits_have_the_sizes_asked_for(y, seed, percent, n_train):
    n_rows, n_classes = (y != -1).sum(), len(set(y[y != -1]))
    n_test = -(-percent * n_rows // 100)  # rounded up
    assume(0 < n_test <= n_rows - n_classes)
    n_train = min(max(n_train, n_classes), n_rows - n_test)
    for sizes, expected in (
        ({"test_size": percent / 100}, n_rows - n_test),
        ({"test_size": int(n_test), "train_size": int(n_train)}, n_train),
    ):
        for train, test in splits(LabeledShuffleSplit(3, **sizes, random_state=seed), y):
            assert_sound(y, train, test)
            assert len(test) == n_test
            assert (y[train] != -1).sum() == expected


def test_shuffled_splits_are_stratified():
    y = np.repeat([0, 1, 2, -1], [100, 50, 10, 40])
    cv = LabeledShuffleSplit(test_size=0.2, train_size=0.5, random_state=1)
    for train, test in splits(cv, y):
        assert np.bincount(y[test]).tolist() == [20, 10, 2]
        assert np.bincount(y[train] + 1).tolist() == [40, 50, 25, 5]


def test_where_shares_are_no_whole_rows_classes_take_turns():
    y = np.repeat(np.arange(10), 2)  # 4 of 10 classes are tested in a split
    times = Counter()
    for _, test in splits(LabeledShuffleSplit(200, test_size=4, random_state=0), y):
        assert len(set(y[test])) == 4
        times.update(y[test].tolist())
    # 80 each on average; 50 to 110 is more than four standard deviations (of 6.9) off.
    assert len(times) == 10
    assert 50 < min(times.values()) <= max(times.values()) < 110


def test_a_share_is_not_off_by_a_rounding_error():
    y = np.repeat([0, 1], 50)  # 0.07 * 100 is 7.000000000000001
    for train, test in splits(LabeledShuffleSplit(1, test_size=0.07, train_size=0.29), y):
        assert (len(train), len(test)) == (29, 7)
    ((_, test),) = splits(LabeledShuffleSplit(1, test_size=1e-12), y)
    assert len(test) == 1


@pytest.mark.parametrize("make", [LabeledKFold, LabeledShuffleSplit])
def test_the_same_seed_gives_the_same_splits(make):
    first, again, other = (splits(make(3, random_state=seed), Y) for seed in (0, 0, 1))
    for (a, b), (c, d) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    assert any(a.tolist() != b.tolist() for (_, a), (_, b) in zip(first, other, strict=True))
    cv = make(3, random_state=np.random.RandomState(0))
    assert splits(cv, Y)[0][1].tolist() == first[0][1].tolist()


@pytest.mark.parametrize("cv", SPLITTERS, ids=repr)
def test_splitters_are_scikit_learns(cv):
    assert check_cv(cv) is cv
    for twin in (clone(cv, safe=False), pickle.loads(pickle.dumps(cv))):
        assert repr(twin) == repr(cv)
        for (a, _), (b, _) in zip(splits(cv, Y), splits(twin, Y), strict=True):
            np.testing.assert_array_equal(a, b)
    assert repr(LabeledKFold()) == "LabeledKFold(n_splits=5, random_state=None, shuffle=True)"
    with pytest.warns(UserWarning, match="ignores groups"):
        next(cv.split(Y, Y, groups=Y))


PARTIAL = [0, {0, 1}, 1, frozenset({2}), None, 0, Not(0), 1, -1, np.nan, "", Not(0, 1), {1, 2}]


@pytest.mark.parametrize("make", [list, tuple, lambda y: np.array(y, dtype=object), pd.Series])
def test_a_row_with_a_set_of_classes_is_not_exactly_labelled(make):
    y = make(PARTIAL)
    exact = exactly_labelled(y)
    assert np.flatnonzero(exact).tolist() == [0, 2, 3, 5, 7, 11]  # a set of one is a label
    assert exact.dtype == bool
    for cv in (LabeledKFold(2, random_state=0), LabeledShuffleSplit(test_size=2, random_state=0)):
        for train, test in splits(cv, y):
            assert set(test) < {0, 2, 3, 5, 7, 11}
            assert set(train) | set(test) == set(range(len(PARTIAL)))


@pytest.mark.parametrize("y", [np.array([0, 1, -1]), [1.0, 2.0, np.nan], ("a", "b", "")])
def test_markers_of_no_label_are_not_exactly_labelled(y):
    assert exactly_labelled(y).tolist() == [True, True, False]


@pytest.mark.parametrize("make", [LabeledKFold, LabeledShuffleSplit])
def test_what_cannot_be_split_is_refused(make):
    with pytest.raises(ValueError, match="no labelled row"):
        splits(make(2), np.full(5, -1))
    with pytest.raises(ValueError, match="every class has one labelled row"):
        splits(make(2), np.array([0, 1, 2, -1, -1]))
    with pytest.raises(ValueError, match=f"{make.__name__} needs y"):
        next(make(2).split(np.zeros((3, 1))))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        next(make(2).split(np.zeros((3, 1)), [0, 0, 1, 1]))
    for n_splits in (0, 2.5, "5", None, True):
        with pytest.raises(ValueError, match="n_splits must be an integer"):
            make(n_splits)


def test_folds_that_cannot_be_filled_are_refused():
    with pytest.raises(ValueError, match="n_splits=5 is more than the 4 labelled rows that can be"):
        splits(LabeledKFold(), np.array([0, 0, 1, 1, 2, -1]))
    assert len(splits(LabeledKFold(4), np.array([0, 0, 1, 1, 2, -1]))) == 4
    with pytest.raises(ValueError, match="n_splits must be an integer of 2 or more"):
        LabeledKFold(1)
    with pytest.raises(ValueError, match="no effect without shuffle"):
        LabeledKFold(shuffle=False, random_state=0)
    with pytest.raises(ValueError, match="shuffle must be True or False"):
        LabeledKFold(shuffle="yes")


def test_sizes_that_cannot_be_met_are_refused():
    y = np.array([0, 0, 0, 1, 1, 2, -1])
    for size in (0, 0.0, 1.0, 1.5, -1, True, "half", None):
        with pytest.raises(ValueError, match="test_size must be a share between 0 and 1"):
            splits(LabeledShuffleSplit(test_size=size), y)
    for size in (4, 0.6):
        with pytest.raises(ValueError, match="is 4 labelled rows, but only 3 can be tested"):
            splits(LabeledShuffleSplit(test_size=size), y)
    for size in (2, 5, 0.4):
        with pytest.raises(ValueError, match=r"must lie between 3 \(one per class\) and 4"):
            splits(LabeledShuffleSplit(test_size=2, train_size=size), y)


@pytest.fixture(scope="module")
def documents():
    """Return two views that tell two classes apart, most of the rows without a label."""
    rng = np.random.default_rng(0)
    truth = np.tile(["ham", "spam"], 40)
    rates = np.where((truth == "ham")[:, np.newaxis], [3, 3, 0.3, 0.3], [0.3, 0.3, 3, 3])
    y = np.where(np.arange(80) < 24, truth, "")
    words = sp.csr_matrix(rng.poisson(rates))
    return {"matrix": words, "views": Views(words=words, links=rng.poisson(rates) + 1)}, y


@pytest.mark.parametrize("kind", ["matrix", "views"])
@pytest.mark.parametrize(
    "cv", [LabeledKFold(4, random_state=0), LabeledShuffleSplit(3, random_state=0)], ids=repr
)
def test_scores_are_of_labelled_rows(documents, kind, cv):
    inputs, y = documents
    scores = cross_val_score(MixtureClassifier(), inputs[kind], y, cv=cv)
    # Four words at ten to one: hardly a row is in doubt. An unlabelled row would score 0.
    assert scores.mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["matrix", "views"])
def test_a_grid_is_searched_in_two_processes(documents, kind):
    inputs, y = documents
    grid = {"unlabeled_weight": [0.0, 1.0], "family__alpha": [0.1, 1.0]}
    cv = LabeledKFold(3, random_state=0)
    search = GridSearchCV(MixtureClassifier(), grid, cv=cv, n_jobs=2, error_score="raise")
    search.fit(inputs[kind], y)
    assert search.best_score_ > 0.9
    assert set(search.predict(inputs[kind])) == {"ham", "spam"}


def test_not_every_row_is_tested_so_that_nothing_predicts_them_all(documents):
    inputs, y = documents
    with pytest.raises(ValueError, match="only works for partitions"):
        cross_val_predict(MixtureClassifier(), inputs["matrix"], y, cv=LabeledKFold(3))
