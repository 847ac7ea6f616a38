"""Trust: how far other runs keep the same rows together. The one scale for groups and rows."""

import numpy as np

from coem.latent.shared_rows import shared_rows

MEANING = (
    "Trust says how far the other runs keep the same rows together: 1 is always the same rows, "
    "0 is as by chance; that of a group is the mean of its rows."
)


def row_trust(labels, others, weight=None):
    r"""Return the trust of every row: how much of its group it keeps in other runs.

    Parameters
    ----------
    labels : ndarray of int of shape (n_rows,)
        The group of each row, from 0 on.
    others : sequence of ndarrays of int of shape (n_rows,)
        The groups of the same rows in other runs. Their numbers need not match.
    weight : ndarray of shape (n_rows,), optional
        A weight of 2 counts as the row given twice.

    Returns
    -------
    trust : ndarray of shape (n_rows,)
        From 0 (as by chance, or less) to 1 (in every run the same rows, and no others).

    Notes
    -----
    Let G be the group of a row, and H its group in another run. They have
    :math:`J = |G \cap H| / |G \cup H|` in common (Jaccard). If the rows of the other run were
    shuffled, J would be E on average over the rows of G. The trust of the row is the mean of
    (J - E) / (1 - E) over the runs, and not less than 0. So groups of all sizes and runs of any
    number of groups have the same scale. Two groups need not be matched, and no share is a limit
    from which on a group counts as the same. A group that holds all rows has a trust of 0: chance
    finds it too.

    Examples
    --------
    The first group comes back, and the second loses a row to the third:

    >>> import numpy as np
    >>> from coem.selection.trust import row_trust
    >>> labels = np.repeat([0, 1, 2], 4)
    >>> other = np.repeat([2, 0, 1], [4, 3, 5])
    >>> row_trust(labels, [other])[[0, 4, 7, 8]].round(2).tolist()
    [1.0, 0.64, 0.0, 0.71]
    """
    total = np.zeros(len(labels))
    for other in others:
        shape = labels.max() + 1, other.max() + 1
        mass = shared_rows(labels, other, shape, weight)
        total += _in_common(mass, _unit(weight))[labels, other]
    return np.clip(total / len(others), 0.0, 1.0)


def group_trust(labels, rows, n_groups, weight=None):
    """Return the trust of every group, the mean of its rows; 0 for a group without rows."""
    mass = np.bincount(labels, weights=weight, minlength=n_groups)
    weighted = rows if weight is None else rows * weight
    kept = np.bincount(labels, weights=weighted, minlength=n_groups)
    return kept / np.where(mass > 0, mass, 1.0)


def _in_common(mass, unit):
    """Return (J - E) / (1 - E) of every two groups, from the mass of rows that they share."""
    a, b = mass.sum(axis=1, keepdims=True), mass.sum(axis=0, keepdims=True)
    union = a + b - mass
    jaccard = mass / np.where(union > 0, union, 1.0)
    chance = _by_chance(a, b, mass.sum(), unit)
    room = 1.0 - chance
    return np.where(room > 1e-12, (jaccard - chance) / np.where(room > 1e-12, room, 1.0), 0.0)


def _by_chance(a, b, n, unit):
    """Return the expected J of the rows of every group, (k1, 1), if the other run were shuffled.

    A row of a group of mass a is in a group of mass b with a probability of b / n. The two then
    have the row itself in common, and of the others a hypergeometric number, whose mean and
    variance give the mean of J = m / (a + b - m) to the second order.
    """
    rest = np.maximum(n - unit, unit)
    mine, theirs = np.maximum(a - unit, 0.0), np.maximum(b - unit, 0.0)
    mean = unit + mine * theirs / rest
    spread = mine * theirs * (rest - mine) * (rest - theirs) * unit
    variance = spread / (rest * rest * np.maximum(rest - unit, unit))
    union = np.maximum(a + b - mean, unit)
    expected = np.minimum(mean / union + (a + b) / union**3 * variance, 1.0)
    return (expected * b / n).sum(axis=1, keepdims=True)


def _unit(weight):
    """Return the mass of one row: 1, or the smallest weight if there are smaller ones."""
    return 1.0 if weight is None else min(1.0, float(weight[weight > 0].min()))
