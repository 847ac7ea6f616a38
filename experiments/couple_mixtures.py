"""Coupled runs of mixtures against restarts, and which components recur (Lin 2006, Fig. 4-6).

Everything in the first tables costs the same: 240 rounds, of 4 runs or of 8. Of each way the run
with the largest objective is kept, as `MixtureClusterer` does.

    python experiments/couple_mixtures.py [PART ...]

A part is one of the document sets, "sharp", "recurrence", "accidents" or "trust"; without any, all.
"""

import sys

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from trials import side_by_side, table

from coem import AspectModel, MixtureClusterer, RunCoupling
from coem.datasets import fetch_20newsgroups, fetch_citeseer, fetch_cluto, fetch_cora
from coem.latent.shared_rows import transition_of
from coem.metrics import cluster_entropy
from coem.schedules import Linear
from coem.selection import stability

TRIALS = 5
SETS = ("re0", "tr11", "wap", "hitech", "20 Newsgroups", "Cora", "Citeseer", "Cora, 3 views")

WORDS = "one coupling through the words"


def rows(n_couplings, n_rounds, among="all", include_self=True):
    """Return a coupling of runs through the rows."""
    return RunCoupling(
        "rows",
        among,
        include_self=include_self,
        n_couplings=n_couplings,
        n_rounds=n_rounds,
    )


# Ways to spend 240 rounds; the rounds after the last coupling are `max_iter`.
WAYS = {
    "8 runs of 30": {"n_init": 8, "max_iter": 30},
    "4 runs of 60": {"n_init": 4, "max_iter": 60},
    "the same, annealed": {"n_init": 4, "max_iter": 60, "beta": Linear(0.02, 1.0, 40)},
    "one coupling, ring, others alone": {"coupling_of_runs": rows(1, 30, "ring", False)},
    "one coupling, all, others alone": {"coupling_of_runs": rows(1, 30, "all", False)},
    "one coupling, all": {"coupling_of_runs": rows(1, 30)},
    "three, ring, others alone": {"coupling_of_runs": rows(3, 15, "ring", False)},
    "three, ring": {"coupling_of_runs": rows(3, 15, "ring")},
    "three, all (the default)": {"coupling_of_runs": rows(3, 15)},
    "the default, annealed": {"coupling_of_runs": rows(3, 15), "beta": Linear(0.02, 1.0, 40)},
    WORDS: {},
}


FEW = "8 runs of 30", "4 runs of 60", "the same, annealed", "three, all (the default)"


def main():
    parts = {"sharp": sharp, "recurrence": recurrence, "accidents": accidents, "trust": trust}
    for name in sys.argv[1:] or (*SETS, *parts):
        if name in parts:
            parts[name]()
            continue
        compare(name, "random", list(WAYS))
        compare(name, "spherical", FEW)


def load(name):
    """Return the rows, their classes and the number of classes."""
    if name.startswith(("Cora", "Citeseer")):
        data = fetch_cora() if name.startswith("Cora") else fetch_citeseer()
        X = data.views if name.endswith("views") else data.views["words"]
        return X, data.target, len(data.target_names)
    if name == "20 Newsgroups":
        data = fetch_20newsgroups()
        rows = np.random.default_rng(0).choice(len(data.target), 3000, replace=False)
        X = data.views["body"][rows]
        return X[:, np.diff(X.tocsc().indptr) >= 3], np.asarray(data.target)[rows], 20
    data = fetch_cluto(name)
    return data.views[data.views.names[0]], data.target, len(data.target_names)


def compare(name, init, ways):
    """Print what every way of spending the rounds comes to."""
    X, target, k = load(name)
    print(f"### {name}: {len(target)} rows, {k} components, init={init!r}, {TRIALS} trials\n")
    ways = [way for way in ways if way != WORDS or not is_views(X)]
    tasks = [(X, target, k, init, way, trial) for way in ways for trial in range(TRIALS)]
    values = np.array(side_by_side(trial_of, tasks)).reshape(len(ways), TRIALS, 3)
    rows = []
    for way, value in zip(ways, values, strict=True):
        gain = (value[:, 0] - values[0, :, 0]) / len(target)
        larger = f"{int((gain > 0).sum())}/{TRIALS}"
        rows.append((way, f"{gain.mean():+.3f}", larger, *map(spread, value[:, 1:].T)))
    table(("", "objective a row", "larger", "entropy, bits", "NMI"), rows)


