"""Reuters-21578: newswire stories of 1987 with titles, bodies and any number of topics."""

import html
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from coem.datasets._files import read_files
from coem.datasets._text import choose, choose_views, count_words, to_dates
from coem.typing import Array
from coem.views import Views

_DESCR = """Reuters-21578, Distribution 1.0

{n_stories} newswire stories of 1987 ({n_train} train, {n_test} test, {n_unused} unused in the
ModApte split) with the views {views}: word counts by scikit-learn's CountVectorizer with
stop_words={stop_words!r} and min_df={min_df!r}. The target has a column for each of the
{n_topics} topics that have a story in both parts; a story may have none or several. Stories of the
kind "brief" are a title without a body, "unprocessed" ones a body without a title; rows are then
empty in the other view. Most bodies end in the agency's name.

The copyright of the text is with Reuters Ltd.; free for research purposes only. Please acknowledge
as "Reuters-21578, Distribution 1.0", D. D. Lewis 1997,
http://www.daviddlewis.com/resources/testcollections/reuters21578/
"""

_STORY = re.compile(r"<REUTERS([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_DATE = re.compile(r"(\d{1,2})-([A-Z]{3})-(\d{4})\s+(\d\d):(\d\d):(\d\d)")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_TEXT = re.compile(r"<TEXT([^>]*)>(.*?)</TEXT>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")


class Story(NamedTuple):
    """A story and what is known about it."""

    id: str
    split: str
    topics: tuple[str, ...]
    date: int | None
    title: str
    body: str


def fetch_reuters(
    *,
    views: Sequence[str] = ("title", "body"),
    subset: str = "modapte",
    stop_words: Any = "english",
    min_df: float = 2,
) -> Bunch:
    """Load the Reuters-21578 stories (90 topics, multi-label) with counts of title and body.

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``). It is free for research only.

    Parameters
    ----------
    views : sequence of {"title", "body"}, default=("title", "body")
        The views to build, in this order.
    subset : {"modapte", "all"}, default="modapte"
        The 9603 train and 3299 test stories of the ModApte split, or all 21,578. Words are counted
        over the stories that are returned.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words in fewer stories (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` of CSR counts in float32; ``target``, a CSR array of int64 with a 1
        where the row's story has the column's topic; ``target_names``, the 90 topics with at least
        one train and one test story; ``topics``, a tuple of all topics of each story; ``split``,
        an array of "train", "test" and "unused"; ``ids``, the NEWID of each story as a string;
        ``text``, the bodies, and ``titles``, as lists of str; ``dates``, datetime64[s] as written,
        NaT where unreadable; ``feature_names``, a dict of view to array of words; ``DESCR``, a
        description.

    Examples
    --------
    >>> from coem.datasets import fetch_reuters
    >>> data = fetch_reuters()  # doctest: +SKIP
    >>> data.target.shape  # doctest: +SKIP
    (12902, 90)
    """
    choose("subset", subset, ("modapte", "all"))
    names = choose_views(views, ("title", "body"))
    (tree,) = read_files("reuters21578").values()
    stories = [story for file in sorted(tree) for story in _parse(tree[file].decode("latin-1"))]
    topics = _shared_topics(stories)
    if subset == "modapte":
        stories = [story for story in stories if story.split != "unused"]
    texts = {"title": [story.title for story in stories], "body": [story.body for story in stories]}
    counts, words = count_words({name: texts[name] for name in names}, stop_words, min_df)
    split = np.array([story.split for story in stories])
    return Bunch(
        views=Views(counts),
        target=_indicator(stories, topics),
        target_names=np.array(topics),
        topics=[story.topics for story in stories],
        split=split,
        ids=np.array([story.id for story in stories]),
        text=texts["body"],
        titles=texts["title"],
        dates=to_dates(story.date for story in stories),
        feature_names=words,
        DESCR=_describe(split, names, len(topics), stop_words, min_df),
    )


def _describe(
    split: Array, names: Sequence[str], n_topics: int, stop_words: Any, min_df: float
) -> str:
    """Return the description of what was loaded."""
    return _DESCR.format(
        n_stories=len(split),
        **{f"n_{part}": np.sum(split == part) for part in ("train", "test", "unused")},
        views=" and ".join(names),
        n_topics=n_topics,
        stop_words=stop_words,
        min_df=min_df,
    )


def _parse(sgml: str) -> Iterator[Story]:
    """Yield the stories of one file."""
    for match in _STORY.finditer(sgml):
        about, story = dict(_ATTRIBUTE.findall(match[1])), match[2]
        title, body = _parse_text(story)
        # A story may name a topic twice.
        topics = tuple(dict.fromkeys(re.findall("<D>(.*?)</D>", _element(story, "TOPICS"))))
        yield Story(about["NEWID"], _split(about), topics, _parse_date(story), title, body)


def _split(about: dict[str, str]) -> str:
    """Return the part of the ModApte split that a story belongs to."""
    part = about["LEWISSPLIT"].lower()
    # TOPICS="YES" says that an indexer saw the story, not that it has topics.
    return part if about["TOPICS"] == "YES" and part in ("train", "test") else "unused"


def _parse_text(story: str) -> tuple[str, str]:
    """Return the title and the body of a story."""
    match = _TEXT.search(story)
    kind, text = (match[1], match[2]) if match else ("", "")
    body = _element(text, "BODY")
    # The body of a brief is a filler ("Blah blah blah."); an unprocessed story has no elements.
    if not body and "BRIEF" not in kind:
        body = re.sub(r"<(TITLE|AUTHOR|DATELINE)>.*?</\1>", "", text, flags=re.DOTALL)
    return " ".join(_clean(_element(text, "TITLE")).split()), _clean(body).strip()


def _element(text: str, name: str) -> str:
    """Return the content of the first element of that name, or nothing."""
    match = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return match[1] if match else ""


def _clean(text: str) -> str:
    """Decode the entities and drop the control characters of the wire."""
    return _CONTROL.sub(" ", html.unescape(text))


def _parse_date(story: str) -> int | None:
    """Return the seconds since 1970 of the DATE element; some have noise around the date."""
    match = _DATE.search(_element(story, "DATE"))
    if match is None or match[2] not in _MONTHS:
        return None
    day, _, year, *clock = match.groups()
    try:
        when = datetime(
            int(year), _MONTHS.index(match[2]) + 1, int(day), *map(int, clock), tzinfo=UTC
        )
    except ValueError:  # such as the 31st of April
        return None
    return int(when.timestamp())


def _shared_topics(stories: Sequence[Story]) -> list[str]:
    """Return the topics that have a story in both parts of the split, in alphabetical order."""
    of = {"train": set(), "test": set(), "unused": set()}
    for story in stories:
        of[story.split].update(story.topics)
    return sorted(of["train"] & of["test"])


def _indicator(stories: Sequence[Story], topics: Sequence[str]) -> sparse.csr_array:
    """Return the matrix with a 1 where the row's story has the column's topic."""
    column = {topic: j for j, topic in enumerate(topics)}
    columns = [sorted({column[t] for t in story.topics if t in column}) for story in stories]
    indptr = np.cumsum([0, *map(len, columns)], dtype=np.int32)
    indices = np.array([j for row in columns for j in row], dtype=np.int32)
    ones = np.ones(len(indices), dtype=np.int64)
    return sparse.csr_array((ones, indices, indptr), shape=(len(stories), len(topics)))
