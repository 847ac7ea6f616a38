"""Trials are run once, in any order, and survive what stops a run."""

import csv
import json
import sys

import numpy as np
import pytest

from coem.experiments import Claim, Experiment, Table, Verdict, run
from coem.recipes.listener import Listener

FILES = {"runs.jsonl", "table.csv", "figure.svg", "verdict.json"}


class Steps:
    """An experiment whose trials are counted."""

    def __init__(self, n=3):
        self.n, self.ran = n, []

    def trials(self, quick):
        return [{"method": m, "seed": s} for m in ("a", "b") for s in range(1 if quick else self.n)]

    def measure(self, method, seed):
        self.ran.append((method, seed))
        return {"score": np.float32(seed + 0.5 * (method == "b"))}

    def judge(self, results):
        a, b = (results.where(method=method).mean("score") for method in "ab")
        return Verdict.of([Claim(f"b is above a: {b} against {a}", b.mean > a.mean)])

    def tabulate(self, results):
        return results.summary("score", by=["method"])

    def draw(self, results, figure):
        figure.subplots().plot(results.values("score"))

    def experiment(self, code="1", **changed):
        parts = {p: getattr(self, p) for p in ("trials", "measure", "judge", "tabulate", "draw")}
        return Experiment("paper/steps", "Steps", code, **parts | changed)


@pytest.fixture
def steps():
    return Steps()


def go(steps, out, code="1", **settings):
    """Run, and return the trials that were run now."""
    steps.ran.clear()
    run(steps.experiment(code), out, n_jobs=1, **settings)
    return list(steps.ran)


def test_a_run_writes_table_figure_and_verdict(steps, tmp_path):
    outcome = run(steps.experiment(), tmp_path, n_jobs=1)
    folder = tmp_path / "paper" / "steps"
    assert {path.name for path in folder.iterdir()} == FILES
    rows = list(csv.reader((folder / "table.csv").read_text().splitlines()))
    assert rows[0] == ["method", "score", "score error", "n"]
    assert rows[2] == ["b", "1.5", f"{1 / np.sqrt(3):.6g}", "3"]
    told = json.loads((folder / "verdict.json").read_text())
    assert told["verdict"] == outcome.verdict.verdict == "holds"
    assert told["claims"][0]["text"].startswith("b is above a: 1.500 ± 0.577")
    assert told["trials"] == outcome.trials == 6
    assert not told["quick"]


def test_trials_that_were_run_are_not_run_again(steps, tmp_path):
    assert len(go(steps, tmp_path)) == 6
    assert go(steps, tmp_path) == []
    steps.n = 4
    assert go(steps, tmp_path) == [("a", 3), ("b", 3)]
    assert len(go(steps, tmp_path, code="2")) == 8
    assert len(go(steps, tmp_path, code="2", again=True)) == 8


def test_a_run_that_was_stopped_goes_on(steps, tmp_path):
    def stops(method, seed):
        if (method, seed) == ("b", 1):
            raise FileNotFoundError("the data set is gone")
        return steps.measure(method, seed)

    with pytest.raises(FileNotFoundError, match="gone"):
        run(steps.experiment(measure=stops), tmp_path, n_jobs=1)
    assert len(steps.ran) == 4
    assert go(steps, tmp_path) == [("b", 1), ("b", 2)]


@pytest.mark.parametrize(
    "torn", [b'{"key": "12', b'{"key": "12\n', b"\xff\xfe", b"[]\n", b"{}", b"7"]
)
def test_a_torn_line_is_no_result_and_costs_none(steps, tmp_path, torn):
    go(steps, tmp_path)
    runs = tmp_path / "paper" / "steps" / "runs.jsonl"
    lines = runs.read_bytes().splitlines(keepends=True)
    runs.write_bytes(b"".join(lines[:4]) + torn)
    assert go(steps, tmp_path) == [("b", 1), ("b", 2)]
    assert go(steps, tmp_path) == []


def test_files_do_not_depend_on_the_order_of_trials_nor_on_earlier_runs(steps, tmp_path):
    go(steps, tmp_path / "one")
    go(steps, tmp_path / "two", quick=True)
    runs = tmp_path / "one" / "paper" / "steps" / "runs.jsonl"
    shuffled = tmp_path / "two" / "paper" / "steps" / "runs.jsonl"
    shuffled.write_text("".join(reversed(runs.read_text().splitlines(keepends=True)[1:])))
    assert go(steps, tmp_path / "two") == [("a", 0)]
    for name in FILES - {"runs.jsonl"}:
        one, two = (tmp_path / n / "paper" / "steps" / name for n in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), name


def test_a_figure_has_no_time_and_no_style_of_a_user(steps, tmp_path, monkeypatch):
    import matplotlib as mpl

    go(steps, tmp_path / "one")
    monkeypatch.setitem(mpl.rcParams, "font.size", 20.0)
    go(steps, tmp_path / "two")
    one, two = (tmp_path / n / "paper" / "steps" / "figure.svg" for n in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert b"<dc:date>" not in one.read_bytes()


def test_quick_results_say_so(steps, tmp_path):
    assert len(go(steps, tmp_path, quick=True)) == 2
    assert json.loads((tmp_path / "paper" / "steps" / "verdict.json").read_text())["quick"]


def test_a_quick_run_does_not_replace_a_full_one(steps, tmp_path):
    go(steps, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(FileExistsError, match="has the results of a full run"):
        go(steps, tmp_path, quick=True)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    go(steps, tmp_path / "quick", quick=True)
    go(steps, tmp_path / "quick")  # a full run replaces a quick one


def test_a_trial_may_measure_several_rows(steps, tmp_path):
    def both(method, seed):
        return [{"score": seed, "round": t} for t in range(2)]

    def tabulate(results):
        return Table(["n"], [[len(results)], [results.unique("round")]])

    experiment = steps.experiment(measure=both, tabulate=tabulate)
    assert run(experiment, tmp_path, n_jobs=1).table.rows == [[12], [[0, 1]]]


def test_trials_run_in_processes(tmp_path):
    from coem.experiments import load

    experiment = load("bickel-scheffer-2005/figure-1")
    parts = {"trials": lambda quick: [{"values": [i]} for i in range(3)], "measure": summed}
    simple = {
        "judge": lambda results: Verdict.of([Claim("6", results.values("sum").sum() == 3)]),
        "tabulate": lambda results: results.summary("sum", by=["sum"]),
        "draw": lambda results, figure: None,
    }
    from dataclasses import replace

    outcome = run(replace(experiment, **parts, **simple), tmp_path, n_jobs=2)
    assert outcome.verdict.verdict == "holds"


def summed(values):
    return {"sum": sum(values)}


def test_two_equal_trials_are_an_error(steps, tmp_path):
    experiment = steps.experiment(trials=lambda quick: [{"seed": 0}, {"seed": 0}])
    with pytest.raises(ValueError, match="two of them are the same"):
        run(experiment, tmp_path)


def test_what_json_has_not_is_an_error(steps, tmp_path):
    experiment = steps.experiment(measure=lambda method, seed: {"score": {1, 2}})
    with pytest.raises(TypeError, match="plain values, got set"):
        run(experiment, tmp_path, n_jobs=1)


def test_without_matplotlib_nothing_is_run(steps, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install coem\[plot\]"):
        run(steps.experiment(), tmp_path, n_jobs=1)
    assert steps.ran == []


def test_a_listener_hears_of_trials_that_were_done_before(steps, tmp_path):
    go(steps, tmp_path)
    listener = Listener()
    go(steps, tmp_path, listener=listener)
    assert listener.notes == ["paper/steps: 6 of 6 trials were done before"]
