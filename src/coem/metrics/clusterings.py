"""How good a clustering is, and how far the views agree on it."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.utils import Bunch

from coem.typing import Array

__all__ = [
    "agreement_rate",
    "aligned_accuracy",
    "cluster_entropy",
    "dissent",
    "expected_calibration_error",
    "reliability_curve",
]


def cluster_entropy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the average entropy of the classes within the clusters, in bits.

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        Class of each row; numbers or strings.
    labels_pred : array-like of shape (n,)
        Cluster of each row; numbers or strings.

    Returns
    -------
    entropy : float
        0 when every cluster is pure; at most the entropy of the classes. Lower is better.

    Notes
    -----
    Equation (23) of [1]_ with the logarithm to base 2, the number of bits that code a class given
    its cluster, :math:`\sum_j \frac{n_j}{n} \bigl(-\sum_i \hat p_{i|j} \log_2 \hat p_{i|j}\bigr)`.
    It falls when clusters are split, so compare only clusterings of the same number of clusters.

    References
    ----------
    .. [1] S. Bickel, T. Scheffer (2005), Estimation of mixture models using Co-EM, ECML.

    Examples
    --------
    The cluster of four rows is half and half, which is 1 bit; the other cluster is pure.

    >>> cluster_entropy(["a", "a", "b", "b", "b"], [0, 0, 0, 0, 1])
    0.8
    """
    table = _contingency(labels_true, labels_pred)
    sizes = table.sum(axis=0)
    bits = table.data * np.log2(sizes[table.indices] / table.data)
    return float(bits.sum() / sizes.sum())


def aligned_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Return the accuracy under the best one-to-one matching of clusters and classes.

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        Class of each row; numbers or strings.
    labels_pred : array-like of shape (n,)
        Cluster of each row; numbers or strings. There may be more or fewer clusters than classes:
        those without a partner count as wrong.

    Returns
    -------
    accuracy : float
        Between 0 (excluded) and 1. Higher is better.

    Examples
    --------
    Cluster 1 stands for "a" and cluster 0 for "b"; one of the four rows is misplaced.

    >>> aligned_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred).toarray()
    classes, clusters = linear_sum_assignment(table, maximize=True)
    return float(table[classes, clusters].sum() / table.sum())


def agreement_rate(view_labels: ArrayLike) -> float:
    """Return the share of rows that two views assign to the same component.

    Parameters
    ----------
    view_labels : array-like of int, shape (n, s)
        Component of each row in each view; -1 where the row is empty in that view.

    Returns
    -------
    rate : float
        Between 0 and 1; 1 if no row has two non-empty views.

    Notes
    -----
    Equation (16) of [1]_ for two views. For more views it is the share of the pairs of non-empty
    views of a row that agree, averaged over the rows with at least one such pair.

    References
    ----------
    .. [1] S. Bickel, T. Scheffer (2004), Multi-View Clustering, ICDM.

    Examples
    --------
    The views agree on the first two rows and not on the third; the last has only one view.

    >>> round(agreement_rate([[0, 0], [1, 1], [0, 1], [1, -1]]), 3)
    0.667
    """
    labels = _check_view_labels(view_labels)
    filled = labels >= 0
    agreeing = np.zeros(len(labels))
    n_pairs = np.zeros(len(labels))
    for u, v in combinations(range(labels.shape[1]), 2):
        both = filled[:, u] & filled[:, v]
        n_pairs += both
        agreeing += both & (labels[:, u] == labels[:, v])
    paired = n_pairs > 0
    return float(np.mean(agreeing[paired] / n_pairs[paired])) if paired.any() else 1.0


