"""Labels of every kind: what they say, what they refuse, and what a fit makes of them."""

import numpy as np
import pandas as pd
import pytest

import coem
from coem import MixtureClassifier, Not
from coem.labels import Knowledge, read_knowledge, read_labels

RNG = np.random.default_rng(3)
N = 30
GROUP = np.arange(N) % 3
X = RNG.poisson(0.5 + 2.0 * (np.arange(6) % 3 == GROUP[:, None])) + np.eye(N, 6, dtype=int)
DOUBLE = {"dtype": np.float64, "max_iter": 8, "tol": 0}


def objects(entries):
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out


# -- Not ------------------------------------------------------------------------------------------


def test_not_is_a_value():
    assert Not("a", "b") == Not("b", "a") != Not("a")
    assert Not("a") != {"a"}
    assert len({Not("a", "b"), Not("b", "a", "a"), Not("c")}) == 2
    assert repr(Not("b", "a")) == "Not('a', 'b')"
    assert coem.Not is Not
    with pytest.raises(ValueError, match=r"Not\(\) needs at least one class"):
        Not()


# -- what is known --------------------------------------------------------------------------------

ENTRIES = ["a", "b", "c", {"a", "c"}, frozenset("bc"), Not("a"), Not("a", "b"), {"b"}, None, ""]
ALLOWED = ["a", "b", "c", "ac", "bc", "bc", "c", "b", "abc", "abc"]
NUMBERS = {"a": 3, "b": 10, "c": 20}


def numbered(entry):
    """Return an entry with numbers for its letters."""
    if isinstance(entry, Not):
        return Not(*(NUMBERS[label] for label in entry.forbidden))
    if isinstance(entry, set | frozenset):
        return type(entry)(NUMBERS[label] for label in entry)
    return NUMBERS.get(entry, -1)


AS_NUMBERS = [numbered(entry) for entry in ENTRIES]
KINDS = {
    "list": ENTRIES,
    "tuple": tuple(ENTRIES),
    "array": objects(ENTRIES),
    "series": pd.Series(ENTRIES),
    "series with an index": pd.Series(ENTRIES, index=range(20, 10, -1)),
    "NumPy's text": [np.str_(e) if isinstance(e, str) and e else e for e in ENTRIES],
    "numbers": AS_NUMBERS,
    "array of numbers": objects(AS_NUMBERS),
    "floats": [float(e) if isinstance(e, int) else e for e in AS_NUMBERS],
    "NumPy's numbers": [np.int64(e) if isinstance(e, int) else e for e in AS_NUMBERS],
}


@pytest.mark.parametrize("kind", KINDS)
def test_sets_and_labels_side_by_side(kind):
    known = read_knowledge(KINDS[kind], 10)
    text = isinstance(KINDS[kind], pd.Series) or kind in ("list", "tuple", "array", "NumPy's text")
    assert known.classes.tolist() == (["a", "b", "c"] if text else [3, 10, 20])
    assert known.classes.dtype.kind == ("U" if text else "f" if kind == "floats" else "i")
    np.testing.assert_array_equal(known.allowed, [[c in one for c in "abc"] for one in ALLOWED])
    np.testing.assert_array_equal(known.exact, [len(one) == 1 for one in ALLOWED])


def test_bools_are_labels():
    known = read_knowledge([True, False, None, {True}, Not(True)], 5)
    assert known.classes.tolist() == [False, True]
    np.testing.assert_array_equal(known.exact, [True, True, False, True, True])
    np.testing.assert_array_equal(known.allowed.argmax(axis=1), [1, 0, 0, 1, 0])


def test_a_class_known_from_sets_alone():
    known = read_knowledge(["a", {"b", "c"}, {"a", "c"}, None], 4)
    assert known.classes.tolist() == ["a", "b", "c"]
    alone = read_knowledge([{"a", "b"}, {"b", "c"}, {"a", "c"}], 3)
    assert alone.classes.tolist() == ["a", "b", "c"]
    assert not alone.exact.any()
    long = read_knowledge(["a", {"a", "longer"}], 2)  # the text type must have room for it
    assert long.classes.tolist() == ["a", "longer"]


