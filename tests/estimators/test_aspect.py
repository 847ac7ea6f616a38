"""The aspect model as a user meets it: edges, errors, held-out counts, new rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from coem import AspectModel, RunCoupling, Views, couple
from coem.run_coupling import AMONG, VIAS
from coem.schedules import Linear, Steps
from tests.pairs import pairwise

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def topics(n=80, m=60, k=4, length=60, seed=0):
    """Return counts of rows that each mix few of k topics, and the topics."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(m, 0.05), k)
    shares = rng.dirichlet(np.full(k, 0.2), n)
    X = np.stack([rng.multinomial(length, p) for p in shares @ words])
    return X, words, shares


def finite(model):
    parts = model.weights_, model.x_given_h_, model.y_given_h_
    assert all(np.isfinite(part).all() for part in parts)
    for part in parts:
        np.testing.assert_allclose(part.sum(axis=-1), 1.0, rtol=1e-5)
    assert np.isfinite([model.kl_, model.objective_]).all()
    assert all(np.isfinite([r.kl, r.kl_before]).all() for r in model.runs_)


# -- edges --------------------------------------------------------------------------------------

EDGES = {
    "zeros": np.zeros((5, 4)),
    "one count": np.eye(1),
    "one cell of many": np.pad([[3.0]], ((2, 2), (1, 3))),
    "one row": np.array([[1.0, 0, 2, 5]]),
    "one column": np.array([[1.0], [0], [2]]),
    "identity": np.eye(6),
    "huge": np.array([[1e140, 1.0], [0, 1e-140]]),
    "tiny": np.array([[1e-200, 0.0], [2e-200, 1e-210]]),
    "spread": 10.0 ** np.arange(-20, 20).reshape(8, 5),
}


@pytest.mark.filterwarnings("ignore:components")  # more components than counts may die
@pytest.mark.parametrize(
    ("edge", "coupling", "beta", "dtype"),
    pairwise(EDGES, [None, *VIAS], [1.0, 0.05, Linear(0.5, 1.0, 5)], [np.float32, np.float64]),
)
def test_edges_never_give_nan(edge, coupling, beta, dtype):
    X = EDGES[edge]
    settings = {"coupling": coupling, "beta": beta, "dtype": dtype, "random_state": 0}
    model = AspectModel(9, max_iter=30, **settings).fit(X)  # k is larger than most of these
    finite(model)
    shares = model.transform(X)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.score(X, new_rows=True))


@every_dtype
def test_starts_that_hold_pairs_impossible(dtype):
    X = np.array([[3.0, 1.0], [1.0, 2.0]])
    start = (np.array([0.5, 0.5]), np.eye(2), np.eye(2))
    model = AspectModel(2, init=[start], max_iter=5, dtype=dtype).fit(X)
    finite(model)
    np.testing.assert_allclose(model.x_given_h_, np.eye(2), rtol=1e-6)


def test_a_component_that_dies_is_reported():
    start = (np.array([1.0, 0.0]), np.full((2, 3), 1 / 3), np.full((2, 3), 1 / 3))
    with pytest.warns(ConvergenceWarning, match=r"components \[1\] of 2 died"):
        model = AspectModel(2, init=[start], max_iter=2).fit(np.eye(3))
    finite(model)


def test_one_component_is_the_product_of_the_marginals():
    X, _, _ = topics()
    model = AspectModel(1, n_runs=1, max_iter=1).fit(X)
    shares = X / X.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    seen = shares > 0
    information = (shares[seen] * np.log(shares[seen] / expected[seen])).sum()
    assert np.isclose(model.kl_, information)
    assert len(model.top_features(3)) == 1


# -- what a fit tells ---------------------------------------------------------------------------


def test_topics_are_found_again():
    X, words, _ = topics(n=300, length=200)
    model = AspectModel(4, coupling="c", max_iter=60, random_state=0).fit(X)
    near = model.y_given_h_ @ words.T / np.linalg.norm(words, axis=1)
    near /= np.linalg.norm(model.y_given_h_, axis=1)[:, np.newaxis]
    assert sorted(near.argmax(axis=1)) == [0, 1, 2, 3]
    assert near.max(axis=1).min() > 0.98


