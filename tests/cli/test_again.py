"""A run told again, and a run made again: the same bytes."""

import shutil

import pytest
from click.testing import CliRunner

import coem as library
from coem.cli import main
from coem.recipes.record import to_json

from .conftest import posts, read_json, write_csv

VERBS = {
    "cluster": ["--view", "title=title", "--label", "topic", "-k", "3", "--restarts", "3"],
    "classify": ["--label", "topic"],
    "topics": ["-k", "3"],
}


@pytest.fixture(scope="module", params=VERBS)
def written(request, tmp_path_factory):
    """The folder of a run of each verb that writes one."""
    folder = tmp_path_factory.mktemp(request.param)
    rows = [{**row, "topic": row["topic"] if i % 3 else ""} for i, row in enumerate(posts())]
    file = write_csv(folder / "posts.csv", rows)
    arguments = [request.param, file, "--text", "body", *VERBS[request.param]]
    arguments += ["--out", folder / "run", "--quiet"]
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.stderr
    return folder / "run"


@pytest.fixture
def copied(finished, here):
    """A run that a test may spoil."""
    return shutil.copytree(finished, here / "run")


def test_the_page_made_again_is_the_page_of_the_run(written, coem, here):
    before = (written / "report.html").read_bytes()
    coem("report", written, "--out", "page.html")
    assert (here / "page.html").read_bytes() == before
    coem("report", written)
    assert (written / "report.html").read_bytes() == before


def test_the_page_of_a_run_may_be_replaced_and_no_other(copied, coem):
    coem("report", copied)
    coem("report", copied, "--out", copied / "report.html")
    (copied.parent / "mine.html").write_text("mine")
    assert "--force" in coem("report", copied, "--out", "mine.html", code=1).stderr
    coem("report", copied, "--out", "mine.html", "--force")


def test_stability_is_not_told_of_other_documents(copied, coem, here):
    assert read_json(copied / "run.json")["stability"]["n_others"] == 2
    assert "recur in all 2 other runs" in (copied / "report.html").read_text(encoding="utf-8")
    file = write_csv(here / "other.csv", posts(60, seed=1))
    before = (copied / "report.html").read_bytes()
    for other in (["--file", file], ["--examples", "3"]):
        assert "--force" in coem("report", copied, *other, code=1).stderr
    assert (copied / "report.html").read_bytes() == before
    result = coem("report", copied, "--file", file, "--force")
    assert "has other content" in result.stderr
    assert "other runs" not in (copied / "report.html").read_text(encoding="utf-8")


def test_a_spoilt_record_is_a_sentence(copied, coem):
    told = read_json(copied / "run.json")
    for wrong in ([], {"summary": "none"}, {**told["stability"], "table": []}):
        text = to_json({**told, "stability": wrong})
        (copied / "run.json").write_text(text, encoding="utf-8")
        assert ": stability" in coem("report", copied, code=1).stderr


def test_a_run_from_before_there_was_trust_has_a_page(copied, coem):
    told = read_json(copied / "run.json")
    for row in told["stability"]["table"]:
        del row["trust"]
        row |= {"strength": 0.5, "row_stability": 0.5}
    (copied / "run.json").write_text(to_json(told), encoding="utf-8")
    coem("report", copied)
    assert "· trust \u2013" in (copied / "report.html").read_text(encoding="utf-8")


def test_a_run_made_again_is_the_same_in_all_files(written, coem, here):
    assert "the same" in coem("rerun", written, "--out", "again").stdout
    for path in written.iterdir():
        if path.name != "run.json":  # it has the time that the run took
            assert (here / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_rerun_notices_a_changed_model(copied, coem):
    pipeline = library.load(copied / "model.coem")
    weights = pipeline.steps[-1][1].weights_
    weights[:2] += [1e-12, -1e-12]
    library.save(pipeline, copied / "model.coem")
    assert "model.coem was changed" in coem("rerun", copied, code=1).stdout
    (copied / "model.coem").unlink()
    assert "model.coem is gone" in coem("rerun", copied, code=1).stdout


def test_rerun_compares_the_model(copied, coem):
    told = read_json(copied / "run.json")
    told["files"]["model.coem"] = "0" * 64
    text = to_json(told)
    (copied / "run.json").write_text(text, encoding="utf-8")
    assert "model.coem differs" in coem("rerun", copied, code=1).stdout


def test_the_same_documents_may_have_another_name(finished, coem, here):
    shutil.copy(finished.parent / "posts.csv", here / "renamed.csv")
    assert "the same" in coem("rerun", finished, "--file", "renamed.csv", "--out", "again").stdout
    page = (finished / "report.html").read_bytes()
    for run in (finished, "again"):
        coem("report", run, "--file", "renamed.csv", "--out", "page.html", "--force")
        assert (here / "page.html").read_bytes() == page


def test_other_documents_are_called_by_their_name(copied, coem, here):
    write_csv(here / "other.csv", posts(seed=1))
    coem("rerun", copied, "--file", "other.csv", "--out", "again", code=1)
    coem("report", copied, "--file", "other.csv", "--force")
    for folder in (copied, here / "again"):
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "<bdi>other.csv</bdi>" in page
        assert "posts.csv" not in page


def test_rerun_of_documents_from_stdin(table, coem):
    arguments = ["--text", "body", "-k", "3", "--restarts", "2"]
    coem("cluster", "-", *arguments, input=table.read_bytes())
    assert "the same" in coem("rerun", "coem-stdin", "--file", table).stdout


def test_force_spares_what_no_run_wrote(copied, coem, here):
    (copied / "posts.csv").write_bytes(write_csv(here / "a.csv", posts()).read_bytes())
    arguments = ["--text", "body", "-k", "3", "--restarts", "2", "--out", copied, "--force"]
    assert "posts.csv, which would be lost" in coem("cluster", "a.csv", *arguments, code=1).stderr
    (copied / "posts.csv").unlink()
    said = coem("cluster", copied / "assignments.csv", *arguments, code=1).stderr
    assert "name another folder" in said
    assert (copied / "model.coem").is_file()
    coem("cluster", "a.csv", *arguments)


def test_rerun_says_what_to_do(copied, coem, here):
    assert "name a folder" in coem("rerun", copied, "--out", copied, code=1).stderr
    told = read_json(copied / "run.json") | {"source": str(here / "gone.csv")}
    (copied / "run.json").write_text(to_json(told), encoding="utf-8")
    assert "--file" in coem("rerun", copied, code=1).stderr
