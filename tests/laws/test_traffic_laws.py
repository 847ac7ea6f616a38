"""What must hold of a traffic model whatever the counts."""

import numpy as np
import pytest
import scipy.sparse as sp

from coem import RunCoupling, TrafficModel
from coem.kernels import aspect as kernel
from coem.kernels import traffic as products
from coem.latent.traffic import Traffic
from coem.latent.transitions import couple_hubs
from coem.run_coupling import AMONG
from coem.schedules import Linear

every_beta = pytest.mark.parametrize("beta", [1.0, 0.9, 0.4])
every_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])

K = 5


def make(seed=0, n=50, mean=0.4):
    """Return counts with an empty row, an empty column, a lonely node and stored zeros."""
    rng = np.random.default_rng(seed)
    X = sp.csr_matrix(rng.poisson(mean, size=(n, n)).astype(float))
    X.data[::9] = 0
    X = X.tolil()
    X[3], X[:, 5], X[7], X[:, 7] = 0, 0, 0, 0
    return X.tocsr()


def starts(seed, n, k=K, n_runs=1):
    rng = np.random.default_rng(seed)
    return [
        (rng.dirichlet(np.ones(n), k), rng.dirichlet(np.ones(k * k)).reshape(k, k))
        for _ in range(n_runs)
    ]


def close(a, b, rtol=1e-9):
    for one, two in zip(a, b, strict=True):
        np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * 1e-3)


@every_beta
@every_smoothing
@every_dtype
def test_the_objective_never_falls_at_a_fixed_beta(beta, smoothing, dtype):
    settings = {"beta": beta, "smoothing": smoothing, "dtype": dtype}
    model = TrafficModel(K, n_runs=1, max_iter=60, random_state=0, **settings).fit(make())
    objective = np.array([record.objective for record in model.history_])
    slack = 1e-6 if dtype == np.float32 else 1e-12
    assert (np.diff(objective) >= -slack * np.abs(objective[1:])).all()
    assert objective[-1] > objective[0]


@pytest.mark.parametrize("among", AMONG)
@every_smoothing
@every_dtype
def test_parameters_stay_distributions(among, smoothing, dtype):
    settings = {"coupling": RunCoupling("x", among), "smoothing": smoothing, "dtype": dtype}
    model = TrafficModel(K, n_runs=3, max_iter=8, beta=Linear(0.8, 1.0, 6), random_state=0)
    model.set_params(**settings).fit(make(1))
    assert min(model.alpha_.min(), model.beta_.min()) >= 0
    np.testing.assert_allclose(model.alpha_.sum(axis=1), 1.0, rtol=1e-5)
    assert np.isclose(model.beta_.sum(), 1.0, rtol=1e-12)
    assert (model.alpha_.dtype, model.beta_.dtype) == (dtype, np.float64)
    for link in model.transition_:
        for matrix in (link.matrix, link.back):
            assert matrix.min() >= 0
            np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite([r.kl for r in model.runs_]).all()


def test_em_matches_the_ends_of_all_trips():
    # Sources and destinations share alpha, so the mean of both is matched, not each of them.
    X = make(2)
    model = TrafficModel(K, n_runs=1, max_iter=3, dtype=np.float64, random_state=0).fit(X)
    shares = X.toarray() / X.sum()
    hubs = Traffic(model.alpha_, model.beta_).weights
    wanted = (shares.sum(axis=0) + shares.sum(axis=1)) / 2
    np.testing.assert_allclose(hubs @ model.alpha_, wanted, atol=1e-12)
    assert not model.alpha_[:, 7].any()


def test_turning_the_traffic_round_turns_the_highway_round():
    X = make(3)
    given = starts(0, X.shape[0], n_runs=2)
    settings = {"max_iter": 10, "dtype": np.float64, "coupling": "x", "smoothing": 0.1}
    one = TrafficModel(K, init=given, beta=0.9, **settings).fit(X)
    turned = [(alpha, beta.T) for alpha, beta in given]
    two = TrafficModel(K, init=turned, beta=0.9, **settings).fit(X.T.tocsr())
    close((one.alpha_, one.beta_), (two.alpha_, two.beta_.T))
    one = TrafficModel(K, random_state=0, **settings).fit(X)
    two = TrafficModel(K, random_state=0, **settings).fit(X.T.tocsr())
    close((one.alpha_, one.beta_), (two.alpha_, two.beta_.T))


@pytest.mark.parametrize("coupling", [None, "x"])
def test_symmetric_traffic_stays_symmetric(coupling):
    X = make(4) + make(4).T
    model = TrafficModel(K, coupling=coupling, max_iter=10, dtype=np.float64, random_state=0)
    model.fit(X)
    np.testing.assert_allclose(model.beta_, model.beta_.T, rtol=1e-9, atol=1e-12)


def test_the_order_of_nodes_and_hubs_is_of_no_account():
    X = make(5)
    rng = np.random.default_rng(0)
    nodes, order = rng.permutation(X.shape[0]), rng.permutation(K)
    (alpha, beta), other = starts(1, X.shape[0], n_runs=2)
    settings = {"max_iter": 10, "dtype": np.float64, "coupling": "x"}
    one = TrafficModel(K, init=[(alpha, beta), other], **settings).fit(X)
    mixed = alpha[order][:, nodes], beta[order][:, order]
    two = TrafficModel(K, init=[mixed, (other[0][:, nodes], other[1])], **settings)
    two.fit(X[nodes][:, nodes])
    assert one.best_run_ == two.best_run_
    keep = order if one.best_run_ == 0 else np.arange(K)
    close((one.alpha_[keep][:, nodes], one.beta_[keep][:, keep]), (two.alpha_, two.beta_))


