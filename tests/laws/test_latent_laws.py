"""Laws of the protocols (`coem.protocols`), for every latent structure of the registry.

They say what an engine may rely on: a state can be made again at any moment of a round, the M step
needs no more than `without` keeps, nothing is changed behind anybody's back, and what claims to add
up does.
"""

import inspect
import pickle
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from coem.coupling import COUPLINGS
from coem.em import em
from coem.engine import LocalEngine
from coem.families import Gaussian, MixtureOf, Multinomial, VonMisesFisher
from coem.kernels.aspect import Pairs
from coem.latent.aspect import Aspect, AspectData
from coem.latent.block import Partition
from coem.latent.chain import Chain
from coem.latent.emissions import Emissions
from coem.latent.markov import Markov
from coem.latent.mixture import Mixture
from coem.latent.parted_sphere import PartedSphere
from coem.latent.registry import ADDITIVE, WHOLE
from coem.latent.sequences import Sequences
from coem.latent.sphere import Sphere
from coem.latent.traffic import TrafficFlow
from coem.latent.weights import WEIGHTS
from coem.posterior import RULES
from coem.protocols import AdditiveLatent, Clock, Latent, Session
from coem.schedules import Constant, Linear
from tests.engines import ENGINES, uneven
from tests.pairs import pairwise

N, K = 72, 3
TOL = {"rtol": 1e-9, "atol": 1e-11}


def rows(seed=0):
    """Return three views of the same three groups: counts, points and directions."""
    rng = np.random.default_rng(seed)
    group = rng.integers(K, size=N)
    words = rng.poisson(np.exp(rng.standard_normal((K, 12)))[group]).astype(float)
    points = 2 * rng.standard_normal((K, 3))[group] + rng.standard_normal((N, 3))
    unit = rng.standard_normal((K, 4))[group] + 0.5 * rng.standard_normal((N, 4))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return group, (sp.csr_matrix(words), points, unit)


FAMILIES = (Multinomial(dtype=np.float64), Gaussian("diag", reg=0), VonMisesFisher(20.0))
LISTED = (Multinomial(dtype=np.float64, dense_cells=0), *FAMILIES[1:])
HIDDEN = (MixtureOf(FAMILIES[0]), Gaussian("diag"), MixtureOf(VonMisesFisher(20.0)))


def mixture(coupling, rule, weights, *, start, blanks=False, labels=False, families=FAMILIES):
    """Return a mixture over three views, its rows, and where it starts."""
    group, views = rows()
    rng = np.random.default_rng(1)
    latent = Mixture(
        Emissions(families), K, COUPLINGS[coupling], RULES[rule], WEIGHTS[weights](0.5), np.float64
    )
    empty = rng.random((N, 3)) < 0.15 if blanks else None
    allowed = None
    if labels:
        known = rng.random(N) < 0.2
        allowed = ~known[:, np.newaxis] | (np.arange(K) == group[:, np.newaxis])
    weight = rng.gamma(2.0, size=N) if blanks else None
    resp = 0.4 * np.eye(K)[group] + 0.6 * rng.dirichlet(np.ones(K), size=N)
    given = {"shares": resp, "labels": resp.argmax(axis=1), "parameters": None}[start]
    part = Partition(views, empty, weight, allowed, given, block_rows=32)
    if start != "parameters":
        return latent, part, latent.unknown()
    # An E step before the first round, as from a fitted model.
    theta, first = latent.unknown(), part.starting_from(resp)
    clock = Clock(0, (1.0,) * latent.n_turns, 1.0)
    for turn in range(latent.n_turns):
        theta = latent.maximise(first, theta, turn, clock, latent.infer(first, theta, clock, None))
    return latent, part, theta


LENGTHS = (1, 9, 17, 2, 30, 13)


def chain(hard, start, *, blanks=False, labels=False, left_right=False, families=FAMILIES):
    """Return a chain over three views, its sequences, and where it starts."""
    group, views = rows()
    rng = np.random.default_rng(1)
    follow = np.triu(np.ones((K, K), dtype=bool)) if left_right else np.ones((K, K), dtype=bool)
    prior = Markov(rng.gamma(1.0, size=K), rng.gamma(1.0, size=(K, K)), follow[0], follow)
    latent = Chain(Emissions(families), K, prior, hard)
    empty = rng.random((N, 3)) < 0.3 if blanks else None
    if blanks:
        empty[4:7] = True
    weight = np.repeat(rng.gamma(2.0, size=len(LENGTHS)), LENGTHS) if blanks else None
    allowed = None
    if labels:
        allowed = (rng.random(N) > 0.2)[:, np.newaxis] | (np.arange(K) == group[:, np.newaxis])
    resp = 0.4 * np.eye(K)[group] + 0.6 * rng.dirichlet(np.ones(K), size=N)
    given = {"shares": resp, "labels": resp.argmax(axis=1), "parameters": None, "emissions": resp}
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    part = Sequences(
        views, empty, weight, allowed, given[start], block_rows=16, offsets=offsets, first=5
    )
    if start == "emissions":
        return latent, part, latent.unknown(prior.uniform())
    if start != "parameters":
        return latent, part, latent.unknown()
    first, clock = part.starting_from(resp), Clock(0, (1.0,), 1.0)
    state = latent.infer(first, latent.unknown(), clock, None)
    return latent, part, latent.maximise(first, latent.unknown(), 0, clock, state)


