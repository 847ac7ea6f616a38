"""The classifier's manners: families by themselves, copies, failures, and never a NaN."""

import pickle
import warnings
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from coem import MixtureClassifier, Not, Views
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.schedules import Geometric
from coem.selection import LabeledKFold
from coem.sparse import shorten
from coem.text import scale_length
from tests.pairs import pairwise

RNG = np.random.default_rng(11)
N = 36
GROUP = np.arange(N) % 3
NAMES = np.array(["ham", "news", "spam"])[GROUP]
COUNTS = RNG.poisson(0.4 + 2.0 * (np.arange(6) % 3 == GROUP[:, None])) + np.eye(N, 6, dtype=int)
ROWS = RNG.normal(size=(N, 5)) + 3 * np.eye(3, 5)[GROUP]
UNIT = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
PARTLY = np.where(np.arange(N) < 15, NAMES, "")


# -- family="auto" --------------------------------------------------------------------------------


def with_rows(X, rows, value):
    X = X.copy()
    X[rows] = value
    return X


AUTO = {
    "unit rows": (UNIT, VonMisesFisher),
    "unit rows, single": (UNIT.astype(np.float32), VonMisesFisher),
    "unit rows, half": (UNIT.astype(np.float16), VonMisesFisher),
    "unit rows, some missing": (with_rows(UNIT, [3, 20], np.nan), VonMisesFisher),
    "unit rows, some zero": (with_rows(UNIT, [3, 20], 0.0), VonMisesFisher),
    "unit rows, one a unit vector": (with_rows(UNIT, [3], np.eye(5)[0]), VonMisesFisher),
    "nearly unit": (np.abs(UNIT) * 1.005, VonMisesFisher),
    "not unit": (np.abs(UNIT) * 1.05, Gaussian),
    "one row not unit": (with_rows(np.abs(UNIT), [7], 0.9), Gaussian),
    "negative": (ROWS, Gaussian),
    "negative, whole": (COUNTS - 2, Gaussian),
    "missing": (with_rows(np.abs(ROWS), [3], np.nan), Gaussian),
    "shares": (scale_length(COUNTS, 1), Gaussian),
    "scaled to one length": (scale_length(COUNTS, 20), Multinomial),
    "one-hot": (np.eye(6)[np.arange(N) % 6], Multinomial),
    "one-hot, integers": (np.eye(6, dtype=int)[np.arange(N) % 6], Multinomial),
    "counts": (COUNTS, Multinomial),
    "counts as floats": (COUNTS.astype(float), Multinomial),
    "bool": (COUNTS > 1, Multinomial),
    "sparse": (sp.csr_matrix(COUNTS), Multinomial),
    "sparse, scaled to one length": (scale_length(sp.csr_matrix(COUNTS), 20), Multinomial),
    "sparse, long rows cut": (shorten(sp.csr_matrix(COUNTS), 5.0), Multinomial),
    "sparse weights": (sp.csr_matrix(np.where(COUNTS > 1, np.log1p(COUNTS), 0)), Multinomial),
    "sparse measurements": (sp.csr_matrix(np.abs(ROWS)), Gaussian),
    "sparse, negative": (sp.csr_matrix(ROWS), Gaussian),
    "sparse unit rows": (sp.csr_matrix(np.abs(UNIT)), VonMisesFisher),
    "sparse shares": (scale_length(sp.csr_matrix(COUNTS), 1), VonMisesFisher),
    "huge": (COUNTS * 1e200, Multinomial),  # whose squares are infinite
    "nothing": (np.zeros((N, 4)), Multinomial),
}


@pytest.mark.parametrize("case", AUTO)
def test_families_by_themselves(case):
    X, expected = AUTO[case]
    model = MixtureClassifier(max_iter=3, tol=0).fit(X, PARTLY)
    taken = model.families_["view0"]
    assert type(taken) is expected
    named = MixtureClassifier(family=taken, max_iter=3, tol=0).fit(X, PARTLY)
    assert named.family_reasons_ == {}
    (reason,) = model.family_reasons_.values()
    assert reason.startswith(f"View 'view0' has {expected.__name__} components: its ")
    np.testing.assert_array_equal(model.predict_proba(X), named.predict_proba(X))
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.family == "auto"


