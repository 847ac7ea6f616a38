"""Bad input gets one sentence that names the view, the row and the fix, before any work."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.schedules import Geometric, Linear, Steps

RNG = np.random.default_rng(0)
N = 12
X = RNG.poisson(2.0, size=(N, 5)).astype(float)
WORDS = sp.csr_matrix(RNG.poisson(1.0, size=(N, 4)))
POINTS = RNG.normal(size=(N, 3))
VIEWS = Views(title=X, body=WORDS)
Y = np.array(["a", "b", "", "a"] * 3)
WRONG = (ValueError, TypeError)
# Tiny fits that need not converge.
SOON = {"tol": 0, "max_iter": 2, "random_state": 0}


def broken(matrix, row, column, value):
    """Return a copy with one value replaced."""
    matrix = np.array(matrix, dtype=np.result_type(matrix, type(value)))
    matrix[row, column] = value
    return matrix


def clusterer(**options):
    return MixtureClusterer(**{"n_components": 2} | SOON | options)


def fitted(data=X, **options):
    return clusterer(**options).fit(data)


def check_fit_refuses(estimator, data, words, error=ValueError, **fit_params):
    """Check the words of the message, and that the estimator stays unfitted."""
    with pytest.raises(error, match=words):
        estimator.fit(data, **fit_params)
    assert not hasattr(estimator, "weights_")
    assert not hasattr(estimator, "labels_")


# -- values --------------------------------------------------------------------------------------

BAD_VALUES = {
    "negative": (
        "multinomial",
        broken(X, 3, 1, -1.0),
        "Negative values in data: view 'body', row 3 has -1.0; counts must be 0 or more",
    ),
    "negative, sparse": (
        "multinomial",
        sp.csr_matrix(broken(X, 7, 0, -2.0)),
        "Negative values in data: view 'body', row 7 has -2.0; counts must be 0 or more",
    ),
    "negative integer": ("bernoulli", broken(X, 0, 0, -3).astype(int), "view 'body', row 0 has -3"),
    "NaN": (
        "multinomial",
        broken(X, 3, 1, np.nan),
        "view 'body', row 3: the value nan is not finite",
    ),
    "NaN, sparse": (
        "multinomial",
        sp.csr_matrix(broken(X, 11, 4, np.nan)),
        "view 'body', row 11: the value nan is not finite .* drop the row or fill it in",
    ),
    "infinite": (
        "bernoulli",
        broken(X, 0, 0, np.inf),
        "view 'body', row 0: the value inf is not finite",
    ),
    "infinite both ways": (
        "multinomial",
        broken(broken(X, 1, 0, np.inf), 2, 0, -np.inf),
        "view 'body', row 1: the value inf is not finite",
    ),
    "direction partly NaN": (
        "von_mises_fisher",
        broken(POINTS, 2, 1, np.nan),
        "view 'body', row 2: some of its values are NaN but not all",
    ),
    "infinite coordinate": (
        "gaussian",
        broken(POINTS, 2, 1, -np.inf),
        "view 'body', row 2: the value -inf is not finite; fill it in",
    ),
    "NaN coordinate, sparse": (
        "gaussian",
        sp.csr_matrix(broken(POINTS, 2, 1, np.nan)),
        "view 'body', row 2: the value nan is not finite",
    ),
    "half a code": (
        "categorical",
        broken(X, 4, 2, 0.5),
        r"view 'body', row 4, column 2: 0.5 is not an integer code of 0, 1, 2, ",
    ),
    "negative code": ("categorical", broken(X, 4, 2, -1.0), "view 'body', row 4.* code"),
    "infinite code": ("categorical", broken(X, 4, 2, np.inf), "view 'body', row 4.* not finite"),
    "a code beyond reason": (
        "categorical",
        broken(X, 4, 2, 1e12),
        "view 'body', row 4, column 2: 1000000000000.0 is not an integer code of 0, 1, 2",
    ),
    "levels of another table": (
        Categorical(levels=(2, 3)),
        X,
        "view 'body': 2 levels given for 5 columns",
    ),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_values_that_a_family_does_not_take(case):
    family, matrix, words = BAD_VALUES[case]
    both = {"title": "multinomial", "body": family}
    check_fit_refuses(clusterer(family=both), Views(title=X, body=matrix), words)


def test_values_are_checked_when_predicting_too():
    model = fitted(VIEWS)
    with pytest.raises(ValueError, match=r"view 'title', row 5 has -1\.0"):
        model.predict(Views(title=broken(X, 5, 0, -1.0), body=WORDS))
    with pytest.raises(ValueError, match="view 'title', row 6: the value nan is not finite"):
        model.score_samples(Views(title=broken(X, 6, 0, np.nan), body=WORDS))


# -- tables --------------------------------------------------------------------------------------

BAD_TABLES = {
    "different lengths": (
        {"title": X, "body": WORDS[:5]},
        "view 'title' has 12 rows but view 'body' has 5; all views must describe the same rows",
    ),
    "different lengths, list": ([X, X[:7]], "view 'view0' has 12 rows but view 'view1' has 7"),
    "no rows": (X[:0], r"X: Found array with 0 sample\(s\)"),
    "no columns": (X[:, :0], r"X: Found array with 0 feature\(s\)"),
    "no rows in views": (VIEWS[:0], r"view 'title': Found array with 0 sample\(s\)"),
    "no columns in a view": ({"a": X, "b": X[:, :0]}, r"view 'b': Found array with 0 feature\(s\)"),
    "no views": ({}, "there must be at least one view"),
    "one dimension": (X[0], "X: Expected 2D array, got 1D array instead"),
    "one dimension in a view": ({"a": X, "b": X[:, 0]}, "view 'b': Expected 2D array"),
    "three dimensions": (np.ones((3, 3, 3)), "X: Found array with dim 3"),
    "complex": (X + 1j, "X: Complex data not supported"),
    "complex, sparse": (sp.csr_matrix(X + 1j), "X: Complex data not supported"),
    "complex view": ({"a": X, "b": X + 1j}, "view 'b': Complex data not supported"),
    "strings": (np.full((N, 2), "word"), "X: .*not compatible with arrays of bytes/strings"),
    "texts": (["a text", "another text"], "X: Expected 2D array"),
    "texts in a view": ({"title": ["a text"] * N}, "view 'title': Expected 2D array"),
    "data frame of strings": (
        pd.DataFrame({"a": ["x"] * N}),
        "X: (could not convert string to float: 'x'|holds object)",
    ),
    "dates": (np.full((N, 2), np.datetime64("2020-01-01")), "X: holds datetime64.*, not numbers"),
    "nothing": (None, "X: Expected 2D array"),
    "objects in a view": ({"a": X.astype(object)}, "view 'a': holds Python objects, not numbers"),
}
ONE_DIMENSION = sp.csr_array(X[0])
if ONE_DIMENSION.ndim == 1:  # SciPy 1.12 makes a row of it
    BAD_TABLES["one dimension, sparse"] = ONE_DIMENSION, "X: Expected 2D input"


@pytest.mark.parametrize("case", BAD_TABLES)
def test_what_is_no_table_of_numbers(case):
    data, words = BAD_TABLES[case]
    check_fit_refuses(clusterer(), data, words, WRONG)


@pytest.mark.parametrize("case", ["no rows", "no columns", "one dimension", "complex", "strings"])
def test_what_is_no_table_when_predicting(case):
    data, words = BAD_TABLES[case]
    with pytest.raises(WRONG, match=f"{words}|features"):
        fitted().predict(data)


def test_more_components_than_rows():
    words = "n_samples=12 rows cannot fill n_components=13 components"
    check_fit_refuses(clusterer(n_components=13), X, words)
    words = "n_samples=4 rows cannot fill n_components=5"
    check_fit_refuses(clusterer(n_components=5), X, words, sample_weight=[1.0] * 4 + [0.0] * 8)


# Such a matrix may come from a damaged file; reading beyond its arrays would kill the process.
DAMAGED = {
    "a column too far": "X.indices[-1] = 10**8",
    "a negative column": "X.indices[-1] = -(10**8)",
    "a row that ends too far": "X.indptr[-1] = 10**8",
    "rows that run backwards": "X.indptr[1] = 10**6",
}


@pytest.mark.slow
def test_a_damaged_sparse_matrix_is_refused():
    code = f"""
