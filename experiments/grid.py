"""Few labels on many collections: the defaults of `coem classify` against plain baselines.

Accuracy on the unlabelled rows, by the number of labels per class. Half of each class is left
unlabelled if it has too few rows. The views are those of `coem classify`: a text counts 20 words at
most, pseudo-counts follow the length of a view, latent directions are a further view, and the
weight of unlabelled rows is found. The settings were chosen on the first six sets. Trials of the
length and the weights had also shown wap, fbis, la1 and Citeseer; Reuters and all posts are blind.

    python experiments/grid.py [--trust] [--seeds N] [--labels 1,5,15,50] [SET ...]
"""

import argparse

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC
from trials import side_by_side, table

from coem import MixtureClassifier, PooledClassifier, Views
from coem.datasets import (
    fetch_20newsgroups,
    fetch_citeseer,
    fetch_cluto,
    fetch_cora,
    fetch_reuters,
    fetch_webkb,
)
from coem.families import Multinomial
from coem.metrics import expected_calibration_error
from coem.recipes.defaults import CLASS_LENGTH, SMOOTHING, TOL
from coem.text import LatentDirections
from coem.text.scaling import shorten


def some_posts(n, size):
    """Return the rows of `n` of the posts, or of all."""
    return (
        np.sort(np.random.default_rng(0).choice(size, n, replace=False)) if n else np.arange(size)
    )


def posts(n=None):
    data = fetch_20newsgroups()
    rows = some_posts(n, len(data.target))
    return {name: data.views[name][rows] for name in data.views.names}, data.target[rows]


def vectors(name):
    """Return the sentence vectors of posts by MiniLM, which only a baseline sees, or None."""
    if not name.startswith("20 Newsgroups"):
        return None
    data = fetch_20newsgroups(views=("meaning",))
    return data.views["meaning"][some_posts(5990 if "5,990" in name else None, len(data.target))]


def stories():
    """Return the stories of the ten largest topics that have one of them alone."""
    data = fetch_reuters()
    topics = data.target.tocsc()
    largest = np.argsort(-np.asarray(topics.sum(axis=0)).ravel())[:10]
    own = topics[:, np.sort(largest)].toarray() > 0
    rows = np.flatnonzero(own.sum(axis=1) == 1)
    return {n: data.views[n][rows] for n in data.views.names}, own[rows].argmax(axis=1)


def of(data):
    return {name: data.views[name] for name in data.views.names}, np.asarray(data.target)


CHOSEN_ON = {
    "20 Newsgroups, 5,990": lambda: posts(5990),
    "WebKB": lambda: of(fetch_webkb()),
    "Cora": lambda: of(fetch_cora()),
    "re0": lambda: of(fetch_cluto("re0")),
    "tr11": lambda: of(fetch_cluto("tr11")),
    "hitech": lambda: of(fetch_cluto("hitech")),
}
APART = {
    "Reuters, 10 topics": stories,
    "Citeseer": lambda: of(fetch_citeseer()),
    "wap": lambda: of(fetch_cluto("wap")),
    "fbis": lambda: of(fetch_cluto("fbis")),
    "la1": lambda: of(fetch_cluto("la1")),
    "20 Newsgroups, 19,997": posts,
}
LINKS = "inbound", "outbound"


def features(name):
    """Return the views of `coem classify` with their families, and what the baselines see."""
    views, y = (CHOSEN_ON | APART)[name]()
    words = Views({view: X for view, X in views.items() if view not in LINKS})
    latent = LatentDirections().fit_transform(words)["latent"]
    short = {view: shorten(X.tocsr(), CLASS_LENGTH) for view, X in views.items()}
    family = {view: Multinomial(alpha=_alpha(X)) for view, X in short.items()}
    counts = sp.hstack(list(views.values())).tocsr()
    return {
        "y": np.unique(y, return_inverse=True)[1],
        "views": Views({**short, "latent": latent}),
        "family": family | {"latent": "von_mises_fisher"},
        "counts": counts,
        "tf-idf": TfidfTransformer(sublinear_tf=True).fit_transform(counts),
        "directions": np.nan_to_num(latent),
        "MiniLM": vectors(name),
    }


def _alpha(X):
    totals = np.asarray(X.sum(axis=1)).ravel()
    return min(1.0, float(totals[totals > 0].mean()) / SMOOTHING)


BASELINES = {
    "naive Bayes": (MultinomialNB(), "counts", False),
    "logistic, TF-IDF": (LogisticRegression(C=10, max_iter=500), "tf-idf", False),
    "logistic, directions": (LogisticRegression(C=10, max_iter=500), "directions", False),
    "logistic, MiniLM": (LogisticRegression(C=10, max_iter=500), "MiniLM", False),
    "linear SVM": (LinearSVC(), "tf-idf", False),
    "self-training": (SelfTrainingClassifier(MultinomialNB()), "counts", True),
    "label spreading": (LabelSpreading(kernel="knn"), "directions", True),
}


def judge_all(name, sizes, seeds):
    """Return what `judge` says of a set, by number of labels and seed."""
    seen = features(name)
    return {(n, seed): judge(seen, n, seed) for n in sizes for seed in range(seeds)}


