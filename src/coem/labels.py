"""Labels: which classes each row may belong to, according to the `y` of the user."""

import sys
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from coem.checks import check_weight
from coem.typing import Array


class Not:
    """An entry of `y` for a row that does not belong to some classes.

    If a row may belong to any of several classes, use a set of these classes instead.

    Parameters
    ----------
    *forbidden : labels
        The classes that the row does not belong to.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import Not
    >>> from coem import MixtureClassifier
    >>> X = np.array([[5, 1, 0], [0, 4, 1], [0, 1, 3], [0, 3, 3], [4, 2, 0]])
    >>> y = ["spam", "work", "family", {"work", "family"}, Not("work")]
    >>> MixtureClassifier().fit(X, y).predict(X).tolist()
    ['spam', 'work', 'family', 'family', 'spam']
    """

    def __init__(self, *forbidden: Hashable) -> None:
        if not forbidden:
            raise ValueError("Not() needs at least one class; for a row without a label use None")
        self.forbidden = frozenset(forbidden)

    def __repr__(self) -> str:
        return f"Not({', '.join(map(repr, sorted(self.forbidden, key=repr)))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Not) and self.forbidden == other.forbidden

    def __hash__(self) -> int:
        return hash((Not, self.forbidden))


Loose: TypeAlias = AbstractSet[Hashable] | Not
"""An entry of `y` that says more than nothing and less than a label."""


@dataclass(frozen=True)
class Knowledge:
    """Which classes each row may belong to."""

    classes: Array  # (n_classes,)
    allowed: Array  # (n_rows, n_classes) bool
    exact: Array  # (n_rows,) bool: rows that may belong to one class only

    @property
    def codes(self) -> Array:
        """For each row, the index in `classes` of the first class that it may belong to."""
        return np.asarray(self.allowed.argmax(axis=1))

    @property
    def certainty(self) -> Array:
        """For each row, how much is known: 1 for exactly one class, 0 for nothing.

        A row that may belong to m of M classes has (M - m) / (M - 1).
        """
        n_classes = len(self.classes)
        if n_classes == 1:
            return self.exact.astype(np.float64)
        return np.asarray((n_classes - self.allowed.sum(axis=1)) / (n_classes - 1.0))

    def labels(self) -> Array:
        """Return an array for use as `y`: for each row a class, a set of classes, or None."""
        out = np.full(len(self.exact), None, dtype=object)
        out[self.exact] = self.classes[self.codes[self.exact]]
        for row in np.flatnonzero(~self.exact & (self.certainty > 0)):
            out[row] = frozenset(self.classes[self.allowed[row]].tolist())
        return out

    def shares(self, weight: Array | None = None) -> Array:
        """Return the weight of each row in each class, (n_rows, n_classes), before any fit.

        The certainty of a row, times its weight, is divided equally among the classes that it may
        belong to.
        """
        share = self.certainty / self.allowed.sum(axis=1)
        scaled = share if weight is None else share * weight
        shares = np.asarray(self.allowed * scaled[:, np.newaxis])
        for label, total in zip(self.classes.tolist(), shares.sum(axis=0), strict=True):
            if not total > 0:
                why = ": label at least one" if weight is None else " with a sample_weight above 0"
                raise ValueError(f"class {label!r} has no labelled row{why}")
        return shares


def read_knowledge(y: Any, n_rows: int | None, classes: Array | None = None) -> Knowledge:
    """Return which classes each row may belong to.

    The entries of `y` are labels, sets of labels, `Not`, or missing. If you pass `classes`, a label
    that is not one of them raises an error. If `n_rows` is None, `y` may have any length.
    """
    labels, known, loose = read_loose_labels(y, n_rows)
    named = {row: _members(entry, row) for row, entry in loose.items()}
    if classes is None:
        may = [named[row] for row, entry in loose.items() if not isinstance(entry, Not)]
        classes = _classes(labels[known], [label for members in may for label in members])
    _check_known(labels[known], classes)
    allowed = np.ones((len(labels), len(classes)), dtype=bool)
    allowed[known] = labels[known, np.newaxis] == classes
    exact = known.copy()
    for row, entry in loose.items():
        _check_known(named[row], classes, f"y, row {row}: ")
        listed = np.isin(classes, named[row])
        allowed[row] = ~listed if isinstance(entry, Not) else listed
        if not allowed[row].any():
            raise ValueError(f"y, row {row}: {entry!r} excludes all classes")
        exact[row] = allowed[row].sum() == 1
    return Knowledge(classes, allowed, exact)


def all_classes(y: Any, classes: Array) -> Array:
    """Return `classes` together with all other classes that `y` names."""
    labels, known, loose = read_loose_labels(y, None)
    named = [label for row, entry in loose.items() for label in _members(entry, row)]
    return np.unique(np.concatenate([classes, _classes(labels[known], named)]))


def accuracy(predicted: Array, y: Any, classes: Array, sample_weight: Any = None) -> float:
    """Return the share of the rows with a label that have the right class.

    Rows without a label do not count. A row with a set of classes counts as right if the
    prediction is one of them.
    """
    # With the classes of `y`, so that a row of a class that the model does not know is wrong.
    knowledge = read_knowledge(y, len(predicted), all_classes(y, classes))
    rows = knowledge.certainty > 0
    if not rows.any():
        raise ValueError("y has no labelled row, so there is nothing to score")
    place = np.searchsorted(knowledge.classes, predicted)
    right = knowledge.allowed[np.arange(len(place)), place]
    weight = check_weight(sample_weight, predicted[:, np.newaxis])
    return float(np.average(right[rows], weights=None if weight is None else weight[rows]))


