"""Views: what they hold, how they are indexed, and that scikit-learn takes them for one matrix."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing, indexable, shuffle
from sklearn.utils.validation import _num_samples, check_array, check_consistent_length

from coem.views import RowError, Views, as_views, row_keys

A = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 0]])
B = np.array([[0.5, 1.5], [2.5, 0.0], [0.0, 0.0], [1.0, 1.0]])
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.uint16, np.int64, np.bool_]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def assert_same(one: Views, other: Views) -> None:
    """Assert equal names and, view by view, equal type, dtype and values."""
    assert one.names == other.names
    for (_, a), (_, b) in zip(one.items(), other.items(), strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(dense(a), dense(b))


@pytest.fixture
def views() -> Views:
    return Views(words=sp.csr_matrix(A), links=sp.csr_array(A[:, :2]), meaning=B)


class Nearest(ClassifierMixin, BaseEstimator):
    """A tiny classifier that insists on `Views`: the nearest class mean of one view."""

    def __init__(self, view: str = "a", extra: Any = None) -> None:
        self.view = view
        self.extra = extra

    def fit(self, X: Any, y: Any) -> Self:
        assert isinstance(X, Views)
        assert len(X) == len(y)
        self.classes_ = np.unique(y)
        self.means_ = np.stack([dense(X[y == c][self.view]).mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X: Any) -> np.ndarray:
        assert isinstance(X, Views)
        gaps = dense(X[self.view])[:, None] - self.means_
        return self.classes_[(gaps**2).sum(axis=2).argmin(axis=1)]


@pytest.fixture
def labelled() -> tuple[Views, np.ndarray]:
    """Return two classes that view `a` tells apart without error, and view `b` not at all."""
    y = np.tile([0, 1], 15)
    rng = np.random.default_rng(0)
    b = sp.csr_matrix(rng.integers(0, 2, size=(30, 4)))
    return Views(a=np.column_stack([y, 1 - y]) * 5.0, b=b), y


# -- construction --------------------------------------------------------------------------


def test_views_by_keyword() -> None:
    views = Views(title=A, body=B)
    assert views.names == ("title", "body")
    assert views["title"] is A
    assert views["body"] is B


def test_views_of_a_dict_keep_its_order() -> None:
    views = Views({"z": A, "a": B})
    assert views.names == ("z", "a")
    assert views["z"] is A


@pytest.mark.parametrize("container", [list, tuple])
def test_views_of_a_list_are_numbered(container: Callable[[Any], Any]) -> None:
    views = Views(container([A, B]))
    assert views.names == ("view0", "view1")
    assert views["view1"] is B


def test_views_of_views_are_equal_and_share_the_data(views: Views) -> None:
    again = Views(views)
    assert again is not views
    assert again.names == views.names
    assert all(again[name] is views[name] for name in views.names)


def test_views_can_be_added_by_keyword(views: Views) -> None:
    assert Views(views, more=A).names == ("words", "links", "meaning", "more")


@pytest.mark.parametrize("name", ["data", "self", "views", "what", "a b"])
def test_any_name_is_a_view_name(name: str) -> None:
    assert Views(**{name: A}).names == (name,)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_csr_is_kept_as_it_is(container: Callable[[Any], Any]) -> None:
    X = container(A)
    assert Views(a=X)["a"] is X
    assert as_views(X)["view0"] is X


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_other_sparse_formats_become_csr(fmt: str, kind: str) -> None:
    X = getattr(sp, f"{fmt}_{kind}")(A)
    csr = Views(a=X)["a"]
    assert isinstance(csr, sp.sparray) == (kind == "array")
    assert csr.format == "csr"
    assert csr.dtype == A.dtype
    np.testing.assert_array_equal(csr.toarray(), A)


def test_wide_indices_are_not_narrowed() -> None:
    X = sp.csr_matrix(A)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    kept = Views(a=X)["a"]
    assert kept is X
    assert kept.indices.dtype == np.int64
    assert as_views(X)["view0"].indptr.dtype == np.int64


def test_duplicates_and_stored_zeros_of_the_caller_stay() -> None:
    X = sp.csr_matrix(([1.0, 2.0, 0.0], [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    views = Views(a=X)
    assert views.empty.tolist() == [[False], [True]]
    assert X.nnz == 3
    assert X.indices.tolist() == [1, 1, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_dtypes_are_kept(dtype: type) -> None:
    X = A.astype(dtype)
    assert Views(a=X)["a"] is X
    assert as_views(X)["view0"] is X


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d is not np.float16])
def test_sparse_dtypes_are_kept(dtype: type) -> None:
    assert Views(a=sp.csr_matrix(A.astype(dtype)))["a"].dtype == dtype


def test_sparse_float16_becomes_float32_because_scipy_cannot_index_it() -> None:
    X = sp.csr_matrix(A.astype(np.float32))
    X.data = X.data.astype(np.float16)
    views = Views(a=X)
    assert views["a"].dtype == np.float32
    np.testing.assert_array_equal(dense(views[[0, 2]]["a"]), A[[0, 2]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_layout_is_kept(order: Any) -> None:
    X = np.array(B, order=order)
    assert Views(a=X)["a"] is X


def test_nested_lists_are_dense() -> None:
    views = Views(a=[[1, 2], [3, 4]])
    np.testing.assert_array_equal(views["a"], [[1, 2], [3, 4]])
    assert views["a"].dtype.kind == "i"


def test_a_numpy_matrix_becomes_an_array() -> None:
    X = sp.csr_matrix(A).todense()
    assert type(Views(a=X)["a"]) is np.ndarray


def test_data_frames_are_dense() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [1, 2], "dtype": [0.5, np.nan]})
    for views in (Views(view0=frame), as_views(frame), as_views([frame])):
        assert type(views["view0"]) is np.ndarray
        np.testing.assert_array_equal(views["view0"], [[1, 0.5], [2, np.nan]])


def test_a_sparse_data_frame_becomes_csr() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(A))
    assert sp.issparse(as_views(frame)["view0"])
    np.testing.assert_array_equal(dense(as_views(frame)["view0"]), A)


def test_memory_maps_are_not_copied(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", B)
    X = np.load(tmp_path / "b.npy", mmap_mode="r")
    assert np.shares_memory(Views(a=X)["a"], X)


def test_values_are_not_judged() -> None:
    X = np.array([[np.nan, np.inf], [-1.0, 0.0]])
    assert Views(a=X)["a"] is X
    assert as_views(sp.csr_matrix(X)).n_views == 1


def test_there_are_no_setters(views: Views) -> None:
    with pytest.raises(AttributeError):
        views.names = ("a",)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        views.other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="item assignment"):
        views["words"] = A  # type: ignore[index]


def test_zero_rows_and_zero_columns_are_views_too() -> None:
    assert Views(a=np.empty((0, 3)), b=sp.csr_matrix((0, 2))).shape == (0, 5)
    assert Views(a=np.empty((3, 0))).shape == (3, 0)


# -- construction: errors ------------------------------------------------------------------


def test_different_lengths_name_both_views() -> None:
    with pytest.raises(ValueError, match=r"view 'title' has 4 rows but view 'body' has 3;"):
        Views(title=A, links=A, body=sp.csr_matrix(B[:3]))


@pytest.mark.parametrize("data", [None, {}, [], ()])
def test_no_view_at_all(data: Any) -> None:
    with pytest.raises(ValueError, match="at least one view"):
        Views(data)


@pytest.mark.parametrize("name", ["", 0, None, ("a",), b"a"])
def test_names_are_non_empty_strings(name: Any) -> None:
    with pytest.raises(ValueError, match="unique non-empty strings; got"):
        Views({name: A})


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="unique non-empty strings; got 'view0'"):
        Views([A], view0=B)


@pytest.mark.parametrize("X", [A, sp.csr_matrix(A), "text", 3, iter([A])])
def test_the_constructor_takes_no_bare_matrix(X: Any) -> None:
    with pytest.raises(TypeError, match=r"not \w+; write Views\(\[X\]\)"):
        Views(X)


@pytest.mark.parametrize(
    "X",
    [A.astype(object), [[1, None]], np.array([[{}]], dtype=object), [["a", 1, None]]],
)
def test_objects_are_refused(X: Any) -> None:
    with pytest.raises(TypeError, match="view 'a': holds Python objects, not numbers; convert"):
        Views(a=X)


def test_dates_are_refused() -> None:
    with pytest.raises(TypeError, match=r"view 'a': holds datetime64\[D\], not numbers"):
        Views(a=np.array([["2020-01-01"]], dtype="M8[D]"))


@pytest.mark.parametrize("X", [[["x"]], np.array([["1"]])])
def test_strings_are_refused(X: Any) -> None:
    with pytest.raises(ValueError, match="view 'a': dtype='numeric' is not compatible"):
        Views(a=X)


FLAT = sp.coo_array(np.ones(3))  # one row of two dimensions in older versions of SciPy


@pytest.mark.parametrize("X", [[1, 2], np.ones(3), 5.0, *([FLAT] if FLAT.ndim == 1 else [])])
def test_a_view_has_two_dimensions(X: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)view 'a': Expected 2D.*Reshape your data"):
        Views(a=X)


def test_three_dimensions_are_too_many() -> None:
    with pytest.raises(ValueError, match="view 'a': Found array with dim 3"):
        Views(a=np.ones((2, 2, 2)))


def test_ragged_lists_are_refused() -> None:
    with pytest.raises(ValueError, match=r"view 'a': .*inhomogeneous"):
        Views(a=[[1], [1, 2]])


# -- what is there -------------------------------------------------------------------------


def test_sizes(views: Views) -> None:
    assert views.shape == (4, 7)
    assert len(views) == 4
    assert views.n_views == 3
    assert all(type(n) is int for n in views.shape)


def test_items_are_pairs() -> None:
    (first, a), (second, b) = Views(title=A, body=B).items()
    assert (first, second) == ("title", "body")
    assert a is A
    assert b is B


def test_in_asks_for_names(views: Views) -> None:
    assert "words" in views
    assert "title" not in views
    assert 0 not in views
    assert [] not in views


def test_iteration_is_over_rows(views: Views) -> None:
    rows = list(views)
    assert len(rows) == 4
    assert all(isinstance(row, Views) and row.shape == (1, 7) for row in rows)
    np.testing.assert_array_equal(dense(rows[2]["words"]), A[[2]])


def test_repr_is_one_line(views: Views) -> None:
    assert repr(views) == (
        "<Views of 4 rows: 'words' (4, 3) sparse int64, 'links' (4, 2) sparse int64, "
        "'meaning' (4, 2) dense float64>"
    )


def test_views_compare_by_identity(views: Views) -> None:
    assert views != Views(views)
    assert len({views, Views(views)}) == 2


def test_numpy_does_not_take_views_for_an_array(views: Views) -> None:
    with pytest.raises(TypeError, match=r"not one array; .* \.concat\(\)"):
        np.asarray(views)
    with pytest.raises(TypeError, match="not one array"):
        check_array(views)


# -- indexing ------------------------------------------------------------------------------

ROWS = [
    slice(1, 3),
    slice(None),
    slice(None, None, -1),
    slice(0, 0),
    [0, 2],
    [3, 3, -1],
    [],
    np.array([2, 0]),
    np.array([1], dtype=np.uint8),
    np.array([], dtype=int),
    np.array([True, False, False, True]),
    [False, True, True, False],
    np.zeros(4, dtype=bool),
    range(1, 3),
]


@pytest.mark.parametrize("rows", ROWS, ids=repr)
def test_rows(views: Views, rows: Any) -> None:
    chosen = views[rows]
    assert isinstance(chosen, Views)
    assert chosen.names == views.names
    index = np.arange(4)[rows]
    assert chosen.shape == (len(index), 7)
    for name, matrix in views.items():
        assert type(chosen[name]) is type(matrix)
        assert chosen[name].dtype == matrix.dtype
        np.testing.assert_array_equal(dense(chosen[name]), dense(matrix)[index])


@pytest.mark.parametrize("row", [0, 3, -1, np.int64(2), np.array(1)])
def test_an_integer_gives_one_row(views: Views, row: Any) -> None:
    assert_same(views[row], views[[int(row)]])


@pytest.mark.parametrize("row", [4, -5, [0, 4], np.array([-5])])
def test_rows_out_of_range(views: Views, row: Any) -> None:
    with pytest.raises(IndexError):
        views[row]


def test_a_pandas_series_is_a_mask_or_rows(views: Views) -> None:
    pd = pytest.importorskip("pandas")
    assert_same(views[pd.Series([3, 1])], views[[3, 1]])
    assert_same(views[pd.Series([True, False, True, False], index=[9, 8, 7, 6])], views[[0, 2]])


@pytest.mark.parametrize(
    "key",
    [
        None,
        1.0,
        [0.5],
        True,
        (0, 1),
        (slice(None), [0]),
        (0, ..., 0),
        np.ones((2, 2), dtype=int),
        np.ones(3, dtype=bool),
        np.array([], dtype=bool),
        np.array(["words"]),
        ["words", 0],
        ("words", "links"),
    ],
    ids=repr,
)
def test_other_keys_are_refused(views: Views, key: Any) -> None:
    with pytest.raises(IndexError, match="a mask of length 4"):
        views[key]


def test_dense_slices_share_memory(views: Views) -> None:
    assert np.shares_memory(views[1:3]["meaning"], B)


def test_a_list_of_names_selects_views(views: Views) -> None:
    some = views[["meaning", "words"]]
    assert some.names == ("meaning", "words")
    assert some["words"] is views["words"]


def test_unknown_names_list_the_known(views: Views) -> None:
    with pytest.raises(KeyError, match="no view 'title'; there are 'words', 'links', 'meaning'"):
        views["title"]
    with pytest.raises(KeyError, match="no view 'title'"):
        views[["words", "title"]]


def test_a_view_is_selected_once(views: Views) -> None:
    with pytest.raises(ValueError, match="view 'words' is named twice"):
        views[["words", "words"]]


@given(st.lists(st.integers(-4, 3), max_size=9), st.lists(st.integers(0, 8), max_size=5))
def test_indexing_twice_is_indexing_once(first: list[int], then: list[int]) -> None:
    views = Views(a=sp.csr_matrix(A), b=B)
    then = [i for i in then if i < len(first)]
    assert_same(views[first][then], views[[first[i] for i in then]])


# -- concat and merge ----------------------------------------------------------------------


def test_concat_of_dense_views_is_dense() -> None:
    whole = Views(a=A, b=B).concat()
    assert type(whole) is np.ndarray
    np.testing.assert_array_equal(whole, np.hstack([A, B]))


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", DTYPES)
def test_concat_with_a_sparse_view_is_csr(container: type, dtype: type) -> None:
    whole = Views(b=B.astype(dtype), a=container(A)).concat()
    assert isinstance(whole, container)
    assert whole.format == "csr"
    np.testing.assert_array_equal(whole.toarray(), np.hstack([B.astype(dtype), A]))


def test_concat_mixes_sparse_matrices_and_arrays(views: Views) -> None:
    whole = views.concat()
    assert isinstance(whole, sp.csr_array)
    assert whole.shape == views.shape
    np.testing.assert_array_equal(whole.toarray(), np.hstack([A, A[:, :2], B]))


def test_concat_of_one_view_is_the_view() -> None:
    assert Views(a=A).concat() is A


def test_concat_keeps_nan_of_dense_views() -> None:
    whole = Views(a=sp.csr_matrix(A), b=np.full((4, 1), np.nan)).concat()
    assert np.isnan(whole.toarray()[:, 3]).all()


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, np.asarray])
def test_merge_adds_counts(container: Callable[[Any], Any]) -> None:
    a, b, c = container(A), container(A[::-1]), container(B)
    merged = Views(title=a, links=c, body=b).merge({"text": ["title", "body"]})
    assert merged.names == ("text", "links")
    assert merged["links"] is c
    assert type(merged["text"]) is type(a)
    assert merged["text"].dtype == A.dtype
    np.testing.assert_array_equal(dense(merged["text"]), A + A[::-1])


def test_merge_stands_where_the_first_member_stood() -> None:
    views = Views(p=B, q=A, r=B, s=A, t=B)
    merged = views.merge({"new": ["s", "q"], "all": ["t", "r", "p"]})
    assert merged.names == ("all", "new")
    np.testing.assert_array_equal(merged["all"], 3 * B)
    assert views.merge({"new": ["s", "q"]}).names == ("p", "new", "r", "t")


def test_merge_leaves_its_members_as_they_are() -> None:
    a, b = sp.csr_matrix(A), sp.csr_matrix(A)
    Views(a=a, b=b).merge({"c": ["a", "b"]})
    np.testing.assert_array_equal(a.toarray(), A)
    np.testing.assert_array_equal(b.toarray(), A)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_merge_of_sparse_and_dense_is_dense(container: type, names: list[str]) -> None:
    data = {"a": container(A), "b": A}
    merged = Views({name: data[name] for name in names}).merge({"c": ["a", "b"]})
    assert type(merged["c"]) is np.ndarray
    np.testing.assert_array_equal(merged["c"], 2 * A)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, np.asarray])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_])
def test_merge_does_not_wrap_small_integers(dtype: Any, container: Callable[[Any], Any]) -> None:
    largest = 1 if dtype is np.bool_ else np.iinfo(dtype).max
    X = container(np.array([[largest, 0]], dtype=dtype))
    merged = Views(a=X, b=X, c=X).merge({"d": ["a", "b", "c"]})
    assert dense(merged["d"]).tolist() == [[3 * largest, 0]]


def test_merge_keeps_float_precision() -> None:
    X = sp.csr_matrix(A.astype(np.float32))
    assert Views(a=X, b=X).merge({"c": ["a", "b"]})["c"].dtype == np.float32


def test_merge_of_one_view_renames_it(views: Views) -> None:
    for group in (["words"], "words"):
        merged = views.merge({"text": group})
        assert merged.names == ("text", "links", "meaning")
        assert merged["text"] is views["words"]


def test_merge_may_take_the_name_of_a_member() -> None:
    merged = Views(a=A, b=A).merge({"b": ["a", "b"]})
    assert merged.names == ("b",)
    np.testing.assert_array_equal(merged["b"], 2 * A)


def test_merge_of_nothing_changes_nothing(views: Views) -> None:
    assert_same(views.merge({}), views)


def test_merge_of_different_widths_suggests_concat(views: Views) -> None:
    with pytest.raises(ValueError, match=r"'words': 3, 'links': 2.*\['words', 'links'\]\]\.concat"):
        views.merge({"all": ["words", "links"]})


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"meaning": ["words"]}, "name taken"),
        ({"new": []}, "no members"),
        ({"new": ["words", "words"]}, "'words' is named twice"),
        ({"x": ["words"], "y": ["words"]}, "'words' is named twice"),
        ({"": ["words"]}, "non-empty strings"),
        ({3: ["words"]}, "non-empty strings"),
    ],
)
def test_merge_refuses(views: Views, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        views.merge(groups)


def test_merge_of_unknown_views(views: Views) -> None:
    with pytest.raises(KeyError, match="no view 'title'"):
        views.merge({"text": ["title", "words"]})


# -- empty rows ----------------------------------------------------------------------------


def test_empty_has_a_column_for_each_view(views: Views) -> None:
    empty = views.empty
    assert empty.dtype == np.bool_
    assert empty.tolist() == [
        [False, False, False],
        [True, True, False],
        [False, False, True],
        [False, False, False],
    ]


def test_stored_zeros_are_no_content() -> None:
    X = sp.csr_matrix(([0.0, 0.0, 1.0], [0, 2, 1], [0, 2, 3, 3]), shape=(3, 3))
    assert Views(a=X).empty.ravel().tolist() == [True, False, True]


def test_entries_that_cancel_are_no_content() -> None:
    X = sp.csr_matrix(([1.0, -1.0, 1.0, 1.0], [1, 1, 2, 0], [0, 2, 4]), shape=(2, 3))
    assert Views(a=X).empty.ravel().tolist() == [True, False]
    assert X.indices.tolist() == [1, 1, 2, 0]


def test_spare_room_in_csr_is_no_content() -> None:
    X = sp.csr_matrix((2, 2))
    X.data, X.indices = np.ones(5), np.zeros(5, dtype=np.int32)
    assert Views(a=X).empty.ravel().tolist() == [True, True]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_a_row_of_nan_is_empty(container: Callable[[Any], Any]) -> None:
    nan = np.nan
    X = container(np.array([[nan, nan], [nan, 0.0], [nan, 1.0], [0.0, 0.0], [-1.0, 0.0]]))
    assert Views(a=X).empty.ravel().tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_for_every_dtype(dtype: type) -> None:
    assert Views(a=A.astype(dtype)).empty.ravel().tolist() == [False, True, False, False]


def test_empty_of_no_rows_and_no_columns() -> None:
    assert Views(a=np.empty((0, 2)), b=sp.csr_matrix((0, 3))).empty.shape == (0, 2)
    assert Views(a=np.empty((2, 0)), b=sp.csr_matrix((2, 0))).empty.all()


# -- split ---------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_matrix])
@given(n_columns=st.integers(1, 12), data=st.data())
def test_split_is_a_partition(
    container: Callable[[Any], Any], n_columns: int, data: st.DataObject
) -> None:
    n_views = data.draw(st.integers(1, n_columns))
    X = np.tile(np.arange(1, n_columns + 1), (2, 1))
    views = Views.split(container(X), n_views, random_state=data.draw(st.integers(0, 99)))
    assert views.names == tuple(f"view{i}" for i in range(n_views))
    columns = [dense(matrix)[0] for _, matrix in views.items()]
    sizes = [len(part) for part in columns]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(part) > 0).all() for part in columns)
    assert sorted(np.concatenate(columns).tolist()) == X[0].tolist()


def test_split_keeps_the_kind_of_matrix() -> None:
    X = sp.csr_array(A)
    assert all(isinstance(part, sp.csr_array) for _, part in Views.split(X, 2).items())


def test_split_is_random_and_repeatable() -> None:
    X = np.arange(40).reshape(1, 40)
    parts = [Views.split(X, 2, random_state=seed)["view0"].tolist() for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_split_takes_every_source_of_randomness(source: Callable[[int], Any]) -> None:
    X = np.arange(40).reshape(1, 40)
    rng = source(3)
    first, second = Views.split(X, 2, random_state=rng), Views.split(X, 2, random_state=rng)
    assert_same(first, Views.split(X, 2, random_state=source(3)))
    assert first["view0"].tolist() != second["view0"].tolist()


@pytest.mark.parametrize("n_views", [0, -1, 4])
def test_split_into_too_many_or_too_few(n_views: int) -> None:
    with pytest.raises(ValueError, match=f"between 1 and 3 columns; got {n_views}"):
        Views.split(A, n_views)


def test_split_needs_one_matrix_and_a_whole_number(views: Views) -> None:
    with pytest.raises(TypeError, match="X: Views are not one array"):
        Views.split(views, 2)
    with pytest.raises(TypeError, match="integer"):
        Views.split(A, 1.5)  # type: ignore[arg-type]


# -- as_views ------------------------------------------------------------------------------


def test_as_views_returns_views_themselves(views: Views) -> None:
    assert as_views(views) is views


@pytest.mark.parametrize("X", [A, sp.csr_matrix(A), sp.coo_array(A), A.tolist(), tuple(A), list(A)])
def test_one_matrix_is_one_view(X: Any) -> None:
    views = as_views(X)
    assert views.names == ("view0",)
    np.testing.assert_array_equal(dense(views["view0"]), A)


@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize(
    "members",
    [[A, B], [sp.csr_matrix(A), B], [sp.coo_array(A), sp.csr_array(B)], [A, B.tolist()], [A]],
)
def test_a_list_of_matrices_is_several_views(members: list[Any], container: Any) -> None:
    views = as_views(container(members))
    assert views.names == ("view0", "view1")[: len(members)]
    for (_, matrix), member in zip(views.items(), members, strict=True):
        np.testing.assert_array_equal(dense(matrix), dense(member))


def test_a_dict_is_several_views() -> None:
    assert as_views({"b": B, "a": A}).names == ("b", "a")


def test_a_data_frame_is_one_matrix() -> None:
    pd = pytest.importorskip("pandas")
    views = as_views(pd.DataFrame(B, columns=["x", "y"]))
    assert views.names == ("view0",)
    np.testing.assert_array_equal(views["view0"], B)


def test_one_matrix_of_number_objects_is_converted() -> None:
    """scikit-learn's `check_dtype_object` asks this of every estimator."""
    assert as_views(B.astype(object))["view0"].dtype == np.float64
    np.testing.assert_array_equal(as_views([[1, None]])["view0"], [[1, np.nan]])
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        as_views(np.array([[{"foo": "bar"}, 1]], dtype=object))
    with pytest.raises(TypeError, match="X, view 'a': holds Python objects"):
        as_views({"a": B.astype(object)})


