"""Dates in the usual ways of writing: which column has them, and what they are."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np

MOST = 0.95  # the share of values that must be dates
LEAST = 0.5  # the share of rows that must have a value, for a column to be guessed
SAMPLE = 1000  # rows that a guess looks at, evenly spread
EXAMPLE = 3  # values that a message shows
CALLED = re.compile(
    r"date|time|datum|zeit|created|published|posted|sent|updated|stamp|epoch|year|jahr|month|monat"
    r"|erstellt|(?:^|[\W_])(?:when|wann|at|on|day|tag)$|^when",
    re.I,
)
ORDERS = ("dmy", "mdy")  # whether the day or the month comes first in 1/2/2025
SAY_ORDER = "say which with order='dmy' or order='mdy'"
SPAN = datetime(1970, 1, 1), datetime(2100, 1, 1)  # of numbers that are taken for seconds

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAMES = {name: i + 1 for i, name in enumerate(_MONTHS)}
_NAMES |= {"mär": 3, "mae": 3, "mai": 5, "okt": 10, "dez": 12}
_NAME = r"(?P<name>[A-Za-zä]{3})[a-zä]*\.?"
_DAY, _YEAR = r"(?P<day>\d\d?)", r"(?P<year>\d{4}|\d\d)"
_CLOCK = (
    r"(?:(?:t|,?\s+|,?\s+at\s+|,?\s+um\s+)(?P<hour>\d\d?):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,]\d+)?)?\s*(?P<half>[ap]\.?m\.?)?(?:\s*uhr)?"
    r"\s*(?P<zone>z|utc|gmt|[a-z]{2,4}|[+-]\d\d:?\d\d)?(?:\s*\([a-z ]+\))?)?"
)
_WEEKDAY = r"(?:[A-Za-z]{2,10}\.?,?\s+)?"
# The way of writing, as a message calls it, and its pattern.
WAYS = {
    "ISO (2025-12-31)": r"(?P<year>\d{4})[-/](?P<month>\d\d?)[-/](?P<day>\d\d?)" + _CLOCK,
    "ISO (20251231)": r"(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>[0-3]\d)",
    "months (2025-12)": r"(?P<year>\d{4})-(?P<month>\d\d)",
    "years (2025)": r"(?P<year>(?:19|20)\d\d)",
    "German (31.12.2025)": rf"{_DAY}\.\s?(?P<month>\d\d?)\.\s?{_YEAR}" + _CLOCK,
    "weeks (2025-W52)": r"(?P<year>\d{4})-?w(?P<week>\d\d)(?:-?(?P<weekday>[1-7]))?",
    "months (Dec 2025)": rf"{_NAME}\s+(?P<year>\d{{4}})",
    "German (31. Dezember 2025)": rf"{_WEEKDAY}{_DAY}\.\s*{_NAME}\s+{_YEAR}" + _CLOCK,
    "words (31 Dec 2025)": rf"{_DAY}[\s-]+{_NAME}[\s-]+{_YEAR}",
    "slashes": rf"(?P<first>\d\d?)[/-](?P<other>\d\d?)[/-]{_YEAR}" + _CLOCK,
    "e-mail (Wed, 31 Dec 2025)": rf"{_WEEKDAY}{_DAY}\.?[\s-]+{_NAME}[\s-]+{_YEAR}" + _CLOCK,
    "English (December 31, 2025)": rf"{_WEEKDAY}{_NAME}\s+{_DAY},?\s+(?P<year>\d{{4}})" + _CLOCK,
    "ctime (Wed Dec 31 23:59:59 2025)": (
        rf"[A-Za-z]{{3}}\s+{_NAME}\s+{_DAY}\s+(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)"
        r"(?:\s+[A-Z]{2,4})?\s+(?P<year>\d{4})"
    ),
    "seconds since 1970": r"(?P<stamp>\d{9,10}(?:\.\d+)?)",
    "milliseconds since 1970": r"(?P<stamp>\d{12,13})",
}
PATTERNS = {way: re.compile(pattern, re.IGNORECASE) for way, pattern in WAYS.items()}
US, BRITISH = "US (12/31/2025)", "British (31/12/2025)"


@dataclass(frozen=True, eq=False)
class Dates:
    """The dates of rows, as `datetime64[s]` in UTC or NaT, and how they were written."""

    values: np.ndarray
    ways: list
    n_bad: int  # values that are not dates
    bad: tuple = ()  # some of them, all different

    @property
    def n_dated(self):
        """Number of rows with a date."""
        return int((~np.isnat(self.values)).sum())

    def __str__(self):
        """Return a text: how they were written, from when to when, and what is missing."""
        there = self.values[~np.isnat(self.values)].astype("M8[D]")
        said = f"written as {' and '.join(self.ways)}, {there.min()} to {there.max()}"
        empty = len(self.values) - len(there) - self.n_bad
        gaps = [_have(empty, "none")] if empty else []
        gaps += [f"{_have(self.n_bad, 'something else')}: {_shown(self.bad)}"] if self.n_bad else []
        return "; ".join([said, *gaps])


def _have(n, what):
    return f"{n:,} {'row has' if n == 1 else 'rows have'} {what}"


def _shown(values):
    return ", ".join(repr(value)[:40] for value in values)


def read_dates(values, order=None):
    """Return the dates of rows.

    Parameters
    ----------
    values : sequence
        Text, numbers (seconds or milliseconds since 1970), `datetime`, `date` or `datetime64`;
        None, NaN and blanks have no date.
    order : {"dmy", "mdy"}, optional
        Whether the day or the month comes first in dates such as 1/2/2025. By default the values
        tell, for some have a number above 12.

    Returns
    -------
    dates : Dates

    Raises
    ------
    ValueError
        If less than 95 % of the values are dates, or if nothing says whether the day or the month
        comes first.

    Notes
    -----
    Without `order`, the column decides between 12/31/2025 and 31/12/2025: some value must have a
    number above 12. A week is its Monday, a month or a year its first day.
    A time with a zone is turned into UTC. Two digits of a year are of 1969 to 2068.

    Examples
    --------
    >>> from coem.text.dates import read_dates
    >>> dates = read_dates(["31.12.2025", "1.1.2026", None])
    >>> dates.values.astype("M8[D]").tolist()[:2]
    [datetime.date(2025, 12, 31), datetime.date(2026, 1, 1)]
    >>> print(dates)
    written as German (31.12.2025), 2025-12-31 to 2026-01-01; 1 row has none
    """
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "M":
        return Dates(np.asarray(values).astype("M8[s]"), ["dates"], 0)
    found = [_match(value) for value in values]
    month_first = _month_first([fields for way, fields in found if way == "slashes"], order)
    read = [_moment(way, fields, month_first) for way, fields in found]
    there = np.array([way is not None for way, _ in found])
    good = np.array([moment is not None for moment in read])
    others = [value for value, ok, is_ in zip(values, good, there, strict=True) if is_ and not ok]
    bad = tuple({repr(value): value for value in others}.values())[:EXAMPLE]  # lists have no hash
    if not good.any() or good.sum() < MOST * there.sum():
        _refuse(len(others), int(there.sum()), bad)
    slashes = US if month_first else BRITISH
    ways = Counter(
        slashes if w == "slashes" else w for (w, _), ok in zip(found, good, strict=True) if ok
    )
    moments = np.array([np.datetime64("NaT") if m is None else m for m in read], dtype="M8[s]")
    return Dates(moments, [way for way, _ in ways.most_common()], len(others), bad)


def _refuse(n_bad, n_values, bad):
    """Say which values are not dates, and what to do."""
    if not n_values:
        raise ValueError("all are empty")
    raise ValueError(
        f"{n_bad} of {n_values} values are not dates: {_shown(bad)}; {MOST:.0%} of them must be "
        "(write them as 2025-12-31, or leave them empty)"
    )


def _match(value):
    """Return how a value is written, and its parts; None if it is blank, "" if it is not a date."""
    if isinstance(value, datetime | date):
        return "dates", value
    if value is None or value != value:
        return None, None
    text = f"{value:.0f}" if isinstance(value, float) else str(value).strip()
    if not text:
        return None, None
    for way, pattern in PATTERNS.items():
        match = pattern.fullmatch(text) if len(text) < 80 else None
        if match:
            return way, match.groupdict()
    return "", None


def _month_first(slashes, order):
    """Return whether a column writes 12/31/2025, and not 31/12/2025."""
    if order not in (None, *ORDERS):
        raise ValueError(f"order must be 'dmy', 'mdy' or None, got {order!r}")
    if order or not slashes:
        return order == "mdy"
    first, other = (max(int(parts[name]) for parts in slashes) for name in ("first", "other"))
    if (first > 12) == (other > 12):
        why = "no number is above 12" if first <= 12 else "some rows say one, and some the other"
        raise ValueError(
            f"dates such as {slashes[0]['first']}/{slashes[0]['other']}/{slashes[0]['year']} can "
            f"be read with the day or the month first ({why}); {SAY_ORDER}"
        )
    return other > 12


def _moment(way, fields, month_first):
    """Return the moment in UTC, without a zone, or None if there is no such day."""
    if not way:
        return None
    if way == "dates":
        return _in_utc(fields)
    try:
        if "stamp" in fields:
            scale = 1000 if way.startswith("milli") else 1
            moment = SPAN[0] + timedelta(seconds=float(fields["stamp"]) / scale)
            return moment if moment < SPAN[1] else None
        return _civil(fields, month_first)
    except (ValueError, KeyError, OverflowError):  # no such day, no such month
        return None


def _in_utc(value):
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _civil(fields, month_first):
    """Return the moment of a day and a time of day."""
    if fields.get("first"):
        names = ("month", "day") if month_first else ("day", "month")
        fields = fields | dict(zip(names, (fields["first"], fields["other"]), strict=True))
    month = fields.get("month") or (_NAMES[fields["name"].lower()] if "name" in fields else 1)
    year = int(fields["year"])
    year += 0 if year > 99 else 1900 if year >= 69 else 2000
    if fields.get("week"):
        return datetime.fromisocalendar(year, int(fields["week"]), int(fields["weekday"] or 1))
    hour, half = int(fields.get("hour") or 0), (fields.get("half") or "").lower()
    if half:
        hour = hour % 12 + 12 * half.startswith("p")
    time = hour, int(fields.get("minute") or 0), min(int(fields.get("second") or 0), 59)
    return datetime(year, int(month), int(fields.get("day") or 1), *time) - _offset(fields)


def _offset(fields):
    """Return how far the zone is from UTC; names other than UTC and GMT say nothing."""
    zone = (fields.get("zone") or "").replace(":", "")
    if zone[:1] not in ("+", "-"):
        return timedelta()
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5]))
    return away if zone[0] == "+" else -away


def guess_dates(table, leave_out=()):
    """Return the column of a table that has the dates of its rows, or None.

    Columns with names about time come first. Numbers are only dates under such a name. A column
    of one day, or with a date in less than half of the rows, is not a column of dates.

    Parameters
    ----------
    table : pyarrow.Table
    leave_out : sequence of str
        Columns that are something else.
    """
    names = [name for name in table.column_names if name not in leave_out]
    for name in sorted(names, key=lambda name: not CALLED.search(name)):
        column = table.column(name)
        if len(column) and _holds_dates(name, column):
            return name
    return None


def _holds_dates(name, column):
    rows = np.unique(np.linspace(0, len(column) - 1, SAMPLE).astype(int))
    values = column.take(rows).to_pylist()
    there = [value for value in values if value is not None]
    numbers = any(isinstance(value, int | float) or str(value).isdigit() for value in there[:50])
    if (
        not there
        or isinstance(there[0], list | dict | bool)
        or (numbers and not CALLED.search(name))
    ):
        return False
    try:
        dates = read_dates(values)
    except ValueError:
        return False
    days = np.unique(dates.values[~np.isnat(dates.values)].astype("M8[D]"))
    return len(days) > 1 and dates.n_dated >= LEAST * len(values)
