"""The documentation of Python's own standard library: data that is always at hand."""

import ast
import re
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import Bunch

from coem.views import Views

PACKAGES = (
    "argparse",
    "ast",
    "asyncio",
    "calendar",
    "concurrent",
    "ctypes",
    "datetime",
    "decimal",
    "email",
    "fractions",
    "http",
    "importlib",
    "inspect",
    "json",
    "logging",
    "multiprocessing",
    "random",
    "sqlite3",
    "statistics",
    "tarfile",
    "threading",
    "tkinter",
    "typing",
    "unittest",
    "urllib",
    "xml",
    "zipfile",
)

DESCR = """Functions and classes of Python's standard library that have a docstring.

Each is a document seen through three views: `name` (the parts of its name), `doc` (the words of its
docstring) and `code` (the parts of the identifiers that its source uses). The target is the package
that it comes from. Read from the library of the running interpreter, so counts differ a little
between versions of Python.
"""


class Entry(NamedTuple):
    """A function or class with a docstring."""

    id: str
    package: str
    name: str
    doc: str
    code: str


def load_stdlib() -> Bunch:
    """Load the documented functions and classes of the standard library as three views.

    Returns
    -------
    data : Bunch
        `views` (`name`, `doc` and `code` counts), `target`, `target_names`, `ids`, `vocabularies`
        (view -> array of words) and `DESCR`.

    Examples
    --------
    >>> from coem.datasets import load_stdlib
    >>> load_stdlib().views.names  # doctest: +SKIP
    ('name', 'doc', 'code')
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    entries = [entry for package in PACKAGES for entry in _read_package(root, package)]
    names, target = np.unique([entry.package for entry in entries], return_inverse=True)
    counters = {
        "name": CountVectorizer(min_df=2, token_pattern=r"[a-z]{2,}"),
        "doc": CountVectorizer(min_df=3, stop_words="english", token_pattern=r"[a-z]{3,}"),
        "code": CountVectorizer(min_df=3, token_pattern=r"[a-z]{3,}"),
    }
    counts = {v: c.fit_transform([getattr(e, v) for e in entries]) for v, c in counters.items()}
    return Bunch(
        views=Views(counts),
        target=target,
        target_names=names,
        ids=np.array([entry.id for entry in entries]),
        vocabularies={view: c.get_feature_names_out() for view, c in counters.items()},
        DESCR=DESCR,
    )


def _read_package(root: Path, package: str) -> Iterator[Entry]:
    """Yield the entries of a package or module, in the order of its files."""
    folder = root / package
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [root / f"{package}.py"]
    for file in files:
        if file.exists() and not {"test", "tests"} & set(file.parts):
            module = ".".join(file.relative_to(root).with_suffix("").parts)
            yield from _read_module(module, package, file)


def _read_module(module: str, package: str, file: Path) -> Iterator[Entry]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node)
            if doc:
                name = f"{module}.{node.name}:{node.lineno}"
                code = identifiers(list(ast.walk(node)))
                yield Entry(name, package, _split(node.name), doc.lower(), code)


def identifiers(nodes: list[ast.AST]) -> str:
    """Return the parts of the names and attributes among the nodes of a tree."""
    used = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute))
    ]
    return " ".join(map(_split, used))


@cache
def _split(identifier: str) -> str:
    """Return the parts of an identifier: ``JSONEncoder_now`` is ``json encoder now``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", identifier)
    return spaced.replace("_", " ").lower()