@pytest.mark.parametrize("X", [[1, 2, 3], np.ones(3), (1.0,), []])
def test_one_dimension_gets_the_advice_of_scikit_learn(X: Any) -> None:
    with pytest.raises(ValueError, match=r"^X: Expected 2D array, got 1D array instead") as error:
        as_views(X)
    assert str(error.value).endswith(
        "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
        "array.reshape(1, -1) if it contains a single sample."
    )


@pytest.mark.parametrize(
    "X",
    [
        np.ones(3),
        np.empty((0, 3)),
        np.empty((3, 0)),
        sp.csr_matrix((0, 3)),
        sp.csr_matrix((3, 0)),
        np.ones((2, 2)) * 1j,
        sp.csr_matrix(np.ones((2, 2)) * 1j),
        np.ones((2, 2, 2)),
        np.array([["a"]]),
        "text",
    ],
    ids=repr,
)
def test_errors_are_those_of_scikit_learn(X: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as theirs:
        check_array(X, accept_sparse="csr", ensure_all_finite=False)
    with pytest.raises((TypeError, ValueError)) as ours:
        as_views(X, what="X_test")
    assert str(ours.value) == f"X_test: {theirs.value}"
    assert ours.type is theirs.type


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 3), r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is"),
        ((3, 0), r"Found array with 0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is"),
    ],
)
def test_nothing_to_learn_from(shape: tuple[int, int], message: str) -> None:
    X = np.empty(shape)
    with pytest.raises(ValueError, match=f"^X: {message}"):
        as_views(X)
    for several in ({"title": X}, Views(title=X)):
        with pytest.raises(ValueError, match=f"^X, view 'title': {message}"):
            as_views(several)


