"""WebKB: the published counts, and pages written here."""

from html.parser import HTMLParser

import numpy as np
import pytest

from coem.datasets import fetch_webkb
from coem.datasets._html import page_text

HEADERS = b"Date: today\nContent-type: text/html\n\n"
PAGES = {
    "webkb/student/texas/http:^^a.edu^~ann^": HEADERS + b"<title>Ann</title><h1>Ann's tea</h1>",
    "webkb/course/misc/http:^^b.edu^tea.html": b"<html><b>T</b>ea<br>101 green\n\n<p>tea \xe9lan",
    "webkb/other/misc/http:^^c.edu^\r": HEADERS + b"nothing green<script>var tea;</script>",
    "webkb/README": b"not a page",
}
ANCHORS = (
    "course/misc/http:^^b.edu^tea.html\tother/misc/http:^^c.edu^\\r\tGreen tea\n"
    "course/misc/http:^^b.edu^tea.html\tstudent/texas/http:^^a.edu^~ann^\ttea 101\n"
    "other/misc/http:^^c.edu^\\r\tstudent/texas/http:^^a.edu^~ann^\tgreen\n"
)


@pytest.fixture
def folder(put):
    return put("webkb", files={"webkb-data.tar": PAGES, "anchors.tsv": ANCHORS.encode()})


# the real data ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_six_classes_have_the_published_counts(load):
    data = load("webkb", fetch_webkb)
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "course": 930,
        "department": 182,
        "faculty": 1124,
        "project": 504,
        "staff": 137,
        "student": 1641,
    }
    universities = dict(zip(*np.unique(data.universities, return_counts=True), strict=True))
    assert universities == {
        "cornell": 248,
        "texas": 256,
        "washington": 266,
        "wisconsin": 321,
        "misc": 3427,
    }
    check_form(data, 4518)
    named = np.array([any(map(str.isalpha, text)) for text in data.anchors])
    assert np.bincount(data.target[named]).tolist() == [471, 129, 630, 327, 80, 833]
    assert all(data.text)
    assert data.views.empty[:, 0].sum() == 0


def check_form(data, n):
    assert len(data.views) == len(data.ids) == len(data.text) == len(data.universities) == n
    assert all(url.split(":")[0] in ("http", "ftp", "file") for url in data.ids)
    assert not any("^" in url for url in data.ids)
    for view in data.views.names:
        assert data.views[view].format == "csr"
        assert data.views[view].dtype == np.float32
        assert data.views[view].shape[1] == len(data.feature_names[view])
        assert not any(any(map(str.isdigit, word)) for word in data.feature_names[view])
    assert f"{n} web pages" in data.DESCR


# pages written here ----------------------------------------------------------------------------


def test_pages_and_the_links_to_them(folder):
    data = fetch_webkb(classes="seven", min_df=1)
    assert data.ids.tolist() == ["http://b.edu/tea.html", "http://c.edu/", "http://a.edu/~ann/"]
    assert data.target_names.tolist() == ["course", "other", "student"]
    assert data.universities.tolist() == ["misc", "misc", "texas"]
    assert data.text == ["Tea 101 green tea élan", "nothing green", "Ann Ann's tea"]
    assert data.anchors == ["Green tea\ntea 101", "green", ""]
    assert data.feature_names["anchors"].tolist() == ["green", "tea"]
    assert data.views["anchors"].toarray().tolist() == [[1, 2], [1, 0], [0, 0]]
    assert "élan" in data.feature_names["page"]
    check_form(data, 3)


def test_other_is_left_out_of_six_classes(folder):
    data = fetch_webkb(min_df=1)
    assert data.target_names.tolist() == ["course", "student"]
    assert data.anchors == ["Green tea\ntea 101", ""]


def test_pages_need_no_anchors(folder):
    (folder / "anchors.tsv").unlink()
    data = fetch_webkb(views=("page",), min_df=1)
    assert data.views.names == ("page",)
    assert "anchors" not in data
    with pytest.raises(FileNotFoundError, match=r"anchors\.tsv .* no public home"):
        fetch_webkb()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<td>one</td><td>two</td>", "one two"),
        ("<i>o</i>ne<!-- not this --> two", "one two"),
        ("<style>not this</style>one &amp; two", "one & two"),
        ("<p>one <a href='x>y'>two", "one two"),
    ],
)
def test_tags_are_stripped(html, text):
    assert page_text(html) == text


def test_what_the_parser_gives_up_on_is_stripped_plainly(monkeypatch):
    # Whether it does so, and on which declarations, differs between versions of Python.
    def give_up(self, data):
        raise AssertionError("unknown status keyword")

    monkeypatch.setattr(HTMLParser, "feed", give_up)
    assert page_text("<![bad[ x]>one<br>two") == "one two"


def test_headers_end_at_the_first_blank_line():
    assert page_text("Server: x\r\n\r\none\r\n\r\ntwo") == "one two"
    assert page_text("\n<p>one\n\ntwo") == "one two"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 6}, "classes must be one of 'six', 'seven'; got 6"),
        ({"views": ("links",)}, "views must be one of 'page', 'anchors'; got 'links'"),
    ],
)
def test_wrong_arguments_are_named(own, options, message):
    with pytest.raises(ValueError, match=message):
        fetch_webkb(**options)
