"""The traffic model against a slow transcription of Lin (2006), Sec. 5, from given values.

Both compute in double and differ by the order of their sums; see test_lin.py for the tolerance.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from coem import RunCoupling, TrafficModel
from coem.schedules import Linear, Steps
from tests.truths import lin_traffic as lin

N, K = 24, 4
ITER = 12  # of each phase


def make(seed=0, n_runs=2):
    """Return counts between nodes and starts."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.6, size=(N, N)) + np.eye(N, k=1, dtype=int)
    starts = [
        (rng.dirichlet(np.ones(N), K), rng.dirichlet(np.ones(K * K)).reshape(K, K))
        for _ in range(n_runs)
    ]
    return counts, starts


def model(starts, **settings):
    return TrafficModel(K, init=list(starts), max_iter=ITER, dtype=np.float64, **settings)


def agree(estimator, wanted):
    for got, want in zip((estimator.alpha_, estimator.beta_), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_em(smoothing):
    counts, (start, _) = make()
    got = model([start], smoothing=smoothing).fit(sp.csr_matrix(counts))
    want = lin.em(counts, *start, [1.0] * ITER, smoothing)
    agree(got, want)
    assert np.isclose(got.kl_, lin.kl(counts, *want), rtol=1e-9)
    penalty = smoothing * np.log(want[0]).sum()
    assert np.isclose(got.objective_, lin.tempered(counts, *want, 1.0) + penalty, rtol=1e-9)
    middle = lin.em(counts, *start, [1.0] * 5, smoothing)
    assert np.isclose(got.history_[4].kl, lin.kl(counts, *middle), rtol=1e-9)


@pytest.mark.parametrize(
    "beta", [0.95, 0.5, Linear(0.9, 1.0, ITER - 1), Steps([0.9, 0.95, 1.0], 4)]
)
def test_daem(beta):
    counts, (start, _) = make(1)
    betas = [beta] * (ITER + 1) if isinstance(beta, float) else [beta(t) for t in range(ITER + 1)]
    got = model([start], beta=beta).fit(counts)
    want = lin.em(counts, *start, betas[:ITER])
    agree(got, want)
    assert np.isclose(got.kl_, lin.kl(counts, *want), rtol=1e-9)
    assert np.isclose(got.objective_, lin.tempered(counts, *want, betas[ITER]), rtol=1e-9)


@pytest.mark.parametrize("rounds", [1, 2])
def test_coem(rounds):
    counts, runs = make(2)
    got = model(runs, coupling="x", rounds=rounds).fit(counts)
    kls = []
    for phase in range(rounds + 1):
        if phase > 0:
            runs = lin.couple(*runs)
            before = [lin.kl(counts, *run) for run in runs]
            records = [r for r in got.runs_ if r.phase == phase]
            np.testing.assert_allclose([r.kl_before for r in records], before, rtol=1e-9)
        runs = [lin.em(counts, *run, [1.0] * ITER) for run in runs]
        kls += [lin.kl(counts, *run) for run in runs]
    np.testing.assert_allclose([r.kl for r in got.runs_], kls, rtol=1e-9)
    agree(got, runs[int(np.argmin(kls[-2:]))])


def test_coupled_daem_is_not_heated_again():
    counts, runs = make(3)
    beta = Steps([0.9, 0.95, 1.0], 4)
    got = model(runs, coupling="x", beta=beta).fit(counts)
    runs = [lin.em(counts, *run, [beta(t) for t in range(ITER)]) for run in runs]
    runs = [lin.em(counts, *run, [1.0] * ITER) for run in lin.couple(*runs)]
    kls = [lin.kl(counts, *run) for run in runs]
    np.testing.assert_allclose([r.kl for r in got.runs_ if r.phase == 1], kls, rtol=1e-9)


def test_self_coupling():
    counts, (start, _) = make(4)
    got = model([start], coupling="x", self_coupling=True).fit(counts)
    run = lin.em(counts, *start, [1.0] * ITER)
    agree(got, lin.em(counts, *lin.learn(run, run), [1.0] * ITER))


def test_three_runs():
    counts, runs = make(5, 3)
    ring = model(runs, coupling=RunCoupling("x", "ring")).fit(counts)
    all_of_them = model(runs, coupling="x").fit(counts)
    runs = [lin.em(counts, *run, [1.0] * ITER) for run in runs]
    in_ring = [lin.learn(runs[i], runs[(i + 1) % 3]) for i in range(3)]
    by_mean = []
    for i in range(3):
        learnt = [lin.learn(runs[i], runs[j]) for j in range(3) if j != i]
        by_mean.append([np.mean(part, axis=0) for part in zip(*learnt, strict=True)])
    for got, wanted in ((ring, in_ring), (all_of_them, by_mean)):
        kls = [lin.kl(counts, *lin.em(counts, *run, [1.0] * ITER)) for run in wanted]
        np.testing.assert_allclose([r.kl for r in got.runs_ if r.phase == 1], kls, rtol=1e-9)


def test_transitions_are_the_papers():
    counts, starts = make(6)
    got = model(starts, coupling="x").fit(counts)
    one, two = (lin.em(counts, *start, [1.0] * ITER) for start in starts)
    (first, second) = got.transition_
    assert (first.run, first.other, first.through, first.coupling) == (0, 1, "x", 0)
    np.testing.assert_allclose(first.matrix, lin.one_given_two(two, one), rtol=1e-9)
    np.testing.assert_allclose(first.back, lin.one_given_two(one, two), rtol=1e-9)
    np.testing.assert_allclose(second.matrix, first.back, rtol=1e-12)
