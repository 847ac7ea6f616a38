"""Names with a leading underscore stay where they belong.

A private module (`coem.text._tables`) is for its package alone, a private name of a module for
that module alone. import-linter checks the direction of imports; its wildcards cannot say "every
module whose name begins with an underscore", so that this is a test.
"""

import ast
from pathlib import Path

import pytest

import coem

SOURCE = Path(coem.__file__).parent
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


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
    """Return whether every private part of a name belongs to a package that `module` is in."""
    parts = name.split(".")
    for i, part in enumerate(parts):
        owner = ".".join(parts[:i])
        private = part.startswith("_") and not part.endswith("__")
        if parts[0] != "coem" or not private:
            continue
        if f"{owner}.{part}" not in modules:  # a private function of a module
            return False
        if module != owner and not module.startswith(f"{owner}."):
            return False
    return True


def sources():
    """Return the files of the package, and the benchmarks, by the names of their modules."""
    paths = {f"benchmarks.{path.stem}": path for path in BENCHMARKS.glob("*.py")}
    for path in sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")]):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        paths[".".join(parts).removesuffix(".__init__")] = path
    return paths


def test_private_names_are_imported_by_their_own_package_alone():
    paths = sources()
    assert {"coem", "coem.em", "coem.kernels._compiled", "benchmarks.program"} <= set(paths)
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
        ("benchmarks.groups", "from coem.cli._job import TOL", ["coem.cli._job.TOL"]),
        ("coem.text.embed", "from coem.text import _tables", []),
        ("coem.text", "from coem.text._tables import as_arrow", []),
        ("coem.cli.info", "from coem import __version__", []),
        ("coem.cli.info", "from coem.text.specs import KINDS", []),
        ("coem.checks", "from sklearn.utils.validation import _check_sample_weight", []),
    ],
)
def test_private_imports_are_found(module, line, found):
    modules = {"coem.text._tables", "coem.kernels._compiled", "coem.cli._job"}
    assert private_imports(line, module, modules) == found
