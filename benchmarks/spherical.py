"""Time of a round of spherical k-means against scikit-learn's KMeans, in one run.

Both get the same unit rows, the same start, the same number of rounds and the same number of
threads. They solve the same problem but for the length of the centres, which scikit-learn does
not scale to one.
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

ROUNDS = 20
FLOOR = 5.0


def main():
    X = normalize(zipf_counts().astype(np.float32))
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros, {ROUNDS} rounds\n")
    print("  k  threads  scikit-learn ms  coem ms  ratio  floor")
    for k in (20, 100):
        for n_jobs in (1, 2):
            compare(X, k, n_jobs)


def compare(X, k, n_jobs, repeats=5):
    """Print one line: the medians over runs that alternate between the two sides."""
    rows = np.random.default_rng(0).choice(X.shape[0], k, replace=False)
    start = X[rows].toarray()
    theirs, ours = [], []
    for _ in range(repeats):
        with threadpool_limits(n_jobs):
            model = KMeans(k, init=start, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd")
            theirs.append(clock(model.fit, X) / model.n_iter_)
        model = SphericalKMeans(k, init=start, max_iter=ROUNDS, patience=None, n_jobs=n_jobs)
        ours.append(clock(model.fit, X) / model.n_iter_)
    a, b = np.median(theirs), np.median(ours)
    print(f"{k:>3}  {n_jobs:>7}  {a * 1e3:>15.1f}  {b * 1e3:>7.1f}  {a / b:>5.1f}  {FLOOR:>5}")


def clock(run, *args):
    start = time.perf_counter()
    run(*args)
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # twenty rounds are not the end
    main()
