"""Many components: those that cannot matter to a row are left out of its E step.

A state keeps an upper bound of every row's score of every component. A bound holds while the table
rises: by no more than the sum of the row's counts times the largest rise of a cell of the
component. Late in a fit few components change, so most bounds rule their component out, and a row
has exact scores of the few that are left. Scores of components that rose far are computed again
for all rows, which makes their bounds tight.

What is left out has, all together, less than 1e-9 of its row (`Rule.reach`). Which components are
left follows from the parameters alone, not from the bounds: of all that are not ruled out, those
out of reach of the best are dropped as well. So a state that is made again has the same bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from coem.kernels import counts, pruning
from coem.kernels.row_lists import RowLists
from coem.kernels.sparse_tables import SparseTable
from coem.kernels.summing import LANES
from coem.latent.block import Block, Partition
from coem.posterior import Rule
from coem.typing import Array, is_sparse

FEWEST = 128  # components: with fewer, scoring all of them costs less than bounds
FULL = 8  # non-zeros a word: with fewer, comparing tables costs as much as scores
MANY = 4  # rows that have more than one in so many components are scored as a whole
NATS = 4.0  # what the bound of a mean row may rise by before its scores are computed again


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of the scores of the rows of a partition."""

    table: Array  # (k, n_features), the last one
    level: Array  # (n,)
    gaps: Array  # (n, at least k), upper halves of floats, see `kernels.pruning`
    rise: Array  # (k,), of the table since the scores of a component were computed

    @classmethod
    def new(cls, part: Partition, table: Array | SparseTable, old: Self | None) -> Self | None:
        """Return bounds for scores under `table`, to be set, in the memory of old ones.

        There are none for a sparse table, whose scores cost about as much as bounds would.
        """
        if isinstance(table, SparseTable):
            return None
        memory = pruning.new_bounds(part.n_rows, len(table)) if old is None else old.memory
        return cls(table, *memory, np.zeros(len(table)))

    @property
    def memory(self) -> tuple[Array, Array]:
        """What holds the bounds."""
        return self.level, self.gaps

    def note(self, block: Block, log_prob: Array) -> None:
        """Set the bounds of a block to its scores, of all components."""
        pruning.set_bounds(log_prob, self.level[block.rows], self.gaps[block.rows])

    def under(self, part: Partition, table: Array) -> "Moved | None":
        """Return the bounds under a new table; None if most scores have to be computed again."""
        rise = self.rise + pruning.rises(self.table, table)
        X = part.views[0]
        mean = float(X.data.sum(dtype=np.float64)) / max(part.n_rows, 1) if is_sparse(X) else 0.0
        stale = np.flatnonzero(rise * mean > NATS)
        if 2 * len(stale) > len(table):
            return None
        rise[stale] = 0.0
        return Moved(
            replace(self, table=table, rise=rise),
            stale,
            pruning.some_components(table, stale) if len(stale) else None,
        )


@dataclass(frozen=True)
class Moved:
    """Bounds under a new table, but for the components whose scores have to be computed again."""

    bounds: Bounds
    stale: Array  # (m,) components
    table: Array | None  # (m, n_features), theirs

    def chances(self, block: Block, log_weights: Array, reach: float) -> "Chances":
        """Bring the bounds of a block up to date, and return what can matter to its rows."""
        bounds, X, blank = self.bounds, block.views[0], block.blank(0)
        level, gaps = bounds.level[block.rows], bounds.gaps[block.rows]
        assert is_sparse(X)
        if self.table is not None:
            scores = counts.scores(X, self.table)
            if blank is not None:
                scores[blank] = 0.0
            pruning.set_bounds(scores, level, gaps, self.stale)
        found = pruning.chances(
            X,
            bounds.table,
            log_weights,
            (level, gaps),
            bounds.rise,
            reach,
            allowed=block.allowed,
            blank=blank,
        )
        return Chances(*found).within(reach)


