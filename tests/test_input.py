"""Rows are taken by their places, whatever holds them; dask collections only where they stay."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, PooledClassifier, Views
from coem.engine.dask_rows import DaskRows
from coem.input import n_rows_of, take_rows
from coem.selection import stability

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


LAZY = {  # what needs rows in memory, or all views in a block
    "batch": lambda X: MixtureClusterer(2).partial_fit(X),
    "explanation": lambda X: MixtureClusterer(2).fit(VALUES).explain(X),
    "pool": lambda X: PooledClassifier(MixtureClassifier()).fit(X, [0, 1] * 3),
    "stability": lambda X: stability(MixtureClusterer(2), X, n_runs=2),
    "chain": lambda X: HiddenMarkovModel(2).fit(X),
}


@pytest.mark.parametrize("work", LAZY.values(), ids=LAZY)
def test_blocks_of_dask_are_refused_where_rows_are_needed(work):
    dask = pytest.importorskip("dask", reason="needs coem[dask]")
    blocks = [dask.delayed(VALUES[:3]), dask.delayed(VALUES[3:])]
    with pytest.raises(ValueError, match=r"X has dask collections, and .* needs rows in memory"):
        work(blocks)


def test_views_that_are_dask_arrays_are_refused():
    array = pytest.importorskip("dask.array", reason="needs coem[dask]").from_array(VALUES)
    with pytest.raises(ValueError, match="a block of several views is a dict of matrices"):
        MixtureClusterer(2).fit({"a": array, "b": array})


def test_a_chain_takes_no_dask_collection():
    array = pytest.importorskip("dask.array", reason="needs coem[dask]").from_array(VALUES)
    for X in (array, DaskRows.__new__(DaskRows)):
        with pytest.raises(ValueError, match="takes sequences in memory or in a corpus"):
            HiddenMarkovModel(2).fit(X, lengths=[3, 3])
