"""Stop words of languages, found by themselves or named, and words found from the corpus."""

import math
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from coem import load
from coem.phrases import enumerated
from coem.text import TextViews, stop_words
from coem.text.languages import (
    LANGUAGES,
    OWN,
    SAMPLE,
    SIGNATURES,
    code_of,
    find_languages,
)
from coem.text.stop_words import EVEN, LEAST_DF, even_words, listed, parts_of
from tests.text.languages import PARTS, texts_in

TOKENS = re.compile(r"(?u)\b\w\w+\b")
INSTALL = r"pip install 'coem\[languages\]'"


def fitted(texts, **options):
    return TextViews({"v": "text"}, **options).fit({"text": texts})


@pytest.fixture
def without_lists(monkeypatch):
    """Make stopwordsiso absent."""
    monkeypatch.setitem(sys.modules, "stopwordsiso", None)
    listed.cache_clear()
    yield
    listed.cache_clear()


# -- which language ---------------------------------------------------------------------------


def slow_language(text):
    """Return the language with the most words in a text, or None if there is none, or a tie."""
    tokens = TOKENS.findall(text.lower())
    hits = {
        code: sum(token in words.split() for token in tokens) for code, words in SIGNATURES.items()
    }
    best = [code for code, n in hits.items() if n == max(hits.values()) and n]
    return best[0] if len(best) == 1 else None


@pytest.mark.parametrize("language", PARTS)
def test_the_language_of_texts_is_found(language):
    model = fitted(texts_in(language), stop_words="auto")
    assert list(model.languages_) == [language]
    assert model.stop_lists_ == {"v": LANGUAGES[language]}
    assert set(model.stop_words_["v"]) == listed(language)
    assert not listed(language) & set(model.vocabulary_["v"])


def test_languages_have_the_shares_of_a_slow_twin():
    texts = texts_in("de", 50) + texts_in("en", 30) + texts_in("it", 15) + ["", "cpu disk"] * 9
    texts += texts_in("es", 5)  # too few
    found = [slow_language(text) for text in texts]
    known = [code for code in found if code]
    shares = {code: known.count(code) / len(known) for code in ("de", "en", "it")}
    model = fitted(texts, stop_words="auto")
    assert model.languages_ == pytest.approx(shares)
    assert list(model.languages_) == ["de", "en", "it"]
    assert model.stop_lists_ == {"v": "german+english+italian"}
    assert set(model.stop_words_["v"]) == listed("de") | ENGLISH_STOP_WORDS | listed("it")


def test_views_of_different_languages_are_told():
    table = {"title": texts_in("fr"), "body": texts_in("en")}
    model = TextViews({"t": "title", "b": "body"}, stop_words="auto").fit(table)
    assert model.languages_ == {"en": 0.5, "fr": 0.5}
    assert model.stop_lists_ == dict.fromkeys("tb", "english+french")


def test_a_large_table_is_looked_at_in_part():
    # The first half is German; rows at equal distances have both languages in equal parts.
    texts = pa.array(texts_in("de", 3000) + texts_in("en", 3000), pa.large_string())
    seen = []

    def count(some, words):
        seen.extend(some.to_pylist())
        counter = CountVectorizer(vocabulary=words, token_pattern=TOKENS.pattern)
        return sp.csr_array(counter.transform(seen))

    assert find_languages([texts], count) == {"de": 0.5, "en": 0.5}
    assert len(seen) == SAMPLE


@pytest.mark.parametrize(
    "texts",
    [
        ["cpu disk", "disk ram", "ram cpu"],
        ["Robert de Niro", "La La Land", "cinema"],  # as Spanish as French
        ["", "", "word word"],
    ],
)
def test_texts_without_a_language_have_the_english_list(texts):
    model = fitted(texts, stop_words="auto")
    assert model.languages_ == {}
    assert model.stop_lists_ == {"v": "english"}


def test_english_texts_have_the_words_that_they_always_had():
    texts = texts_in("en")
    counter = CountVectorizer(stop_words="english").fit(texts)
    assert fitted(texts, stop_words="auto").vocabulary_["v"].tolist() == sorted(counter.vocabulary_)


def test_signatures_have_no_word_that_english_has_as_well():
    english = set(SIGNATURES["en"].split())
    for code, text in SIGNATURES.items():
        words = text.split()
        assert len(set(words)) == len(words) >= 18
        assert all(TOKENS.fullmatch(word) for word in words)
        assert code == "en" or not english & set(words)
        assert code in LANGUAGES


