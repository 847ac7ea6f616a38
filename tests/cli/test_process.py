"""The process that the program runs in: streams, signals, and places to write to."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from coem import Corpus, recipes
from coem.cli import _process

from .conftest import read_json

RUN = ("--text", "body", "-k", "3", "--restarts", "2", "--out", "out")
PROGRAM = (sys.executable, "-m", "coem")


# -- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_error(closed, table):
    command = f"exec {' '.join(PROGRAM)} cluster posts.csv {' '.join(RUN)} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=table.parent, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (table.parent / "out" / "run.json").is_file()
    assert (table.parent / "out" / "report.html").read_text(encoding="utf-8").startswith("<!")


def test_an_error_without_a_stream_to_say_it(table):
    command = f"exec {' '.join(PROGRAM)} cluster nothing.csv {' '.join(RUN)} 2>&-"
    done = subprocess.run(["sh", "-c", command], cwd=table.parent, capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == b""


# -- limits -------------------------------------------------------------------------------------

POOL = """
import resource, sys
from coem.cli import main
if sys.argv[1] == "limited":
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, resource.RLIM_INFINITY))
main(["--help"], standalone_mode=False)
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_arrow_reserves_no_addresses_if_they_are_limited():
    def pool(*args, **chosen):
        command = [sys.executable, "-c", POOL, *args]
        kept = {n: v for n, v in os.environ.items() if n != "ARROW_DEFAULT_MEMORY_POOL"}
        done = subprocess.run(command, env=kept | chosen, capture_output=True, text=True)
        return done.stdout.split()[-1]

    own = pool("unlimited")
    assert own != "system"
    assert pool("limited") == "system"
    assert pool("limited", ARROW_DEFAULT_MEMORY_POOL=own) == own


# -- signals ------------------------------------------------------------------------------------

# Sends itself a signal at a point of a verb, and says how it is after that.
SIGNALLED = """
import importlib, os, signal, sys
from coem.cli import main

place, name, number = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1))
module = importlib.import_module(place)
real = getattr(module, name)

def told(*args, **kwargs):
    result = real(*args, **kwargs)
    os.kill(os.getpid(), number)
    return result

setattr(module, name, told)
main()
"""


def signalled(where, number, *arguments, cwd):
    place, _, name = where.rpartition(".")
    command = [sys.executable, "-c", SIGNALLED, place, name, str(int(number)), *arguments]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("coem.io.whole._sync_folder", signal.SIGTERM),
        ("coem.io.whole.take_place", signal.SIGHUP),
        ("coem.io.whole.take_place", signal.SIGINT),
        ("coem.cli._recipes._finish", signal.SIGTERM),
    ],
)
def test_what_was_written_is_told_after_the_last_step(where, number, table):
    told = signalled(where, number, "cluster", "posts.csv", *RUN, cwd=table.parent)
    # The folders of a run are put on the disk twice: its own first, before it has its name.
    early = where.endswith("_sync_folder")
    said = "nothing was written" if early else "out was written"
    assert told == (128 + number, [f"coem: stopped; {said}"])
    assert sorted(os.listdir(table.parent)) == (["posts.csv"] if early else ["out", "posts.csv"])


def test_a_run_that_was_replaced_is_told_of(table, coem):
    coem("cluster", table, *RUN)
    before = read_json("out/run.json")["seed"]
    arguments = ("cluster", "posts.csv", *RUN, "--seed", "7", "--force")
    told = signalled("coem.io.whole.take_place", signal.SIGTERM, *arguments, cwd=table.parent)
    assert told == (143, ["coem: stopped; out was written"])
    assert read_json("out/run.json")["seed"] == 7 != before
    assert sorted(os.listdir(table.parent)) == ["out", "posts.csv"]
    told = signalled("coem.io.whole._sync", signal.SIGTERM, *arguments, cwd=table.parent)
    assert told == (143, ["coem: stopped; nothing was written"])


