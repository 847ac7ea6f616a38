"""Streams: `coem.stream` and ``coem cluster --stream``."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import coem
from coem.cli import main
from coem.io.batches import LineSource
from coem.io.sources import TableError
from coem.io.tables import read_table
from coem.recipes import Listener, stream_folder

WORDS = {
    "sea": "ship sail harbour captain wave anchor deck storm crew mast",
    "kitchen": "oven bread butter flour sugar spoon recipe salt pepper knife",
    "court": "judge trial jury lawyer witness verdict appeal crime prison law",
    "garden": "rose tulip soil spade seed bloom hedge lawn weed compost",
}
HOW = {"text": "body", "k": 3, "restarts": 2, "threads": 1}
OPTIONS = ["--text", "body", "-k", "3", "--restarts", "2", "--threads", "1"]


def posts(n, topics, first=0):
    """Return posts of some topics; a fifth of their words are of any topic."""
    rng, every = np.random.default_rng(first), " ".join(WORDS.values()).split()
    found = []
    for i in range(first, first + n):
        own = [*rng.choice(WORDS[topics[i % len(topics)]].split(), 20), *rng.choice(every, 5)]
        found.append({"id": f"p{i}", "body": " ".join(own)})
    return found


OLD, ALL = list(WORDS)[:3], list(WORDS)
TABLES = [posts(300, OLD), posts(200, OLD, 300), posts(400, ALL, 500), posts(100, ALL, 900)]


def labels_in(folder):
    return (Path(folder) / "assignments.csv").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a stream that nothing has interrupted, and its batches."""
    folder = tmp_path_factory.mktemp("whole") / "groups"
    return folder, list(coem.stream(TABLES, out=folder, **HOW))


def test_groups_keep_their_numbers_and_new_ones_are_added(whole):
    folder, batches = whole
    assert [batch.new for batch in batches] == [[], [], [3], []]
    assert [batch.number for batch in batches] == [1, 2, 3, 4]
    labels = np.concatenate([batch.labels for batch in batches]).astype(int)
    topics = np.concatenate([np.arange(500) % 3, np.arange(500, 1000) % 4])
    # sea, kitchen and court have the numbers of the first batch, whatever they are.
    first = [labels[np.flatnonzero(topics[:300] == t)[0]] for t in range(3)]
    expected = np.array([*first, 3])[topics]
    assert (labels == expected).mean() > 0.97
    lines = labels_in(folder).decode().splitlines()
    assert len(lines) == 1001
    assert lines[0].startswith('"id","label","probability"')
    assert [int(line.split(",")[1]) for line in lines[1:]] == labels.tolist()


def test_no_new_group_is_seen_where_there_is_none():
    tables = [posts(300, OLD), posts(500, OLD, 300), posts(500, OLD, 800)]
    assert [batch.new for batch in coem.stream(tables, **HOW)] == [[], [], []]


def test_a_group_fades_and_comes_back():
    gone = [posts(200, OLD[:2], 1000 + 200 * i) for i in range(12)]
    batches = list(coem.stream([posts(300, OLD), *gone, posts(600, OLD[2:], 9000)], **HOW))
    court = int(batches[0].labels[2])
    assert [batch.faded for batch in batches].count([court]) == 1
    assert court in batches[-1].back
    assert all(batch.new == [] for batch in batches)


def test_unknown_words_are_counted():
    strange = [{"id": "x", "body": "ship sail harbour xylophone"}]
    batches = list(coem.stream([posts(300, OLD), strange], **HOW))
    assert batches[1].unknown == pytest.approx(0.25)


def test_a_later_call_goes_on_with_the_same_bits(whole, tmp_path):
    folder = tmp_path / "groups"
    list(coem.stream(TABLES[:2], out=folder, **HOW))
    before = labels_in(folder)
    list(coem.stream(TABLES[:3], out=folder, **HOW))  # from the beginning: two are skipped
    again = list(coem.stream(TABLES[3:], out=folder, **HOW))  # the new ones alone
    assert again[0].number == 4
    assert labels_in(folder).startswith(before)
    assert labels_in(folder) == labels_in(whole[0])
    assert (folder / "model.coem").read_bytes() == (whole[0] / "model.coem").read_bytes()
    assert list(coem.stream(TABLES[3:], out=folder, **HOW)) == []  # nothing is new


