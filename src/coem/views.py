"""Several views of the same rows: matrices side by side, indexed by row as if they were one."""

import operator
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from functools import reduce
from html import escape
from typing import Any, NoReturn, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state  # type: ignore[import-untyped, unused-ignore]
from sklearn.utils.validation import check_array  # type: ignore[import-untyped, unused-ignore]

from coem.sparse import sound_csr
from coem.typing import CSR, Matrix, Rows, is_sparse


class RowError(ValueError):
    """A row of a view cannot be used.

    The message counts rows from 0, like indices. If you know where the row comes from, use `at`.

    Parameters
    ----------
    view : str
    row : int
    text : str
        What is wrong. It begins with a colon or a blank.
    before : str, default=""
        The beginning of the message.
    """

    def __init__(self, view: str, row: int, text: str, before: str = "") -> None:
        super().__init__(view, int(row), text, before)  # all of them, so that it can be pickled
        self.row = int(row)

    def __str__(self) -> str:
        """Return the message."""
        view, row, text, before = self.args
        return f"{before}view {view!r}, row {row}{text}"

    def at(self, place: str) -> str:
        """Return the message with the place of the row, a line of a file for example."""
        view, _, text, before = self.args
        return f"{before}{place}, view {view!r}{text}"


class Views:
    """Named matrices that describe the same rows.

    Parameters
    ----------
    data : dict, list, tuple or Views, optional
        The matrices by name, or in order (they are then named ``view0``, ``view1``, ...). Each is
        sparse of any format (kept as CSR) or dense of shape (n_rows, n_columns); a DataFrame is
        dense. A matrix is copied only if it must be converted, as a sparse one must be if its
        columns are not in order or a cell is there twice.
    **views : matrices
        More views, by name.

    Notes
    -----
    ``len``, ``shape``, iteration and ``views[rows]`` refer to rows, so that scikit-learn's
    splitters treat a `Views` like one matrix. ``views["title"]`` is the matrix of one view, and
    ``views[["title", "body"]]`` a `Views` of some of them.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views(title=np.eye(3), body=np.ones((3, 2)))
    >>> views[:2]
    <Views of 2 rows: 'title' (2, 3) dense float64, 'body' (2, 2) dense float64>
    """

    __slots__ = ("_data",)
    _data: dict[str, Matrix]

    def __init__(self, data: Any = None, /, **views: Any) -> None:
        self._data = _collect([*_pairs(data), *views.items()])

    @classmethod
    def _of(cls, data: dict[str, Matrix]) -> "Views":
        """Return the views of matrices that are already checked."""
        views = cls.__new__(cls)
        views._data = data
        return views

    @staticmethod
    def split(X: Any, n_views: int, random_state: Any = None) -> "Views":
        """Split the columns of one matrix at random into ``view0``, ``view1``, ...

        Each column goes to one view, and columns stay in order. Sizes differ by at most one.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_columns)
        n_views : int
        random_state : int, RandomState, Generator or None
        """
        X = _matrix(X, "X")
        n_views, n_columns = operator.index(n_views), X.shape[1]
        if not 1 <= n_views <= n_columns:
            raise ValueError(f"n_views must lie between 1 and {n_columns} columns; got {n_views}")
        is_generator = isinstance(random_state, np.random.Generator)
        rng = random_state if is_generator else check_random_state(random_state)
        parts = np.array_split(rng.permutation(n_columns), n_views)
        return Views._of({f"view{i}": X[:, np.sort(part)] for i, part in enumerate(parts)})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return tuple(self._data)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""
        return tuple(int(matrix.shape[1]) for matrix in self._data.values())

    @property
    def n_views(self) -> int:
        """The number of views."""
        return len(self._data)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of the columns of all views together."""
        return len(self), sum(self.widths)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which rows are all 0 or all NaN in which view, (n_rows, n_views); families may differ."""
        return np.column_stack([_empty_rows(matrix) for matrix in self._data.values()])

    def items(self) -> ItemsView[str, Matrix]:
        """Return the pairs of name and matrix, in order."""
        return self._data.items()

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(next(iter(self._data.values())).shape[0])

    def __iter__(self) -> Iterator["Views"]:
        """Iterate over the rows, each a `Views` of one row."""
        return (self[i] for i in range(len(self)))

    def __contains__(self, name: object) -> bool:
        """Return whether there is a view of that name."""
        return isinstance(name, str) and name in self._data

    def __repr__(self) -> str:
        """Return the names, shapes and dtypes in one line."""
        views = (
            f"{name!r} {matrix.shape} {'sparse' if is_sparse(matrix) else 'dense'} {matrix.dtype}"
            for name, matrix in self._data.items()
        )
        return f"<Views of {len(self)} rows: {', '.join(views)}>"

    def _repr_html_(self) -> str:
        """Return a table of the views, for notebooks."""
        n_rows = len(self)
        lines = []
        for (name, matrix), empty in zip(self._data.items(), self.empty.sum(axis=0), strict=True):
            filled = matrix.nnz if is_sparse(matrix) else np.count_nonzero(matrix)
            kind = f"{'sparse' if is_sparse(matrix) else 'dense'} {matrix.dtype}"
            share = f"{filled / max(n_rows * matrix.shape[1], 1):.2%}"
            lines.append((name, f"{matrix.shape[1]:,}", kind, share, f"{empty:,}"))
        head = ("view", "columns", "kind", "filled", "empty rows")
        return html_table(head, lines, f"Views of {n_rows:,} rows")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise, because NumPy would nest views of one row without end."""
        raise TypeError("Views are not one array; take one view by its name, or use .concat()")

    @overload
    def __getitem__(self, key: str) -> Matrix: ...
    @overload
    def __getitem__(self, key: Rows | int | list[str] | tuple[Any, ...]) -> "Views": ...

    def __getitem__(self, key: Any) -> "Matrix | Views":
        """Return one view (a name), some views (a list of names), or some rows (any other key)."""
        if isinstance(key, str):
            return self._data[self._known([key])[0]]
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return Views._of({name: self._data[name] for name in self._known(key)})
        rows = _rows(key, len(self))
        return Views._of({name: matrix[rows] for name, matrix in self._data.items()})

    def concat(self) -> Matrix:
        """Return all columns side by side: CSR if any view is sparse, else dense."""
        parts = list(self._data.values())
        if len(parts) == 1:
            return parts[0]
        dense = [part for part in parts if not is_sparse(part)]
        if len(dense) == len(parts):
            return np.hstack(dense)
        as_csr = sp.csr_array if any(isinstance(p, sp.sparray) for p in parts) else sp.csr_matrix
        side_by_side: CSR = sp.hstack([as_csr(_storable(part)) for part in parts], format="csr")
        return side_by_side

    def merge(self, groups: Mapping[str, Iterable[str]]) -> "Views":
        """Add up views that have the same columns, such as counts of the same words.

        A merged view takes the place of its first member; other views do not change. The sum is
        CSR if all members are sparse, else dense, in the dtype of ``np.sum``. These are the "merged
        views" of Bickel and Scheffer (2005), Section 5: one view of all text, one of all links.

        Parameters
        ----------
        groups : dict of str to list of str
            For each new view, the views to add up. They must have the same number of columns.
        """
        members = {new: [old] if isinstance(old, str) else [*old] for new, old in groups.items()}
        self._known([name for group in members.values() for name in group])
        owner = {name: new for new, group in members.items() for name in group}
        for new, group in members.items():
            if not group or (new in self and new not in owner):
                raise ValueError(f"cannot merge {group} into {new!r}: no members, or name taken")
        merged: dict[str, dict[str, Matrix]] = {}
        for name, matrix in self._data.items():
            merged.setdefault(owner.get(name, name), {})[name] = matrix
        return Views({new: _sum(parts) for new, parts in merged.items()})

    def _known(self, names: list[str]) -> list[str]:
        """Return the names if there are such views and none is named twice."""
        for name in names:
            if name not in self:
                raise KeyError(f"no view {name!r}; there are {', '.join(map(repr, self.names))}")
            if names.count(name) > 1:
                raise ValueError(f"view {name!r} is named twice")
        return names


def html_table(head: Iterable[Any], rows: Iterable[Iterable[Any]], caption: str) -> str:
    """Return a small table as HTML; all cells are text."""

    def line(cells: Iterable[Any], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    top = f"<caption>{escape(caption)}</caption><thead>{line(head, 'th')}</thead>"
    return f"<table>{top}<tbody>{body}</tbody></table>"


def row_keys(views: Views) -> NDArray[np.int64]:
    """Return a number for each row that stands for its content.

    Equal rows have equal keys, whether they are dense or sparse and whatever their precision;
    other rows have others, except with a chance of about 1 in 10**19.
    """
    total = np.zeros(len(views), dtype=np.uint64)
    for number, (_, X) in enumerate(views.items()):
        factors = np.random.default_rng([number, 29]).integers(2**63, size=X.shape[1]) * 2 + 1
        factors = factors.astype(np.uint64)
        if is_sparse(X):
            terms = _bits(X.data) * factors[X.indices]
            sums = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
            total += sums[X.indptr[1:]] - sums[X.indptr[:-1]]
        else:
            total += (_bits(np.asarray(X)) * factors).sum(axis=1, dtype=np.uint64)
    return total.view(np.int64)


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of numbers, mixed; those of 0 are 0."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(29))


def as_views(X: Any, *, what: str = "X") -> Views:
    """Return the `X` of an estimator as `Views`, with at least one row and one column.

    Parameters
    ----------
    X : matrix, list or tuple of matrices, dict, Views or Corpus
        If a member of a list is two-dimensional (a sparse matrix, an array or a DataFrame), the
        list is several views, else the rows of one matrix. One matrix becomes ``view0``; if it has
        objects, they are converted, as scikit-learn requires. A corpus is loaded.
    what : str
        The name of the argument, for error messages.
    """
    if isinstance(X, Views) and all(min(matrix.shape) > 0 for _, matrix in X.items()):
        return _still_sound(X, what)
    X = X.load(what="this method") if hasattr(X, "shards") else X  # a `RowStore`
    if is_several(X):
        data = _collect(_pairs(X), prefix=f"{what}, ", minimum=1)
        return X if isinstance(X, Views) else Views._of(data)
    return Views._of({"view0": _matrix(X, what, minimum=1, convert_objects=True)})


def _still_sound(views: Views, what: str) -> Views:
    """Check views again and return them: a user may have changed their matrices since."""
    sparse = {name: matrix for name, matrix in views.items() if is_sparse(matrix)}
    sound = {name: sound_csr(X, f"{what}, view {name!r}: ") for name, X in sparse.items()}
    same = all(sound[name] is matrix for name, matrix in sparse.items())
    return views if same else Views._of({**dict(views.items()), **sound})


def is_several(X: Any) -> bool:
    """Return whether `as_views` treats `X` as several views, not as one matrix."""
    if isinstance(X, list | tuple):
        return any(getattr(x, "ndim", 0) == 2 for x in X)
    # A DOK matrix is a mapping, but it is one matrix.
    return isinstance(X, Views | Mapping) and not sp.issparse(X)


def _pairs(data: Any) -> list[tuple[Any, Any]]:
    if data is None:
        return []
    if isinstance(data, Views | Mapping):
        return list(data.items())
    if isinstance(data, list | tuple):
        return [(f"view{i}", matrix) for i, matrix in enumerate(data)]
    kind = type(data).__name__
    raise TypeError(f"Views takes a dict or a list of matrices, not {kind}; write Views([X])")


def _collect(pairs: list[tuple[Any, Any]], prefix: str = "", minimum: int = 0) -> dict[str, Matrix]:
    """Return the checked matrices by name."""
    if not pairs:
        raise ValueError(f"{prefix}there must be at least one view")
    data: dict[str, Matrix] = {}
    for name, X in pairs:
        if not isinstance(name, str) or not name or name in data:
            raise ValueError(f"{prefix}view names must be unique non-empty strings; got {name!r}")
        data[name] = _matrix(X, f"{prefix}view {name!r}", minimum=minimum)
        first, *_ = data
        if data[first].shape[0] != data[name].shape[0]:
            raise ValueError(
                f"{prefix}view {first!r} has {data[first].shape[0]} rows but view {name!r} has "
                f"{data[name].shape[0]}; all views must describe the same rows"
            )
    return data


def _matrix(X: Any, label: str, *, minimum: int = 0, convert_objects: bool = False) -> Matrix:
    """Return `X` as CSR or as a dense array of numbers; `X` itself if it is one already."""
    try:
        if not hasattr(X, "shape") or isinstance(X, np.matrix):
            X = np.asarray(X)
        if not convert_objects and getattr(getattr(X, "dtype", None), "kind", "") == "O":
            raise TypeError("holds Python objects, not numbers; convert it with X.astype(float)")
        X = sound_csr(X) if sp.issparse(X) else X  # before anything else looks at its arrays
        limits = {"ensure_min_samples": minimum, "ensure_min_features": minimum}
        X = check_array(X, accept_sparse="csr", ensure_all_finite=False, **limits)
        if X.dtype.kind not in "biuf":
            raise TypeError(f"holds {X.dtype}, not numbers")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{label}: {error}") from error
    checked: Matrix = X
    return checked


def _storable(matrix: Matrix) -> Matrix:
    """Return the matrix in a dtype that scipy can index and stack: not float16."""
    return matrix.astype(np.float32) if matrix.dtype == np.float16 else matrix


def _rows(key: Any, n_rows: int) -> slice | NDArray[np.intp]:
    """Return an index for all matrices that keeps them two-dimensional."""
    # scikit-learn writes ``X[rows, ...]`` if X has a shape; no other tuple selects rows.
    if isinstance(key, tuple):
        key = key[0] if len(key) == 2 and key[1] is Ellipsis else None
    if isinstance(key, slice):
        return key
    rows = np.asarray(key, dtype=np.intp if isinstance(key, list) and not key else None)
    if rows.dtype.kind in "iu" and rows.ndim < 2:
        return np.atleast_1d(rows).astype(np.intp, copy=False)
    if rows.dtype.kind == "b" and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    raise IndexError(f"index by rows (a slice, integers, a mask of length {n_rows}) or by names")


def _empty_rows(matrix: Matrix) -> NDArray[np.bool_]:
    """Return the rows of which all values are 0, or all are NaN."""
    if not is_sparse(matrix):
        return np.asarray(~matrix.any(axis=1) | np.isnan(matrix).all(axis=1))
    n_nonzero, n_nan = (
        np.diff(np.append(0, np.cumsum(flags))[matrix.indptr])
        for flags in (matrix.data != 0, np.isnan(matrix.data))
    )
    return np.asarray((n_nonzero == 0) | (n_nan == matrix.shape[1]))


def _sum(parts: dict[str, Matrix]) -> Matrix:
    """Return the sum of matrices with the same columns; a single matrix itself."""
    widths = {name: part.shape[1] for name, part in parts.items()}
    if len({*widths.values()}) > 1:
        raise ValueError(
            f"merge adds views of the same columns, but the numbers of columns differ: {widths}; "
            f"to place columns side by side use views[{[*parts]}].concat()"
        )
    first, *others = parts.values()
    if not others:
        return first
    # NumPy's dtype for sums, because small integers would wrap around.
    dtype = np.zeros(1, np.result_type(*(part.dtype for part in parts.values()))).sum().dtype
    total = reduce(operator.add, others, first.astype(dtype))
    return total if is_sparse(total) else np.asarray(total)
