"""Which code measures: what the function `measure` of an experiment uses, and nothing else.

A trial is run again if this code has changed. What only chooses trials, judges, tabulates or draws
does not count, nor do docstrings, comments and empty lines.
"""

import ast
import hashlib
from pathlib import Path
from typing import TypeAlias

Definition: TypeAlias = ast.stmt


def digest(path: Path) -> str:
    """Return a digest of the code that measures in the module of an experiment."""
    found: dict[tuple[str, int, str], str] = {}
    _collect(path, "measure", found)
    return hashlib.sha256("\n".join(found[key] for key in sorted(found)).encode()).hexdigest()[:16]


def _collect(path: Path, name: str, found: dict[tuple[str, int, str], str]) -> None:
    """Add the definition of a name in a module, and of all names of the module that it uses."""
    source = path.read_text(encoding="utf-8")
    defined = _defined(ast.parse(source))
    todo = [name]
    while todo:
        name = todo.pop()
        node = defined.get(name)
        if node is None or (path.name, node.lineno, name) in found:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found[path.name, node.lineno, name] = _import(path, node, name, found)
            continue
        found[path.name, node.lineno, name] = _lines(source, node)
        todo += [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


def _defined(tree: ast.Module) -> dict[str, Definition]:
    """Return what a module defines or imports, by name."""
    names: dict[str, Definition] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0]: node for alias in node.names}
        else:
            stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            names |= {n.id: node for n in stored if isinstance(n.ctx, ast.Store)}
    return names


def _import(
    path: Path,
    node: ast.Import | ast.ImportFrom,
    name: str,
    found: dict[tuple[str, int, str], str],
) -> str:
    """Return an import as text, and follow it into the private modules beside an experiment."""
    origin = next(a.name for a in node.names if name in (a.asname, a.name.partition(".")[0]))
    if isinstance(node, ast.Import):
        return f"import {origin} as {name}"
    beside = path.with_name(f"{str(node.module).rpartition('.')[2]}.py")
    if beside.name.startswith("_") and beside.is_file():
        _collect(beside, origin, found)
    return f"from {node.module} import {origin} as {name}"


def _lines(source: str, node: Definition) -> str:
    """Return the lines of a definition."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    lines = dict(enumerate(source.splitlines()[first - 1 : node.end_lineno], start=first))
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
        for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1):
            lines.pop(number)
    return "\n".join(t for t in lines.values() if t.strip() and not t.strip().startswith("#"))
