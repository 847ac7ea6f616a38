"""Rounds on a Dask cluster of this machine, against threads of one process.

    python benchmarks/dask_rounds.py                 # 1 M documents, some minutes and 5 GB
    python benchmarks/dask_rounds.py --rows 100000 --components 20

The cluster has two workers of one thread, the process two threads. Rows are placed before the first
round. Threads and cluster take turns, because other programs slow down the machine for a while:
each line has the median seconds of a round, and the ratio to the fits of threads before and after
it. Then a worker is killed in round 3.
"""

import argparse
import os
import signal
import threading
import time
import warnings

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

from coem import MixtureClusterer
from coem.records import watch

N_WORDS, N_TOPICS, N_DRAWS, BATCH = 100_000, 50, 115, 50_000


EARLY = 3  # rounds that are left out: rows are placed, and have many components


def documents(n_rows):
    """Return counts of about 100 words per row, half of which are those of a topic."""
    prob = np.cumsum(1.0 / np.arange(1, N_WORDS + 1))
    words = np.random.default_rng(0).permutation(N_WORDS)
    batches = [batch(min(BATCH, n_rows - at), prob, words, at) for at in range(0, n_rows, BATCH)]
    return sp.vstack(batches, format="csr")


def batch(n_rows, prob, words, seed):
    rng = np.random.default_rng(seed + 1)
    topics = rng.integers(N_TOPICS, size=n_rows)
    ranks = np.searchsorted(prob, rng.random((n_rows, N_DRAWS)) * prob[-1])
    moved = (ranks + 1_900 * (topics[:, np.newaxis] + 1)) % N_WORDS
    drawn = words[np.where(rng.random(ranks.shape) < 0.5, moved, ranks)]
    places = np.repeat(np.arange(n_rows), N_DRAWS)
    ones = np.ones(drawn.size, dtype=np.float32)
    X = sp.csr_matrix((ones, (places, drawn.ravel())), shape=(n_rows, N_WORDS))
    X.sum_duplicates()
    return X


def fit(X, args, client=None):
    """Return a fitted model, with the seconds of processors in a late round."""
    model = MixtureClusterer(
        args.components, init="random", max_iter=args.rounds, tol=0, random_state=0, n_jobs=2
    )
    at = {}
    with watch(lambda record: at.setdefault(record.round, used(client))):
        model.set_params(engine=client).fit(X)
    model.cpu = (at[args.rounds] - at[EARLY]) / (args.rounds - EARLY)
    return model


def seconds(*models):
    """Return the median seconds of a late round; the first one also places the rows."""
    return float(np.median([record.seconds for m in models for record in m.history_[EARLY:]]))


def used(client=None):
    """Return the seconds that all processors have worked for this process and all workers."""
    workers = {} if client is None else client.run(time.process_time)
    return time.process_time() + sum(workers.values())


def killer(client):
    """Return a function that looks at rounds, and kills a worker half a second into the third."""
    _, pid = sorted(client.run(os.getpid).items())[0]

    def look(record):
        if record.round == 2:
            threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()

    return look


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3, help="fits of the cluster")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    X = documents(args.rows)
    print(
        f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros, k = {args.components}", flush=True
    )
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        before, ratios = fit(X, args), []
        for _ in range(args.turns):
            plain, after = fit(X, args, client), fit(X, args)
            ratios.append(report("dask", plain, before, after))
            before = after
        print(f"median of the ratios: {np.median(ratios):.2f}")
        with watch(killer(client)):
            killed = fit(X, args, client)
        report("worker killed", killed, before)
        same = plain.objective_ == killed.objective_ and (plain.labels_ == killed.labels_).all()
        print(f"the same bits with and without the loss: {same}")


def report(name, model, *local):
    """Print a line for a fit of the cluster, and return its ratio to fits of threads."""
    own, threads = seconds(model), seconds(*local)
    apart = abs(model.objective_ / local[0].objective_ - 1)
    rounds = " ".join(f"{record.seconds:.2f}" for record in model.history_)
    print(
        f"{name:13} {own:.2f} s per round, threads {threads:.2f} s: {own / threads:.2f}x; "
        f"objective {apart:.1e} apart"
    )
    if model.cpu > 0:  # not if a worker was killed, with all that it had worked
        ratio = model.cpu / np.mean([other.cpu for other in local])
        print(f"              {model.cpu:.2f} s of processors, {ratio:.2f}x")
    print(f"              rounds: {rounds}", flush=True)
    return own / threads


if __name__ == "__main__":
    main()
