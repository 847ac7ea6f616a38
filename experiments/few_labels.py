"""Few labels: coem against what one would pick instead, on 20 Newsgroups.

Accuracy by the number of labels as in Nigam, McCallum & Mitchell (2006, Fig. 3.1); the time of a
round of EM against scikit-learn's naive Bayes; words with sentence vectors against logistic
regression. Others are given the better of their settings, judged by the test rows.

--defaults shows instead how accuracy depends on eta, kappa and the length of documents; --quick
takes two splits.
"""

import argparse
import time
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits
from trials import each_class, hide, side_by_side, table

from coem import MixtureClassifier, Views
from coem.datasets import fetch_20newsgroups, fetch_citeseer, fetch_cora, fetch_webkb
from coem.families import VonMisesFisher
from coem.text import DEFAULT_LENGTH, ScaleLength

PAPER = {"naive Bayes, labelled alone": {20: 20, 300: 52}, "EM": {20: 35, 300: 66}}  # Sec. 3.3
ROUNDS = 20
ETAS = (0.5, 0.7, 0.85, 1.0)
KAPPAS = (10, 20, 50)
PARTS = ("unlabelled", "test")


class Trial(NamedTuple):
    """A model, what it sees of a post, and whether it sees the labelled posts alone."""

    seen: str
    model: Any
    alone: bool = False


def regressions(*seen):
    """Return trials of logistic regression that differ in their penalty."""
    # A word of no labelled row has coefficient zero in any case: without it the fit is faster.
    models = [
        make_pipeline(VarianceThreshold(), LogisticRegression(C=C, max_iter=2000)) for C in (1, 10)
    ]
    return [Trial(name, model, alone=True) for name in seen for model in models]


def scaled(model, length=DEFAULT_LENGTH):
    """Return a pipeline that scales the words of one or two views to a length."""
    return make_pipeline(ScaleLength(length), model)


