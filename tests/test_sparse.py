"""Sparse matrices at the border: damage is refused, and what is unusual does no harm."""

import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer, Views
from coem.sparse import sound_csr
from tests.borders import BORDERS, DENSE_ONLY, WIDTH
from tests.damage import DAMAGE, FORMATS, UNUSUAL, damaged, plain, unusual

ROOT = Path(__file__).parents[1]
# Each kind of damage once; COEM_MATRICES=7300 shows each border 7,300 of them.
MATRICES = int(os.environ.get("COEM_MATRICES", len(DAMAGE)))


# -- damage -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_border_lets_a_damaged_matrix_in():
    # In a process of its own: a border that lets one in may die of it.
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.borders", str(MATRICES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    wrong = [line for line in lines if not line.endswith(": refused")][:20]
    assert run.returncode == 0, "\n".join([*wrong, *lines[-1:], run.stderr[-2000:]])
    assert lines[-1] == f"{MATRICES} matrices to {len(BORDERS)} borders each, 0 went wrong"


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_with_the_view_and_the_remedy(kind):
    X = damaged(np.random.default_rng(0), kind)
    with pytest.raises((TypeError, ValueError), match=r"^view 'title': .*(build it again|convert)"):
        Views(title=X)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("csr: indptr begins late", "indptr begins with 1 and must begin with 0"),
        ("csr: indptr is short", "indptr has [0-9]+ entries and must have [0-9]+"),
        ("csr: indices below 0", "row [0-9]+ points outside the matrix or its arrays"),
        ("csc: indices just beyond", "column [0-9]+ points outside"),
        ("bsr: indices far beyond", "block of rows [0-9]+ points outside"),
        ("bsr: blocks do not fit", "blocks of 97 x 89 do not fill the shape"),
        ("coo: column below 0", "it has the column -1, but columns go from 0 to [0-9]+"),
        ("coo: data is cut", r"it has ([0-9]+) rows and \1 columns of [0-9]+ values"),
        ("lil: data is short", "a row has more or fewer columns than values"),
        ("dok: row below 0", "it has the row -1000000"),
        ("dia: offsets are cut", "its [0-9]+ diagonals must each have one offset"),
        ("csr: data is text", "data holds <U1, not numbers"),
        ("csr: indices are float", "indices must be an array of integers, not float64"),
    ],
)
def test_messages_say_what_is_wrong(kind, told):
    X = damaged(np.random.default_rng(1), kind)
    with pytest.raises(ValueError, match=rf"^the {kind[:3].upper()} matrix is damaged: .*{told}"):
        sound_csr(X)


def test_views_that_are_damaged_later_are_refused_by_estimators():
    X = plain(np.random.default_rng(0), 8, WIDTH)
    views = Views(title=X)
    model = MixtureClusterer(2, random_state=0).fit(views)
    X.indices[3] = 10**6
    for method in (model.fit, model.predict):
        with pytest.raises(ValueError, match="X, view 'title': the CSR matrix is damaged: row"):
            method(views)


def test_what_is_changed_later_is_put_in_order_again():
    X = plain(np.random.default_rng(0), 8, WIDTH)
    views = Views(title=X)
    model = MixtureClusterer(2, random_state=0).fit(views)
    before = model.predict_proba(views)
    X.indices[: X.indptr[1]] = X.indices[: X.indptr[1]][::-1].copy()
    X.data[: X.indptr[1]] = X.data[: X.indptr[1]][::-1].copy()
    np.testing.assert_array_equal(model.predict_proba(views), before)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_no_damage(format_, shape):
    if format_ == "bsr":
        X = sp.bsr_matrix(shape, blocksize=(1, 1))
    else:
        X = sp.csr_array(shape).asformat(format_)
    assert Views([X])["view0"].shape == shape
    with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)"):
        MixtureClusterer(2).fit(X)


@pytest.mark.skipif(sp.coo_array([1]).ndim == 2, reason="SciPy 1.12 makes a row of them")
def test_arrays_of_one_dimension_are_refused():
    with pytest.raises(ValueError, match="view 'a': Expected 2D input, got a sparse coo array"):
        Views(a=sp.coo_array(np.arange(4)))


# -- valid and unusual --------------------------------------------------------------------------


def answer(name, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BORDERS[name](X)


def case_of(kind, name):
    """Return an unusual matrix and its plain copy, of a shape that the border takes."""
    n_rows = WIDTH if name == "fit traffic" else 2 if name == "fit k-means, init" else 12
    return unusual(np.random.default_rng(7), kind, n_rows, WIDTH)


@cache
def usual(name):
    """Return what a border answers to the plain matrix; it is the same for all kinds."""
    return answer(name, case_of("read-only", name)[1])


def arrays_of(X):
    names = ("data", "indices", "indptr", "row", "col", "offsets", "rows")
    return {name: getattr(X, name) for name in names if hasattr(X, name)}


# Every border for some kinds, and for the others those that once read beyond what is stored.
EVERYWHERE = ("spare capacity, cells twice", "flags that lie", "read-only, cells twice", "as csc")
SOME = ("Views", "fit von_mises_fisher", "fit k-means", "fit categorical", "select", "scale")


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_matrices_give_what_plain_ones_give(kind):
    for name in sorted(BORDERS.keys() - DENSE_ONLY) if kind in EVERYWHERE else SOME:
        X, _ = case_of(kind, name)
        held = arrays_of(X)
        copies = {part: array.copy() for part, array in held.items()}
        found = answer(name, X)
        assert len(found) == len(usual(name))
        for mine, theirs in zip(found, usual(name), strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
        for part, array in arrays_of(X).items():
            same = array is held[part] or X.format == "coo"
            assert same, f"{name} replaced {part}"
            np.testing.assert_array_equal(array, copies[part], err_msg=f"{name} changed {part}")


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("seed", range(5))
def test_sound_csr_has_the_same_cells(kind, seed):
    X, same = unusual(np.random.default_rng(seed), kind)
    found = sound_csr(X)
    assert found.format == "csr"
    assert isinstance(found, sp.sparray) == isinstance(X, sp.sparray)
    assert type(found)((found.data, found.indices, found.indptr), found.shape).has_canonical_format
    assert found.has_canonical_format
    assert len(found.data) == len(found.indices) == found.indptr[-1]
    np.testing.assert_array_equal(found.toarray(), same.toarray())


@pytest.mark.parametrize("kind", ["64-bit indices", "read-only", "subclass", "stored zeros"])
def test_sound_matrices_are_not_copied(kind):
    X, _ = unusual(np.random.default_rng(0), kind)
    assert sound_csr(X) is X
    assert Views([X])["view0"] is X
