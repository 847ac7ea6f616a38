"""Responsibilities of a block of rows."""

import numpy as np

from coem.kernels import _compiled
from coem.typing import Array


def posterior(
    log_joint: Array,
    log_weights: Array,
    allowed: Array | None,
    *,
    beta: float,
    hard: bool,
    resp: Array,
) -> tuple[Array, Array]:
    """Fill `resp` with the responsibilities, and return the evidence and objective per row.

    `coem.posterior` says what these are.

    Parameters
    ----------
    log_joint : float64 array of shape (n, k), C-contiguous
        Log p(x | component). Overwritten by the log posterior.
    log_weights : array of shape (k,)
        Log mixture weights.
    allowed : bool array of shape (n, k), optional
        Which components a row may belong to.
    beta : float
        Inverse temperature.
    hard : bool
        Whether a row belongs to its best component as a whole.
    resp : float32 or float64 array of shape (n, k)
        Overwritten.

    Returns
    -------
    evidence, objective : float64 arrays of shape (n,)
    """
    n = len(log_joint)
    evidence, objective = np.empty(n), np.empty(n)
    _compiled.posterior(
        log_joint,
        *_prior(log_weights, allowed),
        beta,
        hard,
        evidence,
        objective,
        resp,
    )
    return evidence, objective


def assign(
    log_joint: Array, log_weights: Array, allowed: Array | None, labels: Array
) -> tuple[Array, Array]:
    """Fill `labels`, int32 of shape (n,), with the best component of each row.

    The first of equal components wins. `log_joint` is not changed. Everything else is as in
    `posterior`.
    """
    n = len(log_joint)
    evidence, objective = np.empty(n), np.empty(n)
    _compiled.assign(log_joint, *_prior(log_weights, allowed), evidence, objective, labels)
    return evidence, objective


def _prior(log_weights: Array, allowed: Array | None) -> tuple[Array, Array | None]:
    """Return the weights and the mask of components in the form that the kernels take."""
    mask = None if allowed is None else np.ascontiguousarray(allowed).view(np.uint8)
    return np.ascontiguousarray(log_weights, dtype=np.float64), mask
