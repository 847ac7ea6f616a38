"""A linear classifier over the views of a mixture: what a pool asks beside the mixture."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from coem.engine.blas import one_thread
from coem.families import Gaussian, VonMisesFisher
from coem.families.base import AnyFamily
from coem.families.mixture_of import innermost
from coem.kernels import threads
from coem.typing import Array, Matrix, is_sparse
from coem.views import Views

MAX_ITER = 1000  # of the solver; a few labels take some dozens
TOL = 1e-8  # the largest slope at its end
MOST_ROWS = 2000  # whose products with each other are decomposed


@dataclass(frozen=True)
class ViewScale:
    """How the columns of one view become features: (value - centre) * scale."""

    kind: str  # "counts", "directions" or "numbers"
    centre: Array  # (n_columns,); used for numbers only
    scale: Array  # (n_columns,)

    def features(self, X: Matrix) -> sp.csr_array:
        """Return the features of encoded rows.

        The squares of a row add up to 1, for numbers on average, so that all views weigh the same.
        A missing number becomes 0, the mean.
        """
        if self.kind == "numbers":
            values = (_dense(X) - self.centre) * self.scale
            return sp.csr_array(np.nan_to_num(values, posinf=0.0, neginf=0.0))
        rows = _sparse(X)
        rows.data[~np.isfinite(rows.data)] = 0.0
        if self.kind == "counts":  # roots: the same for a text and its shortened version
            rows.data = np.sqrt(rows.data) * self.scale[rows.indices]
        return sp.csr_array(normalize(rows, copy=False))


def _sparse(X: Matrix) -> sp.csr_array:
    """Return the rows in a new CSR matrix with one entry per cell."""
    rows = sp.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    return rows


def _dense(X: Matrix) -> Array:
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def scale_of(family: AnyFamily, X: Matrix, weight: Array | None) -> ViewScale:
    """Return how encoded rows of a family become features; rare words count more than others."""
    width, mass = X.shape[1], np.ones(X.shape[0]) if weight is None else weight
    nothing, kind = np.zeros(width), innermost(family)
    if isinstance(kind, VonMisesFisher):
        return ViewScale("directions", nothing, nothing + 1)
    if isinstance(kind, Gaussian):
        return ViewScale("numbers", *_standard(_dense(X), mass))
    rows = _sparse(X)
    rows.data[:] = rows.data > 0
    present = mass @ rows
    return ViewScale("counts", nothing, 1.0 + np.log((1.0 + mass.sum()) / (1.0 + present)))


def _standard(X: Array, mass: Array) -> tuple[Array, Array]:
    """Return the means of the columns, and what scales them; 0 for a column that does not vary."""
    given = np.isfinite(X)
    total = np.maximum(mass @ given, np.finfo(np.float64).tiny)
    filled = np.where(given, X, 0.0)
    centre = (mass @ filled) / total
    spread = np.sqrt((mass @ (given * (filled - centre) ** 2)) / total * X.shape[1])
    varies = spread > 1e-10 * np.abs(centre)
    return centre, np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)


class Weights(NamedTuple):
    """What a linear classifier has learned of one view."""

    columns: Array  # (n_columns,) those that labelled rows have; the others count nothing
    coef: Array  # (n_classes, n_columns)


@dataclass(frozen=True)
class LinearModel:
    """Multinomial logistic regression on the features of several views."""

    scales: dict[str, ViewScale]
    weights: dict[str, Weights]
    intercept: Array  # (n_classes,)

    def log_proba(self, rows: Mapping[str, sp.csr_array]) -> Array:
        """Return log P(class | row) of features, of shape (n_rows, n_classes)."""
        scores = np.tile(self.intercept, (next(iter(rows.values())).shape[0], 1))
        for name, (columns, coef) in self.weights.items():
            scores += rows[name][:, columns] @ coef.T
        return np.asarray(log_softmax(scores, axis=1))

    def terms(self, name: str, row: sp.csr_array) -> tuple[Array, Array]:
        """Return the columns of one row of features that count, and their terms, by class."""
        columns, coef = self.weights[name]
        own = row[:, columns].tocoo()
        places = np.asarray(own.col)
        return columns[places], coef[:, places].T * own.data[:, np.newaxis]


def features_of(
    scales: Mapping[str, ViewScale], families: Mapping[str, AnyFamily], views: Views
) -> dict[str, sp.csr_array]:
    """Return the features of rows, by view."""
    return {
        name: scale.features(encoded(families[name], views, name)) for name, scale in scales.items()
    }


def encoded(family: AnyFamily, views: Views, name: str) -> Matrix:
    """Return the rows of a view as its family reads them."""
    rows: Matrix = family.encode(family.check(views[name], name))
    return rows


def fit_linear(
    scales: dict[str, ViewScale],
    rows: Mapping[str, sp.csr_array],
    codes: Array,
    weight: Array | None,
    n_classes: int,
    C: float,
) -> LinearModel:
    """Fit the classifier to features of rows whose class is known.

    Only columns that these rows have are used: the penalty keeps the weights of others at 0.
    """
    used = {name: np.unique(X.indices[X.data != 0]) for name, X in rows.items()}
    parts = [rows[name][:, columns] for name, columns in used.items()]
    coef, intercept = np.zeros((n_classes, sum(map(len, used.values())))), np.zeros(n_classes)
    if n_classes > 1 and coef.shape[1]:
        coef, intercept = _solve(sp.hstack(parts, format="csr"), codes, weight, C)
    ends = np.cumsum([len(columns) for columns in used.values()])[:-1]
    tables = np.split(coef, ends, axis=1)
    weights = {
        name: Weights(columns, table)
        for (name, columns), table in zip(used.items(), tables, strict=True)
    }
    return LinearModel(scales, weights, intercept)


def _solve(X: sp.csr_array, codes: Array, weight: Array | None, C: float) -> tuple[Array, Array]:
    """Return coefficients and intercepts; of two classes the first has zeros."""
    model = LogisticRegression(C=C, max_iter=MAX_ITER, tol=TOL)
    with one_thread(), warnings.catch_warnings():
        # The penalty makes the end of the search flat: what is missing changes no prediction.
        warnings.simplefilter("ignore", ConvergenceWarning)
        short, back = _shortened(X)
        model.fit(short, codes, sample_weight=weight)
        coef, intercept = back(model.coef_), model.intercept_
    if len(coef) == 1:
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    return np.ascontiguousarray(coef), np.asarray(intercept)


def _shortened(X: sp.csr_array) -> tuple[Any, Callable[[Array], Array]]:
    """Return the rows in fewer dimensions, and what turns their coefficients into those of `X`.

    The penalty keeps coefficients in the span of the rows, so that coordinates in it give the same
    solution. A few hundred rows have tens of thousands of columns, and the solver's time grows
    with the number of coefficients.
    """
    if X.shape[0] > min(MOST_ROWS, X.shape[1]):
        return sp.csr_matrix(X), lambda coef: coef
    values, vectors = threads.aside(partial(_decomposed, (X @ X.T).toarray()))
    kept = values > values[-1] * X.shape[0] * np.finfo(np.float64).eps
    lengths, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return vectors * lengths, lambda coef: np.asarray((X.T @ (vectors / lengths @ coef.T)).T)


def _decomposed(gram: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors; 2,000 rows take seconds that hear no signal."""
    with one_thread():  # in the thread that this runs in: some limits hold for one thread alone
        values, vectors = np.linalg.eigh(gram)
    return values, vectors
