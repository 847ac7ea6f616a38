"""Boundaries between concatenated posts of newsgroups: a hidden Markov model against TextTiling.

A document is a row of posts, each of another group than the one before, if there is another.
Headers, quoted lines and signatures are removed, and so are line breaks within paragraphs: only
words tell posts apart. All ways see the same paragraphs (short ones are joined with the next), and
may put boundaries between any two of them.

    python experiments/segmentation.py [SETTING ...]           # the table, of the test posts
    python experiments/segmentation.py --choose [SETTING ...]  # the choices, of the training posts
"""

import math
import re
import sys
from functools import cache, partial

import numpy as np
from nltk.tokenize.texttiling import TextTilingTokenizer
from trials import side_by_side, table

from coem import MixtureClusterer
from coem.datasets import fetch_20newsgroups
from coem.families import Multinomial
from coem.metrics import pk, window_diff
from coem.segments import ALPHA, EVIDENCE, PRIOR, SEGMENT_LENGTH, topic_chain, usual_topics
from coem.text import ENGLISH_STOP_WORDS, TextViews

TRIALS = 5
LEAST = 20, 100  # words and letters of a paragraph; TextTiling looks at no shorter ones
PARAGRAPHS = 3, 20  # of a post
LONGEST = 500  # words of a paragraph: more are tables and encoded files

DISTANT = (
    "comp.graphics",
    "rec.autos",
    "rec.sport.hockey",
    "sci.space",
    "talk.politics.mideast",
)
CLOSE = (
    "comp.graphics",
    "comp.os.ms-windows.misc",
    "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware",
    "comp.windows.x",
)
# Groups (None is all), documents, posts of a document.
SETTINGS = {
    "20 groups": (None, 20, 10),
    "5 distant groups": (DISTANT, 20, 10),
    "5 close groups": (CLOSE, 20, 10),
    "1 group": (("soc.religion.christian",), 15, 10),
    "one document, 20 groups": (None, 1, 40),
    "one document, 5 distant groups": (DISTANT, 1, 40),
    "one short document, 5 distant groups": (DISTANT, 1, 10),
}

# -- documents -----------------------------------------------------------------------------------

QUOTED = re.compile(
    r"^\s*([>|:#}]|[A-Za-z]{0,4}>)"  # lines of somebody else, and who that was
    r"|^\s*In (article|<)|(writes|wrote|says|said)\s*:?\s*$|@.*(writes|wrote|says)",
    re.IGNORECASE,
)
SIGNATURE = re.compile(r"^\s*--+\s*$")


def paragraphs_of(body):
    """Return the paragraphs of a post, on one line each, without quotes and signature."""
    lines = body.replace("\r\n", "\n").split("\n")
    marks = [i for i, line in enumerate(lines) if SIGNATURE.match(line) and 2 * i > len(lines)]
    kept = [line for line in lines[: marks[0] if marks else None] if not QUOTED.search(line)]
    found, last = [], ""
    for block in re.split(r"\n\s*\n", "\n".join(kept)):
        last = " ".join(f"{last} {block}".split())
        words = re.findall("[a-z]+", last.lower())
        if len(words) >= LEAST[0] and len(" ".join(words)) >= LEAST[1]:
            found.append(last)
            last = ""
    if last and found:
        found[-1] += f" {last}"
    return found


@cache
def posts(train):
    """Return the paragraphs of the posts of every group."""
    data = fetch_20newsgroups(version="bydate", views=("subject",))
    found = {name: [] for name in data.target_names.tolist()}
    rows = zip(data.text, data.target_names[data.target].tolist(), data.train, strict=True)
    for body, group, of_train in rows:
        if of_train == train:
            parts = paragraphs_of(body)
            fits = PARAGRAPHS[0] <= len(parts) <= PARAGRAPHS[1]
            if fits and max(len(part.split()) for part in parts) <= LONGEST:
                found[group].append(parts)
    return found


def draw(setting, train, trial):
    """Return paragraphs, lengths of the documents, and the number of the post of each."""
    groups, n_documents, n_posts = SETTINGS[setting]
    rng = np.random.default_rng(trial)
    left = {g: list(rng.permutation(len(p))) for g, p in posts(train).items() if in_(g, groups)}
    texts, lengths, true, n = [], [], [], 0
    for _ in range(n_documents):
        before, start = None, len(texts)
        for _ in range(n_posts):
            names = [g for g in left if left[g] and (g != before or len(left) == 1)]
            before = names[rng.integers(len(names))]
            post = posts(train)[before][left[before].pop()]
            texts += post
            true += [n] * len(post)
            n += 1
        lengths.append(len(texts) - start)
    return texts, np.array(lengths), np.array(true)


