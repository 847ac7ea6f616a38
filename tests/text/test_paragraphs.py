"""How documents are cut into paragraphs, and what stands for them where there are none."""

import pytest

from coem.text import split_paragraphs


def sentences(n, words=9):
    return " ".join(" ".join([f"w{i}"] * words) + "." for i in range(n))


def cut(text, **settings):
    found = split_paragraphs([text], **settings)
    assert found.lengths.tolist() == [len(found.texts)]
    assert " ".join(" ".join(found.texts).split()) == " ".join((text or "").split())
    return found.texts, found.ways[0]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n\n", "\n\n   "])
def test_blank_lines_part_paragraphs(end):
    assert cut(f"  one\nline{end}two \n") == (["one\nline", "two"], "paragraphs")


def test_documents_follow_one_another():
    found = split_paragraphs(["a\n\nb", None, " \n", "c"])
    assert found.texts == ["a", "b", "c"]
    assert found.lengths.tolist() == [2, 0, 0, 1]
    assert found.ways == ["paragraphs", "", "", "words"]
    assert found.lengths.dtype.kind == "i"


def test_without_blank_lines_sentences_make_runs():
    texts, way = cut(sentences(20), n_words=40)
    assert way == "sentences"
    # Five sentences of nine words are the first that have forty.
    assert [len(text.split()) for text in texts] == [45, 45, 45, 45]
    assert all(text.endswith(".") for text in texts)


def test_wrapped_lines_are_no_paragraphs():
    wrapped = sentences(20).replace("w3 w3", "w3\nw3").replace("w9 w9", "w9\nw9")
    assert cut(wrapped)[1] == "sentences"


def test_long_lines_are_paragraphs():
    line = sentences(6)
    assert cut(f"{line}\n{line}\n{line}") == ([line] * 3, "lines")


def test_a_rest_of_few_words_joins_the_run_before():
    texts, _ = cut(sentences(6), n_words=45)
    assert [len(text.split()) for text in texts] == [54]
    texts, _ = cut(sentences(8), n_words=45)
    assert [len(text.split()) for text in texts] == [45, 27]


def test_a_run_without_an_end_is_cut_by_words():
    table = "cell " * 200
    texts, way = cut(f"{sentences(5)} {table}. {sentences(5)}", n_words=40)
    assert way == "sentences"
    assert [len(text.split()) for text in texts] == [45, 40, 40, 40, 40, 41, 45]
    assert len(cut(f"{table}. The end.", by="sentences")[0]) == 1


def test_sentences_stay_whole_however_few_words_are_asked_for():
    for settings in ({}, {"by": "sentences"}):
        assert len(cut(sentences(7), n_words=1, **settings)[0]) == 7


def test_where_no_sentence_ends_words_are_counted():
    texts, way = cut("word " * 130, n_words=40)
    assert way == "words"
    assert [len(text.split()) for text in texts] == [40, 40, 50]
    assert cut("word " * 15, n_words=40)[0] == [("word " * 15).strip()]


def test_a_very_long_paragraph_is_cut_further():
    title, body = "A title", sentences(60)
    texts, way = cut(f"{title}\n\n{body}\n\nThe end.")
    assert way == "paragraphs"
    assert texts[0] == title
    assert texts[-1] == "The end."
    assert len(texts) == 2 + 12
    assert cut(f"{title}\n\n{body}", by="paragraphs")[0] == [title, body]


def test_quotes_belong_to_the_sentence_that_they_end():
    parts, _ = cut('"Is it?" he said. "No." And so on.', by="sentences", n_words=1)
    assert parts == ['"Is it?"', "he said.", '"No."', "And so on."]


def test_scripts_without_blanks():
    found = split_paragraphs(["他说。她说\uff01好。"], by="sentences", n_words=1)
    assert found.texts == ["他说。", "她说\uff01", "好。"]


@pytest.mark.parametrize(("by", "n"), [("lines", 3), ("words", 4), ("sentences", 2)])
def test_what_is_asked_for_is_done(by, n):
    texts, way = cut("a b c.\n\nd e f\ng h", by=by, n_words=2)
    assert (len(texts), way) == (n, by)


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="by must be one of auto, paragraphs"):
        split_paragraphs(["a"], by="pages")
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_words must be a whole number"):
            split_paragraphs(["a"], n_words=wrong)