class Killed(BaseException):
    """In the place of SIGKILL: nothing of the process goes on after it."""


PLACES = ["journal", "half of the journal", "recent", "model.next", "run.json", "model.coem"]


@pytest.mark.parametrize("place", PLACES)
def test_a_stream_that_is_killed_goes_on_as_if_it_were_not(place, whole, tmp_path, monkeypatch):
    """It is killed after a step of writing the third batch, which has a new group."""
    folder = tmp_path / "groups"
    list(coem.stream(TABLES[:2], out=folder, **HOW))
    kill(monkeypatch, place)
    with pytest.raises(Killed):
        list(coem.stream(TABLES[:3], out=folder, **HOW))
    monkeypatch.undo()
    result = CliRunner().invoke(main, ["info", str(folder / "model.coem")])
    assert result.exit_code == 0
    list(coem.stream(TABLES, out=folder, **HOW))
    assert labels_in(folder) == labels_in(whole[0])
    assert (folder / "model.coem").read_bytes() == (whole[0] / "model.coem").read_bytes()
    assert sorted(os.listdir(folder)) == sorted(os.listdir(whole[0]))


def kill(monkeypatch, place):
    """Let a step of `StreamFolder.commit` be the last."""
    module = stream_folder
    if place == "half of the journal":

        def torn(self, batch):
            path = self.path / "assignments.csv"
            with path.open("ab") as file:
                file.write(b'"p500",1,0.')
            raise Killed

        monkeypatch.setattr(module.StreamFolder, "_rows", torn)
    elif place == "journal":
        monkeypatch.setattr(module.StreamFolder, "_save", killing(None))
    elif place == "recent":
        monkeypatch.setattr(module, "save", killing(None))
    elif place == "model.next":
        monkeypatch.setattr(module.StreamFolder, "_record", killing(None))
    elif place == "run.json":
        monkeypatch.setattr(module.os, "replace", killing_if(os.replace, "model.next"))
    else:
        monkeypatch.setattr(module.StreamFolder, "finish", killing(None))


def killing(_):
    def stop(*args, **kwargs):
        raise Killed

    return stop


def killing_if(function, name):
    def stop(source, target, **kwargs):
        if os.path.basename(source) == name:
            raise Killed
        return function(source, target, **kwargs)

    return stop


def test_memory_does_not_depend_on_the_number_of_documents(whole):
    """What a stream keeps in the folder beside the journal is bounded, and so is what it reads."""
    sizes = []
    for n in (2, 12):
        kept = {}
        real = stream_folder.StreamFolder.commit

        def commit(self, groups, batch, inputs, kept=kept):
            kept.update(window=groups.window.num_rows, inputs=len(inputs.seen))

        stream_folder.StreamFolder.commit = commit
        try:
            tables = (posts(300, OLD, 300 * i) for i in range(n))
            listener = Listener()
            folder = whole[0].parent / f"bounded-{n}"
            for _ in coem.stream(tables, out=folder, listener=listener, report=False, **HOW):
                pass
        finally:
            stream_folder.StreamFolder.commit = real
        sizes.append(kept)
    assert sizes[1]["window"] <= 2000
    assert sizes[1]["inputs"] == sizes[0]["inputs"] == 1


def test_other_parameters_are_refused(whole, tmp_path):
    folder = tmp_path / "groups"
    shutil.copytree(whole[0], folder)
    with pytest.raises(ValueError, match=r"k was 3 when the stream .* began, and is 4 now"):
        list(coem.stream(TABLES, out=folder, **{**HOW, "k": 4}))
    with pytest.raises(ValueError, match="label is not for streams"):
        coem.stream(TABLES, label="topic", **HOW)
    with pytest.raises(ValueError, match="k-means"):
        coem.stream(TABLES, method="k-means", **HOW)
    with pytest.raises(ValueError, match="view 'm' is not for streams"):
        coem.stream(TABLES, views={"m": "v.npy"}, **HOW)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        coem.stream(TABLES, nonsense=1)
    with pytest.raises(ValueError, match="no documents"):
        list(coem.stream([], **HOW))


