"""Time of an iteration of the aspect model, against scikit-learn's NMF with the KL loss.

Multiplicative updates of NMF with the Kullback-Leibler loss climb the same likelihood. Both sides
take the same counts in one run, alternately, and the time of an iteration is that of many less
that of few, so that starts and conversions of the input are on neither side. NMF runs in float32,
the faster of its two precisions, and its BLAS with as many threads.
"""

import time
import warnings

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from zipf import zipf_counts

from coem import AspectModel
from coem.kernels import instruction_set

FEW, MANY = 2, 22
FLOOR = 15.0  # against NMF, with two threads
CEILING = 1.1  # of DAEM against EM


def main():
    X = zipf_counts(5_000, 20_000, n_draws=105)
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros, ", end="")
    print(f"kernels for {instruction_set()}\n")
    print("  k  threads  NMF ms  EM ms  DAEM ms  NMF / EM  floor  DAEM / EM  ceiling")
    for k in (25, 100):
        for n_jobs in (1, 2):
            compare(X, k, n_jobs)


def compare(X, k, n_jobs, repeats=7):
    """Print one line: medians of ratios over repeats that alternate between the sides."""
    single = X.astype(np.float32)
    sides = {
        "NMF": lambda n: NMF(
            k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=n, tol=0,
            random_state=0,
        ).fit(single),
        "EM": lambda n: aspect(k, n_jobs, n).fit(X),
        "DAEM": lambda n: aspect(k, n_jobs, n, beta=0.95).fit(X),
    }  # fmt: skip
    rounds = {name: [] for name in sides}
    for repeat in range(repeats):
        for name, fit in sides.items():
            if name == "NMF" and repeat >= 3:  # it takes the time of all others together
                continue
            with threadpool_limits(n_jobs):
                rounds[name].append((clock(fit, MANY) - clock(fit, FEW)) / (MANY - FEW))
    nmf, em, daem = (np.median(rounds[name]) for name in sides)
    heat = np.median(np.array(rounds["DAEM"]) / np.array(rounds["EM"]))
    print(
        f"{k:>3}  {n_jobs:>7}  {nmf * 1e3:>6.1f}  {em * 1e3:>5.1f}  {daem * 1e3:>7.1f}  "
        f"{nmf / em:>8.1f}  {FLOOR if n_jobs == 2 else '':>5}  {heat:>9.2f}  {CEILING:>7}"
    )


def aspect(k, n_jobs, n_iter, **settings):
    return AspectModel(
        k, n_runs=1, max_iter=n_iter, dtype=np.float32, n_jobs=n_jobs, random_state=0, **settings
    )


def clock(fit, n_iter):
    """Return the seconds of a fit with `n_iter` iterations."""
    start = time.perf_counter()
    fit(n_iter)
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are fixed
    main()
