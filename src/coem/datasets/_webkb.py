"""WebKB: pages of computer-science departments, and what links to them say."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from coem.datasets._files import read_files
from coem.datasets._html import WORD, page_text
from coem.datasets._text import choose, choose_views, count_words
from coem.views import Views

_DESCR = """WebKB, the "4 Universities" data set

{n_pages} web pages of computer-science departments, collected in January 1997, in {n_classes}
classes, with the views

{views}

Words are runs of two or more letters, counted by scikit-learn's CountVectorizer with
stop_words={stop_words!r} and min_df={min_df!r}. Pages of `misc` are from other universities than
the four. A few pages were collected twice, under the same URL or another.

Published for research by the CMU text learning group at
http://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-20/www/data/ without an explicit licence.
Please cite M. Craven, D. DiPasquo, D. Freitag, A. McCallum, T. Mitchell, K. Nigam, S. Slattery,
"Learning to extract symbolic knowledge from the World Wide Web", AAAI 1998.
"""

_VIEWS = {
    "page": "page      word counts of the text of the page, its title included",
    "anchors": "anchors   word counts of the text of all links to the page from other pages;\n"
    "          pages without such links have a row of zeros",
}


class Page(NamedTuple):
    """A page: its class, university and address, its path in the archive, and its file."""

    label: str
    university: str
    url: str
    path: str
    content: str


def fetch_webkb(
    *,
    views: Sequence[str] = ("page", "anchors"),
    classes: str = "six",
    stop_words: Any = "english",
    min_df: float = 2,
) -> Bunch:
    """Load the WebKB pages (six or seven classes) with counts of page and inbound anchor text.

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``). The anchor texts were extracted from it; they have
    no public home and are read from ``COEM_DATA``.

    Parameters
    ----------
    views : sequence of {"page", "anchors"}, default=("page", "anchors")
        The views to build, in this order.
    classes : {"six", "seven"}, default="six"
        Without or with the class "other": 4518 or 8282 pages.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words on fewer pages (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` of CSR counts in float32; ``target``, the class of each page as an int
        array; ``target_names``, the class names; ``ids``, the URLs; ``universities``, an array of
        "cornell", "texas", "washington", "wisconsin" and "misc"; ``text``, the text of each page
        without tags, and with the view "anchors" ``anchors``, the texts of the links to it one a
        line, as lists of str; ``feature_names``, a dict of view to array of words; ``DESCR``, a
        description.

    Notes
    -----
    The collection of Bickel & Scheffer (2004; 2005), whose own extraction kept 2316 pages with
    inbound links in six classes; here 2470 have some anchor text. Seven URLs occur twice.

    Examples
    --------
    >>> from coem.datasets import fetch_webkb
    >>> fetch_webkb(views=("page",)).target_names  # doctest: +SKIP
    array(['course', 'department', 'faculty', 'project', 'staff', 'student'], ...)
    """
    choose("classes", classes, ("six", "seven"))
    names = choose_views(views, _VIEWS)
    parts = ("webkb-data.tar", "anchors.tsv") if "anchors" in names else ("webkb-data.tar",)
    tree, *links = read_files("webkb", *parts).values()
    pages = [page for page in _parse(tree) if classes == "seven" or page.label != "other"]
    texts = {"page": [page_text(page.content) for page in pages]}
    if links:
        texts["anchors"] = _parse_anchors(links[0], pages)
    chosen = {name: texts[name] for name in names}
    counts, words = count_words(chosen, stop_words, min_df, token_pattern=WORD)
    target_names, target = np.unique([page.label for page in pages], return_inverse=True)
    data = Bunch(
        views=Views(counts),
        target=target,
        target_names=target_names,
        ids=np.array([page.url for page in pages]),
        universities=np.array([page.university for page in pages]),
        text=texts["page"],
        feature_names=words,
        DESCR=_DESCR.format(
            n_pages=len(pages),
            n_classes=len(target_names),
            views="\n".join(_VIEWS[name] for name in names),
            stop_words=stop_words,
            min_df=min_df,
        ),
    )
    if links:
        data.anchors = texts["anchors"]
    return data


def _parse(tree: Mapping[str, bytes]) -> list[Page]:
    """Return the pages in the order of class, university and name."""
    pages = []
    for path in sorted(tree):
        label, university, name = path.split("/")
        # Two names of the original end in a carriage return.
        url = name.strip().replace("^", "/")
        pages.append(Page(label, university, url, path, tree[path].decode("latin-1")))
    return pages


def _parse_anchors(content: bytes, pages: Sequence[Page]) -> list[str]:
    """Return the texts of the links to each page, one a line."""
    anchors = defaultdict(list)
    for line in content.decode("utf-8").splitlines():
        target, _, text = line.split("\t")
        anchors[target].append(text)
    # The file has one link a line, so it writes the carriage return in a name as two characters.
    return ["\n".join(anchors[page.path.replace("\r", "\\r")]) for page in pages]
