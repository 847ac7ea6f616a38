"""Late rounds with many components, with bounds and without: time, and what they give.

Both sides start from the same grouping and do the same rounds, one after the other in turn. The
times are those of the processor, of all threads together, so that others at work on the machine
disturb them less; the best of the last rounds counts.
"""

import argparse
import os
import time

import numpy as np
from zipf import zipf_counts

from coem import SphericalKMeans
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels import instruction_set, summing
from coem.latent import pruning
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.protocols import Clock

THREADS = 2
LATE = 4  # rounds at the end that count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, nargs="+", default=[100, 400, 1000])
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--alpha", type=float, default=0.01)
    options = parser.parse_args()
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


class Side:
    """A fit that goes on round by round."""

    def __init__(self, X, k, labels, alpha, bounds):
        self.latent = Mixture(Emissions((Multinomial(alpha=alpha),)), k)
        self.part, self.theta = Partition((X,), given=labels), self.latent.unknown()
        self.state, self.clock = None, Clock(0, (1.0,), 0.0)
        self.bounds, self.times, self.objective = bounds, [], 0.0

    def round(self):
        """Do one round, and note the times of its parts."""
        # What rounds did before there were bounds, and tables of components with few words.
        settings = (128, 2, 3) if self.bounds else (10**9,) * 3
        pruning.FEWEST, summing.FEW, summing.FEWER = settings
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
