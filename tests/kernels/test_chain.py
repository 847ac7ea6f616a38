"""The kernels of hidden Markov chains against a slow twin in log space, and against all paths.

Posteriors and expected counts are in double. They differ from the twin by rounding: the twin adds
logarithms, whose error is their size times 1e-16. Logs in these tests are of the order of 100, or
of 1e5 where a test says so, in which case the tolerance is wider.
"""

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from coem.engine import LocalEngine
from coem.kernels import _compiled, chain, instruction_set, threads

KS = (1, 2, 3, 8, 9, 50)
LENGTHS = (1, 2, 3, 50)
BETAS = (1.0, 0.5, 0.1)
ISAS = ("baseline", "avx2", "avx512")

every_k = pytest.mark.parametrize("k", KS)
every_length = pytest.mark.parametrize("length", LENGTHS)
every_beta = pytest.mark.parametrize("beta", BETAS)


def log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


# -- what the kernels are given ------------------------------------------------------------------


class Case:
    """One or more sequences and a chain."""

    def __init__(self, log_prob, log_start, log_transition, *, allowed=None, lengths=None):
        self.log_prob = np.asarray(log_prob, np.float64)
        self.log_start = np.asarray(log_start, np.float64)
        self.log_transition = np.asarray(log_transition, np.float64)
        self.allowed = allowed
        lengths = [len(self.log_prob)] if lengths is None else lengths
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def chain(self):
        return self.log_start, self.log_transition

    @property
    def sequences(self):
        """The rows of each sequence, -inf where a state is not allowed."""
        rows = self.log_prob
        if self.allowed is not None:
            rows = np.where(self.allowed, rows, -np.inf)
        return [rows[lo:hi] for lo, hi in itertools.pairwise(self.offsets)]

    def smooth(self, *, beta=1.0, weights=None, dtype=np.float64):
        """Return what the kernel finds and the responsibilities."""
        resp = np.full(self.log_prob.shape, np.nan, dtype)
        rows = self.log_prob.copy()
        args = rows, self.offsets, *self.chain, self.allowed
        found = chain.forward_backward(*args, beta=beta, weights=weights, resp=resp)
        np.testing.assert_array_equal(rows, self.log_prob)
        return found, resp

    def evidence(self):
        rows = self.log_prob.copy()
        found = chain.evidence(rows, self.offsets, *self.chain, self.allowed)
        np.testing.assert_array_equal(rows, self.log_prob)
        return found

    def decode(self, **options):
        rows = self.log_prob.copy()
        found = chain.viterbi(rows, self.offsets, *self.chain, self.allowed, **options)
        np.testing.assert_array_equal(rows, self.log_prob)
        return found


def random_case(rng, k, lengths, *, zeros=False, masks=False, missing=False, spread=3.0):
    """Return sequences of which every one has a possible path: the one drawn from the chain."""
    n = sum(lengths)
    transition = rng.dirichlet(np.full(k, 0.7), size=k) + 1e-6
    if zeros:
        transition *= rng.random((k, k)) < 0.5
        np.fill_diagonal(transition, 1.0)
    transition /= transition.sum(axis=1, keepdims=True)
    start = rng.dirichlet(np.ones(k))
    if zeros:
        start[1 + rng.integers(k) :] = 0.0
        start /= start.sum()
    path = np.concatenate([draw(rng, start, transition, length) for length in lengths])
    log_prob = -rng.gamma(1.0, spread, size=(n, k))
    log_prob[np.arange(n), path] += spread
    if missing:
        log_prob[rng.random(n) < 0.4] = 0.0
    allowed = None
    if masks:
        allowed = rng.random((n, k)) < 0.6
        allowed[np.arange(n), path] = True
    return Case(log_prob, log(start), log(transition), allowed=allowed, lengths=lengths)


def draw(rng, start, transition, length):
    path = [rng.choice(len(start), p=start)]
    while len(path) < length:
        path.append(rng.choice(len(start), p=transition[path[-1]]))
    return np.array(path)


# -- the twin ------------------------------------------------------------------------------------


def log_add(terms, axis):
    """Return logsumexp, without warnings where all terms are -inf."""
    with np.errstate(divide="ignore"):
        return logsumexp(terms, axis=axis)


