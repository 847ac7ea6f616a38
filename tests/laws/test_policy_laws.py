"""Laws of the couplings and posterior rules, for all that are registered, and for broken ones."""

from dataclasses import dataclass

import numpy as np
import pytest

from coem import MixtureClusterer
from coem.coupling import COUPLINGS, CoEM, Joint, as_coupling
from coem.coupling import register as register_coupling
from coem.kernels.one_hot import OneHot
from coem.laws import (
    COUPLING_LAWS,
    RULE_LAWS,
    PolicyLawError,
    check_coupling,
    check_rule,
)
from coem.posterior import RULES, Hard, Soft, as_rule
from coem.posterior import register as register_rule


@pytest.mark.parametrize("name", COUPLINGS)
@pytest.mark.parametrize("seed", range(3))
def test_couplings_keep_the_laws(name, seed):
    check_coupling(COUPLINGS[name], seed)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", range(3))
def test_rules_keep_the_laws(name, seed):
    check_rule(RULES[name], seed)


# -- every law can be broken -----------------------------------------------------------------------


class TwoViewsTwice(CoEM):
    def slots(self, n_views):
        return ((0,), *super().slots(n_views)[:-1])


class Backwards(CoEM):
    def slots(self, n_views):
        return super().slots(n_views)[::-1]


class Heavier(CoEM):
    def lesson(self, posteriors, turn, eta, empty):
        return 1.1 * super().lesson(posteriors, turn, eta, empty)


class Sharper(CoEM):
    def lesson(self, posteriors, turn, eta, empty):
        lesson = super().lesson(posteriors, turn, eta, empty) ** 2
        return lesson / np.maximum(lesson.sum(axis=1, keepdims=True), 1e-300)


class Neighbours(CoEM):
    """It mixes in the next row of views that disagree."""

    def lesson(self, posteriors, turn, eta, empty):
        lesson = super().lesson(posteriors, turn, eta, empty)
        there = lesson.sum(axis=1, keepdims=True) > 0
        own = posteriors[turn] - posteriors.mean(axis=0)
        return np.where(there, np.abs(lesson + 1e-3 * np.roll(own, 1, axis=0)), 0.0)


class Favourite(CoEM):
    """It moves what views disagree on to the first component."""

    def lesson(self, posteriors, turn, eta, empty):
        lesson = super().lesson(posteriors, turn, eta, empty).copy()
        apart = 0.1 * np.abs(posteriors - posteriors.mean(axis=0)).max(axis=0)
        moved = np.minimum(apart[:, 1], lesson[:, 1])
        lesson[:, 1] -= moved
        lesson[:, 0] += moved
        return lesson


class HearsTheEmpty(CoEM):
    def lesson(self, posteriors, turn, eta, empty):
        lesson = super().lesson(posteriors, turn, eta, None)
        return lesson if empty is None else lesson * ~empty[:, turn, np.newaxis]


class ClaimsAscent(CoEM):
    def never_falls(self, eta):
        return True


BROKEN = {
    "slots": TwoViewsTwice(),
    "distribution": Heavier(),
    "consensus": Sharper(),
    "rows": Neighbours(),
    "symmetry": Favourite(),
    "emptiness": HearsTheEmpty(),
    "monotony": ClaimsAscent(),
}


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_coupling_is_found(law):
    with pytest.raises(PolicyLawError, match=f"breaks the law of {law}"):
        run_law(COUPLING_LAWS, law, BROKEN[law])


def run_law(laws, name, policy):
    """Run one law by itself: a policy may break several."""
    from coem.laws import _check

    _check(policy, tuple(law for law in laws if law.__name__ == f"_{name}"), 0)


def test_slots_must_be_in_the_order_of_the_views():
    with pytest.raises(PolicyLawError, match="breaks the law of slots"):
        check_coupling(Backwards())


