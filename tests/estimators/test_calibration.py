"""How sure a classifier may be: one temperature, from rows that it has not seen."""

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from coem import MixtureClassifier, Not, Views
from coem.calibration import best_temperature
from coem.estimators._held_out import held_out, splits_of
from coem.labels import read_knowledge
from coem.metrics import expected_calibration_error
from coem.selection import LabeledKFold

N, M, WORDS = 300, 3, 20
FIXED = {"random_state": 0, "dtype": np.float64}
NAMES = np.array(list("abc"))


def from_the_model(n=N, length=3, seed=0):
    """Return short documents, of which many are in doubt, and their classes."""
    rng = np.random.default_rng(seed)
    words = np.random.default_rng(99).dirichlet(np.ones(WORDS), size=M)
    truth = rng.integers(M, size=n)
    return np.array([rng.multinomial(length, words[c]) for c in truth], float), NAMES[truth]


X, Y = from_the_model()
FIVE = np.hstack([X] * 5)  # every word five times: five times too sure


def calibrated(data=X, y=Y, **options):
    return MixtureClassifier(calibrate=True, **FIXED, **options).fit(data, y)


# -- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_known", [N, 100])
def test_data_from_the_model_need_no_temperature(n_known):
    y = np.where(np.arange(N) < n_known, Y, "")
    assert calibrated(y=y).calibration_.inverse_temperature == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("copies", [2, 5])
def test_columns_that_are_copies_make_naive_bayes_too_sure(copies):
    result = calibrated(np.hstack([X] * copies)).calibration_
    alone = calibrated().calibration_
    ratio = result.inverse_temperature / alone.inverse_temperature
    assert ratio == pytest.approx(1 / copies, rel=0.1)
    assert result.ece_after < result.ece_before
    assert result.log_loss_after < result.log_loss_before
    assert result.n_rows == N
    if copies == 5:
        assert result.ece_after < 0.5 * result.ece_before


def test_new_rows_have_the_probabilities_that_they_deserve():
    new, truth = from_the_model(n=1500, seed=1)
    sure, model = MixtureClassifier(**FIXED).fit(FIVE, Y), calibrated(FIVE)
    new = np.hstack([new] * 5)
    before, after = sure.predict_proba(new), model.predict_proba(new)
    errors = [expected_calibration_error(truth, p, classes=NAMES) for p in (before, after)]
    assert errors[0] > 0.1 > 0.06 > errors[1]
    assert log_loss(truth, after) < log_loss(truth, before)


@pytest.mark.parametrize("data", [X, FIVE, Views(one=X, two=X[:, ::-1].copy())])
@pytest.mark.parametrize("assign", ["joint", "average"])
@pytest.mark.parametrize("components", [1, 2])
def test_predictions_stay_as_they_were(data, assign, components):
    y = np.where(np.arange(N) < 90, Y, "")
    options = {"assign": assign, "components_per_class": components, "tol": 1e-3}
    plain = MixtureClassifier(**options, **FIXED).fit(data, y)
    model = calibrated(data, y, **options)
    np.testing.assert_array_equal(model.predict(data), plain.predict(data))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.component_proba(data), plain.component_proba(data))
    proba, heat = model.predict_proba(data), model.calibration_.inverse_temperature
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(data))
    tempered = plain.predict_proba(data) ** heat
    expected = tempered / tempered.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, expected, rtol=1e-6, atol=1e-9)


def test_figures_are_those_of_rows_held_out():
    """Each fold is tempered as the other folds ask for."""
    fold = LabeledKFold(4, random_state=2)
    y = np.where(np.arange(N) < 80, Y, "")
    codes = np.where(y == "", -1, np.searchsorted(NAMES, Y))
    model = calibrated(FIVE, y, cv=fold)
    logs, folds, truth = [], [], []
    for f, (train, test) in enumerate(fold.split(FIVE, codes)):
        one = MixtureClassifier(**FIXED).fit(FIVE[train], y[train])
        logs.append(one._log_proba(FIVE[test]))
        np.testing.assert_allclose(np.exp(logs[-1]), one.predict_proba(FIVE[test]), rtol=1e-9)
        folds += [f] * len(test)
        truth += codes[test].tolist()
    logs, folds, truth = np.concatenate(logs), np.array(folds), np.array(truth)
    result = model.calibration_
    assert result.n_rows == len(truth) == 80
    assert result.inverse_temperature == pytest.approx(best_temperature(logs, truth), rel=1e-12)
    assert result.ece_before == pytest.approx(expected_calibration_error(truth, np.exp(logs)))
    after = np.empty_like(logs)
    for f in range(4):
        heat = best_temperature(logs[folds != f], truth[folds != f])
        after[folds == f] = log_softmax(heat * logs[folds == f], axis=1)
    assert result.ece_after == pytest.approx(expected_calibration_error(truth, np.exp(after)))
    pick = np.arange(80), truth
    assert result.log_loss_before == pytest.approx(-logs[pick].mean(), rel=1e-12)
    assert result.log_loss_after == pytest.approx(-after[pick].mean(), rel=1e-12)