OURS = {
    "coem: naive Bayes, labelled alone": [Trial("counts", scaled(MixtureClassifier()), alone=True)],
    "coem: EM, words": [Trial("counts", scaled(MixtureClassifier()))],
    "coem: co-EM, words and vectors": [Trial("views", scaled(MixtureClassifier()))],
}
SELF_TRAINING = SelfTrainingClassifier(MultinomialNB())
SPREADING = LabelSpreading(kernel="knn")
REGRESSIONS = {
    "logistic regression, TF-IDF": regressions("tf-idf"),
    "logistic regression, vectors": regressions("meaning"),
    "logistic regression, both": regressions("both"),
}
OTHERS = {
    "self-training naive Bayes, words": [Trial(n, SELF_TRAINING) for n in ("counts", "tf-idf")],
    "the same with ScaleLength()": [Trial("counts", scaled(SELF_TRAINING))],
    "label spreading, TF-IDF": [Trial("tf-idf", SPREADING)],
    "label spreading, vectors": [Trial("meaning", SPREADING)],
    **REGRESSIONS,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits")
    parser.add_argument("--defaults", action="store_true", help="the tables behind the defaults")
    options = parser.parse_args()
    n_splits = 2 if options.quick else 5
    posts = load_posts()
    if options.defaults:
        sweep_posts(posts, n_splits)
        sweep_links(n_splits)
    else:
        by_date(posts, n_splits)
        speed(posts)
        small_pile(posts, n_splits)
        own_share(posts, n_splits)


# -- accuracy on later posts ---------------------------------------------------------------------


def by_date(posts, n_splits, sizes=(20, 100, 300, 1000)):
    """Print the accuracy of every method by the number of labels."""
    methods = OURS | OTHERS
    scores = run(posts, split_by_date, methods, sizes, ("test",), n_splits)["test"]
    print("Later posts, 10,000 unlabelled ones: % correct by the number of labels\n")
    rows = [[name, *cells] for name, cells in zip(methods, best_cells(scores), strict=True)]
    rows.append(["lead over the next, same splits", *map(lead, np.moveaxis(scores, 2, 0))])
    for name, known in PAPER.items():
        rows.append([f"the paper: {name}", *(known.get(size, "") for size in sizes)])
    table(["", *sizes], rows)


def split_by_date(posts, seed, n_unlabelled=10_000, per_class=50):
    """Return posts to label, unlabelled posts, and the last fifth of each group."""
    rng = np.random.default_rng(seed)
    early, late = [], []
    for c in np.unique(posts.target):
        rows = np.flatnonzero(posts.target == c)
        rows = rows[np.argsort(posts.dates[rows], kind="stable")]
        cut = len(rows) - round(0.2 * len(rows))
        early.append(rows[:cut])
        late.append(rows[cut:])
    rest = rng.permutation(np.concatenate(early))
    labelled = each_class(rng, posts.target, rest[n_unlabelled:], per_class)
    return labelled, rest[:n_unlabelled], np.concatenate(late)


def compare(posts, split, methods, sizes, parts):
    """Return method -> a list by size of the scores of its trials on one split."""
    labelled, pool, test = split
    found = defaultdict(list)
    for size in sizes:
        train = np.concatenate([labelled[:size], np.setdiff1d(pool, labelled[:size])])
        seen = [(see(posts, rows, train), posts.target[rows]) for rows in (train, test)]
        for name, trials in methods.items():
            found[name].append([attempt(trial, *seen, size, parts) for trial in trials])
    return found


def attempt(trial, train, test, size, parts):
    """Return the accuracy on the rows of each part, "unlabelled" or "test"."""
    (X, y), (X_test, y_test) = ((seen[trial.seen], target) for seen, target in (train, test))
    kept = np.arange(size if trial.alone else len(y))
    if sp.issparse(X):
        # Two posts without a common word are farther apart than either is from a post without any
        # word, which would so become the neighbour of all.
        kept = kept[np.diff(X.indptr)[kept] > 0]
    model = clone(trial.model).fit(X[kept], hide(y, size)[kept])
    rows = np.arange(size, len(y))
    of_part = {"unlabelled": (X, rows, y), "test": (X_test, np.arange(len(y_test)), y_test)}
    scores = []
    for Z, some, target in map(of_part.get, parts):
        scores.append((model.predict(Z[some]) == target[some]).mean())
    return scores


# -- time ----------------------------------------------------------------------------------------


def speed(posts, size=300, repeats=9):
    """Print the time of a round of EM and of scikit-learn's naive Bayes: the best of several."""
    labelled, unlabelled, _ = split_by_date(posts, seed=0)
    rows = np.concatenate([labelled[:size], unlabelled])
    X, y = ScaleLength().fit_transform(see(posts, rows, rows)["counts"]), posts.target[rows]
    lines = []
    with threadpool_limits(1):
        for n_jobs in (1, 2):
            model = MixtureClassifier(max_iter=ROUNDS, tol=0, n_jobs=n_jobs)
            theirs, ours = [], []
            for _ in range(repeats):
                theirs.append(clock(lambda: MultinomialNB().fit(X, y).predict_proba(X)))
                ours.append(clock(lambda m=model: m.fit(X, hide(y, size))) / ROUNDS)
            a, b = 1e3 * min(theirs), 1e3 * min(ours)
            lines.append((n_jobs, f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}"))
    print("Milliseconds: MultinomialNB().fit and predict_proba, and a round of EM (a fit of")
    print(
        f"{ROUNDS} rounds divided by {ROUNDS}), {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} counts\n"
    )
    table(("threads of coem", "MultinomialNB", "coem, a round", "ratio (under 3)"), lines)


def clock(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# -- words and sentence vectors ------------------------------------------------------------------


def small_pile(posts, n_splits, sizes=(20, 100, 300)):
    """Print the accuracy on 5,990 posts and on others that took no part."""
    methods = {name: OURS[name] for name in list(OURS)[1:]} | REGRESSIONS
    scores = run(posts, split_pile, methods, sizes, PARTS, n_splits)
    for part, title in zip(PARTS, ("The unlabelled of 5,990 posts", "5,000 others"), strict=True):
        print(f"{title}: % correct by the number of labels\n")
        cells = best_cells(scores[part])
        table(["", *sizes], [[name, *line] for name, line in zip(methods, cells, strict=True)])


def split_pile(posts, seed, n=5990, n_test=5000, per_class=15):
    """Return posts to label, the `n` posts that they are of, and test posts."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(np.diff(posts.counts.indptr)))
    rows, test = order[:n], order[n : n + n_test]
    labelled = each_class(rng, posts.target, rows, per_class)
    return labelled, rows, test


def own_share(posts, n_splits, sizes=(20, 100, 300)):
    """Print what a row's own words do to its class: EM on the words of the 5,990 posts."""
    plan = [(posts, split_pile(posts, seed), sizes) for seed in range(n_splits)]
    means = 100 * np.mean(side_by_side(with_and_without, plan), axis=0)
    print("EM, words: % correct with and without the row's own share in the parameters\n")
    names = ("unlabelled", "unlabelled, own share taken out", "5,000 others")
    rows = [[name, *(f"{x:.1f}" for x in line)] for name, line in zip(names, means.T, strict=True)]
    table(["", *sizes], rows)


def with_and_without(posts, split, sizes):
    """Return for each size the accuracies on unlabelled rows, the same left out, and test rows."""
    labelled, pool, test = split
    found = []
    for size in sizes:
        train = np.concatenate([labelled[:size], np.setdiff1d(pool, labelled[:size])])
        X, Z = (ScaleLength().transform(see(posts, r, train)["counts"]) for r in (train, test))
        y, rows = posts.target[train], np.arange(size, len(train))
        model = MixtureClassifier().fit(X, hide(y, size))
        resp = model.predict_proba(X)
        resp[:size] = np.eye(resp.shape[1])[y[:size]]
        left_out = without_own(X, resp, np.log(model.weights_), rows)
        guesses = (model.predict(X[rows]), y[rows]), (left_out, y[rows])
        guesses += ((model.predict(Z), posts.target[test]),)
        found.append([(guess == truth).mean() for guess, truth in guesses])
    return found


def without_own(X, resp, log_weights, rows, alpha=1.0):
    """Return the component of each row by the statistics of all the other rows."""
    sums = (X.T.astype(np.float64) @ resp).T + alpha
    totals, best = sums.sum(axis=1), []
    for row in rows:
        cut = slice(X.indptr[row], X.indptr[row + 1])
        words, counts = X.indices[cut], X.data[cut].astype(np.float64)
        others = np.maximum(sums[:, words] - np.outer(resp[row], counts), alpha)  # but for rounding
        log_theta = np.log(others) - np.log(totals - resp[row] * counts.sum())[:, None]
        best.append((log_theta @ counts + log_weights).argmax())
    return np.array(best)


# -- the defaults --------------------------------------------------------------------------------


def sweep_posts(posts, n_splits, sizes=(20, 100, 300)):
    """Print accuracy by eta and kappa, and by the length of documents."""
    methods = {}
    for eta in ETAS:
        for kappa in KAPPAS:
            family = {"words": "multinomial", "meaning": VonMisesFisher(kappa)}
            model = scaled(MixtureClassifier(eta=eta, family=family))
            methods[eta, kappa] = [Trial("views", model)]
    methods["raw"] = [Trial("views", MixtureClassifier())]
    for length in (100, 300, 600, 1000):
        methods[length] = [Trial("views", scaled(MixtureClassifier(), length))]
    scores = run(posts, split_pile, methods, sizes, PARTS, n_splits)
    print("The unlabelled of 5,990 posts (5,000 others), % correct, words and vectors\n")
    pairs = zip(*scores.values(), strict=True)
    means = [(100 * a.mean(axis=0), 100 * b.mean(axis=0)) for a, b in pairs]
    cells = [[f"{x:.1f} ({z:.1f})" for x, z in zip(*pair, strict=True)] for pair in means]
    lines = dict(zip(methods, cells, strict=True))
    columns = [f"{size} labels" for size in sizes]
    n_grid = len(ETAS) * len(KAPPAS)
    table(["eta", "kappa", *columns], [[*key, *lines[key]] for key in list(lines)[:n_grid]])
    table(["length", *columns], [[key, *lines[key]] for key in list(lines)[n_grid:]])


def sweep_links(n_splits, per_class=(2, 10)):
    """Print accuracy by eta on linked documents and web pages."""
    pages = fetch_webkb()
    sets = {name: fetch() for name, fetch in (("Cora", fetch_cora), ("Citeseer", fetch_citeseer))}
    sets["WebKB"] = Bunch(views=ScaleLength().fit_transform(pages.views), target=pages.target)
    keys = [(name, n, eta) for name in sets for n in per_class for eta in ETAS]
    plan = [
        (sets[name].views, sets[name].target, n, eta, seed)
        for name, n, eta in keys
        for seed in range(n_splits)
    ]
    found = np.reshape(side_by_side(linked, plan), (len(keys), n_splits, 2)).mean(axis=1)
    cells = {key: f"{100 * a:.1f} ({100 * b:.1f})" for key, (a, b) in zip(keys, found, strict=True)}
    print("Unlabelled rows (test rows), % correct by labels a class\n")
    header = ["eta", *(f"{name}, {n}" for name in sets for n in per_class)]
    lines = [[eta, *(cells[name, n, eta] for name in sets for n in per_class)] for eta in ETAS]
    table(header, lines)


def linked(views, target, n, eta, seed):
    """Return the accuracies on unlabelled rows and on a fifth of the rows, which took no part."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(target))
    test, rest = np.split(order, [len(target) // 5])
    labelled = each_class(rng, target, rest, n)
    unlabelled = rest[~np.isin(rest, labelled)]
    rows = np.concatenate([labelled, unlabelled])
    model = MixtureClassifier(eta=eta).fit(views[rows], hide(target[rows], len(labelled)))
    return [model.score(views[part], target[part]) for part in (unlabelled, test)]


# -- posts, and tables of scores -----------------------------------------------------------------


def load_posts():
    """Return the counts of all words of all posts, their vectors, groups and dates."""
    data = fetch_20newsgroups(views="meaning")
    counts = CountVectorizer(stop_words="english", dtype=np.float32).fit_transform(data.text)
    vectors = data.views["meaning"]
    return Bunch(counts=counts, vectors=vectors, target=data.target, dates=data.dates)


def see(posts, rows, train):
    """Return what the methods see of some posts; words and their rarity are of the training rows.

    The words are those of CountVectorizer(stop_words="english", min_df=2) fitted on the training
    rows; posts are cut into words once for all splits.
    """
    known = posts.counts[train]
    words = np.flatnonzero(known.getnnz(axis=0) >= 2)
    known, counts, vectors = known[:, words], posts.counts[rows][:, words], posts.vectors[rows]
    tf_idf = TfidfTransformer(sublinear_tf=True).fit(known).transform(counts)
    return {
        "counts": counts,
        "tf-idf": tf_idf,
        "meaning": vectors,
        "both": sp.hstack([tf_idf, vectors], format="csr"),
        "views": Views(words=counts, meaning=vectors),
    }


def run(posts, split, methods, sizes, parts, n_splits):
    """Return part -> for each method an array of splits and sizes.

    Of the trials of a method the best on average is taken, for each size and part.
    """
    plan = [(posts, split(posts, seed), methods, sizes, parts) for seed in range(n_splits)]
    found = side_by_side(compare, plan)
    scores = {part: [] for part in parts}
    for name in methods:
        trials = np.array([one[name] for one in found])  # split, size, trial, part
        for at, part in enumerate(parts):
            best = trials[..., at].mean(axis=0).argmax(axis=1)
            scores[part].append(trials[:, np.arange(len(best)), best, at])
    return scores


def lead(scores):
    """Return mean and standard error, over splits, of the best method's lead over the next."""
    second, first = np.argsort(scores.mean(axis=1))[-2:]
    gaps = 100 * (scores[first] - scores[second])
    return f"{gaps.mean():.1f} +- {gaps.std(ddof=1) / np.sqrt(len(gaps)):.1f}"


def best_cells(scores):
    """Return mean and standard error in %, by method and size; the best of a size has a star."""
    means = [100 * array.mean(axis=0) for array in scores]
    errors = [100 * array.std(axis=0, ddof=1) / np.sqrt(len(array)) for array in scores]
    stars = np.where(means == np.max(means, axis=0), " *", "")
    return [
        [f"{m:.1f} +- {e:.1f}{star}" for m, e, star in zip(*line, strict=True)]
        for line in zip(means, errors, stars, strict=True)
    ]


if __name__ == "__main__":
    main()
