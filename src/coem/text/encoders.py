"""Encoders by name: models of model2vec and of sentence-transformers, loaded when they are needed.

No code of a model is run. Both libraries are extras, and are imported when a model is loaded.
"""

import hashlib
import json
import os
import re
import sys
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

# What an encoder says of these texts tells it from others. A small model may know few words: so
# they have digits, letters, and common words of several languages.
PROBES = (
    "What is it that co-EM makes of two views?",
    "0 1 2 3 4 5 6 7 8 9 10 100 2000",
    "a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "the of and to in is for with on as; price good year time new game water house",
    "der die und nicht; le la et les; el los y que; il di che; het een en; om att och; i w nie",
    "и в не на; 的 是 在; の は 日本; 한국; و في; και το; ve bir",
)
STATIC, DEEP = "model2vec", "sentence-transformers"
MODULES = {STATIC: "model2vec", DEEP: "sentence_transformers"}
OWNER = "minishlab/"  # of the models of model2vec that its makers publish
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")  # of a model that can be downloaded
# The parts of a model of sentence-transformers that model2vec can read as well.
PARTS = ("StaticEmbedding", "Normalize")


class NamedEncoder:
    """A model of model2vec or sentence-transformers that makes vectors of texts.

    Parameters
    ----------
    name : str
        The folder of a saved model, or the name of one to download. Before it you may write the
        library: ``"model2vec:NAME"`` or ``"sentence-transformers:NAME"``. Without it a folder is
        read by the library that it was saved by, names that begin with ``minishlab/`` are models
        of model2vec, and all other names are models of sentence-transformers.
    place : str, optional
        Where the model is now, if it has moved; the encoder keeps its `name`.

    Attributes
    ----------
    name : str
        The same with the library, and with the full path of a folder.
    """

    def __init__(self, name: str, place: str | None = None) -> None:
        self._found = full_name(name if place is None else place)
        self.name = self._found if place is None else name

    def __repr__(self) -> str:
        """Return how to make it."""
        return f"NamedEncoder({self.name!r})"

    def __reduce__(self) -> Any:
        """Return what to keep in a pickle: names, for models are large."""
        return NamedEncoder, (self.name, None if self._found == self.name else self._found)

    @property
    def known_as(self) -> str:
        """What a model file says in its place."""
        return self.name

    def encode(self, texts: list[str]) -> Any:
        """Return one vector a text, as rows."""
        if self._place[0] == STATIC:
            return self._model.encode(list(texts), use_multiprocessing=False)
        return self._model.encode(list(texts), show_progress_bar=False, convert_to_numpy=True)

    @cached_property
    def probe(self) -> Any:
        """What the model says of known texts, one a row; the model is loaded for it."""
        return np.asarray(self.encode(list(PROBES)), dtype=np.float32)

    @cached_property
    def files(self) -> str | None:
        """The digest of the files of a saved model, or None for one that is downloaded."""
        place = Path(self._place[1])
        return _digest(place) if place.is_dir() else None

    @property
    def _place(self) -> tuple[str, str]:
        """The library, and where the model is now."""
        library, _, place = self._found.partition(":")
        return library, place

    @cached_property
    def _model(self) -> Any:
        library, place = self._place
        module = _imported(library, place)
        try:
            if library == STATIC:
                return module.StaticModel.from_pretrained(place, force_download=False)
            return module.SentenceTransformer(place, trust_remote_code=False)
        except Exception as error:  # libraries, and what downloads for them, raise anything
            raise ValueError(_unloadable(place, error)) from error


