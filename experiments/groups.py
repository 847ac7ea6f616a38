"""Groups by the defaults of `coem cluster` against KMeans, on many collections.

NMI of groups and classes, mean over seeds, with ten starts each. "coem cluster" has the views of
the program: a text counts 150 words at most, latent directions are a further view if all views are
texts and several texts cannot do without them, and the inverse temperatures of views are found.
"words alone" is the same without directions and with inverse temperatures of 1. Settings were
chosen on the first sets.

    python experiments/groups.py [--seeds N] [--ways WAY,...] [SET ...]

Other ways change one habit of the program: "fixed" has inverse temperatures of 1, "best run" keeps
the run of the largest objective, and "all words" does not shorten texts.
"""

import argparse

import numpy as np
import scipy.sparse as sp
from grid import APART, CHOSEN_ON, LINKS, vectors
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from trials import side_by_side, table

from coem import MixtureClusterer, Views
from coem.families import Multinomial
from coem.recipes.defaults import LENGTH, MAX_ITER, RESTARTS, TOL
from coem.recipes.directions import LEAST, kept_groups
from coem.selection import stability
from coem.text import LatentDirections
from coem.text.scaling import kept_share, shorten

VECTORS = "20 Newsgroups, 5,990, MiniLM"


def posts_with_vectors():
    """Return the posts of the set without vectors, with them."""
    views, y = CHOSEN_ON["20 Newsgroups, 5,990"]()
    return {**views, "meaning": vectors(VECTORS)}, y


SEEN = CHOSEN_ON | {VECTORS: posts_with_vectors}
SETS = SEEN | {name: load for name, load in APART.items() if name != "20 Newsgroups, 19,997"}


def features(name):
    """Return the counts of the views, dense views, and what KMeans sees."""
    views, y = SETS[name]()
    counts = {view: X.tocsr() for view, X in views.items() if sp.issparse(X)}
    words = Views({view: X for view, X in counts.items() if view not in LINKS})
    latent = LatentDirections().fit_transform(words)["latent"]
    return {
        "y": np.unique(y, return_inverse=True)[1],
        "counts": counts,
        "dense": {view: X for view, X in views.items() if view not in counts},
        "latent": {} if any(view in LINKS for view in views) else {"latent": latent},
        "directions": np.nan_to_num(latent),
        "tf-idf": TfidfTransformer().fit_transform(sp.hstack(list(counts.values())).tocsr()),
    }


def kmeans(what, seen, k, seed):
    return KMeans(k, n_init=10, random_state=seed).fit_predict(seen[what])


def program(seen, k, seed, *, latent=True, longest=LENGTH, keep="central", evidence="auto"):
    counts = seen["counts"]
    short = counts if longest is None else {v: shorten(X, longest) for v, X in counts.items()}
    family = {view: Multinomial(alpha=kept_share(counts[view], X)) for view, X in short.items()}
    texts = {view: X for view, X in short.items() if view not in LINKS}
    if latent and evidence == "auto" and len(texts) > 1:
        own = {view: family[view] for view in texts}
        latent = kept_groups(Views(texts), own, k, threads=1) < LEAST
    views = short | seen["dense"] | (seen["latent"] if latent else {})
    family |= dict.fromkeys(set(views) - set(short), "von_mises_fisher")
    model = MixtureClusterer(k, family=family, evidence=evidence, max_iter=MAX_ITER, tol=TOL)
    return stability(
        model, Views(views), n_runs=RESTARTS, keep=keep, random_state=seed, n_jobs=1
    ).labels


WAYS = {
    "KMeans TF-IDF": lambda *given: kmeans("tf-idf", *given),
    "KMeans directions": lambda *given: kmeans("directions", *given),
    "words alone": lambda *given: program(*given, latent=False, evidence="fixed"),
    "coem cluster": program,
}
MORE = {
    "fixed": lambda *given: program(*given, evidence="fixed"),
    "best run": lambda *given: program(*given, keep="best"),
    "all words": lambda *given: program(*given, longest=None),
}


def judge(name, ways, seeds):
    """Return the NMI of every way by seed."""
    seen = features(name)
    k = int(seen["y"].max()) + 1
    return {
        way: [
            normalized_mutual_info_score(seen["y"], (WAYS | MORE)[way](seen, k, seed))
            for seed in range(seeds)
        ]
        for way in ways
    }


def report(title, names, ways, seeds):
    rows = []
    for name, found in zip(
        names, side_by_side(judge, [(name, ways, seeds) for name in names]), strict=True
    ):
        cells = [f"{np.mean(found[way]):.3f} ({np.std(found[way], ddof=1):.3f})" for way in ways]
        best = max(np.mean(found[way]) for way in ways[:-1])
        rows.append([name, *cells, f"{np.mean(found[ways[-1]]) - best:+.3f}"])
    print(f"### {title}; NMI, mean (and standard deviation) of {seeds} seeds\n")
    table(["set", *ways, "the last is ahead by"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    ways = options.ways.split(",")
    apart = [name for name in SETS if name not in SEEN]
    for title, sets in (("Sets that settings were chosen on", SEEN), ("Other sets", apart)):
        names = [name for name in sets if name in options.sets or not options.sets]
        if names:
            report(title, names, ways, options.seeds)


if __name__ == "__main__":
    main()
