"""Never a NaN in a result: every family on the data that break mixtures."""

import tracemalloc
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher

# Some of these cannot converge, and components die: that is said, and not what is tested here.
# RuntimeWarnings (0 / 0, log of 0, an objective that falls) stay errors.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# But for Gaussians: next to a collapsed variance `reg` is no small thing, and costs likelihood.
MAY_FALL = "the objective fell"

FAMILIES = {
    "multinomial": Multinomial(),
    "multinomial, alpha=0": Multinomial(alpha=0.0),
    "bernoulli": Bernoulli(),
    "bernoulli, alpha=0": Bernoulli(alpha=0.0),
    "categorical": Categorical(),
    "categorical, alpha=0": Categorical(alpha=0.0),
    "gaussian full": Gaussian("full"),
    "gaussian tied": Gaussian("tied"),
    "gaussian diag": Gaussian("diag"),
    "gaussian spherical": Gaussian("spherical"),
    "gaussian unit": Gaussian("unit"),
    "von_mises_fisher": VonMisesFisher(),
    "von_mises_fisher, fit": VonMisesFisher("fit"),
    "von_mises_fisher, fit, alpha=0": VonMisesFisher("fit", alpha=0.0),
}
COUNTS = [name for name in FAMILIES if name.startswith(("multinomial", "bernoulli"))]

OPTIONS = {
    "plain": {},
    "hard": {"posterior": "hard", "init": "k-means++"},
    "tempered average": {"beta": 0.5, "assign": "average", "weights": "per_view"},
    "joint double": {"coupling": "joint", "dtype": np.float64, "init": "rows", "eta": 0.3},
    "flat": {"beta": 0.0, "weights": "uniform"},
}

KINDS = ("multinomial", "bernoulli", "categorical", "gaussian full", "von_mises_fisher, fit")

every_family = pytest.mark.parametrize("family", FAMILIES)
every_kind = pytest.mark.parametrize("family", KINDS)


# -- data ----------------------------------------------------------------------------------------


def rows(family, n=20, width=4, seed=0):
    """Return rows in two groups such as the family takes."""
    rng = np.random.default_rng(seed)
    family = FAMILIES[family]
    group = np.arange(n)[:, np.newaxis] % 2
    if isinstance(family, Categorical):
        codes = (rng.random((n, width)) < 0.2 + 0.6 * group).astype(float)
        codes[:, 0] += 1
        return codes
    if isinstance(family, Multinomial | Bernoulli):
        rate = np.where(np.arange(width) % 2 == group, 4.0, 0.3)
        return rng.poisson(rate).astype(float) + (np.arange(width) == 0)
    return rng.normal(2.0 - 4.0 * group, 1.0, size=(n, width))


def nothing(family):
    """Return what an empty row holds."""
    counts = isinstance(FAMILIES[family], Multinomial | Bernoulli)
    return 0.0 if counts else np.nan


@dataclass
class Case:
    """Data, and how many components."""

    X: object
    k: int = 2
    weight: object = None


def empty_document(family):
    X = rows(family)
    X[[0, 7]] = nothing(family)
    return Case(X)


def two_views(family):
    """Return two views of which some rows lack one, or both."""
    X, Z = rows(family), rows(family, width=3, seed=1)
    X[[0, 3, 7]] = nothing(family)
    Z[[1, 3, 8]] = nothing(family)
    return Case(Views(a=X, b=Z))


def empty_view(family):
    X, Z = rows(family), rows(family, width=3, seed=1)
    Z[:] = nothing(family)
    return Case(Views(a=X, b=Z))


def nothing_at_all(family):
    return Case(np.full((6, 3), nothing(family)))


def one_row_that_says_anything(family):
    X = np.full((6, 4), nothing(family))
    X[2] = rows(family, n=1)[0]
    return Case(X, k=3)


def duplicates(family):
    return Case(np.repeat(rows(family, n=4), 5, axis=0), k=6)


def equal_rows(family):
    return Case(np.repeat(rows(family, n=1), 9, axis=0), k=3)


def as_many_components_as_rows(family):
    return Case(rows(family, n=7), k=7)


def single_feature(family):
    return Case(rows(family, width=1))


def single_row(family):
    return Case(rows(family, n=1), k=1)