@dataclass(frozen=True)
class Lazy(Soft):
    """Responsibilities of another temperature, and the objective that they have."""

    def apply(self, log_prob, log_weights, *, beta=1.0, **settings):
        log_joint = log_prob + log_weights
        true = Soft().apply(log_prob.copy(), log_weights, beta=beta, **settings)
        lazy = Soft().apply(log_prob, log_weights, beta=0.9 * beta, **settings)
        value = (lazy.resp * log_joint).sum(axis=1) + self.entropy(lazy.resp) / beta
        return true._replace(resp=lazy.resp, objective=value)


def test_a_rule_beside_its_maximum_is_found():
    with pytest.raises(PolicyLawError, match="breaks the law of optimality"):
        check_rule(Lazy())


@dataclass(frozen=True)
class Wrong(Soft):
    """A soft rule of which one thing is wrong."""

    change: object = None

    def apply(self, log_prob, log_weights, **settings):
        return self.change(super().apply(log_prob, log_weights, **settings))


@dataclass(frozen=True)
class LosesTheLastLabel(Hard):
    """A rule whose compact form is wrong."""

    def apply(self, log_prob, log_weights, *, out=None, **settings):
        result = super().apply(log_prob, log_weights, out=out, **settings)
        if isinstance(out, OneHot):
            out.labels[-1] = (out.labels[-1] + 1) % out.n_components
        return result


WRONG = {
    "shares": Wrong(lambda p: p._replace(resp=2 * p.resp)),
    "evidence": Wrong(lambda p: p._replace(evidence=p.evidence + 0.1)),
    "objective": Wrong(lambda p: p._replace(objective=p.objective + 0.1)),
    "optimality": Wrong(lambda p: p._replace(resp=p.resp[:, ::-1], objective=p.objective - 20)),
    "shift": Wrong(lambda p: p._replace(objective=np.zeros(len(p.resp)))),
    "order": Wrong(lambda p: p._replace(resp=np.roll(p.resp, 1, axis=0))),
    "compactness": LosesTheLastLabel(),
    "ascent": Wrong(lambda p: p._replace(objective=-p.evidence)),
}


@pytest.mark.parametrize("law", WRONG)
def test_a_broken_rule_is_found(law):
    with pytest.raises(PolicyLawError, match=f"breaks the law of {law}"):
        run_law(RULE_LAWS, law, WRONG[law])


def test_every_law_has_a_policy_that_breaks_it():
    assert {law.__name__[1:] for law in RULE_LAWS} == set(WRONG)
    # What breaks additivity breaks the law of rows first: a lesson is per row by its signature.
    assert {law.__name__[1:] for law in COUPLING_LAWS} - {"partitions"} == set(BROKEN)


# -- names -----------------------------------------------------------------------------------------


@pytest.fixture
def registries():
    kept = dict(COUPLINGS), dict(RULES)
    yield
    for registry, before in zip((COUPLINGS, RULES), kept, strict=True):
        registry.clear()
        registry.update(before)


@pytest.mark.usefixtures("registries")
def test_one_registration_is_enough_for_an_estimator():
    rng = np.random.default_rng(0)
    views = [rng.poisson(2.0, size=(40, 6)) + 1 for _ in range(2)]
    register_coupling("apart", CoEM())
    register_rule("sharp", Hard())
    options = {"init": "random", "random_state": 0, "max_iter": 3, "tol": 0}
    named = MixtureClusterer(2, coupling="apart", posterior="sharp", **options).fit(views)
    given = MixtureClusterer(2, coupling=CoEM(), posterior=Hard(), **options).fit(views)
    plain = MixtureClusterer(2, coupling="co-em", posterior="hard", **options).fit(views)
    assert named.objective_ == given.objective_ == plain.objective_


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match="coupling must be a Coupling, got 'co-em'"):
        register_coupling("again", "co-em")
    with pytest.raises(TypeError, match="rule must be a Rule, got 'soft'"):
        register_rule("again", "soft")
    with pytest.raises(ValueError, match="coupling must be one of 'co-em', 'joint', got 3"):
        as_coupling(3)
    with pytest.raises(ValueError, match="posterior must be one of 'soft', 'hard', got 'x'"):
        as_rule("x")
    assert as_coupling(Joint()) == Joint()
    assert as_rule("hard") == Hard()