def test_complex_data() -> None:
    for X in (A * 1j, sp.csr_matrix(A * 1j), [[1j]]):
        with pytest.raises(ValueError, match="X: Complex data not supported"):
            as_views(X)
        with pytest.raises(ValueError, match="X, view 'a': Complex data not supported"):
            as_views({"a": X})


def test_errors_name_the_argument_and_the_view() -> None:
    with pytest.raises(ValueError, match=r"^X_new, view 'a' has 4 rows but view 'b' has 2"):
        as_views({"a": A, "b": B[:2]}, what="X_new")
    with pytest.raises(ValueError, match=r"^X_new, there must be at least one view"):
        as_views({}, what="X_new")


# -- scikit-learn, joblib, pickle ----------------------------------------------------------


def test_scikit_learn_counts_and_indexes_rows(views: Views) -> None:
    assert _num_samples(views) == 4
    check_consistent_length(views, np.arange(4))
    assert indexable(views, np.arange(4))[0] is views
    for rows in (slice(1, 3), [0, 2], (0, 2), np.array([3]), np.arange(4) > 1, [True] * 4, 2):
        index = list(rows) if isinstance(rows, tuple) else rows
        assert_same(_safe_indexing(views, rows), views[index])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        check_consistent_length(views, np.arange(3))
    with pytest.raises(IndexError, match="index by rows"):
        _safe_indexing(views, [0], axis=1)