def test_every_view_has_a_family_of_its_own():
    views = Views(words=COUNTS, directions=UNIT.astype(np.float16), codes=GROUP[:, None])
    kinds = {"words": Multinomial, "directions": VonMisesFisher, "codes": Multinomial}
    model = MixtureClassifier().fit(views, PARTLY)
    assert {name: type(f) for name, f in model.families_.items()} == kinds
    family = {"words": Bernoulli(), "directions": "auto", "codes": Categorical()}
    model = MixtureClassifier(family=family).fit(views, PARTLY)
    assert type(model.families_["words"]) is Bernoulli
    assert type(model.families_["directions"]) is VonMisesFisher
    assert model.score(views, NAMES) > 0.9


def test_a_row_of_nan_among_unit_rows_is_empty():
    X = with_rows(UNIT, [30], np.nan)
    model = MixtureClassifier(dtype=np.float64).fit(X, PARTLY)
    without = MixtureClassifier(dtype=np.float64).fit(
        np.delete(X, 30, axis=0), np.delete(PARTLY, 30)
    )
    np.testing.assert_allclose(model.predict_proba(UNIT), without.predict_proba(UNIT), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X)[30], model.weights_, rtol=1e-12)


def test_new_rows_are_what_the_first_ones_were():
    model = MixtureClassifier().fit(UNIT, PARTLY)
    assert len(model.predict(3 * UNIT)) == N  # no unit rows, but the family is known by now
    np.testing.assert_allclose(model.predict_proba(3 * UNIT), model.predict_proba(UNIT), rtol=1e-5)
    model.partial_fit(np.eye(5)[:3], ["ham", "news", "spam"])
    assert type(model.families_["view0"]) is VonMisesFisher


# -- parameters -----------------------------------------------------------------------------------

OPTIONS = {
    "plain": {},
    "sub-topics": {"components_per_class": {"spam": 2}, "n_init": 2},
    "candidates": {"components_per_class": [1, {"ham": 2}], "cv": 3},
    "cv": {"components_per_class": "cv", "cv": LabeledKFold(2, random_state=0)},
    "calibrated": {"calibrate": True, "unlabeled_weight": 0.5},
    "annealed": {"beta": Geometric(0.1, 1.5), "correspondence": "em"},
    "by hand": {"correspondence": {0: "news", 1: "ham"}},
    "hard": {"posterior": "hard", "weights": "uniform", "init": "k-means++", "patience": 2},
    "given": {"init": np.eye(3)[GROUP], "assign": "average", "dtype": np.float64},
    "family": {"family": Bernoulli(alpha=0.5), "n_jobs": 2, "max_iter": 4, "tol": 0},
    "everything": {
        "components_per_class": [1, 2],
        "cv": 2,
        "calibrate": True,
        "beta": Geometric(0.3, 1.5),
        "unlabeled_weight": 0.3,
        "init": "rows",
        "n_init": 2,
        "n_jobs": 2,
        "family": Multinomial(alpha=0.3),
    },
}
every_option = pytest.mark.parametrize("option", OPTIONS)


def made(option):
    return MixtureClassifier(**({"random_state": 0} | OPTIONS[option]))