def huge(family):
    X = rows(family)
    return Case(X if isinstance(FAMILIES[family], Categorical) else X * 1e6, k=3)


def tiny_weights(family):
    return Case(rows(family), weight=np.full(20, 1e-12))


def some_tiny_weights(family):
    return Case(rows(family), k=3, weight=np.where(np.arange(20) % 3, 1.0, 1e-12))


def constant_columns(family):
    X = rows(family)
    X[:, 1:3] = 1.0
    return Case(X)


def empty_columns(family):
    X = rows(family)
    X[:, 2] = np.nan if isinstance(FAMILIES[family], Categorical) else 0.0
    return Case(X)


def columns_that_are_sums_of_others(family):
    X = rows(family)
    X = X.astype(float)
    X[:, 3] = X[:, 1] if isinstance(FAMILIES[family], Categorical) else X[:, 1] + X[:, 2]
    return Case(X)


CASES = {
    case.__name__.replace("_", " "): case
    for case in (
        empty_document,
        two_views,
        empty_view,
        nothing_at_all,
        one_row_that_says_anything,
        duplicates,
        equal_rows,
        as_many_components_as_rows,
        single_feature,
        single_row,
        huge,
        tiny_weights,
        some_tiny_weights,
        constant_columns,
        empty_columns,
        columns_that_are_sums_of_others,
    )
}


# -- what must be finite -------------------------------------------------------------------------


def finite(value, what):
    assert np.isfinite(np.asarray(value, dtype=float)).all(), what


def check_parameters(model):
    for view, theta in model.theta_.items():
        for part in theta if isinstance(theta, tuple) else (theta,):
            finite(part, f"theta_ of {view}")
    finite(model.weights_, "weights_")
    finite(model.view_weights_, "view_weights_")
    assert model.weights_.sum() == pytest.approx(1.0)
    finite(model.objective_, "objective_")
    for record in model.history_:
        finite([record.objective, record.dissent, record.agreement_rate], record)
        finite(list(record.log_likelihood.values()), record)


def check_proba(proba):
    finite(proba, "posterior")
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=-1), 1.0, rtol=1e-9)


def check_results(model, X):
    n = X.shape[0]
    check_proba(model.predict_proba(X))
    check_proba(model.view_proba(X))
    for method in ("score_samples", "disagreement"):
        values = getattr(model, method)(X)
        assert values.shape == (n,)
        finite(values, method)
    for method in ("bic", "icl"):
        finite(getattr(model, method)(X), method)
    if len(model.weights_) > 1:
        for explanation in model.explain(X[:3]):
            finite(explanation.log_odds, "log_odds")
    check_sample(model, X.shape[1])


def check_sample(model, width):
    if any((getattr(family, "length", 0) or 0) > 1e4 for family in model.families_.values()):
        return  # see test_samples_of_huge_counts_are_cheap
    drawn, labels = model.sample(7, random_state=0)
    assert drawn.shape == (7, width)
    assert len(labels) == 7
    for matrix in drawn._data.values() if isinstance(drawn, Views) else [drawn]:
        finite(matrix.data if sp.issparse(matrix) else matrix, "sample")


def check_everything(model, X):
    check_parameters(model)
    assert len(model.labels_) == X.shape[0]
    check_results(model, X)


@pytest.mark.parametrize(
    ("family", "option"),
    [
        (family, option)
        for family in FAMILIES
        for option in OPTIONS
        if option == "plain" or family in KINDS
    ],
)
@pytest.mark.parametrize("case", CASES)
def test_never_nan(case, family, option):
    made = CASES[case](family)
    model = MixtureClusterer(
        made.k, family=FAMILIES[family], max_iter=15, random_state=1, **OPTIONS[option]
    )
    with warnings.catch_warnings():
        if family.startswith("gaussian"):
            warnings.filterwarnings("ignore", MAY_FALL, RuntimeWarning)
        model.fit(made.X, sample_weight=made.weight)
    check_everything(model, made.X)


@every_family
def test_a_classifier_never_gives_nan(family):
    made = two_views(family)
    y = np.array(["a", "b"] * 10, dtype=object)
    y[4:] = None
    for options in ({}, {"unlabeled_weight": 0.0}, {"beta": 0.5, "assign": "average"}):
        model = MixtureClassifier(family=FAMILIES[family], max_iter=15, **options)
        check_everything(model.fit(made.X, y), made.X)


