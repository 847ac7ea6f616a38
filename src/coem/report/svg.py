"""Small pictures as SVG text. Colours are classes that the style sheet of the page fills in."""

import math
from itertools import pairwise

import numpy as np
from markupsafe import Markup, escape

LONGEST = 30  # characters of a label
MOST = 40  # rows and columns of a heat map


def bar(share, whole=1.0):
    """Return a bar whose length is a share of the whole."""
    width = 100 * min(max(share / whole, 0.0), 1.0) if whole > 0 else 0.0
    track = tag("rect", class_="track", width=100, height=6)
    body = track + tag("rect", class_="fill", width=round(width, 2), height=6)
    frame = {"viewBox": "0 0 100 6", "preserveAspectRatio": "none", "aria-hidden": "true"}
    return tag("svg", body, class_="bar", **frame)


def block(start, width, colour, title):
    """Return a part of a stripe, which tells what it is."""
    text = tag("title", escape(title))
    return tag("rect", text, class_=colour, x=start, width=width, height=1)


def stripe(blocks, length, label):
    """Return blocks side by side, as wide as there is room."""
    frame = {"viewBox": f"0 0 {length} 1", "preserveAspectRatio": "none", "aria-label": label}
    return tag("svg", Markup("").join(blocks), class_="strip", role="img", **frame)


def line(values, title, *, x_label="round", y_label="", size=(560, 220), limits=None):
    """Return a curve with a point for every number, the first at 1; no axis leaves the limits."""
    width, height = size
    y = np.asarray(values, dtype=np.float64)
    good = np.isfinite(y)
    low, high = _range(y[good], limits)
    ticks = _ticks(low, high)
    left, right, top, bottom = (
        max(74, 32 + 6.6 * max(map(len, _texts(ticks)), default=0)),
        14,
        12,
        40,
    )
    last = max(len(y), 2)

    def place(x, value):
        across = left + (x - 1) / (last - 1) * (width - left - right)
        return across, top + (high - value) / (high - low) * (height - top - bottom)

    points = [place(i + 1, v) for i, v in enumerate(y) if good[i]]
    parts = _axis_y(ticks, lambda v: place(1, v)[1], left, width - right)
    steps = [t for t in _ticks(1, last, 6) if t == int(t)]
    parts += _axis_x(steps, lambda v: place(v, low)[0], height - bottom)
    parts += _labels(x_label, y_label, left, width - right, top, height)
    path = " ".join(f"{x:.1f},{v:.1f}" for x, v in points)
    parts += [tag("polyline", class_="curve", points=path)]
    parts += [_dot(x, v, 2.5) for x, v in points] if len(points) <= 60 else []
    return picture(parts, title, size)


def reliability(confidence, accuracy, rows, title, *, said=None, size=(340, 320)):
    """Return points of confidence and accuracy over the diagonal, the larger the more rows.

    The accuracy is the share that is right, or the probability that something else has, `said`.
    """
    width, height = size
    left, right, top, bottom = 52, 14, 12, 42

    def across(value):
        return left + value * (width - left - right)

    def down(value):
        return top + (1 - value) * (height - top - bottom)

    steps = [0.0, 0.25, 0.5, 0.75, 1.0]
    parts = _axis_y(steps, down, left, width - right)
    parts += _axis_x(steps, across, height - bottom)
    upright = "share that is right" if said is None else f"probability {said}"
    parts += _labels("probability of the choice", upright, left, width, top, height)
    diagonal = {"x1": across(0), "y1": down(0), "x2": across(1), "y2": down(1)}
    parts.append(tag("line", class_="diagonal", **diagonal))
    whole = max(sum(rows), 1)
    there = [(c, a, n) for c, a, n in zip(confidence, accuracy, rows, strict=True) if n]
    path = " ".join(f"{across(c):.1f},{down(a):.1f}" for c, a, _ in there)
    parts.append(tag("polyline", class_="curve", points=path))
    for c, a, n in there:
        hint = f"{n:,} rows: probability {c:.2f}, {said or 'right'} {a:.2f}"
        parts.append(_dot(across(c), down(a), 3 + 9 * math.sqrt(n / whole), hint))
    return picture(parts, title, size)


def heat(values, rows, columns, title, *, text="{}", cell=30, shade=None):
    """Return a table of coloured cells with the names of its rows and columns.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        Zeros and NaN stay blank.
    rows, columns : list of str
        Names.
    title : str
        A description of the picture, for readers who cannot see it.
    text : str or callable
        How a value is written into its cell.
    shade : array, optional
        How dark a cell is, between 0 and 1; None shades by the values.
    """
    values = np.asarray(values, dtype=np.float64)
    shade = values if shade is None else np.asarray(shade, dtype=np.float64)
    left = 16 + 6.4 * max((len(_cut(name)) for name in rows), default=0)
    longest = max((len(_cut(name)) for name in columns), default=0)
    # Names of a few characters stand upright, longer ones lean.
    leaning = longest > 4
    top = 16 + (4.9 * longest if leaning else 10)
    lean = 4.2 * longest if leaning else 8
    size = left + cell * len(columns) + lean, top + cell * len(rows) + 8
    middles = [left + cell * (j + 0.5) for j in range(len(columns))]
    pairs = zip(columns, middles, strict=True)
    parts = [_column_name(name, x, top, leaning) for name, x in pairs]
    for i, name in enumerate(rows):
        y = top + cell * i
        parts.append(_named(name, x=left - 8, y=y + cell / 2 + 4, class_="end"))
        for j in range(len(columns)):
            if np.isfinite(values[i, j]) and values[i, j] != 0:
                hint = f"{name} / {columns[j]}: {_written(text, values[i, j])}"
                label = _written(text, values[i, j])
                parts.append(_cell(left + cell * j, y, cell, shade[i, j], label, hint))
    frame = {"x": left, "y": top, "width": cell * len(columns), "height": cell * len(rows)}
    parts.append(tag("rect", class_="frame", **frame))
    return picture(parts, title, size)


