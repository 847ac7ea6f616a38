"""The aspect model against a slow transcription of Lin (2006), from given starting values.

Both compute in double and differ by the order of their sums, about 1e-14 in a parameter; 1e-9
leaves room for what the iterations make of that and for nothing else.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from coem import AspectModel, couple
from coem.schedules import Linear, Steps
from tests.truths import lin

N, M, K = 30, 20, 4
ITER = 12  # of each phase

every_via = pytest.mark.parametrize("via", ["xy", "a", "b", "c", "d"])


def make(seed=0):
    """Return counts, without empty rows and columns, and two starts."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.6, size=(N, M)) + np.eye(N, M, dtype=int)
    counts[M:, 0] += 1
    starts = [
        (rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(N), K), rng.dirichlet(np.ones(M), K))
        for _ in range(2)
    ]
    return counts, starts


def model(starts, **settings):
    return AspectModel(K, init=list(starts), max_iter=ITER, dtype=np.float64, **settings)


def agree(aspects, wanted):
    for got, want in zip(aspects, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def fitted(estimator):
    return estimator.weights_, estimator.x_given_h_, estimator.y_given_h_


def test_em():
    counts, (start, _) = make()
    got = model([start]).fit(sp.csr_matrix(counts))
    want = lin.em(counts, *start, [1.0] * ITER)
    agree(fitted(got), want)
    assert np.isclose(got.kl_, lin.kl(counts, *want), rtol=1e-9)
    assert np.isclose(got.objective_, lin.tempered(counts, *want, 1.0), rtol=1e-9)
    middle = lin.em(counts, *start, [1.0] * 5)
    assert np.isclose(got.history_[4].kl, lin.kl(counts, *middle), rtol=1e-9)


@pytest.mark.parametrize(
    "beta", [0.95, 0.5, Linear(0.9, 1.0, ITER - 1), Steps([0.9, 0.95, 1.0], 4)]
)
def test_daem(beta):
    counts, (start, _) = make(1)
    betas = [beta] * (ITER + 1) if isinstance(beta, float) else [beta(t) for t in range(ITER + 1)]
    got = model([start], beta=beta).fit(counts)
    want = lin.em(counts, *start, betas[:ITER])
    agree(fitted(got), want)
    assert np.isclose(got.kl_, lin.kl(counts, *want), rtol=1e-9)
    assert np.isclose(got.objective_, lin.tempered(counts, *want, betas[ITER]), rtol=1e-9)


def transcribed(counts, a, b, via):
    return lin.couple_xy(counts, a, b) if via == "xy" else lin.couple(counts, a, b, via)


@every_via
def test_couple(via):
    counts, starts = make(2)
    a, b = (lin.em(counts, *start, [1.0] * 3) for start in starts)
    got = couple(a, b, via, counts)
    for mine, want in zip(got, transcribed(counts, a, b, via), strict=True):
        agree(mine, want)


@every_via
@pytest.mark.parametrize("rounds", [1, 2])
def test_coem(via, rounds):
    counts, runs = make(3)
    got = model(runs, coupling=via, rounds=rounds).fit(counts)
    kls = []
    for phase in range(rounds + 1):
        if phase > 0:
            runs = transcribed(counts, *runs, via)
            before = [lin.kl(counts, *run) for run in runs]
            records = [r for r in got.runs_ if r.phase == phase]
            np.testing.assert_allclose([r.kl_before for r in records], before, rtol=1e-9)
        runs = [lin.em(counts, *run, [1.0] * ITER) for run in runs]
        kls += [lin.kl(counts, *run) for run in runs]
    np.testing.assert_allclose([r.kl for r in got.runs_], kls, rtol=1e-9)
    best = runs[int(np.argmin(kls[-2:]))]
    agree(fitted(got), best)


@every_via
def test_self_coupling(via):
    counts, (start, _) = make(4)
    got = model([start], coupling=via, self_coupling=True).fit(counts)
    run = lin.em(counts, *start, [1.0] * ITER)
    run, _ = transcribed(counts, run, run, via)
    agree(fitted(got), lin.em(counts, *run, [1.0] * ITER))


def test_codaem_is_not_heated_again():
    counts, runs = make(5)
    beta = Steps([0.9, 0.95, 1.0], 4)
    got = model(runs, coupling="xy", beta=beta).fit(counts)
    runs = [lin.em(counts, *run, [beta(t) for t in range(ITER)]) for run in runs]
    runs = [lin.em(counts, *run, [1.0] * ITER) for run in lin.couple_xy(counts, *runs)]
    kls = [lin.kl(counts, *run) for run in runs]
    np.testing.assert_allclose([r.kl for r in got.runs_ if r.phase == 1], kls, rtol=1e-9)
    assert [record.beta for record in got.history_][-ITER:] == [1.0] * ITER


def test_transitions_are_the_papers():
    counts, starts = make(6)
    got = model(starts, coupling="a").fit(counts)
    one, two = (lin.em(counts, *start, [1.0] * ITER) for start in starts)
    # p(h2|h1) = sum_y p(h2|y) p(y|h1), Sec. 4.1
    want = one[2] @ lin.h_given(two[0], two[2]).T
    (to_two, to_one) = got.transition_
    assert (to_two.run, to_two.other, to_two.through) == (0, 1, "y")
    assert (to_one.run, to_one.other, to_one.coupling) == (1, 0, 0)
    np.testing.assert_allclose(to_two.matrix, want, rtol=1e-9)
    np.testing.assert_allclose(to_one.matrix.sum(axis=1), 1.0, rtol=1e-12)
