"""The page about segments: what it shows, hostile text, its size, and a browser."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

from coem.report import read, tell
from coem.report import segments as page
from coem.report.page import digest
from coem.segments import segments_of, topic_chain
from tests.report.conftest import HOSTILE, TOPICS, Watched

WORDS = [topic.split() for topic in TOPICS]
VOCABULARY = sorted(word for words in WORDS for word in words)


class Cuts:
    """Documents of three topics, cut; the texts of some paragraphs are hostile."""

    def __init__(self, n_documents=3, hostile=True, k=3):
        rng = np.random.default_rng(0)
        truth = np.tile(np.repeat([0, 1, 2, 0], [4, 5, 3, 4]), n_documents)
        drawn = [rng.choice(WORDS[t], 15).tolist() for t in truth]
        counts = [[own.count(word) for word in VOCABULARY] for own in drawn]
        self.counts = sp.csr_array(np.array(counts, dtype=float))
        self.lengths = np.array([16] * n_documents)
        self.names = ["<b>first</b>", *(f"document {i}" for i in range(1, n_documents))]
        self.texts = [" ".join(own) for own in drawn]
        if hostile:
            self.texts[3 : 3 + len(HOSTILE)] = [text or "empty" for text in HOSTILE]
        model = topic_chain(k, len(truth), kept=0.1, random_state=0)
        model.fit(self.counts, lengths=self.lengths)
        reading = read(model, self.counts, self.lengths)
        self.cuts = segments_of(reading.groups, reading.proba, self.lengths)
        self.story = tell(
            model, self.counts, reading=reading, feature_names=VOCABULARY, texts=self.texts
        )

    def told(self):
        about = self.story, self.cuts, self.texts, self.names
        return page.tell_segments(*about, counts=self.counts, words=VOCABULARY)


@pytest.fixture(scope="module")
def cut():
    return Cuts()


@pytest.fixture(scope="module")
def html(cut):
    return page.render_segments(cut.told())


class Tags(HTMLParser):
    """All elements with their attributes, and the visible text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)


def test_every_segment_is_shown_in_the_colour_of_its_topic(cut, html):
    told = cut.told()
    assert len(told.documents) == told.n_documents == 3
    shown = [s for document in told.documents for s in document.segments]
    assert [s.topic for s in shown] == cut.cuts.topic.tolist()
    assert [len(document.segments) for document in told.documents] == [4, 4, 4]
    tags = Tags(html).found
    items = [a["class"] for tag, a in tags if tag == "li" and "class" in a]
    assert items == [f"b{told.colours[s.topic]}" for s in shown]
    assert len(set(told.colours)) == 3
    assert sum(told.n_segments) == told.total == 12


def test_the_words_of_a_segment_are_its_own_and_its_topics(cut):
    for document in cut.told().documents:
        for s in document.segments:
            owners = {i for i, words in enumerate(WORDS) if set(s.words) <= set(words)}
            assert len(owners) == 1
            assert 3 <= len(s.words) <= page.N_WORDS


def test_strips_are_as_wide_as_documents_are_long(html):
    boxes = re.findall(r'class="strip" role="img" viewBox="0 0 (\d+) 1"', html)
    assert boxes == ["16"] * 3
    widths = [int(w) for w in re.findall(r'<rect class="c\d+" x="\d+" width="(\d+)"', html)]
    assert sum(widths) == 48


def test_hostile_text_stays_text(html):
    tags = Tags(html)
    names = {tag for tag, _ in tags.found}
    assert not names & {"script", "img", "iframe", "link", "object", "form"}
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert "<b>first</b>" in "".join(tags.text)
    for _, attributes in tags.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_allows_the_style_and_nothing_else(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; style-src")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert digest(style) in policy
    assert "script" not in policy
    assert "http" not in style


def test_links_lead_somewhere(html):
    tags = Tags(html).found
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for tag, a in tags if tag == "a"}
    assert targets <= set(ids)
    named = {name for _, a in tags for name in a.get("aria-labelledby", "").split()}
    assert named <= set(ids)


def test_the_same_story_is_the_same_page(cut, html):
    assert page.render_segments(cut.told()) == html


def test_texts_are_cut_to_the_budget(cut, monkeypatch):
    whole = cut.told()
    assert all(s.left_out == 0 for d in whole.documents for s in d.segments)
    monkeypatch.setattr(page, "BUDGET", 16_000)
    monkeypatch.setattr(page, "CARD", 0)
    monkeypatch.setattr(page, "LEAST", 16_000)
    told = cut.told()
    segments = [s for d in told.documents for s in d.segments]
    texts = [text for s in segments for text in s.paragraphs]
    assert len("".join(texts).encode(errors="replace")) < 16_000 - page.SEGMENT * len(segments)
    assert sum(s.left_out for s in segments) > 0
    assert all(s.paragraphs for s in segments)
    assert "more paragraphs had no room" in page.render_segments(told)


def test_documents_beyond_the_budget_are_counted(cut, monkeypatch):
    monkeypatch.setattr(page, "LEAST", 2 * page.SEGMENT * 9)
    monkeypatch.setattr(page, "BUDGET", 0)
    told = cut.told()
    assert [len(d.segments) for d in told.documents] == [4, 4]
    assert "The first 8 of 12 segments" in page.render_segments(told)
    monkeypatch.setattr(page, "LEAST", 2 * page.SEGMENT * 3)
    assert [len(d.segments) for d in cut.told().documents] == [3]


def test_one_document_of_one_topic():
    html = page.render_segments(Cuts(1, hostile=False, k=1).told())
    assert "16 paragraphs of 1 document in 1 segment, each of one of 1 topics" in html


# -- in a browser ----------------------------------------------------------------------------------


def test_the_page_in_a_browser(cut, browser, tmp_path):
    path = page.write_segments(cut.told(), tmp_path / "report.html")
    watched = Watched(browser, path, viewport={"width": 400, "height": 800})
    seen = watched.page
    assert seen.evaluate("document.documentElement.scrollWidth") <= 400
    fills = _fills(seen)
    assert len(set(fills)) == 3
    seen.locator(".segments summary").first.press("Enter")  # a key opens a segment
    assert seen.locator(".segments details").first.get_attribute("open") is not None
    assert seen.locator(".segments .text").first.is_visible()
    seen.emulate_media(color_scheme="dark")
    assert set(_fills(seen)).isdisjoint(fills)
    seen.context.close()
    assert watched.complaints == []
    assert watched.requests == [path.as_uri()]


def _fills(seen):
    return seen.eval_on_selector_all(
        ".strip rect", "found => found.map(rect => getComputedStyle(rect).fill)"
    )