def test_certainty_and_shares():
    # Of M = 3 classes, m are allowed: (3 - m) / 2, shared by the m.
    known = read_knowledge(["a", {"a", "b"}, None, Not("b", "c"), "c", "b"], 6)
    np.testing.assert_array_equal(known.certainty, [1, 0.5, 0, 1, 1, 1])
    expected = [[1, 0, 0], [0.25, 0.25, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal(known.shares(), expected)
    weight = np.array([2.0, 4.0, 7.0, 0.0, 0.5, 1.0])
    np.testing.assert_allclose(known.shares(weight), np.array(expected) * weight[:, None])


def test_certainty_of_one_class():
    known = read_knowledge(["a", None, {"a"}], 3)
    np.testing.assert_array_equal(known.certainty, [1, 0, 1])
    np.testing.assert_array_equal(known.shares()[:, 0], [1, 0, 1])


def test_a_class_without_shares_is_named():
    # Every class is allowed in the set: it says nothing, and "c" is known from it alone.
    known = read_knowledge(["a", "b", {"a", "b", "c"}], 3)
    with pytest.raises(ValueError, match="class 'c' has no labelled row: label at least one"):
        known.shares()
    known = read_knowledge(["a", "b"], 2)
    with pytest.raises(ValueError, match="class 'b' has no labelled row with a sample_weight"):
        known.shares(np.array([1.0, 0.0]))


def test_given_classes_are_kept():
    known = read_knowledge(["b", {"a", "b"}], 2, np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(known.allowed, [[False, True, False], [True, True, False]])
    assert isinstance(known, Knowledge)


# -- what is refused ------------------------------------------------------------------------------

REFUSED = {
    "empty set": (["a", "b", set()], r"y, row 2: set\(\) must contain only classes"),
    "set with None": (["a", {"b", None}], r"y, row 1: .* must contain only classes.*use None"),
    "set with NaN": (["a", "b", {"a", float("nan")}], r"y, row 2: .* must contain only classes"),
    "set with an empty name": (["a", {""}], r"y, row 1: \{''\} must contain only classes"),
    "set with -1": ([1, 2, {1, -1}], r"y, row 2: .* must contain only classes"),
    "Not(None)": (["a", Not(None)], r"y, row 1: Not\(None\) must contain only classes"),
    "Not of all": (["a", "b", Not("a", "b")], r"y, row 2: Not\('a', 'b'\) excludes all classes"),
    "Not of the only class": (["a", Not("a")], r"y, row 1: Not\('a'\) excludes all classes"),
    "Not of a stranger": (["a", "b", Not("z")], r"y, row 2: label 'z' is not one of the classes"),
    "Not of a number": (["a", "b", Not(3)], r"y, row 2: label 3 is not one of the classes"),
    "text and numbers": (["a", "b", 3], "mixes text and numbers"),
    "text and numbers, in an array": (objects(["a", "b", 3]), "mixes text and numbers"),
    "text and numbers, marked": (["a", 3, None], "mixes text and numbers"),
    "text, and a set of numbers": (["a", "b", {1, 2}], "mixes text and numbers"),
    "numbers, and a set of text": ([1, 2, {"a"}], "mixes text and numbers"),
    "a set of both": (["a", "b", {"a", 1}], "mixes text and numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_labels_that_make_no_sense(case):
    y, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        read_knowledge(y, len(y))
    with pytest.raises(ValueError, match=words):
        MixtureClassifier().fit(X[: len(y)], y)


def test_labels_of_the_wrong_length():
    y = [*ENTRIES, "a"]
    with pytest.raises(ValueError, match="y has 11 labels for 10 rows"):
        read_knowledge(y, 10)
    with pytest.raises(ValueError, match="y has 11 labels for 30 rows"):
        MixtureClassifier().fit(X, y)
    model = MixtureClassifier().fit(X, np.array(list("abc"))[GROUP])
    for rows in (X[:10], X[:12]):
        for method in (model.score, model.partial_fit, model.leave_one_out):
            with pytest.raises(ValueError, match=f"y has 11 labels for {len(rows)} rows"):
                method(rows, y)


def test_a_label_that_was_never_seen():
    model = MixtureClassifier().fit(X, np.array(list("abc"))[GROUP])
    for y in (["z", *"abcabcabc"], [{"z", "a"}, *"abcabcabc"], [Not("z"), *"abcabcabc"]):
        with pytest.raises(ValueError, match=r"label 'z' is not one of the classes \['a', 'b'"):
            model.partial_fit(X[:10], y)


def test_a_row_of_a_class_that_was_never_seen_is_not_right():
    model = MixtureClassifier().fit(X, np.array(list("abc"))[GROUP])
    right = model.predict(X[:10])
    assert model.score(X[:10], right) == 1.0
    assert model.score(X[:10], ["z", *right[1:]]) == pytest.approx(0.9)
    assert model.score(X[:10], [{"z", right[0]}, *right[1:]]) == 1.0
    assert model.score(X[:10], [Not("z"), *right[1:]]) == 1.0


def test_nothing_known_at_all():
    for y in ([None, -1, None], [{"a", "b"}, {"a", "b"}, None]):
        with pytest.raises(ValueError, match="y has no labelled row; label some"):
            MixtureClassifier().fit(X[:3], y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        read_labels(None, 3)


# -- what a fit makes of them ---------------------------------------------------------------------


def partly(n_known=12):
    """Return names with nothing but None behind the first rows."""
    y = np.full(N, None, dtype=object)
    y[:n_known] = np.array(list("abc"))[GROUP[:n_known]]
    return y


def same(one, other, rtol=1e-12):
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_allclose(one.theta_["view0"], other.theta_["view0"], rtol=rtol)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=rtol)
    assert one.objective_ == pytest.approx(other.objective_, rel=rtol)


@pytest.mark.parametrize("lam", [1.0, 0.4, 0.0])
def test_of_two_classes_not_one_is_the_other(lam):
    y = objects([None if label == "c" else label for label in partly()])
    swap = {"a": Not("b"), "b": Not("a")}
    other = objects([swap[e] if e is not None and i > 1 else e for i, e in enumerate(y)])
    sets = objects([{e} if e is not None and i > 1 else e for i, e in enumerate(y)])
    models = [MixtureClassifier(unlabeled_weight=lam, **DOUBLE).fit(X, e) for e in (y, other, sets)]
    for model in models[1:]:
        same(model, models[0], rtol=0)
        np.testing.assert_array_equal(model.leave_one_out(X, other), models[0].leave_one_out(X, y))


@pytest.mark.parametrize("lam", [1.0, 0.4, 0.0])
def test_a_set_of_all_classes_is_no_label(lam):
    y, other = partly(), partly()
    for i in range(12, 20):
        other[i] = {"a", "b", "c"}
    models = [MixtureClassifier(unlabeled_weight=lam, **DOUBLE).fit(X, e) for e in (y, other)]
    same(*models, rtol=0)


def test_a_set_is_a_constraint_in_between():
    """Rows of "a" or "b" say so in the E step: their words come from no other class."""
    y = partly(6)
    rows = np.flatnonzero(GROUP == 2)[2:]
    y[rows] = [{"a", "b"}] * len(rows)  # and they look like "c"
    free, bound = MixtureClassifier(**DOUBLE).fit(X, partly(6)), MixtureClassifier(**DOUBLE)
    bound.fit(X, y)
    assert bound.weights_[2] < 0.2 < free.weights_[2]
    # The mass of "c": two labelled rows, what others ask for, and nothing of the forbidden ones.
    proba = bound.predict_proba(X)
    others = np.setdiff1d(np.arange(6, N), rows)
    again = MixtureClassifier(dtype=np.float64, max_iter=9, tol=0).fit(X, y)
    mass = 2 + proba[others, 2].sum()
    assert again.weights_[2] == pytest.approx((1 + mass) / (3 + N), rel=1e-9)


@pytest.mark.parametrize("lam", [1.0, 0.3])
def test_sets_weigh_in_between(lam):
    """With M = 3 classes two allowed ones are half way between a label and none."""
    y = partly(9)
    y[9] = Not("a")
    weight = np.ones(N)
    weight[9:] = lam
    weight[9] = lam + (1 - lam) / 2
    # The start takes the sample weight and the certainty alone, so begin both from one model.
    start = MixtureClassifier(dtype=np.float64, max_iter=1, tol=0).fit(X, y)
    one = MixtureClassifier(unlabeled_weight=lam, init=start, **DOUBLE).fit(X, y)
    two = MixtureClassifier(init=start, **DOUBLE).fit(X, y, sample_weight=weight)
    same(one, two)


def loose():
    y = partly()
    y[3], y[4], y[5], y[12], y[13] = {"a", "b"}, Not("c"), {"c"}, Not("a"), frozenset("bc")
    return y


@pytest.mark.parametrize("lam", [1.0, 0.3])
@pytest.mark.parametrize("components", [1, 2])
def test_laws_of_rows_with_sets(lam, components):
    y, weight = loose(), np.where(np.arange(N) % 4 == 3, 2.0, 1.0)
    weight[[4, 14, 20]] = 0.0
    options = {"unlabeled_weight": lam, "components_per_class": components, "random_state": 0}
    model = MixtureClassifier(**options, **DOUBLE).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(N), weight.astype(int))
    same(MixtureClassifier(**options, **DOUBLE).fit(X[rows], y[rows]), model, rtol=1e-9)
    order = np.random.default_rng(0).permutation(N)
    other = MixtureClassifier(**options, **DOUBLE)
    other.fit(X[order], y[order], sample_weight=weight[order])
    same(other, model, rtol=1e-9)


def test_score_with_sets():
    model = MixtureClassifier().fit(X, np.array(list("abc"))[GROUP])
    found = model.predict(X[:6])
    others = [next(c for c in "abc" if c != label) for label in found]
    third = [next(c for c in "abc" if c not in (a, b)) for a, b in zip(found, others, strict=True)]
    y = [found[0], others[1], {found[2], others[2]}, {others[3], third[3]}, Not(found[4]), None]
    assert model.score(X[:6], y) == 2 / 5
    weight = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert model.score(X[:6], y, sample_weight=weight) == 5 / 31
    assert model.score(X[:6], [*y[:5], {"a", "b", "c"}], sample_weight=weight) == 5 / 31
    with pytest.raises(ValueError, match="nothing to score"):
        model.score(X[:2], [None, {"a", "b", "c"}])


@pytest.mark.parametrize("lam", [1.0, 0.3])
def test_batches_with_sets(lam):
    """Not(b) of two classes is the label a, in a later batch too; a set of all is no label."""
    y = objects([None if label == "c" else label for label in partly()])
    swap = {"a": Not("b"), "b": {"b"}, None: {"a", "b"}}
    models = []
    for batch in (y, objects([swap[e] for e in y])):
        model = MixtureClassifier(unlabeled_weight=lam, dtype=np.float64).fit(X, y)
        weight = np.linspace(0.5, 1.5, N)
        models.append(model.partial_fit(X, batch, sample_weight=weight))
    np.testing.assert_array_equal(models[0].theta_["view0"], models[1].theta_["view0"])
    np.testing.assert_array_equal(models[0].weights_, models[1].weights_)
    first = MixtureClassifier().partial_fit(X, loose(), classes=["a", "b", "c"])
    assert first.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="class 'd' has no labelled row"):
        MixtureClassifier().partial_fit(X, loose(), classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="label 'c' is not one of the classes"):
        MixtureClassifier().partial_fit(X, loose(), classes=["a", "b"])


def test_a_class_from_sets_alone_is_learnt():
    y = np.array(list("abc"))[GROUP].astype(object)
    y[GROUP == 2] = [{"b", "c"} if i % 2 else {"a", "c"} for i in range((GROUP == 2).sum())]
    model = MixtureClassifier().fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert np.mean(model.predict(X) == np.array(list("abc"))[GROUP]) > 0.9
    assert model.score(X, y) > 0.9
    assert len(model.leave_one_out(X, y)) == (GROUP != 2).sum()


@pytest.mark.parametrize("entry", [["a", "b"], ("a", "b"), {"a": 1}, np.array(["a", "b"])])
def test_a_list_is_no_label(entry):
    y = np.full(30, None, dtype=object)
    y[:3], y[5] = list("abc"), entry
    with pytest.raises(ValueError, match=r"y, row 5: .* is not a label; .*use a set"):
        MixtureClassifier().fit(X, y)


def test_labels_say_what_they_said():
    y = np.array(["a", {"b", "c"}, Not("a", "b"), None, "b", {"a"}], dtype=object)
    known = read_knowledge(y, None)
    assert known.labels().tolist() == ["a", {"b", "c"}, "c", None, "b", "a"]
    np.testing.assert_array_equal(read_knowledge(known.labels(), None).allowed, known.allowed)
