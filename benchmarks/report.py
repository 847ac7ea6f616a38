"""Size of the report of 20 Newsgroups, time to make it, and time that Chromium takes to open it.

Opening ends when the script has run and a frame has been painted after it.
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from coem import MixtureClusterer
from coem.datasets import fetch_20newsgroups
from coem.report import tell, write_report

MOST_BYTES, MOST_SECONDS = 5e6, 2.0


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
        seconds = opening(path)
    if seconds is not None:
        print(
            f"opens in {np.median(seconds):.2f} s, {min(seconds):.2f} to {max(seconds):.2f} "
            f"(at most {MOST_SECONDS:.0f})"
        )


def opening(path, times=7):
    """Return the seconds until the page can be read, each time in a new context."""
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
            page.context.close()
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
