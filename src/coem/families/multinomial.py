"""Multinomial components: bags of words, links, any counts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coem.families.base import each_piece
from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import CSR, Array, Matrix, Resp, Rng, is_sparse


@dataclass(frozen=True)
class MultinomialStats(Stats):
    """Expected counts."""

    counts: Array  # (n_components, n_features)


@dataclass(frozen=True)
class Multinomial(CountFamily[Array, MultinomialStats]):
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

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with the requested precision and the mean length of the rows."""
        bound = super().bind_pieces(pieces, dtype)
        if self.length is not None:
            return bound
        total, n_rows = 0.0, 0
        for own, n_own in each_piece(_total, pieces):
            total, n_rows = total + own, n_rows + n_own
        return replace(bound, length=float(total / n_rows))

    def log_prob(self, X: CSR, theta: Array) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return counts.scores(X, theta)

    def score_table(self, theta: Array) -> Array:
        """Return the parameters: they are such a table."""
        return theta

    def stats(self, X: CSR, resp: Resp) -> MultinomialStats:
        """Return the expected counts."""
        return MultinomialStats(counts.accumulate(X, resp))

    def add_stats(
        self, total: MultinomialStats, X: CSR, resp: Resp, theta: Array | None
    ) -> MultinomialStats:
        """Return ``total + stats(X, resp)`` without a table for these rows."""
        return MultinomialStats(counts.accumulate(X, resp, total.counts))

    def estimate(self, stats: MultinomialStats) -> Array:
        """Return the log of the normalised expected counts and pseudo-counts."""
        return counts.log_table(stats.counts, self.alpha, self.precision)

    def maximise(self, X: CSR, resp: Resp, theta: Array | None = None) -> Array:
        """Return ``estimate(stats(X, resp))`` without a table of all counts."""
        return counts.maximise(X, resp, self.alpha, self.precision)

    def log_prob_without(
        self, X: CSR, own: Array, stats: MultinomialStats, theta: Array | None = None
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

    def log_prior(self, theta: Array) -> float:
        """Return the log density of the Dirichlet prior, up to a constant."""
        return self.alpha * counts.table_sum(theta) if self.alpha else 0.0

    def start(self, pooled: MultinomialStats, n_components: int, rng: Rng) -> Array:
        """Return random distributions near that of all rows; frequent features vary less.

        They are like those of an M step on rows that are assigned at random: the expected count of
        a feature in a component has a relative spread of one over the root of that count.
        """
        share = np.maximum(pooled.counts[0] / n_components, 1e-3)
        theta = counts.new_table(n_components, share.size, self.precision)
        for row in theta:  # all rows at once would take twice the memory of a table
            row[:] = counts.log_table(rng.standard_gamma(share)[np.newaxis], self.alpha, float)[0]
        return theta

    def sample(self, theta: Array, labels: Array, rng: Rng) -> CSR:
        """Return rows of Poisson length, each drawn from its component."""
        lengths = rng.poisson(100.0 if self.length is None else self.length, size=len(labels))
        prob = np.exp(np.asarray(theta, dtype=np.float64))
        prob /= prob.sum(axis=1, keepdims=True)
        rows = [_draw(n, prob[j], rng) for n, j in zip(lengths, labels, strict=True)]
        words = np.concatenate([row[0] for row in rows])
        indptr = np.cumsum([0, *(len(row[0]) for row in rows)])
        counted = np.concatenate([row[1] for row in rows]).astype(np.float64)
        shape = len(labels), prob.shape[1]
        drawn: CSR = sp.csr_matrix((counted, words, indptr), shape=shape)
        return drawn

    def feature_probs(self, theta: Array) -> Array:
        """Return p(feature | component)."""
        return np.exp(np.asarray(theta, dtype=np.float64))

    def terms(self, X: CSR, theta: Array) -> tuple[Array, Array, Array]:
        """Return count times log probability for each feature of the row."""
        words = np.asarray(theta[:, X.indices], dtype=np.float64).T
        return X.indices, X.data[:, np.newaxis] * words, np.zeros(theta.shape[0])

    def n_parameters(self, theta: Array) -> int:
        """Return the number of free probabilities."""
        k, n_features = theta.shape
        return int(k * (n_features - 1))


def _total(X: Matrix) -> tuple[float, int]:
    """Return the sum of all counts, and the number of rows."""
    return (X.data if is_sparse(X) else X).sum(), X.shape[0]  # X.sum() may merge duplicates


def _draw(length: int, prob: Array, rng: Rng) -> tuple[Array, Array]:
    """Return the words of a row and their counts, by the faster of two ways."""
    if length > len(prob):
        drawn = rng.multinomial(length, prob)
        return np.flatnonzero(drawn), drawn[drawn > 0]
    words, times = np.unique(rng.choice(len(prob), size=length, p=prob), return_counts=True)
    return words, times
