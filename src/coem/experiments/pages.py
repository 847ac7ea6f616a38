"""Fill the marked places of the pages about the papers with results.

A place begins with ``<!-- result figure-1 -->`` on a line of its own and ends with
``<!-- end -->``. What is between the two is written here, from the results of the experiment
``figure-1`` of the paper that the page is named after. A name with a slash is one of any paper.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any

from coem.experiments.results import ERROR
from coem.experiments.running import FIGURE, TABLE, VERDICT
from coem.io import new_file

PLACE = re.compile(r"^<!-- result (\S+) -->$.*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
RESULTS = "results"  # the folder of all results, beside the pages
MANY = 12  # rows of a table; a longer one is folded


def fill_pages(folder: Path) -> list[Path]:
    """Fill the pages of a folder from its folder `results`; return those that have changed."""
    changed = []
    for page in sorted(Path(folder).glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before, page)
        if after != before:
            with new_file(page) as file:
                file.write(after.encode())
            changed.append(page)
    return changed


def filled(text: str, page: Path) -> str:
    """Return the text of a page with its places filled."""
    return PLACE.sub(lambda place: _place(place[1], page), text)


def places(text: str, page: Path) -> list[str]:
    """Return the names of the experiments that a page has places for."""
    return [_name(place[1], page) for place in PLACE.finditer(text)]


def _name(written: str, page: Path) -> str:
    return written if "/" in written else f"{page.stem}/{written}"


def _place(written: str, page: Path) -> str:
    name = _name(written, page)
    folder = page.parent / RESULTS / name
    if not (folder / VERDICT).is_file():
        raise ValueError(f"{page.name} has a place for {name}, which has no results: run it first")
    told = json.loads((folder / VERDICT).read_text(encoding="utf-8"))
    if told["quick"]:
        raise ValueError(f"the results of {name} are those of a quick run; run it in full")
    claims = [
        f"- {'holds' if c['holds'] else 'does not hold'}: {c['text']}" for c in told["claims"]
    ]
    parts = [
        f"<!-- result {written} -->",
        f"{told['title']}. **{told['verdict'].capitalize()}** ({told['trials']} trials, "
        f"`coem reproduce {name}`):",
        "\n".join(claims),
        f"![{told['title']}]({RESULTS}/{name}/{FIGURE})",
        _table(folder / TABLE),
        "<!-- end -->",
    ]
    return "\n\n".join(parts)


def _table(path: Path) -> str:
    """Return a table as Markdown, means and their errors in one cell; a long one is folded."""
    with open(path, encoding="utf-8", newline="") as file:
        columns, *rows = list(csv.reader(file))
    shown = [i for i, name in enumerate(columns) if not name.endswith(ERROR)]
    lines = [_line([columns[i] for i in shown]), _line(["---"] * len(shown))]
    lines += [_line([_cell(columns, row, i) for i in shown]) for row in rows]
    table = "\n".join(lines)
    if len(rows) <= MANY:
        return table
    return f"<details><summary>The {len(rows)} rows of the table</summary>\n\n{table}\n\n</details>"


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(columns: list[str], row: list[str], i: int) -> str:
    has_error = columns[i + 1 : i + 2] == [f"{columns[i]}{ERROR}"]
    error = row[i + 1] if has_error else ""
    value = _shown(row[i])
    return f"{value} ± {_shown(error)}" if value and error else value


def _shown(text: str) -> str:
    """Return a number with three decimals, and anything else as it is."""
    return f"{float(text):.3f}" if re.fullmatch(r"-?\d*\.\d+(e-?\d+)?|-?\d+e-?\d+", text) else text
