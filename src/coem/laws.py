"""The laws of couplings and posterior rules, as checks that you can run on one of your own.

Families have theirs in `coem.families.check_family`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from coem.coupling import Coupling, Joint
from coem.em import Result, em
from coem.engine.sessions import PartedSession, WholeSession
from coem.families.gaussian import Gaussian, GaussianTheta
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture, MixtureTheta
from coem.latent.weights import WEIGHTS
from coem.posterior import Posterior, Rule, Soft
from coem.schedules import Constant
from coem.typing import Array, Rng

N, K = 60, 3
VIEWS = 3
RTOL, ATOL = 1e-9, 1e-12
ETAS = (0.0, 0.3, 1.0)
FALL = 1e-9  # relative: the rounding of sums in double precision stays well below


class PolicyLawError(AssertionError):
    """A coupling or a rule breaks a law; the message names both and says what differed."""


def check_coupling(coupling: Coupling, random_state: int = 0) -> None:
    """Raise a `PolicyLawError` at the first law that a coupling of views breaks."""
    _check(coupling, COUPLING_LAWS, random_state)


def check_rule(rule: Rule, random_state: int = 0) -> None:
    """Raise a `PolicyLawError` at the first law that a posterior rule breaks."""
    _check(rule, RULE_LAWS, random_state)


def _check(policy: Any, laws: tuple[Callable[..., None], ...], random_state: int) -> None:
    for law in laws:
        try:
            law(policy, np.random.default_rng(random_state))
        except Exception as error:
            name, what = law.__name__[1:], error if type(error) is AssertionError else repr(error)
            raise PolicyLawError(f"{policy!r} breaks the law of {name}: {what}") from error


# -- couplings ----------------------------------------------------------------------------------


def _slots(coupling: Coupling, rng: Rng) -> None:
    """Check that slots have the views in their order, and that several slots are one view each."""
    for n_views in (1, 2, VIEWS):
        slots = coupling.slots(n_views)
        assert [v for slot in slots for v in slot] == list(range(n_views)), f"{slots}"
        assert len(slots) == 1 or all(len(slot) == 1 for slot in slots), f"{slots}"


def _distribution(coupling: Coupling, rng: Rng) -> None:
    """Check that a lesson is a distribution per row, zero where the view of the turn is empty."""
    for posteriors, empty, turn, eta in _lessons(coupling, rng):
        kept = posteriors.copy()
        lesson = coupling.lesson(posteriors, turn, eta, empty)
        _close(posteriors, kept, "the posteriors were changed")
        assert lesson.min() >= 0, "a responsibility is negative"
        there = np.ones(N) if empty is None or len(posteriors) == 1 else ~empty[:, turn]
        _close(lesson.sum(axis=1), there, f"rows of turn {turn} do not sum to one")


def _consensus(coupling: Coupling, rng: Rng) -> None:
    """Check that every view learns what all views agree on."""
    same = rng.dirichlet(np.ones(K), size=N)
    for posteriors, empty, turn, eta in _lessons(coupling, rng):
        lesson = coupling.lesson(np.stack([same] * len(posteriors)), turn, eta, empty)
        there = lesson.sum(axis=1) > 0
        _close(lesson[there], same[there], f"turn {turn} learns something else")


def _rows(coupling: Coupling, rng: Rng) -> None:
    """Check that the lesson of a row follows from that row alone."""
    rows = np.sort(rng.choice(N, 20, replace=False))
    for posteriors, empty, turn, eta in _lessons(coupling, rng):
        whole = coupling.lesson(posteriors, turn, eta, empty)
        some = None if empty is None else empty[rows]
        part = coupling.lesson(posteriors[:, rows], turn, eta, some)
        _close(part, whole[rows], "other rows change it")


def _symmetry(coupling: Coupling, rng: Rng) -> None:
    """Check that components have no order."""
    order = rng.permutation(K)
    for posteriors, empty, turn, eta in _lessons(coupling, rng):
        lesson = coupling.lesson(posteriors, turn, eta, empty)
        turned = coupling.lesson(posteriors[:, :, order], turn, eta, empty)
        _close(turned, lesson[:, order], "their order changes it")


def _emptiness(coupling: Coupling, rng: Rng) -> None:
    """Check that a view has no say on a row that is empty there."""
    for posteriors, empty, turn, eta in _lessons(coupling, rng):
        if empty is None or len(posteriors) == 1:
            continue
        lesson = coupling.lesson(posteriors, turn, eta, empty)
        noise = np.where(empty.T[:, :, np.newaxis], rng.dirichlet(np.ones(K)), posteriors)
        heard = coupling.lesson(noise, turn, eta, empty)
        _close(heard, lesson, "the posterior of an empty row is heard")


def _monotony(coupling: Coupling, rng: Rng) -> None:
    """Check that the free energy of a fit never falls where `never_falls` says so."""
    for eta in ETAS:
        if coupling.never_falls(eta):
            for weights in WEIGHTS:
                _check_trace(_fit(coupling, Soft(), weights, eta, rng).history)


def _partitions(coupling: Coupling, rng: Rng) -> None:
    """Check that rows in several partitions give the parameters of all rows in one."""
    seed = int(rng.integers(1 << 31))
    for eta in ETAS:
        whole = _fit(coupling, Soft(), "global", eta, np.random.default_rng(seed))
        parts = _fit(coupling, Soft(), "global", eta, np.random.default_rng(seed), cuts=(7, 30))
        means = [
            [p.means for p in fit.theta.params if isinstance(p, GaussianTheta)]
            for fit in (whole, parts)
        ]
        _close(np.stack(means[0]), np.stack(means[1]), "partitions change the parameters")


def _lessons(coupling: Coupling, rng: Rng) -> list[tuple[Array, Array | None, int, float]]:
    """Return posteriors, which rows are empty, turn and eta, for all that a lesson may meet."""
    n_slots = len(coupling.slots(VIEWS))
    posteriors = rng.dirichlet(np.ones(K), size=(n_slots, N))
    blanks = rng.random((N, VIEWS)) < 0.4
    return [
        (posteriors, empty, turn, eta)
        for empty in (None, blanks)
        for turn in range(n_slots)
        for eta in ETAS
    ]


COUPLING_LAWS = (
    *(_slots, _distribution, _consensus, _rows, _symmetry, _emptiness, _monotony, _partitions),
)


# -- rules --------------------------------------------------------------------------------------


def _shares(rule: Rule, rng: Rng) -> None:
    """Check that responsibilities are a distribution per row over the allowed components."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        resp = _apply(rule, log_prob, log_weights, allowed, beta).resp
        assert resp.min() >= 0, "a responsibility is negative"
        _close(resp.sum(axis=1), np.ones(N), "rows do not sum to one")
        assert allowed is None or not resp[~allowed].any(), "a component that is not allowed"


