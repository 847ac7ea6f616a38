"""scikit-learn's own checks of what an estimator must do."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from coem import (
    AspectModel,
    HiddenMarkovModel,
    MixtureClassifier,
    MixtureClusterer,
    PooledClassifier,
    TrafficModel,
)

# It fits on the labels -1 and 1, and -1 marks a row without a label here.
TAKES_MINUS_ONE_FOR_A_CLASS = {"check_classifiers_classes"}

# They assert that predict_proba of whatever takes sparse input has exactly 2 or 4 columns.
WANT_TWO_OR_FOUR_COLUMNS = {"check_estimator_sparse_array", "check_estimator_sparse_matrix"}

# They shuffle rows or predict some of them, and the state of a row depends on its neighbours.
TAKE_ROWS_APART = {"check_methods_sample_order_invariance", "check_methods_subset_invariance"}


class OneSequence(HiddenMarkovModel):
    """The checks pass classes of any kind as `y`, which has states here."""

    def fit(self, X, y=None, lengths=None, sequence_weight=None):
        return super().fit(X)

    def partial_fit(self, X, y=None, lengths=None, sequence_weight=None):
        return super().partial_fit(X)


class SingleRows(HiddenMarkovModel):
    """Every row is a sequence of its own, as far as the checks know."""

    def fit(self, X, y=None, lengths=None, sequence_weight=None):
        return super().fit(X, lengths=single(X))

    def partial_fit(self, X, y=None, lengths=None, sequence_weight=None):
        return super().partial_fit(X, lengths=single(X))

    def decode(self, X):
        return super().decode(X, single(X))

    def predict(self, X):
        return self.decode(X)[1]

    def predict_proba(self, X):
        return super().predict_proba(X, single(X))

    def score_samples(self, X):
        return super().score_samples(X, single(X))

    def score(self, X, y=None):
        return float(self.score_samples(X).sum())


def single(X):
    shape = np.shape(X) if not hasattr(X, "shape") else X.shape
    return np.ones(shape[0], dtype=int) if len(shape) == 2 else None


CASES = [
    (MixtureClusterer(n_components=4), set()),
    (MixtureClusterer(n_components=4, family="multinomial"), set()),
    (MixtureClusterer(n_components=4, family="gaussian"), set()),
    (MixtureClusterer(n_components=4, family="bernoulli"), set()),
    (MixtureClusterer(n_components=4, family="von_mises_fisher"), set()),
    (MixtureClusterer(4, posterior="hard", dtype=np.float64, n_init=2, n_jobs=2), set()),
    (MixtureClusterer(), WANT_TWO_OR_FOUR_COLUMNS),
    (MixtureClassifier(), TAKES_MINUS_ONE_FOR_A_CLASS),
    (MixtureClassifier(family="multinomial"), TAKES_MINUS_ONE_FOR_A_CLASS),
    (PooledClassifier(), TAKES_MINUS_ONE_FOR_A_CLASS),
    (PooledClassifier(MixtureClassifier(family="gaussian"), cv=None), TAKES_MINUS_ONE_FOR_A_CLASS),
    (AspectModel(), set()),
    (AspectModel(4, coupling="c", n_jobs=2, smoothing=0.1, max_iter=20), set()),
    (TrafficModel(), set()),  # its tag "pairwise" has the checks feed square matrices
    (TrafficModel(4, coupling="x", n_jobs=2, smoothing=0.1, max_iter=20), set()),
    (OneSequence(4, family="gaussian", n_init=2, n_jobs=2), TAKE_ROWS_APART),
    (SingleRows(4), set()),
]


# The checks fit tiny sets with few rounds, and say that they skip some: both warn.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "expected"), CASES, ids=[repr(case[0]) for case in CASES])
def test_scikit_learns_checks(estimator, expected):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed.keys() == expected, failed
    assert sum(r["status"] == "passed" for r in results) > 35
