"""No document of a stream is assigned twice: files are known by names, others by their ids."""

import csv
import io
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import coem
from coem.cli import main
from coem.io import folders
from coem.recipes import Listener
from coem.recipes.stream_ids import KnownIds
from tests.recipes.test_streams import HOW as POSTS
from tests.recipes.test_streams import OLD, posts

HOW = {**POSTS, "report": False, "latent": None}
FILES = {**HOW, "text": "text"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fol").mkdir()
    return tmp_path


def add(here, rows, name="m-{}.txt"):
    for row in rows:
        path = here / "fol" / name.format(row["id"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(row["body"], encoding="utf-8")


def follow(source, **how):
    """Go on with the stream in `groups`; return the ids of its batches, and what was said."""
    listener = Listener()
    found = [list(b.ids) for b in coem.stream(source, out="groups", listener=listener, **how)]
    return found, "\n".join(listener.notes)


def journal():
    with open("groups/assignments.csv", newline="", encoding="utf-8") as file:
        return [row["id"] for row in csv.DictReader(file)]


# -- folders ---------------------------------------------------------------------------------------


def test_new_files_of_a_folder_may_come_anywhere(here, monkeypatch):
    add(here, posts(40, OLD))
    follow("fol", **FILES)
    add(here, posts(2, OLD, 40), "a-{}.txt")  # before all others
    add(here, posts(1, OLD, 42), "m-p2x{}.txt")  # among them
    add(here, posts(1, OLD, 43), "sub/{}.txt")
    opened = []
    read_file = folders.read_file

    def reading(path, *about):
        opened.append(path.name)
        return read_file(path, *about)

    monkeypatch.setattr(folders, "read_file", reading)
    [new], said = follow("fol", **FILES)
    assert new == ["a-p40.txt", "a-p41.txt", "m-p2xp42.txt", "sub/p43.txt"]
    assert opened == [name.rpartition("/")[2] for name in new]  # no other file was read
    assert "40 documents were read before, and are skipped" in said
    assert len(journal()) == len(set(journal())) == 44
    assert follow("fol", **FILES)[0] == []


def test_a_folder_is_known_wherever_it_is(here):
    add(here, posts(40, OLD))
    follow("fol", **FILES)
    (here / "fol").rename(here / "moved")
    (here / "moved" / "m-p3.txt").write_text("another text under a name that is known")
    assert follow("moved", **FILES)[0] == []


def test_files_that_cannot_be_read_are_told_of_and_tried_again(here):
    add(here, posts(40, OLD))
    (here / "fol" / "bad.txt").write_bytes(b"\x00\x01\x02")
    said = follow("fol", skip_bad=True, **FILES)[1]
    assert "files that cannot be read are left out: 1, the first is bad.txt: " in said
    add(here, [{"id": "", "body": posts(1, OLD)[0]["body"]}], "bad.txt")
    assert follow("fol", skip_bad=True, **FILES)[0] == [["bad.txt"]]


def test_a_stream_that_does_not_keep_the_names_of_files_refuses_a_folder(here):
    add(here, posts(40, OLD))
    for given in ("none", "text"):
        with pytest.raises(ValueError, match="whose files are known by their names"):
            follow("fol", **FILES, id=given)
    rows = [{"text": row["body"]} for row in posts(40, OLD)]
    follow([rows], **FILES)
    with pytest.raises(ValueError, match="begin a stream of the folder alone"):
        follow("fol", **FILES)
    with pytest.raises(ValueError, match="has no sheets"):
        list(coem.stream("fol", sheet="a", **FILES))


# -- ids -------------------------------------------------------------------------------------------


def write_csv(name, rows):
    lines = ["id,body", *(f'"{row["id"]}",{row["body"]}' for row in rows)]
    with open(name, "w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


def test_documents_of_a_file_that_was_rotated_are_left_out_by_their_ids():
    rows = posts(60, OLD)
    write_csv("log.csv", rows[:40])
    follow("log.csv", **HOW)
    write_csv("log.csv", rows[10:])
    [new], said = follow("log.csv", **HOW)
    assert new == [row["id"] for row in rows[40:]]
    told = "30 documents are left out, because their ids were assigned before; the first is log.csv"
    assert f"{told}, row 2: 'p10'" in said
    assert follow("log.csv", **HOW)[0] == []
    assert len(journal()) == len(set(journal())) == 60


def test_an_id_counts_once_in_a_call_too():
    rows = posts(60, OLD)
    again = [{**rows[45], "body": "other words"}, *rows[50:], rows[55], rows[3]]
    tables = [rows[:40], rows[40:50], again, rows[:10]]
    found = list(coem.stream(tables, **HOW))  # without a folder
    assert [list(batch.ids) for batch in found] == [
        [row["id"] for row in part] for part in (rows[:40], rows[40:50], rows[50:])
    ]
    assert [batch.n_rows for batch in found] == [40, 50, 60]


def test_errors_name_the_rows_of_a_batch_of_which_some_are_left_out():
    rows = [{**row, "price": str(i)} for i, row in enumerate(posts(42, OLD))]
    lines = [f"{row['id']},{row['body']},{row['price']}" for row in rows]
    for name, part in (("a.csv", lines[:40]), ("b.csv", [*lines[38:41], "p99,ship,cheap"])):
        with open(name, "w", encoding="utf-8") as file:
            file.write("\n".join(["id,body,price", *part, ""]))
    options = ["--text", "body", "--view", "price=price:number", "-k", "3", "--restarts", "2"]
    said = []
    for name in ("a.csv", "b.csv"):
        call = ["cluster", name, "--stream", "--no-report", "--out", "groups", *options]
        said.append(CliRunner().invoke(main, call).output)
    assert "b.csv, row 5, view 'price': 'cheap'" in said[1]


ODD = ["=1+1", "a\nb", 'q"q', " blank ", "NULL", "007", "1.0", "'x", "Ünï", "-"]


@pytest.mark.parametrize("safe", [False, True])
def test_odd_ids_are_known_again_as_they_were(safe):
    rows = posts(40, OLD)
    for row, name in zip(rows, ODD, strict=False):
        row["id"] = name
    follow([rows], safe_csv=safe, **HOW)
    [new], said = follow([[*posts(1, OLD, 50), *rows]], safe_csv=safe, **HOW)
    assert new == ["p50"]
    assert "40 documents are left out" in said


def test_documents_without_an_id_are_new():
    rows = posts(44, OLD)
    follow([rows[:40]], **HOW)
    more = [{"id": None, "body": row["body"]} for row in rows[40:]]
    assert follow([more], **HOW)[0] == [["41", "42", "43", "44"]]
    assert follow([[more[1], more[0]]], **HOW)[0] == [["45", "46"]]


def test_ids_of_the_first_batch_are_told_apart_also_where_they_are_not_learned_from():
    rows = posts(300, OLD)
    for i in range(0, 299, 23):  # some of them are held out, and others are not
        twice = [*rows[:299], {**rows[299], "id": rows[i]["id"]}]
        with pytest.raises(ValueError, match=rf"rows {i + 1} and 300 are both called 'p{i}'"):
            next(coem.stream([twice], **HOW))
    without = [{**row, "id": ""} if i % 2 else row for i, row in enumerate(rows)]
    [batch] = coem.stream([without], **HOW)
    assert list(batch.ids[:2]) == ["1", "2"]


def test_a_pipe_goes_on_after_ids_that_come_again(monkeypatch):
    rows = posts(60, OLD)
    text = "".join(f"{row['id']},{row['body']}\n" for row in [*rows, *rows[:30]])
    stdin = io.TextIOWrapper(io.BytesIO(f"id,body\n{text}".encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    found, said = follow("-", batch=20, **HOW)
    assert [len(ids) for ids in found] == [20, 20, 20]
    assert "row 62: 'p0'" in said


def test_known_ids_take_eight_bytes_each():
    rng = np.random.default_rng(0)
    known, names = KnownIds([["a", "b"], ["c"]]), [f"x{i}" for i in range(5000)]
    for part in np.array_split(names, 50):
        known.add(part.tolist())
    assert sum(run.nbytes for run in known._runs) <= 8 * 5003
    assert len(known._runs) <= 13
    asked = rng.permutation([*names, "a", "b", "c", *(f"y{i}" for i in range(99))]).tolist()
    assert known.has(asked).tolist() == [not name.startswith("y") for name in asked]
    assert known.fresh(["n", "a", None, "n", None]).tolist() == [True, False, True, False, True]
    assert KnownIds().fresh([]).tolist() == []
