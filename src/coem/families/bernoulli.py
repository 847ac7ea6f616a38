"""Bernoulli components: presence or absence of each feature."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import CSR, Array, Matrix, Rng

MAX_LOG_ODDS = 35.0  # one in 10^15, for what never or always happened; a double can still add it


@dataclass(frozen=True)
class BernoulliStats(Stats):
    """Expected numbers of rows with each feature, and of rows."""

    counts: Array  # (n_components, n_features)
    mass: Array  # (n_components,)


class BernoulliTheta(NamedTuple):
    """Log odds of each feature, and the log probability of a row without any feature."""

    log_odds: Array  # (n_components, n_features)
    log_none: Array  # (n_components,)


@dataclass(frozen=True)
class Bernoulli(CountFamily[BernoulliTheta, BernoulliStats]):
    r"""Presence or absence of each feature, independent of the other features.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of presence and of absence: a Beta prior with both parameters ``alpha + 1``.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.

    Notes
    -----
    Any non-zero value counts as presence. The parameters are log odds, which are precise for
    probabilities near one and near zero:
    :math:`\log p(x \mid j) =
    \sum_{w \in x} \log\frac{p_{jw}}{1 - p_{jw}} + \sum_w \log(1 - p_{jw})`
    with :math:`p_{jw} = (\alpha + \sum_i r_{ij} x_{iw}) / (2\alpha + \sum_i r_{ij})`.
    """

    theta_type: ClassVar[Any] = BernoulliTheta

    def encode(self, X: Matrix) -> CSR:
        """Return CSR rows of ones."""
        rows = super().encode(X)
        if rows.data.size == 0 or ((rows.data == 1).all() and rows.has_canonical_format):
            return rows
        rows = rows.copy()  # do not change the caller's matrix
        rows.sum_duplicates()
        rows.eliminate_zeros()
        rows.data = np.ones(rows.data.size, dtype=np.float32)
        return rows

    def log_prob(self, X: CSR, theta: BernoulliTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return counts.scores(X, theta.log_odds) + theta.log_none

    def stats(self, X: CSR, resp: Array) -> BernoulliStats:
        """Return the expected numbers of rows with each feature, and of rows."""
        return BernoulliStats(counts.accumulate(X, resp), resp.sum(axis=0, dtype=np.float64))

    def add_stats(
        self, total: BernoulliStats, X: CSR, resp: Array, theta: BernoulliTheta | None
    ) -> BernoulliStats:
        """Return ``total + stats(X, resp)`` without a table for these rows."""
        mass = total.mass + resp.sum(axis=0, dtype=np.float64)
        return BernoulliStats(counts.accumulate(X, resp, total.counts), mass)

    def estimate(self, stats: BernoulliStats) -> BernoulliTheta:
        """Return the posterior mode of the log odds."""
        return self._theta(stats.counts + self.alpha, _absent(stats) + self.alpha)

    def log_prior(self, theta: BernoulliTheta) -> float:
        """Return the log density of the Beta prior, up to a constant."""
        if not self.alpha:
            return 0.0
        # log p + log(1 - p) = log odds + 2 log(1 - p)
        return self.alpha * (counts.table_sum(theta.log_odds) + 2 * float(theta.log_none.sum()))

    def start(self, pooled: BernoulliStats, n_components: int, rng: Rng) -> BernoulliTheta:
        """Return random probabilities near those of all rows; frequent features vary less."""
        shape = (n_components, pooled.counts.shape[1])
        there = rng.gamma(np.maximum(pooled.counts / n_components, 1e-3), size=shape)
        absent = rng.gamma(np.maximum(_absent(pooled) / n_components, 1e-3), size=shape)
        return self._theta(there + self.alpha, absent + self.alpha)

    def sample(self, theta: BernoulliTheta, labels: Array, rng: Rng) -> CSR:
        """Return rows of zeros and ones, each drawn from its component."""
        prob = self.feature_probs(theta)
        parts = [labels[lo : lo + 256] for lo in range(0, len(labels), 256)]  # drawn dense
        drawn = [sp.csr_matrix(rng.random((len(p), prob.shape[1])) < prob[p]) for p in parts]
        rows: CSR = sp.vstack(drawn, format="csr", dtype=np.float64)
        return rows

    def feature_probs(self, theta: BernoulliTheta) -> Array:
        """Return p(feature | component)."""
        return np.asarray(expit(np.asarray(theta.log_odds, dtype=np.float64)))

    def terms(self, X: CSR, theta: BernoulliTheta) -> tuple[Array, Array, Array]:
        """Return the log odds of each present feature; the rest is that of a row without any."""
        return X.indices, np.asarray(theta.log_odds[:, X.indices], np.float64).T, theta.log_none

    def n_parameters(self, theta: BernoulliTheta) -> int:
        """Return the number of probabilities."""
        return int(theta.log_odds.size)

    def _theta(self, there: Array, absent: Array) -> BernoulliTheta:
        floor = np.finfo(np.float64).tiny  # without rows and prior, probabilities are 1/2
        odds = np.log(np.maximum(there, floor)) - np.log(np.maximum(absent, floor))
        table = counts.new_table(there.shape[0], there.shape[1], self.precision)
        table[...] = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        # From the odds as they are stored, so that both belong to the same density.
        log_none = -np.logaddexp(0.0, table.astype(np.float64)).sum(axis=1)
        return BernoulliTheta(table, log_none)


def _absent(stats: BernoulliStats) -> Array:
    """Return the expected numbers of rows without each feature."""
    mass = stats.mass[:, np.newaxis]
    absent = mass - stats.counts
    # The difference of two equal sums is a rounding error, whose logarithm must not count.
    return np.where(absent > 1e-12 * mass, absent, 0.0)
