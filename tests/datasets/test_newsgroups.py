"""20 Newsgroups: the published counts, and posts written here."""

import io
import lzma

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from coem.datasets import _files, fetch_20newsgroups
from coem.datasets._newsgroups import _parse_date, _parse_post

ORIGINAL, BYDATE, VECTORS = "20newsgroups_19997", "20newsgroups", "20newsgroups_minilm"

POSTS = {
    "20_newsgroups/sci.tea/100": b"Subject: Green tea\nDate: 5 Apr 93 10:00:00 EDT\n\n"
    b"tea water tea",
    "20_newsgroups/sci.tea/20": b"date: Mon, 5 Apr 1993 10:00:00 GMT\nSUBJECT: Re: green\n  water"
    b"\n\nwater is hot\n\nso is tea\n",
    "20_newsgroups/rec.kites/7": b"Subject: Kites\nDate: soon\n \nX: y\n\nkites fly; kites \xe9lan",
}


def original(put):
    put(ORIGINAL, files={"20_newsgroups.tar": POSTS})


# the real data ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_original_has_the_published_counts(load):
    data = load((ORIGINAL, VECTORS), fetch_20newsgroups, views=("subject", "meaning"))
    sizes = dict(zip(data.target_names, np.bincount(data.target), strict=True))
    assert len(sizes) == 20
    assert sizes.pop("soc.religion.christian") == 997
    assert set(sizes.values()) == {1000}
    check_form(data, 19_997)
    assert not np.isnat(data.dates).any()
    assert np.datetime64("1992-06-01") < data.dates.min()
    assert data.dates.max() < np.datetime64("1993-06-01")
    assert "train" not in data
    meaning = data.views["meaning"]
    assert (meaning.shape, meaning.dtype) == ((19_997, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(meaning, axis=1), 1, atol=2e-3)  # float16 on disk


@pytest.mark.slow
def test_bydate_has_the_published_counts(load):
    data = load(BYDATE, fetch_20newsgroups, version="bydate", views=("subject",))
    check_form(data, 18_846)
    assert (data.train.sum(), (~data.train).sum()) == (11_314, 7532)
    atheism, religion = data.target == 0, data.target == 19
    assert (data.train[atheism].sum(), (~data.train[atheism]).sum()) == (480, 319)
    assert (data.train[religion].sum(), (~data.train[religion]).sum()) == (377, 251)
    assert np.isnat(data.dates).all()


def check_form(data, n):
    """Check what both versions promise."""
    assert len(data.views) == len(data.target) == len(data.text) == len(data.subjects) == n
    assert len(set(data.ids)) == n
    keys = [(group, int(number)) for group, number in (i.split("/") for i in data.ids)]
    assert keys == sorted(keys)
    assert [group for group, _ in keys] == data.target_names[data.target].tolist()
    assert data.views["subject"].dtype == np.float32
    assert data.views["subject"].shape[1] == len(data.feature_names["subject"])
    assert f"{n} Usenet posts" in data.DESCR


# posts written here ----------------------------------------------------------------------------


def test_posts_are_in_order_and_in_parts(put):
    original(put)
    data = fetch_20newsgroups(min_df=1)
    assert data.ids.tolist() == ["rec.kites/7", "sci.tea/20", "sci.tea/100"]
    assert data.target_names.tolist() == ["rec.kites", "sci.tea"]
    assert data.target.tolist() == [0, 1, 1]
    assert data.subjects == ["Kites", "Re: green water", "Green tea"]
    assert data.text == ["kites fly; kites élan", "water is hot\n\nso is tea\n", "tea water tea"]
    dates = np.array(["NaT", "1993-04-05T10:00:00", "1993-04-05T14:00:00"], "datetime64[s]")
    np.testing.assert_array_equal(data.dates, dates)
    assert data.dates.dtype == dates.dtype


@pytest.mark.parametrize(("stop_words", "min_df"), [("english", 1), (None, 2), (["tea"], 1)])
def test_counts_are_those_of_scikit_learn(put, stop_words, min_df):
    original(put)
    data = fetch_20newsgroups(stop_words=stop_words, min_df=min_df)
    assert data.views.names == ("subject", "body")
    for view, texts in (("subject", data.subjects), ("body", data.text)):
        counter = CountVectorizer(stop_words=stop_words, min_df=min_df)
        expected = counter.fit_transform(texts)
        assert (data.views[view] != expected).nnz == 0
        assert data.views[view].format == "csr"
        np.testing.assert_array_equal(data.feature_names[view], counter.get_feature_names_out())


def test_views_come_in_the_order_asked_for(put):
    original(put)
    assert fetch_20newsgroups(views=("body", "subject"), min_df=1).views.names == (
        "body",
        "subject",
    )
    assert fetch_20newsgroups(views="body").views.names == ("body",)


def test_bydate_marks_the_training_part(put):
    tree = {
        "20news-bydate-test/sci.tea/3": b"Subject: a\n\nblack tea",
        "20news-bydate-train/sci.tea/5": b"Subject: b\n\nwhite tea",
        "20news-bydate-train/rec.kites/4": b"Subject: c\n\nred kite",
        "20news-bydate-other/rec.kites/9": b"Subject: d\n\nnot read",
    }
    put(BYDATE, files={"20news-bydate.tar": tree})
    data = fetch_20newsgroups(version="bydate", views=("body",))
    assert data.ids.tolist() == ["rec.kites/4", "sci.tea/3", "sci.tea/5"]
    assert data.train.tolist() == [True, False, True]


# the sentence vectors --------------------------------------------------------------------------


def put_vectors(put, ids, vectors):
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=True)
    folder = put(VECTORS, files={"embeddings.npy": buffer.getvalue(), "ids.txt": ids})
    (folder / "ids.txt").rename(folder / "plain")
    (folder / "ids.txt.xz").write_bytes(lzma.compress(ids))


