"""How far the boundaries of a segmentation are from the true ones."""

import numpy as np
from numpy.typing import ArrayLike

from coem.typing import Array

__all__ = ["pk", "window_diff"]


def pk(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    boundaries: bool = False,
    window: int | None = None,
) -> float:
    r"""Return how often two units are wrongly said to be in the same segment, or in two.

    Parameters
    ----------
    labels_true : array-like of shape (n,)
        The segment, or the topic, of each unit (paragraph, sentence, ...) in the order of the
        text: numbers or strings. A new segment begins where the label changes.
    labels_pred : array-like of shape (n,)
        The same for the segmentation to be judged. Its labels need not be those of `labels_true`.
    lengths : array-like of int, optional
        Number of units of each document, if there are several: they follow one another. By
        default there is one.
    boundaries : bool, default=False
        True if both arrays say of each unit whether it is the first of a segment (true or 1). What
        they say of the first unit of a document makes no difference.
    window : int, optional
        Distance of the two units that are compared. By default half the mean length of the true
        segments, rounded, and at least 1.

    Returns
    -------
    error : float
        Between 0 and 1; 0 if all boundaries are right. Lower is better.

    Notes
    -----
    :math:`P_k` of [1]_ is the share of the pairs (i, i + k) of units of one document that are in
    the same segment in one segmentation, and in two in the other one. All pairs of all documents
    count the same. A document of no more than k units has no pair.

    A segmentation without any boundary, and one at random, come close to 0.5, so compare with
    such baselines. A boundary that is added within k units of another one is often not noticed;
    see `window_diff`.

    References
    ----------
    .. [1] D. Beeferman, A. Berger, J. Lafferty (1999), Statistical models for text segmentation,
       Machine Learning 34, 177-210.

    Examples
    --------
    The boundary comes one unit late: two of the four pairs at distance 2 are misjudged.

    >>> from coem.metrics import pk
    >>> pk([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1], window=2)
    0.5
    """
    true, pred = _counts_in_windows(labels_true, labels_pred, lengths, boundaries, window)
    return float(np.mean((true > 0) != (pred > 0)))


def window_diff(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    *,
    lengths: ArrayLike | None = None,
    boundaries: bool = False,
    window: int | None = None,
) -> float:
    """Return how often a window has another number of boundaries than it should have.

    Parameters
    ----------
    labels_true, labels_pred, lengths, boundaries, window
        See `pk`.

    Returns
    -------
    error : float
        Between 0 and 1; 0 if all boundaries are right. Lower is better. Never less than `pk`.

    Notes
    -----
    WindowDiff [1]_ is the share of the pairs (i, i + k) of units of one document with a different
    number of boundaries between them. So it notices boundaries too many wherever they are.

    References
    ----------
    .. [1] L. Pevzner, M. A. Hearst (2002), A critique and improvement of an evaluation metric for
       text segmentation, Computational Linguistics 28, 19-36.

    Examples
    --------
    A boundary too many beside the right one: `pk` notices it in one window of two.

    >>> from coem.metrics import pk, window_diff
    >>> true, found = [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 2, 2]
    >>> pk(true, found, window=2), window_diff(true, found, window=2)
    (0.25, 0.5)
    """
    true, pred = _counts_in_windows(labels_true, labels_pred, lengths, boundaries, window)
    return float(np.mean(true != pred))


def _counts_in_windows(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    lengths: ArrayLike | None,
    boundaries: bool,
    window: int | None,
) -> tuple[Array, Array]:
    """Return the number of boundaries between all pairs of units at the distance of the window."""
    true = _first_units(labels_true, "labels_true", boundaries)
    pred = _first_units(labels_pred, "labels_pred", boundaries)
    if len(true) != len(pred):
        raise ValueError(
            f"labels_true has {len(true)} units and labels_pred has {len(pred)}; give one value "
            "per unit in both."
        )
    sizes = _check_lengths(lengths, len(true))
    filled = sizes[sizes > 0]
    first = np.zeros(len(true), dtype=bool)
    first[np.cumsum(filled) - filled] = True
    k = _default_window(true | first) if window is None else _check_window(window)
    document = np.repeat(np.arange(len(sizes)), sizes)
    inside = document[k:] == document[:-k]
    if not inside.any():
        raise ValueError(
            f"no document has more than {k} units, so there is no pair of units at that distance; "
            "give a smaller window."
        )
    up_to_true, up_to_pred = np.cumsum(true), np.cumsum(pred)
    return (up_to_true[k:] - up_to_true[:-k])[inside], (up_to_pred[k:] - up_to_pred[:-k])[inside]


def _first_units(values: ArrayLike, name: str, boundaries: bool) -> Array:
    """Return which units are the first of a segment; the first of all may say anything."""
    labels = np.asarray(values)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"{name} has shape {labels.shape}; give one value for each of at least one unit."
        )
    missing = np.not_equal(labels, labels)  # NaN and NaT alone
    if missing.any():
        raise ValueError(f"{name} is NaN in unit {missing.argmax()}; give every unit a value.")
    if not boundaries:
        return np.concatenate([[True], np.asarray(labels[1:] != labels[:-1], dtype=bool)])
    wrong = ~np.isin(labels, (0, 1))
    if labels.dtype.kind not in "biuf" or wrong.any():
        unit = int(wrong.argmax())
        raise ValueError(
            f"{name} is {labels.tolist()[unit]!r} in unit {unit}; with boundaries=True "
            "give 1 or True for the first unit of a segment, and 0 or False for the others."
        )
    return labels.astype(bool)


def _check_lengths(lengths: ArrayLike | None, n: int) -> Array:
    """Return the numbers of units of the documents."""
    if lengths is None:
        return np.array([n])
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"lengths must be whole numbers of at least 0, got {lengths!r}.")
    if sizes.sum() != n:
        raise ValueError(f"lengths sum to {sizes.sum()}, and there are {n} units.")
    return sizes


def _default_window(first: Array) -> int:
    """Return half the mean length of the segments that begin at these units."""
    return max(1, round(len(first) / (2 * int(first.sum()))))


def _check_window(window: int) -> int:
    whole = isinstance(window, int | np.integer) and not isinstance(window, bool)
    if not whole or window < 1:
        raise ValueError(f"window must be a whole number of at least 1, got {window!r}.")
    return int(window)
