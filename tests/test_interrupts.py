"""Ctrl-C: threads that work for the interrupted one begin no further round, and nothing is lost."""

import _thread
import pickle
import signal
import threading
import time
import weakref
from functools import partial
from operator import methodcaller
from threading import Event

import numpy as np
import pytest
from sklearn.base import clone

from coem import (
    AspectModel,
    HiddenMarkovModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    PooledClassifier,
    SphericalKMeans,
    TrafficModel,
)
from coem.engine import LocalEngine
from coem.engine.sessions import WholeSession
from coem.families import Gaussian
from coem.io._lock import FolderLock
from coem.kernels import threads, words
from coem.selection import choose_k, doctor, stability

LONG = 400  # rounds: a test fails, and does not hang, if nobody is stopped
MAIN = threading.main_thread()


def wait_until(true, what):
    for _ in range(5000):
        if true():
            return
        time.sleep(0.002)
    raise AssertionError(f"waited in vain until {what}")


def called_off():
    flag = threads._flag.get()
    return flag is not None and flag.is_up


class Steps:
    """Counts the M steps of every thread, and calls `interrupt` before each."""

    def __init__(self, monkeypatch, interrupt):
        self.count, self.interrupt = {}, interrupt
        m_step = WholeSession.m_step

        def counted(session, turn, clock):
            own = threading.current_thread()
            self.count[own] = self.count.get(own, 0) + 1
            self.interrupt(self)
            m_step(session, turn, clock)

        monkeypatch.setattr(WholeSession, "m_step", counted)

    @property
    def own(self):
        return self.count.get(MAIN, 0)

    @property
    def of_helpers(self):
        own = [*self.count.items()]  # at once: another thread may begin meanwhile
        return sum(n for thread, n in own if thread is not MAIN)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 80)
    counts = rng.poisson(np.exp(rng.standard_normal((3, 12)))[group]) + 1
    dense = rng.standard_normal((80, 3)) + 3 * group[:, None]
    labels = np.where(rng.random(80) < 0.4, group, -1)
    return {"counts": counts, "dense": dense, "labels": labels, "square": counts @ counts.T}


def fits(data, **runs):
    """Return the estimators with restarts, and what they are fitted to."""
    common = {"random_state": 0, "max_iter": LONG, "tol": 0.0}
    diag = {"family": Gaussian("diag")}
    return {
        "clusterer": (MixtureClusterer(3, init="random", **common, **runs), [data["counts"]]),
        "k-means start": (MixtureClusterer(3, **common, **runs), [data["counts"]]),
        "Gaussians": (MixtureClusterer(3, **diag, **common, **runs), [data["dense"]]),
        "classifier": (
            MixtureClassifier(components_per_class=2, **common, **runs),
            [data["counts"], data["labels"]],
        ),
        "chain": (HiddenMarkovModel(2, **diag, **common, **runs), [data["dense"]]),
        "aspects": (aspects(common, runs), [data["counts"]]),
        "coupled aspects": (
            aspects(common, runs).set_params(coupling="xy", n_runs=2),
            [data["counts"]],
        ),
        "traffic": (traffic(common, runs), [data["square"]]),
    }


def aspects(common, runs):
    return AspectModel(3, **common, n_runs=runs.get("n_init", 1), n_jobs=runs.get("n_jobs"))


def traffic(common, runs):
    return TrafficModel(3, **common, n_runs=runs.get("n_init", 1), n_jobs=runs.get("n_jobs"))


CASES = ["clusterer", "k-means start", "Gaussians", "classifier", "chain", "aspects"]
CASES += ["coupled aspects", "traffic"]


@pytest.mark.parametrize("case", CASES)
def test_restarts_in_threads_begin_at_most_one_more_step(case, data, monkeypatch):
    model, args = fits(data, n_init=2, n_jobs=2)[case]
    seen = {}

    def interrupt(steps):
        if threading.current_thread() is MAIN and steps.own == 20:
            wait_until(lambda: steps.of_helpers > 3, "the helper works")
            seen["before"] = steps.of_helpers
            signal.raise_signal(signal.SIGINT)
        elif threading.current_thread() is not MAIN and steps.of_helpers == 5:
            wait_until(called_off, "the helper is called off")

    steps = Steps(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*args)
    assert steps.of_helpers <= seen["before"] + 1
    assert not any(name.endswith("_") for name in vars(model) if name[0] != "_")


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_estimator_keeps_its_model_and_can_be_fitted(case, data, monkeypatch):
    model, args = fits(data)[case]
    model.set_params(max_iter=6).fit(*args)
    before = dict(vars(model))
    told = pickle.dumps({name: value for name, value in before.items() if name[-1] == "_"})

    def interrupt(steps):
        if steps.own == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        Steps(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(max_iter=5).fit(*args)
    after = dict(vars(model)) | {"max_iter": 6}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before if name != "max_iter")
    assert told == pickle.dumps({name: after[name] for name in before if name[-1] == "_"})
    again, _ = fits(data)[case]
    again.set_params(max_iter=6).fit(*args)
    model.set_params(max_iter=6).fit(*args)
    assert [r.objective for r in model.history_] == [r.objective for r in again.history_]


