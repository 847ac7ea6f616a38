"""Reuters-21578: the published counts, and stories written here."""

import numpy as np
import pytest
from sklearn.utils.multiclass import type_of_target

from coem.datasets import fetch_reuters
from coem.datasets._reuters import _parse_date, _parse_text


def story(number, split, topics, text, seen="YES", date=" 3-MAR-1987 09:15:05.40"):
    """Return a story in the form of the collection."""
    named = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{seen}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="0" NEWID="{number}">\n'
        f"<DATE>{date}</DATE>\n<TOPICS>{named}</TOPICS>\n<PLACES><D>nowhere</D></PLACES>\n"
        f"<UNKNOWN>&#5;&#5;C T</UNKNOWN>\n{text}\n</REUTERS>\n"
    )


def plain(title, body):
    return (
        f"<TEXT>&#2;\n<TITLE>{title}</TITLE>\n<DATELINE> HERE, March 3 - </DATELINE>"
        f"<BODY>{body}\n&#3;</BODY></TEXT>"
    )


BRIEF = '<TEXT TYPE="BRIEF">&#2;\n******<TITLE>TEA UP\n</TITLE>Blah blah blah.\n&#3;\n\n</TEXT>'
UNPROC = '<TEXT TYPE="UNPROC">&#2;\nTEA REPORT\n  price &lt;up> 2\n&#3;\n\n</TEXT>'
HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
FILES = {
    "reut2-001.sgm": HEAD
    + story(4, "TEST", ["tea", "tea"], plain("TEA  AND\nMILK", "milk &amp; tea, &lt;Tea Co> rises"))
    + story(5, "TEST", ["milk"], UNPROC, date="31-MAR-1987 605:12:19.12"),
    "reut2-000.sgm": HEAD
    + story(1, "TRAIN", ["tea", "milk"], plain("MILK AND TEA", "tea rises"))
    + story(2, "TRAIN", ["salt"], BRIEF)
    + story(3, "TRAIN", ["tea"], plain("TEA", "unseen"), seen="NO")
    + story(6, "NOT-USED", [], plain("TEA", "unseen"), seen="BYPASS"),
}


@pytest.fixture
def handmade(put):
    tree = {name: text.encode("latin-1") for name, text in FILES.items()}
    put("reuters21578", files={"reuters21578.tar": tree})


# the real data ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_modapte_has_the_published_counts(load):
    data = load("reuters21578", fetch_reuters)
    train, test = data.split == "train", data.split == "test"
    assert (train.sum(), test.sum(), len(data.split)) == (9603, 3299, 12_902)
    assert data.target.shape == (12_902, 90)
    sizes = zip(data.target[train].sum(axis=0), data.target[test].sum(axis=0), strict=True)
    sizes = dict(zip(data.target_names.tolist(), sizes, strict=True))
    assert {topic: size for topic, size in sizes.items() if sum(size) >= 237} == {
        "earn": (2877, 1087),
        "acq": (1650, 719),
        "money-fx": (538, 179),
        "grain": (433, 149),
        "crude": (389, 189),
        "trade": (369, 117),  # 118 topic tags: one story has it twice
        "interest": (347, 131),
        "wheat": (212, 71),
        "ship": (197, 89),
        "corn": (181, 56),  # 182 topic tags, for the same reason
    }
    assert min(map(min, sizes.values())) >= 1
    check_form(data)
    assert not np.isnat(data.dates).any()
    assert (data.dates.astype("datetime64[Y]") == np.datetime64("1987")).all()


def check_form(data):
    n = len(data.ids)
    assert len(set(data.ids)) == n
    assert len(data.views) == len(data.text) == len(data.titles) == len(data.topics) == n
    assert type_of_target(data.target) == "multilabel-indicator"
    assert data.target.has_canonical_format
    assert set(data.target.data) == {1}
    for view in data.views.names:
        assert data.views[view].format == "csr"
        assert data.views[view].dtype == np.float32
        assert data.views[view].shape[1] == len(data.feature_names[view])
    assert not any("\x03" in text or "&lt;" in text or "<BODY" in text for text in data.text)
    assert not any(text.lower().startswith("blah") for text in data.text)
    assert f"{n} newswire stories" in data.DESCR


# stories written here --------------------------------------------------------------------------


def test_stories_of_every_kind(handmade):
    data = fetch_reuters(min_df=1)
    assert data.ids.tolist() == ["1", "2", "4", "5"]
    assert data.split.tolist() == ["train", "train", "test", "test"]
    assert data.topics == [("tea", "milk"), ("salt",), ("tea",), ("milk",)]
    assert data.target_names.tolist() == ["milk", "tea"]
    assert data.target.toarray().tolist() == [[1, 1], [0, 0], [0, 1], [1, 0]]
    assert data.titles == ["MILK AND TEA", "TEA UP", "TEA AND MILK", ""]
    assert data.text[:3] == ["tea rises", "", "milk & tea, <Tea Co> rises"]
    assert data.text[3] == "TEA REPORT\n  price <up> 2"
    assert data.dates[0] == np.datetime64("1987-03-03T09:15:05")
    assert np.isnat(data.dates).tolist() == [False, False, False, True]
    tea = data.feature_names["body"].tolist().index("tea")
    assert data.views["body"].toarray()[:, tea].tolist() == [1, 0, 2, 1]
    check_form(data)


def test_all_stories(handmade):
    data = fetch_reuters(subset="all", views=("title",))
    assert data.ids.tolist() == ["1", "2", "3", "6", "4", "5"]
    assert data.split.tolist() == ["train", "train", "unused", "unused", "test", "test"]
    assert data.target_names.tolist() == ["milk", "tea"]
    assert data.views.names == ("title",)
    assert list(data.feature_names) == ["title"]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("26-FEB-1987 15:01:01.79", "1987-02-26T15:01:01"),
        ("  3-MAR-1987  09:15:05.40&#5;&#5;&#5;RM", "1987-03-03T09:15:05"),
        ("9-APR-1987 00:00:00.00    # guesswork ", "1987-04-09T00:00:00"),
        ("31-APR-1987 00:00:00.00", None),
        ("01-XXX-1987 00:00:00.00", None),
        ("", None),
    ],
)
def test_dates_with_noise_around_them(date, expected):
    seconds = None if expected is None else int(np.datetime64(expected, "s").astype(int))
    assert _parse_date(f"<DATE>{date}</DATE>") == seconds


def test_a_story_without_text():
    assert _parse_text("<DATE></DATE>") == ("", "")
    assert _parse_text("<TEXT><TITLE>Tea</TITLE>leaves</TEXT>") == ("Tea", "leaves")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subset": "lewis"}, "subset must be one of 'modapte', 'all'; got 'lewis'"),
        ({"views": ("subject",)}, "views must be one of 'title', 'body'; got 'subject'"),
    ],
)
def test_wrong_arguments_are_named(own, options, message):
    with pytest.raises(ValueError, match=message):
        fetch_reuters(**options)
