"""An ingest that is killed at any point, or runs out of disk, goes on with --resume.

As in tests/io/test_killed.py, a child is ended before every step that the system hears of.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from click.testing import CliRunner

import coem
from coem.cli import main
from coem.io import corpus_work, corpus_writer

# A child takes half a second, so that some steps are left out; COEM_STRIDE=1 takes all of them.
STRIDE = int(os.environ.get("COEM_STRIDE", "11"))
# For every step: how the child ended, what Corpus says at once, and the bytes after a resumed call.
STEPS = """
import errno, hashlib, json, os, sys
from functools import partial
from pathlib import Path
import coem
from coem import Corpus, ingest
from coem.io import corpus_writer, row_blocks
from coem.recipes import ingesting

home, mode, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
ingesting.row_blocks = partial(row_blocks.row_blocks, rows=5)
rows = [f'{i},captain {i % 3} sails the ship {i % 4},"the crew, {i % 5}"' for i in range(13)]
(home / "a.csv").write_text("id,title,body\\n" + "\\n".join(rows[:9]))
(home / "b.csv").write_text("id,title,body\\n" + "\\n".join(rows[9:]))
out = home / "corpus"
threads = {"threads": 1, "min_df": 1, "stop_words": None}

def first(**more):
    return ingest(home / "a.csv", out, views={"t": "title", "b": "body"}, **threads, **more)

def act(**more):
    if mode == "new":
        return first(**more)
    if mode == "force":
        return ingest(home / "b.csv", out, views={"t": "title"}, force=True, **threads, **more)
    if mode == "refused":  # which removes what it has written
        try:
            return ingest(home / "a.csv", out, append=True, threads=1, **more)
        except ValueError as error:
            assert "both called '0'" in str(error), error
            return None
    return ingest(home / "b.csv", out, append=True, threads=1, **more)

def prepare():
    import shutil
    for path in home.iterdir():
        if path.name not in ("a.csv", "b.csv"):
            shutil.rmtree(path)
    if mode != "new":
        first()

