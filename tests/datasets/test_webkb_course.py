"""The course pages of WebKB: the published counts, and pages written here."""

import numpy as np
import pytest

from coem.datasets import fetch_webkb, fetch_webkb_course

HOME = "course-cotrain-data"
FILES = {
    f"{HOME}/fulltext/course/http:^^a.edu^cs1^": b"<title>CS 1</title><p>Tea and\n\nhomework",
    f"{HOME}/inlinks/course/http:^^a.edu^cs1^": b"Tea course\nhomework\n",
    f"{HOME}/fulltext/non-course/http:^^b.edu^~ann": b"<h1>Ann</h1>tea <b>t</b>ime \xe9lan",
    f"{HOME}/inlinks/non-course/http:^^b.edu^~ann": b"\n",
    f"{HOME}/README": b"not a page",
}
SIX = "course/http:^^a.edu^cs1^\tcourse\ttexas\nnon-course/http:^^b.edu^~ann\tstudent\tcornell\n"


@pytest.fixture
def folder(put):
    files = {"course-cotrain-data.tar": FILES, "labels6.tsv": SIX.encode()}
    return put("webkb_course", files=files)


def test_the_published_counts(load):
    data = load("webkb_course", fetch_webkb_course)
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "course": 230,
        "non-course": 821,
    }
    assert data.views.names == ("page", "anchors")
    assert len(data.views) == len(set(data.ids)) == 1051
    assert sum(any(map(str.isalpha, text)) for text in data.anchors) == 1046


def test_six_classes_are_those_of_webkb(load):
    data = load("webkb_course", fetch_webkb_course, classes="six", views=("page",))
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "course": 230,
        "department": 4,
        "faculty": 147,
        "project": 83,
        "staff": 43,
        "student": 544,
    }
    whole = load("webkb", fetch_webkb)
    known = dict(zip(whole.ids, whole.target_names[whole.target], strict=True))
    mine = zip(data.ids, data.target_names[data.target], strict=True)
    assert all(known[url] == label for url, label in mine)


def test_pages_written_here(folder):
    data = fetch_webkb_course(min_df=1, stop_words=None)
    assert data.ids.tolist() == ["http://a.edu/cs1/", "http://b.edu/~ann"]
    assert data.text == ["CS 1 Tea and homework", "Ann tea time élan"]
    assert data.anchors == ["Tea course\nhomework", ""]
    assert data.feature_names["anchors"].tolist() == ["course", "homework", "tea"]
    assert data.views["anchors"].toarray().tolist() == [[1, 1, 1], [0, 0, 0]]
    assert data.target.tolist() == [0, 1]
    assert "co-training" in data.DESCR
    assert "universities" not in data


def test_six_classes_of_pages_written_here(folder):
    data = fetch_webkb_course(classes="six", views=("anchors",), min_df=1)
    assert data.target_names.tolist() == ["course", "student"]
    assert data.universities.tolist() == ["texas", "cornell"]
    assert data.views.names == ("anchors",)


def test_wrong_arguments(folder):
    with pytest.raises(ValueError, match="classes"):
        fetch_webkb_course(classes="seven")
    with pytest.raises(ValueError, match="views"):
        fetch_webkb_course(views=("links",))
