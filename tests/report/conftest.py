"""A small collection with two views, and models of it."""

import numpy as np
import pytest

from coem import MixtureClusterer, Views
from coem.families import Multinomial

TOPICS = (
    "goal match keeper team league",
    "vote bill house law senate",
    "star orbit moon comet sky",
)
HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!-- <script> ]]> &amp; & \" ' ` {{ 7 * 7 }} {% raw %}",
    "line\u2028separator\u2029and\x00control\ud800surrogate",
    "emoji \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 and \u202e override",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd, \u0645\u0631\u062d\u0628\u0627",
    "<img src=x onerror=alert(3)> javascript:alert(4)",
    "",
    "   \n\t ",
    "word " * 200_000,
]


class Collection:
    """Documents of three topics, some of them hostile."""

    def __init__(self, n=90, seed=0):
        rng = np.random.default_rng(seed)
        self.truth = np.arange(n) % 3
        words = [topic.split() for topic in TOPICS]
        vocabulary = sorted({*" ".join(TOPICS).split(), "the", "and"})
        body = [[*rng.choice(words[t], 12), *["the", "and"] * 3] for t in self.truth]
        title = [[*rng.choice(words[t], 3)] for t in self.truth]
        title[0], body[1] = [], []  # rows that are empty in a view
        counts = [[[d.count(w) for w in vocabulary] for d in docs] for docs in (title, body)]
        self.views = Views(title=np.array(counts[0]), body=np.array(counts[1]))
        self.feature_names = {name: vocabulary for name in ("title", "body")}
        self.texts = [" ".join(d) for d in body]
        self.texts[5 : 5 + len(HOSTILE)] = HOSTILE
        self.titles = [" ".join(d) for d in title]
        self.ids = [f"doc {i}" for i in range(n)]
        self.labels = np.array(["sport", "law", "space"])[self.truth]

    def fit(self, **settings):
        """Return a fitted clusterer."""
        family = Multinomial(0.1)
        return MixtureClusterer(3, family=family, random_state=0, **settings).fit(self.views)

    def named(self):
        """Return what a report is told about the documents."""
        names = ("feature_names", "ids", "texts", "titles", "labels")
        return {name: getattr(self, name) for name in names}


@pytest.fixture(scope="session")
def collection():
    return Collection()


@pytest.fixture(scope="session")
def model(collection):
    return collection.fit()
