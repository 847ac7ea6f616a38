"""Multinomial components: bags of words, links, any counts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from coem.families.base import each_piece
from coem.families.counts import CountFamily
from coem.kernels import counts, sparse_tables
from coem.kernels.sparse_sums import SparseSums, ends
from coem.kernels.sparse_tables import DENSE_CELLS, SparseTable
from coem.stats import Stats
from coem.typing import CSR, Array, Matrix, Resp, Rng, is_sparse

Table: TypeAlias = Any
"""Log probabilities: a table, or a `SparseTable`, which takes the same indices."""


@dataclass(frozen=True)
class MultinomialStats(Stats):
    """Expected counts."""

    counts: Any  # (n_components, n_features), an array or `SparseSums`


@dataclass(frozen=True)
class Multinomial(CountFamily[Table, MultinomialStats]):
    r"""Counts of words; each component draws its words from one distribution.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of each feature in each component: a symmetric Dirichlet prior with
        parameter ``alpha + 1``. Its mode for ``alpha=1`` is Laplace's estimate.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.
    length : float, optional
        Mean row sum of the rows that `sample` draws. Set by the estimators from the data.
    dense_cells : float, optional
        The most cells, components times features, that parameters have as a dense table; by default
        2**28, 1 GB in single precision. Larger tables list the words of each component: all words
        that it has not seen have the same probability. The densities are the same up to rounding.
        Expected counts below 1e-6 `alpha` then count as zero, because float32 does not show them.

    Notes
    -----
    The parameters are the log probabilities, of shape (n_components, n_features). The likelihood
    is that of the words in their order, Bickel & Scheffer (2005), Eq. 20. It leaves out the
    factorials and the prior of the length, which are the same for all components:
    :math:`\log p(x \mid j) = \sum_w x_w \log \theta_{jw}`. The M step is their Eq. 22 with
    pseudo-counts, :math:`\theta_{jw} \propto \alpha + \sum_i r_{ij} x_{iw}`. With ``alpha=0`` the
    logarithm of zero counts as about -708, so that no result is infinite.
    """

    length: float | None = None
    dense_cells: float | None = None

    def __post_init__(self) -> None:
        """Raise unless the hyper-parameters are numbers of 0 or more."""
        super().__post_init__()
        most = self.dense_cells
        if most is not None and not (isinstance(most, Real) and float(most) >= 0):
            raise ValueError(f"dense_cells must be a number of 0 or more, got {most!r}")

    def lists_words(self, n_components: int, n_features: int) -> bool:
        """Return whether a table has so many cells that it lists the words of components."""
        most = DENSE_CELLS if self.dense_cells is None else self.dense_cells
        return n_components * n_features > most

    @property
    def dense(self) -> Self:
        """The same family with dense tables, whatever their size."""
        return self if self.dense_cells == np.inf else replace(self, dense_cells=np.inf)

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with the requested precision and the mean length of the rows."""
        bound = super().bind_pieces(pieces, dtype)
        if self.length is not None:
            return bound
        total, n_rows = 0.0, 0
        for own, n_own in each_piece(_total, pieces):
            total, n_rows = total + own, n_rows + n_own
        return replace(bound, length=float(total / n_rows))

    def log_prob(self, X: CSR, theta: Table) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return theta.scores(X) if _is_sparse(theta) else counts.scores(X, theta)

    def score_table(self, theta: Table) -> Table:
        """Return the parameters: they are such a table."""
        return theta

    def stats(self, X: CSR, resp: Resp) -> MultinomialStats:
        """Return the expected counts."""
        if self.lists_words(resp.shape[1], X.shape[1]):
            return MultinomialStats(SparseSums.of(X, resp))
        return MultinomialStats(counts.accumulate(X, resp))

    def add_stats(
        self, total: MultinomialStats, X: CSR, resp: Resp, theta: Table | None
    ) -> MultinomialStats:
        """Return ``total + stats(X, resp)``; a dense table needs no other for these rows."""
        if _is_sparse(total.counts):
            return total + self.stats(X, resp)
        return MultinomialStats(counts.accumulate(X, resp, total.counts))

    def estimate(self, stats: MultinomialStats) -> Table:
        """Return the log of the normalised expected counts and pseudo-counts."""
        log_table = sparse_tables.log_table if _is_sparse(stats.counts) else counts.log_table
        return log_table(stats.counts, self.alpha, self.precision)

    def maximise(self, X: CSR, resp: Resp, theta: Table | None = None) -> Table:
        """Return ``estimate(stats(X, resp))`` without a table of all counts."""
        if self.lists_words(resp.shape[1], X.shape[1]):
            return self.estimate(self.stats(X, resp))
        return counts.maximise(X, resp, self.alpha, self.precision)

    def log_prob_without(
        self, X: CSR, own: Array, stats: MultinomialStats, theta: Table | None = None
    ) -> Array:
        """Return log p(x | component) of rows, each under parameters without its own counts."""
        X = sp.csr_matrix(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        totals = stats.counts.sum(axis=1) + self.alpha * stats.counts.shape[1]
        out = np.empty(own.shape)
        for i, share in enumerate(own):
            piece = slice(X.indptr[i], X.indptr[i + 1])
            words, times = X.indices[piece], X.data[piece]
            there = stats.counts[:, words] + self.alpha - np.outer(share, times)
            # The difference of two equal sums is a rounding error instead of 0.
            there = np.maximum(there, max(self.alpha, np.finfo(np.float64).tiny))
            left = np.maximum(totals - share * times.sum(), np.finfo(np.float64).tiny)
            logs = np.maximum(np.log(there) - np.log(left)[:, np.newaxis], counts.LOG_ZERO)
            out[i] = logs @ times
        return out

    def log_prior(self, theta: Table) -> float:
        """Return the log density of the Dirichlet prior, up to a constant."""
        if not self.alpha:
            return 0.0
        return self.alpha * (theta.total() if _is_sparse(theta) else counts.table_sum(theta))

    def start(self, pooled: MultinomialStats, n_components: int, rng: Rng) -> Table:
        """Return random distributions near that of all rows; frequent features vary less.

        They are like those of an M step on rows that are assigned at random: the expected count of
        a feature in a component has a relative spread of one over the root of that count.
        """
        total = np.asarray(pooled.counts)[0]
        if self.lists_words(n_components, len(total)):
            return self.estimate(MultinomialStats(_random_sums(total, n_components, rng)))
        share = np.maximum(total / n_components, 1e-3)
        theta = counts.new_table(n_components, share.size, self.precision)
        for row in theta:  # all rows at once would take twice the memory of a table
            row[:] = counts.log_table(rng.standard_gamma(share)[np.newaxis], self.alpha, float)[0]
        return theta

    def sample(self, theta: Table, labels: Array, rng: Rng) -> CSR:
        """Return rows of Poisson length, each drawn from its component."""
        lengths = rng.poisson(100.0 if self.length is None else self.length, size=len(labels))
        if _is_sparse(theta):
            return _sample_sparse(theta, labels, lengths, rng)
        prob = np.exp(np.asarray(theta, dtype=np.float64))
        prob /= prob.sum(axis=1, keepdims=True)
        rows = [_draw(n, prob[j], rng) for n, j in zip(lengths, labels, strict=True)]
        words = np.concatenate([row[0] for row in rows])
        indptr = np.cumsum([0, *(len(row[0]) for row in rows)])
        counted = np.concatenate([row[1] for row in rows]).astype(np.float64)
        shape = len(labels), prob.shape[1]
        drawn: CSR = sp.csr_matrix((counted, words, indptr), shape=shape)
        return drawn

    def feature_probs(self, theta: Table) -> Table:
        """Return p(feature | component)."""
        return theta.exp() if _is_sparse(theta) else np.exp(np.asarray(theta, dtype=np.float64))

    def terms(self, X: CSR, theta: Table) -> tuple[Array, Array, Array]:
        """Return count times log probability for each feature of the row."""
        words = np.asarray(theta[:, X.indices], dtype=np.float64).T
        return X.indices, X.data[:, np.newaxis] * words, np.zeros(theta.shape[0])

    def n_parameters(self, theta: Table) -> int:
        """Return the number of free probabilities."""
        k, n_features = theta.shape
        return int(k * (n_features - 1))


def _total(X: Matrix) -> tuple[float, int]:
    """Return the sum of all counts, and the number of rows."""
    return (X.data if is_sparse(X) else X).sum(), X.shape[0]  # X.sum() may merge duplicates


def _is_sparse(values: Any) -> bool:
    return isinstance(values, SparseTable | SparseSums)


def _random_sums(total: Array, k: int, rng: Rng) -> SparseSums:
    """Return the counts of each feature divided among the components at random.

    The counts of a frequent feature are Gamma numbers, as those of a dense start. Those of a rare
    one are a Poisson number of ones, each given to a component.
    """
    often = np.flatnonzero(total >= k)
    rare = np.flatnonzero((total > 0) & (total < k))
    words = np.repeat(rare, rng.poisson(total[rare]))
    owners = rng.integers(k, size=len(words))
    few = sp.csr_matrix((np.ones(len(words)), (words, owners)), shape=(len(total), k))
    lengths = np.diff(few.indptr)
    lengths[often] = k
    offsets = ends(lengths)
    components, sums = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    for w in often:  # all at once would take several times the memory of the result
        own = slice(offsets[w], offsets[w + 1])
        components[own], sums[own] = np.arange(k), rng.standard_gamma(total[w] / k, size=k)
    others = np.repeat(total < k, lengths)
    components[others], sums[others] = few.indices, few.data
    return SparseSums(offsets, components, sums, k)


def _sample_sparse(theta: SparseTable, labels: Array, lengths: Array, rng: Rng) -> CSR:
    """Return rows of given lengths; the probabilities of one component exist at a time."""
    words, offsets = np.empty(lengths.sum(), np.int64), np.cumsum([0, *lengths])
    for j in np.unique(labels):
        edges = np.cumsum(np.exp(theta[int(j)].astype(np.float64)))
        for i in np.flatnonzero(labels == j):
            drawn = rng.random(lengths[i]) * edges[-1]
            words[offsets[i] : offsets[i + 1]] = np.searchsorted(edges, drawn, side="right")
    shape = len(labels), theta.shape[1]
    rows: CSR = sp.csr_matrix((np.ones(len(words)), words, offsets), shape=shape)
    rows.sum_duplicates()
    return rows


def _draw(length: int, prob: Array, rng: Rng) -> tuple[Array, Array]:
    """Return the words of a row and their counts, by the faster of two ways."""
    if length > len(prob):
        drawn = rng.multinomial(length, prob)
        return np.flatnonzero(drawn), drawn[drawn > 0]
    words, times = np.unique(rng.choice(len(prob), size=length, p=prob), return_counts=True)
    return words, times
