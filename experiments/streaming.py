"""Groups of a stream: how good they are, which new groups are found, and how often falsely.

    python experiments/streaming.py [PART ...]

A part is "news" (20 Newsgroups, 500 posts of each group: 15 groups first, and 5 that come later),
"others" (Reuters and WebKB) or "memory"; without any, all. The tests of `coem.recipes.novelty` and
their thresholds were chosen on 20 Newsgroups, with other splits of it. Nothing was chosen on
Reuters and WebKB. Documents come in a random order. The first batch has 3,000 documents, later ones
1,000 (Reuters and WebKB: half of the documents, and a tenth).

A late class counts as found if a fifth or more of the documents of a new group are of it, and most
of them of late classes. So a group that holds two late classes counts for both.
"""

import resource
import sys
import warnings
from functools import cache

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from trials import table

import coem
from coem.datasets import fetch_20newsgroups, fetch_reuters, fetch_webkb

SEEDS = 3
RESTARTS = 3
POSTS = 500  # of each group of 20 Newsgroups


@cache
def news():
    """Return the texts of 20 Newsgroups and their groups."""
    data = fetch_20newsgroups()
    pairs = zip(data.subjects, data.text, strict=True)
    texts = np.array([f"{subject}\n\n{body}" for subject, body in pairs], dtype=object)
    rng, target = np.random.default_rng(0), np.asarray(data.target)
    each = [rng.choice(np.flatnonzero(target == c), POSTS, replace=False) for c in range(20)]
    rows = np.sort(np.concatenate(each))
    return texts[rows], target[rows]


@cache
def other(name):
    """Return the texts and the classes of another data set; classes of 60 documents or more."""
    data = fetch_reuters() if name == "Reuters" else fetch_webkb()
    target = np.asarray(data.target)
    if target.ndim > 1 or name == "Reuters":
        target = single(data)
    texts = np.array([str(text) for text in data.text], dtype=object)
    kept = target >= 0
    sizes = np.bincount(target[kept])
    kept &= np.isin(target, np.flatnonzero(sizes >= 60))
    return texts[kept], np.unique(target[kept], return_inverse=True)[1]


def single(data):
    """Return the topic of stories that have one, and -1 for the others."""
    many = data.target.toarray() if hasattr(data.target, "toarray") else np.asarray(data.target)
    return np.where(many.sum(axis=1) == 1, many.argmax(axis=1), -1)


def in_order(target, late, n_first, size, seed):
    """Return batches of rows: documents of the `late` classes come after the first two batches."""
    rng = np.random.default_rng(seed)
    early = rng.permutation(np.flatnonzero(~np.isin(target, late)))
    cut = n_first + 2 * size
    rest = np.concatenate([early[cut:], np.flatnonzero(np.isin(target, late))])
    rest = rng.permutation(rest)
    order = [early[:n_first], early[n_first : n_first + size], early[n_first + size : cut]]
    return order + [rest[lo : lo + size] for lo in range(0, len(rest), size)]


def streamed(texts, target, late, k, n_first, size, seed):
    """Return the batches of rows, their labels, and the new groups with their batches."""
    rows = in_order(target, late, n_first, size, seed)
    tables = ({"text": texts[own].tolist()} for own in rows)
    given = {"text": "text", "k": k, "restarts": RESTARTS, "seed": seed, "threads": 2}
    labels, new = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in coem.stream(tables, **given):
            labels.append(np.asarray(batch.labels, dtype=int))
            new += [(group, batch.number) for group in batch.new]
    return rows, labels, new


def judged(target, late, rows, labels, new):
    """Return what the new groups are: classes that were found, pieces of old ones, and NMI."""
    order, given = np.concatenate(rows), np.concatenate(labels)
    truth, found, false = target[order], set(), 0
    for group, _ in new:
        inside = truth[given == group]
        classes = np.bincount(inside, minlength=target.max() + 1)
        # A new group is right if most of its documents are of classes that came late.
        if len(inside) and classes[late].sum() > len(inside) / 2:
            found |= {int(c) for c in late if classes[c] >= 0.2 * len(inside)}
        else:
            false += 1
    score = normalized_mutual_info_score(truth, given)
    return {"nmi": score, "new": len(new), "found": len(found), "false": false}


