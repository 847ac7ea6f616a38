"""What all tests share."""

import importlib
import os
import pkgutil
import signal
import sys
import threading
from collections import defaultdict
from contextlib import contextmanager

import coverage
import pytest
from hypothesis import HealthCheck, settings

# Two workers share the processors already, and threads of BLAS and OpenMP wait by turning in
# circles: a fifth of all time. Set before NumPy is loaded, and for processes that tests start.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Jobs in the background are deaf to Ctrl-C, and under nohup to SIGHUP. Tests send both, also to
# processes that they start, which inherit it.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
    if signal.getsignal(number) == signal.SIG_IGN:
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, default)

# No test depends on the clock, nor on how many of the drawn examples it can use.
LUCK = [HealthCheck.filter_too_much, HealthCheck.too_slow]
settings.register_profile("coem", deadline=None, suppress_health_check=LUCK)
settings.load_profile("coem")

collect_ignore = ["typing/script.py"]  # for `make lint`, which lets mypy check it

# Coverage makes Python take twice the time, and the cases of a test mostly run the same lines: the
# first, the middle and the last case of a test are traced, the others are not. Nor are examples in
# docstrings, and what is marked as slow: briefer tests run the same lines.
TRACED = 3
UNTRACED = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen
def pytest_collection_modifyitems(items):
    """Mark the cases that run without coverage."""
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        step = (len(cases) - 1) / (TRACED - 1)
        traced = {round(i * step) for i in range(TRACED)}
        for i, item in enumerate(cases):
            spare = isinstance(item, pytest.DoctestItem) or item.get_closest_marker("slow")
            item.stash[UNTRACED] = bool(spare) or i not in traced


@contextmanager
def untraced():
    """Take the trace function away, if coverage has set one.

    The marker `no_cover` of pytest-cov has no effect in the workers of pytest-xdist.
    """
    if coverage.Coverage.current() is None:
        yield
        return
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
        threading.settrace(of_threads)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Collect without coverage: the library is all that it needs to see of what is imported."""
    workers_collect = session.config.pluginmanager.hasplugin("dsession")  # of pytest-xdist
    if coverage.Coverage.current() is not None and not workers_collect:
        library = importlib.import_module("coem")  # not before coverage has begun
        for module in pkgutil.walk_packages(library.__path__, "coem."):
            importlib.import_module(module.name)
    with untraced():
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Run a case without coverage that needs none, and the fixtures that it is the first to use."""
    if not item.stash.get(UNTRACED, False):
        return (yield)
    with untraced():
        return (yield)
