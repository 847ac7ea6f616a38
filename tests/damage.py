"""Sparse matrices that are damaged, and sparse matrices that are valid but unusual.

`damaged(rng, kind)` makes one of a kind of `DAMAGE`. SciPy's own functions read or write outside
the arrays of many of them: look at one in a process that may die. `unusual(rng, kind)` makes one of
a kind of `UNUSUAL`, with the plain matrix that it stands for.
"""

import numpy as np
import scipy.sparse as sp

COMPRESSED = ("csr", "csc", "bsr")
FORMATS = (*COMPRESSED, "coo", "lil", "dok", "dia")


def damaged(rng, kind):
    """Return a matrix with damage of a kind of `DAMAGE`: "csr: indptr falls", for example."""
    name, _, fault = kind.partition(": ")
    X = plain(rng).asformat(name)
    while name in COMPRESSED and len(X.indptr) < 3:  # blocks of all rows: there is little to damage
        X = plain(rng).asformat(name)
    if rng.random() < 0.3 and name in COMPRESSED:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    FAULTS[name][fault](X, rng)
    return X


def unusual(rng, kind, n_rows=None, n_columns=None):
    """Return a matrix of a kind of `UNUSUAL`, and the canonical CSR matrix with the same cells."""
    X = plain(rng, n_rows, n_columns)
    return UNUSUAL[kind](X.copy(), rng), X


def plain(rng, n_rows=None, n_columns=None):
    """Return counts as a CSR matrix or array; no row and no column is empty."""
    n_rows = 2 * int(rng.integers(2, 7)) if n_rows is None else n_rows
    n_columns = 2 * int(rng.integers(2, 5)) if n_columns is None else n_columns
    counts = rng.poisson(1.0, (n_rows, n_columns))
    counts[np.arange(n_rows), np.arange(n_rows) % n_columns] += 1
    counts[np.arange(n_columns) % n_rows, np.arange(n_columns)] += 1
    kind = rng.choice([sp.csr_matrix, sp.csr_array])
    return kind(counts.astype(rng.choice([np.float64, np.float32, np.int64])))


# -- damage -------------------------------------------------------------------------------------


def some(array, rng):
    """Return a random place of an array."""
    return int(rng.integers(len(array)))


def put(member, place, value):
    """Return a fault: an entry of an array, at a random place if None, gets another value."""

    def fault(X, rng):
        array = getattr(X, member).copy()
        where = some(array, rng) if place is None else place
        array[where] = value(X, rng) if callable(value) else value
        set_member(X, member, array)

    return fault


def change(member, function):
    """Return a fault: a member becomes something else."""

    def fault(X, rng):
        set_member(X, member, function(getattr(X, member)))

    return fault


def set_member(X, name, value):
    """Set a member, those of COO arrays as well, which check what they are given."""
    if name in ("row", "col") and hasattr(X, "coords"):
        X.coords = (value, X.col) if name == "row" else (X.row, value)
    else:
        setattr(X, name, value)


def lose(member):
    def fault(X, rng):
        del X.__dict__[member]

    return fault


def falls(X, rng):
    i = int(rng.integers(1, len(X.indptr) - 1))
    X.indptr = X.indptr.copy()
    X.indptr[i] = X.indptr[-1]
    X.indptr[i + 1 :] = np.minimum(X.indptr[i + 1 :], X.indptr[-1] - 1)


def swing(X, rng):
    """Let indptr go far beyond the arrays in the middle, and end where it should."""
    X.indptr = X.indptr.copy()
    X.indptr[int(rng.integers(1, len(X.indptr) - 1))] = rng.choice([10**9, X.indptr[-1] + 1])


def reshape(*by):
    """Return a fault: the shape says more or fewer than there are, 1 at least."""

    def fault(X, rng):
        X._shape = tuple(max(size + more, 1) for size, more in zip(X.shape, by, strict=True))

    return fault


def cut(array):
    return array[:-1]


def grown(array):
    return np.append(array, array[-1:])


def nested(array):
    return np.asarray(array)[np.newaxis]


def no_numbers(array):
    return np.full(np.shape(array), "x")


def objects(array):
    return np.full(np.shape(array), "x", dtype=object)


def halves(array):
    return array + 0.5


def nothing(array):
    return None


def listed(array):
    return array.tolist()


