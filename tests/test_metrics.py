"""The metrics against values worked out by hand, the laws they obey and slow loops."""

import math

import numpy as np
import pytest

from coem.metrics import (
    agreement_rate,
    aligned_accuracy,
    cluster_entropy,
    dissent,
    expected_calibration_error,
    reliability_curve,
)

TINY = np.finfo(np.float64).tiny


@pytest.fixture
def rng():
    return np.random.default_rng(20050807)


def slow_entropy(true, pred):
    """Equation (23) of Bickel & Scheffer 2005, term by term."""
    total = 0.0
    for j in set(pred):
        members = [c for c, cluster in zip(true, pred, strict=True) if cluster == j]
        shares = [members.count(c) / len(members) for c in set(members)]
        total += len(members) / len(true) * -sum(p * math.log2(p) for p in shares)
    return total


def slow_agreement(labels):
    """Equation (16) of Bickel & Scheffer 2004, averaged over the pairs of each row."""
    rates = []
    for row in labels.tolist():
        full = [label for label in row if label != -1]
        pairs = [(a, b) for i, a in enumerate(full) for b in full[i + 1 :]]
        if pairs:
            rates.append(sum(a == b for a, b in pairs) / len(pairs))
    return sum(rates) / len(rates) if rates else 1.0


def slow_dissent(posteriors, empty):
    """Equation (10) of Bickel & Scheffer 2005, term by term."""
    total = 0.0
    for p, gone in zip(posteriors, empty, strict=True):
        views = [v for v in range(len(p)) if not gone[v]]
        for v in views:
            for u in views:
                for a, b in zip(p[v].tolist(), p[u].tolist(), strict=True):
                    log_ratio = math.log(max(a, TINY)) - math.log(max(b, TINY))
                    total += a * log_ratio / max(len(views) - 1, 1)
    return total


def slow_accuracy(true, pred):
    """Try every one-to-one matching of clusters to classes by recursion."""
    classes = sorted(set(true))

    def best(clusters, free):
        if not clusters:
            return 0
        skip = best(clusters[1:], free)
        hits = [
            sum(t == c and p == clusters[0] for t, p in zip(true, pred, strict=True))
            + best(clusters[1:], [other for other in free if other != c])
            for c in free
        ]
        return max([skip, *hits])

    return best(sorted(set(pred)), classes) / len(true)


# cluster_entropy -------------------------------------------------------------------------------


def test_entropy_worked_by_hand():
    # Cluster "x" holds a, a, b, c: shares 1/2, 1/4, 1/4, so 1/2 * 1 + 2 * 1/4 * 2 = 1.5 bits.
    # Cluster "y" holds b, b, a, a: 1 bit. Cluster "z" holds c, c: 0 bits.
    # Sizes 4, 4, 2 of 10: 0.4 * 1.5 + 0.4 * 1 + 0.2 * 0 = 1.
    true = list("aabcbbaacc")
    pred = list("xxxxyyyyzz")
    assert cluster_entropy(true, pred) == pytest.approx(1.0, rel=1e-15)


def test_entropy_of_pure_clusters_is_exactly_zero():
    assert cluster_entropy([0, 0, 1, 1, 2], [5, 5, 3, 3, 9]) == 0.0
    assert cluster_entropy([0, 0, 1, 1], [0, 1, 2, 3]) == 0.0
    assert math.copysign(1.0, cluster_entropy([0], [0])) == 1.0


def test_entropy_of_one_cluster_is_that_of_the_classes():
    # Four equally frequent classes in one cluster: log2(4) = 2 bits.
    assert cluster_entropy([0, 1, 2, 3] * 5, np.zeros(20)) == 2.0


@pytest.mark.parametrize("n_clusters", [1, 3, 40])
def test_entropy_equals_slow_loop(rng, n_clusters):
    true, pred = rng.integers(4, size=60), rng.integers(n_clusters, size=60)
    # A few dozen additions in another order: far below 1e-12.
    assert cluster_entropy(true, pred) == pytest.approx(slow_entropy(true, pred), rel=1e-12)