import numpy as np, scipy.sparse as sp
from coem import MixtureClusterer
for case, damage in {DAMAGED!r}.items():
    X = sp.csr_matrix(np.eye(3))
    exec(damage)
    try:
        MixtureClusterer(2, tol=0, max_iter=1).fit(X)
    except ValueError as error:
        print("refused:", case, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr or f"killed by signal {-done.returncode}"
    assert done.stdout.splitlines() == [f"refused: {case}" for case in DAMAGED]


# -- parameters ----------------------------------------------------------------------------------

EVERY_ESTIMATOR = {
    "coupling": ("merge", "coupling must be one of 'co-em', 'joint', got 'merge'"),
    "posterior": ("medium", "posterior must be one of 'soft', 'hard', got 'medium'"),
    "weights": ("none", "weights must be one of 'global', 'per_view', 'uniform', got 'none'"),
    "assign": (None, "assign must be one of 'joint', 'average', got None"),
    "max_iter": (0, "max_iter must be an integer of 1 or more, got 0"),
    "tol": (-1e-3, "tol must be a number of 0 or more, got -0.001"),
    "patience": (0, "patience must be an integer of 1 or more, got 0"),
    "dtype": (np.float16, "dtype must be None, float32 or float64, got .*float16"),
    "family": ("poisson", "unknown family 'poisson'; use one of 'multinomial', .* or an object of"),
    "n_jobs": ("many", "n_jobs"),
    "verbose": ("much", "verbose"),
    "engine": ("dask", "engine"),
}


@pytest.mark.parametrize("name", EVERY_ESTIMATOR)
def test_parameters_of_every_estimator(name):
    value, words = EVERY_ESTIMATOR[name]
    check_fit_refuses(clusterer(**{name: value}), X, words, WRONG)
    check_fit_refuses(MixtureClassifier(**{name: value}), X, words, WRONG, y=Y)


MORE_VALUES = [
    ("n_init", 0, "n_init must be an integer of 1 or more, got 0"),
    ("n_init", 1.5, "n_init must be an integer of 1 or more, got 1.5"),
    ("n_init", True, "n_init must be an integer of 1 or more, got True"),
    ("max_iter", 2.5, "max_iter must be an integer of 1 or more, got 2.5"),
    ("max_iter", "x", "max_iter must be an integer of 1 or more, got 'x'"),
    ("tol", np.nan, "tol must be a number of 0 or more, got nan"),
    ("tol", "small", "tol must be a number of 0 or more, got 'small'"),
    ("patience", 1.5, "patience must be an integer of 1 or more, got 1.5"),
    ("n_components", 0, "n_components must be an integer of 1 or more, got 0"),
    ("n_components", 2.5, "n_components must be an integer of 1 or more, got 2.5"),
    ("n_components", "2", "n_components must be an integer of 1 or more, got '2'"),
    ("n_components", None, "n_components must be an integer of 1 or more, got None"),
    ("dtype", int, "dtype must be None, float32 or float64"),
    ("dtype", "double-ish", "dtype must be None, float32 or float64"),
    ("weights", [0.5, 0.5], "weights must be one of 'global', 'per_view', 'uniform'"),
    ("assign", "best", "assign must be one of 'joint', 'average', got 'best'"),
    ("coupling", 3, "coupling must be one of 'co-em', 'joint', got 3"),
    ("family", None, "unknown family None"),
    ("family", Multinomial, "unknown family <class .*Multinomial'>; use one of"),
    ("family", {"title": "multinomial"}, r"the views are \['view0'\], the families are for"),
    (
        "init",
        "spectral",
        "init must be one of 'random', 'rows', 'k-means\\+\\+', 'spherical', got 'spectral'",
    ),
]


@pytest.mark.parametrize(("name", "value", "words"), MORE_VALUES)
def test_parameters_of_a_clusterer(name, value, words):
    check_fit_refuses(clusterer(**{name: value}), X, words, WRONG)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (
            {"title": "multinomial"},
            r"family must name every view once: the views are \['title', 'body'\], the families "
            r"are for \['title'\]",
        ),
        ({"title": "gaussian", "body": "bernoulli", "extra": "gaussian"}, "'extra'"),
        ({"title": "multinomial", "text": "multinomial"}, r"the families are for .*'text'"),
        ({"title": "multinomial", "body": "poisson"}, "unknown family 'poisson'"),
    ],
)
def test_families_by_view(family, words):
    check_fit_refuses(clusterer(family=family), VIEWS, words)


