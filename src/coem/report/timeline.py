"""Groups over time: how many documents of each in every period, and the words of a period."""

from dataclasses import dataclass, replace

import numpy as np

from coem.report import svg
from coem.report.words import lengths_of, name_groups, words_of
from coem.text.dates import Dates, read_dates

MOST = 30  # periods
N_WORDS = 5
FEW = 50  # dates among which none is left out when the unit is chosen
UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade")
BAR, HEIGHT = 14, 40  # pixels of a bar, and of a picture


@dataclass(frozen=True)
class Timeline:
    """Documents by period.

    Attributes
    ----------
    said : str
        How the dates were written, from when to when.
    unit : str
        "hour", "day", "week", "month", "quarter", "year" or "decade".
    periods : list of str
        Names of the periods, without gaps.
    counts : list of list of int
        Documents of each group (outer) in each period.
    words : list of str
        The words that tell a period from the others.
    undated : int
        Documents without a date.
    """

    said: str
    unit: str
    periods: list
    counts: list
    words: list
    undated: int


def as_dates(dates, n_rows):
    """Return the dates of rows as `Dates`, one for each row, or None if there are none."""
    if dates is None:
        return None
    given = dates.values if isinstance(dates, Dates) else dates
    if len(given) != n_rows:
        raise ValueError(f"dates has {len(given)} entries for {n_rows} rows")
    return dates if isinstance(dates, Dates) else read_dates(dates)


def timeline_of(reading, dates, names, without=()):
    """Return the groups of a reading over time.

    Parameters
    ----------
    reading : Reading
        What a model says about the rows.
    dates : Dates, sequence of length n_rows or None
        The dates of the rows, as `coem.text.dates.read_dates` takes them.
    names : dict of view to list of str
        Names of the columns.
    without : collection of str
        Views that give no words to periods, such as links, whose columns are ids of documents.

    Returns
    -------
    timeline : Timeline or None
        None if there are no dates, or all are in one period.
    """
    dates = as_dates(dates, len(reading.groups))
    if dates is None:
        return None
    there = np.flatnonzero(~np.isnat(dates.values))
    unit, number, called = _periods(dates.values[there])
    n = len(called)
    if n < 2:
        return None
    counts = np.zeros((reading.n_groups, n), dtype=int)
    np.add.at(counts, (reading.groups[there], number), 1)
    return Timeline(
        said=str(dates),
        unit=unit,
        periods=called,
        counts=counts.tolist(),
        words=_words(reading, there, number, n, names, without),
        undated=len(reading.groups) - len(there),
    )


def _periods(moments):
    """Return the finest unit that has few periods, the period of each moment, and their names.

    One in a hundred dates at either end, wrong ones often, does not choose the unit. If there are
    too many periods with them, they are in one that is called "before" or "after" the others.
    """
    far = -(-len(moments) // 100) if len(moments) >= FEW else 0
    ends = np.sort(moments)[[far, len(moments) - 1 - far]]
    for unit in UNITS:
        low, high = _number(unit, ends).tolist()
        if high - low < MOST:
            break
    number = _number(unit, moments)
    first, last = number.min(), number.max()
    if last - first < MOST:
        return unit, number - first, [_called(unit, i) for i in range(first, last + 1)]
    called = [_called(unit, i) for i in range(low, high + 1)]
    before = [f"before {called[0]}"] if first < low else []
    after = [f"after {called[-1]}"] if last > high else []
    low = max(first, low - 1)
    return unit, np.clip(number, low, high + 1) - low, before + called + after


def _number(unit, moments):
    """Return the number of the period since 1970."""
    if unit in ("hour", "day"):
        return moments.astype("M8[h]" if unit == "hour" else "M8[D]").astype(int)
    if unit == "week":
        return (moments.astype("M8[D]").astype(int) + 3) // 7  # 1970 began on a Thursday
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
    return moments.astype("M8[M]").astype(int) // months


def _called(unit, number):
    """Return the name of a period."""
    number = int(number)
    if unit == "hour":
        return str(np.datetime64(number, "h")).replace("T", " ") + ":00"
    if unit in ("day", "week"):
        return str(np.datetime64(number if unit == "day" else 7 * number - 3, "D"))
    if unit == "month":
        return str(np.datetime64(number, "M"))
    if unit == "quarter":
        return f"{1970 + number // 4} Q{number % 4 + 1}"
    return str(1970 + number) if unit == "year" else f"{1970 + 10 * number}s"


def _words(reading, rows, period, n, names, without):
    """Return the words that tell each period from the others, as they would name groups."""
    sizes = np.bincount(period, minlength=n)
    found = replace(
        reading,
        views=reading.views[rows],
        keys=list(range(n)),
        groups=period,
        weights=sizes / sizes.sum(),
        tables={},
        locate={},
        silent=(*reading.silent, *without),
    )
    words = words_of(found, names, 3 * N_WORDS)
    said = name_groups(words, N_WORDS, lengths_of(found.views))
    return [text if _tells(views) else "" for text, views in zip(said, words, strict=True)]


def _tells(views):
    """Return whether any word of a period is more frequent in it than in the others."""
    return any(word.weight > 0 for found in views.values() for word in found.discriminating)


def columns(counts, periods, title):
    """Return bars, one for each period, as high as the counts; they tell what they are."""
    top, width = max(*counts, 1), 520 / max(len(counts), 8)
    parts = []
    for i, (count, period) in enumerate(zip(counts, periods, strict=True)):
        height = HEIGHT * count / top
        at = {"x": i * width, "y": HEIGHT - height, "width": width - 1.5, "height": height}
        hint = svg.tag("title", f"{period}: {count:,}")
        parts.append(
            svg.tag("rect", hint, class_="fill", **{k: round(v, 1) for k, v in at.items()})
        )
    return svg.picture(parts, title, (520, HEIGHT))
