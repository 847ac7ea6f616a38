"""Records of a fit, one per round or per restart, and functions that follow a running fit."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sklearn.utils import Bunch

from coem.em import Round
from coem.views import html_table

if TYPE_CHECKING:
    from pandas import DataFrame

SHOWN = 10  # records that a long table shows at its start, and at its end

PER_VIEW = {"log_likelihood", "view_objective"}  # fields with one value per view


class Records(list[Bunch]):
    """A list of records. The fields of a record are both attributes and keys."""

    def to_frame(self) -> "DataFrame":
        """Return the records as a pandas DataFrame with one column per field."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        return pd.DataFrame([_flat(record) for record in self])

    def _repr_html_(self) -> str:
        """Return a table for notebooks. A long one shows the first and the last records only."""
        flat = [_flat(record) for record in self]
        head = list(dict.fromkeys(name for record in flat for name in record))
        ends = flat if len(flat) <= 2 * SHOWN else [*flat[:SHOWN], None, *flat[-SHOWN:]]
        rows = [["…"] * len(head) if r is None else [_short(r.get(n)) for n in head] for r in ends]
        return html_table(head, rows, f"{len(self):,} records")


def round_record(record: Round, names: tuple[str, ...]) -> Bunch:
    """Return a round as a record whose log likelihoods are a dict from view to value."""
    fields = dict(vars(record))
    values = fields.pop("log_likelihood")
    # Under joint coupling there is only one likelihood, that of all views together.
    names = names if len(values) == len(names) else ("joint",)
    return Bunch(**fields, log_likelihood=dict(zip(names, values, strict=True)))


Watcher = Callable[[Round], None]

_watchers: list[Watcher] = []


@contextmanager
def watch(look: Watcher) -> Iterator[None]:
    """Call `look` with every round of every fit inside the context, in the thread of the fit.

    This is not a parameter of an estimator, because watching does not change a fit, and because
    the fit may run deep inside another function or in another thread.
    """
    _watchers.append(look)
    try:
        yield
    finally:
        _watchers.remove(look)


def progress(verbose: int, label: str) -> Watcher:
    """Return what follows a run: it calls the functions of `watch`, and prints rounds to stderr.

    `verbose` 0 prints nothing, 1 the first and every tenth round, and 10 or more every round.
    """
    every = max(1, 10 // int(verbose)) if 0 < verbose < 10 else 1

    def tell(record: Round) -> None:
        for look in tuple(_watchers):
            look(record)
        if verbose and (record.round % every == 0 or record.round == 1):
            # A single posterior has no other to agree with.
            several = len(record.log_likelihood) > 1
            agreement = f"agreement {record.agreement_rate:.3f}, " if several else ""
            sys.stderr.write(
                f"{label} round {record.round}: objective {record.objective:.6g}, "
                f"{agreement}{record.seconds * 1e3:.0f} ms\n"
            )

    return tell


def _flat(record: Bunch) -> dict[str, Any]:
    """Return the fields of a record as a flat dict: a field per view where values are per view."""
    flat = dict(record)
    for name in PER_VIEW & flat.keys():
        flat |= {f"{name}_{view}": value for view, value in flat.pop(name).items()}
    return flat


def _short(value: object) -> str:
    """Return the text of a field in a table: numbers with six digits, long values cut."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
