"""Words of tables are those of CountVectorizer, and views go where scikit-learn goes."""

import gc
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.datasets._newsgroups import read_posts
from coem.text import ScaleLength, SelectWords, TextViews, counting

TEXTS = [
    "The Cat sat on the mat; the cat's mat.",
    "",
    "\u0130stanbul stra\u00dfe \u039f\u0394\u039f\u03a3 \u00e9t\u00e9 e\u0301t",
    "nul\0byte 123 4_5 __ \U0001f600ab",
    "cat dog bird",
    "the dog and the bird",
    "x" * 5000 + " cat",
]
OPTIONS = [
    {},
    {"lowercase": False},
    {"min_df": 2},
    {"min_df": 0.3, "max_df": 0.5},
    {"max_df": 1},
    {"max_features": 3},
    {"max_features": 7, "min_df": 1},
    {"stop_words": "english"},
    {"stop_words": ["cat", "the"], "ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"token_pattern": r"\b\w\w+\b"},
    {"token_pattern": r"(?u)\b\w+\b"},
    {"token_pattern": r"[a-z](\w+)", "ngram_range": (1, 2), "lowercase": False},
]
NEW = ["a cat and \u03a3\u03a3 unseen the", "", "\u00e9t\u00e9 dog bird dog bird"]


def assert_as_sklearn(texts, new, options, n_jobs=None):
    """Compare words and counts of both, of the fitted texts and of new ones."""
    theirs = CountVectorizer(**options)
    ours = TextViews({"body": "text"}, n_jobs=n_jobs, **options)
    expected, got = theirs.fit_transform(texts), ours.fit_transform({"text": texts})["body"]
    assert ours.vocabulary_["body"].tolist() == theirs.get_feature_names_out().tolist()
    assert got.dtype == np.float32
    assert_same(got, expected)
    assert_same(ours.transform({"text": texts})["body"], expected)
    assert_same(ours.transform({"text": new})["body"], theirs.transform(new))


def assert_same(got, expected):
    """Compare sparse counts to the last place; ours are sorted."""
    expected = expected.copy()
    expected.sort_indices()
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.data, expected.data)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_words_and_counts_are_those_of_count_vectorizer(options, n_jobs):
    assert_as_sklearn(TEXTS, NEW, options, n_jobs)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.sampled_from(OPTIONS[:10]))
def test_random_texts_have_the_words_of_count_vectorizer(texts, options):
    try:
        CountVectorizer(**options).fit(texts)
    except ValueError:
        with pytest.raises(ValueError, match="view 'body'"):
            TextViews({"body": "text"}, **options).fit({"text": texts})
    else:
        assert_as_sklearn(texts, texts[::-1], options)


@given(st.lists(st.text("ab ", max_size=20), min_size=2, max_size=30), st.integers(1, 6))
def test_words_of_equal_frequency_are_cut_off_where_count_vectorizer_cuts(texts, number):
    if any(re.search(r"\w\w", text) for text in texts):
        assert_as_sklearn(texts, texts, {"max_features": number, "ngram_range": (1, 2)})


@pytest.fixture(scope="module")
def posts():
    own = os.environ.get("COEM_DATA")
    if not own or not Path(own, "20newsgroups_19997").is_dir():
        pytest.skip("needs the folder 20newsgroups_19997 in COEM_DATA")
    return [post.body for post in read_posts("19997")]


@pytest.mark.slow
def test_20_newsgroups_have_the_words_of_count_vectorizer(posts):
    assert_as_sklearn(posts[::6], posts[1:500:2], {}, n_jobs=2)
    options = {"min_df": 3, "max_df": 0.4, "stop_words": "english", "max_features": 5000}
    assert_as_sklearn(posts[::16], posts[1:500:2], options, n_jobs=2)
    assert_as_sklearn(posts[::40], posts[:50], {"ngram_range": (1, 2)}, n_jobs=2)


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(0)
    texts = [
        " ".join(rng.choice(list("abcdefgh"), 40).tolist()).replace(" d", "d") for _ in range(90)
    ]
    one = TextViews({"a": "t"}, n_jobs=1).fit_transform({"t": texts})["a"]
    for n_jobs in (2, 7, 200):
        assert_same(TextViews({"a": "t"}, n_jobs=n_jobs).fit_transform({"t": texts})["a"], one)


COLUMNS = {
    "id": ["p", "q", "r", "s"],
    "title": ["Mixtures of words", None, "", "words and words"],
    "body": ["the first text", "the second", None, "a third text"],
    "refs": [["q", "r", "q"], [], None, ["p", "elsewhere"]],
    "price": [1.5, None, 2.0, 4.0],
    "year": [2001, None, 2003, 2004],
    "vec": [[0.6, 0.8], None, [1.0, 0.0], [0.0, 1.0]],
}
SPECS = {
    "words": ["title", "body"],
    "links": "refs:list",
    "inbound": "refs:inbound",
    "numbers": ["price:number", "year:number"],
    "meaning": "vec:vector",
}


