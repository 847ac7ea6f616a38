"""Find, download and check the files of a data set."""

import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

Content: TypeAlias = Any
"""The bytes of a file, or for a tar archive a dict of its members' names and bytes."""

Unpack: TypeAlias = Callable[[bytes], Content]

MAX_TAR_BYTES = 2**28
"""No data set here is a quarter as large: a tar archive that is larger is not read."""


@dataclass(frozen=True)
class Source:
    """What a data set consists of and where it lives.

    ``sha256`` maps the name of each file to the digest of its *uncompressed* content: the one
    thing that stays the same however the file is wrapped. ``url`` is the public home's file.
    ``made`` does the same for files that were made from the original and have no public home.

    A name that ends in ``.tar`` is an archive with many members. Those whose path ends in the
    regular expression ``members`` are read, under the part of the path that it matches, and never
    written to disk. The digest is that of `tree_digest`, so order, dates, owners and folders above
    do not count. Not ``exact`` means that of the content letters and digits alone do, because the
    copies of some old collections differ in line ends and stray bytes.
    """

    url: str
    sha256: Mapping[str, str]
    made: Mapping[str, str] = field(default_factory=dict)
    members: str = ""
    exact: bool = True

    @property
    def archive(self) -> str:
        """Return the file name under which the public home delivers the data set."""
        return PurePosixPath(self.url).name

    def expected(self, name: str) -> str:
        """Return the digest that a file must have."""
        return self.made[name] if name in self.made else self.sha256[name]

    def digest(self, content: Content) -> str:
        """Return the digest that a file has."""
        if isinstance(content, dict):
            return tree_digest(content, self.exact)
        return hashlib.sha256(content).hexdigest()


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
    "20newsgroups_19997": Source(
        url="http://qwone.com/~jason/20Newsgroups/20news-19997.tar.gz",
        sha256={
            "20_newsgroups.tar": "ff14e08e8be1a2d585a8c15db6abafadd63c9a89c7f9009f15ffcce064ea5114"
        },
        members=r"[^/]+/\d+",
        exact=False,
    ),
    "20newsgroups": Source(
        url="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        sha256={
            "20news-bydate.tar": "81ec4db1dc216cf65c243a24a59508f7f4f9aee049b2f7fea8682f2077ca5d58"
        },
        members=r"20news-bydate-(?:train|test)/[^/]+/\d+",
        exact=False,
    ),
    "20newsgroups_minilm": Source(
        url="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        sha256={},
        made={
            "embeddings.npy": "c419fb7d42182290dec1d40803d4205a65e0b13579bb212da2fc6a261fcf7e76",
            "ids.txt": "00b5424d59b825c452bd1655a9f280030eecb1f3279cf5153b246470ff0fafa4",
        },
    ),
    "reuters21578": Source(
        url="http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
        sha256={
            "reuters21578.tar": "c738afdb5bf4cb52bb0f624cb230df759433e079b590181bc56bd65dc581a862"
        },
        members=r"reut2-\d{3}\.sgm",
    ),
    "webkb": Source(
        url="http://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-20/www/data/webkb-data.gtar.gz",
        sha256={
            "webkb-data.tar": "eca7b34a72ee2458d9e9741303519965c6fea56906ccbce45aa2652b009f4629"
        },
        made={"anchors.tsv": "32bd37f7e8472688507434db67a93142e2d7039e13e010ab949b3be139baabb4"},
        members=r"(?:course|department|faculty|other|project|staff|student)/[a-z]+/[^/]+",
        exact=False,
    ),
    "webkb_course": Source(
        url="https://www.cs.cmu.edu/afs/cs.cmu.edu/project/theo-51/www/co-training/data/"
        "course-cotrain-data.tar.gz",
        sha256={
            "course-cotrain-data.tar": (
                "34f94875ab8e7bf127df4a3fef8948ef63de9167c79534ab2c1ffc1e3ad304f5"
            )
        },
        made={"labels6.tsv": "5e055343d1750d4910265b3d79da738f7271d9346da46b98c3a8f96af42ce238"},
        members=r"(?:fulltext|inlinks)/(?:course|non-course)/[^/]+",
        exact=False,
    ),
    "medline": Source(
        url="http://ir.dcs.gla.ac.uk/resources/test_collections/medl/med.tar.gz",
        sha256={"med.tar": "9700baf7928e1ce30c1c1928bd4869b61bf2c5fa827c41d587ebddf060d00f3a"},
        members=r"MED\.(?:ALL|QRY|REL)",
    ),
    "cranfield": Source(
        url="http://ir.dcs.gla.ac.uk/resources/test_collections/cran/cran.tar.gz",
        sha256={"cran.tar": "6d7fd9362ee7e93f6e5c6a03ae62025ea0dc860928d057eb1174aa3b601b7c70"},
        members=r"cran\.all\.1400|cran\.qry|cranqrel",
    ),
    "cluto": Source(
        url="http://glaros.dtc.umn.edu/gkhome/cluto/cluto/download",
        sha256={},
        made={
            "re0.mat": "102b4e77d0a5f1a84fe79abf399575576f5c451b43ccff81615db73dcd86f0aa",
            "re0.mat.rclass": "a680ac9edf6f94d1e99a7c3e2cda92cded0a11d5a96752fecb48e9fc81dac456",
            "re0.mat.clabel": "ff7a84cfbf8811cc50a6e96c4d321a0969c6b37cc44e262aa410b32a53634d96",
            "fbis.mat": "84b812e730c92edffb0df55fe1ae8066ec99cdf910e7db6e27476cb0f2649603",
            "fbis.mat.rclass": "912f1aad614864bc118da2292d07b37a275e59ee5b49ce7ef390a9401f59aa5f",
            "fbis.mat.clabel": "c8f463d4835c6948485cd687e0e7869f11f2556a20f030d7a78316f3ade0c664",
            "la1.mat": "c391e964b785ee7285bfb27429ea6e9cac7b9f3d3f37b8791724303569f3c82e",
            "la1.mat.rclass": "81f6fd4f602bfcd82cf3eb6dab98e84571163f707d4db545ae744bcc02762238",
            "hitech.mat": "a8b3d616236f8675f812cadab6a28fb0bab09afa8af465b88b06399ac79bc9d8",
            "hitech.mat.rclass": "cdef3df4a7b56af2d48bfa70a8a7f086f1ac3f90472e39713a3be063f0de58ae",
            "hitech.mat.clabel": "5df35882cc933557e74e735956a38bea9948f54d6cf440cc1915c0d69e0595e4",
            "tr11.mat": "358796c5bf9bd4961f4d36ff816d69674c81698e4a2934f995e3bd0b7910f58f",
            "tr11.mat.rclass": "2d738d4535bd2951ae1f354b03056807533310862ff225cf141cc873873292c0",
            "tr11.mat.clabel": "5ab30b23154764aaa18236f78ec0e23da87617dbf68de97699ba12086a6c0440",
            "wap.mat": "8d4244956214abce3bbddd04b9805e7f7686485cfc99283d38b62f6978d5719a",
            "wap.mat.rclass": "5b0ec740b61d8bc53b7b48ee3b3d4987f8abd359512eb1ddd657fa7981b25b82",
            "wap.mat.clabel": "bc5613cef925287251938c8da812b5f2517476bb633285e270995d5f60f1b6b4",
        },
    ),
    "cora_papers": Source(
        url="https://github.com/APEX-WSU/CoRA",
        sha256={},
        made={
            "papers.tsv": "c83427983c684762071067619043bff0dd9dab83df8bff4ad5ca21bfad2ff2b0",
            "cites.tsv": "2483bc796cd1c72664d9182a68755a391cac22be269a573be420dcbb60cbb94e",
        },
    ),
    "as_graphs": Source(
        url="https://snap.stanford.edu/data/oregon2_010526.txt.gz",
        sha256={
            "oregon2_010526.txt": "de13a3ea06f49e3fcf30cfb30cbbe39d9d1cd02c5af3af27eee5f6377345408e"
        },
        made={
            "as20000102.txt": "7b3695e269b1b7e23c5e13a5ef847a6f414040bafa0f213bbc3f577e49a97cfa",
            "as-22july06.gml": "12ea1da0e8f38ec647a6caab04864e21eaf96fd810b79ef8ebb3cbc68228a95a",
            "as-caida20071105.txt": (
                "97ff0a45e2f80daf65b51684c222ce4edfe7c0d31484ada564db614972338f53"
            ),
        },
    ),
}
"""The data sets by name, which is also the name of their folder."""


