"""Starts for chains: parts of sequences in place of clusters, and clusters that fit labels."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from coem.latent.sequences import Sequences
from coem.typing import Array, Rng

EVENNESS = 5.0  # of the lengths of the parts; docs/design.md


def in_order(can_follow: Array) -> Array | None:
    """Return the states from first to last if no state can come back, or None if one can.

    `can_follow` (k, k) says which transitions are possible. A chain without a way back is a
    left-right model.
    """
    k = len(can_follow)
    if k < 2 or connected_components(can_follow, connection="strong")[0] < k:
        return None
    reaches = np.linalg.matrix_power(can_follow | np.eye(k, dtype=bool), k)
    return np.argsort(reaches.sum(axis=0), kind="stable")  # by how many states come before


def draw_parts(part: Sequences, order: Array, rng: Rng) -> Array:
    """Cut every sequence into consecutive parts, one per state in their order, (n_rows,).

    The shares of the parts are drawn, and are the same for all sequences.
    """
    ends = np.cumsum(rng.dirichlet(np.full(len(order), EVENNESS)))[:-1]
    lengths = np.diff(part.offsets)
    row = np.arange(part.n_rows) - np.repeat(part.offsets[:-1], lengths)
    place = (row + 0.5) / np.repeat(lengths, lengths)
    return np.asarray(order[np.searchsorted(ends, place)])


def to_labels(clusters: Array, allowed: Array | None) -> Array:
    """Return clusters (n_rows,) with the numbers of the states that labelled rows have.

    Clusters and states are matched so that most labelled rows agree. Then every row that a label
    pins to one state takes that state.
    """
    if allowed is None:
        return clusters
    known = allowed.sum(axis=1) == 1
    state = allowed.argmax(axis=1)
    k = allowed.shape[1]
    both = np.zeros((k, k))
    np.add.at(both, (clusters[known], state[known]), 1.0)
    matched = linear_sum_assignment(both, maximize=True)[1]
    return np.asarray(np.where(known, state, matched[clusters]))
