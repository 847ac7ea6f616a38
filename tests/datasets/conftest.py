"""Real data sets loaded once a session, and empty places for handmade ones."""

import io
import os
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from coem.datasets import _files


@pytest.fixture(scope="session")
def load():
    """Return a function that calls a loader once, and skips where the real files are absent."""
    loaded = {}

    def load(folders, fetch, *args, **options):
        own = os.environ.get("COEM_DATA")
        for folder in (folders,) if isinstance(folders, str) else folders:
            if not own or not Path(own, folder).is_dir():
                pytest.skip(f"needs the folder {folder} in COEM_DATA")
        key = (fetch.__name__, args, tuple(options.items()))
        if key not in loaded:
            loaded[key] = fetch(*args, **options)
        return loaded[key]

    return load


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return an empty COEM_DATA; the cache is empty too, and no proxy is asked."""
    monkeypatch.setenv("COEM_DATA", str(tmp_path / "own"))
    monkeypatch.setattr(_files, "cache_dir", lambda: tmp_path / "cache")
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


@pytest.fixture
def put(own, monkeypatch):
    """Return a function that replaces a data set by handmade files and their digests."""

    def put(dataset, files, url=None):
        source, digests = _files.REGISTRY[dataset], {}
        (own / dataset).mkdir(exist_ok=True)
        for name, content in files.items():
            data = make_tar(content) if name.endswith(".tar") else content
            (own / dataset / name).write_bytes(data)
            read = _files._untar(data, source.members) if name.endswith(".tar") else data
            digests[name] = source.digest(read)
        changed = replace(
            source,
            # Port 9 of this machine: nothing answers, so a download by mistake fails at once.
            url=url or f"http://127.0.0.1:9/{source.archive}",
            sha256={name: digests.get(name, "absent") for name in source.sha256},
            made={name: digests.get(name, "absent") for name in source.made},
        )
        monkeypatch.setitem(_files.REGISTRY, dataset, changed)
        return own / dataset

    return put


@pytest.fixture
def tar():
    """Return a function that makes a tar archive of names and contents."""
    return make_tar


def make_tar(tree):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in tree.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def web(tmp_path):
    """Serve the folder ``home`` on this machine; return it and its address."""
    home = tmp_path / "home"
    home.mkdir()
    handler = partial(QuietHandler, directory=str(home))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield home, f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    """A file server that does not write to the terminal."""

    def log_message(self, *args):
        """Say nothing."""
