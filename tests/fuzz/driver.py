"""Runs the cases of a target in processes of their own, and finds out which one killed them."""

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field

CHILD = "tests.fuzz.child"
N_PER_CHILD = 2000  # cases: the memory of a case is not that of all the cases before


@dataclass(frozen=True)
class Finding:
    """A case that crashed, hung, took too much memory or raised what it may not."""

    target: str
    seed: int
    said: str

    def __str__(self):
        again = f"python -m tests.fuzz --target {self.target} --seed {self.seed} --cases 1"
        return f"{self.target}, seed {self.seed}\n{self.said}\nSee it again: {again}"


@dataclass
class Outcome:
    """What became of a target."""

    target: str
    n_cases: int = 0
    findings: list[Finding] = field(default_factory=list)


def hunt(target, seed, *, seconds=None, n_cases=None, per_case=20, most=5):
    """Run cases from `seed` on, until the time or the number is up or `most` are found."""
    outcome, first = Outcome(target), seed
    ends = None if seconds is None else time.monotonic() + seconds
    while len(outcome.findings) < most:
        left = None if ends is None else ends - time.monotonic()
        rest = None if n_cases is None else first + n_cases - seed
        if (left is not None and left <= 0) or rest == 0:
            break
        turn = N_PER_CHILD if rest is None else min(rest, N_PER_CHILD)
        n_begun, found = _run(target, seed, left, turn, per_case)
        outcome.n_cases += n_begun
        seed += n_begun
        if found is not None:
            outcome.findings.append(Finding(target, seed - 1, found))
        elif n_begun < turn:  # the time is up
            break
    return outcome


def _run(target, seed, *limits):
    """Run a child; return how many cases it began, and what it said if it did not end well."""
    command = [sys.executable, "-m", CHILD, target, *map(str, (seed, *limits))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, out, err = done.returncode, done.stdout, done.stderr
    n_begun = len(re.findall(r"^\d+$", out, re.MULTILINE))
    if code == 0:
        return n_begun, None
    if n_begun == 0:
        raise RuntimeError(f"the target {target} cannot begin:\n{err}")
    return n_begun, f"exit code {code}\n{_essence(err)}"


def _essence(err):
    """Return what a child said, without the list of modules that `faulthandler` adds."""
    return err.partition("\nExtension modules:")[0].strip()[-4_000:]
