"""The aspect kernels against dense NumPy twins: values, edges, threads, bits.

In double the sums differ from the twin by the order of additions alone. In single precision a
product of three factors and its inverse are good to some 1e-6.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from coem.engine import LocalEngine
from coem.kernels import _compiled, aspect, instruction_set

ERROR = {np.float32: 3e-6, np.float64: 1e-12}

every_precision = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_k = pytest.mark.parametrize("k", [1, 3, 8, 9, 32, 33, 65, 100, 130])


def make(rng, n, m, k, dtype, density=0.2):
    """Return counts with empty rows and columns, and tables of random distributions."""
    counts = rng.poisson(3.0, size=(n, m)) * (rng.random((n, m)) < density)
    counts[::5] = 0
    counts[:, ::7] = 0
    counts[1, 1 % m] += 1
    X = sp.csr_matrix(counts.astype(np.float64))
    xh, yh = rng.dirichlet(np.ones(n), k), rng.dirichlet(np.ones(m), k)
    tables = aspect.as_table(xh, dtype), aspect.as_table(yh, dtype)
    weights = aspect.padded(rng.dirichlet(np.ones(k)), aspect.width_of(k), dtype)
    return X, counts, tables, weights


def twin(counts, x, y, weights):
    """Return ratios (n, m), expected counts of rows, columns, components, and the evidence."""
    x, y, w = (np.asarray(part, np.float64) for part in (x, y, weights))
    model = np.einsum("h,xh,yh->xy", w, x, y)
    ratios = np.divide(counts, model, out=np.zeros(counts.shape), where=counts > 0)
    of_rows, of_columns = w * x * (ratios @ y), w * y * (ratios.T @ x)
    seen = counts > 0
    return ratios, of_rows, of_columns, float((counts[seen] * np.log(model[seen])).sum())


def run(pairs, x, y, weights, k):
    ratios, sums = np.empty(pairs.counts.shape, x.dtype), aspect.new_table(len(x), k, x.dtype)
    value, totals = aspect.expect(pairs, x, y, weights, ratios, sums)
    width = len(weights)
    affine = aspect.padded(np.full(k, 2.0), width, float), aspect.padded(np.ones(k), width, float)
    out = aspect.maximise(pairs, x, y, weights, ratios, affine)
    return value, totals, ratios, sums, out


@every_precision
@every_k
def test_a_pass_equals_the_twin(k, dtype):
    X, counts, (x, y), weights = make(np.random.default_rng(k), 40, 30, k, dtype)
    pairs = aspect.Pairs.of(X, None, dtype)
    value, totals, ratios, sums, out = run(pairs, x, y, weights, k)
    want_ratios, of_rows, of_columns, evidence = twin(counts / pairs.unit, x, y, weights)
    error = ERROR[dtype]
    np.testing.assert_allclose(value, evidence, rtol=error)
    np.testing.assert_allclose(ratios, want_ratios[counts > 0], rtol=error)
    np.testing.assert_allclose(sums, of_rows, rtol=error, atol=error * of_rows.max())
    np.testing.assert_allclose(totals, of_rows.sum(axis=0), rtol=error)
    np.testing.assert_allclose(out[:, :k], 2 * of_columns[:, :k] + 1, rtol=error)
    assert not out[:, k:].any()
    np.testing.assert_allclose(aspect.evidence(pairs, x, y, weights), evidence, rtol=error)


@every_precision
@pytest.mark.parametrize("beta", [0.02, 0.5, 0.9, 0.99, 1.0])
def test_power(beta, dtype):
    rng = np.random.default_rng(1)
    table = np.exp(-rng.gamma(2.0, 4.0, size=(3000, 24))).astype(dtype)
    table[0], table[1] = 0.0, 1.0
    table[2] = np.nextafter(dtype(1), dtype(2))  # rounding may leave a share of this
    table[table < 2.0**-60] = 0.0
    out = np.empty_like(table)
    aspect.power(table, beta, out)
    np.testing.assert_allclose(out, table.astype(np.float64) ** beta, rtol=ERROR[dtype] / 10)
    assert not out[0].any()


@every_precision
def test_rescale_and_log_sum(dtype):
    rng = np.random.default_rng(2)
    k, table = 11, aspect.as_table(rng.dirichlet(np.ones(9000), 11), dtype)
    scale, shift = rng.random(k), rng.random(k)
    affine = aspect.padded(scale, 16, float), aspect.padded(shift, 16, float)
    got = aspect.rescale(table, affine)
    np.testing.assert_allclose(got[:, :k], table[:, :k] * scale + shift, rtol=ERROR[dtype])
    total = np.log(table[:, :k].astype(np.float64)).sum()
    np.testing.assert_allclose(aspect.log_sum(table, k), total, rtol=ERROR[dtype])


@every_precision
@every_k
def test_fold_in_maximises_the_likelihood_of_each_row(k, dtype):
    X, counts, (_, y), weights = make(np.random.default_rng(k), 25, 40, k, dtype, density=0.5)
    shares = aspect.fold_in(aspect.Pairs.of(X, None, dtype), y, weights, 30, 0.0)
    want = np.tile(np.asarray(weights, np.float64), (len(counts), 1))
    table = np.asarray(y, np.float64)
    for _ in range(30):
        model = want @ table.T
        ratios = np.divide(counts, model, out=np.zeros(counts.shape), where=counts > 0)
        new = want * (ratios @ table)
        some = counts.any(axis=1)
        want[some] = new[some] / new[some].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, want, atol=30 * ERROR[dtype])


@every_precision
def test_weights_duplicates_and_stored_zeros(dtype):
    X = sp.csr_matrix((5, 4))
    X.indptr, X.indices = np.array([0, 3, 4, 5, 5, 5]), np.array([1, 1, 0, 2, 2], np.int32)
    X.data = np.array([1.0, 2.0, 0.0, 4.0, 5.0])
    kept = [part.copy() for part in (X.indptr, X.indices, X.data)]
    pairs = aspect.Pairs.of(X, np.array([2.0, 0.0, 1.0, 1.0, 1.0]), dtype)
    assert pairs.total == 11
    assert (pairs.counts * pairs.unit).tolist() == [6, 5]
    assert pairs.columns.tolist() == [1, 2]
    assert pairs.indptr.tolist() == [0, 1, 1, 2, 2, 2]
    assert pairs.turned.tolist() == [0, 0, 1, 2, 2]
    assert pairs.rows.tolist() == [0, 2]
    assert pairs.places.tolist() == [0, 1]
    assert np.log2(pairs.unit) == np.round(np.log2(pairs.unit))
    share = np.array([6, 5]) / 11
    assert np.isclose(pairs.entropy, -(share * np.log(share)).sum())
    assert np.allclose(pairs.marginals[0], [6 / 11, 0, 5 / 11, 0, 0])
    assert all((a == b).all() for a, b in zip(kept, (X.indptr, X.indices, X.data), strict=True))


@every_precision
def test_no_counts_at_all(dtype):
    pairs = aspect.Pairs.of(sp.csr_matrix((4, 3)), None, dtype)
    x, y = (
        aspect.as_table(np.full((2, 4), 0.25), dtype),
        aspect.as_table(np.ones((2, 3)) / 3, dtype),
    )
    value, totals, _, sums, _ = run(pairs, x, y, aspect.padded(np.full(2, 0.5), 8, dtype), 2)
    assert value == 0
    assert not totals.any()
    assert not sums.any()


@every_precision
@pytest.mark.parametrize("tiny", [0.0, 1e-30, 1e-38, 1e-44])
def test_impossible_and_unlikely_pairs_give_finite_numbers(tiny, dtype):
    xh, yh = np.array([[1.0, tiny], [tiny, 1.0]]), np.array([[1.0, tiny], [tiny, 1.0]])
    X = sp.csr_matrix(np.array([[5.0, 1.0], [0.0, 3.0]]))
    pairs = aspect.Pairs.of(X, None, dtype)
    weights = aspect.padded(np.array([0.5, 0.5]), 8, dtype)
    tables = aspect.as_table(xh, dtype), aspect.as_table(yh, dtype)
    value, totals, ratios, sums, out = run(pairs, *tables, weights, 2)
    parts = (value, totals, ratios, sums, out)
    assert all(np.isfinite(part).all() for part in parts)
    assert (totals[:2] > 0).all()
    assert np.isfinite(aspect.fold_in(pairs, tables[1], weights, 5, 0.0)).all()
    if tiny == 0:  # the pair (0, 1) is impossible, and counts as log(tiny)
        lost = np.log(np.finfo(np.float64).tiny)
        assert np.isclose(value * pairs.unit, 8 * np.log(0.5) + lost)


@every_precision
def test_threads_do_not_change_a_bit(dtype, monkeypatch):
    monkeypatch.setattr(aspect, "CELLS", 2000)  # or a table of this size would be one piece
    rng = np.random.default_rng(3)
    k = 13
    X, _, (x, y), weights = make(rng, 700, 900, k, dtype, density=0.1)
    pairs = aspect.Pairs.of(X, None, dtype)
    assert len(pairs.row_cuts) > 4
    assert len(aspect.by_cells(y, lambda lo, hi: None)) > 4
    affine = aspect.padded(rng.random(k), 16, float), aspect.padded(rng.random(k), 16, float)
    results = []
    for n_jobs in (1, 2, 4):
        with LocalEngine(n_jobs):
            value, *arrays = run(pairs, x, y, weights, k)
            raised = np.empty_like(y)
            aspect.power(y, 0.9, raised)
            arrays += [raised, aspect.rescale(y, affine)]
            arrays += [aspect.fold_in(pairs, y, weights, 3, 0.0)]
            numbers = value, aspect.evidence(pairs, x, y, weights), aspect.log_sum(y, k)
            results.append((numbers, [a.tobytes() for a in arrays]))
    assert results[0] == results[1] == results[2]


@every_precision
@pytest.mark.parametrize("indptr", [[0, 2, 9], [-3, 1, 2], [2, 1, 1]])
def test_rows_that_point_beyond_the_non_zeros_are_refused(indptr, dtype):
    lines = np.array(indptr), np.zeros(2, np.int32), np.ones(2, dtype)
    table, weights = np.ones((2, 8), dtype), np.ones(8, dtype)
    spare = np.empty(2, dtype), np.empty((2, 8), dtype), np.zeros(8)
    affine = np.ones(8), np.zeros(8)
    turned = *lines[:2], np.zeros(2, np.int64), np.ones(2, dtype)
    calls = (
        lambda: _compiled.aspect_rows(*lines, table, table, weights, 0, 2, *spare),
        lambda: _compiled.aspect_columns(*turned, table, table, weights, 0, 2, *affine, spare[1]),
        lambda: _compiled.aspect_evidence(*lines, table, table, weights, 0, 2),
        lambda: _compiled.aspect_fold_in(*lines, table, weights, 0, 2, 1, 0.0, np.empty((2, 8))),
    )
    for call in calls:
        with pytest.raises(ValueError, match="indptr points beyond the indices"):
            call()


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set_agrees_with_the_twin(isa):
    if isa == "avx2" and instruction_set() == "baseline":
        pytest.skip("this processor has it not")
    code = (
        "import numpy as np, runpy;"
        f"t = runpy.run_path({os.path.abspath(__file__)!r});"
        "[t['test_a_pass_equals_the_twin'](k, d) for k in (3, 9, 65) for d in t['ERROR']];"
        "[t['test_power'](b, d) for b in (0.5, 0.99) for d in t['ERROR']]"
    )
    env = os.environ | {"COEM_ISA": isa}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=env)
