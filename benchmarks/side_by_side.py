"""Compare two checkouts: time, memory and results of the same fits, in one run.

A change that only moves code around must lose no speed, take no more memory and change no bit::

    python benchmarks/side_by_side.py --old ../before/src --new src
    python benchmarks/side_by_side.py --old ../before/src --new src --only co-em --repeats 15

Both checkouts are copied first, so you can edit them while this runs. Each checkout has a worker
process. The workers take turns (old, new, new, old, ...), so that a busy machine slows down both.
Each line of the table shows

- the median time of each side with its inter-quartile range (IQR), and the ratios new/old of the
  medians, of the minima, and of the medians of CPU time;
- the peak of the memory that one run adds, in a new process. "Resident" is what the process holds;
  it varies by several MB, most with threads. "Traced" is what Python and NumPy allocate; it hardly
  varies, but does not count what the kernels allocate themselves;
- whether the results are the same bits. If not: the relative difference of the objectives, and the
  share of rows with equal labels.

A case below 0.2 s gets more turns than `--repeats`, a case above 2 s gets half of them. A case that
looks worse is measured again, and of its memory the least counts. The last lines name the cases
that still look worse: run them again with `--only` and more repeats. To see the noise of your
machine, compare a checkout with itself.
"""

import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SAME = "same bits"
SHORT, LONG = 0.2, 2.0  # seconds: cases below get more turns, cases above fewer
MANY = 10  # times the turns, at most
TIMINGS, PEAKS = 3, 5  # how often a case that looks worse is measured at most
SLOWER = 1.03  # ratios above this are worth a second look
MORE = {"traced": (1.02, 1.0), "resident": (1.1, 4.0)}  # ratio and MB that are no noise, together

HEAD = (
    f"{'':<22}{'old ms':>9}    IQR{'new ms':>9}    IQR   ratio of...      "
    "  resident MB     traced MB\n"
    f"{'case':<22}{'median':>9}       {'median':>9}         median  min   CPU"
    "     old    new     old    new  results"
)


def main():
    given = arguments()
    scale = 0.1 if given.quick else 1.0
    repeats = given.repeats or (2 if given.quick else 7)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        sides = [Worker(src, Path(folder), name) for name, src in vars(given.sides).items()]
        names = choose(sides[0].ask("about")["cases"], given.only)
        tell_machine(sides)
        print(HEAD, flush=True)
        reports = [compare(sides, name, scale, repeats) for name in names]
        for side in sides:
            side.end()
    tell_verdict(reports)
    print(f"{time.perf_counter() - began:.0f} s, load at the end {os.getloadavg()[0]:.1f}")
    return any(report is None for report in reports)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="`src` folder of one checkout")
    parser.add_argument("--new", type=Path, required=True, help="`src` folder of the other")
    parser.add_argument("--only", nargs="+", help="cases whose names contain one of these")
    parser.add_argument("--repeats", type=int, help="timed runs per case and side [7; quick: 2]")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    given = parser.parse_args()
    given.sides = argparse.Namespace(old=given.old, new=given.new)
    return given


def choose(cases, wanted):
    """Return the names of the cases to run."""
    chosen = [case for case in cases if not wanted or any(text in case for text in wanted)]
    if not chosen:
        sys.exit(f"no such case; there are {', '.join(cases)}")
    return chosen


class CaseError(Exception):
    """A worker could not run a case."""


class Worker:
    """A process that imports a copy of one checkout, and measures what it is told to."""

    def __init__(self, src, folder, name):
        self.name, self.src = name, src
        home = folder / name
        copy_checkout(src.resolve(), home)
        # Without `site`: an editable install would be imported in place of the copy.
        path = [home, HERE, *filter(os.path.exists, map(os.path.abspath, sys.path))]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONHASHSEED": "0"}
        if env.get("COEM_DATA"):
            env["COEM_DATA"] = os.path.abspath(env["COEM_DATA"])
        command = [sys.executable, "-S", str(HERE / "one_side.py")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=folder, env=env, text=True, **pipes)
        found = Path(self.ask("about")["file"])
        if home not in found.parents:
            sys.exit(f"{name}: coem was imported from {found} and not from {home}")

    def send(self, do, **order):
        """Give the worker an order."""
        self.process.stdin.write(json.dumps({"do": do} | order) + "\n")
        self.process.stdin.flush()

    def receive(self):
        """Return the answer to the oldest order, which may be an error."""
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the worker of {self.name} ({self.src}) has ended")
        return json.loads(line)

    def ask(self, do, **order):
        """Return the answer to an order."""
        self.send(do, **order)
        return self.check(self.receive())

    def check(self, answer):
        """Raise if the answer is an error."""
        if isinstance(answer, dict) and "error" in answer:
            raise CaseError(f"{self.name}: {answer['error']}")
        return answer

    def end(self):
        """Let the worker end, and wait for it."""
        self.process.stdin.close()
        self.process.wait()


