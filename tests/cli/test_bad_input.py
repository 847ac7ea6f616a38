"""What users get wrong: each has a sentence and an exit code, and nothing is written."""

import errno
import gzip
import json
import os
import re
import shutil
import zipfile

import numpy as np
import pytest

from .conftest import posts, write_csv

CLUSTER = ("cluster", "--text", "body", "-k", "3", "--restarts", "2", "--out", "out")


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*"))


# -- the file -----------------------------------------------------------------------------------

HEADER = "id,body\n"
BAD_FILES = {
    "empty.csv": (b"", "empty"),
    "blank.csv": (b"\n\n\n", "empty|no row|header"),
    "header.csv": (b"id,body\n", "no rows|header"),
    "numbers.csv": (b"1,2\n3,4\n5,6\n", "header"),
    "ragged.csv": (b"id,body\n1,one\n2,two,three\n3,four\n", r"(row|line) 3"),
    "short.csv": (b"id,body,more\n1,one,x\n2,two\n", r"(row|line) 3"),
    "quote.csv": (b'id,body\n1,one\n2,"two\n3,three\n', "quote"),
    "nul.csv": (b"id,body\n1,on\x00e\n", "NUL"),
    "greek.csv": (("id,body\n" + "1,\u03b1\u03b2\u03b3\u03b4\n" * 9).encode("cp1253"), "encoding"),
    "book.csv": (b"PK\x03\x04" + bytes(50), "Excel"),
    "old.xls": (b"\xd0\xcf\x11\xe0", r"save it as \.xlsx"),
    "locked.xlsx": (b"\xd0\xcf\x11\xe0" + bytes(50), "password"),
    "text.xlsx": (b"id,body\n1,one\n", "not an Excel workbook"),
    "open.json": (b'[{"id": 1, "body": "a"}', "no JSON"),
    "number.json": (b"3", "list of objects"),
    "two.json": (b'{"a": [{"x": 1}], "b": [{"x": 1}]}', "several lists"),
    "twice.csv": (b"body,body\na,b\n", "body"),
    "bad.jsonl": (b'{"id": 1, "body": "a"}\n{"id": 2, "body": \n', r"(row|line) 2"),
    "list.jsonl": (b"[1, 2]\n", "object"),
    "cut.csv.gz": (gzip.compress(b"id,body\n1,one\n" * 50)[:40], "damaged|gz"),
    "not.csv.gz": (b"id,body\n1,one\n", "gz"),
    "not.csv.zst": (b"id,body\n1,one\n", "zst"),
    "not.parquet": (b"id,body\n1,one\n", "parquet|Parquet"),
    "what.xlsx": (b"PK\x03\x04", "xlsx"),
    "what": (b"id,body\n", "extension|kind|end"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_cannot_be_read(name, here, coem):
    content, message = BAD_FILES[name]
    (here / name).write_bytes(content)
    result = coem("cluster", name, *CLUSTER[1:], code=1)
    assert result.stderr.startswith("coem: error: ")
    assert result.stderr.count("\n") == 1
    assert name in result.stderr
    assert re.search(message, result.stderr), result.stderr
    assert files_in(here) == [name]


def test_a_file_that_is_not_there(here, coem):
    assert "nothing.csv" in coem(CLUSTER[0], "nothing.csv", *CLUSTER[1:], code=1).stderr


def test_a_folder_without_texts(here, coem):
    (here / "texts").mkdir()
    assert ".txt" in coem(CLUSTER[0], "texts", *CLUSTER[1:], code=1).stderr


def test_a_line_that_is_too_long_is_refused(here, coem):
    with (here / "a.csv").open("wb") as file:
        file.write(b"id,body\n1,")
        file.truncate(2 << 30)  # two gigabytes that take no room on the disk
    assert "row 2" in coem(CLUSTER[0], "a.csv", *CLUSTER[1:], code=1).stderr


def test_utf_16_is_read(here, coem):
    write_csv(here / "a.csv", posts())
    (here / "b.csv").write_bytes((here / "a.csv").read_text(encoding="utf-8").encode("utf-16"))
    coem(CLUSTER[0], "b.csv", *CLUSTER[1:])


def test_bad_rows_can_be_left_out(here, coem):
    write_csv(here / "a.csv", posts())
    with (here / "a.csv").open("a", encoding="utf-8") as file:
        file.write("too,few\n")
    result = coem(CLUSTER[0], "a.csv", *CLUSTER[1:], "--skip-bad")
    assert "1 bad row" in result.stderr
    assert json.loads((here / "out" / "run.json").read_text())["bad_rows"] == 1


# -- columns and views --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--text", "nobody"], 1, "nobody.*title"),
        (["--view", "x=nobody"], 1, "nobody"),
        (["--view", "title"], 2, "NAME=COLUMN"),
        (["--view", "a=title", "--view", "a=body"], 2, "two views"),
        (["--view", "links=refs:wrong"], 1, "wrong"),
        (["--view", "v=missing.npy"], 1, "missing.npy"),
        (["--view", "n=title:number"], 1, "title"),
        (["--id", "topic"], 1, "rows 2 and 5.*sea"),
        (["--id", "nobody"], 1, "nobody"),
        (["--label", "nobody"], 1, "nobody"),
        (["-k", "91"], 1, "90 rows"),
        (["-k", "0"], 2, "-k"),
        (["-k", "three"], 2, "three"),
        (["--restarts", "1"], 2, "restarts"),
        (["--nonsense"], 2, "nonsense"),
        (["--min-df", "200"], 1, "min_df|min-df|no word"),
        (["--max-df", "2"], 2, "max-df"),
        (["--encoding", "klingon"], 1, "klingon"),
        (["--sheet", "one"], 1, "has no sheets"),
        (["--view", "x=refs+title:list"], 1, "one column"),
        (["--view", "x=nobody:category"], 1, "nobody"),
        (["--view", "x=title:category+price:number"], 1, "category and number|several views"),
        (["--config", "none.toml"], 2, "none.toml"),
    ],
)
def test_arguments(arguments, code, message, table, coem):
    extra = [] if arguments[0] in ("--text", "--view") else ["--text", "body"]
    size = [] if arguments[0] == "-k" else ["-k", "3"]
    given = [*extra, *size, "--restarts", "2"] if arguments[0] != "--restarts" else [*extra, *size]
    result = coem("cluster", table, *given, *arguments, "--out", "out", code=code)
    assert re.search(message, result.stderr, re.DOTALL), result.stderr
    assert not (table.parent / "out").exists()


