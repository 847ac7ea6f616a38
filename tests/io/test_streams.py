"""What is no file is never replaced by one: devices, FIFOs, descriptors."""

import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import coem
from coem.io import new_file, new_folder
from coem.io.tables import write_table
from coem.io.whole import is_stream, recover

LONG = b"0123456789" * 50_000  # more than a pipe holds


@pytest.fixture
def fifo(tmp_path):
    """Return a FIFO, and what a reader gets from it: a list of one item when it has ended."""
    path, got = tmp_path / "fifo.csv", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    return path, got, reader


def test_a_fifo_gets_what_a_file_would(fifo):
    path, got, reader = fifo
    with new_file(path) as file:
        file.write(LONG)
        file.seek(0)
        file.write(b"X")
    reader.join(10)
    assert got == [b"X" + LONG[1:]]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [p.name for p in path.parent.iterdir()] == ["fifo.csv"]


def test_a_fifo_gets_nothing_of_what_fails(fifo):
    path, got, reader = fifo
    with pytest.raises(TypeError), new_file(path) as file:
        file.writelines([LONG, 3])
    reader.join(10)
    assert got == [b""]


def test_a_model_in_a_fifo(fifo, tmp_path):
    path, got, reader = fifo
    model = coem.SphericalKMeans(2, random_state=0).fit(np.eye(4))
    model.save(path)
    reader.join(10)
    assert stat.S_ISFIFO(path.stat().st_mode)
    model.save(tmp_path / "m.coem")
    assert got == [(tmp_path / "m.coem").read_bytes()]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".parquet"])
def test_a_table_in_a_fifo(suffix, tmp_path):
    path, got = tmp_path / f"fifo{suffix}", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    write_table(pa.table({"a": [1, 2]}), path)
    reader.join(10)
    write_table(pa.table({"a": [1, 2]}), tmp_path / f"file{suffix}")
    assert got == [(tmp_path / f"file{suffix}").read_bytes()]


def test_a_link_to_a_fifo(fifo, tmp_path):
    path, got, reader = fifo
    (tmp_path / "link").symlink_to(path)
    with new_file(tmp_path / "link") as file:
        file.write(b"all")
    reader.join(10)
    assert got == [b"all"]
    assert (tmp_path / "link").is_symlink()


def test_a_device(tmp_path):
    path = tmp_path / "device"
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        path.read_bytes()
    except PermissionError:
        pytest.skip("devices cannot be made here")
    with new_file(path) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(path.stat().st_mode)
    assert [p.name for p in tmp_path.iterdir()] == ["device"]


def test_a_terminal():
    ours, theirs = os.openpty()
    with new_file(os.ttyname(theirs)) as file:
        file.write(b"seen")
    assert os.read(ours, 4) == b"seen"
    os.close(ours)
    os.close(theirs)


def test_a_socket_is_refused(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(OSError, match="socket; name a file") as error, new_file(path):
            pytest.fail("it began")
    assert error.value.filename == str(path)
    assert stat.S_ISSOCK(path.stat().st_mode)


def test_a_folder_is_refused_before_any_work(tmp_path):
    with pytest.raises(IsADirectoryError, match=tmp_path.name), new_file(tmp_path):
        pytest.fail("it began")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_goes_on_where_it_is(name, tmp_path):
    if not os.path.exists(name):
        pytest.skip(f"there is no {name}")
    code = f"from coem.io import new_file\nwith new_file({name!r}) as file: file.write(b'two,')"
    log = tmp_path / "log"
    with log.open("wb") as out:
        out.write(b"one,")
        out.flush()
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, timeout=60)
        out.write(b"three")
    assert log.read_bytes() == b"one,two,three"
    assert [p.name for p in tmp_path.iterdir()] == ["log"]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"two,"


@pytest.mark.parametrize("number", ["987", "2147483648", "9" * 14, "9" * 5000])
def test_a_descriptor_that_is_not_open(number):
    path = f"/dev/fd/{number}"
    with pytest.raises(OSError, match="descriptor") as error, new_file(path):
        pytest.fail("it began")
    assert error.value.filename == path


@pytest.mark.parametrize("use", [new_file, new_folder, is_stream, recover])
@pytest.mark.parametrize("path", ["a\0b", Path("a\0b"), b"a\0b"])
def test_a_nul_byte_in_a_name(use, path):
    with pytest.raises(ValueError, match=r"'a\\x00b' holds a NUL byte"), ExitStack() as held:
        held.enter_context(use(path))


def test_streams(fifo, tmp_path):
    assert is_stream(fifo[0])
    assert is_stream("/dev/fd/1")
    assert not is_stream(tmp_path)
    assert not is_stream(tmp_path / "nothing")
    assert not is_stream(Path(__file__))
    fifo[0].open("wb").close()


def test_a_stream_is_no_folder(fifo):
    for path in (fifo[0], "/dev/fd/1"):
        with (
            pytest.raises(FileExistsError, match="is a stream; name a folder"),
            new_folder(path, force=True),
        ):
            pytest.fail("it began")
    fifo[0].open("wb").close()


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_links_in_a_circle(new, tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as error, new(tmp_path / "a"):
        pytest.fail("it began")
    assert error.value.errno == errno.ELOOP
    assert (tmp_path / "a").is_symlink()


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u6f22"])
@pytest.mark.parametrize("cut", [False, True])
def test_names_as_long_as_the_system_has_them(letter, cut, tmp_path):
    path = tmp_path / (letter * (255 // len(letter.encode()) - cut))
    with new_folder(path) as folder:
        (folder / "file").write_text("there")
    with new_file(path / path.name) as file:
        file.write(b"there")
    assert sorted(p.name for p in path.iterdir()) == sorted(["file", path.name])
