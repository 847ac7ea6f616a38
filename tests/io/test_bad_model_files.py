"""A file that is damaged, forged or of the future gets one sentence, and nothing else happens."""

import errno
import io
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coem
from coem import ModelFileError
from coem.io import archive
from coem.text import ScaleLength
from tests.io import fits
from tests.io.forging import forge, members, refused, state, write

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.coem"


@pytest.fixture
def model(path):
    fits.fitted("mixed").save(path)
    return path


# -- no model at all -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK",
        b"id,text\n1,hello\n",
        np.random.default_rng(0).bytes(2000),
        pickle.dumps({"a": 1}),
        b"PK\x05\x06",
    ],
    ids=["empty", "two bytes", "table", "noise", "pickle", "end of an archive"],
)
def test_no_model(content, path):
    path.write_bytes(content)
    refused(path, "is damaged, or is not a model file of coem: .*; save the model again")
    with pytest.raises(ModelFileError):
        coem.read_info(path)


def test_no_file(path):
    for read in (coem.load, coem.read_info):
        with pytest.raises(FileNotFoundError, match=r"model\.coem"):
            read(path)


def test_a_folder(tmp_path):
    refused(tmp_path, "Is a directory")


def test_a_checkpoint_is_no_model(path):
    archive.write_archive(path, {"schema": 1}, {})
    refused(path, r"there is no model\.json in it")


def test_another_document(path):
    archive.write_archive(path, {"format": "another", "schema": 1}, {}, name="model.json")
    refused(path, "not by coem")


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


@pytest.mark.parametrize("name", ["model.json", "0.npy"])
def test_a_pickle_is_not_executed(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = members(model)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Evil()], dtype=object), allow_pickle=True)
    parts[name] = buffer.getvalue() if name.endswith("npy") else pickle.dumps(Evil())
    write(model, parts)
    refused(model)
    assert not (tmp_path / "executed").exists()


# -- another version -------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [coem.load, coem.read_info])
def test_a_newer_schema(read, model):
    forge(model, lambda meta: meta.update(schema=3, versions={"coem": "9.0"}))
    with pytest.raises(ModelFileError, match=r"newer coem \(9.0, schema 3; .* up to 2\); upgrade"):
        read(model)


@pytest.mark.parametrize("schema", ["1", None, 1.0, True, 0, -1, 10**400])
def test_a_schema_that_is_none(schema, model):
    forge(model, lambda meta: meta.update(schema=schema))
    refused(model, "not by coem")


def test_a_parameter_that_came_later_has_its_default(path):
    ScaleLength(5).save(path)
    forge(path, lambda meta: state(meta, "params").clear())
    assert coem.load(path).length == ScaleLength().length


# -- damage ----------------------------------------------------------------------------------------


def small(path):
    fits.fitted("classes").save(path)
    return path.read_bytes()


def identical(path):
    """Say whether a file is refused, or has the same model; anything else fails."""
    try:
        loaded = coem.load(path)
    except ModelFileError:
        return False
    fits.same(fits.fitted("classes"), loaded)
    return True


@pytest.mark.slow
def test_flipped_bytes(path):
    whole = small(path)
    rng = np.random.default_rng(0)
    # All of what surrounds the members, where a zip is most easily led astray, and much else.
    places = {*range(0, len(whole), 23), *range(120), *range(len(whole) - 700, len(whole))}
    outcomes = []
    for place in sorted(places):
        changed = bytearray(whole)
        changed[place] ^= int(rng.integers(1, 256))
        path.write_bytes(changed)
        outcomes.append(identical(path))
    assert outcomes.count(False) > 0.7 * len(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0x00, 0xFF, 0x7F])
def test_bytes_at_their_extremes_in_the_directory(value, path):
    whole = small(path)
    for place in range(len(whole) - 700, len(whole)):
        changed = bytearray(whole)
        changed[place] = value
        path.write_bytes(changed)
        identical(path)


def test_truncated_files(path):
    whole = small(path)
    for length in {*range(0, len(whole), 101), *range(len(whole) - 100, len(whole))}:
        path.write_bytes(whole[:length])
        assert not identical(path), length


def test_bytes_in_front_and_behind(path):
    whole = small(path)
    for changed in (b"x" * 10 + whole, whole + b"x" * 10, whole[:100] + whole, whole + whole):
        path.write_bytes(changed)
        identical(path)


@pytest.mark.parametrize("sums", ["", "no digest", "0" * 64 + "  model.json\n"])
def test_wrong_digests(sums, model):
    write(model, members(model) | {archive.SUMS: sums.encode()}, sums=False)
    refused(model)
    with pytest.raises(ModelFileError):
        coem.read_info(model)


def test_a_file_of_very_many_members_is_refused_before_they_are_listed(path, monkeypatch):
    entry = zipfile.ZipInfo("a")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(entry, b"")
        file.filelist *= archive.LARGEST_INDEX // 47 + 1
    monkeypatch.setattr(zipfile.ZipInfo, "__init__", lambda *args: pytest.fail("it was listed"))
    with pytest.raises(ModelFileError, match="too many members"):
        coem.load(path)
    with pytest.raises(ModelFileError, match="too many members"):
        coem.read_info(path)