@pytest.mark.parametrize("among", AMONG)
def test_records_of_runs_phases_and_transitions(among):
    X, _, _ = topics()
    coupling = RunCoupling("xy", among)
    model = AspectModel(3, coupling=coupling, n_runs=4, rounds=2, max_iter=4, random_state=0)
    model.fit(X)
    assert [(r.phase, r.run) for r in model.runs_] == [(p, r) for p in range(3) for r in range(4)]
    assert all(r.n_iter == 4 and not r.converged for r in model.runs_)
    last = [r for r in model.runs_ if r.phase == 2]
    assert model.kl_ == min(r.kl for r in last)
    assert model.best_run_ == int(np.argmin([r.kl for r in last]))
    assert len(model.history_) == model.n_iter_ == 12
    assert [r.phase for r in model.history_] == [0] * 4 + [1] * 4 + [2] * 4
    assert np.isclose(model.history_[-1].kl, model.kl_, rtol=1e-9)
    assert {(t.coupling, t.through) for t in model.transition_} == {
        (c, z) for c in range(2) for z in ("x", "y")
    }
    frame = model.history_.to_frame()
    assert list(frame.columns[:4]) == ["phase", "round", "objective", "kl"]
    assert len(model.runs_.to_frame()) == 12


def test_without_coupling_runs_are_restarts():
    X, _, _ = topics()
    model = AspectModel(4, n_runs=5, max_iter=10, random_state=0).fit(X)
    assert len(model.runs_) == 5
    assert model.transition_ == []
    assert model.kl_ == min(r.kl for r in model.runs_)
    assert len({r.kl for r in model.runs_}) == 5


def test_same_seed_same_fit_and_a_fitted_model_goes_on():
    X, _, _ = topics()
    one, two = (AspectModel(3, n_runs=1, max_iter=6, random_state=7).fit(X) for _ in range(2))
    assert (one.y_given_h_ == two.y_given_h_).all()
    half = AspectModel(3, n_runs=1, max_iter=3, random_state=7).fit(X)
    warm = AspectModel(3, init=half, max_iter=3).fit(X)
    assert (warm.y_given_h_ == one.y_given_h_).all()
    assert (AspectModel(3, init=[half], max_iter=3).fit(X).x_given_h_ == one.x_given_h_).all()


