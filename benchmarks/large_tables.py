"""Tables of many components and words: as lists of words, and as dense tables.

The rows are drawn from planted groups: some of the words of a row follow Zipf's law over the whole
vocabulary, the others one over the words of its group. Each side is a process of its own, so that
its peak of memory is its own. Times are those of the processor, of all threads together.
"""

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from coem import MixtureClusterer
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels import instruction_set
from coem.kernels.sparse_tables import SparseTable
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.metrics import aligned_accuracy
from coem.protocols import Clock

THREADS = 2
DRAWS = 110  # words of a row
OWN = 44  # of them from its group
N_OWN = 3000  # words of a group
HIDDEN = 0.2  # of the rows begin in a group at random
LATE = 3  # rounds at the end that count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=1000)
    parser.add_argument("--alpha", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--fit", action="store_true", help="fit an estimator from its own start")
    parser.add_argument("--init", default="spherical", help="that start")
    parser.add_argument("--sides", nargs="+", default=["lists", "dense"])
    parser.add_argument("--side", help="for the processes that this one starts")
    options = parser.parse_args()
    if options.side:
        (fit if options.fit else rounds)(options)
        return
    print(
        f"kernels for {instruction_set()}, {THREADS} threads, alpha = {options.alpha}, "
        f"{options.rows:,} rows, {options.words:,} words, k = {options.components:,}\n",
        flush=True,
    )
    for side in options.sides:
        subprocess.run([sys.executable, *sys.argv, "--side", side], check=True)


def planted(n_rows, n_words, k, seed=0):
    """Return rows of words, and the group of each."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(k, size=n_rows)
    order = rng.permutation(n_words).astype(np.int32)
    words = order[zipf(rng, n_words, (n_rows, DRAWS))]
    ranks = zipf(rng, N_OWN, (n_rows, OWN))
    # A word of a group is anywhere in the vocabulary, often or rarely used by others.
    places = (ranks * 2654435761 + groups[:, np.newaxis] * 97531 * (ranks + 7)) % n_words
    words[:, :OWN] = order[places]
    ones = np.ones(words.size, dtype=np.float32)
    indptr = np.arange(n_rows + 1, dtype=np.int32) * DRAWS
    X = sp.csr_matrix((ones, words.ravel(), indptr), shape=(n_rows, n_words))
    X.sum_duplicates()
    return X, groups


def zipf(rng, n, size):
    """Return ranks below `n`, whose chances fall with the rank."""
    return np.minimum(np.exp(rng.random(size) * np.log(n + 1)).astype(np.int64) - 1, n - 1)


largest = {"parameters": 0, "statistics": 0}  # bytes


@dataclass(frozen=True)
class Watched(Multinomial):
    """A family that notes how large its parameters and statistics become."""

    def estimate(self, stats):
        """Return the parameters."""
        theta = super().estimate(stats)
        for name, values in (("parameters", theta), ("statistics", stats.counts)):
            largest[name] = max(largest[name], values.nbytes)
        return theta


def family_of(options):
    """Return the family of a side."""
    return Watched(options.alpha, dense_cells=0 if options.side == "lists" else np.inf)


def rounds(options):
    """Do some rounds from the planted groups with errors; print what they cost."""
    k = options.components
    X, groups = planted(options.rows, options.words, k)
    rng = np.random.default_rng(1)
    start = np.where(rng.random(len(groups)) < HIDDEN, rng.integers(k, size=len(groups)), groups)
    latent, before = Mixture(Emissions((family_of(options),)), k), peak()
    part, theta, clock = Partition((X,), given=start), latent.unknown(), Clock(0, (1.0,), 0.0)
    times, state = [], None
    with LocalEngine(THREADS):
        state = latent.infer(part, theta, clock, None)
        for _ in range(options.rounds):
            times.append([time.process_time()])
            theta = latent.maximise(part, theta.without(0), 0, clock, state)
            times[-1].append(time.process_time())
            state = latent.infer(part, theta, clock, state)
            times[-1].append(time.process_time())
            objective = latent.value(latent.summarise(part, theta, clock, state), theta).objective
            times[-1].append(time.process_time())
        after = peak()
        stats = latent.gather(part, theta, 0, clock, state).views[0]
    labels = np.concatenate([state.resp[0][b.rows].argmax(axis=1) for b in part.blocks])
    m, e, v = np.min(np.diff(times, axis=1)[-LATE:], axis=0)
    table = theta.of_view(0)
    print(f"{options.side}: {X.nnz / X.shape[0]:.0f} non-zeros a row")
    print(f"  s of the processor: M {m:.2f}, E {e:.2f}, objective {v:.2f}, a round {m + e + v:.2f}")
    common = table.common.shape[1] if isinstance(table, SparseTable) else options.words
    print(
        f"  MB: parameters {table.nbytes / 1e6:,.0f}, statistics {stats.counts.nbytes / 1e6:,.0f}"
    )
    print(f"  words with a cell for each component: {common:,}")
    print(f"  peak MB: rows {before:,.0f}, rounds {after:,.0f}, with statistics {peak():,.0f}")
    accuracy = np.mean(labels == groups)
    print(f"  objective {objective:.9e}, rows in their group {accuracy:.4f}\n", flush=True)


def fit(options):
    """Fit an estimator from its own start; print what it cost and what it found."""
    X, groups = planted(options.rows, options.words, options.components)
    before, began = peak(), time.process_time()
    model = MixtureClusterer(
        options.components,
        family=family_of(options),
        init=options.init,
        max_iter=options.rounds,
        random_state=0,
        n_jobs=THREADS,
    ).fit(X)
    spent = time.process_time() - began
    print(f"{options.side}, {options.init}: {model.n_iter_} rounds, {spent:.1f} s of the processor")
    print(f"  peak MB: rows {before:,.0f}, fit {peak():,.0f}", end="")
    print("".join(f", {name} {size / 1e6:,.0f}" for name, size in largest.items()))
    print(f"  objective {model.objective_:.9e}", end="")
    print(f", rows in their group {aligned_accuracy(groups, model.labels_):.4f}\n", flush=True)


def peak():
    """Return the peak of the memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
