"""The kernels of hidden Markov chains against a slow twin, all paths, laws and textbooks."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from coem.engine import LocalEngine
from coem.kernels import chain, instruction_set, threads
from tests.kernels.chains import (
    SHAPES,
    Case,
    case_of,
    chain_of,
    check_path,
    check_smooth,
    count_path,
    joint_of,
    log,
    twin,
)

KS = (1, 3, 8, 17, 50)  # of one to four vectors of four states, and of more; full, and not
ISAS = ("baseline", "avx2", "avx512")

every_k = pytest.mark.parametrize("k", KS)


# -- against the twin ----------------------------------------------------------------------------


@every_k
@pytest.mark.parametrize("shape", SHAPES)
def test_the_twin(shape, k):
    rng = np.random.default_rng(k)
    weights = np.array([0.5, 0.0, 3.0, 1.0])
    check_smooth(case_of(rng, shape, k, [12]))
    for beta in (1.0, 0.3):
        case = case_of(rng, shape, k, [1, 2, 18, 5], holes=True)
        check_smooth(case, beta=beta, weights=weights)
        check_path(case, weights)


@every_k
@pytest.mark.parametrize("shape", SHAPES)
def test_states_that_are_far_apart(shape, k):
    # Filtered probabilities down to 1e-40000: some sequences are done with logarithms.
    rng = np.random.default_rng(k)
    for spread in (100.0, 1e4):
        case = case_of(rng, shape, k, [20, 6], spread=spread, holes=True)
        check_smooth(case, rtol=1e-12 * spread)
        check_path(case)


@pytest.mark.parametrize("k", [16, 64, 99, 100, 300])
def test_many_states(k):
    case = case_of(np.random.default_rng(k), "dense", k, [9, 1], spread=20.0)
    check_smooth(case)
    check_path(case)


@every_k
def test_responsibilities_in_single_precision(k):
    case = case_of(np.random.default_rng(k), "sparse", k, [40, 3, 1], holes=True)
    wide, resp = case.smooth()
    narrow, single = case.smooth(dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, resp, rtol=1e-7, atol=1e-9)
    assert not single[resp < 1e-9].any()
    for a, b in zip(wide, narrow, strict=True):
        np.testing.assert_array_equal(a, b)
    hot = np.empty_like(single)
    path = case.decode(resp=hot).states
    np.testing.assert_array_equal(hot, np.eye(k, dtype=np.float32)[path])


@pytest.mark.slow
def test_a_hundred_thousand_steps():
    rng = np.random.default_rng(7)
    n, k, prefix = 100_000, 50, 150
    long = Case(-rng.gamma(1.0, 20.0, size=(n, k)), *chain_of(rng, "dense", k))
    found, resp = long.smooth()
    assert np.isfinite(resp).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(found.transitions.sum(), n - 1, rtol=1e-12)
    # What comes after the prefix is forgotten some rows before its end.
    _, want, _ = twin(long.log_prob[:prefix], *long.chain)
    np.testing.assert_allclose(resp[:100], want[:100], atol=1e-11)
    # The states are not far apart, so a pass forwards with one scale a row is exact, too.
    forward, transition = long.log_start + long.log_prob[0], np.exp(long.log_transition)
    for row in long.log_prob[1:]:
        top = forward.max()
        forward = top + np.log(np.exp(forward - top) @ transition) + row
    np.testing.assert_allclose(found.evidence, np.logaddexp.reduce(forward), rtol=1e-12)


# -- laws ----------------------------------------------------------------------------------------


def test_a_row_that_says_nothing_changes_nothing_but_time():
    # It is summed out: the evidence is that of a chain that makes two steps at once.
    case = case_of(np.random.default_rng(0), "dense", 4, [3])
    rows = case.log_prob.copy()
    rows[1] = 0.0
    two = np.exp(case.log_transition) @ np.exp(case.log_transition)
    case, short = case.change(rows), Case(rows[[0, 2]], case.log_start, np.log(two))
    np.testing.assert_allclose(case.evidence(), short.evidence(), rtol=1e-13)
    np.testing.assert_allclose(case.smooth()[1][[0, 2]], short.smooth()[1], rtol=1e-12)


def test_equal_rows_of_transitions_are_a_mixture():
    rng = np.random.default_rng(1)
    rows, weights = -rng.gamma(2.0, 3.0, size=(60, 5)), rng.dirichlet(np.ones(5))
    case = Case(rows, np.log(weights), np.log(np.tile(weights, (5, 1))), lengths=[20, 40])
    found, resp = case.smooth()
    joint = rows + np.log(weights)
    total = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(resp, np.exp(joint - total[:, None]), rtol=1e-12)
    np.testing.assert_allclose(found.evidence, [total[:20].sum(), total[20:].sum()], rtol=1e-13)


@pytest.mark.parametrize("beta", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("shape", ["dense", "sparse"])
def test_all_paths(beta, shape):
    k, length = 3, 5
    paths = np.array(list(itertools.product(range(k), repeat=length)))
    case = case_of(np.random.default_rng(5), shape, k, [length], holes=shape == "sparse")
    (rows,) = case.sequences
    joint = np.array([joint_of(path, rows, *case.chain) for path in paths])
    share = np.exp(beta * joint - np.logaddexp.reduce(beta * joint))
    found, resp = case.smooth(beta=beta)
    np.testing.assert_allclose(found.evidence, np.logaddexp.reduce(joint), rtol=1e-13)
    np.testing.assert_allclose(found.objective, np.logaddexp.reduce(beta * joint) / beta)
    np.testing.assert_allclose(resp, np.einsum("p,ptk->tk", share, np.eye(k)[paths]), atol=1e-14)
    counts = sum(s * count_path(path, k) for s, path in zip(share, paths, strict=True))
    np.testing.assert_allclose(found.transitions, counts, atol=1e-14)
    # The objective is the expected log joint plus the entropy of paths over beta.
    kept = share > 0
    bound = share[kept] @ (joint[kept] - np.log(share[kept]) / beta)
    np.testing.assert_allclose(found.objective, bound, rtol=1e-12)
    best = case.decode()
    np.testing.assert_array_equal(best.states, paths[joint.argmax()])
    np.testing.assert_allclose(best.log_joint, joint.max(), rtol=1e-13)


@every_k
def test_ties_go_to_the_lowest_state(k):
    case = Case(np.zeros((6, k)), np.full(k, -1.0), np.full((k, k), -2.0))
    np.testing.assert_array_equal(case.decode().states, np.zeros(6))
    case.allowed = np.ones((6, k), bool)
    case.allowed[3, : k - 1] = False
    np.testing.assert_array_equal(case.decode().states, [0, 0, 0, k - 1, 0, 0])


# -- textbooks -----------------------------------------------------------------------------------

STAY = np.log([[0.7, 0.3], [0.3, 0.7]])
HALF = np.log([0.5, 0.5])
UMBRELLA = np.array([True, True, False, True, True])
FIVE_DAYS = np.log(np.where(UMBRELLA[:, None], [0.9, 0.2], [0.1, 0.8]))


def test_healthy_and_fever():
    # https://en.wikipedia.org/wiki/Viterbi_algorithm, section "Example": a patient is normal, cold
    # and dizzy. The best path is healthy, healthy, fever; its probability is 0.01512.
    emission = np.array([[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    case = Case(np.log(emission.T), np.log([0.6, 0.4]), np.log([[0.7, 0.3], [0.4, 0.6]]))
    found = case.decode()
    np.testing.assert_array_equal(found.states, [0, 0, 1])
    np.testing.assert_allclose(np.exp(found.log_joint), 0.01512, rtol=1e-12)
    np.testing.assert_array_equal(found.starts, [1, 0])
    np.testing.assert_array_equal(found.transitions, [[1, 1], [0, 0]])


def test_the_umbrella_world():
    # Russell and Norvig, Artificial Intelligence: A Modern Approach (3rd edition), Section 15.2:
    # rain given one umbrella 0.818, given two 0.883; rain on day 1 given both days 0.883.
    one, filtered = Case(FIVE_DAYS[:1], HALF, STAY).smooth()
    assert filtered[0, 0].round(3) == 0.818
    np.testing.assert_allclose(np.exp(one.evidence), 0.45 + 0.1, rtol=1e-13)
    two, resp = Case(FIVE_DAYS[:2], HALF, STAY).smooth()
    np.testing.assert_array_equal(resp[:, 0].round(3), [0.883, 0.883])
    # By hand: (0.45, 0.1) forwards gives 0.9 (0.315 + 0.03) and 0.2 (0.135 + 0.07).
    np.testing.assert_allclose(np.exp(two.evidence), 0.3105 + 0.041, rtol=1e-13)


def test_the_umbrella_of_five_days():
    # Wikipedia, "Forward-backward algorithm", Example: umbrella on days 1, 2, 4 and 5. Smoothed
    # probabilities of rain: 0.8673, 0.8204, 0.3075, 0.8204, 0.8673. By hand, the best path is rain
    # but on day 3: 0.45 (0.7 0.9) (0.3 0.8) (0.3 0.9) (0.7 0.9).
    case = Case(FIVE_DAYS, HALF, STAY)
    _, resp = case.smooth()
    np.testing.assert_array_equal(resp[:, 0].round(4), [0.8673, 0.8204, 0.3075, 0.8204, 0.8673])
    best = case.decode()
    np.testing.assert_array_equal(best.states, [0, 0, 1, 0, 0])
    by_hand = 0.45 * 0.63 * 0.24 * 0.27 * 0.63
    np.testing.assert_allclose(np.exp(best.log_joint), by_hand, rtol=1e-12)


# -- the ends of the range of numbers ------------------------------------------------------------


@pytest.mark.parametrize("level", [-1e6, 1e6, -1e9])
def test_rows_of_any_level(level):
    # The level of a row says nothing about its state.
    case = case_of(np.random.default_rng(8), "dense", 4, [20])
    (found, resp), best = case.smooth(), case.decode()
    case = case.change(case.log_prob + level)  # a few digits of the rows are lost
    (lifted, got), path = case.smooth(), case.decode()
    lost = 1e-14 * abs(level)
    np.testing.assert_allclose(got, resp, atol=lost)
    np.testing.assert_allclose(lifted.transitions, found.transitions, atol=20 * lost)
    np.testing.assert_allclose(lifted.evidence, found.evidence + 20 * level, atol=20 * lost)
    np.testing.assert_array_equal(path.states, best.states)
    np.testing.assert_allclose(path.log_joint, best.log_joint + 20 * level, atol=20 * lost)


def test_the_only_possible_state_may_be_unlikely():
    # The row likes state 1 better by 1e5 nats, but there is no way to it.
    transition = log(np.array([[1.0, 0.0], [0.5, 0.5]]))
    case = Case([[0.0, -3.0], [-1e5, 0.0], [0.0, -2.0]], [0.0, -np.inf], transition)
    found, resp = case.smooth()
    np.testing.assert_array_equal(resp, [[1, 0]] * 3)
    np.testing.assert_array_equal(found.evidence, [-1e5])
    np.testing.assert_array_equal(found.transitions, [[2, 0], [0, 0]])
    np.testing.assert_array_equal(case.decode().states, [0, 0, 0])


@pytest.mark.parametrize("gap", [200.0, 280.0, 300.0, 330.0, 345.0, 360.0, 400.0, 5000.0])
def test_a_state_may_come_back_from_nothing(gap):
    # Nobody changes the state. State 1 is behind by `gap` nats half way; in the end it is behind by
    # one. Around 300 nats doubles reach their limit, and logarithms take over.
    rows = np.zeros((40, 3))
    rows[:20, 1] = -gap / 20
    rows[20:, 0] = (1 - gap) / 20
    rows[:, 2] = -gap / 2
    case = Case(rows, np.log(np.full(3, 1 / 3)), log(np.eye(3)))
    found, resp = case.smooth()
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(resp, np.tile([share, 1 - share, 0.0], (40, 1)), atol=1e-12)
    np.testing.assert_allclose(np.diag(found.transitions), 39 * resp[0], atol=1e-10)
    check_smooth(case)
    check_smooth(case, beta=0.1)


def test_a_left_right_model_in_a_hurry():
    # Far-away states are reached early with probabilities that no double can hold. The last rows
    # belong to the last state.
    rng = np.random.default_rng(9)
    case = case_of(rng, "left-right", 30, [60], spread=50.0)
    rows = case.log_prob.copy()
    rows[-10:] = -1e4
    rows[-10:, -1] = 0.0
    check_smooth(case.change(rows), rtol=1e-10)
    check_path(case.change(rows))


def test_probabilities_too_small_for_a_double():
    for gap in (400.0, 800.0):  # to start in state 1 or in 0 is equally good, but for half a nat
        check_smooth(Case([[-gap - 0.5, 0.0], [0.0, 0.0]], [0.0, -gap], log(np.eye(2))))
    transition = np.array([[0.0, -800.0], [-2000.0, 0.0]])
    rows = np.array([[0.0, -3000.0], [-3000.0, 0.0], [0.0, -3000.0]])
    check_smooth(Case(rows, HALF, transition), rtol=1e-9)
    rows[2] = -2000.5, 0.0  # to change back and not to are equally good, but for half a nat
    check_smooth(Case(rows, HALF, transition), rtol=1e-9)
    check_path(Case(rows, HALF, transition))


# -- several sequences, and threads --------------------------------------------------------------


def test_sequences_do_not_know_of_each_other():
    case = case_of(np.random.default_rng(13), "sparse", 5, [3, 1, 400, 7], spread=30.0)
    (found, resp), best = case.smooth(), case.decode()
    parts = [Case(rows, *case.chain) for rows in case.sequences]
    np.testing.assert_array_equal(resp, np.concatenate([part.smooth()[1] for part in parts]))
    np.testing.assert_array_equal(found.evidence, [part.evidence()[0] for part in parts])
    np.testing.assert_array_equal(
        best.states, np.concatenate([part.decode().states for part in parts])
    )


def test_an_empty_sequence_has_no_rows_and_no_counts():
    case = case_of(np.random.default_rng(14), "dense", 3, [4])
    found, resp = case.smooth()
    padded = Case(case.log_prob, *case.chain, lengths=[0, 4, 0])
    got, got_resp = padded.smooth()
    np.testing.assert_array_equal(got.evidence, [0.0, found.evidence[0], 0.0])
    np.testing.assert_array_equal(got_resp, resp)
    np.testing.assert_array_equal(got.starts, found.starts)
    np.testing.assert_array_equal(padded.evidence(), got.evidence)
    assert padded.decode().log_joint[0] == 0.0
    nothing = Case(np.empty((0, 3)), *case.chain, lengths=[])
    assert nothing.smooth()[0].transitions.shape == (3, 3)
    assert len(nothing.decode().states) == len(nothing.evidence()) == 0


def everything(case, weights):
    """Return all that the kernels find."""
    found, resp = case.smooth(weights=weights)
    return [*found, resp, case.evidence(), *case.decode(weights=weights)]


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_change_a_bit(n_jobs, monkeypatch):
    monkeypatch.setattr(chain, "STEPS", 16)
    rng = np.random.default_rng(15)
    lengths = rng.integers(1, 40, size=60).tolist()
    case, weights = case_of(rng, "sparse", 9, lengths, spread=60.0), rng.gamma(1.0, size=60)
    alone = everything(case, weights)
    with LocalEngine(n_jobs) as engine, threads.lend(engine):
        together = everything(case, weights)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


def results():
    """Return what every face finds, to be compared between instruction sets."""
    out = {}
    for k, spread in itertools.product(KS, (3.0, 300.0)):
        case = case_of(np.random.default_rng(k), "sparse", k, [30, 1], spread=spread, holes=True)
        for number, value in enumerate(everything(case, np.array([1.0, 0.5]))):
            out[f"{k}_{spread}_{number}"] = value
    return out


def test_instruction_sets_agree(tmp_path):
    older = ISAS[: ISAS.index(instruction_set())]
    if not older:
        pytest.skip("there is only one")
    expected = results()
    for isa in older:
        path = tmp_path / f"{isa}.npz"
        command = [sys.executable, "-m", "tests.kernels.test_chain", path]
        subprocess.run(command, env=os.environ | {"COEM_ISA": isa}, check=True, timeout=120)
        with np.load(path) as got:
            assert got["instruction_set"].item() == isa
            for name, value in expected.items():
                np.testing.assert_allclose(got[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


if __name__ == "__main__":
    # See `test_instruction_sets_agree`.
    np.savez(Path(sys.argv[1]), instruction_set=instruction_set(), **results())