class Watched(weakref.ref):
    """A reference that can have attributes."""


def when_freed(thing):
    """Return a reference that asks for Ctrl-C when `thing` is freed.

    It calls no function of Python for that: the one that is called next hears of it.
    """
    told = Watched(thing, methodcaller("ask"))
    told.ask = partial(_thread.interrupt_main, signal.SIGINT)
    return told


@pytest.mark.parametrize("case", ["clusterer", "classifier"])
@pytest.mark.parametrize("purpose", ["table", "scores"])
def test_ctrl_c_while_memory_is_released_stops_the_fit(case, purpose, data, monkeypatch):
    model, args = fits(data)[case]
    recycled, made, told = threads.recycled, [], []

    def watching(size, dtype, what="table"):
        array = recycled(size, dtype, what)
        made.append(what)
        if what == purpose and made.count(what) == 5:
            told.append(when_freed(array))
        return array

    monkeypatch.setattr(threads, "recycled", watching)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*args)
    assert told[0]() is None
    assert not any(name.endswith("_") for name in vars(model) if name[0] != "_")


def test_ctrl_c_while_a_lock_ends_is_heard(tmp_path):
    last = {1}
    told = when_freed(last)
    lock = FolderLock(tmp_path)
    lock.take()
    held = [lock, last]  # which are freed from the end
    del lock, last
    with pytest.raises(KeyboardInterrupt):
        held.clear()
    assert told() is None
    again = FolderLock(tmp_path)
    again.take()
    again.release()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_spherical_k_means_is_stopped(n_jobs, data, monkeypatch):
    unit = data["dense"] / np.linalg.norm(data["dense"], axis=1, keepdims=True)
    params = {"n_clusters": 3, "n_init": 4, "random_state": 0}

    def interrupt(steps):
        if threading.current_thread() is MAIN:
            signal.raise_signal(signal.SIGINT)
        else:  # a helper could do all runs before this thread has its turn
            wait_until(called_off, "the runs are called off")

    with monkeypatch.context() as patch:
        Steps(patch, interrupt)
        model = SphericalKMeans(**params, n_jobs=n_jobs)
        with pytest.raises(KeyboardInterrupt):
            model.fit(unit)
    assert not hasattr(model, "labels_")
    expected = SphericalKMeans(**params).fit(unit)
    np.testing.assert_array_equal(model.fit(unit).labels_, expected.labels_)


@pytest.mark.parametrize("compare", [choose_k, stability])
def test_fits_side_by_side_begin_at_most_one_more_step(compare, data, monkeypatch):
    seen = {}

    def interrupt(steps):
        if sum(steps.count.values()) >= 30:
            if not seen:
                seen["before"] = sum(steps.count.values())
                _thread.interrupt_main()
            wait_until(called_off, "the fits are called off")

    steps = Steps(monkeypatch, interrupt)
    model = MixtureClusterer(3, init="random", max_iter=LONG, tol=0.0)
    run = {"n_jobs": 2, "random_state": 0}
    run |= {"sizes": [2, 3]} if compare is choose_k else {"n_runs": 4}
    with pytest.raises(KeyboardInterrupt):
        compare(model, data["counts"], **run)
    assert sum(steps.count.values()) <= seen["before"] + 2  # one for each thread
    after = sum(steps.count.values())
    time.sleep(0.02)
    assert sum(steps.count.values()) == after, "a fit goes on behind the back of its caller"


