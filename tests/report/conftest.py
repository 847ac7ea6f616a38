"""A small collection with two views, models of it, and a browser to look at their pages."""

import shutil

import numpy as np
import pytest

from coem import MixtureClusterer, Views
from coem.families import Multinomial
from coem.report import tell, write_report

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


# -- in a browser -------------------------------------------------------------------------------


def wait_until(page, expression, arg=None):
    """Wait until an expression is true on a page.

    Playwright would look again by `eval`, which the policy of the page forbids.
    """
    for _ in range(600):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not true in 30 seconds: {expression}")


class Watched:
    """A page, with all that it complains of or asks for."""

    def __init__(self, browser, path, **settings):
        self.page = browser.new_context(**settings).new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def rows(self):
        """Return the texts of the first cells of the documents that are shown."""
        return self.page.locator("#table tbody tr td:first-child").all_inner_texts()

    def search(self, query):
        """Search, and wait for the answer."""
        self.page.fill("#query", query)
        wait_until(self.page, "query => coem.query === query", query)
        self.page.evaluate("coem.allTexts()")


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium")
    with sync_api.sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def path(collection, model, tmp_path_factory):
    story = tell(model, collection.views, **collection.named(), n_examples=90)
    return write_report(story, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def watched(browser, path):
    seen = Watched(browser, path)
    yield seen
    assert seen.complaints == []
    assert seen.requests == [path.as_uri()]
    seen.page.context.close()