def dissent(posteriors: ArrayLike, empty: ArrayLike | None = None) -> float:
    r"""Return how far the posteriors of the views differ, summed over the rows, in nats.

    Parameters
    ----------
    posteriors : array-like of shape (n, s, k)
        Posterior of each of the k components given each of the s views of a row.
    empty : array-like of bool, shape (n, s), optional
        True where a row is empty in a view; the posterior there is ignored. None if nowhere.

    Returns
    -------
    delta : float
        Not negative; 0 when the views agree on every row.

    Notes
    -----
    Equation (10) of [1]_, the Kullback-Leibler divergences of all ordered pairs of views
    :math:`\frac{1}{s-1} \sum_{v \neq u} \sum_i \sum_j p_{ij}^{(v)} \log
    \frac{p_{ij}^{(v)}}{p_{ij}^{(u)}}`. The pairs of a row are those of its non-empty views, and s
    is their number; a row with fewer than two adds nothing. Under the logarithm a probability is
    at least the smallest normal double, so that the result is finite.

    References
    ----------
    .. [1] S. Bickel, T. Scheffer (2005), Estimation of mixture models using Co-EM, ECML.

    Examples
    --------
    Both divergences of the first row are 0.6 log 4; the views agree on the second.

    >>> round(dissent([[[0.8, 0.2], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]]), 4)
    1.6636
    """
    p, filled = _check_posteriors(posteriors, empty)
    log_p = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    per_row = np.zeros(len(p))
    for u, v in combinations(range(p.shape[1]), 2):
        # KL(u, v) + KL(v, u) in one product whose terms cannot be negative: the sum is exactly
        # zero for equal views, which the difference of two entropies would not be.
        both_ways = np.sum((p[:, u] - p[:, v]) * (log_p[:, u] - log_p[:, v]), axis=1)
        per_row += np.where(filled[:, u] & filled[:, v], both_ways, 0.0)
    return float(np.sum(per_row / np.maximum(filled.sum(axis=1) - 1, 1)))


def expected_calibration_error(
    labels_true: ArrayLike,
    proba: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return by how much the confidence of a classifier misses its accuracy.

    Rows are put into `n_bins` equal bins of confidence, the probability of the predicted class;
    the gap between mean confidence and accuracy in a bin is weighted by its rows (Guo et al. 2017,
    Eq. 3). 0 is perfect.

    Parameters
    ----------
    labels_true : array of shape (n_rows,)
        The true classes: labels, or column numbers of `proba`. A label that is not one of the
        classes counts as wrong, but one at least must be.
    proba : array of shape (n_rows, n_classes)
        Predicted probabilities.
    classes : array of shape (n_classes,), optional
        The labels of the columns, as a classifier's ``classes_``. By default labels are column
        numbers, from 0 on, if all of them can be. If not, the columns belong to the sorted labels,
        as in scikit-learn, if there are as many of them as columns.
    n_bins : int, default=15
        Number of bins.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    error : float
        Between 0 and 1.

    Examples
    --------
    >>> from coem.metrics import expected_calibration_error
    >>> expected_calibration_error([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.0
    >>> expected_calibration_error([0, 1], [[1.0, 0.0], [1.0, 0.0]])
    0.5
    """
    curve = reliability_curve(
        labels_true, proba, classes=classes, n_bins=n_bins, sample_weight=sample_weight
    )
    gaps = np.abs(curve.accuracy - curve.confidence) * curve.weight
    return float(np.nansum(gaps) / curve.weight.sum())


def reliability_curve(
    labels_true: ArrayLike,
    proba: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
    sample_weight: ArrayLike | None = None,
) -> Bunch:
    """Return how often a classifier is right where it is so and so sure.

    Parameters are those of `expected_calibration_error`, which is the mean gap of this curve.

    Returns
    -------
    curve : Bunch
        Of arrays of length `n_bins`, for bins of equal width: mean `confidence` and `accuracy` of
        the rows in a bin (NaN where there are none), and their `weight`.

    Examples
    --------
    >>> from coem.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1], [[0.9, 0.1], [0.7, 0.3], [0.1, 0.9]], n_bins=2)
    >>> curve.weight.tolist(), round(float(curve.accuracy[1]), 3)
    ([0.0, 3.0], 0.667)
    """
    proba = np.asarray(proba, dtype=np.float64)
    truth = np.asarray(labels_true)
    if proba.ndim != 2 or len(proba) != len(truth) or len(truth) == 0:
        raise ValueError(
            f"proba has shape {proba.shape} for {len(truth)} labels; give one row for each label, "
            "and one label at least."
        )
    columns = _classes_of(truth, proba.shape[1], classes)
    right = columns[proba.argmax(axis=1)] == truth
    return curve_of(proba.max(axis=1), right, n_bins, sample_weight)


def curve_of(
    confidence: Array, right: Array, n_bins: int, sample_weight: ArrayLike | None = None
) -> Bunch:
    """Return a `reliability_curve` of rows, given their confidence and how far each is right."""
    place = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    weight = np.ones(len(right)) if sample_weight is None else np.asarray(sample_weight)
    mass, sure, hits = (
        np.bincount(place, weights=weight * values, minlength=n_bins)
        for values in (np.ones(len(right)), confidence, right)
    )
    there = np.where(mass > 0, mass, np.nan)
    return Bunch(confidence=sure / there, accuracy=hits / there, weight=mass)


def _classes_of(truth: Array, n_columns: int, classes: ArrayLike | None) -> Array:
    """Return the class of every column; raise if no label can be one of them."""
    fix = "pass the classes of the columns, such as classes=model.classes_."
    if classes is not None:
        columns = np.asarray(classes)
        if len(columns) != n_columns:
            raise ValueError(f"there are {len(columns)} classes for {n_columns} columns.")
        if not set(truth.tolist()) & set(columns.tolist()):
            raise ValueError(
                f"no label is one of the classes: labels are such as {truth.tolist()[0]!r}, "
                f"classes such as {columns.tolist()[0]!r}; give both in the same form."
            )
        return columns
    if set(truth.tolist()) <= set(range(n_columns)):
        return np.arange(n_columns)
    _codes(truth, "labels_true")  # raises if labels cannot be sorted
    found = np.unique(truth)
    if len(found) != n_columns:
        raise ValueError(
            f"labels_true has {len(found)} different labels for {n_columns} columns of proba, and "
            f"they are not column numbers; {fix}"
        )
    return found


def _contingency(labels_true: ArrayLike, labels_pred: ArrayLike) -> sparse.csr_array:
    """Return the number of rows of each class (row) in each cluster (column)."""
    classes = _codes(labels_true, "labels_true")
    clusters = _codes(labels_pred, "labels_pred")
    if len(classes) != len(clusters):
        raise ValueError(
            f"labels_true has {len(classes)} rows and labels_pred has {len(clusters)}; "
            "give one label per row in both."
        )
    # Sparse, because a clustering may have nearly as many clusters as rows.
    return sparse.coo_array((np.ones(len(classes)), (classes, clusters))).tocsr()


def _codes(labels: ArrayLike, name: str) -> Array:
    """Return the labels as numbers 0, 1, ... in the order of their sorted values."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"{name} has shape {labels.shape}; give one label for each of at least one row."
        )
    try:
        missing = np.not_equal(labels, labels)  # NaN and NaT alone, for every dtype
        codes = np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(
            f"{name} mixes types that cannot be compared ({error}); "
            "make all labels numbers or all strings."
        ) from error
    if missing.any():
        raise ValueError(f"{name} is NaN in row {missing.argmax()}; leave unlabelled rows out.")
    return codes


