"""Words, sentence vectors and latent directions of 20 Newsgroups, alone and together: clusters.

Co-EM takes any views. Here 3,000 posts are grouped 20 ways: by their words, by sentence vectors
(MiniLM), by 100 latent directions of the words, and by two or all of these views together. Posts
are scaled to 600 words; vectors and directions have a von Mises-Fisher family. NMI with the
newsgroups, mean of five draws of posts, one start each, with the defaults of `MixtureClusterer`.
"""

from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from coem import MixtureClusterer
from coem.experiments import Results, Table, Verdict
from coem.experiments.beyond._setting import NEWS, QUICK, above, documents, sample
from coem.experiments.beyond._views import ALONE, TOGETHER, all_views, chosen, named
from coem.experiments.drawing import bars, slant

NEEDS = ("20newsgroups_19997", "20newsgroups_minilm", "cluto")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per draw of posts; it groups them by all sets of views."""
    data, posts, seeds = (QUICK, 100, 2) if quick else (NEWS, 3000, 5)
    return [{"data": data, "posts": posts, "seed": seed} for seed in range(seeds)]


def measure(data: str, posts: int, seed: int) -> list[dict[str, Any]]:
    """Return the NMI of clusters and newsgroups, by the views that are used."""
    rows, y = sample(data, 0, posts, seed).train, documents(data).y
    (views,) = all_views(data, rows)
    found = []
    for used in (*ALONE, *TOGETHER):
        X, family = chosen(views, used)
        model = MixtureClusterer(len(np.unique(y)), family=family, tol=1e-4, random_state=seed)
        nmi = normalized_mutual_info_score(y[rows], model.fit(X).labels_)
        found.append({"views": named(used), "nmi": float(nmi)})
    return found


def judge(results: Results) -> Verdict:
    """Ask whether views together are above each of them alone."""
    pairs = [(named(used), view) for used in TOGETHER for view in used]
    return Verdict.of(
        above(results, f"{pair[0]} is above {pair[1]} alone", "nmi", "views", pair)
        for pair in pairs
    )


def tabulate(results: Results) -> Table:
    """Return the mean NMI by the views that are used."""
    return results.summary("nmi", by=["views"])


def draw(results: Results, figure: Any) -> None:
    """Draw a column per set of views."""
    ax = figure.subplots()
    bars(ax, results, x="views", y="nmi", line="posts")
    ax.set(ylabel="NMI of clusters and newsgroups")
    slant(ax)
    figure.set_size_inches(4, 3.5)
