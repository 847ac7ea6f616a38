"""Model files taken apart, changed and put together again."""

import hashlib
import json
import zipfile

import pytest

import coem
from coem import ModelFileError
from coem.io import archive


def refused(path, message="is damaged, or is not a model file"):
    """Check that a file is refused in one sentence that names it, and return the sentence."""
    with pytest.raises(ModelFileError, match=message) as caught:
        coem.load(path)
    said = str(caught.value)
    assert str(path) in said
    assert "\n" not in said
    return said


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path, parts, *, sums=True, method=zipfile.ZIP_STORED):
    """Write a zip; with `sums`, as a forger who knows of the digests."""
    if sums:
        parts = {name: data for name, data in parts.items() if name != archive.SUMS}
        lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in parts.items()]
        parts[archive.SUMS] = "".join(lines).encode()
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in parts.items():
            file.writestr(name, data)


def forge(path, change, **options):
    """Let `change` edit the document of a file."""
    parts = members(path)
    meta = json.loads(parts["model.json"])
    meta = change(meta) or meta
    parts["model.json"] = json.dumps(meta).encode()
    write(path, parts, **options)


def state(meta, part="fitted"):
    return meta["model"]["object"][1][part]
