"""Reuters (Nigam et al. 2006, Table 3.2) and News5 (Sec. 3.5): when plain EM is not enough."""

import argparse
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from coem import MixtureClassifier
from coem.datasets import fetch_20newsgroups, fetch_reuters
from coem.metrics import aligned_accuracy
from coem.schedules import Geometric
from coem.selection import doctor
from coem.text import ScaleLength, SelectWords

TOPICS = ["acq", "corn", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade", "wheat"]
VARIANTS = {"NB": None, "EM1": 1, "EM5": 5, "EM10": 10, "EM20": 20}


def classifier(**params):
    return make_pipeline(
        SelectWords(1000, by="document"),
        ScaleLength(),
        MixtureClassifier(random_state=0, tol=1e-5, **params),
    )


def reuters():
    """Return counts of title and body, the topics of every story, and its part."""
    bunch = fetch_reuters(views=("title",))
    text = [f"{title}\n{body}" for title, body in zip(bunch.titles, bunch.text, strict=True)]
    X = CountVectorizer(stop_words="english", min_df=2, dtype=np.float32).fit_transform(text)
    return X, bunch.topics, np.asarray(bunch.split)


def trial(topics, split, topic, seed):
    """Return rows (10 positive and 40 negative labels, 7,000 without), labels, test rows, truth."""
    truth = np.array(["yes" if topic in named else "no" for named in topics])
    order = np.random.default_rng(seed).permutation(np.flatnonzero(split == "train"))
    unlabelled, rest = order[:7000], order[7000:]
    yes, no = rest[truth[rest] == "yes"][:10], rest[truth[rest] == "no"][:40]
    rows = np.concatenate([yes, no, unlabelled])
    y = np.concatenate([truth[rows[:50]], np.full(7000, "")])
    test = np.flatnonzero(split == "test")
    return rows, y, test, truth[test]


def table_of_topics(data, n_trials):
    """Print accuracies on the test stories, means over the trials."""
    X, topics, split = data
    print(f"Reuters, accuracy on the test stories in %, means of {n_trials} trials")
    print(f"{'topic':10}" + "".join(f"{name:>8}" for name in VARIANTS))
    for topic in TOPICS:
        cells = []
        for number in VARIANTS.values():
            right = []
            for seed in range(n_trials):
                rows, y, test, truth = trial(topics, split, topic, seed)
                model = classifier(components_per_class={"no": number or 1})
                rows, y = (rows[:50], y[:50]) if number is None else (rows, y)
                right.append((model.fit(X[rows], y).predict(X[test]) == truth).mean())
            cells.append(f"{100 * np.mean(right):8.1f}")
        print(f"{topic:10}" + "".join(cells), flush=True)


def doctors_word(data, n_trials):
    """Print what the doctor recommends for acq, and what it is worth on the test stories."""
    X, topics, split = data
    print("\nacq: what the doctor says from the 50 labels, and accuracy on the test stories in %")
    for seed in range(n_trials):
        rows, y, test, truth = trial(topics, split, "acq", seed)
        found = doctor(classifier(), X[rows], y, n_restarts=0, random_state=seed)
        scores = []
        for model, some in ((classifier(), 50), (classifier(), None), (found.estimator, None)):
            fitted = model.fit(X[rows[:some]], y[:some])
            scores.append(100 * (fitted.predict(X[test]) == truth).mean())
        figures = "naive Bayes {:.1f}, EM {:.1f}, as recommended {:.1f}".format(*scores)
        print(f"{seed}: {found.settings}: {figures}", flush=True)


def news5(n_trials):
    """Print EM against deterministic annealing on the comp.* groups, by correspondence."""
    bunch = fetch_20newsgroups(views=("body",))
    groups = [i for i, name in enumerate(bunch.target_names) if name.startswith("comp.")]
    mine = np.flatnonzero(np.isin(bunch.target, groups))
    y = np.asarray(bunch.target)[mine]
    X = SelectWords(4000, by="document").fit_transform(bunch.views["body"][mine], y)
    X = ScaleLength().fit_transform(X)
    annealed = {"beta": Geometric(0.02, 1.01, 1.0), "tol": 1e-5}
    print(f"\nNews5, accuracy on the test posts in %, means of {n_trials} trials")
    print(f"{'labels':>8}{'EM':>8}{'labels':>8}{'em':>8}{'best':>8}   objective: EM, annealed")
    for n_labels in (2, 5, 20):
        out = []
        for seed in range(n_trials):
            out.append(news5_trial(X, y, n_labels, seed, annealed))
        plain, labels, em, best, first, second = np.mean(out, axis=0)
        cells = "".join(f"{100 * value:8.1f}" for value in (plain, labels, em, best))
        print(f"{5 * n_labels:8}{cells}   {first:.6g}, {second:.6g}", flush=True)


def news5_trial(X, y, n_labels, seed, annealed):
    rng = np.random.default_rng(seed)
    by_group = [rng.permutation(np.flatnonzero(y == group)) for group in np.unique(y)]
    labelled = np.concatenate([rows[:n_labels] for rows in by_group])
    unlabelled = np.concatenate([rows[n_labels : n_labels + 600] for rows in by_group])
    test = np.concatenate([rows[n_labels + 600 :] for rows in by_group])
    rows = np.concatenate([labelled, unlabelled])
    known = np.concatenate([y[labelled], np.full(len(unlabelled), -1)])
    plain = MixtureClassifier(tol=1e-5).fit(X[rows], known)
    by_labels = MixtureClassifier(**annealed).fit(X[rows], known)
    by_em = MixtureClassifier(correspondence="em", **annealed).fit(X[rows], known)
    return (
        *((model.predict(X[test]) == y[test]).mean() for model in (plain, by_labels, by_em)),
        aligned_accuracy(y[test], by_em.component_proba(X[test]).argmax(axis=1)),
        plain.objective_,
        by_em.objective_,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--topics", action="store_true", help="all ten topics of Table 3.2")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # components die where there are too many
    data = reuters()
    if not args.topics:
        TOPICS[1:] = []
    table_of_topics(data, args.trials)
    doctors_word(data, args.trials)
    news5(args.trials)


if __name__ == "__main__":
    main()
