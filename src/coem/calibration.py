"""Probabilities that are as sure as they are right."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from coem.typing import Array


def best_temperature(log_proba: Array, truth: Array, weight: Array | None = None) -> float:
    """Return the inverse temperature with the least log loss.

    Multiply log probabilities by it, and normalise them again, to calibrate them. Below 1 it
    makes them less sure, above 1 more sure.

    Parameters
    ----------
    log_proba : ndarray of shape (n_rows, n_classes)
        Log P(class | row) of rows that the model was not fitted on.
    truth : ndarray of int of shape (n_rows,)
        The column of the class of each row.
    weight : ndarray of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    inverse_temperature : float

    Notes
    -----
    The target of the right class is (n + 1) / (n + 2) for n rows, as in Platt (1999), and the
    other classes share the rest. Without this, n rows that are all right would ask for
    certainty.
    """
    n_rows, n_classes = log_proba.shape
    if n_classes == 1:
        return 1.0
    weight = np.ones(n_rows) if weight is None else weight
    n = weight.sum()
    target = np.full((n_rows, n_classes), 1.0 / ((n + 2.0) * (n_classes - 1)))
    target[np.arange(n_rows), truth] = (n + 1.0) / (n + 2.0)
    target[np.isneginf(log_proba)] = 0.0  # probability 0 at any temperature
    target *= weight[:, np.newaxis]
    finite = np.maximum(log_proba, -1e300)

    def loss(log_inverse_temperature: float) -> float:
        inverse_temperature = np.exp(log_inverse_temperature)
        return -float((target * log_softmax(inverse_temperature * finite, axis=1)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-10.0, 3.0), method="bounded").x))
