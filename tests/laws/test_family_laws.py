"""Every family keeps the laws, and a family that breaks one is told which.

A new family is tested by a line in `FAMILY_CASES`. The count families are held against sums over
their whole support and against scikit-learn's naive Bayes, too; Gaussians and von Mises-Fisher
components have their own tests beside the families.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import factorial, prod
from typing import Any, get_args

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB
from threadpoolctl import threadpool_limits

from coem.families import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Family,
    Gaussian,
    MixtureOf,
    Multinomial,
    VonMisesFisher,
    check_family,
)
from coem.families.base import stack
from coem.families.gaussian import Covariance, GaussianTheta
from coem.families.laws import LAWS, FamilyLawError
from coem.families.multinomial import MultinomialStats
from coem.kernels.one_hot import OneHot

FAMILY_CASES: list[Family] = [
    *(Multinomial(alpha) for alpha in (1.0, 0.1, 0.0)),
    *(Multinomial(alpha, dense_cells=0) for alpha in (1.0, 0.1, 0.0)),
    *(Bernoulli(alpha) for alpha in (1.0, 0.1, 0.0)),
    *(Categorical(alpha) for alpha in (1.0, 0.1, 0.0)),
    Categorical(levels=(2, 5)),
    *(Gaussian(covariance, reg=reg) for covariance in get_args(Covariance) for reg in (0.0, 1e-6)),
    *(VonMisesFisher(kappa) for kappa in (None, 10.0, "fit")),
    VonMisesFisher("fit", alpha=0.0),
    MixtureOf(Multinomial(0.1)),
    MixtureOf(Bernoulli(), 3),
    MixtureOf(Categorical(), alpha=0.0),
    *(MixtureOf(Gaussian(covariance), 2) for covariance in get_args(Covariance)),
    MixtureOf(Gaussian("unit"), 3, alpha=0.1),
    MixtureOf(VonMisesFisher("fit")),
    MixtureOf(MixtureOf(Gaussian("tied"))),
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    # Matrices of a few rows: threads of the BLAS would only wait for each other.
    with threadpool_limits(1):
        yield


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def some_counts() -> np.ndarray:
    """Return counts with an empty row, a word that nobody uses and one that everybody uses."""
    X = rng().poisson(0.8, (60, 7))
    X[:, 2], X[:, 5] = 0, 1
    X[4] = 0
    return X


def odd_counts() -> sp.csr_matrix:
    """Return the same with stored zeros, counts in two parts and unsorted columns."""
    X = sp.coo_matrix(some_counts())
    rows, columns = np.concatenate([[X.row, X.col], [X.row, X.col], [[4, 4, 7], [1, 2, 2]]], axis=1)
    values = np.concatenate([X.data - 0.5, np.full(X.nnz, 0.5), np.zeros(3)])
    order = np.lexsort((-columns, rows))
    indptr = np.searchsorted(rows[order], np.arange(61))
    return sp.csr_matrix((values[order], columns[order], indptr), shape=(60, 7))


def some_rows() -> np.ndarray:
    """Return real rows, one missing as a whole."""
    X = rng().standard_normal((80, 4)) + np.repeat(3 * rng(1).standard_normal((4, 4)), 20, axis=0)
    X[9] = np.nan
    return X


def gappy_rows() -> np.ndarray:
    """Return real rows that lack entries: one of four, a pattern often, a whole row once."""
    X = some_rows() @ rng(2).standard_normal((4, 4)) + [5.0, 0.0, -2.0, 1.0]
    X[rng(3).random(X.shape) < 0.25] = np.nan
    X[40:60, :2] = np.nan
    X[30:50, 3] = 1.5  # no row is empty but the one
    X[9] = np.nan
    return X


ROW_CASES: dict[str, tuple[Family, Any]] = {
    "dense counts": (Multinomial(), some_counts()),
    "dense counts, no prior": (Multinomial(0.0), some_counts()),
    "CSR counts": (Multinomial(), sp.csr_matrix(some_counts())),
    "odd CSR counts": (Multinomial(), odd_counts()),
    "fractions of counts": (Multinomial(), 0.37 * some_counts()),
    "presence": (Bernoulli(), some_counts()),
    "presence, no prior": (Bernoulli(0.0), some_counts()),
    "presence in odd CSR": (Bernoulli(), odd_counts()),
    "integer codes": (Categorical(), np.minimum(some_counts(), 3)),
    "CSR codes": (Categorical(0.0), sp.csr_matrix(np.minimum(some_counts(), 3))),
    "a level that nobody has": (Categorical(0.0, levels=(9,) * 7), some_counts()),
    **{f"missing row, {c}": (Gaussian(c), some_rows()) for c in get_args(Covariance)},
    **{f"missing entries, {c}": (Gaussian(c), gappy_rows()) for c in get_args(Covariance)},
    **{f"exact, {c}": (Gaussian(c, reg=0.0), gappy_rows()) for c in get_args(Covariance)},
    "CSR reals": (Gaussian(), sp.csr_matrix(np.nan_to_num(some_rows()))),
    "missing row, fixed kappa": (VonMisesFisher(), some_rows()),
    "missing row, fitted kappa": (VonMisesFisher("fit"), some_rows()),
    "row of zeros": (VonMisesFisher("fit"), np.nan_to_num(some_rows())),
    "a missing row in mixtures": (MixtureOf(Gaussian("diag")), some_rows()),
    "CSR directions": (VonMisesFisher("fit"), sp.csr_matrix(np.nan_to_num(some_rows()))),
}


# -- the families of coem keep the laws ------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILY_CASES, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_laws(family: Family, seed: int) -> None:
    assert check_family(family, random_state=seed) is None


@pytest.mark.parametrize("case", ROW_CASES)
def test_laws_on_rows(case: str) -> None:
    family, X = ROW_CASES[case]
    before = X.copy()
    assert check_family(family, X) is None
    np.testing.assert_array_equal(as_dense(X), as_dense(before))


@pytest.mark.parametrize("n_components", [1, 2, 9])
def test_laws_for_any_number_of_components(n_components: int) -> None:
    # Nine, as the tables of the kernels are eight components wide.
    assert check_family(Multinomial(), n_components=n_components) is None
    assert check_family(Gaussian("diag"), n_components=n_components) is None


def test_every_family_is_checked() -> None:
    assert {type(family) for family in FAMILY_CASES} == {*FAMILIES.values(), MixtureOf}


def test_given_parameters_are_used() -> None:
    theta = GaussianTheta(np.array([[0.0, 0.0], [9.0, 9.0]]), np.ones(2))
    assert check_family(Gaussian("unit"), theta=theta) is None
    broken = theta._replace(means=np.array([[0.0, 0.0], [np.nan, 9.0]]))
    with pytest.raises(FamilyLawError, match="law of shapes: NaN or infinity in log_prob"):
        check_family(Gaussian("unit"), some_rows()[:, :2], theta=broken)


def test_rows_that_do_not_fit_are_not_the_fault_of_the_family() -> None:
    with pytest.raises(ValueError, match="row 0 has -1"):
        check_family(Multinomial(), np.array([[-1, 2], [1, 1]]))
    with pytest.raises(ValueError, match="two rows or more that are not empty, got 0"):
        check_family(Multinomial(), np.zeros((5, 3)))


def test_laws_have_names_of_their_own() -> None:
    assert len({law.__name__ for law in LAWS}) == len(LAWS) == 16


# -- broken families are told which law they break -------------------------------------------------


UNIT = Gaussian("unit")


@dataclass
class Thawed(Family):
    """A family in every way, but its hyper-parameters can be changed."""

    inner: Any = UNIT

    def log_prob(self, X: Any, theta: Any) -> Any:
        return self.inner.log_prob(X, theta)

    def stats(self, X: Any, resp: Any) -> Any:
        return self.inner.stats(X, resp)

    def estimate(self, stats: Any) -> Any:
        return self.inner.estimate(stats)

    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        return self.inner.start(pooled, n_components, rng)

    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return self.inner.sample(theta, labels, rng)


class NoDataclass(Thawed):
    __dataclass_params__ = None


@dataclass(frozen=True)
class HoldsCode(Multinomial):
    link: Any = lambda x: x


@dataclass(frozen=True, eq=False)
class NeverEqual(Multinomial):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class SameStart(Multinomial):
    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        return np.repeat(self.estimate(pooled), n_components, axis=0)


class StartOfItsOwn(Multinomial):
    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        return super().start(pooled, n_components, np.random.default_rng())


class InfiniteStart(Multinomial):
    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        theta = super().start(pooled, n_components, rng)
        theta[0, 0] = -np.inf
        return theta


class StartWithTooMany(Multinomial):
    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        return super().start(pooled, n_components + 1, rng)


class StartRaises(Multinomial):
    def start(self, pooled: Any, n_components: int, rng: Any) -> Any:
        raise KeyError("nothing to start with")


class Transposed(Multinomial):
    def log_prob(self, X: Any, theta: Any) -> Any:
        return super().log_prob(X, theta).T


class SinglePrecision(Multinomial):
    def log_prob(self, X: Any, theta: Any) -> Any:
        return super().log_prob(X, theta).astype(np.float32)


class NaNDensity(Gaussian):
    def log_prob(self, X: Any, theta: Any) -> Any:
        log_prob = super().log_prob(X, theta)
        log_prob[0] = np.nan
        return log_prob


class NaNPrior(Gaussian):
    def log_prior(self, theta: Any) -> float:
        return float("nan")


class ClipsRows(Gaussian):
    """The second call finds nothing to change: only a comparison with untouched rows tells."""

    def stats(self, X: Any, resp: Any) -> Any:
        return super().stats(np.clip(X, -1, 1, out=X), resp)


class EncodesInPlace(Multinomial):
    def encode(self, X: Any) -> Any:
        X.data[:] = 1
        return X


class ChecksInPlace(Gaussian):
    def check(self, X: Any, view: str) -> Any:
        X[0] = 0.0
        return X


class NormalisesResp(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        resp /= resp.sum(axis=1, keepdims=True)
        return super().stats(X, resp)


class SmoothsInPlace(Multinomial):
    def estimate(self, stats: Any) -> Any:
        stats.counts[...] += self.alpha
        return Multinomial(0.0, self.dtype).estimate(stats)


class SortsTheta(Multinomial):
    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        drawn = super().sample(theta, labels, rng)
        theta.sort(axis=1)
        return drawn


class Means(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        return super().stats(X, resp).scaled(1 / resp.sum())


class ForgetsTheLastRow(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        return super().stats(X[:-1], resp[:-1])


class InfiniteStats(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        stats = super().stats(X, resp)
        return stats if resp.shape[1] == 1 else replace(stats, mass=stats.mass * np.inf)


class ForgetsTheTotal(Multinomial):
    def add_stats(self, total: Any, X: Any, resp: Any, theta: Any) -> Any:
        return self.stats(X, resp)


class WeighsInPlace(Multinomial):
    def add_stats(self, total: Any, X: Any, resp: Any, theta: Any) -> Any:
        total = super().add_stats(total, X, resp, theta)
        resp *= 2
        return total


class CountsRows(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        mass = (resp > 0).sum(axis=0).astype(float)
        return replace(super().stats(X, resp), mass=mass)


class IgnoresWeights(Multinomial):
    def stats(self, X: Any, resp: Any) -> Any:
        return super().stats(X, resp / resp.sum(axis=1, keepdims=True))


class MoreSmoothing(Multinomial):
    def estimate(self, stats: Any) -> Any:
        return super().estimate(MultinomialStats(stats.counts + 0.01))


class UnbiasedVariance(Gaussian):
    def estimate(self, stats: Any) -> Any:
        means, covariances = super().estimate(stats)
        factor = stats.mass / np.maximum(stats.mass - 1, 1e-9)
        return GaussianTheta(means, covariances * factor[:, np.newaxis])


class ForgetsItsStats(Multinomial):
    def estimate(self, stats: Any) -> Any:
        return super().estimate(MultinomialStats(0 * stats.counts))


class NoPrior(Multinomial):
    def log_prior(self, theta: Any) -> float:
        return 0.0


class OtherPrior(VonMisesFisher):
    def log_prior(self, theta: Any) -> float:
        return 2 * super().log_prior(theta)


class LoosePretender(Gaussian):
    @property
    def exact(self) -> bool:
        return True


class Ranked(Gaussian):
    """No M step can see a constant, but components are no longer alike."""

    def log_prob(self, X: Any, theta: Any) -> Any:
        return super().log_prob(X, theta) + 0.1 * np.arange(len(theta.means))


class Moody(Multinomial):
    """The M step is right as long as the components are about as large."""

    def estimate(self, stats: Any) -> Any:
        mass = stats.counts.sum(axis=1)
        fair = mass.max() < 1.5 * mass.min()
        return super().estimate(stats if fair else MultinomialStats(stats.counts[:, ::-1].copy()))


class NaNWithoutRows(Gaussian):
    def estimate(self, stats: Any) -> Any:
        means, covariances = super().estimate(stats)
        return GaussianTheta(np.where(stats.mass[:, np.newaxis] > 0, means, np.nan), covariances)


class NaNWithoutAnyRows(Gaussian):
    def estimate(self, stats: Any) -> Any:
        means, covariances = super().estimate(stats)
        return GaussianTheta(means if stats.mass.any() else means * np.nan, covariances)


class CountsEmptyRows(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        return replace(super().stats(X, resp), mass=resp.sum(axis=0) + (X == 0).all(axis=1).sum())


class ShortSample(Multinomial):
    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return super().sample(theta, labels, rng)[:-1]


class SampleOfItsOwn(Multinomial):
    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return super().sample(theta, labels, np.random.default_rng())


class WideSample(Gaussian):
    """A variance taken for a standard deviation."""

    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return super().sample(theta._replace(covariances=theta.covariances**2), labels, rng)


class OtherLabels(Gaussian):
    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return super().sample(theta, rng.permutation(labels), rng)


class NegativeSample(Multinomial):
    def sample(self, theta: Any, labels: Any, rng: Any) -> Any:
        return -super().sample(theta, labels, rng)


class OtherWhenSparse(Multinomial):
    def encode(self, X: Any) -> Any:
        return super().encode(2 * X if sp.issparse(X) and X.dtype.kind == "i" else X)


class FailsWhenSparse(Gaussian):
    def encode(self, X: Any) -> Any:
        if sp.issparse(X):
            raise TypeError("dense rows, please")
        return super().encode(X)


class ForgetsWeightsOfLabels(Gaussian):
    def stats(self, X: Any, resp: Any) -> Any:
        return super().stats(X, replace(resp, weight=None) if isinstance(resp, OneHot) else resp)


class TermsWithoutCounts(Multinomial):
    def terms(self, X: Any, theta: Any) -> Any:
        features, terms, rest = super().terms(X, theta)
        return features, terms / X.data[:, np.newaxis], rest


class LogProbs(Multinomial):
    def feature_probs(self, theta: Any) -> Any:
        return theta


class OneRowOfProbs(Multinomial):
    def feature_probs(self, theta: Any) -> Any:
        return super().feature_probs(theta)[:1]


class NoPriorOfWeights(MixtureOf):
    def log_prior(self, theta: Any) -> Any:
        return 0.0


class MeansOfShares(MixtureOf):
    def stats_under(self, X: Any, resp: Any, theta: Any) -> Any:
        stats = super().stats_under(X, resp, theta)
        return stats if theta is None else stats.scaled(1 / resp.sum())


class EqualShares(MixtureOf):
    """The inner weights do not count when a row is divided."""

    def stats_under(self, X: Any, resp: Any, theta: Any) -> Any:
        level = () if theta is None else (0 * theta[0], *theta[1:])
        return super().stats_under(X, resp, type(theta)(*level) if level else None)


class OneSourceForAll(MixtureOf):
    """The random numbers of a component depend on its place."""

    def start_within(self, stats: Any, n_components: int, n_parts: int, seed: int) -> Any:
        rng, parts = np.random.default_rng(seed), stats.apart(n_components)
        return stack([self.start(part, n_parts, rng) for part in parts])


sparse_counts = sp.csr_matrix(some_counts())

BROKEN: list[tuple[Family, Any, str, str]] = [
    (Thawed(), None, "frozen", "not a frozen dataclass"),
    (NoDataclass(), None, "frozen", "not a frozen dataclass"),
    (HoldsCode(), None, "frozen", "lambda"),
    (NeverEqual(), None, "frozen", "pickled copy is not equal"),
    (SameStart(), None, "start", "two components start alike"),
    (StartOfItsOwn(), None, "start", "two starts from one seed differ"),
    (InfiniteStart(), None, "start", "NaN or infinity"),
    (StartWithTooMany(), None, "start", "lengths {4}, not 3 components"),
    (StartRaises(), None, "start", "KeyError('nothing to start with')"),
    (Transposed(), None, "shapes", "float64 (3, 116), not float64 (116, 3)"),
    (SinglePrecision(), None, "shapes", "float32"),
    (NaNDensity(), None, "shapes", "NaN or infinity in log_prob"),
    (NaNPrior(), None, "shapes", "NaN or infinity in log_prob or log_prior"),
    (ClipsRows(), None, "purity", "arguments of stats"),
    (EncodesInPlace(), sparse_counts, "purity", "arguments of encode"),
    (ChecksInPlace(), some_rows(), "purity", "arguments of check"),
    (NormalisesResp(), None, "purity", "arguments of stats"),
    (SmoothsInPlace(), None, "purity", "arguments of estimate"),
    (SortsTheta(), None, "purity", "arguments of sample"),
    (Means(), None, "additivity", "stats(A) + stats(B) and stats(A ++ B) differ"),
    (ForgetsTheLastRow(), None, "additivity", "two orders"),
    (InfiniteStats("unit"), None, "additivity", "NaN or infinity in the statistics"),
    (MeansOfShares(Gaussian("unit")), None, "additivity", "stats(A) + stats(B)"),
    (ForgetsTheTotal(), None, "totals", "add_stats(stats(A), B) and stats(A ++ B) differ"),
    (WeighsInPlace(), None, "totals", "arguments of add_stats"),
    (CountsRows(), None, "homogeneity", "stats of 0.37 resp"),
    (IgnoresWeights(), None, "homogeneity", "stats of 0.37 resp"),
    (MoreSmoothing(), None, "optimality", "after an M step is"),
    (UnbiasedVariance("diag", reg=0.0), None, "optimality", "after an M step is"),
    (ForgetsItsStats(), None, "optimality", "after an M step is"),
    (NoPrior(), None, "optimality", "after an M step is"),
    (NoPrior(0.1), None, "optimality", "after an M step is"),
    (OtherPrior("fit"), None, "optimality", "after an M step is"),
    (LoosePretender("diag", reg=1e-2), None, "optimality", "after an M step is"),
    (NoPriorOfWeights(Gaussian("unit"), alpha=50.0), None, "optimality", "after an M step is"),
    (EqualShares(Gaussian("unit")), None, "optimality", "after an M step is"),
    (Ranked(), None, "symmetry", "permuted"),
    (OneSourceForAll(Gaussian("unit")), None, "symmetry", "permuted"),
    (Moody(), None, "monotone", "after step"),
    (NaNWithoutRows(), None, "emptiness", "if a component has no rows"),
    (NaNWithoutAnyRows(), None, "emptiness", "if every component has no rows"),
    (CountsEmptyRows(), some_rows(), "emptiness", "with empty rows and without"),
    (ShortSample(), None, "sample", "4999 rows were drawn for 5000 labels"),
    (SampleOfItsOwn(), None, "sample", "two samples from one seed differ"),
    (WideSample("diag"), None, "sample", "gain"),
    (OtherLabels(), None, "sample", "gain"),
    (MixtureOf(WideSample("diag")), None, "sample", "gain"),
    (NegativeSample(), None, "sample", "Negative values in data"),
    (OtherWhenSparse(), None, "representation", "CSR and dense rows differ"),
    (FailsWhenSparse(), None, "representation", "TypeError('dense rows, please')"),
    (ForgetsWeightsOfLabels("unit"), None, "labels", "labels and of their array"),
    (TermsWithoutCounts(), None, "terms", "terms + rest and log_prob"),
    (LogProbs(), None, "feature_probs", "negative values"),
    (OneRowOfProbs(), None, "feature_probs", "one row a component"),
]


@pytest.mark.parametrize(
    ("family", "X", "law", "difference"), BROKEN, ids=[type(case[0]).__name__ for case in BROKEN]
)
def test_a_broken_law_is_named(family: Family, X: Any, law: str, difference: str) -> None:
    with pytest.raises(FamilyLawError) as caught:
        check_family(family, X)
    head, _, rest = str(caught.value).partition(": ")
    assert head == f"{family!r} breaks the law of {law}"
    assert difference in rest
    assert isinstance(caught.value, AssertionError)


def test_every_law_can_be_broken() -> None:
    assert {law for _, _, law, _ in BROKEN} == {law.__name__[1:] for law in LAWS}


def test_a_family_that_refuses_sparse_rows_is_fine() -> None:
    assert check_family(DenseOnly()) is None


class DenseOnly(FailsWhenSparse):
    def check(self, X: Any, view: str) -> Any:
        if sp.issparse(X):
            raise TypeError(f"view {view!r}: dense rows, please")
        return super().check(X, view)


def test_a_slack_for_an_m_step_that_is_not_exact() -> None:
    # The same parameters as in `BROKEN`, where a family claims that they are the best.
    assert not Gaussian("diag", reg=1e-3).exact
    assert Gaussian("diag", reg=0.0).exact
    assert Gaussian("unit").exact
    assert check_family(Gaussian("diag", reg=1e-4)) is None


# -- count families: densities add up to one -------------------------------------------------------

DTYPES = pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-12), (None, 1e-6)])
ALPHAS = pytest.mark.parametrize("alpha", [1.0, 0.1, 0.0])


def fitted(family: Family, X: Any, dtype: Any, k: int = 3) -> tuple[Any, Any]:
    """Return the family, bound, and parameters that it has estimated from `X`."""
    bound = family.bind(family.check(X, "X"), dtype)
    resp = rng(7).dirichlet(np.ones(k), X.shape[0])
    return bound, bound.estimate(bound.stats(bound.encode(X), resp))


def as_dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


@DTYPES
@ALPHAS
@pytest.mark.parametrize("length", [0, 1, 4])
def test_multinomial_sums_to_one(alpha: float, length: int, dtype: Any, tol: float) -> None:
    # log_prob is that of the words in their order; a row of counts stands for as many orders as
    # its multinomial coefficient says.
    family, theta = fitted(Multinomial(alpha), rng().poisson(1.0, (20, 4)), dtype)
    rows = [row for row in product(range(length + 1), repeat=4) if sum(row) == length]
    orders = [factorial(length) / prod(map(factorial, row)) for row in rows]
    prob = np.exp(family.log_prob(family.encode(np.array(rows)), theta))
    np.testing.assert_allclose(orders @ prob, np.ones(3), rtol=tol)


def test_multinomial_rows_are_sequences_of_words() -> None:
    family, theta = fitted(Multinomial(), rng().poisson(1.0, (20, 3)), np.float64)
    sequences = list(product(range(3), repeat=4))
    rows = np.array([np.bincount(sequence, minlength=3) for sequence in sequences])
    expected = [np.exp(theta)[:, sequence].prod(axis=1) for sequence in sequences]
    np.testing.assert_allclose(
        np.exp(family.log_prob(family.encode(rows), theta)), expected, rtol=1e-12
    )


@DTYPES
@ALPHAS
def test_bernoulli_sums_to_one(alpha: float, dtype: Any, tol: float) -> None:
    family, theta = fitted(Bernoulli(alpha), rng().poisson(0.6, (20, 6)), dtype)
    rows = np.array(list(product([0, 1], repeat=6)))
    prob = np.exp(family.log_prob(family.encode(rows), theta))
    np.testing.assert_allclose(prob.sum(axis=0), np.ones(3), rtol=tol)


def some_codes(missing: float = 0.2) -> np.ndarray:
    codes = rng().integers((2, 3, 4), size=(40, 3)).astype(float)
    codes[rng(1).random(codes.shape) < missing] = np.nan
    return codes


@DTYPES
@ALPHAS
def test_categorical_sums_to_one(alpha: float, dtype: Any, tol: float) -> None:
    family, theta = fitted(Categorical(alpha), some_codes(), dtype)
    assert family.levels == (2, 3, 4)
    rows = np.array(list(product(range(2), range(3), range(4))))
    prob = np.exp(family.log_prob(family.encode(rows), theta))
    np.testing.assert_allclose(prob.sum(axis=0), np.ones(3), rtol=tol)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_missing_code_is_summed_over(column: int) -> None:
    family, theta = fitted(Categorical(), some_codes(), np.float64)
    row = np.array([[1.0, 2.0, 3.0]])
    every = np.repeat(row, family.levels[column], axis=0)
    every[:, column] = np.arange(family.levels[column])
    row[0, column] = np.nan
    summed = np.exp(family.log_prob(family.encode(every), theta)).sum(axis=0)
    np.testing.assert_allclose(
        np.exp(family.log_prob(family.encode(row), theta))[0], summed, rtol=1e-12
    )


# -- count families: scikit-learn's naive Bayes ----------------------------------------------------


def labelled() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return classes, row weights, and responsibilities that are both."""
    y, weight = rng(2).integers(3, size=40), rng(3).uniform(0.2, 3.0, 40)
    return y, weight, np.eye(3)[y] * weight[:, np.newaxis]


