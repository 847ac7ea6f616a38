"""Runs whose files somebody edited: what is said, and what is not touched."""

import copy
import json
import os
import random
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

import coem as library
from coem import models
from coem.cli import main
from coem.recipes.names import NAMES, place_in
from coem.recipes.record import changed_files
from coem.recipes.run_file import FILES, RECORD, misfit, read_run

from .conftest import posts, read_json, write_csv

JUNK = [None, 0, -3, 1.5, "x", [], {}, [[]], [None], {"x": None}, True, 10**400, "../x"]


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a run."""
    return shutil.copytree(finished, tmp_path / "run")


def edit(run, **changed):
    told = read_json(run / "run.json")
    (run / "run.json").write_text(json.dumps(told | changed), encoding="utf-8")


def places(value, at=()):
    """Yield the path to every part of a record; of a list the first two items are enough."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value[:2]) if isinstance(value, list) else items
    for key, part in items:
        yield from places(part, (*at, key))


def spoilt(told, at, junk):
    told = copy.deepcopy(told)
    part = told
    for key in at[:-1]:
        part = part[key]
    if junk == "gone":
        del part[at[-1]]
    else:
        part[at[-1]] = junk
    return told


def test_a_run_fits_its_own_record(finished):
    told = read_run(finished)
    assert misfit(told, RECORD) is None
    assert told["instruction_set"] in ("baseline", "avx2", "avx512")
    assert told["files"].keys() <= set(FILES)


def test_records_of_older_runs_are_read(run):
    told = read_json(run / "run.json")
    for key in ("instruction_set", "called", "inputs", "held_out"):
        del told[key]
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    assert read_run(run)["verb"] == "cluster"


def test_a_spoilt_record_is_one_sentence(run, finished, tmp_path):
    told = read_json(finished / "run.json")
    cases = [(at, junk) for at in places(told) for junk in [*JUNK, "gone"]]
    verbs = [
        ("info", run),
        ("report", run, "--out", tmp_path / "page.html", "--force"),
        ("compare", run, finished),
        ("name", run),
        ("predict", run, finished.parent / "posts.csv"),
    ]
    cases = random.Random(0).sample(cases, 60)
    for number, (at, junk) in enumerate(cases):
        (run / "run.json").write_text(json.dumps(spoilt(told, at, junk)), encoding="utf-8")
        said = CliRunner().invoke(main, [str(a) for a in verbs[number % len(verbs)]])
        assert said.exit_code in (0, 1), (at, junk, said.stderr)
        assert "should not happen" not in said.stderr, (at, junk, said.stderr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[]", "is not the record of a run"),
        ("{", "is damaged"),
        ("\x00", "is damaged"),
    ],
)
def test_a_record_that_is_none(text, message, run, coem):
    (run / "run.json").write_text(text)
    told = coem("predict", run, run, code=1).stderr
    assert message in told
    assert "run it again" in told


@pytest.mark.parametrize("agreement", [[], [[]], [[1.0], [1.0]], [[10**400]]])
def test_a_table_of_another_shape(agreement, run, coem):
    edit(run, stability=read_json(run / "run.json")["stability"] | {"agreement": agreement})
    told = coem("report", run, code=1).stderr
    assert "stability.agreement" in told
    assert "is not what a run writes there; undo what was edited, or run it again" in told


@pytest.mark.parametrize("trust", [-0.1, 1.5, "much"])
def test_a_trust_that_is_no_share(trust, run, coem):
    stability = read_json(run / "run.json")["stability"]
    stability["table"][1]["trust"] = trust
    edit(run, stability=stability)
    assert "stability.table[1].trust is not what a run writes" in coem("report", run, code=1).stderr


