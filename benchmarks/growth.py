"""How the time of a round grows with the rows and with the words, and what it is that grows.

    python benchmarks/growth.py                              # 40 million non-zeros at most
    python benchmarks/growth.py --largest 2e8 --factor 14    # some 5 GB of memory

Every line is a corpus of Zipf counts. The columns say where the time of a round goes, in
nanoseconds of the processor a non-zero, of all threads together, best of several rounds: the E
step, the M step, and one pass over the same rows that does nothing but add up their values and
columns. The rounds are late ones: rows have planted groups, which the start knows.

The exponent of a round comes with a second one, of the round less what the table of parameters
costs, however few rows there are: the M step at zero rows by a straight line through all sizes.
"""

import argparse
import resource
import time

import numpy as np
import scipy.sparse as sp

from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels import instruction_set
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.protocols import Clock

DRAWS = 110  # words a row; about 85 of them differ
CHUNK = 10_000  # rows that are drawn at a time
REPEATS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=4e7, help="non-zeros of the last line")
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--components", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--factor", type=float, default=4.0, help="from one size to the next")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(f"{options.threads} threads, kernels for {instruction_set()}")
    print("ns of the processor a non-zero")
    for k in options.components:
        print(f"\nwords fixed: V = {options.words:,}, k = {k}")
        rows_grow(options, k)
    k = options.components[-1]
    print(f"\nnon-zeros fixed: 4 M, k = {k}")
    words_grow(options, k)


def rows_grow(options, k):
    """Print a line for each number of rows, and the exponents from the first to the last."""
    sizes, e_steps, m_steps = [], [], []
    print(HEADER)
    size = 1e6
    while size < 1.01 * options.largest:
        X, groups = corpus(int(size / 85), options.words, k)
        times = measure(X, groups, options.threads, k)
        sizes.append(X.nnz)
        e_steps.append(times["E"])
        m_steps.append(times["M"])
        show(X, times)
        size *= min(options.factor, max(options.largest / size, 1.02))
    n, rounds = np.array(sizes), np.add(e_steps, m_steps)
    # All sizes count alike: a line through the times a non-zero.
    fixed = max(np.polyfit(1 / n, np.divide(m_steps, n), 1)[0], 0.0)
    print(f"growth exponent of a round: {exponents(n, rounds)}")
    print(
        f"without {fixed * 1e3:.1f} ms of an M step at zero rows "
        f"({fixed * 1e9 / (k * options.words):.1f} ns a cell): {exponents(n, rounds - fixed)}"
    )


def exponents(sizes, seconds):
    """Return how times grow, in words."""
    x, y = np.log(sizes), np.log(seconds)
    ends = (y[-1] - y[0]) / (x[-1] - x[0])
    return f"{ends:.3f} from the first to the last, {np.polyfit(x, y, 1)[0]:.3f} through all"


def words_grow(options, k):
    """Print a line for each number of words, with as many rows as before."""
    print(HEADER)
    for n_words in (6_000, 25_000, 100_000, 400_000):
        X, groups = corpus(int(4e6 / 85), n_words, k)
        show(X, measure(X, groups, options.threads, k))


HEADER = "non-zeros     V  E step  M step  round  rows alone  table MB  rows MB  new pages a round"


def show(X, times):
    ns = {name: 1e9 * seconds / X.nnz for name, seconds in times.items() if name in "E M rows"}
    rows = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e6
    print(
        f"{X.nnz / 1e6:>7.1f} M {X.shape[1] / 1e3:>4.0f}k  {ns['E']:>6.1f}  {ns['M']:>6.1f}"
        f"  {ns['E'] + ns['M']:>5.1f}  {ns['rows']:>10.2f}  {times['table']:>8.1f}  {rows:>7.0f}"
        f"  {times['faults']:>6.0f}",
        flush=True,
    )


def corpus(n_rows, n_words, n_groups):
    """Return Zipf counts in float32 and groups; a third of the words are those of the group."""
    edges = np.cumsum(1.0 / np.arange(1, n_words + 1))
    order = np.random.default_rng(0).permutation(n_words).astype(np.int32)
    lengths, indices, data = [], [], []
    groups = np.random.default_rng(1).integers(n_groups, size=n_rows)
    for first in range(0, n_rows, CHUNK):
        n = min(CHUNK, n_rows - first)
        drawn = np.random.default_rng(first).random((n, DRAWS)) * edges[-1]
        ranks = np.searchsorted(edges, drawn).clip(max=n_words - 1)
        own = groups[first : first + n, np.newaxis] * (n_words // n_groups)
        ranks[:, : DRAWS // 3] = (ranks[:, : DRAWS // 3] + own) % n_words
        words = order[ranks]
        words.sort(axis=1)
        new = np.ones(words.shape, dtype=bool)
        new[:, 1:] = words[:, 1:] != words[:, :-1]
        starts = np.flatnonzero(new.ravel())
        indices.append(words.ravel()[starts])
        data.append(np.diff(np.append(starts, words.size)).astype(np.float32))
        lengths.append(new.sum(axis=1))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    X = sp.csr_matrix((n_rows, n_words), dtype=np.float32)
    kind = np.int32 if indptr[-1] < 2**31 else np.int64
    X.indptr, X.indices = indptr.astype(kind), np.concatenate(indices).astype(kind, copy=False)
    X.data = np.concatenate(data)
    return X, groups


def measure(X, groups, n_threads, k):
    """Return the best times of the steps of a late round, in seconds."""
    latent = Mixture(Emissions((Multinomial(alpha=0.1),)), k)
    part, clock = Partition((X,), given=groups), Clock(0, (1.0,), 0.0)
    best = {"E": np.inf, "M": np.inf, "rows": np.inf, "table": X.shape[1] * k * 4 / 1e6}
    with LocalEngine(n_threads):
        state = latent.infer(part, latent.unknown(), clock, None)
        theta = latent.maximise(part, latent.unknown(), 0, clock, state)
        for _ in range(REPEATS):
            before = faults()
            best["E"], state = keep(best["E"], lambda: latent.infer(part, theta, clock, state))  # noqa: B023
            theta = theta.without(0)
            best["M"], theta = keep(
                best["M"],
                lambda: latent.maximise(part, theta, 0, clock, state),  # noqa: B023
            )
            best["faults"] = faults() - before
    for _ in range(REPEATS):
        best["rows"], _ = keep(best["rows"], lambda: (X.data.sum(), X.indices.sum()))
    return best


def keep(best, work):
    """Return the shorter of two times, and what the work returns."""
    start = time.process_time()
    result = work()
    return min(best, time.process_time() - start), result


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


if __name__ == "__main__":
    main()