@every_family
def test_batches_never_give_nan(family):
    made = two_views(family)
    model = MixtureClusterer(3, family=FAMILIES[family], max_iter=5, random_state=0)
    model.partial_fit(made.X)
    model.partial_fit(made.X[:1])  # a row without its first view
    model.partial_fit(made.X[3:4])  # a row without any
    check_everything(model, made.X[3:4])
    check_results(model, made.X)


# -- rows without anything -----------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("assign", ["joint", "average"])
@pytest.mark.parametrize("beta", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("weights", ["global", "per_view"])
def test_a_row_without_anything_gets_the_mixture_weights(family, assign, beta, weights):
    made = two_views(family)
    model = MixtureClusterer(
        2, family=FAMILIES[family], beta=beta, assign=assign, weights=weights, max_iter=10
    )
    model.set_params(random_state=2).fit(made.X)
    for X in (made.X, made.X[3:4], made.X[[3, 3, 5]]):  # in the data, alone, and among others
        proba = model.predict_proba(X)
        blank = np.flatnonzero(X.empty.all(axis=1))
        assert blank.size
        np.testing.assert_allclose(
            proba[blank], np.tile(model.weights_, (len(blank), 1)), rtol=1e-14
        )
    assert model.labels_[3] == model.weights_.argmax()


@every_kind
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_of_an_empty_view_only_the_weights_speak(family, beta):
    made = two_views(family)
    model = MixtureClusterer(2, family=FAMILIES[family], beta=beta, max_iter=10, random_state=2)
    proba = model.fit(made.X).view_proba(made.X)
    for v in (0, 1):
        for i in np.flatnonzero(made.X.empty[:, v]):
            weights = model.view_weights_[v] ** beta
            np.testing.assert_allclose(proba[i, v], weights / weights.sum(), rtol=1e-12)


@every_family
def test_an_empty_view_takes_no_part_in_the_average(family):
    made = two_views(family)
    model = MixtureClusterer(
        2, family=FAMILIES[family], assign="average", max_iter=10, random_state=2
    )
    proba, views = model.fit(made.X).predict_proba(made.X), model.view_proba(made.X)
    np.testing.assert_allclose(proba[0], views[0, 1], rtol=1e-12)
    np.testing.assert_allclose(proba[1], views[1, 0], rtol=1e-12)
    np.testing.assert_allclose(proba[2], views[2].mean(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(model.disagreement(made.X)[[0, 1, 3]], 0.0)


@every_family
def test_rows_without_anything_do_not_change_the_fit(family):
    X = rows(family)
    more = np.concatenate([X, np.full((9, 4), nothing(family))])
    one, two = (
        MixtureClusterer(2, family=FAMILIES[family], max_iter=10, random_state=0).fit(data)
        for data in (X, more)
    )
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-10)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-10)


def test_rows_of_zeros_have_no_direction():
    X = rows("von_mises_fisher")
    X[2] = 0.0
    X[5] = np.nan
    model = MixtureClusterer(2, family=VonMisesFisher(), random_state=0).fit(X)
    expected = np.tile(model.weights_, (2, 1))
    np.testing.assert_allclose(model.predict_proba(X)[[2, 5]], expected, rtol=1e-14)
    check_everything(model, X)
    check_everything(model.fit(sp.csr_matrix(np.nan_to_num(X))), sp.csr_matrix(np.nan_to_num(X)))


# -- what was never seen -------------------------------------------------------------------------


@pytest.mark.parametrize("family", COUNTS)
@pytest.mark.parametrize("dtype", [None, np.float64])
def test_a_word_that_was_never_seen(family, dtype):
    X = rows(family)
    X[:, 3] = 0.0
    model = MixtureClusterer(2, family=FAMILIES[family], dtype=dtype, random_state=0).fit(X)
    new = X.copy()
    new[:, 3] = 5.0
    new[0] = [0.0, 0.0, 0.0, 3.0]  # nothing but the new word
    check_results(model, new)
    check_results(model, sp.csr_matrix(new))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_level_that_was_never_seen_is_missing(alpha):
    X = rows("categorical")
    model = MixtureClusterer(2, family=Categorical(alpha=alpha), random_state=0).fit(X)
    new, missing = X.copy(), X.copy()
    new[:, 1], missing[:, 1] = 17.0, np.nan
    new[0], missing[0] = 17.0, np.nan
    check_results(model, new)
    expected = model.predict_proba(missing)
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=0, atol=1e-15)


