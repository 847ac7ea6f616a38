"""Figures in the style of the papers, with matplotlib; the same results give the same bytes."""

import io
from collections.abc import Callable, Iterator
from typing import Any

from coem.experiments.results import Results

# Text stays text, so that a figure is small, and ids do not depend on chance or time.
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "coem",
    "font.size": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
}
MARKERS = "os^Dv<>p*h"
PANEL = 2.6, 2.2  # inches


def need_matplotlib() -> None:
    """Raise, and say how to get it, if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("coem reproduce needs matplotlib: pip install coem[plot]") from error


def render(draw: Callable[[Results, Any], None], results: Results) -> bytes:
    """Return what `draw` draws of results as SVG, without the time and the version that made it."""
    from matplotlib import style
    from matplotlib.figure import Figure

    target = io.BytesIO()
    with style.context(["default", STYLE]):  # and not what a user likes
        figure = Figure(layout="constrained", figsize=PANEL)
        draw(results, figure)
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": "coem"})
    return target.getvalue()


def panels(
    figure: Any, results: Results, *by: str, columns: int = 3
) -> Iterator[tuple[Any, Results]]:
    """Yield axes with a title, and their rows, for all values of the columns `by`.

    The figure gets as large as its panels need.
    """
    groups = results.groups(*by)
    columns = min(columns, len(groups))
    rows = -(-len(groups) // columns)
    figure.set_size_inches(PANEL[0] * columns, PANEL[1] * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[len(groups) :]:
        ax.remove()
    for ax, (key, mine) in zip(axes, groups.items(), strict=False):
        parts = zip(by, key, strict=True)
        ax.set_title(", ".join(v if isinstance(v, str) else f"{n} = {v:g}" for n, v in parts))
        yield ax, mine


def lines(ax: Any, results: Results, *, x: str, y: str, line: str) -> None:
    """Draw means of `y` along `x` with bars of one standard error, one line per value of `line`."""
    for number, ((name,), mine) in enumerate(results.groups(line).items()):
        points = {key: rows.mean(y) for (key,), rows in sorted(mine.groups(x).items())}
        ax.errorbar(
            list(points),
            [point.mean for point in points.values()],
            [0.0 if point.n == 1 else point.error for point in points.values()],
            marker=MARKERS[number % len(MARKERS)],
            capsize=2,
            label=str(name),
        )
    ax.spines[["top", "right"]].set_visible(False)


def charts(
    figure: Any,
    results: Results,
    *by: str,
    x: str,
    y: str,
    line: str,
    labels: tuple[str, str],
    columns: int = 3,
) -> list[Any]:
    """Draw `lines` in all `panels`, with one legend above them, and return the axes.

    Labels are those of the x-axis and the y-axis.
    """
    drawn = []
    for ax, mine in panels(figure, results, *by, columns=columns):
        lines(ax, mine, x=x, y=y, line=line)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        drawn.append(ax)
    handles, names = drawn[0].get_legend_handles_labels()
    ncols = max(1, round(figure.get_figwidth() * 0.8))  # as many as fit
    figure.legend(handles, names, loc="outside upper center", ncols=ncols)
    return drawn
