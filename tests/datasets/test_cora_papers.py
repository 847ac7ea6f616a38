"""The large Cora: the counts of its README, and three papers by hand."""

import numpy as np
import pytest

from coem.datasets import fetch_cora_papers

# Paper 9 has no class. "I:O" has a colon, "The" is a stop word, "b" is in two cases.
PAPERS = b"""9\t\tgraphs:1\tA
1\tTheory/Graphs\tThe:1 graphs:2 i:o:1\tA B
2\tDatabases\tb:1 graphs:1\tB
3\tTheory/Codes\tB:3 trees:1\t
"""
CITES = b"1\t2\n1\t2\n2\t2\n9\t1\n3\t1\n2\t7\n"


def test_the_real_papers(load):
    data = load("cora_papers", fetch_cora_papers, min_df=1)
    assert data.views.names == ("words", "inbound", "outbound", "authors")
    assert len(data.ids) == 11_694
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "Artificial_Intelligence": 4563,
        "Programming": 1655,
        "Operating_Systems": 1241,
        "Data_Structures__Algorithms_and_Theory": 1192,
        "Networking": 669,
        "Human_Computer_Interaction": 620,
        "Databases": 580,
        "Encryption_and_Compression": 479,
        "Hardware_and_Architecture": 453,
        "Information_Retrieval": 242,
    }
    assert len(set(data.topics)) == 70
    # Distinct links between labelled papers, those cited and those that cite, counted with awk.
    inbound, outbound = data.views["inbound"], data.views["outbound"]
    assert outbound.nnz == 31_815
    assert (outbound.diagonal() == 0).all()
    assert ((inbound.sum(axis=1) > 0).sum(), (outbound.sum(axis=1) > 0).sum()) == (8241, 9440)
    fewer = load("cora_papers", fetch_cora_papers)
    assert ((fewer.views["words"] > 0).sum(axis=0) >= 2).all()


def test_three_papers(put):
    put("cora_papers", {"papers.tsv": PAPERS, "cites.tsv": CITES})
    data = fetch_cora_papers(min_df=1)
    assert data.ids.tolist() == ["1", "2", "3"]
    assert data.target_names[data.target].tolist() == ["Theory", "Databases", "Theory"]
    assert data.topics.tolist() == ["Theory/Graphs", "Databases", "Theory/Codes"]
    assert data.feature_names["words"].tolist() == ["b", "graphs", "i:o", "trees"]
    assert data.views["words"].toarray().tolist() == [[0, 2, 1, 0], [1, 1, 0, 0], [3, 0, 0, 1]]
    assert data.views["outbound"].toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert (data.views["inbound"] != data.views["outbound"].T).nnz == 0
    assert data.feature_names["authors"].tolist() == ["A", "B"]
    assert data.views["authors"].toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
    assert "3 papers in 2 areas" in data.DESCR
    assert "The\n2 links" in data.DESCR


def test_rare_words_and_authors_are_left_out(put):
    put("cora_papers", {"papers.tsv": PAPERS, "cites.tsv": CITES})
    names = fetch_cora_papers(min_df=2).feature_names
    assert names["words"].tolist() == ["b", "graphs"]
    assert names["authors"].tolist() == ["B"]


@pytest.mark.parametrize("min_df", [0, 0.5, True])
def test_min_df_is_a_number_of_papers(min_df):
    with pytest.raises(ValueError, match="min_df must be an integer of 1 or more"):
        fetch_cora_papers(min_df=min_df)


def test_files_that_are_absent(own):
    with pytest.raises(FileNotFoundError, match=r"papers\.tsv of the data set 'cora_papers'"):
        fetch_cora_papers()