def is_views(X):
    return hasattr(X, "names")


def spread(values):
    """Return mean and standard error as text."""
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def trial_of(X, target, k, init, way, trial):
    """Return objective, entropy and NMI of the run that is kept."""
    if way == WORDS:
        model = through_words(X, k, init, trial)
    else:
        settings = {"n_init": 4, "max_iter": rounds_left(WAYS[way])} | WAYS[way]
        model = MixtureClusterer(k, init=init, tol=0, random_state=trial, **settings).fit(X)
    labels = model.labels_
    found = cluster_entropy(target, labels), normalized_mutual_info_score(target, labels)
    return model.objective_, *found


def rounds_left(settings):
    coupling = settings.get("coupling_of_runs")
    return 60 if coupling is None else 60 - coupling.times * coupling.after


def through_words(X, k, init, trial):
    """Couple four runs once with p(h2|h1) = sum_w p(w|h1) p(h2|w); `coem` does not offer it."""
    seeds = np.random.RandomState(trial).randint(2**31 - 1, size=4)
    usual = {"max_iter": 30, "tol": 0}
    runs = [MixtureClusterer(k, init=init, random_state=seed, **usual).fit(X) for seed in seeds]
    resp = [run.predict_proba(X) for run in runs]
    (view,) = runs[0].view_names_
    words = [run.families_[view].feature_probs(run.theta_[view]) for run in runs]
    joint = [p * run.weights_[:, np.newaxis] for p, run in zip(words, runs, strict=True)]
    posterior = [p / np.maximum(p.sum(axis=0), 1e-300) for p in joint]
    ends = []
    for me in range(4):
        told = [resp[o] @ transition_of(words[o] @ posterior[me].T) for o in range(4) if o != me]
        start = np.mean(told, axis=0)
        ends.append(MixtureClusterer(k, init=start, **usual).fit(X))
    return max(ends, key=lambda model: model.objective_)


# -- groups that are far apart --------------------------------------------------------------------


def sharp(trials=4):
    """Print by how much coupled runs end above restarts where groups are drawn from the model."""
    settings = (12, 30), (12, 60), (20, 30), (20, 60), (20, 120)
    for init in ("random", "spherical"):
        print(f"### 200 words, groups drawn from the model, init={init!r}: gain in nats\n")
        tasks = [(*given, init, trial) for given in settings for trial in range(trials)]
        gains = np.array(side_by_side(gain_of, tasks)).reshape(len(settings), trials)
        rows = [
            (f"{k} groups, {length} words a row", *(f"{gain:+.0f}" for gain in line))
            for (k, length), line in zip(settings, gains, strict=True)
        ]
        table(("", *(f"trial {i + 1}" for i in range(trials))), rows)
        counts = (np.abs(gains) <= 1).sum(), (gains < -1).sum(), (gains > 1).sum()
        print("within a nat {}, restarts ahead {}, coupled runs ahead {}\n".format(*counts))


def gain_of(k, length, init, trial):
    """Return the objective of coupled runs less that of as many rounds of restarts."""
    rng = np.random.default_rng([k, length, trial])
    topics = rng.dirichlet(np.full(200, 0.1), size=k)
    X = np.stack([rng.multinomial(length, topics[i]) for i in rng.integers(k, size=50 * k)])
    ways = WAYS["three, all (the default)"] | {"n_init": 4, "max_iter": 15}, WAYS["8 runs of 30"]
    usual = {"init": init, "tol": 0, "random_state": trial}
    coupled, alone = (MixtureClusterer(k, **usual, **way).fit(X).objective_ for way in ways)
    return coupled - alone


