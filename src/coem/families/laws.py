"""The laws of a family, as a check that anyone can run on a family of their own."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from coem.families.base import Family
from coem.stats import Stats
from coem.typing import Array, Matrix, Rng, Theta

TOL = 1e-9  # relative: the rounding of sums in double precision stays well below
SLACK = 1e-6  # relative: what a family whose M step is not exact may lose


class FamilyLawError(AssertionError):
    """The error of a broken law, with `family`, `law` (its name) and `difference` (what differed)."""

    def __init__(self, family: Family, law: str, difference: str) -> None:
        super().__init__(family, law, difference)
        self.family, self.law, self.difference = family, law, difference

    def __str__(self) -> str:
        """Name the family, the law and what differed."""
        return f"{self.family!r} breaks the law of {self.law}: {self.difference}"


def check_family(
    family: Family,
    X: Matrix | None = None,
    *,
    n_components: int = 3,
    random_state: int = 0,
    theta: Theta | None = None,
) -> None:
    """Raise an error at the first law that a family breaks; return None if it keeps them all.

    Parameters
    ----------
    family : Family
        The family, with the hyper-parameters that it is to be checked with.
    X : array or CSR matrix of shape (n_rows, n_features), optional
        Rows to check it on, as an estimator would take them. By default rows drawn from the
        family at `theta`, or its `Family.example` if there is no `theta` either.
    n_components : int, default=3
        Number of components, unless `theta` tells.
    random_state : int, default=0
        Seed of every random choice.
    theta : array or tuple of arrays, optional
        Parameters to compute densities with and to draw rows from; by default a random start.

    Raises
    ------
    FamilyLawError
        An `AssertionError` that names the family, the law and what differed.
    """
    rng = np.random.default_rng(random_state)
    k = n_components if theta is None else len(_arrays(theta)[0])
    if X is None and theta is None:
        X = family.example(rng)
    elif X is None:
        X = family.sample(theta, rng.integers(k, size=120), rng)
    raw = family.check(deepcopy(X), "X")
    bound, encoded, empty = _prepared(family, deepcopy(raw))
    rows, n = encoded[~empty], int(np.sum(~empty))
    if n < 2:
        raise ValueError(f"the laws need two rows or more that are not empty, got {n}")
    resp = rng.dirichlet(np.ones(k), n) * rng.uniform(0.5, 2.0, (n, 1))
    case = Case(family, raw, bound, encoded, empty, rows, resp, k, random_state, theta)
    for law in LAWS:
        try:
            law(case, np.random.default_rng(random_state))
        except Exception as error:
            broken = isinstance(error, AssertionError)
            difference = str(error) if broken else f"{type(error).__name__}: {error}"
            raise FamilyLawError(family, law.__name__.strip("_"), difference) from error


@dataclass(frozen=True)
class Case:
    """A family and the rows that the laws are checked on."""

    given: Family  # as it was before it saw any rows
    raw: Matrix  # rows that have passed `check`; only copies of them are given away
    family: Family  # bound to the rows, in double precision
    encoded: Matrix
    empty: Array  # (n_rows,) bool
    X: Matrix  # the encoded rows that are not empty
    resp: Array  # their responsibilities, which sum to random weights
    k: int
    seed: int
    wanted: Theta | None

    def start(self, seed: int) -> Theta:
        """Return a random start."""
        pooled = self.family.stats(self.X, np.ones((len(self.resp), 1)))
        return self.family.start(pooled, self.k, np.random.default_rng(seed))

    def estimate(self, resp: Array) -> Theta:
        """Return the M step on the rows that are not empty."""
        return self.family.estimate(self.family.stats(self.X, resp))

    @property
    def theta(self) -> Theta:
        """The parameters to compute densities with."""
        return self.start(self.seed) if self.wanted is None else self.wanted


# -- the laws: each raises an AssertionError that says what differed -----------------------------


def _frozen(case: Case, rng: Rng) -> None:
    """Require a frozen dataclass that equals its pickled copy."""
    for family in (case.given, case.family):
        params = getattr(family, "__dataclass_params__", None)
        _expect(params is not None and params.frozen, "it is not a frozen dataclass")
        _expect(pickle.loads(pickle.dumps(family)) == family, "a pickled copy is not equal to it")


def _start(case: Case, rng: Rng) -> None:
    """Require finite starts whose components differ, and which the seed alone decides."""
    theta = case.start(case.seed)
    _finite("the parameters of a start", theta)
    parts = _arrays(theta)
    _expect(all(len(part) == case.k for part in parts), "the first axis is not the component")
    for i, j in combinations(range(case.k), 2):
        differ = any(np.any(part[i] != part[j]) for part in parts)
        _expect(differ, f"components {i} and {j} start with the same parameters")
    _equal("two starts from one seed", case.start(case.seed), theta, tol=0.0)


def _shapes(case: Case, rng: Rng) -> None:
    """Require finite float64 densities (n, k) and a finite log prior."""
    log_prob = case.family.log_prob(case.X, case.theta)
    shape, wanted = log_prob.shape, case.resp.shape
    _expect(shape == wanted, f"log_prob has shape {shape}, not {wanted}")
    _expect(log_prob.dtype == np.float64, f"log_prob is {log_prob.dtype}, not float64")
    _finite("log_prob", log_prob)
    _finite("log_prior", case.family.log_prior(case.theta))


def _purity(case: Case, rng: Rng) -> None:
    """Require that no method changes what it is given."""

    def call(family: Family, method: str, *args: Any) -> Any:
        before = deepcopy(args)
        result = getattr(family, method)(*args)
        _equal(f"the arguments of {method} before and after the call", args, before, tol=0.0)
        return result

    raw = call(case.given, "check", deepcopy(case.raw), "X")
    call(case.given, "empty", raw)
    family = call(case.given, "bind", raw, np.float64)
    X = call(family, "encode", raw)[~case.empty]
    theta = call(family, "estimate", call(family, "stats", X, case.resp.copy()))
    call(family, "start", call(family, "stats", X, np.ones((X.shape[0], 1))), case.k, rng)
    call(family, "log_prob", X, theta)
    call(family, "terms", X[:1], theta)
    call(family, "sample", theta, rng.integers(case.k, size=9), rng)
    for method in ("log_prior", "feature_probs", "n_parameters"):
        call(family, method, theta)


def _additivity(case: Case, rng: Rng) -> None:
    """Require stats(A) + stats(B) = stats(A ++ B) for any split, the rows in any order."""
    X, resp, stats = case.X, case.resp, case.family.stats
    whole, order = stats(X, resp), rng.permutation(len(resp))
    _finite("the statistics", whole)
    _equal("stats of the rows in two orders", stats(X[order], resp[order]), whole)
    for cut in rng.integers(1, len(resp), size=3):
        parts = [stats(X[rows], resp[rows]) for rows in (order[:cut], order[cut:])]
        _equal("stats(A) + stats(B) and stats(A ++ B)", parts[0] + parts[1], whole)


def _homogeneity(case: Case, rng: Rng) -> None:
    """Require stats(X, c resp) = c stats(X, resp); weight 2 is a row twice, weight 0 no row."""
    X, resp, stats = case.X, case.resp, case.family.stats
    for c in (0.37, 3.0):
        scaled = stats(X, resp).scaled(c)
        _equal(f"stats(X, {c} resp) and {c} stats(X, resp)", stats(X, c * resp), scaled)
    weights = rng.permutation(np.arange(len(resp)) % 3)
    times = np.repeat(np.arange(len(resp)), weights)
    weighted, repeated = stats(X, weights[:, np.newaxis] * resp), stats(X[times], resp[times])
    _equal("stats of weights 0, 1, 2 and of rows so many times", weighted, repeated)


def _optimality(case: Case, rng: Rng) -> None:
    """Require that no parameters beat those of the M step in the expected log posterior."""
    family, X, resp = case.family, case.X, case.resp

    def value(theta: Theta) -> float:
        return float((resp * family.log_prob(X, theta)).sum()) + family.log_prior(theta)

    scales, sizes = (0.9, 0.99, 1.01, 1.1), np.repeat([1e-3, 1e-2, 1e-1, 1.0], 10)
    scaled = (family.estimate(family.stats(X, resp).scaled(c)) for c in scales)
    noisy = (case.estimate(resp * np.exp(s * rng.standard_normal(resp.shape))) for s in sizes)
    # An M step that forgets its statistics has no rivals but the starts.
    for rival in chain(scaled, noisy, map(case.start, range(5))):
        what = "sum(resp * log_prob) + log_prior of the M step, below that of other parameters,"
        _not_below(case, what, value(case.estimate(resp)), value(rival))


def _symmetry(case: Case, rng: Rng) -> None:
    """Require that permuted responsibilities give permuted parameters and densities."""
    order = np.roll(np.arange(case.k), 1)
    theta, other = case.estimate(case.resp), case.estimate(case.resp[:, order])
    permuted = tuple(part[order] for part in _arrays(theta))
    _equal("theta of permuted responsibilities and theta permuted", other, permuted)
    mine, theirs = (case.family.log_prob(case.X, parameters) for parameters in (other, theta))
    _equal("log_prob of permuted parameters and log_prob permuted", mine, theirs[:, order])


def _monotone(case: Case, rng: Rng) -> None:
    """Require that no step of EM lowers the log likelihood plus the log prior."""
    theta, log_weights, last = case.theta, np.full(case.k, -np.log(case.k)), -np.inf
    for step in range(11):
        log_joint = case.family.log_prob(case.X, theta) + log_weights
        evidence = logsumexp(log_joint, axis=1, keepdims=True)
        value = float(evidence.sum()) + case.family.log_prior(theta)
        _not_below(case, f"log likelihood + log_prior after step {step} of EM", value, last)
        last, resp = value, np.exp(log_joint - evidence)
        theta = case.estimate(resp)
        log_weights = np.log(np.maximum(resp.mean(axis=0), np.finfo(np.float64).tiny))


def _emptiness(case: Case, rng: Rng) -> None:
    """Require that empty rows add nothing, and that components without rows are finite."""
    padded = np.zeros((len(case.empty), case.k))
    padded[~case.empty] = case.resp
    mine, theirs = case.family.stats(case.encoded, padded), case.family.stats(case.X, case.resp)
    _equal("stats with and without empty rows", mine, theirs)
    for who, alive in (("a component", np.arange(case.k) > 0), ("every component", [False])):
        theta = case.estimate(case.resp * alive)
        _finite(f"the parameters where {who} has no rows", theta)
        _finite(f"log_prob where {who} has no rows", case.family.log_prob(case.X, theta))


def _sample(case: Case, rng: Rng) -> None:
    """Require one row a label, fit for the family, and which the seed alone decides."""
    family, theta, labels = case.family, case.theta, rng.integers(case.k, size=50)
    drawn, again = (family.sample(theta, labels, np.random.default_rng(case.seed)) for _ in "ab")
    _expect(drawn.shape[0] == 50, f"{drawn.shape[0]} rows were drawn for 50 labels")
    _equal("two samples from one seed", again, drawn, tol=0.0)
    rows = family.encode(family.check(drawn, "X"))
    _finite("log_prob of a sample", family.log_prob(rows, theta))


def _recovery(case: Case, rng: Rng) -> None:
    """Require that the M step on a large sample does as well as the parameters it is drawn from.

    Twice the gain in log likelihood has a chi-squared distribution with as many degrees of
    freedom as there are parameters, so that it is hardly ever more than four times their number.
    """
    family, theta, n = case.family, case.theta, int(np.clip(2e6 // case.X.shape[1], 200, 5000))
    labels = np.arange(n) % case.k
    X = family.encode(family.check(family.sample(theta, labels, rng), "X"))
    found = family.estimate(family.stats(X, np.eye(case.k)[labels]))
    true, mine = (family.log_prob(X, t)[np.arange(n), labels].mean() for t in (theta, found))
    near = abs(mine - true) <= (10 + 2 * family.n_parameters(theta)) / n
    _expect(near, f"log likelihood {mine:.6g} a row where it was drawn with {true:.6g}")


def _representation(case: Case, rng: Rng) -> None:
    """Require that CSR rows, if the family takes them, are worth what dense rows are."""
    raw = case.raw[~case.empty]
    dense = raw.toarray() if _is_sparse(raw) else np.asarray(raw)
    try:
        sparse = case.given.check(sp.csr_matrix(dense), "X")
    except (TypeError, ValueError):
        return
    results = []
    for rows in (sparse, case.given.check(dense, "X")):
        family, X, _ = _prepared(case.given, rows)
        stats = family.stats(X, case.resp)
        results.append((stats, family.log_prob(X, family.estimate(stats))))
    _equal("stats and log_prob of CSR and of dense rows", *results)


def _terms(case: Case, rng: Rng) -> None:
    """Require that the terms of a row, if there are any, and the rest add up to log_prob."""
    for i in range(min(10, len(case.resp))):
        row = case.X[i : i + 1]
        apart = case.family.terms(row, case.theta)
        if apart is not None:
            whole = case.family.log_prob(row, case.theta)[0]
            _equal("terms + rest and log_prob of one row", apart[1].sum(axis=0) + apart[2], whole)


def _feature_probs(case: Case, rng: Rng) -> None:
    """Require one row of finite numbers, none negative, a component, if there are any."""
    probs = case.family.feature_probs(case.theta)
    if probs is not None:
        _finite("feature_probs", probs)
        _expect(len(probs) == case.k, f"feature_probs has {len(probs)} rows, not {case.k}")
        _expect(bool(np.all(probs >= 0)), "feature_probs has negative values")


Law: TypeAlias = Callable[[Case, Rng], None]

# In the order in which they are checked: the later ones rest on the earlier.
_VALUES: tuple[Law, ...] = (_frozen, _start, _shapes, _purity, _additivity, _homogeneity)
_STEPS: tuple[Law, ...] = (_optimality, _symmetry, _monotone, _emptiness)
_OTHERS: tuple[Law, ...] = (_sample, _recovery, _representation, _terms, _feature_probs)
LAWS = _VALUES + _STEPS + _OTHERS


# -- comparing values of any kind ----------------------------------------------------------------


def _prepared(family: Family, X: Matrix) -> tuple[Family, Matrix, Array]:
    """Return the family bound to checked rows, the encoded rows, and which of them are empty."""
    empty, bound = family.empty(X), family.bind(X, np.float64)
    return bound, bound.encode(X), empty


def _is_sparse(value: Any) -> bool:
    return bool(sp.issparse(value))


def _arrays(value: Any) -> list[Array]:
    """Return the arrays that a matrix, parameters, statistics or a tuple of them consist of."""
    if value is None or isinstance(value, (str, type, Rng)):
        return []
    if isinstance(value, Stats):
        value = tuple(vars(value).values())
    if isinstance(value, tuple):
        return [array for item in value for array in _arrays(item)]
    return [value.data, value.indices, value.indptr] if _is_sparse(value) else [np.asarray(value)]


def _expect(truth: bool, difference: str) -> None:
    if not truth:
        raise AssertionError(difference)


def _finite(what: str, value: Any) -> None:
    finite = all(np.isfinite(array).all() for array in _arrays(value))
    _expect(finite, f"NaN or infinity in {what}")


def _not_below(case: Case, what: str, value: float, bound: float) -> None:
    slack = (TOL if case.family.exact else SLACK) * max(1.0, abs(value))
    _expect(value >= bound - slack, f"{what} is {value:.9g}, below {bound:.9g}")


def _equal(what: str, value: Any, expected: Any, tol: float = TOL) -> None:
    """Compare array by array; the tolerance is relative to the largest value of an array."""
    mine, theirs = _arrays(value), _arrays(expected)
    shapes = [[array.shape for array in arrays] for arrays in (mine, theirs)]
    _expect(shapes[0] == shapes[1], f"{what} have shapes {shapes[0]} and {shapes[1]}")
    for a, b in zip(mine, theirs, strict=True):
        near = tol * float(np.abs(np.nan_to_num(b)).max(initial=0.0))
        if not np.allclose(a, b, rtol=0.0, atol=near, equal_nan=True):
            gap = np.nanmax(np.abs(np.subtract(a, b, dtype=np.float64)))
            raise AssertionError(f"{what} differ by up to {gap:.3g}")
