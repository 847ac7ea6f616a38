"""The family that suits the rows of a view, and the reason: what "auto" takes."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from coem.families import Gaussian, Multinomial, VonMisesFisher
from coem.families.base import AnyFamily
from coem.typing import CSR, Array, Matrix, is_sparse

REG = 1e-6  # of a Gaussian, in units of the column that varies least: a quarter of its range
ROWS_PER_COLUMN = 5  # with fewer rows, a matrix of covariances is mostly noise
FILLED = 0.5  # a sparse matrix with a larger share of values is taken for a dense one


class Choice(NamedTuple):
    """A family, and why it was taken: what the values of the view are."""

    family: AnyFamily
    why: str


def choose(X: Matrix, n_rows: float | None = None) -> Choice:
    """Return the family for the rows of a view; it depends on nothing else.

    `n_rows` is the total weight of the rows, by default their number.
    """
    values = X.data if is_sparse(X) else np.asarray(X)
    if values.dtype.kind not in "biuf":  # which the check of any family refuses
        return Choice(Multinomial(), f"its values are of type {values.dtype}")
    negative = bool(values.size) and bool(values.min() < 0)
    if not negative and _is_whole(values):
        return Choice(Multinomial(), "its values are counts (whole numbers of 0 or more)")
    if has_unit_rows(X):
        return Choice(VonMisesFisher(), "its rows are directions (they have length 1)")
    if is_sparse(X) and are_weights(X):
        return Choice(
            VonMisesFisher("fit"),
            "its rows are weights, such as TF-IDF, of which only the direction counts "
            "(counts usually group better)",
        )
    if not negative and _are_scaled_counts(X):
        return Choice(Multinomial(), "its rows are counts that were scaled or weighted")
    family = _gaussian(X, X.shape[0] if n_rows is None else n_rows)
    return Choice(family, f"its values are real numbers ({_kind(values)})")


def has_unit_rows(X: Matrix) -> bool:
    """Return whether the rows are directions: dense, real, and of length 1.

    Rows of zeros and rows with NaN are missing rows, and do not count. Rows that hold only zeros
    and ones are not directions, although some have length 1.
    """
    return not is_sparse(X) and _are_unit(X)


def are_weights(X: Matrix) -> bool:
    """Return whether all rows have length 1, or a total of 1, and are not just zeros and ones.

    TF-IDF rows are of this kind. A family of counts would take such a row for about one word.
    """
    values = X.data if is_sparse(X) else X
    return not _is_whole(values) and (_are_unit(X) or _are_one(_sums(X)))


def _kind(values: Array) -> str:
    """Say what tells real numbers from counts."""
    if np.isnan(values).any():
        return "some are missing"
    return "some are negative" if values.min() < 0 else "some are fractions"


def _is_whole(values: Array) -> bool:
    return values.dtype.kind != "f" or bool(np.array_equal(values, np.rint(values)))


def _are_unit(X: Matrix) -> bool:
    """Return whether all rows have Euclidean length 1, and not only zeros and ones."""
    if X.dtype.kind != "f":
        return False
    lengths = np.sqrt(_sums(X, power=2))
    if not _are_one(lengths):
        return False
    there = X.data if is_sparse(X) else X[lengths > 0]
    return not _is_whole(there) or bool((there < 0).any())  # 1 and -1 are directions on a line


def _are_one(sizes: Array) -> bool:
    """Return whether all sizes of rows are 1; 0 and NaN are those of missing rows."""
    there = sizes[~np.isnan(sizes) & (sizes != 0)]
    return bool(there.size) and not bool((np.abs(there - 1) > 1e-2).any())  # allows half precision


def _sums(X: Matrix, power: int = 1) -> Array:
    """Return the sum of a power of the values of each row, (n,), in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not is_sparse(X):
            return np.asarray((np.asarray(X, dtype=np.float64) ** power).sum(axis=1))
        values = X.data[: X.indptr[-1]].astype(np.float64) ** power
        return np.bincount(_owners(X), weights=values, minlength=X.shape[0])


def _owners(X: CSR) -> Array:
    """Return the row of each stored value."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def _are_scaled_counts(X: Matrix) -> bool:
    """Return whether fractions that are not negative come from counts.

    Those of a sparse matrix do: counts of words that were scaled (`ScaleLength`) or weighted. If
    few values are 0, the matrix may as well hold measurements, and needs evidence: rows of one
    total, or rows that are whole numbers in units of their least value. A dense one needs both.
    """
    if is_sparse(X) and X.nnz <= FILLED * X.shape[0] * X.shape[1]:
        return True
    totals = _sums(X)
    there = totals[totals > 0]
    if not np.isfinite(totals).all() or not there.size:
        return False
    same = float(there.max()) <= 1.001 * float(there.min()) and float(there.min()) > 1.01
    if is_sparse(X):
        return same or _are_multiples(X)
    return same and _are_multiples(csr_matrix(X))


def _are_multiples(X: CSR) -> bool:
    """Return whether most rows are whole numbers times their least value, as scaled counts are."""
    data, owners = X.data[: X.indptr[-1]].astype(np.float64), _owners(X)
    data, owners = data[data > 0], owners[data > 0]
    filled, starts = np.unique(owners, return_index=True)
    least = np.repeat(np.minimum.reduceat(data, starts), np.diff(np.append(starts, len(data))))
    times = data / least
    off = np.abs(times - np.rint(times)) > 1e-3 + 1e-6 * times
    return len(np.unique(owners[off])) <= 0.5 * len(filled)


def _gaussian(X: Matrix, n_rows: float) -> Gaussian:
    """Return "tied" Gaussians if the rows suffice for a matrix of covariances, else "diag" ones.

    A tied matrix cannot collapse onto the rows of one component. With missing values, its cost
    would grow with the number of patterns in which they are missing.
    """
    missing = not is_sparse(X) and bool(np.isnan(X).any())
    enough = n_rows >= ROWS_PER_COLUMN * X.shape[1]
    return Gaussian("tied" if enough and not missing else "diag", _reg(X))


def _reg(X: Matrix) -> float:
    """Return what a Gaussian may add to all variances, so that no column that varies drowns.

    It goes by the ranges of the columns, which stay the same if rows are repeated.
    """
    if is_sparse(X):
        top, bottom = (
            X.max(axis=0).toarray().ravel(),
            -X.multiply(-1.0).max(axis=0).toarray().ravel(),
        )
    else:
        top, bottom = (f.reduce(X, axis=0) for f in (np.fmax, np.fmin))  # which skip NaN
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = np.asarray(top - bottom, dtype=np.float64)
        varied = ranges[ranges > 1e-6 * np.maximum(np.abs(top), np.abs(bottom))]
        return REG * min(1.0, float(np.square(varied / 4).min(initial=1.0)))
