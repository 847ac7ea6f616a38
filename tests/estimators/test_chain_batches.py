"""`HiddenMarkovModel.partial_fit`: stepwise EM over batches of sequences."""

import pickle

import numpy as np
import pytest

from coem import HiddenMarkovModel, load
from coem.families import Gaussian
from coem.io import ModelFileError
from coem.latent.markov import MarkovStats
from coem.schedules import StepSize
from tests.truths import chains

K = 2
RNG = np.random.default_rng(3)
BATCHES = [[30, 12], [9], [25, 1, 4], [40]]  # lengths of sequences
STATES = [np.repeat(RNG.integers(K, size=(sum(b) + 3) // 4), 4)[: sum(b)] for b in BATCHES]
ROWS = [np.array([[-1.5], [1.5]])[s] + RNG.standard_normal((len(s), 1)) for s in STATES]
FAMILY = Gaussian("diag", reg=0)
START = {"family": FAMILY, "max_iter": 4, "tol": 0, "random_state": 0}


def after(n=4, **params):
    model = HiddenMarkovModel(K, **START, **params)
    for X, lengths in zip(ROWS[:n], BATCHES[:n], strict=True):
        model.partial_fit(X, lengths=lengths)
    return model


def close(one, other):
    for name in ("startprob_", "transmat_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    for mine, theirs in zip(one.theta_["view0"], other.theta_["view0"], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def sums_of(X, lengths, weight, model):
    """Return the statistics of a batch under the parameters of a model, by the slow twin."""
    theta, ends = model["theta"], np.cumsum(lengths)
    chain = np.log(model["start"]), np.log(model["transition"])
    total = [0.0] * 5
    for lo, hi, w in zip(ends - lengths, ends, weight, strict=True):
        resp, pairs, _ = chains.forward_backward(chains.diag_gaussian(X[lo:hi], *theta), *chain)
        squares = X[lo:hi] ** 2
        parts = resp[0], pairs, resp.sum(axis=0), resp.T @ X[lo:hi], resp.T @ squares
        total = [old + w * part for old, part in zip(total, parts, strict=True)]
    return total


@pytest.mark.parametrize("n_rows", [None, 500.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_stepwise_em(weighted, n_rows):
    """A transcription keeps the sums of all batches, and weighs them anew at every M step."""
    prior = 1 + np.eye(K)
    step = StepSize(0.8, 2.0, n_rows)
    model = HiddenMarkovModel(K, step=step, transmat_prior=prior, **START)
    twin, sums, sizes, steps = {}, [], [], []
    for t, (X, lengths) in enumerate(zip(ROWS, BATCHES, strict=True), 1):
        weight = np.linspace(0.5, 2.0, len(lengths)) if weighted else np.ones(len(lengths))
        model.partial_fit(X, lengths=lengths, sequence_weight=weight if weighted else None)
        if t == 1:
            start, transition = model.startprob_, model.transmat_
            twin = {"theta": model.theta_["view0"], "start": start, "transition": transition}
        sums.append(sums_of(X, lengths, weight, twin))
        sizes.append(weight @ lengths)
        steps.append(1.0 if t == 1 else min(1, (t + 2.0) ** -0.8 * sizes[-1] / np.mean(sizes)))
        if t == 1:
            continue
        shares = [g * np.prod(1 - np.array(steps[b + 1 :])) for b, g in enumerate(steps)]
        rows = n_rows or 1 / np.sum(np.square(shares) / sizes)
        factors = rows * np.array(shares) / sizes
        starts, pairs, mass, first, second = (
            sum(f * own[i] for f, own in zip(factors, sums, strict=True)) for i in range(5)
        )
        means = first / mass[:, None]
        twin["theta"] = means, second / mass[:, None] - means**2
        twin["start"] = chains.shares(starts, 1.0)
        twin["transition"] = chains.shares(pairs, prior)
        np.testing.assert_allclose(model.startprob_, twin["start"], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(model.transmat_, twin["transition"], rtol=1e-8, atol=1e-12)
        for mine, theirs in zip(model.theta_["view0"], twin["theta"], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7)
        np.testing.assert_allclose(model.weights_, mass / mass.sum(), rtol=1e-8)
        np.testing.assert_array_equal(model.labels_, model.predict(X, lengths))
    right = np.mean(model.predict(ROWS[3]) == STATES[3])
    assert max(right, 1 - right) > 0.8


def test_a_weight_of_two_is_a_sequence_twice():
    X, lengths = ROWS[0], BATCHES[0]
    one, two = after(2), after(2)
    one.partial_fit(X, lengths=lengths, sequence_weight=[2.0, 1.0])
    two.partial_fit(np.concatenate([X[:30], X]), lengths=[30, *lengths])
    close(one, two)


def test_all_sequences_after_a_fit_are_one_more_round():
    X, lengths = np.concatenate(ROWS), [n for batch in BATCHES for n in batch]
    model = HiddenMarkovModel(K, **START).fit(X, lengths=lengths)
    longer = HiddenMarkovModel(K, family=FAMILY, init=model, max_iter=1, tol=0)
    longer.fit(X, lengths=lengths)
    close(model.partial_fit(X, lengths=lengths), longer)


def test_a_first_batch_stands_for_the_rows_of_the_data():
    X, lengths = ROWS[0], BATCHES[0]
    sticky = {"transmat_prior": 1 + 5 * np.eye(K), **START}
    model = HiddenMarkovModel(K, step=StepSize(n_rows=84), **sticky).partial_fit(X, lengths=lengths)
    fitted = HiddenMarkovModel(K, **sticky).fit(X, lengths=lengths, sequence_weight=[2.0, 2.0])
    close(model, fitted)
    assert model._stats.n_rows == pytest.approx(84)


@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_what_is_impossible_stays_impossible(posterior):
    model = after(startprob=[1, 0], transmat=[[0.9, 0.1], [0, 1]], posterior=posterior)
    np.testing.assert_array_equal(model.startprob_, [1, 0])
    assert model.transmat_[1, 0] == 0 < model.transmat_[0, 1]
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="sequence 0: every path through the states"):
        model.partial_fit(ROWS[0][:2], [1, 0])
    assert pickle.dumps(model) == before


def test_labels_are_states_that_stay_fixed():
    model = after()
    X = np.zeros((6, 1))
    model.partial_fit(X, [1] * 6)
    other = after().partial_fit(X, [0] * 6)
    assert model.weights_[1] > other.weights_[1]
    with pytest.raises(ValueError, match="the label 2 is not a state"):
        model.partial_fit(X, [2] * 6)


def same(one, two):
    for name in ("startprob_", "transmat_", "weights_", "labels_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.theta_["view0"].means, two.theta_["view0"].means)


@pytest.mark.parametrize("way", ["pickle", "file"])
def test_a_stored_model_goes_on_with_the_same_bits(way, tmp_path):
    model = after(3, step=StepSize(0.9))
    if way == "pickle":
        stored = pickle.loads(pickle.dumps(model))
    else:
        model.save(tmp_path / "m.coem")
        stored = load(tmp_path / "m.coem")
    same(model.partial_fit(ROWS[3]), stored.partial_fit(ROWS[3]))
    fresh = HiddenMarkovModel(K, **START).fit(ROWS[0])
    same(model.fit(ROWS[0]), fresh)
    same(model.partial_fit(ROWS[3]), fresh.partial_fit(ROWS[3]))  # nothing is left of the batches


def test_statistics_in_a_file_are_checked(tmp_path):
    model = after(2)
    (stats,) = model._stats.stats
    wrong = MarkovStats(stats.counts.starts, stats.counts.steps[0])
    object.__setattr__(stats, "counts", wrong)
    model.save(tmp_path / "m.coem")
    with pytest.raises(ModelFileError, match="the statistics"):
        load(tmp_path / "m.coem")
