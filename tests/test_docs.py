"""The Python on the pages runs, from top to bottom, without a warning, and asserts something."""

import ast
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from coem import datasets
from coem.coupling import COUPLINGS
from coem.families.laws import LAWS
from coem.laws import COUPLING_LAWS, RULE_LAWS
from coem.posterior import RULES

ROOT = Path(__file__).parent.parent
ENCODERS = ("model2vec",)  # libraries that cannot be had with old versions of other packages
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """Return the Python blocks, each padded so that a traceback shows the line of the page."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, m.start(1)) + m.group(1) for m in BLOCK.finditer(text)]


def can_run(block: str) -> bool:
    """Return False if a block loads a model with a library that is not installed."""
    used = [name for name in ENCODERS if f"from {name} import" in block]
    return all(importlib.util.find_spec(name) for name in used)


NAMES = (
    "docs/adding-a-family.md",
    "docs/adding-a-coupling.md",
    "docs/report.md",
    "docs/hidden-markov-models.md",
    "docs/batches.md",
    "docs/checkpoints.md",
    "docs/segmenting.md",
    "docs/latent-directions.md",
    "docs/evidence.md",
    "docs/papers/bickel-scheffer-2004.md",
    "docs/papers/ma-2020.md",
    "README.md",
    "docs/recipes.md",
)
PAGES = [ROOT / name for name in NAMES if blocks(ROOT / name)]


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Forget what a page registers."""
    kept = dict(COUPLINGS), dict(RULES)
    yield
    for registry, before in zip((COUPLINGS, RULES), kept, strict=True):
        registry.clear()
        registry.update(before)


# Four pages read the standard library, which takes seconds: they share what the first one reads.
LOADERS = {name: cache(getattr(datasets, name)) for name in ("load_stdlib", "load_stdlib_modules")}


@pytest.fixture(autouse=True)
def loaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load a data set once for all pages."""
    for name, load in LOADERS.items():
        monkeypatch.setattr(datasets, name, load)


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Return the names of a module that pickle can find, as those of a script can be found."""
    module = ModuleType("coem_page")
    monkeypatch.setitem(sys.modules, "coem_page", module)
    return vars(module)


def test_the_guide_to_families_has_code() -> None:
    assert len(blocks(ROOT / "docs/adding-a-family.md")) >= 4


def test_the_guide_to_families_names_every_law_in_order() -> None:
    text = (ROOT / "docs/adding-a-family.md").read_text(encoding="utf-8")
    table = text[text.index("| law |") : text.index("An M step that stays beside")]
    names = re.findall(r"^\| (\w+) \|", table, re.MULTILINE)
    assert names == ["law", *(law.__name__[1:] for law in LAWS)]


def test_the_guide_to_couplings_names_every_law_in_order() -> None:
    text = (ROOT / "docs/adding-a-coupling.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| law \|.*?\n\n", text, re.DOTALL | re.MULTILINE)
    for table, laws in zip(tables, (COUPLING_LAWS, RULE_LAWS), strict=True):
        names = re.findall(r"^\| (\w+) \|", table, re.MULTILINE)
        assert names == ["law", *(law.__name__[1:] for law in laws)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_asserts_something(page: Path) -> None:
    nodes = [node for block in blocks(page) for node in ast.walk(ast.parse(block))]
    asserts = [node for node in nodes if isinstance(node, ast.Assert)]
    assert asserts, "a page that asserts nothing shows nothing"
    assert not any(isinstance(node.test, ast.Constant) for node in asserts)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path,
    namespace: dict[str, object],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COEM_CACHE", str(tmp_path_factory.mktemp("cache")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in filter(can_run, blocks(page)):
            exec(compile(block, str(page), "exec"), namespace)
    assert not list(tmp_path.iterdir()), "a page leaves files behind"


NAMED = re.compile(r"tests(?:/\w+)+(?:\.py)?(?:::(\w+))?")


@pytest.mark.parametrize("page", sorted((ROOT / "docs/papers").glob("*.md")), ids=lambda p: p.stem)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    """The pages about papers name a test for every equation."""
    for found in NAMED.finditer(page.read_text(encoding="utf-8")):
        path = ROOT / found[0].partition("::")[0]
        assert path.exists(), found[0]
        assert found[1] is None or f"def {found[1]}(" in path.read_text(encoding="utf-8"), found[0]
