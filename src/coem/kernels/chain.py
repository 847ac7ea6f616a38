"""Hidden Markov chains: posteriors of states, evidence of sequences, and best paths.

The rows of all sequences are in one array, one sequence after the other. Sequence s has the rows
``offsets[s]`` to ``offsets[s + 1]``, the last one excluded. Sequences are cut into pieces that
depend on `offsets` alone. Pieces run on the lent threads and are added up in order, so the number
of threads never changes a bit of the result.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coem.kernels import _compiled, threads
from coem.typing import Array

PIECES = 64  # most parts that the sequences are cut into
STEPS = 8192  # fewest rows that are worth a part of their own
ROUNDING = 1e-6  # by which a log probability may be above zero


class Smoothed(NamedTuple):
    """What a pass forwards and backwards finds beside the responsibilities."""

    evidence: Array
    """(n_sequences,), log probability of each sequence; never tempered."""
    objective: Array
    """(n_sequences,), the tempered log probability; the evidence if beta is 1."""
    starts: Array
    """(k,), expected number of sequences that start in a state."""
    transitions: Array
    """(k, k), expected number of transitions from the row's state to the column's."""


class Decoded(NamedTuple):
    """The best path of every sequence."""

    states: Array
    """(n,), int32, the state of each row."""
    log_joint: Array
    """(n_sequences,), log probability of the sequence together with its path."""
    starts: Array
    """(k,), number of paths that start in a state."""
    transitions: Array
    """(k, k), number of transitions of the paths."""


class ImpossibleSequence(ValueError):
    """Every path through a sequence has probability zero.

    Attributes
    ----------
    sequence : int
        The number of the first such sequence, counted from 0.
    """

    def __init__(self, sequence: int) -> None:
        super().__init__(f"sequence {sequence} is impossible: every path has probability zero")
        self.sequence = sequence

    def __reduce__(self) -> tuple[type["ImpossibleSequence"], tuple[int]]:
        return type(self), (self.sequence,)


def forward_backward(
    log_prob: Array,
    offsets: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None = None,
    *,
    beta: float = 1.0,
    weights: Array | None = None,
    resp: Array,
) -> Smoothed:
    r"""Fill `resp` with the posterior of each row's state, given its whole sequence.

    Parameters
    ----------
    log_prob : float64 array of shape (n, k), C-contiguous
        Log p(row | state). -inf excludes a state. A row of zeros says nothing about its state.
    offsets : int64 array of shape (n_sequences + 1,)
        Where sequences begin, from 0 to n.
    log_start : array of shape (k,)
        Log probabilities of the first row's state.
    log_transition : array of shape (k, k)
        Log probabilities of the next state (column) after a state (row). A transition with -inf
        has an expected number of exactly zero.
    allowed : bool array of shape (n, k), optional
        Which states a row may have. Both evidence and posterior are those of the allowed paths.
    beta : float
        Inverse temperature, positive.
    weights : array of shape (n_sequences,), optional
        What each sequence counts in `starts` and `transitions`. By default 1.
    resp : float32 or float64 array of shape (n, k), C-contiguous
        Overwritten. In float32, shares below a billionth are set to zero.

    Returns
    -------
    Smoothed

    Raises
    ------
    ImpossibleSequence
        If every path of a sequence has probability zero. The responsibilities of its rows are
        zero, and those of the other sequences are right.
    ValueError
        If a number is NaN or +inf, or if the offsets do not fit.

    Notes
    -----
    A path z of a sequence x has the posterior

    .. math:: p_\beta(z \mid x) = p(x, z)^\beta / \sum_{z'} p(x, z')^\beta,

    so start, transitions and emissions are all tempered. The objective is
    :math:`\frac{1}{\beta} \log \sum_z p(x, z)^\beta`. If beta is not 1, another pass forwards
    finds the evidence at beta = 1.

    The recursion is scaled, in float64 [1]_. Posteriors are found from filtered and predicted
    probabilities. No possible state is let fall below 1e-150. If that changes a posterior, which
    the pass backwards finds out, the sequence is done again with logarithms, so no possible path
    is lost. Posteriors are good to 1e-12 if logs are of moderate size, and to the rounding of the
    logs otherwise. An empty sequence has the evidence 0.

    Beside the arguments, each thread needs as much memory as the log probabilities of the longest
    sequence.

    References
    ----------
    .. [1] L. R. Rabiner (1989), A tutorial on hidden Markov models and selected applications in
       speech recognition, Proceedings of the IEEE 77, 257-286, Sections III and V.A.

    Examples
    --------
    The umbrella world of Russell and Norvig: it was raining on the first two days, given two
    umbrellas.

    >>> import numpy as np
    >>> from coem.kernels.chain import forward_backward
    >>> umbrella = np.log([[0.9, 0.2], [0.9, 0.2]])
    >>> half, stay = np.log([0.5, 0.5]), np.log([[0.7, 0.3], [0.3, 0.7]])
    >>> resp = np.empty((2, 2))
    >>> found = forward_backward(umbrella, np.array([0, 2]), half, stay, resp=resp)
    >>> resp.round(3)
    array([[0.883, 0.117],
           [0.883, 0.117]])
    """
    chain = _chain(log_start, log_transition)
    rule = _bytes(allowed), beta
    offsets, weights = _offsets(offsets, log_prob), _weights(weights)
    objective = np.empty(len(offsets) - 1)

    def work(cut: tuple[int, int]) -> Array:
        sums = np.zeros((len(chain[0]) + 1, len(chain[0])))
        args = log_prob, *chain, *rule, offsets, weights, *cut
        _compiled.forward_backward(*args, sums[0], sums[1:], objective, resp)
        return sums

    sums = _add_up(work, offsets, len(chain[0]))
    _check(objective)
    tempered = beta != 1.0
    args = log_prob, offsets, log_start, log_transition, allowed
    return Smoothed(evidence(*args) if tempered else objective, objective, sums[0], sums[1:])


def evidence(
    log_prob: Array,
    offsets: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None = None,
) -> Array:
    """Return the log probability of every sequence, of shape (n_sequences,).

    Parameters and errors are those of `forward_backward`.
    """
    chain, offsets = _chain(log_start, log_transition), _offsets(offsets, log_prob)
    open_, found = _bytes(allowed), np.empty(len(offsets) - 1)

    def work(cut: tuple[int, int]) -> None:
        _compiled.forward(log_prob, *chain, open_, 1.0, offsets, *cut, found)

    threads.spread(work, _cuts(offsets))
    _check(found)
    return found


def viterbi(
    log_prob: Array,
    offsets: Array,
    log_start: Array,
    log_transition: Array,
    allowed: Array | None = None,
    *,
    weights: Array | None = None,
    resp: Array | None = None,
) -> Decoded:
    """Return the path of highest probability of every sequence.

    Errors are those of `forward_backward`. There is no temperature: the best path is the same at
    every one. Of paths that are equally good, the one with the lower state wins where they part,
    seen from the end of the sequence.

    Parameters
    ----------
    log_prob, offsets, log_start, log_transition, allowed, weights
        See `forward_backward`.
    resp : float32 or float64 array of shape (n, k), C-contiguous, optional
        Overwritten by 1 for the state of the path, and 0 for the others.

    Returns
    -------
    Decoded

    Examples
    --------
    >>> import numpy as np
    >>> from coem.kernels.chain import viterbi
    >>> rows = np.log([[0.9, 0.1], [0.4, 0.6], [0.9, 0.1]])
    >>> half, stay = np.log([0.5, 0.5]), np.log([[0.8, 0.2], [0.2, 0.8]])
    >>> viterbi(rows, np.array([0, 3]), half, stay).states
    array([0, 0, 0], dtype=int32)
    """
    chain, offsets = _chain(log_start, log_transition), _offsets(offsets, log_prob)
    open_, weights = _bytes(allowed), _weights(weights)
    states, log_joint = np.empty(len(log_prob), np.int32), np.empty(len(offsets) - 1)

    def work(cut: tuple[int, int]) -> Array:
        sums = np.zeros((len(chain[0]) + 1, len(chain[0])))
        args = log_prob, *chain, open_, offsets, weights, *cut
        _compiled.viterbi(*args, sums[0], sums[1:], log_joint, states, resp)
        return sums

    sums = _add_up(work, offsets, len(chain[0]))
    _check(log_joint)
    return Decoded(states, log_joint, sums[0], sums[1:])


def _add_up(work: Callable[[tuple[int, int]], Array], offsets: Array, k: int) -> Array:
    """Return the sums over all pieces, of shape (k + 1, k)."""
    total = threads.add_up(work, _cuts(offsets))
    return np.zeros((k + 1, k)) if total is None else np.asarray(total)


def _cuts(offsets: Array) -> list[tuple[int, int]]:
    """Cut the sequences into pieces of about as many rows."""
    n_sequences, n = len(offsets) - 1, int(offsets[-1])
    pieces = min(n // STEPS, PIECES)
    if pieces < 2:
        return [(0, n_sequences)]
    inner = np.searchsorted(offsets, np.linspace(0, n, pieces + 1)[1:-1])
    ends = sorted({0, n_sequences, *inner.tolist()})
    return list(pairwise(ends))


def _chain(log_start: Array, log_transition: Array) -> tuple[Array, Array]:
    chain = (
        np.ascontiguousarray(log_start, dtype=np.float64),
        np.ascontiguousarray(log_transition, dtype=np.float64),
    )
    for name, logs in zip(("log_start", "log_transition"), chain, strict=True):
        if not (logs <= ROUNDING).all():  # NaN is not, either
            raise ValueError(f"{name} must hold log probabilities: numbers up to 0, or -inf")
    return chain


def _offsets(offsets: Array, log_prob: Array) -> Array:
    ends = np.ascontiguousarray(offsets, dtype=np.int64)
    if ends.ndim != 1 or len(ends) == 0 or ends[0] != 0 or ends[-1] != len(log_prob):
        raise ValueError("offsets must go from 0 to the number of rows")
    if (np.diff(ends) < 0).any():
        raise ValueError("offsets must not decrease")
    return ends


def _weights(weights: Array | None) -> Array | None:
    return None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def _bytes(allowed: Array | None) -> Any:
    return None if allowed is None else np.ascontiguousarray(allowed, dtype=np.bool_).view(np.uint8)


def _check(objective: Array) -> None:
    """Raise if a sequence has NaN or no path."""
    if np.isfinite(objective).all():
        return
    broken = np.flatnonzero(np.isnan(objective) | np.isposinf(objective))
    if len(broken) > 0:
        raise ValueError(f"sequence {broken[0]}: log_prob must not hold NaN or +inf")
    raise ImpossibleSequence(int(np.flatnonzero(np.isneginf(objective))[0]))
