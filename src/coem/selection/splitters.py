"""Cross-validation that tests on some labelled rows and trains on all other rows."""

import math
import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit
from sklearn.utils import check_random_state

from coem.checks import check_number
from coem.input import n_rows_of
from coem.labels import deal, read_knowledge, rows_by_class


class LabeledKFold(BaseCrossValidator):
    """Divide the labelled rows of each class among folds; unlabelled rows are always trained on.

    Every labelled row is in the test set of one fold. The exception is a class with only one
    labelled row: this row is always trained on, because the class could not be fitted without it.
    The sizes of the folds differ by at most one, within each class and in total. A class with fewer
    rows than folds is in the test sets of only some folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=True
        Whether to put the rows of each class in random order first.
    random_state : int, RandomState or None, default=None
        Seed of the random order. It must be None if `shuffle` is False.

    Notes
    -----
    Labels are read as `MixtureClassifier` reads them: -1, None, NaN and "" mark a row without one.
    A row with a set of allowed classes is not exactly labelled (see `exactly_labelled`), so it is
    always trained on. The folds depend only on the labelled rows and their order, not on the rows
    in between.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.selection import LabeledKFold
    >>> y = np.array(["a", "b", "", "a", "b", "", "c"])
    >>> for train, test in LabeledKFold(2, shuffle=False).split(np.zeros((7, 1)), y):
    ...     print(train, test)
    [2 3 4 5 6] [0 1]
    [0 1 2 5 6] [3 4]
    """

    def __init__(self, n_splits=5, *, shuffle=True, random_state=None):
        check_number("n_splits", n_splits, Integral, 2)
        if not isinstance(shuffle, bool | np.bool_):
            raise ValueError(f"shuffle must be True or False, got {shuffle!r}")
        if not shuffle and random_state is not None:
            raise ValueError("random_state has no effect without shuffle; leave it at None")
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds; the arguments are ignored."""
        return self.n_splits

    def _iter_test_indices(self, X=None, y=None, groups=None):
        members = _labelled_rows(self, X, y, groups)
        n_rows = sum(len(rows) for rows in members if len(rows) > 1)
        if self.n_splits > n_rows:
            raise ValueError(
                f"n_splits={self.n_splits} is more than the {n_rows} labelled rows that can be "
                "tested (the only row of a class cannot)"
            )
        if self.shuffle:
            rng = check_random_state(self.random_state)
            members = [rng.permutation(rows) for rows in members]
        return deal(members, self.n_splits)


class LabeledShuffleSplit(BaseShuffleSplit):
    """Draw labelled rows to test on, in proportion to the classes.

    Unlabelled rows are always trained on. Every class keeps a labelled row to train on.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits, drawn independently.
    test_size : float or int, default=0.2
        Share (rounded up) or number of the labelled rows to test on.
    train_size : float, int or None, default=None
        Share (rounded down) or number of the labelled rows to train on; None takes all that are
        not tested. The remaining labelled rows are in neither set.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Notes
    -----
    Labels are read as `MixtureClassifier` reads them: -1, None, NaN and "" mark a row without one.
    A row with a set of allowed classes is not exactly labelled (see `exactly_labelled`), so it is
    always trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.selection import LabeledShuffleSplit
    >>> y = np.array([0, 0, 0, 1, 1, 1, -1, -1])
    >>> cv = LabeledShuffleSplit(1, test_size=2, train_size=2, random_state=0)
    >>> (train, test), = cv.split(np.zeros((8, 1)), y)
    >>> y[train].tolist(), y[test].tolist()
    ([0, 1, -1, -1], [0, 1])
    """

    def __init__(self, n_splits=10, *, test_size=0.2, train_size=None, random_state=None):
        check_number("n_splits", n_splits, Integral, 1)
        super().__init__(
            n_splits, test_size=test_size, train_size=train_size, random_state=random_state
        )

    def _iter_indices(self, X, y=None, groups=None):
        members = _labelled_rows(self, X, y, groups)
        sizes = np.array([len(rows) for rows in members])
        n_test, n_train = self._sizes(sizes)
        rest = np.setdiff1d(np.arange(n_rows_of(X)), np.concatenate(members))
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            tests = _allot(n_test, sizes, 0, sizes - 1, rng)
            trains = _allot(n_train, sizes, 1, sizes - tests, rng)
            train, test = [rest], []
            for rows, a, b in zip(members, tests, trains, strict=True):
                drawn = rng.permutation(rows)
                test.append(drawn[:a])
                train.append(drawn[a : a + b])
            yield np.sort(np.concatenate(train)), np.sort(np.concatenate(test))

    def _sizes(self, sizes):
        """Return how many labelled rows to test and to train on."""
        n_rows, n_classes = sizes.sum(), len(sizes)
        n_test = max(1, _number("test_size", self.test_size, n_rows, math.ceil))
        if n_test > n_rows - n_classes:
            raise ValueError(
                f"test_size={self.test_size} is {n_test} labelled rows, but only "
                f"{n_rows - n_classes} can be tested if every class keeps one to train on"
            )
        if self.train_size is None:
            return n_test, n_rows - n_test
        n_train = _number("train_size", self.train_size, n_rows, math.floor)
        if not n_classes <= n_train <= n_rows - n_test:
            raise ValueError(
                f"train_size={self.train_size} is {n_train} labelled rows, but it must lie between "
                f"{n_classes} (one per class) and {n_rows - n_test} (those not tested)"
            )
        return n_test, n_train


def exactly_labelled(y):
    """Return which rows have exactly one label.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels. A row is not exactly labelled if it has no label (-1, None, NaN or ""), or if its
        label is a set of several classes, or a `coem.Not` that leaves several classes.

    Returns
    -------
    exact : ndarray of bool of shape (n_rows,)

    Examples
    --------
    >>> from coem.selection import exactly_labelled
    >>> exactly_labelled(["a", "", {"a", "b"}, "b"]).tolist()
    [True, False, False, True]
    """
    return read_knowledge(y, None).exact


def _labelled_rows(splitter, X, y, groups):
    """Return the exactly labelled rows of every class, in order."""
    name = type(splitter).__name__
    if groups is not None:
        warnings.warn(f"{name} ignores groups", UserWarning, stacklevel=4)
    if y is None:
        raise ValueError(f"{name} needs y, to tell labelled rows from unlabelled ones")
    knowledge = read_knowledge(y, n_rows_of(X))
    if not knowledge.exact.any():
        raise ValueError("y has no labelled row, so there is nothing to test on; label some rows")
    by_class = rows_by_class(knowledge.codes, knowledge.exact)
    if max(map(len, by_class)) == 1:
        raise ValueError(
            "every class has one labelled row, and needs it to train on, so there is nothing to "
            "test on; label more rows"
        )
    return by_class


def _number(name, size, n_rows, to_int):
    """Convert `size`, a share or number of the labelled rows, to a number of rows."""
    if isinstance(size, Integral) and not isinstance(size, bool) and size >= 1:
        return int(size)
    if isinstance(size, Real) and not isinstance(size, Integral) and 0 < size < 1:
        # Remove rounding errors: 0.7 of 10 rows is 7, not 7.000000000000001.
        return to_int(round(float(size) * int(n_rows), 9))
    raise ValueError(
        f"{name} must be a share between 0 and 1 or a number of 1 or more labelled rows, "
        f"got {size!r}"
    )


def _allot(total, sizes, least, most, rng):
    """Return integers in bounds that add up to `total`, about in proportion to `sizes`."""
    ideal = total * sizes / sizes.sum()
    counts = np.clip(np.floor(ideal).astype(int), least, most)
    while counts.sum() != total:
        short = counts.sum() < total
        gap = ideal - counts if short else counts - ideal
        gap = np.where(counts < most if short else counts > least, gap, -np.inf)
        # If several classes are equally far off, choose one at random.
        row = rng.choice(np.flatnonzero(gap > gap.max() - 1e-9))
        counts[row] += 1 if short else -1
    return counts