def test_entropy_of_many_clusters_needs_no_dense_table():
    # 200,000 classes in as many clusters would be a table of 320 GB.
    rows = np.arange(200_000)
    assert cluster_entropy(rows, rows) == 0.0


def test_entropy_falls_when_a_cluster_is_split(rng):
    true, pred = rng.integers(3, size=50), rng.integers(4, size=50)
    split = pred + 4 * rng.integers(2, size=50)
    assert cluster_entropy(true, split) < cluster_entropy(true, pred)


# aligned_accuracy ------------------------------------------------------------------------------


def test_accuracy_worked_by_hand():
    # Contingency (classes a, b, c by clusters 0, 1): a (1, 2), b (2, 0), c (0, 1). The greedy
    # choice of the largest cell is fine here: a with 1 and b with 0 give 2 + 2 of 6 rows.
    assert aligned_accuracy(list("aaabbc"), [1, 1, 0, 0, 0, 1]) == pytest.approx(4 / 6)


def test_accuracy_is_better_than_greedy():
    # Contingency (3, 2 / 2, 0): the largest cell first gives 3 + 0, the best matching 2 + 2.
    true, pred = [0] * 5 + [1] * 2, [0, 0, 0, 1, 1, 0, 0]
    assert aligned_accuracy(true, pred) == pytest.approx(4 / 7)


def test_accuracy_of_unmatched_clusters_counts_as_wrong():
    # Four clusters of one row each, two classes: two rows find a partner.
    assert aligned_accuracy([0, 0, 1, 1], [0, 1, 2, 3]) == 0.5
    # One cluster, four classes: one class of one row finds a partner.
    assert aligned_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(3, 3), (4, 2), (2, 5)])
def test_accuracy_equals_exhaustive_matching(rng, n_classes, n_clusters):
    for _ in range(5):
        true = rng.integers(n_classes, size=25).tolist()
        pred = rng.integers(n_clusters, size=25).tolist()
        assert aligned_accuracy(true, pred) == pytest.approx(slow_accuracy(true, pred))


def test_accuracy_is_symmetric(rng):
    true, pred = rng.integers(3, size=40), rng.integers(5, size=40)
    assert aligned_accuracy(true, pred) == aligned_accuracy(pred, true)


# laws of both ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [cluster_entropy, aligned_accuracy])
def test_names_and_order_do_not_matter(rng, metric):
    true, pred = rng.integers(3, size=40), rng.integers(4, size=40)
    expected = metric(true, pred)
    names = np.array(["theory", "agents", "learning"])
    order = rng.permutation(40)
    # Renaming changes the order of the sums, not more.
    assert metric(names[true], pred) == pytest.approx(expected, rel=1e-14)
    assert metric(names.astype(object)[true], pred) == pytest.approx(expected, rel=1e-14)
    assert metric(true, rng.permutation(4)[pred]) == pytest.approx(expected, rel=1e-14)
    assert metric(true[order], pred[order]) == expected


@pytest.mark.parametrize("metric", [cluster_entropy, aligned_accuracy])
@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([0, 1], [0, 1, 1], "labels_true has 2 rows and labels_pred has 3; give one label"),
        ([], [], r"labels_true has shape \(0,\); give one label"),
        ([0, 1], [[0, 1]], r"labels_pred has shape \(1, 2\); give one label"),
        ([0.0, np.nan], [0, 1], "labels_true is NaN in row 1; leave unlabelled rows out"),
        (np.array([1.0, np.nan], dtype=object), [0, 1], "labels_true is NaN in row 1"),
        ([0, 1], np.array(["a", None]), "labels_pred mixes types that cannot be compared"),
    ],
)
def test_bad_labels(metric, true, pred, message):
    with pytest.raises(ValueError, match=message):
        metric(true, pred)


# agreement_rate --------------------------------------------------------------------------------


def test_agreement_of_two_views_worked_by_hand():
    # Equation (16): the views agree on 2 of 4 rows.
    assert agreement_rate([[0, 0], [1, 1], [2, 1], [0, 2]]) == 0.5


