"""Columns that say nothing about what a row is about: time stamps, ids, numbers, constants."""

import re

import numpy as np

FEW = 10  # fewer values show neither that a column is constant nor that its values differ
MOST = 0.95  # the share of values that decides what a column is
EMPTY = 0.05  # a column with a smaller share of values is nearly empty

_MONTH = (
    r"(?:jan|feb|mar|m\u00e4r|mae|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z\u00e4]*\.?"
)
_DAY = (
    r"(?:mon|tue|wed|thu|fri|sat|sun|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag"
    r"|mo|di|mi|do|fr|sa|so)[a-z]*\.?,?"
)
_ZONE = r"(?:z|[a-z]{2,4}|(?:utc|gmt)?[+-]\d\d?:?\d{0,2}|\([a-z ]+\))"
_CLOCK = rf"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?(?:\s*{_ZONE}){{0,2}}"
_DATE = "|".join(
    (
        r"\d{4}-\d\d?(?:-\d\d?)?|\d{4}/\d\d?/\d\d?|\d{4}-?w\d\d(?:-?\d)?|(?:19|20)\d{6}",  # ISO
        r"\d\d?\.\s?\d\d?\.\s?(?:\d{4}|\d\d)",  # German
        r"\d\d?[/-]\d\d?[/-](?:\d{4}|\d\d)",  # US, British
        rf"(?:{_DAY}\s*)?\d\d?\.?[\s-]{_MONTH}[\s-](?:\d{{4}}|\d\d)",  # RFC 822, 26-FEB-1987
        rf"(?:{_DAY}\s*)?{_MONTH}\s\d\d?,?\s\d{{4}}",  # February 26, 1987
        rf"{_MONTH}\s\d{{4}}",
    )
)
TIME = re.compile(
    rf"(?:{_DAY}\s*{_MONTH}\s+\d\d?\s+{_CLOCK}\s+\d{{4}}"  # Tue Feb 26 15:01:01 UTC 1987
    rf"|(?:{_DATE})(?:(?:t|,?\s+|,?\s+at\s+|,?\s+um\s+){_CLOCK}(?:\s*uhr)?)?|{_CLOCK}(?:\s*uhr)?)",
    re.IGNORECASE,
)
COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")  # 19870226
NUMBER = re.compile(
    r"(?:[<>~]?\s?[\u20ac$\u00a3]|eur|usd|chf)?\s?[+-]?\d[\d.,'\u00a0 ]*(?:e[+-]?\d+)?"
    r"\s?(?:%|\u20ac|\$|\u00a3|\u00b0c?|[a-z\u00b5]{1,4}[\u00b2\u00b3]?\.?)?",
    re.IGNORECASE,
)
IDS = {
    "e-mail addresses": re.compile(r"[^@]{0,60}[^\s@]+@[^\s@]+[^@]{0,60}"),
    "web addresses": re.compile(r"(?:[a-z][a-z0-9+.-]*://|www\.)[^\s|;]+", re.IGNORECASE),
    "ids (UUIDs)": re.compile(r"\{?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.IGNORECASE),
    "hashes": re.compile(r"(?=\D*\d)(?:0x)?(?:[0-9a-f]{16,}|[0-9a-f]{12})", re.IGNORECASE),
    "names of files": re.compile(
        r"[^/\\\n|;\[]{1,80}\.[a-z][a-z0-9]{1,4}|[^\s|;\[]*[/\\][^\s|;\[]*", re.IGNORECASE
    ),
}
CODES = "codes"
CODE = re.compile(r"[!-~]{0,19}\d[!-~]{0,19}|[A-Z]{1,4}|[A-Za-z]{1,3}[.:]|[-/#+]")


def against_text(texts, n_rows, *, lists=False):
    """Return why a column of text is not to be guessed as a view, or None.

    Parameters
    ----------
    texts : list of str
        The values that are not blank, without blanks at their ends.
    n_rows : int
        The number of values, blank ones too.
    lists : bool, default=False
        Whether the texts seem to be lists: their items may be codes.
    """
    emptiness = against_gaps(len(texts), n_rows)
    if emptiness or not texts:
        return emptiness or "it is empty"
    reason = against_time(texts) or against_constant(texts)
    what = None if reason else kind_of_id(texts)
    what = None if lists and what == CODES else what
    if reason or what:
        return reason or f"its values are {what}"
    return "its values are numbers" if _share(NUMBER, texts) >= MOST else None


def against_given(texts):
    """Return why a column of text that a user has chosen says nothing, or None.

    Ids that occur in several rows, such as the addresses of authors, may say much.
    """
    reason = against_time(texts) or against_constant(texts)
    if reason or len(texts) < FEW or not _differ(texts):
        return reason
    what = kind_of_id(texts) or ("numbers" if _share(NUMBER, texts) >= MOST else None)
    return f"its values are {what}, and nearly all differ" if what else None


def against_time(texts):
    """Return that texts are time stamps, or None."""
    stamps = bool(texts) and (_share(TIME, texts) >= MOST or _are_epochs(texts))
    return "its values are dates or times" if stamps else None


def kind_of_id(texts):
    """Return what kind of ids texts are, or None."""
    for what, pattern in IDS.items():
        if _share(pattern, texts) >= MOST:
            return what
    if len(texts) < FEW or not _differ(texts) or _share(NUMBER, texts) >= MOST:
        return None
    codes = [all(CODE.fullmatch(word) for word in text.split()) for text in texts]
    return CODES if np.mean(codes) >= MOST else None


def _differ(texts):
    """Return whether nearly all texts differ."""
    return len(set(texts)) >= MOST * len(texts)


def against_numbers(values):
    """Return why numbers (n,), none of them missing, say nothing, or None."""
    whole = bool(np.isfinite(values).all()) and bool((values == np.rint(values)).all())
    digits = [f"{value:.0f}" for value in values] if whole else []
    if digits and (_share(COMPACT, digits) >= MOST or _are_epochs(digits)):
        return "its values are dates or times"
    constant = against_constant(values.tolist())
    if constant or not whole or len(values) < FEW or len(np.unique(values)) < len(values):
        return constant
    if values.max() - values.min() + 1 == len(values):
        return "its values are running numbers"
    if len(digits[0]) > 4 and len(set(map(len, digits))) == 1:
        return "its values are codes, and all differ"
    return None


def against_gaps(n_values, n_rows):
    """Return that a column is nearly empty, or None."""
    if n_rows >= FEW and n_values < EMPTY * n_rows:
        return f"it is nearly empty ({n_values} of {n_rows} rows have a value)"
    return None


def against_constant(values):
    """Return that one value is in nearly all rows, or None."""
    if len(values) < FEW:
        return None
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    most = max(counts.values())
    if most < MOST * len(values):
        return None
    return f"one value is in nearly all of its rows ({most} of {len(values)})"


def _share(pattern, texts):
    """Return the share of texts that match as a whole."""
    return np.mean([len(text) < 200 and bool(pattern.fullmatch(text)) for text in texts])


def _are_epochs(texts):
    """Return whether texts are seconds, or finer units, since 1970, of one to thirty years."""
    if len(texts) < FEW or not all(text.isascii() and text.isdigit() for text in texts):
        return False
    for power in (0, 3, 6, 9):  # seconds to nanoseconds
        seconds = np.array([float(text) for text in texts]) / 10**power
        # From 1990 to 2050, and not the numbers of articles, which are close together or round.
        if seconds.min() > 6.3e8 and seconds.max() < 2.6e9 and np.ptp(seconds) > 8.64e4:
            return len(set(texts)) > 1
    return False
