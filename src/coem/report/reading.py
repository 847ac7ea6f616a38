"""What a fitted model says about rows, in one form for all kinds of models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from coem.report.closeness import Space
from coem.views import Views


class Later(Mapping):
    """A mapping that is made when it is first looked at.

    The tables of a model have as many entries as the model itself. `assign` needs none of them, and
    `coem serve` calls it for each row.
    """

    def __init__(self, make):
        self._make = make

    @cached_property
    def _made(self):
        return self._make()

    def __getitem__(self, key):
        return self._made[key]

    def __iter__(self):
        return iter(self._made)

    def __len__(self):
        return len(self._made)


@dataclass(frozen=True, eq=False)
class Reading:
    """The groups of a model, and what it says about each row.

    Attributes
    ----------
    views : Views
        The rows.
    noun : str
        The word for a group: "group", "class", "topic" or "state".
    keys : list
        The model's own labels of its groups: numbers, or classes.
    groups : ndarray of shape (n_rows,)
        The group of each row, as a place in `keys`.
    closeness : ndarray of shape (n_rows, n_groups)
        How close each row is to each group: the posterior if the model has one, else cosines. The
        second choice is the group with the second largest value.
    weights : ndarray of shape (n_groups,)
        Shares of the groups, as the model has them.
    proba : ndarray of shape (n_rows, n_groups), optional
        The posterior.
    view_groups : ndarray of shape (n_rows, n_views), optional
        The group that each view by itself chooses; -1 where the row is empty in the view.
    disagreement : ndarray of shape (n_rows,), optional
        How much the views disagree on each row, in the unit that `dissent` names.
    dissent : str
        "nats", or "share" of the pairs of views.
    tables : dict of view to ndarray of shape (n_groups, n_features)
        p(feature | group), for the views for which the model has it.
    families : dict of view to str
        The name of the family of each view, if the model has families.
    locate : dict of view to callable
        Maps a feature of a table to its column, or to (column, level).
    empty : ndarray of bool of shape (n_rows, n_views), optional
        Which rows are empty in which view, if the model has a rule of its own for that.
    silent : tuple of str
        The views that the model leaves out, because they share nothing with the others.
    directions : Space, optional
        The rows as directions, if the reader has computed them.
    gone : ndarray of bool of shape (n_groups,), optional
        Which groups were merged into others (`Naming.of`). They keep their places, without rows.
    """

    views: Views
    noun: str
    keys: list
    groups: np.ndarray
    closeness: np.ndarray
    weights: np.ndarray
    proba: np.ndarray | None = None
    view_groups: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    dissent: str = "nats"
    tables: dict = field(default_factory=dict)
    families: dict = field(default_factory=dict)
    locate: dict = field(default_factory=dict)
    empty: np.ndarray | None = None
    silent: tuple = ()
    directions: Space | None = None
    gone: np.ndarray | None = None

    @property
    def n_groups(self):
        """Number of groups, including groups without rows."""
        return len(self.keys)

    @property
    def n_whole(self):
        """Number of groups without those that were merged into others."""
        return self.n_groups - (0 if self.gone is None else int(self.gone.sum()))

    @property
    def sizes(self):
        """Number of rows per group."""
        return np.bincount(self.groups, minlength=self.n_groups)

    @cached_property
    def blank(self):
        """Which rows are empty in every view. Only the weights of the groups place these rows."""
        if self.empty is not None:
            return self.empty.all(axis=1)
        if not self.views.shape[1]:  # a tree of distances has no columns
            return np.zeros(len(self.groups), bool)
        return self.views.empty.all(axis=1)

    @cached_property
    def space(self):
        """The rows as directions."""
        return Space.of(self.views) if self.directions is None else self.directions

    @cached_property
    def order(self):
        """Best and second best group per row; the second is -1 if there is only one group."""
        if self.n_whole < 2:
            return np.column_stack([self.groups, np.full(len(self.groups), -1)])
        others = self.closeness.copy()
        others[np.arange(len(others)), self.groups] = -np.inf
        return np.column_stack([self.groups, others.argmax(axis=1)])

    @cached_property
    def margin(self):
        """How much closer the first choice is than the second, per row."""
        rows, (first, second) = np.arange(len(self.groups)), self.order.T
        if self.n_whole < 2:
            return np.ones(len(rows))
        return self.closeness[rows, first] - self.closeness[rows, second]
