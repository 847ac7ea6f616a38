"""Rows are taken by their places, whatever holds them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from coem import Views
from coem.input import n_rows_of, take_rows

VALUES = np.arange(12).reshape(6, 2)
WORDS = list("abcdef")
INDEXES = {"plain": None, "shuffled": [3, 1, 5, 0, 2, 4], "offset": range(7, 13), "text": WORDS}
ROWS = {
    "places": np.array([4, 0, 4]),
    "mask": np.array([True, False, False, False, True, False]),
    "none": np.zeros(0, dtype=int),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_of_pandas_does_not_matter(index, rows):
    index = None if index is None else list(index)
    frame = take_rows(pd.DataFrame(VALUES, columns=["a", "b"], index=index), rows)
    np.testing.assert_array_equal(frame.to_numpy(), VALUES[rows])
    series = take_rows(pd.Series(WORDS, index=index), rows)
    assert isinstance(series, pd.Series)
    assert series.tolist() == np.array(WORDS)[rows].tolist()


HOLDERS = {
    "array": (VALUES, np.asarray),
    "CSR": (sp.csr_array(VALUES), lambda X: X.toarray()),
    "COO": (sp.coo_array(VALUES), lambda X: X.toarray()),
    "polars": (pl.DataFrame(VALUES), lambda X: X.to_numpy()),
    "Arrow": (pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1]}), lambda X: X.to_pandas().to_numpy()),
    "Views": (Views(a=VALUES), lambda X: X["a"]),
    "list": (VALUES.tolist(), lambda X: np.array(X, dtype=int).reshape(-1, 2)),
    "tuple": (tuple(VALUES.tolist()), lambda X: np.array(X, dtype=int).reshape(-1, 2)),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_all_that_has_rows(holder, rows):
    X, values = HOLDERS[holder]
    assert n_rows_of(X) == len(VALUES)
    np.testing.assert_array_equal(values(take_rows(X, rows)), VALUES[rows])
