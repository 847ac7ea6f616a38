"""Time of hidden Markov models, against hmmlearn.

Both sides take the same sequences in one run, alternately; times are medians. hmmlearn has two
implementations: "log", the default, and "scaling". Both are shown.

The first table has the passes over log p(row | state) alone: posteriors and expected transitions
("smooth"), and best paths ("decode"). The second has whole fits and decodings from the same start,
which must end at the same log likelihood. hmmlearn runs in one thread, but its BLAS may use two.
"""

import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from hmmlearn import _hmmc
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from coem import HiddenMarkovModel
from coem.engine import LocalEngine
from coem.families import Gaussian
from coem.kernels import chain, instruction_set, threads

N_SEQUENCES, LENGTH = 100, 2_000
N_STATES, N_COLUMNS, N_SYMBOLS = 8, 8, 20
ROUNDS = 10  # hmmlearn's default
FLOOR = 3.0  # of the ratio to hmmlearn, with two threads


def main():
    print(f"sequences of {LENGTH:,} rows, kernels for {instruction_set()}\n")
    with threadpool_limits(2):
        print("       chain   k  threads  coem ns/row  log/coem  scaling/coem")
        for shape, k in (("dense", 3), ("dense", 8), ("left-right", 8), ("dense", 20)):
            compare_kernels(shape, k, n_sequences=20)
        compare_kernels("dense", 50, n_sequences=5)
        print()
        print(f"{N_SEQUENCES} sequences, {N_STATES} states, fits of {ROUNDS} rounds, two threads")
        print("             model  coem ms  log/coem  scaling/coem  floor")
        compare_models("gaussian")
        compare_models("categorical")


# -- kernels -------------------------------------------------------------------------------------


class Task(NamedTuple):
    """Start and transition probabilities, and log p(row | state) of sequences of equal length."""

    start: np.ndarray
    transition: np.ndarray
    log_prob: np.ndarray

    def ours(self):
        """Return the arguments of a kernel."""
        with np.errstate(divide="ignore"):
            chain_ = np.log(self.start), np.log(self.transition)
        return self.log_prob, np.arange(0, len(self.log_prob) + 1, LENGTH), *chain_

    def sequences(self):
        """Return the rows of each sequence."""
        return self.log_prob.reshape(-1, LENGTH, len(self.start))


def smooth(task):
    chain.forward_backward(*task.ours(), resp=np.empty_like(task.log_prob))


def decode(task):
    chain.viterbi(*task.ours())


def smooth_log(task):
    for rows in task.sequences():
        _, forward = _hmmc.forward_log(task.start, task.transition, rows)
        backward = _hmmc.backward_log(task.start, task.transition, rows)
        joint = forward + backward
        np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        _hmmc.compute_log_xi_sum(forward, task.transition, backward, rows)


def smooth_scaling(task):
    for rows in np.exp(task.sequences()):
        _, forward, scales = _hmmc.forward_scaling(task.start, task.transition, rows)
        backward = _hmmc.backward_scaling(task.start, task.transition, rows, scales)
        joint = forward * backward
        joint /= joint.sum(axis=1, keepdims=True)
        _hmmc.compute_scaling_xi_sum(forward, task.transition, backward, rows)


def decode_theirs(task):
    for rows in task.sequences():
        _hmmc.viterbi(task.start, task.transition, rows)


def compare_kernels(shape, k, n_sequences):
    """Print a line for smoothing and one for decoding, for each number of threads."""
    rng = np.random.default_rng(0)
    start, transition = chain_of(shape, k, rng)
    means = rng.normal(size=(k, N_COLUMNS))
    states = draw_states(rng, start, transition, n_sequences)
    X = means[states] + rng.normal(size=(len(states), N_COLUMNS))
    task = Task(start, transition, -0.5 * ((X[:, None] - means) ** 2).sum(axis=2))
    theirs = {smooth: (smooth_log, smooth_scaling), decode: (decode_theirs,)}
    for n_jobs in (1, 2):
        with LocalEngine(n_jobs) as engine, threads.lend(engine):
            for call, others in theirs.items():
                own, *rest = medians(*(partial(side, task) for side in (call, *others)))
                ratios = "  ".join(f"{other / own:>8.1f}" for other in rest)
                print(
                    f"{call.__name__} {shape:>10}  {k:>2}  {n_jobs:>7}  "
                    f"{own / len(X) * 1e9:>11.0f}  {ratios}",
                    flush=True,
                )


