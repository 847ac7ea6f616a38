"""The document sets of the CLUTO toolkit: one view of word counts."""

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from coem.datasets._files import REGISTRY, read_files
from coem.datasets._text import choose
from coem.views import Views

_ABOUT = {
    "re0": "Reuters-21578 newswire stories",
    "fbis": "Foreign Broadcast Information Service reports (TREC)",
    "la1": "Los Angeles Times articles (TREC)",
    "hitech": "San Jose Mercury technology articles (TREC)",
    "tr11": "documents judged relevant to TREC queries",
    "wap": "web pages of the WebACE project",
}

_DESCR = """{name} of the CLUTO document sets: {about}

{n_documents} documents in {n_classes} classes, with counts of {n_words} stemmed words.{named}

Made by way of later copies from the data of G. Karypis' CLUTO toolkit,
{home}
(Y. Zhao, G. Karypis, "Criterion functions for document clustering", 2001). The shapes are CLUTO's,
except for the vocabulary of hitech. Published without an explicit licence.
"""


def fetch_cluto(name: str) -> Bunch:
    """Load one of the document sets that come with the CLUTO toolkit (word counts, one view).

    The files ``<name>.mat``, ``<name>.mat.rclass`` and ``<name>.mat.clabel`` are looked for in the
    folder "cluto" of the directory ``COEM_DATA``, then in that of the user's cache. In this form
    they have no public home.

    Parameters
    ----------
    name : {"re0", "fbis", "la1", "hitech", "tr11", "wap"}

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` with the CSR matrix ``words`` of counts in float32; ``target``, the
        class of each document as an int array; ``target_names``, the class names; ``ids``,
        "name/number" counted from 1; ``feature_names``, a dict of view to array of words, empty
        for la1, whose words are not known (those of fbis are "word-0", ...); ``DESCR``, a
        description.

    Notes
    -----
    The sets that Bickel & Scheffer (2004; 2005) split at random into two views: see `Views.split`.

    Examples
    --------
    >>> from coem.datasets import fetch_cluto
    >>> fetch_cluto("re0").views["words"].shape  # doctest: +SKIP
    (1504, 2886)
    """
    choose("name", name, _ABOUT)
    parts = (f"{name}.mat", f"{name}.mat.rclass", f"{name}.mat.clabel")
    files = read_files("cluto", *(part for part in parts if part in REGISTRY["cluto"].made))
    counts = _parse_mat(files[parts[0]])
    words = {"words": np.array(_lines(files[parts[2]]))} if parts[2] in files else {}
    target_names, target = np.unique(_lines(files[parts[1]]), return_inverse=True)
    return Bunch(
        views=Views(words=counts),
        target=target,
        target_names=target_names,
        ids=np.array([f"{name}/{number}" for number in range(1, len(target) + 1)]),
        feature_names=words,
        DESCR=_DESCR.format(
            name=name,
            about=_ABOUT[name],
            n_documents=counts.shape[0],
            n_classes=len(target_names),
            n_words=counts.shape[1],
            named="" if words else " The words are not known.",
            home=REGISTRY["cluto"].url,
        ),
    )


def _lines(content: bytes) -> list[str]:
    """Return the lines of a file of labels."""
    return content.decode("utf-8").splitlines()


def _parse_mat(content: bytes) -> sparse.csr_array:
    """Return the matrix: first its shape, then a line a document of word and count pairs."""
    first, *lines = content.splitlines()
    n_documents, n_words, _ = map(int, first.split())
    rows = [np.array(line.split(), dtype=np.int32).reshape(-1, 2) for line in lines]
    pairs = np.concatenate(rows)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    counts = pairs[:, 1].astype(np.float32)
    # Words are numbered from 1.
    matrix = sparse.csr_array((counts, pairs[:, 0] - 1, indptr), shape=(n_documents, n_words))
    matrix.sort_indices()
    return matrix
