"""Slow float64 transcriptions of the papers' algorithms, as oracles for the fast ones.

Nothing of coem is imported, and nothing is clever: dense arrays, loops over rounds, views and
components where the paper has a sum or a case. Equation numbers are those of Bickel & Scheffer
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
    view_weights: np.ndarray  # (s, k): those of every view's last E step
    objective: float
    free_energy: float  # of every posterior, under the latest weights unless "per_view"
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


# -- the steps ------------------------------------------------------------------------------------


def word_logs(X, resp, alpha):
    """Return the M step of a view: log of Eq. 22 with pseudo-counts."""
    counts = [alpha + resp[:, j] @ X for j in range(resp.shape[1])]
    return np.array([np.log(row / row.sum()) for row in counts])


def log_probs(X, theta):
    """Return log p(x | component) as Eq. 20 has it, without what all components share."""
    return np.stack([(X * logs).sum(axis=1) for logs in theta], axis=1)


def log_sum_exp(rows):
    """Return log sum exp of every row."""
    top = rows.max(axis=1)
    return top + np.log(np.exp(rows - top[:, None]).sum(axis=1))


def posterior(log_joint, beta=1.0, hard=False):
    """Return Eq. 14 to the power of beta, or all on the best component."""
    if hard:
        return np.eye(log_joint.shape[1])[log_joint.argmax(axis=1)]
    return np.exp(beta * log_joint - log_sum_exp(beta * log_joint)[:, None])


def blended(posteriors, v, eta, there):
    """Return Eq. 13, the average over the other views that are not empty in the row.

    If all the others are empty the row keeps its own posterior; if view `v` itself is, the row
    has nothing to give.
    """
    own, total, number = posteriors[v], np.zeros(posteriors[v].shape), np.zeros(len(there))
    for u in range(len(posteriors)):
        if u != v:
            total += posteriors[u] * there[:, [u]]
            number += there[:, u]
    alone = number == 0
    mean = total / np.where(alone, 1, number)[:, None]
    mixed = np.where(alone[:, None], own, (1 - eta) * own + eta * mean)
    return mixed * there[:, [v]]


def average(posteriors, there):
    """Return the mean over the non-empty views of every row; zero if there are none."""
    total = sum(posteriors[v] * there[:, [v]] for v in range(len(posteriors)))
    return total / np.maximum(there.sum(axis=1), 1)[:, None]


def global_weights(posteriors, there, row_weight):
    """Return Eq. 17 with the average over the non-empty views; rows without any drop out."""
    mass = row_weight @ average(posteriors, there)
    return mass / mass.sum()


def dissent(log_posteriors, there):
    """Return every row's share of Eq. 10, over its non-empty views."""
    s, total = len(log_posteriors), np.zeros(len(there))
    for v in range(s):
        for u in range(s):
            apart = np.exp(log_posteriors[v]) * (log_posteriors[v] - log_posteriors[u])
            total += apart.sum(axis=1) * there[:, v] * there[:, u]
    return total / np.maximum(there.sum(axis=1) - 1, 1)


def agreement(log_posteriors, there):
    """Return the share of a row's pairs of non-empty views that agree, NaN if it has none."""
    best, shares = np.array([rows.argmax(axis=1) for rows in log_posteriors]), []
    for i in range(len(there)):
        labels = best[there[i], i].tolist()
        pairs = [(a, b) for place, a in enumerate(labels) for b in labels[place + 1 :]]
        shares.append(sum(a == b for a, b in pairs) / len(pairs) if pairs else np.nan)
    return np.array(shares)


# -- the algorithms -------------------------------------------------------------------------------


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
    there = np.stack([X.any(axis=1) for X in views], axis=1)
    row_weight = np.ones(n) if row_weight is None else row_weight
    posteriors = [resp] * s
    theta, log_joint = [None] * s, [None] * s
    log_weights = np.full((s, k), -np.log(k))
    states = []
    for t in range(rounds):
        for v in range(s):
            mixed = blended(posteriors, v, eta(t), there) * row_weight[:, None]
            theta[v] = word_logs(views[v], mixed, alpha)
            if weights == "global":
                log_weights[v] = np.log(global_weights(posteriors, there, row_weight))
            elif weights == "per_view":
                log_weights[v] = np.log(mixed.sum(axis=0) / mixed.sum())
            log_joint[v] = log_probs(views[v], theta[v]) + log_weights[v]
            posteriors[v] = posterior(log_joint[v], beta(t), hard)
        final = log_weights if weights == "per_view" else np.tile(log_weights[-1], (s, 1))
        measures = _compare(posteriors, log_joint, eta(t), there, row_weight)
        latest = [
            joint - own + new for joint, own, new in zip(log_joint, log_weights, final, strict=True)
        ]
        energy = sum(
            row_weight @ (there[:, v] * free_energy(posteriors[v], latest[v], beta(t), hard))
            for v in range(s)
        )
        both = np.exp(final).mean(axis=0), np.exp(log_weights)
        states.append(_state(theta, both, alpha, (*measures, energy), beta(t)))
    return states


