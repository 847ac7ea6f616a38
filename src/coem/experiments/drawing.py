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
        keys, means, errors = _points(mine, x, y)
        mark = MARKERS[number % len(MARKERS)]
        ax.errorbar(keys, means, errors, marker=mark, capsize=2, label=str(name))
    ax.spines[["top", "right"]].set_visible(False)


def bars(ax: Any, results: Results, *, x: str, y: str, line: str) -> None:
    """Draw means of `y` as columns, in groups by `x`, one column of a group per value of `line`."""
    places, kinds = results.unique(x), results.groups(line)
    width = 0.8 / len(kinds)
    for number, ((name,), mine) in enumerate(kinds.items()):
        keys, means, errors = _points(mine, x, y)
        left = (number - (len(kinds) - 1) / 2) * width
        at = [places.index(key) + left for key in keys]
        ax.bar(at, means, width, yerr=errors, capsize=2, label=str(name))
    ax.set_xticks(range(len(places)), [str(place) for place in places])
    ax.spines[["top", "right"]].set_visible(False)


def slant(ax: Any, angle: float = 40) -> None:
    """Turn the names below the columns of `bars`, so that long ones do not touch."""
    for name in ax.get_xticklabels():
        name.set(rotation=angle, ha="right", rotation_mode="anchor")


def _points(results: Results, x: str, y: str) -> tuple[list[Any], list[float], list[float]]:
    """Return the values of `x` in order, and the means of `y` with their errors."""
    points = {key: rows.mean(y) for (key,), rows in sorted(results.groups(x).items())}
    errors = [0.0 if point.n == 1 else point.error for point in points.values()]
    return list(points), [point.mean for point in points.values()], errors


def charts(
    figure: Any,
    results: Results,
    *by: str,
    x: str,
    y: str,
    line: str,
    labels: tuple[str, str],
    columns: int = 3,
    marks: Callable[..., None] = lines,
) -> list[Any]:
    """Draw `lines` or `bars` in all `panels`, with one legend above them, and return the axes.

    Labels are those of the x-axis and the y-axis.
    """
    drawn = []
    for ax, mine in panels(figure, results, *by, columns=columns):
        marks(ax, mine, x=x, y=y, line=line)
        ax.set(xlabel=labels[0], ylabel=labels[1])
        drawn.append(ax)
    handles, names = drawn[0].get_legend_handles_labels()
    ncols = max(1, round(figure.get_figwidth() * 0.8))  # as many as fit
    figure.legend(handles, names, loc="outside upper center", ncols=ncols)
    return drawn
