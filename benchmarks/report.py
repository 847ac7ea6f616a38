"""Size of the report of 20 Newsgroups, time to make it, to open it, to search in it and to draw.

Opening ends when the script has run and a frame has been painted after it. A search ends when its
documents are in the table. The first one unpacks the index, and is told by itself. The map is
drawn when a group of the legend is chosen; that ends when the picture is on the screen.
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from coem import MixtureClusterer
from coem.datasets import fetch_20newsgroups
from coem.report import tell, write_report

MOST_BYTES, MOST_SECONDS, MOST_SEARCH, MOST_MAP = 8e6, 1.5, 0.05, 0.5
QUERIES = ("hockey", "h", "the", "space shuttle", "nasa orbit moon", "e", "windows driver", "zzz")


def main():
    data = fetch_20newsgroups()
    model = MixtureClusterer(20, tol=1e-4, n_jobs=2, random_state=0).fit(data.views)
    start = time.perf_counter()
    story = tell(
        model,
        data.views,
        feature_names=data.feature_names,
        ids=data.ids,
        texts=data.text,
        titles=data.subjects,
        labels=data.target_names[data.target],
        heading="20 Newsgroups",
    )
    told = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = write_report(story, Path(folder) / "report.html")
        written = time.perf_counter()
        size = path.stat().st_size
        shown = f"{len(story.documents):,} of {story.n_rows:,} documents"
        print(f"{shown}, {len(story.groups)} groups, {len(story.views)} views")
        print(f"tell {told - start:.2f} s, write {written - told:.2f} s")
        print(f"size {size / 1e6:.2f} MB (at most {MOST_BYTES / 1e6:.0f})")
        measured = in_browser(path)
    if measured is not None:
        seconds, first, searches, drawn = measured
        print(
            f"opens in {np.median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f} "
            f"(at most {MOST_SECONDS:.1f})"
        )
        print(
            f"unpacks the index in {first:.2f} s; searches in {1000 * np.median(searches):.0f} ms, "
            f"at most {1000 * max(searches):.0f} (at most {1000 * MOST_SEARCH:.0f})"
        )
        print(
            f"draws the map in {1000 * np.median(drawn):.0f} ms, at most {1000 * max(drawn):.0f} "
            f"(at most {1000 * MOST_MAP:.0f})"
        )


def in_browser(path, times=7):
    """Return the seconds to open, each time in a new context, to unpack, to search and to draw."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no chromium or playwright: opening not measured")
        return None
    seconds = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(times):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("#search:not([hidden])")
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            seconds.append(time.perf_counter() - start)
            if len(seconds) < times:
                page.context.close()
        first, *searches = page.evaluate(SEARCH, ["first", *QUERIES])
        drawn = page.evaluate(DRAW)
        browser.close()
    return seconds, first, searches, drawn


SEARCH = """async queries => {
  const seconds = [];
  for (const query of queries) {
    const start = performance.now(), field = document.getElementById("query");
    field.value = query;
    await new Promise(done => {
      coem.onChange(() => done()); // after the table has been filled: it heard of it before
      field.dispatchEvent(new Event("input"));
    });
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds;
}"""

DRAW = """async () => {
  const seconds = [];
  coem.reset();
  document.getElementById("map").scrollIntoView();
  for (const button of [...document.querySelectorAll(".map-legend button")].slice(0, 6)) {
    await new Promise(done => setTimeout(done, 200));
    const start = performance.now();
    button.click();
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds;
}"""


if __name__ == "__main__":
    main()