# -- recurrence ---------------------------------------------------------------------------------


def recurrence():
    """Print which components recur where groups are known, and where there are none."""
    print("### Components that recur, of 10 runs\n")
    lines = [line_of(*case) for case in cases()]
    header = ("", "in all runs", "in half of them", "in none", "mean trust", "adjusted Rand")
    table(header, lines)


def cases():
    """Yield a name, a model and rows."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.2), size=4)
    far = rng.poisson(60 * topics[np.arange(400) % 4])
    near = rng.poisson(6 * topics[np.arange(400) % 4] + 0.1)
    flat = rng.poisson(1.5, size=(400, 40))
    start = {"init": "k-means++", "tol": 1e-4}
    for name, X, k in (
        ("4 groups far apart, k = 4", far, 4),
        ("4 groups that overlap, k = 4", near, 4),
        ("the same, k = 8", near, 8),
        ("no groups, k = 4", flat, 4),
        ("no groups, k = 8", flat, 8),
    ):
        yield f"{name}, 1 start a run", MixtureClusterer(k, **start), X
        yield f"{name}, 10 starts a run", MixtureClusterer(k, n_init=10, **start), X
    yield "4 groups that overlap, aspects, k = 4", AspectModel(4, tol=1e-6), near
    yield "no groups, aspects, k = 4", AspectModel(4, tol=1e-6), flat


def accidents(samples=5):
    """Print how often components recur in few rows without groups."""
    print("### 240 rows without groups, two components, 5 starts a run: of 9 runs, 5 samples\n")
    drawn = [np.random.default_rng(s).poisson(1.5, size=(240, 40)) for s in range(samples)]
    rows = []
    for init in ("random", "k-means++", "spherical"):
        model = MixtureClusterer(2, init=init, n_init=5, tol=1e-4)
        for share in (None, 0.8):
            found = [stability(model, X, subsample=share, random_state=0) for X in drawn]
            times = (max(row.recurs for row in f.table) for f in found)
            rows.append((init, share or "all rows", *times))
    table(("start", "subsample", *(f"sample {i + 1}" for i in range(samples))), rows)


def trust(names=("re0", "tr11", "wap", "Cora", "20 Newsgroups")):
    """Print whether components that recur are closer to the classes than those that do not."""
    print("### Class entropy within components, in bits, 10 runs\n")
    rows = []
    for name in names:
        X, target, k = load(name)
        usual = {"init": "spherical", "tol": 1e-4, "n_jobs": 2}
        for way, settings in (
            ("1 start a run", {}),
            ("4 coupled", {"n_init": 4, "coupling_of_runs": "rows"}),
        ):
            model = MixtureClusterer(k, **usual, **settings)
            found = stability(model, X, n_runs=10, random_state=0)
            often = np.array([row.recurs >= 5 for row in found.table])[found.labels]
            inside, outside = (bits(target, found.labels, part) for part in (often, ~often))
            recur = sum(row.recurs >= 5 for row in found.table)
            shares = f"{often.mean():.2f}", f"{found.mean_agreement:.2f}"
            rows.append((f"{name}, {way}", f"{recur} of {k}", *shares, inside, outside))
    header = ("", "recur in half of the runs", "share of rows", "adjusted Rand")
    table((*header, "entropy there", "entropy elsewhere"), rows)


def bits(target, labels, part):
    return f"{cluster_entropy(np.asarray(target)[part], labels[part]):.2f}" if part.any() else "-"


def line_of(name, model, X):
    found = stability(model.set_params(n_jobs=2), X, n_runs=10, random_state=0)
    recurs = np.array([row.recurs for row in found.table if row.share > 0])
    counts = (recurs == 9).sum(), (recurs >= 5).sum(), (recurs == 0).sum()
    shares = f"{found.row_trust.mean():.2f}", f"{found.mean_agreement:.2f}"
    return (name, *(f"{n} of {len(recurs)}" for n in counts), *shares)


if __name__ == "__main__":
    main()
