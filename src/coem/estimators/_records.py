"""Records of what happened: one a round, one a restart."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.utils import Bunch

from coem.em import Round
from coem.views import html_table

SHOWN = 10  # records at either end of a table

PER_VIEW = {"log_likelihood", "view_objective"}


class Records(list):
    """A list of records, each with its fields as attributes and as keys."""

    def to_frame(self):
        """Return the records as a pandas DataFrame, one column a field."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame([_flat(record) for record in self])

    def _repr_html_(self):
        """Return a table for notebooks: all records, or the first and the last ones."""
        flat = [_flat(record) for record in self]
        head = list(dict.fromkeys(name for record in flat for name in record))
        ends = flat if len(flat) <= 2 * SHOWN else [*flat[:SHOWN], None, *flat[-SHOWN:]]
        rows = [["…"] * len(head) if r is None else [_short(r.get(n)) for n in head] for r in ends]
        return html_table(head, rows, f"{len(self):,} records")


def round_record(record: Round, names: tuple[str, ...]) -> Bunch:
    """Return a round with the log likelihoods under the names of the views."""
    fields = dict(vars(record))
    values = fields.pop("log_likelihood")
    # Under joint coupling there is one likelihood, that of all views together.
    names = names if len(values) == len(names) else ("joint",)
    return Bunch(**fields, log_likelihood=dict(zip(names, values, strict=True)))


_watchers: list[Callable[[Round], None]] = []


@contextmanager
def watch(look: Callable[[Round], None]) -> Iterator[None]:
    """Have every round of every fit shown to a function meanwhile, in the thread of the fit.

    A fit that is watched is a fit like any other, so that this is no parameter of an estimator;
    and it may be deep in another function, or in a thread that knows nothing of its caller.
    """
    _watchers.append(look)
    try:
        yield
    finally:
        _watchers.remove(look)


def progress(verbose: int, label: str) -> Callable[[Round], None]:
    """Return a monitor: it tells who watches, and writes to stderr every so many rounds."""
    every = max(1, 10 // int(verbose)) if 0 < verbose < 10 else 1

    def tell(record: Round) -> None:
        for look in tuple(_watchers):
            look(record)
        if verbose and (record.round % every == 0 or record.round == 1):
            # Where there is but one posterior there is nothing to agree upon.
            several = len(record.log_likelihood) > 1
            agreement = f"agreement {record.agreement_rate:.3f}, " if several else ""
            sys.stderr.write(
                f"{label} round {record.round}: objective {record.objective:.6g}, "
                f"{agreement}{record.seconds * 1e3:.0f} ms\n"
            )

    return tell


def _flat(record: Any) -> dict[str, Any]:
    """Return the fields of a record, one for each view where it has a value for each."""
    flat = dict(record)
    for name in PER_VIEW & flat.keys():
        flat |= {f"{name}_{view}": value for view, value in flat.pop(name).items()}
    return flat


def _short(value: Any) -> str:
    """Return a field for a table: numbers with six digits, long values cut."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
