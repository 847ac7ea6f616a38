import numpy as np
import pytest

from coem.datasets import load_stdlib_modules
from coem.datasets._modules import CHAPTERS


@pytest.fixture(scope="module")
def data():
    return load_stdlib_modules()


def test_every_module_has_a_chapter(data):
    assert data.views.names == ("words", "names", "imports", "imported_by")
    assert len(data.ids) == len(data.target) == len(data.views) > 300
    assert set(data.target_names) <= set(CHAPTERS)
    chapter = dict(zip(data.ids, data.target_names[data.target], strict=True))
    assert chapter["json.decoder"] == "internet data"
    assert chapter["asyncio.events"] == "networking"
    assert chapter["random"] == "mathematics"


def test_no_module_is_in_two_chapters():
    names = " ".join(CHAPTERS.values()).split()
    assert len(names) == len(set(names))


def test_imports_are_links_in_both_directions(data):
    links, back = data.views["imports"], data.views["imported_by"]
    assert (links != back.T).nnz == 0
    place = {name: i for i, name in enumerate(data.ids)}
    assert links[place["statistics"], place["fractions"]] == 1
    assert links[place["email.generator"], place["email.utils"]] == 1  # from email.utils import ...
    assert links[place["asyncio.base_events"], place["asyncio.events"]] == 1  # from . import events
    assert links.diagonal().sum() == 0


def test_the_table_is_what_the_views_are_made_of(data):
    assert list(data.table) == ["id", "chapter", "words", "names", "imports"]
    row = data.table["id"].index("json.encoder")
    assert "json" in data.table["words"][row].lower()
    assert data.table["chapter"][row] == "internet data"
    column = np.flatnonzero(data.vocabularies["names"] == "encoder")[0]
    assert data.views["names"][row, column] == data.table["names"][row].split().count("encoder")
