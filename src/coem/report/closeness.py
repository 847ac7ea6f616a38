"""Which rows are in the middle of a group: cosines with its mean direction."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize


@dataclass(frozen=True)
class Space:
    """Rows as directions, one matrix a view: TF-IDF for counts, else standard scores."""

    rows: dict  # view -> unit rows; those of an empty row are zero

    @classmethod
    def of(cls, views):
        """Return the directions of rows."""
        return cls({name: _directions(m) for name, m in views.items() if m.shape[1]})

    def cosines(self, groups, n_groups):
        """Return the mean cosine over the views of every row and group."""
        values = [rows @ centres for rows, centres in self._pairs(groups, n_groups)]
        return np.mean(values, axis=0)

    def centrality(self, groups, n_groups):
        """Return the mean cosine over the views of every row and its own group.

        One group after the other, so that no rows by groups are needed.
        """
        total = np.zeros(len(groups))
        for rows, centres in self._pairs(groups, n_groups):
            for group in range(n_groups):
                inside = np.flatnonzero(groups == group)
                total[inside] += rows[inside] @ centres[:, group]
        return total / len(self.rows)

    def _pairs(self, groups, n_groups):
        """Yield the rows of every view, and the directions of its groups as columns."""
        members = sp.csr_array(
            (np.ones(len(groups)), (np.arange(len(groups)), groups)), (len(groups), n_groups)
        )
        for rows in self.rows.values():
            sums = rows.T @ members
            sums = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
            yield rows, normalize(sums, axis=0)


def _directions(matrix):
    """Return unit rows; a row that is not finite is zero."""
    if not sp.issparse(matrix):
        values = np.array(matrix, dtype=np.float64)
        there = np.isfinite(values).all(axis=1)
        if there.any():
            values -= values[there].mean(axis=0)
            spread = values[there].std(axis=0)
            values /= np.where(spread > 0, spread, 1.0)
        values[~there] = 0.0
        return normalize(values)
    rows = sp.csr_array(matrix, dtype=np.float64, copy=True)
    if rows.nnz and np.isfinite(rows.data).all() and rows.data.min() >= 0:
        # Counts: a common word says little, and its hundredth occurrence less than its second.
        n_rows, seen = rows.shape[0], np.bincount(rows.indices, minlength=rows.shape[1])
        rows.data = np.log1p(rows.data) * np.log((1 + n_rows) / (1 + seen))[rows.indices]
    rows.data = np.nan_to_num(rows.data)
    return normalize(rows)
