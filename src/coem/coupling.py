"""Couplings: whose posteriors a view learns from.

Posteriors of several views are stacked as (n_views, n_rows, n_components); `empty` says, for
(n_rows, n_views), where a view has nothing to say, or is None if that is nowhere.
"""

from typing import Literal

import numpy as np

from coem.typing import Array

Coupling = Literal["co-em", "joint"]

COUPLINGS: tuple[Coupling, ...] = ("co-em", "joint")


def average(posteriors: Array, empty: Array | None) -> Array:
    """Return the mean over each row's non-empty views; zero where all of them are empty."""
    if empty is None:
        return np.asarray(posteriors.mean(axis=0))
    present = ~empty
    n_present = present.sum(axis=1)
    total = np.einsum("vnk,nv->nk", posteriors, present.astype(posteriors.dtype))
    return np.asarray(total / np.maximum(n_present, 1)[:, np.newaxis].astype(posteriors.dtype))


def blend(posteriors: Array, v: int, eta: float, empty: Array | None) -> Array:
    r"""Return what view `v` learns from: Bickel & Scheffer (2005), Eq. 13.

    :math:`(1 - \eta) P_v + \frac{\eta}{s - 1} \sum_{u \neq v} P_u`, the average running over the
    other views that are not empty; a row whose other views are all empty keeps the posterior of
    the view itself. A row that is empty in view `v` has no part in it: zero.
    """
    own = posteriors[v]
    if len(posteriors) == 1 or eta == 0:
        return own if empty is None else np.asarray(own * ~empty[:, v, np.newaxis])
    others = np.delete(posteriors, v, axis=0)
    if empty is None:
        return np.asarray((1 - eta) * own + eta * others.mean(axis=0), dtype=own.dtype)
    elsewhere = np.delete(empty, v, axis=1)
    alone = np.asarray(elsewhere.all(axis=1))[:, np.newaxis]
    mean = np.where(alone, own, average(others, elsewhere))
    mixed = (1 - eta) * own + eta * mean
    return np.asarray(mixed * ~empty[:, v, np.newaxis], dtype=own.dtype)


def handed_on(there: Array, v: int) -> Array:
    """Return whose partition view `v` learns from, for each row (Bickel & Scheffer 2004, Table 1).

    That is the view before it, the first following the last; if that one has nothing to say of a
    row, the one before, and so on, until the view itself. `there` (n_rows, n_views) tells who has;
    -1 if nobody has.
    """
    n_rows, n_views = there.shape
    order = [(v - step) % n_views for step in range(1, n_views + 1)]
    first = there[:, order].argmax(axis=1)
    source = np.array(order)[first]
    return np.where(there[np.arange(n_rows), source], source, -1)


def dissent(log_posteriors: Array, empty: Array | None) -> Array:
    r"""Return how much the views of every row disagree: a row's share of 2005, Eq. 10.

    :math:`\frac{1}{s - 1} \sum_{v \neq u} \sum_j P_v(j) \log \frac{P_v(j)}{P_u(j)}`, the sums over
    the non-empty views, `s` being their number.
    """
    present = _present(log_posteriors, empty)
    prob = np.exp(log_posteriors)
    n_present = present.sum(axis=0)
    own = np.einsum("vnk,vnk,vn->n", prob, log_posteriors, present)
    cross = np.einsum(
        "nk,nk->n",
        np.einsum("vnk,vn->nk", prob, present),
        np.einsum("vnk,vn->nk", log_posteriors, present),
    )
    # sum over u != v of P_v (log P_v - log P_u) = n own - cross, the terms u = v cancelling
    total = (n_present * own - cross) / np.maximum(n_present - 1, 1)
    return np.asarray(np.where(n_present > 1, total, 0.0))


def agreement(log_posteriors: Array, empty: Array | None) -> tuple[Array, Array]:
    """Return the share of pairs of views that agree on a row's best component, and if it has any.

    For two views this is what Bickel & Scheffer (2004), Eq. 16, averages over the rows.
    """
    return agreeing(log_posteriors.argmax(axis=2), _present(log_posteriors, empty))


def agreeing(best: Array, present: Array) -> tuple[Array, Array]:
    """Return the same for the component (n_views, n_rows) that each view gives to a row."""
    same = (best[:, np.newaxis] == best) * present[:, np.newaxis] * present
    n_present = present.sum(axis=0)
    pairs = n_present * (n_present - 1)
    alike = same.sum(axis=(0, 1)) - n_present
    return alike / np.maximum(pairs, 1), pairs > 0


def _present(log_posteriors: Array, empty: Array | None) -> Array:
    n_views, n_rows, _ = log_posteriors.shape
    return np.ones((n_views, n_rows)) if empty is None else (~empty.T).astype(np.float64)
