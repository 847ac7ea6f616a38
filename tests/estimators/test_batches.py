"""`partial_fit`: stepwise EM over batches, against a transcription, and around it."""

import os
import pickle
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views, load
from coem.datasets import fetch_20newsgroups
from coem.families import Gaussian, VonMisesFisher
from coem.io import ModelFileError
from coem.online import Running
from coem.schedules import StepSize
from tests.truths.stepwise import Stepwise

K, N = 3, 150
CUTS = [0, 40, 46, 90, 91, N]  # batches of many sizes
DOUBLE = {"dtype": np.float64, "random_state": 0, "max_iter": 4, "tol": 0}


def make(seed=0, n=N):
    """Return two views of counts with some empty rows, and the group of every row."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % K
    topics = rng.dirichlet(np.full(15, 0.3), size=(2, K))
    views = [rng.poisson(12 * topics[v][group]).astype(float) for v in range(2)]
    views[0][7::29] = 0
    views[1][[3, 36, 60]] = 0
    return views, group


(TITLE, BODY), GROUP = make()
VIEWS = Views(title=sp.csr_matrix(TITLE), body=sp.csr_matrix(BODY))
WEIGHT = np.linspace(0.0, 2.0, N)


def batches():
    return [slice(lo, hi) for lo, hi in pairwise(CUTS)]


def close(model, twin):
    for found, expected in zip(model.theta_.values(), twin.theta, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(np.log(model.view_weights_), twin.log_weights, rtol=1e-8)


def twin_of(model, step, **settings):
    """Return the transcription, which goes on from a fitted model."""
    theta = [np.array(words) for words in model.theta_.values()]
    weights = np.log(model.view_weights_)
    return Stepwise(theta, weights, step.power, step.offset, step.n_rows, **settings)


# -- the transcription -----------------------------------------------------------------------------

CASES = {
    "one view": ({}, {}),
    "co-em": ({"eta": 0.6}, {"eta": 0.6}),
    "co-em, eta 1": ({}, {}),
    "joint": ({"coupling": "joint"}, {"joint": True}),
    "per view": ({"weights": "per_view"}, {"weights": "per_view"}),
    "uniform": ({"weights": "uniform"}, {"weights": "uniform"}),
    "hard": ({"posterior": "hard", "coupling": "joint"}, {"hard": True, "joint": True}),
}
STEPS = {"default": StepSize(), "slow": StepSize(1, 0), "rows": StepSize(0.6, 3.0, 200.0)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("case", CASES)
def test_stepwise_em(case, step, weighted):
    params, settings = CASES[case]
    names = ["body"] if case == "one view" else ["title", "body"]
    model = MixtureClusterer(K, step=STEPS[step], **params, **DOUBLE)
    twin = None
    for rows in batches():
        weight = WEIGHT[rows] if weighted else None
        model.partial_fit({name: VIEWS[name][rows] for name in names}, sample_weight=weight)
        first = twin is None
        twin = twin_of(model, STEPS[step], **settings) if first else twin
        twin.learn([VIEWS[name][rows].toarray() for name in names], weight, m_step=not first)
        close(model, twin)
    effective = STEPS[step].n_rows or twin.effective_rows()
    assert model._stats.n_rows == pytest.approx(effective)
    assert model._stats.n_batches == len(CUTS) - 1


def test_stepwise_em_with_labels():
    """Labels are a mask, unlabelled rows count less, and classes have pseudo-rows."""
    y = np.array(["a", "b", "c"], dtype=object)[GROUP]
    y[np.arange(N) % 5 > 1] = None
    step, twin = StepSize(0.7, 0.0), None
    model = MixtureClassifier(unlabeled_weight=0.4, step=step, **DOUBLE)
    for rows in batches():
        known = y[rows] != None  # noqa: E711
        model.partial_fit(VIEWS[rows], y[rows], classes=["a", "b", "c"])
        first = twin is None
        twin = twin_of(model, step, eta=0.7, pseudo_rows=1.0) if first else twin
        allowed = ~known[:, None] | (np.arange(K) == GROUP[rows][:, None])
        views = [VIEWS[name][rows].toarray() for name in VIEWS.names]
        twin.learn(views, np.where(known, 1.0, 0.4), allowed, m_step=not first)
        close(model, twin)
    assert model.score(VIEWS, np.array(["a", "b", "c"])[GROUP]) > 0.7


def test_batches_with_all_labels_are_naive_bayes():
    X, y = VIEWS["body"], GROUP
    model = MixtureClassifier(dtype=np.float64)
    for rows in batches():
        model.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(
        model.theta_["view0"], MultinomialNB().fit(X, y).feature_log_prob_, rtol=1e-9
    )
    np.testing.assert_allclose(
        model.predict_proba(X), MixtureClassifier(dtype=np.float64).fit(X, y).predict_proba(X)
    )


def test_mini_batch_spherical_k_means():
    """It is a line of configuration: hard assignments to directions of running sums."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((K, 6))[GROUP] + 0.6 * rng.standard_normal((N, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    family, step = VonMisesFisher(kappa=10.0), StepSize(0.8, 2.0)
    settings = {"posterior": "hard", "weights": "uniform", "step": step, **DOUBLE}
    model = MixtureClusterer(K, family=family, **settings)
    sums, n_seen = None, 0
    for t, rows in enumerate(batches(), 1):
        if sums is not None:
            centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        else:
            centres = model.partial_fit(X[rows]).theta_["view0"].directions
        n_rows = rows.stop - rows.start
        n_seen += n_rows
        own = np.eye(K)[(X[rows] @ centres.T).argmax(axis=1)].T @ X[rows] / n_rows
        g = 1.0 if t == 1 else min(1.0, (t + 2.0) ** -0.8 * n_rows / (n_seen / t))
        sums = own if t == 1 else (1 - g) * sums + g * own
        if t > 1:
            model.partial_fit(X[rows])
    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(model.theta_["view0"].directions, expected, rtol=1e-9, atol=1e-12)


