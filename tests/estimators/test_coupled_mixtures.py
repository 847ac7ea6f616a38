"""Mixtures whose runs are coupled through the rows."""

import os

import numpy as np
import pytest
from sklearn.base import clone

from coem import AspectModel, MixtureClusterer, RunCoupling, Views, couple
from coem.analysis import entropy_trace
from coem.datasets import fetch_cluto
from coem.latent.shared_rows import couple_resp
from coem.schedules import Linear
from tests.engines import ForgetfulEngine

K = 4


def counts(seed=0, n=120, m=30):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(m, 0.3), size=K)
    return rng.poisson(8 * topics[rng.integers(K, size=n)] + 0.1)


def make(**settings):
    usual = {
        "n_init": 3,
        "coupling_of_runs": RunCoupling("rows", n_couplings=2, n_rounds=4),
        "random_state": 0,
        "tol": 0.0,
    }
    return MixtureClusterer(K, **(usual | {"max_iter": 6} | settings))


def test_phases_are_fits_from_the_coupled_responsibilities(monkeypatch):
    """The slow way: fits one after another, coupled by hand between them."""
    X, coupling = counts(), RunCoupling("rows", n_couplings=2, n_rounds=4)
    model = make(coupling_of_runs=coupling, dtype=np.float64).fit(X)
    plain = MixtureClusterer(K, tol=0.0, dtype=np.float64)
    runs = []
    for record in model.runs_:
        monkeypatch.setattr("coem.estimators._restarts.draw_seeds", lambda *_, r=record: [r.seed])
        runs.append(clone(plain).set_params(max_iter=4).fit(X))
    for phase, rounds in ((0, 4), (1, 6)):
        new, links = couple_resp([run.predict_proba(X) for run in runs], coupling, turn=phase)
        runs = [clone(plain).set_params(init=r, max_iter=rounds).fit(X) for r in new]
        used = [link for link in model.transition_ if link.coupling == phase]
        for mine, link in zip(used, links, strict=True):
            assert (mine.run, mine.other, mine.through) == (link.run, link.other, "rows")
            np.testing.assert_allclose(mine.matrix, link.matrix, atol=1e-8)
    found = [run.objective for run in model.runs_]
    np.testing.assert_allclose(found, [run.objective_ for run in runs], rtol=1e-9)
    best = runs[model.best_run_]
    (mine,), (theirs,) = model.theta_.values(), best.theta_.values()
    np.testing.assert_allclose(mine, theirs, atol=1e-6)
    np.testing.assert_array_equal(model.labels_, best.labels_)


def test_the_history_has_all_rounds_of_all_phases():
    model = make().fit(counts())
    assert [record.round for record in model.history_] == list(range(1, 15))
    assert [run.n_iter for run in model.runs_] == [14] * 3
    assert model.n_iter_ == 14


def test_schedules_run_on_through_the_phases():
    model = make(beta=Linear(0.2, 1.0, 10)).fit(counts())
    betas = [record.beta for record in model.history_]
    assert betas == sorted(betas)
    assert betas[-1] == 1.0
    assert betas[7] < 1.0


@pytest.mark.parametrize("among", ["all", "ring", "pairs"])
@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_threads_change_no_bit(among, family):
    settings = {
        "family": family,
        "coupling_of_runs": RunCoupling("rows", among, n_couplings=2, n_rounds=3),
    }
    one, two = (make(n_jobs=n, **settings).fit(counts()) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(counts()), two.predict_proba(counts()))
    assert one.objective_ == two.objective_


@pytest.mark.parametrize("how", ["co-em", "joint"])
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_views_of_any_family_with_empty_rows(how):
    X = counts().astype(float)
    X[:3] = 0
    views = Views(words=X, numbers=np.sqrt(counts(1)), more=counts(2))
    family = {"words": "multinomial", "numbers": "gaussian", "more": "bernoulli"}
    weight = np.linspace(0, 2, len(X))
    model = make(family=family, coupling=how).fit(views, sample_weight=weight)
    assert np.isfinite(model.predict_proba(views)).all()
    assert len(model.transition_) == 2 * 3 * 2
    for link in model.transition_:
        np.testing.assert_allclose(link.matrix.sum(axis=1), 1)


def test_a_weight_of_two_is_the_row_given_twice():
    X, times = counts(), np.arange(120) % 3
    weighted = make(dtype=np.float64).fit(X, sample_weight=times)
    again = make(dtype=np.float64).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.objective_, again.objective_, rtol=1e-9)


