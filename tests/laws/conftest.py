"""The laws of fitted models hold wherever the rows live: they run under several engines."""

import pytest

from coem.engine import LocalEngine
from tests.engines import CutEngine, ForgetfulEngine, PicklingEngine

ENGINES = {
    "local": None,
    "pickles": lambda n_jobs: PicklingEngine(2, n_jobs),
    "forgets": lambda n_jobs: ForgetfulEngine(1, n_jobs),
    "seven": lambda n_jobs: CutEngine(7, n_jobs),
}
UNDER_ALL_ENGINES = ("test_em_laws",)


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.split(".")[-1] in UNDER_ALL_ENGINES:
        metafunc.parametrize("engine", ENGINES, indirect=True)


# Every law runs under every engine; all families, and all forms that rows come in before an engine
# gets them, do so on the local one alone, to save time. Counts and real rows take turns.
FAMILIES = {"one": "diag", "joint": "multinomial", "co-em": "multinomial", "tempered": "diag"}
KINDS = {"csr", "fortran", "counts", "co-em", "mixed"}


def pytest_collection_modifyitems(config, items):
    """Leave out what a law does not need to see under another engine."""
    spare = {item for item in items if _is_spare(item)}
    config.hook.pytest_deselected(items=list(spare))
    items[:] = [item for item in items if item not in spare]


def _is_spare(item):
    module = getattr(item, "module", None)  # a doctest has none
    if module is None or module.__name__.split(".")[-1] not in UNDER_ALL_ENGINES:
        return False
    params = item.callspec.params
    if params.get("engine", "local") == "local":
        return False
    families = {FAMILIES[params["shape"]]} if "shape" in params else set(FAMILIES.values())
    spare = "name" in params and params["name"] not in families
    return spare or params.get("kind", "csr") not in KINDS


@pytest.fixture(autouse=True)
def engine(request, monkeypatch):
    """Let estimators without an engine of their own take the one that a law runs under."""
    make = ENGINES[getattr(request, "param", "local")]
    if make is not None:
        monkeypatch.setattr("coem.engine.LocalEngine", make)
    return LocalEngine if make is None else make