def test_another_input_that_begins_the_same_is_refused(whole, tmp_path):
    folder = tmp_path / "groups"
    shutil.copytree(whole[0], folder)
    with pytest.raises(TableError, match="the first 1,000 documents are not those"):
        list(coem.stream([[TABLES[0][0], *TABLES[2]]], out=folder, **HOW))


def test_a_journal_that_was_cut_is_refused(whole, tmp_path):
    folder = tmp_path / "groups"
    shutil.copytree(whole[0], folder)
    (folder / "assignments.csv").write_bytes(b"")
    with pytest.raises(ValueError, match="it was cut or replaced"):
        list(coem.stream(TABLES, out=folder, **HOW))


# -- the program -----------------------------------------------------------------------------------


def write_lines(path, tables):
    rows = [row for table in tables for row in table]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def program(*arguments, code=0, **settings):
    result = CliRunner().invoke(main, [str(a) for a in arguments], **settings)
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def test_the_program_gives_the_bits_of_the_library(tmp_path):
    file, mine, theirs = (tmp_path / name for name in ("posts.jsonl", "mine", "theirs"))
    write_lines(file, TABLES[:3])
    said = program("cluster", file, "--stream", "--batch", "300", *OPTIONS, "--out", theirs)
    list(coem.stream(str(file), batch=300, out=mine, **HOW))
    for name in ("assignments.csv", "clusters.csv", "model.coem", "report.html"):
        assert (mine / name).read_bytes() == (theirs / name).read_bytes(), name
    assert "group 3 is new" in said.stderr
    assert "since batch" in said.stdout


def test_other_verbs_take_the_folder_of_a_stream(whole, tmp_path):
    folder, file = tmp_path / "groups", write_lines(tmp_path / "new.jsonl", TABLES[3:])
    shutil.copytree(whole[0], folder)
    journal = labels_in(folder)
    rows = program("predict", folder, file).stdout.splitlines()
    own = journal.decode().splitlines()[-100:]
    assert [r.split(",")[1] for r in rows[1:]] == [r.split(",")[1] for r in own]
    assert "Garden" in program("name", folder, "3=Garden").stdout
    assert labels_in(folder) == journal
    assert "Garden" in (folder / "clusters.csv").read_text(encoding="utf-8")
    assert "Garden" in (folder / "report.html").read_text(encoding="utf-8")
    program("report", folder)
    assert "log odds" in program("explain", folder, "--id", "p999").stdout
    assert "is a stream" in program("rerun", folder, code=1).stderr
    more = write_lines(tmp_path / "more.jsonl", [posts(50, ALL, 2000)])
    program("cluster", more, "--stream", *OPTIONS, "--out", folder)
    assert labels_in(folder).startswith(journal)
    assert "Garden" in (folder / "clusters.csv").read_text(encoding="utf-8")


def test_rows_go_to_stdout_as_json(tmp_path):
    file = write_lines(tmp_path / "posts.jsonl", TABLES[:2])
    about = ["--batch", "300", *OPTIONS, "--json", "-q", "--out", tmp_path / "groups"]
    lines = program("cluster", file, "--stream", *about).stdout.splitlines()
    told = [json.loads(line) for line in lines]
    assert [len(one["documents"]) for one in told] == [300, 200]
    assert told[1]["documents"][0]["id"] == "p300"
    assert told[1]["so_far"] == 500


