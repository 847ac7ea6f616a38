"""Dates in many ways of writing."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

from coem.text.dates import guess_dates, read_dates

WRITTEN = {
    "2025-12-31": "2025-12-31T00:00:00",
    "2025/12/31": "2025-12-31T00:00:00",
    "2025-12-31T23:59:01Z": "2025-12-31T23:59:01",
    "2025-12-31 23:00:00.123+02:00": "2025-12-31T21:00:00",
    "20251231": "2025-12-31T00:00:00",
    "2025-12": "2025-12-01T00:00:00",
    "2025": "2025-01-01T00:00:00",
    "31.12.2025": "2025-12-31T00:00:00",
    "1. 2. 1999": "1999-02-01T00:00:00",
    "31.12.25 14:05 Uhr": "2025-12-31T14:05:00",
    "31.12.69": "1969-12-31T00:00:00",
    "12/31/2025": "2025-12-31T00:00:00",
    "12/31/2025 11:05 PM": "2025-12-31T23:05:00",
    "12/31/2025 12:05 am": "2025-12-31T00:05:00",
    "31/12/2025": "2025-12-31T00:00:00",
    "Wed, 31 Dec 2025 10:00:00 -0500": "2025-12-31T15:00:00",
    "Mon, 5 Apr 93 10:11:12 GMT": "1993-04-05T10:11:12",
    "26-FEB-1987 15:01:01.79": "1987-02-26T15:01:01",
    "5. März 2024": "2024-03-05T00:00:00",
    "31. Dezember 2025": "2025-12-31T00:00:00",
    "31 December 2025": "2025-12-31T00:00:00",
    "Dec 2025": "2025-12-01T00:00:00",
    "2025-W01": "2024-12-30T00:00:00",
    "2025-W01-3": "2025-01-01T00:00:00",
    "December 31, 2025": "2025-12-31T00:00:00",
    "Wed Dec 31 23:59:59 UTC 2025": "2025-12-31T23:59:59",
    "1767139200": "2025-12-31T00:00:00",
    "1767139200000": "2025-12-31T00:00:00",
    1767139200: "2025-12-31T00:00:00",
    1767139201.0: "2025-12-31T00:00:01",
    date(2025, 12, 31): "2025-12-31T00:00:00",
    datetime(2025, 12, 31, 1, tzinfo=timezone(timedelta(hours=2))): "2025-12-30T23:00:00",
    datetime(2025, 12, 31, 1, tzinfo=UTC): "2025-12-31T01:00:00",
}


@pytest.mark.parametrize(("value", "moment"), WRITTEN.items(), ids=map(str, WRITTEN))
def test_a_date_is_read(value, moment):
    assert str(read_dates([value]).values[0]) == moment


@pytest.mark.parametrize(
    "value",
    [
        "2025-02-30",
        "31 Foo 2025",
        "yesterday",
        "12345",
        "2025-W54",
        "Foo 2025",
        "1.2.3",
        "x" * 500,
        "99999999999",
    ],
)
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match="1 of 1 values are not dates"):
        read_dates([value])


def test_a_column_says_whether_the_month_comes_first():
    assert read_dates(["1/2/2025", "12/31/2025"]).values.astype("M8[D]").tolist()[0].month == 1
    assert read_dates(["1/2/2025", "31/12/2025"]).values.astype("M8[D]").tolist()[0].month == 2
    with pytest.raises(ValueError, match="no number is above 12"):
        read_dates(["1/2/2025", "3/4/2025"])
    with pytest.raises(ValueError, match="some rows say one"):
        read_dates(["13/2/2025", "3/14/2025"])


def test_an_order_says_whether_the_month_comes_first():
    doubtful = ["1/2/2025", "3/4/2025"]
    with pytest.raises(ValueError, match="say which with order='dmy' or order='mdy'"):
        read_dates(doubtful)
    for order, months in (("dmy", [2, 4]), ("mdy", [1, 3])):
        days = read_dates(doubtful, order).values.astype("M8[D]").tolist()
        assert [day.month for day in days] == months
    with pytest.raises(ValueError, match="1 of 2 values are not dates: '3/14/2025'"):
        read_dates(["1/2/2025", "3/14/2025"], "dmy")
    with pytest.raises(ValueError, match="order must be 'dmy', 'mdy' or None, got 'ymd'"):
        read_dates(doubtful, "ymd")


def test_what_is_no_date_is_shown_once_each_and_what_to_do():
    values = ["2025-01-01"] * 9 + ["unknown"] * 3 + ["2025-02-30"]
    message = r"4 of 13 values are not dates: 'unknown', '2025-02-30'; 95% of them must be \(write"
    with pytest.raises(ValueError, match=message):
        read_dates(values)


def test_words_are_not_called_mail():
    assert "German (31. Dezember 2025)" in str(read_dates(["1. Januar 2024"]))
    assert "e-mail" not in str(read_dates(["1 January 2024"]))
    assert "e-mail" in str(read_dates(["Wed, 31 Dec 2025 10:00:00 -0500"]))


def test_gaps_and_a_few_errors_have_no_date():
    dates = read_dates(["2025-01-01"] * 30 + [None, "", float("nan"), "soon"])
    assert (dates.n_dated, dates.n_bad) == (30, 1)
    assert str(dates).endswith("; 3 rows have none; 1 row has something else: 'soon'")
    given = np.array(["2025-01-01", "NaT"], dtype="M8[ns]")
    assert read_dates(given).n_dated == 1
    with pytest.raises(ValueError, match="all are empty"):
        read_dates([None, ""])


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"text": ["a b", "c d"] * 5, "when": ["1.1.2024", "2.1.2024"] * 5}, "when"),
        ({"seen": ["2024-01-01"] * 10, "posted": ["2024-01-01", "2024-01-02"] * 5}, "posted"),
        ({"a": ["2024-01-01", "2023-01-02"] * 5, "date": ["2024-01-01", "2024-01-02"] * 5}, "date"),
        ({"n": [1700000000, 1710000000] * 5}, None),
        ({"time": [1700000000, 1710000000] * 5}, "time"),
        ({"year": [1999, 2001] * 5}, "year"),
        ({"when": [20240101, 20240203] * 5}, "when"),
        ({"when": ["1999", "2001"] * 5}, "when"),
        ({"Erscheinungsjahr": [1999, 2001] * 5}, "Erscheinungsjahr"),
        ({"created_at": [1700000000, 1710000000] * 5}, "created_at"),
        ({"station": [1999, 2001] * 5}, None),
        ({"at": [date(2024, 1, 1), date(2024, 1, 2)] * 5}, "at"),
        ({"date": ["2024-01-01", "2024-01-02"] + [None] * 8}, None),
        ({"date": [["2024-01-01"]] * 10}, None),
        ({"date": ["1/2/2024", "3/4/2024"] * 5}, None),
    ],
)
def test_the_column_of_dates_is_guessed(columns, found):
    assert guess_dates(pa.table(columns)) == found


def test_other_columns_can_be_left_out():
    table = pa.table({"date": ["2024-01-01", "2024-01-02"]})
    assert guess_dates(table, ["date"]) is None
