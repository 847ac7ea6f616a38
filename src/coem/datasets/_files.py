"""Find, download and check the files of a data set."""

import gzip
import hashlib
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeAlias

Unpack: TypeAlias = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Source:
    """What a data set consists of and where it lives.

    ``sha256`` maps the name of each file to the digest of its *uncompressed* content: the one
    thing that stays the same however the file is wrapped. ``url`` is the public home's file.
    """

    url: str
    sha256: Mapping[str, str]

    @property
    def archive(self) -> str:
        """Return the file name under which the public home delivers the data set."""
        return PurePosixPath(self.url).name


REGISTRY: dict[str, Source] = {
    "cora": Source(
        url="https://linqs-data.soe.ucsc.edu/public/datasets/cora/cora.zip",
        sha256={
            "cora.content": "b8ebed0fd45e53995abafd1b70cf6a9fcc8f86abc5826d69b97fe6ca46e9c8ee",
            "cora.cites": "ec1a372391b7f0f60a6aff0084e8abd8f19f0faa7e1f2441a41c492042d5945e",
        },
    ),
    "citeseer": Source(
        url="https://linqs-data.soe.ucsc.edu/public/datasets/citeseer-doc-classification/"
        "citeseer-doc-classification.zip",
        sha256={
            "citeseer.content": "de4a3ca98626d77193f27af5c976b981a56080e6273c4e1c05764a95d2143ff8",
            "citeseer.cites": "cd9730630eaaa745058c2cd2cce6b9afb79ca71278a479aebec55f4cf5eb7f30",
        },
    ),
}
"""The data sets by name, which is also the name of their folder."""


def read_files(dataset: str) -> dict[str, bytes]:
    """Return the checked, uncompressed content of every file of a data set.

    Parameters
    ----------
    dataset : str
        A name in `REGISTRY`.

    Returns
    -------
    contents : dict of str to bytes
        File name to content.

    Raises
    ------
    FileNotFoundError
        If a file is neither in ``COEM_DATA`` nor in the cache and cannot be downloaded.
    OSError
        If a file is there but does not have the content of the original.
    """
    return {name: _read(dataset, name) for name in REGISTRY[dataset].sha256}


def cache_dir() -> Path:
    """Return the user's cache directory for coem, the same with and without pooch."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coem"


def _read(dataset: str, name: str) -> bytes:
    """Return the content of one file from the first place that has it."""
    for folder in _folders(dataset):
        with suppress(FileNotFoundError):
            return _find(folder, REGISTRY[dataset], name)
    return _download(dataset, name)


def _folders(dataset: str) -> Iterator[Path]:
    """Yield the local folders of a data set, the user's own first."""
    own = os.environ.get("COEM_DATA")
    if own:
        yield Path(own).expanduser() / dataset
    yield cache_dir() / dataset


def _find(folder: Path, source: Source, name: str) -> bytes:
    """Return the checked content of a file in a folder, in whatever form the folder has it."""
    for path, unpack in _candidates(folder, source, name):
        if path.is_file():
            return _checked(path, unpack, source, name)
    raise FileNotFoundError(f"there is no {name} in {folder}")


def _candidates(folder: Path, source: Source, name: str) -> Iterator[tuple[Path, Unpack]]:
    """Yield every form in which a folder may hold a file."""
    yield folder / name, bytes
    yield folder / f"{name}.gz", gzip.decompress
    yield folder / f"{name}.xz", lzma.decompress
    yield folder / source.archive, partial(_unzip, name=name)


def _unzip(data: bytes, name: str) -> bytes:
    """Return the member of that base name, in whatever folder of the archive it is."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            if PurePosixPath(member).name == name:
                return archive.read(member)
    raise zipfile.BadZipFile(f"there is no {name} in it")


def _checked(path: Path, unpack: Unpack, source: Source, name: str) -> bytes:
    """Return the unpacked content of a path, or say what is wrong with it."""
    fix = f"delete it and fetch the data again, or put a fresh copy from {source.url} in its place"
    data = path.read_bytes()
    try:
        content = unpack(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise OSError(f"{path} cannot be unpacked ({error}): {fix}.") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256[name]:
        raise OSError(
            f"{path} does not hold the original {name} "
            f"(its SHA-256 is {digest}, expected {source.sha256[name]}): {fix}."
        )
    return content


def _download(dataset: str, name: str) -> bytes:
    """Fetch the data set's archive into the cache and return one of its files."""
    source, folder = REGISTRY[dataset], cache_dir() / dataset
    try:
        import pooch  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise FileNotFoundError(_not_found(dataset, name, "pooch is not installed")) from error
    # The digest of the archive is not known, so pooch checks nothing: _find checks the members.
    fetcher = pooch.create(
        path=folder, base_url="", registry={source.archive: None}, urls={source.archive: source.url}
    )
    try:
        path = Path(fetcher.fetch(source.archive))
    except OSError as error:
        reason = f"the download of {source.url} failed ({error})"
        raise FileNotFoundError(_not_found(dataset, name, reason)) from error
    try:
        # All members at once: a bad one that stays in the cache would block the next download.
        contents = {member: _find(folder, source, member) for member in source.sha256}
    except OSError as error:
        path.unlink()
        error.add_note("The downloaded file was deleted.")
        raise
    return contents[name]


def _not_found(dataset: str, name: str, reason: str) -> str:
    """Say where a file was looked for and what to do."""
    return (
        f"{name} of the data set {dataset!r} was found neither in the directory COEM_DATA "
        f"({os.environ.get('COEM_DATA') or 'not set'}) nor in the cache {cache_dir()}, and "
        f"{reason}: run `pip install coem[datasets]` and go online, or set COEM_DATA to a "
        f"directory with {REGISTRY[dataset].url} in its folder {dataset!r}."
    )
