"""What a component family is: a density, additive statistics and an M step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast

import numpy as np

from coem.kernels.sparse_tables import SparseTable
from coem.stats import Stats
from coem.typing import Array, Matrix, MatrixT, Rng, Theta, is_sparse
from coem.views import RowError

ThetaT = TypeVar("ThetaT", bound=Theta)
Found = TypeVar("Found")
StatsT = TypeVar("StatsT", bound=Stats)


class Family(ABC, Generic[ThetaT, StatsT, MatrixT]):
    """Base of the component families.

    A family is a frozen dataclass of hyper-parameters. Its methods are pure: parameters (`theta`)
    are passed in and returned. Every array of `theta` has the component on its first axis.

    To write a family, implement `log_prob`, `stats`, `estimate`, `start` and `sample`. If there is
    a prior, add `log_prior`. Then run `coem.families.check_family` on it. The other methods have
    defaults that suit dense real rows.

    A type checker wants three types in brackets: that of `theta`, that of the statistics, and that
    of the rows which `encode` returns. They have no effect at run time, and you can leave them out.
    """

    wide: ClassVar[bool] = False
    """True if the statistics are a table as wide as the rows. The M step then gathers all rows in
    one call, whose kernel divides the components among threads. Otherwise it adds up one table per
    block."""

    nonnegative: ClassVar[bool] = False
    """True if the family refuses negative values."""

    allows_nan: ClassVar[bool] = False
    """True if any value may be NaN, for a missing value. If False, a family may still take rows
    that are NaN as a whole, as empty rows."""

    single_precision: ClassVar[bool] = False
    """True if float32 parameters are precise enough, so that they are the default."""

    theta_type: ClassVar[Any] = None
    """The NamedTuple that the parameters are, or None if they are one array. It is needed to read
    parameters from a file."""

    # -- what every family implements ------------------------------------------------------

    @abstractmethod
    def log_prob(self, X: MatrixT, theta: ThetaT) -> Array:
        """Return log p(x | component), of shape (n_rows, n_components)."""

    @abstractmethod
    def stats(self, X: MatrixT, resp: Array) -> StatsT:
        """Return the statistics of the rows under `resp` (n_rows, n_components), weights inside."""

    @abstractmethod
    def estimate(self, stats: StatsT) -> ThetaT:
        """Return the parameters that maximise the expected log likelihood plus `log_prior`.

        A component without rows gets the mode of the prior, or the estimate from all rows.
        """

    def stats_under(self, X: MatrixT, resp: Array, theta: ThetaT | None) -> StatsT:
        """Return the statistics when the family has hidden variables of its own.

        Such a family infers them from the rows and the current parameters `theta`, which are None
        before there are any. An M step on these statistics must not lower the sum of
        ``resp * log_prob`` plus `log_prior`. By default nothing is hidden.
        """
        return self.stats(X, resp)

    def add_stats(self, total: StatsT, X: MatrixT, resp: Array, theta: ThetaT | None) -> StatsT:
        """Return ``total + stats_under(X, resp, theta)``, in the memory of `total` where it fits.

        The caller must not read `total` after the call. A `wide` family may override this method,
        so that each row goes straight to the total. The result is the sum up to rounding.
        """
        total += self.stats_under(X, resp, theta)
        return total

    def maximise(self, X: MatrixT, resp: Array, theta: ThetaT | None = None) -> ThetaT:
        """Return ``estimate(stats_under(X, resp, theta))``; a `wide` family may save memory."""
        return self.estimate(self.stats_under(X, resp, theta))

    def log_prob_without(
        self, X: MatrixT, own: Array, stats: StatsT, theta: ThetaT | None = None
    ) -> Array:
        """Return log p(x | component) of rows, each under parameters that have not seen it.

        `own` (n_rows, n_components) is the share that each row has in `stats`, which were gathered
        under `theta`. Override this method if there is a faster way to the parameters without one
        row.
        """
        rows = []
        for i, share in enumerate(own):
            x = cast(MatrixT, X[i : i + 1])
            rest = _without(stats, self.stats_under(x, share[np.newaxis], theta))
            rows.append(self.log_prob(x, self.estimate(rest))[0])
        return np.array(rows).reshape(own.shape)

    @abstractmethod
    def start(self, pooled: StatsT, n_components: int, rng: Rng) -> ThetaT:
        """Return random parameters near `pooled`, the statistics of all rows as one component."""

    def start_within(self, stats: StatsT, n_components: int, n_parts: int, seed: int) -> ThetaT:
        """Return random parameters near each component: `n_parts` for each, side by side.

        All components have the same random numbers, so that their order makes no difference. A
        component without rows starts from all rows. Override this method if components share some
        of the statistics.
        """
        parts = stats.apart(n_components)
        pooled = reduce(add, parts)
        pools = (pooled if part.is_zero else part for part in parts)
        return stack([self.start(pool, n_parts, np.random.default_rng(seed)) for pool in pools])

    @abstractmethod
    def sample(self, theta: ThetaT, labels: Array, rng: Rng) -> Matrix:
        """Return one row drawn from the component that each entry of `labels` names."""

    # -- methods with a default ------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """True if no step of EM can lower the objective, except by rounding.

        If False, `check_family` lets the objective fall by 1e-6, relative to its size.
        """
        return True

    @property
    def hidden(self) -> bool:
        """True if an M step needs the current parameters: the family overrides `stats_under`."""
        return type(self).stats_under is not Family.stats_under

    @property
    def takes_labels(self) -> bool:
        """True if `stats` also takes a `kernels.one_hot.OneHot` in place of an (n, k) array.

        A mixture with one hard posterior then keeps labels.
        """
        return False

    def lists_words(self, n_components: int, n_features: int) -> bool:
        """Return whether parameters of this shape would be too large as dense tables.

        They are `kernels.sparse_tables.SparseTable` then. Starts make no dense tables either.
        """
        return False

    @property
    def dense(self) -> Self:
        """The same family with dense tables, whatever their size."""
        return self

    def score_table(self, theta: ThetaT) -> Any:
        """Return the table (n_components, n_features) whose product with a row is `log_prob`.

        It may be a `kernels.sparse_tables.SparseTable`.

        Rows must be CSR and not negative, and `stats` and `maximise` also take a
        `kernels.row_lists.RowLists` in place of an (n, k) array. A mixture with many components
        then leaves out those that cannot matter to a row. Return None if there is no such table.
        """
        return None

    def log_prior(self, theta: ThetaT) -> float:
        """Return the log prior density of `theta`, up to a constant."""
        return 0.0

    def n_parameters(self, theta: ThetaT) -> int:
        """Return the number of free parameters, for information criteria."""
        parts = theta if isinstance(theta, tuple) else (theta,)
        return sum(np.asarray(part).size for part in parts)

    def collapsed(self, theta: ThetaT, weights: Array) -> Array:
        """Return the components that have collapsed onto rows that do not vary, for a warning.

        `weights` (n_components,) are the shares of the components in all rows.
        """
        return np.empty(0, dtype=np.intp)

    def feature_probs(self, theta: ThetaT) -> Array | None:
        """Return p(feature | component), (n_components, n_features), or None if there is none."""
        return None

    def locate(self, feature: int) -> Any:
        """Return the column of a feature of `feature_probs`, or its (column, level)."""
        return feature

    def terms(self, X: MatrixT, theta: ThetaT) -> tuple[Array, Array, Array] | None:
        """Return what each feature of one row adds to log p(x | component), for `explain`.

        Returns the features (m,), their terms (m, n_components) and the rest (n_components,). If
        the density is not such a sum, return None: `explain` then treats the row as a whole.
        """
        return None

    def check(self, X: Matrix, view: str) -> Matrix:
        """Return `X` if the family can take its values, else raise an error that says why."""
        return check_values(X, view, nonnegative=self.nonnegative)

    def empty(self, X: Matrix) -> Array:
        """Return which rows carry no information, of shape (n_rows,)."""
        return np.zeros(X.shape[0], dtype=bool)

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with what it must learn from all rows before the first step.

        `dtype` is the requested precision; None leaves the choice to the family.
        """
        return self

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return what `bind` returns, for more rows than fit in memory.

        `pieces` are all rows in pieces, and can be gone through more than once; `each_piece`
        looks at them where they are. If your family overrides `bind`, override this method too, so
        that it can be fitted to a corpus.
        """
        if type(self).bind is not Family.bind:
            raise TypeError(
                f"{type(self).__name__} cannot be fitted to a corpus: it overrides bind; let it "
                "override bind_pieces, too"
            )
        return self

    def encode(self, X: Matrix) -> MatrixT:
        """Return `X` in the form that `log_prob` and `stats` compute with."""
        return cast(MatrixT, X)

    def restore(self, parts: Sequence[Array]) -> ThetaT:
        """Return the parameters that consist of `parts`: one array, or the `theta_type` fields."""
        if self.theta_type is not None:
            return cast(ThetaT, self.theta_type(*parts))
        if len(parts) != 1:
            raise ValueError(
                f"the parameters of {type(self).__name__} are a tuple: set its theta_type, so that "
                "they can be read from a file"
            )
        return cast(ThetaT, parts[0])

    def example(self, rng: Rng) -> Matrix:
        """Return rows that the family can take, for `check_family`; by default three groups of 40.

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


