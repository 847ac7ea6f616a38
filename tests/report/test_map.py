"""The map, the tree and the time of a report."""

import base64
import json
import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.report import DocumentMap, read, render, tell
from coem.report.chart import chart, densest
from coem.report.timeline import timeline_of
from coem.report.tree import tree_of
from coem.text import LatentDirections


@pytest.fixture(scope="module")
def counts(collection):
    """Return the views as sparse counts, with a row that is empty in all of them."""
    views = {name: sp.csr_array(matrix) for name, matrix in collection.views.items()}
    views = {name: sp.vstack([X, sp.csr_array((1, X.shape[1]))]) for name, X in views.items()}
    return Views(views)


@pytest.fixture(scope="module")
def story(collection, model):
    days = [f"{2020 + topic}-0{1 + i % 3}-15" for i, topic in enumerate(collection.truth)]
    return tell(model, collection.views, **collection.named(), dates=days)


def fitted(views):
    return MixtureClusterer(3, random_state=0, max_iter=20, tol=1e-3).fit(views)


def purity(places, labels):
    far = np.square(places[:, None] - places).sum(axis=2)
    near = np.argsort(far, axis=1, kind="stable")[:, 1:6]
    return (labels[near] == labels[:, None]).mean()


@pytest.mark.parametrize("kind", ["counts", "latent", "dense", "k-means"])
def test_documents_of_a_group_are_neighbours(collection, counts, kind):
    views = collection.views if kind == "dense" else counts
    if kind == "latent":
        views = LatentDirections(5, min_df=1).fit_transform(counts)
    model = SphericalKMeans(3, random_state=0).fit(views) if kind == "k-means" else fitted(views)
    found = DocumentMap(model).fit(views)
    assert found.places_.min() == 0.0
    assert found.places_.max() == 1.0
    groups = read(model, views).groups
    assert purity(found.places_[:90], groups[:90]) > 0.9
    assert np.abs(found.transform(views[[4, 50]]) - found.places_[[4, 50]]).max() < 1e-3


def test_the_chart_holds_every_document(story, collection, model):
    drawn = chart(story, story.documents)
    places = np.frombuffer(base64.b64decode(drawn.places), "<u2").reshape(-1, 2)
    assert np.abs(places / 65535 - story.places).max() < 1e-5
    groups = np.frombuffer(base64.b64decode(drawn.groups), "<u2")
    assert groups.tolist() == read(model, collection.views).groups.tolist()
    assert drawn.rows == ""
    sizes = [story.groups[g].size for g, *_ in drawn.marks]
    assert sizes == sorted(sizes, reverse=True)
    assert drawn.picture.count("<text") <= 3
    assert 80 <= len(re.findall("M[0-9]+ [0-9]+h0", drawn.picture)) <= 90


def test_names_stand_where_a_group_is_densest():
    crowd = 0.8 + 0.01 * np.random.default_rng(0).random((50, 2))
    x, y = densest(np.vstack([crowd, [[0.1, 0.1], [0.2, 0.9]]]))
    assert (x, y) == pytest.approx((0.805, 0.805), abs=0.005)


def four_groups():
    """Return rows of four groups, of which 0 and 1, and 2 and 3, share words."""
    rng = np.random.default_rng(0)
    own = np.repeat(np.eye(4), 5, axis=1) + 0.4 * np.repeat(np.eye(2), 10, axis=1).repeat(2, axis=0)
    truth = np.arange(80) % 4
    return sp.csr_array(rng.poisson(3 * own[truth] + 0.02)), truth


