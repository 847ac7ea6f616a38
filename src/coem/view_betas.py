"""How loudly each of several views speaks: the inverse temperatures that are found before a fit.

The words of a text come in bursts, and a concentration is a number that a user chose. So the log
likelihoods of views are not on one scale. A view whose posterior is right more often than the
others think should count for more, and one that is sure without reason for less. docs/evidence.md
has the measurements behind this.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from coem.em import em
from coem.engine.sessions import WholeSession
from coem.evidence import LEAST_ROWS, sample
from coem.initialise import Start, starter
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureState, MixtureTheta
from coem.posterior import Soft
from coem.schedules import Constant
from coem.typing import Array

PASSES = 2  # fits to the sample, each with the inverse temperatures that the last one gave
ROUNDS = 30  # of such a fit at most
TOL = 1e-4
BOUND = 100.0  # the most by which one pass raises or lowers an inverse temperature
STEPS = 30  # of Newton's method
SHARE = 0.5  # of a change, in logarithms, that is taken: what two views agree on may be wrong
DIGITS = 3  # more would depend on the order of the rows


class Calls(NamedTuple):
    """What one view says of some rows, and what the other views say of them."""

    scores: Array  # (n, k): its log likelihoods, up to a number per row
    log_weights: Array  # (k,)
    calls: Array  # (n,): the best component by the other views
    weight: Array  # (n,)


def find_betas(model: Mixture, part: Partition, eta: float) -> tuple[float, ...]:
    """Return the inverse temperature of every view; their geometric mean is 1.

    A mixture is fitted to some rows. The inverse temperature of a view is then the one with which
    its posterior best predicts the component that the other views give a row together, by the log
    loss. Only the ratios between views are used: if views agree on all rows, each would become
    ever more certain, and if they do not, components would blur and become one. The square root is
    taken, because what two views agree on may still be wrong.

    Parameters
    ----------
    model : Mixture
        Several views with a posterior each. Views without rows keep an inverse temperature of 1.
    part : Partition
        The rows; their labels are not used.
    eta : float
        The consensus weight.
    """
    rows = sample(part)
    speaking = _speaking(rows, len(model.emissions))
    betas = np.ones(len(model.emissions))
    if np.count_nonzero(speaking) < 2:
        return tuple(betas.tolist())
    model = replace(model, rule=Soft())
    start = starter(model, rows, "spherical")(np.random.default_rng(0))
    for _ in range(PASSES):
        tempered = replace(model, emissions=model.emissions.tempered(tuple(betas.tolist())))
        theta, state = _fit(tempered, rows, start, eta)
        for v in np.flatnonzero(speaking).tolist():
            betas[v] *= best_beta(calls_of(rows, theta, state, v))
        betas[speaking] /= np.exp(np.log(betas[speaking]).mean())
        start = Start(replace(theta, version=(1,) * len(betas)))
    return tuple(float(f"{beta:.{DIGITS}g}") for beta in betas**SHARE)


def _speaking(part: Partition, n_views: int) -> Array:
    """Return the views that can be judged: enough rows are in them and in some other view."""
    there = np.ones((part.n_rows, n_views), bool) if part.empty is None else ~part.empty
    shared = there & (there.sum(axis=1, keepdims=True) > 1)
    return np.asarray(part.row_weight() @ shared >= LEAST_ROWS)


def _fit(
    model: Mixture, part: Partition, start: Start[MixtureTheta], eta: float
) -> tuple[MixtureTheta, MixtureState]:
    """Return the parameters and the posteriors after some rounds of co-EM."""
    session = WholeSession(model, part.starting_from(start.given), start.theta)
    em(model, session, eta=Constant(eta), beta=Constant(1.0), max_iter=ROUNDS, tol=TOL)
    (state,) = session.states
    return session.theta, state


def calls_of(part: Partition, theta: MixtureTheta, state: MixtureState, v: int) -> Calls:
    """Return what view `v` says of the rows, and what the other views say of them together.

    A row counts if it is neither empty in view `v` nor in all others.
    """
    assert state.log_posterior is not None
    logs = state.log_posterior.astype(np.float64)
    scores = logs - theta.log_weights[:, np.newaxis]
    there = np.ones(scores.shape[:2], bool) if part.empty is None else ~part.empty.T
    others = np.delete(scores * there[..., np.newaxis], v, axis=0).sum(axis=0)
    rows = there[v] & np.delete(there, v, axis=0).any(axis=0)
    calls = (others + theta.log_weights[v]).argmax(axis=1)
    return Calls(scores[v][rows], theta.log_weights[v], calls[rows], part.row_weight()[rows])


def best_beta(said: Calls) -> float:
    """Return the inverse temperature with the least log loss, which is convex, by Newton's method.

    A step at most doubles or halves it.
    """
    beta = 1.0
    for _ in range(STEPS):
        proba = np.exp(log_softmax(said.log_weights + beta * said.scores, axis=1))
        mean = np.einsum("nk,nk->n", proba, said.scores)
        spread = np.einsum("nk,nk->n", proba, (said.scores - mean[:, np.newaxis]) ** 2)
        called = said.scores[np.arange(len(mean)), said.calls]
        slope, curvature = said.weight @ (called - mean), said.weight @ spread
        factor = 1 + slope / max(beta * curvature, 1e-300)
        last, beta = beta, float(np.clip(beta * np.clip(factor, 0.5, 2), 1 / BOUND, BOUND))
        if abs(beta - last) <= 1e-6 * last:
            break
    return beta
