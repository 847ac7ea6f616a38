"""What a component family is: a density, additive statistics and an M step."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta
from coem.views import RowError


class Family(ABC):
    """Base of the component families.

    A family is a frozen dataclass of hyper-parameters; its methods are pure, parameters (`theta`)
    are passed in and returned. Every array of `theta` has the component on its first axis.

    To write one, implement `log_prob`, `stats`, `estimate`, `start` and `sample`, add `log_prior`
    if there is a prior, and run `coem.families.check_family` on it. The other methods have
    defaults that suit dense real rows.
    """

    wide: ClassVar[bool] = False
    """True if the statistics are a table as wide as the rows. The M step then gathers all rows in
    one call, whose kernel shares the components out among threads, instead of adding up one table
    a block."""

    nonnegative: ClassVar[bool] = False
    """True if the family takes no negative values."""

    allows_nan: ClassVar[bool] = False
    """True if any value may be NaN, for missing; whole rows of NaN may be empty rows besides."""

    single_precision: ClassVar[bool] = False
    """True if float32 parameters serve the family well, float64 being the exception."""

    theta_type: ClassVar[Any] = None
    """The NamedTuple that the parameters are, or None if they are one array. Files need it."""

    # -- what every family says ------------------------------------------------------------

    @abstractmethod
    def log_prob(self, X: Matrix, theta: Theta) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""

    @abstractmethod
    def stats(self, X: Matrix, resp: Array) -> Stats:
        """Return the statistics of the rows under `resp` (n_rows, n_components), weights inside."""

    @abstractmethod
    def estimate(self, stats: Any) -> Theta:
        """Return the parameters that maximise the expected log likelihood plus `log_prior`.

        A component without rows gets the prior's mode, or what the pooled rows give.
        """

    def maximise(self, X: Matrix, resp: Array) -> Theta:
        """Return ``estimate(stats(X, resp))``; a `wide` family may do so in less memory."""
        return self.estimate(self.stats(X, resp))

    def log_prob_without(self, X: Matrix, own: Array, stats: Any) -> Array:
        """Return log p(x | component) of rows, each under parameters that have not seen it.

        `own` (n_rows, n_components) is the share that each row has in `stats`. A family overrides
        this if the parameters that a row alone changes can be had for less.
        """
        rows = []
        for i, share in enumerate(own):
            x = X[i : i + 1]
            rest = stats + self.stats(x, share[np.newaxis]).scaled(-1.0)
            if hasattr(rest, "mass"):  # what is left of a difference of equal sums is rounding
                left = np.where(rest.mass > 1e-13 * stats.mass, rest.mass, 0.0)
                rest = replace(rest, mass=left)
            rows.append(self.log_prob(x, self.estimate(rest))[0])
        return np.array(rows).reshape(own.shape)

    @abstractmethod
    def start(self, pooled: Any, n_components: int, rng: Rng) -> Theta:
        """Return random parameters near `pooled`, the statistics of all rows as one component."""

    @abstractmethod
    def sample(self, theta: Theta, labels: Array, rng: Rng) -> Matrix:
        """Return one row drawn from the component that each entry of `labels` names."""

    # -- what may be left as it is ---------------------------------------------------------

    @property
    def exact(self) -> bool:
        """True if no step of EM can lower the objective but by rounding.

        False grants the laws a slack of 1e-6, relative: an M step beside the maximum.
        """
        return True

    def log_prior(self, theta: Theta) -> float:
        """Return the log prior density of `theta`, up to a constant."""
        return 0.0

    def n_parameters(self, theta: Theta) -> int:
        """Return the number of free parameters, for information criteria."""
        return sum(np.asarray(part).size for part in (theta if _is_tuple(theta) else (theta,)))

    def feature_probs(self, theta: Theta) -> Array | None:
        """Return p(feature | component), (n_components, n_features), or None if there is none."""
        return None

    def locate(self, feature: int) -> Any:
        """Return the column that a feature of `feature_probs` is, or (column, level)."""
        return feature

    def terms(self, X: Matrix, theta: Theta) -> tuple[Array, Array, Array] | None:
        """Return what every feature of one row adds to log p(x | component), for `explain`.

        Returns the features (m,), their terms (m, n_components) and the rest (n_components,), or
        None if the density does not come apart: the row is then explained as a whole.
        """
        return None

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if its values are fit for the family, else raise an error that says why."""
        return check_values(X, view, nonnegative=self.nonnegative)

    def empty(self, X: Matrix) -> Array:
        """Return which rows say nothing, of shape (n_rows,)."""
        return np.zeros(X.shape[0], dtype=bool)

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with what it must learn from the whole of `X` before any step.

        `dtype` is the precision asked for, None for the family's own choice.
        """
        return self

    def encode(self, X: Matrix) -> Matrix:
        """Return `X` in the form that `log_prob` and `stats` compute with."""
        return X

    def restore(self, parts: Sequence[Array]) -> Theta:
        """Return parameters that were taken apart: one array, or the fields of `theta_type`."""
        if self.theta_type is not None:
            return self.theta_type(*parts)
        if len(parts) != 1:
            raise ValueError(
                f"the parameters of {type(self).__name__} are a tuple: set its theta_type, so that "
                "they can be read from a file"
            )
        return parts[0]

    def example(self, rng: Rng) -> Matrix:
        """Return rows such as the family takes, for `check_family`: here, three groups of 40.

        They are counts if the family is `nonnegative`, else real numbers. If it `allows_nan`, one
        row is missing.
        """
        centres = np.repeat(rng.standard_normal((3, 6)), 40, axis=0)
        if self.nonnegative:
            return rng.poisson(np.exp(centres))
        rows = 3 * centres + rng.standard_normal(centres.shape)
        if self.allows_nan:
            rows[-1] = np.nan
        return rows


def check_values(
    X: Matrix,
    view: str,
    *,
    nonnegative: bool,
    advice: str = " (for real values use family='gaussian')",
) -> Matrix:
    """Raise an error that names the view and the row if a value is not finite or negative."""
    values = X.data if sp.issparse(X) else X
    if sp.issparse(X):
        _check_structure(X, view)
    # The sum is finite if all values are, and needs no array of its own; huge values fool it.
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(values).all():
        row, value = _first_bad(X, lambda x: ~np.isfinite(x))
        raise RowError(
            view,
            row,
            f": the value {value} is not finite (NaN or infinity); drop the row or fill it in",
        )
    if nonnegative and values.size and values.min() < 0:
        row, value = _first_bad(X, lambda x: x < 0)
        text = f" has {value}; counts must be 0 or more{advice}"
        raise RowError(view, row, text, "Negative values in data: ")
    return X


def check_magnitude(X: Matrix, view: str, largest: float = 1e150) -> None:
    """Refuse values whose squares would overflow."""
    values = X.data if sp.issparse(X) else np.asarray(X)
    top = np.fmax.reduce(values, axis=None, initial=0)  # and no copy of the absolute values
    bottom = np.fmin.reduce(values, axis=None, initial=0)
    if max(float(top), -float(bottom)) > largest:
        row, value = _first_bad(X, lambda x: np.abs(x) > largest)
        raise RowError(view, row, f": {value} is too large; scale the view down")


def _check_structure(X: Matrix, view: str) -> None:
    """Refuse a CSR matrix whose arrays point outside each other: kernels trust them."""
    starts, n_stored = X.indptr, len(X.indices)
    in_order = starts[0] == 0 and starts[-1] <= n_stored and (np.diff(starts) >= 0).all()
    inside = n_stored == 0 or (X.indices.min() >= 0 and X.indices.max() < X.shape[1])
    if not (in_order and inside and n_stored == len(X.data)):
        raise ValueError(
            f"view {view!r}: the CSR matrix is damaged, its rows or columns point outside its "
            "arrays; build it again (X.check_format() says where)"
        )


def _first_bad(X: Matrix, bad: Any) -> tuple[int, Any]:
    if sp.issparse(X):
        place = int(np.flatnonzero(bad(X.data))[0])
        return int(np.searchsorted(X.indptr, place, side="right")) - 1, X.data[place]
    row, column = np.argwhere(bad(np.asarray(X)))[0]
    return int(row), X[row, column]


def _is_tuple(theta: Theta) -> bool:
    return isinstance(theta, tuple)


def check_missing_rows(X: Matrix, view: str) -> Matrix:
    """Return `X` if it is real and finite but for rows that are NaN as a whole, else raise."""
    if X.dtype.kind not in "buif":
        raise ValueError(f"view {view!r}: the values must be real numbers, not {X.dtype}")
    if sp.issparse(X):
        return check_values(X, view, nonnegative=False)
    if np.isinf(X).any():
        row, value = _first_bad(X, np.isinf)
        raise RowError(view, row, f": the value {value} is not finite; fill it in")
    missing = np.isnan(X)
    partly = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if partly.size:
        raise RowError(
            view,
            partly[0],
            ": some of its values are NaN but not all; fill it in or make the whole row NaN",
        )
    return X