def test_vectors_of_another_length(table, coem):
    np.save("v.npy", np.eye(5))
    result = coem("cluster", table, "--view", "v=v.npy", "-k", "3", "--out", "out", code=1)
    assert "v.npy has 5 rows, the table 90" in result.stderr


def test_vectors_that_are_pickled(table, coem):
    np.save("v.npy", np.array([{}] * 90, dtype=object), allow_pickle=True)
    result = coem("cluster", table, "--view", "v=v.npy", "-k", "3", "--out", "out", code=1)
    assert "v.npy" in result.stderr


def test_texts_that_are_all_empty(here, coem):
    write_csv(here / "a.csv", [{"id": i, "body": "", "topic": "x"} for i in range(9)])
    assert "no row has a word" in coem(CLUSTER[0], "a.csv", *CLUSTER[1:], code=1).stderr


def test_an_unknown_verb(coem):
    assert "cluster" in coem("clutser", code=2).stderr


# -- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([""] * 90, "no row has a label"),
        (["same"] * 90, "two classes"),
        ([f"l{i}" for i in range(90)], "different labels"),
    ],
)
def test_labels_that_teach_nothing(labels, message, here, coem):
    rows = [{**row, "topic": label} for row, label in zip(posts(), labels, strict=True)]
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", code=1)
    assert message in result.stderr
    assert files_in(here) == ["a.csv"]


def test_classify_needs_labels(table, coem):
    assert "--label" in coem("classify", table, code=2).stderr


# -- the output ---------------------------------------------------------------------------------


def test_nothing_is_overwritten(table, coem):
    out = table.parent / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    assert "--force" in coem(CLUSTER[0], table, *CLUSTER[1:], code=1).stderr
    assert files_in(out) == ["precious.txt"]


