"""Starts for chains: parts of sequences in place of clusters, and numbers that fit labels."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.sequences import Sequences
from coem.typing import Array, Rng, Theta

EVENNESS = 5.0  # of the lengths of the parts; docs/design.md
LEAST = -1e9  # a log density that stands for -inf, which cannot be matched


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
    known, state = _pinned(allowed)
    votes = np.zeros((allowed.shape[1],) * 2)
    np.add.at(votes, (clusters[known], state[known]), 1.0)
    return pin(_match(votes)[clusters], allowed)


def pin(states: Array, allowed: Array | None) -> Array:
    """Return states (n_rows,), those of the labels for rows that a label pins to one state."""
    if allowed is None:
        return states
    known, state = _pinned(allowed)
    return np.asarray(np.where(known, state, states))


def in_numbers(
    emissions: Emissions, params: tuple[Theta, ...], part: Partition
) -> tuple[Theta, ...]:
    """Return components, numbered like the states that labelled rows have.

    Components and states are matched so that labelled rows are most probable.
    """
    if part.allowed is None:
        return params
    known, state = _pinned(part.allowed)
    empty = None if part.empty is None else part.empty[known]
    rows = Partition(tuple(X[known] for X in part.views), empty)
    votes = np.zeros((part.allowed.shape[1],) * 2)
    for block in rows.blocks:
        logs = (emissions.log_prob(block, own, v) for v, own in enumerate(params))
        log_prob = np.maximum(sum(logs), LEAST)
        np.add.at(votes.T, state[known][block.rows], log_prob)
    order = np.argsort(_match(votes))
    pairs = zip(emissions.families, params, strict=True)
    return tuple(
        family.restore([part[order] for part in (own if isinstance(own, tuple) else (own,))])
        for family, own in pairs
    )


def _pinned(allowed: Array) -> tuple[Array, Array]:
    """Return which rows may have one state only, and that state."""
    return allowed.sum(axis=1) == 1, allowed.argmax(axis=1)


def _match(votes: Array) -> Array:
    """Return the state (column) of each component (row) with which the sum of votes is largest."""
    return np.asarray(linear_sum_assignment(votes, maximize=True)[1])
