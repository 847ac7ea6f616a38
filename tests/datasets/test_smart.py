"""Medline and Cranfield: the published sizes, and collections written here."""

import numpy as np
import pytest

from coem.datasets import fetch_cranfield, fetch_medline

MEDLINE = {
    "MED.ALL": b".I 1\r\n.W\r\ncats purr .\r\ncats sleep\r\n.I 2\r\n.W\r\ncats and tea\r\n",
    "MED.QRY": b".I 1\r\n.W\r\n who purrs\r\n",
    "MED.REL": b"1 0 1 1\n1 0 2 1\n",
}
CRANFIELD = {
    "cran.all.1400": b".I 1\n.T\nwings\n.A\nsmith,j.\n.B\nj. wings\n.W\nwings lift .\n"
    b".A\nwings drag\n.I 2\n.T\n.A\n.B\n.W\n.I 7\n.T\nkites\n.W\nkites lift\n.W\nkites .i fly\n",
    "cran.qry": b".I 001\r\n.W\r\nwhat lifts\r\n.I 004\r\n.W\r\nwhat drags\r\n",
    "cranqrel": b"1 7 2 \n2 1 -1\n\n",
}


@pytest.mark.parametrize(
    ("name", "fetch", "shape", "n_queries", "n_judgements"),
    [
        ("medline", fetch_medline, (1033, 6078), 30, 696),
        ("cranfield", fetch_cranfield, (1398, 4270), 225, 1837),
    ],
)
def test_published_sizes(load, name, fetch, shape, n_queries, n_judgements):
    data = load(name, fetch)
    words = data.views["words"]
    assert (words.shape, words.dtype, words.format) == (shape, np.float32, "csr")
    assert not data.views.empty.any()
    assert len(data.feature_names["words"]) == shape[1]
    assert len(set(data.ids)) == len(data.text) == shape[0]
    assert data.target is None
    assert len(data.queries) == n_queries
    assert data.judgements.shape == (n_judgements, 3)
    assert set(data.judgements[:, 0]) == set(range(1, n_queries + 1))
    known = set(data.ids.astype(int))
    assert set(data.judgements[:, 1]) - known == ({995} if name == "cranfield" else set())
    assert f"{shape[0]} abstracts with counts of {shape[1]} words" in data.DESCR


def test_a_collection_of_two_documents(put):
    put("medline", files={"med.tar": MEDLINE})
    data = fetch_medline(min_df=1)
    assert data.feature_names["words"].tolist() == ["cats", "purr", "sleep", "tea"]
    assert data.views["words"].toarray().tolist() == [[2, 1, 1, 0], [1, 0, 0, 1]]
    assert data.text[0] == "cats purr .\ncats sleep"
    assert data.ids.tolist() == ["1", "2"]
    assert data.queries == ["who purrs"]
    assert data.judgements.tolist() == [[1, 1, 1], [1, 2, 1]]


def test_the_text_alone_counts_and_stray_marks_do_not_end_it(put):
    put("cranfield", files={"cran.tar": CRANFIELD})
    data = fetch_cranfield(min_df=1, stop_words=None)
    assert data.feature_names["words"].tolist() == ["drag", "fly", "kites", "lift", "wings"]
    assert data.views["words"].toarray().tolist() == [[1, 0, 0, 1, 2], [0, 1, 2, 1, 0]]
    assert data.ids.tolist() == ["1", "7"]
    assert data.queries == ["what lifts", "what drags"]
    assert data.judgements.tolist() == [[1, 7, 2], [2, 1, -1]]
    assert data.target is None
    assert data.target_names.tolist() == []


@pytest.mark.parametrize(("fetch", "name"), [(fetch_medline, "med"), (fetch_cranfield, "cran")])
def test_absent_files_are_named(put, fetch, name):
    put({"med": "medline", "cran": "cranfield"}[name], files={})
    with pytest.raises(FileNotFoundError, match=rf"{name}\.tar of the data set"):
        fetch()


def test_few_words_are_left_by_a_high_floor(put):
    put("medline", files={"med.tar": MEDLINE})
    data = fetch_medline(min_df=2)
    assert data.feature_names["words"].tolist() == ["cats"]
