"""Names that people give to groups, and groups that they merge."""

import unicodedata
from dataclasses import dataclass, field, replace

import numpy as np

from coem.kernels.sparse_tables import SparseTable

LONGEST = 120  # characters of a name
# What a terminal or a browser obeys, and what no file can hold; Cf turns the direction of text.
UNFIT = ("Cc", "Cf", "Cs", "Zl", "Zp")
JOINERS = "\u200c\u200d"  # scripts need them to join letters or to keep them apart


@dataclass(frozen=True)
class Naming:
    """What the groups of a model are called, and which of them count as one.

    A merged group has the smallest number of its parts. The other numbers stay, without rows: so
    the numbers of all other groups stay as they were.

    Attributes
    ----------
    own : tuple of str
        The names that the groups had before any was named by hand.
    given : dict of int to str
        Names by the numbers of the groups.
    merged : tuple of tuple of int
        Sets of groups that count as one, each in ascending order.

    Examples
    --------
    >>> from coem.report import Naming
    >>> naming = Naming(("goal, puck", "orbit, moon", "bat, inning"), {0: "Sport"}, ((0, 2),))
    >>> naming.names
    ['Sport', 'orbit, moon', 'Sport']
    """

    own: tuple
    given: dict = field(default_factory=dict)
    merged: tuple = ()

    def __post_init__(self):
        places = range(len(self.own))
        for group, name in self.given.items():
            _check_group(group, places)
            check_name(name)
        parts = [group for one in self.merged for group in one]
        for group in parts:
            _check_group(group, places)
        if len(set(parts)) < len(parts) or any(len(one) < 2 for one in self.merged):
            raise ValueError("a group is merged with others once, and with itself never")

    def __bool__(self):
        """Return whether anything was named or merged."""
        return bool(self.given or self.merged)

    @property
    def into(self):
        """The group that each group counts as, an array of numbers."""
        found = np.arange(len(self.own))
        for parts in self.merged:
            found[list(parts)] = min(parts)
        return found

    @property
    def names(self):
        """The names of all groups; a group that was merged into another has the name of that."""
        into = self.into
        parts = {group: np.flatnonzero(into == group).tolist() for group in set(into.tolist())}
        called = {
            group: self.given.get(group) or " + ".join(self.own[part] for part in whole)
            for group, whole in parts.items()
        }
        return [called[group] for group in into.tolist()]

    def parts(self, group):
        """Return the numbers of the groups that a group consists of; of most groups, its own."""
        return np.flatnonzero(self.into == group).tolist()

    def name(self, names):
        """Return the naming with further names by number; an empty name takes a name back."""
        changed = {**self.given, **{int(self._live(g)): text for g, text in names.items()}}
        return replace(self, given={g: text for g, text in sorted(changed.items()) if text})

    def merge(self, groups, name=None):
        """Return the naming with two or more groups as one, and with its name if there is one."""
        places = range(len(self.own))
        for group in groups:
            _check_group(group, places)
        wanted = {int(self.into[group]) for group in groups}
        if len(wanted) < 2 and len(set(groups)) > 1:
            listed = " and ".join(map(str, sorted(set(groups))))
            raise ValueError(f"{listed} are one group already, {min(wanted)}")
        if len(wanted) < 2:
            raise ValueError("merge two or more different groups")
        whole = tuple(sorted(part for group in wanted for part in self.parts(group)))
        others = tuple(parts for parts in self.merged if not set(parts) <= set(whole))
        # The name of the group that the others join stays, unless there is a new one.
        given = {g: text for g, text in self.given.items() if g not in wanted - {min(whole)}}
        found = replace(self, given=given, merged=tuple(sorted((*others, whole))))
        return found if name is None else found.name({min(whole): name})

    def apart(self, groups=()):
        """Return the naming without the merges of some groups, or of all if there are none.

        A name that was given to a merged group stays with the group that has its number.
        """
        wanted = set(groups)
        kept = tuple(parts for parts in self.merged if wanted and not wanted & set(parts))
        return replace(self, merged=kept)

    def _live(self, group):
        """Return the number of a group; raise if there is no such group, or it was merged away."""
        _check_group(group, range(len(self.own)))
        into = self.into[group]
        if into != group:
            raise ValueError(f"group {group} is merged into {into}; name that one")
        return group

    def of(self, reading):
        """Return a reading with merged groups: posteriors and weights are added.

        `disagreement` stays that of the groups as the model has them.
        """
        if not self.merged:
            return reading
        into = self.into
        sums = np.zeros((len(into), len(into)))
        sums[np.arange(len(into)), into] = 1.0
        gone = into != np.arange(len(into))
        proba = None if reading.proba is None else reading.proba @ sums.astype(reading.proba.dtype)
        closeness = _closest(reading.closeness, into) if proba is None else proba.copy()
        closeness[:, gone] = -np.inf
        views = reading.view_groups
        return replace(
            reading,
            groups=into[reading.groups] if proba is None else proba.argmax(axis=1),
            closeness=closeness,
            proba=proba,
            weights=reading.weights @ sums,
            view_groups=None if views is None else np.where(views < 0, -1, into[views]),
            tables={v: _mean(table, reading.weights, into) for v, table in reading.tables.items()},
            gone=gone,
        )


def check_name(name):
    """Raise unless a text can be the name of a group."""
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, got {name!r:.80}")
    if len(name) > LONGEST:
        raise ValueError(f"a name has at most {LONGEST} characters, and this one has {len(name)}")
    unfit = [c for c in name if unicodedata.category(c) in UNFIT and c not in JOINERS]
    if unfit:
        raise ValueError(f"the name {name!r} has the control character {unfit[0]!r}; leave it out")
    if name and not name.strip():
        raise ValueError("a name of blanks alone cannot be read; an empty one takes a name back")


def _check_group(group, places):
    if isinstance(group, bool) or not isinstance(group, int | np.integer):
        raise TypeError(f"a group is a number, got {group!r:.80}")
    if group not in places:
        raise ValueError(f"there is no group {group}; groups are 0 to {len(places) - 1}")


def _closest(closeness, into):
    """Return how close rows are to the nearest part of every group."""
    found = np.full_like(closeness, -np.inf)
    np.maximum.at(found.T, into, closeness.T)
    return found


def _mean(table, weights, into):
    """Return p(feature | group) of merged groups: the mean of the parts, by their weights."""
    share = weights / np.maximum(np.bincount(into, weights, len(into))[into], np.finfo(float).tiny)
    if isinstance(table, SparseTable):
        sums = np.zeros((len(into), len(into)))
        sums[into, np.arange(len(into))] = share
        gone = into != np.arange(len(into))
        sums[gone, gone.nonzero()[0]] = 1.0
        return sums @ table
    found = np.array(table, dtype=np.float64)
    for group in np.unique(into[into != np.arange(len(into))]):
        parts = np.flatnonzero(into == group)
        found[group] = share[parts] @ found[parts]
    return found