def _evidence(rule: Rule, rng: Rng) -> None:
    """Check that evidence and log posterior are those of the model, whatever beta is."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        result = _apply(rule, log_prob, log_weights, allowed, beta)
        log_joint = np.where(True if allowed is None else allowed, log_prob + log_weights, -np.inf)
        expected = logsumexp(log_joint, axis=1)
        _close(result.evidence, expected, "the evidence is not log p(row)")
        there = np.isfinite(log_joint)
        posterior = (log_joint - expected[:, np.newaxis])[there]
        _close(result.log_posterior[there], posterior, "the log posterior is not that of the model")


def _objective(rule: Rule, rng: Rng) -> None:
    """Check that the objective is the expected log joint plus the entropy divided by beta."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        result = _apply(rule, log_prob, log_weights, allowed, beta)
        expected = _free_energy(rule, result.resp, log_prob + log_weights, beta)
        _close(result.objective, expected, f"at beta = {beta} it is another value")


def _optimality(rule: Rule, rng: Rng) -> None:
    """Check that other shares that the rule could return are worth no more."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        if allowed is not None:
            continue
        result, log_joint = _apply(rule, log_prob, log_weights, None, beta), log_prob + log_weights
        for scale in (0.1, 1.0, 5.0):
            noise = scale * rng.standard_normal(log_prob.shape)
            others = (
                rng.permuted(result.resp, axis=1),
                _apply(rule, log_prob + noise, log_weights, None, beta).resp,
                _apply(rule, log_prob, log_weights, None, min(1.0, 0.9 * beta)).resp,
            )
            for other in others:
                value = _free_energy(rule, other, log_joint, beta)
                assert (value <= result.objective + 1e-9).all(), "other shares are worth more"


def _shift(rule: Rule, rng: Rng) -> None:
    """Check that a constant factor of the densities of a row changes only the row's value."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        one = _apply(rule, log_prob, log_weights, allowed, beta)
        two = _apply(rule, log_prob + 2.5, log_weights, allowed, beta)
        _close(two.resp, one.resp, "the responsibilities change")
        _close(two.objective, one.objective + 2.5, "the objective does not change by the constant")