def twin(rows, log_start, log_transition, beta=1.0):
    """Return the objective, posteriors and expected transitions of one sequence, in log space."""
    rows, log_start, log_transition = beta * rows, beta * log_start, beta * log_transition
    n, k = rows.shape
    forward, backward = np.empty((n, k)), np.zeros((n, k))
    forward[0] = log_start + rows[0]
    for t in range(1, n):
        forward[t] = log_add(forward[t - 1][:, None] + log_transition, axis=0) + rows[t]
    for t in range(n - 2, -1, -1):
        backward[t] = log_add(log_transition + rows[t + 1] + backward[t + 1], axis=1)
    total = log_add(forward[-1], axis=0)
    resp = np.exp(forward + backward - total)
    transitions = np.zeros((k, k))
    for t in range(1, n):
        way = forward[t - 1][:, None] + log_transition + rows[t] + backward[t]
        transitions += np.exp(way - total)
    return total / beta, resp, transitions


def twin_path(rows, log_start, log_transition):
    """Return the best path of one sequence and its log joint probability."""
    best, pointers = log_start + rows[0], []
    for row in rows[1:]:
        ways = best[:, None] + log_transition
        pointers.append(ways.argmax(axis=0))  # the first of equals
        best = ways.max(axis=0) + row
    path = [int(best.argmax())]
    for pointer in reversed(pointers):
        path.append(int(pointer[path[-1]]))
    return path[::-1], best.max()


def joint_of(path, rows, log_start, log_transition):
    """Return the log joint probability of a sequence and a path."""
    ways = log_transition[path[:-1], path[1:]].sum()
    return log_start[path[0]] + ways + rows[np.arange(len(path)), path].sum()


def count_path(path, k):
    counts = np.zeros((k, k))
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    return counts


# -- against the twin ----------------------------------------------------------------------------


def check_smooth(case, *, beta=1.0, weights=None, rtol=1e-11):
    found, resp = case.smooth(beta=beta, weights=weights)
    twins = [twin(rows, *case.chain, beta) for rows in case.sequences]
    plain = [twin(rows, *case.chain)[0] for rows in case.sequences]
    lengths = np.diff(case.offsets)
    weights = np.ones(len(lengths)) if weights is None else weights
    np.testing.assert_allclose(found.objective, [t[0] for t in twins], rtol=rtol, atol=1e-11)
    np.testing.assert_allclose(found.evidence, plain, rtol=rtol, atol=1e-11)
    np.testing.assert_allclose(resp, np.concatenate([t[1] for t in twins]), atol=rtol)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-13)
    transitions = sum(w * t[2] for w, t in zip(weights, twins, strict=True))
    np.testing.assert_allclose(found.transitions, transitions, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.transitions.sum(), weights @ (lengths - 1), rtol=1e-12)
    assert not found.transitions[np.isneginf(case.log_transition)].any()
    starts = sum(w * t[1][0] for w, t in zip(weights, twins, strict=True))
    np.testing.assert_allclose(found.starts, starts, atol=rtol)
    if case.allowed is not None:
        assert not resp[~case.allowed].any()


def check_path(case):
    hot = np.full(case.log_prob.shape, np.nan)
    found = case.decode(resp=hot)
    want_counts = np.zeros(case.log_transition.shape)
    for s, rows in enumerate(case.sequences):
        path = found.states[case.offsets[s] : case.offsets[s + 1]]
        _, best = twin_path(rows, *case.chain)
        # Paths may be equal but for rounding; what counts is the probability.
        np.testing.assert_allclose(joint_of(path, rows, *case.chain), best, rtol=1e-12)
        np.testing.assert_allclose(found.log_joint[s], best, rtol=1e-12)
        want_counts += count_path(path, len(want_counts))
    np.testing.assert_array_equal(hot, np.eye(len(want_counts))[found.states])
    np.testing.assert_array_equal(found.transitions, want_counts)
    np.testing.assert_array_equal(found.starts, hot[case.offsets[:-1]].sum(axis=0))


@every_k
@every_length
@every_beta
def test_dense_chains(k, length, beta):
    rng = np.random.default_rng(k * 100 + length)
    case = random_case(rng, k, [length])
    check_smooth(case, beta=beta)
    check_path(case)