# scikit-learn computes in float64; float32 tables have seven digits.
NB_DTYPES = pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-10), (None, 1e-5)])


@NB_DTYPES
@pytest.mark.parametrize("alpha", [1.0, 0.1, 3.0])
def test_multinomial_is_that_of_naive_bayes(alpha: float, dtype: Any, tol: float) -> None:
    y, weight, resp = labelled()
    X = rng().poisson(0.7, (40, 9))
    family = Multinomial(alpha).bind(X, dtype)
    theta = family.estimate(family.stats(family.encode(X), resp))
    expected = MultinomialNB(alpha=alpha).fit(X, y, sample_weight=weight).feature_log_prob_
    np.testing.assert_allclose(theta, expected, rtol=tol)
    assert theta.dtype == (np.float32 if dtype is None else dtype)


@NB_DTYPES
@pytest.mark.parametrize("alpha", [1.0, 0.1, 3.0])
def test_bernoulli_is_that_of_naive_bayes(alpha: float, dtype: Any, tol: float) -> None:
    y, weight, resp = labelled()
    X = rng().poisson(0.7, (40, 9))
    family = Bernoulli(alpha).bind(X, dtype)
    theta = family.estimate(family.stats(family.encode(X), resp))
    judge = BernoulliNB(alpha=alpha).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(
        np.log(family.feature_probs(theta)), judge.feature_log_prob_, rtol=tol
    )
    joint = judge.predict_joint_log_proba(X) - judge.class_log_prior_
    np.testing.assert_allclose(family.log_prob(family.encode(X), theta), joint, rtol=tol)


