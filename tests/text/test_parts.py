"""A `TextViews` that learns from parts of a table knows what one that sees all of it knows."""

import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from coem.io import number_columns
from coem.kernels.words import Tally
from coem.text import TextViews
from coem.text import _tallies as tallies
from coem.text._tables import strings
from coem.views import RowError

WORDS = ["ship", "crew", "Captain", "bread", "flour", "größe", "ΣΊΣΥΦΟΣ", "the", "and", "of", "été"]
KINDS = {
    "body": "body",
    "both": ["title", "body"],
    "tags": "tags:list",
    "refs": "refs:list",
    "cited": "refs:inbound",
    "maker": "maker:category",
    "things": ["maker:category", "colour:category"],
    "price": "price:number",
    "sizes": ["price:number", "year:number"],
    "meaning": "meaning:vector",
    "half": "half:vector",
    "written": "written:vector",
}


def documents(n_rows, seed=0):
    rng = np.random.default_rng(seed)

    def text(most):
        words = rng.choice(WORDS, rng.integers(0, most))
        return " ".join([*words, f"w{rng.zipf(1.6) % 5000}"]) if len(words) else None

    def some(value):
        return None if rng.random() < 0.1 else value

    def vector():
        return some(rng.normal(size=3).round(3).tolist())

    ids = [f"d{i}" for i in range(n_rows)]
    rows = {
        "id": ids,
        "body": [text(40) for _ in ids],
        "title": [text(6) for _ in ids],
        "tags": [",".join(rng.choice(["a b", "c", "d"], rng.integers(0, 4))) for _ in ids],
        "refs": [some(rng.choice(ids, rng.integers(0, 4)).tolist()) for _ in ids],
        "maker": [some(str(rng.choice(["VW", "BMW", "Opel"]))) for _ in ids],
        "colour": [some(int(rng.integers(0, 4))) for _ in ids],
        "price": [some(float(rng.integers(1, 90))) for _ in ids],
        "year": rng.integers(1990, 2020, n_rows).tolist(),
        "when": [f"2024-0{rng.integers(1, 9)}-1{rng.integers(0, 9)}" for _ in ids],
        "meaning": [vector() for _ in ids],
        "written": [some("[0.5, 1, 2]") for _ in ids],
    }
    half = pa.array([vector() for _ in ids], pa.list_(pa.float32()))
    return pa.table(rows).append_column("half", half)


def cut(table, *places):
    bounds = [0, *places, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(bounds)]


def same(A, B):
    assert A.names == B.names
    for name in A.names:
        a, b = A[name], B[name]
        assert a.dtype == b.dtype
        if hasattr(a, "indptr"):
            assert np.array_equal(a.indptr, b.indptr)
            assert np.array_equal(a.indices, b.indices)
            a, b = a.data, b.data
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def check(table, parts, **settings):
    whole, by_parts = TextViews(**settings), TextViews(**settings)
    views = whole.fit_transform(table)
    assert by_parts.fit_parts(parts) is by_parts
    for name in ("views_", "guesses_", "stop_lists_", "languages_", "n_features_in_"):
        assert getattr(by_parts, name) == getattr(whole, name), name
    for name in ("vocabulary_", "stop_words_"):
        own, other = getattr(by_parts, name), getattr(whole, name)
        assert {v: w.tolist() for v, w in own.items()} == {v: w.tolist() for v, w in other.items()}
    for view, links in whole.links_.items():
        for end in links:
            assert by_parts.links_[view][end].tolist() == links[end].tolist()
    assert by_parts.kept_ == pytest.approx(whole.kept_, rel=1e-12)
    first = 0
    for part in filter(len, parts):
        same(by_parts.transform(part), views[first : first + part.num_rows])
        first += part.num_rows


@pytest.mark.filterwarnings("ignore:view 'tags'")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_view_is_that_of_the_whole_table(kind):
    table = documents(700)
    check(table, cut(table, 5, 5, 300, 620), views={kind: KINDS[kind]}, id="id")


