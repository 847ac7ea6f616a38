"""The model file: a fitted model as a zip of JSON and arrays, read without executing anything."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from coem.io.archive import ArchiveError, read_archive, read_meta, write_archive
from coem.io.decoder import Decoder, UntrustedPattern
from coem.io.encoder import Encoder
from coem.io.loaded import is_texts
from coem.io.values import ModelFileError

FORMAT = "coem model"
SCHEMA = 2  # 1 has no "index"
MOST = 1000  # schemas of any later version
MODEL = "model.json"
FIELDS = {"versions": dict, "summary": dict, "extra": dict, "left_out": list}
LONGEST = 300  # characters of the description of the damage to a file

Path_ = str | os.PathLike[str]


class Saves:
    """Gives an estimator the method `save`; its class has to be registered besides."""

    def save(self, path: Path_, *, extra: Any = None, fingerprint: str | None = None) -> None:
        """Write the model to a file, and replace an existing file.

        The file is written completely or not at all.

        `coem.load` reads it. Nothing is pickled, and predictions are the same to the last bit.

        Parameters
        ----------
        path : path
            The file; its name usually ends in ``.coem``.
        extra : dict, optional
            Anything that JSON can hold, to be kept with the model; `coem.read_info` returns it.
        fingerprint : str, optional
            What identifies the data of the fit, such as the `fingerprint` of a table.
        """
        write_model(self, path, extra=extra, fingerprint=fingerprint)


def write_model(
    model: Any, path: Path_, *, extra: Any = None, fingerprint: str | None = None
) -> None:
    """Write a model to a file; see `Saves.save`."""
    encoder = Encoder(type(model).__name__)
    try:
        encoded = encoder.encode(model)
    except RecursionError as error:
        raise ModelFileError(f"{type(model).__name__} holds itself, or is too deep") from error
    if not isinstance(encoded, dict) or "object" not in encoded:
        raise ModelFileError(f"a {type(model).__name__} cannot be saved as a model")
    meta = {
        "format": FORMAT,
        "schema": SCHEMA,
        "versions": {name: version(name) for name in ("coem", "numpy", "scikit-learn")},
        "fingerprint": _checked_fingerprint(fingerprint),
        "extra": _checked_extra(extra),
        "summary": describe(model),
        "left_out": encoder.left_out,
        "model": encoded,
    }
    write_archive(Path(path), meta, encoder.arrays, name=MODEL)


def read_model(
    path: Path_, *, fill: Mapping[str, Any] | None = None, trust_patterns: bool = False
) -> Any:
    """Return the model of a file, of the classes that are registered; see `coem.load`."""
    try:
        meta, arrays = read_archive(Path(path), name=MODEL)
        _check(meta, path)
        return Decoder(arrays, fill, trust_patterns=trust_patterns).decode(meta["model"])
    except UntrustedPattern as error:
        raise UntrustedPattern(
            f"{path}: {error}; if you trust the author of the file, load it with "
            "coem.load(path, trust_patterns=True); predict, explain and serve take --trust-patterns"
        ) from None
    except (ModelFileError, FileNotFoundError, PermissionError):
        raise
    except ArchiveError as error:
        raise _damaged(path, error.__cause__) from error
    except Exception as error:  # what was never written by us may fail in any way
        raise _damaged(path, error) from error


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself."""

    path: str
    size: int
    """Bytes of the file."""

    schema: int
    versions: dict[str, str]
    """Of coem, NumPy and scikit-learn when it was saved."""

    summary: dict[str, Any]
    """`class`, and what there is of `views` (name -> number of features), `components`, `classes`,
    `rows`, `vocabulary` (size, or view -> size), `steps` (summaries, of a Pipeline)."""

    extra: dict[str, Any]
    fingerprint: str | None
    left_out: list[str]
    """Parameters that a file cannot hold, and has at their defaults."""


