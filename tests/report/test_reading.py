"""Documents on the page: opened and read, searched by all their words, filtered, taken away."""

import csv
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest

from coem.report import tell, write_report
from coem.report.index import words_of
from tests.report.conftest import HOSTILE, Watched, wait_until

pytestmark = pytest.mark.slow  # what is tested is the script of the page

QUERIES = ["needle7", "NEEDLE1", "needle2 filler", "goal keep", "doc 42", "cmd"]
OWN = ("ids", "texts")  # that the tests here change
AXE = os.environ.get("AXE_CORE")  # axe.min.js of the package axe-core


@pytest.fixture(scope="module")
def deep(browser, collection, model, tmp_path_factory):
    """A page whose documents hold a word of their own, far from their beginnings."""
    named = {name: list(values) for name, values in collection.named().items() if name in OWN}
    named |= {n: v for n, v in collection.named().items() if n not in OWN}
    named["texts"] = [
        f"{'filler ' * 60}\n{text} needle{i}" for i, text in enumerate(named["texts"])
    ]
    named["texts"][3] = "=cmd()|A1"
    named["ids"][4] = '+formula, "quoted"'
    story = tell(model, collection.views, **named, n_examples=2)
    seen = Watched(browser, write_report(story, tmp_path_factory.mktemp("deep") / "page.html"))
    yield seen, named
    assert seen.complaints == []
    seen.page.context.close()


@pytest.fixture
def fresh(deep):
    deep[0].page.evaluate("coem.reset()")
    return deep


def found(page, query):
    """Return the documents that a search finds."""
    page.fill("#query", query)
    wait_until(page, "query => coem.query === query", query)
    return page.evaluate("[...coem.shown.keys()].filter(i => coem.shown[i])")


@pytest.mark.parametrize("query", QUERIES)
def test_search_finds_the_documents_that_have_all_words(fresh, query):
    seen, named = fresh
    said = [
        words_of(" ".join((named["ids"][i], named["titles"][i], named["texts"][i])))
        for i in range(90)
    ]
    parts = query.lower().split()
    expected = [i for i in range(90) if all(any(w.startswith(p) for w in said[i]) for p in parts)]
    assert found(seen.page, query) == expected
    assert expected
    number = f"{len(expected)} document{'s' * (len(expected) != 1)} found"
    assert seen.page.locator("#found").inner_text() == number


def test_what_was_found_far_below_is_shown_where_it_is(fresh):
    seen, _ = fresh
    found(seen.page, "needle7")
    seen.page.evaluate("coem.allTexts()")
    marks = seen.page.locator("#table mark").all_inner_texts()
    assert "needle7" in marks


def test_filters_go_together_and_can_be_taken_back(fresh):
    page = fresh[0].page
    data = page.evaluate("coem.data")
    page.select_option("#label", label="law")
    page.fill("#least", "90")
    shown = page.evaluate("[...coem.shown]")
    law = data["labels"].index("law")
    pairs = zip(data["label"], data["p"], strict=True)
    assert shown == [int(label == law and p >= 900) for label, p in pairs]
    assert 0 < sum(shown) < 90
    page.select_option("#apart", "0")
    agreeing = page.evaluate("[...coem.shown]")
    assert agreeing == [s and int(x == 0) for s, x in zip(shown, data["said"], strict=True)]
    page.click("#all")
    assert page.evaluate("coem.count") == 90
    assert page.locator("#label").input_value() == page.locator("#least").input_value() == ""


def test_other_parts_filter_and_hear_of_changes(fresh):
    seen, _ = fresh
    heard = seen.page.evaluate(
        "() => { let n = 0; coem.onChange(() => n++); coem.filter('lasso', i => i < 5);"
        "const kept = coem.count; coem.filter('lasso', null); return [n, kept, coem.count]; }"
    )
    assert heard == [2, 5, 90]


def test_the_table_to_take_away_holds_what_is_shown_and_no_formulas(fresh):
    seen, named = fresh
    page = seen.page
    page.evaluate("coem.filter('lasso', i => i < 6)")
    with page.expect_download() as download:
        page.click("#save")
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows[:4]] == named["ids"][:4]
    assert rows[4]["id"] == "'" + named["ids"][4]
    assert set(rows[0]) >= {"title", "group", "name", "probability", "disagreement", "label"}
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    cells = [cell for row in rows for cell in row.values()]
    assert not any(re.match(r"[=+@\t-]", cell) for cell in cells)


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_document_opens_with_its_whole_text(fresh, how):
    seen, named = fresh
    page = seen.page
    found(page, "needle7 ")
    button = page.locator("#table .open").first
    button.click() if how == "click" else button.press("Enter")
    dialog = page.locator("#reader")
    wait_until(page, "document.getElementById('reader-text').textContent.includes('needle7')")
    assert dialog.is_visible()
    text = page.locator("#reader-text").evaluate("node => node.textContent")
    assert text == named["texts"][7].strip().replace("\ud800", "\ufffd").replace("\x00", "\ufffd")
    assert page.locator("#reader-note").is_hidden()
    page.keyboard.press("Escape")
    assert dialog.is_hidden()