def test_agreement_of_three_views_worked_by_hand():
    # Row 1: pairs (0,0), (0,1), (0,1): 1/3. Row 2: all three agree: 1. Row 3: one pair of
    # non-empty views, which differs: 0. Row 4: one non-empty view, left out. (1/3 + 1 + 0) / 3.
    labels = [[0, 0, 1], [2, 2, 2], [-1, 0, 1], [-1, -1, 1]]
    assert agreement_rate(labels) == pytest.approx(4 / 9, rel=1e-15)


def test_agreement_without_pairs_is_one():
    assert agreement_rate([[0, -1], [-1, 1], [-1, -1]]) == 1.0
    assert agreement_rate([[0], [1]]) == 1.0
    assert agreement_rate(np.zeros((0, 2), dtype=int)) == 1.0


@pytest.mark.parametrize("n_views", [1, 2, 3, 5])
def test_agreement_equals_slow_loop_and_ignores_order(rng, n_views):
    labels = rng.integers(-1, 3, size=(50, n_views))
    rate = agreement_rate(labels)
    assert rate == pytest.approx(slow_agreement(labels), rel=1e-14)
    assert agreement_rate(labels[:, ::-1]) == rate
    assert agreement_rate(rng.permutation(labels)) == pytest.approx(rate, rel=1e-14)
    renamed = np.append(rng.permutation(3), -1)[labels]
    assert agreement_rate(renamed) == rate


def test_agreement_takes_any_integers():
    labels = np.array([[0, 0], [1, 2]])
    for dtype in (np.uint8, np.int16, np.int64):
        assert agreement_rate(labels.astype(dtype)) == 0.5


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 1], r"view_labels has shape \(3,\); give one row"),
        ([[0.0, 1.0]], "view_labels has dtype float64; give component numbers as integers"),
        ([[0, 1], [0, -2]], "view_labels is -2 in row 1 of view 1; give a component number"),
    ],
)
def test_bad_view_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        agreement_rate(labels)


# dissent ---------------------------------------------------------------------------------------


def posteriors_and_empty(rng, n=30, s=3, k=4):
    return rng.dirichlet(np.full(k, 0.3), size=(n, s)), rng.random((n, s)) < 0.3


def test_dissent_of_two_views_worked_by_hand():
    # p = (3/4, 1/4), q = (1/4, 3/4): KL(p, q) = 3/4 log 3 - 1/4 log 3 = 1/2 log 3, and KL(q, p)
    # is the same. s - 1 = 1, so a row adds log 3, and two such rows add 2 log 3.
    row = [[0.75, 0.25], [0.25, 0.75]]
    assert dissent([row, row]) == pytest.approx(2 * math.log(3), rel=1e-15)


def test_dissent_of_three_views_worked_by_hand():
    # Views p, q, p with p, q as above: of the six ordered pairs four are (p, q) or (q, p), each
    # 1/2 log 3, and two are zero. s - 1 = 2: 4 * 1/2 log 3 / 2 = log 3.
    p, q = [0.75, 0.25], [0.25, 0.75]
    assert dissent([[p, q, p]]) == pytest.approx(math.log(3), rel=1e-15)
    # With the third view empty it is the case of two views: 2 * 1/2 log 3 / 1.
    assert dissent([[p, q, p]], [[False, False, True]]) == pytest.approx(math.log(3), rel=1e-15)
    # With the second view empty the others agree.
    assert dissent([[p, q, p]], [[False, True, False]]) == 0.0


def test_dissent_is_finite_for_contradictions():
    # (1, 0) against (0, 1): each direction is 1 * (log 1 - log tiny), twice in all.
    value = dissent([[[1.0, 0.0], [0.0, 1.0]]])
    assert value == pytest.approx(-2 * math.log(TINY), rel=1e-15)
    # The floor does not depend on the precision of the input.
    assert dissent(np.array([[[1, 0], [0, 1]]], dtype=np.float32)) == value