def tables():
    rows = [
        dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)
    ]
    return {
        "dict": COLUMNS,
        "rows": rows,
        "sparse rows": [{k: v for k, v in row.items() if v is not None} for row in rows],
        "pandas": pd.DataFrame(COLUMNS),
        "pandas object": pd.DataFrame(COLUMNS, dtype=object),
        "polars": pl.DataFrame(COLUMNS),
        "pyarrow": pa.table(COLUMNS),
        "batch": pa.table(COLUMNS).to_batches()[0],
        "chunks": pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
        "slice": pa.concat_tables([pa.table(COLUMNS)] * 2).combine_chunks().slice(4),
        "category": pd.DataFrame(COLUMNS).astype({"title": "category", "id": "category"}),
    }


@pytest.mark.parametrize("kind", tables())
def test_every_kind_of_table_gives_the_same_views(kind):
    model = TextViews(SPECS, id="id")
    views = model.fit_transform(tables()[kind])
    assert views.names == tuple(SPECS)
    joined = [
        "Mixtures of words\nthe first text",
        "the second",
        "",
        "words and words\na third text",
    ]
    theirs = CountVectorizer()
    assert_same(views["words"], theirs.fit_transform(joined))
    assert model.vocabulary_["links"].tolist() == ["elsewhere", "p", "q", "r"]
    links = [[0, 0, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    assert views["links"].toarray().tolist() == links
    # p names q twice and r; s names p; nobody names s, and q and r name nobody.
    assert model.vocabulary_["inbound"].tolist() == ["p", "s"]
    assert views["inbound"].toarray().tolist() == [[0, 1], [2, 0], [1, 0], [0, 0]]
    nan = np.nan
    expected = [[1.5, 2001], [nan, nan], [2, 2003], [4, 2004]]
    np.testing.assert_array_equal(views["numbers"], expected)
    np.testing.assert_array_equal(views["meaning"], [[0.6, 0.8], [nan, nan], [1, 0], [0, 1]])
    assert_equal_views(model.transform(tables()[kind]), views)
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert model.n_features_in_ == 7


def assert_equal_views(got, expected):
    assert got.names == expected.names
    for name, matrix in expected.items():
        if sp.issparse(matrix):
            assert_same(got[name], matrix)
        else:
            np.testing.assert_array_equal(got[name], matrix)


def test_a_row_is_transformed_by_itself():
    model = TextViews(SPECS, id="id")
    views = model.fit_transform(COLUMNS)
    rows = tables()["pyarrow"]
    for i in range(4):
        assert_equal_views(model.transform(rows.slice(i, 1)), views[[i]])


@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 2)}, {"token_pattern": r"[a-z]"}])
def test_few_rows_are_counted_as_many_are(options, monkeypatch):
    """The words of few rows are looked up one by one, without a table of the vocabulary."""
    texts = {"text": ["Cats chase mice", "mice fear cats, cats!", "dogs bark", ""]}
    new = {"text": ["Dogs chase CATS and dogs", None, "nothing known", "mice mice \u0130 mice"]}
    model = TextViews({"text": "text"}, **options).fit(texts)
    few = model.transform(new)["text"]
    assert few.sum() > 5
    monkeypatch.setattr(counting, "_FEW", 0)
    assert_same(model.transform(new)["text"], few)


def test_a_vocabulary_that_is_gone_leaves_nothing_behind():
    model = TextViews({"text": "text"}).fit({"text": ["one two", "two three"]})
    model.transform({"text": ["two"]})
    address = id(model.vocabulary_["text"])
    assert counting._COLUMNS[address] == {"one": 0, "three": 1, "two": 2}
    model.fit({"text": ["four five"]})
    gc.collect()
    assert address not in counting._COLUMNS
    assert model.transform({"text": ["four"]})["text"].toarray().tolist() == [[0, 1]]


def test_inbound_links_of_new_rows_come_from_the_fitted_ones():
    model = TextViews({"in": "refs:inbound"}, id="id").fit(COLUMNS)
    new = {"id": ["elsewhere", "q", None, "new"], "refs": [["p"], ["r"], [], ["q"]]}
    assert model.transform(new)["in"].toarray().tolist() == [[0, 1], [2, 0], [0, 0], [0, 0]]
    ids = {"id": new["id"]}  # who links to them is known, where they link to does not matter
    assert model.transform(ids)["in"].toarray().tolist() == [[0, 1], [2, 0], [0, 0], [0, 0]]
    numbers = {"id": [1, 2, 3], "refs": [[2], [3, 3], []]}
    counts = TextViews({"in": "refs:inbound"}, id="id").fit_transform(numbers)["in"]
    assert counts.toarray().tolist() == [[0, 0], [1, 0], [0, 2]]


