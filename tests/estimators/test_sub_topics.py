"""Several components a class: how many, how they start, what the classes make of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.estimators._subtopics import candidates
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.initialise import prime_apart
from coem.labels import read_knowledge
from coem.selection import LabeledKFold

N = 64
TOPIC = np.arange(N) % 4
Y = np.array(["a", "a", "b", "b"])[TOPIC]
# Class "a" has words 0 and 1 or 2 and 3, class "b" 0 and 2 or 1 and 3: on average they are equal.
PAIRS = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
FIXED = {"random_state": 0, "dtype": np.float64}


def counts(seed=0, length=12):
    rng = np.random.default_rng(seed)
    words = 0.05 + PAIRS[TOPIC]
    words /= words.sum(axis=1, keepdims=True)
    return np.array([rng.multinomial(length, p) for p in words], dtype=float)


def hidden(n_known=24):
    y = Y.astype(object)
    y[n_known:] = None
    return y


X, PARTLY = counts(), hidden()
VIEWS = Views(one=X, two=counts(1))


# -- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (1, [0, 1]),
        (3, [0, 0, 0, 1, 1, 1]),
        (np.int64(2), [0, 0, 1, 1]),
        ({"b": 3}, [0, 1, 1, 1]),
        ({"a": 2, "b": 1}, [0, 0, 1]),
        ({}, [0, 1]),
    ],
)
def test_numbers(spec, expected):
    model = MixtureClassifier(components_per_class=spec, **FIXED).fit(X, PARTLY)
    assert model.component_classes_.tolist() == expected
    assert len(model.weights_) == len(expected) == model.component_proba(X).shape[1]
    assert model.theta_["view0"].shape == (len(expected), 4)
    assert model.predict_proba(X).shape == (N, 2)


def test_sub_topics_tell_what_one_component_cannot():
    one, two = (MixtureClassifier(components_per_class=k, n_init=5, **FIXED) for k in (1, 2))
    assert one.fit(X, PARTLY).score(X, Y) < 0.8
    assert two.fit(X, PARTLY).score(X, Y) > 0.97


@pytest.mark.parametrize("assign", ["joint", "average"])
@pytest.mark.parametrize("weights", ["global", "per_view", "uniform"])
def test_classes_are_sums_of_their_components(assign, weights):
    data = Views({name: np.vstack([matrix, np.zeros(4)]) for name, matrix in VIEWS.items()})
    y, options = [*PARTLY, None], {"assign": assign, "weights": weights, "max_iter": 5, "tol": 0}
    model = MixtureClassifier(components_per_class={"a": 2, "b": 3}, **options, **FIXED)
    proba = model.fit(data, y).predict_proba(data)
    parts = model.component_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(proba[:, 0], parts[:, :2].sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(proba[:, 1], parts[:, 2:].sum(axis=1), rtol=1e-9)
    assert model.weights_.sum() == pytest.approx(1.0, rel=1e-12)
    # Of a row without anything only the weights of the classes are known.
    np.testing.assert_allclose(
        proba[-1], [model.weights_[:2].sum(), model.weights_[2:].sum()], rtol=1e-12
    )
    if weights == "uniform":
        np.testing.assert_allclose(model.weights_, [1 / 4] * 2 + [1 / 6] * 3, rtol=1e-12)
    np.testing.assert_array_equal(model.labels_, model.predict(data))
    assert model.predict(data).dtype.kind == "U"


# -- which number serves best ---------------------------------------------------------------------


def test_candidates_of_cv():
    """1, 2, 3, 5, 10, ... as far as a class has that many labelled rows, all alike or one alone."""
    known = read_knowledge(["a"] * 3 + ["b"] * 11 + [{"a", "b"}, None] * 20, 54)
    expected = [1, 2, {"a": 2}, {"b": 2}, 3, {"a": 3}, {"b": 3}, {"b": 5}, {"b": 10}]
    assert candidates("cv", known) == expected
    one = read_knowledge(["a"] * 2 + [None], 3)
    assert candidates("cv", one) == [1, {"a": 2}]
    assert candidates(({"a": 2}, 1), known) == [{"a": 2}, 1]


@pytest.mark.parametrize("sample_weight", [None, np.linspace(0.5, 1.5, N)])
@pytest.mark.parametrize(
    "data", [X, VIEWS, dict(VIEWS.items()), list(dict(VIEWS.items()).values())]
)
def test_leave_one_out_chooses(data, sample_weight):
    tries = [1, {"a": 2}, 2]
    model = MixtureClassifier(components_per_class=tries, cv="loo", n_init=3, **FIXED)
    model.fit(data, PARTLY, sample_weight=sample_weight)
    assert [record.components_per_class for record in model.cv_results_] == tries
    assert [record.n_components for record in model.cv_results_] == [2, 3, 4]
    truth = (Y[:24] == "b").astype(int)
    for record in model.cv_results_:
        one = clone(model).set_params(components_per_class=record.components_per_class)
        one.fit(data, PARTLY, sample_weight=sample_weight)
        proba = one.leave_one_out(data, PARTLY, sample_weight=sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight)[:24]
        right = proba.argmax(axis=1) == truth
        assert record.score == pytest.approx(np.average(right, weights=weight))
        assert record.objective == one.objective_
    scores = [record.score for record in model.cv_results_]
    assert scores[2] == max(scores) > scores[0]
    assert model.component_classes_.tolist() == [0, 0, 1, 1]
    assert model.components_per_class == tries  # a parameter stays as it was given
    np.testing.assert_array_equal(model.predict_proba(data), one.predict_proba(data))
    assert model.cv_results_.to_frame().shape == (3, 4)


@pytest.mark.slow
def test_cv_chooses():
    model = MixtureClassifier(components_per_class="cv", n_init=3, **FIXED).fit(X, PARTLY)
    tried = [record.components_per_class for record in model.cv_results_]
    assert tried == candidates("cv", read_knowledge(PARTLY, N))
    best = max(record.score for record in model.cv_results_)
    assert best > 0.9 > model.cv_results_[0].score
    fewest = min(r.n_components for r in model.cv_results_ if r.score == best)
    assert len(model.weights_) == fewest


def test_of_equals_the_fewest_are_taken():
    easy = np.repeat(np.eye(2) * 9, 8, axis=0) + 1
    y = np.repeat(["a", "b"], 8)
    for tries in ([3, 2, 1], [{"a": 2}, 1, 2], [2, {"b": 2}]):
        model = MixtureClassifier(components_per_class=tries, **FIXED).fit(easy, y)
        assert {record.score for record in model.cv_results_} == {1.0}
        least = min(record.n_components for record in model.cv_results_)
        assert len(model.weights_) == least


def by_folds(model, splits):
    """Return the accuracy on the exactly labelled rows that the folds leave out."""
    right = []
    for train, test in splits:
        test = [i for i in test if PARTLY[i] is not None]
        one = clone(model).set_params(components_per_class=2).fit(X[train], PARTLY[train])
        right += (one.predict(X[test]) == Y[test]).tolist()
    return np.mean(right), len(right)


def test_folds_choose():
    everyone = np.arange(N)
    splits = [(np.setdiff1d(everyone, everyone[f::4]), everyone[f::4]) for f in range(4)]
    fold = LabeledKFold(3, random_state=5)
    codes = np.where(PARTLY == None, -1, Y == "b")  # noqa: E711
    for cv, by_hand in ((splits, splits), (fold, list(fold.split(X, codes.astype(int))))):
        model = MixtureClassifier(components_per_class=[1, 2], cv=cv, n_init=2, **FIXED)
        score, n_rows = by_folds(model, by_hand)
        assert n_rows == 24
        model.fit(X, PARTLY)
        assert model.cv_results_[1].score == score
        assert model.component_classes_.tolist() == [0, 0, 1, 1]


@pytest.mark.slow
def test_a_number_of_folds_chooses():
    models = [
        MixtureClassifier(components_per_class=[1, 2], cv=cv, n_init=2, **FIXED).fit(X, PARTLY)
        for cv in (3, 3, 24, 30)
    ]
    scores = [[record.score for record in model.cv_results_] for model in models]
    assert scores[0] == scores[1]
    assert scores[2] == scores[3]  # there are no more folds than rows
    for model in models:
        assert len(model.weights_) == 4
    lone = [*"abc", "a", *[None] * (N - 4)]  # "b" and "c" have one row each, and keep it
    model = MixtureClassifier(components_per_class=[1], cv=5, **FIXED).fit(X, lone)
    assert model.cv_results_[0].score in (0.0, 0.5, 1.0)


def test_a_fold_must_leave_every_class_a_row():
    """It was once scored with the columns of the classes that were left."""
    y = np.array([*"aaabbbccc"], dtype=object)
    splits = [(np.arange(3, 9), np.arange(3))]
    for options in ({"components_per_class": [1, 2]}, {"calibrate": True}):
        model = MixtureClassifier(cv=splits, **options)
        with pytest.raises(ValueError, match="cv, fold 0: class 'a' has no labelled row to train"):
            model.fit(X[:9], y)


# -- restarts -------------------------------------------------------------------------------------


def test_restarts_where_there_is_something_to_start():
    options = {"n_init": 4, "max_iter": 3, "tol": 0, **FIXED}
    assert len(MixtureClassifier(**options).fit(X, PARTLY).runs_) == 1
    model = MixtureClassifier(components_per_class={"b": 2}, **options).fit(X, PARTLY)
    values = [record.objective for record in model.runs_]
    assert len(set(values)) == 4
    assert model.objective_ == max(values)
    given = np.random.default_rng(0).dirichlet(np.ones(4), size=N)
    model = MixtureClassifier(components_per_class=2, init=given, **options).fit(X, PARTLY)
    assert len(model.runs_) == 1


@pytest.mark.slow
@pytest.mark.parametrize("spec", [2, [1, 2]])
@pytest.mark.parametrize("data", [X, VIEWS])
def test_threads_do_not_change_a_bit(spec, data):
    options = {"components_per_class": spec, "n_init": 3, "calibrate": True, "random_state": 1}
    models = [MixtureClassifier(n_jobs=n, **options).fit(data, PARTLY) for n in (1, 2, 4)]
    for model in models[1:]:
        assert [r.objective for r in model.runs_] == [r.objective for r in models[0].runs_]
        np.testing.assert_array_equal(model.predict_proba(data), models[0].predict_proba(data))
        assert model.calibration_ == models[0].calibration_


# -- starts ---------------------------------------------------------------------------------------

FAMILIES = {
    "multinomial": Multinomial(),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(),
    "full": Gaussian("full"),
    "tied": Gaussian("tied"),
    "unit": Gaussian("unit"),
    "vmf": VonMisesFisher("fit"),
}


def rows_for(family):
    """Return the counts as codes, or with noise that leaves no covariance singular."""
    if family == "categorical":
        return np.minimum(X, 3)
    noise = np.random.default_rng(4).normal(size=X.shape)
    return X if family in ("multinomial", "bernoulli") else X + noise


@pytest.mark.parametrize("init", ["random", "rows", "k-means++"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_the_components_of_a_class_start_apart(family, init):
    data = rows_for(family)
    options = {"components_per_class": {"b": 3}, "max_iter": 1, "tol": 0, **FIXED}
    model = MixtureClassifier(family=FAMILIES[family], init=init, **options).fit(data, PARTLY)
    theta = model.theta_["view0"]
    first = theta[0] if isinstance(theta, tuple) else theta  # words, or means
    for i, j in ((1, 2), (1, 3), (2, 3)):
        assert np.abs(first[i] - first[j]).max() > 1e-3
    others = [clone(model).set_params(random_state=s).fit(data, PARTLY) for s in range(1, 6)]
    tables = [np.asarray(m.theta_["view0"][0]) for m in (model, *others)]
    assert any((table != tables[0]).any() for table in tables[1:])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("several", [False, True])
def test_weight_two_is_the_row_twice(family, several):
    """From the start to the end: nothing is drawn for a row."""
    one = rows_for(family)
    weight = np.where(np.arange(N) % 3 == 0, 2, 1)
    weight[[1, 40]] = 0
    rows = np.repeat(np.arange(N), weight)
    options = {"components_per_class": 2, "n_init": 2, "max_iter": 4, "tol": 0, **FIXED}
    model = MixtureClassifier(family=FAMILIES[family], unlabeled_weight=0.5, **options)
    data = [one, one[:, ::-1].copy()] if several else [one]
    light = clone(model).fit(data, PARTLY, sample_weight=weight)
    twice = clone(model).fit([matrix[rows] for matrix in data], PARTLY[rows])
    found, expected = (np.log(m.predict_proba(data) + 1e-300) for m in (light, twice))
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(light.weights_, twice.weights_, rtol=1e-9)
    assert light.objective_ == pytest.approx(twice.objective_, rel=1e-9)


@pytest.mark.parametrize("init", ["random", "rows", "k-means++"])
def test_the_weights_of_a_start(init):
    """Classes have theirs from the labelled rows (Eq. 3.6), whatever components they have."""
    rows = np.array([[4.0, 1, 0, 0]] * 7 + [[0.0, 0, 3, 3]] * 2)  # equal rows in either class
    y = ["a"] * 7 + ["b"] * 2
    model = MixtureClassifier(components_per_class={"a": 3}, tol=1e-2, **FIXED).fit(rows, y)
    shares = read_knowledge(y, 9).shares()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        start = prime_apart(model._mixture(), model._part(rows), shares, init)(rng)
        classes = [start.weights[:3].sum(), start.weights[3]]
        np.testing.assert_allclose(classes, [(1 + 7) / (2 + 9), (1 + 2) / (2 + 9)], rtol=1e-12)
        if init != "random":  # every component has its seed, though all rows are equally near
            parts = np.sort(start.weights[:3]) / classes[0]
            np.testing.assert_allclose(parts, [2 / 10, 2 / 10, 6 / 10], rtol=1e-12)


def test_a_class_of_one_component_starts_from_its_rows():
    """Whatever is drawn for the other class."""
    y = np.where(np.arange(N) < 24, Y, "").astype(str)
    options = {"components_per_class": {"b": 2}, "max_iter": 1, "tol": 0, "unlabeled_weight": 0.0}
    models = [MixtureClassifier(**options, random_state=s).fit(X, y) for s in (0, 1)]
    words = 1 + X[:24][y[:24] == "a"].sum(axis=0)
    for model in models:
        np.testing.assert_allclose(np.exp(model.theta_["view0"][0]), words / words.sum(), rtol=1e-5)
    assert not np.allclose(models[0].theta_["view0"][1], models[1].theta_["view0"][1])


def test_a_fitted_model_goes_on_with_its_classes():
    """Annealing and `relabel` may give the components to other classes than side by side."""
    model = MixtureClassifier(components_per_class=2, n_init=3, **FIXED).fit(X, PARTLY)
    order = [2, 0, 3, 1]
    moved = clone(model).fit(X, PARTLY)
    moved.theta_ = {"view0": model.theta_["view0"][order]}
    moved.weights_, moved.view_weights_ = model.weights_[order], model.view_weights_[:, order]
    moved.component_classes_ = model.component_classes_[order]
    np.testing.assert_allclose(moved.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    goes_on = {"max_iter": 3, "tol": 0, "components_per_class": 2, **FIXED}
    plain, other = (MixtureClassifier(init=m, **goes_on).fit(X, PARTLY) for m in (model, moved))
    assert other.component_classes_.tolist() == [1, 0, 1, 0]
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    with pytest.raises(ValueError, match="init: the fitted model has other classes, or other num"):
        MixtureClassifier(init=model, components_per_class={"a": 3, "b": 1}).fit(X, PARTLY)
    with pytest.raises(ValueError, match="init: the fitted model has other classes"):
        MixtureClassifier(init=model, components_per_class=2).fit(X, np.where(Y == "a", "c", "d"))
    clusters = MixtureClusterer(4, random_state=0).fit(X)
    go = MixtureClassifier(init=clusters, components_per_class=2, max_iter=2, tol=0)
    assert go.fit(X, PARTLY).component_classes_.tolist() == [0, 0, 1, 1]


# -- explanations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [X, VIEWS, sp.csr_matrix(X)], ids=["dense", "views", "sparse"])
def test_explanations_contrast_two_classes(data):
    model = MixtureClassifier(components_per_class=3, **FIXED).fit(data, PARTLY)
    views = data if isinstance(data, Views) else {"view0": np.asarray(X)}
    log_joint = np.log(model.weights_) + sum(
        matrix @ np.asarray(model.theta_[name]).T for name, matrix in views.items()
    )
    for one, row in zip(model.explain(data), log_joint, strict=True):
        assert {one.label, one.against} == {"a", "b"}
        best = {c: row[model.component_classes_ == i].max() for i, c in enumerate("ab")}
        assert one.log_odds == pytest.approx(best[one.label] - best[one.against], rel=1e-9)
        assert one.log_odds > 0
        total = one.prior + sum(v.contributions.sum() + v.rest for v in one.views.values())
        assert one.log_odds == pytest.approx(total, rel=1e-9)


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec", [0, -1, 1.5, True, "3", "loo", None, [], [0], [[1, 2]], {"a": 0}, {"a": "cv"}, ["cv"]]
)
def test_numbers_that_make_no_sense(spec):
    with pytest.raises(ValueError, match="components_per_class must be a number of 1 or more"):
        MixtureClassifier(components_per_class=spec).fit(X, PARTLY)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"components_per_class": {"z": 2}}, "components_per_class: 'z' is not one of the cl"),
        ({"components_per_class": [1, {"z": 2}]}, "'z' is not one of the classes"),
        ({"components_per_class": 40}, "n_samples=64 rows cannot fill 80 components"),
        ({"cv": "kfold"}, "cv must be an integer of 2 or more, got 'kfold'"),
        ({"cv": 1}, "cv must be an integer of 2 or more"),
        ({"cv": 2.5}, "cv must be an integer of 2 or more"),
        ({"cv": True}, "cv must be an integer of 2 or more"),
        ({"init": "best"}, "init must be one of"),
        ({"init": np.ones((3, 2))}, r"init must have shape \(64, 2\)"),
        ({"n_init": 0}, "n_init must be an integer of 1 or more"),
    ],
)
def test_options_that_make_no_sense(options, words):
    with pytest.raises(ValueError, match=words):
        MixtureClassifier(**options).fit(X, PARTLY)


@pytest.mark.parametrize("init", ["rows", "k-means++"])
def test_more_components_than_labelled_rows_start_apart_too(init):
    y = np.full(N, "", dtype=object)
    y[[np.flatnonzero(Y == "a")[0], np.flatnonzero(Y == "b")[0]]] = ["a", "b"]
    model = MixtureClassifier(components_per_class=3, init=init, random_state=0, tol=0, max_iter=3)
    theta = model.fit(X, y).theta_["view0"]
    apart = np.abs(theta[:, None] - theta).max(axis=2) + np.eye(len(theta))
    assert apart.min() > 1e-3


def test_candidates_have_the_same_folds():
    """Also without a seed, and from an iterator."""
    model = MixtureClassifier(components_per_class=[1, 1], cv=3).fit(X, PARTLY)
    first, second = model.cv_results_
    assert first == second
    folds = LabeledKFold(3, random_state=0).split(np.zeros((N, 1)), PARTLY)
    model = MixtureClassifier(components_per_class=[1, 1], cv=folds).fit(X, PARTLY)
    assert model.cv_results_[0] == model.cv_results_[1]


def test_nothing_is_tested():
    for cv in ([], [(np.arange(10), np.arange(40, 50))]):
        with pytest.raises(ValueError, match="cv has no fold that tests a labelled row"):
            MixtureClassifier(components_per_class=[1, 2], cv=cv).fit(X, PARTLY)
    with pytest.raises(ValueError, match="cv must be an integer of 2 or more, got None"):
        MixtureClassifier(cv=None).fit(X, PARTLY)


def test_explain_and_predict_agree():
    model = MixtureClassifier(components_per_class=4, random_state=0, tol=1e-3).fit(X, PARTLY)
    rows = X[:40]
    told = model.explain(rows)
    assert [row.label for row in told] == model.predict(rows).tolist()
    assert all(row.label != row.against for row in told)