def test_dissent_equals_slow_loop(rng):
    posteriors, empty = posteriors_and_empty(rng)
    expected = slow_dissent(posteriors, empty)
    assert dissent(posteriors, empty) == pytest.approx(expected, rel=1e-12)
    nowhere = np.zeros_like(empty)
    assert dissent(posteriors) == pytest.approx(slow_dissent(posteriors, nowhere), rel=1e-12)
    assert dissent(posteriors) == dissent(posteriors, nowhere)


def test_dissent_is_symmetric_and_adds_over_rows(rng):
    posteriors, empty = posteriors_and_empty(rng)
    value = dissent(posteriors, empty)
    order = rng.permutation(4)
    assert dissent(posteriors[:, ::-1], empty[:, ::-1]) == pytest.approx(value, rel=1e-13)
    assert dissent(posteriors[:, :, order], empty) == pytest.approx(value, rel=1e-13)
    parts = dissent(posteriors[:10], empty[:10]) + dissent(posteriors[10:], empty[10:])
    assert parts == pytest.approx(value, rel=1e-13)


def test_dissent_of_agreeing_views_is_exactly_zero(rng):
    posteriors = np.repeat(rng.dirichlet(np.full(5, 0.01), size=(20, 1)), 3, axis=1)
    assert dissent(posteriors) == 0.0
    assert dissent(posteriors[:, :1]) == 0.0
    assert dissent(posteriors[:0]) == 0.0


def test_dissent_ignores_what_stands_in_empty_views(rng):
    posteriors, empty = posteriors_and_empty(rng)
    expected = dissent(posteriors, empty)
    posteriors[empty] = np.nan
    assert dissent(posteriors, empty) == expected
    assert dissent(posteriors, np.ones_like(empty)) == 0.0


@pytest.mark.parametrize(
    ("posteriors", "empty", "message"),
    [
        ([[0.5, 0.5]], None, r"posteriors has shape \(1, 2\); give \(rows, views, components\)"),
        (np.ones((2, 2, 0)), None, r"posteriors has shape \(2, 2, 0\)"),
        ([[[0.5, 0.5], [0.9, 0.9]]], None, "row 0 of view 1 are not probabilities"),
        ([[[1.5, -0.5], [1.0, 0.0]]], None, "row 0 of view 0 are not probabilities"),
        ([[[np.nan, 1.0], [1.0, 0.0]]], None, "row 0 of view 0 are not probabilities"),
        ([[[0.5, 0.5]]], [[False, True]], r"empty has shape \(1, 2\) and dtype bool"),
        ([[[0.5, 0.5]]], [[0]], r"dtype int64; give a bool for each row and view"),
    ],
)
def test_bad_posteriors(posteriors, empty, message):
    with pytest.raises(ValueError, match=message):
        dissent(posteriors, empty)


# expected_calibration_error --------------------------------------------------------------------


def slow_calibration(truth, proba, n_bins):
    """Equation (3) of Guo et al. 2017, bin by bin: (0, 1/m], (1/m, 2/m], ..."""
    total = 0.0
    for b in range(n_bins):
        right, confidence = [], []
        for label, row in zip(truth, proba.tolist(), strict=True):
            if b / n_bins < max(row) <= (b + 1) / n_bins:
                confidence.append(max(row))
                right.append(row.index(max(row)) == label)
        if right:
            gap = abs(sum(right) / len(right) - sum(confidence) / len(confidence))
            total += len(right) / len(truth) * gap
    return total


