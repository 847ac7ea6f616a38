"""Concept vectors: given ones, drawn ones, and those that the views agree on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.checks import check_choice
from coem.initialise import seeder
from coem.kernels.lloyd import Lloyd, unit_rows
from coem.latent.block import Partition
from coem.latent.sphere import Concepts
from coem.latent.stored import StoredRows
from coem.protocols import Engine
from coem.sparse import sound_csr
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, is_sparse

INITS = ("k-means++", "rows")


def drawer(init: Any, n_clusters: int, X: Matrix, mass: Array) -> Callable[[Rng], Array]:
    """Return a function that draws concept vectors of the last view.

    `X` holds its rows, of unit length, and `mass` their weights, zero where they are empty.
    """
    if not isinstance(init, str):
        given = read_concepts(init, (n_clusters, X.shape[1])).astype(X.dtype)
        return lambda rng: given
    check_choice("init", init, INITS)
    choose = seeder(X, mass, n_clusters, spread_out=init == "k-means++")

    def draw(rng: Rng) -> Array:
        rows = X[choose(rng)]
        return np.asarray(rows.toarray() if is_sparse(rows) else rows)

    return draw


def read_concepts(init: Any, shape: tuple[int, int]) -> Array:
    """Return given concept vectors with rows of unit length; raise unless they have `shape`."""
    if sp.issparse(init):
        init = sound_csr(init, "init: ").toarray()
    try:
        given = np.array(init, dtype=np.float64)
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
        raise ValueError(f"init: row {bad} has no direction; it must be finite and not all zeros")
    given /= top  # so that no square is too large or too small
    given /= np.sqrt(np.einsum("ij,ij->i", given, given))[:, np.newaxis]
    return given


def arrays_of(theta: Concepts) -> list[Array]:
    """Return the concept vectors of every view, which must all be computed."""
    arrays = [concepts for concepts in theta.directions if isinstance(concepts, np.ndarray)]
    assert len(arrays) == len(theta.directions)
    return arrays


def consensus(
    rows: Partition | StoredRows, concepts: list[Array], labels: Array, engine: Engine
) -> list[Array]:
    """Return the consensus vectors of every view, Eq. 11.

    `labels` (n_rows, n_views) are the partitions of the views. A cluster on which the views agree
    for no row keeps its concept vector.
    """
    if labels.shape[1] == 1:
        return concepts
    top = labels.max(axis=1, keepdims=True)
    agreed = (labels == np.where(labels < 0, -1, top)).all(axis=1)
    # Given to the rows as their start, so that each part has its own.
    given = np.where(agreed[:, np.newaxis], labels, -1).T

    def work(part: Partition) -> Sums:
        return Sums(tuple(_sums(part, v, len(own)) for v, own in enumerate(concepts)))

    total = reduce(add, engine.each_part(work, rows.parts(given)))
    return [
        unit_rows(sums, np.sqrt(np.einsum("ij,ij->i", sums, sums)), own, own.dtype)
        for sums, own in zip(total.views, concepts, strict=True)
    ]


@dataclass(frozen=True)
class Sums(Stats):
    """Sums of rows by cluster, (n_clusters, n_features), for every view."""

    views: tuple[Array, ...]


def _sums(part: Partition, v: int, n_clusters: int) -> Array:
    """Return the sums of the rows of a view over the clusters that they are given."""
    assert part.given is not None
    rows = Lloyd(part.views[v], [], n_clusters)
    rows.sum_rows(part.given[v].astype(np.int32), part.weight)
    return rows.sums
