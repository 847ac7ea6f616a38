"""What all tests share."""

import sys
import threading
from collections import defaultdict

import coverage
import pytest
from hypothesis import settings

# No test depends on the clock: a busy machine is no failure.
settings.register_profile("coem", deadline=None)
settings.load_profile("coem")

# Coverage makes Python take nearly twice the time, and the cases of a test mostly run the same
# lines: the first, the middle and the last case of every test are traced, the others are not.
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
            item.stash[UNTRACED] = i not in traced


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Take the trace function away while a case runs that needs none.

    The marker `no_cover` of pytest-cov has no effect in the workers of pytest-xdist.
    """
    if not item.stash.get(UNTRACED, False) or coverage.Coverage.current() is None:
        return (yield)
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        threading.settrace(of_threads)
