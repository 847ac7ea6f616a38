"""Concept vectors: given ones, and those that views agree on."""

import numpy as np
import scipy.sparse as sp

from coem.checks import check_choice
from coem.families.von_mises_fisher import VonMisesFisherTheta
from coem.initialise import seeder
from coem.kernels.lloyd import Lloyd, unit_rows

INITS = ("k-means++", "rows")


def as_theta(directions):
    """Return directions as parameters of the family."""
    return VonMisesFisherTheta(directions, np.ones(len(directions)))


def drawer(init, n_clusters, X, mass):
    """Return what draws concept vectors of the last view from a source of random numbers.

    `X` are its rows, of unit length, and `mass` their weights, zero where they are empty.
    """
    if not isinstance(init, str):
        given = read_concepts(init, (n_clusters, X.shape[1])).astype(X.dtype)
        return lambda rng: given
    check_choice("init", init, INITS)
    choose = seeder(X, mass, n_clusters, spread_out=init == "k-means++")

    def draw(rng):
        rows = X[choose(rng)]
        return rows.toarray() if sp.issparse(rows) else rows

    return draw


def read_concepts(init, shape):
    """Return given concept vectors with rows of unit length."""
    try:
        given = np.array(init.toarray() if sp.issparse(init) else init, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(())
    if given.ndim == 0:
        names = ", ".join(map(repr, INITS))
        raise ValueError(
            f"init must be one of {names} or an array of concept vectors, got "
            f"{init if np.isscalar(init) else type(init).__name__!r}"
        )
    if given.shape != shape:
        raise ValueError(
            f"init must have shape {shape}, clusters by features of the last view, got "
            f"{given.shape}"
        )
    top = np.maximum(given.max(axis=1, keepdims=True), -given.min(axis=1, keepdims=True))
    good = np.isfinite(top) & (top > 0)
    if not good.all():
        bad = int(np.flatnonzero(~good)[0])
        raise ValueError(f"init: row {bad} is no direction; it must be finite and not all zeros")
    given /= top  # no square is too large or too small
    given /= np.sqrt(np.einsum("ij,ij->i", given, given))[:, np.newaxis]
    return given


def consensus(data, theta, labels):
    """Return the consensus vectors of every view, Eq. 11; concept vectors where nobody agrees."""
    if labels.shape[1] == 1:
        return list(theta.directions)
    top = labels.max(axis=1, keepdims=True)
    agreed = (labels == np.where(labels < 0, -1, top)).all(axis=1)
    centres = []
    for v, concepts in enumerate(theta.directions):
        rows = Lloyd(data.views[v], [], len(concepts))
        lengths = rows.sum_rows(np.where(agreed, labels[:, v], -1), data.weight)
        centres.append(unit_rows(rows.sums, lengths, concepts, concepts.dtype))
    return centres
