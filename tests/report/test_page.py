"""The page: whole, the same every time, and documents are nothing but text on it."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.families import Multinomial
from coem.report import Naming, render, svg, tell, write_report
from coem.report.facts import facts_of
from coem.report.packing import unpack
from coem.report.page import embed, number, percent, pictures
from coem.report.story import brief
from coem.report.texts import clean, excerpt
from coem.selection import stability
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def story(collection, model):
    found = stability(model, collection.views, n_runs=2, random_state=0)
    # Every document is an example, so that all of them are on the page.
    return tell(
        model,
        collection.views,
        **collection.named(),
        stability=found,
        settings={"file <b>": "a & b"},
        heading="Groups of <i>documents</i>",
        n_examples=90,
    )


@pytest.fixture(scope="module")
def html(story):
    return render(story)


class Reader(HTMLParser):
    """Collects the elements, their attributes and the text outside of scripts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.open, self.scripts = [], [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open[-1:] == ["script"] else self.text).append(data)


def packs(html):
    """Return the parts of the packs of a page by their names."""
    found = re.findall(r'<script type="text/plain" id="pack-(\w+)">([^<]*)</script>', html)
    return {name: text.split() for name, text in found}


def test_every_element_is_closed_and_one_script_runs(html):
    page = Reader(html)
    assert page.open == []
    kinds = [v for tag, name, v in page.attributes if tag == "script" and name == "type"]
    assert set(kinds) == {"application/json", "text/plain"}
    assert page.tags.count("script") == len(kinds) + 1
    assert page.tags.count("img") == page.tags.count("i") == 0
    handlers = [name for _, name, _ in page.attributes if name.startswith("on")]
    assert handlers == []


def test_nothing_is_asked_for_from_anywhere(html):
    addresses = [v for _, name, v in Reader(html).attributes if name in ("href", "src")]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_links_lead_somewhere_and_ids_are_unique(html):
    page = Reader(html)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {v[1:] for _, name, v in page.attributes if name == "href"}
    assert targets <= set(ids)


@pytest.mark.parametrize("document", [d for d in HOSTILE if d.strip()])
def test_a_hostile_document_is_text(html, document):
    page = Reader(html)
    shown = excerpt(document)
    assert shown in "".join(page.text)
    texts = [t for block in packs(html)["texts"] for t in unpack(block).decode().split("\0")]
    assert len(texts) == 90
    assert clean(document.strip()) in texts


def test_the_data_cannot_leave_their_script(html):
    start = html.index('id="data">') + len('id="data">')
    block = html[start : html.index("</script>", start)]
    assert json.loads(block)["id"][0] == "doc 0"
    assert not re.search("[<>&\u2028\u2029]", block)
    assert "&lt;i&gt;documents&lt;/i&gt;" in html
    assert "file &lt;b&gt;" in html


def test_no_bound_on_errors_is_promised(html):
    said = " ".join(Reader(html).text)
    assert "one of them at least is wrong" in said
    assert "ound on its error" not in said
    assert "no guarantee" not in said


def test_same_story_same_bytes(collection, html, story):
    again = collection.fit()
    other = tell(
        again,
        collection.views,
        **collection.named(),
        stability=stability(again, collection.views, n_runs=2, random_state=0),
        settings={"file <b>": "a & b"},
        heading="Groups of <i>documents</i>",
        n_examples=90,
    )
    assert render(story) == html
    assert render(other) == html


def test_tables_have_captions_and_headings_a_scope(html):
    page = Reader(html)
    assert page.tags.count("table") == page.tags.count("caption")
    scopes = [v for tag, name, v in page.attributes if tag == "th" and name == "scope"]
    assert len(scopes) == page.tags.count("th")
    pictures = [v for tag, name, v in page.attributes if tag == "svg" and name == "role"]
    hidden = [v for tag, name, v in page.attributes if tag == "svg" and name == "aria-hidden"]
    assert len(pictures) + len(hidden) == page.tags.count("svg")
    assert len(pictures) >= 6


def test_the_largest_group_comes_first(story, html):
    sizes = [
        story.groups[int(i)].size
        for i in re.findall(r'<article class="card" id="group-(\d+)"', html)
    ]
    assert len(sizes) == len(story.groups)
    assert sizes == sorted(sizes, reverse=True)