CURVE = {
    "confidence": [None, 0.7, 1.0],
    "accuracy": [None, 0.6, 0.0],
    "rows": [0, 3, 4],
    "error": 0.1,
}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rows", [1, 3, 4]),
        ("rows", [0, -3, 4]),
        ("confidence", [None, None, 1.0]),
        ("accuracy", [None, 7.5, 0.0]),
        ("accuracy", [None, float("nan"), 0.0]),
    ],
)
def test_a_curve_that_no_run_has(name, values, run, coem):
    stability = read_json(run / "run.json")["stability"]
    edit(run, stability=stability | {"reliability": CURVE})
    coem("report", run)
    edit(run, stability=stability | {"reliability": CURVE | {name: values}})
    for verb in ("report", "name"):
        told = coem(verb, run, code=1).stderr
        assert "is not the record of a run: stability.reliability is not what a run writes" in told


def test_an_argument_that_the_recipe_does_not_know(run, coem):
    edit(run, arguments=read_json(run / "run.json")["arguments"] | {"kk": 3})
    told = coem("rerun", run, code=1).stderr
    assert "run.json has the argument 'kk', which coem cluster does not know" in told


@pytest.mark.parametrize("name", ["names_from", "listener", "table"])
def test_an_argument_that_no_run_records(name, run, coem):
    edit(run, arguments=read_json(run / "run.json")["arguments"] | {name: "x"})
    assert f"has the argument {name!r}, which" in coem("rerun", run, code=1).stderr


# -- what is outside of the run -----------------------------------------------------------------


@pytest.fixture
def victim(tmp_path):
    """A file of somebody else, beside the run."""
    path = tmp_path / "outside" / "data.csv"
    path.parent.mkdir()
    path.write_text("precious")
    return path


