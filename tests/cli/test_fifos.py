"""FIFOs where a file belongs: whoever opens one waits for ever, unless it is looked at before."""

import os
import shutil
import signal

import numpy as np
import pytest

from coem import MixtureClusterer
from coem.io.regular import check_regular, is_special, no_file
from coem.recipes.names import NAMES
from coem.recipes.run_file import MODEL, RUN
from coem.recipes.stream_folder import RECENT, REFERENCE
from tests.cli.conftest import posts, write_csv

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")


@pytest.fixture(autouse=True)
def in_time():
    """What waits for a writer ends after some minutes; no test takes as long on a busy machine."""

    def late(*_):
        raise TimeoutError("it waits for somebody to write")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(200)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a run."""
    return shutil.copytree(finished, tmp_path / "run")


def as_fifo(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", ["plan.zip", "run-0.zip"])
def test_files_of_a_checkpoint(name, tmp_path):
    as_fifo(tmp_path / name)
    X = np.random.default_rng(0).poisson(1.0, (20, 5))
    model = MixtureClusterer(2, random_state=0, max_iter=3, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=rf"{name} .*it is not a regular file; delete"):
        model.fit(X)


def test_the_state_of_a_verb(tmp_path, coem):
    file = write_csv(tmp_path / "posts.csv", posts(30))
    (tmp_path / "ck").mkdir()
    as_fifo(tmp_path / "ck" / "plan.zip")
    told = coem("cluster", file, "-k", "2", "--checkpoint", tmp_path / "ck", code=1).stderr
    assert "plan.zip is damaged or not an archive of coem: it is not a regular file" in told


@pytest.mark.parametrize("verb", ["compare", "name"])
def test_the_assignments_of_a_run(verb, run, finished, coem):
    path = as_fifo(run / "assignments.csv")
    told = coem(verb, run, *([finished] if verb == "compare" else []), code=1).stderr
    assert f"note: {path} is not a regular file" in told
    assert f"error: {path} is not a regular file; replace it" in told


@pytest.mark.parametrize("name", ["clusters.csv", "report.html", NAMES])
def test_what_is_written_again(name, run, coem):
    path = as_fifo(run / name)
    told = coem("name", run, "0=Zero", code=1).stderr
    assert f"error: {path} is not a regular file; replace it with one, or remove it" in told


@pytest.mark.parametrize("verb", ["info", "name", "report"])
def test_the_record_of_a_run(verb, run, coem):
    path = as_fifo(run / RUN)
    assert f"error: {path} is not a regular file; replace it" in coem(verb, run, code=1).stderr


@pytest.mark.parametrize("verb", ["info", "predict"])
def test_a_model(verb, tmp_path, run, coem):
    path = as_fifo(tmp_path / "a.coem")
    more = [run.parent / "posts.csv"] if verb == "predict" else []
    assert f"error: {path} is not a regular file" in coem(verb, path, *more, code=1).stderr


def test_the_model_of_a_run(run, coem):
    path = as_fifo(run / MODEL)
    assert f"error: {path} is not a regular file" in coem("report", run, code=1).stderr


@pytest.mark.parametrize("name", [REFERENCE, RECENT.format(0)])
def test_the_documents_of_a_stream(name, tmp_path, coem):
    file = write_csv(tmp_path / "posts.csv", posts(60))
    call = ["cluster", "--stream", file, "-k", "2", "--batch", "30", "--text", "body", "--id", "id"]
    coem(*call, "--out", tmp_path / "out")
    paths = [p for p in (tmp_path / "out").iterdir() if p.name in (name, RECENT.format(1))]
    for path in paths:
        as_fifo(path)
    told = coem(*call, "--out", tmp_path / "out", code=1).stderr
    assert "is not a regular file" in told


def test_what_is_special(tmp_path):
    (tmp_path / "file").write_text("")
    assert not is_special(tmp_path)
    assert not is_special(tmp_path / "file")
    assert not is_special(tmp_path / "none")
    assert is_special("/dev/null")
    check_regular(tmp_path / "none")
    assert no_file("none") == "there is no none"
