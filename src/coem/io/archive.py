"""Archives: a zip of one JSON document and arrays, written whole or not at all, never pickled.

Members are stored, not compressed. ``SHA256SUMS`` has the digest of every other one, in the form
that ``sha256sum -c`` reads.
"""

import hashlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from coem.io.regular import is_special
from coem.io.whole import new_file
from coem.typing import Array

META = "meta.json"
SUMS = "SHA256SUMS"
LARGEST_META = 1 << 28  # bytes
MOST_VALUES = 1 << 24  # of the document: a vocabulary has a value for each word
MOST_NESTED = 1 << 20  # lists and objects of the document, which take 100 bytes of memory and more
LINE = 67  # bytes of a line of `SUMS` besides the name: the digest, two blanks, the end
LARGEST_INDEX = 1 << 22  # bytes of the list of members, which takes 20 times as much memory
ENTRY = 80  # bytes of an entry of it at most, besides the name
LARGEST_HEADER = 1 << 14  # bytes of an array's header, NumPy's own limit being 10,000
KINDS = "biufcUSmM"  # of arrays: no objects, no structures
CHUNK = 1 << 20

# NumPy reads headers with `ast`, which can fail in Python 3.11 if several threads use it at once.
_one_parser = threading.Lock()


class ArchiveError(ValueError):
    """A file is not an archive, or is damaged."""


# -- write --------------------------------------------------------------------------------------


def write_archive(
    path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array], *, name: str = META
) -> None:
    """Write a JSON document and named arrays to `path`, and replace an existing file.

    `name` is that of the document. See `coem.io.whole.new_file` for what happens if the machine
    stops.
    """
    document = json.dumps(meta).encode()
    if len(document) > LARGEST_META:
        raise ValueError(f"{path}: {name} would have {len(document):,} bytes, more than are read")
    if sum(len(key) + ENTRY for key in arrays) > LARGEST_INDEX:
        raise ValueError(f"{path} would have {len(arrays):,} arrays, more than are read")
    with new_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        sums = {name: _write(archive, name, lambda member: member.write(document))}
        for key, array in arrays.items():
            values = np.asarray(array)
            sums[f"{key}.npy"] = _write(
                archive,
                f"{key}.npy",
                lambda member, values=values: npy.write_array(member, values, allow_pickle=False),
            )
        lines = "".join(f"{digest}  {member}\n" for member, digest in sums.items())
        archive.writestr(zipfile.ZipInfo(SUMS), lines)


def _write(archive: zipfile.ZipFile, name: str, write: Any) -> str:
    """Write a member and return its digest; without a date, so that equal content is equal."""
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
        hashing = _Hashing(member)
        write(hashing)
    return hashing.digest.hexdigest()


class _Hashing:
    """A file that digests what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write, and take into account."""
        self.digest.update(data)
        return self.file.write(data)


# -- read ---------------------------------------------------------------------------------------