def _check_view_labels(view_labels: ArrayLike) -> Array:
    """Return the labels of the views as an integer array of shape (n, s)."""
    labels = np.asarray(view_labels)
    if labels.ndim != 2:
        raise ValueError(
            f"view_labels has shape {labels.shape}; give one row per row of the data and one "
            "column per view."
        )
    if labels.dtype.kind not in "iu":
        raise ValueError(
            f"view_labels has dtype {labels.dtype}; give component numbers as integers, -1 where "
            "a view is empty."
        )
    if (labels < -1).any():
        row, view = np.argwhere(labels < -1)[0]
        raise ValueError(
            f"view_labels is {labels[row, view]} in row {row} of view {view}; give a component "
            "number, or -1 where the view is empty."
        )
    return labels


def _check_posteriors(posteriors: ArrayLike, empty: ArrayLike | None) -> tuple[Array, Array]:
    """Return posteriors as doubles, uniform where empty, and where they are not empty."""
    p = np.asarray(posteriors, dtype=np.float64)
    if p.ndim != 3 or p.shape[2] == 0:
        raise ValueError(f"posteriors has shape {p.shape}; give (rows, views, components).")
    filled = np.ones(p.shape[:2], dtype=bool)
    if empty is not None:
        filled = ~_check_empty(empty, p.shape[:2])
    p = np.where(filled[:, :, None], p, 1.0 / p.shape[2])
    # Written so that NaN fails; the tolerance is what float32 posteriors of many components need.
    good = (p >= 0.0).all(axis=2) & (np.abs(p.sum(axis=2) - 1.0) <= 1e-3)
    if not good.all():
        row, view = np.argwhere(~good)[0]
        raise ValueError(
            f"posteriors in row {row} of view {view} are not probabilities; give values of at "
            "least 0 that sum to 1, or mark the view as empty."
        )
    return p, filled


def _check_empty(empty: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the mask of empty views as a bool array of the given shape."""
    mask = np.asarray(empty)
    if mask.shape != shape or mask.dtype != bool:
        raise ValueError(
            f"empty has shape {mask.shape} and dtype {mask.dtype}; give a bool for each row and "
            f"view, shape {shape}."
        )
    return mask