def test_train_test_split(views: Views) -> None:
    y = np.arange(4)
    train, test, y_train, y_test = train_test_split(views, y, test_size=1, random_state=0)
    assert_same(train, views[y_train])
    assert_same(test, views[y_test])


def test_shuffle(views: Views) -> None:
    rows, order = shuffle(views, np.arange(4), random_state=0)
    assert_same(rows, views[order])


def test_cross_validation(labelled: tuple[Views, np.ndarray]) -> None:
    X, y = labelled
    assert cross_val_score(Nearest("a"), X, y, cv=3).tolist() == [1.0] * 3
    np.testing.assert_array_equal(cross_val_predict(Nearest("a"), X, y, cv=LeaveOneOut()), y)


def test_grid_search_in_processes(labelled: tuple[Views, np.ndarray]) -> None:
    X, y = labelled
    search = GridSearchCV(Nearest(), {"view": ["b", "a"]}, cv=3, n_jobs=2, error_score="raise")
    search.fit(X, y)
    assert search.best_params_ == {"view": "a"}
    assert search.best_score_ == 1.0
    np.testing.assert_array_equal(search.predict(X), y)


@pytest.mark.parametrize("memory", [False, True])
def test_pipeline(labelled: tuple[Views, np.ndarray], memory: bool, tmp_path: Path) -> None:
    X, y = labelled
    steps = [("noop", FunctionTransformer()), ("also", "passthrough"), ("model", Nearest())]
    pipeline = Pipeline(steps, memory=str(tmp_path) if memory else None)
    assert cross_val_score(pipeline, X, y, cv=3).tolist() == [1.0] * 3
    assert pipeline.fit(X, y).score(X, y) == 1.0