def read_files(dataset: str, *names: str) -> dict[str, Content]:
    """Return the checked, uncompressed content of the files of a data set.

    Parameters
    ----------
    dataset : str
        A name in `REGISTRY`.
    *names : str
        The files to read; all that have a public home by default.

    Returns
    -------
    contents : dict of str to bytes or dict
        File name to content, which for a tar archive is itself a dict of member to bytes.

    Raises
    ------
    FileNotFoundError
        If a file is neither in ``COEM_DATA`` nor in the cache and cannot be downloaded.
    OSError
        If a file is there but does not have the content of the original.
    """
    return {name: _read(dataset, name) for name in names or REGISTRY[dataset].sha256}


def tree_digest(tree: Mapping[str, bytes], exact: bool = True) -> str:
    """Return the SHA-256 of the members of an archive, in the order of their names.

    Each goes in as its name, a zero byte, the length of its content in decimal digits, a zero byte
    and the content. Not ``exact`` leaves all but ASCII letters and digits out of the content and of
    the end of the name.
    """
    pairs = ((name.encode("utf-8", "surrogateescape"), data) for name, data in tree.items())
    if not exact:
        pairs = ((n.rstrip(_NOT_WORDS), d.translate(None, _NOT_WORDS)) for n, d in pairs)
    total = hashlib.sha256()
    for name, data in sorted(pairs):
        total.update(b"%s\0%d\0" % (name, len(data)))
        total.update(data)
    return total.hexdigest()


