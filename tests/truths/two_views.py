"""Slow transcriptions of Bickel & Scheffer (2004), Sections 4.1, 4.2 and 4.5, as oracles.

Nothing of coem is imported. Numbers of equations and tables are the paper's. `theta` is a view's
pair of word probabilities (k, words) and priors (k,). Likelihoods are kept as logarithms, because
products of many words underflow.
"""

from typing import NamedTuple

import numpy as np


class Theta(NamedTuple):
    """The parameters of a view."""

    words: np.ndarray  # (k, words)
    priors: np.ndarray  # (k,)


class State(NamedTuple):
    """What is known after a pass over both views."""

    theta: list
    posteriors: list  # of each view, (n, k)
    log_likelihood: list  # of each view


def log_likelihood_of_rows(X, words):
    """Return the logarithm of Eq. 2 for every row and component."""
    table = np.zeros((len(X), len(words)))
    for i, counts in enumerate(X):
        for j, chances in enumerate(words):
            table[i, j] = sum(n * np.log(p) for n, p in zip(counts, chances, strict=True) if n)
    return table


def log_sum(terms):
    """Return log sum exp of a few numbers."""
    return terms.max() + np.log(np.exp(terms - terms.max()).sum())


def e_step(logs, priors):
    """Return Eq. 3 for every row, and Eq. 6."""
    joint = logs + np.log(priors)
    totals = np.array([log_sum(row) for row in joint])
    return np.exp(joint - totals[:, None]), totals.sum()


def m_step(X, posteriors, constant):
    """Return Eq. 4, and Eq. 5 or the constant that the end of Section 4.2 puts in its place."""
    n, k = posteriors.shape
    words = np.array([1 + sum(posteriors[i, j] * X[i] for i in range(n)) for j in range(k)])
    priors = np.full(k, 1 / k) if constant else posteriors.sum(axis=0) / n
    return Theta(words / words.sum(axis=1)[:, None], priors)


def first_posteriors(X, theta):
    """Return step 2 of Table 1: the E step of view 2 with the parameters it begins with."""
    return e_step(log_likelihood_of_rows(X, theta.words), theta.priors)[0]


def table_1(views, begin, patience, constant=True):
    """Return the states after every pass of step 3, until the criterion of Section 4.2 is met.

    It is met when each view has gone without a new maximum of its log likelihood for `patience`
    passes.
    """
    theta, handed_on = [None, begin], first_posteriors(views[1], begin)
    posteriors, values = [None, handed_on], [None, None]
    most, waits, states = [-np.inf, -np.inf], [0, 0], []
    while min(waits) < patience:
        for v in (0, 1):
            theta[v] = m_step(views[v], handed_on, constant)
            logs = log_likelihood_of_rows(views[v], theta[v].words)
            handed_on, values[v] = e_step(logs, theta[v].priors)
            posteriors[v] = handed_on
            waits[v] = 0 if values[v] > most[v] else waits[v] + 1
            most[v] = max(most[v], values[v])
        states.append(State(list(theta), list(posteriors), list(values)))
    return states


def partition(state):
    """Return Eq. 7: the component with the largest sum of the two posteriors."""
    return (state.posteriors[0] + state.posteriors[1]).argmax(axis=1)


def agreement(state):
    """Return Eq. 16, read with the posteriors of both views."""
    first, second = (posteriors.argmax(axis=1) for posteriors in state.posteriors)
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(first)


def entropy(truth, labels):
    """Return Eq. 1, in bits."""
    total = 0.0
    for cluster in set(labels):
        mine = [t for t, label in zip(truth, labels, strict=True) if label == cluster]
        shares = [mine.count(c) / len(mine) for c in set(mine)]
        total += len(mine) * -sum(p * np.log2(p) for p in shares)
    return total / len(labels)


def equation_17(views, words, priors):
    """Return the log likelihood with the product of the views for the likelihood of a row."""
    logs = sum(log_likelihood_of_rows(X, table) for X, table in zip(views, words, strict=True))
    return e_step(logs, priors)[1]


def concatenated(words, shares):
    """Return the word probabilities of all views end to end, scaled to sum to one."""
    return np.hstack([share * table for share, table in zip(shares, words, strict=True)])


def single_view(X, theta, passes, constant=True):
    """Return parameters, posteriors and Eq. 6 of EM on one matrix, started from parameters."""
    posteriors, _ = e_step(log_likelihood_of_rows(X, theta.words), theta.priors)
    for _ in range(passes):
        theta = m_step(X, posteriors, constant)
        posteriors, value = e_step(log_likelihood_of_rows(X, theta.words), theta.priors)
    return theta, posteriors, value


def product_of_views(views, words, priors, passes):
    """Return parameters, posteriors and Eq. 17 of the EM that maximises it, constant priors."""

    def expect(words):
        logs = sum(log_likelihood_of_rows(X, table) for X, table in zip(views, words, strict=True))
        return e_step(logs, priors)

    posteriors, _ = expect(words)
    for _ in range(passes):
        words = [m_step(X, posteriors, True).words for X in views]
        posteriors, value = expect(words)
    return words, posteriors, value
