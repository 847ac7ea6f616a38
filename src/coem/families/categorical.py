"""Categorical components: columns of integer codes, some perhaps missing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp

from coem.families.base import check_values, each_piece
from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import CSR, Array, Matrix, Rng, is_sparse

MAX_LEVELS = 2**24  # of one column; larger values are not codes


@dataclass(frozen=True)
class CategoricalStats(Stats):
    """Expected counts of each level of each column, side by side."""

    counts: Array  # (n_components, sum of levels)


@dataclass(frozen=True)
class Categorical(CountFamily[Array, CategoricalStats]):
    r"""Columns of codes 0, 1, 2, ..., independent given the component; NaN is missing.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of each level: a symmetric Dirichlet prior with parameter ``alpha + 1``.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.
    levels : tuple of int, optional
        Number of levels of each column; by default one more than the largest code in the data
        of the fit. A level that the fit has not seen counts as missing.

    Notes
    -----
    The parameters are log probabilities of shape (n_components, sum of levels), column after
    column: :math:`\log p(x \mid j) = \sum_c \log \theta_{j c x_c}` over the columns that are
    there. Codes are missing at random: a missing code carries no information.
    """

    levels: tuple[int, ...] | None = None

    allows_nan: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise unless the pseudo-count and the numbers of levels are valid."""
        super().__post_init__()
        if self.levels is not None and not all(int(n) == n and n > 0 for n in self.levels):
            raise ValueError(f"levels must be integers of 1 or more, got {self.levels!r}")

    def locate(self, feature: int) -> tuple[int, int]:
        """Return the column and the level of an entry of the parameters."""
        column = int(np.searchsorted(self._offsets(), feature, side="right")) - 1
        return column, int(feature - self._offsets()[column])

    def check(self, X: Matrix, view: str) -> Array:
        """Return the codes as a dense array, or raise an error that names the invalid one."""
        X = X.toarray() if is_sparse(X) else np.asarray(X)
        if self.levels is not None and len(self.levels) != X.shape[1]:
            raise ValueError(
                f"view {view!r}: {len(self.levels)} levels given for {X.shape[1]} columns"
            )
        if X.dtype.kind in "iu" and X.size and X.min() >= 0 and X.max() < MAX_LEVELS:
            return X
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
        """Return which rows have no known code."""
        codes = _codes(X)
        if self.levels is not None and _all_known(codes, self.levels):
            return np.zeros(len(codes), dtype=bool)
        missing = np.isnan(codes) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
        if self.levels is not None:
            missing |= np.asarray(np.asarray(self.levels) <= codes)
        return np.asarray(missing.all(axis=1))

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with the requested precision and the levels of the columns."""
        bound = super().bind_pieces(pieces, dtype)
        if self.levels is not None:
            return bound
        largest = np.max([*each_piece(_largest, pieces)], axis=0)
        return replace(bound, levels=tuple(int(m) + 1 for m in largest))

    def encode(self, X: Matrix) -> CSR:
        """Return one-hot CSR rows; missing and new codes are left out."""
        given, levels = _codes(X), np.asarray(self._levels())
        shape = X.shape[0], int(levels.sum())
        if _all_known(given, self._levels()):
            kind = np.int32 if given.size < 2**31 else np.int64
            every = (given + self._offsets()[:-1]).astype(kind).ravel()
            return _one_hot(every, X.shape[1] * np.arange(len(given) + 1, dtype=kind), shape)
        known = ~np.isnan(given) if X.dtype.kind == "f" else np.ones(X.shape, dtype=bool)
        codes = np.where(known, given, 0).astype(np.int64)
        known &= codes < levels
        places = (codes + self._offsets()[:-1])[known]
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return _one_hot(places, indptr, shape)

    def example(self, rng: Rng) -> Array:
        """Return random codes; some are missing, and one row is missing as a whole."""
        levels = (2, 3, 4) if self.levels is None else self.levels
        rows = rng.integers(levels, size=(120, len(levels))).astype(np.float64)
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[-1] = np.nan
        return rows

    def log_prob(self, X: CSR, theta: Array) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        if len(self._levels()) == 1 and X.nnz == X.shape[0]:  # nothing to add up
            return np.take(np.asarray(theta.T, dtype=np.float64, order="C"), X.indices, axis=0)
        return counts.scores(X, theta)

    def stats(self, X: CSR, resp: Array) -> CategoricalStats:
        """Return the expected counts of the levels."""
        return CategoricalStats(counts.accumulate(X, resp))

    def add_stats(
        self, total: CategoricalStats, X: CSR, resp: Array, theta: Array | None
    ) -> CategoricalStats:
        """Return ``total + stats(X, resp)`` without a table for these rows."""
        return CategoricalStats(counts.accumulate(X, resp, total.counts))

    def estimate(self, stats: CategoricalStats) -> Array:
        """Return the posterior mode, column by column."""
        k = stats.counts.shape[0]
        table = counts.new_table(k, stats.counts.shape[1], self.precision)
        for lo, hi in self._columns():
            table[:, lo:hi] = counts.log_table(
                np.ascontiguousarray(stats.counts[:, lo:hi]), self.alpha, np.float64
            )
        return table

    def log_prior(self, theta: Array) -> float:
        """Return the log density of the Dirichlet priors, up to a constant."""
        return self.alpha * counts.table_sum(theta) if self.alpha else 0.0

    def start(self, pooled: CategoricalStats, n_components: int, rng: Rng) -> Array:
        """Return random probabilities near those of all rows; frequent levels vary less."""
        share = np.maximum(pooled.counts / n_components, 1e-3)
        drawn = rng.gamma(share, size=(n_components, share.shape[1]))
        return self.estimate(CategoricalStats(drawn))

    def sample(self, theta: Array, labels: Array, rng: Rng) -> Array:
        """Return rows of codes, each drawn from its component."""
        drawn = np.empty((len(labels), len(self._levels())))
        for c, (lo, hi) in enumerate(self._columns()):
            total = np.exp(np.asarray(theta[:, lo:hi], dtype=np.float64)).cumsum(axis=1)[labels]
            drawn[:, c] = (rng.random((len(labels), 1)) * total[:, -1:] > total).sum(axis=1)
        return drawn

    def feature_probs(self, theta: Array) -> Array:
        """Return p(level | component), column after column."""
        return np.exp(np.asarray(theta, dtype=np.float64))

    def terms(self, X: CSR, theta: Array) -> tuple[Array, Array, Array]:
        """Return the log probability of the level of the row in each column."""
        columns = np.searchsorted(self._offsets(), X.indices, side="right") - 1
        return columns, np.asarray(theta[:, X.indices], np.float64).T, np.zeros(theta.shape[0])

    def n_parameters(self, theta: Array) -> int:
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


def _all_known(codes: Array, levels: tuple[int, ...]) -> bool:
    """Return True if all codes are integers below their levels; none is missing then."""
    return codes.dtype.kind in "iu" and codes.size > 0 and bool((codes.max(axis=0) < levels).all())


def _one_hot(places: Array, indptr: Array, shape: tuple[int, int]) -> CSR:
    """Return rows with ones at `places`."""
    ones = np.ones(len(places), dtype=np.float32)
    rows: CSR = sp.csr_matrix((ones, places, indptr), shape=shape)
    return rows


def _largest(X: Matrix) -> Array:
    """Return the largest code of every column."""
    return np.asarray(np.fmax.reduce(_codes(X), axis=0, initial=0))


def _codes(X: Matrix) -> Array:
    """Return rows that `Categorical.check` has returned, for the type checker: they are dense."""
    return cast(Array, X)
