"""Stepwise EM (`partial_fit`) against EM on all rows at once: step sizes, first batches, streams.

    python experiments/batches.py [PART ...]

A part is "power" (step sizes, on the data sets that the default was chosen on), "first" (how the
first batch is fitted), "sets" (the default on other data sets), "labels" (classifiers
with few labels) or "stream" (groups that change); without any, all.
"""

import sys
from dataclasses import replace
from functools import cache

import numpy as np
from couple_mixtures import load
from sklearn.metrics import normalized_mutual_info_score
from trials import each_class, side_by_side, table

from coem import MixtureClassifier, MixtureClusterer
from coem.schedules import STEP_SIZES, StepSize

TRIALS = 3
CHOSEN_ON = {"tr11": 50, "re0": 50, "wap": 100}  # data set -> rows of a batch
OTHERS = {"hitech": 100, "fbis": 100, "20 Newsgroups": 100, "Cora, 3 views": 100}
TOL = 1e-4

data = cache(load)


def main():
    parts = {"power": power, "first": first, "sets": sets, "labels": labels, "stream": stream}
    for name in sys.argv[1:] or parts:
        parts[name]()


# -- measures --------------------------------------------------------------------------------------


def whole(rows, seed):
    """Return what EM on all rows comes to: objective, NMI and groups with rows."""
    X, target, k = rows
    return measures(MixtureClusterer(k, tol=TOL, random_state=seed).fit(X), X, target)