_NOT_WORDS = bytes(byte for byte in range(256) if not (byte < 128 and chr(byte).isalnum()))


def cache_dir() -> Path:
    """Return the cache directory for coem, the same with and without pooch.

    The environment variable ``COEM_CACHE`` names it, or it is the one that the user's system has.
    """
    own = os.environ.get("COEM_CACHE")
    if own:
        return Path(own).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "coem"


def _read(dataset: str, name: str) -> Content:
    """Return the content of one file from the first place that has it."""
    for folder in _folders(dataset):
        with suppress(FileNotFoundError):
            return _find(folder, REGISTRY[dataset], name)
    if name in REGISTRY[dataset].made:
        raise FileNotFoundError(_homeless(dataset, name))
    return _download(dataset, name)


def _folders(dataset: str) -> Iterator[Path]:
    """Yield the local folders of a data set, the user's own first."""
    own = os.environ.get("COEM_DATA")
    if own:
        yield Path(own).expanduser() / dataset
    yield cache_dir() / dataset


def _find(folder: Path, source: Source, name: str) -> Content:
    """Return the checked content of a file in a folder, in whatever form the folder has it."""
    for path, unpack in _candidates(folder, source, name):
        if path.is_file():
            return _checked(path, unpack, source, name)
    raise FileNotFoundError(f"there is no {name} in {folder}")


def _candidates(folder: Path, source: Source, name: str) -> Iterator[tuple[Path, Unpack]]:
    """Yield every form in which a folder may hold a file."""
    read = partial(_untar, members=source.members) if name.endswith(".tar") else bytes
    yield folder / name, read
    yield folder / f"{name}.gz", lambda data: read(gzip.decompress(data))
    yield folder / f"{name}.xz", lambda data: read(lzma.decompress(data))
    if name not in source.made:
        zipped = source.archive.endswith(".zip")
        archive = partial(_unzip, name=name) if zipped else gzip.decompress
        yield folder / source.archive, lambda data: read(archive(data))


def _untar(data: bytes, members: str) -> dict[str, bytes]:
    """Return the content of the members that count, by the part of the path that counts."""
    pattern, tree, size, last = re.compile(rf"(?:.*/)?({members})", re.DOTALL), {}, 0, -1
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8") as archive:
        for member in archive:
            # A damaged size may be negative, and older Pythons then read in circles.
            if member.size < 0 or member.offset <= last:
                raise tarfile.ReadError("its members overlap")
            last = member.offset
            match = pattern.fullmatch(member.name)
            # Links and devices are skipped: coem does not read what they point at.
            if match is None or not member.isreg():
                continue
            size += member.size
            if size > MAX_TAR_BYTES:
                raise tarfile.ReadError(f"it holds more than {MAX_TAR_BYTES} bytes")
            tree[match[1]] = archive.extractfile(member).read()
    return tree


def _unzip(data: bytes, name: str) -> bytes:
    """Return the member of that base name, in whatever folder of the archive it is."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            if PurePosixPath(member).name == name:
                return archive.read(member)
    raise zipfile.BadZipFile(f"there is no {name} in it")


_BROKEN = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
    ValueError,  # this and the next are what some damaged headers lead to
    OverflowError,
)


def _checked(path: Path, unpack: Unpack, source: Source, name: str) -> Content:
    """Return the unpacked content of a path, or say what is wrong with it."""
    fix = f"delete it and fetch the data again, or put a fresh copy from {source.url} in its place"
    if name in source.made:
        fix = "put a fresh copy in its place"
    data = path.read_bytes()
    try:
        content = unpack(data)
    except _BROKEN as error:
        raise OSError(f"{path} cannot be unpacked ({error}): {fix}.") from error
    digest, expected = source.digest(content), source.expected(name)
    if digest != expected:
        raise OSError(
            f"{path} does not hold the original {name} "
            f"(its SHA-256 is {digest}, expected {expected}): {fix}."
        )
    return content


def _download(dataset: str, name: str) -> Content:
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


def _homeless(dataset: str, name: str) -> str:
    """Say that a file cannot be downloaded, and where to put a copy."""
    return (
        f"{name} of the data set {dataset!r} was found neither in the directory COEM_DATA "
        f"({os.environ.get('COEM_DATA') or 'not set'}) nor in the cache {cache_dir()}, and it has "
        f"no public home (it was made from {REGISTRY[dataset].url}): set COEM_DATA to a directory "
        f"with it in its folder {dataset!r}."
    )