@every_k
@every_length
@every_beta
def test_masks_zeros_and_missing_rows(k, length, beta):
    rng = np.random.default_rng(k * 100 + length)
    lengths = [length, 1, length + 1, 2]
    case = random_case(rng, k, lengths, zeros=True, masks=True, missing=True)
    check_smooth(case, beta=beta)
    check_smooth(case, beta=beta, weights=np.array([0.5, 2.0, 0.0, 3.0]))
    check_path(case)


@every_k
@pytest.mark.parametrize("spread", [100.0, 1e4])
def test_states_that_are_far_apart(k, spread):
    # Filtered probabilities down to 1e-43000: most steps take the way through logarithms.
    rng = np.random.default_rng(k)
    for zeros in (False, True):
        case = random_case(rng, k, [30, 20], zeros=zeros, masks=zeros, spread=spread)
        check_smooth(case, rtol=1e-10 * spread)
        check_path(case)


@every_k
def test_forward_equals_forward_backward(k):
    case = random_case(np.random.default_rng(k), k, [40, 7, 1, 300], zeros=True, masks=True)
    found, _ = case.smooth()
    np.testing.assert_array_equal(case.evidence(), found.evidence)
    assert found.evidence is found.objective
    warm, _ = case.smooth(beta=0.5)
    np.testing.assert_array_equal(case.evidence(), warm.evidence)


@every_k
def test_responsibilities_in_single_precision(k):
    case = random_case(np.random.default_rng(k), k, [40, 3, 1], zeros=True, masks=True)
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


def test_a_row_without_a_view_changes_nothing_but_time():
    # A missing row is summed out: the evidence is that of a chain that makes two steps at once.
    rng = np.random.default_rng(0)
    case = random_case(rng, 4, [3])
    case.log_prob[1] = 0.0
    two = np.exp(case.log_transition) @ np.exp(case.log_transition)
    short = Case(case.log_prob[[0, 2]], case.log_start, np.log(two))
    np.testing.assert_allclose(case.evidence(), short.evidence(), rtol=1e-13)
    np.testing.assert_allclose(case.smooth()[1][[0, 2]], short.smooth()[1], rtol=1e-12)


def test_equal_rows_of_transitions_are_a_mixture():
    rng = np.random.default_rng(1)
    rows, weights = -rng.gamma(2.0, 3.0, size=(60, 5)), rng.dirichlet(np.ones(5))
    case = Case(rows, np.log(weights), np.log(np.tile(weights, (5, 1))), lengths=[20, 40])
    found, resp = case.smooth()
    joint = rows + np.log(weights)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(resp, np.exp(joint - total[:, None]), rtol=1e-12)
    np.testing.assert_allclose(found.evidence, [total[:20].sum(), total[20:].sum()], rtol=1e-13)


# -- against all paths ---------------------------------------------------------------------------


@every_beta
@pytest.mark.parametrize("zeros", [False, True])
def test_all_paths(beta, zeros):
    k, length = 3, 5
    rng = np.random.default_rng(5)
    for _ in range(10):
        case = random_case(rng, k, [length], zeros=zeros, masks=zeros)
        (rows,) = case.sequences
        paths = np.array(list(itertools.product(range(k), repeat=length)))
        joint = np.array([joint_of(path, rows, *case.chain) for path in paths])
        share = np.exp(beta * joint - logsumexp(beta * joint))
        found, resp = case.smooth(beta=beta)
        np.testing.assert_allclose(found.evidence, [logsumexp(joint)], rtol=1e-13)
        np.testing.assert_allclose(found.objective, [logsumexp(beta * joint) / beta], rtol=1e-13)
        want = np.einsum("p,ptk->tk", share, np.eye(k)[paths])
        np.testing.assert_allclose(resp, want, atol=1e-14)
        counts = sum(s * count_path(path, k) for s, path in zip(share, paths, strict=True))
        np.testing.assert_allclose(found.transitions, counts, atol=1e-14)
        # The objective is the expected log joint plus the entropy of paths over beta.
        kept = share > 0
        bound = share[kept] @ (joint[kept] - np.log(share[kept]) / beta)
        np.testing.assert_allclose(found.objective, [bound], rtol=1e-12)
        best = case.decode()
        np.testing.assert_array_equal(best.states, paths[joint.argmax()])
        np.testing.assert_allclose(best.log_joint, [joint.max()], rtol=1e-13)


