"""The map on the page: packed for the script, and drawn as SVG for paper."""

import base64
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from coem.report import svg

SIDE = 1000  # of the SVG, in its own units
COLOURS = 8
SHAPES = ("disc", "square", "triangle")
BINS = 24  # of a side, among which the densest place of a group is looked for
LETTERS = 26  # of a name on the map


@dataclass(frozen=True)
class Chart:
    """What the page needs to draw the map.

    `places` are two unsigned 16-bit numbers a document, `groups` one, both little-endian in base64.
    `rows` has the row of each document of the page, or is empty if they are all documents. `marks`
    has (group, colour, shape) from the largest group to the smallest; `labels` has (group, x, y,
    text), from 0 to 1.
    """

    places: str
    groups: str
    rows: str
    marks: list
    labels: list
    picture: Markup


def chart(story, documents):
    """Return the map of a story, or None if it has no places; `documents` are those of the page."""
    if story.places is None:
        return None
    places = np.asarray(story.places)
    number = {group.label: g for g, group in enumerate(story.groups)}
    groups = np.array([number[label] for label in story.assignments.label.tolist()])
    marks = _marks(story.groups, groups)
    labels = _labels(places, groups, story.groups, marks)
    rows = [document.row for document in documents]
    return Chart(
        places=_packed(np.rint(places * 65535), "<u2"),
        groups=_packed(groups, "<u2"),
        rows="" if len(rows) == story.n_rows else _packed(rows, "<u4"),
        marks=marks,
        labels=labels,
        picture=_picture(places, groups, marks, labels),
    )


def _packed(values, kind):
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode("ascii")


def _marks(named, groups):
    """Return the groups on the map, the largest first, each with a colour and a shape.

    The largest groups have different colours; shapes tell those of one colour apart. If some rows
    stand for all, a group can have rows and none on the map.
    """
    there = np.unique(groups).tolist()
    order = sorted(there, key=lambda g: -named[g].size)
    return [(g, i % COLOURS, SHAPES[i // COLOURS % len(SHAPES)]) for i, g in enumerate(order)]


def _labels(places, groups, named, marks):
    """Return the names where their groups are densest."""
    found = []
    for group, _, _ in marks:
        x, y = densest(places[groups == group])
        found.append((group, round(x, 4), round(y, 4), short_name(named[group].name)))
    return found


def densest(places):
    """Return the middle of the densest part of some places."""
    cells = np.minimum((places * BINS).astype(int), BINS - 1)
    counts = np.zeros((BINS + 2, BINS + 2))
    np.add.at(counts, tuple(cells.T + 1), 1.0)
    # A cell counts with its neighbours, so that a crowd on an edge is not halved.
    smooth = sum(
        counts[i : i + BINS, j : j + BINS] * (2 - abs(i - 1)) * (2 - abs(j - 1))
        for i in range(3)
        for j in range(3)
    )
    best = np.array(np.unravel_index(smooth.argmax(), smooth.shape))
    inside = np.abs(cells - best).max(axis=1) <= 1
    return tuple(places[inside].mean(axis=0).tolist())


def short_name(name):
    """Return as many whole words of a name as there is room for on a map.

    Examples
    --------
    >>> short_name("hockey, playoffs, defenseman")
    'hockey, playoffs'
    """
    words = name.split(", ")
    while len(words) > 1 and len(", ".join(words)) > LETTERS:
        words.pop()
    text = ", ".join(words)
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _picture(places, groups, marks, labels):
    """Return the map as SVG; documents at the same thousandth are one point."""
    spots = np.rint(places * SIDE).astype(int)
    parts = [svg.tag("title", "Map of the documents, by group")]
    for group, colour, shape in marks:
        own = np.unique(spots[groups == group], axis=0)
        path = _path(own, shape)
        parts.append(
            svg.tag("path", class_=f"{'dots' if shape == 'disc' else 'solid'} m{colour}", d=path)
        )
    taken = []
    for _, x, y, text in labels:
        x = min(max(x, _half(text)), 1 - _half(text))  # a name is not cut at the edge
        box = _box(x, y, text)
        if not any(_overlap(box, other) for other in taken):
            taken.append(box)
            at = {"x": round(SIDE * x), "y": round(SIDE * y)}
            parts.append(svg.tag("text", text, class_="mid place", **at))
    box = {"viewBox": f"-10 -10 {SIDE + 20} {SIDE + 20}"}
    name = "Map of the documents, by group"
    return svg.tag(
        "svg", Markup("").join(parts), class_="map-paper", role="img", aria_label=name, **box
    )


def _path(spots, shape):
    """Return one path through all points of a group: each a dot, a square or a triangle."""
    body = {"disc": "h0", "square": "h6v6h-6z", "triangle": "l4 7h-8z"}[shape]
    return "".join(f"M{x} {y}{body}" for x, y in spots.tolist())


def _box(x, y, text):
    """Return about the room that a label takes: left, right, top, bottom."""
    return x - _half(text), x + _half(text), y - 0.02, y + 0.02


def _half(text):
    return 0.0085 * len(text) + 0.005


def _overlap(a, b):
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]
