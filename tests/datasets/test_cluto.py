"""The document sets of CLUTO: the published shapes, and a set written here."""

import numpy as np
import pytest

from coem.datasets import fetch_cluto


@pytest.mark.parametrize(
    ("name", "shape", "nnz", "n_classes", "largest"),
    [
        ("re0", (1504, 2886), 77_808, 13, "money"),
        ("fbis", (2463, 2000), 393_386, 17, "142"),
        ("la1", (3204, 31_472), 484_024, 6, "Metro"),
        ("hitech", (2301, 12_941), 326_592, 6, "health"),
        ("tr11", (414, 6429), 116_613, 9, "12"),
        ("wap", (1560, 8460), 220_482, 20, "Health"),
    ],
)
def test_published_shapes(load, name, shape, nnz, n_classes, largest):
    data = load("cluto", fetch_cluto, name)
    words = data.views["words"]
    assert (words.shape, words.nnz, words.dtype, words.format) == (shape, nnz, np.float32, "csr")
    assert words.has_canonical_format
    assert (words.data >= 1).all()
    assert (words.data == np.round(words.data)).all()
    assert len(data.target_names) == n_classes
    assert data.target_names[np.bincount(data.target).argmax()] == largest
    assert len(set(data.ids)) == len(data.target) == shape[0]
    assert {view: len(names) for view, names in data.feature_names.items()} == (
        {} if name == "la1" else {"words": shape[1]}
    )
    assert f"{shape[0]} documents in {n_classes} classes" in data.DESCR


def test_a_set_of_three_documents(put):
    files = {
        "re0.mat": b"3 4 4\n4 2 1 1\n\n2 3 3 1\n",
        "re0.mat.rclass": b"tea\nkites\ntea\n",
        "re0.mat.clabel": b"hot\ncold\nwet\ndry\n",
    }
    put("cluto", files=files)
    data = fetch_cluto("re0")
    assert data.views["words"].toarray().tolist() == [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 1, 0]]
    assert data.target_names.tolist() == ["kites", "tea"]
    assert data.target.tolist() == [1, 0, 1]
    assert data.ids.tolist() == ["re0/1", "re0/2", "re0/3"]
    assert data.feature_names["words"].tolist() == ["hot", "cold", "wet", "dry"]


def test_absent_files_have_no_public_home(own):
    with pytest.raises(FileNotFoundError, match=r"re0\.mat of the data set 'cluto' .* no public"):
        fetch_cluto("re0")


def test_unknown_names_are_refused(own):
    with pytest.raises(ValueError, match=r"name must be one of 're0', .*; got 'k1b'"):
        fetch_cluto("k1b")
