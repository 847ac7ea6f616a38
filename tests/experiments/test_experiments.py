"""Every experiment is short, runs, and has a page with the results of its present code."""

import json
import os
from pathlib import Path

import pytest

import coem.experiments
from coem.experiments import find, load, names, run
from coem.experiments.pages import filled, places

HOME = Path(coem.experiments.__file__).parent
PAGES = Path(__file__).parents[2] / "docs" / "papers"
LONGEST = 79  # lines: an experiment is something to learn from


def pages():
    return {page: page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")}


def need_data(experiment):
    """Skip where a data set is not at hand; a test downloads none."""
    home = Path(os.environ.get("COEM_DATA") or "nowhere")
    missing = [name for name in experiment.needs if not (home / name).is_dir()]
    if missing:
        pytest.skip(f"needs the folder {missing[0]} in COEM_DATA")


@pytest.mark.parametrize("name", names())
def test_a_quick_run(name, tmp_path):
    experiment = load(name)
    need_data(experiment)
    outcome = run(experiment, tmp_path, quick=True, n_jobs=1)
    assert outcome.table.rows
    assert all(len(row) == len(outcome.table.columns) for row in outcome.table.rows)
    assert all(any(c.isdigit() for c in claim.text) for claim in outcome.verdict.claims)
    figure = tmp_path / name / "figure.svg"
    before = figure.read_bytes()
    assert b"</svg>" in before
    run(experiment, tmp_path, quick=True, n_jobs=1)
    assert figure.read_bytes() == before


@pytest.mark.parametrize("name", names())
def test_an_experiment_is_short(name):
    path = HOME / f"{name.replace('-', '_')}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("name", names())
def test_an_experiment_has_a_page_with_its_present_results(name):
    assert name in [found for page, text in pages().items() for found in places(text, page)]
    told = json.loads((PAGES / "results" / name / "verdict.json").read_text(encoding="utf-8"))
    experiment = load(name)
    assert told["code"] == experiment.code, "it has changed since: run `make papers`"
    assert told["trials"] == len(experiment.trials(False))
    assert told["title"] == experiment.title


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_shows_what_was_measured(page):
    text = page.read_text(encoding="utf-8")
    assert filled(text, page) == text, "run `coem reproduce --pages docs/papers`"


def test_find_takes_papers_and_experiments():
    assert find([]) == names()
    paper = find(["bickel-scheffer-2005"])
    assert len(paper) >= 1
    assert all(name.startswith("bickel-scheffer-2005/") for name in paper)
    with pytest.raises(ValueError, match="did you mean 'bickel-scheffer-2005/figure-1'"):
        find(["bickel-scheffer-2005/figure1"])
    with pytest.raises(ValueError, match="--list"):
        find(["xyz"])
    with pytest.raises(ValueError, match="is a paper"):
        load("bickel-scheffer-2005")
