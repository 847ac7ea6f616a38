"""Time and memory of a multinomial mixture, against plain scipy.sparse, in one run."""

import ctypes
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from plain import plain_em
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from zipf import random_responsibilities, zipf_counts

from coem import MixtureClusterer
from coem.kernels import instruction_set

ROUNDS = 20
FLOORS = {(20, 1): 2.0, (20, 2): 4.0, (100, 1): 3.5, (100, 2): 7.0}


def main():
    X = zipf_counts()
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / X.shape[0]:.0f} non-zeros a row, ", end="")
    print(f"{ROUNDS} rounds, kernels for {instruction_set()}\n")
    print("  k  threads  scipy ms  coem ms  ratio  floor  share of the roof")
    for k in (20, 100):
        resp = random_responsibilities(X.shape[0], k)
        for n_jobs in (1, 2):
            compare(X, resp, k, n_jobs)
    print("\n  k  peak extra MB  allowed MB")
    for k in (20, 100):
        extra, allowed = memory(k), 1.3 * (X.shape[0] * k + 3 * X.shape[1] * k) * 4 / 1e6
        print(f"{k:>3}  {extra:>13.1f}  {allowed:>10.1f}")


def compare(X, resp, k, n_jobs, repeats=3):
    """Print one line: the medians over runs that alternate between the two sides."""
    theirs, ours = [], []
    warnings.simplefilter("ignore", ConvergenceWarning)  # the corpus has no groups to find
    for _ in range(repeats):
        theirs.append(clock(lambda: plain_em(X, resp, ROUNDS)))
        model = MixtureClusterer(k, init=resp, max_iter=ROUNDS, tol=0, n_jobs=n_jobs)
        ours.append(clock(lambda m=model: m.fit(X)))
    a, b = np.median(theirs) / ROUNDS, np.median(ours) / ROUNDS
    roof = bytes_moved(X, k) / bandwidth(n_jobs)
    print(
        f"{k:>3}  {n_jobs:>7}  {a * 1e3:>8.1f}  {b * 1e3:>7.1f}  {a / b:>5.1f}  "
        f"{FLOORS[k, n_jobs]:>5}  {roof / b:>16.0%}"
    )


def clock(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def bytes_moved(X, k):
    """Bytes that a round must move: rows twice, table, sums and responsibilities out and in."""
    rows = X.data.nbytes + X.indices.nbytes
    table, sums, resp = X.shape[1] * k * 4, X.shape[1] * k * 8, X.shape[0] * k * 4
    return 2 * (rows + table + sums + resp)


def bandwidth(n_threads, size=64_000_000):
    """Bytes a second that copying moves, read and written."""
    source, target = np.ones(size // 8), np.empty(size // 8)
    parts = np.array_split(np.arange(len(source)), n_threads)
    cuts = [slice(part[0], part[-1] + 1) for part in parts]

    def copy(cut):
        target[cut] = source[cut]

    with ThreadPoolExecutor(n_threads) as pool:
        best = min(clock(lambda: list(pool.map(copy, cuts))) for _ in range(7))
    return 2 * size / best


def memory(k):
    """Megabytes that a fit adds at its peak to what the process held before, in a new process."""
    command = [sys.executable, os.path.abspath(__file__), "memory", str(k)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def measure_memory(k):
    X = zipf_counts()
    small = X[:500]
    MixtureClusterer(2, max_iter=2, tol=0, n_jobs=2, random_state=0).fit(small)  # loads everything
    ctypes.CDLL(None).malloc_trim(0)  # what generating X left behind must not hide what fit takes
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the high-water mark
    before = _status("VmRSS")
    MixtureClusterer(k, max_iter=5, tol=0, n_jobs=2, random_state=0).fit(X)
    print((_status("VmHWM") - before) / 1e6)


def _status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


if __name__ == "__main__":
    if sys.argv[1:2] == ["memory"]:
        measure_memory(int(sys.argv[2]))
    else:
        with threadpool_limits(1):
            main()
