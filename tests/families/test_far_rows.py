"""Gaussian rows that lie far from 0, such as time stamps: a shift of all rows changes nothing."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from coem import HiddenMarkovModel, MixtureClusterer, load
from coem.families import Gaussian, MixtureOf, check_family

KINDS = ("full", "tied", "diag", "spherical")
K = 3
RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(K), 80)
CENTRES = np.array([[0, 0, 0], [6, 0, 0], [0, 6, 3]])
MIX = np.array([[1, 0.5, 0], [0, 1, 0.2], [0, 0, 0.7]])
# Multiples of 2**-10, so that a shift by a whole number is exact.
ROWS = np.round((CENTRES[GROUPS] + RNG.standard_normal((240, 3)) @ MIX) * 1024) / 1024
FAR = np.array([1e9, 0.0, -1.7e9])
HOLES = np.where(RNG.random(ROWS.shape) < 0.1, np.nan, ROWS)
START = 0.8 * np.eye(K)[GROUPS] + 0.2 / K


def fitted(X, family):
    return MixtureClusterer(K, family=family, init=START, tol=0, max_iter=15).fit(X)


def close(near, far, shift=FAR):
    """Compare a fit with that of shifted rows; 1e9 has nine digits of 16."""
    np.testing.assert_allclose(far.means - shift, near.means, rtol=0, atol=1e-6)
    np.testing.assert_allclose(far.covariances, near.covariances, rtol=0, atol=1e-6)


@pytest.mark.parametrize("X", [ROWS, HOLES], ids=["whole", "holes"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_shift_of_the_rows_shifts_the_means_only(kind, X):
    near, far = fitted(X, Gaussian(kind, reg=0)), fitted(X + FAR, Gaussian(kind, reg=0))
    close(near.theta_["view0"], far.theta_["view0"])
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-9)
    np.testing.assert_allclose(far.predict_proba(X + FAR), near.predict_proba(X), atol=1e-6)
    assert far.collapsed_ == near.collapsed_ == {"view0": []}


def test_sparse_rows_and_inner_components():
    shift = np.full(3, 2.0**30)
    near = fitted(ROWS, Gaussian(reg=0)).theta_["view0"]
    close(near, fitted(sp.csr_matrix(ROWS + shift), Gaussian(reg=0)).theta_["view0"], shift)
    inner = MixtureOf(Gaussian("diag", reg=0), 2)
    near, far = (fitted(X, inner) for X in (ROWS, ROWS + FAR))
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-7)


@pytest.mark.parametrize("X", [ROWS, HOLES], ids=["whole", "holes"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_laws_hold_far_from_0(kind, X):
    check_family(Gaussian(kind), X + FAR, n_components=K)


def test_ordinary_rows_have_no_centre():
    rows = np.column_stack([ROWS, 2000 + 5 * RNG.standard_normal(240)])  # years
    model = MixtureClusterer(K, family="gaussian", random_state=0).fit(rows)
    assert model.families_["view0"].centre is None
    assert Gaussian("unit").bind(ROWS + FAR, None).centre is None
    centre = Gaussian().bind(HOLES + FAR, None).centre
    assert centre[1] == 0
    np.testing.assert_allclose(centre, FAR, rtol=1e-7, atol=0)


def test_the_centre_is_found_in_pieces():
    many = np.concatenate([ROWS + FAR] * 40)  # more rows than a piece has
    np.testing.assert_allclose(Gaussian().bind(many, None).centre, FAR, rtol=1e-7, atol=0)
    missing = np.column_stack([many, np.full(len(many), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Gaussian().bind(missing, None).centre[3] == 0


def test_a_far_column_that_does_not_vary_decides_nothing():
    rows = np.column_stack([ROWS, np.full(240, 1e8 + 0.1)])
    near, far = fitted(ROWS, Gaussian("diag")), fitted(rows, Gaussian("diag"))
    np.testing.assert_allclose(far.predict_proba(rows), near.predict_proba(ROWS), atol=1e-9)
    np.testing.assert_allclose(far.theta_["view0"].covariances[:, 3], 1e-6, rtol=1e-9)


def test_a_component_that_collapses_far_from_0_is_reported():
    rows = np.concatenate([ROWS, np.tile([50.0, 50.0, 50.0], (9, 1))]) + FAR
    groups = np.append(GROUPS, np.full(9, K))
    model = MixtureClusterer(4, family=Gaussian("full"), init=np.eye(4)[groups], max_iter=5, tol=0)
    with pytest.warns(match=r"components \[3\] of view 'view0' have collapsed"):
        model.fit(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_files_keep_the_centre(kind, tmp_path):
    def batches(X):
        model = MixtureClusterer(K, family=Gaussian(kind, reg=0), init=START[::2], max_iter=5)
        return model.set_params(tol=0).partial_fit(X[::2])

    near, far = batches(ROWS).partial_fit(ROWS[1::2]), batches(ROWS + FAR)
    far.save(tmp_path / "far.coem")
    again = load(tmp_path / "far.coem")
    assert again.families_["view0"].centre == far.families_["view0"].centre
    for model in (far, again):
        model.partial_fit(ROWS[1::2] + FAR)
        close(near.theta_["view0"], model.theta_["view0"])


def test_chains():
    def chain(X):
        model = HiddenMarkovModel(K, family=Gaussian(reg=0), init=START, tol=0, max_iter=5)
        return model.fit(X, lengths=[100, 140])

    near, far = chain(ROWS), chain(ROWS + FAR)
    close(near.theta_["view0"], far.theta_["view0"])
    np.testing.assert_allclose(far.transmat_, near.transmat_, atol=1e-7)


def test_a_centre_can_be_given():
    near = fitted(ROWS, Gaussian(reg=0)).theta_["view0"]
    close(near, fitted(ROWS, Gaussian(reg=0, centre=[1, 2, 3])).theta_["view0"], 0.0)
    for bad in ("x", 1.0, [np.inf], [[1.0]], ["a"]):
        with pytest.raises(ValueError, match="centre must hold one finite number per column"):
            Gaussian(centre=bad)
    message = "view 'view0': centre has 2 numbers for 3 columns"
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted(ROWS, Gaussian(centre=(1.0, 2.0)))
