"""Rows of one length: totals, kinds of input, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from coem import MixtureClusterer, Views
from coem.text import DEFAULT_LENGTH, ScaleLength, scale_length

RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(0.7, (40, 12))
COUNTS[[4, 17]] = 0  # without a word
UNIT = RNG.standard_normal((40, 3))
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)
DTYPES = [np.bool_, np.int8, np.uint64, np.float16, np.float32, np.float64, np.longdouble]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


# The checks say that they skip some, which warns.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ScaleLength(), ScaleLength(7)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_every_row_has_the_length_or_is_empty(make, dtype):
    if make is not np.asarray and dtype is np.float16:
        pytest.skip("scipy has no sparse float16")
    X = make(COUNTS.astype(dtype))
    scaled = scale_length(X, 50)
    totals = np.asarray(scaled.sum(axis=1, dtype=np.float64)).ravel()
    # 12 roundings to float32 of values up to 50.
    np.testing.assert_allclose(totals, np.where(COUNTS.any(axis=1), 50, 0), rtol=1e-6)
    assert scaled.dtype == np.float32
    assert sp.issparse(scaled) == sp.issparse(X)
    assert isinstance(scaled, sp.sparray) == isinstance(X, sp.sparray)
    whole = COUNTS.astype(dtype).astype(float)
    expected = 50 * whole / np.maximum(whole.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(dense(scaled), expected, rtol=1e-6)


def test_the_function_and_the_transformer_agree_and_the_default_is_the_constant():
    expected = scale_length(COUNTS, DEFAULT_LENGTH)
    np.testing.assert_array_equal(scale_length(COUNTS), expected)
    np.testing.assert_array_equal(ScaleLength().fit_transform(COUNTS), expected)
    np.testing.assert_array_equal(ScaleLength().transform(COUNTS), expected)
    np.testing.assert_array_equal(scale_length(COUNTS.tolist()), expected)
    np.testing.assert_array_equal(scale_length(pd.DataFrame(COUNTS)), expected)


@given(st.integers(1, 1000), st.floats(1e-3, 1e6))
def test_only_the_proportions_of_a_row_count(times, length):
    once = scale_length(COUNTS, length)
    np.testing.assert_allclose(scale_length(times * COUNTS, length), once, rtol=1e-6)
    np.testing.assert_allclose(scale_length(once, length), once, rtol=1e-6)


def test_duplicates_and_stored_zeros_are_one_count_and_none():
    X = sp.csr_matrix(([1.0, 3.0, 2.0, 0.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    arrays = [a.copy() for a in (X.data, X.indices, X.indptr)]
    scaled = scale_length(X, 12)
    np.testing.assert_array_equal(scaled.toarray(), [[6, 0, 6], [0, 0, 0]])
    assert scaled.has_canonical_format
    for after, before in zip((X.data, X.indices, X.indptr), arrays, strict=True):
        np.testing.assert_array_equal(after, before)


def test_the_result_shares_no_memory_with_the_input():
    X = sp.csr_matrix(COUNTS, dtype=np.float32)
    scaled = scale_length(X)
    for a, b in ((X.data, scaled.data), (X.indices, scaled.indices), (X.indptr, scaled.indptr)):
        assert not np.shares_memory(a, b)
    X = np.asfortranarray(COUNTS, dtype=np.float32)
    assert not np.shares_memory(X, scale_length(X))


@pytest.mark.parametrize("tiny", [5e-324, 1e-300])
def test_tiny_totals_do_not_overflow(tiny):
    np.testing.assert_array_equal(scale_length([[tiny, 0.0]]), [[600, 0]])


def test_views_come_back_as_views_and_one_may_be_left_alone():
    views = Views(words=sp.csr_matrix(COUNTS), meaning=UNIT, links=COUNTS[:, :4])
    model = ScaleLength({"words": 10, "meaning": None, "links": 5.0}).fit(views)
    scaled = model.transform(views)
    assert isinstance(scaled, Views)
    assert scaled.names == views.names
    assert scaled["meaning"] is views["meaning"]
    np.testing.assert_array_equal(dense(scaled["words"]), scale_length(COUNTS, 10))
    np.testing.assert_array_equal(scaled["links"], scale_length(COUNTS[:, :4], 5))
    other_order = model.transform(views[["links", "meaning", "words"]])
    assert other_order.names == views.names
    several = scale_length([COUNTS, COUNTS[:, :2]], 3)
    assert several.names == ("view0", "view1")
    assert isinstance(scale_length([COUNTS]), Views)


def test_names_of_columns_stay():
    assert ScaleLength().fit(COUNTS).get_feature_names_out().tolist()[:2] == ["x0", "x1"]
    model = ScaleLength().fit(Views(a=COUNTS, b=COUNTS[:, :2]))
    names = model.get_feature_names_out({"b": ["cat", "dog"]})
    assert names["b"].tolist() == ["cat", "dog"]
    assert names["a"].tolist() == [f"x{i}" for i in range(12)]
    for wrong in ({"b": ["cat"]}, {"c": ["cat"]}, ["cat"]):
        with pytest.raises(ValueError, match="input_features"):
            model.get_feature_names_out(wrong)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix])
def test_negative_values_are_refused_by_view_and_row(make):
    X = COUNTS.astype(float)
    X[[23, 30], [5, 0]] = -2
    views = Views(words=COUNTS, meaning=make(X))
    with pytest.raises(ValueError, match=r"view 'meaning', row 23 has -2.0.*\{'meaning': None"):
        scale_length(views)
    with pytest.raises(ValueError, match="view 'meaning', row 23"):
        ScaleLength().fit(views)
    fitted = ScaleLength().fit(Views(words=COUNTS, meaning=COUNTS))
    with pytest.raises(ValueError, match="view 'meaning', row 23"):
        fitted.transform(views)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_dense_unit_rows_are_no_counts(dtype):
    rows = np.abs(UNIT).astype(dtype)
    rows[0] = 0
    rows[1] = [0, 1, 0]  # a document of one word could look like this
    for work in (scale_length, ScaleLength().fit):
        with pytest.raises(ValueError, match=r"view 'view0': all rows have Euclidean length 1"):
            work(rows)
    views = Views(words=COUNTS, meaning=rows)
    with pytest.raises(ValueError, match=r"view 'meaning': .*\{'meaning': None"):
        scale_length(views, {"words": 3, "meaning": 3})
    for scaled in (scale_length(views), ScaleLength().fit_transform(views)):
        np.testing.assert_array_equal(scaled["meaning"], rows)
        np.testing.assert_array_equal(scaled["words"], scale_length(COUNTS))
    one_word = np.eye(3)[[0, 1, 1, 2]]
    np.testing.assert_array_equal(scale_length(one_word, 2), 2 * one_word)
    # Chance may give one new row that length.
    assert ScaleLength(1).fit([[3.0, 4.0], [1.0, 2.0]]).transform([[0.6, 0.8]]).sum() == 1


@pytest.mark.parametrize("length", [0, -1, np.inf, np.nan, None, True, "300", {"view0": "long"}])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(ValueError, match="length must be a number above 0"):
        scale_length(COUNTS, length)


def test_views_of_other_names_or_widths_are_refused():
    views = Views(a=COUNTS, b=COUNTS)
    with pytest.raises(ValueError, match="length must name every view once"):
        scale_length(views, {"a": 3})
    model = ScaleLength().fit(views)
    with pytest.raises(ValueError, match="was fitted on"):
        model.transform(Views(a=COUNTS, c=COUNTS))
    with pytest.raises(ValueError, match="in view 'b', but ScaleLength is expecting 12"):
        model.transform(Views(a=COUNTS, b=COUNTS[:, :3]))
    with pytest.raises(ValueError, match="too large"):
        scale_length(COUNTS * 1e200)


def test_a_mixture_takes_the_scaled_rows():
    X = scale_length(sp.csr_matrix(COUNTS))
    model = MixtureClusterer(2, max_iter=5, tol=0, random_state=0).fit(X)
    assert np.isfinite(model.objective_)
