"""Slow float64 transcriptions of the papers' algorithms, as oracles for the fast ones.

Nothing of coem is imported, and nothing is clever: dense rows, loops over rounds, views, rows and
components, one line for one line of the paper. Equation numbers are those of Bickel & Scheffer
(2005), the family is their mixture of multinomials (Eq. 20, 22) with `alpha` pseudo-counts.

`views` is a list of (n, words) arrays and `resp` an (n, k) array that stands for every view's
posterior until that view has parameters. `eta` and `beta` are functions of the round, 0 the first.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class State:
    """What is known at the end of a round."""

    theta: list  # for every view (k, words): log p(word | component)
    weights: np.ndarray  # (k,): the mixture weights
    view_weights: np.ndarray  # (s, k): those of every view, all equal unless "per_view"
    objective: float
    log_likelihood: list  # of every view by itself; of all together under joint coupling
    dissent: float  # Eq. 10
    agreement_rate: float
    beta: float  # inverse temperature of the round


def constant(value):
    """Return the schedule that never changes."""
    return lambda t: value


def linear(start, stop, rounds):
    """Return the schedule in equal steps from `start` to `stop`."""
    return lambda t: stop if t >= rounds else start + (stop - start) * t / rounds


# -- the steps ---------------------------------------------------------------------------------


def word_logs(X, resp, alpha):
    """Return the M step of a view: log of Eq. 22 with pseudo-counts."""
    table = []
    for j in range(resp.shape[1]):
        counts = np.full(X.shape[1], float(alpha))
        for i in range(len(X)):
            counts += resp[i, j] * X[i]
        table.append(np.log(counts / counts.sum()))
    return np.array(table)


def log_probs(X, theta):
    """Return log p(x | component) as Eq. 20 has it, without what all components share."""
    return np.array([[float(np.sum(x * logs)) for logs in theta] for x in X])


def log_sum_exp(values):
    """Return log sum exp(values)."""
    top = max(values)
    return top + np.log(np.sum(np.exp(values - top)))


def posterior_row(log_joint, beta=1.0, hard=False):
    """Return Eq. 14 to the power of beta, or all on the best component."""
    if hard:
        return np.eye(len(log_joint))[np.argmax(log_joint)]
    return np.exp(beta * log_joint - log_sum_exp(beta * log_joint))


def posterior_rows(log_joint, beta=1.0, hard=False):
    """Return the posteriors of all rows."""
    return np.array([posterior_row(row, beta, hard) for row in log_joint])


def blended_row(posteriors, i, v, eta, there):
    """Return Eq. 13 for row `i`, the average over the other views that are not empty."""
    own = posteriors[v][i]
    others = [posteriors[u][i] for u in range(len(posteriors)) if u != v and there[i, u]]
    if not others:
        return own
    return (1 - eta) * own + eta / len(others) * np.sum(others, axis=0)


def blended_rows(posteriors, v, eta, there):
    """Return what view `v` learns from; nothing from the rows that are empty there."""
    rows = [blended_row(posteriors, i, v, eta, there) * there[i, v] for i in range(len(there))]
    return np.array(rows)


def global_weights(posteriors, there, row_weight):
    """Return Eq. 17, the rows that are empty everywhere left out."""
    total = 0.0
    for i in range(len(there)):
        mine = [posteriors[v][i] for v in range(len(posteriors)) if there[i, v]]
        if mine:
            total = total + row_weight[i] * np.mean(mine, axis=0)
    return total / total.sum()


def row_dissent(log_posteriors):
    """Return a row's share of Eq. 10, given its non-empty views."""
    s, total = len(log_posteriors), 0.0
    for v in range(s):
        for u in range(s):
            if u != v:
                apart = log_posteriors[v] - log_posteriors[u]
                total += np.sum(np.exp(log_posteriors[v]) * apart)
    return total / (s - 1) if s > 1 else 0.0


def row_agreement(log_posteriors):
    """Return the share of pairs of non-empty views with the same best component, None if none."""
    best = [int(np.argmax(row)) for row in log_posteriors]
    pairs = [(a, b) for i, a in enumerate(best) for b in best[i + 1 :]]
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


# -- the algorithms ----------------------------------------------------------------------------


def co_em(
    views,
    resp,
    rounds,
    *,
    eta,
    weights="global",
    alpha=1.0,
    beta=lambda t: 1.0,
    hard=False,
    row_weight=None,
):
    """Return the states of Table 1 after every round."""
    s, (n, k) = len(views), resp.shape
    there = np.array([[X[i].any() for X in views] for i in range(n)])
    row_weight = np.ones(n) if row_weight is None else row_weight
    posteriors = [resp.copy() for _ in views]
    theta, log_joint = [None] * s, [None] * s
    log_weights = np.full((s, k), -np.log(k))
    states = []
    for t in range(rounds):
        for v in range(s):
            mixed = blended_rows(posteriors, v, eta(t), there) * row_weight[:, None]
            theta[v] = word_logs(views[v], mixed, alpha)
            if weights == "global":
                log_weights[v] = np.log(global_weights(posteriors, there, row_weight))
            elif weights == "per_view":
                log_weights[v] = np.log(mixed.sum(axis=0) / mixed.sum())
            log_joint[v] = log_probs(views[v], theta[v]) + log_weights[v]
            posteriors[v] = posterior_rows(log_joint[v], beta(t), hard)
        final = log_weights if weights == "per_view" else np.tile(log_weights[-1], (s, 1))
        measures = _compare(posteriors, log_joint, eta(t), there, row_weight)
        penalty = alpha * sum(table.sum() for table in theta)
        states.append(_state(theta, np.exp(final), penalty, measures, beta(t)))
    return states