def in_(group, groups):
    return groups is None or group in groups


# -- ways to segment: each returns a label per paragraph -------------------------------------------


def nothing(texts, lengths, true, trial):
    return np.zeros(len(texts), dtype=int)


def even(texts, lengths, true, trial):
    """As many segments as there are, all of the same length."""
    parts = per_document(lengths, true)
    return np.concatenate([np.arange(n) * k // n + 1000 * d for d, (n, k) in enumerate(parts)])


def at_random(texts, lengths, true, trial):
    """As many segments as there are, anywhere."""
    rng = np.random.default_rng([trial, 1])
    found = []
    for n, k in per_document(lengths, true):
        first = np.zeros(n, dtype=int)
        first[rng.choice(np.arange(1, n), k - 1, replace=False)] = 1
        found.append(np.cumsum(first))
    return np.concatenate(found)


def per_document(lengths, true):
    """Return the number of paragraphs and of segments of each document."""
    ends = np.cumsum(lengths)
    spans = zip(ends - lengths, ends, strict=True)
    return [(b - a, len(np.unique(true[a:b]))) for a, b in spans]


class Tiling(TextTilingTokenizer):
    """The tokenizer of nltk, with the same scores of gaps in less time.

    nltk goes through all words once per gap, which takes minutes for a long document.
    """

    def _block_comparison(self, tokseqs, token_table):
        counts = np.zeros((len(tokseqs), len(token_table)))
        for word, field in enumerate(token_table.values()):
            for sequence, count in field.ts_occurences:
                counts[sequence, word] = count
        up_to = np.vstack([np.zeros(len(token_table)), counts.cumsum(axis=0)])
        n_gaps, scores = len(tokseqs) - 1, []
        for gap in range(n_gaps):
            size = min(self.k, gap + 1, n_gaps - gap)
            before = up_to[gap + 1] - up_to[gap + 1 - size]
            after = up_to[gap + 1 + size] - up_to[gap + 1]
            norm = math.sqrt((before @ before) * (after @ after))
            scores.append(before @ after / norm if norm else 0.0)
        return scores


def tiling(texts, lengths, true, trial, place, w=20, k=10):
    """TextTiling (Hearst 1997) of nltk, document by document."""
    tokenizer = Tiling(w=w, k=k, stopwords=ENGLISH_STOP_WORDS, demo_mode=place is exactly)
    ends = np.cumsum(lengths)
    found = []
    for a, b in zip(ends - lengths, ends, strict=True):
        first = np.zeros(b - a, dtype=int)
        first[place(tokenizer, texts[a:b])] = 1
        found.append(np.cumsum(first))
    return np.concatenate(found)


def as_given(tokenizer, texts):
    """Return the paragraphs that tiles begin with, as nltk returns them.

    It counts words with digits and signs when it places boundaries, and not when it finds them;
    and it places them after one pseudo-sentence too few.
    """
    found = tokenizer.tokenize("\n\n".join(texts))
    begins = np.cumsum([0, *(len(text) + 2 for text in texts[:-1])])
    cuts = np.cumsum([len(tile) for tile in found])[:-1]
    return [int(np.abs(begins - cut).argmin()) for cut in cuts]


def exactly(tokenizer, texts):
    """Return the same with the boundaries of nltk put at the nearest paragraph by exact counts."""
    words = [re.findall("[a-z]+", text.lower()) for text in texts]
    *_, gaps = tokenizer.tokenize("\n\n".join(" ".join(own) for own in words))
    begins = np.cumsum([0, *map(len, words[:-1])])
    cuts = tokenizer.w * (np.flatnonzero(gaps) + 1)
    return [int(np.abs(begins - cut).argmin()) for cut in cuts]


def counted(texts, evidence):
    """Return the counts of the paragraphs, and the share of them that was kept."""
    reader = TextViews({"text": "text"}, stop_words="english", min_df=2, max_length=evidence)
    views = reader.fit_transform({"text": texts})
    return views, reader.kept_.get("text", 1.0)


def chain(
    texts, lengths, true, trial, *, k=None, length=SEGMENT_LENGTH, evidence=EVIDENCE,
    alpha=ALPHA, restarts=5, pull=1.0,
):  # fmt: skip
    """Segment as `coem segment` does; `pull` is a factor of the prior on transitions."""
    views, kept = counted(texts, evidence)
    model = topic_chain(
        min(k or usual_topics(len(texts), length), len(texts)),
        pull * len(texts),
        segment_length=length,
        kept=kept * alpha / ALPHA,
        n_init=restarts,
        random_state=trial,
    )
    return model.fit_predict(views, lengths=lengths)


def informed(texts, lengths, true, trial):
    """Segment by a chain that is told how long a segment is on average."""
    return chain(texts, lengths, true, trial, length=len(texts) / len(np.unique(true)))


def mixture(texts, lengths, true, trial):
    """Find topics without a chain: every paragraph by itself."""
    views, kept = counted(texts, EVIDENCE)
    k, family = usual_topics(len(texts)), Multinomial(alpha=ALPHA * kept)
    return MixtureClusterer(k, family=family, n_init=5, random_state=trial).fit_predict(views)


TUNED = {"w": 40, "k": 4}  # the best of TILINGS on the training posts

WAYS = {
    "no boundary": nothing,
    "at random (number known)": at_random,
    "even (number known)": even,
    "TextTiling, as nltk gives it": partial(tiling, place=as_given),
    "TextTiling, placed exactly": partial(tiling, place=exactly),
    "TextTiling, placed exactly, tuned": partial(tiling, place=exactly, **TUNED),
    "topics without a chain": mixture,
    "HMM (coem segment)": chain,
    "HMM, true segment length": informed,
    "HMM, 10 topics": partial(chain, k=10),
    "HMM, 20 topics": partial(chain, k=20),
}

CHOICES = {
    "as it is": {},
    **{f"evidence {e}": {"evidence": e} for e in (2, 4, 6, 12, None)},
    **{f"alpha {a}": {"alpha": a} for a in (0.03, 0.3, 1.0)},
    "evidence 4, alpha 0.3": {"evidence": 4, "alpha": 0.3},
    **{f"segment length {n}": {"length": n} for n in (5, 20)},
    **{f"{k} topics": {"k": k} for k in (5, 10, 20, 80)},
    **{f"prior of weight {PRIOR * w:g}": {"pull": w} for w in (0.001, 0.01, 0.1, 10.0)},
    **{f"{n} restarts": {"restarts": n} for n in (1, 10)},
}
TILINGS = {
    f"TextTiling w={w} k={k}": partial(tiling, place=exactly, w=w, k=k)
    for w in (20, 40, 60)
    for k in (2, 4, 10)
}

# -- tables --------------------------------------------------------------------------------------


def judge(texts, lengths, true, way, trial):
    """Return Pk, WindowDiff, and the number of segments beside the true one."""
    found = way(texts, lengths, true, trial)
    scores = [metric(true, found, lengths=lengths) for metric in (pk, window_diff)]
    ends = np.cumsum(lengths)
    owner = np.searchsorted(ends, np.arange(len(texts)), side="right")
    changes = (found[1:] != found[:-1]) | (owner[1:] != owner[:-1])
    return (*scores, (1 + changes.sum()) / len(np.unique(true)))


def compare(setting, train, ways):
    """Print a table of all ways in one setting."""
    drawn = [draw(setting, train, trial) for trial in range(TRIALS)]
    texts, lengths, true = drawn[0]
    which = "training" if train else "test"
    print(
        f"### {setting}: {len(lengths)} documents a trial, {len(texts)} paragraphs and "
        f"{len(np.unique(true))} posts in the first of {TRIALS} trials, {which} posts\n"
    )
    tasks = [(*d, way, trial) for way in ways.values() for trial, d in enumerate(drawn)]
    values = np.array(side_by_side(judge, tasks)).reshape(len(ways), TRIALS, 3)
    rows = [
        (name, spread(value[:, 0]), spread(value[:, 1]), f"{value[:, 2].mean():.2f}")
        for name, value in zip(ways, values, strict=True)
    ]
    table(("", "Pk", "WindowDiff", "segments / true"), rows)


def spread(values):
    """Return mean and standard error as text."""
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def main():
    choosing = "--choose" in sys.argv
    names = [name for name in sys.argv[1:] if not name.startswith("--")] or SETTINGS
    for name in names:
        if choosing:
            chains = {label: partial(chain, **given) for label, given in CHOICES.items()}
            compare(name, True, chains)
            compare(name, True, TILINGS)
        else:
            compare(name, False, WAYS)


if __name__ == "__main__":
    main()
