"""Deterministic annealing, and which class a component stands for after it (Nigam 2006, 3.5)."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from coem import MixtureClassifier, Not, Views
from coem.engine import LocalEngine
from coem.estimators._correspondence import allowed_components, by_labels, by_model
from coem.families import Gaussian, Multinomial
from coem.labels import read_knowledge
from coem.latent.block import Partition
from coem.schedules import Geometric, Linear

SLOW = Geometric(0.02, 1.2, 1.0)
ONES = Linear(1.0, 1.0, 3)  # a schedule, so that classes are looked after, which anneals nothing
DOUBLE = {"dtype": np.float64}


def swapping():
    """Return rows, labels and the truth of a case in which annealing swaps two components.

    It was found by trying seeds: 1 of 150 did. EM without annealing gets 99 % right.
    """
    rng = np.random.default_rng(30)
    words = rng.dirichlet(np.full(15, 0.5), size=3)
    words = 0.6 * words + 0.4 * words.mean(axis=0)
    truth = np.arange(90) % 3
    X = np.array([rng.multinomial(25, words[c]) for c in truth], dtype=float)
    y = np.where(np.arange(90) < 3, truth, -1)
    return X, y, truth


N = 96
TOPIC = np.arange(N) % 6  # two topics for each of the classes
NAMES = np.array(list("abc"))
TRUTH = NAMES[TOPIC // 2]


def make_views(*, holes=False):
    """Return words and points of six topics; the views lack some rows, two rows both."""
    rng = np.random.default_rng(8)
    words = rng.multinomial(20, (0.15 + np.eye(6)[TOPIC]) / 1.9).astype(float)
    points = 4 * np.eye(6)[TOPIC] + rng.normal(size=(N, 6))
    if holes:
        words[[1, 20, 40, 41]] = 0.0
        points[[2, 21, 40, 41]] = np.nan
    return Views(words=words, points=points)


FAMILIES = {"words": Multinomial(), "points": Gaussian("diag")}
Y = np.where(np.arange(N) < 30, TRUTH, "")


# -- schedules ------------------------------------------------------------------------------------


def test_the_schedule_of_the_paper_reaches_its_end():
    X, y, _ = swapping()
    model = MixtureClassifier(beta=Geometric(0.02, 1.01, 1.0)).fit(X, y)
    assert model.converged_
    assert model.beta_ == model.history_[-1].beta == 1.0
    assert model.n_iter_ >= 394  # ln(50) / ln(1.01) = 393.15
    betas = np.array([record.beta for record in model.history_])
    np.testing.assert_allclose(betas, np.minimum(0.02 * 1.01 ** np.arange(1, len(betas) + 1), 1.0))


def test_a_limit_is_a_limit():
    X, y, _ = swapping()
    model = MixtureClassifier(beta=SLOW, max_iter=5, tol=0).fit(X, y)
    assert (model.n_iter_, model.beta_) == (5, pytest.approx(0.02 * 1.2**5))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


# -- repairs --------------------------------------------------------------------------------------


def accuracy(model, X, truth):
    return np.mean(model.predict(X) == truth)


@pytest.mark.parametrize("correspondence", ["labels", "em", {0: 1, 1: 0}])
def test_a_swap_is_repaired(correspondence):
    X, y, truth = swapping()
    keeps = {0: 0, 1: 1, 2: 2}
    stray = MixtureClassifier(beta=SLOW, correspondence=keeps, **DOUBLE).fit(X, y)
    assert accuracy(stray, X, truth) < 0.5
    model = MixtureClassifier(beta=SLOW, correspondence=correspondence, **DOUBLE).fit(X, y)
    assert model.component_classes_.tolist() == [1, 0, 2]
    assert accuracy(model, X, truth) > 0.95
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.theta_["view0"], stray.theta_["view0"])
    np.testing.assert_array_equal(model.predict_proba(X), stray.predict_proba(X)[:, [1, 0, 2]])
    assert accuracy(stray.relabel({0: 1, 1: 0}), X, truth) > 0.95


def test_nothing_is_repaired_without_annealing():
    """The labels have been obeyed all along; but a person's word holds in any case."""
    X, y, _ = swapping()
    start = np.eye(3)[[1, 0, 2]][np.arange(90) % 3]  # components 0 and 1 start in each other's rows
    for correspondence in ("labels", "em"):
        model = MixtureClassifier(init=start, correspondence=correspondence).fit(X, y)
        assert model.component_classes_.tolist() == [0, 1, 2]
    model = MixtureClassifier(correspondence={2: 0}).fit(X, y)
    assert model.component_classes_.tolist() == [0, 1, 0]