def _compare(posteriors, log_joint, eta, there, row_weight):
    """Return Q^MV (Eq. 12), the log likelihoods of the views, dissent and agreement."""
    s, n = len(posteriors), len(there)
    criterion, likelihood, dissent, agreeing, comparable = 0.0, [0.0] * s, 0.0, 0.0, 0.0
    for i in range(n):
        logs = []
        for v in range(s):
            if there[i, v]:
                mixed = blended_row(posteriors, i, v, eta, there)
                criterion += row_weight[i] * np.sum(mixed * log_joint[v][i])
                evidence = log_sum_exp(log_joint[v][i])
                likelihood[v] += row_weight[i] * evidence
                logs.append(log_joint[v][i] - evidence)
        dissent += row_weight[i] * row_dissent(logs)
        agreement = row_agreement(logs)
        if agreement is not None:
            agreeing += row_weight[i] * agreement
            comparable += row_weight[i]
    return criterion, likelihood, dissent, agreeing / comparable


def em(
    views,
    resp,
    rounds,
    *,
    weights="global",
    alpha=1.0,
    beta=lambda t: 1.0,
    hard=False,
    row_weight=None,
):
    """Return the states of EM with one posterior (Eq. 6, 19) for all views, or for the only one."""
    s, (n, k) = len(views), resp.shape
    there = np.array([[X[i].any() for X in views] for i in range(n)])
    row_weight = np.ones(n) if row_weight is None else row_weight
    row_weight = row_weight * there.any(axis=1)
    log_weights, posterior = np.full(k, -np.log(k)), resp
    states = []
    for t in range(rounds):
        mine = posterior * row_weight[:, None]
        theta = [word_logs(X, mine, alpha) for X in views]  # an empty row has nothing to add
        if weights != "uniform":
            log_weights = np.log(mine.sum(axis=0) / mine.sum())
        log_joint = sum(log_probs(X, table) for X, table in zip(views, theta, strict=True))
        log_joint = log_joint + log_weights
        posterior = posterior_rows(log_joint, beta(t), hard)
        worth = [_worth(row, beta(t), hard) for row in log_joint]
        evidence = [log_sum_exp(row) for row in log_joint]
        penalty = alpha * sum(table.sum() for table in theta)
        measures = row_weight @ worth, [row_weight @ evidence], 0.0, 1.0
        states.append(
            _state(theta, np.tile(np.exp(log_weights), (s, 1)), penalty, measures, beta(t))
        )
    return states


def _worth(log_joint, beta, hard):
    """Return what the posterior rule maximises: the free energy, or the best log joint."""
    return max(log_joint) if hard else log_sum_exp(beta * log_joint) / beta


def _state(theta, view_weights, penalty, measures, beta):
    criterion, likelihood, dissent, agreement = measures
    return State(
        list(theta),
        view_weights.mean(axis=0),
        view_weights.copy(),
        float(criterion + penalty),
        list(likelihood),
        float(dissent),
        float(agreement),
        beta,
    )


def stop_after(states, patience):
    """Return the round at which 2004, Sec. 4.2, stops, and the best state up to there."""
    maxima, since = [-np.inf] * len(states[0].log_likelihood), 0
    for t, state in enumerate(states, start=1):
        news = [now > most for now, most in zip(state.log_likelihood, maxima, strict=True)]
        maxima = [max(pair) for pair in zip(state.log_likelihood, maxima, strict=True)]
        since = 0 if any(news) else since + 1
        if since == patience:
            return t, max(states[:t], key=lambda one: sum(one.log_likelihood))
    raise AssertionError("the criterion was not met; give more rounds")


# -- what a fitted model says of rows ------------------------------------------------------------


def joint_proba(views, state):
    """Return Eq. 19; the weights for a row that is empty everywhere."""
    log_joint = sum(log_probs(X, table) for X, table in zip(views, state.theta, strict=True))
    proba = posterior_rows(log_joint + np.log(state.weights), state.beta)
    blank = ~np.any([X.any(axis=1) for X in views], axis=0)
    proba[blank] = state.weights
    return proba


def view_proba(views, state):
    """Return the posterior of every view (Eq. 14), of shape (n, s, k)."""
    logs = [log_probs(X, table) for X, table in zip(views, state.theta, strict=True)]
    each = [
        posterior_rows(log + np.log(weights), state.beta)
        for log, weights in zip(logs, state.view_weights, strict=True)
    ]
    return np.stack(each, axis=1)


def average_proba(views, state):
    """Return the mean over the non-empty views (2004, Eq. 7); the weights if there are none."""
    each, rows = view_proba(views, state), []
    for i in range(len(each)):
        mine = [each[i, v] for v, X in enumerate(views) if X[i].any()]
        rows.append(np.mean(mine, axis=0) if mine else state.weights)
    return np.array(rows)
