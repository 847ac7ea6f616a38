"""Late rounds with many components, with bounds and without: time, and what they give.

Both sides start from the same grouping and do the same rounds, one after the other in turn. The
times are those of the processor, of all threads together, so that others at work on the machine
disturb them less; the best of the last rounds counts.
"""

import argparse
import os
import time

import numpy as np
import scipy.sparse as sp
from zipf import zipf_counts

from coem import MixtureClusterer, SphericalKMeans
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels import instruction_set, summing
from coem.latent import pruning
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.protocols import Clock

THREADS = 2
REPEATS = 3  # with weak groups; the best counts
LATE = 4  # rounds at the end that count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, nargs="+", default=[100, 400, 1000])
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--weak-groups", action="store_true", help="all rounds, of such data")
    options = parser.parse_args()
    if options.weak_groups:
        weak_groups(options.rounds)
        return
    print(f"kernels for {instruction_set()}, {THREADS} threads, alpha = {options.alpha}; ", end="")
    print("ms of the processor a round, the M step, the E step and the objective\n")
    print("data          k     all: M     E     V  bounds: M     E     V  ratio  objective  labels")
    for name, X in corpora():
        for k in options.components:
            compare(name, X, k, options)


def corpora():
    """Yield the names and counts of all corpora at hand."""
    yield "Zipf", zipf_counts()
    if os.environ.get("COEM_DATA"):
        from coem.datasets import fetch_20newsgroups

        yield "newsgroups", fetch_20newsgroups().views["body"]


def compare(name, X, k, options):
    """Print one line: both sides, side by side."""
    start = SphericalKMeans(k, max_iter=4, patience=None, random_state=0, n_jobs=THREADS).fit(X)
    sides = [Side(X, k, start.labels_, options.alpha, bounds) for bounds in (False, True)]
    with LocalEngine(THREADS):
        for _ in range(options.rounds):
            for side in sides:
                side.round()
    every, few = (np.min(side.times[-LATE:], axis=0) * 1e3 for side in sides)
    a, b = sides
    apart = abs(a.objective - b.objective) / abs(a.objective)
    same = np.mean(a.labels() == b.labels())
    cells = "  ".join(f"{x:>4.0f}" for x in every), "  ".join(f"{x:>4.0f}" for x in few)
    print(
        f"{name:<10} {k:>5}  {cells[0]:>18}  {cells[1]:>20}  {every.sum() / few.sum():>5.1f}"
        f"  {apart:>9.0e}  {same:>6.4f}",
        flush=True,
    )


def weak_groups(n_rounds, k=200):
    """Print the rounds of both sides on data where bounds leave out too little to pay."""
    X = weak_counts(k)
    start = MixtureClusterer(k, init="rows", random_state=0, max_iter=1, tol=0).fit(X)
    best = np.full((2, n_rounds), np.inf)
    for _ in range(REPEATS):
        sides = [Side(X, k, start.labels_, 1.0, bounds, few_words=True) for bounds in (False, True)]
        for side in sides:
            with LocalEngine(1):
                for _ in range(n_rounds):
                    side.round()
        best = np.minimum(best, [np.sum(side.times, axis=1) * 1e3 for side in sides])
    print(f"kernels for {instruction_set()}, one thread, alpha = 1; ms of the processor a round\n")
    for name, times in zip(("all", "bounds"), best, strict=True):
        cells = "  ".join(f"{time:>3.0f}" for time in times)
        print(f"{name:<6}  {cells}  sum {times.sum():>4.0f}  last {times[-LATE:].sum():>4.0f}")
    every, few = best
    ratios = few.sum() / every.sum(), few[-LATE:].sum() / every[-LATE:].sum()
    apart = abs(sides[0].objective / sides[1].objective - 1)
    print("bounds / all: {:.2f}, of the last rounds {:.2f};".format(*ratios), end=" ")
    print(f"objectives differ by {apart:.0e}")


def weak_counts(k, n=20_000, width=5_000, draws=80, share=0.15, seed=3):
    """Return Zipf counts of which a share is drawn from 40 words of the row's group."""
    rng = np.random.default_rng(seed)
    prob = rng.permutation(1.0 / np.arange(1, width + 1))
    words = rng.choice(width, size=(n, draws), p=prob / prob.sum())
    group = rng.integers(k, size=(n, 1))
    own = (group * 97 + rng.integers(40, size=(n, draws))) % width
    words = np.where(rng.random((n, draws)) < share, own, words).ravel()
    X = sp.csr_matrix((np.ones(n * draws), words, np.arange(n + 1) * draws), shape=(n, width))
    X.sum_duplicates()
    return X


class Side:
    """A fit that goes on round by round."""

    def __init__(self, X, k, labels, alpha, bounds, few_words=None):
        self.latent = Mixture(Emissions((Multinomial(alpha=alpha),)), k)
        self.part, self.theta = Partition((X,), given=labels), self.latent.unknown()
        self.state, self.clock = None, Clock(0, (1.0,), 0.0)
        self.bounds, self.times, self.objective = bounds, [], 0.0
        self.few_words = bounds if few_words is None else few_words

    def round(self):
        """Do one round, and note the times of its parts."""
        # What rounds did before there were bounds, and tables of components with few words.
        pruning.FEWEST = 128 if self.bounds else 10**9
        summing.FEW, summing.FEWER = (2, 3) if self.few_words else (10**9,) * 2
        latent, part, clock = self.latent, self.part, self.clock
        if self.state is None:
            self.state = latent.infer(part, self.theta, clock, None)
        times = [time.process_time()]
        self.theta = latent.maximise(part, self.theta.without(0), 0, clock, self.state)
        times.append(time.process_time())
        self.state = latent.infer(part, self.theta, clock, self.state)
        times.append(time.process_time())
        summary = latent.summarise(part, self.theta, clock, self.state)
        self.objective = latent.value(summary, self.theta).objective
        times.append(time.process_time())
        self.times.append(np.diff(times))

    def labels(self):
        """Return the component of each row."""
        return self.state.resp[0].argmax(axis=1)


if __name__ == "__main__":
    main()