@pytest.mark.parametrize(
    "refs",
    [
        ["a|b ; c", " ", "b"],
        ['["a", "b", "c"]', "[]", "[broken; b"],
        [["a", "b", None, "c", ""], None, ["b"]],
    ],
)
def test_lists_may_be_written_as_text(refs):
    model = TextViews({"refs": "refs:list"})
    counts = model.fit_transform({"refs": refs})["refs"]
    names = model.vocabulary_["refs"].tolist()
    assert [name for name in names if name != "[broken"] == ["a", "b", "c"]
    columns = [names.index(name) for name in "abc"]
    assert counts[:, columns].toarray().tolist() == [[1, 1, 1], [0, 0, 0], [0, 1, 0]]


def test_options_of_lists_are_those_of_their_rows():
    refs = {"refs": [["x", "y"], ["x", "z"], ["x", "y", "Y y"]]}
    model = TextViews({"refs": "refs:list"}, min_df=2, max_df=2).fit(refs)
    assert model.vocabulary_["refs"].tolist() == ["y"]
    assert TextViews({"refs": "refs:list"}).fit(refs).vocabulary_["refs"].tolist()[0] == "Y y"


def test_options_may_differ_between_views():
    table = {"a": ["cat dog cat", "dog bird"], "b": ["cat dog cat", "dog bird"]}
    specs = {"one": "a", "two": "b"}
    options = {
        "max_features": {"one": 1},
        "ngram_range": {"two": (2, 2)},
        "stop_words": {"one": ["dog"]},
    }
    model = TextViews(specs, **options).fit(table)
    assert model.vocabulary_["one"].tolist() == ["cat"]
    assert model.vocabulary_["two"].tolist() == ["cat dog", "dog bird", "dog cat"]
    names = ["one__cat", "two__cat dog", "two__dog bird", "two__dog cat"]
    assert model.get_feature_names_out().tolist() == names
    assert model.get_feature_names_out("one").tolist() == ["cat"]


def test_lengths_and_chosen_words_are_those_of_the_transformers():
    table = {"t": ["cat cat dog", "dog bird", "cat fish", "bird bird dog"], "vec": [[1.0, 2.0]] * 4}
    y = ["a", "b", "a", ""]
    specs = {"words": "t", "vec": "vec:vector"}
    counts = CountVectorizer().fit_transform(table["t"]).astype(np.float32)
    options = {"select": "mutual_info", "max_features": 2}
    model = TextViews(specs, scale_length=10, **options)
    views = model.fit_transform(table, y)
    selector = SelectWords(2).fit(counts, y)
    expected = ScaleLength(10).fit_transform(selector.transform(counts))
    np.testing.assert_array_equal(views["words"].toarray(), expected.toarray())
    np.testing.assert_array_equal(views["vec"], table["vec"])
    assert_equal_views(model.transform(table), views)
    plain = TextViews(specs, **options, scale_length={"words": None}).fit_transform(table, y)
    np.testing.assert_array_equal(plain["words"].toarray(), selector.transform(counts).toarray())
    names = np.array(CountVectorizer().fit(table["t"]).get_feature_names_out())
    assert model.vocabulary_["words"].tolist() == names[selector.get_support()].tolist()


@pytest.mark.parametrize("where", ["array", "path", "str"])
def test_arrays_and_files_are_views(where, tmp_path):
    X = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.save(tmp_path / "emb.npy", X)
    source = {"array": X, "path": tmp_path / "emb.npy", "str": str(tmp_path / "emb.npy")}[where]
    model = TextViews({"words": "body", "meaning": source})
    views = model.fit_transform(COLUMNS)
    np.testing.assert_array_equal(views["meaning"], X)
    assert model.get_feature_names_out("meaning").tolist() == ["x0", "x1"]
    assert_equal_views(clone(model).fit_transform(COLUMNS), views)
    with pytest.raises(ValueError, match="has 4 rows, the table 1"):
        model.transform(pa.table(COLUMNS).slice(0, 1))