def test_clone_copies_views_held_as_a_parameter(views: Views) -> None:
    model = Nearest(extra=views)
    copied = clone(model).extra
    assert copied is not views
    assert_same(copied, views)
    assert "Views of 4 rows" in repr(model)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(views: Views, protocol: int) -> None:
    assert_same(pickle.loads(pickle.dumps(views, protocol=protocol)), views)


def test_copies(views: Views) -> None:
    assert copy.copy(views)["meaning"] is B
    deep = copy.deepcopy(views)
    assert_same(deep, views)
    assert not any(np.shares_memory(dense(deep[name]), dense(views[name])) for name in deep.names)
    assert not np.shares_memory(deep["words"].data, views["words"].data)


def use_everything(views: Views) -> tuple[Any, ...]:
    """Use every method, and say whether the arrays may be written to."""
    writeable = [(m.data if sp.issparse(m) else m).flags.writeable for _, m in views.items()]
    merged = views.merge({"both": ["a", "b"]})["both"].sum()
    parts = Views.split(views.concat(), 2, random_state=0)
    total = sum(part.sum() for _, part in as_views(parts)[::2].items())
    return writeable, merged, total, views[[0, 5, 5]].shape, int(Views(views).empty.sum())


@pytest.mark.slow
def test_read_only_arrays_in_other_processes() -> None:
    X = np.tile(A, (50, 1))
    views = Views(a=sp.csr_matrix(X), b=sp.csr_array(X), c=np.tile(B, (50, 1)))
    here = use_everything(views)
    workers = joblib.Parallel(n_jobs=2, max_nbytes=100)
    for there in workers(joblib.delayed(use_everything)(views) for _ in range(2)):
        assert there[0] == [False, False, False]
        assert there[1:] == here[1:]


