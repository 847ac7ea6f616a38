"""How far views agree on their rows.

Posteriors of several views are stacked as (n_views, n_rows, n_components). `empty` (n_rows,
n_views) marks the rows that are empty in a view; None says that no row is empty anywhere.
"""

import numpy as np

from coem.typing import Array


def dissent(log_posteriors: Array, empty: Array | None) -> Array:
    r"""Return how much the views of every row disagree: a row's share of 2005, Eq. 10.

    :math:`\frac{1}{s - 1} \sum_{v \neq u} \sum_j P_v(j) \log \frac{P_v(j)}{P_u(j)}`, where the sums
    run over the non-empty views, and `s` is their number.
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
    # The sum over u != v of P_v (log P_v - log P_u) is n own - cross: the terms u = v cancel.
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