def test_calibration_worked_by_hand():
    # Bins of a quarter. Confidence 0.6, 0.7 (both right): gap 1 - 0.65 = 0.35, two of five rows.
    # Confidence 0.8, 0.9, 1.0 (one right): gap 0.9 - 1/3, three of five rows.
    proba = [[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.1, 0.9], [1.0, 0.0]]
    value = expected_calibration_error([0, 1, 1, 0, 0], proba, n_bins=4)
    assert value == pytest.approx(0.4 * 0.35 + 0.6 * (0.9 - 1 / 3), rel=1e-14)
    # In one bin errors of both signs cancel: mean confidence 0.8, three of five right.
    value = expected_calibration_error([0, 1, 1, 0, 0], proba, n_bins=1)
    assert value == pytest.approx(0.2, rel=1e-14)


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [1, 2, 3], [10, 20, 30], [-1.5, 0.0, 2.0], np.array([7, 8, 9])]
)
def test_labels_without_classes_are_taken_for_the_columns_in_their_order(rng, names):
    codes = np.append(rng.integers(3, size=60), [0, 1, 2])
    proba = rng.dirichlet(np.full(3, 0.3), size=63)
    found = reliability_curve(np.asarray(names)[codes], proba)
    for key, value in reliability_curve(codes, proba).items():
        np.testing.assert_array_equal(found[key], value)
    as_objects = np.asarray(names).astype(object)[codes]
    error = expected_calibration_error(codes, proba)
    assert expected_calibration_error(as_objects, proba) == error


def test_labels_that_cannot_be_the_columns_are_no_accuracy_of_0():
    proba = np.full((2, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"2 different labels for 3 columns.*classes=model\.cla"):
        expected_calibration_error(["a", "b"], proba)
    with pytest.raises(ValueError, match=r"such as 1, classes such as '0'; give both in the same"):
        reliability_curve([1, 2], proba, classes=["0", "1", "2"])
    # A class that the classifier does not know is wrong, beside others that it knows.
    curve = reliability_curve(["a", "z"], proba, classes=["a", "b", "c"], n_bins=1)
    assert curve.accuracy.tolist() == [0.5]


def test_calibration_of_the_edges():
    # 0.5 is the end of the first of two bins, and what is above it begins the second.
    proba = [[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]]
    apart = expected_calibration_error([1, 0], proba, n_bins=2)
    assert apart == pytest.approx(0.5 * 0.5 + 0.5 * 0.5)
    assert expected_calibration_error([1, 0], proba, n_bins=1) == pytest.approx(0.0, abs=1e-9)
    assert expected_calibration_error([0, 1], np.eye(2)) == 0.0
    assert expected_calibration_error([1, 0], np.eye(2)) == 1.0
    assert expected_calibration_error([0, 0], np.ones((2, 1))) == 0.0
    assert expected_calibration_error([0], [[1.0 + 1e-12, 0.0]]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n_bins", [1, 2, 7, 15, 100])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_calibration_equals_slow_loop(rng, n_bins, n_classes):
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=200)
    truth = np.array([rng.choice(n_classes, p=p) for p in proba])
    expected = slow_calibration(truth.tolist(), proba, n_bins)
    assert 0 < expected < 0.5
    value = expected_calibration_error(truth, proba, n_bins=n_bins)
    assert value == pytest.approx(expected, rel=1e-12)
    if n_bins == 15:
        assert expected_calibration_error(truth, proba) == value
    order = rng.permutation(200)
    shuffled = expected_calibration_error(truth[order], proba[order], n_bins=n_bins)
    assert shuffled == pytest.approx(value, rel=1e-12)
    names = np.array(list("edcba"))[:n_classes]
    named = expected_calibration_error(names[truth], proba, classes=names, n_bins=n_bins)
    assert named == value
    columns = rng.permutation(n_classes)
    moved = expected_calibration_error(
        names[truth], proba[:, columns], classes=names[columns], n_bins=n_bins
    )
    assert moved == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("truth", "proba", "options", "message"),
    [
        ([0, 1], [[1.0, 0.0]], {}, r"proba has shape \(1, 2\) for 2 labels"),
        ([], np.ones((0, 2)), {}, "and one label at least"),
        ([0], [0.5], {}, r"proba has shape \(1,\) for 1 labels"),
        ([0], [[0.5, 0.5]], {"classes": ["a"]}, "there are 1 classes for 2 columns"),
    ],
)
def test_bad_calibration(truth, proba, options, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(truth, proba, **options)
