"""`MixtureClusterer.fitter`: several fits that share what does not depend on the seed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from coem import MixtureClusterer
from coem.engine import LocalEngine
from coem.initialise import spherical
from coem.selection import stability

SEEDS = [3, 1, 4]


def rows(seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=80)
    return [rng.poisson(1 + 4 * np.eye(3, 9)[group]) for _ in range(2)]


def same_bits(one, other):
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    for view in one.theta_:
        np.testing.assert_array_equal(one.theta_[view], other.theta_[view])
    assert one.get_params().keys() == other.get_params().keys()


@pytest.mark.slow
@pytest.mark.parametrize("init", ["spherical", "random", "rows", "k-means++"])
@pytest.mark.parametrize("n_init", [1, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_it_is_a_fit_with_the_seed(init, n_init, n_jobs):
    X, weight = rows(), np.random.default_rng(1).gamma(1.0, size=80)
    model = MixtureClusterer(3, init=init, n_init=n_init, max_iter=6, tol=0)
    fit = model.fitter(X, SEEDS, weight, n_jobs=n_jobs)
    for seed in reversed(SEEDS):
        truth = clone(model).set_params(random_state=seed).fit(X, sample_weight=weight)
        same_bits(fit(seed), truth)
    assert not hasattr(model, "theta_")


def test_fits_can_run_side_by_side():
    X, model = rows(), MixtureClusterer(3, max_iter=6, tol=0)
    fit = model.fitter(X, SEEDS)
    with ThreadPoolExecutor(3) as pool:
        for seed, found in zip(SEEDS, pool.map(fit, SEEDS), strict=True):
            same_bits(found, clone(model).set_params(random_state=seed).fit(X))


def test_rows_are_rescaled_once_for_all_runs(monkeypatch):
    calls, rescaled = [], spherical.rescaled

    def counted(*args):
        calls.append(args)
        return rescaled(*args)

    monkeypatch.setattr(spherical, "rescaled", counted)
    X, model = rows(), MixtureClusterer(3, n_init=4, max_iter=2, tol=0, random_state=0)
    model.fit(X)
    assert len(calls) == 2  # one per view
    fit = model.fitter(X, SEEDS)
    for seed in SEEDS:
        fit(seed)
    assert len(calls) == 4


def test_bad_input_is_refused_before_any_fit():
    with pytest.raises(ValueError, match="cannot fill n_components=90"):
        MixtureClusterer(90).fitter(rows(), SEEDS)


def test_fits_do_not_share_an_engine():
    """An engine has the threads of one fit."""
    X, model = rows(), MixtureClusterer(3, n_init=2, max_iter=4, tol=0, engine=LocalEngine(2))
    found = stability(model, X, n_runs=4, n_jobs=2, random_state=0)
    assert len(found.agreement) == 4
