"""A slow float64 transcription of stepwise EM for mixtures of multinomials over views.

Nothing of coem is imported. Where coem moves running statistics, this keeps the sums of every batch
and weighs them anew at every M step: batch b has the share g_b (1 - g_b+1) ... (1 - g_t) of the
mean (Cappe & Moulines 2009, Eq. 10 solved for all batches; Liang & Klein 2009, Fig. 1b).
"""

from dataclasses import dataclass, field

import numpy as np

from tests.truths import twins


def step_size(power, offset, sizes):
    """Return the step of the last batch; its size counts relative to the mean size."""
    t = len(sizes)
    return min(1.0, (t + offset) ** -power * sizes[-1] / np.mean(sizes))


@dataclass
class Stepwise:
    """Parameters, and the sums of every batch for every turn."""

    theta: list  # for every view (k, words): log p(word | component)
    log_weights: np.ndarray  # (s, k)
    power: float
    offset: float
    n_rows: float | None = None  # None: the effective number
    alpha: float = 1.0
    eta: float = 1.0
    joint: bool = False
    weights: str = "global"
    pseudo_rows: float = 0.0
    hard: bool = False
    sizes: list = field(default_factory=list)  # rows of every batch
    steps: list = field(default_factory=list)
    sums: dict = field(default_factory=dict)  # turn -> for every batch, (words of the views, mass)

    def learn(self, views, row_weight=None, allowed=None, m_step=True):
        """Take a batch; without an M step if the parameters come from it."""
        there = np.stack([X.sum(axis=1) > 0 for X in views], axis=1)
        weight = np.ones(len(there)) if row_weight is None else row_weight
        weight = weight * there.any(axis=1)
        self.sizes.append(weight.sum())
        first = len(self.sizes) == 1
        self.steps.append(1.0 if first else step_size(self.power, self.offset, self.sizes))
        for turn in range(1 if self.joint else len(views)):
            own = range(len(views)) if self.joint else [turn]
            resp, mass = self._lesson(views, there, allowed, turn)
            words = {v: (resp * (weight * there[:, v])[:, None]).T @ views[v] for v in own}
            self.sums.setdefault(turn, []).append((words, weight @ mass))
            if m_step:
                self._m_step(turn, own)

    def _lesson(self, views, there, allowed, turn):
        """Return what the views of a turn learn from, and what the weights learn from."""
        joints = [twins.log_probs(X, self.theta[v]) for v, X in enumerate(views)]
        if self.joint:
            joints = [sum(joints) + self.log_weights[0]]
        else:
            joints = [one + self.log_weights[v] for v, one in enumerate(joints)]
        if allowed is not None:
            joints = [np.where(allowed, one, -np.inf) for one in joints]
        posteriors = [twins.posterior(one, hard=self.hard) for one in joints]
        if self.joint or len(views) == 1:
            return posteriors[0], posteriors[0]
        resp = twins.blended(posteriors, turn, self.eta, there)
        return resp, twins.average(posteriors, there) if self.weights == "global" else resp

    def shares(self):
        """Return the share of every batch in the running mean."""
        rest = [np.prod([1.0 - g for g in self.steps[b + 1 :]]) for b in range(len(self.steps))]
        return np.array(self.steps) * rest

    def effective_rows(self):
        """Return how many rows of equal weight would have as precise a mean."""
        return 1.0 / np.sum(self.shares() ** 2 / np.array(self.sizes))

    def _m_step(self, turn, own):
        n = self.effective_rows() if self.n_rows is None else self.n_rows
        factors = n * self.shares() / np.array(self.sizes)
        pairs = list(zip(factors, self.sums[turn], strict=True))
        for v in own:
            counts = self.alpha + sum(factor * words[v] for factor, (words, _) in pairs)
            self.theta[v] = np.log(counts / counts.sum(axis=1, keepdims=True))
        mass = self.pseudo_rows + sum(factor * mass for factor, (_, mass) in pairs)
        mass = np.ones(len(mass)) if self.weights == "uniform" else mass
        self.log_weights[list(own)] = np.log(mass / mass.sum())
