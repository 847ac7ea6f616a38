"""The page about segments: every document in colours, and what its topics are."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from markupsafe import Markup

from coem.io import new_file
from coem.report import page, svg
from coem.report.choice import BUDGET, CARD, LEAST
from coem.report.story import Story
from coem.report.texts import clean, excerpt

COLOURS = 48  # of the style sheet; more topics share them
SEGMENT = 700  # about the bytes of a segment without its text
PARAGRAPH = 30  # and of a paragraph
N_WORDS = 6  # of a segment


@dataclass(frozen=True)
class Segment:
    """Consecutive paragraphs of one topic; `left_out` of them had no room on the page."""

    number: int
    topic: int
    first: int
    last: int
    n_words: int
    probability: float
    words: list
    paragraphs: list
    left_out: int


@dataclass(frozen=True)
class Cut:
    """A document and its segments."""

    name: str
    n_paragraphs: int
    segments: list


@dataclass(frozen=True, eq=False)
class SegmentStory:
    """What the page about segments says.

    `colours` has a number of a colour for each topic, `n_segments` their numbers of segments.
    `documents` are those that have room on the page, and `n_documents` is the number of all that
    are not empty. `total` is the number of all segments.
    """

    story: Story
    colours: list
    n_segments: list
    documents: list
    n_documents: int
    total: int


def tell_segments(story, cuts, texts, names, *, counts, words):
    """Return the story of documents that were cut.

    Parameters
    ----------
    story : Story
        What `tell` says about the topics; its rows are the paragraphs.
    cuts : Segments
        What `coem.segments.segments_of` returned.
    texts : sequence of str
        The paragraphs.
    names : sequence of str
        What the documents are called.
    counts : sparse matrix of shape (n_paragraphs, n_words)
        Words of the paragraphs.
    words : sequence of str of length n_words
        The words.

    Returns
    -------
    told : SegmentStory
    """
    order = np.argsort([-group.size for group in story.groups], kind="stable")
    colours = np.empty(len(order), dtype=int)
    colours[order] = np.arange(len(order)) % COLOURS
    own = _own_words(cuts, counts, words)
    n_shown = _fitting(cuts, len(order))
    rooms = _rooms(cuts, texts, n_shown, len(order))
    return SegmentStory(
        story=story,
        colours=colours.tolist(),
        n_segments=np.bincount(cuts.topic, minlength=len(order)).tolist(),
        documents=_documents(cuts, texts, names, own, rooms),
        n_documents=len(np.unique(cuts.document)),
        total=len(cuts.topic),
    )


def _own_words(cuts, counts, words):
    """Return for each segment the words in it that speak most for its topic."""
    sizes = cuts.last - cuts.first + 1
    owner = np.repeat(np.arange(len(sizes)), sizes)
    shape = (len(sizes), len(owner))
    inside = sp.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape)
    found = sp.csr_array(inside @ sp.csr_array(counts, dtype=np.float64))
    speaks = _speaking(found, cuts.topic)
    own = []
    for s, topic in enumerate(cuts.topic.tolist()):
        places = found.indices[found.indptr[s] : found.indptr[s + 1]]
        weight = found.data[found.indptr[s] : found.indptr[s + 1]] * speaks[topic][places]
        best = np.lexsort((places, -weight))[:N_WORDS]
        own.append([clean(words[places[i]]) for i in best if weight[i] > 0])
    return own


def _speaking(found, topics):
    """Return log p(word | topic) - log p(word | other topics) of the segments, smoothed."""
    k, n_words = int(topics.max()) + 1, found.shape[1]
    members = sp.csr_array(
        (np.ones(len(topics)), (topics, np.arange(len(topics)))), (k, len(topics))
    )
    of_topic = (members @ found).toarray()
    others = of_topic.sum(axis=0) - of_topic
    alpha = max(float(found.sum()) / max(n_words, 1) / 10, np.finfo(np.float64).tiny)

    def log_share(sums):
        return np.log(sums + alpha) - np.log(sums.sum(axis=1, keepdims=True) + alpha * n_words)

    return log_share(of_topic) - log_share(others)


# -- what has room on the page ---------------------------------------------------------------------


def _fitting(cuts, n_topics):
    """Return how many segments are shown: those of whole documents, in half of the budget."""
    most = max(BUDGET - CARD * n_topics, LEAST) // (2 * SEGMENT)
    if len(cuts.topic) <= most:
        return len(cuts.topic)
    ends = np.flatnonzero(np.diff(cuts.document)) + 1  # where another document begins
    fitting = ends[ends <= most]
    return int(fitting[-1]) if len(fitting) else int(most)


def _rooms(cuts, texts, n_shown, n_topics):
    """Return the number of bytes for the text of each segment that is shown."""
    sizes = (cuts.last - cuts.first + 1)[:n_shown]
    lengths = np.array([len(t.encode(errors="replace")) + PARAGRAPH for t in texts[: sizes.sum()]])
    wanted = np.add.reduceat(lengths, np.cumsum(sizes) - sizes) if len(sizes) else sizes
    room = max(BUDGET - CARD * n_topics, LEAST) - SEGMENT * n_shown
    if wanted.sum() <= room:
        return wanted.tolist()
    # The longest ones are cut to the same length: the largest that the budget allows.
    ranked = np.sort(wanted)
    before = np.concatenate([[0], np.cumsum(ranked)[:-1]])
    level = (room - before) / np.arange(len(ranked), 0, -1)
    return np.minimum(wanted, int(max(level.max(), 0))).tolist()


def _documents(cuts, texts, names, own, rooms):
    """Return the documents that are shown."""
    shown = {}
    start = 0
    for s, room in enumerate(rooms):
        first, last = int(cuts.first[s]), int(cuts.last[s])
        inside = texts[start : start + last - first + 1]
        start += len(inside)
        kept = _kept(inside, room)
        segment = Segment(
            number=int(cuts.segment[s]) + 1,
            topic=int(cuts.topic[s]),
            first=first + 1,
            last=last + 1,
            n_words=sum(len(text.split()) for text in inside),
            probability=float(cuts.probability[s]),
            words=own[s],
            paragraphs=kept,
            left_out=len(inside) - len(kept),
        )
        shown.setdefault(int(cuts.document[s]), []).append(segment)
    return [Cut(excerpt(names[d], 200), found[-1].last, found) for d, found in shown.items()]


def _kept(texts, room):
    """Return the paragraphs that have room, the last of them cut short if need be."""
    kept = []
    for text in texts:
        size = len(text.encode(errors="replace")) + PARAGRAPH
        if size > room:
            # At most four bytes make a character; an excerpt of a few would say nothing.
            letters = (room - PARAGRAPH) * len(text) // max(size - PARAGRAPH, 1)
            return [*kept, excerpt(text, letters)] if letters >= 20 or not kept else kept
        kept.append(clean(text))
        room -= size
    return kept


# -- the page --------------------------------------------------------------------------------------


def render_segments(told):
    """Return the page about segments as HTML.

    Parameters
    ----------
    told : SegmentStory
        What `tell_segments` returned.

    Returns
    -------
    html : str
        One page with its style. It has no script, and asks for nothing from anywhere.
    """
    style = page.asset("page.css") + page.asset("segments.css")
    ranked = sorted(enumerate(told.story.groups), key=lambda pair: -pair[1].size)
    return (
        page.environment()
        .get_template("segments.html")
        .render(
            told=told,
            story=told.story,
            ranked=[(i, group) for i, group in ranked if group.size],
            style=Markup(style),
            allowed=page.digest(style),
            made=page.made(told.story),
            colours=COLOURS,
            strip=lambda cut: strip(cut, told),
            trace=page.pictures(told.story).get("trace"),
        )
    )


def write_segments(told, path):
    """Write the page about segments to a file, whole or not at all; return its path."""
    html = render_segments(told).encode(errors="replace")
    with new_file(path) as file:
        file.write(html)
    return Path(path)


def strip(cut, told):
    """Return a picture of a document: its segments from left to right, in their colours."""
    parts = [
        svg.block(
            s.first - 1,
            s.last - s.first + 1,
            f"c{told.colours[s.topic]}",
            f"{s.first} to {s.last}: {told.story.groups[s.topic].name}",
        )
        for s in cut.segments
    ]
    label = f"{len(cut.segments)} segments of {cut.n_paragraphs} paragraphs, listed below"
    return svg.stripe(parts, cut.n_paragraphs, label)