def permuted(theta, order):
    def moved(params):
        if isinstance(params, tuple):
            return type(params)(*(part[order] for part in params))
        return params[order]

    params = tuple(moved(one) for one in theta.params)
    return replace(theta, params=params, log_weights=theta.log_weights[:, order])


@pytest.mark.parametrize("names", [["words"], ["points"], ["words", "points"]], ids="+".join)
@pytest.mark.parametrize("components", [1, 2, {"a": 2, "c": 3}])
@pytest.mark.parametrize("coupling", ["co-em", "joint"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_permuted_parameters_get_their_classes_back(names, components, coupling, holes):
    views = make_views(holes=holes)[names]
    family = {name: FAMILIES[name] for name in names}
    model = MixtureClassifier(
        components_per_class=components,
        family=family,
        coupling=coupling,
        init="k-means++",
        n_init=3,
        random_state=0,
        tol=1e-4,
    ).fit(views, Y)
    classes, data = model.component_classes_, model._part(views)
    shares = read_knowledge(Y, N).shares()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(classes))
        fitted, weights = model._fitted(), model.weights_[order]
        mine = replace(fitted, theta=permuted(fitted.theta, order), weights=weights)
        found = by_labels(mine, data, shares, classes)
        np.testing.assert_array_equal(found, classes[order])
        found = by_model(mine, fitted, data, classes)
        np.testing.assert_array_equal(found, classes[order])


@pytest.mark.parametrize("names", [["words"], ["words", "points"]], ids="+".join)
@pytest.mark.parametrize("components", [1, 2])
def test_components_that_follow_the_unlabelled_rows(names, components):
    """A start in the wrong classes, that few labels do not turn round."""
    views, y = make_views()[names], np.where(np.arange(N) < 12, TRUTH, "")
    wrong = (TOPIC + 2) % 6
    start = np.eye(6)[wrong] if components == 2 else np.eye(3)[wrong // 2]
    options = {"family": {name: FAMILIES[name] for name in names}, "init": start, "eta": 0.5}
    options |= {"components_per_class": components, "unlabeled_weight": 1.0, "tol": 1e-4}
    stray = MixtureClassifier(**options).fit(views, y)
    model = MixtureClassifier(beta=ONES, **options).fit(views, y)
    rest = slice(12, None)
    assert np.mean(stray.predict(views)[rest] == TRUTH[rest]) < 0.2
    assert np.mean(model.predict(views)[rest] == TRUTH[rest]) > 0.8
    # Every class keeps the number of its components.
    np.testing.assert_array_equal(np.bincount(model.component_classes_), [components] * 3)


def test_votes_have_weights_and_sets_vote():
    """Rows of class "a" vote for their component by their share, whatever it is called."""
    X = np.repeat(np.eye(2) * 9, 6, axis=0) + 1
    model = MixtureClassifier(**DOUBLE).fit(X, np.repeat(["a", "b"], 6))
    data, classes = model._part(X), model.component_classes_

    def voted(y, weight=None):
        shares = read_knowledge(y, 12).shares(weight)
        return by_labels(model._fitted(), data, shares, classes).tolist()

    wrong = ["b", "b", "a", *[None] * 3, "a", *[None] * 5]
    assert voted(wrong) == [1, 0]
    weight = np.array([1, 1, 4, 1, 1, 1, 0.5, 1, 1, 1, 1, 1])
    assert voted(wrong, weight) == [0, 1]
    assert voted([{"b"}, Not("a"), None, None, None, None, "a", *[None] * 5]) == [1, 0]


def test_the_nearest_by_the_mean_row():
    """Against all pairings: a component counts once, however many rows it has."""
    X = np.random.default_rng(0).poisson(0.6, size=(60, 12)) + np.eye(60, 12, dtype=int)
    model = MixtureClassifier(**DOUBLE).fit(X, np.arange(60) % 4)
    data, fitted, differ = model._part(X), model._fitted(), 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        mine, theirs = np.log(rng.dirichlet(np.full(12, 5.0), size=(2, 4)))
        weights = rng.dirichlet(np.full(4, 0.5))
        one = replace(fitted, theta=replace(fitted.theta, params=(mine,)), weights=weights)
        other = replace(fitted, theta=replace(fitted.theta, params=(theirs,)))
        found = by_model(one, other, data, np.arange(4))
        resp = np.exp(log_softmax(X @ mine.T + np.log(weights), axis=1))
        total = -resp.T @ (X @ theirs.T)
        assert found.tolist() == cheapest(total / resp.sum(axis=0)[:, None])
        differ += cheapest(total) != found.tolist()
    assert differ


def cheapest(cost):
    """Return the best of all pairings."""
    orders = permutations(range(len(cost)))
    return list(min(orders, key=lambda order: sum(cost[j, k] for j, k in enumerate(order))))


# -- a person's word ------------------------------------------------------------------------------


def test_relabel():
    views = make_views()
    options = {"components_per_class": 2, "family": FAMILIES, "random_state": 0, "tol": 1e-4}
    model = MixtureClassifier(**options).fit(views, Y)
    before = model.component_proba(views)
    assert model.relabel({1: "c", np.int64(4): "a"}) is model
    assert model.component_classes_.tolist() == [0, 2, 1, 1, 0, 2]
    np.testing.assert_array_equal(model.component_proba(views), before)
    proba = model.predict_proba(views)
    np.testing.assert_allclose(proba[:, 2], before[:, [1, 5]].sum(axis=1), rtol=1e-9, atol=1e-300)
    same = MixtureClassifier(correspondence={1: "c", 4: "a"}, **options).fit(views, Y)
    np.testing.assert_array_equal(same.predict_proba(views), proba)
    with pytest.raises(NotFittedError):
        MixtureClassifier().relabel({0: "a"})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({}, "correspondence must be 'labels', 'em' or a dict"),
        ("hand", "correspondence must be 'labels', 'em' or a dict"),
        (None, "correspondence must be 'labels', 'em' or a dict"),
        ([1, 0, 2], "correspondence must be 'labels', 'em' or a dict"),
        ({3: "a"}, "correspondence: 3 is not a component; components are 0 to 2"),
        ({-1: "a"}, "correspondence: -1 is not a component"),
        ({"0": "a"}, "correspondence: '0' is not a component"),
        ({1.0: "a"}, "correspondence: 1.0 is not a component"),
        ({None: "a"}, "correspondence: None is not a component"),
        ({0: "z"}, r"correspondence: 'z' is not one of the classes \['a', 'b', 'c'\]"),
        ({0: None}, "correspondence: None is not one of the classes"),
        ({0: "b", 1: 0}, "correspondence: 0 is not one of the classes"),
    ],
)
def test_mappings_that_make_no_sense(mapping, words):
    views = make_views()["words"]
    with pytest.raises(ValueError, match=words):
        MixtureClassifier(correspondence=mapping).fit(views, Y)
    model = MixtureClassifier().fit(views, Y)
    if isinstance(mapping, dict):
        with pytest.raises(ValueError, match=words):
            model.relabel(mapping)
    assert model.component_classes_.tolist() == [0, 1, 2]  # and nothing was changed