@pytest.mark.parametrize("scale", [3.0, 0.125])
def test_more_of_the_same_traffic_is_the_same_model(scale):
    X = make(6)
    settings = {"max_iter": 10, "dtype": np.float64, "coupling": "x", "random_state": 0}
    one, two = TrafficModel(K, **settings).fit(X), TrafficModel(K, **settings).fit(scale * X)
    close((one.alpha_, one.beta_), (two.alpha_, two.beta_))
    assert np.isclose(scale * one.objective_, two.objective_, rtol=1e-10)
    assert np.isclose(one.kl_, two.kl_, rtol=1e-9)


def test_one_hub_is_the_product_of_the_ends():
    X = make(7)
    model = TrafficModel(1, n_runs=1, max_iter=2, dtype=np.float64).fit(X)
    shares = X.toarray() / X.sum()
    ends = (shares.sum(axis=0) + shares.sum(axis=1)) / 2
    np.testing.assert_allclose(model.alpha_[0], ends, atol=1e-14)
    assert model.beta_.tolist() == [[1.0]]


def test_hubs_for_all_nodes_can_say_anything():
    # With alpha the identity, beta is the empirical distribution after one M step.
    X = make(8, n=12, mean=2.0).toarray()
    start = np.eye(12), np.full((12, 12), 1 / 144)
    model = TrafficModel(12, init=[start], max_iter=1, dtype=np.float64)
    with pytest.warns(match=r"hubs \[7\] of 12 died"):
        model.fit(X)
    np.testing.assert_allclose(model.beta_, X / X.sum(), atol=1e-15)
    assert abs(model.kl_) < 1e-12


@pytest.mark.parametrize("among", AMONG)
@every_dtype
def test_threads_do_not_change_a_bit(among, dtype, monkeypatch):
    monkeypatch.setattr(kernel, "CELLS", 1 << 9)  # many pieces of few rows
    X, results = make(9, 400, 0.1), []
    settings = {"beta": 0.95, "smoothing": 0.01, "dtype": dtype, "random_state": 0}
    for n_jobs in (1, 2, 4):
        model = TrafficModel(
            K, coupling=RunCoupling("x", among), n_runs=3, max_iter=5, n_jobs=n_jobs, **settings
        ).fit(X)
        kls = [(r.kl, r.kl_before, r.objective) for r in model.runs_]
        bits = [np.ascontiguousarray(part).tobytes() for part in (model.alpha_, model.beta_)]
        results.append((kls, bits, model.score(X)))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("beta", [1.0, Linear(0.9, 1.0, 10)])
def test_single_precision_is_near_double(beta):
    X = make(10, 150)
    settings = {"init": starts(2, 150), "max_iter": 20, "beta": beta}
    one = TrafficModel(K, dtype=np.float32, **settings).fit(X)
    two = TrafficModel(K, dtype=np.float64, **settings).fit(X)
    assert np.isclose(one.objective_, two.objective_, rtol=1e-6)
    assert np.isclose(one.kl_, two.kl_, atol=1e-5)


def test_all_schemes_are_the_papers_for_two_runs():
    runs = [Traffic(*start) for start in starts(3, 30, n_runs=2)]
    ring, pairs, everyone = (couple_hubs(runs, RunCoupling("x", a))[0] for a in AMONG[:3])
    for other in (pairs, everyone):
        for a, b in zip(ring, other, strict=True):
            assert all((p == q).all() for p, q in zip(a, b, strict=True))


def test_a_run_of_other_order_is_mapped_onto_its_hubs():
    # Where hubs do not share nodes, the transition is the permutation between the runs.
    alpha = np.kron(np.eye(3), np.full(4, 0.25))
    beta = np.arange(1.0, 10).reshape(3, 3) / 45
    order = np.array([2, 0, 1])
    one, two = Traffic(alpha, beta), Traffic(alpha[order], beta[order][:, order])
    (first, second), (link, _) = couple_hubs([one, two], RunCoupling("x"))
    np.testing.assert_allclose(link.matrix, np.eye(3)[:, order])
    close(first, one)
    close(second, two)


@every_dtype
def test_products_are_those_of_numpy(dtype, monkeypatch):
    monkeypatch.setattr(kernel, "CELLS", 64)
    rng = np.random.default_rng(0)
    a, u = (kernel.as_table(rng.random((K, 37)), dtype) for _ in range(2))
    sums = kernel.as_table(rng.random((K, 37)), dtype)
    width = a.shape[1]
    beta = np.zeros((width, width), dtype)
    beta[:K, :K] = rng.random((K, K))
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(products.times(a, beta), a @ beta, rtol=rtol)
    wanted = sums + a * (u @ beta)
    totals, crossed = products.gather(a, u, beta, sums)
    np.testing.assert_allclose(sums, wanted, rtol=rtol)
    np.testing.assert_allclose(totals, wanted.sum(axis=0), rtol=rtol)
    np.testing.assert_allclose(crossed, u.T @ a, rtol=rtol)
