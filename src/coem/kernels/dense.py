"""Dense rows: how close they are to means, and the sums of the rows of each label."""

import numpy as np

from coem.kernels import _compiled
from coem.typing import Array


def closeness(rows: Array, means: Array, constant: float, out: Array) -> None:
    """Set `out` (n, k) to a constant minus half the squared distances of rows from means.

    `rows` (n, d) and `means` (k, d) are used in double precision.
    """
    rows, means = (np.ascontiguousarray(part, dtype=np.float64) for part in (rows, means))
    _compiled.closeness(rows, means, constant, out)


def sum_by_label(rows: Array, labels: Array, weight: Array | None, n_labels: int) -> Array:
    """Return the weighted sums (n_labels, d) of the rows (n, d) of each label.

    `labels` (n,) are int32 and start at 0. `weight` has shape (n,); None stands for ones.
    """
    sums = np.zeros((n_labels, rows.shape[1]))
    _compiled.sum_by_label(
        np.ascontiguousarray(rows, dtype=np.float64),
        np.ascontiguousarray(labels),
        None if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
        sums,
    )
    return sums