def test_a_file_that_was_written_is_told_of(table, coem):
    coem("cluster", table, *RUN)
    arguments = ("predict", "out", "posts.csv", "--out", "new.csv")
    told = signalled("coem.cli.predict._write", signal.SIGTERM, *arguments, cwd=table.parent)
    assert told == (143, ["coem: stopped; new.csv was written"])
    arguments = ("name", "out", "0=Sea")
    told = signalled("coem.recipes.record.write_names", signal.SIGHUP, *arguments, cwd=table.parent)
    assert told == (129, [f"coem: stopped; {os.path.join('out', 'names.json')} was written"])


def test_rows_that_were_appended_are_told_of(table, coem):
    coem("ingest", table, "--text", "body", "--out", "corpus")
    rows = table.read_text().splitlines()
    (table.parent / "more.csv").write_text("\n".join([rows[0], *(f"new {r}" for r in rows[1:])]))
    arguments = ("ingest", "more.csv", "--out", "corpus", "--append")
    told = signalled("coem.recipes.ingesting.check_appended", 15, *arguments, cwd=table.parent)
    assert told == (143, ["coem: stopped; nothing was written"])
    told = signalled("coem.recipes.ingest", signal.SIGTERM, *arguments, cwd=table.parent)
    assert told == (143, ["coem: stopped; corpus was written"])
    assert len(Corpus(table.parent / "corpus")) == 2 * (len(rows) - 1)


def test_pages_that_were_filled_are_told_of(tmp_path):
    (tmp_path / "other.md").write_text("no place")
    (tmp_path / "paper.md").write_text("<!-- result figure-1 -->\n<!-- end -->\n")
    found = tmp_path / "results" / "paper" / "figure-1"
    found.mkdir(parents=True)
    verdict = {"quick": False, "claims": [], "title": "A", "verdict": "holds", "trials": 1}
    (found / "verdict.json").write_text(json.dumps(verdict))
    (found / "table.csv").write_text("k\n3\n")
    where = "coem.experiments.pages.fill_pages"
    told = signalled(where, signal.SIGTERM, "reproduce", "--pages", ".", cwd=tmp_path)
    assert told == (143, ["coem: stopped; paper.md was written"])


# Ctrl-C comes when a module is looked for, and no other is loaded after that.
LOADING = """
import os, signal, sys
from coem.cli import main

name, stopped = sys.argv.pop(1), False

class Finder:
    def find_spec(self, found, path=None, target=None):
        global stopped
        if stopped and found.partition(".")[0] in ("numpy", "scipy", "sklearn", "pyarrow"):
            os._exit(99)
        if found == name:
            stopped = True
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize("module", ["numpy.exceptions", "sklearn.utils"])
def test_ctrl_c_while_modules_are_loaded(module, table):
    command = [sys.executable, "-c", LOADING, module, "cluster", "posts.csv", *RUN]
    done = subprocess.run(
        command, cwd=table.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "coem: stopped; nothing was written\n")


def test_nohup_means_it(table):
    started = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + SIGNALLED
    command = [sys.executable, "-c", started, "coem.cli._recipes", "write_run", "1"]
    done = subprocess.run(
        [*command, "cluster", "posts.csv", *RUN], cwd=table.parent, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (table.parent / "out").is_dir()


class Signals:
    """Sends this process SIGTERM when it ends, which Python hears in the method for that."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_python_drops_makes_nobody_deaf(monkeypatch):
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: dropped.append(about.exc_type))
    with _process.stopping_on_signals():
        Signals()
        assert dropped == [_process.Terminated]
        for number in _process.ENDING:
            with pytest.raises(_process.Terminated) as caught:
                signal.raise_signal(number)
            assert caught.value.number == number
            del caught
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def stop_twice(cleaned):
    with _process.stopping_on_signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGHUP)
            cleaned.append(True)