@cache
def kept(option):
    """Return a fitted model that is not to be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # components of candidates die
        return made(option).fit(COUNTS, PARTLY)


def fitted(option):
    return deepcopy(kept(option))


def same_bits(one, other):
    assert vars(one).keys() == vars(other).keys()
    for view, theta in one.theta_.items():
        for a, b in zip(parts(theta), parts(other.theta_[view]), strict=True):
            np.testing.assert_array_equal(a, b)
    for name in ("weights_", "component_classes_", "classes_", "labels_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.predict_proba(COUNTS), other.predict_proba(COUNTS))
    assert one.objective_ == other.objective_


def parts(theta):
    return theta if isinstance(theta, tuple) else (theta,)


@every_option
def test_parameters_go_round(option):
    model = made(option)
    params = model.get_params(deep=False)
    again = MixtureClassifier().set_params(**params)
    assert again.get_params(deep=False).keys() == params.keys()
    for name, value in again.get_params(deep=False).items():
        assert value is params[name]
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert not hasattr(clone(kept(option)), "theta_")


@every_option
def test_a_fit_leaves_the_parameters_alone(option):
    before = made(option).get_params(deep=False)
    after = kept(option).get_params(deep=False)
    assert before.keys() == after.keys()
    for name, value in OPTIONS[option].items():
        assert after[name] is value


@every_option
def test_a_pickle_is_the_model(option):
    model = fitted(option)
    copy = pickle.loads(pickle.dumps(model))
    same_bits(copy, model)
    np.testing.assert_array_equal(
        copy.leave_one_out(COUNTS, PARTLY), model.leave_one_out(COUNTS, PARTLY)
    )
    for one in (copy, model):
        one.partial_fit(COUNTS[:10], NAMES[:10])
    same_bits(copy, model)


@every_option
def test_a_second_fit_is_the_first(option):
    model = fitted(option)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(COUNTS, PARTLY)
    same_bits(model, kept(option))


def test_hyper_parameters_of_the_family():
    model = MixtureClassifier(family=Multinomial()).set_params(family__alpha=0.1)
    assert model.family == Multinomial(alpha=0.1)
    assert model.get_params()["family__alpha"] == 0.1
    assert MixtureClassifier().set_params(family__alpha=0.1).family == Multinomial(alpha=0.1)


# -- failures -------------------------------------------------------------------------------------

FAILURES = {
    "labels": (COUNTS, [*PARTLY[:-1], Not("ham", "news", "spam")], {}),
    "no labels": (COUNTS, [None] * N, {}),
    "length": (COUNTS, PARTLY[:-1], {}),
    "infinite": (with_rows(COUNTS.astype(float), [2], np.inf), PARTLY, {}),
    "NaN": (with_rows(COUNTS.astype(float), [2], np.nan), PARTLY, {"family": "multinomial"}),
    "negative": (COUNTS - 9.0, PARTLY, {"family": "multinomial"}),
    "components": (COUNTS, PARTLY, {"components_per_class": {"eggs": 2}}),
    "candidate": (COUNTS, PARTLY, {"components_per_class": [1, {"eggs": 2}]}),
    "correspondence": (COUNTS, PARTLY, {"correspondence": {9: "ham"}}),
    "calibration": (COUNTS[:6], ["ham", "news", "spam", "", "", ""], {"calibrate": True}),
    "weights": (COUNTS, PARTLY, {"weights": "none"}),
    "other classes": (COUNTS, np.where(GROUP, "x", ""), {"correspondence": {0: "ham"}}),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fit_leaves_the_old_model(case):
    X, y, options = FAILURES[case]
    new, model = MixtureClassifier(**options), fitted("sub-topics")
    with pytest.raises(ValueError, match=r"\w"):
        new.fit(X, y)
    with pytest.raises(NotFittedError):
        new.predict(COUNTS)
    assert vars(new).keys() == vars(MixtureClassifier()).keys()
    params = model.get_params(deep=False)
    model.set_params(**options)
    with pytest.raises(ValueError, match=r"\w"):
        model.fit(X, y)
    model.set_params(**params)
    same_bits(model, kept("sub-topics"))


def test_nothing_works_before_a_fit():
    model = MixtureClassifier()
    for call in (
        lambda: model.predict(COUNTS),
        lambda: model.predict_proba(COUNTS),
        lambda: model.component_proba(COUNTS),
        lambda: model.score(COUNTS, NAMES),
        lambda: model.leave_one_out(COUNTS, NAMES),
        lambda: model.relabel({0: "ham"}),
        lambda: model.explain(COUNTS),
    ):
        with pytest.raises(NotFittedError):
            call()


# -- labels of every kind -------------------------------------------------------------------------

LABELS = {
    "text": (NAMES, "U"),
    "integers": (GROUP * 10 + 3, "i"),
    "negative integers": (GROUP - 4, "i"),
    "bools": (GROUP == 1, "b"),
    "floats": (GROUP * 2.0, "f"),
    "list": (NAMES.tolist(), "U"),
    "list of bools": ((GROUP == 1).tolist(), "b"),
    "unsigned": (GROUP.astype(np.uint8), "u"),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("option", ["sub-topics", "calibrated"])
def test_labels_come_back_in_kind(kind, option):
    y, dtype = LABELS[kind]
    options = {"components_per_class": 2} if option == "sub-topics" else {"calibrate": True}
    model = MixtureClassifier(random_state=0, **options).fit(COUNTS, y)
    assert model.classes_.dtype.kind == model.predict(COUNTS).dtype.kind == dtype
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.score(COUNTS, y) == np.mean(model.predict(COUNTS) == np.asarray(y)) > 0.8
    assert model.explain(COUNTS[:1])[0].label in model.classes_


# -- never a NaN ----------------------------------------------------------------------------------

FAMILIES = {
    "multinomial": Multinomial(),
    "multinomial, alpha=0": Multinomial(alpha=0.0),
    "bernoulli, alpha=0": Bernoulli(alpha=0.0),
    "categorical, alpha=0": Categorical(alpha=0.0),
    "full": Gaussian("full"),
    "tied": Gaussian("tied"),
    "von Mises-Fisher": VonMisesFisher(),
    "von Mises-Fisher, fit": VonMisesFisher("fit", alpha=0.0),
}


def rows_for(family):
    """Return rows such as a family takes, and what an empty row has."""
    if isinstance(family, Multinomial | Bernoulli):
        return COUNTS.astype(float), 0.0
    return (
        np.minimum(COUNTS, 2).astype(float) if isinstance(family, Categorical) else ROWS
    ), np.nan


def first_few(n=4):
    return np.where(np.arange(N) < n, NAMES, "")


CASES = {
    "one class": lambda X, nothing: (X, np.where(np.arange(N) < 5, "ham", ""), 2),
    "one class, all labelled": lambda X, nothing: (X, np.full(N, "ham"), 3),
    "more components than labels": lambda X, nothing: (X, first_few(), 4),
    "equal rows": lambda X, nothing: (np.repeat(X[:1], N, axis=0), first_few(), 2),
    "few different rows": lambda X, nothing: (np.repeat(X[:4], 9, axis=0), PARTLY, 3),
    "nothing at all": lambda X, nothing: (np.full_like(X, nothing), first_few(), 2),
    "empty labelled rows": lambda X, nothing: (with_rows(X, slice(0, 4), nothing), first_few(), 2),
    "a class with an empty row": lambda X, nothing: (with_rows(X, [2], nothing), first_few(), 2),
    "nothing but labelled rows": lambda X, nothing: (
        with_rows(X, slice(4, N), nothing),
        first_few(),
        2,
    ),
}


def check(model, X, y, weight=None):
    for theta in model.theta_.values():
        assert all(np.isfinite(part).all() for part in parts(theta))
    assert np.isfinite(model.objective_)
    assert model.weights_.sum() == pytest.approx(1.0)
    for proba in (
        model.predict_proba(X),
        model.component_proba(X),
        model.view_proba(X),
        model.leave_one_out(X, y, sample_weight=weight),
    ):
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=-1), 1.0, rtol=1e-9)
    if len(model.classes_) > 1:
        assert all(np.isfinite(one.log_odds) for one in model.explain(X[:4]))


@pytest.mark.parametrize(
    ("case", "family", "init"), pairwise(CASES, FAMILIES, ["random", "rows", "k-means++"])
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the objective fell:RuntimeWarning")
def test_never_nan(case, family, init):
    X, y, k = CASES[case](*rows_for(FAMILIES[family]))
    options = {"family": FAMILIES[family], "init": init, "max_iter": 4, "random_state": 0}
    for components in (1, k) if init == "random" else (k,):  # one component starts by itself
        model = MixtureClassifier(components_per_class=components, **options).fit(X, y)
        check(model, X, y)
        proba = model.partial_fit(X[:6], y[:6]).predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
    views, weight = Views(a=X, b=X[::-1].copy()), np.where(GROUP == 1, 1e-9, 2.0)
    model = MixtureClassifier(components_per_class=k, unlabeled_weight=0.2, **options)
    check(model.fit(views, y, sample_weight=weight), views, y, weight)
