"""The modules of Python's standard library, and the chapters of the manual that describe them."""

import ast
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import Bunch

from coem.datasets._stdlib import identifiers
from coem.views import Views

DESCR = """Modules of Python's standard library, as their source is on this machine.

Each is a document with four views: `words` (of its docstrings and comments), `names` (the parts of
the identifiers that it uses), `imports` (the modules of this set that it imports) and `imported_by`
(those that import it). The target is the chapter of the library reference that describes it, or
the package that it is in. Read from the library of the running interpreter, so counts differ a
little between versions of Python. Tests, encodings and modules without Python source are left out.
"""

# Chapters of "The Python Standard Library" (docs.python.org/3/library), 3.11 to 3.13. A module that
# is not named belongs to the package that is.
CHAPTERS = {
    "text": "string re difflib textwrap stringprep rlcompleter",
    "data types": "datetime _pydatetime _strptime zoneinfo calendar collections _collections_abc "
    "heapq bisect weakref _weakrefset types copy pprint reprlib enum graphlib struct codecs",
    "mathematics": "numbers decimal _pydecimal fractions random statistics",
    "functional": "functools operator",
    "files": "pathlib posixpath ntpath genericpath fileinput stat filecmp tempfile glob fnmatch "
    "linecache shutil nturl2path",
    "persistence": "pickle _compat_pickle copyreg shelve dbm sqlite3",
    "compression": "gzip bz2 lzma zipfile tarfile _compression compression",
    "file formats": "csv configparser tomllib netrc plistlib xdrlib",
    "operating system": "os io _pyio argparse optparse getopt logging getpass curses platform "
    "ctypes hashlib hmac secrets",
    "concurrency": "threading _threading_local multiprocessing concurrent subprocess sched queue "
    "contextvars dummy_threading",
    "networking": "asyncio socket ssl selectors signal asyncore asynchat",
    "internet data": "email json mailbox mimetypes base64 quopri mailcap uu",
    "markup": "html xml _markupbase",
    "protocols": "webbrowser wsgiref urllib http ftplib poplib imaplib smtplib uuid socketserver "
    "xmlrpc ipaddress cgi cgitb nntplib telnetlib smtpd",
    "multimedia and languages": "wave colorsys gettext locale aifc sunau chunk sndhdr imghdr",
    "programs and windows": "turtle cmd shlex tkinter idlelib",
    "development": "typing pydoc doctest unittest lib2to3",
    "debugging": "bdb pdb profile cProfile timeit trace tracemalloc pstats",
    "packaging": "ensurepip venv zipapp distutils",
    "runtime": "sysconfig _sysconfig warnings dataclasses contextlib abc _py_abc atexit traceback "
    "inspect site __future__ code codeop _colorize _pyrepl annotationlib",
    "importing": "zipimport pkgutil modulefinder runpy importlib imp",
    "language": "ast symtable token keyword tokenize tabnanny pyclbr py_compile compileall dis "
    "opcode _opcode_metadata pickletools",
}
LEFT_OUT = {"test", "tests", "idle_test", "__pycache__", "site-packages", "_vendor", "pgen2"}
COMMENT = re.compile(r"^[ \t]*#+!?(.*)$", re.MULTILINE)  # those that have a line to themselves
FEWEST = 30  # words of comments and docstrings, below which a module says nothing


class Module(NamedTuple):
    """A module, read and not run."""

    id: str
    chapter: str
    words: str
    names: str
    imports: list[str]


def load_stdlib_modules() -> Bunch:
    """Load the modules of the standard library as documents with four views.

    Returns
    -------
    data : Bunch
        `views` (`words`, `names`, `imports` and `imported_by`), `target`, `target_names`, `ids`,
        `vocabularies` (view -> array of words), `table` (the columns that the views are made of:
        id, words, names, imports, chapter) and `DESCR`.

    Examples
    --------
    >>> from coem.datasets import load_stdlib_modules
    >>> load_stdlib_modules().views.names  # doctest: +SKIP
    ('words', 'names', 'imports', 'imported_by')
    """
    modules = list(_modules())
    chapters, target = np.unique([module.chapter for module in modules], return_inverse=True)
    counters = {
        "words": CountVectorizer(min_df=2, stop_words="english", token_pattern=r"[a-z]{3,}"),
        "names": CountVectorizer(min_df=2, token_pattern=r"[a-z]{3,}"),
    }
    views = {v: c.fit_transform([getattr(m, v) for m in modules]) for v, c in counters.items()}
    ids = np.array([module.id for module in modules])
    links = _links(modules)
    words = {view: c.get_feature_names_out() for view, c in counters.items()}
    return Bunch(
        views=Views(views, imports=links, imported_by=links.T.tocsr()),
        target=target,
        target_names=chapters,
        ids=ids,
        vocabularies={**words, "imports": ids, "imported_by": ids},
        table={name: [getattr(m, name) for m in modules] for name in Module._fields},
        DESCR=DESCR,
    )


def _links(modules: list[Module]) -> sp.csr_matrix:
    """Return which module imports which."""
    place = {module.id: i for i, module in enumerate(modules)}
    pairs = [(i, place[name]) for i, m in enumerate(modules) for name in m.imports if name in place]
    rows, columns = np.array(pairs).T
    shape = len(modules), len(modules)
    return sp.csr_matrix((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _modules() -> Iterator[Module]:
    """Yield the modules that the manual describes, in the order of their names."""
    root = Path(sysconfig.get_paths()["stdlib"])
    homes = {name: chapter for chapter, names in CHAPTERS.items() for name in names.split()}
    files = [file for name in homes for file in _files(root, name)]
    known = {_name(root, file): file for file in files}
    for name, file in sorted(known.items()):
        source = file.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(source)))
        words = _prose(nodes, source)
        if len(words.split()) >= FEWEST:
            is_package = file.name == "__init__.py"
            links = sorted(set(_imports(nodes, name, is_package, known)) - {name})
            yield Module(name, homes[name.split(".")[0]], words, identifiers(nodes), links)


def _files(root: Path, name: str) -> list[Path]:
    """Return the files of a module or package that is on this machine."""
    folder = root / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [root / f"{name}.py"]
    return [f for f in files if f.is_file() and not LEFT_OUT & set(f.relative_to(root).parts)]


def _name(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _prose(nodes: list[ast.AST], source: str) -> str:
    """Return the docstrings and comments of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    return "\n".join([*docs, *COMMENT.findall(source)])


def _imports(
    nodes: list[ast.AST], name: str, is_package: bool, known: dict[str, Path]
) -> Iterator[str]:
    """Yield the modules that a module imports, those of its own package by their full names."""
    for node in nodes:
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = name.split(".")
            up = node.level - 1 if is_package else node.level
            base = ".".join(home[: len(home) - up]) if node.level else ""
            stem = ".".join(part for part in (base, node.module or "") if part)
            wanted = [f"{stem}.{alias.name}" if stem else alias.name for alias in node.names]
        else:
            continue
        for full in wanted:
            # ``from email.message import Message`` is an import of email.message.
            found = full if full in known else full.rpartition(".")[0]
            if found in known:
                yield found