def label(y, n_labels, rng):
    """Return which rows are labelled: some of each class; -1 is none."""
    labelled = np.zeros(len(y), dtype=bool)
    for c in np.unique(y[y >= 0]):
        rows = np.flatnonzero(y == c)
        labelled[rng.choice(rows, min(n_labels, max(1, len(rows) // 2)), replace=False)] = True
    return labelled


def pooled(seen, seed):
    """Return the classifier of `coem classify`, unfitted."""
    mixture = MixtureClassifier(
        family=seen["family"], unlabeled_weight="auto", tol=TOL, random_state=seed
    )
    return PooledClassifier(mixture)


def judge(seen, n_labels, seed):
    """Return the accuracy of each way on the unlabelled rows, and figures of the pool."""
    y = seen["y"]
    labelled = label(y, n_labels, np.random.default_rng([seed, n_labels]))
    given = np.where(labelled, y, -1)
    model = pooled(seen, seed).fit(seen["views"], given)
    found = {"coem": model.labels_, "mixture alone": model.mixture_.labels_}
    proba = model.predict_proba(seen["views"][~labelled])
    for way, (other, what, takes_all) in BASELINES.items():
        X = seen[what]
        if X is None:
            found[way] = np.full(len(y), -1)
            continue
        other.fit(*((X, given) if takes_all else (X[labelled], y[labelled])))
        found[way] = other.predict(X)
    scores = {way: (labels == y)[~labelled].mean() for way, labels in found.items()}
    pool = model.pool_.mixture, model.pool_.linear, model.unlabeled_weight_
    return scores, (*pool, expected_calibration_error(y[~labelled], proba))


def trust(name, sizes, seeds):
    """Return accuracy, mean probability and calibration errors, of own unlabelled and of new rows.

    A fifth of the rows is new: the fit does not see them.
    """
    seen, found = features(name), {}
    for n in sizes:
        for seed in range(seeds):
            rng = np.random.default_rng([seed, n, 5])
            y, new = seen["y"], np.zeros(len(seen["y"]), dtype=bool)
            new[rng.choice(len(y), len(y) // 5, replace=False)] = True
            labelled = label(np.where(new, -1, y), n, rng)
            fit = pooled(seen, seed).fit(seen["views"][~new], np.where(labelled, y, -1)[~new])
            found[n, seed] = [
                figure
                for rows in (~new & ~labelled, new)
                for figure in believed(y[rows], fit.predict_proba(seen["views"][rows]), fit)
            ]
    return found


def believed(y, proba, model):
    codes = model.classes_[proba.argmax(axis=1)]
    known = np.isin(y, model.classes_)  # a rare class may have no row in the fit
    y, proba = y[known], proba[known]
    error = expected_calibration_error(y, proba, classes=model.classes_)
    return (codes[known] == y).mean(), proba.max(axis=1).mean(), error, error_of_chance(proba)


def error_of_chance(proba, n_draws=100):
    """Return the mean calibration error if classes are drawn from the probabilities themselves."""
    rng, sums = np.random.default_rng(0), proba.cumsum(axis=1)
    draws = ((rng.random((len(sums), 1)) * sums[:, -1:] > sums).sum(1) for _ in range(n_draws))
    classes = np.arange(proba.shape[1])
    return np.mean([expected_calibration_error(y, proba, classes=classes) for y in draws])


def report_trust(names, sizes, seeds):
    tasks = [(name, sizes, seeds) for name in names]
    rows = []
    for name, found in zip(names, side_by_side(trust, tasks), strict=True):
        for n in sizes:
            means = np.mean([found[n, seed] for seed in range(seeds)], axis=0)
            rows.append([name, n, *map("{:.3f}".format, means)])
    print(f"### Probabilities, mean of {seeds} seeds\n")
    kinds = [f"{what}, {whose}" for whose in ("own rows", "new rows") for what in FIGURES]
    table(["set", "labels", *kinds], rows)
    print(flush=True)


FIGURES = "accuracy", "probability", "ECE", "ECE of chance"


def report(title, names, sizes, seeds):
    tasks = [(name, sizes, seeds) for name in names]
    found = dict(zip(names, side_by_side(judge_all, tasks), strict=True))
    rows, leads = [], []
    for name in names:
        for n in sizes:
            some = [found[name][n, seed] for seed in range(seeds)]
            means = {way: np.mean([scores[way] for scores, _ in some]) for way in some[0][0]}
            best = max(means[way] for way in BASELINES)
            leads.append((n, means["coem"] - best))
            pool = np.mean([extra for _, extra in some], axis=0)
            cells = (f"{value:.3f}" if value else "" for value in means.values())
            rows.append(
                [name, n, *cells, f"{means['coem'] - best:+.3f}", *map("{:.2f}".format, pool)]
            )
    print(f"### {title}; accuracy, mean of {seeds} seeds\n")
    extra = "ahead by", "mixture counts", "linear counts", "unlabelled weight", "ECE"
    table(["set", "labels", "coem", "mixture alone", *BASELINES, *extra], rows)
    for n in sizes:
        own = [lead for size, lead in leads if size == n]
        print(f"{n} labels: ahead by {np.mean(own):+.3f} on average, {min(own):+.3f} at worst")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--labels", default="1,5,15,50")
    parser.add_argument("--trust", action="store_true", help="judge the probabilities instead")
    options = parser.parse_args()
    sizes = [int(n) for n in options.labels.split(",")]
    if options.trust:
        every = [name for name in CHOSEN_ON | APART if name in options.sets or not options.sets]
        report_trust(every, sizes, options.seeds)
        return
    parts = (("Sets that settings were chosen on", CHOSEN_ON), ("Other sets", APART))
    for title, sets in parts:
        names = [name for name in sets if name in options.sets or not options.sets]
        if names:
            report(title, names, sizes, options.seeds)


if __name__ == "__main__":
    main()
