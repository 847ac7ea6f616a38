"""Many components: those that cannot matter to a row are left out of its E step.

A state keeps an upper bound of every row's score of every component. A bound holds while the table
rises: by no more than the sum of the row's counts times the largest rise of a cell of the
component. Late in a fit few components change, so most bounds rule their component out, and a row
has exact scores of the few that are left. Scores of components that rose far are computed again
for all rows, which makes their bounds tight.

What is left out has, all together, less than 1e-9 of its row (`Rule.reach`). Which components are
left follows from the parameters alone, not from the bounds: of all that are not ruled out, those
out of reach of the best are dropped as well. So a state that is made again has the same bits, and
bounds are given up at any time when they leave too much to pay (`advance`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from coem.kernels import counts, pruning, threads
from coem.kernels.row_lists import RowLists
from coem.kernels.sparse_tables import SparseTable
from coem.kernels.summing import LANES
from coem.latent.block import Block, Partition
from coem.posterior import Rule
from coem.typing import Array, is_sparse

FEWEST = 128  # components: with fewer, scoring all of them costs less than bounds
FULL = 8  # non-zeros a word: with fewer, comparing tables costs as much as scores
COST = 6.0  # of a score by itself, in scores that are computed with all others of the row
FIXED = 0.25  # what rounds with bounds take besides, as a share of scoring everything
SAMPLE = 512  # about as many rows tell whether bounds pay,
APART = 16  # but no more than one in so many
LONGEST = 7  # rounds without bounds, before they are tried again
MANY = 4  # rows that have more than one in so many components are scored as a whole
NATS = 4.0  # what the bound of a mean row may rise by before its scores are computed again


@dataclass(frozen=True)
class Bounds:
    """Upper bounds of the scores of the rows of a partition."""

    table: Array  # (k, n_features), the last one
    level: Array  # (n,)
    gaps: Array  # (n, at least k), upper halves of floats, see `kernels.pruning`
    rise: Array  # (k,), of the table since the scores of a component were computed
    misses: int = 0  # how often in a row they did not pay

    @classmethod
    def new(cls, table: Array, memory: tuple[Array, Array], misses: int = 0) -> Self:
        """Return bounds for scores under `table`, to be set."""
        return cls(table, *memory, np.zeros(len(table)), misses)

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
            replace(self, table=table, rise=rise, misses=0),
            stale,
            pruning.some_components(table, stale) if len(stale) else None,
        )


@dataclass(frozen=True)
class Moved:
    """Bounds under a new table. The scores of `stale` components have to be computed again."""

    bounds: Bounds
    stale: Array  # (m,) components
    table: Array | None  # (m, n_features), theirs

    def pay(self, part: Partition, log_weights: Array, reach: float) -> bool:
        """Tell from some of the rows whether scoring what is left costs less than scoring all."""
        rows = np.arange(0, part.n_rows, max(part.n_rows // SAMPLE, APART))
        level, gaps = (values[rows] for values in self.bounds.memory)
        some = replace(self, bounds=replace(self.bounds, level=level, gaps=gaps))
        left = some._left(part.take(rows).blocks[0], log_weights, reach)
        share = len(left.units) * LANES / gaps.size
        return FIXED + len(self.stale) / len(log_weights) + COST * share < 1.0

    def chances(self, block: Block, log_weights: Array, reach: float) -> "Chances":
        """Bring the bounds of a block up to date, and return what can matter to its rows."""
        return self._left(block, log_weights, reach).within(reach)

    def _left(self, block: Block, log_weights: Array, reach: float) -> "Chances":
        """Bring the bounds of a block up to date, and return what they do not rule out."""
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
        return Chances(*found)


@dataclass(frozen=True)
class Pause:
    """Rounds that score everything and set no bounds, because bounds did not pay."""

    memory: tuple[Array, Array]  # of the next bounds
    misses: int
    left: int  # rounds, this one included


def advance(
    old: Bounds | Pause | None,
    part: Partition,
    table: Array | SparseTable,
    log_weights: Array,
    reach: float,
) -> Bounds | Moved | Pause | None:
    """Return what becomes of bounds under a new table: all choices lead to the same posteriors.

    `Moved` bounds leave components out. Otherwise everything is scored, and `Bounds` are to be set
    to the scores. There are none for a sparse table, whose scores cost about as much as bounds
    would. Each time in a row that bounds do not pay, the pause before the next is longer.
    """
    if isinstance(table, SparseTable):
        return None
    if old is None:
        return Bounds.new(table, pruning.new_bounds(part.n_rows, len(table)))
    if isinstance(old, Pause):
        return replace(old, left=old.left - 1) if old.left > 1 else _after(old, table)
    moved = old.under(part, table)
    if moved is not None and moved.pay(part, log_weights, reach):
        return moved
    pause = Pause(old.memory, old.misses + 1, min(2**old.misses - 1, LONGEST))
    return pause if pause.left else _after(pause, table)


def _after(pause: Pause, table: Array) -> Bounds:
    """Return the bounds after a pause, to be set."""
    return Bounds.new(table, pause.memory, pause.misses)


class Chances(NamedTuple):
    """The components that can matter to rows, eight at a time, as of `kernels.pruning.chances`."""

    offsets: Array
    units: Array
    joint: Array

    @classmethod
    def of_all(cls, joint: Array, reach: float) -> Self | None:
        """Return the components of rows that are in reach of the best, of all log joints (n, k).

        Return None if they are many.
        """
        found = pruning.near(joint, reach, joint.size // (MANY * LANES))
        return None if found is None else cls(*found)

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
            found = pruning.list_rows(resp)
            row, (unit, lane) = found.rows(), np.divmod(found.components, LANES)
            parts.append((rows[row], units[row, unit] * LANES + lane, found.values))
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
                joint = np.take(self.joint, places, axis=0)
                if width > 2:  # with one or two all are there
                    joint[~there] = -np.inf
                yield rows, np.take(self.units, places), joint.reshape(len(rows), -1)
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

    It equals the posterior from the components that bounds leave, bit by bit. Do not read `joint`
    after the call.
    """
    k = joint.shape[1]
    if allowed is not None:
        joint[~allowed] = -np.inf
    chances = Chances.of_all(joint, reach)
    if chances is not None:
        return chances.posterior(rule, beta, k)
    resp = threads.recycled(joint.size, np.float32, "resp").reshape(joint.shape)
    result = rule.apply(joint, np.zeros(k), beta=beta, out=resp)
    return FewPosterior(pruning.list_rows(resp), result.evidence, result.objective)


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
