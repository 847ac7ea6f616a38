"""Tar archives: found in every form, read without touching the disk, checked by their members."""

import gzip
import io
import lzma
import tarfile

import pytest

from coem.datasets import _files

DATASET, NAME, HOME = "reuters21578", "reuters21578.tar", "reuters21578.tar.gz"
TREE = {"reut2-000.sgm": b"first\r\n", "reut2-001.sgm": b"second\n"}


@pytest.fixture
def folder(put):
    """Put a data set of two members in COEM_DATA and return its folder."""
    return put(DATASET, files={NAME: TREE})


def read():
    return _files.read_files(DATASET)[NAME]


# the digest ------------------------------------------------------------------------------------


def test_the_digest_is_of_names_and_contents_in_order_of_names():
    digest = _files.tree_digest(TREE)
    assert digest == _files.tree_digest(dict(reversed(TREE.items())))
    assert digest != _files.tree_digest({**TREE, "reut2-000.sgm": b"first\n"})
    assert digest != _files.tree_digest({**TREE, "reut2-002.sgm": b""})
    assert digest != _files.tree_digest(
        {"reut2-000.sgm": b"second\n", "reut2-001.sgm": b"first\r\n"}
    )


def test_bytes_cannot_move_between_name_and_content_unseen():
    assert _files.tree_digest({"a": b"bc"}) != _files.tree_digest({"ab": b"c"})
    assert _files.tree_digest({"a": b"b", "c": b"d"}) != _files.tree_digest({"a": b"b\x00c\x001d"})


def test_an_inexact_digest_is_of_letters_and_digits():
    digest = _files.tree_digest({"a.b/1_": b"One 2\n"}, exact=False)
    assert digest == _files.tree_digest({"a.b/1\r": b"\xffOne\r\n2"}, exact=False)
    assert digest != _files.tree_digest({"ab/1_": b"One 2\n"}, exact=False)
    assert digest != _files.tree_digest({"a.b/1_": b"one 2\n"}, exact=False)


# the forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        (NAME, bytes),
        (f"{NAME}.gz", gzip.compress),
        (f"{NAME}.xz", lzma.compress),
        ("other-name.gtar.gz", gzip.compress),
    ],
)
def test_every_form_of_an_archive(put, tar, name, pack):
    url = "http://127.0.0.1:9/other-name.gtar.gz"
    folder = put(DATASET, files={NAME: TREE}, url=url)
    (folder / NAME).unlink()
    (folder / name).write_bytes(pack(tar(TREE)))
    assert read() == TREE


def test_folders_order_and_other_members_do_not_count(folder, tar):
    tree = {f"some/folder/{name}": content for name, content in reversed(TREE.items())}
    (folder / NAME).write_bytes(tar({"README.txt": b"noise", "reut2-000.sgm/x": b"", **tree}))
    assert read() == TREE


def test_nothing_is_written_and_no_link_is_followed(folder, tmp_path):
    secret = tmp_path / "reut2-002.sgm"
    secret.write_bytes(b"secret")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("../../reut2-000.sgm", str(tmp_path / "reut2-001.sgm")):
            member = tarfile.TarInfo(name)
            content = TREE[name[-13:]]
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
            link = tarfile.TarInfo("reut2-002.sgm")
            link.type, link.linkname = kind, str(secret)
            archive.addfile(link)
    (folder / NAME).write_bytes(buffer.getvalue())
    before = sorted(tmp_path.rglob("*"))
    assert read() == TREE
    assert sorted(tmp_path.rglob("*")) == before


# damage ----------------------------------------------------------------------------------------


def test_other_content_is_refused(folder, tar):
    (folder / NAME).write_bytes(tar({**TREE, "reut2-001.sgm": b"Second\n"}))
    with pytest.raises(OSError, match=r"does not hold the original reuters21578\.tar "):
        read()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"no tar archive" * 100,
        lambda data: data[:515],
        lambda data: with_size(data, b"\xff" * 12),
        lambda data: with_size(data, b"77777777777\0"),
    ],
    ids=["empty", "no tar", "short", "negative size", "huge size"],
)
def test_damaged_archives_are_named(folder, tar, damage):
    (folder / NAME).write_bytes(damage(tar(TREE)))
    with pytest.raises(OSError, match="cannot be unpacked") as caught:
        read()
    assert str(caught.value).startswith(str(folder / NAME))
    assert "delete it and fetch the data again" in str(caught.value)


def with_size(data, size):
    """Return an archive whose first member claims another size, under a valid checksum."""
    header = bytearray(data[:512])
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_damaged_compression_is_named(folder, tar, suffix, pack):
    (folder / NAME).unlink()
    (folder / f"{NAME}.{suffix}").write_bytes(pack(tar(TREE))[:-9])
    with pytest.raises(OSError, match="cannot be unpacked"):
        read()


def test_an_archive_that_would_fill_the_memory_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(_files, "MAX_TAR_BYTES", 10)
    with pytest.raises(OSError, match="it holds more than 10 bytes"):
        read()


# absence ---------------------------------------------------------------------------------------


def test_download_of_a_tar_archive_is_checked_and_kept(put, tar, web, tmp_path):
    pytest.importorskip("pooch")
    home, url = web
    folder = put(DATASET, files={NAME: TREE}, url=f"{url}/{HOME}")
    (folder / NAME).unlink()
    (home / HOME).write_bytes(gzip.compress(tar({})))
    with pytest.raises(OSError, match="does not hold the original"):
        read()
    (home / HOME).write_bytes(gzip.compress(tar(TREE)))
    assert read() == TREE
    (home / HOME).unlink()
    assert read() == TREE
    assert [path.name for path in (tmp_path / "cache" / DATASET).iterdir()] == [HOME]


def test_a_file_without_a_public_home_says_so(own):
    with pytest.raises(FileNotFoundError, match="it has no public home") as caught:
        _files.read_files("webkb", "anchors.tsv")
    assert str(caught.value).startswith("anchors.tsv of the data set 'webkb'")
    assert str(own) in str(caught.value)


def test_a_damaged_file_without_a_public_home(own):
    (own / "webkb").mkdir()
    (own / "webkb" / "anchors.tsv").write_bytes(b"other")
    with pytest.raises(OSError, match=r"original anchors\.tsv .*: put a fresh copy in its place"):
        _files.read_files("webkb", "anchors.tsv")
