"""Sequences that cannot be, and input that the kernels of hidden Markov chains refuse."""

import pickle

import numpy as np
import pytest

from coem.kernels import _compiled, chain
from tests.kernels.chains import Case, case_of, log

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
        assert pickle.loads(pickle.dumps(caught.value)).sequence == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_others_are_right_beside_an_impossible_sequence(beta, dtype):
    good = case_of(np.random.default_rng(11), "dense", 3, [5, 4])
    rows = np.insert(good.log_prob, [5, 5], -np.inf, axis=0)
    resp, offsets = np.full((11, 3), np.nan, dtype), np.array([0, 5, 7, 11])
    with pytest.raises(chain.ImpossibleSequence) as caught:
        chain.forward_backward(rows, offsets, *good.chain, beta=beta, resp=resp)
    assert caught.value.sequence == 1
    found, want = good.smooth(beta=beta, dtype=dtype)
    np.testing.assert_array_equal(resp, np.insert(want, [5, 5], 0.0, axis=0))

    sums, objective = np.zeros((4, 3)), np.full(3, np.nan)
    args = rows, *good.chain, None, beta, offsets, None, 0, 3, sums[0], sums[1:]
    _compiled.forward_backward(*args, objective, resp)
    np.testing.assert_array_equal(objective, np.insert(found.objective, 1, -np.inf))
    np.testing.assert_array_equal(sums, [found.starts, *found.transitions])

    states, best = np.empty(11, np.int32), good.decode()
    args = rows, *good.chain, None, offsets, None, 0, 3, np.zeros(3), np.zeros((3, 3))
    _compiled.viterbi(*args, objective, states, resp)
    np.testing.assert_array_equal(objective, np.insert(best.log_joint, 1, -np.inf))
    np.testing.assert_array_equal(states, np.insert(best.states, [5, 5], -1))
    np.testing.assert_array_equal(resp[states >= 0], np.eye(3)[best.states])
    assert not resp[states < 0].any()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("k", [3, 20])
def test_rows_that_are_no_numbers(bad, k):
    rng = np.random.default_rng(12)
    for row, holes in [(0, False), (3, False), (5, True)]:  # the last is not allowed anyway
        case = case_of(rng, "left-right", k, [2, 4], holes=holes)
        rows = case.log_prob.copy()
        rows[row, k - 1] = bad
        case = case.change(rows)
        if holes:
            case.allowed[row, k - 1] = False
        for call in (case.smooth, case.evidence, case.decode):
            with pytest.raises(ValueError, match=f"sequence {row // 2 > 0:d}: log_prob must not"):
                call()


def test_evidence_beyond_all_numbers_is_refused():
    case = Case(np.full((2, 1), 1e308), [0.0], [[0.0]])
    with pytest.raises(ValueError, match="sequence 0: log_prob must not hold"):
        case.evidence()


# -- bad input -----------------------------------------------------------------------------------


def arguments(k=3, n=4):
    """Return arguments of the compiled functions, by name."""
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

# Of another type, another shape, or with gaps.
WRONG = {
    "log_prob": [np.zeros((4, 3), np.float32), np.zeros((3, 4)).T, np.zeros((4, 2))],
    "log_start": [np.zeros(3, np.float32), np.zeros(4)],
    "log_transition": [np.zeros((3, 4)), np.zeros((3, 6))[:, ::2]],
    "allowed": [np.ones((4, 3), bool), np.ones((3, 3), np.uint8), np.ones((4, 2), np.uint8)],
    "beta": [0.0, -1.0, np.nan, np.inf],
    "offsets": [np.array([0, 4], np.int32), np.array([0, 5]), np.array([-1, 4]), np.array([4, 2])],
    "weights": [np.ones(2), np.ones(1, np.float32)],
    "lo": [-1, 2],
    "hi": [2, -1],
    "starts": [np.zeros(2), np.zeros(3, np.float32)],
    "transitions": [np.zeros((3, 2)), np.zeros((3, 3))[::-1]],
    "objective": [np.zeros(2)],
    "states": [np.zeros(3, np.int32), np.zeros(4, np.int64)],
    "resp": [np.zeros((4, 2)), np.zeros((3, 3)), np.zeros((4, 3), int), np.zeros((8, 3))[::2]],
}


@pytest.mark.parametrize("name", WRONG)
def test_bindings_refuse(name):
    for function, names in TAKES.items():
        given = {n: value for n, value in arguments().items() if n in names}
        function(**given)  # right as it is
        for wrong in WRONG[name] if name in names else []:
            with pytest.raises((TypeError, ValueError)):
                function(**given | {name: wrong})


def test_bindings_refuse_a_chain_without_states():
    nothing = {"log_start": np.zeros(0), "log_transition": np.zeros((0, 0))}
    for function, names in TAKES.items():
        given = {n: value for n, value in arguments().items() if n in names}
        with pytest.raises(ValueError, match="there must be a state"):
            function(**given | nothing)


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
    names = "log_prob", "offsets", "log_start", "log_transition", "allowed"
    given = {name: value for name, value in arguments().items() if name in names} | change
    for call in (
        lambda: chain.forward_backward(**given, resp=np.empty((4, 3))),
        lambda: chain.evidence(**given),
        lambda: chain.viterbi(**given),
    ):
        with pytest.raises(ValueError, match=message):
            call()
