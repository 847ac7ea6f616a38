"""Group the functions and classes of Python's standard library by what they say and do.

Three views of each (the parts of its name, the words of its docstring, the identifiers in its
code), no labels. Run by `make demo`.
"""

import numpy as np

from coem import MixtureClusterer
from coem.datasets import load_stdlib
from coem.families import Multinomial
from coem.metrics import cluster_entropy


def main():
    """Cluster, print the groups, and compare with one bag of words."""
    data = load_stdlib()
    shapes = ", ".join(f"{name} {data.views[name].shape[1]:,} words" for name in data.views.names)
    print(f"{len(data.views):,} documented functions and classes; views: {shapes}\n")

    model = MixtureClusterer(
        12, family=Multinomial(0.1), n_init=4, tol=1e-5, n_jobs=2, random_state=0
    ).fit(data.views)
    for component, size in sorted(enumerate(np.bincount(model.labels_)), key=lambda pair: -pair[1]):
        print_group(data, model, component, size)

    plain = MixtureClusterer(
        12, family=Multinomial(0.1), n_init=4, tol=1e-5, n_jobs=2, random_state=0
    ).fit(data.views.concat())
    print(f"{model.n_iter_} rounds; the views agree on {model.history_[-1].agreement_rate:.0%}")
    print("bits needed to name the package once the group is known:")
    print(f"  co-EM over the views {cluster_entropy(data.target, model.labels_):.2f}")
    print(f"  EM on one bag        {cluster_entropy(data.target, plain.labels_):.2f}")


def print_group(data, model, component, size):
    """Print the size of a group, its telling words, and the packages it is made of."""
    print(f"group {component:>2}: {size:,} entries")
    for view in ("doc", "code"):
        words = [data.vocabularies[view][f] for f, _ in model.top_features(view, 8)[component]]
        print(f"  {view:<5} {' '.join(words)}")
    inside = np.bincount(data.target[model.labels_ == component], minlength=len(data.target_names))
    most = np.argsort(-inside, kind="stable")[:3]
    print("  from ", ", ".join(f"{data.target_names[p]} {inside[p]}" for p in most if inside[p]))
    print()


if __name__ == "__main__":
    main()
