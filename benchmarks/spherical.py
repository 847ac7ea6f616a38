"""Time of a round of spherical k-means against scikit-learn's KMeans, in one run.

Both get the same unit rows, the same start, the same number of rounds and the same number of
threads. They solve the same problem but for the length of the centres, which scikit-learn does
not scale to one. Left alone, `SphericalKMeans` converges from this start after 75 rounds and
`KMeans` after 105; later rounds change few rows, which costs the one less and the other as much.
"""

import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits
from zipf import zipf_counts

from coem import SphericalKMeans

CASES = ((20, 75), (20, 20), (100, 20))  # clusters and rounds
FLOOR = 5.0


def main():
    X = normalize(zipf_counts().astype(np.float32))
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros; times of a round\n")
    print("  k  rounds  threads  scikit-learn ms  coem ms  ratio  floor")
    for k, rounds in CASES:
        for n_jobs in (1, 2):
            compare(X, k, rounds, n_jobs)


def compare(X, k, rounds, n_jobs, repeats=5):
    """Print one line: the medians over runs that alternate between the two sides."""
    rows = np.random.default_rng(0).choice(X.shape[0], k, replace=False)
    start = X[rows].toarray()
    theirs, ours = [], []
    for _ in range(repeats):
        with threadpool_limits(n_jobs):
            model = KMeans(k, init=start, n_init=1, max_iter=rounds, tol=0, algorithm="lloyd")
            theirs.append(clock(model.fit, X) / model.n_iter_)
        model = SphericalKMeans(k, init=start, max_iter=rounds, patience=None, n_jobs=n_jobs)
        ours.append(clock(model.fit, X) / model.n_iter_)
    a, b = np.median(theirs), np.median(ours)
    times = f"{a * 1e3:>15.1f}  {b * 1e3:>7.1f}  {a / b:>5.1f}  {FLOOR:>5}"
    print(f"{k:>3}  {rounds:>6}  {n_jobs:>7}  {times}", flush=True)


def clock(run, *args):
    start = time.perf_counter()
    run(*args)
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the rounds end before they do
    main()
