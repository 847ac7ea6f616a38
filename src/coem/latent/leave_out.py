"""Leave-one-out: what a fitted mixture thinks of a row that it has not seen."""

import numpy as np

from coem.coupling import average
from coem.engine import Engine
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, safe_log
from coem.typing import Array


def leave_one_out(
    model: Mixture, engine: Engine, data: Partition, rows: Array, eta: float
) -> Array:
    """Return log(weight p(x | component)) of some rows, each under a model without that row.

    The row's own share is taken out of the statistics of the next M step, and the parameters are
    estimated from what is left. That is the M step on the other rows; their posteriors, which
    `data` holds, are those of the fit with the row. The statistics are gathered once.

    Returns
    -------
    log_joint : ndarray of shape (len(rows), n_components)
    """
    total, weights = np.zeros((len(rows), model.n_components)), []
    for turn in range(model.n_turns):
        resp, mass = model.learn_from(engine, data, turn, eta)
        for v in model.updated(turn):
            weighted = model.weighted(data, v, resp)
            stats = model.stats(engine, data, v, weighted)
            own = weighted[rows].astype(np.float64)
            part = model.families[v].log_prob_without(data.views[v][rows], own, stats)
            there = True if data.empty is None else ~data.empty[rows, v, np.newaxis]
            total += np.where(there, part, 0.0)
        left = np.maximum(mass - _own_mass(model, data, rows, resp), 0.0)
        weights.append([np.exp(model.log_weights(row)) for row in left])
    if model.separate and data.empty is not None and not data.empty.all():
        weights = [weights[v] for v in np.flatnonzero(~data.empty.all(axis=0))]
    # Per view they differ, and predictions take their mean (2005, Eq. 16).
    return np.asarray(total + safe_log(np.mean(weights, axis=0)))


def _own_mass(model: Mixture, data: Partition, rows: Array, resp: Array) -> Array:
    """Return what each row adds to the mass of the components."""
    share, empty = resp[rows], None if data.empty is None else data.empty[rows]
    if model.separate and model.weights != "per_view":
        share = average(data.cache.resp[:, rows], empty)
    weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
    weight = weight if empty is None else weight * ~empty.all(axis=1)
    return np.asarray(share.astype(np.float64) * weight[:, np.newaxis])
