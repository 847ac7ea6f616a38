"""The graph of the internet's autonomous systems, and random walks on it."""

import re
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch, check_random_state

from coem.datasets._files import read_files
from coem.datasets._text import choose
from coem.typing import Array, Matrix

_ABOUT = {
    "oregon2_010526": (
        ".txt",
        "peerings seen by route-views and others, 26 May 2001 (SNAP)",
    ),
    "as20000102": (".txt", "peerings in the logs of BGP, 2 January 2000 (SNAP), ids renumbered"),
    "as-22july06": (".gml", "peerings seen by route-views, 22 July 2006 (M. Newman)"),
    "as-caida20071105": (".txt", "relationships inferred by CAIDA, 5 November 2007 (SNAP)"),
}

_DESCR = """{name}: autonomous systems of the internet, {about}

{n_nodes} nodes, {n_edges} undirected edges; self-loops and repeated edges are left out, and what
kind of relationship an edge stands for is not kept.

SNAP: https://snap.stanford.edu/data/ (J. Leskovec, J. Kleinberg, C. Faloutsos, "Graphs over time",
KDD 2005). M. Newman: http://www-personal.umich.edu/~mejn/netdata/. Free for research.

Lin (2006), Sec. 4.4, has a graph of 13,233 nodes and 55,448 non-zeros from route-views, of about
2002, which was not found; oregon2_010526 is the nearest in date, source and size.
"""


def fetch_as_graph(name: str = "oregon2_010526") -> Bunch:
    """Load a graph of autonomous systems of the internet.

    The file is looked for in the folder "as_graphs" of the directory ``COEM_DATA``, then in that
    of the user's cache; "oregon2_010526" is then downloaded (``pip install coem[datasets]``), the
    others have no public home in this form.

    Parameters
    ----------
    name : {"oregon2_010526", "as20000102", "as-22july06", "as-caida20071105"}
        The snapshot. The default is the nearest to that of Lin (2006), Sec. 4.4.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``adjacency``, a symmetric CSR matrix of 0 and 1 in float32 with nothing on the diagonal;
        ``ids``, the number of each system as a string, in increasing order; ``DESCR``, a
        description.

    Examples
    --------
    >>> from coem.datasets import fetch_as_graph
    >>> fetch_as_graph().adjacency.shape  # doctest: +SKIP
    (11461, 11461)
    """
    choose("name", name, _ABOUT)
    ending, about = _ABOUT[name]
    content = read_files("as_graphs", name + ending)[name + ending].decode("ascii")
    parse = _parse_gml if ending == ".gml" else _parse_lines
    edges = np.array([edge for edge in parse(content) if edge[0] != edge[1]], dtype=np.int64)
    ids, places = np.unique(edges, return_inverse=True)
    adjacency = _symmetric(places.reshape(-1, 2), len(ids))
    return Bunch(
        adjacency=adjacency,
        ids=ids.astype(str),
        DESCR=_DESCR.format(name=name, about=about, n_nodes=len(ids), n_edges=adjacency.nnz // 2),
    )


def _parse_lines(content: str) -> Iterator[tuple[int, int]]:
    """Yield the edges of a file of SNAP: two ids a line; one file has a comment broken in two."""
    for line in content.splitlines():
        if line[:1].isdigit():
            source, target, *_ = line.split()
            yield int(source), int(target)


def _parse_gml(content: str) -> Iterator[tuple[int, int]]:
    """Yield the edges of a GML file, between the numbers that its nodes are labelled with."""
    label_of = dict(re.findall(r'\bid (\d+)\s+label "(\d+)"', content))
    for source, target in re.findall(r"\bsource (\d+)\s+target (\d+)", content):
        yield int(label_of[source]), int(label_of[target])


def _symmetric(edges: Array, n: int) -> sparse.csr_array:
    """Return the adjacency of edges, each given once, twice or in both directions."""
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    counts = sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n))
    adjacency = counts.tocsr()  # adds up what is repeated
    adjacency.data[:] = 1
    return adjacency


def walk_steps(
    adjacency: Matrix,
    n_train: int = 100_000,
    n_test: int = 20_000,
    *,
    pseudo_count: float = 1.0,
    random_state: Any = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Draw single steps of the random walk on a graph (Lin 2006, Sec. 4.4).

    A step starts from a node as often as the walk is there in the long run, and takes each of its
    edges with equal probability (in proportion to their weights, if they have other than 1).

    Parameters
    ----------
    adjacency : matrix of shape (n_nodes, n_nodes)
        Symmetric, as the walk's long run is known for undirected graphs only.
    n_train, n_test : int
        Number of steps of either kind.
    pseudo_count : float, default=1.0
        Added to the training counts of every edge, in both directions.
    random_state : int, RandomState or None, default=None
        Seed of the steps.

    Returns
    -------
    train, test : CSR matrices of shape (n_nodes, n_nodes)
        Counts from the node of the row to that of the column, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.datasets import walk_steps
    >>> train, test = walk_steps(1 - np.eye(3), 600, 60, random_state=0)
    >>> float(train.sum()), float(test.sum())
    (606.0, 60.0)
    """
    for name, value in (("n_train", n_train), ("n_test", n_test)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} must be an integer of 0 or more, got {value!r}")
    if not isinstance(pseudo_count, Real) or not 0 <= pseudo_count < np.inf:
        raise ValueError(f"pseudo_count must be a number of 0 or more, got {pseudo_count!r}")
    edges = _checked_edges(adjacency)
    # In the long run a node is visited in proportion to its degree: every edge, in either
    # direction, is as likely as any other.
    shares = edges.data / edges.data.sum()
    rng = check_random_state(random_state)
    counts = [rng.multinomial(n, shares) for n in (n_train, n_test)]
    train, test = (_with_data(edges, values) for values in (counts[0] + pseudo_count, counts[1]))
    return train, test


def _checked_edges(adjacency: Matrix) -> sparse.csr_array:
    """Return a symmetric adjacency in double, without stored zeros."""
    edges = sparse.csr_array(adjacency, dtype=np.float64, copy=True)
    edges.check_format()  # before C code trusts its indices
    if not np.isfinite(edges.data).all():
        raise ValueError("adjacency must have edges, all of a finite weight above 0")
    edges.sum_duplicates()
    edges.eliminate_zeros()
    n, m = edges.shape
    if n != m or (edges != edges.T).nnz:
        raise ValueError("adjacency must be symmetric; A + A.T makes a directed graph undirected")
    if edges.nnz == 0 or not (edges.data > 0).all():
        raise ValueError("adjacency must have edges, all of a finite weight above 0")
    return edges


def _with_data(edges: sparse.csr_array, values: Array) -> sparse.csr_array:
    """Return a matrix with other values at the places of the edges."""
    values = values.astype(np.float64)
    matrix = sparse.csr_array((values, edges.indices.copy(), edges.indptr.copy()), edges.shape)
    matrix.eliminate_zeros()
    return matrix