def sphere(n_views, kind=Sphere, *, n_clusters=K, blanks=False, start="parameters"):
    group, views = rows()
    rng = np.random.default_rng(1)
    unit = VonMisesFisher(dtype=np.float64)
    encoded = tuple(unit.split(X)[0] for X in (views[0], views[2])[-n_views:])
    latent = kind(n_views, n_clusters)
    empty = rng.random((N, n_views)) < 0.2 if blanks else None
    weight = rng.integers(3, size=N).astype(float) if blanks else None
    given = group if start == "labels" else None
    part = Partition(encoded, empty, weight, None, given, block_rows=32)
    if start == "labels":
        return latent, part, latent.unknown()
    first = encoded[-1][:n_clusters]
    return latent, part, latent.begin(first.toarray() if sp.issparse(first) else first)


def aspect(beta_priors):
    counts = rows()[1][0]
    data = AspectData(Pairs.of(counts, None, np.float64))
    latent = Aspect(K, *beta_priors, np.float64)
    return latent, data, latent.random(data.pairs, np.random.default_rng(0))


def traffic():
    counts = np.random.default_rng(0).poisson(1.0, size=(30, 30))
    data = AspectData(Pairs.of(counts, None, np.float64))
    latent = TrafficFlow(K, 0.1, np.float64)
    return latent, data, latent.random(data.pairs, np.random.default_rng(0))


MIXTURES = {
    f"mixture {coupling} {rule} {weights} {start}": (coupling, rule, weights, start)
    for coupling, rule, weights, start in [
        *pairwise(COUPLINGS, RULES, WEIGHTS, ("shares", "labels", "parameters")),
        ("co-em", "soft", "global", "parameters"),  # which other laws use, too
        ("joint", "soft", "uniform", "parameters"),
    ]
}
CASES = {
    **{name: lambda c=case: mixture(*c[:3], start=c[3]) for name, case in MIXTURES.items()},
    "mixture with blanks": lambda: mixture("co-em", "soft", "global", start="shares", blanks=True),
    "mixture with labels": lambda: mixture("co-em", "soft", "global", start="shares", labels=True),
    "mixture joint, blanks": lambda: mixture(
        "joint", "soft", "global", start="labels", blanks=True
    ),
    **{
        f"chain {'hard' if hard else 'soft'} {start}": lambda c=(hard, start): chain(*c)
        for hard, start in product((False, True), ("shares", "labels", "parameters", "emissions"))
    },
    "chain with blanks": lambda: chain(False, "shares", blanks=True),
    "chain with labels": lambda: chain(False, "shares", labels=True),
    "chain left-right": lambda: chain(False, "parameters", left_right=True),
    "chain hard, blanks": lambda: chain(True, "shares", blanks=True),
    "mixture of mixtures": lambda: mixture(
        "co-em", "soft", "global", start="shares", blanks=True, families=HIDDEN
    ),
    "mixture of mixtures, joint": lambda: mixture(
        "joint", "soft", "global", start="parameters", families=HIDDEN
    ),
    "mixture of listed words": lambda: mixture(
        "co-em", "soft", "global", start="shares", blanks=True, families=LISTED
    ),
    "chain of mixtures": lambda: chain(False, "shares", blanks=True, families=HIDDEN),
    "sphere one view": lambda: sphere(1),
    "sphere two views": lambda: sphere(2),
    "parted sphere one view": lambda: sphere(1, PartedSphere),
    "parted sphere two views": lambda: sphere(2, PartedSphere),
    "parted sphere with blanks": lambda: sphere(2, PartedSphere, blanks=True),
    "parted sphere labels": lambda: sphere(2, PartedSphere, start="labels"),
    "parted sphere many clusters": lambda: sphere(2, PartedSphere, n_clusters=12, blanks=True),
    "aspect": lambda: aspect((0.0, 0.0)),
    "aspect with priors": lambda: aspect((0.2, 0.1)),
    "traffic": traffic,
}
every_case = pytest.mark.parametrize("name", CASES)
additive_case = pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] in ADDITIVE])