def test_hard_posteriors_may_be_coupled():
    model = make(posterior="hard", init="k-means++").fit(counts())
    assert set(np.unique(model.labels_)) <= set(range(K))


@pytest.mark.slow
@pytest.mark.skipif("COEM_DATA" not in os.environ, reason="needs the CLUTO document sets")
def test_coupled_runs_beat_as_many_rounds_of_restarts_on_documents():
    data = fetch_cluto("tr11")
    X = data.views[data.views.names[0]]
    for seed in range(3):
        usual = {"tol": 0.0, "random_state": seed}
        alone = MixtureClusterer(9, n_init=8, max_iter=30, **usual).fit(X)
        coupled = MixtureClusterer(9, n_init=4, coupling_of_runs="rows", max_iter=15, **usual)
        assert coupled.fit(X).objective_ > alone.objective_


# -- coupling fitted mixtures ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_fitted_mixtures_of_different_kinds_may_be_coupled():
    X = counts()
    one = MixtureClusterer(K, random_state=0, tol=1e-3).fit(X)
    two = MixtureClusterer(3, family="gaussian", random_state=0, tol=1e-3).fit(X)
    first, second = couple(one, two, via="rows", X=X)
    assert (first.shape, second.shape) == ((120, K), (120, 3))
    (a, b), _ = couple_resp(
        [one.predict_proba(X), two.predict_proba(X)], RunCoupling("rows", include_self=False)
    )
    np.testing.assert_allclose(first, a, atol=1e-6)
    np.testing.assert_allclose(second, b, atol=1e-6)
    warm = MixtureClusterer(K, init=first, tol=1e-3).fit(X)
    assert len(warm.runs_) == 1


def test_responsibilities_may_be_coupled_without_models():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(3), 20), rng.dirichlet(np.ones(2), 20)
    first, second = couple(a, 5 * b, via="rows")
    np.testing.assert_allclose(first.sum(axis=1), 1)
    np.testing.assert_allclose(second, a @ (a.T @ b / a.sum(axis=0)[:, np.newaxis]))


@pytest.mark.parametrize(
    ("a", "b", "X", "words"),
    [
        (MixtureClusterer(2), np.ones((4, 2)), None, "pass the rows as X"),
        (AspectModel(2), np.ones((4, 2)), None, "a is of type AspectModel"),
        (np.ones((4, 2)), np.ones((5, 2)), None, "a and b must have the same rows"),
        (np.ones((4, 2)), -np.ones((4, 2)), None, "b must hold responsibilities"),
        (np.zeros((4, 2)), np.ones((4, 2)), None, "a: row 0 has no responsibility"),
    ],
)
def test_what_has_no_rows_in_common_is_refused(a, b, X, words):
    with pytest.raises((TypeError, ValueError), match=words):
        couple(a, b, via="rows", X=X)


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            {"coupling_of_runs": "words"},
            "coupling_of_runs must be None, one of 'rows' or a Run",
        ),
        ({"coupling_of_runs": 3}, "coupling_of_runs must be"),
        ({"n_init": 1}, "needs at least two runs: set n_init to 4"),
        ({"init": np.ones((120, K))}, "needs at least two runs"),
    ],
)
def test_what_cannot_be_coupled_is_refused_before_any_work(bad, words):
    with pytest.raises(ValueError, match=words):
        make(**bad).fit(counts())


def test_a_coupling_survives_cloning():
    model = clone(make())
    assert model.coupling_of_runs == RunCoupling("rows", n_couplings=2, n_rounds=4)


def test_an_onlooker_sees_the_rounds_of_all_phases():
    X = counts()
    trace = entropy_trace(make(), X, np.arange(len(X)) % 3)
    assert [record.round for record in trace] == list(range(1, 15))
    assert all(record.entropy >= 0 for record in trace)


@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_states_that_are_lost_before_a_coupling_are_made_again(n_parts):
    X = counts()
    settings = {"dtype": np.float64, "max_iter": 4}
    truth = make(**settings).fit(X)
    model = make(engine=ForgetfulEngine(n_parts), **settings).fit(X)
    assert model.objective_ == pytest.approx(truth.objective_, rel=1e-9)
    assert len(model.transition_) == len(truth.transition_)