def test_options_of_no_use_are_refused_before_any_work(tmp_path):
    file = write_lines(tmp_path / "posts.jsonl", TABLES[:1])
    for option in (
        ["--label", "body"],
        ["--full"],
        ["--strict"],
        ["--format", "jsonl"],
        ["--resume"],
    ):
        said = program("cluster", file, "--stream", *option, "--out", tmp_path / "g", code=2)
        assert "--stream: " in said.stderr
    assert "--batch is for --stream" in program("cluster", file, "--batch", "5", code=2).stderr
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_that_is_stopped_keeps_what_it_read(number, tmp_path):
    """Documents that were read and fill no batch are assigned before the end."""
    folder = tmp_path / "groups"
    command = [sys.executable, "-m", "coem", "cluster", "-", "--stream", "--batch", "200"]
    process = subprocess.Popen(
        [*command, *OPTIONS, "--out", str(folder)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    lines = [json.dumps(row).encode() + b"\n" for row in posts(430, OLD)]
    process.stdin.writelines(lines)
    process.stdin.flush()
    said = b""
    while b"batch 2" not in said:  # the last 30 documents are in the pipe, or read
        line = process.stderr.readline()
        assert line, said
        said += line
    process.send_signal(number)
    rest = process.communicate()[1].decode()
    assert process.returncode == 128 + number
    n_rows = len(labels_in(folder).splitlines()) - 1
    assert n_rows in range(400, 431)
    assert f"{n_rows:,} documents; the same call goes on" in rest
    assert (folder / "report.html").is_file()
    again = write_lines(tmp_path / "posts.jsonl", [posts(430, OLD)])
    list(coem.stream(str(again), out=folder, **HOW))
    assert len(labels_in(folder).splitlines()) == 431


# -- sources ---------------------------------------------------------------------------------------


def source(text, **how):
    return LineSource(io.BytesIO(text.encode()), "posts", **how)


def records(found):
    taken = []
    while (record := found.record()) is not None:
        taken.append(record)
    return taken


def test_csv_comes_in_records_with_cells_of_several_lines():
    found = source('id;text\n1;"a\nb"\n\n2;c\n')
    taken = records(found)
    assert [row for row, _ in taken] == [2, 5]
    data, bad = found.table(taken)
    assert data.column("text").to_pylist() == ["a\nb", "c"]
    assert bad == []
    assert found.table(taken[1:])[0].column("text").to_pylist() == ["c"]


def test_bad_rows_have_their_numbers_in_later_batches():
    found = source('{"a": "x"}\n{"a": "y"}\nnonsense\n')
    taken = records(found)
    with pytest.raises(TableError, match="posts, row 3: no JSON"):
        found.table(taken[1:])
    found = source("a,b\n1,2\n3\n4,5\n", skip_bad=True)
    data, bad = found.table(records(found))
    assert data.num_rows == 2
    assert bad == [(3, "1 cells where the header has 2")]
    with pytest.raises(TableError, match="JSON list"):
        source('[{"a": 1}]').record()
    with pytest.raises(TableError, match="UTF-16"):
        LineSource(io.BytesIO("a,b\n1,2".encode("utf-16")), "posts").record()


GOOD = "".join(f"p{i},ship sail\n" for i in range(60))
UNCLOSED = f'id,body\n{GOOD}z1,"cat dog fur\n{GOOD}'


def test_a_quote_that_is_never_closed_takes_no_other_row_with_it(tmp_path):
    """As in tables that are read as a whole."""
    found = source(UNCLOSED, skip_bad=True)
    data, bad = found.table(records(found))
    (tmp_path / "q.csv").write_text(UNCLOSED)
    whole = read_table(tmp_path / "q.csv", skip_bad=True)
    assert data.equals(whole.data)
    assert bad == whole.bad == [(62, "a quote that is never closed")]
    found = source(UNCLOSED)
    with pytest.raises(TableError, match="posts, row 62: a quote that is never closed; mend it"):
        found.table(records(found))
    found = source(f'id,body\n{GOOD}z1,"cat dog fur', skip_bad=True)  # the last line
    assert found.table(records(found))[1] == [(62, "a quote that is never closed")]


def test_quotes_within_cells_close_nothing():
    text = 'id,body\n1,5" pipe\n2,"a ""b""\nc"\n3,"x"\n4,y"z"\n'
    found = source(text)
    taken = records(found)
    assert [row for row, _ in taken] == [2, 3, 5, 6]
    data, bad = found.table(taken)
    assert data.column("body").to_pylist() == ['5" pipe', 'a "b"\nc', "x", 'y"z"']
    assert bad == []


def test_many_open_quotes_take_time_in_proportion():
    n = 20_000
    text = "id,body\n1,a\n" + n * 'x","\n'
    found = source(text, skip_bad=True)
    started = time.process_time()
    data, bad = found.table(records(found))
    assert time.process_time() - started < 10  # in proportion to the square: an hour
    assert (data.num_rows, len(bad)) == (1, n)


def test_a_file_that_grows_waits_for_the_end_of_a_quote(tmp_path):
    file, heard = tmp_path / "posts.csv", Listener()
    lines = [f"{row['id']},{row['body']}\n" for row in posts(60, OLD)]
    file.write_text("".join(["id,body\n", *lines[:40], 'z1,"cat dog\n', *lines[40:]]))
    how = {**HOW, "skip_bad": True, "listener": heard}
    [batch] = coem.stream(file, out=tmp_path / "groups", **how)
    assert len(batch.ids) == 40
    [said] = [note for note in heard.notes if "never closed" in note]
    assert "row 42: a quote that is never closed so far; the row and the 20 lines after it" in said
    assert said.endswith("close it, or hand the file in as standard input (-)")
    file.write_text("".join(["id,body\n", *lines[:40], 'z1,"cat dog\nfur"\n', *lines[40:]]))
    [batch] = coem.stream(file, out=tmp_path / "groups", **how)
    assert list(batch.ids) == ["z1", *(f"p{i}" for i in range(40, 60))]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "quoted"])
