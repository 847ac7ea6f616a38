"""Pairs of posts: the shape of the paper's data, and posts written here."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from coem.datasets import fetch_20newsgroups, fetch_news_pairs
from coem.datasets._news_pairs import PAIRS

ORIGINAL = "20newsgroups_19997"
N_POSTS = 7  # in every group of the handmade collection


def body(group, number):
    """Return a text from which the post can be told: its group and its number as words."""
    return f"{group.replace('.', '').replace('-', '')} number{'abcdefgh'[number]} common the"


@pytest.fixture
def handmade(put):
    """Replace the collection by seven posts of each of the ten groups, and of one other."""
    groups = [group for pair in PAIRS for group in pair] + ["alt.atheism"]
    tree = {
        f"20_newsgroups/{group}/{number}": b"Subject: x\n\n" + body(group, number).encode()
        for group in groups
        for number in range(N_POSTS)
    }
    put(ORIGINAL, files={"20_newsgroups.tar": tree})


def split_ids(data):
    """Return the posts of each row in each view, as arrays of "group/number"."""
    return np.array([row.split(" + ") for row in data.ids]).T


# the real data ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_papers_shape(load):
    data = load(ORIGINAL, fetch_news_pairs)
    assert len(data.views) == len(data.ids) == 1000
    assert np.bincount(data.target).tolist() == [200] * 5
    assert data.views.names == ("first", "second")
    assert len(np.unique(split_ids(data))) == 2000  # no post is drawn twice
    posts = load(ORIGINAL, fetch_20newsgroups, views=("subject",))
    text = dict(zip(posts.ids, posts.text, strict=True))
    first, second = split_ids(data)
    counter = CountVectorizer(stop_words="english", vocabulary=data.feature_names["first"])
    for view, ids in (("first", first), ("second", second)):
        expected = counter.transform([text[i] for i in ids])
        assert (data.views[view] != expected).nnz == 0


# posts written here ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, N_POSTS])
def test_rows_are_pairs_of_the_groups_of_their_class(handmade, n):
    data = fetch_news_pairs(n_per_class=n, min_df=1)
    assert data.target.tolist() == [c for c in range(5) for _ in range(n)]
    assert data.target_names.tolist() == [f"{a} + {b}" for a, b in PAIRS]
    for v, ids in enumerate(split_ids(data)):
        assert [i.split("/")[0] for i in ids] == [PAIRS[c][v] for c in data.target]
        assert len(set(ids)) == len(ids)
    assert f"{5 * n} rows in 5 classes of {n}" in data.DESCR


def test_counts_are_those_of_the_posts_named(handmade):
    data = fetch_news_pairs(n_per_class=4, min_df=1)
    for view, ids in zip(data.views.names, split_ids(data), strict=True):
        words = data.feature_names[view]
        for row, post in zip(data.views[view].toarray(), ids, strict=True):
            group, number = post.split("/")
            said = set(body(group, int(number)).split()) - {"the"}
            assert {words[j] for j in np.flatnonzero(row)} == said
        assert data.views[view].dtype == np.float32
        assert data.views[view].format == "csr"


def test_both_views_have_the_words_of_all_posts_drawn(handmade):
    data = fetch_news_pairs(n_per_class=3, min_df=1)
    np.testing.assert_array_equal(data.feature_names["first"], data.feature_names["second"])
    words = set(data.feature_names["first"])
    assert {body(g, 0).split()[0] for pair in PAIRS for g in pair} < words
    assert "altatheism" not in words  # what was not drawn counts for nothing
    assert "the" not in words
    both = data.views.merge({"both": ["first", "second"]})["both"]
    np.testing.assert_array_equal(both.sum(axis=1).ravel(), 6)


def test_min_df_counts_posts_of_both_views(handmade):
    """All posts say "common"; only the posts of its group say the name of a group."""
    data = fetch_news_pairs(n_per_class=3, min_df=4, stop_words=None)
    words = data.feature_names["first"].tolist()
    assert {"common", "the"} <= set(words)
    assert not any(word.startswith(("comp", "rec", "sci")) for word in words)


def test_the_seed_decides_posts_and_partners(handmade):
    def ids(seed):
        return fetch_news_pairs(n_per_class=N_POSTS, random_state=seed).ids.tolist()

    assert ids(3) == ids(3) == ids(np.random.RandomState(3))
    assert ids(3) != ids(4)
    numbers = np.array([[p.split("/")[1] for p in row.split(" + ")] for row in ids(3)])
    # All seven posts of every group are drawn; their partners do not follow their order.
    assert (numbers[:, 0] != numbers[:, 1]).any()
    assert ids(0) == fetch_news_pairs(n_per_class=N_POSTS).ids.tolist()


@pytest.mark.parametrize("n", [0, N_POSTS + 1, 2.0, "3"])
def test_wrong_numbers_of_posts_are_refused(handmade, n):
    with pytest.raises(ValueError, match=r"integer between 1 and 7, the posts .*; got"):
        fetch_news_pairs(n_per_class=n)
