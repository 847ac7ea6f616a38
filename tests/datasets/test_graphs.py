"""Graphs of autonomous systems: the published counts, files written here, and walks on them."""

import numpy as np
import pytest
import scipy.sparse as sp

from coem.datasets import fetch_as_graph, walk_steps

SNAP = b"# Nodes: 4 Edges: 3\n 1 (broken comment)\n7\t30\n30\t7\n7\t7\n100\t7\t-1\n100\t30\n"
GML = b"""graph [
  node [
    id 0
    label "900"
  ]
  node [
    id 1
    label "12"
  ]
  edge [
    source 0
    target 1
  ]
]
"""


@pytest.mark.parametrize(
    ("name", "n_nodes", "n_edges"),
    [
        ("oregon2_010526", 11_461, 32_730),
        ("as20000102", 6474, 12_572),
        ("as-22july06", 22_963, 48_436),
        ("as-caida20071105", 26_475, 53_381),
    ],
)
def test_published_counts(load, name, n_nodes, n_edges):
    data = load("as_graphs", fetch_as_graph, name)
    A = data.adjacency
    assert (A.shape, A.nnz, A.dtype, A.format) == (
        (n_nodes, n_nodes),
        2 * n_edges,
        np.float32,
        "csr",
    )
    assert A.has_canonical_format
    assert (A.data == 1).all()
    assert (A != A.T).nnz == 0
    assert not A.diagonal().any()
    assert A.sum(axis=1).min() >= 1
    assert len(set(data.ids)) == n_nodes
    assert f"{n_nodes} nodes, {n_edges} undirected edges" in data.DESCR


def test_a_hub_of_the_internet_is_where_it_should_be(load):
    data = load("as_graphs", fetch_as_graph, "oregon2_010526")
    assert data.ids[data.adjacency.sum(axis=1).argmax()] == "701"  # UUNET, the largest of its time


def test_files_of_three_nodes(put):
    put("as_graphs", files={"oregon2_010526.txt": SNAP, "as-22july06.gml": GML})
    data = fetch_as_graph()
    assert data.ids.tolist() == ["7", "30", "100"]
    assert data.adjacency.toarray().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    data = fetch_as_graph("as-22july06")
    assert data.ids.tolist() == ["12", "900"]
    assert data.adjacency.toarray().tolist() == [[0, 1], [1, 0]]


def test_unknown_and_absent_files(own):
    with pytest.raises(ValueError, match=r"name must be one of 'oregon2_010526', .*; got 'as'"):
        fetch_as_graph("as")
    with pytest.raises(FileNotFoundError, match=r"as20000102\.txt of .* no public home"):
        fetch_as_graph("as20000102")


# -- walks --------------------------------------------------------------------------------------


def star(n=5, weight=1.0):
    A = np.zeros((n, n))
    A[0, 1:] = A[1:, 0] = weight
    return A


def test_steps_leave_a_node_in_proportion_to_its_degree():
    train, test = walk_steps(star(), 80_000, 8000, pseudo_count=0, random_state=0)
    assert (train.sum(), test.sum()) == (80_000, 8000)
    # Half of the steps leave the centre, and every edge has an eighth in either direction.
    assert abs(train[[0]].sum() / 80_000 - 0.5) < 4 * np.sqrt(0.25 / 80_000)
    assert np.abs(train.data / 80_000 - 1 / 8).max() < 5 * np.sqrt(1 / 8 * 7 / 8 / 80_000)
    assert (train.toarray()[star() == 0] == 0).all()


def test_every_edge_has_its_pseudo_count():
    A = sp.csr_matrix(star(40))
    train, test = walk_steps(A, 10, 10, random_state=1)
    assert train.nnz == A.nnz
    assert train.data.min() == 1
    assert train.sum() == 10 + A.nnz
    assert test.nnz <= 10
    assert not (test.astype(bool) > A.astype(bool)).nnz


def test_seed_weights_and_stored_zeros():
    one, two = (walk_steps(star(), 100, 10, random_state=3) for _ in range(2))
    assert all((a != b).nnz == 0 for a, b in zip(one, two, strict=True))
    weighted = star(weight=3.0)
    again = walk_steps(weighted, 100, 10, random_state=3)
    assert (again[0] != one[0]).nnz == 0
    weighted[0, 1] = weighted[1, 0] = 9.0
    train, _ = walk_steps(weighted, 60_000, 0, pseudo_count=0, random_state=0)
    assert abs(train[0, 1] / 60_000 - 0.25) < 0.01
    stored = sp.csr_matrix(star())
    stored.data[:] = 0
    with pytest.raises(ValueError, match="must have edges"):
        walk_steps(stored)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adjacency": np.ones((2, 3))}, "must be symmetric"),
        ({"adjacency": np.array([[0.0, 1], [2, 0]])}, "must be symmetric"),
        ({"adjacency": -star()}, "finite weight above 0"),
        ({"adjacency": np.where(star() > 0, np.inf, 0)}, "finite weight above 0"),
        ({"n_train": -1}, "n_train must be"),
        ({"n_test": 2.5}, "n_test must be"),
        ({"pseudo_count": -1}, "pseudo_count must be"),
    ],
)
def test_what_cannot_be_walked(settings, message):
    with pytest.raises(ValueError, match=message):
        walk_steps(**({"adjacency": star()} | settings))
