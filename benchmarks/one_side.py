"""The worker of `side_by_side.py`: measures cases on the one checkout that it imports.

It reads one order per line from stdin and answers each with one line on stdout, both JSON. Data of
a case are made once, at its first order.
"""

import ctypes
import dataclasses
import gc
import hashlib
import json
import multiprocessing
import os
import resource
import sys
import time
import tracemalloc
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from cases import CASES
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import coem

TINY = 0.02  # scale of a run that only loads modules
FITTED = ("labels_", "weights_", "theta_", "objective_", "view_weights_", "cluster_centers_")
FITTED += ("x_given_h_", "y_given_h_", "alpha_", "beta_")
PRELOAD = ["cases", "coem.estimators", "coem.text", "coem.selection", "coem.report", "coem.cli"]


def main():
    # Whatever a case prints must not pass for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side = Side()
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(side, order.pop("do"))(**order)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Side:
    """The orders that a worker takes."""

    def __init__(self):
        warnings.simplefilter("ignore", ConvergenceWarning)
        multiprocessing.set_start_method("forkserver")
        multiprocessing.set_forkserver_preload(PRELOAD)
        self.data = cache(lambda case, scale: CASES[case].data(scale))
        self.result = None
        gc.collect()
        gc.freeze()  # later collections need not look at the modules

    def about(self):
        """Return where `coem` is imported from, and the names of the cases."""
        return {"file": coem.__file__, "cases": list(CASES)}

    def time(self, case, scale):
        """Run a case; return its seconds and CPU seconds, and what it found.

        CPU seconds are those of all threads and child processes.
        """
        data, run = self.data(case, scale), CASES[case].run
        self.result = None
        gc.collect()
        start, cpu = time.perf_counter(), cpu_seconds()
        self.result = run(data)
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
        found = {"digest": digest(self.result), "objective": objective(self.result)}
        return found | {"seconds": seconds, "cpu": cpu}

    def labels(self):
        """Return the labels that the last run gave to the rows, or None."""
        found = self.result
        if isinstance(found, np.ndarray):
            return found.argmax(axis=1).tolist()
        labels = getattr(found, "labels_", None)
        return None if labels is None else labels.tolist()

    def memory(self, case, scale):
        """Return what one run adds to the memory of a new process."""
        # Forked from a server that has imported much and fitted nothing.
        with ProcessPoolExecutor(1) as pool:
            return pool.submit(measure_memory, case, scale).result()


def measure_memory(case, scale):
    """Return megabytes at the peak of a run: resident (None if unknown), and traced."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    case = CASES[case]
    run = case.inside or case.run
    run(case.data(TINY))  # imports what is imported late
    data = case.data(scale)
    resident = resident_peak(run, data)
    gc.collect()
    # In another run: tracing itself takes memory.
    tracemalloc.start()
    run(data)
    traced = tracemalloc.get_traced_memory()[1]
    return {"resident": resident, "traced": traced / 1e6}


def resident_peak(run, data):
    """Return the megabytes that a run adds at its peak to the memory of this process."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # free memory of the past would hide what the run takes
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the high-water mark
        before = status("VmRSS")
        run(data)
        return (status("VmHWM") - before) / 1e6
    except (OSError, AttributeError):  # not Linux, or not allowed
        return None


def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def cpu_seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def objective(result):
    value = getattr(result, "objective_", None)
    return None if value is None else float(value)


def digest(result):
    """Return a hash of all bits of a result; a fitted model is what `FITTED` names of it."""
    total = hashlib.sha256()
    for part in parts(result):
        total.update(part)
        total.update(b"\0")
    return total.hexdigest()


def parts(value):
    """Yield the bytes of all that a value is made of, in a fixed order."""
    if isinstance(value, BaseEstimator | SimpleNamespace):
        yield from parts([getattr(value, name) for name in FITTED if hasattr(value, name)])
    elif sp.issparse(value):
        yield from parts([value.shape, value.indptr, value.indices, value.data])
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield f"{value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, np.ndarray):
        yield from parts(value.tolist())
    elif isinstance(value, coem.Views):
        yield from parts([(name, value[name]) for name in value.names])
    elif dataclasses.is_dataclass(value):
        yield from parts([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif isinstance(value, dict):
        yield from parts(list(value.items()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from parts(item)
    elif value is None or isinstance(value, str | bool | int | float | np.generic):
        yield repr(value).encode()
    else:
        raise TypeError(f"a result has a {type(value).__name__}, which has no digest")


if __name__ == "__main__":
    main()
