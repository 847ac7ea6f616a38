"""Pk and WindowDiff against nltk, the definition pair by pair, and values worked out by hand."""

import numpy as np
import pytest

from coem.metrics import pk, window_diff


@pytest.fixture
def rng():
    return np.random.default_rng(1999)


def slow(true, pred, lengths, k):
    """Both errors, pair by pair: what their papers define."""
    wrong, differ, pairs, start = 0, 0, 0, 0
    for n in lengths:
        for i in range(start, start + n - k):
            counts = [
                sum(labels[j] != labels[j + 1] for j in range(i, i + k)) for labels in (true, pred)
            ]
            pairs += 1
            wrong += (counts[0] == 0) != (counts[1] == 0)
            differ += counts[0] != counts[1]
        start += n
    return wrong / pairs, differ / pairs


@pytest.mark.parametrize("k", [1, 2, 5])
def test_several_documents_pair_by_pair(k, rng):
    lengths = [9, 0, 1, 14, k + 1]
    true, pred = np.cumsum(rng.random((2, sum(lengths))) < 0.2, axis=1)
    expected = slow(true, pred, lengths, k)
    found = tuple(f(true, pred, lengths=lengths, window=k) for f in (pk, window_diff))
    assert found == pytest.approx(expected)
    assert expected[0] > 0


@pytest.mark.parametrize("k", [1, 3, 7])
def test_one_document_against_nltk(k, rng):
    segmentation = pytest.importorskip("nltk.metrics.segmentation")
    for _ in range(20):
        # A gap is what lies between two units: there is one fewer.
        gaps = rng.random((2, 40)) < 0.2
        marks = ["".join(map(str, row.astype(int))) for row in gaps]
        first = np.column_stack([[False, True], gaps])  # the first unit makes no difference
        given = {"boundaries": True, "window": k}
        assert pk(*first, **given) == pytest.approx(segmentation.pk(*marks, k))
        assert window_diff(*first, **given) == pytest.approx(segmentation.windowdiff(*marks, k))


def test_labels_and_boundaries_say_the_same(rng):
    lengths = [12, 30]
    first = rng.random((2, 42)) < 0.25
    labels = np.array([["a", "b"][n % 2] for n in np.cumsum(first, axis=1).ravel()])
    for metric in (pk, window_diff):
        by_first = metric(*first, boundaries=True, lengths=lengths)
        # A change of the label at the start of a document is no boundary of it.
        assert metric(*labels.reshape(2, 42), lengths=lengths) == by_first
        assert metric(*first.astype(float), boundaries=True, lengths=lengths) == by_first


def test_the_window_is_half_the_mean_true_segment():
    # Documents begin segments: 24 units in 3 segments, so half the mean length is 4.
    true = np.repeat([0, 1, 1], 8)
    pred = np.repeat([0, 1, 2], 8)
    given = {"lengths": [16, 8]}
    assert pk(true, pred, **given) == 0.0
    late = np.repeat([0, 1], [10, 14])
    for metric in (pk, window_diff):
        assert metric(true, late, **given) == metric(true, late, window=4, **given)
        assert metric(true, late, **given) != metric(true, late, window=3, **given)


def test_a_repeated_topic_is_no_longer_segment():
    assert pk(["a", "b", "a"], ["x", "y", "z"], window=1) == 0.0
    assert pk(["a", "b", "a"], ["x", "x", "x"], window=2) == 1.0


def test_window_diff_is_never_less_than_pk(rng):
    true, pred = rng.integers(2, size=(2, 60))
    assert window_diff(true, pred, window=4) > pk(true, pred, window=4) > 0


def test_no_boundary_is_the_share_of_pairs_that_are_parted():
    true = np.repeat([0, 1, 2, 3], 10)
    nothing = np.zeros(40)
    assert pk(true, nothing) == pytest.approx(15 / 35)
    assert pk(true, nothing) == window_diff(true, nothing)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([0, 1], [0]), "labels_true has 2 units and labels_pred has 1"),
        (([], []), "labels_true has shape"),
        (([[0]], [[0]]), "labels_true has shape"),
        (([0.0, np.nan], [0, 1]), "labels_true is NaN in unit 1"),
    ],
)
def test_labels_that_do_not_fit(given, said):
    with pytest.raises(ValueError, match=said):
        pk(*given)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lengths": [2, 3]}, "lengths sum to 5, and there are 4 units"),
        ({"lengths": [-1, 5]}, "lengths must be whole numbers"),
        ({"lengths": [2.0, 2.0]}, "lengths must be whole numbers"),
        ({"lengths": [2, 2], "window": 2}, "no document has more than 2 units"),
        ({"window": 4}, "no document has more than 4 units"),
        ({"window": 9}, "no document has more than 9 units"),
        ({"window": 0}, "window must be a whole number"),
        ({"window": True}, "window must be a whole number"),
        ({"window": 1.5}, "window must be a whole number"),
        ({"boundaries": True}, "labels_pred is 2 in unit 2; with boundaries=True"),
    ],
)
@pytest.mark.parametrize("metric", [pk, window_diff])
def test_settings_that_do_not_fit(metric, settings, said):
    with pytest.raises(ValueError, match=said):
        metric([0, 0, 1, 1], [0, 1, 2, 2], **settings)
