"""A fitted chain: what it says of sequences that it may not have seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp

from coem.kernels import chain as kernel
from coem.kernels.chain import Decoded
from coem.latent.chain import Chain, ChainTheta, numbered
from coem.latent.sequences import SequenceBlock
from coem.typing import Array


@dataclass(frozen=True)
class FittedChain:
    """A chain with its parameters, and the inverse temperature of its posteriors."""

    chain: Chain
    theta: ChainTheta
    beta: float

    def log_prob(self, block: SequenceBlock) -> Array:
        """Return log p(row | state), (n, k), all views together."""
        return self.chain.log_prob(block, self.theta)

    def decode(self, block: SequenceBlock) -> Decoded:
        """Return the best path of every sequence, among those that its labels allow."""
        with numbered(block):
            return kernel.viterbi(self.log_prob(block), *self._rule(block))

    def proba(self, block: SequenceBlock) -> Array:
        """Return the posterior of every row's state, given its sequence and labels, (n, k)."""
        return self._smooth(block, self.log_prob(block))

    def evidence(self, block: SequenceBlock) -> Array:
        """Return log p(sequence), (n_sequences,), whatever its labels; -inf without any path."""
        log_prob, markov = self.log_prob(block), self._markov()
        try:
            return kernel.evidence(log_prob, block.offsets, *markov)
        except kernel.ImpossibleSequence:  # rare, so that the others may cost more
            ends = pairwise(block.offsets)
            return np.array([_or_minus_inf(log_prob[a:b], markov) for a, b in ends])

    def read(self, block: SequenceBlock) -> tuple[Array, Array]:
        """Return the best path and the posteriors; the rows are evaluated once."""
        log_prob = self.log_prob(block)
        with numbered(block):
            states = kernel.viterbi(log_prob, *self._rule(block)).states
        return states, self._smooth(block, log_prob)

    def log_context(self, block: SequenceBlock) -> tuple[Array, Array]:
        """Return what the other rows of a sequence say of each row's state, and what the row says.

        Both are logarithms of shape (n, k), untempered. Up to a constant per row, their sum is the
        log posterior. All steps are done with logarithms, so that they tell apart states whose
        posteriors are too small for a number.
        """
        log_prob, markov = self.log_prob(block), self.theta.of_chain
        before, after = np.empty_like(log_prob), np.zeros_like(log_prob)
        for begin, end in pairwise(block.offsets):
            before[begin] = markov.log_start
            for t in range(begin + 1, end):
                so_far = before[t - 1] + log_prob[t - 1]
                before[t] = logsumexp(so_far[:, np.newaxis] + markov.log_transition, axis=0)
            for t in range(end - 1, begin, -1):
                to_come = after[t] + log_prob[t]
                after[t - 1] = logsumexp(markov.log_transition + to_come, axis=1)
        return before + after, log_prob

    def _smooth(self, block: SequenceBlock, log_prob: Array) -> Array:
        resp = np.empty(log_prob.shape)
        with numbered(block):
            kernel.forward_backward(log_prob, *self._rule(block), beta=self.beta, resp=resp)
        return resp

    def _rule(self, block: SequenceBlock) -> tuple[Array, Array, Array, Array | None]:
        return block.offsets, *self._markov(), block.allowed

    def _markov(self) -> tuple[Array, Array]:
        return self.theta.of_chain.log_start, self.theta.of_chain.log_transition


def _or_minus_inf(log_prob: Array, markov: Sequence[Array]) -> float:
    """Return the evidence of one sequence."""
    try:
        return float(kernel.evidence(log_prob, np.array([0, len(log_prob)]), *markov)[0])
    except kernel.ImpossibleSequence:
        return -np.inf
