"""Posterior rules: from the log joint of a block to responsibilities and what they are worth."""

from typing import Literal, NamedTuple

import numpy as np

from coem.kernels import posterior as kernel
from coem.typing import Array

Rule = Literal["soft", "hard"]

RULES: tuple[Rule, ...] = ("soft", "hard")


class Posterior(NamedTuple):
    """What one view knows of the rows of a block."""

    resp: Array  # (n, k)
    log_posterior: Array  # (n, k) float64, log p(component | row) at beta = 1
    evidence: Array  # (n,) float64, log p(row)
    objective: Array  # (n,) float64, what the rule maximises, before the row weight


def posterior(
    log_prob: Array,
    log_weights: Array,
    *,
    rule: Rule = "soft",
    beta: float = 1.0,
    allowed: Array | None = None,
    out: Array | None = None,
) -> Posterior:
    r"""Apply a posterior rule to a block of rows.

    Parameters
    ----------
    log_prob : ndarray of shape (n, k), float64
        Log p(x | component). Overwritten.
    log_weights : ndarray of shape (k,)
        Log mixture weights; must be finite.
    rule : {"soft", "hard"}
        Soft: responsibilities :math:`\propto (\alpha_j p(x \mid j))^\beta`, worth
        :math:`\frac{1}{\beta} \log \sum_j (\alpha_j p(x \mid j))^\beta`, the tempered free energy.
        Hard: all to the best component, worth its log joint (classification EM).
    beta : float
        Inverse temperature. At 0 every allowed component gets the same.
    allowed : ndarray of bool of shape (n, k), optional
        Which components a row may belong to: how labels enter.
    out : ndarray of shape (n, k), optional
        Where the responsibilities go, float32 or float64; by default a new float64 array. In
        single precision those below 1e-9 are zero: after a few rounds most rows have one or two
        components left, and the M step skips the others.
    """
    log_joint = np.ascontiguousarray(log_prob, dtype=np.float64)
    resp = np.empty(log_prob.shape) if out is None else out
    evidence, objective = kernel.posterior(
        log_joint, log_weights, allowed, beta=beta, hard=rule == "hard", resp=resp
    )
    return Posterior(resp, log_joint, evidence, objective)
