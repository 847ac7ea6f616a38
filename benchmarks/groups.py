"""Groups by the program's defaults against KMeans on TF-IDF rows, on the CLUTO document sets.

Means over seeds, with ten starts each, because both depend on the seed; `--all` adds what the
program would do without either of its two habits: to keep the run that the others agree with most,
and to shorten long documents.
"""

import argparse
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score

from coem import MixtureClusterer
from coem.datasets import fetch_cluto
from coem.families import Multinomial
from coem.recipes.defaults import LENGTH, TOL
from coem.selection import stability
from coem.text.scaling import kept_share, shorten

SETS = ("tr11", "re0", "hitech", "wap", "fbis", "la1")
SEEDS = range(6)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    ways = {"KMeans": kmeans, "coem cluster": program}
    if parser.parse_args().all:
        ways |= {"best run": best_run, "all words": all_words, "both": all_words_best_run}
    print("NMI of groups, mean (and standard deviation) over", len(SEEDS), "seeds")
    print("set      k" + "".join(f"  {name:>13}" for name in ways))
    for name in SETS:
        data = fetch_cluto(name)
        X, k = data.views["words"], len(data.target_names)
        line = f"{name:<7} {k:>2}"
        for way in ways.values():
            found = [way(X, k, seed) for seed in SEEDS]
            scores = [normalized_mutual_info_score(data.target, labels) for labels in found]
            line += f"    {np.mean(scores):.3f} ({np.std(scores, ddof=1):.3f})".rjust(15)
        print(line, flush=True)


def kmeans(X, k, seed):
    rows = TfidfTransformer().fit_transform(X)
    return KMeans(k, n_init=10, random_state=seed).fit_predict(rows)


def program(X, k, seed, longest=LENGTH, keep="central"):
    rows = X if longest is None else shorten(X, longest)
    family = Multinomial(alpha=kept_share(X, rows))
    model = MixtureClusterer(k, family=family, max_iter=200, tol=TOL)
    return stability(model, rows, n_runs=10, keep=keep, random_state=seed, n_jobs=2).labels


def best_run(X, k, seed):
    return program(X, k, seed, keep="best")


def all_words(X, k, seed):
    return program(X, k, seed, longest=None)


def all_words_best_run(X, k, seed):
    return program(X, k, seed, longest=None, keep="best")


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
