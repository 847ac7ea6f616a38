"""Texts, words and marks of a page: packed into the room there is, and unpacked again."""

import base64
import json
import re
import signal
import zlib

import numpy as np
import pytest

from coem import MixtureClusterer
from coem.report import render, tell, write_report
from coem.report.index import LONGEST, WordIndex, words_of
from coem.report.library import Library
from coem.report.marks import marks_of
from coem.report.packing import bits, pack, rising, unpack, varints
from coem.report.readers import read
from coem.report.texts import Texts

TEXTS = [
    "To be, or not to be: I am",
    "東京都 3 “x” É e\u0301",
    "",
    "ก็ดี hello_1 A b",
    "ß Straße ΣΑΣ İstanbul",
    "a" * 50 + " " + "a" * 60,
]


class Bits:
    """Reads numbers of so many bits, one after the other."""

    def __init__(self, data):
        self.bits = "".join(f"{byte:08b}" for byte in data)
        self.at = 0

    def read(self, width):
        self.at += width
        return int(self.bits[self.at - width : self.at] or "0", 2)


def risen(data, counts, n):
    """Return the lists that `rising` wrote, by the plainest loop."""
    lists = [[None] * count for count in counts]
    source, todo = Bits(data), [(w, 0, c, 0, n - 1) for w, c in enumerate(counts)]
    while todo:
        following = []
        for w, place, size, low, high in todo:
            half = size // 2
            rest = size - 1 - half
            value = low + half + source.read((high - rest - low - half).bit_length())
            lists[w][place + half] = value
            if half:
                following.append((w, place, half, low, value - 1))
            if rest:
                following.append((w, place + half + 1, rest, value + 1, high))
        todo = following
    return lists


@pytest.mark.parametrize("n", [1, 2, 7, 100, 5000])
def test_rising_numbers_come_back(n):
    rng = np.random.default_rng(n)
    lists = [np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)) for _ in range(20)]
    counts = np.array([len(x) for x in lists])
    data = rising(counts, np.concatenate(lists), n)
    assert risen(data, counts.tolist(), n) == [x.tolist() for x in lists]


def test_numbers_of_any_size_are_written_in_bytes_of_seven_bits():
    values = np.array([0, 1, 127, 128, 300, 2**20, 2**40])
    expected = b""
    for value in values.tolist():
        while value >= 128:
            expected += bytes([value % 128 + 128])
            value //= 128
        expected += bytes([value])
    assert varints(values) == expected
    assert varints(np.zeros(0, int)) == bits(np.zeros(0, int), np.zeros(0, int)) == b""


def test_an_index_has_the_words_of_every_text():
    index = WordIndex.of(TEXTS)
    ends = index.counts.cumsum()
    found = {
        word: index.documents[end - count : end].tolist()
        for word, count, end in zip(index.words, index.counts, ends, strict=True)
    }
    rows = [{word[:LONGEST] for word in words_of(text)} for text in TEXTS]
    assert set(found) == set().union(*rows)
    assert found == {word: [i for i, row in enumerate(rows) if word in row] for word in found}
    assert found["京都"] == found["é"] == [1]
    assert found["a" * LONGEST] == [5]


def test_the_words_of_an_index_are_packed_by_what_they_share():
    (words, counts), (places,) = WordIndex.of(TEXTS).packed()
    read, before = [], ""
    for entry in unpack(words).decode().split("\n"):
        before = before[: ord(entry[0]) - 32] + entry[1:]
        read.append(before)
    assert read == WordIndex.of(TEXTS).words
    assert len(unpack(counts)) == len(read)
    documents = risen(base64.b64decode(places), list(unpack(counts)), len(TEXTS))
    assert documents[read.index("hello_1")] == [3]


# -- the room of a page -------------------------------------------------------------------------


class Row:
    """A document of a library."""

    def __init__(self, row):
        self.row = row


@pytest.fixture(scope="module")
def library():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(3000)]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(5, 900, 120)]
    return Library(Texts(120, texts=texts), None), texts


