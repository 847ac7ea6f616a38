"""Time, growth and memory of agglomerative clustering, against scipy's `linkage`, in one run."""

import ctypes
import os
import subprocess
import sys
import time

import numpy as np
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits
from zipf import zipf_counts

from coem import MultiViewAgglomerative
from coem.kernels.agglomerate import LINKAGES, agglomerate

N, WIDTH = 5_000, 50
SIZES = (2_500, 5_000, 10_000)
CEILINGS = {1: 2.0, 2: 4.0}


def main():
    views = [points(N, seed) for seed in range(2)]
    print(f"{N:,} rows, {WIDTH} columns a view, float64; medians of 3 that alternate\n")
    print("linkage   metric     views  scipy s  coem s  ratio  ceiling  merges alone")
    for linkage in LINKAGES:
        for metric in ("euclidean", "cosine"):
            for n_views in CEILINGS:
                compare(views[:n_views], linkage, metric)
    print(f"\nlinkage   views  {'  '.join(f'{n:>6,}' for n in SIZES)}  exponent (below 2.3)")
    for linkage in LINKAGES:
        for n_views in CEILINGS:
            grow(linkage, n_views)
    print("\nmetric       views  dtype    peak extra MB  of views n^2 4 bytes (below 1.2)")
    for metric in ("euclidean", "cosine", "precomputed", "cosine, CSR"):
        for n_views in CEILINGS:
            for dtype in ("float64", "float32"):
                extra = memory(metric, n_views, dtype)
                share = extra / (n_views * N**2 * 4 / 1e6)
                print(f"{metric:<11}  {n_views:>5}  {dtype}  {extra:>13.1f}  {share:.2f}")


def points(n, seed):
    """Return groups of points, so that there is something to find."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(20, WIDTH))
    return centres[np.random.default_rng(9).integers(20, size=n)] + rng.normal(size=(n, WIDTH))


def compare(views, linkage, metric, repeats=3):
    """Print one line: scipy on the first view, coem on all of them; with distances and without."""
    cells = np.array([pdist(view, metric) for view in views])
    theirs, ours, merges, kernel = [], [], [], []
    for _ in range(repeats):
        theirs.append(clock(lambda: scipy_linkage(pdist(views[0], metric), linkage)))
        model = MultiViewAgglomerative(linkage=linkage, metric=metric)
        ours.append(clock(lambda m=model: m.fit(views)))
        merges.append(clock(lambda: scipy_linkage(cells[0], linkage)))
        scratch = cells.copy()
        kernel.append(clock(lambda c=scratch: agglomerate(c, N, linkage)))
    a, b, c, d = (np.median(times) for times in (theirs, ours, merges, kernel))
    print(
        f"{linkage:<9} {metric:<9}  {len(views):>5}  {a:>7.2f}  {b:>6.2f}  {b / a:>5.2f}  "
        f"{CEILINGS[len(views)]:>7}  {c:.2f} to {d:.2f}: {d / c:.2f}",
        flush=True,
    )


def grow(linkage, n_views, repeats=3):
    """Print how the time of a fit grows with the number of rows; best of a few."""
    best = []
    for n in SIZES:
        views = [points(n, seed) for seed in range(n_views)]
        model = MultiViewAgglomerative(linkage=linkage, metric="euclidean")
        best.append(min(clock(lambda m=model, v=views: m.fit(v)) for _ in range(repeats)))
    exponent = np.log(best[-1] / best[0]) / np.log(SIZES[-1] / SIZES[0])
    times = "  ".join(f"{seconds:>6.2f}" for seconds in best)
    print(f"{linkage:<9} {n_views:>5}  {times}  {exponent:.2f}", flush=True)


def clock(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def memory(*arguments):
    """Megabytes that a fit adds at its peak to what the process held before, in a new process."""
    command = [sys.executable, os.path.abspath(__file__), "memory", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_memory(metric, n_views, dtype):
    views = [points(N, seed).astype(dtype) for seed in range(int(n_views))]
    if metric == "cosine, CSR":
        metric, views = (
            "cosine",
            [zipf_counts(N, seed=v).astype(dtype) for v in range(int(n_views))],
        )
    small = [view[:100] for view in views]
    if metric == "precomputed":
        views = [distances(view).astype(dtype) for view in views]
        small = [view[:100, :100] for view in views]
    model = MultiViewAgglomerative(metric=metric).fit(small)  # loads everything
    ctypes.CDLL(None).malloc_trim(0)  # what was left behind must not hide what fit takes
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # resets the high-water mark
    before = _status("VmRSS")
    model.fit(views)
    print((_status("VmHWM") - before) / 1e6)


def distances(X):
    full = np.zeros((len(X), len(X)))
    full[np.triu_indices(len(X), 1)] = pdist(X)
    return full + full.T


def _status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


if __name__ == "__main__":
    with threadpool_limits(1):
        if sys.argv[1:2] == ["memory"]:
            measure_memory(*sys.argv[2:])
        else:
            main()
