"""New groups in a stream: documents that fit no group, hang together, and were not there before.

The documents of a *window*, the latest ones, are compared with a *reference*: documents of the
first batch that no model has learned from. Both are put into clusters together. If nothing is new,
each cluster has its share of the reference, whatever the clusters are. docs/streams.md has the
tests, and experiments/streaming.py how often they are right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from coem.estimators import SphericalKMeans
from coem.row_store import stacked
from coem.text import LatentDirections
from coem.typing import Array, is_sparse
from coem.views import Views

LEAST_REFERENCE = 50  # documents; fewer cannot tell
LEAST_SIZE = 20  # documents of a new group
WORST = 0.2  # the share of the reference that counts as fitting badly
ILL = 2.0  # a new group has at least this many times as many of such documents
RATIO = 3.0  # and is at least this many times as frequent as in the reference
CHANCE = 1e-3  # of a false alarm in a search, if nothing changes
MORE = (1, 3, 5)  # clusters than groups: how many new groups there may be is not known
MAJORITY = 0.5  # of the rows of a cluster that clusters of other runs must have, and they of it
DIRECTIONS = 100


@dataclass(frozen=True)
class NewGroup:
    """Rows of the window that are a new group, and what speaks for it.

    Attributes
    ----------
    rows : ndarray of int
        The rows.
    before : int
        Rows of the reference that are like them.
    chance : float
        How probable so many rows are, or more, if nothing has changed.
    ill : float
        The share of the rows that fit the groups worse than four fifths of the reference do.
    """

    rows: Array
    before: int
    chance: float
    ill: float


def new_groups(
    model: Any, reference: Views, window: Views, known: Array, *, n_jobs: int | None = None
) -> list[NewGroup]:
    """Return the new groups of a window, the largest first.

    Parameters
    ----------
    model : MixtureClusterer
        The model, with running statistics.
    reference, window : Views
        Rows of the first batch that were not learned from, and the latest rows.
    known : ndarray of bool
        Rows of the window in groups that were added: they are not new again.
    n_jobs : int, optional
        Number of threads; it never changes a bit of the result.
    """
    if len(reference) < LEAST_REFERENCE or len(window) - int(known.sum()) < LEAST_SIZE:
        return []
    both = stacked([window, reference])
    rows = directions_of(both, n_jobs)
    if rows is None:
        return []
    ill = fits_badly(model, both, len(window))
    tried = [_with_clusters(rows, model.n_components + n, known, ill, n_jobs) for n in MORE]
    # The number of clusters with which most documents are in new groups; the smallest of them.
    found = max(tried, key=lambda groups: sum(len(group.rows) for group in groups))
    return sorted(found, key=lambda group: (-len(group.rows), int(group.rows[0])))


def _with_clusters(
    rows: Array, n_clusters: int, known: Array, ill: Array, n_jobs: int | None
) -> list[NewGroup]:
    """Return the new groups among a number of clusters."""
    labels, same = recurring(rows, n_clusters, n_jobs)
    n_tests = n_clusters * len(MORE)
    tested = (_tested(labels == c, known, ill, n_tests) for c in np.flatnonzero(same))
    return [group for group in tested if group is not None]


def _tested(inside: Array, known: Array, ill: Array, n_tests: int) -> NewGroup | None:
    """Return a cluster as a new group, or None if it may be an old one.

    `inside` has the rows of the window, and then those of the reference.
    """
    n_window = len(known)
    n_reference = len(inside) - n_window
    rows = np.flatnonzero(inside[:n_window] & ~known)
    before = int(inside[n_window:].sum())
    if len(rows) < LEAST_SIZE:
        return None
    n_asked = n_window - int(known.sum())
    expected = n_asked / (n_asked + n_reference)
    chance = float(binom.sf(len(rows) - 1, len(rows) + before, expected))
    ratio = (len(rows) / n_asked) / ((before + 1) / n_reference)
    share = float(ill[rows].mean())
    if chance * n_tests > CHANCE or ratio < RATIO or share < ILL * WORST:
        return None
    return NewGroup(rows, before, chance, share)


def directions_of(views: Views, n_jobs: int | None) -> Array | None:
    """Return unit rows that say what documents are about, or None if no view can tell.

    They are latent directions of the counts of these rows, or sentence vectors as they are.
    """
    counts = {name: views[name] for name in views.names if is_sparse(views[name])}
    if counts:
        found = LatentDirections(DIRECTIONS, n_jobs=n_jobs).fit_transform(Views(counts))
        return np.asarray(found["latent"])
    dense = [np.asarray(views[name], dtype=np.float64) for name in views.names]
    unit = [X for X in dense if np.allclose(np.nansum(X * X, axis=1), 1.0, atol=1e-3)]
    return np.hstack(unit) if unit else None


def fits_badly(model: Any, both: Views, n_window: int) -> Array:
    """Return which rows fit the groups worse than most of the reference, which comes last.

    The gain over a single component has a rank among those of the reference in each view; views
    are averaged. A row that is empty in every view fits nothing, and is not counted.
    """
    gains = model.gain_over_one(both)
    ranks = np.full(gains.shape, np.nan)
    for v, gain in enumerate(gains.T):
        order = np.sort(gain[n_window:][~np.isnan(gain[n_window:])])
        ranks[:, v] = np.where(np.isnan(gain), np.nan, np.searchsorted(order, gain))
        ranks[:, v] /= max(len(order), 1)
    there = ~np.isnan(ranks)
    mean = np.where(there, ranks, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    mean = np.where(there.any(axis=1), mean, np.inf)
    usual = mean[n_window:][np.isfinite(mean[n_window:])]
    limit = np.quantile(usual, WORST) if len(usual) else -np.inf
    return np.asarray(mean < limit)


def recurring(rows: Array, n_clusters: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the clusters of rows, and which of them come back in both halves of the rows.

    A row of NaN has no direction, and is in no cluster (-1).
    """
    labels = np.full(len(rows), -1)
    there = np.flatnonzero(~np.isnan(rows).any(axis=1))
    if len(there) < 4 * n_clusters:
        return labels, np.zeros(n_clusters, dtype=bool)
    rows = rows[there]
    halves = np.random.default_rng(0).permutation(len(rows)) % 2
    runs = [rows, rows[halves == 0], rows[halves == 1]]
    found = [_labels(run, rows, n_clusters, n_jobs) for run in runs]
    labels[there] = found[0]
    same = np.ones(n_clusters, dtype=bool)
    for other in found[1:]:
        counts = np.zeros((n_clusters, n_clusters))
        np.add.at(counts, (found[0], other), 1)
        of_mine = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        of_theirs = counts / np.maximum(counts.sum(axis=0, keepdims=True), 1)
        same &= ((of_mine > MAJORITY) & (of_theirs > MAJORITY)).any(axis=1)
    return labels, same


def _labels(some: Array, rows: Array, n_clusters: int, n_jobs: int | None) -> Array:
    """Return the clusters of all rows by a run of k-means on some of them."""
    model = SphericalKMeans(n_clusters, n_init=8, random_state=0, n_jobs=n_jobs)
    return np.asarray(model.fit(some).predict(rows))