@pytest.mark.parametrize("verb", [("name", "0=Boats"), ("merge", "0", "1"), ("rerun",)])
def test_a_format_leads_nowhere_else(verb, run, victim, coem):
    (run / "assignments.x").mkdir()  # so that .. can be followed
    for form in (f"x/../../../{victim.parent.name}/data.csv", f"x{'/..' * 20}{victim}", "tsv", ""):
        edit(run, written=read_json(run / "run.json")["written"] | {"format": form})
        told = coem(verb[0], run, *verb[1:], code=1).stderr
        assert "written.format is not what a run writes there" in told
    assert victim.read_text() == "precious"
    assert [path.name for path in victim.parent.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("name", ["../outside/data.csv", "x/data.csv", "/data.csv", "..", ""])
def test_only_plain_names_are_written_again(name, run):
    with pytest.raises(ValueError, match="is not the name of a file of a run"):
        place_in(run, name)


@pytest.mark.parametrize("name", ["../outside/data.csv", "data.csv"])
def test_a_file_that_no_run_has(name, run, coem):
    edit(run, files=read_json(run / "run.json")["files"] | {name: "0"})
    assert f"files.{name} is not what a run writes there" in coem("info", run, code=1).stderr


@pytest.mark.parametrize("name", ["clusters.csv", "assignments.csv", "report.html", NAMES])
def test_a_link_in_a_run_is_not_followed(name, run, victim, coem):
    """The digests are true, so that the file is not one that was changed."""
    coem("name", run, "0=Zero")
    victim.write_bytes((run / name).read_bytes())
    before = victim.read_bytes()
    (run / name).unlink()
    (run / name).symlink_to(victim)
    said = coem("name", run, "1=One", code=1).stderr
    assert f"{run / name} is a link, and what it leads to would be replaced" in said
    if name == "report.html":
        assert "is a link" in coem("report", run, "--force", code=1).stderr
    assert victim.read_bytes() == before
    assert '"1"' not in (run / NAMES).read_text()  # it is refused before any work


# -- digests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["predict", "explain", "report", "serve", "rerun"])
def test_another_model_is_refused(verb, run, finished, coem):
    other = models.load(run / "model.coem")
    models.save(other, run / "model.coem")  # a good file, and another one
    more = {
        "predict": (finished.parent / "posts.csv",),
        "explain": ("--id", "p1"),
    }
    result = coem(verb, run, *more.get(verb, ()), code=1)
    if verb == "rerun":
        assert f"{run / 'model.coem'} was changed after the run" in result.stdout
    else:
        assert "model.coem is not the file that the run wrote" in result.stderr
        assert "use the model in another folder" in result.stderr


def test_a_model_by_itself_needs_no_record(run, finished, coem, tmp_path):
    shutil.copy(run / "model.coem", tmp_path / "model.coem")
    coem("predict", tmp_path / "model.coem", finished.parent / "posts.csv")


@pytest.mark.parametrize("verb", [("report",), ("name",), ("compare",)])
def test_a_table_that_was_edited_is_told_of(verb, run, finished, coem):
    with (run / "assignments.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    more = (finished,) if verb == ("compare",) else ()
    told = coem(*verb, run, *more).stderr
    assert f"note: {run / 'assignments.csv'} was changed after the run" in told


def test_a_table_that_was_edited_is_not_replaced(run, coem):
    with (run / "clusters.csv").open("a", encoding="utf-8") as file:
        file.write("mine\n")
    before = (run / "clusters.csv").read_bytes()
    told = coem("name", run, "0=Zero").stderr
    assert "clusters.csv was changed after the run, and that would be lost" in told
    assert (run / "clusters.csv").read_bytes() == before
    assert read_json(run / NAMES)["names"] == {"0": "Zero"}


def test_names_keep_the_digests_true(run, coem):
    for arguments in (
        ("name", "0=Zero"),
        ("merge", "0", "1"),
        ("name", "2=Two"),
        ("name", "--reset"),
    ):
        coem(arguments[0], run, *arguments[1:])
        assert changed_files(run, read_run(run)) == {}
    assert not (run / NAMES).exists()


# Ends before every file that is replaced, one child per file.
STEPS = """
import json, os, sys
from pathlib import Path
import coem as library
from coem import models
from coem.cli import main
from coem.cli import _names, _models, name  # what forks share
from coem.recipes.record import changed_files
from coem.recipes.run_file import read_run
import coem.io.whole as whole

run, told, real = Path(sys.argv[1]), [], os.replace

def child(step):
    left = [step]
    def replace(*args):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return real(*args)
    whole.os.replace = replace
    main(["name", str(run), f"0=Step {step}", "--quiet"], standalone_mode=False)
    os._exit(0)

for step in range(20):
    number = os.fork()
    if not number:
        child(step)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    told.append((code, changed_files(run, read_run(run))))
    if code == 0:
        break
print(json.dumps(told))
"""


def test_names_keep_the_digests_true_if_the_process_is_killed(run):
    done = subprocess.run(
        [sys.executable, "-c", STEPS, run],
        capture_output=True,
        check=True,
        timeout=200,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(told) > 4
    assert told == [[9, {}]] * (len(told) - 1) + [[0, {}]]


# -- instruction sets ---------------------------------------------------------------------------


def test_files_that_differ_by_the_instruction_set(run, coem):
    told = read_json(run / "run.json")
    own = told["instruction_set"]
    files = told["files"] | {"trace.jsonl": "0" * 64}
    edit(run, instruction_set="mmx", files=files)
    said = coem("rerun", run, code=1).stdout
    assert f"the instruction set is {own}, and was mmx" in said
    assert "COEM_ISA=mmx" in said
    edit(run, instruction_set="mmx", files=told["files"])
    assert "the same, to the last bit" in coem("rerun", run).stdout
    del told["instruction_set"]
    (run / "run.json").write_text(json.dumps(told | {"files": files}), encoding="utf-8")
    said = coem("rerun", run, code=1).stdout
    assert "trace.jsonl differs" in said
    assert "instruction set" not in said


# -- other files of a run -----------------------------------------------------------------------


@pytest.mark.parametrize("verb", [("info", "--json"), ("info",), ("report",)])
def test_a_record_with_lists_in_lists(verb, run, coem):
    (run / "run.json").write_text(
        (run / "run.json").read_text().replace("{", '{"more": ' + "[" * 700 + "]" * 700 + ",", 1)
    )
    assert "it is nested too deeply; run it again" in coem(verb[0], run, *verb[1:], code=1).stderr


@pytest.mark.parametrize(
    ("name", "column"),
    [("assignments", "id"), ("assignments", "label"), ("clusters", "label"), ("clusters", "name")],
)
def test_a_table_without_a_column(name, column, run, coem):
    path = run / f"{name}.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(f'"{column}"', '"x"', 1), "utf-8")
    told = coem("compare", run, run, code=1).stderr
    assert f"{path} has no column {column!r}, which a run writes there; put it back" in told


STREAM = ("--stream", "--text", "body", "-k", "3", "--restarts", "2", "--no-report", "--out")


@pytest.fixture(scope="module")
def stream_run(tmp_path_factory):
    """A folder of a stream, and its file, which all tests may read."""
    home = tmp_path_factory.mktemp("stream")
    table = write_csv(home / "posts.csv", posts(60))
    said = CliRunner().invoke(main, ["cluster", str(table), *STREAM, str(home / "run")])
    assert said.exit_code == 0, said.stderr
    return home / "run", table


EDITS = {
    "called": lambda told: told.pop("called"),
    "an id": lambda told: told["stream"].update(id="nothing"),
    "a list": lambda told: told["stream"]["states"][-1]["counts"]["since"].pop(),
    "a name": lambda told: told["stream"]["states"][-1]["names"].append("more"),
    "a group": lambda told: told["stream"]["states"][-1]["counts"].update(faded=[9]),
    "a setting": lambda told: told["arguments"].pop("date"),
    "a number": lambda told: told["stream"]["states"][-1]["counts"].update(since=[2**63] * 3),
    "states": lambda told: told["stream"].update(states=[]),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_stream_whose_record_was_edited(what, stream_run, tmp_path, coem):
    run = shutil.copytree(stream_run[0], tmp_path / "run")
    told = read_json(run / "run.json")
    EDITS[what](told)
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    said = coem("cluster", stream_run[1], *STREAM, run, code=1).stderr
    assert str(run / "run.json") in said
    assert "should not happen" not in said
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_record_without_what_has_a_default(stream_run, tmp_path, coem):
    run = shutil.copytree(stream_run[0], tmp_path / "run")
    edit(run, written={})
    coem("cluster", stream_run[1], *STREAM, run)


STREAM_FILES = (
    *("run.json", "model.coem", "assignments.csv", "clusters.csv", "report.html", "names.json"),
    *("reference.parquet", "recent-0.parquet", "recent-1.parquet", "model.next"),
)


@pytest.mark.parametrize("kind", ["link", "fifo"])
@pytest.mark.parametrize("name", STREAM_FILES)
def test_a_stream_writes_inside_its_folder_alone(name, kind, stream_run, tmp_path, coem):
    run, victim = shutil.copytree(stream_run[0], tmp_path / "run"), tmp_path / "victim"
    path = run / name
    shutil.copy(path if path.is_file() else run / "assignments.csv", victim)
    with victim.open("ab") as file:
        file.write(b"more than the stream has written" * 100)
    before = victim.read_bytes()
    path.unlink(missing_ok=True)
    path.symlink_to("../victim") if kind == "link" else os.mkfifo(path)
    said = coem("cluster", stream_run[1], *STREAM, run, code=1).stderr
    what = "is a link, and what it leads to would be replaced" if kind == "link" else "regular file"
    assert str(path) in said
    assert what in said
    assert victim.read_bytes() == before


@pytest.mark.parametrize("name", ["assignments.csv", "clusters.csv", "run.json", "model.next"])
def test_a_link_that_is_made_while_a_stream_is_at_work(name, tmp_path):
    rows, run, victim = posts(70), tmp_path / "run", tmp_path / "victim"
    how = {"text": "body", "k": 3, "restarts": 2, "report": False}
    following = library.stream([rows[:60], rows[60:]], out=run, **how)
    next(following)
    victim.write_text("of somebody else")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(victim)
    with pytest.raises(ValueError, match="is a link"):
        list(following)
    assert victim.read_text() == "of somebody else"
