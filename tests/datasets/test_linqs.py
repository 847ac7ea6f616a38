"""Cora and CiteSeer: the published counts, and what happens when files are absent or broken."""

import gzip
import hashlib
import lzma
import os
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from coem.datasets import _files, fetch_citeseer, fetch_cora

# Papers p2 and p1 in this order. p1 cites p2 (twice in the file), p2 cites itself, and the two
# other lines name a paper that is not in the collection.
CONTENT = b"p2\t0\t1\t1\tTheory\np1\t1\t0\t0\tAgents\np3\t0\t0\t1\tTheory\n"
CITES = b"p2\tp1\np2\tp1\np2\tp2\np9\tp1\np2\tp9\np3\tp1\n"


def needs_data(dataset):
    """Return a mark that skips a test where the real files are absent."""
    folder = Path(os.environ.get("COEM_DATA") or "", dataset)
    absent = not os.environ.get("COEM_DATA") or not folder.is_dir()
    return pytest.mark.skipif(absent, reason=f"needs the folder {dataset} in COEM_DATA")


# the real data ---------------------------------------------------------------------------------


@needs_data("cora")
def test_cora_has_the_published_counts():
    data = fetch_cora()
    assert data.views["words"].shape == (2708, 1433)
    assert data.views["words"].nnz == 49_216
    words_per_paper = data.views["words"].sum(axis=1)
    assert (words_per_paper.min(), words_per_paper.max()) == (1, 30)
    assert np.sum(data.views["words"].sum(axis=0) == 0) == 1
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "Neural_Networks": 818,
        "Probabilistic_Methods": 426,
        "Genetic_Algorithms": 418,
        "Theory": 351,
        "Case_Based": 298,
        "Reinforcement_Learning": 217,
        "Rule_Learning": 180,
    }
    check_links(data, n_links=5429, n_reciprocal=151, n_inbound=1565, n_outbound=2222, n_bare=0)
    check_form(data)


@needs_data("citeseer")
def test_citeseer_has_the_published_counts():
    data = fetch_citeseer()
    assert data.views["words"].shape == (3312, 3703)
    assert data.views["words"].nnz == 105_165
    words_per_paper = data.views["words"].sum(axis=1)
    assert (words_per_paper.min(), words_per_paper.max()) == (8, 54)
    assert dict(zip(data.target_names, np.bincount(data.target), strict=True)) == {
        "DB": 701,
        "IR": 668,
        "Agents": 596,
        "ML": 590,
        "HCI": 508,
        "AI": 249,
    }
    check_links(data, n_links=4591, n_reciprocal=55, n_inbound=1883, n_outbound=2239, n_bare=48)
    check_form(data)


def check_links(data, n_links, n_reciprocal, n_inbound, n_outbound, n_bare):
    """Compare the link views with the counts of the data set's README."""
    inbound, outbound = data.views["inbound"], data.views["outbound"]
    cited, citing = inbound.sum(axis=1) > 0, outbound.sum(axis=1) > 0
    assert inbound.shape == outbound.shape == (len(data.ids), len(data.ids))
    assert (inbound != outbound.T).nnz == 0
    assert outbound.nnz == n_links
    assert outbound.diagonal().sum() == 0
    assert outbound.multiply(outbound.T).sum() == 2 * n_reciprocal
    assert (cited.sum(), citing.sum(), np.sum(~cited & ~citing)) == (n_inbound, n_outbound, n_bare)


def check_form(data):
    """Check what every data set of this kind promises, whatever its counts."""
    n = data.views["words"].shape[0]
    assert list(data.views.names) == ["words", "inbound", "outbound"]
    for name in data.views.names:
        view = data.views[name]
        assert sparse.issparse(view)
        assert view.format == "csr"
        assert view.dtype == np.float32
        assert view.has_canonical_format
        assert np.all(view.data == 1)
    assert data.target.shape == (n,)
    assert data.target.dtype.kind == "i"
    assert data.ids.dtype.kind == "U"
    assert len(set(data.ids)) == n
    assert list(data.target_names) == sorted(data.target_names)
    assert f"{n} papers in {len(data.target_names)} classes" in data.DESCR
    assert f"The {data.views['outbound'].nnz} links" in data.DESCR