# -- textbooks -----------------------------------------------------------------------------------


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


def test_umbrella_world():
    # Russell and Norvig, Artificial Intelligence: A Modern Approach (3rd edition), Section 15.2:
    # rain given one umbrella 0.818, given two 0.883; rain on day 1 given both days 0.883.
    transition = np.log([[0.7, 0.3], [0.3, 0.7]])
    rows = np.log([[0.9, 0.2]] * 2)
    one, filtered = Case(rows[:1], np.log([0.5, 0.5]), transition).smooth()
    assert filtered[0, 0].round(3) == 0.818
    np.testing.assert_allclose(np.exp(one.evidence), 0.45 + 0.1, rtol=1e-13)
    two, resp = Case(rows, np.log([0.5, 0.5]), transition).smooth()
    np.testing.assert_array_equal(resp[:, 0].round(3), [0.883, 0.883])
    # By hand: (0.45, 0.1) forwards gives 0.9 (0.315 + 0.03) and 0.2 (0.135 + 0.07).
    np.testing.assert_allclose(np.exp(two.evidence), 0.3105 + 0.041, rtol=1e-13)


def test_the_umbrella_of_five_days():
    # Wikipedia, "Forward-backward algorithm", Example: umbrella on days 1, 2, 4 and 5. Smoothed
    # probabilities of rain: 0.8673, 0.8204, 0.3075, 0.8204, 0.8673.
    seen = np.array([True, True, False, True, True])
    rows = np.log(np.where(seen[:, None], [0.9, 0.2], [0.1, 0.8]))
    case = Case(rows, np.log([0.5, 0.5]), np.log([[0.7, 0.3], [0.3, 0.7]]))
    _, resp = case.smooth()
    np.testing.assert_array_equal(resp[:, 0].round(4), [0.8673, 0.8204, 0.3075, 0.8204, 0.8673])


# -- the ends of the range of numbers ------------------------------------------------------------


def test_a_hundred_thousand_steps():
    rng = np.random.default_rng(7)
    n, k, prefix = 100_000, 50, 300
    case = random_case(rng, k, [50], spread=20.0)
    rows = -rng.gamma(1.0, 20.0, size=(n, k))
    long = Case(rows, *case.chain)
    found, resp = long.smooth()
    assert np.isfinite(resp).all()
    assert np.isfinite(found.objective).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(found.transitions.sum(), n - 1, rtol=1e-12)
    # What comes after the prefix is forgotten some rows before its end.
    value, want, transitions = twin(rows[:prefix], *case.chain)
    np.testing.assert_allclose(resp[:200], want[:200], atol=1e-11)
    short, _ = Case(rows[:prefix], *case.chain).smooth()
    np.testing.assert_allclose(short.evidence, [value], rtol=1e-13)
    np.testing.assert_allclose(short.transitions, transitions, atol=1e-10)
    # The states are not far apart, so a pass forwards with one scale a row is exact, too.
    forward = case.log_start + rows[0]
    transition = np.exp(case.log_transition)
    for row in rows[1:]:
        top = forward.max()
        forward = top + np.log(np.exp(forward - top) @ transition) + row
    np.testing.assert_allclose(found.evidence, [logsumexp(forward)], rtol=1e-12)


@pytest.mark.parametrize("level", [-1e5, 1e5, -1e9])
def test_rows_of_any_level(level):
    # The level of a row says nothing about its state.
    rng = np.random.default_rng(8)
    case = random_case(rng, 4, [20])
    found, resp = case.smooth()
    best = case.decode()
    case.log_prob += level  # a few digits of the rows are lost
    lifted, got = case.smooth()
    lost = 1e-16 * abs(level) * 100
    np.testing.assert_allclose(got, resp, atol=lost)
    np.testing.assert_allclose(lifted.transitions, found.transitions, atol=20 * lost)
    np.testing.assert_allclose(lifted.evidence, found.evidence + 20 * level, atol=20 * lost)
    np.testing.assert_array_equal(case.decode().states, best.states)
    np.testing.assert_allclose(case.decode().log_joint, best.log_joint + 20 * level, atol=20 * lost)