BAD_SCHEDULES = {
    "below": (-0.1, ValueError, "{} must lie between 0 and 1, got -0.1"),
    "above": (1.1, ValueError, "{} must lie between 0 and 1, got 1.1"),
    "NaN": (np.nan, ValueError, "{} must lie between 0 and 1, got nan"),
    "infinite": (np.inf, ValueError, "{} must lie between 0 and 1, got inf"),
    "None": (None, TypeError, "{} must be a number or a schedule of coem.schedules, got None"),
    "a word": ("high", TypeError, "{} must be a number or a schedule of coem.schedules"),
    "a number as a word": ("0.5", TypeError, "{} must be a number or a schedule"),
    "a list": ([0.5, 1.0], TypeError, "{} must be a number or a schedule"),
    "a function": (lambda t: 0.5, TypeError, "{} must be a number or a schedule"),
    "ends above": (Linear(0, 2), ValueError, "{} must lie between 0 and 1, got 2.0"),
    "starts below": (Linear(-1, 1), ValueError, "{} must lie between 0 and 1, got -1.0"),
    "rises above": (Geometric(0.5, 2.0, 4.0), ValueError, "{} must lie between 0 and 1, got 4.0"),
    "leaves in a late step": (
        Steps([0.5, 1.0, 1.5], 30),
        ValueError,
        "{} must lie between 0 and 1, got 1.5",
    ),
}


