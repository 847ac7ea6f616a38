"""Time of an iteration of the aspect model, against scikit-learn's NMF with the KL loss.

Multiplicative updates of NMF with the Kullback-Leibler loss climb the same likelihood. Both sides
take the same counts in one run, alternately. NMF runs in float32, the faster of its two precisions,
its BLAS with as many threads; the time of its iteration is that of the fastest long fit less that
of the fastest short one. EM and DAEM take the fastest of the rounds that they record. The fastest,
because the machine may be busy with other things.
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

FEW, MANY = 2, 12
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
    """Print one line: the fastest of repeats that alternate between the sides."""
    single = X.astype(np.float32)
    short, long, em, daem = [], [], [], []
    for repeat in range(repeats):
        with threadpool_limits(n_jobs):
            if repeat < 3:  # it takes the time of all others together
                short.append(nmf_seconds(single, k, FEW))
                long.append(nmf_seconds(single, k, MANY))
            em += round_seconds(X, k, n_jobs, 1.0)
            daem += round_seconds(X, k, n_jobs, 0.95)
    a, b, c = (min(long) - min(short)) / (MANY - FEW), min(em), min(daem)
    print(
        f"{k:>3}  {n_jobs:>7}  {a * 1e3:>6.1f}  {b * 1e3:>5.1f}  {c * 1e3:>7.1f}  "
        f"{a / b:>8.1f}  {FLOOR if n_jobs == 2 else '':>5}  {c / b:>9.2f}  {CEILING:>7}",
        flush=True,
    )


def round_seconds(X, k, n_jobs, beta):
    """Return the times of the rounds, the first ones left out."""
    model = AspectModel(
        k, n_runs=1, beta=beta, max_iter=20, dtype=np.float32, n_jobs=n_jobs, random_state=0
    ).fit(X)
    return [record.seconds for record in model.history_[2:]]


def nmf_seconds(X, k, n_iter):
    """Return the time of a fit with `n_iter` iterations."""
    model = NMF(
        k,
        init="random",
        solver="mu",
        beta_loss="kullback-leibler",
        max_iter=n_iter,
        tol=0,
        random_state=0,
    )
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are fixed
    main()
