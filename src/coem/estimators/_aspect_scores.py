"""Scores of aspect models: the log likelihood of counts, of known rows and of new ones."""

import numpy as np
import scipy.sparse as sp

from coem.kernels.aspect import Pairs, as_table
from coem.latent.aspect import AspectTheta, Tables, fold_in, log_likelihood
from coem.typing import CSR, Array, Matrix

FOLD_IN = 200, 1e-6  # most rounds for new rows, and by how much their shares may still change


def per_count(pairs: Pairs, theta: Tables) -> float:
    """Return the log likelihood per count; 0 without counts."""
    return log_likelihood(pairs, theta) / pairs.total if pairs.total > 0 else 0.0


def completion(X: Matrix, theta: AspectTheta) -> float:
    """Return the mean of log p(y | x) over the counts of new rows.

    The non-zeros of each row are dealt to two halves. The row is folded in on each half and scored
    on the other, so that no count is scored by shares that depend on it. The shares come from few
    counts. To these, one count is added that is shared out by p(h): otherwise, a component that is
    absent from one half would make the counts of the other half impossible.
    """
    counts = sp.csr_matrix(X, dtype=np.float64, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    odd = (np.arange(counts.nnz) - np.repeat(counts.indptr[:-1], np.diff(counts.indptr))) % 2 > 0
    total = 0.0
    for known in (odd, ~odd):
        half = _some(counts, known, theta)
        mass = np.asarray(half.matrix.sum(axis=1), np.float64).reshape(-1, 1) * half.unit
        shares = (fold_in(half, theta, *FOLD_IN) * mass + theta.weights) / (mass + 1)
        rest = _some(counts, ~known, theta)
        # p(y | x) is p(x, y) of a model with p(h) = 1 for every h and the shares for p(x|h).
        table = as_table(shares.T, theta.y.dtype)
        total += log_likelihood(rest, AspectTheta(np.ones(shares.shape[1]), table, theta.y))
    whole = float(counts.sum())
    return total / whole if whole > 0 else 0.0


def _some(counts: CSR, chosen: Array, theta: AspectTheta) -> Pairs:
    """Return some of the non-zeros of a CSR matrix."""
    kept = counts.copy()
    kept.data = counts.data * chosen
    return Pairs.of(kept, None, theta.y.dtype)