def test_tol_ends_a_phase():
    X, _, _ = topics()
    model = AspectModel(3, n_runs=1, tol=1e-4, max_iter=500, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < 500
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        AspectModel(3, n_runs=1, tol=1e-12, max_iter=2, random_state=0).fit(X)


def test_smoothing_leaves_nothing_impossible():
    X, _, _ = topics()
    model = AspectModel(3, smoothing=(0.1, 0.1), max_iter=50, random_state=0).fit(X)
    assert model.y_given_h_.min() > 0
    assert model.x_given_h_.min() > 0
    least = 0.1 / (model.weights_.max() * X.sum() + 0.1 * X.shape[1])
    assert model.y_given_h_.min() >= least * (1 - 1e-6)


# -- held-out counts and new rows ---------------------------------------------------------------


def halves(X, seed=0):
    """Return the counts dealt at random to two matrices."""
    first = np.random.default_rng(seed).binomial(X, 0.5)
    return first, X - first


@pytest.mark.parametrize("coupling", [None, "c"])
def test_held_out_counts_stop_a_phase_at_their_best(coupling):
    X, _, _ = topics(length=30)
    train, test = halves(X)
    settings = {"coupling": coupling, "max_iter": 200, "random_state": 0, "smoothing": 0.01}
    model = AspectModel(8, validation=test, patience=3, **settings).fit(train)
    assert model.converged_
    assert model.n_iter_ < 200
    last = [r.held_out for r in model.history_ if r.phase == model.history_[-1].phase]
    assert np.isclose(model.score(test), max(r.held_out for r in model.history_), rtol=1e-6)
    assert last.index(max(last)) == len(last) - 4
    best = max(model.runs_, key=lambda r: r.held_out)
    assert model.best_run_ == best.run
    assert (model.kl_, model.objective_) == (best.kl, best.objective)
    later = AspectModel(8, **settings).fit(train)
    assert later.score(test) < model.score(test)


def test_score_is_the_mean_log_probability_of_the_counts():
    X, _, _ = topics()
    model = AspectModel(4, max_iter=20, random_state=0).fit(X)
    p = np.einsum("h,hx,hy->xy", model.weights_, model.x_given_h_, model.y_given_h_)
    seen = X > 0
    assert np.isclose(model.score(X), (X[seen] * np.log(p[seen])).sum() / X.sum())
    assert np.isclose(model.score(sp.csr_matrix(X)) * X.sum(), model.objective_)


def test_new_rows_are_folded_in():
    X, _, shares = topics(n=200, length=150)
    model = AspectModel(4, coupling="c", max_iter=80, random_state=0).fit(X[:150])
    got = model.transform(X[150:])
    assert got.shape == (50, 4)
    assert got.dtype == np.float64
    match = (shares[:150].T @ model.transform(X[:150])).argmax(axis=0)
    assert sorted(match) == [0, 1, 2, 3]
    assert np.abs(got - shares[150:][:, match]).mean() < 0.06
    assert np.allclose(model.transform(np.zeros((1, X.shape[1]))), model.weights_)
    # The shares of the rows of `fit` are a fixed point of folding in.
    joint = model.weights_ * model.x_given_h_.T
    own = joint / joint.sum(axis=1, keepdims=True)
    assert np.abs(model.transform(X[:150]) - own).mean() < 0.01


def test_score_of_new_rows_prefers_the_right_model():
    X, _, _ = topics(n=200, length=60)
    scores = [
        AspectModel(k, coupling="c", max_iter=50, random_state=0, smoothing=0.01)
        .fit(X[:150])
        .score(X[150:], new_rows=True)
        for k in (1, 4)
    ]
    assert scores[1] > scores[0] + 0.2


def test_top_features_and_names():
    X, _, _ = topics()
    frame = pd.DataFrame(X, columns=[f"w{i}" for i in range(X.shape[1])])
    model = AspectModel(4, coupling="c", random_state=0).fit(frame)
    by_prob, by_wllr = model.top_features(5, by="prob"), model.top_features(5)
    assert [len(top) for top in by_prob] == [5] * 4
    for h, top in enumerate(by_prob):
        assert [value for _, value in top] == sorted((v for _, v in top), reverse=True)
        assert top[0][0] == f"w{model.y_given_h_[h].argmax()}"
    assert {name for top in by_wllr for name, _ in top} <= set(frame.columns)
    assert model.get_feature_names_out().tolist() == [f"aspectmodel{i}" for i in range(4)]
    assert isinstance(AspectModel(4).fit(X).top_features(1)[0][0][0], int)


def test_a_column_that_occurs_once_does_not_name_a_component():
    X, _, _ = topics()
    once = np.zeros((len(X), 1))
    once[0] = 1
    model = AspectModel(4, coupling="c", random_state=0).fit(np.hstack([X, once]))
    ranked = [[f for f, _ in top] for top in model.top_features(X.shape[1] + 1)]
    assert min(features.index(X.shape[1]) for features in ranked) >= 5


# -- couple -------------------------------------------------------------------------------------


@pytest.mark.parametrize("via", VIAS)
def test_couple_takes_models_and_parameters_of_any_number_of_components(via):
    X, _, _ = topics()
    one, two = (AspectModel(k, n_runs=1, max_iter=5, random_state=k).fit(X) for k in (3, 5))
    a, b = couple(one, two, via, X)
    assert a.x_given_h.shape == (3, 80)
    assert b.y_given_h.shape == (5, 60)
    for part in (*a, *b):
        np.testing.assert_allclose(part.sum(axis=-1), 1.0)
    assert (a.weights == one.weights_).all()
    again, _ = couple((one.weights_, one.x_given_h_, one.y_given_h_), two, via, sp.csr_matrix(X))
    assert np.allclose(again.x_given_h, a.x_given_h)


def test_couple_says_what_is_wrong():
    X, _, _ = topics()
    one = AspectModel(3, n_runs=1, max_iter=2).fit(X)
    other = AspectModel(3, n_runs=1, max_iter=2).fit(X[:, 1:])
    with pytest.raises(ValueError, match="pass the counts as X"):
        couple(one, one, "c")
    with pytest.raises(ValueError, match="same rows and columns"):
        couple(one, other)
    with pytest.raises(ValueError, match="X must have the shape"):
        couple(one, one, "d", X[:-1])
    with pytest.raises(ValueError, match="via must be one of"):
        couple(one, one, "e")
    with pytest.raises(ValueError, match="a must be a fitted AspectModel"):
        couple((1, 2), one)
    with pytest.raises(NotFittedError):
        couple(AspectModel(), one)


# -- errors -------------------------------------------------------------------------------------

START = (np.full(2, 0.5), np.full((2, 3), 1 / 3), np.full((2, 4), 0.25))

WRONG = [
    ({"n_components": 0}, "n_components must be an integer of 1 or more"),
    ({"n_runs": 0}, "n_runs must be"),
    ({"rounds": 0.5}, "rounds must be"),
    ({"max_iter": 0}, "max_iter must be"),
    ({"patience": 0}, "patience must be"),
    ({"tol": -1}, "tol must be"),
    ({"beta": 0.0}, "beta must be above 0"),
    ({"beta": 1.5}, "beta must lie between 0 and 1"),
    ({"coupling": "e"}, "coupling must be None, one of 'xy'"),
    ({"coupling": "xy", "n_runs": 1}, "coupling needs two runs: set n_runs"),
    ({"self_coupling": True}, "self_coupling needs a coupling"),
    ({"self_coupling": 3, "coupling": "a"}, "self_coupling must be True or False"),
    ({"dtype": np.int32}, "dtype must be"),
    ({"smoothing": -1}, "smoothing must be"),
    ({"smoothing": (1, 2, 3)}, "smoothing must be"),
    ({"smoothing": True}, "smoothing must be"),
    ({"init": "spherical"}, "init must be one of 'random'"),
    ({"init": 3}, "init must be 'random', or a list"),
    ({"init": []}, "init must be 'random', or a list"),
    ({"init": [START[:2]]}, r"init\[0\] must be a fitted AspectModel or"),
    ({"init": [START, (START[0], START[2], START[1])]}, r"init\[1\] must have arrays"),
    ({"init": [(START[0], START[1] * np.nan, START[2])]}, "finite and 0 or more"),
    ({"init": [(START[0], START[1] * 0, START[2])]}, "no probability above 0"),
    ({"validation": np.ones((3, 3))}, "validation must have the rows and columns of X"),
    ({"validation": -np.ones((3, 4))}, "Negative values in data: view 'validation', row 0"),
    ({"validation": [np.ones((3, 4)), np.ones((3, 4))]}, "validation must be one matrix"),
    ({"n_jobs": 0}, "n_jobs must be"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=[repr(w[0])[:40] for w in WRONG])
def test_bad_settings(settings, message):
    model = AspectModel(2, max_iter=3).fit(np.ones((3, 4)))
    before = model.y_given_h_
    model.set_params(**settings)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(np.ones((3, 4)))
    assert model.y_given_h_ is before


def test_bad_counts():
    model = AspectModel(2, max_iter=3).fit(np.ones((3, 4)))
    bad = np.ones((3, 4))
    bad[1, 2] = -1
    with pytest.raises(ValueError, match=r"view 'X', row 1 has -1.0; counts must be 0 or more$"):
        model.fit(bad)
    with pytest.raises(ValueError, match="one matrix of counts; put views side by side"):
        model.fit(Views([np.ones((3, 4)), np.ones((3, 2))]))
    with pytest.raises(ValueError, match=r"(?i)sample.weights? (is zero|must)"):
        model.fit(np.ones((3, 4)), sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match="or new_rows=True"):
        model.score(np.ones((2, 4)))
    with pytest.raises(ValueError, match="by must be"):
        model.top_features(by="lift")
    with pytest.raises(NotFittedError):
        AspectModel().transform(bad)
    assert model.x_given_h_.shape == (2, 3)


def test_clone_and_pickle():
    X, _, _ = topics()
    model = AspectModel(3, init=[(np.full(3, 1 / 3), np.full((3, 80), 1 / 80), np.ones((3, 60)))])
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys()
    fitted = copied.fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(X) == fitted.transform(X)).all()


def test_progress_is_written_to_stderr(capsys):
    X, _, _ = topics()
    AspectModel(3, coupling="a", max_iter=2, verbose=10).fit(X)
    written = capsys.readouterr().err
    assert "[AspectModel] run 2, phase 2, round 2: objective" in written


def test_a_clone_keeps_the_fitted_models_that_it_starts_from():
    X = np.random.default_rng(0).poisson(1.0, (12, 9))
    one, two = (AspectModel(3, n_runs=1, max_iter=3, random_state=seed).fit(X) for seed in (0, 1))
    for init in (one, [one, two]):
        model = AspectModel(3, init=init, max_iter=2)
        assert clone(model).fit(X).kl_ == model.fit(X).kl_


def test_a_schedule_without_a_number_is_refused():
    with pytest.raises(ValueError, match="got NaN"):
        Steps([1.0, float("nan")], 3)


def test_cross_validation_over_rows_asks_for_new_rows():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.1), 4)
    X = np.array([rng.multinomial(60, topics[i % 4]) for i in rng.permutation(80)])
    search = GridSearchCV(
        AspectModel(max_iter=50, smoothing=0.01, n_runs=4, random_state=0),
        {"n_components": [1, 4]},
        cv=2,
        scoring=lambda model, X, y=None: model.score(X, new_rows=True),
    )
    assert search.fit(X).best_params_ == {"n_components": 4}
