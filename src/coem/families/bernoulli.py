"""Bernoulli components: which features are there, and which are not."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from coem.families.counts import CountFamily
from coem.kernels import counts
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng

MAX_LOG_ODDS = 35.0  # what never or always happened: one in 10^15, where a double still adds up


@dataclass(frozen=True)
class BernoulliStats(Stats):
    """Expected numbers of rows with each feature, and of rows."""

    counts: Array  # (n_components, n_features)
    mass: Array  # (n_components,)


class BernoulliTheta(NamedTuple):
    """Log odds of every feature, and the log probability of a row without any."""

    log_odds: Array  # (n_components, n_features)
    log_none: Array  # (n_components,)


@dataclass(frozen=True)
class Bernoulli(CountFamily):
    r"""Presence or absence of every feature, independently.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of presence and of absence: a Beta prior with both parameters ``alpha + 1``.
    dtype : dtype, optional
        Precision of the parameters. Set by the estimators.

    Notes
    -----
    Any value but zero counts as presence. The parameters are log odds, which keep probabilities
    near one and near zero alike:
    :math:`\log p(x \mid j) =
    \sum_{w \in x} \log\frac{p_{jw}}{1 - p_{jw}} + \sum_w \log(1 - p_{jw})`
    with :math:`p_{jw} = (\alpha + \sum_i r_{ij} x_{iw}) / (2\alpha + \sum_i r_{ij})`.
    """

    theta_type: ClassVar[Any] = BernoulliTheta

    def encode(self, X: Matrix) -> Matrix:
        """Return CSR rows of ones."""
        X = super().encode(X)
        if X.data.size == 0 or ((X.data == 1).all() and X.has_canonical_format):
            return X
        X = X.copy()  # the caller's values are not ours to change
        X.sum_duplicates()
        X.eliminate_zeros()
        X.data = np.ones(X.data.size, dtype=np.float32)
        return X

    def log_prob(self, X: Matrix, theta: BernoulliTheta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""
        return counts.scores(X, theta.log_odds) + theta.log_none

    def stats(self, X: Matrix, resp: Array) -> BernoulliStats:
        """Return the expected numbers of rows with each feature, and of rows."""
        return BernoulliStats(counts.accumulate(X, resp), resp.sum(axis=0, dtype=np.float64))

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
        """Return probabilities drawn about the pooled ones: frequent features vary less."""
        shape = (n_components, pooled.counts.shape[1])
        there = rng.gamma(np.maximum(pooled.counts / n_components, 1e-3), size=shape)
        absent = rng.gamma(np.maximum(_absent(pooled) / n_components, 1e-3), size=shape)
        return self._theta(there + self.alpha, absent + self.alpha)

    def sample(self, theta: BernoulliTheta, labels: Array, rng: Rng) -> Matrix:
        """Return rows of zeros and ones, each drawn from its component."""
        prob = self.feature_probs(theta)
        parts = [labels[lo : lo + 256] for lo in range(0, len(labels), 256)]  # dense for a moment
        drawn = [sp.csr_matrix(rng.random((len(p), prob.shape[1])) < prob[p]) for p in parts]
        return sp.vstack(drawn, format="csr", dtype=np.float64)

    def feature_probs(self, theta: BernoulliTheta) -> Array:
        """Return p(feature | component)."""
        return np.asarray(expit(np.asarray(theta.log_odds, dtype=np.float64)))

    def terms(self, X: Matrix, theta: BernoulliTheta) -> tuple[Array, Array, Array]:
        """Return the log odds of every feature that is there; the rest is a row without any."""
        return X.indices, np.asarray(theta.log_odds[:, X.indices], np.float64).T, theta.log_none

    def n_parameters(self, theta: BernoulliTheta) -> int:
        """Return the number of probabilities."""
        return int(theta.log_odds.size)

    def _theta(self, there: Array, absent: Array) -> BernoulliTheta:
        floor = np.finfo(np.float64).tiny  # no rows and no prior: a fair coin
        odds = np.log(np.maximum(there, floor)) - np.log(np.maximum(absent, floor))
        table = counts.new_table(there.shape[0], there.shape[1], self.precision)
        table[...] = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        # From the odds as they are stored, or the two would not belong to one density.
        log_none = -np.logaddexp(0.0, table.astype(np.float64)).sum(axis=1)
        return BernoulliTheta(table, log_none)


def _absent(stats: BernoulliStats) -> Array:
    """Return the expected numbers of rows without each feature."""
    mass = stats.mass[:, np.newaxis]
    absent = mass - stats.counts
    # What is left of two sums of the same rows is rounding, and its logarithm must not count.
    return np.where(absent > 1e-12 * mass, absent, 0.0)
