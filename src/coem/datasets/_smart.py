"""Medline and Cranfield: abstracts in the format of the SMART system, one view of word counts."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from coem.datasets._files import REGISTRY, read_files
from coem.datasets._text import count_words
from coem.typing import Array
from coem.views import Views

_DESCR = """{title}

{n_documents} abstracts with counts of {n_words} words, by scikit-learn's CountVectorizer with
stop_words={stop_words!r} and min_df={min_df!r}; {n_queries} queries with {n_judgements} judgements
of relevance. There are no classes.{quirks}

From the test collections of the University of Glasgow, {home}
Published without an explicit licence, for research.
"""

_DOCUMENT = re.compile(r"^\.I[ \t]*(\d+)[ \t]*$", re.MULTILINE)
_TEXT = re.compile(r"^\.W[ \t]*$", re.MULTILINE)
_MARK = re.compile(r"^\.[A-Z][ \t]*$", re.MULTILINE)


class _Collection(NamedTuple):
    """Where the parts of a collection are, and what is to be said of it."""

    documents: str
    queries: str
    judgements: str
    columns: tuple[int, int, int]  # of query, document and grade among the judgements
    title: str
    quirks: str = ""


_COLLECTIONS = {
    "medline": _Collection(
        "MED.ALL", "MED.QRY", "MED.REL", (0, 2, 3), "Medline (Medlars), medical abstracts"
    ),
    "cranfield": _Collection(
        "cran.all.1400",
        "cran.qry",
        "cranqrel",
        (0, 1, 2),
        "Cranfield 1400, aerodynamics abstracts",
        " Documents 471 and 995 have no text and are left out.",
    ),
}


def fetch_medline(*, stop_words: Any = "english", min_df: float = 2) -> Bunch:
    """Load the 1033 medical abstracts of the Medlars collection (word counts, one view).

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``).

    Parameters
    ----------
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words in fewer abstracts (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` with the CSR matrix ``words`` of counts in float32; ``target``, None,
        as there are no classes, and ``target_names``, empty; ``ids``, the numbers of the abstracts
        as strings; ``text``, the abstracts, and ``queries``, the questions, as lists of str;
        ``judgements``, an int array with the columns query (counted from 1), number of the
        abstract, and grade as the archive has it; ``feature_names``, a dict of view to array of
        words; ``DESCR``, a description.

    Notes
    -----
    Lin (2006, Sec. 4.3) compares couplings of runs on it.

    Examples
    --------
    >>> from coem.datasets import fetch_medline
    >>> fetch_medline().views["words"].shape[0]  # doctest: +SKIP
    1033
    """
    return _fetch("medline", stop_words, min_df)


def fetch_cranfield(*, stop_words: Any = "english", min_df: float = 2) -> Bunch:
    """Load the 1398 aerodynamics abstracts of Cranfield that have a text (word counts, one view).

    The archive is looked for in the directory ``COEM_DATA``, then in the user's cache, and is then
    downloaded (``pip install coem[datasets]``).

    Parameters
    ----------
    stop_words : {"english"}, list or None, default="english"
        Words to leave out, as scikit-learn's `CountVectorizer` takes them.
    min_df : int or float, default=2
        Leave out words in fewer abstracts (a fraction if a float), as `CountVectorizer` does.

    Returns
    -------
    data : sklearn.utils.Bunch
        As `fetch_medline` has it. The text of an abstract begins with its title. Grades go from 1,
        a complete answer, to 4, of little interest; one judgement of every query has the grade -1,
        which the archive does not explain. Abstract 995 is judged though it has no text.

    Examples
    --------
    >>> from coem.datasets import fetch_cranfield
    >>> fetch_cranfield().views["words"].shape[0]  # doctest: +SKIP
    1398
    """
    return _fetch("cranfield", stop_words, min_df)


def _fetch(name: str, stop_words: Any, min_df: float) -> Bunch:
    about = _COLLECTIONS[name]
    (tree,) = read_files(name).values()
    found = [(number, text) for number, text in _parse(tree[about.documents]) if text]
    ids, texts = map(list, zip(*found, strict=True))
    queries = [text for _, text in _parse(tree[about.queries])]
    judgements = _parse_judgements(tree[about.judgements], about.columns)
    counts, words = count_words({"words": texts}, stop_words, min_df)
    return Bunch(
        views=Views(counts),
        target=None,
        target_names=np.array([], dtype=str),
        ids=np.array(ids),
        text=texts,
        queries=queries,
        judgements=judgements,
        feature_names=words,
        DESCR=_DESCR.format(
            title=about.title,
            n_documents=len(ids),
            n_words=len(words["words"]),
            stop_words=stop_words,
            min_df=min_df,
            n_queries=len(queries),
            n_judgements=len(judgements),
            quirks=about.quirks,
            home=REGISTRY[name].url,
        ),
    )


def _parse(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the number and the text of every document or query."""
    parts = _DOCUMENT.split(content.decode("latin-1").replace("\r\n", "\n"))
    for number, fields in zip(parts[1::2], parts[2::2], strict=True):
        _, *texts = _TEXT.split(fields, maxsplit=1)
        # Marks of other fields within three texts of Cranfield are slips: text goes on after them.
        yield number, _MARK.sub("", "".join(texts)).strip()


def _parse_judgements(content: bytes, columns: tuple[int, int, int]) -> Array:
    """Return query, document and grade of every judgement."""
    rows = [line.split() for line in content.decode("latin-1").splitlines() if line.strip()]
    return np.array([[int(row[c]) for c in columns] for row in rows], dtype=np.int64)