def test_a_second_signal_does_not_cut_the_cleaning_up():
    cleaned, kept = [], []
    for _ in range(2):  # one that ended an earlier call, and that somebody kept, deafens nobody
        with pytest.raises(_process.Terminated) as caught:
            stop_twice(cleaned)
        assert caught.value.number == signal.SIGTERM
        kept.append(caught.value)
    assert len(cleaned) == 2


# -- places -------------------------------------------------------------------------------------


@pytest.fixture
def run(table, coem):
    coem("cluster", table, *RUN)
    return table.parent / "out"


@pytest.mark.parametrize(
    "arguments",
    [
        ("cluster", "posts.csv", *RUN[:-1], "loop"),
        ("cluster", "posts.csv", *RUN[:-1], "loop", "--force"),
        ("predict", "out", "posts.csv", "--out", "loop.csv"),
        ("report", "out", "--out", "loop"),
        ("rerun", "out", "--out", "loop"),
        ("cluster", "loop", *RUN[:-1], "new"),
        ("info", "loop"),
        ("info", "loop.csv"),
        ("ingest", "posts.csv", "--out", "loop"),
        ("ingest", "posts.csv", "--out", "loop/x"),
        ("report", "loop"),
    ],
)
def test_links_in_a_circle_are_told_of(arguments, run, coem):
    for name in ("loop", "loop.csv"):
        (run.parent / name).symlink_to(name)
    code = 2 if arguments == ("report", "loop") else 1
    told = coem(*arguments, code=code).stderr
    assert "should not happen" not in told
    assert "loop" in told
    assert "damaged" not in told
    assert "is a file" not in told
    assert "Errno" not in told
    assert (run.parent / "loop").is_symlink()


@pytest.mark.parametrize("length", [120, 127])
def test_a_folder_with_a_long_name(length, table, coem):
    name = "\u00e9" * length
    coem("cluster", table, *RUN[:-1], name)
    assert (table.parent / name / "run.json").is_file()
    coem("cluster", table, *RUN[:-1], name, "--force")
    assert sorted(os.listdir(table.parent)) == ["posts.csv", name]
    told = coem("cluster", table, *RUN[:-1], name + "\u00e9" * 10, code=1).stderr
    assert "file name too long; choose a shorter one" in told


def test_force_spares_a_folder_in_a_run(run, coem):
    (run / "model.coem").unlink()
    (run / "model.coem").mkdir()
    (run / "model.coem" / "mine").write_text("mine")
    told = coem("cluster", "posts.csv", *RUN, "--force", code=1).stderr
    assert "out also holds a folder model.coem, which would be lost" in told
    assert (run / "model.coem" / "mine").read_text() == "mine"


def test_a_run_that_a_killed_process_moved_away_comes_back(run, coem):
    coem("name", "out", "0=Zero")
    verbs = [
        ("name", "out"),
        ("predict", "out/model.coem", "posts.csv"),
        ("info", "out"),
        ("info", "out/model.coem"),
        ("compare", "out", "out"),
        ("cluster", "posts.csv", *RUN, "--force", "--names-from", "out"),
    ]
    for verb in verbs:
        move_away(run)
        coem(*verb)
        assert sorted(os.listdir(run.parent)) == ["out", "posts.csv"]
    assert read_json(run / "names.json")["names"] == {"0": "Zero"}


def move_away(run):
    """Leave what a process leaves that was killed where folders cannot be exchanged."""
    run.rename(run.parent / ".out.1-0123abcd.old")
    (run.parent / ".out.1-0123abcd.part").mkdir()


def test_names_of_a_run_that_was_moved_away_are_kept(run, coem):
    coem("name", "out", "0=Zero")
    move_away(run)
    told = coem("cluster", "posts.csv", *RUN, "--force", code=1).stderr
    assert "out has names that you gave to its groups" in told
    assert read_json(run / "names.json")["names"] == {"0": "Zero"}
    move_away(run)
    result = recipes.cluster("posts.csv", text="body", k=3, restarts=2, names_from="out", seed=0)
    assert "Zero" in result.naming.names


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_results_and_the_page_are_not_in_one_stream(name, run, coem):
    told = coem("report", "out", "--out", name, "--json", code=2)
    assert "would both write to stdout; leave one out" in told.stderr
    assert told.stdout == ""


