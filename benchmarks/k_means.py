"""Time of a round of k-means as a mixture against scikit-learn's KMeans, in one run.

Both get the same dense rows, the same centres to start from, the same number of rounds and the same
number of threads. The time of a round is the time of the whole fit divided by the rounds; the
ratio of processor times suffers less from other work on the machine. The last column is the
largest relative difference of the two inertias: both solve the same problem.

`groups` are rows around 64 centres, `none` rows of one Gaussian. Without groups many centres are
near a row, and the log likelihood, which scikit-learn does not compute, takes longest.
"""

import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from coem import MixtureClusterer
from coem.families import Gaussian

N, WIDTH, K, ROUNDS = 100_000, 32, 64, 20
CEILING = 1.5


def main():
    print(f"{N:,} x {WIDTH}, k = {K}, {ROUNDS} rounds; times of a round, medians that alternate\n")
    print(
        "rows    threads  scikit-learn ms  coem ms  ratio  processor  ceiling  inertias differ by"
    )
    for name, spread in {"groups": 2.0, "none": 0.0}.items():
        X = points(spread)
        for n_jobs in (1, 2):
            compare(name, X, n_jobs)


def points(spread):
    """Return rows around centres that lie `spread` standard deviations from the origin."""
    rng = np.random.default_rng(0)
    centres = spread * rng.normal(size=(K, WIDTH))
    return centres[rng.integers(K, size=N)] + rng.normal(size=(N, WIDTH))


def compare(name, X, n_jobs, repeats=7):
    """Print one line: the medians over runs that alternate between the two sides."""
    centres = X[np.random.default_rng(1).choice(N, K, replace=False)]
    start = mixture(init=np.eye(K), max_iter=1).fit(centres)
    theirs, ours, differences = [], [], []
    for _ in range(repeats):
        with threadpool_limits(n_jobs):
            model = KMeans(K, init=centres, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd")
            theirs.append(clock(model.fit, X) / model.n_iter_)
        ours_model = mixture(init=start, max_iter=ROUNDS, n_jobs=n_jobs)
        ours.append(clock(ours_model.fit, X) / ours_model.n_iter_)
        differences.append(abs(inertia(ours_model) / model.inertia_ - 1))
    (a, c), (b, d) = np.median(theirs, axis=0), np.median(ours, axis=0)
    times = f"{a * 1e3:>15.1f}  {b * 1e3:>7.1f}  {b / a:>5.2f}  {d / c:>9.2f}  {CEILING:>7}"
    print(f"{name:<6}  {n_jobs:>7}  {times}  {max(differences):.0e}", flush=True)


def mixture(**settings):
    """Return k-means as a mixture."""
    unit = Gaussian("unit")
    return MixtureClusterer(K, family=unit, posterior="hard", weights="uniform", tol=0, **settings)


def inertia(model):
    """Return the sum of squared distances from the objective of the fit."""
    constant = N * (np.log(K) + WIDTH / 2 * np.log(2 * np.pi))
    return -2 * (model.objective_ + constant)


def clock(run, *args):
    """Return the seconds by the clock, and those of the processor."""
    start = np.array([time.perf_counter(), time.process_time()])
    run(*args)
    return np.array([time.perf_counter(), time.process_time()]) - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the rounds end before they do
    main()
