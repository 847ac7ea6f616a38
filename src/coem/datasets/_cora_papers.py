"""Research papers of McCallum's Cora: titles, citations in both directions, and authors."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils import Bunch

from coem.checks import check_number
from coem.datasets._files import REGISTRY, read_files
from coem.typing import Array
from coem.views import Views

_DESCR = """Cora, research papers in computer science

{n_papers} papers in {n_classes} areas, each seen in four views:

words     counts of {n_words} words of the title
inbound   a column per paper of the collection, 1 where that paper cites this one
outbound  a column per paper of the collection, 1 where this paper cites that one
authors   a column per author, 1 where the paper is theirs ({n_authors} authors)

English stop words are left out, and words and authors of fewer than {min_df} papers. The
{n_links} links are distinct and directed; self-citations and citations of papers outside the
collection are left out.

A part of the data at https://people.cs.umass.edu/~mccallum/data.html ("Feel free to use the data
for any research"), by way of {home}
Counts were recovered from TF-IDF weights. Please cite A. McCallum, K. Nigam, J. Rennie, K. Seymore,
"Automating the construction of internet portals with machine learning", Information Retrieval 3,
2000.
"""


def fetch_cora_papers(*, min_df: int = 2) -> Bunch:
    """Load the large Cora (11,694 papers of computer science, 10 areas, 4 views).

    The files ``papers.tsv`` and ``cites.tsv`` are looked for in the folder "cora_papers" of the
    directory ``COEM_DATA``, then in that of the user's cache. In this form they have no public
    home.

    Parameters
    ----------
    min_df : int, default=2
        Leave out words and authors of fewer papers.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` with the CSR matrices ``words``, ``inbound``, ``outbound`` and
        ``authors`` of counts in float32; ``target``, the area of each paper as an int array;
        ``target_names``, the areas; ``topics``, the full paths, such as
        "Databases/Object_Oriented"; ``ids``, the paper ids as strings; ``feature_names``, the words
        and the author ids, as a dict of view to array; ``DESCR``, a description.

    Notes
    -----
    The nearest public relative of the Cora of Bickel & Scheffer (2005), which had 9,947 papers in
    eight classes, and the sentences around citations in place of authors. Of a text, there is only
    the title.

    Examples
    --------
    >>> from coem.datasets import fetch_cora_papers
    >>> fetch_cora_papers().views["words"].shape[0]  # doctest: +SKIP
    11694
    """
    check_number("min_df", min_df, Integral, 1)
    files = read_files("cora_papers", "papers.tsv", "cites.tsv")
    rows = [line.split("\t") for line in files["papers.tsv"].decode("utf-8").split("\n") if line]
    ids, topics, terms, people = (np.array(c) for c in zip(*(r for r in rows if r[1]), strict=True))
    words, vocabulary = _counts([_words(text) for text in terms.tolist()], min_df)
    authors, names = _counts([[(a, 1) for a in text.split()] for text in people.tolist()], min_df)
    outbound = _links(files["cites.tsv"], ids)
    areas, target = np.unique([t.partition("/")[0] for t in topics.tolist()], return_inverse=True)
    views = Views(words=words, inbound=outbound.T.tocsr(), outbound=outbound, authors=authors)
    return Bunch(
        views=views,
        target=target,
        target_names=areas,
        topics=topics,
        ids=ids,
        feature_names={"words": vocabulary, "authors": names},
        DESCR=_DESCR.format(
            n_papers=len(ids),
            n_classes=len(areas),
            n_words=len(vocabulary),
            n_authors=len(names),
            n_links=outbound.nnz,
            min_df=min_df,
            home=REGISTRY["cora_papers"].url,
        ),
    )


def _words(text: str) -> list[tuple[str, int]]:
    """Return the words of a title with their counts; words may have colons in them."""
    pairs = (item.rpartition(":") for item in text.split(" ") if item)
    found = ((word.lower(), int(count)) for word, _, count in pairs)
    return [(word, count) for word, count in found if word not in ENGLISH_STOP_WORDS]


def _counts(
    rows: Sequence[Sequence[tuple[str, int]]], least: int
) -> tuple[sparse.csr_array, Array]:
    """Return counts and the names of the columns that enough rows have, in the order of names."""
    owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat = [item for row in rows for item in row]
    names, column = np.unique([name for name, _ in flat], return_inverse=True)
    counts = np.array([count for _, count in flat], dtype=np.float32)
    X = sparse.coo_array((counts, (owner, column)), shape=(len(rows), len(names))).tocsr()
    kept = np.flatnonzero(np.bincount(X.indices, minlength=len(names)) >= least)
    return X[:, kept], names[kept]


def _links(content: bytes, ids: Array) -> sparse.csr_array:
    """Return the matrix with a 1 where the row's paper cites the column's."""
    row_of = {paper: row for row, paper in enumerate(ids.tolist())}
    pairs = (line.split("\t") for line in content.decode("ascii").splitlines())
    known = ((row_of[a], row_of[b]) for a, b in pairs if a != b and a in row_of and b in row_of)
    rows, columns = np.array(sorted(set(known)), dtype=np.int32).reshape(-1, 2).T
    ones = np.ones(len(rows), dtype=np.float32)
    return sparse.coo_array((ones, (rows, columns)), shape=(len(ids), len(ids))).tocsr()