# a data set of three papers --------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make COEM_DATA and the cache empty folders and Cora a data set of three papers."""
    digests = {
        "cora.content": hashlib.sha256(CONTENT).hexdigest(),
        "cora.cites": hashlib.sha256(CITES).hexdigest(),
    }
    # Port 9 of this machine: nothing answers, so a test that downloads by mistake fails at once.
    source = _files.Source("http://127.0.0.1:9/cora.zip", digests)
    monkeypatch.setitem(_files.REGISTRY, "cora", source)
    monkeypatch.setenv("COEM_DATA", str(tmp_path / "own"))
    monkeypatch.setattr(_files, "cache_dir", lambda: tmp_path / "cache")
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    (tmp_path / "own" / "cora").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def server(place, web, monkeypatch):
    """Serve the folder ``home`` as the data set's public home."""
    home, url = web
    digests = _files.REGISTRY["cora"].sha256
    monkeypatch.setitem(_files.REGISTRY, "cora", _files.Source(f"{url}/cora.zip", digests))
    return home


def write_zip(path, content=CONTENT, cites=CITES):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/cora/._cora.content", b"noise of the archiver")
        archive.writestr("cora/cora.content", content)
        archive.writestr("cora/cora.cites", cites)


def write_files(folder, content=CONTENT, cites=CITES):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cora.content.xz").write_bytes(lzma.compress(content))
    (folder / "cora.cites.gz").write_bytes(gzip.compress(cites))


def check_three_papers(data):
    assert data.ids.tolist() == ["p2", "p1", "p3"]
    assert data.target_names.tolist() == ["Agents", "Theory"]
    assert data.target.tolist() == [1, 0, 1]
    assert data.views["words"].toarray().tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1]]
    # Rows p2, p1, p3: p1 cites p2 and p3, and nobody else cites.
    assert data.views["outbound"].toarray().tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert data.views["inbound"].toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    check_form(data)


def test_compressed_files_in_coem_data(place):
    write_files(place / "own" / "cora")
    check_three_papers(fetch_cora())


def test_plain_files_in_coem_data(place):
    (place / "own" / "cora" / "cora.content").write_bytes(CONTENT)
    (place / "own" / "cora" / "cora.cites").write_bytes(CITES)
    check_three_papers(fetch_cora())


def test_the_archive_of_the_public_home_in_coem_data(place):
    write_zip(place / "own" / "cora" / "cora.zip")
    check_three_papers(fetch_cora())


def test_coem_data_goes_before_the_cache(place):
    write_files(place / "own" / "cora")
    write_files(place / "cache" / "cora", content=b"never read")
    check_three_papers(fetch_cora())


@pytest.mark.parametrize("pooch_there", [True, False])
@pytest.mark.parametrize("own", [None, "", "elsewhere"])
def test_cache_is_used_without_pooch_and_without_coem_data(place, monkeypatch, own, pooch_there):
    write_files(place / "cache" / "cora")
    if own is None:
        monkeypatch.delenv("COEM_DATA")
    else:
        monkeypatch.setenv("COEM_DATA", own)
    if not pooch_there:
        monkeypatch.setitem(sys.modules, "pooch", None)
    check_three_papers(fetch_cora())


def test_a_collection_without_links(place, monkeypatch):
    cites = b"p1\tp1\n"
    digests = {**_files.REGISTRY["cora"].sha256, "cora.cites": hashlib.sha256(cites).hexdigest()}
    monkeypatch.setitem(_files.REGISTRY, "cora", _files.Source("http://127.0.0.1:9/x", digests))
    write_files(place / "own" / "cora", cites=cites)
    data = fetch_cora()
    assert data.views["inbound"].nnz == data.views["outbound"].nnz == 0


# absent and broken files -----------------------------------------------------------------------


def test_missing_file_without_pooch(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match="pooch is not installed") as caught:
        fetch_cora()
    message = str(caught.value)
    assert "cora.content of the data set 'cora'" in message
    assert f"COEM_DATA ({place / 'own'})" in message
    assert str(place / "cache") in message
    assert "pip install coem[datasets]" in message
    assert "http://127.0.0.1:9/cora.zip" in message


