"""Engines: threads, BLAS under overlapping fits, and where partitions live."""

import os
import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from threading import Barrier, Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from coem import MixtureClusterer
from coem.engine import Engine, LocalEngine, blas
from coem.families import Gaussian
from coem.kernels import threads
from coem.selection import stability
from tests.engines import ENGINES, uneven


def blas_threads():
    """Return the number of threads of every BLAS library of this process."""
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture
def before():
    """Let BLAS have two threads, and return their number as it was before a fit."""
    np.ones((2, 2)) @ np.ones((2, 2))  # BLAS is loaded
    own = {lib: lib.num_threads for lib in blas._libraries()}
    set_threads(dict.fromkeys(own, 2))
    if blas_threads() != {2}:
        pytest.skip("BLAS has one thread here, or threadpoolctl does not know it")
    yield {2}
    set_threads(own)


def set_threads(numbers):
    """Set the number of threads of libraries, so that any thread may change it later."""
    for library, n in numbers.items():
        library.set_num_threads(n)
        getattr(library, "clear_controlling_thread", lambda **_: None)(force=True)


def test_blas_has_one_thread_while_an_engine_runs(before):
    with LocalEngine(1):
        assert blas_threads() == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("first_out", ["first", "second"])
def test_blas_is_limited_until_the_last_of_overlapping_engines_ends(first_out, before):
    inside, go = Barrier(3), {"first": Event(), "second": Event()}
    ended = {"first": Event(), "second": Event()}

    def fit(name):
        with LocalEngine(1):
            inside.wait(10)
            assert go[name].wait(10)
        ended[name].set()

    other = "second" if first_out == "first" else "first"
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(fit, name) for name in go]
        inside.wait(10)
        assert blas_threads() == {1}
        go[first_out].set()
        assert ended[first_out].wait(10)
        assert blas_threads() == {1}, "the first engine that ended gave BLAS its threads back"
        go[other].set()
        for run in runs:
            run.result()
    assert blas_threads() == before, "the last engine that ended left BLAS at one thread"


def test_blas_has_its_threads_back_after_fits_side_by_side(before):
    X = np.random.default_rng(0).poisson(2.0, size=(60, 8)) + 1
    stability(MixtureClusterer(2, max_iter=5, tol=0), X, n_runs=6, n_jobs=3, random_state=0)
    assert blas_threads() == before


def test_blas_has_its_threads_back_after_an_error(before):
    with pytest.raises(RuntimeError, match="stop"), LocalEngine(1):
        raise RuntimeError("stop")
    assert blas_threads() == before
    assert not blas._users


class Interrupting:
    """A lock; whoever waits for it is interrupted a few times."""

    def __init__(self, times):
        self.times = times

    def __enter__(self):
        self.times -= 1
        if self.times >= 0:
            raise KeyboardInterrupt

    def __exit__(self, *exception):
        pass


def test_blas_has_its_threads_back_after_ctrl_c_at_the_end(before, monkeypatch):
    library = PerThread()
    libraries = [*blas._libraries(), library]
    monkeypatch.setattr(blas, "_libraries", lambda: libraries)
    with pytest.raises(KeyboardInterrupt), blas.one_thread():
        monkeypatch.setattr(blas, "_lock", Interrupting(2))
    assert not blas._users
    assert blas_threads() == before
    assert library.num_threads == 8


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_engine_inside_another_has_its_own_threads(n_jobs):
    outer, inner = LocalEngine(n_jobs), LocalEngine(4 - n_jobs)
    with outer, inner:
        assert n_threads(outer, n_jobs) == n_jobs
        assert n_threads(inner, 4 - n_jobs) == 4 - n_jobs
        assert n_threads(LocalEngine(2), 1) == 1, "nobody has entered it"


def n_threads(engine, at_least):
    """Return how many threads work for an engine, after waiting for some of them to come."""
    met, seen = Event(), set()

    def work(item):
        seen.add(threading.get_ident())
        if len(seen) >= at_least:
            met.set()
        assert met.wait(60)
        time.sleep(0.01)  # one thread too many would come meanwhile

    engine.map(work, range(9))
    return len(seen)


def test_an_engine_can_be_left_in_another_thread(before):
    engine, context = LocalEngine(3), copy_context()
    context.run(engine.__enter__)
    left = threading.Thread(target=engine.__exit__, args=(None, None, None))
    left.start()
    left.join()
    assert blas_threads() == before
    assert not blas._users
    for work in (engine.map, threads.spread):
        assert context.run(work, str, range(9)) == [*"012345678"]
    with engine:
        assert n_threads(engine, 3) == 3
    assert blas_threads() == before


def test_an_engine_that_nobody_entered_cannot_be_left():
    with pytest.raises(RuntimeError, match="more often than it was entered"):
        LocalEngine(1).__exit__(None, None, None)


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_has_all_that_the_protocol_asks_for(name):
    engine = ENGINES[name]()
    wanted = [member for member in dir(Engine) if member in vars(Engine) and member[0] != "_"]
    assert wanted == ["each_part", "map", "n_workers", "open", "open_parts"]
    assert all(hasattr(engine, member) for member in wanted)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(n_jobs):
    with LocalEngine(n_jobs) as engine:
        assert engine.map(lambda i: i * i, range(50)) == [i * i for i in range(50)]