# -- laws of the estimators ------------------------------------------------------------------------


def after(X, *sets, model=None, weights=None):
    """Return a model after some batches, each an index of rows."""
    model = MixtureClusterer(K, **DOUBLE) if model is None else model
    for i, rows in enumerate(sets):
        weight = None if weights is None else weights[i]
        model.partial_fit(X[rows], sample_weight=weight)
    return model


def test_a_weight_of_two_is_a_row_twice():
    first, rows = np.arange(60), np.arange(60, N)
    twice = np.repeat(rows, 2)
    one = after(VIEWS, first, rows, rows, weights=[None, np.full(len(rows), 2.0), None])
    two = after(VIEWS, first, twice, rows)
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-9)
    np.testing.assert_allclose(one.theta_["body"], two.theta_["body"], rtol=1e-9)


def test_a_weight_of_zero_is_no_row():
    first, rows = np.arange(60), np.arange(60, N)
    weight = (np.arange(60, N) % 3 > 0).astype(float)
    one = after(VIEWS, first, rows, rows, weights=[None, weight, None])
    two = after(VIEWS, first, rows[weight > 0], rows)
    np.testing.assert_allclose(one.theta_["body"], two.theta_["body"], rtol=1e-9)


def test_empty_rows_are_no_rows():
    X, blank = VIEWS["body"], sp.csr_matrix((5, BODY.shape[1]))
    one = after(X, slice(0, 60), slice(60, N))
    two = after(X, slice(0, 60))
    before = two.weights_.copy()
    two.partial_fit(blank)
    np.testing.assert_array_equal(two.weights_, before)
    two.partial_fit(sp.vstack([X[60:], blank], format="csr"))
    np.testing.assert_allclose(one.theta_["view0"], two.theta_["view0"], rtol=1e-12)


def test_all_rows_after_a_fit_are_one_more_round():
    model = MixtureClusterer(K, eta=0.5, **DOUBLE).fit(VIEWS)
    longer = MixtureClusterer(K, eta=0.5, init=model, dtype=np.float64, tol=0, max_iter=1)
    longer.fit(VIEWS)
    model.partial_fit(VIEWS)
    np.testing.assert_allclose(model.theta_["title"], longer.theta_["title"], rtol=1e-9)
    np.testing.assert_allclose(model.view_weights_, longer.view_weights_, rtol=1e-9)