def copy_checkout(src, home):
    """Copy the package, with kernels from the checkout's own environment if `src` has none."""
    if not (src / "coem").is_dir():
        sys.exit(f"{src} has no coem: give the `src` folder of a checkout")
    shutil.copytree(src / "coem", home / "coem", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = home / "coem" / "kernels"
    if any(kernels.glob("_compiled*.so")):
        return
    built = glob.glob(f"{src.parent}/.venv/lib/python3*/site-packages/coem/kernels/_compiled*.so")
    if not built:
        sys.exit(f"{src} has no compiled kernels: run `make setup` in {src.parent}")
    shutil.copy(built[0], kernels)


def compare(sides, case, scale, repeats):
    """Measure one case on both sides, print its line, and return it as a record."""
    record = Record(case)
    order = {"case": case, "scale": scale}
    try:
        first = [side.ask("time", **order) for side in sides]  # makes the data; not counted
        turns = turns_of(first, scale, repeats)
        for _ in range(TIMINGS):
            record.runs += run_in_turns(sides, order, turns)
            if not record.slower():
                break
        record.results = compare_results(sides, [first, *record.runs])
        for _ in range(PEAKS):
            record.memory.append(ask_together(sides, "memory", order))
            if not record.larger():
                break
    except CaseError as error:
        print(f"{case:<22}  failed, {error}", flush=True)
        return None
    print(record.line(), flush=True)
    return record


def turns_of(first, scale, repeats):
    """Return the number of turns: more for a short case, so that medians mean something."""
    seconds = min(found["seconds"] for found in first)
    if seconds > LONG:
        return max(repeats // 2, 1)
    return repeats * min(max(int(scale * SHORT / seconds), 1), MANY)


def run_in_turns(sides, order, turns):
    """Return pairs of measurements, old and new; the side that comes first alternates."""
    runs = []
    for turn in range(turns):
        first = sides if turn % 2 == 0 else sides[::-1]
        pair = {side.name: side.ask("time", **order) for side in first}
        runs.append([pair[side.name] for side in sides])
    return runs


def ask_together(sides, do, order):
    """Return the answers of workers that work at the same time; not for anything timed."""
    for side in sides:
        side.send(do, **order)
    answers = [side.receive() for side in sides]  # of both, even if one has failed
    return [side.check(answer) for side, answer in zip(sides, answers, strict=True)]


def compare_results(sides, runs):
    """Say if all runs of both sides gave the same bits, or how much they differ."""
    seen = [{found["digest"] for found in side} for side in zip(*runs, strict=True)]
    for side, digests in zip(sides, seen, strict=True):
        if len(digests) > 1:
            return f"{side.name} changes from run to run"
    if seen[0] == seen[1]:
        return SAME
    old, new = (found["objective"] for found in runs[-1])
    told = ["differ"]
    if None not in (old, new):
        told.append(f"objective by {abs(new - old) / max(abs(old), 1e-300):.1e}")
    labels = [side.ask("labels") for side in sides]
    if None not in labels and len(labels[0]) == len(labels[1]):
        told.append(f"{np.mean(np.equal(*labels)):.2%} of labels equal")
    return ", ".join(told)


class Record:
    """What was measured of one case: pairs of old and new in `runs` and `memory`."""

    def __init__(self, case):
        self.case, self.runs, self.memory, self.results = case, [], [], None

    def times(self, what):
        """Return all "seconds" or "cpu" of a side in a row, of shape (2, n_runs)."""
        return np.array([[found[what] for found in pair] for pair in self.runs]).T

    def least(self, what):
        """Return the "resident" or "traced" megabytes of both sides: peaks vary with threads."""
        columns = zip(*([found[what] for found in pair] for pair in self.memory), strict=True)
        return [None if None in values else min(values) for values in columns]

    def line(self):
        """Return the line of the table."""
        seconds = self.times("seconds")
        quartiles = np.percentile(seconds * 1e3, [25, 50, 75], axis=1).T
        times = "".join(f"{median:>9.1f} {high - low:>6.1f}" for low, median, high in quartiles)
        ratios = ratio(np.median, seconds), ratio(np.min, seconds), self.cpu_ratio()
        told = "".join(f"{value:>6.2f}" for value in ratios)
        memory = "  ".join(megabytes(self.least(what)) for what in ("resident", "traced"))
        return f"{self.case:<22}{times}  {told}  {memory}  {self.results}"

    def cpu_ratio(self):
        """Return the ratio of the medians of CPU time."""
        return ratio(np.median, self.times("cpu"))

    def slower(self):
        """Return if new is slower in three of four turns, at its fastest, and by CPU time."""
        old, new = seconds = self.times("seconds")
        usual = np.percentile(new / old, 25)
        return min(usual, ratio(np.min, seconds), self.cpu_ratio()) > SLOWER

    def larger(self):
        """Return if new takes more memory, beyond what is noise."""
        for what, (factor, megabytes) in MORE.items():
            old, new = self.least(what)
            if None not in (old, new) and new > factor * old + megabytes:
                return True
        return False


def ratio(summary, values):
    old, new = summary(values, axis=1)
    return new / old


def megabytes(pair):
    return " ".join(f"{'?' if value is None else format(value, '.1f'):>6}" for value in pair)


def tell_machine(sides):
    for side in sides:
        print(f"{side.name}  {side.src.resolve()}")
    print(f"{os.cpu_count()} processors, load at the start {os.getloadavg()[0]:.1f}\n")


def tell_verdict(records):
    """Name the cases that need a second look."""
    done = [record for record in records if record is not None]
    lists = {
        "slower": [record.case for record in done if record.slower()],
        "more memory": [record.case for record in done if record.larger()],
        "other results": [record.case for record in done if record.results != SAME],
    }
    print()
    for what, cases in lists.items():
        print(f"{what}: {', '.join(cases) or 'none'}")
    if len(done) < len(records):
        print(f"failed: {len(records) - len(done)}")


if __name__ == "__main__":
    sys.exit(main())