def test_no_file_is_written_that_cannot_be_read(path, monkeypatch):
    arrays = {str(i): np.zeros(1) for i in range(100)}
    monkeypatch.setattr(archive, "LARGEST_INDEX", 9000)
    archive.write_archive(path, {}, arrays)
    monkeypatch.setattr(archive._Careful, "most", 9000)
    assert archive.read_archive(path)[1] == arrays
    with pytest.raises(ValueError, match="would have 200 arrays, more than are read"):
        archive.write_archive(path, {}, arrays | {f"-{i}": np.zeros(1) for i in range(100)})


def test_no_digests(model):
    parts = members(model)
    del parts[archive.SUMS]
    write(model, parts, sums=False)
    refused(model, "no SHA256SUMS")


def test_a_changed_document_with_the_old_digests(model):
    forge(model, lambda meta: meta["extra"].update(a=1), sums=False)
    refused(model, "not what SHA256SUMS says")


def test_a_changed_array_with_the_old_digests(model):
    parts = members(model)
    parts["0.npy"] = parts["0.npy"][:-1] + bytes([parts["0.npy"][-1] ^ 1])
    write(model, parts, sums=False)
    refused(model, "not what SHA256SUMS says")
    assert coem.read_info(model).summary["components"] == 3  # it looks at the document alone


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(model):
    with zipfile.ZipFile(model, "a") as file:
        file.writestr("0.npy", b"other")
    refused(model, "two members of one name")


def test_a_member_too_many(model):
    write(model, members(model) | {"run.py": b"import os"})
    refused(model, "run.py is not a plain array")


# -- promises --------------------------------------------------------------------------------------


def test_compressed_members(model):
    write(model, members(model) | {"9999.npy": bytes(1 << 20)}, method=zipfile.ZIP_DEFLATED)
    refused(model, "compressed")


def test_members_that_overlap(model):
    """A bomb: one megabyte that a thousand entries of the directory point to."""
    parts = members(model) | {"big.npy": bytes(1 << 20)}
    write(model, parts)
    with zipfile.ZipFile(model, "a") as file:
        big = file.getinfo("big.npy")
        for i in range(1000):
            entry = zipfile.ZipInfo(f"b{i}.npy")
            for name in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(entry, name, getattr(big, name))
            file.filelist.append(entry)
            file.NameToInfo[entry.filename] = entry
        file._didModify = True
    refused(model, "promise more than it holds")


HEADER = "{'descr': %r, 'fortran_order': False, 'shape': %s, }"


def npy(descr, shape, body=b"", version=b"\x01\x00"):
    text = (HEADER % (descr, shape)).encode().ljust(117) + b"\n"
    length = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    return b"\x93NUMPY" + version + length + text + body


@pytest.mark.parametrize(
    "data",
    [
        npy("<f8", "(1000000000000,)"),
        npy("<f8", "(2,)", b"x" * 8),
        npy("<f8", "(-1,)", b"x" * 8),
        npy("<f8", "(-2, -1)", b"x" * 16),
        npy("<U0", "(1000000000000,)"),
        npy("|V8", "(1,)", b"x" * 8),
        npy("<f8", "'a'", b"x" * 8),
        npy("nonsense", "(1,)", b"x" * 8),
        npy("<f8", "(1,)", b"x" * 8, b"\x07\x00"),
        npy("<f8", "(" + "1," * 50_000 + ")", b"x" * 8, b"\x02\x00"),
        npy("<f8", "__import__('os').system('touch executed')", b"x" * 8),
        b"\x93NUMPY",
        b"",
    ],
)
def test_arrays_that_are_none(data, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(model, members(model) | {"0.npy": data})
    refused(model)
    assert [p.name for p in tmp_path.iterdir()] == ["model.coem"]


def test_json_that_is_too_deep(model):
    parts = members(model)
    parts["model.json"] = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    write(model, parts)
    refused(model)


# -- writing ---------------------------------------------------------------------------------------


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.coem"):
        ScaleLength().save(tmp_path / "nowhere" / "model.coem")


def test_in_place_of_a_folder(tmp_path):
    (tmp_path / "model.coem").mkdir()
    with pytest.raises(OSError, match=r"model\.coem"):
        ScaleLength().save(tmp_path / "model.coem")
    assert os.listdir(tmp_path) == ["model.coem"]


def test_a_full_disk_leaves_the_old_file(model, tmp_path, monkeypatch):
    before = model.read_bytes()
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*args, **kwargs)

    original = archive.npy.write_array
    monkeypatch.setattr(archive.npy, "write_array", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*model\.coem"):
        fits.fitted("calibrated").save(model)
    assert model.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.coem"]


KILLED = """
import os, sys
import coem
from coem.io import archive
from coem.text import ScaleLength

def die(*args, **kwargs):
    os._exit(9)

archive.npy.write_array = die
ScaleLength(__import__("numpy").ones(3)).save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_file(model, tmp_path):
    before = model.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, model], check=False)
    assert done.returncode == 9
    assert model.read_bytes() == before
    left = sorted(os.listdir(tmp_path))
    assert len(left) == 2
    assert left[0].startswith(".model.coem.")
    assert left[0].endswith(".part")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "model.coem")
    ScaleLength(3).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert coem.load(tmp_path / "there" / "model.coem").length == 3


def test_a_document_that_would_not_be_read(path, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST_META", 100)
    with pytest.raises(ValueError, match=r"model\.json would have .* bytes"):
        ScaleLength().save(path)
    assert not path.exists()
