"""Categorical components: columns of integer codes, some perhaps missing."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from coem.families.base import check_values
from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta

MAX_LEVELS = 2**24  # of one column: beyond this they are no codes


@dataclass(frozen=True)
class CategoricalStats(Stats):
    """Expected counts of every level of every column, side by side."""

    counts: Array  # (n_components, sum of levels)


@dataclass(frozen=True)
class Categorical(CountFamily):
    r"""Columns of codes 0, 1, 2, ..., independent given the component; NaN is missing.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of every level: a symmetric Dirichlet prior with parameter ``alpha + 1``.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.
    levels : tuple of int, optional
        Number of levels of every column; by default one more than its largest code in the data
        that are fitted. A level that was not there then is taken as missing.

    Notes
    -----
    The parameters are log probabilities of shape (n_components, sum of levels), column after
    column: :math:`\log p(x \mid j) = \sum_c \log \theta_{j c x_c}` over the columns that are
    there. A missing code is missing at random: it says nothing.
    """

    levels: tuple[int, ...] | None = None

    allows_nan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse pseudo-counts and numbers of levels that make no sense."""
        super().__post_init__()
        if self.levels is not None and not all(int(n) == n and n > 0 for n in self.levels):
            raise ValueError(f"levels must be integers of 1 or more, got {self.levels!r}")

    def locate(self, feature: int) -> tuple[int, int]:
        """Return the column and the level of a place in the parameters."""
        column = int(np.searchsorted(self._offsets(), feature, side="right")) - 1
        return column, int(feature - self._offsets()[column])

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return the codes as a dense array, or say which is not one."""
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        if self.levels is not None and len(self.levels) != X.shape[1]:
            raise ValueError(
                f"view {view!r}: {len(self.levels)} levels given for {X.shape[1]} columns"
            )
        known = np.where(np.isnan(X), 0, X) if X.dtype.kind == "f" else X
        check_values(known, view, nonnegative=False)
        bad = np.argwhere((known < 0) | (known != np.floor(known)) | (known >= MAX_LEVELS))
        if len(bad):
            row, column = bad[0]
            raise ValueError(
                f"view {view!r}, row {row}, column {column}: {X[row, column]} is not an integer "
                "code of 0, 1, 2, ... below 2**24; encode the column (OrdinalEncoder) first"
            )
        return X

    def empty(self, X: Matrix) -> Array:
        """Return which rows have no code that is known."""
        missing = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
        if self.levels is not None:
            missing |= np.asarray(np.asarray(self.levels) <= X)
        return np.asarray(missing.all(axis=1))

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family at the precision asked for, knowing the levels of the columns."""
        bound = super().bind(X, dtype)
        if self.levels is not None:
            return bound
        largest = np.where(np.isnan(X), -1, X).max(axis=0) if X.dtype.kind == "f" else X.max(axis=0)
        return replace(bound, levels=tuple(int(m) + 1 for m in np.maximum(largest, 0)))

    def encode(self, X: Matrix) -> Matrix:
        """Return one-hot CSR rows, without the codes that are missing or new."""
        levels = np.asarray(self._levels())
        known = ~np.isnan(X) if X.dtype.kind == "f" else np.ones(X.shape, dtype=bool)
        codes = np.where(known, X, 0).astype(np.int64)
        known &= codes < levels
        places = (codes + self._offsets()[:-1])[known]
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        ones = np.ones(len(places), dtype=np.float32)
        return sp.csr_matrix((ones, places, indptr), shape=(len(X), int(levels.sum())))

    def example(self, rng: Rng) -> Matrix:
        """Return random codes, some of them missing, and one row missing as a whole."""
        levels = (2, 3, 4) if self.levels is None else self.levels
        rows = rng.integers(levels, size=(120, len(levels))).astype(np.float64)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[-1] = np.nan
        return rows

    def log_prob(self, X: Matrix, theta: Theta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return counts.scores(X, theta)

    def stats(self, X: Matrix, resp: Array) -> CategoricalStats:
        """Return the expected counts of the levels."""
        return CategoricalStats(counts.accumulate(X, resp))

    def estimate(self, stats: CategoricalStats) -> Theta:
        """Return the posterior mode, column by column."""
        k = stats.counts.shape[0]
        table = counts.new_table(k, stats.counts.shape[1], self.precision)
        for lo, hi in self._columns():
            table[:, lo:hi] = counts.log_table(
                np.ascontiguousarray(stats.counts[:, lo:hi]), self.alpha, np.float64
            )
        return table

    def log_prior(self, theta: Theta) -> float:
        """Return the log density of the Dirichlet priors, up to a constant."""
        return self.alpha * counts.table_sum(theta) if self.alpha else 0.0

    def start(self, pooled: CategoricalStats, n_components: int, rng: Rng) -> Theta:
        """Return probabilities drawn about the pooled ones: frequent levels vary less."""
        share = np.maximum(pooled.counts / n_components, 1e-3)
        drawn = rng.gamma(share, size=(n_components, share.shape[1]))
        return self.estimate(CategoricalStats(drawn))

    def sample(self, theta: Theta, labels: Array, rng: Rng) -> Matrix:
        """Return rows of codes, each drawn from its component."""
        drawn = np.empty((len(labels), len(self._levels())))
        for c, (lo, hi) in enumerate(self._columns()):
            total = np.exp(np.asarray(theta[:, lo:hi], dtype=np.float64)).cumsum(axis=1)[labels]
            drawn[:, c] = (rng.random((len(labels), 1)) * total[:, -1:] > total).sum(axis=1)
        return drawn

    def feature_probs(self, theta: Theta) -> Array:
        """Return p(level | component), column after column."""
        return np.exp(np.asarray(theta, dtype=np.float64))

    def terms(self, X: Matrix, theta: Theta) -> tuple[Array, Array, Array]:
        """Return the log probability of the row's level in every column."""
        columns = np.searchsorted(self._offsets(), X.indices, side="right") - 1
        return columns, np.asarray(theta[:, X.indices], np.float64).T, np.zeros(theta.shape[0])

    def n_parameters(self, theta: Theta) -> int:
        """Return the number of free probabilities."""
        return int(theta.shape[0] * (sum(self._levels()) - len(self._levels())))

    def _levels(self) -> tuple[int, ...]:
        if self.levels is None:
            raise ValueError("the levels of a Categorical are not known yet; bind it to data first")
        return self.levels

    def _offsets(self) -> Array:
        return np.concatenate([[0], np.cumsum(self._levels())])

    def _columns(self) -> list[tuple[int, int]]:
        offsets = self._offsets().tolist()
        return list(pairwise(offsets))
