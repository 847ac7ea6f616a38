"""Cora and CiteSeer of the LINQS group: papers with words and citations."""

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch  # type: ignore[import-untyped, unused-ignore]

from coem.datasets._files import read_files
from coem.typing import Array
from coem.views import Views

_DESCR = """{title}

{n_papers} papers in {n_classes} classes, each seen in three views:

words     {n_words} anonymous word stems, 1 where the paper holds the word
inbound   a column per paper of the collection, 1 where that paper cites this one
outbound  a column per paper of the collection, 1 where this paper cites that one

The {n_links} links are distinct and directed; self-citations and citations of papers outside the
collection are left out. Many papers are empty in one of the link views.

Published for research by the LINQS group at {home}
without an explicit licence. Please cite P. Sen, G. Namata, M. Bilgic, L. Getoor, B. Gallagher,
T. Eliassi-Rad, "Collective classification in network data", AI Magazine 29(3), 2008{also}.
"""


def fetch_cora() -> Bunch:
    """Load the Cora citation data (2708 machine-learning papers, 7 classes, 3 views).

    The files are looked for in the directory ``COEM_DATA``, then in the user's cache, and are
    then downloaded (``pip install coem[datasets]``).

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` with the CSR matrices ``words`` (2708, 1433), ``inbound`` and
        ``outbound`` (2708, 2708) of 0 and 1 in float32; ``target``, the class of each paper as an
        int array of shape (2708,); ``target_names``, the 7 class names; ``ids``, the paper ids
        as strings; ``DESCR``, a description.

    Notes
    -----
    This is the small, standard Cora; Bickel & Scheffer (2005) used a larger, private extraction.

    Examples
    --------
    >>> from coem.datasets import fetch_cora
    >>> data = fetch_cora()  # doctest: +SKIP
    >>> data.views["words"].shape  # doctest: +SKIP
    (2708, 1433)
    """
    return _fetch(
        "cora",
        title="Cora, machine-learning papers",
        home="https://linqs.org/datasets/#cora",
        also=',\nand A. McCallum, K. Nigam, J. Rennie, K. Seymore, "Automating the construction of '
        'internet\nportals with machine learning", Information Retrieval 3, 2000',
    )


def fetch_citeseer() -> Bunch:
    """Load the CiteSeer citation data (3312 research papers, 6 classes, 3 views).

    The files are looked for in the directory ``COEM_DATA``, then in the user's cache, and are
    then downloaded (``pip install coem[datasets]``).

    Returns
    -------
    data : sklearn.utils.Bunch
        ``views``, a `Views` with the CSR matrices ``words`` (3312, 3703), ``inbound`` and
        ``outbound`` (3312, 3312) of 0 and 1 in float32; ``target``, the class of each paper as an
        int array of shape (3312,); ``target_names``, the 6 class names; ``ids``, the paper ids
        as strings; ``DESCR``, a description.

    Notes
    -----
    The corpus of Bickel & Scheffer (2005), Section 5, in its public form with binary words. The
    "CiteSeer" of 3327 nodes in graph libraries is another, undirected repackaging.

    Examples
    --------
    >>> from coem.datasets import fetch_citeseer
    >>> data = fetch_citeseer()  # doctest: +SKIP
    >>> data.views["words"].shape  # doctest: +SKIP
    (3312, 3703)
    """
    return _fetch(
        "citeseer",
        title="CiteSeer for document classification, research papers",
        home="https://linqs.org/datasets/#citeseer-doc-classification",
        also=',\nand Q. Lu, L. Getoor, "Link-based classification", ICML 2003',
    )


def _fetch(dataset: str, **about: str) -> Bunch:
    """Read and parse one of the two data sets, which share their format."""
    files = read_files(dataset)
    ids, words, classes = _parse_content(files[f"{dataset}.content"])
    outbound = _parse_cites(files[f"{dataset}.cites"], ids)
    target_names, target = np.unique(classes, return_inverse=True)
    return Bunch(
        views=Views(words=words, inbound=outbound.T.tocsr(), outbound=outbound),
        target=target,
        target_names=target_names,
        ids=ids,
        DESCR=_DESCR.format(
            n_papers=len(ids),
            n_classes=len(target_names),
            n_words=words.shape[1],
            n_links=outbound.nnz,
            **about,
        ),
    )


def _parse_content(content: bytes) -> tuple[Array, sparse.csr_array, Array]:
    """Return ids, words and class names from lines of ``id, 0/1 per word, class``."""
    lines = content.decode("ascii").splitlines()
    heads, tails = zip(*(line.split("\t", 1) for line in lines), strict=True)
    flags, classes = zip(*(tail.rsplit("\t", 1) for tail in tails), strict=True)
    # Every flag is one character and one tab, so the even characters are the matrix. Turning
    # each of the millions of flags into a Python object would take ten times as long.
    rows = [np.frombuffer(row.encode("ascii"), dtype=np.uint8)[::2] == ord("1") for row in flags]
    return np.array(heads), sparse.csr_array(np.stack(rows), dtype=np.float32), np.array(classes)


def _parse_cites(content: bytes, ids: Array) -> sparse.csr_array:
    """Return the matrix with a 1 where the row's paper cites the column's."""
    row_of = {paper: row for row, paper in enumerate(ids.tolist())}
    links = set()
    for line in content.decode("ascii").splitlines():
        cited, citing = line.split("\t")
        if cited != citing and cited in row_of and citing in row_of:
            links.add((row_of[citing], row_of[cited]))
    rows, columns = np.array(sorted(links), dtype=np.int32).reshape(-1, 2).T
    ones = np.ones(len(links), dtype=np.float32)
    return sparse.coo_array((ones, (rows, columns)), shape=(len(ids), len(ids))).tocsr()
