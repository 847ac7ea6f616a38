"""Names with a leading underscore stay where they belong.

A private module (`coem.text._tables`) is for its package alone, a private name of a module for
that module alone. import-linter checks the direction of imports; its wildcards cannot say "every
module whose name begins with an underscore", so that this is a test.
"""

import ast
import statistics
from pathlib import Path

import pytest

import coem

SOURCE = Path(coem.__file__).parent
SCRIPTS = "benchmarks", "experiments"


def private_imports(source, module, modules):
    """Return the private names that `source`, the text of `module`, must not import.

    `modules` are the names of all modules and packages.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [name for name in names if not may_import(module, name, modules)]
    return found


def may_import(module, name, modules):
    """Return whether every private part of a name belongs to a package that `module` is in.

    Those of other packages belong to none of ours, and change without notice. A benchmark may
    measure them.
    """
    parts = name.split(".")
    for i, part in enumerate(parts):
        owner = ".".join(parts[:i])
        private = part.startswith("_") and not part.endswith("__")
        if not private or (parts[0] != "coem" and module.split(".")[0] in SCRIPTS):
            continue
        if f"{owner}.{part}" not in modules:  # a private function of a module
            return False
        if module != owner and not module.startswith(f"{owner}."):
            return False
    return True


def sources():
    """Return the files of the package, and the scripts beside it, by the names of their modules."""
    root = Path(__file__).parents[1]
    paths = {f"{name}.{p.stem}": p for name in SCRIPTS for p in (root / name).glob("*.py")}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")]):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        paths[".".join(parts).removesuffix(".__init__")] = path
    return paths


def test_private_names_are_imported_by_their_own_package_alone():
    paths = sources()
    assert {
        "coem",
        "coem.em",
        "coem.kernels._compiled",
        "benchmarks.program",
        "experiments.grid",
    } <= set(paths)
    wrong = {
        module: names
        for module, path in paths.items()
        if (names := private_imports(path.read_text(encoding="utf-8"), module, paths.keys()))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("module", "line", "found"),
    [
        ("coem.cli.info", "from coem.text._tables import as_arrow", ["coem.text._tables.as_arrow"]),
        ("coem.cli.info", "from coem.text import _tables", ["coem.text._tables"]),
        ("coem.cli.info", "import coem.text._tables", ["coem.text._tables"]),
        ("coem.em", "from coem.kernels import _compiled, counts", ["coem.kernels._compiled"]),
        ("coem.textual", "from coem.text import _tables", ["coem.text._tables"]),
        ("coem.text.embed", "from coem.views import _rows", ["coem.views._rows"]),
        ("coem.text.embed", "def f():\n    import coem.cli._job", ["coem.cli._job"]),
        ("experiments.groups", "from coem.cli._job import TOL", ["coem.cli._job.TOL"]),
        ("coem.text.embed", "from coem.text import _tables", []),
        ("coem.text", "from coem.text._tables import as_arrow", []),
        ("coem.cli.info", "from coem import __version__", []),
        ("coem.cli.info", "from coem.text.specs import KINDS", []),
        ("coem.checks", "import sklearn.utils._tags", ["sklearn.utils._tags"]),
        ("coem.checks", "from sklearn.base import _clone", ["sklearn.base._clone"]),
        ("coem.checks", "from __future__ import annotations", []),
        ("benchmarks.chain", "from hmmlearn import _hmmc", []),
    ],
)
def test_private_imports_are_found(module, line, found):
    modules = {"coem.text._tables", "coem.kernels._compiled", "coem.cli._job"}
    assert private_imports(line, module, modules) == found


# -- budgets ---------------------------------------------------------------------------------------

LONGEST_FUNCTION = 40  # lines of a body, the docstring not counted
LONGEST_FILE = 400
LONGEST_ESTIMATOR = 300
MEDIAN_FILE = 150


def package_files():
    return sorted(SOURCE.rglob("*.py"))


def n_lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def long_functions(source):
    """Return the functions whose bodies are too long, and by how many lines."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        has_docstring = ast.get_docstring(node) is not None
        body = node.body[1:] if has_docstring else node.body
        length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        if length > LONGEST_FUNCTION:
            found[node.name] = length
    return found


@pytest.mark.parametrize("path", package_files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_are_short(path):
    assert long_functions(path.read_text(encoding="utf-8")) == {}
    assert n_lines(path) <= (LONGEST_ESTIMATOR if "estimators" in path.parts else LONGEST_FILE)


def test_the_median_file_is_short():
    assert statistics.median(n_lines(path) for path in package_files()) <= MEDIAN_FILE


def test_a_long_function_is_found():
    body = "\n".join("    x = 1" for _ in range(LONGEST_FUNCTION + 1))
    docstring = '    """' + "\n    words" * 50 + '"""'
    assert long_functions(f"def f():\n{body}") == {"f": LONGEST_FUNCTION + 1}
    assert long_functions(f"def f():\n{docstring}\n    return 1") == {}