def test_words_that_a_component_never_saw():
    X = np.array([[3.0, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 2]])
    init = np.repeat(np.eye(2), 2, axis=0)
    for family in (Multinomial(alpha=0.0), Bernoulli(alpha=0.0)):
        model = MixtureClusterer(2, family=family, init=init).fit(X)
        np.testing.assert_array_equal(model.labels_, [0, 0, 1, 1])
        check_everything(model, X)
        torn = np.array([[1.0, 0, 1, 0], [1, 1, 1, 1]])  # neither component can have drawn these
        check_results(model, torn)


# -- components that die -------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("dead", [[2], [0, 3]])
def test_a_component_that_dies_is_named(family, dead):
    X = rows(family)
    init = np.zeros((20, 2 + len(dead)))
    alive = [j for j in range(2 + len(dead)) if j not in dead]
    init[np.arange(20), np.array(alive)[np.arange(20) % 2]] = 1.0
    model = MixtureClusterer(init.shape[1], family=FAMILIES[family], init=init, max_iter=20)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    check_everything(model, X)
    said = [w for w in caught if "died" in str(w.message)]
    assert len(said) == 1
    assert said[0].category is ConvergenceWarning
    assert f"components {dead} of {init.shape[1]} died" in str(said[0].message)
    assert said[0].filename == __file__  # it points at the caller's line
    np.testing.assert_allclose(model.weights_[dead], 0.0, atol=1e-12)


@every_kind
def test_light_rows_do_not_kill_components(family):
    # Where every row weighs as much as every other, no component is dead for that.
    X = rows(family)
    model = MixtureClusterer(2, family=FAMILIES[family], init=np.eye(2)[np.arange(20) % 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, sample_weight=np.full(20, 1e-12))
    shares = model.predict_proba(X).sum(axis=0)
    assert shares.min() > 1.0
    assert not [w for w in caught if "died" in str(w.message)]


# -- large and small numbers ---------------------------------------------------------------------


@pytest.mark.parametrize("init", ["random", "rows", "k-means++", "spherical"])
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.int32, 10**6),
        (np.int64, 10**6),
        (np.float32, 1),
        (np.uint8, 20),
        (np.int8, 10),
        (bool, 1),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_counts_of_any_dtype_give_the_same_fit(dtype, scale, init, sparse):
    X = (rows("multinomial") * scale).astype(dtype)
    as_input = sp.csr_matrix if sparse else np.asarray
    one, two = (
        MixtureClusterer(2, init=init, n_init=2, random_state=0).fit(as_input(data))
        for data in (X, X.astype(np.float64))
    )
    check_everything(one, as_input(X))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)


def test_samples_of_huge_counts_are_cheap():
    # A row of two million words over four features is four numbers.
    X = rows("multinomial") * 2.5e5
    model = MixtureClusterer(2, random_state=0).fit(X)
    tracemalloc.start()
    try:
        drawn, _ = model.sample(1, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert drawn.sum() == pytest.approx(X.sum() / len(X), rel=0.1)
    assert peak < 1e6


@every_kind
def test_weights_of_any_scale(family):
    X = rows(family)
    for scale in (1e-12, 1e-6, 1e6):
        model = MixtureClusterer(2, family=FAMILIES[family], max_iter=15, random_state=0)
        check_everything(model.fit(X, sample_weight=np.full(20, scale)), X)


@pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("case", CASES)
def test_a_gaussian_without_reg(case, covariance):
    made = CASES[case]("gaussian full")
    model = MixtureClusterer(
        made.k, family=Gaussian(covariance, reg=0.0), max_iter=15, random_state=1
    )
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", MAY_FALL, RuntimeWarning
        )  # rounding at the least variance
        model.fit(made.X, sample_weight=made.weight)
    check_everything(model, made.X)
