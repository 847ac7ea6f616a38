"""Random-walk traffic between autonomous systems (Lin 2006, Sec. 4.4 and 5, Fig. 7 and 8)."""

import argparse

import numpy as np
from trials import side_by_side, table

from coem import AspectModel, TrafficModel, couple
from coem.datasets import fetch_as_graph, walk_steps
from coem.latent.traffic import Traffic
from coem.latent.transitions import couple_hubs
from coem.run_coupling import RunCoupling
from coem.schedules import Steps

ITER = 50  # I of the paper: iterations before and after a coupling
ANNEALED = Steps([0.95, 0.975, 1.0], 33)  # Sec. 4.3: 33, 33 and 34 of the 100 iterations
WALK = 0  # seed of the steps, which are the same for all pairs


def steps():
    """Return the training and the test steps."""
    return walk_steps(fetch_as_graph().adjacency, random_state=WALK)


def pair_of_aspects(k, seed):
    """Return for every algorithm (test log likelihood a step, KL) of both runs of a pair.

    All algorithms go on from the same two runs of 50 iterations, as the paper's do.
    """
    train, test = steps()
    seeds = 2 * seed, 2 * seed + 1

    def run(init="random", max_iter=ITER, **settings):
        return AspectModel(k, n_runs=1, init=init, max_iter=max_iter, **settings).fit(train)

    first = [run(random_state=s) for s in seeds]
    models = {"EM": first, "EMcon": [run(model) for model in first]}
    models["DAEM"] = [run(random_state=s, max_iter=2 * ITER, beta=ANNEALED) for s in seeds]
    for via in "abcd":
        models[f"CoEM {via}"] = [run(start) for start in couple(*first, via, train)]
    return _figures(models, test)


def pair_of_traffic(k, seed):
    """Return the same for the traffic model and its coupling."""
    train, test = steps()

    def run(init="random", **settings):
        return TrafficModel(k, n_runs=1, init=init, max_iter=ITER, **settings).fit(train)

    first = [run(random_state=s) for s in (2 * seed, 2 * seed + 1)]
    models = {"EM": first, "EMcon": [run(model) for model in first]}
    runs = [Traffic(model.alpha_, model.beta_) for model in first]
    coupled, _ = couple_hubs(runs, RunCoupling("x"))
    models["CoEM x"] = [run(tuple(start)) for start in coupled]
    return _figures(models, test)


def _figures(models, test):
    return {name: [(m.score(test), m.kl_) for m in two] for name, two in models.items()}


def report(title, pairs):
    """Print percentiles over all runs, and how many runs beat every run of EMcon."""
    found = {name: np.array([p[name] for p in pairs]).reshape(-1, 2) for name in pairs[0]}
    print(f"{title}: {len(pairs)} pairs of runs\n")
    best_score, best_kl = found["EMcon"][:, 0].max(), found["EMcon"][:, 1].min()
    rows = []
    for name, figures in found.items():
        score, kl = figures.T
        above, below = (score > best_score).mean(), (kl < best_kl).mean()
        low, median, high = np.percentile(score, [10, 50, 90])
        rows.append(
            [name, f"{low:.3f}", f"{median:.3f}", f"{high:.3f}", f"{above:.0%}"]
            + [f"{value:.3f}" for value in np.percentile(kl, [10, 50, 90])]
            + [f"{below:.0%}"]
        )
    beaten = "beats all EMcon"
    table(["", "test 10 %", "50 %", "90 %", beaten, "KL 10 %", "50 %", "90 %", beaten], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--components", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--only", choices=["aspect", "traffic"])
    args = parser.parse_args()
    models = {"aspect": pair_of_aspects, "traffic": pair_of_traffic}
    for name, task in models.items():
        if args.only in (None, name):
            for k in args.components:
                pairs = side_by_side(task, [(k, seed) for seed in range(args.pairs)])
                report(f"{name} model, k = {k}", pairs)


if __name__ == "__main__":
    main()
