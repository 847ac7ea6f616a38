"""What is imported is declared, what is declared is imported, and all of it has a lower bound."""

import ast
import importlib.util
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
MODULES = {"scikit-learn": "sklearn", "sentence-transformers": "sentence_transformers"}
HINTS = {"typing_extensions"}  # for the type checker, which brings it


def oldest_script():
    spec = importlib.util.spec_from_file_location("oldest", ROOT / ".ci" / "oldest.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


OLDEST = oldest_script()


def module_of(requirement):
    name = re.match(r"[\w.-]+", requirement)[0]
    return MODULES.get(name, name)


NEEDED = {module_of(part) for part in PROJECT["project"]["dependencies"]}
OPTIONAL = {
    module_of(part)
    for extra, parts in EXTRAS.items()
    if extra not in OLDEST.TOOLS
    for part in parts
}


def imported(source):
    """Return the packages of others that a text imports: when it is loaded, and later."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.late = getattr(node, "late", False) or isinstance(node, ast.FunctionDef)
            child.hint = getattr(node, "hint", False) or _is_for_hints(node)
    found = {False: set(), True: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            continue
        packages = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"coem"}
        found[node.late or node.hint] |= packages
    return found[False], found[True]


def _is_for_hints(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def all_imported():
    sources = sorted((ROOT / "src" / "coem").rglob("*.py"))
    assert len(sources) > 200
    pairs = [imported(path.read_text(encoding="utf-8")) for path in sources]
    return set().union(*(now for now, _ in pairs)), set().union(*(late for _, late in pairs))


def test_all_that_is_imported_is_declared():
    now, late = all_imported()
    assert now <= NEEDED
    assert late <= NEEDED | OPTIONAL | HINTS


def test_all_that_is_declared_is_imported():
    now, late = all_imported()
    # Encoders are imported by the names of their libraries.
    by_name = {"model2vec", "sentence_transformers"}
    assert now | late >= NEEDED
    assert OPTIONAL - by_name <= late


@pytest.mark.parametrize(
    ("source", "now", "late"),
    [
        ("import numpy.linalg, os", {"numpy"}, set()),
        ("from scipy import sparse", {"scipy"}, set()),
        ("import coem.text", set(), set()),
        ("def f():\n    if 1:\n        import pandas", set(), {"pandas"}),
        ("if TYPE_CHECKING:\n    from pandas import NA", set(), {"pandas"}),
        ("try:\n    import rich\nexcept ImportError:\n    pass", {"rich"}, set()),
    ],
)
def test_imports_are_found(source, now, late):
    assert imported(source) == (now, late)


def test_every_requirement_of_users_has_a_lower_bound():
    constraints = [OLDEST.oldest(part) for part in OLDEST.claimed(PROJECT)]
    names = {module_of(line) for line in constraints}
    assert names >= NEEDED | OPTIONAL | {"nanobind", "scikit-build-core"}
    assert "pytest" not in names
    assert all(re.fullmatch(r"[\w.-]+==\d[\w.]*", line) for line in constraints)


@pytest.mark.parametrize("requirement", ["numpy", "numpy==2", "numpy<3", "numpy>=2,<3"])
def test_other_bounds_are_refused(requirement):
    with pytest.raises(ValueError, match="has no lower bound"):
        OLDEST.oldest(requirement)
