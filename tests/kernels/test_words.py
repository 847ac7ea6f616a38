"""The words that the kernel finds are those of Python, on any number of threads."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coem.engine import LocalEngine
from coem.kernels import _compiled, words
from coem.kernels.words import Rule, Strings, tally_items, tally_text, to_csr

NASTY = [
    "",
    " ",
    "a b c",
    "The cat, THE Cat; the_cat cat's",
    "\u0130stanbul \u0130\u0130 D\u0130YARBAKIR",
    "stra\u00dfe STRASSE \u1e9e\u1e9e",
    "e\u0301te\u0301 \u00e9t\u00e9 n\u0303o",
    "\u039f\u0394\u039f\u03a3 \u03a3\u03a3 \u03a3 a\u03a3. \u03a3b",
    "123 4 5_6 ___ _ __ \u0663\u0664 \u00b2\u00b3 \u2167\u2168 \u00bd",
    "nul\0byte\0\0nul byte",
    "\U0001f600\U0001f600 smile\U0001f600smile \U0001d400\U0001d401",
    "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587 \u6f22",
    "\u023aB \u2c65b K\u212a \u2126\u2126",
    "x" * 70_000 + " " + "Y" * 16 + " " + "Y" * 17 + " " + "y" * 16 + "z",
    "abcdefgh abcdefgi abcdefghi abcdefghabcdefgh abcdefghabcdefghi",
    "\u01c5\u01c8 \u03f4\u03f4 \u1e9e \uff21\uff22 \u0345\u0345",
]


def pack(texts):
    data = [text.encode() for text in texts]
    offsets = np.append(0, np.cumsum([len(part) for part in data])).astype(np.int64)
    return Strings(offsets, np.frombuffer(b"".join(data), np.uint8))


def unpack(strings):
    data = strings.data.tobytes()
    return [data[a:b].decode() for a, b in pairwise(strings.offsets)]


def twin(texts, lowercase=True, ngram_range=(1, 1), stop_words=()):
    """Return the counts of each row by the rule in words."""
    rows = []
    for text in texts:
        found = re.findall(r"\b\w\w+\b", text.lower() if lowercase else text)
        found = [word for word in found if word not in stop_words]
        rows.append(
            Counter(
                " ".join(found[i : i + n])
                for n in range(ngram_range[0], ngram_range[1] + 1)
                for i in range(len(found) - n + 1)
            )
        )
    return rows


def counted(tally):
    """Return the counts of each row of a tally, once it is sure that all else fits them."""
    names, n = unpack(tally.words), len(tally.words.offsets) - 1
    indptr, indices, data = to_csr(tally, np.arange(n, dtype=np.int32))
    rows = []
    for a, b in pairwise(indptr):
        assert (np.diff(indices[a:b]) > 0).all()
        rows.append(
            Counter({names[j]: int(x) for j, x in zip(indices[a:b], data[a:b], strict=True)})
        )
    return names, rows


def count(texts, lowercase=True, n_jobs=1, **rule):
    texts = [text.lower() if lowercase and has_context(text) else text for text in texts]
    with LocalEngine(n_jobs):
        return tally_text(pack(texts), None, Rule(**rule), lowercase=lowercase)


def has_context(text):
    return any(character in text for character in words.CONTEXT)


@pytest.mark.parametrize("n_jobs", [1, 2, 5, 40])
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("lowercase", [True, False])
def test_nasty_texts_have_the_words_of_python(lowercase, ngram_range, n_jobs):
    tally = count(NASTY, lowercase, n_jobs, ngram_range=ngram_range)
    names, rows = counted(tally)
    expected = twin(NASTY, lowercase, ngram_range)
    assert rows == expected
    total = sum(expected, Counter())
    assert names == sorted(total)
    assert tally.n_times.tolist() == [total[name] for name in names]
    assert tally.n_rows.tolist() == [sum(name in row for row in expected) for name in names]


@given(st.lists(st.text(), max_size=6), st.booleans(), st.integers(1, 3))
def test_random_texts_have_the_words_of_python(texts, lowercase, n_jobs):
    assert counted(count(texts, lowercase, n_jobs))[1] == twin(texts, lowercase)


@given(st.lists(st.text("aAbB _\u00e9\u03a3\u0130", max_size=60), min_size=1, max_size=6))
def test_stop_words_go_before_n_grams_are_made(texts):
    stop = ["aa", "bb", "\u00e9a"]
    tally = count(texts, ngram_range=(1, 2), stop_words=pack(stop))
    assert counted(tally)[1] == twin(texts, ngram_range=(1, 2), stop_words=stop)


@pytest.mark.slow
def test_every_character_is_what_python_says():
    characters = [chr(c) for c in range(words.CODES) if not 0xD800 <= c < 0xE000]
    texts = [f"a{c}b {c}{c}" for c in characters]
    joined = ["\n".join(texts[i : i + 5000]) for i in range(0, len(texts), 5000)]
    assert counted(count(joined, n_jobs=2))[1] == twin(joined)
    # What the face asks of rows with a character of CONTEXT: lower case is its own lower case.
    everything = "".join(characters)
    assert everything.lower().lower() == everything.lower()
    assert not has_context(everything.lower())
    single = [c for c in characters if c not in words.CONTEXT]
    assert all(len(c.lower()) == 1 for c in single)
    lower = "".join(single).lower()
    assert [c.lower() for c in single] == list(lower)


def test_rows_with_a_character_of_context_are_found():
    texts = ["", "plain", "\u03a3", "", "a\u00e9\u0130", "\u00c4\u00b0", "\ua3ce\ub0c4"]
    assert words.context_rows(pack(texts)).tolist() == [2, 4]
    assert words.context_rows(pack(["plain"])).tolist() == []
    rows = pack(texts)
    assert words.context_rows(Strings(rows.offsets[3:], rows.data)).tolist() == [1]


def test_rows_that_are_not_valid_have_no_words():
    tally = tally_text(pack(["one two", "three", "four"]), np.array([1, 0, 1], bool), Rule())
    assert counted(tally)[1] == [Counter(["one", "two"]), Counter(), Counter(["four"])]


def test_a_fixed_vocabulary_keeps_its_columns():
    vocabulary = ["zebra", "cat dog", "dog", ""]
    rule = {"vocabulary": pack(vocabulary), "ngram_range": (1, 2)}
    tally = count(["cat dog", "bird", "dog zebra dog"], n_jobs=2, **rule)
    indptr, indices, data = to_csr(tally, np.arange(4, dtype=np.int32))
    assert indptr.tolist() == [0, 2, 2, 4]
    assert indices.tolist() == [1, 2, 0, 2]
    assert data.tolist() == [1, 1, 1, 2]


def test_items_are_kept_as_they_are_and_some_columns_are_left_out():
    first = (np.array([0, 2, 2]), pack(["A b", "x"]))
    second = (np.array([1, 3]), pack(["unused", "x", "x"]))
    tally = tally_items([first, second], Rule())
    names, rows = counted(tally)
    assert names == ["A b", "x"]
    assert rows == [Counter(["A b", "x"]), Counter(), Counter(["x", "x"])]
    indptr, indices, data = to_csr(tally, np.array([-1, 0], np.int32))
    assert (indptr.tolist(), indices.tolist(), data.tolist()) == ([0, 1, 1, 2], [0, 0], [1, 2])


def test_bytes_that_are_no_text_end_a_word_and_nothing_else():
    broken = [
        b"ab\xffcd",
        b"ab\xc3",
        b"\xe6\xbc",
        b"\xed\xa0\x80xy",
        b"\xc0\x80zz",
        b"\xf4\x90\x80\x80",
    ]
    offsets = np.append(0, np.cumsum([len(row) for row in broken])).astype(np.int64)
    tally = tally_text(Strings(offsets, np.frombuffer(b"".join(broken), np.uint8)), None, Rule())
    assert unpack(tally.words) == ["ab", "cd", "xy", "zz"]


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 3))
def test_any_bytes_are_read_without_harm(rows, n_jobs):
    offsets = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    with LocalEngine(n_jobs):
        strings = Strings(offsets, np.frombuffer(b"".join(rows), np.uint8))
        tally = tally_text(strings, None, Rule((1, 2)))
    found = unpack(tally.words)  # valid UTF-8, or this would fail
    assert found == sorted(found)


def test_what_points_outside_is_refused():
    letters = np.zeros(128, np.int32)
    data = np.zeros(3, np.uint8)
    for offsets in ([0, 4], [-1, 2], [2, 1]):
        counter = _compiled.WordCounter(1, 1)
        with pytest.raises(ValueError, match="offsets point beyond"):
            counter.text(np.array(offsets), data, None, letters, 0, 1)
    counter = _compiled.WordCounter(1, 1)
    good = np.array([0, 3])
    for lo, hi in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ValueError, match="rows out of range"):
            counter.text(good, data, None, letters, lo, hi)
    with pytest.raises(ValueError, match="one entry a row"):
        counter.text(good, data, np.zeros(2, np.uint8), letters, 0, 1)
    with pytest.raises(ValueError, match="ASCII"):
        counter.text(good, data, None, letters[:9], 0, 1)
    with pytest.raises(ValueError, match="starts point beyond"):
        counter.items(np.array([0, 2]), good, data)
    with pytest.raises(ValueError, match="twice"):
        _compiled.WordCounter(1, 1).know(*pack(["a", "a"]))


def test_columns_and_outputs_of_other_sizes_are_refused():
    tally = tally_items([(np.array([0, 2]), pack(["x", "y"]))], Rule())
    (counter,) = tally.counters
    with pytest.raises(ValueError, match="one entry a word"):
        counter.count_kept(np.zeros(1, np.int32), np.zeros(1, np.int64))
    columns, indptr = np.arange(2, dtype=np.int32), np.array([0, 2], np.int32)
    with pytest.raises(ValueError, match="one entry a row"):
        counter.count_kept(columns, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="beyond the indices"):
        counter.fill(columns, indptr, np.zeros(1, np.int32), np.zeros(1, np.float32))
    wide = np.array([0, 2], np.int64), np.zeros(2, np.int64), np.zeros(2, np.float32)
    counter.fill(columns, *wide)
    assert wide[1].tolist() == [0, 1]
