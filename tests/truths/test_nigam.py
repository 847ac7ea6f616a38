"""The classifier against a slow transcription of Nigam, McCallum & Mitchell (2006).

Both start the same, by the priming M step or with given responsibilities, and run the same number
of rounds in double precision. They differ by the order of their sums, about 1e-13 in a posterior;
1e-9 leaves room for what the rounds make of that and for nothing else.
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import coem
from coem import MixtureClassifier
from coem.families import Multinomial
from coem.schedules import Geometric
from tests.truths import nigam

M, N_ROWS, N_WORDS = 4, 120, 80
NAMES = {"strings": ("a", "b", "c", "d"), "integers": (3, 10, 20, 41)}
UNKNOWN = {"strings": "", "integers": -1}
ALL = frozenset(range(M))
SMALL = 0.3  # pseudo-counts that leave several components alive where rows weigh little

COMPONENTS = {"one": (1, 1, 1, 1), "three": (3, 3, 3, 3), "dict": (1, 3, 2, 3)}
SCHEDULES = {"quick": (0.02, 2.0, 1.0), "paper": (0.02, 1.01, 1.0)}  # the first is 1 in six steps

every_lam = pytest.mark.parametrize("lam", [1.0, 0.3, 0.0])
every_label = pytest.mark.parametrize("labels", ["few", "some"])
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)
every_components = pytest.mark.parametrize("components", COMPONENTS)
every_kind_of_set = pytest.mark.parametrize("kind", ["sets", "forbidden"])


# -- data -----------------------------------------------------------------------------------------


@cache
def make_corpus():
    """Return Zipf-like documents, their classes and sub-topics; the first half is to train on."""
    rng = np.random.default_rng(2006)
    zipf = 1 / np.arange(1, N_WORDS + 1)
    words = rng.dirichlet(4 * zipf, size=(M, 3))
    words = 0.3 * words + 0.2 * words.mean(axis=1, keepdims=True) + 0.5 * words.mean(axis=(0, 1))
    truth, topic = rng.integers(M, size=2 * N_ROWS), rng.integers(3, size=2 * N_ROWS)
    truth[: 2 * M] = np.arange(2 * M) % M  # the first few documents have all classes
    lengths = 1 + rng.poisson(60, size=2 * N_ROWS)
    rows = [rng.multinomial(*one) for one in zip(lengths, words[truth, topic], strict=True)]
    return np.array(rows, dtype=float), truth, topic


@cache
def make_empty():
    """Return the same with empty documents: labelled, unlabelled and new ones."""
    X, *truth = make_corpus()
    empty = np.zeros(len(X), dtype=bool)
    empty[[0, 7, 41, 50, 51, 90, 130]] = True
    return np.where(empty[:, None], 0, X), *truth


@cache
def allowed_classes(labels):
    """Return the classes that the training documents may belong to."""
    rng, allowed = np.random.default_rng(13), []
    for i, mine in enumerate(make_corpus()[1][:N_ROWS].tolist()):
        others = rng.permutation([a for a in range(M) if a != mine]).tolist()
        known = frozenset([mine])
        if i < {"few": 8, "some": 40, "sets": 16}[labels]:
            allowed.append(known)
        elif labels == "sets" and i < 80:
            allowed.append(known.union(others[: i % M]))  # one to four of them
        else:
            allowed.append(ALL)
    return tuple(allowed)


@cache
def make_start(components, *, faithful=False):
    """Return responsibilities near the truth, or what labels allow of them to be faithful."""
    q = nigam.correspondence(COMPONENTS[components])
    truth, topic = (numbers[:N_ROWS] for numbers in make_corpus()[1:])
    z = np.random.default_rng(5).dirichlet(np.ones(q.shape[1]), size=N_ROWS)
    for i, mine in enumerate(q[truth] == 1):
        z[i, np.flatnonzero(mine)[topic[i] % mine.sum()]] += 1
    if faithful:
        z *= [nigam.allowed_components(classes, q) for classes in allowed_classes("some")]
    return z / z.sum(axis=1, keepdims=True)


def usual_start(components):
    """Return none, which is the priming M step, unless a class has several components."""
    return None if components == "one" else make_start(components)


def plain(allowed, names):
    """Return labels as an array, with the sign for a row without one."""
    labels = [NAMES[names][min(one)] if len(one) == 1 else UNKNOWN[names] for one in allowed]
    return np.array(labels)


def with_sets(allowed, names, kind):
    """Return labels, None and what is allowed or what is forbidden, as an array of objects."""
    y = np.full(len(allowed), None, dtype=object)
    for i, classes in enumerate(allowed):
        if len(classes) == 1 and i % 2:
            y[i] = NAMES[names][min(classes)]
        elif kind == "forbidden" and classes != ALL:
            y[i] = coem.Not(*(NAMES[names][a] for a in ALL - classes))
        elif classes != ALL or i % 2:
            y[i] = {NAMES[names][a] for a in classes}
    return y


# -- comparisons ----------------------------------------------------------------------------------


def check(
    allowed,
    y,
    *,
    names="strings",
    corpus=make_corpus,
    components="one",
    start=None,
    lam=1.0,
    schedule=None,
    alpha=1.0,
):
    """Compare objective, parameters and class posteriors of new and old documents."""
    X, numbers = corpus()[0], COMPONENTS[components]
    q, options = nigam.correspondence(numbers), {}
    twin = {"start": start, "lam": lam, "alpha": alpha}
    if schedule:
        twin["beta"] = nigam.geometric(*SCHEDULES[schedule])
        options["beta"] = Geometric(*SCHEDULES[schedule])
        # What annealing makes of a component (Sec. 3.5.2) is not the matter: it keeps its class.
        options["correspondence"] = dict(enumerate(np.repeat(NAMES[names], numbers).tolist()))
    rounds = 14 if schedule == "paper" else 8
    states = nigam.em(X[:N_ROWS], allowed, q, rounds, **twin)
    if components != "one":
        by_class = dict(zip(NAMES[names], numbers, strict=True))
        options["components_per_class"] = by_class if components == "dict" else numbers[0]
    if start is not None:
        options["init"] = start
    options |= {"unlabeled_weight": lam, "family": Multinomial(alpha=alpha)}
    for number in (1, rounds):
        model = MixtureClassifier(max_iter=number, tol=0, dtype=np.float64, **options)
        model.fit(sp.csr_matrix(X[:N_ROWS]), y)
        assert model.classes_.tolist() == list(NAMES[names])
        assert model.component_classes_.tolist() == q.argmax(axis=0).tolist()
        compare(model, X, states[:number], q)


def compare(model, X, states, q):
    """Compare a fitted model with the states of the twin."""
    trace = [(record.objective, record.beta) for record in model.history_]
    expected = [(state.objective, state.beta) for state in states]
    np.testing.assert_allclose(trace, expected, rtol=1e-11)
    double, last = {"rtol": 0, "atol": 1e-9}, states[-1].model
    np.testing.assert_allclose(model.theta_["view0"], np.log(last.words), **double)
    np.testing.assert_allclose(model.weights_, last.weights, **double)
    proba = nigam.class_proba(X, states[-1], q)
    np.testing.assert_allclose(model.predict_proba(X), proba, **double)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


# -- the twin itself ------------------------------------------------------------------------------


def test_corpus_has_what_the_tests_need():
    """Labels of all classes, sets of all sizes, among empty rows too."""
    for labels in ("few", "some", "sets"):
        allowed = allowed_classes(labels)
        assert frozenset().union(*(one for one in allowed if len(one) == 1)) == ALL
    empty = np.flatnonzero(~make_empty()[0][:N_ROWS].any(axis=1))
    assert {len(one) for one in allowed} == {1, 2, 3, 4} == {len(allowed[i]) for i in empty}


@every_components
@every_lam
@pytest.mark.parametrize("schedule", [None, "quick"], ids=["plain", "annealed"])
def test_comparisons_are_not_idle(components, lam, schedule):
    """There are rows in doubt and all components live."""
    X, q = make_corpus()[0], nigam.correspondence(COMPONENTS[components])
    options = {"lam": lam, "alpha": 1.0 if lam == 1 else SMALL, "start": usual_start(components)}
    if schedule:
        options["beta"] = nigam.geometric(*SCHEDULES[schedule])
    last = nigam.em(X[:N_ROWS], allowed_classes("some"), q, 8, **options)[-1]
    assert (nigam.class_proba(X, last, q).max(axis=1) < 0.99).mean() > 0.15
    assert nigam.e_step(X, last.model, [ALL] * len(X), q, last.beta).sum(axis=0).min() > 1


def test_one_component_per_class_is_naive_bayes():
    """Eq. 3.9 to 3.11 are Eq. 3.5 and 3.6 then; and unlabelled rows of no weight change nothing."""
    X, allowed = make_corpus()[0][:N_ROWS], allowed_classes("some")
    model = nigam.em(X, allowed, np.eye(M), 3, lam=0.0)[-1].model
    n_labelled = sum(one != ALL for one in allowed)
    for j in range(M):
        mine = X[[one == {j} for one in allowed]]
        words = (1 + mine.sum(axis=0)) / (N_WORDS + mine.sum())
        np.testing.assert_allclose(model.words[j], words, rtol=1e-13)
        assert model.weights[j] == pytest.approx((1 + len(mine)) / (M + n_labelled), rel=1e-13)


@every_lam
@every_components
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_twin_climbs(lam, components, beta):
    """The steps maximise the objective, for sets of classes and any weight and temperature too."""
    X, q = make_empty()[0][:N_ROWS], nigam.correspondence(COMPONENTS[components])
    options = {"start": usual_start(components), "lam": lam, "beta": lambda t: beta, "alpha": 0.5}
    trace = [one.objective for one in nigam.em(X, allowed_classes("sets"), q, 8, **options)]
    assert np.diff(trace).min() > -1e-9
    assert trace[-1] > trace[0] + 1e-3


# -- one component per class (Table 3.1) ----------------------------------------------------------


@every_lam
@pytest.mark.parametrize(("labels", "names"), [("few", "integers"), ("some", "strings")])
def test_table_3_1(labels, lam, names):
    allowed = allowed_classes(labels)
    check(allowed, plain(allowed, names), names=names, lam=lam)


@every_lam
def test_pseudo_counts(lam):
    """The words have alpha of them, the classes one."""
    allowed = allowed_classes("some")
    check(allowed, plain(allowed, "strings"), lam=lam, alpha=0.1)


@every_label
@every_lam
@every_schedule
def test_annealed(labels, lam, schedule):
    """Eq. 3.15: the E step after the priming is the first of the schedule."""
    allowed = allowed_classes(labels)
    check(allowed, plain(allowed, "strings"), lam=lam, schedule=schedule)


# -- several (Eq. 3.9 to 3.13) --------------------------------------------------------------------


@every_components
@every_lam
@pytest.mark.parametrize(("names", "faithful"), [("strings", True), ("integers", False)])
def test_given_start(components, lam, names, faithful):
    """The first M step takes all rows as given, whatever the labels allow."""
    allowed, start = allowed_classes("some"), make_start(components, faithful=faithful)
    options = {"lam": lam, "alpha": 1.0 if lam == 1 else SMALL, "names": names}
    check(allowed, plain(allowed, names), components=components, start=start, **options)


@pytest.mark.parametrize("components", ["three", "dict"])
@every_label
@every_schedule
def test_several_components_annealed(components, labels, schedule):
    """The E step of the first round is the first of the schedule: there is no priming."""
    allowed, start = allowed_classes(labels), make_start(components)
    options = {"components": components, "start": start, "schedule": schedule}
    check(allowed, plain(allowed, "strings"), **options)


# -- sets of classes ------------------------------------------------------------------------------


@every_lam
@pytest.mark.parametrize(("kind", "names"), [("sets", "integers"), ("forbidden", "strings")])
def test_sets_of_classes(kind, lam, names):
    allowed = allowed_classes("sets")
    check(allowed, with_sets(allowed, names, kind), names=names, lam=lam)


@every_kind_of_set
@every_components
@every_schedule
def test_sets_of_classes_annealed(kind, components, schedule):
    allowed = allowed_classes("sets")
    options = {"components": components, "start": usual_start(components), "schedule": schedule}
    check(allowed, with_sets(allowed, "strings", kind), lam=0.3, alpha=SMALL, **options)


# -- empty documents ------------------------------------------------------------------------------


@every_components
@pytest.mark.parametrize("schedule", [None, "quick"], ids=["plain", "annealed"])
@pytest.mark.parametrize("labels", ["few", "sets"])
def test_empty_documents(components, schedule, labels):
    """They have no say in training, and the class prior for a posterior."""
    allowed = allowed_classes(labels)
    y = with_sets(allowed, "strings", "sets") if labels == "sets" else plain(allowed, "strings")
    options = {"components": components, "start": usual_start(components), "schedule": schedule}
    check(allowed, y, corpus=make_empty, lam=0.3, alpha=SMALL, **options)