@pytest.mark.parametrize("name", ["eta", "beta"])
@pytest.mark.parametrize("case", BAD_SCHEDULES)
def test_eta_and_beta_stay_between_0_and_1(case, name):
    value, error, words = BAD_SCHEDULES[case]
    check_fit_refuses(clusterer(**{name: value}), VIEWS, words.format(name), error)
    check_fit_refuses(MixtureClassifier(**{name: value}), X, words.format(name), error, y=Y)


BAD_FIELDS = {
    "alpha below 0": (lambda: Multinomial(alpha=-1), "alpha must be 0 or more, got -1"),
    "alpha NaN": (lambda: Bernoulli(alpha=np.nan), "alpha must be 0 or more, got nan"),
    "alpha infinite": (lambda: Categorical(alpha=np.inf), "alpha must be 0 or more, got inf"),
    "alpha a word": (lambda: Multinomial(alpha="much"), "alpha must be"),
    "alpha None": (lambda: Categorical(alpha=None), "alpha must be"),
    "alpha of directions": (lambda: VonMisesFisher(alpha=-0.5), "alpha must be .*0 or more"),
    "alpha of directions a word": (lambda: VonMisesFisher(alpha="much"), "alpha must be"),
    "kappa 0": (lambda: VonMisesFisher(kappa=0), "kappa must be a number above 0, 'fit' or None"),
    "kappa below 0": (lambda: VonMisesFisher(kappa=-2.0), "kappa must be a number above 0"),
    "kappa NaN": (lambda: VonMisesFisher(kappa=np.nan), "kappa must be a number above 0"),
    "kappa a word": (lambda: VonMisesFisher(kappa="fitted"), "kappa must be .* not 'fitted'"),
    "reg below 0": (lambda: Gaussian(reg=-1), "reg must be finite and 0 or more"),
    "reg a word": (lambda: Gaussian(reg="little"), "reg must be"),
    "covariance": (lambda: Gaussian("round"), "covariance must be one of full, .* not 'round'"),
}


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_fields_of_families(case):
    make, words = BAD_FIELDS[case]
    with pytest.raises(WRONG, match=words):
        make()


# -- starts --------------------------------------------------------------------------------------

BAD_STARTS = {
    "too few rows": (np.ones((3, 2)), r"init must have shape \(12, 2\), .* got \(3, 2\)"),
    "too many components": (np.ones((N, 3)), r"init must have shape \(12, 2\), .* got \(12, 3\)"),
    "a vector": (np.ones(N), r"init must have shape \(12, 2\), rows by components, got \(12,\)"),
    "negative": (-np.ones((N, 2)), "init must hold responsibilities, finite and 0 or more"),
    "NaN": (np.full((N, 2), np.nan), "init must hold responsibilities, finite and 0 or more"),
    "infinite": (np.full((N, 2), np.inf), "init must hold responsibilities, finite"),
    "None": (None, "init must"),
    "words": ([["a", "b"]] * N, "init must"),
    "an object": (object(), "init must"),
    "not fitted": (MixtureClusterer(2), "MixtureClusterer instance is not fitted yet"),
    "other views": (
        MixtureClusterer(2, **SOON).fit(VIEWS),
        r"init: the fitted model has other views, features or components \(\['title', 'body'\]",
    ),
    "other features": (
        MixtureClusterer(2, **SOON).fit(X[:, :3]),
        r"init: the fitted model has other views, features .*\[3\]",
    ),
    "other components": (
        MixtureClusterer(3, **SOON).fit(X),
        "init: the fitted model has other views, features or components .* 3",
    ),
    "another family": (
        MixtureClusterer(2, family=Gaussian("diag"), **SOON).fit(X),
        "init: the fitted model",
    ),
}


