"""Kill fits at random moments, start them again until they end, and compare with fits in one go.

    python benchmarks/kills.py --kills 100 --what cluster
    python benchmarks/kills.py --kills 100 --what classify --what coupled --what hmm

A run is started in a process of its own, which gets SIGKILL after a random time, and is started
again with the same call until it comes to its end. Its result is then compared, bit by bit, with
that of a run that nobody disturbed. Runs go on until there were enough kills. Every second run
writes its state after every round, so that many kills hit a write. The number of threads changes
from start to start.

What follows the fits of ``cluster`` and ``classify`` (groups are told, the page is made) is not
kept. It is done again after a kill, and may take longer than the time between two kills. So after
a kill that found nothing new in the state, the next one may take longer to come; when the state
has changed, kills are as quick as in the beginning. Two of three kills count their time from the
first round after the start, because what is before it (tables are read, words are counted, starts
are found) takes most of the time of many starts.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import coem
from coem.engine import local
from coem.io import checkpoint
from coem.recipes import result
from coem.records import watch

N_ROWS, N_WORDS, N_TOPICS = 3000, 1500, 12
N_FEW = 600  # rows of documents: the page of all of them is made again and again
LONGEST = 0.6  # times the time of a whole run pass before a kill, at most
GROWTH = 1.5  # and times that after a kill without progress
SEVERAL = 2  # kills that a run needs to count
BEGIN, FITS, TAIL = "before the first round", "in the fits", "after the last round"


def counts(rng):
    """Return counts of words with topics, and the topic of each row."""
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)
    own = np.arange(N_ROWS) % N_TOPICS
    mixed = 0.3 * topics[own] + 0.7 * topics.mean(axis=0)
    return np.stack([rng.multinomial(40, p) for p in mixed]), own


def documents(rng):
    """Return a table of texts, one in ten with a label."""
    X, own = (part[:N_FEW] for part in counts(rng))
    words = np.array([f"w{i}" for i in range(N_WORDS)])
    texts = [" ".join(np.repeat(words, row)) for row in X]
    labels = [f"t{t % 4}" if i % 10 < 3 else None for i, t in enumerate(own)]
    return {"id": [str(i) for i in range(N_FEW)], "body": texts, "topic": labels}


def cluster(data, folder):
    """Return the digests of the files of ``coem cluster``."""
    found = coem.cluster(
        data, text="body", k=N_TOPICS, restarts=40, latent=None, threads=2, checkpoint=folder
    )
    return files_of(found)


def k_means(data, folder):
    """Return the digests of the files of ``coem cluster --method k-means``."""
    how = {"method": "k-means", "restarts": 40, "latent": None, "threads": 2}
    return files_of(coem.cluster(data, text="body", k=N_TOPICS, checkpoint=folder, **how))


def classify(data, folder):
    """Return the digests of the files of ``coem classify``."""
    found = coem.classify(
        data, text="body", label="topic", latent=None, threads=2, checkpoint=folder
    )
    return files_of(found)


def coupled(X, folder):
    """Return the digest of aspect models whose runs are coupled."""
    how = {"n_runs": 3, "coupling": "c", "rounds": 3, "max_iter": 150}
    model = coem.AspectModel(N_TOPICS, **how, random_state=0, n_jobs=2, checkpoint=folder).fit(X)
    return arrays_of(model, "weights_", "x_given_h_", "y_given_h_", "history_", "transition_")


def hmm(X, folder):
    """Return the digest of a hidden Markov model."""
    how = {"n_init": 3, "tol": 0, "max_iter": 500, "init": "random"}
    model = coem.HiddenMarkovModel(
        N_TOPICS, **how, random_state=0, n_jobs=2, checkpoint=folder
    ).fit(X, lengths=[len(X) // 10] * 10)
    return arrays_of(model, "startprob_", "transmat_", "theta_", "labels_", "history_", "runs_")


TARGETS = {
    "cluster": (cluster, documents),
    "k-means": (k_means, documents),
    "classify": (classify, documents),
    "coupled": (coupled, lambda rng: counts(rng)[0]),
    "hmm": (hmm, lambda rng: counts(rng)[0]),
}


def some(data):
    """Return a tenth of the rows."""
    n = N_FEW // 10
    return {k: v[:n] for k, v in data.items()} if isinstance(data, dict) else data[:n]


def files_of(made):
    """Return the digests of all files of a run; the record of it without its seconds."""
    with tempfile.TemporaryDirectory() as home:
        folder = made.save(Path(home) / "run")
        record = json.loads((folder / "run.json").read_text())
        record.pop("seconds")
        (folder / "run.json").write_text(json.dumps(record, sort_keys=True))
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def arrays_of(model, *names):
    """Return the digests of attributes of a model, without seconds."""
    return {name: hashlib.sha256(plain(getattr(model, name))).hexdigest() for name in names}


def plain(value):
    """Return a value as bytes that differ if it does."""
    if isinstance(value, list):
        return b"[" + b",".join(map(plain, value)) + b"]"
    if isinstance(value, dict):
        parts = [repr(k).encode() + plain(v) for k, v in value.items() if k != "seconds"]
        return b"{" + b",".join(parts) + b"}"
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape)).encode() + value.tobytes()
    return repr(value).encode()


def start(work, data, folder, threads, eager, answer):
    """Start a process that writes what `work` returns to the file `answer`; return its number."""
    number = os.fork()
    if number:
        return number
    try:
        warnings.simplefilter("ignore")
        local.MOST_THREADS = threads  # the record of a run has the number that was asked for
        if eager:
            checkpoint.THRIFT = 0
        with telling(answer.parent):
            told = json.dumps(work(data, folder))
        answer.with_suffix(".new").write_text(told)
        answer.with_suffix(".new").rename(answer)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@contextmanager
def telling(home):
    """Make a file when the first round of a run has ended, and another when all fits have."""
    tell = result.Job.tell

    def look(record):
        (home / FITS).touch()

    def told(*given, **more):
        (home / TAIL).touch()
        return tell(*given, **more)

    result.Job.tell = told
    with watch(look):
        yield


def stage_of(home):
    """Return how far a run was, and forget it."""
    stages = [stage for stage in (FITS, TAIL) if (home / stage).exists()]
    for stage in stages:
        (home / stage).unlink()
    return stages[-1] if stages else BEGIN


def marks_of(folder):
    """Return what changes if the state in a folder does."""
    paths = sorted(folder.rglob("*.zip")) if folder.exists() else []
    infos = [(str(path), path.stat()) for path in paths]
    return [(name, info.st_ino, info.st_mtime_ns) for name, info in infos]


def ended(number, seconds, mark=None):
    """Wait for a process for some seconds, then kill it; return whether it came to its end.

    The seconds count from when there is a file `mark`, if one is given.
    """
    until = time.monotonic() + seconds if mark is None else None
    while until is None or time.monotonic() < until:
        if until is None and mark.exists():
            until = time.monotonic() + seconds
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            if os.waitstatus_to_exitcode(status):
                sys.exit("a run failed; see above")
            return True
        time.sleep(0.001)
    os.kill(number, signal.SIGKILL)
    _, status = os.waitpid(number, 0)
    return os.waitstatus_to_exitcode(status) == 0


def disturbed(work, data, home, whole_time, eager, chance):
    """Run until the end in spite of kills; return the result, and where the kills hit."""
    kills, answer, folder = [], home / "answer.json", home / "state"
    longest, marks = LONGEST * whole_time, None
    while True:
        stage_of(home)
        number = start(work, data, folder, chance.choice([1, 2]), eager, answer)
        mark = chance.choice([None, home / FITS, home / FITS])
        if ended(number, chance.uniform(0, longest), mark):
            left = sorted(os.listdir(folder)) if folder.exists() else []
            return json.loads(answer.read_text()), kills, left
        kills.append(stage_of(home))
        before, marks = marks, marks_of(folder)
        longest = GROWTH * longest if marks == before else LONGEST * whole_time


def measure(name, n_kills, seed, home):
    """Kill runs of one kind until there were enough kills; return what was found.

    The time of a whole run is measured again before each disturbed one, because kills would come
    too late or too early if the load of the machine changed. Only runs that were killed `SEVERAL`
    times or more count: one that nobody disturbed proves nothing.
    """
    work, make = TARGETS[name]
    data, chance = make(np.random.default_rng(0)), random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(some(data), None)  # so that no child has to import modules
    found = {"kills": [], "few": 0, "different": 0, "seconds": [], "hit": Counter()}
    expected, number = None, 0
    while sum(found["kills"]) < n_kills:
        number += 1
        place = home / f"{name}-{number}"
        place.mkdir()
        whole, seconds = undisturbed(work, data, place)
        expected = whole if expected is None else expected
        found_again, kills, left = disturbed(work, data, place, seconds, number % 2 == 0, chance)
        found["seconds"].append(seconds)
        if not whole == found_again == expected or left:
            found["different"] += 1
            print(f"{name}: a run differs: {left} {different(found_again, expected)}", flush=True)
        elif len(kills) < SEVERAL:
            found["few"] += 1
            continue
        found["kills"].append(len(kills))
        found["hit"].update(kills)
        shutil.rmtree(place)
    return found


def undisturbed(work, data, place):
    """Return the result of a run in one go, and its seconds."""
    began = time.monotonic()
    ended(start(work, data, None, 2, False, place / "whole.json"), 3600)
    return json.loads((place / "whole.json").read_text()), time.monotonic() - began


def different(one, other):
    """Return which parts of two results differ."""
    return [name for name in other if one.get(name) != other[name]]


def main():
    """Measure what the command line asks for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--what", action="append", choices=TARGETS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    print("what       kills  runs  identical  kills a run (least, median)  left out  seconds  hit")
    for name in given.what or TARGETS:
        with tempfile.TemporaryDirectory() as home:
            found = measure(name, given.kills, given.seed, Path(home))
        kills, wrong = found["kills"], wrong + found["different"]
        print(
            f"{name:9}  {sum(kills):5}  {len(kills):4}  {len(kills) - found['different']:9}  "
            f"{f'{min(kills)}, {np.median(kills):g}':>27}  {found['few']:8}  "
            f"{np.median(found['seconds']):7.1f}  "
            + ", ".join(f"{found['hit'][stage]} {stage}" for stage in (BEGIN, FITS, TAIL)),
            flush=True,
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
