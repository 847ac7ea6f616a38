"""Documents cut into paragraphs, or into what stands for them."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coem.text import _tables

WAYS = ("auto", "paragraphs", "lines", "sentences", "words")
WORDS = 40  # that a run of sentences has at least
LONG = 10  # so many runs are too long for one paragraph
WRAPPED = 25  # mean words of a line below which lines are taken for those of wrapped text

BLANK = re.compile(r"\n[^\S\n]*\n\s*")
# A full stop ends a sentence if a blank follows; the marks of Chinese and Japanese need none.
SENTENCE = re.compile("(?<=[.!?\u2026])[\"'\u201d\u2019)\\]]*\\s+|(?<=[\u3002\uff01\uff1f])")


class Paragraphs(NamedTuple):
    """The paragraphs of some documents."""

    texts: list[str]
    """Those of the first document, then those of the second, and so on."""
    lengths: np.ndarray
    """(n_documents,), number of paragraphs of each document; 0 if it is empty."""
    ways: list[str]
    """How each document was cut: "paragraphs", "lines", "sentences", "words", or "" if empty."""


def split_paragraphs(
    documents: Sequence[str | None], by: str = "auto", n_words: int = WORDS
) -> Paragraphs:
    r"""Cut documents into paragraphs.

    Parameters
    ----------
    documents : sequence of str or None
        The texts. None is an empty one.
    by : {"auto", "paragraphs", "lines", "sentences", "words"}, default="auto"
        What a paragraph is:

        - "paragraphs": what stands between blank lines.
        - "lines": a line.
        - "sentences": so many whole sentences that they have `n_words` words or more.
        - "words": `n_words` words.
        - "auto": what stands between blank lines. If there are none in a document, and in a
          paragraph of more than ten times `n_words` words, lines are taken (if they have 25 words
          or more on average, so that they are not those of wrapped text), else sentences, and
          words where no sentence ends.
    n_words : int, default=40
        Words of a run of sentences or words.

    Returns
    -------
    paragraphs : Paragraphs
        Their `texts`, the `lengths` of the documents in paragraphs, and the `ways` in which the
        documents were cut. Blanks at both ends are removed; nothing else of a text is lost.

    Examples
    --------
    >>> from coem.text import split_paragraphs
    >>> found = split_paragraphs(["One.\n\nTwo, and\nmore.", "No break. At all.", None])
    >>> found.texts
    ['One.', 'Two, and\nmore.', 'No break. At all.']
    >>> found.lengths.tolist(), found.ways
    ([2, 1, 0], ['paragraphs', 'sentences', ''])
    """
    if by not in WAYS:
        raise ValueError(f"by must be one of {', '.join(WAYS)}, got {by!r}")
    if isinstance(n_words, bool) or not isinstance(n_words, int | np.integer) or n_words < 1:
        raise ValueError(f"n_words must be a whole number of at least 1, got {n_words!r}")
    texts: list[str] = []
    lengths, ways = [], []
    for document in documents:
        parts, way = _cut((document or "").replace("\r\n", "\n").strip(), by, int(n_words))
        texts += parts
        lengths.append(len(parts))
        ways.append(way if parts else "")
    return Paragraphs(texts, np.array(lengths, dtype=np.int64), ways)


def read_texts(table, columns):
    """Return the texts of a table, of several columns one below the other, with blank lines."""
    found = [_tables.read_text(table, [name], "text").to_pylist() for name in columns]
    return ["\n\n".join(part for part in row if part) for row in zip(*found, strict=True)]


def _cut(text: str, by: str, n_words: int) -> tuple[list[str], str]:
    """Return the paragraphs of one document, and the way in which it was cut."""
    if by == "lines":
        return _filled(text.split("\n")), by
    if by == "sentences":
        return _runs(text, n_words), by
    if by == "words":
        return _by_words(text, n_words), by
    blocks = _filled(BLANK.split(text))
    if by == "paragraphs":
        return blocks, by
    if len(blocks) < 2:
        return _finer(text, n_words)
    most = LONG * n_words
    cut = [_finer(b, n_words)[0] if len(b.split()) > most else [b] for b in blocks]
    return [part for parts in cut for part in parts], "paragraphs"


def _finer(text: str, n_words: int) -> tuple[list[str], str]:
    """Return the parts of a text without blank lines, and what they are."""
    lines = _filled(text.split("\n"))
    if len(lines) > 1 and len(text.split()) >= WRAPPED * len(lines):
        return lines, "lines"
    if SENTENCE.search(text) is None:
        return _by_words(text, n_words), "words"
    # A run that is much too long holds a list, or a table: no sentence ends there.
    most = 3 * max(n_words, WORDS)
    runs = _runs(text, n_words)
    cut = [_by_words(run, n_words) if len(run.split()) > most else [run] for run in runs]
    return [part for parts in cut for part in parts], "sentences"


def _runs(text: str, n_words: int) -> list[str]:
    """Return runs of whole sentences."""
    ends = [match.end() for match in SENTENCE.finditer(text)]
    runs: list[str] = []
    start = size = 0
    for begin, end in zip([0, *ends], [*ends, len(text)], strict=True):
        size += len(text[begin:end].split())
        if size >= n_words:
            runs.append(text[start:end])
            start, size = end, 0
    if text[start:].strip():
        # A short rest at the end says too little to be a paragraph of its own.
        joins = bool(runs) and 2 * size < n_words
        runs = [*runs[:-1], runs[-1] + text[start:]] if joins else [*runs, text[start:]]
    return _filled(runs)


def _by_words(text: str, n_words: int) -> list[str]:
    """Return runs of words; a last one of fewer than half as many joins the one before."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    places = list(range(0, len(starts), n_words))
    if len(places) > 1 and 2 * (len(starts) - places[-1]) < n_words:
        places.pop()
    bounds = [*(starts[place] for place in places), len(text)]
    return _filled([text[a:b] for a, b in pairwise(bounds)])


def _filled(parts: list[str]) -> list[str]:
    """Return the parts without blanks at their ends, and without empty ones."""
    return [stripped for part in parts if (stripped := part.strip())]
