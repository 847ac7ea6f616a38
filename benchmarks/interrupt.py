"""How long Ctrl-C takes to end a fit, and a verb of the program.

A fit is interrupted at several moments: a signal goes to the main thread, and the clock runs until
`KeyboardInterrupt` leaves the call. "deaf" is the longest time of a whole fit in which Python could
not hear a signal, because some compiled code ran; "of CPU" is its processor time, which is what
remains of it on a machine that does nothing else. A verb runs in this process to find that out,
and is interrupted as a process of its own.
"""

import argparse
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from serve import table
from zipf import zipf_counts

import coem
from coem import selection
from coem.cli import main as program
from coem.families import Gaussian
from coem.row_map import RowMap
from coem.text import LatentDirections, SelectWords, TextViews

TICK = 0.005  # seconds between two signals when deafness is measured
START = 2.0  # seconds in which a process loads what it needs


def fits(size):
    """Return a function for each row of the table; all of them do some seconds of work."""
    rng = np.random.default_rng(0)
    n = int(20_000 * size)
    words = zipf_counts(n, 20_000)
    topic = rng.integers(0, 5, n)
    dense = rng.standard_normal((n, 60)) + 2 * rng.standard_normal((5, 60))[topic]
    square = words[: n // 4] @ words[: n // 4].T
    labels = np.where(rng.random(n) < 0.2, topic, -1)
    texts = {"text": [row["text"] for row in table(n, 4000)]}
    common = {"random_state": 0, "tol": 0.0}
    long = {"max_iter": 40, **common}
    return {
        "MixtureClusterer": lambda: coem.MixtureClusterer(20, **long).fit(words),
        "MixtureClusterer, 2 restarts in 2 threads": lambda: coem.MixtureClusterer(
            20, n_init=2, n_jobs=2, **long
        ).fit(words),
        "MixtureClusterer, full Gaussians": lambda: coem.MixtureClusterer(
            10, family=Gaussian("full"), max_iter=10, **common
        ).fit(dense),
        "MixtureClusterer, 2 views, k-means++": lambda: coem.MixtureClusterer(
            20, init="k-means++", **long
        ).fit(coem.Views(words=words, dense=dense)),
        "MixtureClassifier": lambda: coem.MixtureClassifier(components_per_class=4, **long).fit(
            words, labels
        ),
        "PooledClassifier": lambda: coem.PooledClassifier().fit(words, labels),
        "SphericalKMeans": lambda: coem.SphericalKMeans(
            50, n_init=4, max_iter=30, random_state=0
        ).fit(words),
        "SphericalKMeans, 4 restarts in 2 threads": lambda: coem.SphericalKMeans(
            50, n_init=4, max_iter=30, random_state=0, n_jobs=2
        ).fit(words),
        "MultiViewAgglomerative": lambda: coem.MultiViewAgglomerative(5).fit(
            [words[: n // 3], dense[: n // 3]]
        ),
        "AspectModel": lambda: coem.AspectModel(30, max_iter=40, random_state=0).fit(words),
        "AspectModel, 2 coupled runs in 2 threads": lambda: coem.AspectModel(
            30, coupling="xy", max_iter=20, random_state=0, n_jobs=2
        ).fit(words),
        "TrafficModel": lambda: coem.TrafficModel(15, max_iter=20, random_state=0).fit(square),
        "HiddenMarkovModel": lambda: coem.HiddenMarkovModel(
            8, family=Gaussian("diag"), max_iter=30, **common
        ).fit(dense, lengths=[n // 2, n - n // 2]),
        "TextViews": lambda: TextViews({"text": "text"}, ngram_range=(1, 2)).fit(texts),
        "SelectWords": lambda: SelectWords(1000).fit(words, labels),
        "LatentDirections": lambda: LatentDirections(100).fit(words),
        "RowMap": lambda: RowMap().fit(dense[: n // 4]),
        "stability, 2 fits at a time": lambda: selection.stability(
            coem.MixtureClusterer(20, **long), words, n_runs=4, n_jobs=2, random_state=0
        ),
        "choose_k, 2 fits at a time": lambda: selection.choose_k(
            coem.MixtureClusterer(**long), words, [5, 10], n_jobs=2, random_state=0
        ),
        "doctor": lambda: selection.doctor(coem.MixtureClassifier(**long), words, labels),
        "held_out": lambda: selection.held_out(coem.MixtureClassifier(**long), words, labels),
    }


def deafness(fit):
    """Return the time of a fit, the longest times without a signal heard, and where one ended.

    The times are of the clock and of the processor.
    """
    heard = np.array([time.perf_counter(), time.process_time()])
    longest, where = np.zeros(2), ""

    def listen(number, frame):
        nonlocal where
        now = np.array([time.perf_counter(), time.process_time()])
        if now[1] - heard[1] > longest[1]:
            where = "".join(traceback.format_stack(frame, 2))
        np.maximum(longest, now - heard, out=longest)
        heard[:] = now

    before = signal.signal(signal.SIGALRM, listen)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    start = time.perf_counter()
    try:
        fit()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return time.perf_counter() - start, longest, where


def interrupted(fit, after):
    """Return the seconds from the signal until the fit has ended, or None if it ended before."""
    sent = []

    def send():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    try:
        timer.start()
        fit()
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    return None


def stopped_verb(arguments, folder, after):
    """Return the seconds from the signal until a verb has ended, or None if it ended before."""
    command = [sys.executable, "-m", "coem", *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, **quiet)
    try:
        process.wait(after)
        return None
    except subprocess.TimeoutExpired:
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        process.wait(120)
        return time.perf_counter() - start


def verbs(folder, size):
    """Write tables to a folder; return the arguments of the verbs that take long on them."""
    rows = table(int(8000 * size), 4000)
    for name, labelled in (("posts.csv", False), ("labelled.csv", True)):
        lines = ["id,text" + ",topic" * labelled]
        for i, row in enumerate(rows):
            topic = f",{'abcd'[i % 4] if i % 10 == 0 else ''}" * labelled
            lines.append(f"{row['id']},{row['text']}{topic}")
        (folder / name).write_text("\n".join(lines))
    for seed in "01":
        arguments = ["cluster", "posts.csv", "--seed", seed, "--out", f"run{seed}"]
        command = [sys.executable, "-m", "coem", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    classes = ["classify", "labelled.csv", "--label", "topic", "--force", "--out", "b"]
    return {
        "cluster": ["cluster", "posts.csv", "--force", "--out", "a"],
        "classify": classes,
        "classify --doctor": [*classes, "--doctor"],
        "topics": ["topics", "posts.csv", "--force", "--out", "c"],
        "segment": ["segment", "posts.csv", "--force", "--out", "d"],
        "choose-k": ["choose-k", "posts.csv"],
        "predict": ["predict", "run0", "posts.csv"],
        "report": ["report", "run0", "--out", "page.html", "--force"],
        "compare": ["compare", "run0", "run1"],
        "merge": ["merge", "run1", "0", "1"],
        "explain": ["explain", "run0", "--id", rows[0]["id"]],
        "rerun": ["rerun", "run0"],
        "reproduce": ["reproduce", "lin-2006/table-1", "--quick", "--out", "e", "--again"],
    }


def run_here(arguments, folder):
    """Run a verb in this process, and say nothing."""
    silent = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(silent),
        contextlib.redirect_stderr(silent),
        contextlib.suppress(SystemExit),
    ):
        program(arguments)


def show(name, total, deaf, seconds):
    found = [s for s in seconds if s is not None]
    worst = f"{max(found):9.2f}" if found else "        -"
    print(f"{name:<44}{total:9.2f}{deaf[0]:9.2f}{deaf[1]:9.2f}{worst}{len(found):7d}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="1: 20,000 rows")
    parser.add_argument("--times", type=int, default=5, help="interrupts of each fit")
    parser.add_argument(
        "--only", default="", help='rows with this in their names; "coem" is all verbs'
    )
    parser.add_argument("--where", action="store_true", help="show where a fit was deaf")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    moments = (np.arange(args.times) + 0.5) / args.times
    print(f"{'seconds':<44}{'whole':>9}{'deaf':>9}{'of CPU':>9}{'worst':>9}{'stops':>7}")
    for name, fit in fits(args.size).items():
        if args.only in name:
            total, deaf, where = deafness(fit)
            show(name, total, deaf, [interrupted(fit, total * m) for m in moments])
            if args.where:
                print(where)
    if args.only and not args.only.startswith("coem"):
        return
    with tempfile.TemporaryDirectory() as name:
        for verb, arguments in verbs(Path(name), args.size).items():
            if args.only in f"coem {verb}":
                total, deaf, where = deafness(partial(run_here, arguments, name))
                waits = [stopped_verb(arguments, name, START + total * m) for m in moments]
                show(f"coem {verb}", total, deaf, waits)
                if args.where:
                    print(where)


if __name__ == "__main__":
    main()
