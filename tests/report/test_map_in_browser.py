"""The map, the tree of groups and the filter by date, as a reader uses them."""

import csv
import io

import numpy as np
import pytest

from coem.report import tell, write_report
from tests.report.conftest import Watched, wait_until

pytestmark = pytest.mark.slow  # what is tested is the script of the page

N = 90
START = np.datetime64("2024-01-01")


@pytest.fixture(scope="module")
def story(collection, model):
    days = [str(START + i) if i else "" for i in range(N)]  # the first has none
    return tell(model, collection.views, **collection.named(), dates=days, n_examples=2)


@pytest.fixture(scope="module")
def page_of(browser, story, tmp_path_factory):
    path = write_report(story, tmp_path_factory.mktemp("map") / "report.html")
    seen = Watched(browser, path, viewport={"width": 1280, "height": 900})
    yield seen.page
    assert seen.complaints == []
    assert seen.requests == [path.as_uri()]
    seen.page.context.close()


@pytest.fixture
def page(page_of):
    page_of.evaluate("coem.reset()")
    page_of.locator("#map").scroll_into_view_if_needed()
    return page_of


def shown(page):
    return page.evaluate("[...coem.shown.keys()].filter(i => coem.shown[i])")


def spots(page, story):
    """Return where the documents are on the screen."""
    box = page.locator("#map-canvas").bounding_box()
    frame = page.evaluate(
        "(() => { const b = document.getElementById('map-frame').getBoundingClientRect();"
        "return Math.max(Math.min(b.width, b.height) - 2, 50); })()"
    )
    return np.array([box["x"], box["y"]]) + 14 + story.places * (frame - 28)


def test_all_documents_are_drawn(page):
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    inked = page.evaluate(
        "(() => { const c = document.getElementById('map-canvas');"
        "const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);"
        "const d = new Uint32Array(data.buffer);"
        "return d.filter(v => v !== d[0]).length; })()"
    )
    assert inked > 3 * N
    assert not page.locator(".map-paper").is_visible()


def test_pointing_at_a_document_tells_what_it_is(page, story, collection):
    at = spots(page, story)
    far = np.linalg.norm(at[:, np.newaxis] - at, axis=2) + 1e9 * np.eye(N)
    row = int(far.min(axis=1).argmax())  # the one that is most by itself
    page.mouse.move(*at[row])
    told = page.locator("#map-hint").inner_text()
    assert (collection.titles[row] or collection.ids[row]) in told
    assert story.groups[story.assignments.label[row]].name in told


def test_a_click_opens_the_document(page, story, collection):
    at = spots(page, story)
    far = np.linalg.norm(at[:, np.newaxis] - at, axis=2) + 1e9 * np.eye(N)
    row = int(far.min(axis=1).argmax())
    page.mouse.click(*at[row])
    assert page.locator("#reader").is_visible()
    assert collection.ids[row] in page.locator("#reader-facts").inner_text()
    page.keyboard.press("Escape")


def test_a_line_around_documents_filters_them(page, story):
    at = spots(page, story)
    low, high = np.percentile(at, 20, axis=0), np.percentile(at, 60, axis=0)
    inside = ((at > low) & (at < high)).all(axis=1)
    page.mouse.move(*low)
    page.mouse.down()
    for x, y in ((high[0], low[1]), high, (low[0], high[1])):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    assert shown(page) == np.flatnonzero(inside).tolist()
    assert f"{inside.sum()} of {N} documents chosen" in page.locator("#map-status").inner_text()
    page.click("#map-all")
    assert len(shown(page)) == N


def test_the_legend_filters_by_groups_and_joins_the_search(page, story):
    button = page.locator(".map-legend button").first
    button.press("Enter")
    group = int(page.locator(".map-legend li").first.get_attribute("data-group"))
    label = story.groups[group].label
    own = np.flatnonzero(story.assignments.label == label).tolist()
    assert button.get_attribute("aria-pressed") == "true"
    assert shown(page) == own
    page.fill("#query", "doc 1")
    wait_until(page, "() => coem.query === 'doc 1'")
    assert set(shown(page)) < set(own)
    page.click("#all")  # takes all filters away, those of the map, too
    assert len(shown(page)) == N
    assert button.get_attribute("aria-pressed") == "false"


def test_documents_are_filtered_by_date(page):
    page.fill("#first-day", "2024-01-11")
    page.fill("#last-day", "2024-01-20")
    assert shown(page) == list(range(10, 20))
    page.fill("#first-day", "")
    assert shown(page) == list(range(1, 20))  # the first has no date
    table = page.evaluate("coem.table()").lstrip("\ufeff")
    assert next(csv.DictReader(io.StringIO(table)))["date"] == "2024-01-02"
    page.evaluate("coem.open(10)")
    assert "2024-01-11" in page.locator("#reader-facts").inner_text()
    page.keyboard.press("Escape")


def test_the_tree_is_cut_by_arrow_keys(page, story):
    size = page.locator("#tree-size")
    n = len(story.tree.groups)
    assert page.locator("#cards > .card").count() == n
    size.focus()
    page.keyboard.press("ArrowLeft")
    merged = page.locator("#cards > details.merged")
    assert merged.count() == 1
    together = next(part for part in story.tree.cut(n - 1) if len(part) > 1)
    for group in together:
        assert story.groups[group].name in merged.locator("summary").first.inner_text()
    assert not page.locator(f"#group-{together[0]} h3").is_visible()
    merged.locator("summary").first.click()
    assert page.locator(f"#group-{together[0]} h3").is_visible()
    page.keyboard.press("Tab")
    size.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#cards > .card").count() == n


def test_the_map_is_a_picture_on_paper_and_without_javascript(browser, story, tmp_path):
    path = write_report(story, tmp_path / "report.html")
    seen = Watched(browser, path, java_script_enabled=False)
    assert seen.page.locator(".map-paper").is_visible()
    seen.page.context.close()
    seen = Watched(browser, path)
    seen.page.emulate_media(media="print")
    assert seen.page.locator(".map-paper").is_visible()
    assert not seen.page.locator("#map-canvas").is_visible()
    seen.page.context.close()
