"""20 Newsgroups: Usenet posts with subject, body and, for the original, sentence vectors."""

import io
import re
from collections.abc import Sequence
from email.utils import mktime_tz, parsedate_tz
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from coem.datasets._files import read_files
from coem.datasets._text import choose, choose_views, count_words, to_dates
from coem.typing import Array
from coem.views import Views

_FOLDERS = {"19997": "20newsgroups_19997", "bydate": "20newsgroups"}

_DESCR = """20 Newsgroups, {title}

{n_posts} Usenet posts of 1993 in {n_groups} groups, with the views

{views}

{about}
No other header is part of a view. Counts are those of scikit-learn's CountVectorizer with
stop_words={stop_words!r} and min_df={min_df!r}. A post that is empty in a view has a row of zeros.

Collected by Ken Lang ("NewsWeeder: learning to filter netnews", ICML 1995) and published for
research at http://qwone.com/~jason/20Newsgroups/ without an explicit licence.
"""

_TITLES = {
    "19997": "the original version of 19,997 posts",
    "bydate": 'the "bydate" version of 18,846 posts',
}
_ABOUT = {
    "19997": "Cross-posted messages occur once in each of their groups.",
    "bydate": "Cross-posts were removed upstream, and so were the Date headers: all dates are NaT.",
}
_VIEWS = {
    "subject": "subject   word counts of the Subject header",
    "body": "body      word counts of all after the first blank line",
    "meaning": "meaning   384 numbers of unit length, the body as all-MiniLM-L6-v2 encodes it",
}


class Post(NamedTuple):
    """A post: where it is from, and its parts."""

    group: str
    number: int
    train: bool
    subject: str
    date: int | None
    body: str


def fetch_20newsgroups(
    *,
    version: str = "19997",
    views: Sequence[str] = ("subject", "body"),
    stop_words: Any = "english",
    min_df: float = 2,
) -> Bunch:
    """Load the 20 Newsgroups posts (20 classes) with word counts of subject and body.

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``).

    Parameters
    ----------
    version : {"19997", "bydate"}, default="19997"
        The original 19,997 posts with all headers, or the 18,846 that are left without
        cross-posts, split by date into train and test.
    views : sequence of {"subject", "body", "meaning"}, default=("subject", "body")
        The views to build, in this order. "meaning", of the original version only, are sentence
        vectors of the body; they have no public home and are read from ``COEM_DATA``.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words in fewer posts (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` of CSR counts in float32 and for ``meaning`` a dense float32 array of
        shape (19997, 384); ``target``, the group of each post as an int array; ``target_names``,
        the 20 groups; ``ids``, "group/number" by group and then number; ``text``, the bodies, and
        ``subjects``, as lists of str; ``dates``, the Date headers as datetime64[s] in UTC, NaT
        where there is none; ``feature_names``, a dict of view to array of words; ``DESCR``, a
        description; and for "bydate" ``train``, true where a post is in the training part.

    Examples
    --------
    >>> from coem.datasets import fetch_20newsgroups
    >>> data = fetch_20newsgroups(views=("body", "meaning"))  # doctest: +SKIP
    >>> data.views["meaning"].shape  # doctest: +SKIP
    (19997, 384)
    """
    choose("version", version, _FOLDERS)
    names = choose_views(views, _VIEWS)
    if "meaning" in names and version != "19997":
        raise ValueError(f"the view 'meaning' is there for version '19997' only; got {version!r}")
    posts = read_posts(version)
    ids = np.array([f"{post.group}/{post.number}" for post in posts])
    texts = {"subject": [p.subject for p in posts], "body": [p.body for p in posts]}
    words = {name: texts[name] for name in names if name in texts}
    counts, feature_names = count_words(words, stop_words, min_df)
    if "meaning" in names:
        counts["meaning"] = _read_vectors(ids)
    target_names, target = np.unique([post.group for post in posts], return_inverse=True)
    data = Bunch(
        views=Views({name: counts[name] for name in names}),
        target=target,
        target_names=target_names,
        ids=ids,
        text=texts["body"],
        subjects=texts["subject"],
        dates=to_dates(post.date for post in posts),
        feature_names=feature_names,
        DESCR=_describe(version, names, len(ids), len(target_names), stop_words, min_df),
    )
    if version == "bydate":
        data.train = np.array([post.train for post in posts])
    return data


def _describe(
    version: str, names: Sequence[str], n_posts: int, n_groups: int, stop_words: Any, min_df: float
) -> str:
    """Return the description of what was loaded."""
    return _DESCR.format(
        title=_TITLES[version],
        n_posts=n_posts,
        n_groups=n_groups,
        views="\n".join(_VIEWS[name] for name in names),
        about=_ABOUT[version],
        stop_words=stop_words,
        min_df=min_df,
    )


def read_posts(version: str) -> list[Post]:
    """Return the posts of a version by group and number."""
    (tree,) = read_files(_FOLDERS[version]).values()
    posts = [_parse_post(path, content.decode("latin-1")) for path, content in tree.items()]
    return sorted(posts, key=lambda post: (post.group, post.number))


def _parse_post(path: str, message: str) -> Post:
    """Return the parts of one post."""
    *above, group, number = path.split("/")
    # An empty line ends the headers; a line of blanks does not, or some bodies would start early.
    head, *rest = re.split(r"\r?\n\r?\n", message, maxsplit=1)
    train = any(part.endswith("-train") for part in above)
    subject, date = _header(head, "Subject"), _parse_date(_header(head, "Date"))
    return Post(group, int(number), train, subject, date, "".join(rest))


def _header(head: str, name: str) -> str:
    """Return the first header of that name on one line, or nothing."""
    match = re.search(rf"^{name}:(.*(?:\r?\n[ \t].*)*)", head, re.IGNORECASE | re.MULTILINE)
    return " ".join(match[1].split()) if match else ""


def _parse_date(line: str) -> int | None:
    """Return the seconds since 1970 of a Date header; an unknown zone is taken for UTC."""
    parts = parsedate_tz(line)
    if parts is None:
        return None
    try:
        return int(mktime_tz(parts))
    except (ValueError, OverflowError):  # a thirteenth month, a year beyond the calendar
        return None


def _read_vectors(ids: Array) -> Array:
    """Return the sentence vectors in float32, once it is sure that they are of these posts."""
    files = read_files("20newsgroups_minilm", "embeddings.npy", "ids.txt")
    vectors = np.load(io.BytesIO(files["embeddings.npy"]), allow_pickle=False)
    if files["ids.txt"].decode("ascii").split() != ids.tolist():
        raise OSError("the sentence vectors of 20newsgroups_minilm are not those of these posts")
    return vectors.astype(np.float32)