class Chances(NamedTuple):
    """The components that can matter to rows, eight at a time, as of `kernels.pruning.chances`."""

    offsets: Array
    units: Array
    joint: Array

    @classmethod
    def of_all(cls, joint: Array, reach: float) -> Self:
        """Return the components of rows that are in reach of the best, of all scores (n, k)."""
        n, k = joint.shape
        near = joint >= joint.max(axis=1, keepdims=True) - reach
        width = -(-k // LANES)
        padded = np.zeros((n, width * LANES), dtype=bool)
        padded[:, :k] = near
        rows, units = np.nonzero(padded.reshape(n, width, LANES).any(axis=2))
        columns = units[:, np.newaxis] * LANES + np.arange(LANES)
        there = padded[rows[:, np.newaxis], columns]
        values = joint[rows[:, np.newaxis], np.minimum(columns, k - 1)]
        return cls(_offsets(rows, n), units.astype(np.int32), np.where(there, values, -np.inf))

    def within(self, reach: float) -> "Chances":
        """Return the components that are in reach of the best of their row."""
        lengths = np.diff(self.offsets)
        best = np.maximum.reduceat(self.joint.max(axis=1), self.offsets[:-1])
        rows = np.repeat(np.arange(len(lengths)), lengths)
        joint = np.where(self.joint >= best[rows, np.newaxis] - reach, self.joint, -np.inf)
        kept = np.isfinite(joint).any(axis=1)
        return Chances(_offsets(rows[kept], len(lengths)), self.units[kept], joint[kept])

    def are_many(self, n_components: int) -> bool:
        """Tell whether rows have so many components that lists of them do not pay."""
        return MANY * self.joint.size > (len(self.offsets) - 1) * n_components

    def posterior(self, rule: Rule, beta: float, n_components: int) -> "FewPosterior":
        """Apply a rule to the components that can matter, to rows with about as many at a time."""
        n = len(self.offsets) - 1
        evidence, objective = np.empty(n), np.empty(n)
        parts = []
        for rows, units, joint in self._alike():
            resp = np.empty(joint.shape, dtype=np.float32)
            result = rule.apply(joint, np.zeros(joint.shape[1]), beta=beta, out=resp)
            evidence[rows], objective[rows] = result.evidence, result.objective
            places = np.flatnonzero(resp)
            row, column = np.divmod(places, joint.shape[1])
            components = units[row, column // LANES] * LANES + column % LANES
            parts.append((rows[row], components, resp.ravel()[places]))
        return FewPosterior(_lists(parts, n, n_components), evidence, objective)

    def _alike(self) -> Iterator[tuple[Array, Array, Array]]:
        """Cut the rows by the number of their entries, up to a power of two, `w`.

        Each part has the numbers of its rows (m,), their units (m, w), and their log joints
        (m, 8 w), -inf where there is no entry.
        """
        lengths = np.diff(self.offsets)
        width = 1
        while len(lengths) and width < 2 * lengths.max():
            rows = np.flatnonzero((lengths <= width) & (2 * lengths > width))
            if len(rows):
                there = np.arange(width) < lengths[rows, np.newaxis]
                places = self.offsets[rows, np.newaxis] + there * np.arange(width)
                joint = self.joint[places]
                if width > 2:  # with one or two all are there
                    joint[~there] = -np.inf
                yield rows, self.units[places], joint.reshape(len(rows), -1)
            width *= 2


class FewPosterior(NamedTuple):
    """As `posterior.Posterior`, with few components a row."""

    resp: RowLists
    evidence: Array
    objective: Array


def of_all(
    joint: Array, rule: Rule, beta: float, reach: float, allowed: Array | None
) -> FewPosterior:
    """Return the posterior of rows, from the log joints (n, k) of all components.

    It equals the posterior from the components that bounds leave, bit by bit.
    """
    n, k = joint.shape
    if allowed is not None:
        joint = np.where(allowed, joint, -np.inf)
    chances = Chances.of_all(joint, reach)
    if not chances.are_many(k):
        return chances.posterior(rule, beta, k)
    resp = np.empty(joint.shape, dtype=np.float32)
    result = rule.apply(joint, np.zeros(k), beta=beta, out=resp)
    rows, components = np.nonzero(resp)
    lists = RowLists(_offsets(rows, n), components.astype(np.int32), resp[rows, components], k)
    return FewPosterior(lists, result.evidence, result.objective)


def _offsets(rows: Array, n: int) -> Array:
    """Return where the entries of each of `n` rows begin, if those of a row are side by side."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int64)


def _lists(parts: list[tuple[Array, Array, Array]], n: int, k: int) -> RowLists:
    """Return entries (row, component, value) as lists, in the order of the rows."""
    rows, components, values = (
        np.concatenate([part[i] for part in parts]) if parts else np.empty(0) for i in range(3)
    )
    order = np.argsort(rows, kind="stable")
    return RowLists(
        _offsets(rows.astype(np.int64), n),
        components[order].astype(np.int32),
        values[order].astype(np.float32, copy=False),
        k,
    )


def worth_it(part: Partition, table: Array | SparseTable) -> bool:
    """Tell from the data alone whether lists can save time or memory on the rows of a partition."""
    X = part.views[0]
    k, n_features = table.shape
    full = is_sparse(X) and (isinstance(table, SparseTable) or X.nnz >= FULL * n_features)
    return full and k >= FEWEST
