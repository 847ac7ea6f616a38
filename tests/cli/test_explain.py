"""Explanations of documents that have no words."""

import json

import numpy as np

from .conftest import posts, write_csv

OUT = ("-k", "3", "--restarts", "2", "--out", "out")


def test_models_that_explain_nothing(table, coem):
    coem("topics", table, "--text", "body", "-k", "3", "--out", "out")
    told = coem("explain", "out", "--id", "p0", code=1).stderr
    assert "is an AspectModel, which cannot explain rows" in told


def test_a_document_that_is_empty_says_so(here, coem):
    rows = posts()
    rows[4]["body"], rows[5]["body"] = "", "and the of"
    write_csv(here / "a.csv", rows)
    coem("cluster", "a.csv", "--text", "body", *OUT)
    said = "the document is empty in every view"
    assert coem("explain", "out", "--id", "p4").stdout.startswith(said)
    assert coem("explain", "out", "--id", "p5").stdout.startswith(f"and the of\n{said}")
    assert said not in coem("explain", "out", "--id", "p6").stdout
    empty = [
        json.loads(coem("explain", "out", "--id", name, "--json").stdout)["empty"]
        for name in ("p4", "p5", "p6")
    ]
    assert empty == [True, True, False]


def test_vectors_and_numbers_speak_as_a_whole(table, coem):
    rng = np.random.default_rng(0)
    np.save("v.npy", 5 * np.eye(3)[np.arange(90) % 3] + rng.normal(size=(90, 3)))
    views = ("--text", "body", "--view", "m=v.npy", "--view", "p=price:number")
    coem("cluster", table, *views, *OUT)
    parts = json.loads(coem("explain", "out", "--id", "p0", "--json").stdout)["parts"]
    words = {view: [p["word"] for p in parts if p["view"] == view] for view in ("m", "p", "text")}
    assert words["m"] == ["(the vector as a whole)"]
    assert words["p"] == ["(the numbers as a whole)"]
    assert "others)" in words["text"][-1]
