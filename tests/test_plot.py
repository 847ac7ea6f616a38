"""Pictures show the numbers that they are about."""

import builtins

import numpy as np
import pytest

from coem import MixtureClassifier, MixtureClusterer, MultiViewAgglomerative, Views
from coem.metrics import expected_calibration_error, reliability_curve
from coem.plot import (
    AgreementDisplay,
    ClustersDisplay,
    DendrogramDisplay,
    ReliabilityDisplay,
    SizesDisplay,
    TraceDisplay,
    plot_agreement,
    plot_clusters,
    plot_dendrogram,
    plot_reliability,
    plot_sizes,
    plot_trace,
)
from coem.report import group_words
from coem.selection import choose_k

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

WORDS = ["goal", "match", "vote", "bill", "the"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    topics = np.array([[8, 8, 0.2, 0.2, 4], [0.2, 0.2, 8, 8, 4]])[np.arange(40) % 2]
    return Views(words=rng.poisson(topics), more=rng.poisson(topics))


@pytest.fixture(scope="module")
def model(rows):
    return MixtureClusterer(2, random_state=0).fit(rows)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_trace_is_the_history(model, rows):
    ax = plot_trace(model)
    (line,) = ax.lines
    assert line.get_ydata().tolist() == [record.objective for record in model.history_]
    display = TraceDisplay.from_estimator(model)
    assert display.agreement.tolist() == [r.agreement_rate for r in model.history_]
    assert len(display.figure_.axes) == 2
    single = MixtureClusterer(2, random_state=0).fit(rows["words"])
    assert len(plot_trace(single).figure.axes) == 1
    tree = MultiViewAgglomerative().fit(rows)
    with pytest.raises(ValueError, match="no history"):
        plot_trace(tree)


def test_agreement_is_that_of_the_views(model, rows):
    ax = plot_agreement(model, rows)
    views = model.view_proba(rows).argmax(axis=2)
    same = (views[:, 0] == views[:, 1]).mean()
    np.testing.assert_allclose(ax.images[0].get_array(), [[1, same], [same, 1]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["words", "more"]
    display = AgreementDisplay.from_predictions([[0, 0, -1], [1, 0, -1], [1, -1, -1]])
    np.testing.assert_allclose(display.matrix[:2, :2], [[1, 0.5], [0.5, 1]])
    assert np.isnan(display.matrix[2, :2]).all()
    single = MixtureClusterer(2, random_state=0).fit(rows["words"])
    with pytest.raises(ValueError, match="one view"):
        plot_agreement(single, rows["words"])


def test_clusters_have_their_sizes_and_words(model, rows):
    names = {"words": WORDS, "more": WORDS}
    ax = plot_clusters(model, rows, feature_names=names, n_words=2)
    sizes = np.bincount(model.predict(rows))
    assert [bar.get_width() for bar in ax.patches] == sorted(sizes)
    shown = [set(label.get_text().split(", ")) for label in ax.get_yticklabels()]
    assert sorted(shown, key=sorted) == [{"bill", "vote"}, {"goal", "match"}]
    assert group_words(model, rows, feature_names=names)[0].keys() == {"words", "more"}
    display = ClustersDisplay.from_predictions(["b", "a", "b"])
    assert (display.sizes.tolist(), display.names) == ([1, 2], ["a", "b"])


def test_classes_keep_their_names(rows):
    y = np.where(np.arange(40) % 2, "law", "sport")
    ax = plot_clusters(MixtureClassifier().fit(rows, y), rows)
    assert {label.get_text() for label in ax.get_yticklabels()} == {"law", "sport"}


def test_reliability_is_the_curve_of_the_metrics(rows):
    y = np.where(np.arange(40) % 2, "law", "sport")
    judge = MixtureClassifier().fit(rows, y)
    proba = judge.predict_proba(rows)
    given = {"classes": judge.classes_, "n_bins": 10}
    display = ReliabilityDisplay.from_estimator(judge, rows, y)
    assert display.error == expected_calibration_error(y, proba, **given)
    curve = reliability_curve(y, proba, **given)
    ax = plot_reliability(y, proba, **given)
    points = ax.collections[0].get_offsets()
    there = curve.weight > 0
    np.testing.assert_allclose(points, np.c_[curve.confidence, curve.accuracy][there])


def test_a_tree_of_several_views_is_drawn_by_the_order_of_merges(rows):
    tree = MultiViewAgglomerative(2).fit(rows)
    display = DendrogramDisplay.from_estimator(tree, ids=[f"row {i}" for i in range(40)])
    assert display.by_order
    assert len(display.ax_.get_xticklabels()) == 30
    top = max(y for c in display.ax_.collections for p in c.get_paths() for y in p.vertices[:, 1])
    assert top == 29  # merges of thirty leaves
    single = MultiViewAgglomerative(2).fit(rows["words"][:10])
    ax = plot_dendrogram(single)
    assert len(ax.get_xticklabels()) == 10
    top = max(y for c in ax.collections for p in c.get_paths() for y in p.vertices[:, 1])
    assert top == pytest.approx(single.distances_[-1])
    assert ax.get_ylabel() == "distance"


def test_pictures_are_drawn_where_they_are_wanted(model):
    _, axes = plt.subplots(1, 2)
    assert plot_trace(model, ax=axes[1]) is axes[1]
    assert not axes[0].lines


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    load = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install coem\[plot\]"):
        plot_trace(model)


def test_sizes_have_means_errors_and_a_mark(rows):
    choice = choose_k(MixtureClusterer(), rows["words"], [2, 3, 4], random_state=0)
    ax = plot_sizes(choice)
    ((line, _, (bars,)),) = ax.containers
    assert line.get_ydata().tolist() == [row.shared for row in choice.table]
    heights = [(high - low) / 2 for (_, low), (_, high) in bars.get_segments()]
    assert np.allclose(heights, [row.error for row in choice.table])
    assert ax.get_legend().get_texts()[0].get_text() == f"chosen: {choice.best}"
    display = SizesDisplay.from_estimator(
        MixtureClusterer(), rows["words"], [2, 3, 4], random_state=0
    )
    assert display.choice.table == choice.table
