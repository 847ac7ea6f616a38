"""The structure of CSR matrices against a slow twin."""

import numpy as np
import pytest

from coem.kernels.structure import CANONICAL, LOOSE, structure


def twin(indptr, indices, n_columns):
    """Look at one row after the other, and at one column after the other."""
    loose = False
    for row in range(len(indptr) - 1):
        first, last = int(indptr[row]), int(indptr[row + 1])
        if not 0 <= first <= last <= len(indices):
            return row
        columns = [int(column) for column in indices[first:last]]
        if any(not 0 <= column < n_columns for column in columns):
            return row
        loose |= columns != sorted(set(columns))
    return LOOSE if loose else CANONICAL


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_it_finds_what_the_twin_finds(dtype):
    rng, seen = np.random.default_rng(0), set()
    for _ in range(2000):
        n_rows, n_columns = rng.integers(0, 6), int(rng.integers(1, 40))
        sizes = rng.integers(0, n_columns + 1, n_rows)
        rows = [np.sort(rng.choice(n_columns, size, replace=False)) for size in sizes]
        indices = np.concatenate([*rows, np.empty(0, int)]).astype(dtype)
        indptr = np.append(0, np.cumsum(sizes)).astype(dtype)
        if len(indices) and rng.random() < 0.5:
            place = rng.integers(len(indices))
            indices[place] = rng.choice([*range(n_columns), -1, n_columns, 2**31 - 1, -(2**31)])
        if rng.random() < 0.2:
            indptr[rng.integers(len(indptr))] = rng.integers(-2, len(indices) + 3)
        found = structure(indptr, indices, n_columns)
        assert found == twin(indptr, indices, n_columns)
        seen.add(min(found, 0))
    assert seen == {0, CANONICAL, LOOSE}


def test_a_matrix_wider_than_its_indices_has_no_columns_below_0():
    indptr, indices = np.array([0, 1], np.int32), np.array([-1], np.int32)
    assert structure(indptr, indices, 2**40) == 0
    assert structure(indptr, np.array([2**31 - 1], np.int32), 2**40) == CANONICAL


def test_arrays_of_two_types_are_refused():
    with pytest.raises(TypeError):
        structure(np.zeros(2, np.int32), np.zeros(0, np.int64), 3)
    with pytest.raises(ValueError, match="indptr must not be empty"):
        structure(np.zeros(0, np.int32), np.zeros(0, np.int32), 3)
