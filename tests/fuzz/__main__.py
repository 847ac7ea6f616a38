"""``make fuzz SECONDS=60``: hostile input for everything that reads what strangers wrote."""

import argparse
import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz.driver import hunt
from tests.fuzz.targets import TARGETS


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, help="of the first case; another one every time")
    parser.add_argument("--cases", type=int, help="a number of cases for each target, not a time")
    args = parser.parse_args()
    names = args.target or list(TARGETS)
    seed = secrets.randbelow(10**9) if args.seed is None else args.seed
    n_jobs = min(os.cpu_count() or 1, len(names))
    share = None if args.cases else args.seconds * n_jobs / len(names)

    def one(name):
        return hunt(name, seed, seconds=share, n_cases=args.cases)

    print(f"from seed {seed}")
    findings = []
    with ThreadPoolExecutor(n_jobs) as pool:
        for outcome in pool.map(one, names):
            findings += outcome.findings
            print(f"{outcome.target:12} {outcome.n_cases:9,} cases, {len(outcome.findings)} found")
    for finding in findings:
        print(f"\n{finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
