"""Leave-one-out: the score of a row under a fitted mixture that has not seen the row."""

import numpy as np

from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureState
from coem.latent.weights import safe_log
from coem.typing import Array, Resp


def leave_one_out(
    model: Mixture, part: Partition, state: MixtureState, rows: Array, eta: float
) -> Array:
    """Return log(weight p(x | component)) of some rows, each under a model without that row.

    The row's own share is subtracted from the statistics of the next M step, and the parameters
    are estimated from the rest. This equals an M step on the other rows. The posteriors of the
    other rows, which `state` holds, still come from the fit with the row. The statistics are
    computed once for all rows.

    Returns
    -------
    log_joint : ndarray of shape (len(rows), n_components)
    """
    total, weights = np.zeros((len(rows), model.n_components)), []
    emissions = model.emissions
    for turn, views in enumerate(model.slots):
        resp, mass = model.lesson(part, turn, eta, state)
        for v in views:
            weighted = emissions.weighted(part, v, resp)
            stats = emissions.stats(part, v, weighted, state.params[v])
            own = np.asarray(weighted[rows], dtype=np.float64)
            X, family = part.views[v][rows], emissions.families[v]
            without = family.log_prob_without(X, own, stats, state.params[v])
            there = True if part.empty is None else ~part.empty[rows, v, np.newaxis]
            total += np.where(there, emissions.beta(v) * without, 0.0)
        left = np.maximum(mass - _own_mass(model, part, state, rows, resp), 0.0)
        weights.append([np.exp(model.prior.estimate(row)) for row in left])
    if model.n_turns > 1 and part.empty is not None and not part.empty.all():
        weights = [weights[v] for v in np.flatnonzero(~part.empty.all(axis=0))]
    # Each view has its own weights, and predictions take the mean (2005, Eq. 16).
    return np.asarray(total + safe_log(np.mean(weights, axis=0)))


def _own_mass(
    model: Mixture, part: Partition, state: MixtureState, rows: Array, resp: Resp
) -> Array:
    """Return how much each row adds to the mass of the components."""
    empty = None if part.empty is None else part.empty[rows]
    share = model.prior.lesson(state.resp[:, rows], resp[rows], empty)
    weight = np.ones(len(rows)) if part.weight is None else part.weight[rows]
    weight = weight if empty is None else weight * ~empty.all(axis=1)
    return np.asarray(share, dtype=np.float64) * weight[:, np.newaxis]
