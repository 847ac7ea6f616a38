"""What the page says of probabilities and other runs, and of views that are left out."""

import warnings

import numpy as np
import pytest

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.report import tell
from coem.report.page import render
from coem.selection import stability


def fitted(**views):
    """Return a model of three groups that some views know nothing of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a view is left out is what is shown
        return MixtureClusterer(3, random_state=0).fit(Views(**views))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.2), size=3)
    words = rng.poisson(30 * topics[np.arange(600) % 3])
    return {"words": words[:, :20], "more": words[:, 20:], "stock": rng.random((600, 1))}


def test_a_view_that_is_left_out_is_named(data):
    model = fitted(words=data["words"], stock=data["stock"])
    assert [run.silent_views for run in model.runs_] == [("stock",)]
    story = tell(model, Views(words=data["words"], stock=data["stock"]))
    assert {view.name: view.silent for view in story.views} == {"words": False, "stock": True}
    assert all(list(group.words) == ["words"] for group in story.groups)
    assert story.agreement is None
    assert "agreement" not in story.trace
    page = render(story)
    assert "The view <b><bdi>stock</bdi></b> is left out: its groups share nothing" in page
    assert "seen through\none view (<bdi>words</bdi>)." in page
    assert "Gaussian, left out" in page


def test_views_that_speak_are_compared_without_the_one_that_is_left_out(data):
    story = tell(fitted(**data), Views(**data))
    assert story.agreement.names == ["words", "more"]
    assert np.shape(story.agreement.matrix) == (2, 2)
    assert all(set(pair.views) == {"words", "more"} for pair in story.agreement.pairs)
    without = {name: data[name] for name in ("words", "more")}
    assert story.agreement.rate == tell(fitted(**without), Views(**without)).agreement.rate
    assert "2 views (<bdi>words</bdi>, <bdi>more</bdi>)" in render(story)


def test_without_a_silent_view_nothing_is_said_of_any(data):
    model = fitted(words=data["words"])
    assert [run.silent_views for run in model.runs_] == [()]
    assert "left out" not in render(tell(model, Views(words=data["words"]))).split("</style>")[1]


@pytest.fixture(scope="module")
def found(data):
    return stability(MixtureClusterer(3, init="rows"), data["words"], n_runs=4, random_state=3)


def test_the_curve_is_that_of_probabilities_and_support(data, found):
    model = found.calibrated(data["words"])
    curve = tell(model, data["words"], stability=found).stability["reliability"]
    sure = model.predict_proba(data["words"]).max(axis=1)
    gap = 0.0
    for b in range(10):
        rows = [i for i, p in enumerate(sure) if b / 10 < p <= (b + 1) / 10]
        assert curve["rows"][b] == len(rows)
        if rows:
            means = np.mean(sure[rows]), np.mean(found.support[rows])
            assert (curve["confidence"][b], curve["accuracy"][b]) == pytest.approx(means)
            gap += len(rows) * abs(means[0] - means[1]) / len(sure)
    assert curve["error"] == pytest.approx(gap)


def test_the_page_shows_the_curve_also_from_what_was_told(data, found):
    story = tell(found.estimator, data["words"], stability=found)
    again = tell(found.estimator, data["words"], stability=story.to_dict()["stability"])
    for told in (story, again):
        page = render(told)
        assert "Do the other runs support the probabilities?" in page
        assert "probability of the other runs" in page


def test_records_without_a_curve_still_make_a_page(data, found):
    told = tell(found.estimator, data["words"], stability=found).to_dict()["stability"]
    del told["reliability"]
    page = render(tell(found.estimator, data["words"], stability=told))
    assert "What recurs with other seeds" in page
    assert "other runs support" not in page


def test_there_is_no_curve_without_probabilities(data):
    found = stability(SphericalKMeans(3), data["words"], n_runs=3, random_state=0)
    story = tell(found.estimator, data["words"], stability=found)
    assert story.stability["reliability"] is None
    assert "other runs support" not in render(story)
