"""Probabilities that are as sure as they are right."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

from coem.typing import Array

LEAST = -700.0  # a log probability; the exponential of a smaller one is 0


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


def pool_weights(
    votes: Sequence[Array], truth: Array, prior: Sequence[float], weight: Array | None = None
) -> Array:
    """Return how much each of several models counts in their pool.

    The log probabilities of the pool are the sum of those of the models, each times its weight,
    normalised again (a logarithmic opinion pool). The weights have the least log loss; one that is
    e times that of `prior`, or 1 / e of it, costs 1 nat more. So few rows leave the weights where
    they were, and many rows decide.

    Parameters
    ----------
    votes : sequence of ndarray of shape (n_rows, n_classes)
        Log P(class | row) by each model, of rows that it was not fitted on.
    truth : ndarray of int of shape (n_rows,)
        The column of the class of each row.
    prior : sequence of float
        The weight of each model if there are no rows.
    weight : ndarray of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    weights : ndarray of shape (n_models,)
    """
    table = np.stack([bounded(vote) for vote in votes])  # (n_models, n_rows, n_classes)
    start = np.log(np.asarray(prior, dtype=np.float64))
    mass = np.ones(len(truth)) if weight is None else weight
    right = table[:, np.arange(len(truth)), truth]

    def loss(log_weights: Array) -> tuple[float, Array]:
        weights = np.exp(log_weights)
        log_proba = log_softmax(np.tensordot(weights, table, axes=1), axis=1)
        expected = (table * np.exp(log_proba)).sum(axis=2)
        off = log_weights - start
        value = -float(mass @ log_proba[np.arange(len(truth)), truth]) + float(off @ off)
        return value, weights * ((expected - right) @ mass) + 2 * off

    bounds = [(value - 5.0, value + 5.0) for value in start]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(np.exp(found.x))


def pool(votes: Sequence[Array], weights: Array) -> Array:
    """Return the log P(class | row) of a pool of models; see `pool_weights`."""
    total = sum(weight * bounded(vote) for vote, weight in zip(votes, weights, strict=True))
    return np.asarray(log_softmax(total, axis=1))


def bounded(log_proba: Array) -> Array:
    """Return log probabilities of at least -700, so that no model alone can rule a class out."""
    return np.maximum(log_proba, LEAST)
