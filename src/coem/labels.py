"""Labels: what is known of the class of every row, from nothing to exactly one."""

from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


class Not:
    """An entry of `y` for a row that belongs to none of some classes.

    A row that may belong to any of several classes has a set of them as its entry instead.

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

    def __init__(self, *forbidden):
        if not forbidden:
            raise ValueError("Not() forbids nothing; name a class, or use None for no label")
        self.forbidden = frozenset(forbidden)

    def __repr__(self):
        return f"Not({', '.join(map(repr, sorted(self.forbidden, key=repr)))})"

    def __eq__(self, other):
        return isinstance(other, Not) and self.forbidden == other.forbidden

    def __hash__(self):
        return hash((Not, self.forbidden))


@dataclass(frozen=True)
class Knowledge:
    """Which classes every row may belong to."""

    classes: np.ndarray  # (n_classes,)
    allowed: np.ndarray  # (n_rows, n_classes) bool
    exact: np.ndarray  # (n_rows,) bool: rows with one label

    @property
    def codes(self):
        """The place in `classes` of the first class that every row allows."""
        return self.allowed.argmax(axis=1)

    @property
    def certainty(self):
        """How much is known of every row: 1 for its class, 0 for nothing.

        A row that may belong to m of M classes has (M - m) / (M - 1).
        """
        n_classes = len(self.classes)
        if n_classes == 1:
            return self.exact.astype(np.float64)
        return (n_classes - self.allowed.sum(axis=1)) / (n_classes - 1.0)

    def labels(self):
        """Return the knowledge as labels that can be cut: a class, a set of classes, or None."""
        out = np.full(len(self.exact), None, dtype=object)
        out[self.exact] = self.classes[self.codes[self.exact]]
        for row in np.flatnonzero(~self.exact & (self.certainty > 0)):
            out[row] = frozenset(self.classes[self.allowed[row]].tolist())
        return out

    def shares(self, weight=None):
        """Return what every row teaches each class before anything is learnt.

        That is its certainty, times its weight, shared equally among the classes that it allows.
        """
        share = self.certainty / self.allowed.sum(axis=1)
        shares = self.allowed * (share if weight is None else share * weight)[:, np.newaxis]
        for label, total in zip(self.classes.tolist(), shares.sum(axis=0), strict=True):
            if not total > 0:
                why = "label one" if weight is None else "sample_weight is 0 for all of them"
                raise ValueError(f"class {label!r} has no labelled row: {why}")
        return shares


def read_knowledge(y, n_rows, classes=None):
    """Return what `y` says of every row: labels, sets of them, `Not`, or nothing.

    With `classes` given, a label that is none of them is refused.
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
            raise ValueError(f"y, row {row}: {entry!r} leaves no class")
        exact[row] = allowed[row].sum() == 1
    return Knowledge(classes, allowed, exact)


def all_classes(y, classes):
    """Return the classes and those that `y` names besides."""
    labels, known, loose = read_loose_labels(y, None)
    named = [label for row, entry in loose.items() for label in _members(entry, row)]
    return np.unique(np.concatenate([classes, _classes(labels[known], named)]))


def read_loose_labels(y, n_rows):
    """Return the labels, which rows have exactly one, and row -> its set of classes or `Not`."""
    array = y.to_numpy() if hasattr(y, "to_numpy") else y
    if not isinstance(array, list | tuple) and getattr(array, "dtype", None) != np.object_:
        return *read_labels(y, n_rows), {}
    loose = {row: entry for row, entry in enumerate(array) if _is_loose(entry, row)}
    if not loose:
        return *read_labels(y, n_rows), {}
    plain = np.empty(len(array), dtype=object)
    plain[:] = [None if row in loose else entry for row, entry in enumerate(array)]
    return *read_labels(plain, n_rows), loose


def rows_by_class(labels, known):
    """Return the rows with a label, class by class, each in order."""
    rows = np.flatnonzero(known)
    _, codes = np.unique(labels[rows], return_inverse=True)
    ends = np.cumsum(np.bincount(codes))
    return np.split(rows[np.argsort(codes, kind="stable")], ends[:-1])


def deal(by_class, n_folds):
    """Return the rows that each fold tests; the only row of a class is in none of them.

    A class goes on where the last one stopped, so that the first folds are not the largest.
    """
    rows = np.concatenate([rows for rows in by_class if len(rows) > 1])
    return [np.sort(rows[fold::n_folds]) for fold in range(n_folds)]


def _is_loose(entry, row):
    """Tell if an entry of `y` is a set of classes or a `Not`: more than nothing, less than one."""
    if isinstance(entry, list | tuple | dict | np.ndarray):
        raise ValueError(
            f"y, row {row}: {entry!r} is no label; write a set for several allowed classes"
        )
    return isinstance(entry, set | frozenset | Not)


def _members(entry, row):
    """Return the classes that a set or a `Not` names."""
    members = entry.forbidden if isinstance(entry, Not) else entry
    if not members or any(_is_missing(label) for label in members):
        raise ValueError(
            f"y, row {row}: {entry!r} must name classes; None stands for no label at all"
        )
    return sorted(members, key=repr)


def _classes(labels, extra):
    """Return all classes: those that rows have, and those that they may have."""
    if not extra:
        return np.unique(labels)
    every = [*labels.tolist(), *extra]
    if len({isinstance(label, str) for label in every}) > 1:
        raise ValueError("y mixes text and numbers; make all labels the one or the other")
    return np.unique(np.asarray(every))


def _check_known(labels, classes, where=""):
    strange = ~np.isin(labels, classes)
    if strange.any():
        label = np.asarray(labels)[strange].tolist()[0]
        raise ValueError(f"{where}label {label!r} is none of the classes {classes.tolist()}")


def read_labels(y, n_rows):
    """Return the labels as an array, and which rows have one."""
    if y is None:
        raise ValueError(
            "MixtureClassifier requires y to be passed, but the target y is None; "
            "mark rows without a label by -1, None, NaN or ''"
        )
    labels = column_or_1d(_as_array(y), warn=True)
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels for {n_rows} rows; give one for each row")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity or a value too large for a label")
    known = ~np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    lost = {"nan", "None", "-1", "<NA>"}.intersection(labels[known].tolist())
    if labels.dtype.kind == "U" and lost:
        raise ValueError(
            f"label {lost.pop()!r} looks like the mark of an unlabelled row that became text; use "
            "'' instead, or np.array(y, dtype=object)"
        )
    if known.any():
        labels = labels.copy() if labels.dtype != object else _narrowed(labels, known)
        check_classification_targets(labels[known])
    return labels, known


def _as_array(y):
    """Return an array in which markers of no label and labels of any type can stand together."""
    if hasattr(y, "to_numpy"):
        return y.to_numpy()
    # NumPy would make text of numbers beside text.
    mixed = isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) > 1
    if mixed or (isinstance(y, list | tuple) and any(_is_missing(label) for label in y)):
        labels = np.empty(len(y), dtype=object)
        labels[:] = y
        return labels
    return np.asarray(y)


def _is_missing(label):
    if label is None or is_pandas_na(label) or is_scalar_nan(label):
        return True
    if isinstance(label, str):
        return label == ""
    return isinstance(label, Real) and not isinstance(label, bool | np.bool_) and label == -1


def _narrowed(labels, known):
    """Return labels of one type with its dtype."""
    there = labels[known].tolist()
    if len({isinstance(label, str) for label in there}) > 1:
        raise ValueError("y mixes text and numbers; make all labels the one or the other")
    there = np.asarray(there)
    out = np.zeros(len(labels), dtype=there.dtype)
    out[known] = there
    return out