def fingerprint(probe: Any, files: str | None = None) -> str:
    """Return a digest of an encoder, from its vectors of the known texts and its files.

    Numbers are rounded to a hundredth of the largest in their row: later digits differ between
    machines.
    """
    probe = np.asarray(probe, dtype=np.float64)
    largest = np.abs(probe).max(axis=1, keepdims=True, initial=0.0)
    rounded = np.round(probe / np.where(largest > 0, largest, 1.0), 2) + 0.0  # no -0.0
    scales = [f"{scale:.1e}" for scale in largest.ravel()]
    text = json.dumps([files, list(probe.shape), scales, rounded.tolist()])
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(folder: Path) -> str:
    """Return a digest of all files of a model, except hidden files and Markdown."""
    found = hashlib.sha256()
    paths = (path for path in folder.rglob("*") if path.is_file())
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in paths):
        if not (name.startswith(".") or "/." in name or name.lower().endswith(".md")):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            found.update(f"{name}\x00{content}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def full_name(name: str) -> str:
    """Return library and model, with a folder in full; raise if there can be no such model."""
    library, found, rest = name.partition(":")
    has_prefix = bool(found) and library in MODULES
    place = os.path.expanduser(rest if has_prefix else name)
    if os.path.isdir(place):
        place = os.path.abspath(place)
        library = library if has_prefix else _library_of(place)
        if library == DEEP:
            _check_code(place)
    else:
        _check_name(name, place)
        library = library if has_prefix else STATIC if place.startswith(OWNER) else DEEP
    _check_installed(library, name, has_prefix)
    return f"{library}:{place}"


def _check_name(name: str, place: str) -> None:
    """Refuse what is neither a folder nor the name of a model."""
    if os.path.isfile(place):
        raise ValueError(f"the encoder {name!r} is a file; name the folder of a saved model")
    if not NAME.fullmatch(place) or place.startswith("."):
        raise ValueError(
            f"the encoder {name!r} is neither a folder nor the name of a model; write the "
            f"folder of a saved model, {STATIC}:NAME or {DEEP}:NAME"
        )


def _library_of(folder: str) -> str:
    """Return the library that a folder was saved by."""
    kinds = _parts(folder)
    if kinds is not None:
        return STATIC if all(kind.endswith(PARTS) for kind in kinds) else DEEP
    config = _json(folder, "config.json")
    if not isinstance(config, dict):
        raise ValueError(
            f"the encoder {folder!r} is not the folder of a model: it has no modules.json and no "
            f"config.json; save one there with save_pretrained of {STATIC} or {DEEP}"
        )
    return STATIC if config.get("model_type", STATIC) == STATIC else DEEP


def _check_code(folder: str) -> None:
    """Refuse a folder with code of its own, which sentence-transformers would run."""
    for kind in _parts(folder) or ():
        if not kind.startswith("sentence_transformers."):
            raise ValueError(
                f"the encoder {folder!r} brings code of its own ({kind}), which is not run; load "
                "it in Python, and hand over the object as the encoder"
            )


def _parts(folder: str) -> list[str] | None:
    """Return the classes that a model is made of, or None if nothing says so."""
    modules = _json(folder, "modules.json")
    if not isinstance(modules, list):
        return None
    return [str(part.get("type")) for part in modules if isinstance(part, dict)]


def _json(folder: str, name: str) -> Any:
    try:
        return json.loads(Path(folder, name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _install(library: str, name: str, has_prefix: bool = True) -> str:
    said = f"the encoder {name!r} needs {library}: pip install 'coem[{library}]'"
    return said if has_prefix else f"{said}, or write {STATIC}:{name} for a model of {STATIC}"


def _check_installed(library: str, name: str, has_prefix: bool) -> None:
    """Raise if a library is not installed, without importing it."""
    module = MODULES[library]
    if sys.modules.get(module) is None and find_spec(module) is None:
        other = not has_prefix and library == DEEP and NAME.fullmatch(name) is not None
        raise ImportError(_install(library, name, not other))


def _imported(library: str, place: str) -> Any:
    try:
        return import_module(MODULES[library])
    except ImportError as error:
        raise ImportError(f"{_install(library, place)} ({error})") from error


def _unloadable(place: str, error: Exception) -> str:
    """Return what is wrong with a model, in one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
    if os.path.isdir(place):
        return f"the encoder {place!r} cannot be loaded: {reason}; save the model again"
    return (
        f"the encoder {place!r} is not a folder, and cannot be downloaded: {reason}; check the "
        "name and the network, or name the folder of a saved model"
    )
