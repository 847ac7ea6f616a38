"""Hidden Markov chains for tests, and a slow twin of their kernels in log space."""

import itertools

import numpy as np

from coem.kernels import chain

SHAPES = ("dense", "sparse", "identity", "cycle", "left-right", "tiny")


def log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


class Case:
    """One or more sequences and a chain."""

    def __init__(self, log_prob, log_start, log_transition, *, allowed=None, lengths=None):
        self.log_prob = np.array(log_prob, np.float64, order="C")
        self.log_start = np.asarray(log_start, np.float64)
        self.log_transition = np.asarray(log_transition, np.float64)
        self.allowed = allowed
        lengths = [len(self.log_prob)] if lengths is None else lengths
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.log_prob.setflags(write=False)  # no kernel may change it

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

    def change(self, log_prob):
        """Return a case with other rows."""
        lengths = np.diff(self.offsets)
        return Case(log_prob, *self.chain, allowed=self.allowed, lengths=lengths)

    def smooth(self, *, beta=1.0, weights=None, dtype=np.float64):
        """Return what the kernel finds and the responsibilities."""
        resp = np.full(self.log_prob.shape, np.nan, dtype)
        args = self.log_prob, self.offsets, *self.chain, self.allowed
        return chain.forward_backward(*args, beta=beta, weights=weights, resp=resp), resp

    def evidence(self):
        return chain.evidence(self.log_prob, self.offsets, *self.chain, self.allowed)

    def decode(self, **options):
        return chain.viterbi(self.log_prob, self.offsets, *self.chain, self.allowed, **options)


def chain_of(rng, shape, k):
    """Return log probabilities of starts and transitions."""
    start = rng.dirichlet(np.ones(k)) + 1e-6
    transition = rng.dirichlet(np.full(k, 0.7), size=k) + 1e-6
    if shape == "sparse":
        start[1 + rng.integers(k) :] = 0.0
        transition *= rng.random((k, k)) < 0.4
        transition[np.arange(k), rng.integers(k, size=k)] = 0.5
    elif shape == "identity":
        transition = np.eye(k)
    elif shape == "cycle":
        transition = np.roll(np.eye(k), 1, axis=1)
    elif shape == "left-right":
        start = np.eye(k)[0]
        transition = 0.6 * np.eye(k) + 0.4 * np.eye(k, k=1)
    elif shape == "tiny":
        start, transition = (10 ** -rng.uniform(0, 300, size=p.shape) for p in (start, transition))
        np.fill_diagonal(transition, 1.0)
    return log(start / start.sum()), log(transition / transition.sum(axis=1, keepdims=True))


def draw(rng, log_start, log_transition, length):
    """Return the states of a sequence."""
    path = [rng.choice(len(log_start), p=np.exp(log_start))]
    while len(path) < length:
        path.append(rng.choice(len(log_start), p=np.exp(log_transition[path[-1]])))
    return np.array(path)


def case_of(rng, shape, k, lengths, *, spread=3.0, holes=False):
    """Return sequences of which every one has a possible path: one that the chain has drawn.

    With holes, some states are impossible or not allowed, and some rows say nothing.
    """
    n, chain_ = sum(lengths), chain_of(rng, shape, k)
    path = np.concatenate([draw(rng, *chain_, length) for length in lengths])
    log_prob, allowed = -rng.gamma(1.0, spread, size=(n, k)), None
    if holes:
        log_prob[rng.random((n, k)) < 0.2] = -np.inf
        log_prob[rng.random(n) < 0.2] = 0.0
        allowed = rng.random((n, k)) < 0.7
        allowed[np.arange(n), path] = True
    log_prob[np.arange(n), path] = -rng.gamma(1.0, 1.0, size=n)
    return Case(log_prob, *chain_, allowed=allowed, lengths=lengths)


# -- the twin ------------------------------------------------------------------------------------