def test_an_error_in_a_task_is_raised_and_no_other_task_starts():
    begun = []

    def work(item):
        begun.append(item)
        if item == 3:
            raise ValueError("item 3")

    with LocalEngine(2) as engine, pytest.raises(ValueError, match="item 3"):
        engine.map(work, range(100_000))
    assert len(begun) < 100_000


@pytest.mark.parametrize("n_rows", [1, 5, 100])
@pytest.mark.parametrize("n_parts", [1, 2, 7, 200])
def test_uneven_parts_cover_all_rows(n_rows, n_parts):
    bounds = [0, *uneven(n_rows, n_parts), n_rows]
    assert (np.diff(bounds) > 0).all()
    assert len(bounds) == min(n_parts, n_rows) + 1


class PerThread:
    """A BLAS library whose limit holds for the thread that sets it."""

    internal_api, user_api = "mkl", "blas"

    def __init__(self):
        self.limits = threading.local()

    @property
    def num_threads(self):
        return getattr(self.limits, "n", 8)

    def set_num_threads(self, n):
        self.limits.n = n


def test_libraries_with_a_limit_per_thread(monkeypatch):
    library, found = PerThread(), {}
    monkeypatch.setattr(blas, "_libraries", lambda: [library])
    inside = Barrier(2)

    def fit(name):
        with blas.one_thread():
            inside.wait(10)
            found[name] = library.num_threads
            inside.wait(10)
        found[f"{name} after"] = library.num_threads

    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(fit, name) for name in ("first", "second")]:
            run.result()
    assert found == {"first": 1, "second": 1, "first after": 8, "second after": 8}


@pytest.mark.slow
def test_threads_can_share_one_engine():
    X = np.random.default_rng(0).poisson(2.0, size=(300, 8)) + 1
    params = {"n_components": 3, "max_iter": 5, "tol": 0, "random_state": 0}
    alone = MixtureClusterer(**params).fit(X)
    for engine in (LocalEngine(1), LocalEngine(3)):
        models = [MixtureClusterer(**params, engine=engine) for _ in range(8)]
        with ThreadPoolExecutor(4) as pool:
            for fitted in pool.map(lambda model: model.fit(X), models):
                assert fitted.objective_ == alone.objective_
                np.testing.assert_array_equal(fitted.labels_, alone.labels_)


def test_an_engine_can_be_entered_again_in_the_same_thread(before):
    engine = LocalEngine(2)
    with engine, engine:
        assert engine.map(str, range(9)) == [str(i) for i in range(9)]
    assert blas_threads() == before
    assert pickle.loads(pickle.dumps(engine)).n_workers == 2


def full_gaussians(X, n_jobs):
    family = Gaussian("full")
    return MixtureClusterer(2, family=family, max_iter=2, tol=0, random_state=0, n_jobs=n_jobs).fit(
        X
    )


@pytest.mark.slow
def test_fits_that_overlap_have_the_bits_of_one_alone(before):
    """The first fit that ends must not give BLAS its threads back while the others run.

    To see this test fail, let `blas.one_thread` be ``threadpool_limits(1, "blas")``, a limit that
    every fit saves and restores by itself. On 150 columns BLAS then adds up in another order. The
    bits differ, or BLAS stays at one thread.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 150)) + rng.integers(0, 2, (20_000, 1))
    alone = full_gaussians(X, 1)
    with ThreadPoolExecutor(4) as pool:
        for fitted in pool.map(partial(full_gaussians, X), [1, 2, 1, 2, 1, 2]):
            assert fitted.objective_ == alone.objective_
            for ours, theirs in zip(fitted.theta_["view0"], alone.theta_["view0"], strict=True):
                np.testing.assert_array_equal(ours, theirs)
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("who", ["another thread", "this thread"])
def test_a_forked_process_has_its_threads_back(who, before):
    """A fit in the thread that forks goes on in the child; those of other threads do not."""
    go, inside = Event(), Event()

    def hold():
        with LocalEngine(1):
            inside.set()
            assert go.wait(60)

    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        stack.callback(go.set)
        if who == "another thread":
            pool.submit(hold)
            assert inside.wait(60)
        else:
            stack.enter_context(LocalEngine(1))
        child = forked(lambda: [blas_threads(), stack.close(), blas_threads()])
        assert child == repr([before if who == "another thread" else {1}, None, before])
        assert blas_threads() == {1}
    assert blas_threads() == before


def forked(work):
    """Return the repr of what `work` returns in a forked process."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        pid = os.fork()
    if pid == 0:
        try:
            os.write(into, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as told:
        said = told.read()
    os.waitpid(pid, 0)
    return said


def test_more_threads_than_any_machine_has():
    X = np.random.default_rng(0).poisson(1.0, (40, 6))
    models = [MixtureClusterer(2, n_jobs=n, random_state=0).fit(X) for n in (1 << 63, 1)]
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