def minor(X):
    """Return the number of columns of CSR, of rows of CSC, of blocks in a line of BSR."""
    if X.format == "bsr":
        return X.shape[1] // X.blocksize[1]
    return X.shape[1 if X.format == "csr" else 0]


OF_COMPRESSED = {
    "indptr falls": falls,
    "indptr swings": swing,
    "indptr begins late": put("indptr", 0, 1),
    "indptr begins below 0": put("indptr", 0, -3),
    "indptr is negative": put("indptr", None, -(2**31)),
    "indptr ends beyond": put("indptr", -1, lambda X, rng: X.indptr[-1] + rng.integers(1, 10**6)),
    "indptr is long": change("indptr", grown),
    "indptr is short": change("indptr", cut),
    "indptr is empty": change("indptr", lambda a: a[:0]),
    "indptr is float": change("indptr", lambda a: a.astype(float)),
    "indptr is nested": change("indptr", nested),
    "indptr is nothing": change("indptr", nothing),
    "indptr is lost": lose("indptr"),
    "indices just beyond": put("indices", None, lambda X, rng: minor(X)),
    "indices far beyond": put("indices", None, 2**31 - 1),
    "indices below 0": put("indices", None, lambda X, rng: -rng.integers(1, 2**31)),
    "indices are cut": change("indices", cut),
    "indices are float": change("indices", halves),
    "indices are objects": change("indices", objects),
    "indices are unsigned": change("indices", lambda a: a.astype(np.uint64) + 2**63),
    "indices are nested": change("indices", nested),
    "indices are a list": change("indices", listed),
    "indices are lost": lose("indices"),
    "data is cut": change("data", cut),
    "data is nothing": change("data", nothing),
    "data is text": change("data", no_numbers),
    "data is objects": change("data", objects),
    "data is nested": change("data", nested),
    "more rows": reshape(2, 0),
    "fewer rows": reshape(-2, 0),
    "data is dates": change("data", lambda a: np.full(a.shape, "2020-01-01", "M8[D]")),
}
OF_PAIRS = {
    "row beyond": put("row", None, lambda X, rng: X.shape[0] + rng.integers(10**6)),
    "row below 0": put("row", None, lambda X, rng: -rng.integers(1, 10**6)),
    "column beyond": put("col", None, lambda X, rng: X.shape[1]),
    "column far beyond": put("col", None, 2**31 - 1),
    "column below 0": put("col", None, -1),
    "rows are cut": change("row", cut),
    "columns are cut": change("col", cut),
    "columns are float": change("col", halves),
    "columns wrap around": change("col", lambda a: a.astype(np.int64) + 2**32),
    "data is cut": change("data", cut),
    "data is text": change("data", no_numbers),
    "data is lost": lose("data"),
    "fewer rows": reshape(-1, 0),
    "fewer columns": reshape(0, -1),
}


def of_lists(member, change_row):
    def fault(X, rng):
        rows = getattr(X, member)
        i = some(rows, rng)
        rows[i] = change_row(list(rows[i]), X)

    return fault


OF_LISTS = {
    "column beyond": of_lists("rows", lambda row, X: [*row[:-1], X.shape[1] + 3]),
    "column below 0": of_lists("rows", lambda row, X: [-X.shape[1] - 7, *row[1:]]),
    "column is float": of_lists("rows", lambda row, X: [0.5, *row[1:]]),
    "column is text": of_lists("rows", lambda row, X: ["x", *row[1:]]),
    "column is huge": of_lists("rows", lambda row, X: [2**70, *row[1:]]),
    "row is nothing": of_lists("rows", lambda row, X: None),
    "row is short": of_lists("rows", lambda row, X: row[:-1]),
    "data is short": of_lists("data", lambda row, X: row[:-1]),
    "data is text": of_lists("data", lambda row, X: ["x"] * len(row)),
    "rows are cut": change("rows", cut),
    "data is cut": change("data", cut),
    "rows are lost": lose("rows"),
    "fewer rows": reshape(-1, 0),
    "fewer columns": reshape(0, -10),
}


def add_key(key, value=1):
    def fault(X, rng):
        getattr(X, "_dict", X)[key] = value

    return fault