@pytest.mark.parametrize(
    "settings",
    [
        {"min_df": 2},
        {"min_df": 0.01, "max_df": 0.4},
        {"max_features": 40},
        {"ngram_range": (1, 3), "min_df": 2, "stop_words": "english"},
        {"stop_words": "corpus"},
        {"stop_words": "auto+corpus", "lowercase": False},
        {"stop_words": ["ship"], "token_pattern": r"\w"},
        {"max_length": 9.0},
        {"scale_length": 20.0, "max_length": {"title": 3.0}},
    ],
)
def test_words_are_those_of_the_whole_table(settings):
    table = documents(900, seed=1)
    views = {"title": "title", "body": "body"}
    check(table, cut(table, 1, 77, 450), views=views, **settings)


@pytest.mark.parametrize("n_rows", [20, 90, 999, 1000, 1001, 2500])
def test_the_guess_is_that_of_the_whole_table(n_rows):
    table = documents(n_rows, seed=2)
    check(table, cut(table, 1, n_rows // 2), id="id", stop_words="auto")


def test_what_stands_between_items_is_found_in_all_rows():
    rows = ["New York", "Rome"] * 40
    for last, found in (("a|b", "|;"), ("a, b", ","), ("New York Rome", " "), ("x", "|;")):
        table = pa.table({"places": [*rows, last]})
        reader = TextViews({"places": "places:list"}, min_df=1).fit_parts(cut(table, 10, 80))
        assert reader.views_["places"].get("between", "|;") == found
        check(table, cut(table, 10, 80), views={"places": "places:list"})


def test_threads_change_nothing():
    table = documents(400)
    views = {"body": "body"}
    one, two = (TextViews(views, n_jobs=n).fit_parts(cut(table, 200)) for n in (1, 2))
    assert one.vocabulary_["body"].tolist() == two.vocabulary_["body"].tolist()


def test_very_many_words_are_dropped_while_they_are_in_one_row(monkeypatch):
    monkeypatch.setattr(tallies.Words.__init__, "__defaults__", (20,))
    table = pa.table({"body": [f"ship x{i} y{i}" for i in range(200)]})
    reader = TextViews({"body": "body"})
    with pytest.warns(UserWarning, match="view 'body' has very many different words: .* dropped"):
        reader.fit_parts(cut(table, *range(5, 200, 5)))
    assert "ship" in reader.vocabulary_["body"]
    assert len(reader.vocabulary_["body"]) < 100


@pytest.mark.parametrize(
    ("views", "settings", "says"),
    [
        ({"body": "body"}, {"latent": 5}, "select and latent need all rows"),
        ({"v": np.ones((30, 2))}, {}, "view 'v': an array has a row for each row of one table"),
        ({"b": "body"}, {"min_df": 31}, "there are only 30 rows"),
        ({"b": "nothing:vector"}, {}, "view 'b': every row is missing"),
    ],
)
def test_what_cannot_be_done_is_said(views, settings, says):
    table = documents(30).append_column("nothing", pa.nulls(30))
    with pytest.raises(ValueError, match=says):
        TextViews(views, **settings).fit_parts(cut(table, 10))


def test_rows_of_errors_are_those_of_the_whole_table():
    table = pa.table({"price": ["1"] * 20 + ["cheap"] + ["2"] * 9})
    with pytest.raises(RowError, match="row 20: 'cheap' in column 'price'"):
        TextViews({"p": "price:number"}).fit_parts(cut(table, 7, 15))


def test_a_failure_leaves_the_transformer_as_it_was():
    reader = TextViews({"body": "body"}).fit(documents(30))
    before = reader.vocabulary_
    with pytest.raises(ValueError, match="no rows"):
        reader.fit_parts([documents(5).slice(0, 0)])
    assert reader.vocabulary_ is before


@pytest.mark.parametrize("width", [7, 1 << 12])
def test_hashed_columns_are_those_of_the_whole_table(width):
    table = documents(300, seed=3)
    views = {
        "body": "body",
        "tags": "tags:list",
        "maker": "maker:category",
        "price": "price:number",
    }
    check(table, cut(table, 100, 101), views=views, hash_features=width, stop_words="english")


def test_a_hashed_view_counts_every_word():
    table = {"body": ["ship ship crew", "unheard words", None]}
    reader = TextViews({"body": "body"}, hash_features=1 << 16)
    views = reader.fit_transform(table)["body"]
    assert views.shape == (3, 1 << 16)
    assert views.sum(axis=1).tolist() == [3, 2, 0]
    ship = reader.vocabulary_["body"].tolist().index("ship")
    assert views[[0], [ship]].tolist() == [2]
    new = reader.transform({"body": ["never seen before"]})["body"]
    assert new.sum() == 3
    assert sum(not name.startswith("#") for name in reader.vocabulary_["body"]) == 4


def test_words_that_share_a_column_are_added():
    views = TextViews({"body": "body"}, hash_features=2).fit_transform({"body": ["a1 b2 c3 d4 e5"]})
    assert views["body"].sum() == 5
    assert views["body"].has_canonical_format


@pytest.mark.parametrize("name", ["min_df", "max_df", "max_features"])
def test_hashes_choose_no_words(name):
    value = {"max_df": 0.5}.get(name, 2)
    with pytest.raises(ValueError, match=f"{name} chooses words of a vocabulary"):
        TextViews({"body": "body"}, hash_features=8, **{name: value}).fit({"body": ["a1", "b1"]})


def test_a_hashed_transformer_can_be_saved(tmp_path):
    import coem

    table = {"body": ["ship and crew", "bread and flour"]}
    reader = TextViews({"body": "body"}, hash_features=50).fit(table)
    reader.save(tmp_path / "r.coem")
    same(coem.load(tmp_path / "r.coem").transform(table), reader.transform(table))


MULTIPLIER = 0xC6A4A7935BD1E995  # of the hash of strings in libstdc++, which Arrow uses here
MASK = 2**64 - 1


def crafted(n):
    """Return n words of 23 letters that have the same hash in a table of Arrow."""
    rng = np.random.default_rng(0)
    factor = np.uint64(MULTIPLIER)
    inverse = np.uint64(pow(MULTIPLIER, -1, 2**64))

    def shifted(x):
        return x ^ (x >> np.uint64(47))

    def block(letters):
        return shifted(letters.copy().view("<u8").ravel() * factor) * factor

    found = []
    # The key of a word is a zero, its length in eight bytes, and its letters.
    length = np.array([0, 23, 0, 0, 0, 0, 0, 0], np.uint8)
    first = (np.uint64(0xC70F6907 ^ (32 * MULTIPLIER & MASK)) ^ block(length)) * factor
    while sum(map(len, found)) < n:
        letters = rng.integers(1, 128, (1 << 18, 16)).astype(np.uint8)
        letters[:, 0] = 0  # the last byte of the length
        state = (first ^ block(letters[:, :8])) * factor
        state = (state ^ block(letters[:, 8:])) * factor
        last = shifted((state ^ np.uint64(1)) * inverse) * inverse
        last = last.view(np.uint8).reshape(-1, 8)
        good = ((last > 0) & (last < 128)).all(axis=1)
        found.append(np.concatenate([letters[good, 1:], last[good]], axis=1))
    return [row.tobytes().decode() for row in np.concatenate(found)[:n]]


def seconds(call):
    started = time.process_time()
    call()
    return time.process_time() - started


def test_words_that_have_one_hash_in_arrow_are_summed_as_fast_as_others():
    n = 8000
    rng = np.random.default_rng(1)
    others = [row.tobytes().decode() for row in rng.integers(97, 123, (n, 23)).astype(np.uint8)]

    def summed(words):
        found = tallies.Words()
        for part in (words[: n // 2], words[n // 4 :]):
            table = pa.array(sorted(part), pa.large_string())
            ones = np.ones(len(part), np.int64)
            found.add(Tally(strings(table), ones, ones, ()), len(part))
        assert found.tally().n_rows.sum() == n + n // 4
        assert len(found.tally().n_rows) == n

    words = crafted(n)
    assert len(set(words)) == n
    assert seconds(lambda: summed(words)) < 5 * seconds(lambda: summed(others)) + 0.05


def test_empty_tallies_are_summed():
    words = tallies.Words()
    for _ in range(3):
        words.add(None, 2)
    assert len(words.tally().n_rows) == 0
    assert words.n_rows == 6


def test_only_numbers_are_hashed(monkeypatch):
    """Texts can be chosen that have one hash in Arrow."""
    seen = []
    unique = number_columns.pc.unique
    monkeypatch.setattr(number_columns.pc, "unique", lambda a: seen.append(len(a)) or unique(a))
    columns = number_columns.NumberColumns(commas=False)
    columns.add({"a": pa.array([str(i) for i in range(number_columns.HEAD)])})
    assert seen
    seen.clear()
    columns.add({"a": pa.array(["1", "word"])})
    assert not seen
    assert columns.decide()[0] == {}
