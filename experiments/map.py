"""How well maps keep neighbours: that of the report, PCA and t-SNE of scikit-learn.

All maps see latent directions, and the first one the posterior too. Neighbours are those by the
cosine of the directions. Trustworthiness falls if points beside each other on the map are far from
each other in the data, continuity if neighbours in the data are torn apart on the map; both by the
10 nearest, on at most 2,000 rows. The overlap is the share of the 10 nearest in the data that are
among the 10 nearest on the map, of all rows. "Same group" and "same class" are the shares of the 10
nearest on the map. Seconds are those of one processor.

    python experiments/map.py [SET ...]
"""

import sys
import time

import numpy as np
from grid import APART, CHOSEN_ON, LINKS
from scipy.spatial import cKDTree
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, trustworthiness
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits
from trials import table

from coem import MixtureClusterer, Views
from coem.report import DocumentMap, read
from coem.text import LatentDirections

# The method was chosen on the first two.
SETS = {"wap": 20, "20 Newsgroups, 5,990": 20, "fbis": 17, "la1": 6, "20 Newsgroups, 19,997": 20}
NEAREST, SOME = 10, 2000


def main(names):
    heads = ["map", "trustworthiness", "continuity", "overlap", "same group", "same class"]
    for name in names:
        print(f"{name}\n")
        table([*heads, "seconds"], list(compared(name)))


def compared(name):
    """Yield the figures of each map of a set."""
    views, y = (CHOSEN_ON | APART)[name]()
    words = Views({view: X for view, X in views.items() if view not in LINKS})
    directions = LatentDirections().fit_transform(words)["latent"]
    views = Views({**views, "latent": directions})
    model = MixtureClusterer(SETS[name], tol=1e-4, max_iter=30, random_state=0).fit(views)
    reading = read(model, views)
    data = np.nan_to_num(directions)
    ways = {
        "report": lambda: DocumentMap(model).fit(views, reading).places_,
        "report, 2,000 landmarks": lambda: DocumentMap(model, 2000).fit(views, reading).places_,
        "PCA": lambda: PCA(2, random_state=0).fit_transform(data),
        "t-SNE": lambda: TSNE(metric="cosine", random_state=0, n_jobs=1).fit_transform(data),
    }
    for way, make in ways.items():
        if len(data) <= 2000 and "landmarks" in way:
            continue
        with threadpool_limits(1):
            start = time.process_time()
            places = make()
            seconds = time.process_time() - start
        yield [way, *judged(data, places, reading.groups, y), f"{seconds:.1f}"]


def judged(data, places, groups, classes):
    """Return the figures of a map."""
    some = np.sort(np.random.default_rng(0).permutation(len(data))[:SOME])
    few = {"n_neighbors": NEAREST}
    trusted = trustworthiness(data[some], places[some], metric="cosine", **few)
    # Continuity is trustworthiness with the two spaces in each other's place.
    kept = trustworthiness(places[some], data[some] / _lengths(data[some]), **few)
    finder = NearestNeighbors(n_neighbors=NEAREST, metric="cosine", algorithm="brute").fit(data)
    true = finder.kneighbors(return_distance=False)
    near = cKDTree(places).query(places, NEAREST + 1)[1][:, 1:]
    overlap = np.mean([len(np.intersect1d(a, b)) for a, b in zip(true, near, strict=True)])
    same = [(labels[near] == labels[:, np.newaxis]).mean() for labels in (groups, classes)]
    return [f"{value:.2f}" for value in (trusted, kept, overlap / NEAREST, *same)]


def _lengths(data):
    return np.maximum(np.linalg.norm(data, axis=1, keepdims=True), 1e-12)


if __name__ == "__main__":
    main(sys.argv[1:] or list(SETS))
