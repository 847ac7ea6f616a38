"""Co-EM against EM on linked documents: Bickel & Scheffer (2005), Fig. 1, on public data.

Views: words, inbound and outbound citations; as many components as classes; cluster entropy in
bits (Eq. 23), mean and standard error over restarts that differ by their seed alone.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coem import MixtureClusterer
from coem.datasets import fetch_citeseer, fetch_cora
from coem.metrics import cluster_entropy

RUNS = 20


def main():
    print(f"{'':<9}  {'co-EM':>13}  {'concatenated':>13}  {'merged':>13}   ({RUNS} runs each)")
    for name, fetch in (("Cora", fetch_cora), ("Citeseer", fetch_citeseer)):
        data = fetch()
        merged = data.views.merge({"links": ["inbound", "outbound"]}).concat()
        inputs = (data.views, data.views.concat(), merged)
        cells = [cell(X, data.target, len(data.target_names)) for X in inputs]
        print(f"{name:<9}  " + "  ".join(cells))


def cell(X, target, k):
    """Return mean and standard error of the entropy as text."""
    values = [entropy(X, target, k, seed) for seed in range(RUNS)]
    return f"{np.mean(values):.3f} +- {np.std(values, ddof=1) / np.sqrt(RUNS):.3f}"


def entropy(X, target, k, seed):
    with warnings.catch_warnings():
        # Co-EM with a fixed eta need not converge, and components may die: both are the paper's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cluster_entropy(
            target, MixtureClusterer(k, init="random", random_state=seed).fit(X).labels_
        )


if __name__ == "__main__":
    main()
