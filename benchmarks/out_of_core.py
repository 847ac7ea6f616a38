"""Rounds on a corpus against rounds in memory: seconds a non-zero, and how they grow.

    python benchmarks/out_of_core.py              # a small corpus, in a temporary folder
    python benchmarks/out_of_core.py --rows 2000000 --folder zipf --limit 2 --ingest

Documents of some 100 different words are drawn from groups, with word frequencies by Zipf's law,
and written shard by shard. With ``--ingest`` they go through a pipe as JSON lines to ``coem
ingest`` instead. Each measurement is a process of its own: a fit to a tenth of the rows in memory,
and a fit to all of them in the corpus, both with random starts. With ``--limit`` the processes that
ingest and fit the corpus cannot have more address space than that.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

N_WORDS, N_GROUPS = 100_000, 50
TOKENS = 105  # drawn for a document; some 100 of them differ
SHARD_ROWS = 75_000  # some 7.5 million non-zeros
LETTERS = np.frombuffer(b"bcdfghjklmnpqrstvwxz", np.uint8)  # no stop word has these alone


def draw(n_rows, rng):
    """Return the words of texts: half of a text is common to all groups, half is its group's own.

    The result has a row of `TOKENS` words for each text.
    """
    shares = 1.0 / np.arange(10, N_WORDS + 10)
    edges = np.cumsum(shares / shares.sum())
    words = np.searchsorted(edges, rng.random((n_rows, TOKENS), dtype=np.float32))
    words = np.minimum(words, N_WORDS - 1)
    group = rng.integers(N_GROUPS, size=(n_rows, 1))
    # A word of a group is the common word of the same rank, moved by a step of its own.
    moved = (words + 1 + group * (N_WORDS // N_GROUPS)) % N_WORDS
    return np.where(np.arange(TOKENS) % 2, words, moved).astype(np.int32)


def documents(n_rows, rng):
    """Return counts of words."""
    words = draw(n_rows, rng)
    rows = sp.csr_matrix(
        (np.ones(words.size, np.float32), words.ravel(), np.arange(n_rows + 1) * TOKENS),
        shape=(n_rows, N_WORDS),
    )
    rows.sum_duplicates()
    return rows


def print_texts(n_rows, seed=0):
    """Write the same documents to standard output as JSON lines; a word has five letters."""
    places = np.arange(N_WORDS)[:, np.newaxis] // len(LETTERS) ** np.arange(4) % len(LETTERS)
    spelt = np.full((N_WORDS, 6), ord(" "), np.uint8)
    spelt[:, 0], spelt[:, 1:5] = ord("q"), LETTERS[places]
    head, tail = b'{"text": "', b'"}\n'
    for shard, begin in enumerate(range(0, n_rows, SHARD_ROWS)):
        words = draw(min(SHARD_ROWS, n_rows - begin), np.random.default_rng([seed, shard]))
        lines = np.empty((len(words), len(head) + 6 * TOKENS + len(tail)), np.uint8)
        lines[:, : len(head)] = np.frombuffer(head, np.uint8)
        lines[:, len(head) : -len(tail)] = spelt[words].reshape(len(words), -1)
        lines[:, -len(tail) :] = np.frombuffer(tail, np.uint8)
        sys.stdout.buffer.write(lines)


def bound(limit):
    """Let this process have no more GiB of address space than that; 0 is no limit."""
    if limit:
        # Arrow's own allocator would reserve 1 GiB at once; it reads this when it is imported.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        size = int(limit * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def ingest(folder, args):
    """Pipe texts to ``coem ingest``, and print what that took."""
    command = [sys.executable, "-m", "coem", "ingest", "-", "--out", str(folder)]
    command += ["--threads", str(args.jobs), "--quiet"]
    began = time.perf_counter()
    texts = subprocess.Popen(
        [sys.executable, __file__, "--print", "--rows", str(args.rows)], stdout=subprocess.PIPE
    )
    taker = subprocess.Popen(command, stdin=texts.stdout, preexec_fn=lambda: bound(args.limit))
    texts.stdout.close()  # so that the writer ends if the reader does
    _, status, used = os.wait4(taker.pid, 0)
    if status or texts.wait():
        raise SystemExit("coem ingest failed")
    spent = used.ru_utime + used.ru_stime
    print(
        f"ingest of {args.rows:,} documents: {time.perf_counter() - began:.0f} s, "
        f"{spent / args.rows * 1e6:.1f} us of processor time a document, "
        f"peak {used.ru_maxrss / 2**10:,.0f} MiB",
        flush=True,
    )


def write(folder, n_rows, seed=0):
    """Write a corpus of so many documents; return the number of its non-zeros."""
    from coem.io.corpus_writer import CorpusWriter

    writer, total = CorpusWriter(folder), 0
    for shard, begin in enumerate(range(0, n_rows, SHARD_ROWS)):
        rows = documents(min(SHARD_ROWS, n_rows - begin), np.random.default_rng([seed, shard]))
        writer.append({"words": rows})
        total += rows.nnz
    return total


def fit(folder, *, share, rounds, n_jobs, limit):
    """Fit in this process, and print what it took as JSON: a `share` of the rows, in memory if < 1.

    The first two rounds are left out: they map the files, and have dense posteriors.
    """
    bound(limit)
    from coem import MixtureClusterer, open_corpus
    from coem.records import watch

    X = open_corpus(folder)
    n_rows = int(len(X) * share)
    n_nonzero = sum(
        int(shard.read()[name].nnz)
        for name in X.names
        for shard in X.shards[: max(1, round(len(X.shards) * share))]
    )
    if share < 1:
        X = X.rows(0, X.bounds[max(1, round(len(X.shards) * share))])
        n_rows = len(X)
        X = {name: X[name].copy() for name in X.names}
    model = MixtureClusterer(
        N_GROUPS,
        family="multinomial",
        init="random",
        max_iter=rounds,
        tol=0,
        n_jobs=n_jobs,
        random_state=0,
        evidence="fixed",
    )
    began, spent = time.perf_counter(), []
    with watch(lambda record: spent.append(time.process_time())):
        model.fit(X)
    whole = time.perf_counter() - began
    seconds = [record.seconds for record in model.history_]
    late = seconds[2:] or seconds
    print(
        json.dumps(
            {
                "rows": n_rows,
                "nonzeros": n_nonzero,
                "fit": whole,
                "round": float(np.median(late)),
                "processor": float(np.median(np.diff(spent)[1:])),
                "objective": model.objective_,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def measure(folder, share, args, limit):
    """Return what a fit took in a process of its own."""
    command = [sys.executable, __file__, "--fit", str(folder), "--share", str(share)]
    command += ["--rounds", str(args.rounds), "--jobs", str(args.jobs), "--limit", str(limit)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def report(name, found):
    each, spent = (found[key] / found["nonzeros"] * 1e9 for key in ("round", "processor"))
    print(
        f"{name:22} {found['rows']:>10,} rows {found['nonzeros']:>12,} non-zeros "
        f"{found['round']:8.3f} s a round, {each:6.2f} ns a non-zero "
        f"({spent:.2f} ns of processor time), "
        f"{found['fit']:7.1f} s in all, peak {found['peak'] / 2**20:,.0f} MiB"
    )
    return np.array([each, spent])


def compare(folder, args):
    in_memory = report("in memory, a tenth", measure(folder, 0.1, args, 0))
    streamed = report("corpus", measure(folder, 1, args, args.limit))
    wall, processor = streamed / in_memory
    print(
        f"a non-zero of the corpus takes {wall:.2f} times as long as in memory, and "
        f"{processor:.2f} times the processor time, which other programs change less"
    )


def growth(args):
    """Print the exponent with which a round grows over corpora of several sizes."""
    sizes, seconds = [], []
    for n_rows in args.sizes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "corpus"
            write(folder, n_rows)
            found = measure(folder, 1, args, 0)
        report("corpus", found)
        sizes.append(found["nonzeros"])
        seconds.append(found["round"])
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"a round grows with the non-zeros to the power of {slope:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--folder", type=Path, help="where the corpus is or is to be")
    parser.add_argument("--limit", type=float, default=0, help="GiB of address space; 0 for none")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", help="rows; print how a round grows")
    parser.add_argument("--write", action="store_true", help="write the corpus, and no more")
    parser.add_argument("--ingest", action="store_true", help="write it by coem ingest")
    parser.add_argument("--print", action="store_true", help="print the texts, and no more")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--share", type=float, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        limit = args.limit
        return fit(args.fit, share=args.share, rounds=args.rounds, n_jobs=args.jobs, limit=limit)
    if args.print:
        return print_texts(args.rows)
    if args.sizes:
        return growth(args)
    with tempfile.TemporaryDirectory() as place:
        folder = args.folder or Path(place) / "corpus"
        if not folder.exists() and args.ingest:
            ingest(folder, args)
        elif not folder.exists():
            began = time.perf_counter()
            total = write(folder, args.rows)
            print(f"{total:,} non-zeros written in {time.perf_counter() - began:.0f} s")
        if not args.write:
            compare(folder, args)


if __name__ == "__main__":
    main()