def read_loose_labels(y: Any, n_rows: int | None) -> tuple[Array, Array, dict[int, Loose]]:
    """Return the labels, which rows have one, and the entries that are sets or `Not`, by row."""
    if sp.issparse(y):
        raise ValueError("y is a sparse matrix; pass one label per row, or a set of labels")
    array = y.to_numpy() if hasattr(y, "to_numpy") else y
    if not isinstance(array, list | tuple) and getattr(array, "dtype", None) != np.object_:
        return *read_labels(y, n_rows), {}
    loose = {row: entry for row, entry in enumerate(array) if _is_loose(entry, row)}
    if not loose:
        return *read_labels(y, n_rows), {}
    plain = np.empty(len(array), dtype=object)
    plain[:] = [None if row in loose else entry for row, entry in enumerate(array)]
    return *read_labels(plain, n_rows), loose


def rows_by_class(labels: Array, known: Array) -> list[Array]:
    """Return for each class the rows with its label, in order."""
    rows = np.flatnonzero(known)
    _, codes = np.unique(labels[rows], return_inverse=True)
    ends = np.cumsum(np.bincount(codes))
    return np.split(rows[np.argsort(codes, kind="stable")], ends[:-1])


def deal(by_class: Iterable[Array], n_folds: int) -> list[Array]:
    """Return the rows that each fold tests. A class with a single row is not tested.

    Rows go to the folds in turn. Each class continues at the fold after the last one, so that the
    first folds do not become the largest.
    """
    rows = np.concatenate([rows for rows in by_class if len(rows) > 1])
    return [np.sort(rows[fold::n_folds]) for fold in range(n_folds)]


def _is_loose(entry: object, row: int) -> bool:
    """Return whether an entry of `y` is a set of classes or a `Not`."""
    if isinstance(entry, list | tuple | dict | np.ndarray):
        raise ValueError(
            f"y, row {row}: {entry!r} is not a label; if the row may belong to several classes, "
            "use a set"
        )
    return isinstance(entry, set | frozenset | Not)


def _members(entry: Loose, row: int) -> list[Any]:
    """Return the classes that a set or a `Not` names, sorted."""
    members = entry.forbidden if isinstance(entry, Not) else entry
    if not members or any(_is_missing(label) for label in members):
        raise ValueError(
            f"y, row {row}: {entry!r} must contain only classes, and at least one; for a row "
            "without a label use None"
        )
    return sorted(members, key=repr)


def _classes(labels: Array, extra: Sequence[Hashable]) -> Array:
    """Return all classes: those of `labels` and those in `extra`, sorted."""
    if not extra:
        return np.unique(labels)
    every = [*labels.tolist(), *extra]
    if len({isinstance(label, str) for label in every}) > 1:
        raise ValueError("y mixes text and numbers; use only text or only numbers")
    return np.unique(np.asarray(every))


def _check_known(labels: Array | list[Any], classes: Array, where: str = "") -> None:
    """Raise unless all labels are in `classes`."""
    strange = ~np.isin(labels, classes)
    if strange.any():
        label = np.asarray(labels)[strange].tolist()[0]
        raise ValueError(f"{where}label {label!r} is not one of the classes {classes.tolist()}")


def read_labels(y: Any, n_rows: int | None) -> tuple[Array, Array]:
    """Return the labels as an array, and which rows have one. `y` has no sets and no `Not`."""
    if y is None:
        raise ValueError(
            "MixtureClassifier requires y to be passed, but the target y is None; "
            "mark rows without a label with -1, None, NaN or ''"
        )
    labels = column_or_1d(_as_array(y), warn=True)
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels for {n_rows} rows; pass one label per row")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity or a value too large for a label")
    known = ~np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    lost = {"nan", "None", "-1", "<NA>"}.intersection(labels[known].tolist())
    if labels.dtype.kind == "U" and lost:
        raise ValueError(
            f"label {lost.pop()!r} looks like a missing label that was converted to text; mark "
            "rows without a label with '', or pass np.array(y, dtype=object)"
        )
    if known.any():
        labels = labels.copy() if labels.dtype != object else _narrowed(labels, known)
        check_classification_targets(labels[known])
    return labels, known


def _as_array(y: Any) -> Array:
    """Return `y` as an array, without converting missing labels to the type of the others."""
    if hasattr(y, "to_numpy"):
        return np.asarray(y.to_numpy())
    # NumPy would convert numbers to text if there is text beside them.
    mixed = isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1
    if mixed or (isinstance(y, list | tuple) and any(_is_missing(label) for label in y)):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)


def _is_missing(label: object) -> bool:
    """Return whether an entry of `y` marks a row without a label."""
    if label is None or label is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    if isinstance(label, str):
        return label == ""
    if not isinstance(label, Real) or isinstance(label, bool | np.bool_):
        return False
    return label == -1 or label != label  # NaN does not equal itself


def _narrowed(labels: Array, known: Array) -> Array:
    """Return an array of objects as an array of text or of numbers."""
    found = labels[known].tolist()
    if len({isinstance(label, str) for label in found}) > 1:
        raise ValueError("y mixes text and numbers; use only text or only numbers")
    there = np.asarray(found)
    out = np.zeros(len(labels), dtype=there.dtype)
    out[known] = there
    return out