def test_the_only_possible_state_may_be_unlikely():
    # The row likes state 1 better by 1e5 nats, but there is no way to it.
    case = Case(
        [[0.0, -3.0], [-1e5, 0.0], [0.0, -2.0]],
        log(np.array([1.0, 0.0])),
        log(np.array([[1.0, 0.0], [0.5, 0.5]])),
    )
    found, resp = case.smooth()
    np.testing.assert_array_equal(resp, [[1, 0]] * 3)
    np.testing.assert_array_equal(found.evidence, [-1e5])
    np.testing.assert_array_equal(found.transitions, [[2, 0], [0, 0]])
    np.testing.assert_array_equal(case.decode().states, [0, 0, 0])


def test_a_state_may_come_back_from_nothing():
    # Nobody changes the state. State 1 is behind by 5000 nats half way, and ahead at the end.
    n, k = 200, 3
    rows = np.zeros((n, k))
    rows[:100, 1] = -50.0
    rows[100:, 0] = -80.0
    rows[:, 2] = -60.0
    case = Case(rows, np.log(np.full(k, 1 / k)), log(np.eye(k)))
    found, resp = case.smooth()
    np.testing.assert_allclose(resp, np.tile([0.0, 1.0, 0.0], (n, 1)), rtol=1e-14)
    np.testing.assert_allclose(found.evidence, [-5000 - np.log(3)], rtol=1e-14)
    np.testing.assert_allclose(found.transitions, np.diag([0.0, n - 1, 0.0]), rtol=1e-14)
    check_smooth(case, beta=0.1)
    # As many nats as make a real question of it.
    case.log_prob[:, 0] = 0.0
    case.log_prob[100:, 0] = -49.99
    _, resp = case.smooth()
    share = 1 / (1 + np.exp(-1.0))
    np.testing.assert_allclose(resp[:, :2], np.tile([share, 1 - share], (n, 1)), rtol=1e-9)
    check_smooth(case)


def test_left_right_models():
    # Far-away states are reached early with probabilities that no double can hold.
    k, n = 30, 120
    rng = np.random.default_rng(9)
    stay = np.full(k, 0.5)
    stay[-1] = 1.0
    transition = np.diag(stay) + np.diag(1 - stay[:-1], 1)
    start = np.eye(k)[0]
    path = draw(rng, start, transition, n)
    rows = -rng.gamma(2.0, 50.0, size=(n, k))
    rows[np.arange(n), path] = 0.0
    case = Case(rows, log(start), log(transition))
    check_smooth(case)
    check_smooth(case, beta=0.5)
    check_path(case)
    # It has to hurry: the last rows belong to the last state.
    rows[-20:] = -1e4
    rows[-20:, -1] = 0.0
    check_smooth(Case(rows, log(start), log(transition)), rtol=1e-10)


def test_transitions_too_small_for_a_double():
    transition = np.array([[0.0, -800.0], [-2000.0, 0.0]])
    rows = np.array([[0.0, -3000.0], [-3000.0, 0.0], [0.0, -3000.0]])
    check_smooth(Case(rows, np.log([0.5, 0.5]), transition), rtol=1e-9)
    rows[2] = -2000.5, 0.0  # to change back and not to are equally good, but for half a nat
    case = Case(rows, np.log([0.5, 0.5]), transition)
    check_smooth(case, rtol=1e-9)
    check_path(case)


def test_tiny_transitions_count_in_full():
    # Between 1e-300 and 1e-10: the floor of the kernel must not be seen.
    rng = np.random.default_rng(10)
    for k in (3, 8, 20):
        transition = np.exp(-rng.uniform(20.0, 690.0, size=(k, k)))
        np.fill_diagonal(transition, 1.0)
        rows = -rng.gamma(1.0, 200.0, size=(60, k))
        case = Case(rows, np.log(np.full(k, 1 / k)), np.log(transition / transition.sum(axis=1)))
        check_smooth(case, rtol=1e-9)
        check_path(case)


# -- ties ----------------------------------------------------------------------------------------


@every_k
def test_ties_go_to_the_lowest_state(k):
    case = Case(np.zeros((6, k)), np.full(k, -1.0), np.full((k, k), -2.0))
    np.testing.assert_array_equal(case.decode().states, np.zeros(6))
    case.allowed = np.ones((6, k), bool)
    case.allowed[3, : k - 1] = False
    np.testing.assert_array_equal(case.decode().states, [0, 0, 0, k - 1, 0, 0])