@pytest.mark.parametrize("case", BAD_STARTS)
def test_starts(case):
    init, words = BAD_STARTS[case]
    check_fit_refuses(clusterer(init=init), X, words, WRONG)


# -- weights and labels --------------------------------------------------------------------------

BAD_WEIGHTS = {
    "negative": ([-1.0] + [1.0] * 11, "Negative values in data passed to `sample_weight`"),
    "all zero": ([0.0] * N, "(?i)sample.weight.*(non-zero|is zero for every row)"),
    "too few": ([1.0] * 5, r"sample_weight.shape == \(5,\), expected \(12,\)"),
    "a table": (np.ones((N, 2)), "Sample weights must be 1D"),
    "NaN": ([np.nan] * N, "sample_weight contains NaN"),
    "infinite": ([np.inf] * N, "sample_weight contains infinity"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_sample_weights(case):
    weight, words = BAD_WEIGHTS[case]
    check_fit_refuses(clusterer(), X, words, sample_weight=weight)
    check_fit_refuses(MixtureClassifier(), X, words, y=Y, sample_weight=weight)


BAD_LABELS = {
    "None": (None, "requires y to be passed, but the target y is None; mark rows without a label"),
    "too few": (Y[:5], "y has 5 labels for 12 rows; pass one label per row"),
    "too many": (np.tile(Y, 2), "y has 24 labels for 12 rows; pass one label per row"),
    "none of them": ([""] * N, "y has no labelled row; label some, or use MixtureClusterer"),
    "none of the numbers": ([-1] * N, "y has no labelled row"),
    "a table": (np.zeros((N, 2)), "y should be a 1d array"),
    "real numbers": (np.linspace(0.1, 1, N), "Unknown label type: continuous"),
    "infinite": ([np.inf] + [1.0] * 11, "y contains infinity"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_labels(case):
    y, words = BAD_LABELS[case]
    check_fit_refuses(MixtureClassifier(), X, words, y=y)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (-0.1, "unlabeled_weight must be a number of 0 or more, got -0.1"),
        (1.1, "unlabeled_weight must lie between 0 and 1, got 1.1"),
        (np.nan, "unlabeled_weight must be a number of 0 or more, got nan"),
        (None, "unlabeled_weight must be a number of 0 or more, got None"),
        ("half", "unlabeled_weight must be 'auto' or a number, got 'half'"),
    ],
)
def test_unlabeled_weight(weight, words):
    check_fit_refuses(MixtureClassifier(unlabeled_weight=weight), X, words, y=Y)


def test_labelled_rows_need_weight():
    words = "has no labelled row with a sample_weight above 0"
    check_fit_refuses(MixtureClassifier(), X, words, y=Y, sample_weight=(Y == "").astype(float))


def test_batches_have_the_classes_of_the_first():
    model = MixtureClassifier(**SOON).partial_fit(X, Y, classes=["a", "b"])
    weights = model.weights_.copy()
    with pytest.raises(ValueError, match=r"label 'c' is not one of the classes \['a', 'b'\]"):
        model.partial_fit(X, ["c"] * N)
    with pytest.raises(ValueError, match="y is None"):
        model.partial_fit(X, None)
    with pytest.raises(ValueError, match="y has 3 labels for 12 rows"):
        model.partial_fit(X, Y[:3])
    with pytest.raises(ValueError, match="class 'c' has no labelled row; label one first"):
        model.partial_fit(X, Y, classes=["a", "b", "c"])
    np.testing.assert_array_equal(model.weights_, weights)


def test_a_first_batch_needs_a_row_of_every_class():
    model = MixtureClassifier(**SOON)
    with pytest.raises(ValueError, match="class 'c' has no labelled row; label one first"):
        model.partial_fit(X, Y, classes=["a", "b", "c"])
    assert not hasattr(model, "weights_")


def test_a_first_batch_has_no_label_beside_the_classes():
    model = MixtureClassifier(**SOON)
    with pytest.raises(ValueError, match=r"label 'b' is not one of the classes \['a'\]"):
        model.partial_fit(X, Y, classes=["a"])
    assert not hasattr(model, "weights_")


# -- after the fit -------------------------------------------------------------------------------


def test_predict_wants_the_views_of_fit():
    one, two = fitted(), fitted(VIEWS)
    with pytest.raises(ValueError, match="X has 4 features, but MixtureClusterer is expecting 5"):
        one.predict(X[:, :4])
    with pytest.raises(ValueError, match=r"X has 5 features in view 'body', but .* expecting 4"):
        two.predict(Views(title=X, body=X))
    words = r"X has the views \['title', 'text'\], but .* was fitted on \['title', 'body'\]"
    with pytest.raises(ValueError, match=words):
        two.predict_proba(Views(title=X, text=WORDS))
    with pytest.raises(ValueError, match=r"X has the views \['view0'\]"):
        two.score_samples(X)
    with pytest.raises(ValueError, match=r"X has the views \['title', 'body'\]"):
        one.explain(VIEWS)
    with pytest.raises(ValueError, match="X has 2 features, but MixtureClusterer is expecting 5"):
        fitted().partial_fit(X[:, :2])


METHODS = [
    "predict",
    "predict_proba",
    "score",
    "score_samples",
    "view_proba",
    "disagreement",
    "aic",
    "bic",
    "icl",
    "explain",
]


@pytest.mark.parametrize("method", METHODS)
def test_methods_want_a_fit_first(method):
    with pytest.raises(NotFittedError, match="MixtureClusterer instance is not fitted yet"):
        getattr(MixtureClusterer(2), method)(X)


def test_methods_without_rows_want_a_fit_first():
    for model in (MixtureClusterer(2), MixtureClassifier()):
        with pytest.raises(NotFittedError, match="instance is not fitted yet"):
            model.sample()
        with pytest.raises(NotFittedError, match="instance is not fitted yet"):
            model.top_features()
        with pytest.raises(NotFittedError, match="instance is not fitted yet"):
            model.predict(X)


def test_top_features():
    with pytest.raises(ValueError, match=r"view must be one of \['title', 'body'\], got 'text'"):
        fitted(VIEWS).top_features("text")
    with pytest.raises(ValueError, match=r"view must be one of \['title', 'body'\], got None"):
        fitted(VIEWS).top_features()
    with pytest.raises(ValueError, match="by must be one of 'wllr', 'prob', got 'tfidf'"):
        fitted().top_features(by="tfidf")
    with pytest.raises(ValueError, match="view 'view0': a Gaussian family has no feature prob"):
        fitted(POINTS, family=Gaussian("diag")).top_features()


@pytest.mark.parametrize("n", [0, -1, 2.5, "many"])
def test_a_number_of_top_features(n):
    with pytest.raises(WRONG, match=r"\bn must be"):
        fitted().top_features(n=n)


def test_one_component_has_nothing_to_explain():
    with pytest.raises(ValueError, match="explain compares two components, or two classes"):
        fitted(n_components=1).explain(X)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "many", None])