@NB_DTYPES
@pytest.mark.parametrize("alpha", [1.0, 0.1, 3.0])
def test_categorical_is_that_of_naive_bayes(alpha: float, dtype: Any, tol: float) -> None:
    y, weight, resp = labelled()
    X = some_codes(missing=0.0)
    family = Categorical(alpha).bind(X, dtype)
    theta = family.estimate(family.stats(family.encode(X), resp))
    judge = CategoricalNB(alpha=alpha).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(theta, np.hstack(judge.feature_log_prob_), rtol=tol)


# -- count families: what is not there -------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, None])
@pytest.mark.parametrize("kind", [Multinomial, Bernoulli])
def test_words_that_were_never_seen_are_finite_without_a_prior(kind: Any, dtype: Any) -> None:
    family, theta = fitted(kind(0.0), some_counts(), dtype)
    row = np.zeros((1, 7))
    row[0, 2] = 3.0  # nobody used it
    log_prob = family.log_prob(family.encode(row), theta)
    assert np.isfinite(log_prob).all()
    assert (log_prob < -30).all(), "all but impossible"
    probs = family.feature_probs(theta)
    assert np.isfinite(probs).all()
    assert (probs[:, 2] < 1e-15).all()
    assert family.log_prior(theta) == 0.0


def test_a_word_that_every_row_has_is_certain_without_a_prior() -> None:
    # The mass and the count of such a word are sums of the same numbers in another order.
    X = np.delete(some_counts(), 4, axis=0)
    resp = rng(5).dirichlet(np.ones(3), len(X)) * rng(6).uniform(0.5, 2.0, (len(X), 1))
    family = Bernoulli(0.0).bind(X, np.float64)
    theta = family.estimate(family.stats(family.encode(X), resp))
    assert (X[:, 5] == 1).all()
    np.testing.assert_array_equal(theta.log_odds[:, 5], 35.0)  # as certain as odds can be
    np.testing.assert_allclose(family.feature_probs(theta)[:, 5], 1.0, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, None])
