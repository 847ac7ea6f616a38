"""Probabilities that are as sure as they are right."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import log_softmax

from coem.typing import Array

LEAST = -700.0  # a log probability; the exponential of a smaller one is 0
LOG_LIMITS = np.linspace(-7.0, 13.0, 11)  # limits of the evidence of a row that are tried


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


def bounded(log_proba: Array, prior: Array, limit: float) -> Array:
    """Return log probabilities in which no row has more evidence than `limit`.

    Parameters
    ----------
    log_proba : ndarray of shape (n_rows, n_components)
        Log P(component | row).
    prior : ndarray of shape (n_components,)
        The weights of the components.
    limit : float
        The most evidence that a row can have, in nats.

    Returns
    -------
    log_proba : ndarray of shape (n_rows, n_components)
        Log probabilities with the same order of components.

    Notes
    -----
    The gap of a component is how far its log probability is below that of the best. The evidence e
    of a row is the mean gap, by the prior. All gaps of the row are multiplied by
    limit / (limit + e). So weak evidence stays as it is, and strong evidence comes close to the
    limit, however long the row is.
    """
    gaps, evidence = _gaps(log_proba, prior)
    return _scaled(gaps, 1.0 / (1.0 + evidence / limit))


def best_limit(log_proba: Array, prior: Array, target: Array, weight: Array | None = None) -> float:
    """Return the limit of the evidence with which `bounded` best predicts `target`, by log loss.

    Parameters
    ----------
    log_proba : ndarray of shape (n_rows, n_components)
        Log P(component | row).
    prior : ndarray of shape (n_components,)
        The weights of the components.
    target : ndarray of shape (n_rows, n_components)
        Probabilities that something else gives to the same components.
    weight : ndarray of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    limit : float
        In nats; infinite if there is nothing to compare.

    Notes
    -----
    Two rows of ignorance are spread over the target of all rows, as in `best_temperature`: n rows
    that agree on everything do not make a model certain.
    """
    n_rows, k = log_proba.shape
    weight = np.ones(n_rows) if weight is None else weight
    n = weight.sum()
    if k == 1 or n == 0:
        return np.inf
    gaps, evidence = _gaps(log_proba, prior)
    says = (n * target + 2.0 / k) / (n + 2.0) * weight[:, np.newaxis]
    says[np.isinf(gaps)] = 0.0  # probability 0 at any limit

    def loss(log_limit: float) -> float:
        scale = 1.0 / (1.0 + evidence / np.exp(log_limit))
        scaled = np.maximum(_scaled(gaps, scale), -1e300)
        return -float((says * scaled).sum())

    best = int(np.argmin([loss(value) for value in LOG_LIMITS]))
    around = LOG_LIMITS[max(best - 1, 0)], LOG_LIMITS[min(best + 1, len(LOG_LIMITS) - 1)]
    return float(np.exp(minimize_scalar(loss, bounds=around, method="bounded").x))


def matching_limit(
    log_proba: Array, prior: Array, support: float, weight: Array | None = None
) -> float:
    """Return the limit with which the best components of all rows are as sure as `support`.

    This is the mean of their probabilities. The limit is infinite if they are less sure already.
    """
    weight = np.ones(len(log_proba)) if weight is None else weight
    gaps, evidence = _gaps(log_proba, prior)

    def excess(log_limit: float) -> float:
        scaled = _scaled(gaps, 1.0 / (1.0 + evidence / np.exp(log_limit))).max(axis=1)
        return float(np.average(np.exp(scaled), weights=weight)) - support

    least, most = LOG_LIMITS[0], LOG_LIMITS[-1]
    if not weight.any() or excess(most) <= 0:
        return np.inf
    return float(np.exp(least if excess(least) >= 0 else brentq(excess, least, most)))


def _gaps(log_proba: Array, prior: Array) -> tuple[Array, Array]:
    """Return how far each component is below the best, (n, k), and the mean of it by the prior."""
    log_proba = np.asarray(log_proba, dtype=np.float64)
    gaps = log_proba.max(axis=1, keepdims=True) - log_proba
    there = np.isfinite(gaps)
    mass = np.where(there, prior, 0.0).sum(axis=1)
    total = (np.where(there, gaps, 0.0) * prior).sum(axis=1)
    return gaps, np.asarray(total / np.where(mass > 0, mass, 1.0))


def _scaled(gaps: Array, scale: Array) -> Array:
    """Return the log probabilities of rows whose gaps are scaled."""
    scaled = np.where(np.isinf(gaps), gaps, gaps * scale[:, np.newaxis])
    return np.asarray(log_softmax(-scaled, axis=1))


def pool_settings(
    votes: Sequence[Array], truth: Array, prior: Sequence[float], weight: Array | None = None
) -> Array:
    """Return how much each of several models counts in their pool, and the limit of its evidence.

    See `pool` for their meaning. They have the least log loss; a number that is e times that of
    `prior`, or 1 / e of it, costs 1 nat more. So few rows leave the numbers where they were, and
    many rows decide.

    Parameters
    ----------
    votes : sequence of ndarray of shape (n_rows, n_classes)
        Log P(class | row) by each model, of rows that it was not fitted on.
    truth : ndarray of int of shape (n_rows,)
        The column of the class of each row.
    prior : sequence of float
        The weight of each model, and the limit, if there are no rows.
    weight : ndarray of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    settings : ndarray of shape (n_models + 1,)
        The weights of the models, and the limit.
    """
    table = np.stack([floored(vote) for vote in votes])  # (n_models, n_rows, n_classes)
    start = np.log(np.asarray(prior, dtype=np.float64))
    mass = np.ones(len(truth)) if weight is None else weight
    rows = np.arange(len(truth))

    def loss(log_settings: Array) -> tuple[float, Array]:
        weights, limit = np.exp(log_settings[:-1]), np.exp(log_settings[-1])
        total = np.tensordot(weights, table, axes=1)
        best = total.argmax(axis=1)
        # How far each class is below the best, and how that changes with each log weight.
        gaps = total[rows, best][:, np.newaxis] - total
        slopes = weights[:, np.newaxis, np.newaxis] * (table[:, rows, best, np.newaxis] - table)
        evidence = gaps.mean(axis=1)
        scale = limit / (limit + evidence)
        log_proba = log_softmax(-gaps * scale[:, np.newaxis], axis=1)
        pull = -np.exp(log_proba)
        pull[rows, truth] += 1.0  # what lowers the loss, by class
        along = (pull * gaps).sum(axis=1)
        by_weight = scale * (pull * slopes).sum(axis=2)
        by_weight -= along * scale**2 / limit * slopes.mean(axis=2)
        by_limit = along * scale * (1.0 - scale)
        off = log_settings - start
        value = -float(mass @ log_proba[rows, truth]) + float(off @ off)
        return value, np.append(by_weight @ mass, by_limit @ mass) + 2 * off

    bounds = [(value - 5.0, value + 5.0) for value in start]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(np.exp(found.x))


def pool(votes: Sequence[Array], settings: Array) -> Array:
    """Return the log P(class | row) of a pool of models.

    The log probabilities of the pool are the sum of those of the models, each times its weight,
    normalised again (a logarithmic opinion pool), and no row has more evidence than the limit, as
    in `bounded` with all classes alike. A class that a model rules out is taken to be 700 nats
    below, and counts as evidence too.

    Parameters
    ----------
    votes : sequence of ndarray of shape (n_rows, n_classes)
        Log P(class | row) by each model.
    settings : ndarray of shape (n_models + 1,) or (n_rows, n_models + 1)
        The weights of the models and the limit, for all rows or for each.

    Returns
    -------
    log_proba : ndarray of shape (n_rows, n_classes)
    """
    return np.asarray(log_softmax(_sum_of_votes(votes, counted(votes, settings)), axis=1))


def counted(votes: Sequence[Array], settings: Array) -> Array:
    """Return what each model counts in each row, of shape (n_rows, n_models): the limit included.

    `pool` has the parameters.
    """
    settings = np.atleast_2d(settings)
    weights, limits = settings[:, :-1], settings[:, -1]
    total = _sum_of_votes(votes, weights)
    _, evidence = _gaps(total, np.full(total.shape[1], 1.0 / total.shape[1]))
    return np.asarray(weights / (1.0 + evidence / limits)[:, np.newaxis])


def _sum_of_votes(votes: Sequence[Array], weights: Array) -> Array:
    """Return the sum of the log probabilities of models by weights of shape (1 or n_rows, n)."""
    columns = weights.T[..., np.newaxis]
    total = sum(weight * floored(vote) for vote, weight in zip(votes, columns, strict=True))
    return np.asarray(total)


def floored(log_proba: Array) -> Array:
    """Return log probabilities of at least -700, so that no model alone can rule a class out."""
    return np.maximum(log_proba, LEAST)