def chain_of(shape, k, rng):
    """Return start and transition probabilities."""
    if shape == "dense":
        return np.full(k, 1 / k), 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.ones(k), size=k)
    stay = np.append(np.full(k - 1, 1 - k / LENGTH), 1.0)
    return np.eye(k)[0], np.diag(stay) + np.diag(1 - stay[:-1], 1)


def draw_states(rng, start, transition, n_sequences):
    """Return the states of sequences, one after the other."""
    states = np.empty((n_sequences, LENGTH), np.int64)
    states[:, 0] = rng.choice(len(start), size=n_sequences, p=start)
    below = transition.cumsum(axis=1)[:, :-1]
    for t in range(1, LENGTH):
        states[:, t] = (rng.random((n_sequences, 1)) > below[states[:, t - 1]]).sum(axis=1)
    return states.ravel()


# -- models --------------------------------------------------------------------------------------


def compare_models(family):
    """Print a line for a fit and one for a decoding."""
    rng = np.random.default_rng(0)
    start, transition = chain_of("dense", N_STATES, rng)
    states = draw_states(rng, start, transition, N_SEQUENCES)
    X = rows_of(family, states, rng)
    lengths = [LENGTH] * N_SEQUENCES
    first = ours(family, rng.dirichlet(np.full(N_STATES, 0.3), size=len(X)), 1).fit(
        X, lengths=lengths
    )
    model = ours(family, first, ROUNDS)
    others = [theirs(family, name) for name in ("log", "scaling")]
    own, *rest = medians(
        partial(model.fit, X, lengths=lengths),
        *(partial(fit_theirs, other, first, X, lengths) for other in others),
    )
    for other in others:
        np.testing.assert_allclose(other.score(X, lengths), model.score(X, lengths=lengths))
    print_models(f"{family} fit", own, rest)
    own, *rest = medians(
        partial(model.decode, X, lengths=lengths),
        *(partial(other.decode, X, lengths) for other in others),
    )
    print_models(f"{family} decode", own, rest)


def rows_of(family, states, rng):
    if family == "gaussian":
        means = rng.normal(size=(N_STATES, N_COLUMNS))
        return means[states] + rng.normal(size=(len(states), N_COLUMNS))
    below = rng.dirichlet(np.full(N_SYMBOLS, 0.5), size=N_STATES).cumsum(axis=1)[:, :-1]
    return (rng.random((len(states), 1)) > below[states]).sum(axis=1)[:, None]


def ours(family, init, max_iter):
    exact = Gaussian(covariance="diag", reg=0.0) if family == "gaussian" else family
    return HiddenMarkovModel(
        N_STATES, family=exact, init=init, max_iter=max_iter, tol=0, n_jobs=2, random_state=0
    )


def theirs(family, implementation):
    options = {"n_iter": ROUNDS, "tol": -np.inf, "init_params": ""}
    options["implementation"] = implementation
    if family == "gaussian":
        return GaussianHMM(N_STATES, covars_prior=0.0, **options)
    return CategoricalHMM(N_STATES, **options)


def fit_theirs(model, first, X, lengths):
    """Fit hmmlearn's model from the parameters of a fitted one."""
    model.startprob_, model.transmat_ = first.startprob_, first.transmat_
    (theta,) = first.theta_.values()
    if isinstance(model, GaussianHMM):
        model.means_, model.covars_ = theta.means.copy(), theta.covariances.copy()
    else:
        model.emissionprob_ = np.exp(theta)
    model.fit(X, lengths)


def print_models(name, own, rest):
    ratios = "  ".join(f"{other / own:>8.1f}" for other in rest)
    print(f"{name:>18}  {own * 1e3:>7.0f}  {ratios:>22}  {FLOOR:>5}", flush=True)


def medians(*calls, repeats=3):
    """Return the median time of each call; the calls take turns."""
    seconds = [[] for _ in calls]
    for _ in range(repeats):
        for call, own in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [float(np.median(own)) for own in seconds]


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the rounds are fixed
    main()
