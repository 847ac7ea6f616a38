"""Runs of a mixture, coupled through the rows now and then."""

from dataclasses import replace

import numpy as np
from sklearn.utils import Bunch

from coem.coupling import average
from coem.estimators._restarts import each_run
from coem.estimators._starts import check_responsibilities
from coem.latent.shared_rows import RowCoupling, couple_resp
from coem.records import Records
from coem.schedules import Later


def as_coupling(value, init, n_init, checkpoint):
    """Return the coupling of runs as a value, or None; refuse what it cannot be done with."""
    if value is None:
        return None
    named = isinstance(value, str) and value == "rows"
    if not named and not isinstance(value, RowCoupling):
        raise ValueError(f"coupling_of_runs must be None, 'rows' or a RowCoupling, got {value!r}")
    if not isinstance(init, str) or n_init < 2:
        raise ValueError(
            "coupling_of_runs needs two runs or more: set n_init to 4, say, and let init be a name"
        )
    if checkpoint is not None:
        raise ValueError(
            "checkpoint keeps runs that have nothing to do with each other: leave it out, or set "
            "coupling_of_runs=None"
        )
    return RowCoupling() if named else value


def run_coupled(coupling, model, partitions, draw, go, engine, schedules):
    """Take all runs through their phases, with a coupling between two phases.

    ``draw(index, data)`` gives the first start, ``go(index, engine, model, data, begin,
    **settings)`` runs EM from what `begin()` returns. Schedules run on: nothing is heated again.
    Returns the results and the transitions.
    """
    rounds, fell, links = [[] for _ in partitions], [0.0] * len(partitions), Records()
    resp = None
    for phase in range(coupling.times + 1):
        gone = phase * coupling.after
        settings = {name: Later(schedule, gone) for name, schedule in schedules.items()}
        if phase < coupling.times:
            settings |= {"max_iter": coupling.after, "tol": 0.0, "patience": None}

        def run(index, engine, resp=resp, settings=settings):
            data = partitions[index]

            def begin():
                if resp is None:
                    return draw(index, data)
                return model.from_resp(data, resp[index])

            return go(index, engine, model, data, begin, **settings)

        results = each_run(engine, run, len(partitions))
        for index, result in enumerate(results):
            rounds[index] += [replace(r, round=r.round + gone) for r in result.history]
            fell[index] = max(fell[index], result.fell)
        if phase < coupling.times:
            resp, used = _couple(partitions, coupling, phase)
            links += [Bunch(coupling=phase, **vars(link)) for link in used]
    ended = zip(results, rounds, fell, strict=True)
    return [replace(result, history=h, fell=f) for result, h, f in ended], links


def _couple(partitions, coupling, turn):
    """Return new responsibilities for every run, (n_slots, n, k), and the transitions."""
    runs = [data.cache.resp for data in partitions]
    empty = partitions[0].empty
    means = [average(resp, empty) if len(resp) > 1 else resp[0] for resp in runs]
    weight = np.concatenate([block.row_weight() for block in partitions[0].blocks])
    return couple_resp(runs, coupling, weight, turn, means)


def couple_mixtures(a, b, X):
    """Return responsibilities for either model that say what the other one knows."""
    runs = [_responsibilities(given, name, X) for given, name in ((a, "a"), (b, "b"))]
    if len(runs[0]) != len(runs[1]):
        raise ValueError(f"a and b must be of the same rows, got {[len(run) for run in runs]}")
    (first, second), _ = couple_resp(runs, RowCoupling(own=False))
    return first, second


def _responsibilities(given, name, X):
    """Return what a model says of every row, or responsibilities that are given, in double."""
    if not hasattr(given, "fit"):
        return check_responsibilities(given, name)
    if not hasattr(given, "predict_proba"):
        raise TypeError(
            f"via='rows' couples mixtures, and {name} is none: {type(given).__name__}; aspect "
            "models are coupled via 'xy', say, traffic models within one, by coupling='x'"
        )
    if X is None:
        raise ValueError("via='rows' asks both models about the rows: pass them as X")
    return np.asarray(given.predict_proba(X), dtype=np.float64)