# -- by name ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "codes"),
    [("german", "de"), ("DE", "de"), ("de+en", "de en"), (" French + english ", "fr en")],
)
def test_languages_are_given_by_name_or_code(given, codes):
    model = fitted(texts_in("de") + texts_in("fr"), stop_words=given)
    expected = frozenset().union(*map(listed, codes.split()))
    assert model.stop_words_["v"].tolist() == sorted(expected)
    assert model.stop_lists_ == {"v": "+".join(LANGUAGES[code] for code in codes.split())}
    assert model.languages_ == {}


def test_the_names_are_those_of_the_package():
    import stopwordsiso

    assert set(LANGUAGES) == stopwordsiso.langs()
    assert listed("en") is ENGLISH_STOP_WORDS


def test_words_with_apostrophes_are_left_out_in_parts():
    model = fitted(["aujourd'hui le pain", "aujourd\u2019hui le bateau"], stop_words="fr")
    assert model.vocabulary_["v"].tolist() == ["bateau", "pain"]
    assert not any("'" in word for word in listed("fr"))


@pytest.mark.parametrize("none", [None, "none", "None"])
def test_none_leaves_out_nothing(none):
    model = fitted(texts_in("en"), stop_words=none)
    assert model.stop_words_["v"].tolist() == []
    assert "the" in model.vocabulary_["v"]


