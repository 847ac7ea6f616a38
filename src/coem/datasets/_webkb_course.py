"""The course pages of WebKB in two views, on which co-training was first shown."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.datasets._files import read_files
from coem.datasets._html import WORD, page_text
from coem.datasets._text import choose, choose_views, count_words
from coem.views import Views

_DESCR = """Course pages of WebKB in two views

1,051 web pages of the computer-science departments of four universities, 230 of them about courses,
with the views

{views}

Words are runs of two or more letters, counted by scikit-learn's CountVectorizer with
stop_words={stop_words!r} and min_df={min_df!r}.

Published for research by the CMU text learning group at
https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www/co-training/data/ without an explicit
licence. Please cite A. Blum, T. Mitchell, "Combining labeled and unlabeled data with co-training",
COLT 1998.
"""

_VIEWS = {
    "page": "page      word counts of the text of the page, its title included",
    "anchors": "anchors   word counts of the text of links to the page;\n"
    "          with the default words 221 rows are zeros",
}
_FOLDERS = {"page": "fulltext", "anchors": "inlinks"}  # of the archive


def fetch_webkb_course(
    *,
    views: Sequence[str] = ("page", "anchors"),
    classes: str = "two",
    stop_words: Any = "english",
    min_df: float = 2,
) -> Bunch:
    """Load the pages on which co-training was first shown: course pages and others.

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``). The six classes were found by the addresses of the
    pages in WebKB; they have no public home and are read from ``COEM_DATA``.

    Parameters
    ----------
    views : sequence of {"page", "anchors"}, default=("page", "anchors")
        The views to build, in this order.
    classes : {"two", "six"}, default="two"
        "course" and "non-course", or the classes of `fetch_webkb`.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words on fewer pages (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` of CSR counts in float32; ``target``, the class of each page as an int
        array; ``target_names``, the class names; ``ids``, the URLs; ``text`` and ``anchors``, the
        text of each page without tags and the texts of the links to it one a line, as lists of
        str; ``feature_names``, a dict of view to array of words; ``DESCR``, a description. With six
        classes also ``universities``, an array of names.

    Examples
    --------
    >>> from coem.datasets import fetch_webkb_course
    >>> fetch_webkb_course().target_names  # doctest: +SKIP
    array(['course', 'non-course'], ...)
    """
    choose("classes", classes, ("two", "six"))
    names = choose_views(views, _VIEWS)
    extra = ("labels6.tsv",) if classes == "six" else ()
    tree, *labels = read_files("webkb_course", "course-cotrain-data.tar", *extra).values()
    pages = sorted(path.partition("/")[2] for path in tree if path.startswith("fulltext/"))
    texts = {
        "page": [page_text(_read(tree, "page", page)) for page in pages],
        "anchors": [_without_tags(_read(tree, "anchors", page)) for page in pages],
    }
    chosen = {name: texts[name] for name in names}
    counts, words = count_words(chosen, stop_words, min_df, token_pattern=WORD)
    known = _six(labels[0]) if labels else {page: (page.partition("/")[0], "") for page in pages}
    target_names, target = np.unique([known[page][0] for page in pages], return_inverse=True)
    data = Bunch(
        views=Views(counts),
        target=target,
        target_names=target_names,
        ids=np.array([page.partition("/")[2].replace("^", "/") for page in pages]),
        text=texts["page"],
        anchors=texts["anchors"],
        feature_names=words,
        DESCR=_DESCR.format(
            views="\n".join(_VIEWS[name] for name in names), stop_words=stop_words, min_df=min_df
        ),
    )
    if labels:
        data.universities = np.array([known[page][1] for page in pages])
    return data


def _read(tree: Mapping[str, bytes], view: str, page: str) -> str:
    """Return the file of a page in one of the views."""
    return tree[f"{_FOLDERS[view]}/{page}"].decode("latin-1")


def _without_tags(text: str) -> str:
    """Return the texts of links, one a line; a few hold the tag of an image."""
    return re.sub(r"<[^>]*>?", " ", text).strip()


def _six(content: bytes) -> dict[str, tuple[str, str]]:
    """Return class and university of every page."""
    lines = (line.split("\t") for line in content.decode("utf-8").splitlines())
    return {page: (label, university) for page, label, university in lines}