def largest(sizes, most=MOST):
    """Return the places of the largest, at most so many, in their order."""
    order = np.argsort(-np.asarray(sizes), kind="stable")[:most]
    return np.sort(order).tolist()


# -- parts --------------------------------------------------------------------------------------


def _cell(x, y, cell, shade, label, hint):
    depth = round(min(max(float(shade), 0.0), 1.0), 3)
    box = {"x": x + 0.5, "y": y + 0.5, "width": cell - 1, "height": cell - 1, "rx": 2}
    body = tag("title", hint) + tag("rect", class_="heat", fill_opacity=depth, **box)
    kind = "mid on" if depth > 0.7 else "mid"  # the contrast is at least 3.4, also in the dark
    if len(label) <= cell // 6:
        body += tag("text", label, class_=kind, x=x + cell / 2, y=y + cell / 2 + 4)
    return tag("g", body)


def _column_name(name, x, y, leaning):
    if not leaning:
        return _named(name, x=x, y=y - 8, class_="mid")
    turn = f"translate({x:.1f} {y - 8:.1f}) rotate(-50)"
    return _named(name, transform=turn)


def _named(name, **attributes):
    """Return a label, and the whole of it as a hint if it is cut."""
    short = _cut(name)
    body = escape(short) + (tag("title", name) if short != name else Markup(""))
    return tag("text", body, **attributes)


def _cut(name):
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _written(text, value):
    return text(value) if callable(text) else text.format(value)


def _axis_y(steps, place, left, right):
    parts = []
    for step, text in zip(steps, _texts(steps), strict=True):
        y = round(place(step), 1)
        parts.append(tag("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
        parts.append(tag("text", text, class_="end", x=left - 7, y=y + 4))
    return parts


def _axis_x(steps, place, y):
    pairs = zip(steps, _texts(steps), strict=True)
    return [tag("text", text, class_="mid", x=round(place(s), 1), y=y + 17) for s, text in pairs]


def _labels(x_label, y_label, left, right, top, height):
    middle = (left + right) / 2
    parts = [tag("text", x_label, class_="mid name", x=middle, y=height - 6)]
    if y_label:
        turn = f"translate(13 {(top + height - 40) / 2:.1f}) rotate(-90)"
        parts.append(tag("text", y_label, class_="mid name", transform=turn))
    return parts


def _dot(x, y, radius, hint=""):
    body = tag("title", hint) if hint else Markup("")
    return tag("circle", body, class_="dot", cx=round(x, 1), cy=round(y, 1), r=round(radius, 1))


def picture(parts, title, size, role="img"):
    """Return a picture of some elements; links in it can only be followed if it is a "group"."""
    width, height = (math.ceil(side) for side in size)
    body = tag("title", title) + Markup("").join(parts)
    box = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    return tag("svg", body, class_="picture", role=role, aria_label=title, **box)


def tag(name, body="", **attributes):
    """Return an element; everything that is not markup already is escaped."""
    names = {"class_": "class", "aria_label": "aria-label", "fill_opacity": "fill-opacity"}
    given = "".join(f' {names.get(k, k)}="{escape(_tidy(v))}"' for k, v in attributes.items())
    return Markup(f"<{name}{given}>") + escape(body) + Markup(f"</{name}>")


def _tidy(value):
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) and value > 1 else value


def _range(values, limits=None):
    """Return the ends of an axis; values that are all but the same are in the middle of it."""
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    low, high = low - 0.5 * max(abs(low), 1.0), high + 0.5 * max(abs(high), 1.0)
    return (low, high) if limits is None else (max(low, limits[0]), min(high, limits[1]))


def _ticks(low, high, most=5):
    """Return round numbers between two values."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * f for f in (1, 2, 2.5, 5, 10) if power * f >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _texts(steps):
    """Return the numbers of an axis with as many digits as tell them apart, and say what they are.

    Rounded to fewer, neighbours may be the same text, or stand at uneven distances.
    """
    off = 0.01 * min((abs(b - a) for a, b in pairwise(steps)), default=math.inf)
    digits = next((d for d in range(4, 16) if all(_rounding(s, d) <= off for s in steps)), 16)
    return [_short(step, digits) for step in steps]


def _rounding(value, digits):
    return abs(float(f"{value:.{digits}g}") - value)


def _short(value, digits=4):
    """Return a number for an axis: few digits, thousands as k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            divisor = 1e3 if letter == "k" else size
            return f"{value / divisor:.{digits}g}{letter}"
    return f"{value:.{digits}g}"