def found():
    bytes_ = {
        str(p.relative_to(home)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(home.rglob("*")) if p.is_file()
    }
    return hashlib.sha256(json.dumps(bytes_).encode()).hexdigest()

def state():
    try:
        corpus = Corpus(out)
        corpus.verify()
        return len(corpus)
    except ValueError as error:
        return str(error).split(": ")[-1]

def child(step):
    left = [step]
    def stop():
        left[0] -= 1
        return left[0] < 0
    def hook(event, args):
        if event.split(".")[0] in ("os", "open", "shutil", "fcntl", "ctypes") and stop():
            os._exit(9)
    if way == "killed":
        sys.addaudithook(hook)
    else:
        write = corpus_writer.Writing.write
        def full(self, data):
            if stop():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(self, data)
        corpus_writer.Writing.write = full
        def no_room(event, args):
            writes = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and stop():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sys.addaudithook(no_room)
    try:
        act()
    except OSError as error:
        os._exit(8 if error.errno == errno.ENOSPC else 7)
    os._exit(0)

prepare()
before = state()
act()
whole, after, told = found(), state(), []
step, stride = 0, int(sys.argv[4])
while True:
    prepare()
    number = os.fork()
    if not number:
        child(step)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    at_once = state()
    if code:
        act(resume=True)
    told.append((code, at_once, found() == whole, state()))
    if code == 0:
        break
    step += stride
print(json.dumps([before, after, told]))
"""


def run(tmp_path, mode, way, stride):
    done = subprocess.run(
        [sys.executable, "-c", STEPS, tmp_path, mode, way, str(stride)],
        capture_output=True,
        timeout=600,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "n_rows"), [("new", 9), ("append", 13), ("force", 4)])
def test_a_killed_ingest_goes_on_to_the_same_bytes(mode, n_rows, tmp_path):
    before, after, told = run(tmp_path, mode, "killed", STRIDE)
    assert after == n_rows
    assert len(told) > 5
    assert [code for code, *_ in told] == [9] * (len(told) - 1) + [0]
    for _, at_once, same, later in told:
        assert same
        assert later == n_rows
        assert at_once in (before, n_rows) or (mode == "new" and "--resume" in at_once)


@pytest.mark.slow
def test_a_refused_ingest_that_is_killed_is_refused_again(tmp_path):
    before, _, told = run(tmp_path, "refused", "killed", min(STRIDE, 3))
    assert len(told) > 5
    assert [code for code, *_ in told] == [9] * (len(told) - 1) + [0]
    assert all(found == before == 9 for _, at_once, _, later in told for found in (at_once, later))


class Killed(BaseException):
    pass


@pytest.mark.parametrize("mode", ["new", "append"])
@pytest.mark.parametrize("n_removed", [0, 1])
def test_a_journal_goes_before_what_it_tells_of(mode, n_removed, tmp_path, monkeypatch):
    """A process may be killed while it removes what it has written."""
    rows = "id,body\n" + "".join(f"{i},the ship {i % 3} sails\n" for i in range(9))
    (tmp_path / "a.csv").write_text(rows)
    (tmp_path / "b.csv").write_text(f"{rows}8,twice\n")
    given = {"views": {"b": "body"}, "min_df": 1, "threads": 1}
    more = {"append": True, "threads": 1} if mode == "append" else given
    if mode == "append":
        coem.ingest(tmp_path / "a.csv", tmp_path / "corpus", **given)
    left = [n_removed]

    def remove(path):
        """Remove most of a folder, and let the process end."""
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name != corpus_work.JOURNAL:
                file.unlink()
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(corpus_work, "remove", remove)
        patch.setattr(corpus_writer, "remove", remove)
        patch.setattr(corpus_work.Work, "new_shard", new_shard)
        with suppress(Killed, ValueError):
            coem.ingest(tmp_path / "b.csv", tmp_path / "corpus", **more)
    with pytest.raises(ValueError, match="both called"):
        coem.ingest(tmp_path / "b.csv", tmp_path / "corpus", **more, resume=True)
    if mode == "append":
        coem.open_corpus(tmp_path / "corpus").verify()


def new_shard(work, number):
    work.shard(number).mkdir()
    return work.shard(number)


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        *((mode, what) for mode in ("new", "append") for what in ("table.arrow", "0.data.npy")),
        ("new", "views.coem"),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_files_of_an_interrupted_ingest_that_are_gone_are_written_again(
    mode, what, cut, tmp_path, monkeypatch
):
    rows = [f"{i},the ship {i % 3} sails\n" for i in range(18)]
    (tmp_path / "a.csv").write_text("id,body\n" + "".join(rows[:9]))
    (tmp_path / "b.csv").write_text("id,body\n" + "".join(rows[9:]))
    given = {"views": {"b": "body"}, "min_df": 1, "threads": 1}
    more = {"append": True, "threads": 1} if mode == "append" else given
    for name in ("whole", "corpus"):
        if mode == "append":
            coem.ingest(tmp_path / "a.csv", tmp_path / name, **given)
    whole = coem.ingest(tmp_path / "b.csv", tmp_path / "whole", **more)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(corpus_work.Work, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            coem.ingest(tmp_path / "b.csv", tmp_path / "corpus", **more)
    root = tmp_path / ("corpus" if mode == "append" else ".corpus.ingest")
    lost = root / what if what == "views.coem" else root / f"shard-00000{mode == 'append':d}" / what
    content = lost.read_bytes()
    lost.unlink()
    if cut:
        lost.write_bytes(content[:-1])
    again = coem.ingest(tmp_path / "b.csv", tmp_path / "corpus", **more, resume=True)
    again.verify()
    assert again.digest == whole.digest


@pytest.mark.parametrize("how", ["append", "force"])
def test_a_corpus_that_was_moved_away_comes_back(how, tmp_path):
    """Where folders cannot be exchanged, a process may be killed when one has gone to its place."""
    (tmp_path / "a.csv").write_text("body\nthe ship sails\nthe crew sails\n")
    given = {"views": {"b": "body"}, "min_df": 1, "threads": 1}
    coem.ingest(tmp_path / "a.csv", tmp_path / "corpus", **given)
    (tmp_path / "corpus").rename(tmp_path / ".corpus.1-0123abcd.old")
    more = {"append": True, "threads": 1} if how == "append" else {"force": True, **given}
    corpus = coem.ingest(tmp_path / "a.csv", tmp_path / "corpus", **more)
    assert len(corpus) == (4 if how == "append" else 2)
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "corpus"]


def test_a_verb_that_reads_a_corpus_puts_it_back(tmp_path):
    (tmp_path / "a.csv").write_text("body\nthe ship sails\nthe crew sails\nbread and butter\n")
    coem.ingest(tmp_path / "a.csv", tmp_path / "corpus", views={"b": "body"}, min_df=1, threads=1)
    (tmp_path / "corpus").rename(tmp_path / ".corpus.1-0123abcd.old")
    arguments = ["topics", str(tmp_path / "corpus"), "-k", "2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "corpus", "out"]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "n_rows"), [("new", 9), ("append", 13)])
def test_a_full_disk_leaves_what_was_there(mode, n_rows, tmp_path):
    before, _, told = run(tmp_path, mode, "full", STRIDE)
    assert len(told) > 3
    assert [code for code, *_ in told] == [8] * (len(told) - 1) + [0]
    for _, at_once, *_ in told[:-1]:
        assert at_once == before or (mode == "new" and "--resume" in at_once)
    assert all(same and later == n_rows for *_, same, later in told)
