"""The number of components by four criteria, on document sets whose classes are known."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coem import MixtureClusterer, Views
from coem.datasets import fetch_cluto, fetch_cora
from coem.families import Multinomial
from coem.recipes.defaults import LENGTH
from coem.selection import choose_k
from coem.text.scaling import kept_share, shorten

SETS = ("tr11", "re0", "hitech", "wap", "la1", "fbis", "cora")
SIZES = (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)


def main():
    print("set     classes  held out (two seeds)  coem choose-k  BIC  ICL  agreement of two halves")
    for name in SETS:
        data = fetch_cora() if name == "cora" else fetch_cluto(name)
        plain, program = held_out(data.views), held_out(*shortened(data.views))
        others = "  ".join(f"{k:3}" for k in by_other_criteria(data.views))
        print(f"{name:<6}  {len(set(data.target)):>7}  {plain!s:>20}  {program!s:>13}  {others}")


def held_out(views, family="auto"):
    """Return the numbers that `choose_k` finds with two seeds."""
    model = MixtureClusterer(family=family, tol=1e-4)
    return [choose_k(model, views, random_state=seed, n_jobs=2).best for seed in (0, 1)]


def shortened(views):
    """Return views and families as the program has them: no view counts more than some words."""
    shorter = {name: shorten(X, LENGTH) for name, X in views.items()}
    pairs = ((name, kept_share(X, shorter[name])) for name, X in views.items())
    return Views(shorter), {name: Multinomial(alpha=kept) for name, kept in pairs}


def by_other_criteria(views):
    """Return the best number by BIC, by ICL, and by how far fits of two halves agree."""
    halves = np.array_split(np.random.default_rng(0).permutation(len(views)), 2)
    bic, icl, agreement = {}, {}, {}
    for k in SIZES:
        model = MixtureClusterer(k, tol=1e-4, random_state=0).fit(views)
        bic[k], icl[k] = model.bic(views), model.icl(views)
        found = [
            MixtureClusterer(k, tol=1e-4, random_state=seed).fit(views[half]).predict(views)
            for seed, half in enumerate(halves, 1)
        ]
        agreement[k] = adjusted_rand_score(*found)
    return min(bic, key=bic.get), min(icl, key=icl.get), max(agreement, key=agreement.get)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
