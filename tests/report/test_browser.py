"""The page in a browser: no error, no request, search and sort, and hostile text stays text."""

import re
from dataclasses import replace

import pytest

from coem.report import tell, write_report
from coem.report.page import percent
from coem.report.texts import excerpt
from tests.report.conftest import HOSTILE, Watched

pytestmark = pytest.mark.slow  # what is tested is the script of the page


def test_the_page_opens_with_its_pictures(watched):
    assert watched.page.locator("svg.picture:visible").count() >= 5
    assert len(watched.rows()) == 25
    assert watched.page.locator("#found").inner_text() == "90 documents found"


def test_search_finds_words_ids_and_groups(watched):
    page = watched.page
    watched.search("doc 42")
    assert len(watched.rows()) == 1
    assert page.locator("#found").inner_text() == "1 document found"
    watched.search("no such document")
    assert watched.rows() == []
    watched.search("")
    name = page.locator("#choice option").nth(2).inner_text().split(" · ")[1]
    page.select_option("#choice", "1")
    groups = page.locator("#table tbody tr td:nth-child(2)").all_inner_texts()
    assert set(groups) == {name}


def test_a_search_marks_what_it_found(watched):
    watched.search("KEEPER")
    marks = watched.page.locator("#table mark").all_inner_texts()
    assert marks
    assert {mark.lower() for mark in marks} == {"keeper"}


def test_the_pages_of_the_search_turn(watched):
    page, first = watched.page, watched.rows()
    page.click("#next")
    second = watched.rows()
    assert second != first
    assert page.locator("#where").inner_text().startswith("26")
    page.click("#back")
    assert watched.rows() == first
    assert page.locator("#back").is_disabled()


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_tables_sort_by_click_and_by_key(watched, how):
    page = watched.page
    head = page.locator("#groups thead th", has_text="Documents")

    def press():
        head.locator("button").click() if how == "click" else head.locator("button").press("Enter")
        cells = page.locator("#groups tbody tr td:nth-child(3)").all_inner_texts()
        return [int(cell) for cell in cells]

    falling = press()
    assert falling == sorted(falling, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    assert press() == sorted(falling)
    assert head.get_attribute("aria-sort") == "ascending"


def test_documents_sort_by_probability(watched):
    page = watched.page
    button = page.locator("#table thead th", has_text="Probability").locator("button")
    button.click()
    button.click()
    cells = page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()
    shares = [float(cell.rstrip("%")) for cell in cells]
    assert shares == sorted(shares)


def test_the_filter_goes_by_the_probability_that_is_shown(browser, collection, model, tmp_path):
    shares = [0.8949, 0.8951, 0.9, 0.985, 0.9904, 0.9905, 0.9949, 0.9951, 1.0, 0.041, 0.0002]
    story = tell(model, collection.views, **collection.named(), map=False)
    found = story.documents[: len(shares)]
    pairs = zip(found, shares, strict=True)
    story = replace(story, documents=[replace(d, probability=share) for d, share in pairs])
    seen = Watched(browser, write_report(story, tmp_path / "page.html"))

    def shown(least, most):
        seen.page.fill("#least", least)
        seen.page.fill("#most", most)
        cells = seen.page.locator("#table tbody tr td:nth-child(3)").all_inner_texts()
        return [float(cell.strip("<%")) for cell in cells]

    expected = [percent(share) for share in shares]
    assert seen.page.locator("#table tbody td:nth-child(3)").all_inner_texts() == expected
    assert sorted(shown("90", "99")) == [90, 90, 98, 99, 99, 99]
    assert shown("100", "") == [100, 100]
    assert shown("", "4.1") == [4.1, 0.1]
    assert seen.complaints == []
    seen.page.context.close()


@pytest.mark.parametrize("selector", [".doc b", ".doc .open", "#reader-title", "#reader-text"])
def test_signs_that_turn_a_text_turn_nothing_else(watched, selector):
    """One in a title, such as U+202E, would turn the figures beside it."""
    if selector == ".doc b":  # the script makes buttons of them
        watched.page.evaluate("document.querySelector('.doc').append(document.createElement('b'))")
    style = "node => getComputedStyle(node).unicodeBidi"
    assert watched.page.locator(selector).first.evaluate(style) == "isolate"


def test_hostile_documents_are_shown_as_they_are(watched):
    page = watched.page
    for document in HOSTILE:
        if document.strip():
            shown = excerpt(document, 100)
            watched.search(shown.split()[-1].rstrip("…"))
            assert any(shown in row.replace("\n", " ") for row in watched.rows()), shown
    assert page.evaluate("[...document.scripts].filter(s => !s.type).length") == 1
    assert page.locator("main img, main script").count() == 0


def test_the_page_is_there_without_javascript(browser, path):
    seen = Watched(browser, path, java_script_enabled=False)
    assert len(seen.rows()) == 25
    assert not seen.page.locator("#search").is_visible()
    seen.page.locator("details summary").first.click()
    assert seen.page.locator(".documents li").first.is_visible()
    seen.page.context.close()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_the_page_is_never_wider_than_the_screen(browser, path, width):
    seen = Watched(browser, path, viewport={"width": width, "height": 800})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.complaints == []
    seen.page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, path, scheme):
    seen = Watched(browser, path, color_scheme=scheme)
    for selector in (".lede", ".meta", "caption", "summary", ".frequent", "nav a", ".chip.w5"):
        ink, ground = seen.page.locator(selector).first.evaluate(COLOURS)
        assert contrast(ink, ground) >= 4.5, selector
    seen.page.context.close()


def test_all_details_are_open_on_paper(watched):
    page = watched.page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 0


COLOURS = """node => {
  const ink = getComputedStyle(node).color;
  let at = node;
  while (getComputedStyle(at).backgroundColor === "rgba(0, 0, 0, 0)") at = at.parentElement;
  return [ink, getComputedStyle(at).backgroundColor];
}"""


def contrast(first, second):
    """Return the contrast of two colours as the Web Content Accessibility Guidelines define it."""

    def luminance(colour):
        parts = [int(v) / 255 for v in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (
            v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_ids_that_are_numbers_sort_as_numbers(browser, collection, model, tmp_path):
    ids = [str(i) for i in reversed(range(90))]
    told = tell(model, collection.views, ids=ids, n_examples=90)
    seen = Watched(browser, write_report(told, tmp_path / "report.html"))
    seen.page.locator("#table thead th", has_text="Document").locator("button").click()
    assert [int(row.split()[0]) for row in seen.rows()] == list(range(25))
    seen.page.context.close()


@pytest.mark.parametrize("width", [320, 1280])
def test_the_names_of_settings_are_not_broken(browser, collection, model, tmp_path, width):
    told = tell(model, collection.views, settings={"max_iter": 3, "views": "word" * 60})
    path = write_report(told, tmp_path / "report.html")
    seen = Watched(browser, path, viewport={"width": width, "height": 700})
    heights = "rows => rows.map(row => row.getClientRects().length)"
    assert set(seen.page.locator(".settings th bdi").evaluate_all(heights)) == {1}
    seen.page.context.close()
