"""Length as a temperature: accuracy of naive Bayes and EM by the length of documents.

First nine corpora with documents as they are and scaled to a length; then length and pseudo-count
apart; then the identity that makes a length a temperature.
"""

import numpy as np
import scipy.sparse as sp
from trials import each_class, hide, side_by_side, table

from coem import MixtureClassifier
from coem.datasets import fetch_20newsgroups, fetch_cluto, fetch_reuters, fetch_webkb
from coem.families import Multinomial
from coem.text import scale_length

LENGTHS = (None, 30, 100, 300, 600, 1000)
PER_CLASS = (2, 15)
SEEDS = range(3)
NEWS = "20news"


def main():
    corpora = load_corpora()
    print("Corpora: classes of 40 rows or more\n")
    shapes = [(*X.shape, y.max() + 1, f"{X.sum(1).mean():.0f}") for X, y in corpora.values()]
    header = ("corpus", "rows", "words", "classes", "mean length")
    table(header, [(name, *shape) for name, shape in zip(corpora, shapes, strict=True)])
    by_length(corpora)
    by_smoothing(corpora)
    identity(*corpora[NEWS])


def by_length(corpora):
    """Print a table of length and corpus for each number of labels."""
    plan = [(X, y, length, 1.0) for length in LENGTHS for X, y in corpora.values()]
    found = np.reshape(side_by_side(score, plan), (len(LENGTHS), len(corpora), len(PER_CLASS), 2))
    for at, per_class in enumerate(PER_CLASS):
        print(f"Naive Bayes > EM, % correct, {per_class} labels a class, alpha = 1\n")
        rows = []
        for length, line in zip(LENGTHS, found[:, :, at], strict=True):
            rows.append([length or "raw", *map(cell, [*line, line.mean(axis=0)])])
        table(["length", *corpora, "mean"], rows)


def by_smoothing(corpora):
    """Print tables of length and alpha / length: down is temperature, across is smoothing."""
    lengths, alphas = (20, 60, 200, 600, 2000), (0.1, 0.3, 1, 3, 10)
    pairs = [(length, alpha * length / 600) for length in lengths for alpha in alphas]
    plan = [(X, y, *pair) for pair in pairs for X, y in corpora.values()]
    shape = len(lengths), len(alphas), len(corpora), len(PER_CLASS), 2
    found = np.reshape(side_by_side(score, plan), shape)
    header = ["length", *(f"alpha = {alpha:g} L / 600" for alpha in alphas)]
    at_news = list(corpora).index(NEWS)
    for title, part in (("20 Newsgroups", found[:, :, at_news]), ("All nine", found.mean(axis=2))):
        for at, per_class in enumerate(PER_CLASS):
            print(f"{title}, {per_class} labels a class, by length and smoothing\n")
            lines = zip(lengths, part[:, :, at], strict=True)
            table(header, [[length, *map(cell, line)] for length, line in lines])


def identity(X, y, length=10.0, alpha=0.05, factor=8.0):
    """Print how far (L, alpha) and (c L, c alpha) at beta = 1 / c are apart, in double.

    The factor is a power of 2, so that the scaled counts, which are float32, lose nothing.
    """
    labelled, unlabelled, test = split(y, 2, seed=0)
    rows = np.concatenate([labelled, unlabelled])

    def posteriors(c, beta, weights):
        family, Z = Multinomial(c * alpha), scale_length(X, c * length)
        options = {"max_iter": 20, "tol": 0, "dtype": np.float64}
        model = MixtureClassifier(family=family, beta=beta, weights=weights, **options)
        return model.fit(Z[rows], hide(y[rows], len(labelled))).predict_proba(Z[test])

    print(f"20 Newsgroups, L = {length:g}, alpha = {alpha:g}, beta = 1 against ", end="")
    print(f"L = {factor * length:g}, alpha = {factor * alpha:g}: 20 rounds, test rows\n")
    lines = []
    for weights, beta in (("uniform", 1 / factor), ("uniform", 1.0), ("global", 1 / factor)):
        a, b = posteriors(1.0, 1.0, weights), posteriors(factor, beta, weights)
        same, sure = (a.argmax(axis=1) == b.argmax(axis=1)).mean(), (a.max(axis=1) > 0.99).mean()
        lines.append(
            (weights, f"{beta:g}", f"{np.abs(a - b).max():.1e}", f"{same:.1%}", f"{sure:.0%}")
        )
    header = ("weights", "beta", "largest difference", "same class", "posterior above 0.99")
    table(header, lines)


def score(X, y, length, alpha):
    """Return the accuracies of naive Bayes and EM for each number of labels, means over seeds."""
    Z = X if length is None else scale_length(X, float(length))
    runs = [[accuracies(Z, y, per_class, seed, alpha) for per_class in PER_CLASS] for seed in SEEDS]
    return np.mean(runs, axis=0)


def accuracies(Z, y, per_class, seed, alpha):
    labelled, unlabelled, test = split(y, per_class, seed)
    rows = np.concatenate([labelled, unlabelled])
    model = MixtureClassifier(family=Multinomial(alpha))
    bayes = model.fit(Z[labelled], y[labelled]).score(Z[test], y[test])
    return bayes, model.fit(Z[rows], hide(y[rows], len(labelled))).score(Z[test], y[test])


def split(y, per_class, seed):
    """Return labelled, unlabelled (up to 10,000) and test rows (30 %, up to 3,000)."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    test, rest = np.split(order, [min(len(y) * 3 // 10, 3000)])
    labelled = each_class(rng, y, rest, per_class)
    return labelled, rest[~np.isin(rest, labelled)][:10_000], test


def cell(pair):
    return f"{100 * pair[0]:.0f} > {100 * pair[1]:.0f}"


def load_corpora():
    """Return name -> counts and classes, without empty rows and classes of under 40 rows."""
    news, pages = fetch_20newsgroups(views="body"), fetch_webkb(views="page")
    corpora = {NEWS: (news.views["body"], news.target), "reuters8": largest_topics(8)}
    corpora["webkb"] = pages.views["page"], pages.target
    for name in ("re0", "fbis", "la1", "hitech", "tr11", "wap"):
        data = fetch_cluto(name)
        corpora[name] = data.views["words"], data.target
    return {name: without_small(X, y) for name, (X, y) in corpora.items()}


def largest_topics(n):
    """Return the Reuters stories of a single topic that is among the `n` most frequent ones."""
    data = fetch_reuters()
    single = np.flatnonzero(data.target.sum(axis=1) == 1)
    topic = data.target[single].argmax(axis=1).ravel()
    large = np.isin(topic, np.argsort(-np.bincount(topic), kind="stable")[:n])
    X = sp.hstack([data.views["title"], data.views["body"]], format="csr")
    return X[single[large]], topic[large]


def without_small(X, y, least=40):
    some = np.asarray(X.sum(axis=1)).ravel() > 0
    classes, n_rows = np.unique(y[some], return_counts=True)
    kept = some & np.isin(y, classes[n_rows >= least])
    return sp.csr_matrix(X)[kept], np.unique(y[kept], return_inverse=True)[1]


if __name__ == "__main__":
    main()
