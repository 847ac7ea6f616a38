"""Edges at which a result was once wrong."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.schedules import Geometric, Linear

RNG = np.random.default_rng(7)
POINTS = RNG.normal(size=(60, 3))
COUNTS = RNG.poisson(1.0, (60, 12)) + np.eye(60, 12, dtype=int)


@pytest.mark.parametrize("far", [1e10, 1e16, 1e100])
@pytest.mark.parametrize("covariance", ["full", "unit"])
def test_rows_far_away_still_belong_somewhere(far, covariance):
    model = MixtureClusterer(2, family=Gaussian(covariance), tol=1e-3, random_state=0).fit(POINTS)
    proba = model.predict_proba([[far, 0.0, 0.0]])
    assert proba.sum() == pytest.approx(1.0)
    assert np.isfinite(model.score_samples([[far, 0.0, 0.0]])).all()


@pytest.mark.parametrize("family", [Gaussian(), VonMisesFisher()])
def test_values_whose_squares_overflow_are_refused(family):
    X = POINTS.copy()
    X[3, 1] = 1e160
    with pytest.raises(ValueError, match=r"view 'view0', row 3: 1e\+160 is too large"):
        MixtureClusterer(2, family=family).fit(X)


@pytest.mark.parametrize("beta", [Linear(0.1, 1, 10), Geometric(0.02, 1.2, 1.0)])
def test_patience_waits_for_the_schedule(beta):
    # Linear settles after 10 rounds, Geometric after ln(50) / ln(1.2) = 21.5.
    model = MixtureClusterer(3, beta=beta, patience=3, tol=0, random_state=0).fit(COUNTS)
    assert model.beta_ == 1.0
    assert model.n_iter_ > len(beta)


def test_a_start_from_another_covariance_or_other_levels_is_refused():
    diag = MixtureClusterer(2, family=Gaussian("diag"), tol=1e-2, random_state=0).fit(POINTS)
    with pytest.raises(ValueError, match="other families"):
        MixtureClusterer(2, family=Gaussian("spherical"), init=diag).fit(POINTS)
    codes = RNG.integers(3, size=(60, 4))
    few = MixtureClusterer(2, family="categorical", tol=1e-2, random_state=0).fit(codes)
    with pytest.raises(ValueError, match="other families"):
        MixtureClusterer(2, family="categorical", init=few).fit(codes + 1)


@pytest.mark.parametrize("dtype", [np.uint32, np.longdouble])
def test_double_means_double_for_every_type_of_count(dtype):
    X = sp.csr_matrix(COUNTS * 20_000_003)
    arguments = {"dtype": np.float64, "max_iter": 5, "tol": 0, "random_state": 0}
    expected = MixtureClusterer(2, **arguments).fit(X.astype(np.float64)).objective_
    assert MixtureClusterer(2, **arguments).fit(X.astype(dtype)).objective_ == expected


def test_a_row_of_codes_never_seen_is_empty():
    codes = RNG.integers(3, size=(60, 4)).astype(float)
    views = Views(words=COUNTS, codes=codes)
    model = MixtureClusterer(
        2,
        family={"words": "multinomial", "codes": "categorical"},
        assign="average",
        max_iter=5,
        tol=0,
        random_state=0,
    ).fit(views)
    new = Views(words=COUNTS[:3], codes=np.full((3, 4), 9.0))
    missing = Views(words=COUNTS[:3], codes=np.full((3, 4), np.nan))
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(missing))


def test_an_objective_of_zero_converges():
    model = MixtureClusterer(2, family=Multinomial(0), random_state=0).fit(np.ones((20, 1)))
    assert model.converged_
    assert model.objective_ == pytest.approx(0.0, abs=1e-6)


def test_features_of_categorical_columns_are_columns_and_levels():
    X = pd.DataFrame({"a": RNG.integers(3, size=60), "b": RNG.integers(2, size=60)})
    model = MixtureClusterer(2, family=Categorical(), tol=1e-2, random_state=0).fit(X)
    found = {feature for top in model.top_features(n=5) for feature, _ in top}
    assert found == {("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)}


def test_joint_coupling_tells_how_far_the_views_agree():
    views = Views(COUNTS=COUNTS[:, :6], more=COUNTS[:, 6:])
    model = MixtureClusterer(
        2, coupling="joint", max_iter=5, tol=0, dtype=np.float64, random_state=0
    ).fit(views)
    assert model.history_[-1].dissent == pytest.approx(model.disagreement(views).sum(), rel=1e-9)
    labels = model.view_proba(views).argmax(axis=2)
    assert model.history_[-1].agreement_rate == np.mean(labels[:, 0] == labels[:, 1])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", "b", 3, None], "mixes text and numbers"),
        (np.array(["a", "b", "a", "nan"]), "'nan' looks like a missing label"),
        (np.array(["a", "b", "a", "-1"]), "'-1' looks like a missing label"),
    ],
)
def test_labels_that_lost_their_meaning_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        MixtureClassifier().fit(COUNTS[:4], y)


def test_a_class_without_weight_is_refused():
    weight = np.array([1.0, 0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="class 'b' has no labelled row"):
        MixtureClassifier().fit(COUNTS[:4], ["a", "b", "a", ""], sample_weight=weight)


def test_a_family_keeps_the_precision_it_was_given():
    model = MixtureClusterer(2, family=Multinomial(dtype=np.float64), tol=1e-2, random_state=0)
    assert model.fit(COUNTS).theta_["view0"].dtype == np.float64


def test_responsibilities_are_scaled_and_rows_without_any_refused():
    resp = np.eye(2)[np.arange(60) % 2]
    arguments = {"max_iter": 3, "tol": 0, "dtype": np.float64}
    plain = MixtureClusterer(2, init=resp, **arguments).fit(COUNTS)
    scaled = MixtureClusterer(2, init=resp * np.arange(1, 61)[:, np.newaxis], **arguments)
    np.testing.assert_array_equal(scaled.fit(COUNTS).theta_["view0"], plain.theta_["view0"])
    resp[5] = 0
    with pytest.raises(ValueError, match="row 5 has no responsibility"):
        MixtureClusterer(2, init=resp).fit(COUNTS)