AnyFamily: TypeAlias = Family[Any, Any, Any]
"""A family whose types are not known: the user chooses the family of each view at run time, so
that a mixture over several views cannot name their types."""


def each_piece(function: Callable[[Matrix], Found], pieces: Iterable[Matrix]) -> Iterator[Found]:
    """Yield what a function finds in the pieces of `bind_pieces`, looked at where they are."""
    looking = getattr(pieces, "map", None)
    found: Iterator[Found] = map(function, pieces) if looking is None else looking(function)
    return found


def stack(parts: Sequence[ThetaT]) -> ThetaT:
    """Join the parameters of several mixtures to those of one mixture."""
    first: Any = parts[0]
    if any(isinstance(part, SparseTable) for part in parts):
        return cast(ThetaT, SparseTable.stacked(cast(Any, parts)))
    if isinstance(first, tuple):
        fields = zip(*cast(Any, parts), strict=True)
        return cast(ThetaT, type(first)(*(np.concatenate(field) for field in fields)))
    return cast(ThetaT, np.concatenate(cast(Any, parts)))


def _without(stats: StatsT, row: StatsT) -> StatsT:
    """Return the statistics less those of a row; a weight that is only rounding becomes 0."""
    rest = stats + row.scaled(-1.0)
    for name in ("mass", "observed"):  # the weights that sums are divided by
        before, after = (getattr(sums, name, None) for sums in (stats, rest))
        if before is not None and after is not None:
            rest = replace(rest, **{name: np.where(after > 1e-13 * before, after, 0.0)})
    return rest


