"""A verb that was stopped goes on from its state, and writes the same bytes."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from coem.io import checkpoint

VERBS = {
    "cluster": ("--text", "body", "-k", "3", "--restarts", "3"),
    "k-means": ("--text", "body", "-k", "3", "--restarts", "3", "--method", "k-means"),
    "classify": ("--text", "body", "--label", "topic", "--folds", "2"),
    "topics": ("--text", "body", "-k", "3", "--max-iter", "5"),
    "segment": ("--text", "body", "-k", "3", "--restarts", "2", "--max-iter", "5"),
}

# Sends itself a signal in a round, and writes the state only if it is asked to. The round waits for
# the handler: it runs in the main thread, and fits in other threads could end before it.
SIGNALLED = """
import os, signal, sys, time
from coem.cli import main
from coem.io import checkpoint, stopping
from coem.records import watch

number, left = int(sys.argv.pop(1)), [int(sys.argv.pop(1))]
checkpoint.THRIFT = 1e9

def look(record):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), number)
        while not stopping.asked():
            time.sleep(0.001)

with watch(look):
    main()
"""


def stopped(number, n_rounds, *arguments, cwd):
    command = [sys.executable, "-c", SIGNALLED, str(int(number)), str(n_rounds), *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


def files_of(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    record = json.loads(files.pop("run.json"))
    record.pop("seconds")
    return files, record


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "number"),
    [
        ("cluster", signal.SIGINT),
        ("k-means", signal.SIGTERM),
        ("classify", signal.SIGTERM),
        ("topics", signal.SIGHUP),
        ("segment", signal.SIGINT),
    ],
)
def test_a_stopped_verb_goes_on(verb, number, table, coem):
    name = "cluster" if verb == "k-means" else verb
    home, given = table.parent, (name, "posts.csv", *VERBS[verb])
    done = stopped(number, 4, *given, "--out", "out", "--resume", cwd=home)
    assert done.returncode == 128 + number, done.stderr
    waits, last = done.stderr.splitlines()[-2:]
    assert waits == "coem: stopping after this round; once more stops at once"
    assert last.startswith(
        "coem: stopped; nothing was written; the state of the fit is kept in "
        ".out.coem-checkpoint, and the same command goes on from it: coem "
    )
    assert last.endswith("--resume")
    assert sorted(os.listdir(home)) == [".out.coem-checkpoint", "posts.csv"]
    result = coem(*given, "--out", "out", "--resume")
    assert "going on from the state in .out.coem-checkpoint" in result.stderr
    assert sorted(os.listdir(home)) == ["out", "posts.csv"]
    coem(*given, "--out", "whole")
    assert files_of(home / "out") == files_of(home / "whole")


def test_choose_k_goes_on(table, coem):
    given = ("choose-k", "posts.csv", "--text", "body", "--among", "2,3", "--checkpoint", "state")
    done = stopped(signal.SIGTERM, 9, *given, cwd=table.parent)
    assert done.returncode == 143, done.stderr
    assert "kept in state" in done.stderr
    result = coem(*given)
    assert "going on from the state in state" in result.stderr
    assert result.stdout == coem(*given[:-2]).stdout
    assert os.listdir(table.parent) == ["posts.csv"]


@pytest.fixture
def kept_state(table):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--checkpoint", "state")
    done = stopped(signal.SIGTERM, 4, *given, cwd=table.parent)
    assert done.returncode == 143, done.stderr
    return given


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--seed", "5"), "seed was 0 and is 5"),
        (("-k", "4"), "k was 3 and is 4"),
        (("--max-iter", "7"), "--max-iter was 200 and is 7"),
    ],
)
def test_another_run_is_refused(more, message, kept_state, coem):
    result = coem(*kept_state, *more, code=1)
    assert f"the checkpoint in state belongs to another fit ({message}); delete" in result.stderr
    assert "goes on from it" not in result.stderr


def test_other_documents_are_refused(kept_state, table, coem):
    table.write_text(table.read_text(encoding="utf-8").replace("ship", "boat"), encoding="utf-8")
    result = coem(*kept_state, code=1)
    assert "belongs to another fit (other documents)" in result.stderr


def test_another_number_of_threads_goes_on(kept_state, coem, table):
    coem(*kept_state, "--threads", "1", "--out", "out")
    coem(*kept_state[:-2], "--threads", "1", "--out", "whole")
    assert files_of(table.parent / "out") == files_of(table.parent / "whole")


def test_a_stop_before_the_first_round_leaves_nothing(table):
    code = SIGNALLED.replace("with watch(look):", "checkpoint.Checkpoint.seeds = look_at\nif True:")
    code = code.replace(
        "def look(record)", "def look_at(*given, **how):\n    look(0)\n\ndef look(r)"
    )
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--resume", "--out", "out")
    command = [sys.executable, "-c", code, str(int(signal.SIGTERM)), "1", *given]
    done = subprocess.run(
        command, cwd=table.parent, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 143, done.stderr
    assert done.stderr.splitlines()[-1] == "coem: stopped; nothing was written"
    assert os.listdir(table.parent) == ["posts.csv"]


def test_results_are_written_before_the_state_goes(table, coem, monkeypatch):
    from coem.cli import _recipes

    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    given = ("cluster", table, *VERBS["cluster"], "--out", "out", "--resume")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(_recipes, "write_run", full)
        result = coem(*given, code=1)
    assert "no space left on device; free some space" in result.stderr
    assert "goes on from it" in result.stderr
    coem(*given)
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]


# -- killed when the results have their name, and the state is still there ------------------------


def killed_at_the_end(coem, monkeypatch, *given):
    """Make a run whose process ends before it removes the state."""
    from coem.io.kept import Kept

    clear = Kept.clear

    def leave(kept):
        return clear(kept) if kept.is_part else kept._lock.release()

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "THRIFT", 0)
        patched.setattr(Kept, "clear", leave)
        coem(*given)


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_that_is_complete_needs_no_more_work(verb, table, coem, monkeypatch):
    name = "cluster" if verb == "k-means" else verb
    given = (name, "posts.csv", *VERBS[verb], "--out", "out", "--resume")
    killed_at_the_end(coem, monkeypatch, *given)
    assert sorted(os.listdir(table.parent)) == [".out.coem-checkpoint", "out", "posts.csv"]
    before = {path.name: path.read_bytes() for path in (table.parent / "out").iterdir()}
    result = coem(*given, "--threads", "1", "--json")
    assert "out is complete: there is nothing to resume" in result.stderr
    assert "going on" not in result.stderr
    told = json.loads(before["run.json"])["result"]
    assert json.loads(result.stdout) == {"folder": "out", **told}
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]
    assert {path.name: path.read_bytes() for path in (table.parent / "out").iterdir()} == before
    coem(*given)  # the process may also have ended just after the state was removed
    assert "name another folder" in coem(*given[:-1], code=1).stderr
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]


def test_a_folder_of_ones_choice_goes_when_the_run_is_complete(table, coem, monkeypatch):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--out", "out", "--checkpoint", "state")
    killed_at_the_end(coem, monkeypatch, *given)
    assert "there is nothing to resume" in coem(*given).stderr
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]


@pytest.mark.parametrize(
    "more",
    [
        ("-k", "4"),
        ("--format", "jsonl"),
        ("--no-report",),
        ("--stop-words", "english"),
        ("--text", "title"),
    ],
)
def test_the_results_of_another_call_are_not_taken_for_complete(more, table, coem, monkeypatch):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--out", "out", "--resume")
    killed_at_the_end(coem, monkeypatch, *given)
    result = coem(*given, *more, code=1)
    assert "out is there already and not empty; name another folder, or replace" in result.stderr
    assert sorted(os.listdir(table.parent)) == [".out.coem-checkpoint", "out", "posts.csv"]
    coem(*given)


def test_results_of_other_documents_or_that_were_changed_are_not_complete(table, coem, monkeypatch):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--out", "out", "--resume")
    killed_at_the_end(coem, monkeypatch, *given)
    groups, text = table.parent / "out" / "clusters.csv", table.read_bytes()
    table.write_bytes(text.replace(b"ship", b"boat"))
    assert "out is there already and not empty" in coem(*given, code=1).stderr
    table.write_bytes(text)
    groups.rename(table.parent / "mine.csv")
    assert "out is there already and not empty" in coem(*given, code=1).stderr
    (table.parent / "mine.csv").rename(groups)
    coem("name", "out", "0=First")  # which run.json and names.json know of
    assert "out is complete" in coem(*given).stderr


def test_files_that_a_view_came_from_are_looked_at(table, coem, monkeypatch):
    np.save("v.npy", np.random.default_rng(0).normal(size=(90, 4)))
    how = ("--view", "v=v.npy", "--evidence", "fixed")
    given = ("cluster", "posts.csv", *VERBS["cluster"], *how, "--out", "out", "--resume")
    killed_at_the_end(coem, monkeypatch, *given)
    assert "out is complete" in coem(*given).stderr
    np.save("v.npy", np.random.default_rng(1).normal(size=(90, 4)))
    assert "out is there already and not empty" in coem(*given, code=1).stderr


def test_the_state_of_another_fit_stays(table, coem):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--out", "out", "--resume")
    coem(*given)
    done = stopped(signal.SIGTERM, 4, *given, "-k", "4", "--force", cwd=table.parent)
    assert done.returncode == 143, done.stderr
    assert "out is there already and not empty" in coem(*given, code=1).stderr
    assert "going on" in coem(*given, "-k", "4", "--force").stderr
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]


def test_names_that_are_to_be_taken_over_make_another_call(table, coem):
    given = ("cluster", "posts.csv", *VERBS["cluster"], "--resume")
    coem(*given, "--out", "first")
    coem("name", "first", "0=First")
    coem(*given, "--out", "second", "--names-from", "first")
    assert "second is complete" in coem(*given, "--out", "second", "--names-from", "first").stderr
    assert "second is there already" in coem(*given, "--out", "second", code=1).stderr


@pytest.mark.parametrize("length", [120, 127])
def test_a_folder_with_a_long_name(length, table, coem):
    name = "\u00e9" * length
    how = ("--text", "body", "-k", "3", "--restarts", "2", "--resume")
    coem("cluster", table, *how, "--out", name)
    assert sorted(os.listdir(table.parent)) == ["posts.csv", name]
    coem("ingest", table, "--text", "body", "--out", f"{name[:-1]}c")
    assert sorted(os.listdir(table.parent)) == ["posts.csv", f"{name[:-1]}c", name]


@pytest.mark.parametrize("more", [[], ["--force"]])
@pytest.mark.parametrize("place", ["out", "out/state", "out/../out"])
def test_the_state_is_not_kept_among_the_results(place, more, table, coem):
    call = ("cluster", "posts.csv", *VERBS["cluster"], "--out", "out", "--checkpoint", place, *more)
    told = coem(*call, code=1).stderr
    assert f"--checkpoint {place} is in the folder of the results, out; name a folder" in told
    assert not (table.parent / "out").exists()