def test_joblib_dump_and_memory_map(views: Views, tmp_path: Path) -> None:
    joblib.dump(views, tmp_path / "views.joblib")
    mapped = joblib.load(tmp_path / "views.joblib", mmap_mode="r")
    assert not mapped["meaning"].flags.writeable
    for name, matrix in views.items():
        np.testing.assert_array_equal(dense(mapped[name]), dense(matrix))
    np.testing.assert_array_equal(mapped.empty, views.empty)
    assert_same(mapped[[0, 1]][["words"]], views[[0, 1]][["words"]])


def test_an_error_of_a_row_says_where_it_is():
    error = RowError("price", np.int64(3), ": no number", "Alas: ")
    assert str(error) == "Alas: view 'price', row 3: no number"
    assert error.at("a.csv, row 5") == "Alas: a.csv, row 5, view 'price': no number"
    again = pickle.loads(pickle.dumps(error))  # as it comes from another process
    assert (str(again), again.row) == (str(error), 3)


def test_keys_of_rows_stand_for_their_content():
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.5, size=(50, 6)).astype(np.float32)
    dense[7] = dense[3]
    points = rng.standard_normal((50, 2))
    points[7] = points[3]
    keys = row_keys(Views(words=sp.csr_array(dense), points=points))
    assert keys[7] == keys[3]
    assert len(set(keys.tolist())) == 49
    other = np.where(dense == 0, -0.0, dense).astype(np.float64)
    np.testing.assert_array_equal(row_keys(Views(words=other, points=points)), keys)
    order = rng.permutation(50)
    part = Views(words=sp.csr_array(dense[order]), points=points[order])
    np.testing.assert_array_equal(row_keys(part), keys[order])
    swapped = row_keys(Views(a=dense[:, :2], b=dense[:, 2:4]))
    assert (swapped != row_keys(Views(a=dense[:, 2:4], b=dense[:, :2]))).any()


def test_keys_of_rows_leave_the_rows_alone():
    rows = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 3])))
    before = rows.data.copy()
    whole = row_keys(Views(x=rows))
    np.testing.assert_array_equal(rows.data, before)
    assert whole == row_keys(Views(x=np.array([[3.0, 3.0]])))
