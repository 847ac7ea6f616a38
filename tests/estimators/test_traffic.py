"""The traffic model as a user meets it: edges, errors, held-out counts."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from coem import RunCoupling, TrafficModel, Views
from coem.schedules import Linear

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def trips(n=60, k=4, total=6000, seed=0):
    """Return counts between nodes by way of k hubs, and the parameters."""
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.full(n, 0.1), k)
    beta = rng.dirichlet(np.full(k * k, 0.5)).reshape(k, k)
    X = rng.multinomial(total, (alpha.T @ beta @ alpha).ravel()).reshape(n, n)
    return X, alpha, beta


def finite(model):
    assert all(np.isfinite(part).all() for part in (model.alpha_, model.beta_))
    np.testing.assert_allclose(model.alpha_.sum(axis=1), 1.0, rtol=1e-5)
    assert np.isclose(model.beta_.sum(), 1.0)
    assert np.isfinite([model.kl_, model.objective_]).all()
    assert all(np.isfinite([r.kl, r.kl_before]).all() for r in model.runs_)


# -- edges --------------------------------------------------------------------------------------

EDGES = {
    "zeros": np.zeros((5, 5)),
    "one node": np.eye(1),
    "one cell of many": np.pad([[3.0]], ((2, 2), (1, 3))),
    "one source": np.outer([0, 1.0, 0, 0], [1.0, 0, 2, 5]),
    "one destination": np.outer([1.0, 0, 2], [0, 1.0, 0]),
    "identity": np.eye(6),
    "one way": np.eye(6, k=1),
    "huge": np.array([[1e140, 1.0], [0, 1e-140]]),
    "tiny": np.array([[1e-200, 0.0], [2e-200, 1e-210]]),
    "spread": 10.0 ** np.arange(-18, 18).reshape(6, 6),
}


@pytest.mark.filterwarnings("ignore:hubs")  # more hubs than counts may die
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("coupling", [None, "x"])
@pytest.mark.parametrize("beta", [1.0, 0.05, Linear(0.5, 1.0, 5)])
@every_dtype
def test_edges_never_give_nan(edge, coupling, beta, dtype):
    X = EDGES[edge]
    settings = {"coupling": coupling, "beta": beta, "dtype": dtype, "random_state": 0}
    model = TrafficModel(9, max_iter=30, **settings).fit(X)  # k is larger than all of these
    finite(model)
    assert np.isfinite(model.score(X))


@every_dtype
def test_starts_that_hold_pairs_impossible(dtype):
    X = np.array([[3.0, 1.0], [1.0, 2.0]])
    model = TrafficModel(2, init=[(np.eye(2), np.eye(2) / 2)], max_iter=5, dtype=dtype).fit(X)
    finite(model)
    np.testing.assert_allclose(model.alpha_, np.eye(2), rtol=1e-6)
    np.testing.assert_allclose(model.beta_, np.diag([0.6, 0.4]), rtol=1e-6)


def test_a_hub_that_dies_is_reported():
    start = np.full((2, 3), 1 / 3), np.diag([1.0, 0.0])
    with pytest.warns(ConvergenceWarning, match=r"hubs \[1\] of 2 died"):
        model = TrafficModel(2, init=[start], max_iter=2).fit(np.eye(3))
    finite(model)


# -- what a fit tells ---------------------------------------------------------------------------


def test_hubs_are_found_again():
    X, alpha, beta = trips(total=200_000)
    model = TrafficModel(4, coupling="x", n_runs=4, max_iter=200, random_state=0).fit(X)
    near = model.alpha_ @ alpha.T / np.linalg.norm(alpha, axis=1)
    near /= np.linalg.norm(model.alpha_, axis=1)[:, np.newaxis]
    found = near.argmax(axis=1)
    assert sorted(found) == [0, 1, 2, 3]
    assert near.max(axis=1).min() > 0.98
    assert np.abs(model.beta_ - beta[found][:, found]).max() < 0.05


def test_records_of_runs_phases_and_transitions():
    X, _, _ = trips()
    coupling = RunCoupling("x", "pairs")
    model = TrafficModel(3, coupling=coupling, n_runs=4, rounds=2, max_iter=4, random_state=0)
    model.fit(X)
    assert [(r.phase, r.run) for r in model.runs_] == [(p, r) for p in range(3) for r in range(4)]
    last = [r for r in model.runs_ if r.phase == 2]
    assert model.kl_ == min(r.kl for r in last)
    assert model.best_run_ == int(np.argmin([r.kl for r in last]))
    assert len(model.history_) == model.n_iter_ == 12
    assert np.isclose(model.history_[-1].kl, model.kl_, rtol=1e-9)
    assert [(t.coupling, t.run) for t in model.transition_] == [
        (c, r) for c in range(2) for r in range(4)
    ]
    assert len(model.runs_.to_frame()) == 12


def test_same_seed_same_fit_and_a_fitted_model_goes_on():
    X, _, _ = trips()
    one, two = (TrafficModel(3, n_runs=1, max_iter=6, random_state=7).fit(X) for _ in range(2))
    assert (one.alpha_ == two.alpha_).all()
    half = TrafficModel(3, n_runs=1, max_iter=3, random_state=7).fit(X)
    warm = TrafficModel(3, init=half, max_iter=3).fit(X)
    assert (warm.alpha_ == one.alpha_).all()
    given = TrafficModel(3, init=(half.alpha_, half.beta_), max_iter=3).fit(X)
    assert (given.beta_ == one.beta_).all()


def test_tol_ends_a_phase():
    X, _, _ = trips()
    model = TrafficModel(3, n_runs=1, tol=1e-4, max_iter=500, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < 500
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        TrafficModel(3, n_runs=1, tol=1e-12, max_iter=2, random_state=0).fit(X)


@pytest.mark.parametrize("coupling", [None, "x"])
def test_held_out_counts_stop_a_phase_at_their_best(coupling):
    X, _, _ = trips(total=2000)
    train = np.random.default_rng(0).binomial(X, 0.5)
    settings = {"coupling": coupling, "max_iter": 300, "random_state": 0, "smoothing": 0.01}
    model = TrafficModel(8, validation=X - train, patience=3, **settings).fit(train)
    assert model.converged_
    last = [r.held_out for r in model.history_ if r.phase == model.history_[-1].phase]
    best = max(r.held_out for r in model.history_)
    assert np.isclose(model.score(X - train), best, rtol=1e-6)
    assert last.index(max(last)) == len(last) - 4
    later = TrafficModel(8, **settings).fit(train)
    assert later.score(X - train) < model.score(X - train)


def test_score_is_the_mean_log_probability_of_the_counts():
    X, _, _ = trips()
    model = TrafficModel(4, max_iter=20, random_state=0).fit(X)
    p = model.alpha_.T @ model.beta_ @ model.alpha_
    seen = X > 0
    assert np.isclose(model.score(X), (X[seen] * np.log(p[seen])).sum() / X.sum())
    assert np.isclose(model.score(sp.csr_matrix(X)) * X.sum(), model.objective_)


def test_large_counts_are_fitted_in_single_precision():
    X, _, _ = trips()
    assert TrafficModel(4, max_iter=1).fit(X).alpha_.dtype == np.float64
    large = sp.coo_matrix((np.ones(2), ([0, 20_000], [1, 2])), shape=(20_001, 20_001))
    assert TrafficModel(10, max_iter=1, random_state=0).fit(large).alpha_.dtype == np.float32


# -- errors -------------------------------------------------------------------------------------

START = (np.full((2, 3), 1 / 3), np.full((2, 2), 0.25))

WRONG = [
    ({"n_hubs": 0}, "n_hubs must be an integer of 1 or more"),
    ({"n_runs": 0}, "n_runs must be"),
    ({"rounds": 0.5}, "rounds must be"),
    ({"tol": -1}, "tol must be"),
    ({"beta": 0.0}, "beta must be above 0"),
    ({"coupling": "xy"}, "coupling must be None, one of 'x' or a RunCoupling, got 'xy'"),
    ({"coupling": RunCoupling("xy")}, "via of coupling must be one of 'x'"),
    ({"coupling": "x", "n_runs": 1}, "coupling needs two runs: set n_runs"),
    ({"self_coupling": True}, "self_coupling needs a coupling: choose one of 'x'"),
    ({"dtype": np.int32}, "dtype must be"),
    ({"smoothing": -1}, "smoothing must be"),
    ({"smoothing": np.inf}, "smoothing must be finite"),
    ({"init": "spherical"}, "init must be one of 'random'"),
    ({"init": []}, r"init must be 'random', or a list with \(alpha, beta\)"),
    ({"init": [START[:1]]}, r"init\[0\] must be \(alpha, beta\) or a fitted TrafficModel of the"),
    ({"init": [START, (np.ones((2, 4)), START[1])]}, r"init\[1\] must have arrays"),
    ({"init": [(START[0] * np.nan, START[1])]}, "finite and 0 or more"),
    ({"init": [(START[0], START[1] * 0)]}, "no probability above 0"),
    ({"validation": np.ones((3, 4))}, "validation must have the rows and columns of X"),
    ({"n_jobs": 0}, "n_jobs must be"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG, ids=[repr(w[0])[:40] for w in WRONG])
def test_bad_settings(settings, message):
    model = TrafficModel(2, max_iter=3).fit(np.ones((3, 3)))
    before = model.alpha_
    model.set_params(**settings)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(np.ones((3, 3)))
    assert model.alpha_ is before


def test_bad_counts():
    model = TrafficModel(2, max_iter=3).fit(np.ones((3, 3)))
    with pytest.raises(ValueError, match="3 rows and 4 columns: give each node a row and a col"):
        model.fit(np.ones((3, 4)))
    with pytest.raises(ValueError, match="X must be square"):
        model.score(np.ones((2, 3)))
    with pytest.raises(ValueError, match="X has 4 features, but TrafficModel is expecting 3"):
        model.score(np.ones((4, 4)))
    with pytest.raises(ValueError, match=r"row 1 has -1.0; counts must be 0 or more$"):
        model.fit(np.array([[1.0, 0], [-1.0, 0]]))
    with pytest.raises(ValueError, match="one matrix of counts between nodes"):
        model.fit(Views([np.ones((3, 3)), np.ones((3, 3))]))
    with pytest.raises(NotFittedError):
        TrafficModel().score(np.ones((3, 3)))
    with pytest.raises(NotFittedError):
        TrafficModel(init=TrafficModel()).fit(np.ones((3, 3)))
    assert model.alpha_.shape == (2, 3)


def test_names_clone_and_pickle():
    X, _, _ = trips()
    frame = pd.DataFrame(X, columns=[f"as{i}" for i in range(len(X))])
    fitted = clone(TrafficModel(3, coupling="x", random_state=0)).fit(frame)
    assert fitted.feature_names_in_[0] == "as0"
    again = pickle.loads(pickle.dumps(fitted))
    assert again.score(frame) == fitted.score(frame)


def test_progress_is_written_to_stderr(capsys):
    X, _, _ = trips()
    TrafficModel(3, coupling="x", max_iter=2, verbose=10).fit(X)
    assert "[TrafficModel] run 2, phase 2, round 2: objective" in capsys.readouterr().err
