"""Kill an ingest at random times until it ends, and compare the corpus with an undisturbed one.

    python benchmarks/kills_ingest.py --kills 100

Each start is killed with SIGKILL after a random time, and started again with --resume, until all
kills are used up; the last start may end. No file may differ, and no document may be lost or
doubled. Half of the kills hit a new corpus, and half hit rows that are appended.
"""

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from coem import open_corpus

WORDS = [f"word{i}" for i in range(5000)]
START = "from coem.cli import main; main()"


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


def call(*arguments):
    return [sys.executable, "-c", START, "ingest", *map(str, arguments), "-q"]


def run(*arguments):
    started = time.perf_counter()
    subprocess.run(call(*arguments), check=True, capture_output=True)
    return time.perf_counter() - started


def kill_until_done(arguments, n_kills, seconds, rng):
    """Return how many of the starts were killed."""
    killed = 0
    while killed < n_kills:
        process = subprocess.Popen(
            call(*arguments, "--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            _, said = process.communicate(timeout=rng.uniform(0.3, 1.1 * seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
            continue
        if process.returncode:
            raise SystemExit(f"a resumed ingest failed: {said.decode()}")
        return killed
    run(*arguments, "--resume")
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
    first = run(one, "--out", whole)
    shutil.copytree(whole, home / "before")
    second = run(two, "--out", whole, "--append")
    wanted, before = digests(whole), digests(home / "before")
    print(f"{given.rows:,} rows in {first:.1f} s, {given.rows // 2:,} more in {second:.1f} s")
    kills = rounds = 0
    while kills < given.kills:
        out = home / f"corpus-{rounds}"
        left = given.kills - kills
        kills += kill_until_done((one, "--out", out), min(left, 6), first, rng)
        assert digests(out) == before, "a new corpus differs"
        left = given.kills - kills
        kills += kill_until_done((two, "--out", out, "--append"), min(left, 6), second, rng)
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
