"""Which columns are guessed as views, which are left alone, and what is said about given ones."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from coem import load
from coem.io.tables import read_table
from coem.text import TextViews
from coem.text.guess import guess_views

N = 40
RNG = np.random.default_rng(5)
TEXT = [f"some words about article number {i} and its friends" for i in range(N)]
SECONDS = np.sort(RNG.integers(10**9, 17 * 10**8, N))
DAYS = [(1987 + i % 30, 1 + i % 12, 1 + i % 28) for i in range(N)]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

TIMES = {
    "iso": [f"{y}-{m:02}-{d:02}" for y, m, d in DAYS],
    "iso with time": [f"{y}-{m:02}-{d:02}T15:01:{d:02}.25+01:00" for y, m, d in DAYS],
    "database": [f"{y}-{m:02}-{d:02} 15:01:{d:02}" for y, m, d in DAYS],
    "german": [f"{d:02}.{m:02}.{y}" for y, m, d in DAYS],
    "german with time": [f"{d}.{m}.{y}, 15:01 Uhr" for y, m, d in DAYS],
    "us": [f"{m}/{d}/{y}" for y, m, d in DAYS],
    "us with time": [f"{m}/{d}/{y} 3:01 PM" for y, m, d in DAYS],
    "rfc 822": [f"Mon, {d} {MONTHS[m - 1]} {y} 15:01:02 GMT" for y, m, d in DAYS],
    "rfc 822 short": [f"{d} {MONTHS[m - 1]} {y % 100:02} 15:01:02 -0500" for y, m, d in DAYS],
    "reuters": [f"{d}-{MONTHS[m - 1].upper()}-{y} 15:01:01.79" for y, m, d in DAYS],
    "unix": [f"Tue {MONTHS[m - 1]} {d:2} 15:01:02 UTC {y}" for y, m, d in DAYS],
    "words": [f"February {d}, {y}" for y, m, d in DAYS],
    "german words": [f"Montag, {d}. M\u00e4rz {y}" for y, m, d in DAYS],
    "clock": [f"{d}:{m:02}:00" for y, m, d in DAYS],
    "compact": [f"{y}{m:02}{d:02}" for y, m, d in DAYS],
    "epoch": [str(s) for s in SECONDS],
    "epoch in milliseconds": [f"{s}123" for s in SECONDS],
}
IDS = {
    "e-mail addresses": [f"Jane Doe <jane{i}@example.org>" for i in range(N)],
    "web addresses": [f"https://example.org/a/{i}?b=c d".replace(" ", "") for i in range(N)],
    "ids (UUIDs)": [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(N)],
    "hashes": [f"{i * 7919 + 12345:032x}" for i in range(N)],
    "names of files": [f"Scan of page {i}.pdf" for i in range(N)],
    "codes": [f"ART {i:05}-B" for i in range(N)],
    "numbers": [f"{i},{i % 10}9 \u20ac" for i in range(N)],
}


def why(values, **others):
    """Return what is said about a column beside a column of text."""
    views, sentences = guess_views(pa.table({"text": TEXT, "x": values} | others))
    assert list(views) == ["text"]
    return sentences[1].removeprefix("Column 'x' is left alone: ").rstrip(".")


@pytest.mark.parametrize("form", TIMES)
def test_time_stamps_are_no_views(form):
    assert why(TIMES[form]) == "its values are dates or times"
    gaps = [value if i % 4 else " " for i, value in enumerate(TIMES[form])]
    assert why(gaps) == "its values are dates or times"
    with pytest.warns(UserWarning, match="view 'when'.*column 'x'.*dates or times"):
        TextViews({"text": "text", "when": "x"}).fit({"text": TEXT, "x": TIMES[form]})


def test_types_of_time_are_no_views():
    times = pa.array(SECONDS, pa.timestamp("s"))
    assert why(times) == "its values are dates or times"


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_no_views(kind):
    assert why(IDS[kind]) == f"its values are {kind}"
    table = {"text": TEXT, "x": IDS[kind]}
    with pytest.warns(UserWarning, match="view 'code'.*'x'.*nearly all differ"):
        TextViews({"text": "text", "code": "x"}).fit(table)
    some = [IDS[kind][i % 7] for i in range(N)]  # an author, say, of several rows
    assert TextViews({"code": "x"}).fit({"x": some}).vocabulary_["code"].size


def test_constant_and_empty_columns_are_no_views():
    text = ["the same words again and again"] * (N - 1) + ["other words"]
    assert why(text) == "one value is in nearly all of its rows (39 of 40)"
    assert why(["a|b", *["b|c"] * (N - 1)]).startswith("one value is in nearly all")
    assert why([["a", "b"]] * N) == "one value is in nearly all of its rows (40 of 40)"
    assert why([[1.0, 2.0]] * N).startswith("one value")
    filled = ["some words", *[None] * (N - 1)]
    assert why(filled) == "it is nearly empty (1 of 40 rows have a value)"
    assert why([["a"], *[None] * (N - 1)]).startswith("it is nearly empty")
    with pytest.warns(UserWarning, match="view 'same'.*one value is in nearly all"):
        TextViews({"text": "text", "same": "x"}).fit({"text": TEXT, "x": text})


def test_categories_and_single_words_are_no_views():
    colours = [("dark red", "light green", "blue")[i % 3] for i in range(N)]
    assert why(colours) == "its values repeat like labels (3 of 40)"
    assert why([("red", "green")[i % 2] for i in range(N)]).startswith("its values repeat like")
    names = ["".join(RNG.choice(list("abcdefgh"), 6)) for _ in range(N)]
    assert why(names).startswith("its values are single words, names or ids")


def test_texts_and_lists_are_still_views():
    table = {
        "text": TEXT,
        "title": [f"iPhone {i} Pro in {('red', 'blue')[i % 2]}" for i in range(N)],
        "dated": [f"On 26.02.1987 they met for the {i}th time." for i in range(N)],
        "links": [f"http://a.org/{i % 5}|http://b.org/{i % 3}" for i in range(N)],
        "people": [f"a{i % 5}@x.org;b{i % 3}@x.org" for i in range(N)],
        "json": [f'["art/{i % 5}", "book"]' for i in range(N)],
    }
    views, _ = guess_views(pa.table(table))
    kinds = {name: spec["kind"] for name, spec in views.items()}
    assert kinds == dict.fromkeys(("text", "title", "dated"), "text") | dict.fromkeys(
        ("links", "people", "json"), "list"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TextViews({name: f"{name}:{kind}" for name, kind in kinds.items()}).fit(table)


def test_given_numbers_that_say_nothing_are_named():
    numbers = {
        "stock": (RNG.integers(0, 900, N), None),
        "price": (RNG.random(N), None),
        "price as text": ([f"{i}.5" for i in range(N)], None),
        "same": ([3.0] * N, "one value is in nearly all"),
        "row": (np.arange(100, 100 + N), "running numbers"),
        "shuffled": (RNG.permutation(N), "running numbers"),
        "article": (47110000 + RNG.permutation(N) * 17, "codes, and all differ"),
        "seconds": (SECONDS, "dates or times"),
        "day": ([int(day) for day in TIMES["compact"]], "dates or times"),
        "day as text": (TIMES["compact"], "dates or times"),
    }
    for name, (values, reason) in numbers.items():
        model = TextViews({"text": "text", "lager": f"{name}:number"})
        table = {"text": TEXT, name: values}
        if reason is None:
            model.fit(table)
        else:
            with pytest.warns(UserWarning, match=f"view 'lager'.*{name!r}.*{reason}") as said:
                model.fit(table)
            assert len(said) == 1
        assert list(model.views_) == ["text", "lager"]
        model.transform(table)  # says nothing, and warnings are errors here


def test_given_lists_that_say_nothing_are_named():
    some = [[f"p{i % 7}", f"q{i}"] for i in range(N)]
    lists = {
        "some": (some, None),
        "text": (["|".join(row) for row in some], None),
        "alone": ([[f"p{i}"] for i in range(N)], "none of its items is in two rows"),
        "alone, as text": ([f"p{i}|q{i}" for i in range(N)], "none of its items is in two rows"),
        "numbers": (np.arange(N), "none of its items is in two rows"),
        "same": ([["a", "b"]] * N, "one value is in nearly all"),
        "times": (TIMES["german"], "dates or times"),
    }
    for name, (values, reason) in lists.items():
        model = TextViews({"refs": f"{name}:list"})
        if reason is None:
            model.fit({name: values})
        else:
            with pytest.warns(UserWarning, match=f"view 'refs'.*{name!r}.*{reason}"):
                model.fit({name: values})
    # Of many rows only some are looked at, and their items may be in others.
    model.set_params(views={"refs": "many:list"}).fit({"many": [[f"p{i}"] for i in range(1500)]})


def test_a_product_list_as_excel_writes_it(tmp_path):
    """Semicolons, a byte order mark, decimal commas, article numbers, days of delivery."""
    lines = ["Artikelnummer;Bezeichnung;Preis;Lager;Geliefert;Gruppe;Bild"]
    for i in range(N):
        words = " ".join(RNG.choice(["Schraube", "verzinkt", "Holz", "lang", "Set", "Stahl"], 4))
        price, stock = f"{i + 3},{i % 10}9", RNG.integers(0, 90)
        day = f"{1 + i % 28:02}.03.2024"
        lines.append(f"A-{4711 + i};{words} {i};{price};{stock};{day};{'BC'[i % 2]};bild{i}.jpg")
    file = tmp_path / "artikel.csv"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    views, sentences = guess_views(read_table(file).data)
    assert list(views) == ["Bezeichnung"]
    reasons = [sentence.partition(": ")[2] for sentence in sentences]
    assert reasons[0] == "its values are codes."
    assert reasons[4] == "its values are dates or times."
    assert reasons[5] == "its values repeat like labels (2 of 40)."
    assert reasons[6] == "its values are names of files."
    assert all(reason for reason in reasons)


# -- lists as text, categories, numbers ------------------------------------------------------------


def kinds_of(**columns):
    """Return the kinds of the views that are guessed."""
    views, _ = guess_views(pa.table(columns))
    return {name: (spec["kind"], spec.get("between")) for name, spec in views.items()}


def test_lists_between_commas_and_blanks_are_guessed_if_items_recur():
    tags = [f"{('red', 'green', 'blue')[i % 3]}, {('big', 'small')[i % 2]}" for i in range(N)]
    codes = [f"p{i % 7} p{i % 5} p{i % 11}" for i in range(N)]
    numbers = [f"{i % 7} {10 + i % 5}" for i in range(N)]
    sentences = [f"On day {i}, they met, and talked about number {i}" for i in range(N)]
    assert kinds_of(text=TEXT, tags=tags, codes=codes, numbers=numbers, said=sentences) == {
        "text": ("text", None),
        "tags": ("list", ","),
        "codes": ("list", " "),
        "numbers": ("list", " "),
        "said": ("text", None),
    }


@pytest.mark.parametrize(
    ("cells", "want"),
    [
        (["a|b", "c d|a"], ["a", "b", "c d"]),
        (["a; b", "c, d"], ["a", "b", "c, d"]),
        (["a, b", "c d"], ["a", "b", "c d"]),
        (["a b", "a c", "b c", "b"], ["a", "b", "c"]),
        (["New York", "Los Angeles", "New York"], ["Los Angeles", "New York"]),
        (["['a', 'b, c']", "[]"], ["a", "b, c"]),
        ([[1, 2], [2, 3, 4], []], ["1", "2", "3", "4"]),
    ],
)
def test_what_is_between_the_items_of_a_list(cells, want):
    model = TextViews({"x": "x:list"}).fit({"x": cells})
    assert model.vocabulary_["x"].tolist() == want


def test_a_new_row_is_read_as_those_of_the_fit(tmp_path):
    model = TextViews({"x": "x:list"}).fit({"x": ["a b; c", "c; d"]})
    assert model.transform({"x": ["a b"]})["x"].toarray().tolist() == [[1, 0, 0]]
    blanks = TextViews({"x": "x:list"}).fit({"x": ["a b", "a c", "b c"]})
    assert blanks.transform({"x": ["c a"]})["x"].toarray().tolist() == [[1, 0, 1]]
    blanks.save(tmp_path / "m.coem")
    loaded = load(tmp_path / "m.coem")
    assert loaded.transform({"x": ["c a"]})["x"].toarray().tolist() == [[1, 0, 1]]


def test_lists_of_numbers_of_unequal_length_are_no_vectors():
    assert why([[0.5] * (1 + i % 3) for i in range(N)]) == "it holds lists of 1 to 3 numbers"


def test_categories():
    table = {"maker": ["Bosch", "Miele", None, " "], "year": [1.0, 2.0, None, 1.0], "b": [True] * 4}
    model = TextViews({"m": "maker:category"}).fit(table)
    assert model.vocabulary_["m"].tolist() == ["Bosch", "Miele"]
    assert model.transform(table)["m"].toarray().tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    both = TextViews({"m": ["maker:category", "year:category", "b:category"]}).fit(table)
    names = ["b=true", "maker=Bosch", "maker=Miele", "year=1", "year=2"]
    assert both.vocabulary_["m"].tolist() == names
    for bad in ({"maker": [["a"]]}, {"maker": [0.5]}):
        with pytest.raises(ValueError, match=r"column 'maker' holds .* and not categories"):
            TextViews({"m": "maker:category"}).fit(bad)
    with pytest.warns(UserWarning, match="all of its values differ"):
        TextViews({"m": "x:category"}).fit({"x": [f"n{i}" for i in range(N)]})


def test_categories_and_numbers_are_views_only_where_there_is_no_text():
    table = {
        "maker": [("Bosch", "Miele")[i % 2] for i in range(N)],
        "colour": [("red", "green", "blue")[i % 3] for i in range(N)],
        "price": RNG.random(N),
        "weight": [None, *RNG.random(N - 1)],
        "row": np.arange(N),
        "day": TIMES["iso"],
    }
    views, sentences = guess_views(pa.table(table))
    assert views == {
        "categories": {"kind": "category", "columns": ["maker", "colour"]},
        "numbers": {"kind": "number", "columns": ["price", "weight"]},
    }
    assert sentences[4] == "Column 'row' is left alone: its values are running numbers."
    assert list(guess_views(pa.table(table | {"text": TEXT}))[0]) == ["text"]
    rows = TextViews().fit_transform(table)
    assert np.isnan(rows["numbers"]).sum() == 1


@pytest.mark.parametrize("between", ["|", "; ", ";"])
def test_codes_between_bars_are_lists(between):
    codes = [between.join(f"D{(i + 3 * k) % N}" for k in (1, 2, 3)) for i in range(N)]
    views, sentences = guess_views(pa.table({"text": TEXT, "x": codes}))
    assert views["x"] == {"kind": "list", "columns": ["x"]}
    assert "items between | or ;" in sentences[1]
    parts = [f"A{i}{between}B{i}-{i}" for i in range(N)]  # of one code each: none is in two rows
    assert why(parts) == "its values are codes"


def test_codes_in_brackets_are_lists():
    codes = [str([i, (i + 3) % N, (i + 7) % N]) for i in range(N)]
    assert guess_views(pa.table({"text": TEXT, "x": codes}))[0]["x"]["kind"] == "list"