def test_close_groups_are_merged_first():
    X, truth = four_groups()
    model = MixtureClusterer(4, random_state=0, n_init=3).fit(X)
    tree = tree_of(read(model, X))
    group = [Counter(model.labels_[truth == t].tolist()).most_common(1)[0][0] for t in range(4)]
    assert {frozenset(part) for part in tree.cut(2)} == {
        frozenset(group[:2]),
        frozenset(group[2:]),
    }
    assert [len(tree.cut(n)) for n in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert [group for part in tree.cut(3) for group in part] == tree.order
    heights = [height for *_, height in tree.merges]
    assert heights == sorted(heights)
    with pytest.raises(ValueError, match="from 1 to 4"):
        tree.cut(5)


def test_two_groups_need_no_tree():
    X, _ = four_groups()
    assert tree_of(read(MixtureClusterer(2, random_state=0).fit(X), X)) is None


def test_a_timeline_counts_documents_and_finds_words(story, collection):
    time = story.timeline
    assert time.unit == "month"
    assert (time.periods[0], time.periods[-1]) == ("2020-01", "2022-03")
    table = np.array(time.counts)
    assert table.sum() == 90
    assert table.sum(axis=1).tolist() == [group.size for group in story.groups]
    words = dict(zip(time.periods, time.words, strict=True))
    assert words["2020-06"] == ""
    sport = {"goal", "match", "keeper", "team", "league"}
    assert set(words["2020-01"].split(", ")) <= sport
    assert words["2020-01"]


def test_links_give_no_words_to_a_period(collection):
    """Their columns are ids of documents, which tell nobody anything."""
    links = np.zeros((90, 90))
    links[np.arange(90), np.arange(90) % 3] = 50
    views = Views(body=collection.views["body"], links=links)
    names = {"body": collection.feature_names["body"], "links": collection.ids}
    days = [f"{2020 + i % 3}-01-15" for i in range(90)]
    told = {**collection.named(), "feature_names": names}
    time = tell(fitted(views), views, **told, dates=days, map=False).timeline
    assert "goal" in time.words[0]
    assert "doc" not in " ".join(time.words)


@pytest.mark.parametrize(
    ("step", "unit", "first"),
    [
        ("h", "hour", "2024-01-31 00:00"),
        ("D", "day", "2024-01-31"),
        ("W", "week", "2024-01-29"),
        ("M", "month", "2024-01"),
        ("Y", "year", "2024"),
    ],
)
def test_periods_fit_the_span(collection, model, step, unit, first):
    steps = np.arange(90) % 20
    start = np.datetime64("2024-01-31", "s")
    days = {"h": 1 / 24, "D": 1, "W": 7, "M": 30.4, "Y": 365.3}[step]
    dates = start + (steps * days * 86400).astype("m8[s]")
    time = timeline_of(read(model, collection.views), dates, collection.feature_names)
    assert (time.unit, time.periods[0]) == (unit, first)
    assert len(time.periods) in (20, 19)


def test_a_wrong_date_does_not_choose_the_unit(collection, model):
    days = np.datetime64("2024-01-31", "s") + (np.arange(90) % 20 * 86400).astype("m8[s]")
    days[0], days[1] = np.datetime64("1970-01-01"), np.datetime64("2099-12-31")
    time = timeline_of(read(model, collection.views), days, collection.feature_names)
    assert time.unit == "day"
    assert time.periods == [
        "before 2024-01-31",
        *(str(np.datetime64("2024-01-31") + i) for i in range(20)),
        "after 2024-02-19",
    ]
    counts = np.sum(time.counts, axis=0)
    assert (counts[0], counts[-1], counts.sum()) == (1, 1, 90)


def test_one_period_is_no_timeline(collection, model):
    reading = read(model, collection.views)
    assert timeline_of(reading, ["2024-01-01"] * 90, {}) is None
    with pytest.raises(ValueError, match="2 entries for 90 rows"):
        timeline_of(reading, ["2024-01-01"] * 2, {})


def test_the_page_has_all_three_and_can_do_without(story, collection, model):
    html = render(story)
    for part in ('<section id="map"', '<aside class="tree"', '<section id="time"'):
        assert part in html
    merges = json.loads(re.search("data-merges='(.*?)'", html)[1])
    assert [tuple(merge) for merge in merges] == story.tree.merges
    assert " style=" not in html
    bare = render(tell(model, collection.views, **collection.named(), map=False))
    assert '<section id="map"' not in bare
    assert '<section id="time"' not in bare
