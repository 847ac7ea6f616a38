"""What must hold of an aspect model whatever the counts."""

import numpy as np
import pytest
import scipy.sparse as sp

from coem import AspectModel, RunCoupling
from coem.kernels import aspect as kernel
from coem.latent.aspect import Aspects
from coem.latent.transitions import couple_runs, transition
from coem.run_coupling import AMONG, VIAS
from coem.schedules import Linear

every_via = pytest.mark.parametrize("via", VIAS)
every_beta = pytest.mark.parametrize("beta", [1.0, 0.9, 0.4])
every_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1, (0.2, 0.05)])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])

K = 5


def make(seed=0, n=60, m=40, mean=0.4):
    """Return counts with an empty row, an empty column and stored zeros."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.poisson(mean, size=(n, m)).astype(float))
    X.data[::9] = 0
    X = X.tolil()
    X[3], X[:, 5] = 0, 0
    return X.tocsr()


def starts(seed, n, m, k=K, n_runs=1):
    rng = np.random.default_rng(seed)
    return [
        (rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(n), k), rng.dirichlet(np.ones(m), k))
        for _ in range(n_runs)
    ]


def fitted(model):
    return model.weights_, model.x_given_h_, model.y_given_h_


def close(a, b, rtol=1e-9):
    for one, two in zip(a, b, strict=True):
        np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * 1e-3)


@every_beta
@every_smoothing
@every_dtype
def test_the_objective_never_falls_at_a_fixed_beta(beta, smoothing, dtype):
    X = make()
    settings = {"beta": beta, "smoothing": smoothing, "dtype": dtype}
    model = AspectModel(K, n_runs=1, max_iter=60, random_state=0, **settings).fit(X)
    objective = np.array([record.objective for record in model.history_])
    slack = 1e-6 if dtype == np.float32 else 1e-12
    assert (np.diff(objective) >= -slack * np.abs(objective[1:])).all()
    assert objective[-1] > objective[0]


@every_via
@every_smoothing
@every_dtype
def test_parameters_stay_distributions(via, smoothing, dtype):
    X = make(1)
    settings = {"coupling": via, "smoothing": smoothing, "dtype": dtype, "random_state": 0}
    model = AspectModel(K, n_runs=3, max_iter=8, beta=Linear(0.8, 1.0, 6), **settings).fit(X)
    for part in fitted(model):
        assert part.min() >= 0
        np.testing.assert_allclose(part.sum(axis=-1), 1.0, rtol=1e-5)
    assert model.x_given_h_.dtype == dtype
    for link in model.transition_:
        assert link.matrix.min() >= 0
        np.testing.assert_allclose(link.matrix.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite([r.kl for r in model.runs_]).all()


def test_em_matches_the_marginals_of_the_counts():
    X = make(2)
    model = AspectModel(K, n_runs=1, max_iter=3, dtype=np.float64, random_state=0).fit(X)
    shares = X.toarray() / X.sum()
    np.testing.assert_allclose(model.weights_ @ model.x_given_h_, shares.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(model.weights_ @ model.y_given_h_, shares.sum(axis=0), atol=1e-12)


# X and Y change places, and so do "through the columns" and "through the rows".
@pytest.mark.parametrize(
    ("via", "turned"), [("xy", "xy"), ("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
)
@pytest.mark.parametrize("smoothing", [(0.0, 0.0), (0.1, 0.3)])
def test_turning_the_counts_over_swaps_x_and_y(via, turned, smoothing):
    X = make(3)
    given = starts(0, *X.shape, n_runs=2)
    settings = {"max_iter": 10, "dtype": np.float64, "beta": 0.9}
    one = AspectModel(K, init=given, coupling=via, smoothing=smoothing, **settings).fit(X)
    given = [(w, y, x) for w, x, y in given]
    two = AspectModel(K, init=given, coupling=turned, smoothing=smoothing[::-1], **settings)
    two.fit(X.T.tocsr())
    close(fitted(one), (two.weights_, two.y_given_h_, two.x_given_h_))
    assert np.isclose(one.objective_, two.objective_, rtol=1e-10)


def test_the_order_of_rows_columns_and_components_is_of_no_account():
    X = make(4)
    rng = np.random.default_rng(0)
    rows, columns, order = map(rng.permutation, (*X.shape, K))
    (w, x, y), other = starts(1, *X.shape, n_runs=2)
    settings = {"max_iter": 10, "dtype": np.float64, "coupling": "c"}
    one = AspectModel(K, init=[(w, x, y), other], **settings).fit(X)
    mixed = (w[order], x[order][:, rows], y[order][:, columns])
    other = (other[0], other[1][:, rows], other[2][:, columns])
    two = AspectModel(K, init=[mixed, other], **settings).fit(X[rows][:, columns])
    assert one.best_run_ == two.best_run_
    keep = order if one.best_run_ == 0 else np.arange(K)
    w, x, y = fitted(one)
    close((w[keep], x[keep][:, rows], y[keep][:, columns]), fitted(two))


def test_weight_two_is_the_row_twice_and_weight_zero_no_row():
    X = make(5)
    weight = np.ones(X.shape[0])
    weight[:10], weight[10:15] = 2, 0
    twice = sp.vstack([X[:10], X[:10], X[15:]]).tocsr()
    settings = {"coupling": "d", "max_iter": 10, "random_state": 0, "dtype": np.float64}
    one = AspectModel(K, **settings).fit(X, sample_weight=weight)
    two = AspectModel(K, **settings).fit(twice)
    close((one.weights_, one.y_given_h_), (two.weights_, two.y_given_h_))
    close([one.x_given_h_[:, :10]], [two.x_given_h_[:, :10] + two.x_given_h_[:, 10:20]])
    assert not one.x_given_h_[:, 10:15].any()
    assert np.isclose(one.objective_, two.objective_ + _split(X[:10]), rtol=1e-10)


def _split(X):
    """Return what it adds to the likelihood that a row of weight 2 stays one row."""
    return 2 * X.sum() * np.log(2)


@pytest.mark.parametrize("among", AMONG)
@every_dtype
def test_threads_do_not_change_a_bit(among, dtype, monkeypatch):
    monkeypatch.setattr(kernel, "CELLS", 1 << 9)  # many pieces of few rows
    X = make(6, 400, 300, 0.2)
    results = []
    for n_jobs in (1, 2, 4):
        model = AspectModel(
            K,
            coupling=RunCoupling("c", among),
            n_runs=3,
            max_iter=5,
            beta=0.95,
            smoothing=0.01,
            dtype=dtype,
            n_jobs=n_jobs,
            random_state=0,
        ).fit(X)
        kls = [(r.kl, r.kl_before, r.objective) for r in model.runs_]
        bits = [np.ascontiguousarray(part).tobytes() for part in fitted(model)]
        results.append((kls, bits, model.transform(X).tobytes(), model.score(X)))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("beta", [1.0, Linear(0.9, 1.0, 10)])
def test_single_precision_is_near_double(beta):
    X = make(7, 200, 150)
    given = starts(2, *X.shape)
    settings = {"init": given, "max_iter": 20, "beta": beta}
    one = AspectModel(K, dtype=np.float32, **settings).fit(X)
    two = AspectModel(K, dtype=np.float64, **settings).fit(X)
    assert np.isclose(one.objective_, two.objective_, rtol=1e-6)
    assert np.isclose(one.kl_, two.kl_, atol=1e-5)


# -- who learns from whom -----------------------------------------------------------------------


@pytest.mark.parametrize("n_runs", range(1, 8))
def test_pairs_meet_everyone_in_turn(n_runs):
    met = set()
    for turn in range(n_runs - 1 + n_runs % 2):
        others = RunCoupling("xy", "pairs").partners(n_runs, turn)
        for run, mine in enumerate(others):
            assert len(mine) <= 1
            assert all(others[other] == [run] for other in mine)
            met |= {(run, other) for other in mine}
        assert sum(not mine for mine in others) == n_runs % 2
    assert met == {(a, b) for a in range(n_runs) for b in range(n_runs) if a != b}


@every_via
def test_all_schemes_are_the_papers_for_two_runs(via):
    X = make(8)
    runs = [Aspects(*start) for start in starts(3, *X.shape, n_runs=2)]
    ring, pairs, everyone = (couple_runs(runs, RunCoupling(via, a), X)[0] for a in AMONG[:3])
    for other in (pairs, everyone):
        for a, b in zip(ring, other, strict=True):
            assert all((p == q).all() for p, q in zip(a, b, strict=True))


def test_a_run_of_other_order_is_mapped_onto_its_states():
    # Where the components do not overlap, the transition is the permutation between the runs.
    x, y = np.kron(np.eye(3), np.full(4, 0.25)), np.kron(np.eye(3), np.full(5, 0.2))
    order = np.array([2, 0, 1])
    one = Aspects(np.full(3, 1 / 3), x, y)
    two = Aspects(np.full(3, 1 / 3), x[order], y[order])
    counts = x.T @ y
    for path in (("x",), ("y",), ("x", "y"), ("y", "x")):
        np.testing.assert_allclose(transition(one, two, path, counts), np.eye(3)[:, order])
