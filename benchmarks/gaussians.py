"""Time of a round of a Gaussian mixture against scikit-learn's GaussianMixture, in one run.

Both get the same rows, the same parameters to start from, the same number of rounds and one thread,
and must end at the same log likelihood. Their fits alternate. The time of a round is the processor
time of the whole fit divided by the rounds; the least of all fits counts, because other programs
only add to it. The last table is for rows with missing entries, which scikit-learn does not take:
the same rows, complete, with gaps in a few patterns, and with gaps anywhere.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from coem import MixtureClusterer
from coem.families import Gaussian

SHAPE = 200_000, 32
K, ROUNDS, REPEATS = 16, 10, 3
FLOOR = 2.0


def main():
    X, start = rows()
    print(f"{SHAPE[0]:,} x {SHAPE[1]}, k = {K}, {ROUNDS} rounds, one thread; times of a round\n")
    print("covariance  scikit-learn ms  coem ms  ratio  floor")
    for covariance in ("full", "tied", "diag", "spherical"):
        compare(X, start, covariance)
    print("\n20,000 of the rows\ncovariance  complete ms  few patterns ms  gaps anywhere ms")
    for covariance in ("full", "diag"):
        with_gaps(X[:20_000], start[:20_000], covariance)


def rows():
    """Return rows of K overlapping groups, and responsibilities to start from."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=SHAPE[0])
    X = rng.standard_normal(SHAPE) + rng.standard_normal((K, SHAPE[1]))[labels]
    return X, 0.5 * np.eye(K)[labels] + 0.5 / K


def compare(X, start, covariance):
    """Print one line: the least times of fits that alternate between the two sides."""
    first = fit(X, covariance, start, 1)
    theta = first.theta_["view0"]
    precisions = 1 / theta.covariances
    if theta.covariances.ndim == 3:
        precisions = np.linalg.inv(theta.covariances)
        precisions = precisions[0] if covariance == "tied" else precisions
    theirs, ours = [], []
    for _ in range(REPEATS):
        model = GaussianMixture(
            K,
            covariance_type=covariance,
            weights_init=first.weights_,
            means_init=theta.means,
            precisions_init=precisions,
            max_iter=ROUNDS,
            tol=0,
        )
        with threadpool_limits(1):
            theirs.append(clock(lambda model=model: model.fit(X)) / model.n_iter_)
        began = time.process_time()
        mine = fit(X, covariance, first, ROUNDS)
        ours.append((time.process_time() - began) / mine.n_iter_)
    assert abs(mine.score(X) / model.score(X) - 1) < 1e-9
    a, b = min(theirs), min(ours)
    times = f"{a * 1e3:>15.0f}  {b * 1e3:>7.0f}  {a / b:>5.1f}  {FLOOR:>5}"
    print(f"{covariance:<10}  {times}", flush=True)


def with_gaps(X, start, covariance):
    """Print one line: the least times for complete rows, a few patterns, and many."""
    rng = np.random.default_rng(1)
    patterns = rng.random((8, X.shape[1])) < 0.1
    few, any_ = X.copy(), X.copy()
    few[patterns[np.arange(len(X)) % 8]] = np.nan
    any_[rng.random(X.shape) < 0.1] = np.nan
    times = [[], [], []]
    for _ in range(3):
        for case, own in zip((X, few, any_), times, strict=True):
            own.append(clock(lambda case=case: fit(case, covariance, start, 5)) / 5)
    ms = [f"{min(own) * 1e3:.0f}" for own in times]
    print(f"{covariance:<10}  {ms[0]:>11}  {ms[1]:>15}  {ms[2]:>16}", flush=True)


def fit(X, covariance, init, rounds):
    return MixtureClusterer(
        K, family=Gaussian(covariance), init=init, max_iter=rounds, tol=0, n_jobs=1
    ).fit(X)


def clock(run):
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the rounds end before they do
    main()
