"""Panels, lines and bars show the results that they are given."""

import numpy as np
import pytest

from coem.experiments import Results
from coem.experiments.drawing import bars, charts, panels, render, slant

matplotlib_figure = pytest.importorskip("matplotlib.figure")
ROWS = [
    {"data": data, "alpha": alpha, "k": k, "method": method, "seed": seed, "y": k + seed}
    for data in ("Cora", "WebKB")
    for alpha in (0, 1)
    for k in (9, 2)
    for method in ("EM", "co-EM")
    for seed in range(3)
]


@pytest.fixture
def figure():
    return matplotlib_figure.Figure()


def test_a_panel_per_value(figure):
    found = {ax.get_title(): len(mine) for ax, mine in panels(figure, Results(ROWS), "data")}
    assert found == {"Cora": 24, "WebKB": 24}


def test_panels_without_rows_are_not_there(figure):
    list(panels(figure, Results(ROWS), "data", "alpha", columns=3))
    assert [ax.get_title() for ax in figure.axes] == [
        "Cora, alpha = 0",
        "Cora, alpha = 1",
        "WebKB, alpha = 0",
        "WebKB, alpha = 1",
    ]


def test_lines_have_means_and_bars_of_one_standard_error(figure):
    what = {"x": "k", "y": "y", "line": "method", "labels": ("clusters", "entropy")}
    (ax,) = charts(figure, Results(ROWS).where(data="Cora", alpha=0), "data", **what)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("clusters", "entropy")
    first, second = ax.containers
    assert (first.get_label(), second.get_label()) == ("EM", "co-EM")
    assert first.lines[0].get_xydata().tolist() == [[2.0, 3.0], [9.0, 10.0]]
    low, high = first.lines[2][0].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(np.std([2, 3, 4], ddof=1) / np.sqrt(3))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["EM", "co-EM"]


def test_one_value_has_no_bar(figure):
    what = {"x": "k", "y": "y", "line": "method", "labels": ("clusters", "entropy")}
    (ax,) = charts(figure, Results(ROWS[:1]), "data", **what)
    low, high = ax.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert low == high == 9


def test_the_same_results_give_the_same_bytes():
    def draw(results, figure):
        ax = figure.subplots()
        ax.plot(results.values("k"), label="k")
        ax.legend()

    assert render(draw, Results(ROWS)) == render(draw, Results(ROWS))
    assert render(draw, Results(ROWS)) != render(draw, Results(ROWS[:-2]))


def test_bars_have_means_and_errors_side_by_side(figure):
    results = Results(ROWS).where(k=9, alpha=0)
    labels = "", "y"
    (ax,) = charts(figure, results, x="data", y="y", line="method", labels=labels, marks=bars)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [10.0] * 4
    lefts = [bar.get_x() for bar in ax.patches]
    np.testing.assert_allclose(lefts, [-0.4, 0.6, 0.0, 1.0], atol=1e-12)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["Cora", "WebKB"]
    errors = [segment for lines in ax.collections for segment in lines.get_segments()]
    lengths = [np.ptp(segment[:, 1]) / 2 for segment in errors]
    np.testing.assert_allclose(lengths, np.std([0, 1, 2], ddof=1) / np.sqrt(3))
    slant(ax, 30)
    assert {tick.get_rotation() for tick in ax.get_xticklabels()} == {30.0}
