"""What is not in the hands of the program: encodings, names of files, signals."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from .conftest import posts, read_json, write_csv

CLUSTER = ("--text", "body", "-k", "3", "--restarts", "2", "--out", "out")
PROGRAM = (sys.executable, "-m", "coem")


def program(*arguments, **environment):
    """Run the program as a process of its own, with some variables in its environment."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
    )


# -- encodings ----------------------------------------------------------------------------------


@pytest.fixture
def foreign(here):
    """A table with letters that not every terminal has."""
    rows = posts(30)
    for row in rows:
        row["body"] = row["body"].replace("a", "\u0103").replace("e", "\u0119")
    return write_csv(here / "posts.csv", rows)


def test_a_terminal_without_the_letters(foreign):
    result = program("cluster", foreign, *CLUSTER, PYTHONIOENCODING="latin-1")
    assert result.returncode == 0, result.stderr
    assert b"\\u0119" in result.stdout


def test_json_is_the_same_in_any_encoding(foreign):
    arguments = ("cluster", foreign, *CLUSTER, "--force", "--json", "--quiet")
    there, here = (program(*arguments, PYTHONIOENCODING=e) for e in ("cp437", "utf-8"))
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout.decode("cp437")) == json.loads(here.stdout.decode())


# -- names of files -----------------------------------------------------------------------------


def test_a_file_whose_name_is_no_text(here, coem):
    name = os.fsdecode(b"caf\xe9.csv")
    write_csv(here / name, posts(30))
    coem("cluster", name, *CLUSTER)
    assert read_json("out/run.json")["source"] == str(here / name)
    assert "caf?.csv" in (here / "out" / "report.html").read_text(encoding="utf-8")
    assert "the same" in coem("rerun", "out").stdout


def test_texts_whose_names_are_no_text(here, coem):
    for row in posts(30):
        folder = here / "texts" / os.fsdecode(b"\xff" + row["topic"].encode())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{row['id']}.txt").write_text(row["body"], encoding="utf-8")
    coem("cluster", "texts", "--label", "label", *CLUSTER[2:])
    assert r"\xffsea/p0.txt" in (here / "out" / "assignments.csv").read_text(encoding="utf-8")


def test_vectors_in_a_file_whose_name_is_no_text(table, coem):
    name = os.fsdecode(b"\xff.npy")
    np.save(name, np.eye(3)[np.arange(90) % 3])
    coem("cluster", table, "--view", f"v={name}", *CLUSTER[2:])
    assert "the same" in coem("rerun", "out").stdout


def test_a_view_whose_name_is_no_text(table, coem):
    view = os.fsdecode(b"\xff=body")
    assert "name" in coem("cluster", table, "--view", view, *CLUSTER[2:], code=2).stderr


# -- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_run_that_is_stopped_leaves_nothing(sent, code, table):
    # It would take minutes, and would end by itself if the signal were lost.
    arguments = ["--text", "body", "-k", "3", "--restarts", "2000", "--out", "out"]
    with subprocess.Popen(
        [*PROGRAM, "cluster", str(table), *arguments],
        cwd=table.parent,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            process.stderr.readline()  # it has begun
            process.send_signal(sent)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code, told
    assert told == "coem: stopped; nothing was written\n"
    assert [path.name for path in table.parent.iterdir()] == [table.name]
