"""Which views count: a view whose groups share nothing with those of other views is left out.

With co-EM a view learns from the others, so a column of noise beside a text destroys the groups of
the text. Before a fit, every view is therefore clustered alone, and the groups of each two views
are compared. docs/evidence.md has the measurements behind the constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import xlogy
from sklearn.preprocessing import normalize

from coem.coupling import Joint
from coem.families import VonMisesFisher
from coem.families.base import AnyFamily
from coem.families.mixture_of import innermost
from coem.initialise.seeds import by_content
from coem.initialise.spherical import spherical
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.latent.weights import UniformWeights
from coem.posterior import Soft
from coem.runs import warn_user
from coem.typing import Array, Matrix, is_sparse

SAMPLE = 3000  # rows that are looked at
LEAST_ROWS = 200  # rows that are not empty in both views; fewer cannot tell
LEAST_COLUMNS = 16  # of a view that is cut into halves
MOST_GROUPS = 20
SHARED = 0.02  # the least share of information that two views must have in common
SURE = 4.0  # standard deviations above what chance gives


@dataclass(frozen=True)
class Speaking:
    """Which views speak, and why.

    `shared` (n_views, n_views) is the information that the groups of two views have in common, as
    a share of the entropy of the simpler grouping, corrected for chance: about 0 for views that
    share nothing, and 1 if one grouping follows from the other. The diagonal compares the groups
    that two halves of the columns of a view give. NaN stands for what could not be compared.
    """

    silent: Array  # (n_views,) bool
    shared: Array


def listen(families: Sequence[AnyFamily], part: Partition, n_groups: int) -> Speaking:
    """Return which of several views speak.

    Views that share information are linked. The linked views with the most in common speak, and
    views without a link to them are silent. Nothing is silent if there are too few rows to tell,
    or if no view has anything in common with another view or within itself.
    """
    n_views = len(families)
    shared = np.full((n_views, n_views), np.nan)
    linked = np.zeros((n_views, n_views), dtype=bool)
    rows, k = sample(part), max(2, min(n_groups, MOST_GROUPS))
    groups = [_groups(family, rows, v, k) for v, family in enumerate(families)]
    for u, v in combinations(range(n_views), 2):
        shared[u, v], linked[u, v] = compare(groups[u], groups[v], rows.weight)
        shared[v, u], linked[v, u] = shared[u, v], linked[u, v]
    judged = np.isfinite(shared).all(axis=1, where=~np.eye(n_views, dtype=bool))
    if not linked.all(where=~np.eye(n_views, dtype=bool)):
        for v, family in enumerate(families):
            shared[v, v] = _within(family, rows, v, k)
    return Speaking(_silent(shared, linked) & judged, shared)


def warn_silent(names: Sequence[str], found: Speaking) -> None:
    """Warn of the views that are left out."""
    speaking = [repr(name) for name, silent in zip(names, found.silent, strict=True) if not silent]
    for v in np.flatnonzero(found.silent).tolist():
        most = float(np.nanmax(np.delete(found.shared[v], v)))
        warn_user(
            f"view {names[v]!r} is left out: its groups share nothing with those of "
            f"{', '.join(speaking)} ({max(most, 0.0):.3f} of 1, where chance is 0 and {SHARED:g} "
            "is the least that counts); pass evidence='fixed' to use it all the same"
        )


def _silent(shared: Array, linked: Array) -> Array:
    """Return the views that have no link to the views with the most in common."""
    _, owner = connected_components(linked, directed=False)
    common = np.where(np.isnan(shared), 0.0, np.maximum(shared, 0.0))
    # What links views counts before what a view has in common with itself.
    links = np.bincount(owner, weights=(common * linked).sum(axis=1))
    own = np.bincount(owner, weights=np.diagonal(common))
    best = np.lexsort((own, links))[-1]
    if links[best] == 0 and own[best] < SHARED:
        return np.zeros(len(owner), dtype=bool)
    return np.asarray(owner != best)


def sampled_rows(views: Sequence[Matrix]) -> Array:
    """Return the numbers of some rows, or of all if they are few, chosen by their content."""
    n_rows = views[0].shape[0]
    if n_rows <= SAMPLE:
        return np.arange(n_rows)
    order = by_content([X if is_sparse(X) else np.nan_to_num(X) for X in views])
    return np.sort(order[np.linspace(0, n_rows - 1, SAMPLE).astype(np.intp)])


def sample(part: Partition) -> Partition:
    """Return some rows, chosen by their content, so that the order of rows does not matter."""
    if part.n_rows <= SAMPLE:
        return Partition(part.views, part.empty, part.weight)
    rows = sampled_rows(part.views)
    return Partition(
        tuple(X[rows] for X in part.views),
        None if part.empty is None else part.empty[rows],
        None if part.weight is None else part.weight[rows],
    )


def _groups(family: AnyFamily, part: Partition, v: int, k: int) -> Array:
    """Return the groups of the rows in one view; -1 for rows that are empty in it."""
    blank = None if part.empty is None else part.empty[:, v]
    return _cluster(family, part.views[v], blank, part.weight, k)


def _cluster(
    family: AnyFamily, X: Matrix, blank: Array | None, weight: Array | None, k: int
) -> Array:
    filled = np.arange(X.shape[0]) if blank is None else np.flatnonzero(~blank)
    labels = np.full(X.shape[0], -1)
    if len(filled) >= LEAST_ROWS:
        model = Mixture(Emissions((family,)), k, Joint(), Soft(), UniformWeights())
        part = Partition((X[filled],), None, None if weight is None else weight[filled])
        labels[filled] = spherical(model, part)(np.random.default_rng(0))[0]
    return labels


def _within(family: AnyFamily, part: Partition, v: int, k: int) -> float:
    """Return what the groups of two halves of the columns share; NaN if they cannot be cut."""
    X = part.views[v]
    if X.shape[1] < LEAST_COLUMNS:
        return np.nan
    columns = np.random.default_rng(0).permutation(X.shape[1])
    blank = np.zeros(X.shape[0], dtype=bool) if part.empty is None else part.empty[:, v]
    halves = []
    for half in (np.sort(columns[::2]), np.sort(columns[1::2])):
        rows = X[:, half]
        if isinstance(innermost(family), VonMisesFisher):
            rows = normalize(rows)
        nothing = np.diff(rows.indptr) == 0 if is_sparse(rows) else np.zeros_like(blank)
        halves.append(_cluster(family, rows, blank | nothing, part.weight, k))
    return compare(halves[0], halves[1], part.weight)[0]


def compare(one: Array, other: Array, weight: Array | None) -> tuple[float, bool]:
    """Return what two groupings share, and whether that is more than little and than chance.

    Under independence, twice the mutual information times the number of rows is distributed like
    chi-square with (groups - 1) (other groups - 1) degrees of freedom.
    """
    both = (one >= 0) & (other >= 0)
    if np.count_nonzero(both) < LEAST_ROWS:
        return np.nan, False
    mass = np.ones(len(one)) if weight is None else weight
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one[both], other[both]), mass[both])
    n_rows = float(table.sum())
    if not n_rows > 0:
        return np.nan, False
    joint = table / n_rows
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    entropies = -xlogy(rows, rows).sum(), -xlogy(columns, columns).sum()
    information = sum(entropies) + xlogy(joint, joint).sum()
    freedom = (np.count_nonzero(rows) - 1) * (np.count_nonzero(columns) - 1)
    chance = freedom / (2 * n_rows)
    if freedom == 0 or min(entropies) <= chance:  # a constant view, or too many groups to tell
        return 0.0, False
    share = float((information - chance) / (min(entropies) - chance))
    excess = 2 * n_rows * information - freedom
    return share, bool(share > SHARED and excess > SURE * np.sqrt(2 * freedom))