def late_classes(target, n, seed):
    return np.sort(np.random.default_rng(100 + seed).choice(target.max() + 1, n, replace=False))


# -- parts -----------------------------------------------------------------------------------------


def others():
    """Print what is found on sets that nothing was chosen on."""
    lines = []
    for name, n_late in (("Reuters", 3), ("WebKB", 1)):
        texts, target = other(name)
        k, n = int(target.max()) + 1, len(target)
        for seed in range(SEEDS):
            cells = []
            for late in (late_classes(target, n_late, seed), np.array([], int)):
                about = texts, target, late, k - len(late), n // 2, n // 10, seed
                found = judged(target, late, *streamed(*about))
                cells += [f"{found['found']} of {len(late)}"] if len(late) else []
                cells += [found["false"], f"{found['nmi']:.3f}"]
            whole = normalized_mutual_info_score(target, refitted(texts, k, seed))
            lines.append((name, seed, *cells, f"{whole:.3f}"))
    print("### Reuters (stories of one topic) and WebKB; nothing was chosen on them\n")
    late = ("late classes found", "false groups", "NMI")
    table(("", "seed", *late, "false, nothing new", "NMI, nothing new", "NMI, fit of all"), lines)


NEWS = (
    *("seed", "NMI, first batch", "NMI, stream", "NMI, fit of all", "late groups found"),
    *("false groups", "new groups", "old labels that a refit changes", "false, nothing new"),
    "NMI, nothing new",
)


def stream_of_news():
    """Print how streamed groups of 20 Newsgroups compare with a fit of all documents."""
    texts, target = news()
    print("### 20 Newsgroups, 15 groups first and 5 late; in the last two columns all 20 first\n")
    for seed in range(SEEDS):
        late = late_classes(target, 5, seed)
        rows, labels, new = streamed(texts, target, late, 15, 3000, 1000, seed)
        result = judged(target, late, rows, labels, new)
        order, given = np.concatenate(rows), np.concatenate(labels)
        whole = refitted(texts[order], 20, seed)
        truth, old = target[order], np.arange(len(order)) < 5000
        change = 1 - agreement(given[old], whole[old])
        alone = normalized_mutual_info_score(truth, whole)
        first = normalized_mutual_info_score(truth[:3000], given[:3000])
        said = ", ".join(f"{group} in batch {batch}" for group, batch in new) or "no group"
        quiet = streamed(texts, target, np.array([], int), 20, 3000, 1000, seed)
        silent = judged(target, np.array([], int), *quiet)
        table(
            NEWS,
            [
                (
                    *(seed, f"{first:.3f}", f"{result['nmi']:.3f}", f"{alone:.3f}"),
                    *(f"{result['found']} of 5", result["false"], said),
                    *(f"{change:.0%}", silent["false"], f"{silent['nmi']:.3f}"),
                )
            ],
        )


def refitted(texts, k, seed):
    """Return the labels of a fit of all documents."""
    given = {"text": "text", "k": k, "restarts": RESTARTS, "seed": seed, "threads": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(coem.cluster({"text": texts.tolist()}, **given).labels, dtype=int)


def agreement(one, two):
    """Return the share of rows that stay together under the best matching of groups."""
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((one.max() + 1, two.max() + 1))
    np.add.at(counts, (one, two), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return counts[rows, columns].sum() / len(one)


def memory():
    """Print the memory of a stream of 2,000 and of 40,000 short documents."""
    words = np.array([f"w{i}" for i in range(2000)])
    topics = np.random.default_rng(0).dirichlet(np.full(2000, 0.02), size=10)

    def batches(n):
        rng = np.random.default_rng(1)
        for lo in range(0, n, 500):
            drawn = (rng.choice(words, 40, p=topics[i % 10]) for i in range(lo, lo + 500))
            yield {"text": [" ".join(one) for one in drawn]}

    lines = []
    for n in (2000, 10_000, 40_000):
        for _ in coem.stream(batches(n), text="text", k=10, restarts=2, threads=1):
            pass
        lines.append((f"{n:,}", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"))
    print("### Largest memory of the process after streams of so many documents, MB\n")
    table(("documents", "MB"), lines)


def main():
    parts = {"news": stream_of_news, "others": others, "memory": memory}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