def read_archive(path: Path, *, name: str = META) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON document and the arrays of an archive.

    Nothing in the file is executed, and nothing is allocated that the file does not hold: members
    are not compressed, and an array whose header promises another size is refused.

    Raises
    ------
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    ArchiveError
        If the file is damaged or not an archive.
    """
    with _opened(path, name) as (archive, members):
        meta, found = _read_meta(archive, members[name])
        digests, arrays = {name: found}, {}
        for member, info in members.items():
            if member not in (name, SUMS):
                arrays[member.removesuffix(".npy")], digests[member] = _read_array(archive, info)
        if digests != _read_sums(archive, members):
            raise ValueError(f"its content is not what {SUMS} says")
    return meta, arrays


def read_meta(path: Path, *, name: str = META) -> dict[str, Any]:
    """Return the JSON document of an archive alone; raises what `read_archive` does."""
    with _opened(path, name) as (archive, members):
        meta, digest = _read_meta(archive, members[name])
        if digest != _read_sums(archive, members).get(name):
            raise ValueError(f"{name} is not what {SUMS} says")
    return meta


class _Careful(io.BufferedReader):
    """A file of which little is read at once, until its list of members is known.

    `zipfile` reads the list in one piece, whose size the file says, and then makes an object of
    each entry.
    """

    most: int | None = LARGEST_INDEX

    def read(self, size: int | None = -1, /) -> bytes:
        """Return what comes next; raise if that would be too much."""
        if self.most is None:
            return super().read(size)
        wanted = self.most + 1 if size is None or size < 0 else min(size, self.most + 1)
        found = super().read(wanted)
        if len(found) > self.most:
            raise ValueError("it has too many members")
        return found


@contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive whose members are plain, different and no larger than the file."""
    try:
        if is_special(path):
            raise ValueError("it is not a regular file")
        with _Careful(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
            file.most = None
            members = {info.filename: info for info in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise ValueError("it has two members of one name")
            for info in members.values():
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise ValueError(f"{info.filename} is compressed or encrypted")
            # More than that are members that overlap, or sizes that are a lie.
            if sum(info.file_size for info in members.values()) > os.path.getsize(path):
                raise ValueError("its members promise more than it holds")
            if name not in members:
                raise ValueError(f"there is no {name} in it")
            yield archive, members
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # whatever the bytes of a stranger make the libraries say
        reason = str(error) or type(error).__name__
        raise ArchiveError(f"{path} is damaged or not an archive of coem: {reason}") from error


def _read_meta(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[dict[str, Any], str]:
    if info.file_size > LARGEST_META:
        raise ValueError(f"{info.filename} is too large")
    content = archive.read(info)
    _check_values(content, info.filename)
    meta = json.loads(content.decode())  # as bytes it may be UTF-16, whose quotes are others
    if not isinstance(meta, dict):
        raise ValueError(f"{info.filename} is not a JSON object")
    return meta, hashlib.sha256(content).hexdigest()


def _check_values(document: bytes, name: str) -> None:
    """Refuse a document of more values than a model has, before they are made.

    A value that is not the first of its list or object comes after a comma.
    """
    marks = _outside_strings(document, b"[{,")
    if sum(marks.values()) > MOST_VALUES or marks[b"["] + marks[b"{"] > MOST_NESTED:
        raise ValueError(f"{name} has too many values")


def _outside_strings(document: bytes, marks: bytes) -> dict[bytes, int]:
    """Return how often each mark is in a JSON document, strings left out."""
    plain = document.replace(rb"\\", b"").replace(rb"\"", b"")  # each other quote is an end
    found, inside = dict.fromkeys((bytes([mark]) for mark in marks), 0), 0
    for start in range(0, len(plain), CHUNK):
        part = np.frombuffer(plain, np.uint8, min(CHUNK, len(plain) - start), start)
        quotes = np.cumsum(part == ord(b'"'), dtype=np.uint8) + np.uint8(inside)
        outside = part[quotes & 1 == 0]
        inside = int(quotes[-1] & 1)
        for mark in found:
            found[mark] += int(np.count_nonzero(outside == ord(mark)))
    return found


def _read_sums(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> dict[str, str]:
    """Return the digests that the members should have."""
    if SUMS not in members:
        raise ValueError(f"there is no {SUMS} in it")
    # A line of nothing would become a hundred bytes of memory.
    if members[SUMS].file_size > sum(len(name.encode()) + LINE for name in members):
        raise ValueError(f"{SUMS} is too large")
    lines = archive.read(SUMS).decode().splitlines()
    pairs = [line.split("  ", 1) for line in lines]
    return {name: digest for digest, name in pairs}


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[Array, str]:
    """Return an array and the digest of its member."""
    if not info.filename.endswith(".npy"):
        raise ValueError(f"{info.filename} is not a plain array")
    memory, digest = np.empty(info.file_size, np.uint8), hashlib.sha256()
    with archive.open(info) as member:
        for start in range(0, len(memory), CHUNK):
            part = member.read(min(CHUNK, len(memory) - start))
            memory[start : start + len(part)] = np.frombuffer(part, np.uint8)
            digest.update(part)
            if len(part) < min(CHUNK, len(memory) - start):
                raise ValueError(f"{info.filename} ends early")
    return _parse_array(memory, info.filename), digest.hexdigest()


def _parse_array(memory: Array, name: str) -> Array:
    """Return the array that the bytes of a member are, in their memory if it is aligned."""
    header = io.BytesIO(memory[:LARGEST_HEADER].tobytes())
    version = npy.read_magic(header)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"{name} has a format of version {version}")
    with _one_parser:
        shape, by_columns, dtype = readers[version](header)
    body = memory[header.tell() :]
    promised = dtype.itemsize * int(np.prod(shape, dtype=object))
    plain = dtype.kind in KINDS and dtype.itemsize > 0
    if not plain or min(shape, default=0) < 0 or promised != len(body):
        raise ValueError(f"{name} does not hold the array that it promises")
    if promised == 0:
        return np.empty(shape, dtype.newbyteorder("="))
    values = body.view(dtype).reshape(shape, order="F" if by_columns else "C")
    return np.require(values.astype(dtype.newbyteorder("="), order="K", copy=False), None, "A")