def free_energy(resp, log_joint, beta, hard):
    """Return the expected log joint of every row, plus the entropy of soft posteriors over beta."""
    logs = np.log(resp, out=np.zeros_like(resp), where=resp > 0)
    entropy = 0.0 if hard else -(resp * logs).sum(axis=1) / beta
    return (resp * log_joint).sum(axis=1) + entropy


def _compare(posteriors, log_joint, eta, there, row_weight):
    """Return Q^MV (Eq. 12), the log likelihoods of the views, dissent and agreement."""
    criterion, likelihood, log_posteriors = 0.0, [], []
    for v, joint in enumerate(log_joint):
        mixed, evidence = blended(posteriors, v, eta, there), log_sum_exp(joint)
        criterion += row_weight @ (mixed * joint).sum(axis=1)
        likelihood.append(row_weight @ (evidence * there[:, v]))
        log_posteriors.append(joint - evidence[:, None])
    shares = agreement(log_posteriors, there)
    some = ~np.isnan(shares)
    agreeing = row_weight[some] @ shares[some] / row_weight[some].sum()
    return criterion, likelihood, row_weight @ dissent(log_posteriors, there), agreeing


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
    n, k = resp.shape
    somewhere = np.any([X.any(axis=1) for X in views], axis=0)
    row_weight = somewhere * (np.ones(n) if row_weight is None else row_weight)
    log_weights, shared = np.full(k, -np.log(k)), resp
    states = []
    for t in range(rounds):
        mine = shared * row_weight[:, None]
        theta = [word_logs(X, mine, alpha) for X in views]  # an empty row has nothing to add
        if weights != "uniform":
            log_weights = np.log(mine.sum(axis=0) / mine.sum())
        log_joint = log_weights + sum(map(log_probs, views, theta))
        shared = posterior(log_joint, beta(t), hard)
        # What the rule maximises: the free energy, or the best log joint.
        worth = log_joint.max(axis=1) if hard else log_sum_exp(beta(t) * log_joint) / beta(t)
        own = [log_weights + log_probs(X, table) for X, table in zip(views, theta, strict=True)]
        apart, agreeing = _apart(own, views, row_weight)
        energy = row_weight @ free_energy(shared, log_joint, beta(t), hard)
        measures = row_weight @ worth, [row_weight @ log_sum_exp(log_joint)], apart, agreeing
        both = np.exp(log_weights), np.tile(np.exp(log_weights), (len(views), 1))
        states.append(_state(theta, both, alpha, (*measures, energy), beta(t)))
    return states


def _apart(log_joints, views, row_weight):
    """Return dissent and agreement of views that share a posterior, from what each alone says."""
    there = np.array([X.any(axis=1) for X in views]).T
    logs = [own - log_sum_exp(own)[:, None] for own in log_joints]
    share = agreement(logs, there)
    known = ~np.isnan(share) & (row_weight > 0)
    rate = np.average(share[known], weights=row_weight[known]) if known.any() else 1.0
    return row_weight @ dissent(logs, there), rate


def _state(theta, weights, alpha, measures, beta):
    criterion, likelihood, apart, agreeing, energy = measures
    prior = alpha * sum(table.sum() for table in theta)
    return State(
        theta=list(theta),
        weights=weights[0],
        view_weights=weights[1],
        objective=criterion + prior,
        free_energy=energy + prior,
        log_likelihood=likelihood,
        dissent=apart,
        agreement_rate=agreeing,
        beta=beta,
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


# -- what a fitted model says of rows -------------------------------------------------------------


def joint_proba(views, state):
    """Return Eq. 19; the weights for a row that is empty everywhere."""
    log_joint = np.log(state.weights) + sum(map(log_probs, views, state.theta))
    proba = posterior(log_joint, state.beta)
    proba[~np.any([X.any(axis=1) for X in views], axis=0)] = state.weights
    return proba


def view_proba(views, state):
    """Return the posterior of every view (Eq. 14), of shape (n, s, k)."""
    parts = zip(views, state.theta, state.view_weights, strict=True)
    each = [posterior(log_probs(X, table) + np.log(own), state.beta) for X, table, own in parts]
    return np.stack(each, axis=1)


def average_proba(views, state):
    """Return the mean over the non-empty views (2004, Eq. 7); the weights if there are none."""
    there = np.stack([X.any(axis=1) for X in views], axis=1)
    proba = average(view_proba(views, state).transpose(1, 0, 2), there)
    proba[~there.any(axis=1)] = state.weights
    return proba
