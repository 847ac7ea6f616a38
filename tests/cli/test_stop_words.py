"""Stop words in the program: found, named, recorded, and made again."""

import sys

import pytest

import coem as library
from coem.text.stop_words import listed
from tests.text.languages import texts_in

from .conftest import read_json, rows_of, write_csv

FIT = ("-k", "2", "--restarts", "2")


def german(here, n=60):
    rows = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts_in("de", n))]
    return write_csv(here / "texte.csv", rows)


@pytest.fixture
def without_lists(monkeypatch):
    """Make stopwordsiso absent; the test may call it at any time."""

    def remove():
        monkeypatch.setitem(sys.modules, "stopwordsiso", None)
        listed.cache_clear()

    yield remove
    listed.cache_clear()


def test_a_german_file_needs_no_option_and_can_be_made_again(here, coem, without_lists):
    result = coem("cluster", german(here), *FIT, "--out", "run")
    assert "stop words: German\n" in result.stderr
    assert read_json(here / "run" / "run.json")["arguments"]["stop_words"] == "german"
    names = {
        word for row in rows_of(here / "run" / "clusters.csv") for word in row["name"].split(", ")
    }
    assert not names & listed("de")
    assert names & {"kapitän", "mannschaft", "hafen", "schiff", "schiffe", "bäcker", "teig"}
    assert "the same" in coem("rerun", "run").stdout
    without_lists()
    coem("predict", "run", "texte.csv", "--out", "again.csv")
    fitted = {row["id"]: row["label"] for row in rows_of(here / "run" / "assignments.csv")}
    assert {row["id"]: row["label"] for row in rows_of(here / "again.csv")} == fitted
    error = coem("rerun", "run", code=1).stderr
    assert "the stop words of German are in stopwordsiso: pip install 'coem[languages]'" in error


def test_without_the_lists_a_note_says_how_to_get_them(here, coem, without_lists):
    without_lists()
    result = coem("cluster", german(here), *FIT, "--out", "run")
    assert "the texts are in German" in result.stderr
    assert "pip install 'coem[languages]'" in result.stderr
    assert "stop words: those spread evenly over the rows\n" in result.stderr
    assert read_json(here / "run" / "run.json")["arguments"]["stop_words"] == "corpus"
    assert "the same" in coem("rerun", "run").stdout


@pytest.mark.parametrize("verb", ["classify", "topics", "segment", "choose-k"])
def test_all_verbs_find_the_language(here, coem, verb):
    rows = [
        {"text": f"{text}\n\n{text}", "kind": "sb"[i % 2] if i < 20 else ""}
        for i, text in enumerate(texts_in("fr", 60))
    ]
    file = write_csv(here / "textes.csv", rows)
    options = {"classify": ["--label", "kind"], "choose-k": ["--among", "2,3"]}
    result = coem(verb, file, "--text", "text", *options.get(verb, ["-k", "2"]))
    assert "stop words: French\n" in result.stderr


def test_words_are_read_from_a_file(here, coem):
    (here / "words.txt").write_text("Der\ndie das\n", encoding="utf-8")
    coem("cluster", german(here), *FIT, "--stop-words", "words.txt", "--out", "run")
    recorded = read_json(here / "run" / "run.json")["arguments"]["stop_words"]
    assert recorded == ["das", "der", "die"]
    error = coem("cluster", "texte.csv", "--stop-words", "none.txt", code=2).stderr
    assert "none.txt cannot be read" in error


def test_an_unknown_language_is_refused_before_anything_is_read(here, coem):
    error = coem("cluster", "nowhere.csv", "--stop-words", "germn", code=1).stderr
    assert "--stop-words: there is no list for 'germn'; did you mean 'german'?" in error
    assert "nowhere" not in error


def test_python_records_what_was_found():
    table = {"text": texts_in("es", 30) + texts_in("en", 30)}
    result = library.cluster(table, text="text", k=2, restarts=2)
    assert result.settings["stop_words"] == result.reader.stop_words == "english+spanish"
    assert result.notes[0].endswith("stop words: English and Spanish")
    again = library.cluster(table, **{**result.settings, "restarts": 2})
    assert again.figures == result.figures