def test_a_report_is_written_whole_or_not_at_all(story, html, tmp_path, monkeypatch):
    path = write_report(story, tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == html
    assert path.stat().st_mode & 0o400

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_report(story, tmp_path / "report.html")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        write_report(story, tmp_path / "missing" / "report.html")


def test_pages_of_models_with_less_to_tell(collection):
    counts = collection.views["body"]
    for model in (SphericalKMeans(2, random_state=0), MixtureClusterer(1, random_state=0)):
        page = Reader(render(tell(model.fit(counts), counts)))
        ids = [v for _, name, v in page.attributes if name == "id"]
        assert "views" not in ids
        assert "labels" not in ids
        assert page.open == []


def test_hostile_names_of_views_features_and_classes():
    bad = "</script><b onclick=x>"
    X = np.array([[5, 1, 0], [4, 2, 0], [0, 1, 6], [0, 2, 5]])
    views = Views({bad: X, "other": X})
    model = MixtureClusterer(2, random_state=0).fit(views)
    html = render(
        tell(
            model,
            views,
            feature_names={bad: [bad, "y", "z"], "other": ["a", bad + "2", "c"]},
            ids=[bad + str(i) for i in range(4)],
            titles=[bad] * 4,
            labels=[bad, bad, "b", "b"],
        )
    )
    page = Reader(html)
    assert page.open == []
    kinds = [v for tag, name, v in page.attributes if tag == "script" and name == "type"]
    assert set(kinds) == {"application/json", "text/plain"}
    assert page.tags.count("script") == len(kinds) + 1
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


def test_excerpts_are_short_and_cut_between_words():
    assert excerpt("one two  three\nfour", 14) == "one two three…"
    assert excerpt("a" * 1_000_000) == "a" * 299 + "…"
    assert excerpt(" " * 100_000 + "late") == "late"
    assert excerpt(None) == excerpt(float("nan")) == excerpt("") == excerpt(" \n ") == ""
    assert max(len(excerpt("word " * n)) for n in range(50, 80)) <= 300
    assert clean("a\x00b\ud800c") == "a\ufffdb\ufffdc"


def test_embedded_json_is_json():
    value = {"a": ["</script>", "<!--", "&", "\u2028", '"', "\U0001f600", None, float("nan")]}
    text = str(embed(value))
    assert json.loads(text) == {"a": [*value["a"][:-1], None]}
    assert not re.search("[<>&\u2028]", text)


def test_numbers_are_short():
    assert [percent(x) for x in (0.5, 0.051, 0.0001, 0.0, None)][:4] == [
        "50%",
        "5.1%",
        "<0.1%",
        "0%",
    ]
    assert percent(None) == percent(float("nan")) == number(None) == "\u2013"
    assert [number(x) for x in (1234, 1234.5, 0.12345)] == ["1,234", "1,234", "0.123"]


# -- pictures -----------------------------------------------------------------------------------


def places(picture):
    (points,) = re.findall(r'points="([^"]*)"', picture)
    return np.array([[float(v) for v in p.split(",")] for p in points.split()])


def test_a_curve_has_its_points_where_they_belong():
    found = places(svg.line([1.0, 3.0, 2.0], "t"))
    assert (np.diff(found[:, 0]) > 0).all()
    assert np.diff(found[:, 0])[0] == pytest.approx(np.diff(found[:, 0])[1])
    down = found[:, 1]
    assert down[1] < down[2] < down[0]  # larger is higher
    assert down[2] == pytest.approx((down[0] + down[1]) / 2, abs=0.06)
    for flat in ([2.0, 2.0], [0.0], [np.nan, 1.0], []):
        assert "nan" not in svg.line(flat, "t")


def test_a_heat_map_has_a_cell_for_every_value_that_is_not_zero():
    picture = svg.heat(
        [[1, 0], [np.nan, 3]], ["a<", "b"], ["c", "d"], "t", shade=[[0.2, 0], [0, 1]]
    )
    assert picture.count('class="heat"') == 2
    assert re.findall(r'fill-opacity="([^"]*)"', picture) == ["0.2", "1.0"]
    assert "a&lt; / c: 1.0" in picture
    assert isinstance(picture, Markup)


def test_bars_and_reliability_are_drawn_to_scale():
    assert 'class="fill" width="50"' in svg.bar(0.2, 0.4)
    assert 'class="fill" width="0.0"' in svg.bar(0.2, 0.0)
    picture = svg.reliability([0.5, np.nan, 1.0], [0.5, np.nan, 0.0], [3, 0, 1], "t")
    (x0, y0), (x1, y1) = places(picture)
    assert x0 < x1
    assert y0 < y1
    assert picture.count("<circle") == 2


def test_axes_have_round_numbers():
    assert svg._ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert svg._ticks(-1.155e6, -1.142e6)[0] == -1155000
    assert [svg._short(x) for x in (0.5, 1234, 12345, -1.155e6)] == [
        "0.5",
        "1234",
        "12.35k",
        "-1.155M",
    ]


def axis(picture):
    """Return the texts beside the upright axis, as numbers."""
    found = re.findall(r'<text class="end"[^>]*>([^<]*)<', picture)
    sizes = {"k": 1e3, "M": 1e6}
    return [float(text.rstrip("kM")) * sizes.get(text[-1], 1) for text in found]


@pytest.mark.parametrize(
    "values",
    [(-600_020, -600_001), (-24_345, -24_335), (1e6, 1e6 + 0.01), (-9_999, -10_003), (0.1, 0.2)],
)
def test_the_texts_of_an_axis_differ_by_the_same_step(values):
    ticks = axis(svg.line(values, "t"))
    steps = np.diff(ticks)
    assert len(ticks) >= 2
    assert (steps > 0).all()
    np.testing.assert_allclose(steps, steps[0], rtol=0.05)


def test_an_axis_of_values_that_are_all_but_the_same_has_distinct_texts():
    ticks = axis(svg.line([1e6, 1e6 + 1e-9], "t"))
    assert len(set(ticks)) == len(ticks) >= 2


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_axis_of_a_share_ends_at_one(share, story):
    assert min(axis(svg.line([share] * 3, "t", limits=(0.0, 1.0)))) >= 0
    trace = {**story.trace, "agreement": [share] * 3}
    assert max(axis(pictures(dataclasses.replace(story, trace=trace))["agreeing"])) <= 1


def test_a_group_of_empty_rows_has_no_typical_ones():
    X = np.repeat([[5, 1, 0, 0], [0, 0, 1, 6]], [5, 10], axis=0)
    model = MixtureClusterer(2, random_state=0).fit(X)
    small, large = model.predict(X[[0, -1]])
    rows = np.vstack([X[:5], np.zeros((20, 4), int)])
    story = tell(model, rows)
    assert (story.groups[small].size, story.groups[small].empty) == (5, 0)
    # Without looking, a row is most probably of the larger group.
    assert (story.groups[large].size, story.groups[large].empty) == (20, 20)
    assert story.groups[large].typical == story.groups[large].doubtful == []
    assert story.assignments.empty.tolist() == [False] * 5 + [True] * 20
    page = render(story)
    assert "20 documents (20 of them empty)" in page
    assert "20 documents are empty in every view" in page
    assert "empty in every view" not in render(tell(model, rows[:5]))


def made(page):
    """Return the rows of the table that says how a model was made."""
    (table,) = re.findall(r'<table class="small settings">(.*?)</table>', page, re.S)
    cells = re.findall(r"<th.*?><bdi>(.*?)</bdi></th><td><bdi>(.*?)</bdi></td>", table)
    assert len(cells) == table.count("<tr>") == len(dict(cells))
    return dict(cells)


def test_how_it_was_made_says_each_thing_once_and_plainly(collection):
    model = collection.fit(max_iter=7, tol=0.0, n_init=2)
    settings = {"max_iter": 7, "seed": 5, "text": ["a", "b"], "max_df": 1.0}
    told = tell(model, collection.views, settings=settings)
    rows = made(render(told))
    assert rows["family"] == "Multinomial(alpha=0.1)"
    assert (rows["max_iter"], rows["max_df"], rows["text"]) == ("7", "1.0", "a, b")
    assert (rows["n_components"], rows["n_init"], rows["seed"]) == ("3", "2", "5")
    assert "random_state" not in rows
    rows = made(render(tell(model, collection.views, settings={"k": 3, "restarts": 9})))
    assert "n_components" not in rows  # k is the same
    assert (rows["n_init"], rows["restarts"]) == ("2", "9")  # and this is not
    assert rows["random_state"] == "0"


def test_parameters_are_written_as_people_do():
    families = {"text": Multinomial(1.0), "n": [1.5, 2.0, True, None]}
    assert brief(families) == "text: Multinomial(alpha=1), n: 1.5, 2.0, yes, None"
    assert brief(np.zeros((2, 3))) == "array of shape (2, 3)"
    assert brief("a\x1b\nb") == "a\ufffd b"


def test_a_group_that_was_merged_away_is_in_no_picture(collection, model):
    naming = Naming(("one", "two", "three")).merge([0, 2], "both")
    found = pictures(tell(model, collection.views, **collection.named(), naming=naming))
    _, table = found["tables"][0]
    for picture in (table, found["confusion"]):
        assert "0 · both" in picture
        assert "1 · two" in picture
        assert "2 · " not in picture
    across = re.findall(r'<text[^>]*class="mid"[^>]*>([^<]+)</text>', table)
    assert "2" not in across[:2]


@pytest.mark.parametrize("low", [0.0, 0.0004, 0.05, 0.0989, 0.484, 0.9855, 0.99])
def test_the_script_shows_the_per_cent_of_the_page(story, low):
    """A twin of `coem.percent` in core.js, which has thousandths."""
    shares = low + np.arange(200) / 20_000
    shares = shares[(shares > 0) & (shares <= 1)].tolist()
    documents = [dataclasses.replace(story.documents[0], probability=share) for share in shares]
    for share, told in zip(shares, facts_of(story, documents)["p"], strict=True):
        assert abs(told - 1000 * share) < 1.01
        shown = f"{told / 10:.1f}%" if told < 100 else f"{(told + 5) // 10}%"
        assert ("<0.1%" if told == 0 else shown) == percent(share), share


def test_columns_of_numbers_say_which_mean_is_whose():
    price = np.repeat([1000.0, 3000.0], 30) + np.arange(60)
    model = MixtureClusterer(2, family="gaussian", random_state=0).fit(price[:, None])
    page = render(tell(model, price[:, None], feature_names=["price"], map=False))
    text = re.sub("<[^>]*>", "", page)
    assert "price: mean 1,014 here, 2,030 over all" in text