OF_KEYS = {
    "row beyond": add_key((10**6, 0)),
    "column beyond": add_key((0, 10**6)),
    "row below 0": add_key((-(10**6), 0)),
    "key is float": add_key((0.5, 0)),
    "key is text": add_key("ab"),
    "key has three": add_key((0, 0, 0)),
    "value is text": add_key((0, 0), "x"),
    "fewer columns": reshape(0, -10),
}
OF_DIAGONALS = {
    "offset twice": change("offsets", lambda a: np.append(a[:-1], a[0])),
    "offsets are cut": change("offsets", cut),
    "offsets are float": change("offsets", halves),
    "diagonals are cut": change("data", cut),
    "data is flat": change("data", np.ravel),
    "data is text": change("data", no_numbers),
    "offsets are lost": lose("offsets"),
}
OF_BLOCKS = OF_COMPRESSED | {
    "blocks do not fit": change("data", lambda a: np.zeros((len(a), 97, 89))),
    "blocks are empty": change("data", lambda a: a[:, :0]),
}
del OF_BLOCKS["data is nested"]  # it is nested as it should be
OF_BLOCKS["data is flat"] = change("data", np.ravel)
FAULTS = {
    "csr": OF_COMPRESSED | {"fewer columns": reshape(0, -1)},
    "csc": OF_COMPRESSED | {"more columns": reshape(0, 1), "fewer columns": reshape(0, -1)},
    "bsr": OF_BLOCKS,
    "coo": OF_PAIRS,
    "lil": OF_LISTS,
    "dok": OF_KEYS,
    "dia": OF_DIAGONALS,
}
del FAULTS["csc"]["more rows"]  # that is a valid matrix
FAULTS["csc"]["fewer rows"] = reshape(-100, 0)
DAMAGE = tuple(f"{name}: {fault}" for name, faults in FAULTS.items() for fault in faults)


# -- valid and unusual --------------------------------------------------------------------------


def spare(X, rng):
    """Add room for more values, full of rubbish."""
    n = int(rng.integers(1, 9))
    X.indices = np.append(X.indices, rng.integers(-(2**31), 2**31 - 1, n).astype(X.indices.dtype))
    X.data = np.append(X.data, np.full(n, -7, X.data.dtype))
    return X


def shuffled(X, rng):
    """Put the columns of each row in random order."""
    order = np.lexsort((rng.random(X.nnz), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))))
    return type(X)((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def doubled(X, rng):
    """Store every cell in two halves; counts are made even, so that halves are whole."""
    parts = np.repeat(X.data, 2)
    parts[::2], parts[1::2] = 1, parts[1::2] - 1
    twice = type(X)((parts, np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)
    return shuffled(twice, rng)


def stale(X, rng):
    """Claim that columns are in order, which was true once."""
    assert X.has_sorted_indices
    assert X.has_canonical_format
    found = doubled(X, rng)
    X.data, X.indices, X.indptr = found.data, found.indices, found.indptr
    return X


def wide(X, rng):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def mixed(X, rng):
    X.indptr = X.indptr.astype(np.int64)
    return X


def narrow(X, rng):
    X.indices, X.indptr = X.indices.astype(np.int16), X.indptr.astype(np.uint8)
    return X


def locked(X, rng):
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def locked_and_shuffled(X, rng):
    return locked(doubled(X, rng), rng)


def mapped(X, rng):
    """Hold arrays of NumPy's subclass for files."""
    X.data, X.indices, X.indptr = (a.view(np.memmap) for a in (X.data, X.indices, X.indptr))
    return X


def strided(X, rng):
    X.data, X.indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2]
    return X


def swapped(X, rng):
    X.data = X.data.astype(X.data.dtype.newbyteorder(">"))
    return X


def subclassed(X, rng):
    kind = type("Mine", (type(X),), {})
    return kind(X)


def with_zeros(X, rng):
    """Store zeros in the place of nothing, as a sum may leave them."""
    more = X + type(X)(np.ones(X.shape, X.dtype))
    more.data -= 1
    return more


UNUSUAL = {
    "spare capacity": spare,
    "columns out of order": shuffled,
    "cells twice": doubled,
    "flags that lie": stale,
    "spare capacity, cells twice": lambda X, rng: spare(doubled(X, rng), rng),
    "64-bit indices": wide,
    "indices of two types": mixed,
    "small indices": narrow,
    "read-only": locked,
    "read-only, cells twice": locked_and_shuffled,
    "memory-mapped": mapped,
    "strided": strided,
    "other byte order": swapped,
    "subclass": subclassed,
    "stored zeros": with_zeros,
    **{f"as {name}": lambda X, rng, name=name: X.asformat(name) for name in FORMATS},
}
