"""unlabeled_weight="auto": what is tried, what is taken, and what follows from it."""

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone

import coem
from coem import MixtureClassifier, Views
from coem.calibration import best_temperature

N, K = 240, 3
RNG = np.random.default_rng(4)
TRUTH = np.arange(N) % K
X = RNG.poisson(12 * RNG.dirichlet(np.full(30, 0.3), size=K)[TRUTH])
FEW = np.where(np.arange(N) < K, TRUTH, -1)
SOME = np.where(np.arange(N) < 10 * K, TRUTH, -1)
AUTO = MixtureClassifier(unlabeled_weight="auto", tol=1e-5, random_state=0)


def with_weight(weight, **params):
    return clone(AUTO).set_params(unlabeled_weight=weight, **params)


def test_few_labels_take_the_rule():
    model = clone(AUTO).fit(X, FEW)
    assert model.unlabeled_weight_ == 0.05
    assert not hasattr(model, "cv_results_")
    np.testing.assert_array_equal(
        model.theta_["view0"], with_weight(0.05).fit(X, FEW).theta_["view0"]
    )


def test_the_weight_with_the_least_loss_is_taken():
    model = clone(AUTO).fit(X, SOME)
    tried = {record.unlabeled_weight: record.log_loss for record in model.cv_results_}
    assert list(tried) == [0.01, 0.1, 1.0]
    assert model.unlabeled_weight_ == min(tried, key=tried.get)
    same = with_weight(model.unlabeled_weight_).fit(X, SOME)
    np.testing.assert_array_equal(model.theta_["view0"], same.theta_["view0"])
    assert model.unlabeled_weight == "auto"  # the parameter stays what it was


def test_the_losses_are_those_of_a_twin():
    """Hold out the same folds by hand."""
    model = clone(AUTO).fit(X, SOME)
    rng = np.random.RandomState(0)
    by_class = [rng.permutation(np.flatnonzero(c == SOME)) for c in range(K)]
    dealt = [row for rows in by_class for row in rows.tolist()]
    folds = [np.sort(dealt[fold::3]) for fold in range(3)]
    for record in model.cv_results_:
        rows, parts = [], []
        for test in folds:
            train = np.setdiff1d(np.arange(N), test)
            one = with_weight(record.unlabeled_weight).fit(X[train], SOME[train])
            parts.append(one.predict_log_proba(X[test]))
            rows.append(test)
        rows, logs = np.concatenate(rows), np.concatenate(parts)
        fair = log_softmax(best_temperature(logs, SOME[rows]) * logs, axis=1)
        loss = -fair[np.arange(len(rows)), SOME[rows]].mean()
        assert record.n_rows == 10 * K
        assert record.log_loss == pytest.approx(loss, rel=1e-6)
        assert record.accuracy == pytest.approx((logs.argmax(axis=1) == SOME[rows]).mean())


def test_rows_that_mislead_get_a_small_weight():
    """Unlabelled rows of other groups than the classes: with full weight they take over."""
    rng = np.random.default_rng(1)
    other = rng.poisson(12 * rng.dirichlet(np.full(30, 0.1), size=2)[np.arange(600) % 2])
    rows = np.concatenate([X[: 20 * K], other])
    y = np.concatenate([TRUTH[: 20 * K], np.full(600, -1)])
    assert clone(AUTO).fit(rows, y).unlabeled_weight_ < 1


def test_without_unlabelled_rows_there_is_nothing_to_choose():
    model = clone(AUTO).fit(X, TRUTH)
    assert model.unlabeled_weight_ == 1.0
    np.testing.assert_array_equal(
        model.predict_proba(X), MixtureClassifier(tol=1e-5).fit(X, TRUTH).predict_proba(X)
    )


def test_it_goes_with_calibration_choices_batches_and_files(tmp_path):
    both = clone(AUTO).set_params(calibrate=True, components_per_class=[1, 2]).fit(X, SOME)
    assert [record.components_per_class for record in both.cv_results_] == [1, 2]
    same = with_weight(both.unlabeled_weight_, calibrate=True, components_per_class=[1, 2])
    np.testing.assert_array_equal(both.predict_proba(X), same.fit(X, SOME).predict_proba(X))
    model = clone(AUTO).partial_fit(X[:120], SOME[:120])
    model.partial_fit(X[120:], SOME[120:])
    assert 0 < model.unlabeled_weight_ <= 1
    both.save(tmp_path / "m.coem")
    loaded = coem.load(tmp_path / "m.coem")
    assert loaded.unlabeled_weight_ == both.unlabeled_weight_
    assert len(loaded.cv_results_) == 2


def test_it_works_over_views_and_with_weights():
    views = Views(a=X[:, :15], b=X[:, 15:])
    weight = np.ones(N)
    weight[-30:] = 0
    model = clone(AUTO).fit(views, SOME, sample_weight=weight)
    without = clone(AUTO).fit(views[:-30], SOME[:-30])
    assert model.unlabeled_weight_ == without.unlabeled_weight_


@pytest.mark.parametrize("wrong", ["cv", 1.5, -0.1, None])
def test_other_values_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="unlabeled_weight"):
        with_weight(wrong).fit(X, SOME)
