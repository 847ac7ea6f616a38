"""A slow twin of hidden Markov models: every sum in logarithms, every loop written out."""

import numpy as np
from scipy.special import logsumexp


def diag_gaussian(X, means, variances):
    """Return log densities (n, k); a row of NaN says nothing."""
    logs = np.zeros((len(X), len(means)))
    for t, x in enumerate(X):
        if not np.isnan(x).any():
            for j in range(len(means)):
                scaled = (x - means[j]) ** 2 / variances[j]
                logs[t, j] = -0.5 * np.sum(scaled + np.log(2 * np.pi * variances[j]))
    return logs


def forward_backward(log_prob, log_start, log_transition, beta=1.0):
    """Return posteriors (n, k), pairs (k, k) and the tempered log probability of one sequence."""
    n, k = log_prob.shape
    e, s, a = beta * log_prob, beta * log_start, beta * log_transition
    f, b = np.empty((n, k)), np.zeros((n, k))
    f[0] = s + e[0]
    for t in range(1, n):
        for j in range(k):
            f[t, j] = logsumexp(f[t - 1] + a[:, j]) + e[t, j]
    for t in range(n - 2, -1, -1):
        for i in range(k):
            b[t, i] = logsumexp(a[i] + e[t + 1] + b[t + 1])
    total = logsumexp(f[-1])
    pairs = np.zeros((k, k))
    for t in range(1, n):
        for i in range(k):
            pairs[i] += np.exp(f[t - 1, i] + a[i] + e[t] + b[t] - total)
    return np.exp(f + b - total), pairs, total / beta


def viterbi(log_prob, log_start, log_transition):
    """Return the best path of one sequence and its log probability."""
    n, k = log_prob.shape
    best, back = log_start + log_prob[0], np.zeros((n, k), dtype=int)
    for t in range(1, n):
        ways = best[:, np.newaxis] + log_transition
        back[t] = ways.argmax(axis=0)
        best = ways.max(axis=0) + log_prob[t]
    path = [int(best.argmax())]
    for t in range(n - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return np.array(path[::-1]), best.max()


def counts_of(resp, bounds, weight):
    """Return starts and transitions when the rows' responsibilities are given."""
    k = resp.shape[1]
    starts, steps = np.zeros(k), np.zeros((k, k))
    for (lo, hi), w in zip(bounds, weight, strict=True):
        starts += w * resp[lo]
        for t in range(lo + 1, hi):
            steps += w * np.outer(resp[t - 1], resp[t])
    return starts, steps


def shares(counts, prior):
    counts = counts + prior - 1
    return counts / counts.sum(axis=-1, keepdims=True)


def fit(
    X, lengths, resp, n_rounds, *, weight=None, allowed=None, betas=None, prior=(1, 1), hard=False
):
    """Fit a diagonal Gaussian chain from responsibilities; return all after some rounds."""
    ends = np.cumsum(lengths)
    bounds = list(zip(ends - lengths, ends, strict=True))
    weight = np.ones(len(lengths)) if weight is None else weight
    mask = np.zeros(resp.shape) if allowed is None else np.where(allowed, 0.0, -np.inf)
    seen = ~np.isnan(X).any(axis=1)
    starts, steps = counts_of(resp, bounds, weight)
    objective = None
    for t in range(n_rounds):
        row_weight = np.repeat(weight, lengths) * seen
        mass = row_weight @ resp
        means = np.array(
            [(row_weight * resp[:, j])[seen] @ X[seen] / mass[j] for j in range(len(mass))]
        )
        variances = np.array(
            [
                (row_weight * resp[:, j])[seen] @ (X[seen] - means[j]) ** 2 / mass[j]
                for j in range(len(mass))
            ]
        )
        start, transition = shares(starts, prior[0]), shares(steps, prior[1])
        beta = 1.0 if betas is None else betas[t]
        objective, starts, steps = 0.0, np.zeros_like(starts), np.zeros_like(steps)
        resp = np.zeros_like(resp)
        with np.errstate(divide="ignore"):
            chain = np.log(start), np.log(transition)
        for (lo, hi), w in zip(bounds, weight, strict=True):
            logs = diag_gaussian(X[lo:hi], means, variances) + mask[lo:hi]
            if hard:
                path, value = viterbi(logs, *chain)
                resp[np.arange(lo, hi), path] = 1
                own, pairs = counts_of(resp[lo:hi], [(0, hi - lo)], [1.0])
            else:
                resp[lo:hi], pairs, value = forward_backward(logs, *chain, beta)
                own = resp[lo]
            objective, starts, steps = objective + w * value, starts + w * own, steps + w * pairs
    log_prior = 0.0
    for alpha, logs in zip(prior, chain, strict=True):
        counts = np.broadcast_to(alpha - np.ones(()), logs.shape)
        log_prior += float(np.sum(counts[counts > 0] * logs[counts > 0]))
    return start, transition, means, variances, resp, objective + log_prior