# -- a class without components -------------------------------------------------------------------


@pytest.fixture(params=["words", "both", "both, joint", "several"])
def bereft(request):
    """Return rows, and a model that has no component for class "b"."""
    views, options = make_views(holes=True), {"random_state": 0, "tol": 1e-4}
    options |= {"coupling": "joint"} if "joint" in request.param else {}
    if request.param == "words":
        views = views[["words"]]
    elif request.param == "several":
        options["components_per_class"] = 2
    options["family"] = {name: FAMILIES[name] for name in views.names}
    model = MixtureClassifier(**options, **DOUBLE).fit(views, Y)
    b = np.flatnonzero(model.component_classes_ == 1)
    return views, model.relabel(dict.fromkeys(b.tolist(), "a"))


def finite_model(model):
    for theta in model.theta_.values():
        for part in theta if isinstance(theta, tuple) else (theta,):
            assert np.isfinite(part).all()
    assert np.isfinite(model.weights_).all()
    assert model.weights_.sum() == pytest.approx(1.0)


def test_a_class_without_components_has_no_chance(bereft):
    views, model = bereft
    proba = model.predict_proba(views)
    np.testing.assert_array_equal(proba[:, 1], 0.0)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
    assert set(model.predict(views)) == {"a", "c"}
    assert 0.5 < model.score(views, TRUTH) < 0.7
    assert {one.label for one in model.explain(views[:12])} <= {"a", "c"}
    found = model.leave_one_out(views, Y)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, 1], 0.0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 1.5, N)])