def test_views_may_have_lists_of_their_own():
    table = {"a": texts_in("de"), "b": texts_in("en")}
    given = {"a": "german", "b": ["the", "and"]}
    model = TextViews({"a": "a", "b": "b"}, stop_words=given).fit(table)
    assert model.stop_lists_ == {"a": "german"}
    assert model.stop_words_["b"].tolist() == ["and", "the"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("germna", "view 'v': stop_words: there is no list for 'germna'; did you mean 'german'"),
        ("de+frnch", "there is no list for 'frnch'; did you mean 'french'"),
        ("klingon", "there is no list for 'klingon'. A language has a name or a code"),
        ("autos", "did you mean 'auto'"),
        ("", "a name is missing; write 'german'"),
        ("german+", "a name is missing; write 'german', or 'german+french' for several"),
        ("de+none", "there is no list for 'none'"),
        (7, "view 'v': stop_words must be None, a language"),
    ],
)
def test_an_unknown_language_is_refused_with_those_that_look_alike(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted(texts_in("de"), stop_words=given)


@pytest.mark.parametrize(
    ("own", "code"),
    [("Deutsch", "de"), ("Français", "fr"), ("francais", "fr"), ("ESPAÑOL", "es"), ("norsk", "no")],
)
def test_a_language_may_be_called_as_it_calls_itself(own, code):
    assert parts_of(f"{own}+english") == [code, "en"]


def test_every_language_that_is_found_is_known_by_its_own_name():
    assert {*OWN.values(), "en"} == set(SIGNATURES)
    assert code_of("Русский") == "ru"
    assert code_of("Türkçe") == "tr"


def test_several_languages_are_a_list_enumerated():
    assert enumerated(["German"]) == "German"
    assert enumerated(["German", "French", "English"]) == "German, French and English"


# -- without the package ------------------------------------------------------------------------


@pytest.mark.usefixtures("without_lists")
def test_a_named_language_that_is_not_installed_is_an_error_with_the_line_to_install_it():
    with pytest.raises(ImportError, match=f"stop words of German .*{INSTALL}"):
        fitted(texts_in("de"), stop_words="de")


@pytest.mark.usefixtures("without_lists")
def test_english_needs_no_package():
    assert fitted(texts_in("en"), stop_words="auto").stop_lists_ == {"v": "english"}


@pytest.mark.usefixtures("without_lists")
def test_words_of_the_corpus_take_the_place_of_a_list_that_is_not_installed():
    texts = texts_in("de") + texts_in("en", 20)
    with pytest.warns(UserWarning, match=f"the texts are in German, .*{INSTALL}"):
        model = fitted(texts, stop_words="auto")
    assert model.stop_lists_ == {"v": "english+corpus"}
    assert {"das", "ist", "von", "uns"} <= set(model.stop_words_["v"]) - ENGLISH_STOP_WORDS
    assert {"schiff", "teig", "ofen", "harbour"} <= set(model.vocabulary_["v"])


def test_a_model_needs_no_package_after_it_is_saved(tmp_path, request):
    texts = texts_in("de")
    model = fitted(texts, stop_words="german", ngram_range=(1, 2))
    model.save(tmp_path / "model.coem")
    request.getfixturevalue("without_lists")
    again = load(tmp_path / "model.coem")
    assert again.stop_lists_ == {"v": "german"}
    assert again.stop_words_["v"].tolist() == model.stop_words_["v"].tolist()
    new = {"text": ["Der Kapitän und das Schiff", *texts[:3]]}
    difference = again.transform(new)["v"] != model.transform(new)["v"]
    assert difference.nnz == 0
    assert "kapitän schiff" not in again.vocabulary_["v"]  # it was "kapitän mannschaft"


# -- from the corpus ----------------------------------------------------------------------------


def letters(rng, n=300):
    """Return letters: "writes" and "article" are in most, "ship" and "bread" come in runs."""
    texts = []
    for i in range(n):
        length = int(rng.integers(10, 60))
        about = ["ship", "sail", "crew"] if i % 2 else ["bread", "flour", "oven"]
        words = rng.choice([*about, *(f"word{j}" for j in range(200))], length)
        frame = rng.random(2) < [0.9, 0.5]
        texts.append(" ".join(np.array(["writes", "article"])[frame]) + " " + " ".join(words))
        texts[-1] += (" " + about[0]) * 6
    return texts


def slow_even_words(texts):
    """Return the even words of texts, by the definition."""
    tokens = [TOKENS.findall(text.lower()) for text in texts]
    total = sum(map(len, tokens))
    found = []
    for word in sorted({token for row in tokens for token in row}):
        times = sum(row.count(word) for row in tokens)
        n_rows = sum(word in row for row in tokens)
        expected = sum(1 - math.exp(-times / total * len(row)) for row in tokens)
        if n_rows >= LEAST_DF * sum(map(bool, tokens)) and math.log2(expected / n_rows) <= EVEN:
            found.append(word)
    return found


def test_even_words_are_those_of_a_slow_twin():
    texts = [*letters(np.random.default_rng(0)), "", ""]
    model = fitted(texts, stop_words="corpus")
    assert model.stop_words_["v"].tolist() == slow_even_words(texts) == ["article", "writes"]
    assert {"ship", "bread"} <= set(model.vocabulary_["v"])
    assert model.stop_lists_ == {"v": "corpus"}


def test_even_words_are_left_out_before_pairs_are_made():
    texts = letters(np.random.default_rng(1))
    model = fitted(texts, stop_words="en+corpus", ngram_range=(1, 2), min_df=2)
    assert not [word for word in model.vocabulary_["v"] if "writes" in word]
    assert model.stop_lists_ == {"v": "english+corpus"}


def test_a_list_comes_before_the_corpus():
    model = fitted(texts_in("en"), stop_words="corpus+auto")
    assert model.stop_lists_ == {"v": "english+corpus"}
    assert set(model.stop_words_["v"]) > ENGLISH_STOP_WORDS
    assert {"story", "day"} <= set(model.stop_words_["v"])  # in the opening of every text


def test_few_rows_have_no_even_words():
    words = np.array(["a", "b"], object)
    assert even_words(sp.csr_array(np.ones((19, 2))), words).tolist() == []
    assert even_words(sp.csr_array(np.ones((20, 2))), words).tolist() == ["a", "b"]
    padded = np.vstack([np.ones((19, 2)), np.zeros((5, 2))])
    assert even_words(sp.csr_array(padded), words).tolist() == []


def test_parts_are_written_as_they_are_read():
    for given in ("none", "auto", "german+corpus", "english"):
        assert stop_words.written(stop_words.parts_of(given)) == given


def test_what_was_found_can_be_named():
    texts = {"a": texts_in("de"), "b": texts_in("de")}
    one = TextViews({"v": "a", "w": "b"}, stop_words="auto").fit(texts).name_stop_words()
    assert (one.stop_words, one.languages_) == ("german", {})
    given = {"v": "auto", "w": ["der"]}
    two = TextViews({"v": "a", "w": "b"}, stop_words=given).fit(texts).name_stop_words()
    assert two.stop_words == {"v": "german", "w": ["der"]}
    assert given["v"] == "auto"
    words = one.stop_words_["v"].tolist()
    one.fit({"a": texts_in("en"), "b": texts_in("en")})
    assert one.stop_words_["v"].tolist() == words