def clocks(n_turns, n_rounds=3):
    """Yield (turn, clock) for all turns of some rounds, and (None, clock) at their ends."""
    betas = (0.5, 0.7, 1.0, 1.0, 1.0)
    for t in range(1, n_rounds + 1):
        eta = 1.0 - 0.2 * t
        for turn in range(n_turns):
            now = (betas[t],) * turn + (betas[t - 1],) * (n_turns - turn)
            yield turn, Clock(t, now, eta)
        yield None, Clock(t, (betas[t],) * n_turns, eta)


def flat(value):
    """Return all numbers of a nested value as one array."""
    if value is None or isinstance(value, str | slice | np.dtype):
        return np.zeros(0)
    if sp.issparse(value):
        return flat((value.indptr, value.indices, value.data))
    if isinstance(value, tuple | list):
        return np.concatenate([np.zeros(0), *(flat(item) for item in value)])
    if is_dataclass(value):
        return flat(tuple(getattr(value, field.name) for field in fields(value)))
    return np.asarray(value, dtype=np.float64).ravel()


def close(one, other):
    np.testing.assert_allclose(flat(one), flat(other), **TOL)


def test_every_latent_structure_has_a_case():
    assert {name.split()[0] for name in CASES} == {*ADDITIVE, *WHOLE}


@every_case
def test_it_has_the_methods_of_its_protocol_and_their_parameters(name):
    latent, _, theta = CASES[name]()
    protocol = AdditiveLatent if name.split()[0] in ADDITIVE else Latent
    for method, declared in inspect.getmembers(protocol, inspect.isfunction):
        if method.startswith("_"):
            continue
        mine = list(inspect.signature(getattr(latent, method)).parameters)
        assert mine == list(inspect.signature(declared).parameters)[1:], method
    assert isinstance(latent.n_turns, int)
    assert isinstance(theta.started, bool)


@pytest.mark.parametrize("name", WHOLE)
def test_what_needs_all_rows_in_one_place_does_not_claim_to_add(name):
    assert not hasattr(WHOLE[name], "gather")
    assert not hasattr(WHOLE[name], "estimate")


@every_case
def test_a_lost_state_can_be_made_again_at_any_moment(name):
    latent, part, theta = CASES[name]()
    state = None
    for turn, clock in clocks(latent.n_turns):
        state = latent.infer(part, theta, clock, state)
        again = latent.infer(part, theta, clock, None)
        if turn is None:
            kept, made = (latent.summarise(part, theta, clock, s) for s in (state, again))
            close(kept, made)
            close(latent.value(kept, theta), latent.value(made, theta))
        else:
            made = latent.maximise(part, theta, turn, clock, again)
            # Direction of sums are kept as sums: compare what they lead to.
            theta = latent.maximise(part, theta, turn, clock, state)
            if name.split()[0] != "sphere":
                close(theta, made)


@every_case
def test_the_m_step_needs_no_more_than_without_keeps(name):
    latent, part, theta = CASES[name]()
    for turn, clock in clocks(latent.n_turns, 2):
        if turn is None:
            continue
        state = latent.infer(part, theta, clock, None)
        poorer = latent.maximise(part, theta.without(turn), turn, clock, state)
        theta = latent.maximise(part, theta, turn, clock, latent.infer(part, theta, clock, None))
        if name.split()[0] != "sphere":
            close(poorer, theta)


@every_case
def test_partitions_and_parameters_are_not_changed(name):
    latent, part, theta = CASES[name]()
    state = None
    for turn, clock in clocks(latent.n_turns, 2):
        before = flat(part).copy(), flat(theta).copy()
        state = latent.infer(part, theta, clock, state)
        new = theta
        if turn is None:
            latent.value(latent.summarise(part, theta, clock, state), theta)
        else:
            new = latent.maximise(part, theta, turn, clock, state)
        np.testing.assert_array_equal(flat(part), before[0])
        np.testing.assert_array_equal(flat(theta), before[1])
        theta = new


@additive_case
def test_everything_can_be_pickled(name):
    latent, part, theta = CASES[name]()
    for turn, clock in clocks(latent.n_turns, 1):
        values = latent, part, theta, clock, latent.infer(part, theta, clock, None)
        latent, part, theta, clock, state = pickle.loads(pickle.dumps(values))
        if turn is not None:
            stats = latent.gather(part, theta, turn, clock, state)
            theta = latent.estimate(pickle.loads(pickle.dumps(stats)), theta, turn)
    assert theta.started


