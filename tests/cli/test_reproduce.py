"""The verb `reproduce`."""

import json
import sys
from dataclasses import replace

import pytest

from coem.experiments import Claim, Experiment, Verdict

MISSING = "there is no cora.content in COEM_DATA"


@pytest.fixture
def papers(monkeypatch):
    """Two experiments of a paper; one of them has no data."""

    def lost(seed):
        raise FileNotFoundError(MISSING)

    def experiment(name, measure):
        return Experiment(
            name,
            "Title",
            "1",
            lambda quick: [{"seed": seed} for seed in range(1 if quick else 2)],
            measure,
            lambda results: Verdict.of([Claim(f"{len(results)} runs", True)]),
            lambda results: results.summary("x", by=["seed"]),
            lambda results, figure: None,
            ("cora",),
        )

    made = [experiment("p/one", lambda seed: {"x": seed}), experiment("p/two", lost)]
    known = {each.name: each for each in made}
    monkeypatch.setattr("coem.experiments.registry.names", lambda: list(known))
    monkeypatch.setattr("coem.experiments.registry.load", known.get)
    return known


def test_it_says_the_verdict_and_writes_results(papers, here, coem):
    result = coem("reproduce", "p/one", "--jobs", 1)
    assert "p/one       holds         2" in result.stdout
    assert "holds: 2 runs" in result.stdout
    assert (here / "coem-papers" / "p" / "one" / "figure.svg").is_file()
    again = coem("reproduce", "p/one", "--jobs", 1, "--out", "coem-papers")
    assert "p/one: 2 of 2 trials were done before" in again.stderr


def test_what_has_no_data_is_skipped_with_the_reason(papers, here, coem):
    result = coem("reproduce", "p", "--jobs", 1, "--quick", code=1)
    assert f"p/two was skipped: {MISSING}" in result.stderr
    assert "holds: 1 runs" in result.stdout
    told = json.loads(coem("reproduce", "--jobs", 1, "--json", code=1).stdout)
    assert told["skipped"] == {"p/two": MISSING}
    assert told["experiments"][0]["claims"] == [{"text": "2 runs", "holds": True}]


def test_list_runs_nothing(papers, here, coem):
    assert "p/two            2  cora   Title" in coem("reproduce", "--list").stdout
    assert not list(here.iterdir())


def test_pages(here, coem):
    page = here / "p.md"
    page.write_text("no place\n")
    assert coem("reproduce", "--pages", ".").stdout == "pages that changed: none\n"
    page.write_text("<!-- result one -->\n<!-- end -->\n")
    assert "p/one, which has no results" in coem("reproduce", "--pages", ".", code=1).stderr
    assert "give it no NAME" in coem("reproduce", "p", "--pages", ".", code=2).stderr


def test_a_wrong_name(here, coem):
    message = coem("reproduce", "bickel-scheffer-205", code=1).stderr
    assert "did you mean 'bickel-scheffer-2005'" in message


def test_what_was_measured_is_kept_when_it_is_stopped(papers, here, coem, monkeypatch):
    def stops(seed):
        if seed == 1:
            raise KeyboardInterrupt
        return {"x": seed}

    monkeypatch.setitem(papers, "p/one", replace(papers["p/one"], measure=stops))
    monkeypatch.setattr("os._exit", lambda code: sys.exit(code))
    message = coem("reproduce", "p/one", "--jobs", 1, code=130).stderr
    assert message == "coem: stopped; the trials that ended are kept; run it again to go on\n"
    runs = here / "coem-papers" / "p" / "one" / "runs.jsonl"
    assert len(runs.read_text().splitlines()) == 1


def test_names_are_completed(papers):
    from coem.cli.reproduce import command

    complete = command.params[0].shell_complete
    assert [c.value for c in complete(None, "p/o")] == ["p/one"]
    assert [c.value for c in complete(None, "p")] == ["p", "p/one", "p/two"]