@pytest.mark.parametrize("k", [256, 257, 300])
def test_paths_of_many_states(k):
    # More states than a byte can number.
    rng = np.random.default_rng(k)
    case = random_case(rng, k, [30], spread=30.0)
    check_path(case)
    check_smooth(case)
    rows = np.full((4, k), -5.0)
    rows[:, k - 1] = 0.0
    assert (Case(rows, *case.chain).decode().states >= 0).all()


# -- sequences that cannot be --------------------------------------------------------------------


def impossible_cases():
    half, open_ = np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5))
    ahead = log(np.array([[0.0, 1.0], [0.0, 1.0]]))  # nobody comes back to state 0
    rows = np.zeros((4, 2))
    hidden = rows.copy()
    hidden[2] = -np.inf
    labels = np.ones((4, 2), bool)
    labels[2] = [True, False]
    nothing = labels.copy()
    nothing[2] = False
    first = np.ones((4, 2), bool)
    first[0] = [True, False]
    yield "a row that no state has", Case(hidden, half, open_)
    yield "a row without an allowed state", Case(rows, half, open_, allowed=nothing)
    yield "a label without a way to it", Case(rows, half, ahead, allowed=labels)
    yield "a start that is not allowed", Case(rows, [-np.inf, 0.0], open_, allowed=first)
    yield "no start at all", Case(rows, [-np.inf, -np.inf], open_)
    yield "no transitions at all", Case(rows, half, np.full((2, 2), -np.inf))


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in impossible_cases()])
def test_impossible_sequences(case):
    for call in (case.smooth, lambda: case.smooth(beta=0.5), case.evidence, case.decode):
        with pytest.raises(chain.ImpossibleSequence, match="sequence 0 is impossible") as caught:
            call()
        assert caught.value.sequence == 0
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_others_are_right_beside_an_impossible_sequence(dtype):
    good = random_case(np.random.default_rng(11), 3, [5, 4])
    rows = np.concatenate([good.log_prob[:5], np.full((2, 3), -np.inf), good.log_prob[5:]])
    case = Case(rows, *good.chain, lengths=[5, 2, 4])
    resp, objective = np.full((11, 3), np.nan, dtype), np.full(3, np.nan)
    starts, transitions = np.zeros(3), np.zeros((3, 3))
    args = rows.copy(), *case.chain, None, 1.0, case.offsets, None, 0, 3
    _compiled.forward_backward(*args, starts, transitions, objective, resp)
    want, want_resp = good.smooth(dtype=dtype)
    np.testing.assert_array_equal(objective, [want.evidence[0], -np.inf, want.evidence[1]])
    np.testing.assert_array_equal(resp, np.insert(want_resp, [5, 5], 0.0, axis=0))
    np.testing.assert_allclose(transitions, want.transitions, rtol=1e-14)
    np.testing.assert_array_equal(starts, want.starts)
    with pytest.raises(chain.ImpossibleSequence) as caught:
        case.smooth()
    assert caught.value.sequence == 1
    assert pickle.loads(pickle.dumps(caught.value)).sequence == 1

    hot, states = np.full((11, 3), np.nan, dtype), np.empty(11, np.int32)
    starts, transitions = np.zeros(3), np.zeros((3, 3))
    args = rows, *case.chain, None, case.offsets, None, 0, 3, starts, transitions
    _compiled.viterbi(*args, objective, states, hot)
    np.testing.assert_array_equal(states[5:7], [-1, -1])
    assert not hot[5:7].any()
    assert hot.sum() == 9
    assert transitions.sum() == 7
    assert np.isneginf(objective[1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_rows_that_are_no_numbers(bad, row, masked):
    case = random_case(np.random.default_rng(12), 3, [2, 4], masks=masked)
    case.log_prob[row, 1] = bad
    for call in (case.smooth, case.evidence, case.decode):
        with pytest.raises(ValueError, match=f"sequence {row // 2}: log_prob must not hold NaN"):
            call()
    case.log_prob[row] = bad
    with pytest.raises(ValueError, match="must not hold NaN"):
        case.smooth()


# -- several sequences, and threads --------------------------------------------------------------


def test_sequences_do_not_know_of_each_other():
    rng = np.random.default_rng(13)
    case = random_case(rng, 5, [3, 1, 400, 7], zeros=True)
    found, resp = case.smooth()
    parts = [Case(rows, *case.chain).smooth() for rows in case.sequences]
    np.testing.assert_allclose(resp, np.concatenate([p[1] for p in parts]), rtol=1e-13, atol=1e-16)
    np.testing.assert_array_equal(found.evidence, [p[0].evidence[0] for p in parts])
    transitions = sum(p[0].transitions for p in parts)
    np.testing.assert_allclose(found.transitions, transitions, rtol=1e-12)


def test_an_empty_sequence_has_no_rows_and_no_counts():
    case = random_case(np.random.default_rng(14), 3, [4])
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


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_do_not_change_a_bit(n_jobs, monkeypatch):
    monkeypatch.setattr(chain, "STEPS", 16)
    rng = np.random.default_rng(15)
    case = random_case(rng, 9, rng.integers(1, 40, size=60).tolist(), zeros=True)
    weights = rng.gamma(1.0, size=60)
    alone, decoded = case.smooth(weights=weights), case.decode(weights=weights)
    with LocalEngine(n_jobs) as engine, threads.lend(engine):
        together, also = case.smooth(weights=weights), case.decode(weights=weights)
    for a, b in zip(
        [*alone[0], alone[1], *decoded], [*together[0], together[1], *also], strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(decoded.starts.sum(), weights.sum(), rtol=1e-12)


def results():
    """Return what every face finds, to be compared between instruction sets."""
    out = {}
    for k in KS:
        for spread in (3.0, 300.0):
            rng = np.random.default_rng(k)
            case = random_case(rng, k, [30, 1, 12], zeros=True, masks=True, spread=spread)
            found, resp = case.smooth(beta=0.5)
            best = case.decode()
            names = *found._fields, "resp", *(f"best_{name}" for name in best._fields)
            for name, value in zip(names, (*found, resp, *best), strict=True):
                out[f"{name}_{k}_{spread}"] = value
    return out


def test_instruction_sets_agree(tmp_path):
    expected = results()
    for isa in ISAS[: ISAS.index(instruction_set()) + 1]:
        path = tmp_path / f"{isa}.npz"
        environment = os.environ | {"COEM_ISA": isa}
        command = [sys.executable, __file__, str(path)]
        subprocess.run(command, env=environment, check=True, timeout=120)
        with np.load(path) as got:
            assert got["instruction_set"].item() == isa
            for name, value in expected.items():
                np.testing.assert_allclose(got[name], value, rtol=1e-10, atol=1e-10, err_msg=name)


# -- bad input -----------------------------------------------------------------------------------


def arguments(k=3, n=4):
    """Return arguments of the compiled function, by name."""
    return {
        "log_prob": np.zeros((n, k)),
        "log_start": np.full(k, -np.log(k)),
        "log_transition": np.full((k, k), -np.log(k)),
        "allowed": None,
        "beta": 1.0,
        "offsets": np.array([0, n]),
        "weights": None,
        "lo": 0,
        "hi": 1,
        "starts": np.zeros(k),
        "transitions": np.zeros((k, k)),
        "objective": np.zeros(1),
        "states": np.zeros(n, np.int32),
        "resp": np.zeros((n, k)),
    }


TAKES = {
    _compiled.forward_backward: arguments().keys() - {"states"},
    _compiled.forward: arguments().keys() - {"weights", "starts", "transitions", "states", "resp"},
    _compiled.viterbi: arguments().keys() - {"beta"},
}

WRONG = {
    "log_prob of single precision": {"log_prob": np.zeros((4, 3), np.float32)},
    "log_prob in one dimension": {"log_prob": np.zeros(12)},
    "log_prob by columns": {"log_prob": np.zeros((3, 4)).T},
    "log_prob with gaps": {"log_prob": np.zeros((4, 6))[:, ::2]},
    "log_prob too narrow": {"log_prob": np.zeros((4, 2))},
    "log_prob too short": {"log_prob": np.zeros((3, 3))},
    "log_start in single precision": {"log_start": np.zeros(3, np.float32)},
    "log_start of another k": {"log_start": np.zeros(4)},
    "no states": {"log_start": np.zeros(0), "log_transition": np.zeros((0, 0))},
    "log_transition that is not square": {"log_transition": np.zeros((3, 4))},
    "log_transition with gaps": {"log_transition": np.zeros((3, 6))[:, ::2]},
    "allowed as bool": {"allowed": np.ones((4, 3), bool)},
    "allowed of another shape": {"allowed": np.ones((3, 3), np.uint8)},
    "beta of zero": {"beta": 0.0},
    "negative beta": {"beta": -1.0},
    "beta that is no number": {"beta": np.nan},
    "offsets of 32 bits": {"offsets": np.array([0, 4], np.int32)},
    "offsets beyond the rows": {"offsets": np.array([0, 5])},
    "negative offsets": {"offsets": np.array([-1, 4])},
    "offsets that decrease": {
        "offsets": np.array([0, 4, 2]),
        "hi": 2,
        "objective": np.zeros(2),
        "weights": None,
    },
    "no offsets": {"offsets": np.zeros(0, np.int64), "lo": 0, "hi": 0},
    "sequences beyond the last": {"hi": 2},
    "sequences in reverse": {"lo": 1, "hi": 0},
    "a negative sequence": {"lo": -1},
    "one weight too many": {"weights": np.ones(2)},
    "weights in single precision": {"weights": np.ones(1, np.float32)},
    "too few starts": {"starts": np.zeros(2)},
    "starts in single precision": {"starts": np.zeros(3, np.float32)},
    "transitions of another shape": {"transitions": np.zeros((3, 2))},
    "transitions by columns": {"transitions": np.zeros((3, 3))[::-1]},
    "too many values": {"objective": np.zeros(2)},
    "too few states": {"states": np.zeros(3, np.int32)},
    "states of 64 bits": {"states": np.zeros(4, np.int64)},
    "resp of another shape": {"resp": np.zeros((4, 2))},
    "too few rows of resp": {"resp": np.zeros((3, 3))},
    "resp of half precision": {"resp": np.zeros((4, 3), np.float16)},
    "resp with gaps": {"resp": np.zeros((8, 3))[::2]},
}


@pytest.mark.parametrize("name", WRONG)
def test_bindings_refuse(name):
    used = 0
    for function, names in TAKES.items():
        given = arguments()
        function(**{n: given[n] for n in names})  # right as it is
        if not names & WRONG[name].keys():
            continue
        wrong = arguments() | WRONG[name]
        with pytest.raises((TypeError, ValueError)):
            function(**{n: wrong[n] for n in names})
        used += 1
    assert used > 0


def test_read_only_outputs_are_refused():
    given = arguments()
    given["resp"].setflags(write=False)
    with pytest.raises(TypeError):
        _compiled.forward_backward(**{n: given[n] for n in TAKES[_compiled.forward_backward]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 3])}, "offsets must go from 0 to the number of rows"),
        ({"offsets": np.array([1, 4])}, "offsets must go from 0 to the number of rows"),
        ({"offsets": np.array([], int)}, "offsets must go from 0 to the number of rows"),
        ({"offsets": np.array([[0, 4]])}, "offsets must go from 0 to the number of rows"),
        ({"offsets": np.array([0, 3, 2, 4])}, "offsets must not decrease"),
        ({"log_start": np.array([0.0, np.nan, 0.0])}, "log_start must hold log probabilities"),
        ({"log_transition": np.ones((3, 3))}, "log_transition must hold log probabilities"),
        ({"allowed": np.ones((4, 2), bool)}, "allowed must have the shape of log_prob"),
    ],
)
def test_faces_refuse(change, message):
    given = {
        n: v for n, v in arguments().items() if n in ("log_prob", "log_start", "log_transition")
    }
    given = given | {"offsets": np.array([0, 4]), "allowed": None} | change
    for call in (
        lambda: chain.forward_backward(**given, resp=np.empty((4, 3))),
        lambda: chain.evidence(**given),
        lambda: chain.viterbi(**given),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_beta_must_be_positive():
    case = random_case(np.random.default_rng(16), 2, [3])
    for beta in (0.0, -1.0):
        with pytest.raises(ValueError, match="beta must be positive"):
            case.smooth(beta=beta)


if __name__ == "__main__":
    # See `test_instruction_sets_agree`.
    np.savez(Path(sys.argv[1]), instruction_set=instruction_set(), **results())