def passes(rows, n_rows, seed, *, step, n_passes, known, begin=None):
    """Return what each number of passes over batches of `n_rows` rows comes to.

    With `known`, the statistics stand for the rows of the data; `begin` are parameters of the
    first batch alone.
    """
    X, target, k = rows
    rng, n = np.random.default_rng(seed), len(target)
    step = replace(step, n_rows=n if known else None)
    later = {"step": step, "max_iter": None, "tol": TOL}
    model, found = MixtureClusterer(k, random_state=seed, **later | (begin or {})), []
    for done in range(1, max(n_passes) + 1):
        for batch in np.array_split(rng.permutation(n), n // n_rows):
            model.partial_fit(X[batch])
            model.set_params(**later)
        if done in n_passes:
            found.append(measures(model, X, target))
    return found


def measures(model, X, target):
    labels = model.predict(X)
    match = normalized_mutual_info_score(target, labels)
    return objective(model, X), match, len(np.unique(labels))


def objective(model, X):
    """Return the objective of the parameters of a model on `X`, log priors included."""
    mixture, theta = model._mixture(), model._theta()
    with model._engine():
        part, state, clock = model._infer(X, None, None)
        summary = mixture.summarise(part, theta, clock, state)
    return mixture.value(summary, theta).objective


def percent(values, truth):
    """Return by how much the mean objective differs, in percent of its size."""
    difference = np.mean(values) - np.mean(truth)
    return f"{100 * difference / abs(np.mean(truth)):+.2f}"


def trials(task, settings):
    """Return an array of results, one row per setting and one column per trial."""
    given = [(*one, seed) for one in settings for seed in range(TRIALS)]
    found = side_by_side(task, given)
    return np.array(found).reshape(len(settings), TRIALS, -1)


# -- the choice of the step size -------------------------------------------------------------------

STEPS = [
    *(StepSize(power, 1.0) for power in (0.55, 0.6, 0.7, 0.8, 0.9)),
    *(StepSize(0.7, offset) for offset in (0.0, 3.0, 10.0)),
    StepSize(1.0, 0.0),
]


def power_trial(rows, n_rows, step, known, seed):
    found = passes(rows, n_rows, seed, step=step, n_passes=(1, 10), known=known)
    return [one[0] for one in found]


def power():
    """Print the objective for several step sizes, in percent of that of EM."""
    truth = {name: trials(whole, [(data(name),)])[0, :, 0] for name in CHOSEN_ON}
    for known in (True, False):
        what = "n_rows given" if known else "the effective number of rows"
        print(f"### Objective less that of EM, in percent: {what}, {TRIALS} trials\n")
        settings = [(data(s), n, step, known) for step in STEPS for s, n in CHOSEN_ON.items()]
        found = trials(power_trial, settings).reshape(len(STEPS), len(CHOSEN_ON), TRIALS, 2)
        lines = []
        for step, values in zip(STEPS, found, strict=True):
            cells = [
                percent(value[:, i], truth[name])
                for name, value in zip(CHOSEN_ON, values, strict=True)
                for i in range(2)
            ]
            lines.append((f"power {step.power}, offset {step.offset:g}", *cells))
        header = [f"{name}, {n} pass{'es' * (n > 1)}" for name in CHOSEN_ON for n in (1, 10)]
        table(("", *header), lines)


# -- the first batch -------------------------------------------------------------------------------

FIRST = {
    "a fit, rows count n / batch times": {},
    "a fit, every row counts once": {"step": StepSize()},
    "one round, rows count n / batch times": {"max_iter": 1, "tol": 0},
    "one round, every row counts once": {"max_iter": 1, "tol": 0, "step": StepSize()},
}


def first_trial(rows, n_rows, begin, seed):
    setting = {"step": StepSize(), "n_passes": (5,), "known": True}
    return passes(rows, n_rows, seed, begin=begin, **setting)


def first():
    """Print what comes of ways to treat the first batch."""
    print(f"### The first batch, after 5 passes, n_rows given, {TRIALS} trials\n")
    for names in (CHOSEN_ON, OTHERS):
        truth = {name: trials(whole, [(data(name),)])[0, :, 0] for name in names}
        settings = [(data(s), n, way) for way in FIRST.values() for s, n in names.items()]
        found = trials(first_trial, settings).reshape(len(FIRST), len(names), TRIALS, 3)
        lines = []
        for way, values in zip(FIRST, found, strict=True):
            cells = []
            for name, value in zip(names, values, strict=True):
                cells += [percent(value[:, 0], truth[name]), f"{value[:, 1].mean():.3f}"]
            lines.append((way, *cells))
        table(("", *(f"{name}, {what}" for name in names for what in ("%", "NMI"))), lines)


# -- other data sets -------------------------------------------------------------------------------

WAYS = {
    "n_rows given": {"step": StepSize(), "known": True},
    "effective number of rows": {"step": StepSize(), "known": False},
    'step="sum"': {"step": StepSize(1.0, 0.0), "known": False},
}


def sets_trial(rows, n_rows, way, seed):
    return passes(rows, n_rows, seed, n_passes=(1, 5), **way)


def first_alone(rows, n_rows, seed):
    """Return what a fit of the first batch alone comes to."""
    X, target, k = rows
    batch = np.random.default_rng(seed).permutation(len(target))[:n_rows]
    return measures(MixtureClusterer(k, tol=TOL, random_state=seed).fit(X[batch]), X, target)


def sets():
    """Print what the default comes to on data sets that it was not chosen on."""
    for name, n_rows in OTHERS.items():
        _, target, k = data(name)
        size = f"{len(target)} rows, {k} components, batches of {n_rows} rows, {TRIALS} trials"
        print(f"### {name}: {size}\n")
        truth = trials(whole, [(data(name),)])[0]
        lines = [line_of("EM on all rows", truth, truth)]
        alone = trials(first_alone, [(data(name), n_rows)])[0]
        lines.append(line_of("EM on the first batch", alone, truth))
        found = trials(sets_trial, [(data(name), n_rows, way) for way in WAYS.values()])
        for way, values in zip(WAYS, found.reshape(len(WAYS), TRIALS, 2, 3), strict=True):
            for i, times in enumerate(("1 pass", "5 passes")):
                lines.append(line_of(f"{way}, {times}", values[:, i], truth))
        table(("", "objective, %", "NMI", "groups with rows"), lines)


def line_of(name, values, truth):
    match, groups = values[:, 1].mean(), values[:, 2].mean()
    return name, percent(values[:, 0], truth[:, 0]), f"{match:.3f}", f"{groups:.1f}"


# -- labels ----------------------------------------------------------------------------------------


def labels_trial(rows, n_labelled, where, step, seed):
    """Return the accuracy on rows without a label, after one pass or (step None) a fit."""
    X, target, _ = rows
    rng, n = np.random.default_rng(seed), len(target)
    order = rng.permutation(n)
    known = each_class(rng, target, order, n_labelled)
    hidden = np.setdiff1d(order, known)
    y = np.where(np.isin(np.arange(n), known), target, -1)
    begin = np.unique(target[known], return_index=True)[1]  # a row of every class comes first
    early = known if where == "first" else known[begin]
    order = np.concatenate([early, rng.permutation(np.setdiff1d(order, early))])
    model = MixtureClassifier(tol=TOL, unlabeled_weight=0.5)
    if step is None:
        return [model.fit(X, y).score(X[hidden], target[hidden])]
    if step.n_rows is not None:
        step = replace(step, n_rows=len(known) + 0.5 * len(hidden))
    model.set_params(step=step)
    for batch in np.array_split(order, n // 100):
        model.partial_fit(X[batch], y[batch])
    return [model.score(X[hidden], target[hidden])]


def labels():
    """Print the accuracy of classifiers that learn from batches with few labels."""
    print(f"### Accuracy on rows without a label, batches of 100 rows, {TRIALS} trials\n")
    cases = [(name, where) for name in ("hitech", "20 Newsgroups") for where in ("first", "")]
    steps = {"a fit of all rows": None}
    for name, step in STEP_SIZES.items():
        steps |= {name: step, f"{name}, n_rows given": replace(step, n_rows=1)}
    settings = [(data(s), 10, where, step) for step in steps.values() for s, where in cases]
    found = trials(labels_trial, settings)
    means = found.mean(axis=(1, 2)).reshape(len(steps), len(cases))
    lines = [(name, *(f"{v:.3f}" for v in row)) for name, row in zip(steps, means, strict=True)]
    places = {"first": "all labels in the first batch", "": "labels in all batches"}
    table(("step", *(f"{name}, {places[where]}" for name, where in cases)), lines)


# -- groups that change ----------------------------------------------------------------------------


def stream_trial(drift, step, seed):
    """Return the mean log likelihood of a row before it is learnt, over the last 50 batches."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(200, 0.1), size=4)
    model, scores = MixtureClusterer(4, step=step, tol=TOL, random_state=seed), []
    for t in range(100):
        topics = (1 - drift) * topics + drift * rng.dirichlet(np.full(200, 0.1), size=4)
        rows = rng.poisson(50 * topics[rng.integers(4, size=100)])
        if t >= 50:
            scores.append(model.score(rows))
        model.partial_fit(rows)
    return [np.mean(scores)]


def stream():
    """Print how well batches are predicted, where groups stay and where they change."""
    print(f"### A stream of 100 batches of 100 rows: log likelihood of a row, {TRIALS} trials\n")
    drifts = (0.0, 0.01, 0.05)
    steps = {"power 0.6": StepSize(0.6), "forget": "forget", "power 0.9": StepSize(0.9)}
    steps |= {"sum": "sum"}
    found = trials(stream_trial, [(d, step) for step in steps.values() for d in drifts])
    means = found.mean(axis=(1, 2)).reshape(len(steps), len(drifts))
    lines = [(name, *(f"{v:.2f}" for v in row)) for name, row in zip(steps, means, strict=True)]
    table(("step", *(f"{d:.0%} of a topic is new in each batch" for d in drifts)), lines)


if __name__ == "__main__":
    main()
