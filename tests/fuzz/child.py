"""One process of the harness: a target, the first seed, seconds, cases, and seconds per case.

It writes the seed of each case before it begins, so that the case is known that kills it.
"""

import faulthandler
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from itertools import count
from pathlib import Path

from tests.fuzz.mutations import generator
from tests.fuzz.planted import PLANTED

MEMORY = 3 << 30  # bytes of address space


def target_of(name):
    if name in PLANTED:
        return PLANTED[name]
    from tests.fuzz.targets import TARGETS  # takes seconds

    return TARGETS[name]


def main(name, seed, seconds, n_cases, per_case):
    faulthandler.enable()
    if "ASAN_OPTIONS" not in os.environ:  # its shadow takes terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        target = target_of(name)(Path(folder))
        ends = None if seconds is None else time.monotonic() + seconds
        for case in count(seed):
            if case - seed == n_cases or (ends is not None and time.monotonic() > ends):
                break
            print(case, flush=True)
            faulthandler.dump_traceback_later(per_case, exit=True)
            target.run(generator(name, case))
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    target, *numbers = sys.argv[1:]
    main(target, *(None if text == "None" else json.loads(text) for text in numbers))