def twin(rows, log_start, log_transition, beta=1.0):
    """Return the objective, posteriors and expected transitions of one sequence, in log space."""
    rows, log_start, log_transition = beta * rows, beta * log_start, beta * log_transition
    n, k = rows.shape
    forward, backward = np.empty((n, k)), np.zeros((n, k))
    forward[0] = log_start + rows[0]
    for t in range(1, n):
        ways = forward[t - 1][:, None] + log_transition
        forward[t] = np.logaddexp.reduce(ways, axis=0) + rows[t]
    for t in range(n - 2, -1, -1):
        ways = log_transition + rows[t + 1] + backward[t + 1]
        backward[t] = np.logaddexp.reduce(ways, axis=1)
    total = np.logaddexp.reduce(forward[-1])
    transitions = np.zeros((k, k))
    for t in range(1, n):
        way = forward[t - 1][:, None] + log_transition + rows[t] + backward[t]
        transitions += np.exp(way - total)
    return total / beta, np.exp(forward + backward - total), transitions


def best_of(rows, log_start, log_transition):
    """Return the log joint probability of the best path of one sequence."""
    best = log_start + rows[0]
    for row in rows[1:]:
        best = (best[:, None] + log_transition).max(axis=0) + row
    return best.max()


def joint_of(path, rows, log_start, log_transition):
    """Return the log joint probability of a sequence and a path."""
    ways = log_transition[path[:-1], path[1:]].sum()
    return log_start[path[0]] + ways + rows[np.arange(len(path)), path].sum()


def count_path(path, k):
    counts = np.zeros((k, k))
    np.add.at(counts, (path[:-1], path[1:]), 1.0)
    return counts


def check_smooth(case, *, beta=1.0, weights=None, rtol=1e-11):
    """Compare posteriors, counts and evidence with the twin's.

    The twin adds logarithms, whose error is their size times 1e-16: hence `rtol`.
    """
    found, resp = case.smooth(beta=beta, weights=weights)
    twins = [twin(rows, *case.chain, beta) for rows in case.sequences]
    plain = twins if beta == 1 else [twin(rows, *case.chain) for rows in case.sequences]
    lengths = np.diff(case.offsets)
    weights = np.ones(len(lengths)) if weights is None else weights
    np.testing.assert_allclose(found.objective, [t[0] for t in twins], rtol=1e-12, atol=rtol)
    np.testing.assert_allclose(found.evidence, [t[0] for t in plain], rtol=1e-12, atol=rtol)
    np.testing.assert_array_equal(case.evidence(), found.evidence)
    np.testing.assert_allclose(resp, np.concatenate([t[1] for t in twins]), atol=rtol)
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-13)
    transitions = sum(w * t[2] for w, t in zip(weights, twins, strict=True))
    np.testing.assert_allclose(found.transitions, transitions, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.transitions.sum(), weights @ (lengths - 1), rtol=1e-12)
    assert not found.transitions[np.isneginf(case.log_transition)].any()
    starts = sum(w * t[1][0] for w, t in zip(weights, twins, strict=True))
    np.testing.assert_allclose(found.starts, starts, atol=rtol)
    assert not resp[np.isneginf(np.concatenate(case.sequences))].any()


def check_path(case, weights=None):
    """Compare the best paths with the twin's."""
    k, hot = len(case.log_start), np.full(case.log_prob.shape, np.nan)
    found = case.decode(weights=weights, resp=hot)
    starts, transitions = np.zeros(k), np.zeros((k, k))
    weights = np.ones(len(case.offsets) - 1) if weights is None else weights
    for s, rows in enumerate(case.sequences):
        path = found.states[case.offsets[s] : case.offsets[s + 1]]
        best = best_of(rows, *case.chain)
        # Paths may be equal but for rounding; what counts is the probability.
        np.testing.assert_allclose(joint_of(path, rows, *case.chain), best, rtol=1e-12)
        np.testing.assert_allclose(found.log_joint[s], best, rtol=1e-12)
        starts[path[0]] += weights[s]
        transitions += weights[s] * count_path(path, k)
    np.testing.assert_array_equal(hot, np.eye(k)[found.states])
    np.testing.assert_allclose(found.transitions, transitions, rtol=1e-14)
    np.testing.assert_allclose(found.starts, starts, rtol=1e-14)