def unpacked(packed):
    """Return the texts that were packed, and the sizes of those that were cut."""
    texts = [t for block in packed.packs["texts"] for t in unpack(block).decode().split("\0")]
    return [t.partition("\1") for t in texts]


def test_all_texts_are_whole_if_there_is_room(library):
    library, texts = library
    packed = library.packed([Row(i) for i in range(120)], set(), np.inf)
    assert [t for t, _, _ in unpacked(packed)] == texts
    assert packed.facts["cut"] == 0
    assert packed.facts["index"]["cut"] is None


@pytest.mark.parametrize("room", [60_000, 150_000])
def test_texts_are_cut_to_the_room_there_is_and_favoured_ones_last(library, room):
    library, texts = library
    packed = library.packed([Row(i) for i in range(120)], {7}, room)
    assert sum(len(part) for parts in packed.packs.values() for part in parts) <= room
    found = unpacked(packed)
    n_cut = sum(bool(sign) for _, sign, _ in found)
    assert packed.facts["cut"] == n_cut > 0
    assert found[7][0] == texts[7]
    for (text, sign, size), whole in zip(found, texts, strict=True):
        assert whole.startswith(text)
        assert (size == str(len(whole))) if sign else text == whole


def test_an_index_without_room_says_how_far_it_looked(library):
    library, _ = library
    packed = library.packed([Row(i) for i in range(120)], set(), 20_000)
    assert 0 < packed.facts["index"]["cut"] < 3000
    parts = packed.packs["words"] + packed.packs["places"]
    assert sum(map(len, parts)) <= 0.75 * 20_000


def test_a_page_that_is_full_has_every_text(collection, model, tmp_path, monkeypatch):
    story = tell(model, collection.views, **collection.named())
    monkeypatch.setattr("coem.report.page.PAGE", 0)
    short = render(story)
    write_report(story, tmp_path / "page.html", full=True)
    whole = (tmp_path / "page.html").read_text()
    assert data_of(short)["cut"] > 0
    assert data_of(whole)["cut"] == 0
    assert len(data_of(whole)["id"]) == 90


def data_of(html):
    """Return what the script of a page knows."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html)[1])


# -- marks --------------------------------------------------------------------------------------


def test_words_weigh_what_explain_says(collection, model):
    reading = read(model, collection.views)
    title, body = marks_of(reading, collection.feature_names, titles=True)
    assert (title.view, title.place, body.view, body.place) == ("title", "title", "body", "text")
    told = model.explain(collection.views)
    for row in (0, 20, 60):
        part = told[row].views["body"]
        first, second = told[row].label, told[row].against
        counts = collection.views["body"][row].ravel()[part.features]
        weights = dict(zip(body.words, body.weights.astype(float) * body.step, strict=True))
        words = [collection.feature_names["body"][f] for f in part.features]
        own = [weights[w][first] - weights[w][second] if w in weights else 0.0 for w in words]
        said = part.contributions / counts
        # A view may speak more softly than its probabilities: then all words do.
        factor = float(said @ own) / float(np.dot(own, own))
        np.testing.assert_allclose(said, factor * np.array(own), atol=2 * body.step)
        assert factor > 0


def test_a_model_of_one_group_has_no_marks():
    X = np.array([[3, 1], [1, 3]])
    story = tell(MixtureClusterer(1, random_state=0).fit(X), X, feature_names=["a", "b"])
    assert story.library.marks == []
    assert data_of(render(story))["telling"] == []


def test_packing_gives_back_what_it_was_given():
    assert unpack(pack(b"\0\1\xff" * 100)) == b"\0\1\xff" * 100


def test_a_signal_is_heard_while_texts_are_packed():
    data = np.random.default_rng(0).integers(97, 107, 3_000_000, dtype=np.uint8).tobytes()
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    try:
        packed = pack(data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) > 5  # once, if all is deflated in one call
    assert base64.b64decode(packed) == zlib.compress(data, 9)