def test_a_row_that_is_half_written_is_left_to_the_next_call(kind, tmp_path):
    rows = posts(40, OLD)
    if kind == "jsonl":
        lines = [json.dumps(row) for row in rows]
    else:
        body = '"{body}\n end"' if kind == "quoted" else "{body}"
        lines = ["id,body", *(f"{row['id']},{body.format(**row)}" for row in rows)]
    text = "\n".join(lines)
    file, out = tmp_path / f"posts.{kind[:5].replace('quote', 'csv')}", tmp_path / "groups"
    # The last line is cut in a word; for "quoted" after the line end in its last cell.
    file.write_text(text[: text.rindex("\n") + 1 if kind == "quoted" else -20])
    heard = Listener()
    [batch] = coem.stream(file, out=out, listener=heard, **HOW)
    assert len(batch.ids) == 39
    assert any("it is left to the next call" in note for note in heard.notes)
    file.write_text(text + "\n")
    [batch] = coem.stream(file, out=out, **HOW)
    assert list(batch.ids) == ["p39"]
    if kind == "jsonl":  # an object says itself that it is whole
        file.write_text(f"{text}\n" + json.dumps(posts(1, OLD, 40)[0]))
        assert [list(one.ids) for one in coem.stream(file, out=out, **HOW)] == [["p40"]]


def test_two_calls_cannot_go_on_with_one_stream_at_once(tmp_path):
    pytest.importorskip("fcntl")
    out = tmp_path / "groups"
    first = coem.stream([posts(40, OLD), posts(9, OLD, 40)], out=out, **HOW)
    next(first)
    for force in (False, True):
        with pytest.raises(ValueError, match="is being written by another process"):
            next(coem.stream([posts(9, OLD, 49)], out=out, force=force, **HOW))
    assert len(list(first)) == 1
    assert len(list(coem.stream([posts(9, OLD, 49)], out=out, **HOW))) == 1
    assert len(labels_in(out).splitlines()) == 1 + 40 + 9 + 9


def test_columns_of_later_batches_hold_what_they_held(tmp_path, monkeypatch):
    """A batch of few rows does not say what its columns are: the first batch does."""
    monkeypatch.chdir(tmp_path)
    rows = [f"v{p['id']}.0,{p['body']},{i % 5}.5" for i, p in enumerate(posts(60, OLD))]
    how = {**HOW, "views": {"price": "price:number"}}
    first, second = ("id,body,price\n" + "\n".join(r) + "\n" for r in (rows, ["1.10,2024,n/a"]))
    Path("a.csv").write_text(first)
    Path("b.csv").write_text(second)
    Path("c.jsonl").write_text('{"id": "x", "body": 7, "price": 1}\n')
    list(coem.stream("a.csv", out="s", **how))
    ids = [
        batch.ids for name in ("b.csv", "c.jsonl") for batch in coem.stream(name, out="s", **how)
    ]
    assert [i for (i,) in ids] == ["1.10", "x"]
    Path("d.csv").write_text("id,body,price\n1,ship,2\n2,ship,cheap\n")
    done = CliRunner().invoke(
        main,
        ["cluster", "d.csv", "--stream", "--out", "s", *OPTIONS, "--view", "price=price:number"],
    )
    assert "d.csv, row 3, view 'price': 'cheap'" in done.output