def test_a_level_that_was_never_seen_says_nothing(dtype: Any) -> None:
    family, theta = fitted(Categorical(), some_codes(), dtype)
    new, missing = np.array([[1.0, 7.0, 3.0], [8.0, 9.0, 9.0]]), np.array([[1.0, np.nan, 3.0]])
    log_prob = family.log_prob(family.encode(new), theta)
    np.testing.assert_array_equal(log_prob[:1], family.log_prob(family.encode(missing), theta))
    np.testing.assert_array_equal(log_prob[1], np.zeros(3))


def test_a_level_that_no_component_has_is_finite_without_a_prior() -> None:
    family, theta = fitted(Categorical(0.0, levels=(2, 3, 6)), some_codes(), np.float64)
    log_prob = family.log_prob(family.encode(np.array([[0, 0, 5]])), theta)
    assert np.isfinite(log_prob).all()
    assert (log_prob < -500).all()


def test_levels_of_another_number_of_columns() -> None:
    with pytest.raises(ValueError, match="2 levels given for 3 columns"):
        Categorical(levels=(2, 3)).check(some_codes(), "codes")
    with pytest.raises(ValueError, match="bind it to data first"):
        Categorical().encode(some_codes())


@pytest.mark.parametrize("family", [Bernoulli(), Multinomial()], ids=repr)
def test_stored_zeros_and_duplicates_mean_nothing(family: Family) -> None:
    odd, plain = odd_counts(), some_counts()
    assert not odd.has_canonical_format
    assert (odd.data == 0).any()
    np.testing.assert_array_equal(odd.toarray(), plain)
    np.testing.assert_array_equal(family.empty(odd), family.empty(plain))
    assert family.empty(odd).sum() == 1
    bound, theta = fitted(family, plain, np.float64)
    before = odd.copy()
    encoded = bound.encode(odd)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(odd, name), getattr(before, name))
    resp = rng(4).dirichlet(np.ones(3), 60)
    np.testing.assert_allclose(
        bound.stats(encoded, resp).counts, bound.stats(bound.encode(plain), resp).counts, rtol=1e-12
    )
    np.testing.assert_allclose(
        bound.log_prob(encoded, theta), bound.log_prob(bound.encode(plain), theta), rtol=1e-12
    )


def test_presence_is_one_whatever_the_count() -> None:
    rows = Bernoulli().encode(odd_counts())
    np.testing.assert_array_equal(rows.toarray(), some_counts() > 0)
    assert rows.has_canonical_format


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [Multinomial, Bernoulli, Categorical])
def test_impossible_pseudo_counts(kind: Any, alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be 0 or more"):
        kind(alpha)