def test_force_replaces_it(table, coem):
    coem(CLUSTER[0], table, *CLUSTER[1:])
    before = (table.parent / "out" / "run.json").read_text()
    coem(CLUSTER[0], table, *CLUSTER[1:], "--force", "--seed", "1")
    assert (table.parent / "out" / "run.json").read_text() != before


def test_a_file_in_the_way(table, coem):
    (table.parent / "out").write_text("mine")
    coem(CLUSTER[0], table, *CLUSTER[1:], "--force", code=1)
    assert (table.parent / "out").read_text() == "mine"


def test_a_full_disk(table, coem, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("coem.report.write_report", full)
    assert "no space" in coem(CLUSTER[0], table, *CLUSTER[1:], code=1).stderr
    assert files_in(table.parent) == ["posts.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(table, coem):
    table.parent.chmod(0o500)
    try:
        coem(CLUSTER[0], table, *CLUSTER[1:], code=1)
    finally:
        table.parent.chmod(0o700)


# -- models -------------------------------------------------------------------------------------


def test_a_model_of_other_columns(finished, here, coem):
    write_csv(here / "a.csv", [{"id": "1", "text": "words"}])
    assert "body" in coem("predict", finished, "a.csv", code=1).stderr


@pytest.mark.parametrize("how", ["cut", "tampered", "pickle", "text", "newer"])
def test_models_that_are_damaged(how, finished, table, coem, tmp_path):
    path = tmp_path / "model.coem"
    shutil.copy(finished / "model.coem", path)
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "tampered":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif how == "pickle":
        path.write_bytes(b"\x80\x04cos\nsystem\n(S'touch evil'\ntR.")
    elif how == "text":
        path.write_text("a model")
    else:
        _rewrite(path, schema=10**6)
    result = coem("predict", path, table, code=1)
    assert "model.coem" in result.stderr
    assert not (tmp_path / "evil").exists()


def _rewrite(path, **changes):
    """Change what the JSON document of a model says."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    told = json.loads(members["model.json"])
    members["model.json"] = json.dumps({**told, **changes}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_a_model_that_is_not_there(table, coem):
    coem("predict", "nothing.coem", table, code=2)


def test_an_id_that_is_not_there(finished, coem):
    assert "'nobody'" in coem("explain", finished, "--id", "nobody", code=1).stderr


def test_a_folder_that_is_no_run(here, coem):
    (here / "a").mkdir()
    for verb in ("report", "rerun"):
        assert "is not the folder of a run" in coem(verb, "a", code=1).stderr


def test_one_run_cannot_be_compared(finished, coem):
    coem("compare", finished, code=2)


def test_a_config_that_is_no_toml(table, coem):
    (table.parent / "c.toml").write_text("k = = 3")
    assert "TOML" in coem("cluster", table, "--config", "c.toml", code=2).stderr


def test_a_config_with_an_unknown_option(table, coem):
    (table.parent / "c.toml").write_text("[cluster]\nkk = 3")
    assert "'kk'" in coem("cluster", table, "--config", "c.toml", code=2).stderr


def test_a_config_with_an_option_of_no_verb(table, coem):
    (table.parent / "c.toml").write_text("restart = 3")
    assert "'restart'" in coem("cluster", table, "--config", "c.toml", code=2).stderr


@pytest.mark.parametrize("wrong", ["true", "5.7", "[5]"])
def test_a_config_with_a_wrong_number_of_directions(table, coem, wrong):
    (table.parent / "c.toml").write_text(f"[cluster]\nlatent = {wrong}")
    told = coem("cluster", table, "--config", "c.toml", code=2).stderr
    assert f"latent must be a number, or a word in quotes, and is {wrong}" in told


def test_a_config_with_a_number_or_a_word(table, coem):
    for latent in ("3", '"none"'):
        (table.parent / "c.toml").write_text(f"[cluster]\nlatent = {latent}\nk = 2")
        coem("cluster", table, "--config", "c.toml", "--restarts", "2", "--text", "body", "--force")


@pytest.mark.parametrize("wrong", ["some", "0", "2.5"])
def test_a_wrong_number_of_directions(table, coem, wrong):
    told = coem("cluster", table, "--latent", wrong, code=2).stderr
    assert f"'{wrong}' is not auto, none or a number of at least 1" in told


def test_a_wrong_weight_of_unlabelled_rows(table, coem):
    told = coem("classify", table, "--label", "topic", "--unlabeled-weight", "2", code=2).stderr
    assert "'2' is not auto or a number from 0 to 1" in told


def test_documents_that_have_moved(finished, coem, here):
    (here / "model.coem").write_bytes((finished / "model.coem").read_bytes())
    assert "--file" in coem("explain", "model.coem", "--id", "p0", code=1).stderr
    file = finished.parent / "posts.csv"
    assert "against" in coem("explain", "model.coem", "--id", "p0", "--file", file).stdout


@pytest.mark.parametrize("change", [{"verb": "rm"}, {"schema": "1"}, {"files": None}])
def test_a_record_of_a_run_that_is_none(change, finished, here, coem):
    told = json.loads((finished / "run.json").read_text())
    (here / "run").mkdir()
    (here / "run" / "run.json").write_text(json.dumps({**told, **change}))
    assert "record of" in coem("rerun", "run", code=1).stderr


# -- ids and labels -----------------------------------------------------------------------------

ROWS = [{**row, "several": '["sea", "court"]'} for row in posts(12)]
LABELS = {
    "twice": ("id,kind\np0,a\np1,b\np0,b\n", (), r"l\.csv: rows 2 and 4 are both of 'p0'"),
    "unknown": ("id,kind\np0,a\nq1,b\n", (), r"1 ids that a\.csv has not: 'q1'; .*--skip-bad"),
    "all unknown": ("id,kind\nx,a\ny,b\n", ("--skip-bad",), "2 ids .*'x', 'y'; use other ids"),
    "no id": ("id,kind\n,a\np1,b\n", (), r"l\.csv, row 2 has no id; fill it in"),
    "no ids": ("name,kind\np0,a\n", (), r"l\.csv has no column 'id' for the ids; it has name"),
    "no labels": ("id\np0\np1\n", (), "no column of labels; add one"),
    "two columns": ("id,a,b\np0,x,y\n", (), "has the columns a, b; name the labels: --label"),
    "other column": ("id,a,b\np0,x,y\n", ("--label", "c"), "has no column 'c' for the labels"),
    "there already": ("id,topic\np0,x\n", (), "a.csv has a column 'topic', and l.csv has one, too"),
    "one class": ("id,kind\np0,x\np1,x\n", (), "all labels in column 'kind' are 'x'"),
    "without ids": ("id,kind\n1,x\n2,y\n", ("--id", "none"), "joined by id, and a.csv has no ids"),
    "empty": ("", (), "l.csv is empty"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_of_another_file(case, here, coem):
    content, options, message = LABELS[case]
    write_csv(here / "a.csv", ROWS)
    (here / "l.csv").write_text(content, encoding="utf-8")
    told = coem("classify", "a.csv", "--text", "body", "--labels", "l.csv", *options, code=1).stderr
    assert re.search(message, told.splitlines()[-1]), told
    assert files_in(here) == ["a.csv", "l.csv"]


def test_several_labels_are_refused_with_the_reason(here, coem):
    write_csv(here / "a.csv", ROWS)
    arguments = ("classify", "a.csv", "--text", "body", "--label", "several", "--multi")
    told = coem(*arguments, code=1).stderr
    assert "12 rows have several labels, the first, row p0 has court, sea; a mixture gives" in told
    assert "Without --multi" in told
    assert files_in(here) == ["a.csv"]


def test_ids_that_are_there_twice_are_an_error_with_the_way_out(here, coem):
    write_csv(here / "a.csv", [*posts(), posts()[7]])
    told = coem(CLUSTER[0], "a.csv", *CLUSTER[1:], code=1).stderr
    assert "column 'id' of a.csv cannot be the ids: rows 9 and 92 are both called 'p7'" in told
    assert "--id none to number the rows" in told
    assert files_in(here) == ["a.csv"]
    coem(CLUSTER[0], "a.csv", *CLUSTER[1:], "--id", "none")


def test_columns_of_no_view_at_all_are_an_error_of_predict(finished, here, coem):
    (here / "new.csv").write_text("id,words\n1,ship\n", encoding="utf-8")
    told = coem("predict", finished, "new.csv", "--out", "out.csv", code=1).stderr
    assert "there is no column 'body'" in told
    assert files_in(here) == ["new.csv"]
