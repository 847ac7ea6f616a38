"""What is not in the hands of the program: encodings, names of files, signals."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from coem import selection
from coem.cli import _talk as talk

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
    assert "caf\ufffd.csv" in (here / "out" / "report.html").read_text(encoding="utf-8")
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
            # The fits come after this line, and nothing else is said until the signal.
            assert any("views: " in line for line in iter(process.stderr.readline, ""))
            process.send_signal(sent)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code, told
    assert told == "coem: stopped; nothing was written\n"
    assert [path.name for path in table.parent.iterdir()] == [table.name]


# -- options ------------------------------------------------------------------------------------


def test_a_tab_as_shells_hand_it_on(table, coem):
    text = "\n".join(f"{row['id']}\t{row['body']}" for row in posts(30))
    table.write_text(f"id\tbody\n{text}\n", encoding="utf-8")
    coem("cluster", table, *CLUSTER, "--delimiter", r"\t")
    assert read_json("out/run.json")["arguments"]["delimiter"] == "\t"


@pytest.mark.parametrize("delimiter", ["", ";;", "é", '"', "\n"])
def test_delimiters_that_are_none(delimiter, coem):
    told = coem("cluster", "nothing.csv", *CLUSTER, "--delimiter", delimiter, code=2).stderr
    assert "one ASCII character" in told


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("k = 3.7", "k must be a whole number, and is 3.7"),
        ("k = true", "k must be a whole number, and is true"),
        ("k = [3]", "k must be a whole number, and is [3]"),
        ("k = 2001-01-01", "k must be a whole number"),
        ("max-df = true", "max-df must be a number, and is true"),
        ('strict = "yes"', 'strict must be true or false, and is "yes"'),
        ("strict = 1", "strict must be true or false, and is 1"),
        ("text = 3", "text must be text, or a list"),
        ('text = ["body", 3]', "text must be text, or a list"),
        ("out = 3", "out must be text in quotes, and is 3"),
        ("[clutser]", "no verb 'clutser'"),
    ],
)
def test_settings_of_the_wrong_kind(setting, message, table, coem):
    (table.parent / "c.toml").write_text(f"{setting}\n")
    told = coem("cluster", table, "--config", "c.toml", code=2).stderr
    assert message in told
    assert "c.toml" in told


def test_settings_that_are_nested_too_deeply(table, coem):
    (table.parent / "c.toml").write_text(f"k = {'[' * 5000}{']' * 5000}\n")
    assert "c.toml is not TOML" in coem("cluster", table, "--config", "c.toml", code=2).stderr


@pytest.mark.parametrize("among", ["[4, 2]", '"4,2"'])
def test_numbers_in_a_file(among, table, coem):
    (table.parent / "c.toml").write_text(f'text = "body"\nmax-df = 1\namong = {among}\n')
    result = coem("choose-k", table, "--config", "c.toml", "--json")
    assert [row["k"] for row in json.loads(result.stdout)["table"]] == [2, 4]


@pytest.mark.parametrize("among", ['"4;2"', "4", "[4]", "[4, 2.5]", "[1, 2]"])
def test_numbers_in_a_file_that_are_none(among, table, coem):
    (table.parent / "c.toml").write_text(f"among = {among}\n")
    assert "numbers" in coem("choose-k", table, "--config", "c.toml", code=2).stderr


@pytest.mark.parametrize("verb", ["cluster", "choose-k"])
def test_the_choice_of_k_has_as_many_rounds(verb, table, coem, monkeypatch):
    seen = []
    choose = selection.choose_k
    monkeypatch.setattr(
        selection,
        "choose_k",
        lambda model, *args, **settings: (
            seen.append(model.max_iter) or choose(model, *args, **settings)
        ),
    )
    coem(verb, table, "--text", "body", "--max-iter", "2")
    assert seen == [2]


# -- what a terminal would obey -----------------------------------------------------------------


def test_control_characters_do_not_reach_the_terminal(here, coem):
    labels = ["\x1b[31mlaw\x1b[0m", "out\r\nside\tof", "\x9b2J"]
    rows = [{**row, "to\x1bpic": labels[i % 3]} for i, row in enumerate(posts())]
    write_csv(here / "a.csv", rows)
    arguments = ["classify", "a.csv", "--label", "to\x1bpic", "--text", "body"]
    told = coem(*arguments, "--out", "a")
    shown = told.stdout + told.stderr
    assert r"\x1b[31mlaw\x1b[0m" in shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    told = json.loads(coem(*arguments, "--out", "b", "--json").stdout)
    assert "\x1b[31mlaw" in json.dumps(told, ensure_ascii=False).replace("\\u001b", "\x1b")


def test_a_cell_of_a_table_is_one_line():
    lines = talk.table(["a\nb", "n"], [["x\r\ny\tz\u2028\x07", 1]]).split("\n")
    assert lines == ["a b         n", "x y z \\x07  1"]


def test_notes_are_harmless(capsys):
    talk.Talk().note("a\x1b]0;b\x07\nc\rd")
    assert capsys.readouterr().err == "a\\x1b]0;b\\x07\nc\\x0dd\n"


def test_signs_that_turn_a_line_are_shown(capsys):
    talk.Talk().note("invoice\u202efdp.exe, caf\u00e9, \u05e9\u05dc\u05d5\u05dd")
    assert capsys.readouterr().err.startswith("invoice\\u202efdp.exe, caf\u00e9, \u05e9")


@pytest.mark.parametrize("terminal", [True, False])
def test_rows_keep_their_bytes_unless_a_terminal_shows_them(terminal, monkeypatch, capfdbinary):
    monkeypatch.setattr(talk, "is_terminal", lambda: terminal)
    rows = 'id\n"a\x1b[2J\x9bx\u202e"\n'.encode()
    talk.Talk().rows(rows)
    sys.stdout.flush()
    out = capfdbinary.readouterr().out
    assert out == (b'id\n"a\\x1b[2J\\x9bx\\u202e"\n' if terminal else rows)


def test_json_has_escapes_of_its_own(capsys):
    talk.Talk(as_json=True).result("", {"a": "\x1b\x9b\u202eb"})
    out = capsys.readouterr().out
    assert out == '{"a": "\\u001b\\u009b\\u202eb"}\n'
    assert json.loads(out) == {"a": "\x1b\x9b\u202eb"}


def test_a_usage_error_is_harmless(here, coem):
    told = coem("info", "a.csv", "--delimiter", "\x1b[2J", code=2)
    assert "\x1b" not in told.stderr
    told = coem("predict", "no\x1b[2Jmodel", "a.csv", code=2)
    assert r"no\x1b[2Jmodel" in told.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_terminal_and_a_pipe(here):
    import pty

    (here / "a.csv").write_text("id,na\x9bme\n1,x\x1b[2Jy\n2,z\n")
    program = [sys.executable, "-m", "coem", "info", "a.csv"]
    own, other = pty.openpty()
    with os.fdopen(own, "rb", 0) as screen:
        told = subprocess.run(program, cwd=here, stdout=other, stderr=other, timeout=300)
        os.close(other)
        shown = screen.read(1 << 16)
    assert told.returncode == 0
    assert rb"na\x9bme" in shown
    assert b"\x1b" not in shown
    assert b"\xc2\x9b" not in shown


# -- one file for several verbs -----------------------------------------------------------------


def test_a_plain_setting_is_not_taken_for_something_else(table, coem):
    text = 'id = "id"\nout = "groups"\ntext = "body"\nk = 3\n'
    (table.parent / "c.toml").write_text(text)
    coem("cluster", table, "--config", "c.toml")
    assert coem("predict", "groups", table, "--config", "c.toml").stdout.startswith('"id","label"')
    assert "'--id'" in coem("explain", "groups", "--config", "c.toml", code=2).stderr
    own = '[predict]\nout = "new.csv"\n[explain]\nid = "p1"\n'
    (table.parent / "c.toml").write_text(text + own)
    coem("predict", "groups", table, "--config", "c.toml")
    assert (table.parent / "new.csv").is_file()
    assert coem("explain", "groups", "--config", "c.toml").stdout