@pytest.mark.parametrize("left", [None, 2])  # in the fits to folds, and in the restarts
def test_the_doctor_is_stopped_at_the_next_step(left, data, monkeypatch):
    given = data["counts"], data["labels"]
    how = {"n_splits": 2, "n_repeats": 1, "n_restarts": 2, "random_state": 0}
    model = MixtureClassifier(max_iter=4, tol=0.0, random_state=0)
    with monkeypatch.context() as patch:
        whole = Steps(patch, lambda steps: None)
        expected = doctor(clone(model), *given, **how)
    before, last = dict(vars(model)), 5 if left is None else whole.own - left

    def interrupt(steps):
        if steps.own == last:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        steps = Steps(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            doctor(model, *given, **how)
    assert steps.own == last
    assert vars(model) == before  # it is not fitted, and has its parameters
    assert repr(doctor(model, *given, **how)) == repr(expected)
    np.testing.assert_array_equal(model.fit(*given).labels_, clone(model).fit(*given).labels_)


def test_a_helper_ends_at_the_next_item_of_its_task():
    begun, started = [], Event()

    def task(number):
        if threading.current_thread() is MAIN:
            assert started.wait(10)
            raise KeyboardInterrupt
        threads.spread(item, range(1000))

    def item(i):
        begun.append(i)
        started.set()
        wait_until(called_off, "the helper is called off")

    with LocalEngine(2) as engine, pytest.raises(KeyboardInterrupt):
        engine.map(task, range(2))
    assert begun == [0]


def test_work_inside_work_is_called_off_too():
    outer = threads.Flag()

    def inner():
        with LocalEngine(2) as engine:
            return engine.map(lambda i: outer.__setattr__("_up", i == 3), range(100_000))

    with pytest.raises(threads.Stopped):
        outer.guard(inner)


def test_a_long_call_of_a_library_is_left_behind():
    go = Event()

    def work():
        _thread.interrupt_main()
        return go.wait(10)

    with pytest.raises(KeyboardInterrupt):
        threads.aside(work)
    go.set()
    assert threads.aside(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        threads.aside(lambda: 1 / 0)


def test_texts_are_counted_in_pieces(monkeypatch):
    texts = ["the cat", "", "a cat sat on the mat " * 3, "mat", "dogs"] * 4
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    rows = words.Strings(np.append(0, np.cumsum([len(t) for t in texts])), data)
    whole = words.tally_text(rows, None, words.Rule())
    monkeypatch.setattr(words, "PIECE", 30)
    cut = words.tally_text(rows, None, words.Rule())
    for ours, theirs in zip(whole.words, cut.words, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    columns = np.arange(len(whole.n_rows), dtype=np.int32)
    for ours, theirs in zip(words.to_csr(whole, columns), words.to_csr(cut, columns), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    flag, looks = threads.Flag(), iter(range(4))
    monkeypatch.setattr(type(flag), "is_up", property(lambda self: next(looks) == 3))
    with pytest.raises(threads.Stopped):
        flag.guard(lambda: words.tally_text(rows, None, words.Rule()))


def looked_at(monkeypatch, work, times):
    """Return how often `work` looks at its flag, which goes up at some time."""
    flag, looks = threads.Flag(), []
    up = property(lambda self: looks.append(1) or len(looks) == times)
    monkeypatch.setattr(threads.Flag, "is_up", up)
    with pytest.raises(threads.Stopped):
        flag.guard(work)
    return len(looks)


BLOCKS = [
    *(("log_prob", "full", gaps) for gaps in (False, True)),
    *(("stats_under", "full", gaps) for gaps in (False, True)),
    ("log_prob", "tied", False),
    ("log_prob", "diag", False),
]


@pytest.mark.parametrize(("step", "covariance", "gaps"), BLOCKS)
def test_a_helper_is_stopped_inside_a_block_of_gaussians(step, covariance, gaps, monkeypatch):
    """A block of many columns and components takes seconds."""
    rng = np.random.default_rng(0)
    X, resp = rng.standard_normal((4000, 40)), rng.dirichlet(np.ones(9), 4000)
    family = Gaussian(covariance)
    theta = family.estimate(family.stats(X, resp))
    X[rng.random(X.shape) < 0.1 * gaps] = np.nan
    args = (X, theta) if step == "log_prob" else (X, resp, theta)
    assert looked_at(monkeypatch, lambda: getattr(family, step)(*args), times=4) == 4


def test_rows_are_folded_in_a_few_at_a_time(monkeypatch):
    model = AspectModel(2, max_iter=2, tol=0, random_state=0)
    W = np.random.default_rng(0).poisson(3.0, (4000, 30)) + 1
    monkeypatch.setattr("coem.kernels.aspect.NONZEROS", 1200)
    model.fit(W[:50])
    assert looked_at(monkeypatch, lambda: model.transform(W), times=60) == 60


def test_a_tree_is_stopped(data, monkeypatch):
    model = MultiViewAgglomerative(3)
    monkeypatch.setattr(
        "coem.agglomerative.condensed", lambda *args: signal.raise_signal(signal.SIGINT)
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(data["dense"])
    assert not hasattr(model, "labels_")


@pytest.mark.slow
def test_a_pool_is_stopped_while_it_decomposes(data, monkeypatch):
    monkeypatch.setattr(
        "coem.estimators._linear._decomposed", lambda gram: _thread.interrupt_main()
    )
    model = PooledClassifier()
    wide = np.hstack([data["counts"]] * 12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(wide, data["labels"])
    assert not hasattr(model, "classes_")
