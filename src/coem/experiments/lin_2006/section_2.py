"""Lin (2006), Sec. 2: what two partitions tell together, as their meet and their join.

The two examples of the paper: neither partition has the right classes, but the meet of the first
two has them, and so has the join of the other two. Below them is the other of meet and join.
"""

from typing import Any

import numpy as np

from coem.experiments import Claim, Results, Table, Verdict
from coem.metrics import join, meet

NEEDS = ()
EXAMPLES: dict[str, dict[str, Any]] = {
    "meet": {
        "things": ["NYC", "Boston", "apple", "orange", "red", "blue"],
        "one": [0, 0, 0, 0, 1, 1],
        "two": [0, 0, 1, 1, 1, 1],
        "right": [0, 0, 1, 1, 2, 2],
    },
    "join": {
        "things": ["red", "green", "blue", "yellow", "pacific", "atlantic"],
        "one": [0, 0, 1, 1, 2, 2],
        "two": [0, 1, 0, 1, 2, 2],
        "right": [0, 0, 0, 0, 1, 1],
    },
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per example; both are quick."""
    return [{"example": example} for example in EXAMPLES]


def measure(example: str) -> dict[str, Any]:
    """Return the meet and the join of the two partitions."""
    given = EXAMPLES[example]
    return given | {op.__name__: op(given["one"], given["two"]) for op in (meet, join)}


def judge(results: Results) -> Verdict:
    """Ask whether the meet, or the join, has the right classes."""
    return Verdict.of(
        Claim(
            f"the {row['example']} has the {max(row['right']) + 1} right classes: "
            + "; ".join(_blocks(row, row["example"])),
            row[row["example"]] == row["right"],
        )
        for row in results
    )


def _blocks(row: Any, name: str) -> list[str]:
    """Return the clusters of a partition in words."""
    labels, things = np.array(row[name]), np.array(row["things"])
    return [", ".join(things[labels == block]) for block in np.unique(labels)]


def tabulate(results: Results) -> Table:
    """Return the clusters of all partitions."""
    kinds = ("one", "two", "meet", "join")
    rows = [[row["example"], *("; ".join(_blocks(row, kind)) for kind in kinds)] for row in results]
    return Table(["right is the", "partition 1", "partition 2", "meet", "join"], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw a line per partition; things of the same colour and number are together."""
    figure.set_size_inches(7, 2.2)
    names = {"one": "partition 1", "two": "partition 2", "meet": "meet", "join": "join"}
    for ax, row in zip(figure.subplots(1, 2), results, strict=True):
        table = np.array([row[name] for name in names])
        ax.imshow(table, cmap="Pastel1", vmin=0, vmax=8, aspect="auto")
        for (line, column), block in np.ndenumerate(table):
            ax.text(column, line, block + 1, ha="center", va="center")
        ax.set_title(f"the {row['example']} is right")
        ax.set_xticks(range(6), row["things"], rotation=30, ha="right")
        ax.set_yticks(range(4), names.values())
