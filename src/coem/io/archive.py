"""Archives: a zip of one JSON document and arrays, written whole or not at all, never pickled."""

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from coem.typing import Array

META = "meta.json"
LARGEST_META = 1 << 28  # bytes


def write_archive(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a JSON document and named arrays to `path`, in place of what is there.

    The file gets its name only once it is complete: whoever opens `path` finds the old content or
    the new one, also if the machine stops in between.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(META, json.dumps(meta))
                for key, array in arrays.items():
                    with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                        npy.write_array(member, np.asarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the JSON document and the arrays of an archive.

    Nothing in the file is executed, and nothing is allocated that the file does not hold: members
    are not compressed, and an array whose header promises another size is refused.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged or no archive.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise ValueError("it has two members of one name")
            meta = _read_meta(archive, members)
            arrays = {
                name.removesuffix(".npy"): _read_array(archive, info)
                for name, info in members.items()
                if name != META
            }
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as e:
        raise ValueError(f"{path} is damaged or no archive of coem: {e}") from e
    return meta, arrays


def _read_meta(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if META not in members:
        raise ValueError(f"there is no {META} in it")
    info = members[META]
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > LARGEST_META:
        raise ValueError(f"{META} is compressed or too large")
    meta = json.loads(archive.read(info))
    if not isinstance(meta, dict):
        raise ValueError(f"{META} is no object")
    return meta


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    if not info.filename.endswith(".npy") or info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is no plain array")
    with archive.open(info) as member:
        version = npy.read_magic(member)
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if version not in header:
            raise ValueError(f"{info.filename} has a format of version {version}")
        shape, _, dtype = header[version](member)
        promised = dtype.itemsize * int(np.prod(shape, dtype=object))
        if dtype.hasobject or promised != info.file_size - member.tell():
            raise ValueError(f"{info.filename} does not hold the array that it promises")
    with archive.open(info) as member:
        return np.asarray(npy.read_array(member, allow_pickle=False))
