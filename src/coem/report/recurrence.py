"""Which groups come back in other runs, from new figures or those of an earlier story."""

from collections.abc import Mapping

import numpy as np

from coem.metrics.clusterings import curve_of

N_BINS = 10
OF_RUNS = ("summary", "n_others", "agreement", "mean_agreement")
OF_A_GROUP = ("trust", "recurs", "split", "merged", "scattered")
FATES = {"recurs", "split", "merged", "scattered"}


def recurrence(stability, reading):
    """Return what there is to tell of other runs, as plain data, or None.

    Parameters
    ----------
    stability : Stability, dict or None
        What `coem.selection.stability` found, or what this function once made of it.
    reading : Reading
        The model that it is about.
    """
    if stability is None:
        return None
    if not hasattr(stability, "estimator"):
        return _earlier(stability, reading)
    if not np.array_equal(stability.labels, reading.groups):
        raise ValueError(
            "stability is that of another model or of other rows; pass stability.estimator as the "
            "model"
        )
    return {
        "summary": stability.summary,
        "n_others": stability.n_others,
        "agreement": stability.agreement.tolist(),
        "mean_agreement": stability.mean_agreement,
        "table": [{key: row[key] for key in OF_A_GROUP} for row in stability.table],
        "reliability": _support(stability, reading),
    }


def _support(stability, reading):
    """Return the curve of the probabilities and what the other runs say, or None without them.

    `confidence`, `accuracy` and `rows` of bins of the probability, as in `Truth.reliability`, but
    the accuracy is the mean support; and the mean gap, `error`. Rows that are empty in every view
    are left out.
    """
    rows = np.flatnonzero(~reading.blank)
    if reading.proba is None or not len(stability.others) or not len(rows):
        return None
    sure, support = reading.proba[rows, reading.groups[rows]], stability.support[rows]
    curve = curve_of(sure, support, N_BINS)
    gaps = np.abs(curve.confidence - curve.accuracy) * curve.weight
    return {
        "confidence": curve.confidence.tolist(),
        "accuracy": curve.accuracy.tolist(),
        "rows": curve.weight.astype(int).tolist(),
        "error": float(np.nansum(gaps) / curve.weight.sum()),
    }


def _earlier(stability, reading):
    """Return the figures of an earlier story; raise unless they fit this model."""
    table = stability.get("table") if isinstance(stability, Mapping) else None
    whole = isinstance(table, list) and all(
        isinstance(row, Mapping) and row.keys() >= FATES for row in table
    )
    if not whole or not stability.keys() >= set(OF_RUNS):
        raise ValueError("stability is neither of coem.selection.stability nor of a story")
    if len(table) != reading.n_groups:
        raise ValueError(
            f"stability tells of {len(table)} groups, and the model has {reading.n_groups}"
        )
    # Records of older versions, without trust, have figures on other scales. They are left out.
    rows = [{key: row.get(key) for key in OF_A_GROUP} for row in table]
    return {**stability, "table": rows}
