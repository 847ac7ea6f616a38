"""Kill an ingest at random times until it ends, and compare the corpus with an undisturbed one.

    python benchmarks/kills_ingest.py --kills 100

Each start is killed with SIGKILL after a random time, and started again with --resume, until all
kills are used up; the last start may end. No file may differ, and no document may be lost or
doubled. Half of the kills hit a new corpus, and half hit rows that are appended.
"""

import argparse
import hashlib
import itertools
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

from coem import ingest, open_corpus

LETTERS = "abcdefghijklmnop"
WORDS = ["".join(word) for word in itertools.product(LETTERS, repeat=3)]


def write_documents(path, first, last):
    rng = random.Random(first)
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,title,body\n")
        for i in range(first, last):
            title, body = (" ".join(rng.choices(WORDS, k=n)) for n in (6, 60))
            file.write(f"d{i},{title},{body}\n")


def digests(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def start(*arguments, **more):
    """Return the number of a process that ingests; it is forked, so that it begins at once."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        ingest(*arguments, text="body" if not more.get("append") else None, **more)
        code = 0
    finally:
        os._exit(code)


def run(*arguments, **more):
    started = time.perf_counter()
    if os.waitpid(start(*arguments, **more), 0)[1]:
        raise SystemExit("an ingest failed")
    return time.perf_counter() - started


def append_to(source, folder):
    return run(source, folder, append=True)


def quickest(work, source, folder):
    """Return the least time of two tries; the load of the machine can double one."""
    before = folder.with_name("earlier")
    if folder.exists():
        shutil.copytree(folder, before)
    seconds = work(source, folder)
    shutil.rmtree(folder)
    if before.exists():
        before.rename(folder)
    return min(seconds, work(source, folder))


def kill_until_done(arguments, more, n_kills, seconds, rng):
    """Return how many of the starts were killed."""
    killed = 0
    while killed < n_kills:
        number = start(*arguments, **more, resume=True)
        ends = time.perf_counter() + rng.uniform(0, seconds)
        while time.perf_counter() < ends:
            found, status = os.waitpid(number, os.WNOHANG)
            if found and status:
                raise SystemExit("a resumed ingest failed")
            if found:
                return killed
            time.sleep(0.001)
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
        killed += 1
    run(*arguments, **more, resume=True)
    return killed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, home = random.Random(given.seed), Path(tempfile.mkdtemp())
    one, two, whole = home / "one.csv", home / "two.csv", home / "whole"
    write_documents(one, 0, given.rows)
    write_documents(two, given.rows, given.rows * 3 // 2)
    first = quickest(run, one, whole)
    shutil.copytree(whole, home / "before")
    second = quickest(append_to, two, whole)
    wanted, before = digests(whole), digests(home / "before")
    print(f"{given.rows:,} rows in {first:.1f} s, {given.rows // 2:,} more in {second:.1f} s")
    kills = rounds = 0
    while kills < given.kills:
        out = home / f"corpus-{rounds}"
        left = given.kills - kills
        kills += kill_until_done((one, out), {}, min(left, 6), first, rng)
        assert digests(out) == before, "a new corpus differs"
        left = given.kills - kills
        kills += kill_until_done((two, out), {"append": True}, min(left, 6), second, rng)
        assert digests(out) == wanted, "an appended corpus differs"
        ids = open_corpus(out).ids
        assert len(ids) == len(set(ids)) == given.rows * 3 // 2
        assert sorted(path.name for path in home.glob(".*")) == []
        shutil.rmtree(out)
        rounds += 1
        print(f"{kills} kills, {rounds} corpora, all bytes the same", flush=True)
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
