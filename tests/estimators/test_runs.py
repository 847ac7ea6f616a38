"""What the aspect and the traffic model have in common: their runs, starts and held-out counts."""

import numpy as np
import pytest

from coem import AspectModel, TrafficModel
from coem.schedules import Linear

N = 40


def traffic(seed=0, k=4, total=3000):
    """Return square counts, which both models read, dealt at random to two matrices."""
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.full(N, 0.1), k)
    beta = rng.dirichlet(np.full(k * k, 0.5)).reshape(k, k)
    X = rng.multinomial(total, (alpha.T @ beta @ alpha).ravel()).reshape(N, N)
    train = rng.binomial(X, 0.5)
    return train, X - train


@pytest.fixture(params=[AspectModel, TrafficModel])
def kind(request):
    """Return each of the two classes."""
    return request.param


def via(kind):
    return "c" if kind is AspectModel else "x"


def parameters(model):
    if isinstance(model, AspectModel):
        return model.weights_, model.x_given_h_, model.y_given_h_
    return model.alpha_, model.beta_


# -- early stopping -------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1.0, 0.9, Linear(0.5, 1.0, 5)])
@pytest.mark.parametrize("coupled", [False, True])
def test_a_warm_start_never_comes_back_worse_than_it_was(kind, beta, coupled):
    train, test = traffic()
    # Fitted to the held-out counts: whatever is learnt from others can only be worse.
    good = kind(8, n_runs=1, smoothing=0.01, random_state=0).fit(test)
    settings = {"coupling": via(kind), "self_coupling": True} if coupled else {}
    warm = kind(8, init=good, beta=beta, validation=test, patience=3, **settings).fit(train)
    assert max(r.held_out for r in warm.history_) < good.score(test)
    for mine, theirs in zip(parameters(warm), parameters(good), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert warm.kl_ == warm.runs_[0].kl_before
    if beta == 1.0:
        assert warm.objective_ == pytest.approx(good.score(train) * train.sum(), rel=1e-9)
    if beta in (1.0, 0.9):  # where nothing is annealed, the phase itself goes back
        first = warm.runs_[0]
        assert (first.kl, first.objective) == (warm.kl_, warm.objective_)
        assert first.held_out == pytest.approx(good.score(test), rel=1e-9)
    if coupled:
        assert warm.runs_[1].held_out < good.score(test)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_phases_is_kept(kind, seed):
    train, test = traffic()
    model = kind(8, coupling=via(kind), rounds=3, max_iter=40, random_state=seed)
    model.set_params(validation=test, patience=3).fit(train)
    best = max(model.runs_, key=lambda record: record.held_out)
    assert model.score(test) == pytest.approx(best.held_out, rel=1e-9)
    assert model.best_run_ == best.run
    assert (model.kl_, model.objective_) == (best.kl, best.objective)


def test_without_held_out_counts_the_last_phase_is_kept(kind):
    train, _ = traffic()
    model = kind(8, coupling=via(kind), max_iter=3, random_state=0).fit(train)
    last = [record.objective for record in model.runs_ if record.phase == 1]
    assert model.objective_ == max(last)
