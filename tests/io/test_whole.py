"""Files and folders are there whole or not at all, whatever happens meanwhile."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coem.io import new_file, new_folder


def full(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def old(tmp_path):
    """Return a folder of an earlier run."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("old")
    (folder / "more").mkdir()
    return folder


def test_a_new_folder(tmp_path):
    with new_folder(tmp_path / "a" / "b") as folder:
        assert not (tmp_path / "a" / "b").exists()
        assert folder.parent == tmp_path / "a"
        (folder / "x").mkdir()
        (folder / "x" / "file").write_text("there")
    assert (tmp_path / "a" / "b" / "x" / "file").read_text() == "there"
    assert names(tmp_path / "a") == ["b"]


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "run").mkdir()
    with new_folder(tmp_path / "run") as folder:
        (folder / "file").write_text("there")
    assert names(tmp_path / "run") == ["file"]
    assert names(tmp_path) == ["run"]


def test_a_folder_that_is_not_empty_is_refused(old, tmp_path):
    message = r"run is there already and not empty; name another folder, or force"
    with pytest.raises(FileExistsError, match=message), new_folder(old):
        pytest.fail("it began")
    assert (old / "run.json").read_text() == "old"
    assert names(tmp_path) == ["run"]


def test_force_replaces_it_in_the_end(old, tmp_path):
    with new_folder(old, force=True) as folder:
        (folder / "file").write_text("new")
        assert names(old) == ["more", "run.json"]
    assert names(old) == ["file"]
    assert names(tmp_path) == ["run"]


def test_force_spares_what_was_never_written_here(old, tmp_path):
    with new_folder(old, force=True, mark="run.json") as folder:
        (folder / "photo.jpg").write_text("mine")
    message = r"run has no run\.json in it and may hold something else; delete it yourself"
    with (
        pytest.raises(FileExistsError, match=message),
        new_folder(old, force=True, mark="run.json"),
    ):
        pytest.fail("it began")
    assert names(old) == ["photo.jpg"]


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_no_folder(force, tmp_path):
    (tmp_path / "run").write_text("mine")
    with (
        pytest.raises(FileExistsError, match="run is a file"),
        new_folder(tmp_path / "run", force=force),
    ):
        pytest.fail("it began")
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("place", [".", "..", "/"])
def test_where_one_stands_is_not_replaced(place, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with (
        pytest.raises(FileExistsError, match="is the folder you are in"),
        new_folder(place, force=True),
    ):
        pytest.fail("it began")


def half(target, error, **options):
    """Write half of a folder, and fail."""
    with new_folder(target, **options) as folder:
        (folder / "half").write_text("half")
        raise error


@pytest.mark.parametrize(
    "error", [KeyError("x"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")]
)
@pytest.mark.parametrize("force", [False, True])
def test_an_error_leaves_all_as_it_was(error, force, old, tmp_path):
    target = old if force else tmp_path / "new"
    with pytest.raises(type(error)):
        half(target, error, force=force)
    assert names(tmp_path) == ["run"]
    assert (old / "run.json").read_text() == "old"


def test_a_disk_that_is_full_in_the_end(old, tmp_path, monkeypatch):
    monkeypatch.setattr("coem.io.whole.os.fsync", full)
    with pytest.raises(OSError, match="No space"), new_folder(old, force=True) as folder:
        (folder / "half").write_text("half")
    assert names(tmp_path) == ["run"]
    assert (old / "run.json").read_text() == "old"


def test_the_old_one_comes_back_if_the_new_one_cannot_take_its_name(old, tmp_path, monkeypatch):
    monkeypatch.setattr("coem.io._swap.exchange", lambda one, other: False)
    rename = Path.rename

    def fail(self, target):
        if self.name.endswith(".part"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="Input/output"), new_folder(old, force=True) as folder:
        (folder / "file").write_text("new")
    assert names(tmp_path) == ["run"]
    assert (old / "run.json").read_text() == "old"


def test_someone_else_was_faster(tmp_path):
    with pytest.raises(FileExistsError, match="not empty"), new_folder(tmp_path / "run"):
        (tmp_path / "run" / "theirs").mkdir(parents=True)
    assert names(tmp_path / "run") == ["theirs"]
    assert names(tmp_path) == ["run"]


KILLED = """
import os, sys
from coem.io import new_folder

with new_folder(sys.argv[1], force=True) as folder:
    (folder / "half").write_text("half")
    os._exit(9)
"""


@pytest.mark.slow
def test_what_a_killed_process_leaves_goes_the_next_time(old, tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, old], check=False)
    assert done.returncode == 9
    left, run = names(tmp_path)
    assert run == "run"
    assert left.startswith(".run.")
    assert left.endswith(".part")
    assert (old / "run.json").read_text() == "old"
    with new_folder(old, force=True) as folder:
        (folder / "file").write_text("new")
    assert names(old) == ["file"]
    assert names(tmp_path) == ["run"]


def test_a_link_to_a_folder(old, tmp_path):
    (tmp_path / "link").symlink_to(old)
    with new_folder(tmp_path / "link", force=True) as folder:
        (folder / "file").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert names(old) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(PermissionError), new_folder(tmp_path / "locked" / "run"):
        pytest.fail("it began")
    with pytest.raises(PermissionError, match="file"), new_file(tmp_path / "locked" / "file"):
        pytest.fail("it began")


def test_an_unwritable_folder_for_root(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PermissionError), new_folder(tmp_path / "run"):
        pytest.fail("it began")
    assert names(tmp_path) == []


def test_a_new_file_replaces_the_old_one_in_the_end(tmp_path):
    path = tmp_path / ("x" * 250)
    path.write_text("old")
    with new_file(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert len(names(tmp_path)) == 1


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), new_file(path) as file:
        file.writelines([b"half", 3])
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file"]
