"""Multinomial components: bags of words, links, any counts."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta


@dataclass(frozen=True)
class MultinomialStats(Stats):
    """Expected counts."""

    counts: Array  # (n_components, n_features)


@dataclass(frozen=True)
class Multinomial(CountFamily):
    r"""Counts drawn word by word from one distribution per component.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of every feature in every component: a symmetric Dirichlet prior with
        parameter ``alpha + 1``, whose mode is Laplace's estimate for 1.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.
    length : float, optional
        Mean row sum of the rows that `sample` draws. Set by the estimators from the data.

    Notes
    -----
    The parameters are the log probabilities, of shape (n_components, n_features). The likelihood
    is that of the words in their order, Bickel & Scheffer (2005), Eq. 20, without the factorials
    and the prior of the length, which are the same for every component:
    :math:`\log p(x \mid j) = \sum_w x_w \log \theta_{jw}`. The M step is their Eq. 22 with
    pseudo-counts, :math:`\theta_{jw} \propto \alpha + \sum_i r_{ij} x_{iw}`. With ``alpha=0`` the
    logarithm of a zero is taken to be about -708, so that no result is infinite.
    """

    length: float | None = None

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family at the precision asked for, knowing how long rows are."""
        total = X.data.sum() if sp.issparse(X) else X.sum()  # X.sum() may merge duplicates in place
        bound = super().bind(X, dtype)
        if self.length is not None:
            return bound
        return replace(bound, length=float(total / X.shape[0]))

    def log_prob(self, X: Matrix, theta: Theta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return counts.scores(X, theta)

    def stats(self, X: Matrix, resp: Array) -> MultinomialStats:
        """Return the expected counts."""
        return MultinomialStats(counts.accumulate(X, resp))

    def estimate(self, stats: MultinomialStats) -> Theta:
        """Return the log of the normalised expected counts and pseudo-counts."""
        return counts.log_table(stats.counts, self.alpha, self.precision)

    def maximise(self, X: Matrix, resp: Array) -> Theta:
        """Return ``estimate(stats(X, resp))`` without ever having all the counts at once."""
        return counts.maximise(X, resp, self.alpha, self.precision)

    def log_prob_without(self, X: Matrix, own: Array, stats: MultinomialStats) -> Array:
        """Return log p(x | component) of rows, each less its own counts: those of its words."""
        X = sp.csr_matrix(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        totals = stats.counts.sum(axis=1) + self.alpha * stats.counts.shape[1]
        out = np.empty(own.shape)
        for i, share in enumerate(own):
            piece = slice(X.indptr[i], X.indptr[i + 1])
            words, times = X.indices[piece], X.data[piece]
            there = stats.counts[:, words] + self.alpha - np.outer(share, times)
            # What is left of a difference of equal sums is rounding.
            there = np.maximum(there, max(self.alpha, np.finfo(np.float64).tiny))
            left = np.maximum(totals - share * times.sum(), np.finfo(np.float64).tiny)
            logs = np.maximum(np.log(there) - np.log(left)[:, np.newaxis], counts.LOG_ZERO)
            out[i] = logs @ times
        return out

    def log_prior(self, theta: Theta) -> float:
        """Return the log density of the Dirichlet prior, up to a constant."""
        return self.alpha * counts.table_sum(theta) if self.alpha else 0.0

    def start(self, pooled: MultinomialStats, n_components: int, rng: Rng) -> Theta:
        """Return distributions drawn about the pooled one: frequent features vary less.

        The draw is what an M step would give on rows dealt out at random: the expected count of a
        feature in a component has a relative spread of one over the root of that count.
        """
        share = np.maximum(pooled.counts[0] / n_components, 1e-3)
        theta = counts.new_table(n_components, share.size, self.precision)
        for row in theta:  # one by one: all at once would take twice the memory of a table
            row[:] = counts.log_table(rng.standard_gamma(share)[np.newaxis], self.alpha, float)[0]
        return theta

    def sample(self, theta: Theta, labels: Array, rng: Rng) -> Matrix:
        """Return rows of Poisson length, each drawn from its component."""
        lengths = rng.poisson(100.0 if self.length is None else self.length, size=len(labels))
        prob = np.exp(np.asarray(theta, dtype=np.float64))
        prob /= prob.sum(axis=1, keepdims=True)
        rows = [_draw(n, prob[j], rng) for n, j in zip(lengths, labels, strict=True)]
        words = np.concatenate([row[0] for row in rows])
        indptr = np.cumsum([0, *(len(row[0]) for row in rows)])
        counted = np.concatenate([row[1] for row in rows]).astype(np.float64)
        return sp.csr_matrix((counted, words, indptr), shape=(len(labels), prob.shape[1]))

    def feature_probs(self, theta: Theta) -> Array:
        """Return p(feature | component)."""
        return np.exp(np.asarray(theta, dtype=np.float64))

    def terms(self, X: Matrix, theta: Theta) -> tuple[Array, Array, Array]:
        """Return count times log probability for every feature of the row."""
        words = np.asarray(theta[:, X.indices], dtype=np.float64).T
        return X.indices, X.data[:, np.newaxis] * words, np.zeros(theta.shape[0])

    def n_parameters(self, theta: Theta) -> int:
        """Return the number of free probabilities."""
        k, n_features = theta.shape
        return int(k * (n_features - 1))


def _draw(length: int, prob: Array, rng: Rng) -> tuple[Array, Array]:
    """Return the words of a row and how often each is there, in the cheaper of two ways."""
    if length > len(prob):
        drawn = rng.multinomial(length, prob)
        return np.flatnonzero(drawn), drawn[drawn > 0]
    words, times = np.unique(rng.choice(len(prob), size=length, p=prob), return_counts=True)
    return words, times
