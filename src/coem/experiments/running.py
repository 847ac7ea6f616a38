"""Run the trials of an experiment, and write what they came to."""

import csv
import hashlib
import io
import json
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, cpu_count, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from coem.experiments.drawing import need_matplotlib, render
from coem.experiments.registry import Experiment
from coem.experiments.results import Results, Table
from coem.experiments.verdict import Verdict
from coem.io import new_file
from coem.recipes.listener import Listener

RUNS, TABLE, FIGURE, VERDICT = "runs.jsonl", "table.csv", "figure.svg", "verdict.json"


class Outcome(NamedTuple):
    """What an experiment came to, with the number of its trials and their processor seconds."""

    name: str
    verdict: Verdict
    table: Table
    trials: int
    seconds: float


def run(
    experiment: Experiment,
    out: Path,
    *,
    quick: bool = False,
    again: bool = False,
    n_jobs: int | None = None,
    listener: Listener | None = None,
) -> Outcome:
    """Run the trials that are missing, and write table, figure and verdict.

    Parameters
    ----------
    experiment : Experiment
        What `load` returns.
    out : path
        The folder of all results. Those of the experiment go to the folder with its name.
    quick : bool, default=False
        Run few small trials, which show that everything works and nothing else.
    again : bool, default=False
        Forget the trials that were run before. By default only those are run whose settings are
        new, and all if the code that measures has changed.
    n_jobs : int, optional
        Number of processes; each uses one thread. By default as many as processors.
    listener : Listener, optional
        Hears how it gets on.

    Raises
    ------
    FileNotFoundError
        If a data set is not there. What was measured before is kept.
    """
    listener = listener or Listener()
    need_matplotlib()  # an error now, and not after all trials
    folder = Path(out, *experiment.name.split("/"))
    folder.mkdir(parents=True, exist_ok=True)
    trials = _trials(experiment, quick)
    if quick:
        _check_replaceable(folder / VERDICT)
    if again:
        (folder / RUNS).unlink(missing_ok=True)
    done = {key: line for key, line in _read(folder / RUNS) if key in trials}
    if done:
        listener.note(f"{experiment.name}: {len(done)} of {len(trials)} trials were done before")
    todo = {key: trial for key, trial in trials.items() if key not in done}
    with listener.progress(experiment.name, len(trials)) as bar:
        for _ in done:
            bar.step()
        for key, line in _measured(experiment, todo, n_jobs or cpu_count()):
            _append(folder / RUNS, line)
            done[key] = json.loads(line)
            bar.step(f"{done[key]['seconds']:.1f} s")
    # In the order of the trials, whichever ended first: the files do not depend on it.
    lines = [done[key] for key in trials]
    results = Results([line["trial"] | row for line in lines for row in line["rows"]])
    outcome = Outcome(
        experiment.name,
        experiment.judge(results),
        experiment.tabulate(results),
        len(trials),
        sum(line["seconds"] for line in lines),
    )
    _write(folder, experiment, outcome, render(experiment.draw, results), quick)
    return outcome


def _check_replaceable(verdict: Path) -> None:
    """Refuse to replace the results of a full run by those of a quick one."""
    if verdict.is_file() and not json.loads(verdict.read_text(encoding="utf-8"))["quick"]:
        raise FileExistsError(
            f"{verdict.parent} has the results of a full run, which a quick run would replace; "
            "write to another folder (--out)"
        )


# -- trials ----------------------------------------------------------------------------------------


def _trials(experiment: Experiment, quick: bool) -> dict[str, Mapping[str, Any]]:
    """Return the trials by their keys."""
    trials = experiment.trials(quick)
    found = {_key(experiment, trial): trial for trial in trials}
    if not trials or len(found) < len(trials):
        raise ValueError(f"{experiment.name}: there are no trials, or two of them are the same")
    return found


def _measured(
    experiment: Experiment, trials: Mapping[str, Mapping[str, Any]], n_jobs: int
) -> Iterator[tuple[str, str]]:
    """Yield the key and the line of every trial, as soon as it ends."""
    tasks = (delayed(_trial)(experiment.measure, key, trial) for key, trial in trials.items())
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)


def _trial(measure: Any, key: str, trial: Mapping[str, Any]) -> tuple[str, str]:
    """Run a trial in one thread; return its line in the file of runs."""
    start = time.process_time()  # what else runs on the machine does not count
    with warnings.catch_warnings(), threadpool_limits(1):
        # Co-EM with a fixed eta need not converge, and components may die: both are the papers'.
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = measure(**trial)
    rows = [rows] if isinstance(rows, Mapping) else rows
    line = {"key": key, "trial": trial, "rows": rows, "seconds": time.process_time() - start}
    return key, json.dumps(line, default=_plain)


def _plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a trial measures plain values, got {type(value).__name__}")


def _key(experiment: Experiment, trial: Mapping[str, Any]) -> str:
    """Return what is the same as long as a trial need not be run again."""
    text = json.dumps([experiment.code, trial], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the keys and results of earlier trials; half a line is left out."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and "key" in found:
            yield found["key"], found


def _append(path: Path, line: str) -> None:
    """Add a line, below what may be half a line of a run that was killed."""
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, io.SEEK_END)
            line = line if file.read(1) == b"\n" else f"\n{line}"
        file.write(f"{line}\n".encode())


# -- files -----------------------------------------------------------------------------------------


def _write(folder: Path, experiment: Experiment, outcome: Outcome, svg: bytes, quick: bool) -> None:
    told = {
        "experiment": outcome.name,
        "title": experiment.title,
        "verdict": outcome.verdict.verdict,
        "claims": [claim._asdict() for claim in outcome.verdict.claims],
        "trials": outcome.trials,
        "quick": quick,
        "code": experiment.code,
    }
    verdict = json.dumps(told, indent=1, ensure_ascii=False)
    parts = {TABLE: _csv(outcome.table), FIGURE: svg, VERDICT: f"{verdict}\n".encode()}
    for name, content in parts.items():
        with new_file(folder / name) as file:
            file.write(content)


def _csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a value of a table; six digits are more than any trial can tell."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
