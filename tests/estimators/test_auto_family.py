"""Families by themselves, on real data: what "auto" takes, says, saves and keeps."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import coem
from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views
from coem.families import Gaussian, MixtureOf, Multinomial, VonMisesFisher
from coem.families.named import choices_for

RNG = np.random.default_rng(3)
GROUP = np.arange(60) % 3
WORDS = sp.csr_matrix(RNG.poisson(0.2 + 1.5 * (np.arange(30) % 3 == GROUP[:, None])))
TF_IDF = TfidfTransformer().fit_transform(WORDS)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_measurements_have_groups_in_any_unit(load):
    X, y = load(return_X_y=True)
    units = 10.0 ** RNG.integers(-9, 7, X.shape[1])
    for rows in (X, StandardScaler().fit_transform(X), X * units, np.c_[X, np.full(len(X), 7.5)]):
        model = MixtureClusterer(3, random_state=0).fit(rows)
        assert adjusted_rand_score(y, model.labels_) > 0.7
        assert model.families_["view0"].covariance == "tied"


def test_few_rows_or_missing_values_leave_columns_independent():
    X, y = load_iris(return_X_y=True)
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    model = MixtureClusterer(3, random_state=0).fit(gaps)
    assert model.families_["view0"].covariance == "diag"
    assert "(some are missing)" in model.family_reasons_["view0"]
    assert adjusted_rand_score(y, model.labels_) > 0.6
    wide = RNG.normal(size=(40, 9)) + 3 * (np.arange(40) % 2)[:, np.newaxis]
    model = MixtureClusterer(2, random_state=0).fit(wide)
    assert model.families_["view0"].covariance == "diag"
    assert adjusted_rand_score(np.arange(40) % 2, model.labels_) == 1


def test_the_reason_is_said_saved_and_kept(tmp_path, capsys):
    X, _ = load_iris(return_X_y=True)
    model = MixtureClusterer(3, random_state=0, verbose=1).fit(X)
    sentence = "View 'view0' has Gaussian components: its values are real numbers (some are"
    assert f"MixtureClusterer: {sentence}" in capsys.readouterr().err
    assert model.family_reasons_["view0"].startswith(sentence)
    model.save(tmp_path / "model.coem")
    again = coem.load(tmp_path / "model.coem")
    assert again.family_reasons_ == model.family_reasons_
    assert again.families_ == model.families_
    model.partial_fit(np.rint(X))  # counts by themselves, but the family is known by now
    assert again.families_ == model.families_
    views = Views(words=WORDS, size=RNG.normal(size=(60, 2)) + 5 * GROUP[:, np.newaxis])
    both = MixtureClusterer(3, random_state=0, family={"words": "multinomial", "size": "auto"})
    assert list(both.fit(views).family_reasons_) == ["size"]


def test_tags_follow_from_families_that_are_known():
    for model in (MixtureClusterer(), MixtureClassifier(), HiddenMarkovModel()):
        tags = get_tags(model).input_tags
        assert not tags.positive_only
        assert tags.allow_nan
    tags = get_tags(MixtureClusterer(family={"a": "auto", "b": "multinomial"})).input_tags
    assert tags.positive_only
    assert not get_tags(MixtureClusterer(family="multinomial")).input_tags.allow_nan


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("family", [Multinomial(), MixtureOf(Multinomial())])
def test_weights_are_no_counts(norm, dense, family):
    X = TfidfTransformer(norm=norm).fit_transform(WORDS)
    views = Views(words=X.toarray() if dense else X)
    with pytest.warns(UserWarning, match=r"view 'words'.*TF-IDF.*Pass counts.*VonMisesFisher"):
        MixtureClusterer(2, family=family, max_iter=1, tol=0).fit(views)


def test_directions_of_weights_have_groups():
    model = MixtureClusterer(3, random_state=0).fit(TF_IDF)
    assert model.families_["view0"] == VonMisesFisher("fit", dtype=np.dtype(np.float32))
    assert "TF-IDF" in model.family_reasons_["view0"]
    assert adjusted_rand_score(GROUP, model.labels_) > 0.9


def test_rows_of_one_word_are_counts():
    X = np.tile(np.eye(6), (5, 1))
    for family in ("auto", Multinomial()):  # without the warning for TF-IDF rows
        model = MixtureClassifier(family=family).fit(X, ["a", "b", "c"] * 10)
        assert isinstance(model.families_["view0"], Multinomial)
        assert model.score(X, ["a", "b", "c"] * 10) == 1


def test_rows_of_weight_zero_do_not_choose():
    X = RNG.poisson(1.0, (30, 4)).astype(float)
    weight = np.full(30, 2.0)
    X[4], weight[4] = -0.5, 0
    assert isinstance(choices_for("auto", Views([X]), weight)["view0"].family, Multinomial)
    assert isinstance(choices_for("auto", Views([X]))["view0"].family, Gaussian)
    few = RNG.normal(size=(12, 4))
    assert choices_for("auto", Views([few]))["view0"].family.covariance == "diag"
    twice = choices_for("auto", Views([few]), np.full(12, 2.0))["view0"]
    assert twice == choices_for("auto", Views([np.repeat(few, 2, axis=0)]))["view0"]
