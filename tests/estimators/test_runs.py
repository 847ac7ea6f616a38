"""What the aspect and the traffic model have in common: their runs, starts and held-out counts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from coem import AspectModel, MixtureClusterer, RowCoupling, RunCoupling, TrafficModel, couple
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


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("bacd", "column 0 is 'b' in validation and 'a' in X"),
        ("abce", "column 3 is 'e' in validation and 'd' in X"),
    ],
)
def test_held_out_columns_have_the_names_of_the_others(kind, names, message):
    frame = pd.DataFrame(np.ones((4, 4)), columns=list("abcd"))
    model = kind(2, max_iter=2, validation=pd.DataFrame(np.ones((4, 4)), columns=list(names)))
    with pytest.raises(ValueError, match=message):
        model.fit(frame)
    for fine in (frame, frame.to_numpy()):
        assert model.set_params(validation=fine).fit(frame).kl_ >= 0
    assert model.set_params(validation=frame).fit(frame.to_numpy()).kl_ >= 0


def test_held_out_counts_are_there(kind):
    with pytest.raises(ValueError, match="validation has no counts: hold some out"):
        kind(2, validation=np.zeros((4, 4))).fit(np.ones((4, 4)))


# -- schedules and rounds -------------------------------------------------------------------------


@pytest.mark.parametrize("coupled", [False, True])
def test_a_schedule_that_the_iterations_do_not_end_is_told_of(kind, coupled):
    train, _ = traffic()
    settings = {"coupling": via(kind)} if coupled else {}
    model = kind(3, max_iter=10, random_state=0, **settings)
    rounds = 20 if coupled else 10
    model.set_params(beta=Linear(0.5, 1.0, rounds)).fit(train)  # just long enough
    assert model.history_[-1].beta == 1.0
    for tol in (0.0, 1e-9):
        model.set_params(beta=Linear(0.5, 1.0, 2 * rounds), tol=tol)
        with pytest.warns(ConvergenceWarning, match=f"beta was 0.75 .* takes {2 * rounds} "):
            model.fit(train)
    assert model.history_[-1].beta == 0.75


def test_rounds_are_rounds_of_couplings(kind):
    with pytest.raises(ValueError, match=r"rounds=3 is a number of couplings.* set coupling='x"):
        kind(2, rounds=3).fit(np.ones((4, 4)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RunCoupling("e"), "RunCoupling: via must be one of 'xy'"),
        (lambda: RunCoupling("x", "ringg"), "RunCoupling: among must be one of 'all'"),
        (lambda: RunCoupling(itself="no"), "RunCoupling: itself must be True or False, got 'no'"),
        (lambda: RunCoupling(include_self=1), "RunCoupling: include_self must be True or False"),
        (lambda: RunCoupling(n_couplings=0), "RunCoupling: n_couplings must be an integer of 1"),
        (lambda: RunCoupling(n_rounds=2.5), "RunCoupling: n_rounds must be an integer of 1"),
    ],
)
def test_couplings_are_checked_when_they_are_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- starts ---------------------------------------------------------------------------------------


def other(kind):
    return TrafficModel if kind is AspectModel else AspectModel


def test_a_tuple_of_models_is_one_start_a_run(kind):
    train, _ = traffic()
    fits = [kind(3, n_runs=1, max_iter=2, random_state=seed).fit(train) for seed in range(3)]
    # As many as a start has arrays, and one fewer or more.
    for n in (2, 3):
        for starts in (fits[:n], [parameters(fit) for fit in fits[:n]]):
            model = kind(3, init=tuple(starts), max_iter=1).fit(train)
            assert model.kl_ == kind(3, init=starts, max_iter=1).fit(train).kl_
            assert len(model.runs_) == n


def test_models_of_another_kind_are_no_start(kind):
    X = np.ones((4, 4)) + np.eye(4)
    wrong = (
        other(kind)(2, max_iter=2).fit(X),
        MixtureClusterer(2, tol=1e-3).fit(X),
        GaussianMixture(2, random_state=0).fit(X),
    )
    for model in wrong:
        for init in (model, [model], (model, model, model)):
            message = rf"init\[0\] must be .*{kind.__name__}.*, got {type(model).__name__}"
            with pytest.raises(TypeError, match=message):
                kind(2, init=init).fit(X)


# -- couple ---------------------------------------------------------------------------------------


def test_models_that_are_coupled_otherwise_are_told_how():
    X = np.ones((4, 4)) + np.eye(4)
    aspect = AspectModel(2, max_iter=2).fit(X)
    hubs = TrafficModel(2, max_iter=2).fit(X)
    mixture = MixtureClusterer(2, tol=1e-3).fit(X)
    with pytest.raises(
        TypeError, match="b is of type MixtureClusterer; to couple mixtures, use via='r"
    ):
        couple(aspect, mixture, "xy")
    with pytest.raises(TypeError, match=r"a is of type TrafficModel; .* set its coupling='x'"):
        couple(hubs, aspect, "c", X)
    with pytest.raises(TypeError, match=r"a is of type TrafficModel; .* set its coupling='x'"):
        couple(hubs, mixture, "rows", X)
    with pytest.raises(TypeError, match="b is of type AspectModel; couple aspect models via 'xy'"):
        couple(mixture, aspect, "rows", X)


def test_what_couple_returns_belongs_to_the_caller():
    train, _ = traffic()
    one, two = (AspectModel(3, n_runs=1, max_iter=3, random_state=seed) for seed in (0, 1))
    before = one.fit(train).weights_.copy()
    for table in couple(one, two.fit(train))[0]:
        table[:] = 7
    np.testing.assert_array_equal(one.weights_, before)


# -- what is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_divergence_is_never_negative(kind, dtype):
    for seed in range(20):
        p = np.random.default_rng(seed).dirichlet(np.ones(9))
        X = 1000 * np.outer(p, p)
        model = kind(1, max_iter=5, dtype=dtype, random_state=seed).fit(X)
        assert 0 <= model.kl_ < 1e-6
        assert min(record.kl for record in model.history_) >= 0


def test_progress_leaves_out_what_means_nothing_here(kind, capsys):
    kind(2, n_runs=1, max_iter=2, verbose=10).fit(np.ones((4, 4)))
    written = capsys.readouterr().err
    assert written.count("objective") == 2
    assert "agreement" not in written
    views = [np.eye(6), np.eye(6)]
    MixtureClusterer(2, max_iter=2, tol=0, verbose=10, init="random", random_state=0).fit(views)
    assert capsys.readouterr().err.count("agreement") == 2


# -- names that are going ------------------------------------------------------------------------


def test_old_names_of_couplings_still_work():
    with pytest.warns(FutureWarning, match="RowCoupling.* is deprecated .*write RunCoupling"):
        old = RowCoupling(2, 4, "ring", own=False)
    assert old == RunCoupling("rows", "ring", include_self=False, n_couplings=2, n_rounds=4)
    with pytest.warns(FutureWarning, match=r"itself=.* is deprecated .*among='self'"):
        old = RunCoupling("a", itself=True)
    assert old == RunCoupling("a", "self")
    with pytest.warns(FutureWarning, match="deprecated"):
        assert RunCoupling("a", "all", True) == old  # by place, too
    assert RunCoupling("a", itself=False) == RunCoupling("a")


@pytest.mark.parametrize("bad", [{"times": 0}, {"after": 1.5}, {"among": "some"}, {"own": "no"}])
def test_old_names_are_still_checked(bad):
    with pytest.raises(ValueError, match="Coupling: "), pytest.warns(FutureWarning):
        RowCoupling(**bad)