def test_a_page_to_a_number_that_no_descriptor_has(run, coem):
    told = coem("report", "out", "--out", "/dev/fd/99999999999999", "--force", code=1).stderr
    assert "/dev/fd/99999999999999" in told
    assert "should not happen" not in told


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no such device")
def test_what_was_written_is_told_if_nothing_can_be_printed(table):
    """A run that is complete is not to be run again."""
    command = [*PROGRAM, "cluster", "posts.csv", *RUN]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "error: out was written, but what is to be printed was not: no space" in done.stderr
    assert "again" not in done.stderr
    assert (table.parent / "out" / "run.json").is_file()


def test_the_page_to_a_fifo(run, coem):
    os.mkfifo("fifo")
    got = []
    reader = threading.Thread(
        target=lambda: got.append((run.parent / "fifo").read_bytes()), daemon=True
    )
    reader.start()
    coem("report", "out", "--out", "fifo")
    reader.join(20)
    assert got == [(run / "report.html").read_bytes()]
    assert stat.S_ISFIFO(os.stat("fifo").st_mode)


def test_the_page_to_standard_output(run):
    done = subprocess.run(
        [*PROGRAM, "report", "out", "--out", "/dev/stdout", "--force"],
        cwd=run.parent,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (run / "report.html").read_bytes()


def test_new_rows_to_a_fifo(run, coem):
    os.mkfifo("new.csv")
    got = []
    reader = threading.Thread(
        target=lambda: got.append((run.parent / "new.csv").read_bytes()), daemon=True
    )
    reader.start()
    coem("predict", "out", "posts.csv", "--out", "new.csv")
    reader.join(20)
    assert got[0].decode() == coem("predict", "out", "posts.csv").stdout


# What needs a folder, and the option that names it.
FOLDERS = {
    "a corpus": ["ingest", "posts.csv", "--out"],
    "a demo": ["demo", "--out"],
    "a stream": ["cluster", "posts.csv", "--stream", "--out"],
    "a checkpoint": ["cluster", "posts.csv", "--out", "out", "--checkpoint"],
}
NO_FOLDER = {
    "a corpus": "{} is a stream; name a folder that is not there yet",
    "a demo": "{} is not a folder; choose another one with --out",
    "a stream": "{} is a stream; name a folder that is not there yet",
    "a checkpoint": "checkpoint must be a folder, and {} is ",
}


@pytest.mark.parametrize("what", FOLDERS)
@pytest.mark.parametrize("place", ["/dev/null", "fifo", "/dev/stdout"])
def test_what_needs_a_folder_refuses_a_stream_before_any_work(what, place, table, coem):
    os.mkfifo("fifo")
    [said] = coem(*FOLDERS[what], place, code=1).stderr.splitlines()
    assert NO_FOLDER[what].format(place) in said


def test_a_checkpoint_in_no_folder(table, coem):
    said = coem(*FOLDERS["a checkpoint"], "/dev/fd/777", code=1).stderr
    assert "the checkpoint folder /dev/fd/777 cannot be made (no such file or directory)" in said


def test_a_stream_refuses_a_folder_of_others_before_any_work(table, coem):
    os.mkdir("full")
    with open("full/file", "w", encoding="utf-8"):
        pass
    said = coem(*FOLDERS["a stream"], "full", code=1).stderr.splitlines()
    assert said == [
        "coem: error: full is there already and not empty; name another folder, or replace it with "
        "--force"
    ]
    [said] = coem(*FOLDERS["a stream"], "full", "--force", code=1).stderr.splitlines()
    assert "full has no run.json in it" in said