def test_columns_are_guessed_and_said():
    n = 40
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "id": [f"paper-{i}" for i in range(n)],
            "topic": rng.choice(["machine learning", "data bases"], n).tolist(),
            "year": rng.integers(1990, 2020, n),
            "abstract": [f"some words about number {i} and its friends" for i in range(n)],
            "tags": [f"a{i % 3}|b{i % 5}" for i in range(n)],
            "refs": [[f"paper-{i // 2}"] for i in range(n)],
            "vec": [[1.0, float(i)] for i in range(n)],
            "none": pa.nulls(n),
            "blank": [" "] * n,
            "url": [f"http://example.org/a/rather/long/path/{i}" for i in range(n)],
            "chinese": ["\u6f22\u5b57" * 20 + str(i) for i in range(n)],
            "json": [f'["x{i}", "y"]' for i in range(n)],
        }
    )
    model = TextViews().fit(table)
    kinds = {name: spec["kind"] for name, spec in model.views_.items()}
    assert kinds == {
        "abstract": "text",
        "tags": "list",
        "refs": "list",
        "vec": "vector",
        "chinese": "text",
        "json": "list",
    }
    assert len(model.guesses_) == table.num_columns
    assert model.guesses_[2] == "Column 'year' is left alone: its values are numbers."
    assert "Column 'abstract' is a view of kind 'text': 4" in model.guesses_[3]
    assert TextViews({"a": "abstract"}).fit(table).guesses_ == []
    words = {"id": ["some long words of an id", "others"], "text": ["some words here", "and there"]}
    assert list(TextViews(id="id").fit(words).views_) == ["text"]
    with pytest.raises(ValueError, match=r"no column looks like text.*'url' is left alone"):
        TextViews().fit(table.select(["id", "url"]))


def test_many_rows_are_guessed_from_some_of_them():
    table = {
        "text": ["some text about something"] * 10 + [f"text {i} and more" for i in range(5000)]
    }
    assert TextViews().fit(table).views_ == {"text": {"kind": "text", "columns": ["text"]}}


def documents(n=60):
    rng = np.random.default_rng(2)
    y = np.arange(n) % 2
    words = [["ball goal team game play"], ["disk byte code chip core"]]
    texts = [" ".join(rng.choice(words[k][0].split(), 12)) for k in y]
    links = [[f"site{k}-{rng.integers(4)}"] for k in y]
    return pd.DataFrame({"text": texts, "links": links}), y


def test_a_pipeline_finds_the_groups_and_pickles():
    table, y = documents()
    model = make_pipeline(
        TextViews({"words": "text", "links": "links:list"}), MixtureClusterer(2, random_state=0)
    ).fit(table)
    labels = model.predict(table)
    assert len(set(zip(labels, y, strict=True))) == 2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(table), labels)
    assert isinstance(model[0].transform(table), Views)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda t: t.to_dict("records")])
def test_scikit_learn_searches_over_a_table(kind):
    table, y = documents()
    table = kind(table.to_dict("list")) if kind in (pd.DataFrame, pl.DataFrame) else kind(table)
    model = make_pipeline(TextViews({"words": "text", "links": "links:list"}), MixtureClassifier())
    grid = {"textviews__min_df": [1, 3], "textviews__stop_words": [None, ["ball"]]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=2, error_score="raise").fit(table, y)
    assert search.best_score_ == 1
    assert cross_val_score(model, table, y, cv=3).min() == 1


def test_fitted_state_is_plain():
    model = TextViews(SPECS, id="id").fit(COLUMNS)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert set(fitted) == {
        "views_",
        "guesses_",
        "vocabulary_",
        "links_",
        "kept_",
        "latent_",
        "stop_words_",
        "stop_lists_",
        "languages_",
        "feature_names_in_",
        "n_features_in_",
    }
    for words in [*model.vocabulary_.values(), *model.stop_words_.values()]:
        assert words.dtype == object
        assert all(type(word) is str for word in words)
    assert model.views_["words"] == {"kind": "text", "columns": ["title", "body"]}


def test_long_rows_are_scaled_down_and_others_left_alone():
    table = {"text": ["red blue red blue red red", "red", "green blue"], "tags": ["a|b|c"] * 3}
    views = {"text": "text", "tags": "tags:list"}
    plain = TextViews(views).fit_transform(table)
    reader = TextViews(views, max_length=3)
    short = reader.fit_transform(table)
    assert reader.kept_ == {"text": pytest.approx(6 / 9)}
    assert (reader.transform(table)["text"] != short["text"]).nnz == 0
    expected = plain["text"].toarray() * np.array([[0.5], [1.0], [1.0]])
    np.testing.assert_allclose(short["text"].toarray(), expected)
    np.testing.assert_array_equal(short["tags"].toarray(), plain["tags"].toarray())
    by_view = TextViews(views, max_length={"text": 3}).fit_transform(table)
    np.testing.assert_array_equal(by_view["text"].toarray(), short["text"].toarray())
    with pytest.raises(ValueError, match="max_length must be None or a number above 0"):
        TextViews(views, max_length=0).fit(table)


def test_lists_as_json_and_as_pandas_write_them():
    table = {"refs": ['["a", "b c"]', "['a', 'd;e']", "a|b c", "[not a list"]}
    reader = TextViews({"refs": "refs:list"})
    counts = reader.fit_transform(table)["refs"].toarray()
    assert reader.vocabulary_["refs"].tolist() == ["[not a list", "a", "b c", "d;e"]
    np.testing.assert_array_equal(counts, [[0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]])