def test_a_first_batch_stands_for_the_rows_of_the_data():
    """So the pseudo-counts weigh as much from the beginning as they do in the end."""
    rows, step = slice(0, 60), StepSize(n_rows=300)
    model = after(VIEWS, rows, model=MixtureClusterer(K, step=step, **DOUBLE))
    fitted = MixtureClusterer(K, **DOUBLE).fit(VIEWS[rows], sample_weight=np.full(60, 5.0))
    same(model, fitted)
    assert model._stats.n_rows == pytest.approx(300)
    weight = WEIGHT[rows]
    model = MixtureClusterer(K, step=step, **DOUBLE).partial_fit(VIEWS[rows], sample_weight=weight)
    fitted.fit(VIEWS[rows], sample_weight=weight * (300 / weight.sum()))
    same(model, fitted)


def test_unlabelled_rows_count_less_in_a_first_batch():
    y = np.where(np.arange(60) % 3 > 0, GROUP[:60], -1)
    settings = {"unlabeled_weight": 0.25, **DOUBLE}
    model = MixtureClassifier(step=StepSize(n_rows=90), **settings).partial_fit(VIEWS[:60], y)
    fitted = MixtureClassifier(**settings).fit(VIEWS[:60], y, sample_weight=np.full(60, 2.0))
    same(model, fitted)  # 40 rows with a label and 20 rows of a quarter are 45 rows


def test_a_stream_that_changes_is_followed():
    """Forgetting follows groups that move; a sum lags behind."""
    rng = np.random.default_rng(0)
    scores = {}
    for step in ("forget", "sum"):
        model, found = MixtureClusterer(2, family="gaussian", step=step, random_state=0), []
        for t in range(40):
            centres = np.array([[-4.0], [4.0]]) + 0.2 * t
            X = centres[np.arange(60) % 2] + rng.standard_normal((60, 1))
            if t > 0:
                found.append(model.score(X))
            model.partial_fit(X)
        scores[step] = np.mean(found[-10:])
    assert scores["forget"] > scores["sum"] + 0.3


def test_a_component_that_gets_no_more_rows_is_reported_once():
    X = np.concatenate([np.tile([[0.0], [0.1]], (20, 1)), [[9.0], [9.1]]])
    family, step = Gaussian("spherical", reg=0.01), StepSize(0.55)
    model = MixtureClusterer(2, family=family, step=step, random_state=0).partial_fit(X)
    seen = []
    for _ in range(60):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X[:40])
        seen += [str(one.message) for one in caught]
    assert len(seen) == 1
    assert "of 2 died: no row belongs to them; use fewer components, larger batches" in seen[0]
    assert np.isfinite(model.theta_["view0"].means).all()


# -- state -----------------------------------------------------------------------------------------


def going(step="forget"):
    model = MixtureClusterer(K, step=step, random_state=0, max_iter=4, tol=0)
    return after(VIEWS, slice(0, 60), slice(60, 100), model=model)


def same(one, two):
    assert one.weights_.tobytes() == two.weights_.tobytes()
    for view in one.view_names_:
        assert one.theta_[view].tobytes() == two.theta_[view].tobytes()


@pytest.mark.parametrize("way", ["pickle", "file"])
def test_a_stored_model_goes_on_with_the_same_bits(way, tmp_path):
    model = going(StepSize(0.9, 2.5, 1000))
    if way == "pickle":
        stored = pickle.loads(pickle.dumps(model))
    else:
        model.save(tmp_path / "m.coem")
        stored = load(tmp_path / "m.coem")
    assert stored.step == StepSize(0.9, 2.5, 1000)
    for rows in (slice(100, 120), slice(120, N)):
        same(model.partial_fit(VIEWS[rows]), stored.partial_fit(VIEWS[rows]))


@pytest.mark.parametrize(
    "change", [{"n_rows": -1.0}, {"n_seen": 0.0}, {"n_batches": "3"}, {"stats": ()}]
)
def test_statistics_in_a_file_are_checked(change, tmp_path):
    model = going()
    model._stats = Running(**{**vars(model._stats), **change})
    model.save(tmp_path / "m.coem")
    with pytest.raises(ModelFileError, match="the statistics"):
        load(tmp_path / "m.coem")


def test_fit_starts_anew():
    model = going()
    fresh = clone(model)
    assert not hasattr(fresh, "weights_")
    same(model.fit(VIEWS), fresh.fit(VIEWS))
    assert model._stats is None
    same(model.partial_fit(VIEWS[:60]), fresh.partial_fit(VIEWS[:60]))