def test_rows_of_a_class_without_components_teach_nothing(bereft, weight):
    """They once had posteriors of NaN."""
    views, model = bereft
    model.partial_fit(views, Y, sample_weight=weight)
    finite_model(model)
    proba = model.predict_proba(views)
    np.testing.assert_array_equal(proba[:, 1], 0.0)
    assert np.isfinite(model.predict_proba(views)).all()
    theta = [np.asarray(p) for one in model.theta_.values() for p in parts(one)]
    # The same as a batch in which they have no weight.
    again = clone(model).fit(views, Y)
    again.relabel(dict.fromkeys(np.flatnonzero(again.component_classes_ == 1).tolist(), "a"))
    light = np.where(Y == "b", 0.0, 1.0 if weight is None else weight)
    again.partial_fit(views, np.where(Y == "b", "", Y), sample_weight=light)
    for one, other in zip(theta, [p for t in again.theta_.values() for p in parts(t)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.weights_, again.weights_, rtol=1e-9)


def parts(theta):
    return theta if isinstance(theta, tuple) else (theta,)


def test_a_batch_of_nothing_else(bereft):
    views, model = bereft
    rows = np.flatnonzero(Y == "b")
    model.partial_fit(views[rows], Y[rows])
    finite_model(model)
    assert np.isfinite(model.predict_proba(views)).all()


def test_a_class_without_components_can_be_calibrated():
    views = make_views()[["words"]]
    model = MixtureClassifier(correspondence={1: "a"}, calibrate=True).fit(views, Y)
    assert 0.01 < model.calibration_.inverse_temperature < 20
    assert np.isfinite([model.calibration_.ece_before, model.calibration_.ece_after]).all()
    proba = model.predict_proba(views)
    np.testing.assert_array_equal(proba[:, 1], 0.0)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)


def test_allowed_components():
    allowed = np.array([[True, False], [False, True], [True, True]])
    weight, found = allowed_components(allowed, np.array([1, 0, 1]), None)
    assert weight is None
    np.testing.assert_array_equal(found, allowed[:, [1, 0, 1]])
    weight, found = allowed_components(allowed, np.array([0, 0]), np.array([2.0, 3.0, 4.0]))
    np.testing.assert_array_equal(weight, [2.0, 0.0, 4.0])
    assert found.all()


@pytest.mark.parametrize("correspondence", ["labels", "em"])
def test_threads_do_not_change_a_bit(correspondence):
    views = make_views(holes=True)
    options = {"beta": SLOW, "components_per_class": 2, "n_init": 2, "random_state": 0}
    models = [
        MixtureClassifier(
            family=FAMILIES, correspondence=correspondence, engine=LocalEngine(n), **options
        ).fit(views, Y)
        for n in (1, 2, 4)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(views), models[0].predict_proba(views))
    assert np.mean(models[0].predict(views) == TRUTH) > 0.9


def test_rows_without_a_label_do_not_vote():
    """`by_labels` may be given the labelled rows alone."""
    X, y, _ = swapping()
    model = MixtureClassifier(**DOUBLE).fit(X, y)
    shares = read_knowledge(y, 90).shares()
    fitted = model._fitted()
    whole = by_labels(fitted, model._part(X), shares, model.component_classes_)
    part = Partition((model._part(X).views[0][:3],))
    np.testing.assert_array_equal(by_labels(fitted, part, shares[:3], [0, 1, 2]), whole)
