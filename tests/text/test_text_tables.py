"""Encoders with their store, and what is wrong with a table, said before any work is done."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from coem import MixtureClusterer
from coem.text import Embed, TextViews
from coem.text._tables import as_arrow, read_text
from coem.text.encoders import PROBES

N_PROBES = len(PROBES)
TABLE = {
    "id": ["p", "q", "r"],
    "text": ["some words", "more words", "other words"],
    "refs": [["q"], ["p"], []],
    "price": [1.0, 2.0, 3.0],
    "gap": [1.0, None, 3.0],
    "vec": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "blank": ["", " ", None],
    "letters": ["a", "b", "c"],
}


class Encoder:
    """Count what it is asked, and answer with unit vectors."""

    def __init__(self, shift=0.0):
        self.shift, self.asked = shift, []

    def encode(self, texts):
        self.asked += texts
        angles = np.array([len(text) + sum(map(ord, text)) % 7 + self.shift for text in texts])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def test_an_encoder_makes_a_view_of_directions():
    texts = {"text": ["one", None, "three", "  ", "three"]}
    views = TextViews({"words": "text", "meaning": Embed("text", Encoder())}).fit_transform(texts)
    expected = Encoder().encode(["one", "three", "three"])
    np.testing.assert_array_equal(views["meaning"][[0, 2, 4]], expected)
    assert np.isnan(views["meaning"][[1, 3]]).all()
    assert views["meaning"].dtype == np.float32
    model = MixtureClusterer(2, max_iter=5, tol=0, random_state=0).fit(views)
    assert np.isfinite(model.objective_)


def test_the_store_asks_for_new_texts_alone_and_only_its_own_encoder(tmp_path):
    encoder, folder = Encoder(), tmp_path / "deep" / "store"
    model = TextViews({"meaning": Embed(["text", "letters"], encoder, cache=folder)})
    first = model.fit_transform(TABLE)["meaning"]
    assert encoder.asked[N_PROBES : N_PROBES + 2] == ["some words\na", "more words\nb"]
    encoder.asked.clear()
    again = clone(model).fit_transform(TABLE)["meaning"]
    np.testing.assert_array_equal(again, first)
    assert len(encoder.asked) == N_PROBES
    new = {"text": ["new", "some words"], "letters": [None, "a"]}
    encoder.asked.clear()
    np.testing.assert_array_equal(model.transform(new)["meaning"][1], first[0])
    assert encoder.asked[N_PROBES:] == ["new"]
    assert len(list(folder.iterdir())) == 2
    other = TextViews({"meaning": Embed(["text", "letters"], Encoder(1.0), cache=folder)})
    with pytest.raises(ValueError, match=r"view 'meaning': .* of another encoder"):
        other.fit(TABLE)
    (folder / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"view 'meaning': .*bad\.npy holds no vectors"):
        model.fit(TABLE)


def test_a_function_may_encode_and_a_copy_shares_the_encoder():
    embed = Embed("text", lambda texts: [[len(text), 1] for text in texts])
    model = TextViews({"shape": embed})
    assert clone(model).views["shape"] is embed
    assert model.fit_transform(TABLE)["shape"].tolist() == [[10, 1], [10, 1], [11, 1]]


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda texts: [1.0] * len(texts), "one vector of numbers for each of 3 texts"),
        (lambda texts: np.ones((1, 2)), "returned shape"),
        (lambda texts: np.full((3, 2), np.inf), "vector of 'some words' is not finite"),
        (lambda texts: [["a"]] * 3, "dtype"),
        (7, "must have a method encode"),
    ],
)
def test_bad_encoders_are_refused(encoder, message):
    with pytest.raises(ValueError, match=rf"view 'm': .*{message}"):
        TextViews({"m": Embed("text", encoder)}).fit(TABLE)


def test_rows_that_miss_everything_are_transformed():
    specs = {
        "words": "text",
        "m": Embed("text", Encoder()),
        "vec": "vec:vector",
        "p": "price:number",
    }
    specs |= {"refs": "refs:list", "in": "refs:inbound"}
    model = TextViews(specs, id="id").fit(TABLE)
    views = model.transform([dict.fromkeys(TABLE)])
    for name in ("m", "vec", "p"):
        assert np.isnan(views[name]).all()
        assert views[name].shape == (1, len(model.vocabulary_[name]))
    for name in ("words", "refs", "in"):
        assert views[name].nnz == 0


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "json", "float32", "numpy"])
def test_vectors_come_in_many_forms(kind):
    rows = [[1.0, 2.0], None, [5.0, 6.0]]
    values = {
        "list": pa.array(rows, pa.list_(pa.float64())),
        "large": pa.array(rows, pa.large_list(pa.float64())),
        "fixed": pa.array(rows, pa.list_(pa.float64(), 2)),
        "json": ["[1, 2.0]", "", "[5.0, 6]"],
        "float32": pa.array(rows, pa.list_(pa.float32())),
        "numpy": np.array([[1, 2], [3, 4], [5, 6]]),
    }[kind]
    X = TextViews({"vec": "vec:vector"}).fit_transform({"vec": values})["vec"]
    assert X.dtype == (np.float32 if kind == "float32" else np.float64)
    np.testing.assert_array_equal(X[[0, 2]], [[1, 2], [5, 6]])
    assert kind == "numpy" or np.isnan(X[1]).all()


def test_numbers_come_in_many_forms():
    table = {"a": ["1.5", " 2 ", ""], "b": [True, False, None], "c": [1, 2, None]}
    X = TextViews({"n": ["a:number", "b:number", "c:number"]}).fit_transform(table)["n"]
    np.testing.assert_array_equal(X, [[1.5, 1, 1], [2, 0, 2], [np.nan] * 3])


BAD_VIEWS = [
    ({"v": "nothing"}, {}, "view 'v': there is no column 'nothing' in the table, which has 'id'"),
    ({"v": "refs:lists"}, {}, "no column 'refs:lists' .kinds are text, list"),
    ({"v": ["text", "missing"]}, {}, "view 'v': there is no column 'missing'"),
    ({"v": "price"}, {}, "view 'v': column 'price' is not text but double; write 'price:number'"),
    ({"v": "refs"}, {}, "view 'v': column 'refs' is not text .* write 'refs:list'"),
    ({"v": "vec:list"}, {}, "view 'v': column 'vec' holds .*no lists of names"),
    ({"v": "price:list"}, {}, "view 'v': column 'price' holds double"),
    ({"v": "text:number"}, {}, "view 'v', row 0: 'some words' in column 'text' is not a number"),
    ({"v": "refs:number"}, {}, "view 'v': column 'refs' holds .* not numbers"),
    ({"v": "text:vector"}, {}, "view 'v', row 0: 'some words' in column 'text' is not a JSON list"),
    ({"v": "refs:vector"}, {}, "view 'v': column 'refs' holds .*no lists of numbers"),
    ({"v": "blank"}, {}, "view 'v': no row has a word"),
    ({"v": "letters"}, {}, "view 'v': no row has a word"),
    ({"v": "blank:list"}, {}, "view 'v': no row has a word or item"),
    ({"v": "blank:number"}, {}, "view 'v': every row is missing"),
    ({"v": "blank:vector"}, {}, "view 'v': every row is missing"),
    ({"v": Embed("blank", Encoder())}, {}, "view 'v': every row is missing"),
    ({"v": "refs:inbound"}, {}, "view 'v': inbound links .* give id='COLUMN'"),
    ({"v": "refs:inbound"}, {"id": "price"}, "view 'v': the ids in column 'price' are double"),
    ({"v": "refs:inbound"}, {"id": "blank"}, "view 'v', row 0 has no id in column 'blank'"),
    ({"v": "text"}, {"id": "nobody"}, "id: there is no column 'nobody'"),
    ({"v": ["text", "refs:list"]}, {}, "view 'v' is to be text and list; make it several views"),
    ({"v": ["refs:list", "text:list"]}, {}, "view 'v': a view of kind 'list' has one column"),
    ({"v": ["text", "text"]}, {}, "view 'v' names a column twice"),
    ({"v": []}, {}, "view 'v' names no column"),
    ({"v": ""}, {}, "view 'v' names no column"),
    ({"v": 7}, {}, "view 'v' must be a column"),
    ({"": "text"}, {}, "names of views must be non-empty text"),
    ({}, {}, "views must be None or a dict"),
    ("text", {}, "views must be None or a dict"),
    ({"v": np.ones((2, 2))}, {}, "view 'v': the array has 2 rows, the table 3"),
    ({"v": np.ones(3)}, {}, "view 'v': the array must hold numbers in two dimensions"),
    ({"v": np.array([["a"]] * 3)}, {}, "view 'v': the array must hold numbers"),
    ({"v": "text"}, {"min_df": 0}, "view 'v': min_df must be a number of rows of 1 or more"),
    ({"v": "text"}, {"max_df": 1.5}, "view 'v': max_df must be"),
    ({"v": "text"}, {"min_df": True}, "view 'v': min_df must be"),
    ({"v": "text"}, {"min_df": 3, "max_df": 2}, "view 'v': max_df .2. comes to fewer rows"),
    ({"v": "text"}, {"max_df": 2, "min_df": 2}, "view 'v': min_df and max_df leave no word"),
    ({"v": "text"}, {"max_features": 0}, "view 'v': max_features must be an integer of 1"),
    ({"v": "text"}, {"lowercase": "yes"}, "view 'v': lowercase must be True or False"),
    ({"v": "text"}, {"ngram_range": (2, 1)}, "view 'v': ngram_range must be"),
    ({"v": "text"}, {"ngram_range": 2}, "view 'v': ngram_range must be"),
    ({"v": "text"}, {"stop_words": "klingon"}, "view 'v': stop_words: there is no list for"),
    ({"v": "text"}, {"stop_words": [1]}, "view 'v': stop_words must be"),
    ({"v": "text"}, {"stop_words": ["some", "more", "other", "words"]}, "all words are stop words"),
    ({"v": "text"}, {"token_pattern": "("}, "view 'v': token_pattern must be"),
    ({"v": "text"}, {"token_pattern": "(a)(b)"}, "view 'v': token_pattern must be"),
    ({"v": "text"}, {"token_pattern": None}, "view 'v': token_pattern must be"),
    ({"v": "text"}, {"min_df": {"w": 2}}, "min_df is given for 'w', which is not a view of kind"),
    ({"v": "refs:list"}, {"stop_words": {"v": None}}, "stop_words is given for 'v'"),
    ({"v": "text"}, {"scale_length": 0}, "view 'v': scale_length must be None or a number above 0"),
    ({"v": "text"}, {"scale_length": True}, "view 'v': scale_length must be"),
    ({"v": "text"}, {"select": "chi2", "max_features": 1}, "select must be one of 'mutual_info'"),
    ({"v": "text"}, {"select": "mutual_info"}, "select needs max_features"),
    ({"v": "text"}, {"select": "mutual_info", "max_features": 1}, "requires y to be passed"),
    ({"v": "text"}, {"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
]


@pytest.mark.parametrize(("views", "options", "message"), BAD_VIEWS)
def test_bad_views_are_refused_by_name(views, options, message):
    model = TextViews(views, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(TABLE)
    assert not hasattr(model, "views_")


@pytest.mark.parametrize(
    ("change", "views", "message"),
    [
        ({"vec": [[1.0], [2.0, 3.0], [4.0]]}, "vec:vector", "row 1 has 2 numbers .*before have 1"),
        ({"vec": [[1.0], [None], [4.0]]}, "vec:vector", "row 1: a number is missing"),
        ({"vec": [[1.0], [np.inf], [4.0]]}, "vec:vector", "row 1 has an infinite number"),
        ({"price": [1.0, 2.0, np.inf]}, "price:number", "row 2 has an infinite number"),
        ({"id": ["p", "q", "p"]}, "refs:inbound", "row 2 has the id 'p' of row 0"),
        ({"refs": [[{"a": 1}], [], []]}, "refs:list", "no lists of names"),
    ],
)
def test_bad_rows_are_refused_by_number(change, views, message):
    with pytest.raises(ValueError, match=rf"view 'v'.*{message}"):
        TextViews({"v": views}, id="id").fit(TABLE | change)


def test_the_cell_that_is_no_number_is_named():
    cells = {"x": ["NULL", "3,50 \u20ac", "n. v.", "4.5"]}
    message = r"row 2: 'n. v.' in column 'x' is not a number; write it as 1234.5, or leave it empty"
    with pytest.raises(ValueError, match=message):
        TextViews({"v": "x:number"}).fit(cells)
    with pytest.raises(ValueError, match=r"row 1: '3,50' in column 'x' is not written like the"):
        TextViews({"v": "x:number"}).fit({"x": ["NULL", "3,50", "4.5"]})


def test_nothing_is_encoded_or_counted_before_all_columns_are_known_to_be_good():
    encoder = Encoder()
    specs = {"m": Embed("text", encoder), "n": ["price:number", "text:number"]}
    with pytest.raises(ValueError, match="in column 'text' is not a number"):
        TextViews(specs).fit(TABLE)
    assert encoder.asked == []


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (["some", "text"], TypeError, r"not a list that holds str; one column is \{\"text\""),
        (np.ones((2, 2)), TypeError, "not ndarray"),
        (None, TypeError, "not NoneType"),
        (pl.LazyFrame({"text": ["a"]}), TypeError, "not LazyFrame"),
        ({"text": "some text"}, TypeError, "column 'text' must be a list"),
        ({1: ["some text"]}, TypeError, "names of columns must be text"),
        ({"a": ["x"], "b": []}, ValueError, "column 'a' has 1 rows but column 'b' has 0"),
        ({"a": ["x", "y", 3]}, ValueError, "column 'a', row 2: 3 does not go with"),
        ({"a": ["x", "\ud800"]}, ValueError, "column 'a', row 1"),
        (pd.DataFrame({"a": ["x", 3]}, dtype=object), ValueError, "column 'a', row 1"),
        ({}, ValueError, "no rows"),
        ([], ValueError, "no rows"),
        ({"text": []}, ValueError, "no rows"),
        (pd.DataFrame({"text": []}), ValueError, "no rows"),
    ],
    ids=str,
)
def test_bad_tables_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        TextViews({"v": "text"}).fit(table)


def test_damaged_text_and_names_that_are_there_twice_are_refused():
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(ValueError, match="view 'v', column 'text' is damaged"):
        TextViews({"v": "text"}).fit(pa.table({"text": damaged}))
    twice = pa.Table.from_arrays([pa.array(["some"]), pa.array(["text"])], ["text", "text"])
    with pytest.raises(ValueError, match="view 'v': there is 2 columns 'text'"):
        TextViews({"v": "text"}).fit(twice)


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(FileNotFoundError, match="view 'v': there is no file"):
        TextViews({"v": tmp_path / "gone.npy"}).fit(TABLE)
    with pytest.raises(ValueError, match=r"view 'v': .*bad\.npy is no \.npy file"):
        TextViews({"v": str(tmp_path / "bad.npy")}).fit(TABLE)
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"view 'v': .*objects\.npy is no"):
        TextViews({"v": str(tmp_path / "objects.npy")}).fit(TABLE)


def test_other_tables_than_those_of_fit_are_refused():
    model = TextViews({"v": "text", "w": "vec:vector"})
    with pytest.raises(NotFittedError):
        model.transform(TABLE)
    model.fit(TABLE)
    with pytest.raises(ValueError, match="view 'v': there is no column 'text'"):
        model.transform({"other": ["words"]})
    with pytest.warns(UserWarning, match="view 'w': there is no column 'vec'.*counts as empty"):
        views = model.transform({"text": ["words"]})
    assert views["v"].shape[0] == 1
    assert np.isnan(views["w"]).all()
    with pytest.raises(ValueError, match="view 'w' has 1 numbers a row, but was fitted with 2"):
        model.transform({"text": ["words"], "vec": [[1.0]]})
    with pytest.raises(ValueError, match="y has 2 labels, the table 3 rows"):
        TextViews({"v": "text"}, select="mutual_info", max_features=1).fit(TABLE, [0, 1])
    with pytest.raises(ValueError, match="view must be one of"):
        model.get_feature_names_out("nothing")


def test_a_failed_fit_leaves_the_old_one():
    model = TextViews({"v": "text"}).fit(TABLE)
    with pytest.raises(ValueError, match="no row has a word"):
        model.fit(TABLE | {"text": [""] * 3})
    assert model.vocabulary_["v"].tolist() == ["more", "other", "some", "words"]


def test_columns_are_not_copied():
    table = pa.table(TABLE)
    assert as_arrow(table) is table
    assert as_arrow(pl.DataFrame(TABLE)).column_names == list(TABLE)


def test_rows_without_any_text_stay_when_columns_are_joined():
    table = pa.table({"a": ["x y", None, None], "b": [None, None, "zz"]})
    assert read_text(table, ["a", "b"], "v").to_pylist() == ["x y", None, "zz"]