def check_values(
    X: MatrixT,
    view: str,
    *,
    nonnegative: bool,
    advice: str = " (for real values use family='gaussian')",
) -> MatrixT:
    """Return `X`, or raise an error that names the view and the row with an invalid value.

    A value is invalid if it is not finite or, with `nonnegative`, if it is negative.
    """
    values = X.data if is_sparse(X) else X
    # If the sum is finite, so are all values; this needs no second array. The sum of huge values
    # may overflow, and then each value is checked.
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
    """Raise if a value is so large that its square would overflow."""
    values = X.data if is_sparse(X) else np.asarray(X)
    top = np.fmax.reduce(values, axis=None, initial=0)  # np.abs would make a copy
    bottom = np.fmin.reduce(values, axis=None, initial=0)
    if max(float(top), -float(bottom)) > largest:
        row, value = _first_bad(X, lambda x: np.abs(x) > largest)
        raise RowError(view, row, f": {value} is too large; scale the view down")


def _first_bad(X: Matrix, bad: Callable[[Array], Array]) -> tuple[int, Any]:
    """Return the row and the value of the first entry for which `bad` is true."""
    if is_sparse(X):
        place = int(np.flatnonzero(bad(X.data))[0])
        return int(np.searchsorted(X.indptr, place, side="right")) - 1, X.data[place]
    row, column = np.argwhere(bad(np.asarray(X)))[0]
    return int(row), X[row, column]


def check_real(X: MatrixT, view: str) -> MatrixT:
    """Return `X` if it is real and has no infinity, and no NaN if it is sparse; else raise."""
    if X.dtype.kind not in "buif":
        raise ValueError(f"view {view!r}: the values must be real numbers, not {X.dtype}")
    if is_sparse(X):
        return check_values(X, view, nonnegative=False)
    if np.isinf(X).any():
        row, value = _first_bad(X, np.isinf)
        raise RowError(view, row, f": the value {value} is not finite; fill it in")
    return X


def check_missing_rows(X: MatrixT, view: str) -> MatrixT:
    """Return `X` if it is real and finite, except for rows that are NaN as a whole; else raise."""
    X = check_real(X, view)
    if is_sparse(X):
        return X
    missing = np.isnan(X)
    partly = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if partly.size:
        raise RowError(
            view,
            partly[0],
            ": some of its values are NaN but not all; fill it in or make the whole row NaN",
        )
    return X