def _order(rule: Rule, rng: Rng) -> None:
    """Check that rows and components have no order, and that rows are independent."""
    rows, order = rng.permutation(N)[:30], rng.permutation(K)
    for log_prob, log_weights, allowed, beta in _joints(rng):
        whole = _apply(rule, log_prob, log_weights, allowed, beta).resp
        some = None if allowed is None else allowed[rows][:, order]
        part = _apply(rule, log_prob[rows][:, order], log_weights[order], some, beta).resp
        _close(part, whole[rows][:, order], "another order changes them")


def _compactness(rule: Rule, rng: Rng) -> None:
    """Check that the compact form of responsibilities has the same values as the array."""
    for log_prob, log_weights, allowed, beta in _joints(rng):
        compact = rule.compact(log_prob.shape)
        if compact is not None:
            settings: Any = {"beta": beta, "allowed": allowed}
            mine = rule.apply(log_prob.copy(), log_weights, **settings, out=compact)
            whole = rule.apply(log_prob.copy(), log_weights, **settings)
            _close(np.asarray(mine.resp), whole.resp, "the responsibilities are others")
            _close(mine.evidence, whole.evidence, "the evidence is another")
            _close(mine.objective, whole.objective, "the objective is another")


def _ascent(rule: Rule, rng: Rng) -> None:
    """Check that the objective of EM with the rule never falls."""
    _check_trace(_fit(None, rule, "global", 1.0, rng).history)


RULE_LAWS = (_shares, _evidence, _objective, _optimality, _shift, _order, _compactness, _ascent)


def _joints(rng: Rng) -> list[tuple[Array, Array, Array | None, float]]:
    """Return log densities, log weights, which components are allowed, and beta."""
    log_prob = 3 * rng.standard_normal((N, K)) - 40
    log_weights = np.log(rng.dirichlet(np.ones(K)))
    allowed = rng.random((N, K)) < 0.6
    allowed[np.arange(N), rng.integers(K, size=N)] = True
    return [
        (log_prob, log_weights, mask, beta) for mask in (None, allowed) for beta in (0.2, 0.7, 1.0)
    ]


def _apply(
    rule: Rule, log_prob: Array, log_weights: Array, allowed: Array | None, beta: float
) -> Posterior:
    return rule.apply(log_prob.copy(), log_weights, beta=beta, allowed=allowed)


def _free_energy(rule: Rule, resp: Array, log_joint: Array, beta: float) -> Array:
    return np.asarray((resp * log_joint).sum(axis=1) + rule.entropy(resp) / beta)


# -- fits ---------------------------------------------------------------------------------------


def _fit(
    coupling: Coupling | None,
    rule: Rule,
    weights: str,
    eta: float,
    rng: Rng,
    cuts: tuple[int, ...] = (),
) -> Result[MixtureTheta]:
    """Return some rounds on three views of three groups; without a coupling, on one view."""
    group = rng.integers(K, size=N)
    n_views = 1 if coupling is None else VIEWS
    views = tuple(
        2 * rng.standard_normal((K, 2))[group] + rng.standard_normal((N, 2)) for _ in range(n_views)
    )
    emissions = Emissions((Gaussian("diag", reg=0.0),) * n_views)
    resp = 0.5 * np.eye(K)[group] + 0.5 * rng.dirichlet(np.ones(K), size=N)
    prior = WEIGHTS[weights]()
    mixture = Mixture(emissions, K, coupling or Joint(), rule, prior, np.float64)
    part, theta = Partition(views, given=resp), mixture.unknown()
    session: Any = WholeSession(mixture, part, theta)
    if cuts:
        session = PartedSession(mixture, part.cut(cuts), theta)
    return em(mixture, session, eta=Constant(eta), beta=Constant(1.0), max_iter=8, tol=0.0)


def _check_trace(history: list[Any]) -> None:
    trace = np.array([record.free_energy for record in history])
    falls = -np.diff(trace) / np.abs(trace[1:])
    assert falls.max() <= FALL, f"round {falls.argmax() + 2} lost {falls.max():.3g}, relative"


def _close(one: Array, other: Array, what: str) -> None:
    apart = float(np.max(np.abs(np.asarray(one, float) - np.asarray(other, float)), initial=0.0))
    assert np.allclose(one, other, rtol=RTOL, atol=ATOL), f"{what} (by {apart:.3g})"