@additive_case
@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_statistics_and_summaries_add(name, n_parts):
    latent, part, theta = CASES[name]()
    parts = part.cut(uneven(N, n_parts))
    assert sum(p.n_rows for p in parts) == N
    for turn, clock in clocks(latent.n_turns):
        states = [latent.infer(p, theta, clock, None) for p in parts]
        whole = latent.infer(part, theta, clock, None)
        pairs = list(zip(parts, states, strict=True))
        if turn is None:
            first, *rest = [latent.summarise(p, theta, clock, s) for p, s in pairs]
            close(sum(rest, first), latent.summarise(part, theta, clock, whole))
            continue
        first, *rest = [latent.gather(p, theta, turn, clock, s) for p, s in pairs]
        close(sum(rest, first), latent.gather(part, theta, turn, clock, whole))
        new = latent.estimate(sum(rest, first), theta, turn)
        theta = latent.maximise(part, theta, turn, clock, whole)
        close(new, theta)


@additive_case
def test_statistics_are_added_to_a_total(name):
    """The total is that of the sum, to rounding, and neither rows nor states are changed."""
    latent, part, theta = CASES[name]()
    parts = part.cut(uneven(N, 3))
    for turn, clock in clocks(latent.n_turns, 2):
        states = [latent.infer(p, theta, clock, None) for p in parts]
        pairs = list(zip(parts, states, strict=True))
        if turn is None:
            continue
        first, *rest = [latent.gather(p, theta, turn, clock, s) for p, s in pairs]
        expected, total = sum(rest, first), None
        before = [flat(pair).copy() for pair in pairs]
        for p, s in pairs:
            total = latent.gather(p, theta, turn, clock, s, total)
        close(total, expected)
        for pair, untouched in zip(pairs, before, strict=True):
            np.testing.assert_array_equal(flat(pair), untouched)
        theta = latent.estimate(total, theta, turn)


ROUNDS = {"eta": Linear(1.0, 0.0, 4), "beta": Linear(0.4, 1.0, 3), "max_iter": 5, "tol": 0.0}


@cache
def fit_on_one_engine(name):
    """Return what all engines must find."""
    latent, part, theta = CASES[name]()
    with LocalEngine(1) as local:
        return em(latent, local.open_parts(latent, [part], theta), **ROUNDS)


@additive_case
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree(name, engine):
    """Where the rows live, and how often a state is lost, does not change the parameters."""
    latent, part, theta = CASES[name]()
    truth = fit_on_one_engine(name)
    with ENGINES[engine]() as other:
        session = other.open_parts(latent, [part], theta)
        result = em(latent, session, **ROUNDS)
    close(result.theta, truth.theta)
    for mine, theirs in zip(result.history, truth.history, strict=True):
        assert mine.objective == pytest.approx(theirs.objective, rel=1e-10)
        assert mine.free_energy == pytest.approx(theirs.free_energy, rel=1e-10)
    if "forgets" in engine:
        assert session.n_lost > 0


@pytest.mark.parametrize("blanks", [False, True])
@pytest.mark.parametrize("n_clusters", [K, 12, 20])
@pytest.mark.parametrize("n_views", [1, 2])
def test_both_forms_of_spherical_k_means_are_the_same(n_views, n_clusters, blanks):
    case = {"n_clusters": n_clusters, "blanks": blanks}
    rounds = {"eta": Constant(1.0), "beta": Constant(1.0), "max_iter": 8, "tol": 0.0}
    moves = {}
    for kind in (Sphere, PartedSphere):
        latent, part, theta = sphere(n_views, kind, **case)
        seen = moves[kind] = []
        monitor = lambda record, summary, seen=seen: seen.append(  # noqa: E731
            (*record.log_likelihood, record.agreement_rate, *flat(summary.moves))
        )
        with LocalEngine(1) as engine:
            em(latent, engine.open(latent, part, theta), **rounds, monitor=monitor)
    for one, other in zip(*moves.values(), strict=True):
        np.testing.assert_allclose(one, other, **TOL)
    if n_clusters == 20 and n_views == 2:
        assert any(len(seen) > n_views + 1 for seen in moves[Sphere])


@pytest.mark.parametrize("name", [n for n in CASES if n.split()[0] in WHOLE])
def test_threads_do_not_change_a_bit(name):
    latent, part, theta = CASES[name]()
    settings = {"eta": Linear(1.0, 1.0, 1), "beta": Linear(1.0, 1.0, 1), "max_iter": 5, "tol": 0.0}
    found = []
    for n_jobs in (1, 2):
        with LocalEngine(n_jobs) as engine:
            session = engine.open(latent, part, theta)
            assert all(hasattr(session, member) for member in members(Session))
            found.append(em(latent, session, **settings).history)
    for one, two in zip(*found, strict=True):
        assert one.objective == two.objective


def members(protocol):
    return [name for name in vars(protocol) if not name.startswith("_")]
