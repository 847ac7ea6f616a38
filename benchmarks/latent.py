"""Latent directions of 20 Newsgroups: LatentDirections against TruncatedSVD, in one run."""

import argparse
import time

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from coem.datasets import fetch_20newsgroups
from coem.text import LatentDirections

N_DIRECTIONS = 100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    counts = fetch_20newsgroups(views=("body",)).views["body"]
    frequent = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]) >= 3)
    counts = counts[:, frequent]
    print(f"{counts.shape[0]:,} posts, {counts.shape[1]:,} words, {counts.nnz:,} counts; fit of")
    print(f"{N_DIRECTIONS} directions from counts, best of {args.repeats} runs that alternate\n")
    runs = {
        "TruncatedSVD, n_iter=5, 1 thread": lambda: theirs(counts, 1),
        "TruncatedSVD, n_iter=5, 2 threads": lambda: theirs(counts, 2),
        "LatentDirections, 1 thread": lambda: ours(counts, 1),
        "LatentDirections, 2 threads": lambda: ours(counts, 2),
    }
    best, shares = dict.fromkeys(runs, (np.inf, np.inf)), {}
    for _ in range(args.repeats):
        for name, run in runs.items():
            start = time.perf_counter(), time.process_time()
            shares[name] = run()
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            best[name] = tuple(map(min, best[name], spent))
    print("| | seconds | seconds of processors | explained share |")
    print("| --- | --- | --- | --- |")
    for name, (wall, cpu) in best.items():
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {shares[name]:.5f} |")


def theirs(counts, n_threads):
    """Return the share of the squared length of all TF-IDF rows that lies in the directions."""
    rows = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    model = TruncatedSVD(N_DIRECTIONS, algorithm="randomized", n_iter=5, random_state=0)
    with threadpool_limits(n_threads):
        model.fit(rows)
    n_filled = np.count_nonzero(np.diff(rows.indptr))
    return np.square(model.singular_values_).sum() / n_filled


def ours(counts, n_threads):
    return LatentDirections(N_DIRECTIONS, n_jobs=n_threads).fit(counts).explained_share_


if __name__ == "__main__":
    main()
