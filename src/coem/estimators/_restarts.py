"""Runs from several starts."""

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coem.engine import LocalEngine
from coem.records import Records


def draw_seeds(random_state, n):
    """Return one seed for each of `n` runs."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def each_run(engine, run, n):
    """Return the results of ``run(index, engine)`` for `n` runs.

    Side by side, one thread a run, if no thread is idle then, else one run after another on all
    threads: the bits are the same.
    """
    if n >= engine.n_workers > 1:
        serial = LocalEngine(1)
        return engine.map(lambda index: run(index, serial), range(n))
    return [run(index, engine) for index in range(n)]


def run_records(results, seeds):
    """Return what is told of every run."""
    return Records(
        Bunch(
            run=index,
            seed=int(seed),
            objective=result.objective,
            n_iter=len(result.history),
            converged=result.converged,
            seconds=sum(record.seconds for record in result.history),
        )
        for index, (seed, result) in enumerate(zip(seeds, results, strict=True))
    )
