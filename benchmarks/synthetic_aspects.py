"""Coupled and annealed runs on synthetic counts: Table 1 and Fig. 3 of Lin (2006).

A joint distribution of 200 x 200 pairs that an aspect model of 25 components gives exactly, and
one without structure. EM goes on for I more iterations after the first I; CoEM does so after a
coupling of the two runs of a pair; DAEM takes 2 I from the same start, with beta rising linearly
(Dl) or in three steps (Ds). Percentiles of the final KL over all runs, times n = 200.

Times n, because that is what gives the paper's values: see docs/papers/lin-2006.md. p(x|h) and
p(y|h) of the data and of the starts are flat Dirichlet, and p(h) is uniform. --concentration draws
those of the data from another Dirichlet distribution, --weights random a p(h) of uniform numbers.
"""

import argparse

import numpy as np
from trials import side_by_side, table

from coem import AspectModel, couple
from coem.schedules import Linear, Steps

N, K = 200, 25
PERCENTILES = (1, 5, 10, 50)
PAPER = {  # Table 1
    "EM": (0.099, 0.114, 0.121),
    "CoEM": (0.074, 0.088, 0.093),
    "Dl.9": (3.11, 3.13, 3.14),
    "Dl.95": (0.116, 0.132, 0.145),
    "Ds.9": (3.19, 3.22, 3.22),
    "Ds.95": (0.091, 0.113, 0.128),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=200, help="pairs of runs (200)")
    parser.add_argument("--noisy-pairs", type=int, help="the same without structure (--pairs)")
    parser.add_argument("--concentration", type=float, default=1.0, help="of the data (1)")
    parser.add_argument("--weights", choices=("uniform", "random"), default="uniform")
    parser.add_argument("--seed", type=int, default=0, help="of the data (0)")
    options = parser.parse_args()
    noisy_pairs = options.pairs if options.noisy_pairs is None else options.noisy_pairs
    P = decomposable(np.random.default_rng(options.seed), options.concentration, options.weights)
    print(
        f"Exactly decomposable, concentration {options.concentration:g}, p(h) {options.weights}, "
        f"{about(P)}, {options.pairs} pairs, I = 300 (Table 1)\n"
    )
    show(side_by_side(table_1, [(P, 300, pair) for pair in range(options.pairs)]), PAPER)
    if noisy_pairs == 0:
        return
    P = noisy(np.random.default_rng(options.seed))
    print(f"Without structure, {about(P)}, {noisy_pairs} pairs, I = 600 (Fig. 3 b)\n")
    show(side_by_side(figure_3b, [(P, 600, pair) for pair in range(noisy_pairs)]), {})


# -- data ----------------------------------------------------------------------------------------


def flat(rng, rows, columns, concentration=1.0):
    """Return rows drawn from a Dirichlet distribution."""
    drawn = np.maximum(rng.gamma(concentration, size=(rows, columns)), np.finfo(float).tiny)
    return drawn / drawn.sum(axis=1, keepdims=True)


def decomposable(rng, concentration, weights):
    """Return a joint distribution that an aspect model can give exactly."""
    x, y = (flat(rng, K, N, concentration) for _ in range(2))
    drawn = rng.random(K) if weights == "random" else np.ones(K)
    return x.T @ (y * (drawn / drawn.sum())[:, np.newaxis])


def noisy(rng):
    """Return a joint distribution from the simplex of all of them."""
    return flat(rng, 1, N * N).reshape(N, N)


def about(P):
    """Say how far the two sides depend on each other."""
    product = np.outer(P.sum(axis=1), P.sum(axis=0))
    there = P > 0
    information = (P[there] * np.log(P[there] / product[there])).sum()
    # The states stay alike while beta (1 + r) < 1: see docs/papers/lin-2006.md.
    r = np.linalg.svd(P / np.sqrt(product), compute_uv=False)[1]
    return f"mutual information {information:.4f} nats, states part at beta {1 / (1 + r):.3f}"


# -- runs ----------------------------------------------------------------------------------------


def table_1(P, n_iter, pair):
    """Return the final KL of both runs of a pair, for the algorithms of Table 1."""
    starts, ended = begin(P, n_iter, pair)
    found = {
        "EM": ends(P, n_iter, ended),
        "CoEM": ends(P, n_iter, [*couple(*ended)]),
    }
    for beta in (0.9, 0.95):
        name, whole = f"{beta}".lstrip("0"), 2 * n_iter
        found[f"Dl{name}"] = ends(P, whole, starts, Linear(beta, 1.0, whole - 1))
        found[f"Ds{name}"] = ends(P, whole, starts, steps(beta, whole))
    return {name: found[name] for name in PAPER}


def figure_3b(P, n_iter, pair):
    """Return the same for the algorithms of Fig. 3 (b)."""
    starts, ended = begin(P, n_iter, pair)
    annealed = [fit(P, n_iter, [start], steps(0.95, n_iter)) for start in starts]
    return {
        "EM": [model.kl_ for model in ended],
        "DAEM": [model.kl_ for model in annealed],
        "EMcont": ends(P, n_iter, ended),
        "DAEMcont": ends(P, n_iter, annealed),
        "CoEM": ends(P, n_iter, [*couple(*ended)]),
        "CoDAEM": ends(P, n_iter, [*couple(*annealed)]),
    }


def begin(P, n_iter, pair):
    """Return two starts, and the models to which EM takes them."""
    rng = np.random.default_rng([pair, 1])  # other numbers than those of the data
    starts = [(np.full(K, 1 / K), flat(rng, K, N), flat(rng, K, N)) for _ in range(2)]
    return starts, [fit(P, n_iter, [start]) for start in starts]


def steps(beta, n_iter):
    """Return the schedule with three steps of equal length."""
    return Steps([beta, (1 + beta) / 2, 1.0], n_iter // 3)


def fit(P, n_iter, starts, beta=1.0):
    return AspectModel(K, init=starts, beta=beta, max_iter=n_iter, dtype=np.float64).fit(P)


def ends(P, n_iter, starts, beta=1.0):
    """Return where runs end that go on from given parameters."""
    return [record.kl for record in fit(P, n_iter, starts, beta).runs_]


# -- figures -------------------------------------------------------------------------------------


def show(pairs, paper):
    """Print the percentiles, the paper's beside them."""
    kl = {name: np.array([pair[name] for pair in pairs]).ravel() * N for name in pairs[0]}
    lines = []
    for name, values in kl.items():
        own = [f"{value:.4f}" for value in np.percentile(values, PERCENTILES)]
        lines.append([name, *own, *paper.get(name, ())])
    header = [f"KL x {N}", *(f"{p}%" for p in PERCENTILES)]
    table([*header, *(f"paper {p}%" for p in PERCENTILES[:3] if paper)], lines)


if __name__ == "__main__":
    main()
