"""The laws of a family, and a function that checks them on any family."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.families.base import AnyFamily
from coem.kernels.one_hot import OneHot
from coem.stats import Stats
from coem.typing import Array, Matrix, Resp, Rng, Theta

TOL = 1e-9  # relative; rounding errors of sums in double precision are much smaller
SLACK = 1e-6  # relative; the objective may fall by so much if the M step is not exact


class FamilyLawError(AssertionError):
    """A family breaks a law; the message names the family, the law and the difference."""


def check_family(
    family: AnyFamily,
    X: Matrix | None = None,
    *,
    n_components: int = 3,
    random_state: int = 0,
    theta: Theta | None = None,
) -> None:
    """Raise a `FamilyLawError` for the first law that a family breaks, if there is one.

    Parameters
    ----------
    family : Family
        The family, with hyper-parameters.
    X : array or CSR matrix of shape (n_rows, n_features), optional
        The rows, as an estimator would take them. By default, rows that the family draws from
        `theta`; without `theta`, those of `Family.example`.
    n_components, random_state : int, default=3 and 0
        The number of components (with `theta`, its own is used), and the seed of all random
        choices.
    theta : array or tuple of arrays, optional
        Parameters for the densities and for random rows; by default a random start.
    """
    rng = np.random.default_rng(random_state)
    k = n_components if theta is None else len(_arrays(theta)[0])
    if X is None:
        X = family.example(rng) if theta is None else family.sample(theta, np.arange(120) % k, rng)
    rows = family.check(deepcopy(X), "X")
    empty, bound = family.empty(rows), family.bind(rows, np.float64)
    encoded, n = bound.encode(rows), int(np.sum(~empty))
    if n < 2:
        raise ValueError(f"the laws need two rows or more that are not empty, got {n}")
    resp = rng.dirichlet(np.ones(k), n) * rng.uniform(0.5, 2.0, (n, 1))
    case = Case(family, X, bound, encoded, empty, encoded[~empty], resp, k, random_state, theta)
    for law in LAWS:
        try:
            law(case, np.random.default_rng(random_state))
        except Exception as error:
            name, what = law.__name__[1:], error if type(error) is AssertionError else repr(error)
            raise FamilyLawError(f"{family!r} breaks the law of {name}: {what}") from error


@dataclass(frozen=True)
class Case:
    """A family, and the rows for the laws."""

    given: AnyFamily  # before `bind`
    raw: Matrix  # the rows of the user; the laws get copies of them
    family: AnyFamily  # bound to the rows, in double precision
    encoded: Matrix
    empty: Array  # (n_rows,) bool
    X: Matrix  # the encoded rows that are not empty
    resp: Array  # responsibilities of these rows, which sum to random weights
    k: int
    seed: int
    wanted: Theta | None

    def start(self, seed: int) -> Theta:
        """Return a random start."""
        pooled = self.family.stats(self.X, np.ones((len(self.resp), 1)))
        theta: Theta = self.family.start(pooled, self.k, np.random.default_rng(seed))
        return theta

    def estimate(self, resp: Array, theta: Theta | None = None) -> Theta:
        """Return the M step on the rows that are not empty, from `theta` if it needs any."""
        new: Theta = self.family.estimate(self.family.stats_under(self.X, resp, theta))
        return new

    @property
    def ways(self) -> list[Callable[[Matrix, Array], Stats]]:
        """How the statistics of rows are gathered: without parameters, and with some."""
        family, theta = self.family, self.theta
        under = [lambda X, resp: family.stats_under(X, resp, theta)] if family.hidden else []
        return [family.stats, *under]

    @property
    def theta(self) -> Theta:
        """The parameters for the densities."""
        return self.start(self.seed) if self.wanted is None else self.wanted


def _frozen(case: Case, rng: Rng) -> None:
    """Require a frozen dataclass that equals its pickled copy."""
    for family in (case.given, case.family):
        params = getattr(family, "__dataclass_params__", None)
        _expect(params is not None and params.frozen, "it is not a frozen dataclass")
        _expect(pickle.loads(pickle.dumps(family)) == family, "a pickled copy is not equal to it")


def _start(case: Case, rng: Rng) -> None:
    """Require finite starts with different components, and equal starts for equal seeds."""
    theta = case.start(case.seed)
    _finite("the parameters of a start", theta)
    axes = {len(part) for part in _arrays(theta)}
    _expect(axes == {case.k}, f"the first axes have lengths {axes}, not {case.k} components")
    rows = np.hstack([part.reshape(case.k, -1) for part in _arrays(theta)])
    _expect(len(np.unique(rows, axis=0)) == case.k, "two components start alike")
    _equal("two starts from one seed", case.start(case.seed), theta, tol=0.0)


def _shapes(case: Case, rng: Rng) -> None:
    """Require finite float64 densities (n, k) and a finite log prior."""
    log_prob = case.family.log_prob(case.X, case.theta)
    right = log_prob.shape == case.resp.shape and log_prob.dtype == np.float64
    _expect(right, f"log_prob is {log_prob.dtype} {log_prob.shape}, not float64 {case.resp.shape}")
    _finite("log_prob or log_prior", (log_prob, case.family.log_prior(case.theta)))


def _purity(case: Case, rng: Rng) -> None:
    """Require that no method changes its arguments."""

    def call(family: AnyFamily, method: str, *args: Any) -> Any:
        before = deepcopy(args)
        result = getattr(family, method)(*args)
        _equal(f"the arguments of {method} after and before the call", args, before, tol=0.0)
        return result

    raw = call(case.given, "check", deepcopy(case.raw), "X")
    call(case.given, "empty", raw)
    family = call(case.given, "bind", raw, np.float64)
    X = call(family, "encode", raw)[~case.empty]
    theta = call(family, "estimate", call(family, "stats", X, case.resp.copy()))
    call(family, "start", call(family, "stats", X, np.ones((X.shape[0], 1))), case.k, rng)
    call(family, "estimate", call(family, "stats_under", X, case.resp.copy(), theta))
    call(family, "sample", theta, rng.integers(case.k, size=9), rng)
    for method in ("log_prob", "terms"):
        call(family, method, X[:1], theta)
    for method in ("log_prior", "feature_probs", "n_parameters"):
        call(family, method, theta)


def _additivity(case: Case, rng: Rng) -> None:
    """Require stats(A) + stats(B) = stats(A ++ B) for any split and any order of the rows."""
    X, resp = case.X, case.resp
    for stats in case.ways:
        whole, order = stats(X, resp), rng.permutation(len(resp))
        _finite("the statistics", whole)
        _equal("stats of the rows in two orders", stats(X[order], resp[order]), whole)
        for cut in rng.integers(1, len(resp), size=3):
            parts = [stats(X[rows], resp[rows]) for rows in (order[:cut], order[cut:])]
            _equal("stats(A) + stats(B) and stats(A ++ B)", parts[0] + parts[1], whole)


def _totals(case: Case, rng: Rng) -> None:
    """Require add_stats(stats(A), B) = stats(A ++ B), and that the rows stay as they are."""
    family, X, resp, n = case.family, case.X, case.resp, len(case.resp)
    for theta in (None, case.theta) if family.hidden else (None,):
        whole = family.stats_under(X, resp, theta)
        total = family.stats_under(X[: n // 2], resp[: n // 2], theta)
        for rows in (slice(n // 2, n - 1), slice(n - 1, n)):
            args = X[rows], resp[rows].copy(), theta
            before = deepcopy(args)
            total = family.add_stats(total, *args)
            _equal("the arguments of add_stats after and before the call", args, before, tol=0.0)
        _equal("add_stats(stats(A), B) and stats(A ++ B)", total, whole)


def _homogeneity(case: Case, rng: Rng) -> None:
    """Require stats(X, c resp) = c stats(X, resp), and that weight 2 equals a row twice."""
    X, resp = case.X, case.resp
    weights = rng.permutation(np.arange(len(resp)) % 3)
    times = np.repeat(np.arange(len(resp)), weights)
    for stats in case.ways:
        for c in (0.37, 3.0):
            _equal(f"stats of {c} resp and {c} stats", stats(X, c * resp), stats(X, resp).scaled(c))
        weighted, repeated = stats(X, weights[:, np.newaxis] * resp), stats(X[times], resp[times])
        _equal("stats of weights 0, 1, 2 and of rows so many times", weighted, repeated)


def _optimality(case: Case, rng: Rng) -> None:
    """Require that the M step finds the maximum of the expected log posterior.

    If the family has hidden variables, require that it does not fall below where it starts from.
    """
    family, X, resp = case.family, case.X, case.resp

    def value(theta: Theta) -> float:
        return float((resp * family.log_prob(X, theta)).sum()) + family.log_prior(theta)

    best, what = value(case.estimate(resp)), "sum(resp * log_prob) + log_prior after an M step"
    if family.hidden:
        # Many rows outweigh a prior, which the M step on few rows then has to pay for.
        many = family.stats_under(X, resp, case.start(0)).scaled(1e4)
        starts = case.estimate(resp), family.estimate(many), *map(case.start, range(5))
        for theta in starts:
            for _ in range(5):
                before, theta = value(theta), case.estimate(resp, theta)
                _not_below(case, what, value(theta), before)
        return
    scales, sizes = (0.9, 0.99, 1.01, 1.1), np.repeat([1e-3, 1e-2, 1e-1, 1.0], 10)
    scaled = (family.estimate(family.stats(X, resp).scaled(c)) for c in scales)
    noisy = (case.estimate(resp * np.exp(s * rng.standard_normal(resp.shape))) for s in sizes)
    # If an M step ignores its statistics, only the starts differ from its result.
    for rival in [*scaled, *noisy, *map(case.start, range(5))]:
        _not_below(case, what, best, value(rival))


def _symmetry(case: Case, rng: Rng) -> None:
    """Require that permuted responsibilities give permuted parameters and densities."""
    family, order = case.family, np.roll(np.arange(case.k), 1)
    starts: list[Theta | None] = [None, case.theta] if family.hidden else [None]
    for start in starts:
        moved = None if start is None else family.restore([part[order] for part in _arrays(start)])
        theta = case.estimate(case.resp, start)
        other = case.estimate(case.resp[:, order], moved)
        mine, theirs = (family.log_prob(case.X, parameters) for parameters in (other, theta))
        permuted = (*(part[order] for part in _arrays(theta)), theirs[:, order])
        _equal("theta or log_prob of permuted resp and the same permuted", (other, mine), permuted)


def _monotone(case: Case, rng: Rng) -> None:
    """Require that no step of EM lowers the log likelihood plus the log prior."""
    theta, log_weights, last = case.theta, np.full(case.k, -np.log(case.k)), -np.inf
    for step in range(11):
        log_joint = case.family.log_prob(case.X, theta) + log_weights
        evidence = np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
        value = float(evidence.sum()) + case.family.log_prior(theta)
        _not_below(case, f"log likelihood + log_prior after step {step} of EM", value, last)
        last, resp = value, np.exp(log_joint - evidence)
        theta = case.estimate(resp, theta)
        log_weights = np.log(np.maximum(resp.mean(axis=0), np.finfo(np.float64).tiny))


def _emptiness(case: Case, rng: Rng) -> None:
    """Require that empty rows add nothing, and that components without rows are finite."""
    family, X, resp, padded = case.family, case.X, case.resp, np.zeros((len(case.empty), case.k))
    padded[~case.empty] = resp
    for stats in case.ways:
        _equal("stats with empty rows and without", stats(case.encoded, padded), stats(X, resp))
    for what, alive in (("a component", np.arange(case.k) > 0), ("every component", [False])):
        for start in (None, case.theta):
            theta = case.estimate(resp * alive, start)
            _finite(f"theta or log_prob if {what} has no rows", (theta, family.log_prob(X, theta)))


def _sample(case: Case, rng: Rng) -> None:
    """Require one row per label, and that an M step on the rows finds their parameters."""
    family, theta, n = case.family, case.theta, int(np.clip(2e6 // case.X.shape[1], 200, 5000))
    labels = np.arange(n) % case.k
    drawn, again = (family.sample(theta, labels, np.random.default_rng(case.seed)) for _ in "ab")
    _expect(drawn.shape[0] == n, f"{drawn.shape[0]} rows were drawn for {n} labels")
    _equal("two samples from one seed", again, drawn, tol=0.0)
    X, found = family.encode(family.check(drawn, "X")), theta
    for _ in range(10 if family.hidden else 1):
        found = family.estimate(family.stats_under(X, np.eye(case.k)[labels], found))
    true, mine = (family.log_prob(X, t)[np.arange(n), labels] for t in (theta, found))
    _finite("log_prob of a sample", true)
    # Twice the sum of the gains is chi-squared, with one degree of freedom per parameter.
    gain, most = float((mine - true).mean()), (10 + 2 * family.n_parameters(theta)) / n
    _expect(abs(gain) <= most, f"estimates from it gain {gain:.3g} a row, not {most:.3g} at most")


def _representation(case: Case, rng: Rng) -> None:
    """Require equal results for CSR rows and dense rows, if the family accepts CSR."""
    try:
        sparse = sp.csr_matrix(case.raw[~case.empty])
        case.given.check(sparse, "X")
    except (TypeError, ValueError):
        return
    results = []
    for rows in (case.given.check(x, "X") for x in (sparse, sparse.toarray())):
        family = case.given.bind(rows, np.float64)
        X = family.encode(rows)
        stats = family.stats(X, case.resp)
        under = family.stats_under(X, case.resp, family.estimate(stats))
        results.append((stats, family.log_prob(X, family.estimate(stats)), under))
    _equal("stats or log_prob of CSR and dense rows", results[0], results[1])


def _labels(case: Case, rng: Rng) -> None:
    """Require equal statistics for labels and for the array they stand for, if it takes labels."""
    if case.family.takes_labels:
        labels = rng.integers(case.k, size=len(case.resp)).astype(np.int32)
        resp: Resp = OneHot(labels, case.k, case.resp.sum(axis=1))
        one, other = (case.family.stats(case.X, part) for part in (resp, np.asarray(resp)))
        _equal("stats of labels and of their array", one, other)


def _terms(case: Case, rng: Rng) -> None:
    """Require that the terms of a row and the rest add up to log_prob, if there are terms."""
    for row in (case.X[i : i + 1] for i in range(min(10, len(case.resp)))):
        apart, whole = case.family.terms(row, case.theta), case.family.log_prob(row, case.theta)
        if apart is not None:
            _equal("terms + rest and log_prob of a row", apart[1].sum(axis=0) + apart[2], whole[0])


def _feature_probs(case: Case, rng: Rng) -> None:
    """Require one row per component of finite non-negative numbers, if there are any."""
    probs = case.family.feature_probs(case.theta)
    _finite("feature_probs", probs)
    good = probs is None or (len(probs) == case.k and bool(np.all(np.asarray(probs) >= 0)))
    _expect(good, "feature_probs has negative values, or not one row a component")


LAWS = (  # in the order of the checks: later laws rely on earlier ones
    _frozen, _start, _shapes, _purity, _additivity, _homogeneity, _optimality, _symmetry,
    _monotone, _emptiness, _sample, _representation, _labels, _terms,
    _feature_probs, _totals,
)  # fmt: skip


def _arrays(value: Any) -> list[Array]:
    """Return the arrays that a matrix, parameters, statistics or a tuple of them consist of."""
    if value is None or isinstance(value, (str, type, Rng)):
        return []
    if isinstance(value, Stats):
        value = tuple(vars(value).values())
    if isinstance(value, tuple):
        return [array for item in value for array in _arrays(item)]
    if hasattr(value, "indptr"):
        return [value.data, value.indices, value.indptr]
    return [np.asarray(value)]


def _expect(truth: bool, difference: str) -> None:
    if not truth:
        raise AssertionError(difference)


def _finite(what: str, value: Any) -> None:
    _expect(all(np.isfinite(x).all() for x in _arrays(value)), f"NaN or infinity in {what}")


def _not_below(case: Case, what: str, value: float, bound: float) -> None:
    slack = (TOL if case.family.exact else SLACK) * max(1.0, abs(value))
    _expect(value >= bound - slack, f"{what} is {value:.9g}, below {bound:.9g}")


def _equal(what: str, value: Any, expected: Any, tol: float = TOL) -> None:
    """Raise unless all arrays are equal; `tol` is relative to the largest value of an array."""
    for a, b in zip(_arrays(value), _arrays(expected), strict=True):
        near = tol * float(np.abs(np.nan_to_num(b)).max(initial=0.0))
        if a.shape != b.shape or not np.allclose(a, b, rtol=0.0, atol=near, equal_nan=True):
            with np.printoptions(threshold=20):
                raise AssertionError(f"{what} differ:\n{a}\n{b}")