def test_marked_words_are_those_that_tell_the_group(fresh):
    page = fresh[0].page
    page.evaluate("coem.open(20)")
    page.select_option("#reader-view", label="body")
    wait_until(page, "document.querySelectorAll('#reader-text mark.for').length > 0")
    words = set(page.locator("#reader-text mark.for").all_inner_texts())
    own = set(["star", "orbit", "moon", "comet", "sky"])
    assert words
    assert words <= own
    assert page.locator("#reader-title mark").count() == 0
    page.select_option("#reader-view", label="title")
    wait_until(page, "document.querySelectorAll('#reader-title mark').length > 0")
    assert page.locator("#reader-text mark").count() == 0
    page.click("#reader-close")


def test_documents_on_cards_open_and_pages_turn(fresh):
    seen, _ = fresh
    page = seen.page
    page.locator("#groups summary").first.click()
    page.locator("#groups .documents .open").first.click()
    assert page.locator("#reader").is_visible()
    page.keyboard.press("Escape")
    page.evaluate("coem.open(0)")
    page.click("#reader-next")
    said = page.locator("#reader-facts dd").first.inner_text()
    assert said == page.evaluate("coem.data.id[1]")
    page.click("#reader-close")


def test_hostile_documents_can_be_read(watched):
    page = watched.page
    for i, document in enumerate(HOSTILE):
        page.evaluate("i => coem.open(i)", 5 + i)
        start = document.strip()[:12]
        wait_until(
            page,
            "id => document.querySelector('#reader dd').textContent === id",
            arg=f"doc {5 + i}",
        )
        page.evaluate("coem.text(0)")
        if start.isascii() and start:
            wait_until(
                page,
                "s => document.getElementById('reader-text').textContent.startsWith(s)",
                arg=start,
            )
    assert page.locator("#reader img, #reader script").count() == 0


def test_a_text_without_room_says_so(browser, collection, model, tmp_path, monkeypatch):
    monkeypatch.setattr("coem.report.page.PAGE", 0)
    named = collection.named() | {"texts": [f"word{i} " * 400 for i in range(90)]}
    path = write_report(tell(model, collection.views, **named), tmp_path / "page.html")
    seen = Watched(browser, path)
    seen.page.evaluate("coem.open(50)")
    seen.page.wait_for_selector("#reader-note:not([hidden])")
    assert "has no room on this page" in seen.page.locator("#reader-note").inner_text()
    seen.page.click("#reader-close")
    found(seen.page, "doc")
    assert "characters of each" in seen.page.locator("#found").inner_text()
    assert seen.complaints == []
    seen.page.context.close()


def test_a_browser_that_cannot_unpack_is_told(browser, path):
    context = browser.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(path.as_uri())
    assert found(page, "doc 42") == [42]
    assert "this browser cannot unpack" in page.locator("#found").inner_text()
    page.evaluate("coem.open(0)")
    page.wait_for_selector("#reader-note:not([hidden])")
    context.close()


@pytest.mark.skipif(AXE is None, reason="AXE_CORE does not name axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, path, scheme):
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    for opened in (False, True):
        if opened:
            page.evaluate("coem.open(20)")
            page.wait_for_selector("#reader-marks:not([hidden])")
        result = page.evaluate("axe.run()")
        bad = [v for v in result["violations"] if v["impact"] in ("serious", "critical")]
        assert [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in bad] == []
    context.close()


@pytest.mark.parametrize("width", [390])
def test_no_table_is_cut_off_on_a_phone(browser, path, width):
    seen = Watched(browser, path, viewport={"width": width, "height": 844})
    wide = seen.page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(box => box.querySelector('table') && "
        "box.scrollWidth > box.clientWidth + 1).map(box => box.innerText)"
    )
    assert wide == []
    seen.page.context.close()


def test_numbers_of_documents_are_those_of_python(fresh):
    seen, _ = fresh
    groups = np.bincount(seen.page.evaluate("coem.data.group"))
    cells = seen.page.locator("#groups tbody tr td:nth-child(3)").all_inner_texts()
    assert sorted(int(cell) for cell in cells) == sorted(groups.tolist())