def test_a_single_fold_is_tempered_by_itself():
    split = [(np.arange(50, N), np.arange(50))]
    result = calibrated(FIVE, cv=split).calibration_
    assert result.n_rows == 50
    assert result.log_loss_after < result.log_loss_before


# -- with everything else -------------------------------------------------------------------------


def small(n=60):
    y = NAMES[np.searchsorted(NAMES, Y)].astype(object)[:n]
    y[30:] = None
    return X[:n], y


def test_leave_one_out_means_five_folds():
    data, y = small()
    loo, five = (calibrated(data, y, cv=cv).calibration_ for cv in ("loo", 5))
    assert loo == five
    assert loo.inverse_temperature != calibrated(data, y, cv=3).calibration_.inverse_temperature


def test_views_and_a_choice_of_components():
    data, y = small()
    views = {"one": data, "two": X[60:120]}
    options = {"components_per_class": "cv", "tol": 1e-3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # candidates with too many components
        model = calibrated(views, y, **options)
        chosen = max(model.cv_results_, key=lambda r: (r.score, -r.n_components))
        same = calibrated(views, y, components_per_class=chosen.components_per_class, tol=1e-3)
    assert same.calibration_ == model.calibration_
    assert len(model.weights_) == chosen.n_components
    np.testing.assert_array_equal(same.predict_proba(views), model.predict_proba(views))


def test_sets_are_never_held_out():
    data, y = small()
    y[30], y[31], y[32] = {"a", "b"}, Not("c"), {"a"}
    assert calibrated(data, y).calibration_.n_rows == 31
    known = read_knowledge(y, 60)
    splits = splits_of(4, 60, known, None, 0)
    rows, log_proba, folds = held_out(MixtureClassifier(), data, None, known, splits)
    assert sorted(rows.tolist()) == [*range(30), 32]
    assert log_proba.shape == (31, 3)
    assert np.bincount(folds).tolist() == [8, 8, 8, 7]


def test_weights_of_the_rows_held_out_are_not_lost():
    data, y = small()
    weight = np.linspace(0.1, 3, 60)
    model = MixtureClassifier(calibrate=True, **FIXED)
    plain = clone(model).fit(data, y).calibration_
    heavy = clone(model).fit(data, y, sample_weight=weight).calibration_
    assert heavy != plain
    ones = clone(model).fit(data, y, sample_weight=[1.0] * 60).calibration_
    assert ones == pytest.approx(plain, rel=1e-6)


def test_given_responsibilities_are_cut_too():
    data, y = small()
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    model = calibrated(data, y, init=start, max_iter=3, tol=0)
    assert model.calibration_.n_rows == 30
    cut = calibrated(data, y, init=start.tolist(), max_iter=3, tol=0)
    assert cut.calibration_ == model.calibration_
    with pytest.raises(ValueError, match="init is a fitted model, which may have seen"):
        calibrated(data, y, init=model)


def test_a_person_may_say_which_classes():
    """The folds have as many components as the fit, before anybody renames them."""
    data, y = small()
    options = {"components_per_class": {"a": 2}, "correspondence": {1: "b"}}
    model = calibrated(data, y, **options)
    assert model.component_classes_.tolist() == [0, 1, 1, 2]
    assert np.isfinite(list(model.calibration_.values())).all()


def test_one_class():
    model = calibrated(X[:10], ["a"] * 8 + [None] * 2)
    assert model.calibration_.inverse_temperature == 1.0
    np.testing.assert_array_equal(model.predict_proba(X), 1.0)
    assert (model.calibration_.ece_before, model.calibration_.log_loss_before) == (0.0, 0.0)


def test_nothing_to_hold_out():
    y = ["a", "b", "c", *[None] * 17]
    model = MixtureClassifier(calibrate=True)
    with pytest.raises(ValueError, match="no row can be held out, because every class has only"):
        model.fit(X[:20], y)
    assert not hasattr(model, "theta_")  # and it is as it was
    with pytest.raises(ValueError, match="no row can be held out"):
        MixtureClassifier(components_per_class=[1, 2], cv=3).fit(X[:20], y)
    two = MixtureClassifier(calibrate=True, **FIXED).fit(X[:20], ["a", "b", "c", "a", *[None] * 16])
    assert two.calibration_.n_rows == 2


# -- the temperature ------------------------------------------------------------------------------


def slow_loss(heat, log_proba, truth):
    """Return the log loss against Platt's targets, term by term."""
    n, m = log_proba.shape
    total = 0.0
    for row, c in zip(log_proba, truth, strict=True):
        powers = np.exp(heat * (row - row.max()))
        for j, p in enumerate(powers / powers.sum()):
            target = (n + 1) / (n + 2) if j == c else 1 / (n + 2) / (m - 1)
            total -= target * np.log(p)
    return total


@pytest.mark.parametrize("scale", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_best_temperature_is_the_best_of_a_grid(scale, n_classes):
    rng = np.random.default_rng(int(10 * scale) + n_classes)
    scores = rng.normal(size=(60, n_classes))
    truth = np.array([rng.choice(n_classes, p=p) for p in np.exp(log_softmax(scores, axis=1))])
    log_proba = log_softmax(scale * scores, axis=1)
    heat = best_temperature(log_proba, truth)
    grid = np.geomspace(heat / 2, heat * 2, 201)
    losses = [slow_loss(one, log_proba, truth) for one in grid]
    assert slow_loss(heat, log_proba, truth) <= min(losses) + 1e-9
    assert np.argmin(losses) == 100
    assert heat * scale == pytest.approx(1.0, abs=0.6)


def test_rows_that_are_all_right_do_not_ask_for_certainty():
    log_proba = np.log(np.tile([0.9, 0.1], (10, 1)))
    heat = best_temperature(log_proba, np.zeros(10, dtype=int))
    # The probability that is asked for is (n + 1) / (n + 2) = 11/12: odds of 11 from odds of 9.
    assert heat == pytest.approx(np.log(11) / np.log(9), rel=1e-4)
    wrong = best_temperature(log_proba, np.ones(10, dtype=int))
    assert wrong == pytest.approx(np.exp(-10), rel=1e-2)  # as flat as may be, and never upside down


def test_impossible_classes_have_no_temperature():
    rng = np.random.default_rng(0)
    scores = log_softmax(rng.normal(size=(50, 2)), axis=1)
    truth = (rng.random(50) > np.exp(scores[:, 0])).astype(int)
    log_proba = log_softmax(3 * scores, axis=1)  # the temperature to find is about 1/3
    wider = np.column_stack([log_proba, np.full(50, -np.inf)])
    heat = best_temperature(wider, truth)
    assert 0.15 < heat < 0.6
    assert heat == pytest.approx(best_temperature(log_proba, truth), rel=0.05)
    truth[:3] = 2  # what can never be right says nothing
    assert best_temperature(wider, truth) == pytest.approx(heat, rel=0.5)
    assert best_temperature(np.zeros((4, 1)), np.zeros(4, dtype=int)) == 1.0


def test_rows_of_no_weight_are_not_tested():
    data, y = small()
    weight = np.ones(60)
    weight[:6] = 0
    model = MixtureClassifier(calibrate=True, **FIXED).fit(data, y, sample_weight=weight)
    assert model.calibration_.n_rows == 24


def test_what_an_earlier_fit_left_is_gone():
    data, y = small()
    model = calibrated(data, y)
    before = model.predict_proba(data)
    model.set_params(calibrate=False)
    np.testing.assert_array_equal(model.predict_proba(data), before)  # until it is fitted again
    model.fit(data, y)
    assert not hasattr(model, "calibration_")
    model.set_params(calibrate=True).predict_proba(data)
    with pytest.raises(ValueError, match="calibrate must be True or False"):
        model.set_params(calibrate="yes").fit(data, y)