def test_missing_file_is_named_alone(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("COEM_DATA")
    write_files(place / "cache" / "cora")
    (place / "cache" / "cora" / "cora.cites.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"^cora.cites of .* COEM_DATA \(not set\)"):
        fetch_cora()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("cora.content", b"other", "does not hold the original cora.content"),
        (
            "cora.content.gz",
            gzip.compress(b"other", mtime=0),
            "does not hold the original cora.content",
        ),
        ("cora.content.xz", lzma.compress(CONTENT)[:-9], "cannot be unpacked"),
        ("cora.content.xz", b"no xz file", "cannot be unpacked"),
        ("cora.content.gz", gzip.compress(CONTENT, mtime=0)[:-9], "cannot be unpacked"),
        ("cora.content.gz", b"no gz file", "cannot be unpacked"),
        ("cora.zip", b"no zip file", "cannot be unpacked"),
    ],
    ids=["other", "other gz", "short xz", "no xz", "short gz", "no gz", "no zip"],
)
@pytest.mark.parametrize("where", ["own", "cache"])
def test_broken_file_is_named_with_the_fix(place, where, name, data, message):
    path = place / where / "cora" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(OSError, match=message) as caught:
        fetch_cora()
    assert str(caught.value).startswith(str(path))
    assert "delete it and fetch the data again" in str(caught.value)
    assert path.exists()


def test_archive_without_the_member(place):
    with zipfile.ZipFile(place / "own" / "cora" / "cora.zip", "w") as archive:
        archive.writestr("cora/README", b"")
    with pytest.raises(OSError, match=r"there is no cora\.content in it"):
        fetch_cora()


# the download ----------------------------------------------------------------------------------


def test_download_is_checked_and_kept(place, server):
    pytest.importorskip("pooch")
    write_zip(server / "cora.zip")
    check_three_papers(fetch_cora())
    (server / "cora.zip").unlink()
    check_three_papers(fetch_cora())
    assert [path.name for path in (place / "cache" / "cora").iterdir()] == ["cora.zip"]


@pytest.mark.parametrize("broken", ["content", "cites"])
def test_download_of_other_content_is_not_kept(place, server, broken):
    pytest.importorskip("pooch")
    write_zip(server / "cora.zip", **{broken: b"other"})
    with pytest.raises(OSError, match=f"does not hold the original cora.{broken}") as caught:
        fetch_cora()
    assert caught.value.__notes__ == ["The downloaded file was deleted."]
    assert not any((place / "cache" / "cora").iterdir())
    write_zip(server / "cora.zip")
    check_three_papers(fetch_cora())


def test_download_that_fails(place, server):
    pytest.importorskip("pooch")
    with pytest.raises(FileNotFoundError, match="404") as caught:
        fetch_cora()
    caught.value.__cause__.response.close()  # pooch leaves the refused connection open
    assert "COEM_DATA" in str(caught.value)
    assert "pip install coem[datasets]" in str(caught.value)


def test_download_that_breaks_off(place, monkeypatch):
    pytest.importorskip("pooch")
    write_zip(place / "whole.zip")
    whole = (place / "whole.zip").read_bytes()

    class Short(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole[: len(whole) // 2])

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Short) as httpd:
        thread = threading.Thread(target=httpd.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{httpd.server_port}/cora.zip"
        digests = _files.REGISTRY["cora"].sha256
        monkeypatch.setitem(_files.REGISTRY, "cora", _files.Source(url, digests))
        with pytest.raises(OSError, match=r"the download of .* failed|cannot be unpacked"):
            fetch_cora()
        thread.join()
    assert not [path for path in (place / "cache").rglob("*") if path.is_file()]


def test_no_server(place):
    pytest.importorskip("pooch")
    with pytest.raises(FileNotFoundError, match=r"the download of .* failed"):
        fetch_cora()


# the table and the cache -----------------------------------------------------------------------


@pytest.mark.parametrize("dataset", list(_files.REGISTRY))
def test_registry_rows_are_complete(dataset):
    source = _files.REGISTRY[dataset]
    assert source.url.startswith(("https://", "http://"))
    assert source.archive
    digests = [*source.sha256.values(), *source.made.values()]
    assert digests
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)
    assert bool(source.members) == any(name.endswith(".tar") for name in source.sha256)


@pytest.mark.parametrize(
    ("platform", "variable", "below"),
    [
        ("linux", "XDG_CACHE_HOME", ".cache/coem"),
        ("darwin", None, "Library/Caches/coem"),
        ("win32", "LOCALAPPDATA", "AppData/Local/coem"),
    ],
)
def test_cache_dir_of_each_platform(tmp_path, monkeypatch, platform, variable, below):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.delenv("COEM_CACHE", raising=False)
    assert _files.cache_dir() == tmp_path / below
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "chosen"))
        assert _files.cache_dir() == tmp_path / "chosen" / "coem"
    monkeypatch.setenv("COEM_CACHE", str(tmp_path / "own"))
    assert _files.cache_dir() == tmp_path / "own"