def test_samples(n_samples):
    with pytest.raises(WRONG, match="n_samples must be"):
        fitted().sample(n_samples)


# -- before any work -----------------------------------------------------------------------------

FAILURES = {
    "parameter": ({"n_init": 0}, X),
    "family": ({"family": "poisson"}, X),
    "schedule": ({"eta": 2.0}, X),
    "start": ({"init": "spectral"}, X),
    "values": ({"family": "multinomial"}, -X),
    "too many components": ({"n_components": N + 1}, X),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fit_leaves_no_half_fitted_model(case):
    options, data = FAILURES[case]
    model = clusterer(**options)
    with pytest.raises(ValueError, match=r"\w+"):
        model.fit(data)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict(X)


@pytest.mark.parametrize("case", FAILURES)
def test_a_failed_fit_leaves_the_model_that_was_there(case):
    options, data = FAILURES[case]
    model = fitted()
    expected = model.predict_proba(X)
    model.set_params(**options)
    with pytest.raises(ValueError, match=r"\w+"):
        model.fit(data[:, :3])
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_failed_classifier_fit_leaves_the_model_that_was_there():
    model = MixtureClassifier(family="multinomial", **SOON).fit(X, Y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(-X, ["x", "y", "z"] * 4)
    np.testing.assert_array_equal(model.predict(X), expected)