def test_a_wrong_step_changes_nothing():
    with pytest.raises(ValueError, match="step must be one of 'forget', 'sum' or a StepSize"):
        MixtureClusterer(K, step="slow").fit(VIEWS)
    model = going()
    before = pickle.dumps(model._stats)
    with pytest.raises(ValueError, match="step must be one of"):
        model.set_params(step=0.7).partial_fit(VIEWS)
    model.step = "forget"
    with pytest.raises(ValueError, match="weight"):
        model.partial_fit(VIEWS, sample_weight=-np.ones(N))
    assert pickle.dumps(model._stats) == before


# -- documents -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_passes_of_small_batches_come_as_far_as_em():
    folder = Path(os.environ.get("COEM_DATA", "")) / "20newsgroups"
    if not os.environ.get("COEM_DATA") or not folder.is_dir():
        pytest.skip("needs the folder 20newsgroups in COEM_DATA")
    X = fetch_20newsgroups(version="bydate", views=("body",)).views["body"][::16]
    X = X[:, np.diff(X.tocsc().indptr) >= 3]
    n, settings = X.shape[0], {"random_state": 0, "tol": 1e-4}
    whole = MixtureClusterer(20, **settings).fit(X)
    model = MixtureClusterer(20, step=StepSize(n_rows=n), **settings)
    rng = np.random.default_rng(0)
    for _ in range(5):
        for rows in np.array_split(rng.permutation(n), n // 100):
            model.partial_fit(X[rows])
    assert objective(whole, X) == pytest.approx(whole.objective_, rel=1e-6)
    assert objective(model, X) > objective(whole, X) - 0.02 * abs(whole.objective_)


def objective(model, X):
    """Return the log likelihood of the rows and the log prior of the parameters."""
    prior = model.families_["view0"].log_prior(model.theta_["view0"])
    return model.score_samples(X).sum() + prior


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (MixtureClusterer(3, family="gaussian"), {"n_components": 4}),
        (MixtureClusterer(3, family="gaussian"), {"family": Gaussian("diag")}),
        (MixtureClusterer(3, family="gaussian"), {"family__reg": 0.5}),
        (MixtureClusterer(3, family={"a": "gaussian"}), {"family": {"a": "von_mises_fisher"}}),
        (HiddenMarkovModel(3, family="gaussian"), {"n_components": 4}),
        (HiddenMarkovModel(3, family="gaussian"), {"family": "von_mises_fisher"}),
        (MixtureClassifier(family="gaussian"), {"components_per_class": 2}),
    ],
)
def test_a_batch_cannot_change_the_shape_of_a_model(model, change, tmp_path):
    rows = np.random.default_rng(0).standard_normal((60, 2)) + np.arange(60)[:, None] % 3 * 5
    X = {"a": rows} if isinstance(model.family, dict) else rows
    y = np.arange(60) % 3 if isinstance(model, MixtureClassifier) else None
    model = clone(model).set_params(random_state=0, max_iter=5, tol=0).partial_fit(X, y)
    model.save(tmp_path / "model.coem")
    name = next(iter(change)).split("__")[0]
    for known in (model, load(tmp_path / "model.coem")):
        before = known.theta_
        with pytest.raises(ValueError, match=f"^{name} has changed .* call fit to begin"):
            known.set_params(**change).partial_fit(X, y)
        assert known.theta_ is before
        known.fit(X, y)
        known.partial_fit(X, y)


def test_a_choice_of_sizes_is_no_change():
    X = np.random.default_rng(0).standard_normal((60, 2)) + np.arange(60)[:, None] % 3 * 5
    y = np.arange(60) % 3
    model = MixtureClassifier(family="gaussian", components_per_class=[1, 2], random_state=0)
    model.fit(X, y).partial_fit(X, y)
    with pytest.raises(ValueError, match="components_per_class has changed"):
        model.set_params(components_per_class=[1, 3]).partial_fit(X, y)


def test_another_name_of_the_same_family_is_no_change():
    X = np.random.default_rng(0).standard_normal((40, 2))
    model = MixtureClusterer(2, family="gaussian", random_state=0).partial_fit(X)
    assert len(model.set_params(family=Gaussian()).partial_fit(X).labels_) == 40
