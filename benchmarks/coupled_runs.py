"""Coupled runs against runs by themselves: Fig. 4, 5 and 6 of Lin (2006).

Medline and Cranfield, pairs of runs of the aspect model. EM takes 50 iterations; EMcon goes on for
50 more; CoEM does so after a coupling with the other run of the pair, SCoEM after one with itself;
DAEM takes 100 from the same start, with beta in three steps. Percentiles of the final KL in nats
over all runs, and whether what the paper says of them holds.

The paper says "random initializations" and no more. --start random begins with p(x) for every
p(x|h) and p(y|h) drawn about p(y); --start both draws both from flat Dirichlet distributions.

--many SEEDS couples six runs at once instead, one and three times, and tells who should learn from
whom: medians of the final KL over the runs of so many fits.
"""

import argparse

import numpy as np
from trials import side_by_side, table

from coem import AspectModel, RunCoupling, couple
from coem.datasets import fetch_cranfield, fetch_medline
from coem.schedules import Steps

COLLECTIONS = {"medline": fetch_medline, "cranfield": fetch_cranfield}
ITERATIONS = 50
VIAS = ("xy", "a", "b", "c", "d")
SELF = ("b", "d")
ALONE = ("EM", "EMcon", "DAEM")
PERCENTILES = (0, 25, 50, 75, 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=25, help="pairs of runs (25)")
    parser.add_argument("--k", type=int, nargs="+", default=[25, 50, 100], help="components")
    parser.add_argument("--data", choices=COLLECTIONS, nargs="+", default=[*COLLECTIONS])
    parser.add_argument("--start", choices=("random", "both"), default="random")
    parser.add_argument("--many", type=int, metavar="SEEDS", help="six runs at once, so many times")
    parser.add_argument("--via", choices=VIAS, nargs="+", default=[*VIAS], help="with --many")
    options = parser.parse_args()
    for name in options.data:
        X = COLLECTIONS[name]().views["words"]
        for k in options.k:
            if options.many:
                show_many(name, X, k, options)
                continue
            print(
                f"{name}, {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} non-zeros, k = {k}, "
                f"{options.pairs} pairs, start {options.start!r}\n"
            )
            tasks = [(X, k, options.start, pair) for pair in range(options.pairs)]
            show(side_by_side(run_pair, tasks))


# -- runs ----------------------------------------------------------------------------------------


def run_pair(X, k, start, pair):
    """Return the final KL of both runs of a pair, for every algorithm."""
    # One EM serves all algorithms that begin with it: couplings go on from its end.
    begun = [begin(X, k, start, seed) for seed in (2 * pair, 2 * pair + 1)]
    first, second = (fit(X, k, n_runs=1, **options) for options in begun)
    found = {
        "EM": [first.kl_, second.kl_],
        "EMcon": ends(X, k, [first, second]),
        "DAEM": [fit(X, k, 2 * ITERATIONS, n_runs=1, beta=STEPS, **o).kl_ for o in begun],
    }
    for via in VIAS:
        found[f"CoEM {via}"] = ends(X, k, [*couple(first, second, via, X)])
    for via in SELF:
        found[f"SCoEM {via}"] = ends(X, k, [couple(m, m, via, X)[0] for m in (first, second)])
    return found


STEPS = Steps([0.95, 0.975, 1.0], 2 * ITERATIONS // 3)


def begin(X, k, start, seed):
    """Return the options of a fit that set its start."""
    if start == "random":
        return {"random_state": seed}
    rng = np.random.default_rng(seed)
    n, m = X.shape
    drawn = np.full(k, 1 / k), rng.dirichlet(np.ones(n), k), rng.dirichlet(np.ones(m), k)
    return {"init": drawn}


def fit(X, k, max_iter=ITERATIONS, **options):
    return AspectModel(k, max_iter=max_iter, dtype=np.float32, **options).fit(X)


def ends(X, k, starts):
    """Return where runs end that go on from given parameters."""
    return [record.kl for record in fit(X, k, init=starts).runs_]


# -- more than two runs ---------------------------------------------------------------------------

WHO = {
    "all": {"among": "all"},
    "ring": {"among": "ring"},
    "pairs": {"among": "pairs"},
    "itself": {"among": "self"},
}


def show_many(name, X, k, options):
    """Print the median KL of six runs that learn from each other in different ways."""
    print(f"{name}, k = {k}, six runs, {options.many} seeds, {ITERATIONS} iterations a phase\n")
    seeds = range(options.many)
    alone = np.concatenate(side_by_side(alone_of, [(X, k, seed) for seed in seeds]))
    tasks = [(X, k, via, who, s) for via in options.via for who in WHO for s in seeds]
    found = np.concatenate(side_by_side(many_of, tasks), axis=1)
    medians = np.median(found.reshape(2, len(options.via), len(WHO), -1), axis=-1)
    header = [f"{n} coupling{'s' * (n > 1)}: {who}" for n in (1, 3) for who in WHO]
    rows = [
        (via, *(f"{value:.3f}" for value in medians[:, i].ravel()))
        for i, via in enumerate(options.via)
    ]
    table(("", *header), rows)
    print("EM continued: {:.3f} and {:.3f}\n".format(*np.median(alone, axis=0)), flush=True)


def many_of(X, k, via, who, seed):
    """Return the KL of six runs after one and after three couplings, (2, 6)."""
    coupling = RunCoupling(via, **WHO[who])
    model = fit(X, k, n_runs=6, coupling=coupling, rounds=3, random_state=seed)
    return np.array([[r.kl for r in model.runs_ if r.phase == phase] for phase in (1, 3)])


def alone_of(X, k, seed):
    """Return the KL of six runs after as many iterations without a coupling, (6, 2)."""
    first = fit(X, k, 2 * ITERATIONS, n_runs=6, random_state=seed)
    last = fit(X, k, 4 * ITERATIONS, n_runs=6, random_state=seed)
    return np.array([[r.kl for r in model.runs_] for model in (first, last)]).T


# -- figures -------------------------------------------------------------------------------------


def show(pairs):
    """Print the percentiles, and whether the paper's findings hold."""
    kl = {name: np.array([pair[name] for pair in pairs]).ravel() for name in pairs[0]}
    table(
        ["KL", *(f"{p}%" for p in PERCENTILES)],
        [[name, *(f"{v:.4f}" for v in np.percentile(x, PERCENTILES))] for name, x in kl.items()],
    )
    median = {name: np.median(x) for name, x in kl.items()}
    coupled = [f"CoEM {via}" for via in VIAS]
    own = [f"SCoEM {via}" for via in SELF]
    best_alone = min(kl[name].min() for name in ALONE)
    said = {
        "DAEM below EMcon": median["DAEM"] < median["EMcon"],
        "every CoEM below EMcon": all(median[c] < median["EMcon"] for c in coupled),
        "every CoEM below DAEM": all(median[c] < median["DAEM"] for c in coupled),
        "every SCoEM below EMcon": all(median[c] < median["EMcon"] for c in own),
        "a below b, c and d below both": max(median["CoEM c"], median["CoEM d"])
        < median["CoEM a"]
        < median["CoEM b"],
        "a and c below SCoEM": max(median["CoEM a"], median["CoEM c"])
        < min(median[c] for c in own),
    }
    for claim, holds in said.items():
        print(f"- {claim}, in the median: {'yes' if holds else 'no'}")
    for name in ("CoEM c", "CoEM d"):
        below = (kl[name] < best_alone).mean()
        print(f"- runs of {name} below the best run by itself ({best_alone:.4f}): {below:.0%}")
    print(flush=True)


if __name__ == "__main__":
    main()
