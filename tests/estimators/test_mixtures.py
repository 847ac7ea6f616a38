"""The two mixture estimators: scikit-learn's tools around them, and what a fitted one can tell."""

import doctest
import pickle
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from coem import MixtureClassifier, MixtureClusterer, Views, metrics, schedules
from coem.engine import LocalEngine
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.schedules import Constant, Geometric, Linear, Steps, as_schedule

N, K = 60, 3
FIXED = {"tol": 0, "random_state": 0}  # a fixed number of rounds does not warn
MIXED = {"words": "multinomial", "points": Gaussian("diag"), "codes": Categorical()}


def make_data(seed=0, n=N):
    """Return counts, points and codes of the same rows in three groups, and the groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % K
    words = rng.poisson(np.where(np.arange(12) % K == group[:, np.newaxis], 3.0, 0.4))
    points = rng.normal(4.0 * np.eye(K)[group], 1.0)
    codes = np.where(rng.random((n, 4)) < 0.7, group[:, np.newaxis], rng.integers(K, size=(n, 4)))
    codes = codes.astype(float)
    codes[rng.random((n, 4)) < 0.1] = np.nan
    words[5], points[6], codes[7] = 0, np.nan, np.nan  # rows that lack a view
    return sp.csr_matrix(words), points, codes, group


WORDS, POINTS, CODES, GROUP = make_data()
VIEWS = Views(words=WORDS, points=POINTS, codes=CODES)
TEXT = Views(title=WORDS[:, :5], body=WORDS[:, 5:])
NAMES = np.array(["ham", "news", "spam"])[GROUP]


@pytest.fixture(scope="module")
def mixed():
    return MixtureClusterer(K, family=MIXED, init="k-means++", n_init=5, random_state=0).fit(VIEWS)


@pytest.fixture(scope="module")
def text():
    return MixtureClusterer(K, dtype=np.float64, n_init=5, random_state=0).fit(TEXT)


def same_bits(one, two, X):
    """Check that two models are the same to the last bit."""
    assert one.weights_.tobytes() == two.weights_.tobytes()
    assert one.objective_ == two.objective_
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert [r.objective for r in one.history_] == [r.objective for r in two.history_]


# -- views of several kinds ------------------------------------------------------------------------


def test_views_of_different_kinds_side_by_side(mixed):
    assert adjusted_rand_score(GROUP, mixed.labels_) > 0.9
    assert list(mixed.theta_) == list(mixed.families_) == ["words", "points", "codes"]
    assert mixed.theta_["words"].shape == (K, 12)
    assert mixed.theta_["points"].means.shape == (K, K)
    assert isinstance(mixed.families_["codes"], Categorical)
    assert mixed.view_proba(VIEWS).shape == (N, 3, K)
    assert mixed.n_features_in_ == VIEWS.shape[1]
    assert mixed.history_[0].log_likelihood.keys() == {"words", "points", "codes"}


@pytest.mark.parametrize("coupling", ["co-em", "joint"])
def test_what_views_may_be_given_as(coupling):
    models = [
        MixtureClusterer(K, coupling=coupling, max_iter=5, **FIXED).fit(X)
        for X in (TEXT, dict(TEXT.items()), {"title": WORDS[:, :5].toarray(), "body": WORDS[:, 5:]})
    ]
    for model in models[1:]:
        same_bits(models[0], model, TEXT)
    listed = MixtureClusterer(K, coupling=coupling, max_iter=5, **FIXED)
    listed.fit([WORDS[:, :5], WORDS[:, 5:]])
    assert list(listed.theta_) == ["view0", "view1"]
    np.testing.assert_array_equal(listed.weights_, models[0].weights_)


def test_labels_are_what_predict_gives(mixed):
    np.testing.assert_array_equal(mixed.labels_, mixed.predict(VIEWS))
    np.testing.assert_array_equal(mixed.labels_, mixed.predict_proba(VIEWS).argmax(axis=1))
    again = clone(mixed).fit_predict(VIEWS)
    np.testing.assert_array_equal(again, mixed.labels_)


def test_kinds_of_estimator():
    assert is_clusterer(MixtureClusterer())
    assert not is_classifier(MixtureClusterer())
    assert is_classifier(MixtureClassifier())


# -- scikit-learn's tools ------------------------------------------------------------------------


def test_pipeline():
    steps = [("same", FunctionTransformer()), ("mix", MixtureClusterer(K, max_iter=5, **FIXED))]
    pipe = Pipeline(steps).fit(TEXT)
    direct = MixtureClusterer(K, max_iter=5, **FIXED).fit(TEXT)
    np.testing.assert_array_equal(pipe.predict(TEXT), direct.labels_)
    assert pipe.score(TEXT) == direct.score(TEXT)
    pipe.set_params(mix__family__alpha=0.25)
    assert pipe.named_steps["mix"].family == Multinomial(alpha=0.25)
    assert pipe.get_params()["mix__family__alpha"] == 0.25


@pytest.mark.slow
def test_grid_search_over_eta_and_families():
    grid = [
        {"eta": [0.0, 0.5, Linear(1, 0, 3)]},
        {"family__alpha": [0.1, 1.0]},
        {"family": [Multinomial(0.5), Bernoulli(), "multinomial"]},
    ]
    model = MixtureClusterer(K, max_iter=5, **FIXED)
    serial = GridSearchCV(model, grid, cv=2).fit(TEXT)
    parallel = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(TEXT)
    scores = serial.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores)) > 5
    # The same bits in other processes.
    np.testing.assert_array_equal(scores, parallel.cv_results_["mean_test_score"])
    assert parallel.best_index_ == serial.best_index_
    assert parallel.predict(TEXT).shape == (N,)
    assert model.family == "auto"  # the search works on copies


@pytest.mark.slow
def test_grid_search_over_the_family_of_one_view():
    model = MixtureClusterer(K, family=MIXED, max_iter=4, **FIXED)
    grid = {"family__words__alpha": [0.1, 2.0], "family__points__covariance": ["diag", "unit"]}
    search = GridSearchCV(model, grid, cv=2).fit(VIEWS)
    best = search.best_estimator_.families_
    assert best["words"].alpha == search.best_params_["family__words__alpha"]
    assert best["points"].covariance == search.best_params_["family__points__covariance"]
    assert model.family is MIXED
    assert MIXED["words"] == "multinomial"


def test_grid_search_of_a_classifier():
    pipe = make_pipeline(FunctionTransformer(), MixtureClassifier(**FIXED, max_iter=4))
    grid = {"mixtureclassifier__unlabeled_weight": [0.0, 1.0]}
    search = GridSearchCV(pipe, grid, cv=3).fit(TEXT, NAMES)
    assert search.best_score_ > 0.8
    assert search.score(TEXT, NAMES) > 0.8


def test_cross_validation():
    clusterer = MixtureClusterer(K, max_iter=5, **FIXED)
    assert np.isfinite(cross_val_score(clusterer, TEXT, cv=3)).all()
    classifier = MixtureClassifier(family=MIXED, max_iter=5, **FIXED)
    assert (cross_val_score(classifier, VIEWS, NAMES, cv=3) > 0.8).all()
    proba = cross_val_predict(classifier, VIEWS, NAMES, cv=3, method="predict_proba")
    assert proba.shape == (N, K)


def test_train_test_split():
    train, test, y_train, y_test = train_test_split(VIEWS, NAMES, random_state=0, stratify=NAMES)
    model = MixtureClassifier(family=MIXED).fit(train, y_train)
    assert model.score(test, y_test) > 0.8
    assert len(test) == len(y_test) == N // 4


@pytest.mark.parametrize("engine", [None, LocalEngine(2)])
def test_clone_and_pickle(engine):
    model = MixtureClusterer(K, family=MIXED, eta=Linear(1, 0, 3), max_iter=4, **FIXED)
    model.set_params(engine=engine)
    fitted = clone(model).fit(VIEWS)
    assert not hasattr(clone(fitted), "weights_")
    restored = pickle.loads(pickle.dumps(fitted))
    same_bits(fitted, restored, VIEWS)
    assert restored.score(VIEWS) == fitted.score(VIEWS)
    restored.partial_fit(VIEWS)


# -- parameters ------------------------------------------------------------------------------------


def test_params_of_families():
    model = MixtureClusterer(K)
    params = model.get_params()
    assert params["family"] == "auto"
    assert params["family__alpha"] == 1.0
    assert not [name for name in model.get_params(deep=False) if "__" in name]
    assert model.set_params(family__alpha=0.5) is model
    assert model.family == Multinomial(alpha=0.5)
    model.set_params(family="gaussian", family__reg=0.1, family__covariance="tied")
    assert model.family == Gaussian("tied", reg=0.1)
    assert model.get_params()["family__covariance"] == "tied"


def test_params_of_families_by_view():
    family = {"title": "multinomial", "body": Bernoulli(0.5)}
    model = MixtureClusterer(K, family=family)
    assert model.get_params()["family__title__alpha"] == 1.0
    assert model.get_params()["family__body__alpha"] == 0.5
    other = clone(model).set_params(family__title__alpha=0.1, n_components=2)
    assert other.family == {"title": Multinomial(alpha=0.1), "body": Bernoulli(0.5)}
    assert model.family == {"title": "multinomial", "body": Bernoulli(0.5)}
    assert other.fit(TEXT).families_["title"].alpha == 0.1


@pytest.mark.parametrize(
    ("family", "params", "words"),
    [
        ("multinomial", {"family__reg": 1.0}, "invalid parameter 'family__reg'"),
        ("multinomial", {"family__title__alpha": 1.0}, "'family__title__alpha'"),
        ({"title": "multinomial"}, {"family__alpha": 1.0}, "invalid parameter 'family__alpha'"),
        ({"title": "multinomial"}, {"family__body__alpha": 1.0}, "'family__body__alpha'"),
        ({"title": "multinomial"}, {"family__title__reg": 1.0}, "invalid parameter 'family__"),
        ("multinomial", {"family__alpha": -1.0}, "alpha must be 0 or more"),
        ("poisson", {"family__alpha": 1.0}, "unknown family 'poisson'"),
        ("multinomial", {"famly": "gaussian"}, "Invalid parameter 'famly'"),
    ],
)
def test_params_that_are_none(family, params, words):
    model = MixtureClusterer(K, family=family)
    with pytest.raises((ValueError, AttributeError), match=words):
        model.set_params(**params)


def test_parameters_are_stored_as_given():
    family = {"title": "multinomial", "body": Bernoulli()}
    eta, init = Linear(1, 0), np.ones((N, K))
    model = MixtureClusterer(K, family=family, eta=eta, init=init)
    assert model.family is family
    assert model.eta is eta
    assert model.init is init
    model.set_params(max_iter=2, tol=0).fit(TEXT)
    assert model.family is family
    assert model.eta is eta
    assert model.init is init


# -- records ---------------------------------------------------------------------------------------

ROUND = {"round", "objective", "free_energy", "log_likelihood", "dissent", "agreement_rate"}
ROUND |= {"eta", "beta"}


def test_history():
    eta, beta = Linear(1, 0, 4), Geometric(0.25, 2.0)
    model = MixtureClusterer(K, eta=eta, beta=beta, max_iter=7, **FIXED).fit(TEXT)
    assert len(model.history_) == model.n_iter_ == 7
    for t, record in enumerate(model.history_):
        assert record.keys() == ROUND | {"seconds"}
        for key in record:
            assert record[key] is getattr(record, key)
        assert record.round == t + 1
        assert record.eta == eta(t)
        assert record.log_likelihood.keys() == {"title", "body"}
        assert 0 <= record.agreement_rate <= 1
        assert record.seconds >= 0
    assert [r.beta for r in model.history_[-3:]] == [1.0] * 3
    assert model.objective_ == model.history_[-1].objective
    assert not model.converged_


def test_history_as_a_frame():
    model = MixtureClusterer(K, max_iter=4, n_init=2, **FIXED).fit(TEXT)
    frame = model.history_.to_frame()
    assert len(frame) == model.n_iter_
    likelihoods = {"log_likelihood_title", "log_likelihood_body"}
    assert set(frame.columns) == ROUND - {"log_likelihood"} | {"seconds"} | likelihoods
    assert frame["objective"].tolist() == [r.objective for r in model.history_]
    assert frame["log_likelihood_body"].iloc[-1] == model.history_[-1].log_likelihood["body"]
    runs = model.runs_.to_frame()
    told = {"run", "seed", "objective", "n_iter", "converged", "seconds"} | {
        "silent_views",
        "view_betas",
    }
    assert set(runs.columns) == told
    assert runs["objective"].max() == model.objective_


def test_history_under_joint_coupling():
    model = MixtureClusterer(K, coupling="joint", max_iter=4, **FIXED).fit(TEXT)
    assert model.history_[0].log_likelihood.keys() == {"joint"}
    total = model.score_samples(TEXT).sum()
    assert model.history_[-1].log_likelihood["joint"] == pytest.approx(total, rel=1e-6)


def test_the_best_restart_is_kept():
    model = MixtureClusterer(K, init="random", n_init=6, max_iter=8, **FIXED).fit(TEXT)
    objectives = [run.objective for run in model.runs_]
    assert len(model.runs_) == 6
    assert len(set(objectives)) > 1
    assert len({run.seed for run in model.runs_}) == 6
    assert model.best_run_ == np.argmax(objectives)
    assert model.objective_ == max(objectives)
    assert model.runs_[model.best_run_].n_iter == model.n_iter_
    assert all(run.keys() >= {"seed", "objective", "n_iter", "converged"} for run in model.runs_)


@pytest.mark.parametrize("family", ["multinomial", "bernoulli"])
def test_restarts_in_parallel_have_the_same_bits(family):
    one, two = (
        MixtureClusterer(K, family=family, n_init=4, max_iter=8, n_jobs=n_jobs, **FIXED).fit(TEXT)
        for n_jobs in (None, 2)
    )
    same_bits(one, two, TEXT)
    assert [run.objective for run in one.runs_] == [run.objective for run in two.runs_]


def test_restarts_in_parallel_have_the_same_bits_for_dense_views():
    X = Views(points=POINTS, words=WORDS)
    family = {"points": "gaussian", "words": "multinomial"}
    one, two = (
        MixtureClusterer(K, family=family, n_init=3, max_iter=8, n_jobs=n_jobs, **FIXED).fit(X)
        for n_jobs in (1, 3)
    )
    same_bits(one, two, X)


def test_threads_do_not_change_the_bits_of_many_blocks():
    X, *_ = make_data(seed=1, n=5000)
    one, two = (
        MixtureClusterer(K, max_iter=4, n_jobs=n_jobs, **FIXED).fit(X) for n_jobs in (None, 2)
    )
    same_bits(one, two, X)


def test_an_engine_may_be_given():
    engine = LocalEngine(2)
    model = MixtureClusterer(K, max_iter=4, engine=engine, **FIXED)
    expected = MixtureClusterer(K, max_iter=4, **FIXED).fit(TEXT)
    for _ in range(2):  # it can be used again
        same_bits(model.fit(TEXT), expected, TEXT)
    assert model.engine is engine


def test_the_same_seed_gives_the_same_bits():
    for seed in (3, np.random.RandomState(3)):
        one = MixtureClusterer(K, max_iter=4, tol=0, random_state=3).fit(TEXT)
        two = MixtureClusterer(K, max_iter=4, tol=0, random_state=seed).fit(TEXT)
        same_bits(one, two, TEXT)


def test_verbose_writes_to_stderr_alone(capsys):
    MixtureClusterer(K, verbose=10, max_iter=3, **FIXED).fit(TEXT)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("MixtureClusterer: View 'title' has Multinomial components: its ")
    assert lines[2].startswith("[MixtureClusterer] run 1 round 1: objective -")
    MixtureClassifier(verbose=1, max_iter=3, tol=0).fit(TEXT, NAMES)
    out, err = capsys.readouterr()
    assert out == ""
    assert "[MixtureClassifier]" in err
    MixtureClusterer(K, max_iter=3, **FIXED).fit(TEXT)
    assert capsys.readouterr() == ("", "")


# -- convergence ----------------------------------------------------------------------------------


def test_convergence_and_what_is_said_without_it():
    model = MixtureClusterer(K, random_state=0, tol=1e-4).fit(WORDS)
    assert model.converged_
    assert model.n_iter_ < 200
    last, before = (model.history_[i].objective for i in (-1, -2))
    assert abs(last - before) < 1e-4 * abs(last)
    with pytest.warns(ConvergenceWarning, match="no convergence after 2 rounds; raise max_iter"):
        MixtureClusterer(K, init="random", random_state=0, max_iter=2).fit(WORDS)
    assert not MixtureClusterer(K, max_iter=2, **FIXED).fit(WORDS).converged_  # and no warning


def test_convergence_waits_for_the_schedules():
    model = MixtureClusterer(K, beta=Linear(0.5, 1.0, 30), tol=0.5, random_state=0).fit(WORDS)
    assert model.n_iter_ > 30
    assert model.beta_ == 1.0


@pytest.mark.parametrize("coupling", ["co-em", "joint"])
def test_patience_returns_the_best_round(coupling):
    options = {"coupling": coupling, "eta": 1.0, "random_state": 3, "dtype": np.float64}
    model = MixtureClusterer(K, patience=2, tol=0, **options).fit(TEXT)
    totals = [sum(record.log_likelihood.values()) for record in model.history_]
    best = int(np.argmax(totals))
    assert model.converged_
    assert model.n_iter_ == len(totals) < 200
    assert model.objective_ == model.history_[best].objective
    # No view reached a new maximum in the last two rounds, and one did before.
    for view in model.history_[0].log_likelihood:
        values = [record.log_likelihood[view] for record in model.history_]
        assert max(values[-2:]) <= max(values[:-2])
    again = MixtureClusterer(K, max_iter=best + 1, tol=0, **options).fit(TEXT)
    for name, theta in again.theta_.items():
        np.testing.assert_array_equal(model.theta_[name], theta)
    np.testing.assert_array_equal(model.weights_, again.weights_)


def test_the_objective_of_one_view_never_falls():
    for family in ("multinomial", "bernoulli"):
        model = MixtureClusterer(K, family=family, dtype=np.float64, max_iter=30, **FIXED)
        objectives = [record.objective for record in model.fit(WORDS).history_]
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(objectives))


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_reg_gives_no_false_alarm(covariance):
    # `reg` is no prior: a step may cost what the blur costs, which is nobody's mistake.
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(60, 3))
        family = Gaussian(covariance, reg=0.1)
        MixtureClusterer(4, family=family, random_state=seed, max_iter=100).fit(X)


# -- warm starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (WORDS, {}),
        (WORDS, {"posterior": "hard"}),
        (TEXT, {"coupling": "joint"}),
        (POINTS[8:], {"family": Gaussian("diag")}),
    ],
)
def test_a_fitted_model_is_a_start(X, options):
    options = options | {"dtype": np.float64, **FIXED}
    first = MixtureClusterer(K, max_iter=3, **options).fit(X)
    second = MixtureClusterer(K, max_iter=4, init=first, **options).fit(X)
    straight = MixtureClusterer(K, max_iter=7, **options).fit(X)
    np.testing.assert_allclose(second.weights_, straight.weights_, rtol=1e-9)
    assert second.objective_ == pytest.approx(straight.objective_, rel=1e-12)
    assert len(second.runs_) == 1


def test_a_warm_start_of_several_views_goes_on(text):
    model = MixtureClusterer(K, dtype=np.float64, init=text, tol=1e-6).fit(TEXT)
    np.testing.assert_array_equal(model.labels_, text.labels_)
    assert model.objective_ == pytest.approx(text.objective_, rel=1e-4)
    assert model.n_iter_ < text.n_iter_


def test_a_start_of_responsibilities():
    model = MixtureClusterer(K, family=MIXED, init=np.eye(K)[GROUP], max_iter=3, tol=0).fit(VIEWS)
    assert adjusted_rand_score(GROUP, model.labels_) > 0.9
    assert np.mean(model.labels_ == GROUP) > 0.9  # components keep their numbers


@pytest.mark.parametrize("init", ["random", "rows", "k-means++", "spherical"])
@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "gaussian", "von_mises_fisher"])
def test_every_start_finds_the_groups(init, family):
    X = POINTS if family == "gaussian" else WORDS
    model = MixtureClusterer(K, family=family, init=init, n_init=8, random_state=1).fit(X)
    assert adjusted_rand_score(GROUP, model.labels_) > 0.6


# -- batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_add_up(weighted):
    first, second, weight = WORDS[:36], WORDS[36:], None
    model = MixtureClusterer(K, step="sum", dtype=np.float64, random_state=0).partial_fit(first)
    alone = model.weights_.copy()
    old = model.predict_proba(first), model.predict_proba(second)
    if weighted:
        weight = np.linspace(0.0, 2.0, second.shape[0])
    assert model.partial_fit(second, sample_weight=weight) is model
    # The twin: responsibilities of both batches with the first parameters, and one M step.
    resp = np.concatenate([old[0], old[1] * (1.0 if weight is None else weight[:, np.newaxis])])
    counts = WORDS.toarray()
    resp[counts.sum(axis=1) == 0] = 0.0
    np.testing.assert_allclose(model.weights_, resp.sum(axis=0) / resp.sum(), rtol=1e-9)
    sums = resp.T @ counts + 1.0
    expected = np.log(sums / sums.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(model.theta_["view0"], expected, rtol=1e-9)
    assert not np.allclose(model.weights_, alone)
    assert len(model.labels_) == second.shape[0]
    np.testing.assert_array_equal(model.labels_, model.predict(second))


def test_the_first_batch_is_a_fit():
    one = MixtureClusterer(K, max_iter=5, **FIXED).partial_fit(TEXT)
    same_bits(one, MixtureClusterer(K, max_iter=5, **FIXED).fit(TEXT), TEXT)


def test_batches_after_a_fit_start_from_its_parameters():
    model = MixtureClusterer(K, dtype=np.float64, random_state=0).fit(WORDS)
    batch = WORDS[:20]
    resp = model.predict_proba(batch)
    resp[np.diff(batch.indptr) == 0] = 0.0
    model.partial_fit(batch)
    np.testing.assert_allclose(model.weights_, resp.sum(axis=0) / resp.sum(), rtol=1e-9)


def test_batches_of_several_views():
    model = MixtureClusterer(K, family=MIXED, max_iter=10, **FIXED)
    for start in range(0, N, 20):
        model.partial_fit(VIEWS[start : start + 20])
    assert len(model.labels_) == 20
    assert np.isfinite(model.score(VIEWS))
    fresh = clone(model).fit(VIEWS)
    model.fit(VIEWS)  # forgets the batches
    same_bits(fresh, model, VIEWS)


def test_batches_of_labels():
    y = NAMES.astype(object)
    y[::2] = None
    model = MixtureClassifier(family=MIXED).partial_fit(
        VIEWS[:30], y[:30], classes=np.unique(NAMES)
    )
    model.partial_fit(VIEWS[30:], y[30:])
    assert model.score(VIEWS, NAMES) > 0.8
    assert len(model.labels_) == 30
    model.partial_fit(VIEWS[:3], [None] * 3)  # later batches need no label
    assert len(model.labels_) == 3


# -- samples ---------------------------------------------------------------------------------------


def test_samples(mixed):
    drawn, labels = mixed.sample(50, random_state=1)
    assert isinstance(drawn, Views)
    assert drawn.names == ("words", "points", "codes")
    assert [drawn[name].shape for name in drawn.names] == [(50, 12), (50, K), (50, 4)]
    assert labels.shape == (50,)
    assert np.mean(mixed.predict(drawn) == labels) > 0.8
    again, same = mixed.sample(50, random_state=1)
    np.testing.assert_array_equal(labels, same)
    for name in drawn.names:
        one, two = (sp.csr_matrix(d[name]).toarray() for d in (drawn, again))
        np.testing.assert_array_equal(one, two)
    other, _ = mixed.sample(50, random_state=2)
    assert not np.array_equal(other["points"], drawn["points"])


def test_samples_of_one_view_are_a_matrix():
    model = MixtureClusterer(K, max_iter=5, **FIXED).fit(WORDS)
    drawn, labels = model.sample(4000, random_state=0)
    assert sp.issparse(drawn)
    assert drawn.shape == (4000, 12)
    shares = np.bincount(labels, minlength=K) / 4000
    np.testing.assert_allclose(shares, model.weights_, atol=0.03)
    for j in range(K):
        rows = drawn[labels == j].sum(axis=0)
        np.testing.assert_allclose(
            np.asarray(rows).ravel() / rows.sum(), np.exp(model.theta_["view0"][j]), atol=0.03
        )
    assert model.sample()[0].shape == (1, 12)
    np.testing.assert_array_equal(model.sample(9)[1], model.sample(9)[1])  # the model's own seed


# -- likelihoods and criteria ----------------------------------------------------------------------


def test_score_is_the_mean_log_likelihood(mixed, text):
    for model, X in ((mixed, VIEWS), (text, TEXT)):
        assert model.score(X) == model.score_samples(X).mean()
    joint = np.log(text.weights_) + sum(
        np.asarray(TEXT[name] @ np.asarray(text.theta_[name]).T) for name in TEXT.names
    )
    expected = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(text.score_samples(TEXT), expected, rtol=1e-10, atol=1e-14)


CRITERIA = {
    "multinomial": ("multinomial", WORDS, K * 11),
    "bernoulli": ("bernoulli", WORDS, K * 12),
    "categorical": ("categorical", CODES, K * 4 * (K - 1)),
    "gaussian full": (Gaussian("full"), POINTS, K * K + K * 6),
    "gaussian tied": (Gaussian("tied"), POINTS, K * K + 6),
    "gaussian diag": (Gaussian("diag"), POINTS, K * K + K * 3),
    "gaussian spherical": (Gaussian("spherical"), POINTS, K * K + K),
    "gaussian unit": (Gaussian("unit"), POINTS, K * K),
    "directions": (VonMisesFisher(), POINTS, K * 2),
    "directions, fitted": (VonMisesFisher("fit"), POINTS, K * 2 + K),
}


@pytest.mark.parametrize("case", CRITERIA)
@pytest.mark.parametrize("weights", ["global", "uniform"])
def test_criteria(case, weights):
    family, X, n_parameters = CRITERIA[case]
    model = MixtureClusterer(K, family=family, weights=weights, max_iter=5, **FIXED).fit(X)
    n_parameters += K - 1 if weights == "global" else 0
    log_likelihood, proba = model.score_samples(X).sum(), model.predict_proba(X)
    entropy = -(proba * np.log(np.maximum(proba, 1e-300))).sum()
    bic = -2 * log_likelihood + n_parameters * np.log(N)
    assert model.aic(X) == pytest.approx(-2 * log_likelihood + 2 * n_parameters)
    assert model.bic(X) == pytest.approx(bic)
    assert model.icl(X) == pytest.approx(bic + 2 * entropy)


# -- explanations ----------------------------------------------------------------------------------


def check_explanations(model, X, explanations):
    proba = model.predict_proba(X)
    best = np.sort(proba, axis=1)
    assert len(explanations) == len(proba)
    for i, e in enumerate(explanations):
        parts = [e.prior, *(part.rest for part in e.views.values())]
        parts += [value for part in e.views.values() for value in part.contributions]
        assert sum(parts) == pytest.approx(e.log_odds, rel=1e-12, abs=1e-12)
        assert e.label == proba[i].argmax()
        assert e.label != e.against
        assert proba[i, e.against] == best[i, -2]
        ratio = np.log(proba[i, e.label]) - np.log(proba[i, e.against])
        assert e.log_odds == pytest.approx(ratio, rel=1e-8, abs=1e-8)


def test_explanations_add_up_to_the_log_odds(text):
    explanations = text.explain(TEXT)
    check_explanations(text, TEXT, explanations)
    table = np.asarray(text.theta_["title"])
    for i, e in enumerate(explanations):
        row = TEXT["title"][i]
        if row.nnz == 0:
            assert "title" not in e.views
            continue
        part = e.views["title"]
        np.testing.assert_array_equal(part.features, row.indices)
        expected = row.data * (table[e.label] - table[e.against])[row.indices]
        np.testing.assert_allclose(part.contributions, expected, rtol=1e-12, atol=1e-14)
        assert part.rest == 0.0


def test_explanations_of_every_family():
    family = {"words": "bernoulli", "points": Gaussian("diag"), "codes": Categorical()}
    model = MixtureClusterer(
        K, family=family, dtype=np.float64, beta=1.0, init=np.eye(K)[GROUP], max_iter=3, tol=0
    ).fit(VIEWS)
    explanations = model.explain(VIEWS)
    check_explanations(model, VIEWS, explanations)
    for i, e in enumerate(explanations):
        assert e.views.keys() == {name for v, name in enumerate(VIEWS.names) if i != 5 + v}
        if "points" in e.views:  # as a whole: a density that does not come apart
            assert len(e.views["points"].features) == len(e.views["points"].contributions)
            if model.families_["points"].terms(POINTS[i : i + 1], model.theta_["points"]) is None:
                assert len(e.views["points"].features) == 0
        if "codes" in e.views:
            known = np.flatnonzero(~np.isnan(CODES[i]))
            np.testing.assert_array_equal(e.views["codes"].features, known)


def test_explanations_in_single_precision_nearly_add_up():
    model = MixtureClusterer(K, max_iter=5, **FIXED).fit(TEXT)
    proba = model.predict_proba(TEXT)
    for i, e in enumerate(model.explain(TEXT)):
        ratio = np.log(proba[i, e.label] / proba[i, e.against])
        assert e.log_odds == pytest.approx(ratio, abs=1e-4)


def test_of_equal_components_the_explained_one_is_the_predicted_one():
    model = MixtureClusterer(3, init=np.ones((N, 3)), weights="uniform", max_iter=1, tol=0)
    model.fit(WORDS)
    np.testing.assert_array_equal(model.predict(WORDS), 0)
    for e in model.explain(WORDS):
        assert (e.label, e.log_odds) == (0, 0.0)


def test_explanations_of_a_classifier():
    model = MixtureClassifier(dtype=np.float64).fit(TEXT, NAMES)
    predicted = model.predict(TEXT)
    for e, name in zip(model.explain(TEXT), predicted, strict=True):
        assert e.label == name


# -- features --------------------------------------------------------------------------------------


def wllr_twin(prob, weights):
    out = np.zeros_like(prob)
    for c in range(len(prob)):
        others = [j for j in range(len(prob)) if j != c]
        rest = sum(weights[j] * prob[j] for j in others) / sum(weights[j] for j in others)
        out[c] = prob[c] * np.log(prob[c] / rest)
    return out


@pytest.mark.parametrize("family", ["multinomial", "bernoulli"])
def test_top_features(family):
    model = MixtureClusterer(K, family=family, dtype=np.float64, max_iter=8, **FIXED).fit(TEXT)
    for view in TEXT.names:
        theta = model.theta_[view]
        if family == "multinomial":
            prob = np.exp(np.asarray(theta))
        else:
            prob = 1 / (1 + np.exp(-np.asarray(theta.log_odds)))
        for by, values in (("prob", prob), ("wllr", wllr_twin(prob, model.weights_))):
            top = model.top_features(view, n=4, by=by)
            assert len(top) == K
            for j, features in enumerate(top):
                expected = np.sort(values[j])[::-1][:4]
                assert len(features) == 4
                np.testing.assert_allclose([value for _, value in features], expected, rtol=1e-9)
                for feature, value in features:
                    assert values[j, feature] == pytest.approx(value, rel=1e-9)
    assert len(model.top_features("title", n=100)[0]) == 5
    assert model.top_features("body") == model.top_features("body", n=10, by="wllr")


def test_without_pseudo_counts_a_feature_that_occurs_once_is_not_the_first():
    X = np.array([[50, 1, 49], [5, 0, 95]])
    family = Multinomial(alpha=0)
    start = np.eye(2)
    model = MixtureClusterer(2, family=family, init=start, max_iter=1, tol=0, dtype=float).fit(X)
    best = model.top_features(n=3)
    assert [top[0][0] for top in best] == [0, 2]
    assert dict(best[0])[1] == pytest.approx(0.01 * np.log(0.01 / (1 / 200)))


def test_top_features_have_the_names_of_the_columns():
    frame = pd.DataFrame(WORDS.toarray(), columns=[f"word{i}" for i in range(12)])
    model = MixtureClusterer(K, max_iter=5, **FIXED).fit(frame)
    named = model.top_features(n=3)
    numbered = MixtureClusterer(K, max_iter=5, **FIXED).fit(WORDS).top_features(n=3)
    for names, numbers in zip(named, numbered, strict=True):
        assert names == [(f"word{i}", value) for i, value in numbers]


# -- disagreement ----------------------------------------------------------------------------------


def test_disagreement_is_the_dissent_of_a_row():
    model = MixtureClusterer(K, family=MIXED, max_iter=5, **FIXED).fit(VIEWS)
    proba, empty = model.view_proba(VIEWS), VIEWS.empty.copy()
    empty[:, 2] = np.isnan(CODES).all(axis=1)  # a code of 0 is a value
    got = model.disagreement(VIEWS)
    for i in range(N):
        expected = metrics.dissent(proba[i : i + 1], empty[i : i + 1])
        assert got[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert got.max() > 0


def test_one_view_has_no_other_to_disagree_with():
    model = MixtureClusterer(K, max_iter=3, **FIXED).fit(WORDS)
    np.testing.assert_array_equal(model.disagreement(WORDS), 0.0)


def test_recorded_dissent_is_that_of_the_rows():
    model = MixtureClusterer(K, dtype=np.float64, max_iter=5, **FIXED).fit(TEXT)
    last = model.history_[-1]
    # The views' posteriors use the weights of their own turn, so this is close and not equal.
    assert last.dissent == pytest.approx(model.disagreement(TEXT).sum(), rel=0.2)


# -- schedules -------------------------------------------------------------------------------------


def test_schedules():
    def values(schedule, n):
        return [schedule(t) for t in range(n)]

    assert values(Constant(0.3), 3) == [0.3] * 3
    assert values(Linear(1.0, 0.0, 4), 6) == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    assert values(Linear(0.2, 0.2, 2), 4) == [0.2] * 4
    assert values(Geometric(0.25, 2.0), 5) == [0.25, 0.5, 1.0, 1.0, 1.0]
    assert values(Geometric(1.0, 0.5, 0.3), 4) == [1.0, 0.5, 0.3, 0.3]
    assert values(Steps([0.5, 1.0], 2), 5) == [0.5, 0.5, 1.0, 1.0, 1.0]
    assert values(Steps(np.array([0.5])), 3) == [0.5] * 3
    lengths = {
        Constant(0.3): 0,
        Linear(1.0, 0.0, 4): 4,
        Geometric(0.25, 2.0): 2,
        Geometric(1.0, 0.5, 0.3): 2,
        Geometric(1.0, 2.0, 1.0): 0,
        Steps((0.5, 1.0), 2): 2,
        Steps((0.5,), 7): 0,
    }
    for schedule, length in lengths.items():
        assert len(schedule) == length
        assert schedule(length) == schedule(length + 1) == schedule(length + 50)
        assert length == 0 or schedule(length - 1) != schedule(length)


def test_a_fall_to_0_ends():
    schedule = Geometric(1.0, 0.5, 0.0)
    assert schedule(len(schedule)) == 0.0
    assert schedule(len(schedule) - 1) >= 1e-3


@pytest.mark.parametrize("schedule", [Geometric(0.25, 2.0), Geometric(1.0, 0.5, 0.1)])
def test_schedules_go_on_for_any_number_of_rounds(schedule):
    assert schedule(5000) == schedule.stop


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Linear, (0, 1, 0)),
        (Linear, (0, 1, -3)),
        (Geometric, (0.0, 2.0)),
        (Geometric, (0.5, 0.0)),
        (Geometric, (0.5, -1.0)),
        (Geometric, (np.nan, 2.0)),
        # The next ones never reach their end: their length would be counted for ever.
        (Geometric, (0.5, 0.5, 1.0)),
        (Geometric, (1.0, 2.0, 0.5)),
        (Geometric, (0.5, 1.0, 1.0)),
        (Geometric, (1.0, 1.0, 0.5)),
        (Geometric, (0.5, 0.5, -1.0)),
        (Geometric, (0.5, 0.5, np.nan)),
        (Geometric, (0.5, 2.0, np.inf)),
        (Steps, ([],)),
        (Steps, ([0.5], 0)),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value),
)
def test_schedules_that_make_no_sense_are_refused(kind, fields):
    with pytest.raises(ValueError, match=r"rounds must be an integer of 1|Geometric|Steps needs"):
        kind(*fields)


def test_as_schedule():
    assert as_schedule(0.5, "eta") == Constant(0.5)
    assert as_schedule(1, "eta")(10) == 1.0
    linear = Linear(0, 1)
    assert as_schedule(linear, "eta") is linear
    with pytest.raises(ValueError, match=r"eta must lie between 0 and 1, got 1\.5"):
        as_schedule(Steps([0.5, 1.5]), "eta")
    with pytest.raises(TypeError, match="beta must be a number or a schedule"):
        as_schedule(None, "beta")


def test_the_examples_of_schedules():
    result = doctest.testmod(schedules)
    assert result.attempted >= 6
    assert result.failed == 0


# -- labels ----------------------------------------------------------------------------------------

KNOWN = np.arange(N) % 4 != 1
NUMBERS = GROUP.tolist()


def hide(labels, marker):
    """Return a list of the labels with a marker where they are not known."""
    return [label if k else marker for label, k in zip(labels, KNOWN, strict=True)]


MARKED = {
    "names, None": (hide(NAMES.tolist(), None), "names"),
    "names, empty": (hide(NAMES.tolist(), ""), "names"),
    "names, NaN": (hide(NAMES.tolist(), float("nan")), "names"),
    "names, -1": (hide(NAMES.tolist(), -1), "names"),
    "numbers, None": (hide(NUMBERS, None), "numbers"),
    "numbers, -1": (hide(NUMBERS, -1), "numbers"),
    "numbers, NaN": (hide(NUMBERS, float("nan")), "numbers"),
    "numbers, empty": (hide(NUMBERS, ""), "numbers"),
    "NumPy's numbers, -1 and None": (
        [GROUP[0], None, *hide(GROUP, np.int64(-1))[2:]],
        "numbers",
    ),
    "array of names": (np.array(hide(NAMES.tolist(), "")), "names"),
    "array of numbers": (np.array(hide(NUMBERS, -1)), "numbers"),
    "array of floats, NaN": (np.array(hide(NUMBERS, np.nan)), "numbers"),
    "array of floats, -1": (np.array(hide(NUMBERS, -1), dtype=float), "numbers"),
    "array of objects, None": (np.array(hide(NAMES.tolist(), None), dtype=object), "names"),
    "array of objects, NaN": (np.array(hide(NAMES.tolist(), np.nan), dtype=object), "names"),
    "array of objects, -1": (np.array(hide(NAMES.tolist(), -1), dtype=object), "names"),
    "array of NumPy's numbers": (
        np.array(hide([np.int64(g) for g in GROUP], np.int64(-1)), dtype=object),
        "numbers",
    ),
    "array of NumPy's floats": (
        np.array(hide([np.float32(g) for g in GROUP], np.float32("nan")), dtype=object),
        "numbers",
    ),
    "series of names, None": (pd.Series(hide(NAMES.tolist(), None)), "names"),
    "series of names, empty": (pd.Series(hide(NAMES.tolist(), "")), "names"),
    "series of objects, NaN": (pd.Series(hide(NAMES.tolist(), np.nan), dtype=object), "names"),
    "series of strings, NA": (pd.Series(hide(NAMES.tolist(), pd.NA), dtype="string"), "names"),
    "series of objects, NA": (pd.Series(hide(NAMES.tolist(), pd.NA), dtype=object), "names"),
    "series of categories": (pd.Series(hide(NAMES.tolist(), None), dtype="category"), "names"),
    "series of numbers, -1": (pd.Series(hide(NUMBERS, -1)), "numbers"),
    "series of numbers, NaN": (pd.Series(hide(NUMBERS, np.nan)), "numbers"),
    "series of integers, NA": (pd.Series(hide(NUMBERS, pd.NA), dtype="Int64"), "numbers"),
    "series with an index of its own": (
        pd.Series(hide(NAMES.tolist(), None), index=np.arange(N)[::-1]),
        "names",
    ),
}


@pytest.fixture(scope="module")
def expected():
    """Return the model of labels 0, 1, 2 and -1 in an array, by hand."""
    return MixtureClassifier(dtype=np.float64).fit(TEXT, np.where(KNOWN, GROUP, -1))


@pytest.mark.parametrize("case", MARKED)
def test_rows_without_a_label(case, expected):
    y, kind = MARKED[case]
    model = MixtureClassifier(dtype=np.float64).fit(TEXT, y)
    classes = [0, 1, 2] if kind == "numbers" else ["ham", "news", "spam"]
    assert model.classes_.tolist() == classes
    np.testing.assert_array_equal(model.predict_proba(TEXT), expected.predict_proba(TEXT))


def test_labels_are_predicted_in_kind():
    for y, kind in ((NAMES, "U"), (GROUP, "i"), (GROUP == 1, "b"), (GROUP * 1.0, "f")):
        model = MixtureClassifier().fit(TEXT, y)
        assert model.classes_.dtype.kind == kind
        assert model.predict(TEXT).dtype.kind == kind
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        assert model.score(TEXT, y) > 0.8
        assert model.predict_proba(TEXT).shape == (N, len(np.unique(y)))


def test_rows_without_a_label_are_predicted():
    y = np.full(N, "", dtype="<U4")
    y[:6] = NAMES[:6]
    model = MixtureClassifier(family=MIXED).fit(VIEWS, y)
    assert len(model.labels_) == N
    assert np.mean(model.labels_[6:] == NAMES[6:]) > 0.9
    assert model.weights_.sum() == pytest.approx(1.0)
    without = MixtureClassifier(family=MIXED, unlabeled_weight=0.0).fit(VIEWS, y)
    assert not np.allclose(model.theta_["points"].means, without.theta_["points"].means)
    alone = MixtureClassifier(family=MIXED).fit(VIEWS[:6], y[:6])
    np.testing.assert_allclose(alone.theta_["points"].means, without.theta_["points"].means)


def test_the_caller_keeps_his_labels_and_weights():
    y = np.where(KNOWN, GROUP, -1)
    weight = np.ones(N)
    before = y.copy()
    MixtureClassifier(unlabeled_weight=0.5).fit(TEXT, y, sample_weight=weight)
    np.testing.assert_array_equal(y, before)
    np.testing.assert_array_equal(weight, 1.0)


# -- data frames -----------------------------------------------------------------------------------


def test_data_frames():
    names = [f"word{i}" for i in range(12)]
    frame = pd.DataFrame(WORDS.toarray(), columns=names)
    model = MixtureClusterer(K, max_iter=5, **FIXED).fit(frame)
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 12
    expected = MixtureClusterer(K, max_iter=5, **FIXED).fit(WORDS)
    assert not hasattr(expected, "feature_names_in_")
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(WORDS))
    with pytest.raises(ValueError, match="feature names should match those"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(WORDS)
    views = {"a": frame.iloc[:, :5], "b": frame.iloc[:, 5:]}
    several = MixtureClusterer(K, max_iter=5, **FIXED).fit(views)
    assert several.n_features_in_ == 12
    assert not hasattr(several, "feature_names_in_")


def test_records_without_pandas_say_what_to_install(monkeypatch, mixed):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        mixed.history_.to_frame()


# -- the caller's data -----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "gaussian", "von_mises_fisher"])
@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_the_caller_keeps_his_data(family, init):
    data = np.array([3.0, 1, 2, 0, 5, 1, 1, 4, 2, 2, 1, 3])
    indices = np.array([2, 0, 2, 1, 3, 0, 0, 3, 1, 2, 1, 1], dtype=np.int32)
    X = sp.csr_matrix((data, indices, np.arange(0, 13, 2, dtype=np.int32)), shape=(6, 4))
    before = [part.copy() for part in (X.data, X.indices, X.indptr)]
    for part in (X.data, X.indices, X.indptr):
        part.setflags(write=False)
    model = MixtureClusterer(2, family=family, init=init, max_iter=3, **FIXED).fit(X)
    model.predict(X)
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(old, new)
    # Unsorted indices, duplicates and stored zeros mean what they add up to.
    tidy = X.copy()
    tidy.sum_duplicates()
    tidy.eliminate_zeros()
    again = MixtureClusterer(2, family=family, init=init, max_iter=3, **FIXED).fit(tidy)
    np.testing.assert_allclose(model.weights_, again.weights_, rtol=1e-5)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-5)