def read_info(path: Path_) -> ModelInfo:
    """Return what a model file says about itself, without reading its arrays.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    info : ModelInfo
        Class, versions, views, sizes, and what its writer added.
    """
    try:
        meta = read_meta(Path(path), name=MODEL)
        _check(meta, path)
        _check_fields(meta)
        fields = {name: meta[name] for name in (*FIELDS, "fingerprint")}
        return ModelInfo(str(path), os.path.getsize(path), meta["schema"], **fields)
    except (ModelFileError, FileNotFoundError, PermissionError):
        raise
    except ArchiveError as error:
        raise _damaged(path, error.__cause__) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error


def _check(meta: Mapping[str, Any], path: Path_) -> None:
    """Refuse the files of others, and of later versions."""
    schema = meta.get("schema")
    if meta.get("format") != FORMAT or type(schema) is not int or not 1 <= schema < MOST:
        raise ValueError(f"{MODEL} is not by coem")
    if schema > SCHEMA:
        versions = meta.get("versions")
        newer = versions.get("coem") if isinstance(versions, dict) else None
        raise ModelFileError(
            f"{path} was saved by a newer coem ({newer!s:.40}, schema {schema}; this one reads up "
            f"to {SCHEMA}); upgrade coem: pip install -U coem"
        )


def _check_fields(meta: Mapping[str, Any]) -> None:
    """Refuse a document that says something else of a model than `write_model` does."""
    for name, kind in FIELDS.items():
        if not isinstance(meta[name], kind):
            raise ValueError(f"its {name} is not a {kind.__name__}")
    if not is_texts(meta["versions"].values()) or "coem" not in meta["versions"]:
        raise ValueError("its versions are not valid")
    steps = meta["summary"].get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ValueError("its summary has steps that are not valid")
    if not is_texts(meta["left_out"]):
        raise ValueError("its left_out is not a list of names")
    if not isinstance(meta["fingerprint"], str | None):
        raise ValueError("its fingerprint is not text")


def _damaged(path: Path_, reason: BaseException | None) -> ModelFileError:
    said = f"lacks {reason}" if isinstance(reason, KeyError) else str(reason)
    said = " ".join(said[:LONGEST].split()) or type(reason).__name__
    return ModelFileError(
        f"{path} is damaged, or is not a model file of coem: {said}; save the model again"
    )


def _checked_extra(extra: Any) -> dict[str, Any]:
    """Return what the caller adds, if JSON gives it back as it is."""
    if extra is None:
        return {}
    try:
        same = isinstance(extra, dict) and json.loads(json.dumps(extra, allow_nan=False)) == extra
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ModelFileError("extra must be a dict of plain JSON: str, numbers, lists and dicts")
    return dict(extra)


def _checked_fingerprint(fingerprint: Any) -> str | None:
    if fingerprint is not None and not isinstance(fingerprint, str):
        raise ModelFileError(f"fingerprint must be None or a str, got {fingerprint!r}")
    return fingerprint


def describe(model: Any) -> dict[str, Any]:
    """Return what people ask about a model, as plain JSON."""
    found: dict[str, Any] = {"class": type(model).__name__}
    own = vars(model)
    if "steps" in own:
        return found | {"steps": [describe(step) for _, step in own["steps"] if _is_step(step)]}
    if "view_names_" in own:
        found["views"] = dict(zip(own["view_names_"], map(int, own["view_widths_"]), strict=True))
    for name in ("weights_", "alpha_"):
        if isinstance(own.get(name), np.ndarray):
            found["components"] = len(own[name])
    if "n_clusters" in own:
        found["components"] = int(own["n_clusters"])
    if "labels_" in own:
        found["rows"] = len(own["labels_"])
    if "classes_" in own:
        found["classes"] = [str(name) for name in own["classes_"]]
    words = own.get("vocabulary_")
    if words is not None:
        several = isinstance(words, dict) and all(map(_is_array, words.values()))
        found["vocabulary"] = {v: len(w) for v, w in words.items()} if several else len(words)
    return found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _is_step(step: Any) -> bool:
    return step is not None and not isinstance(step, str)