def test_vectors_line_up_with_the_posts(put):
    original(put)
    vectors = np.eye(3, 4, dtype=np.float16)
    put_vectors(put, b"rec.kites/7\nsci.tea/20\nsci.tea/100\n", vectors)
    data = fetch_20newsgroups(views=("body", "meaning"))
    assert data.views.names == ("body", "meaning")
    assert data.views["meaning"].dtype == np.float32
    np.testing.assert_array_equal(data.views["meaning"], vectors)
    assert list(data.feature_names) == ["body"]


def test_vectors_of_other_posts_are_refused(put):
    original(put)
    put_vectors(put, b"rec.kites/7\nsci.tea/100\nsci.tea/20\n", np.eye(3, dtype=np.float16))
    with pytest.raises(OSError, match="are not those of these posts"):
        fetch_20newsgroups(views=("meaning",))


def test_vectors_that_are_pickles_are_not_loaded(put):
    original(put)
    put_vectors(put, b"rec.kites/7\nsci.tea/20\nsci.tea/100\n", np.array([{}, {}, {}]))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        fetch_20newsgroups(views=("meaning",))


def test_absent_vectors_have_no_public_home(put):
    original(put)
    with pytest.raises(FileNotFoundError, match="has no public home"):
        fetch_20newsgroups(views=("meaning",))


# parts and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("Tue, 6 Apr 1993 00:30:00 +0200", "1993-04-05T22:30:00"),
        ("6 Apr 93 00:30:00 PDT", "1993-04-06T07:30:00"),
        ("Tue, 6 Apr 93 00:30 GMT", "1993-04-06T00:30:00"),
        ("6 Apr 93 00:30:00 XYZ", "1993-04-06T00:30:00"),
        ("6 Apr 93 00:30:00", "1993-04-06T00:30:00"),
        ("", None),
        ("yesterday", None),
        ("6 Apr 99999999999 00:30:00", None),
    ],
)
def test_dates_of_many_forms(line, date):
    expected = None if date is None else int(np.datetime64(date, "s").astype(int))
    assert _parse_date(line) == expected


def test_carriage_returns_and_missing_parts():
    post = _parse_post("a.b/1", "From: x\r\nSubject: tea\r\n\tand milk\r\n\r\nbody\r\n\r\nmore")
    assert (post.subject, post.body, post.date) == ("tea and milk", "body\r\n\r\nmore", None)
    post = _parse_post("a.b/2", "From: x\nSummary: no blank line")
    assert (post.subject, post.body) == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"version": "18828"}, "version must be one of '19997', 'bydate'; got '18828'"),
        ({"views": ("title",)}, "views must be one of 'subject', 'body', 'meaning'; got 'title'"),
        ({"views": ()}, r"at least one view and none twice; got \(\)"),
        ({"views": ("body", "body")}, "at least one view and none twice"),
        ({"views": ("meaning",), "version": "bydate"}, "for version '19997' only; got 'bydate'"),
    ],
)
def test_wrong_arguments_are_named(own, options, message):
    with pytest.raises(ValueError, match=message):
        fetch_20newsgroups(**options)


def test_a_view_without_words_is_named(put):
    original(put)
    with pytest.raises(ValueError, match="view 'body': min_df and max_df leave no word"):
        fetch_20newsgroups(views=("body",), min_df=3)


def test_line_ends_and_stray_bytes_do_not_matter(put, own, tar):
    original(put)
    tree = {name: content.replace(b"\n", b"\r\n") + b"\xff" for name, content in POSTS.items()}
    (own / ORIGINAL / "20_newsgroups.tar").write_bytes(tar(tree))
    assert fetch_20newsgroups(min_df=1).subjects == ["Kites", "Re: green water", "Green tea"]
    tree["20_newsgroups/sci.tea/20"] += b"word"
    (own / ORIGINAL / "20_newsgroups.tar").write_bytes(tar(tree))
    with pytest.raises(OSError, match="does not hold the original"):
        _files.read_files(ORIGINAL)
