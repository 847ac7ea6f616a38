import numpy as np
import pytest

from coem.datasets import load_stdlib


@pytest.fixture(scope="module")
def data():
    return load_stdlib()


def test_every_entry_has_three_views_and_a_package(data):
    assert data.views.names == ("name", "doc", "code")
    assert len(data.views) == len(data.target) == len(data.ids) > 2000
    assert len(set(data.ids)) == len(data.ids)
    assert set(data.target) == set(range(len(data.target_names)))
    for view in data.views.names:
        assert data.views[view].shape[1] == len(data.vocabularies[view])


def test_words_are_counted_where_they_stand(data):
    row = data.ids.tolist().index(next(i for i in data.ids if i.startswith("json.encoder.JSONEnc")))
    there = data.vocabularies["name"][data.views["name"][row].indices]
    assert "json" in there
    assert data.target_names[data.target[row]] == "json"
    encoder = np.flatnonzero(data.vocabularies["doc"] == "json")
    assert data.views["doc"][row, encoder].sum() > 0
