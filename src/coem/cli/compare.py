"""``coem compare``: runs beside each other."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import talk_options
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem compare groups-10 groups-20
  coem compare coem-posts other-folder --json
"""


@click.command("compare", epilog=EXAMPLE)
@click.argument(
    "runs",
    metavar="RUN RUN...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@talk_options
def command(runs: tuple[Path, ...], quiet: bool, as_json: bool) -> None:
    """Compare the groups of two or more runs on the rows that they share, and what they came to."""
    from coem.cli._run import read_run

    talk = Talk(quiet=quiet, as_json=as_json)
    if len(runs) < 2:
        raise click.UsageError("give at least two runs to compare")
    told = [read_run(run) for run in runs]
    if len({run["fingerprint"] for run in told}) > 1:
        talk.note("note: the runs are of different files; rows are matched by their ids")
    labels = [_labels(run) for run in runs]
    rows = [
        [
            str(run),
            t["verb"],
            t["rows"],
            t["result"].get("k"),
            t["result"].get("objective"),
            t["result"].get("nmi"),
            t["seconds"],
        ]
        for run, t in zip(runs, told, strict=True)
    ]
    header = ["run", "verb", "rows", "k", "objective", "nmi", "seconds"]
    pairs = [_pair(runs, labels, i, j) for i in range(len(runs)) for j in range(i + 1, len(runs))]
    lines = [
        table(header, rows),
        "",
        table(["run", "and", "shared rows", "adjusted Rand", "nmi"], pairs),
    ]
    data = {
        "runs": [dict(zip(header, row, strict=True)) for row in rows],
        "pairs": [
            dict(zip(("run", "and", "shared_rows", "adjusted_rand", "nmi"), p, strict=True))
            for p in pairs
        ],
    }
    talk.result("\n".join(lines), data)


def _labels(run: Path) -> dict[str, str]:
    """Return id -> label of a run."""
    from coem.cli._run import ASSIGNMENTS
    from coem.io.tables import read_table

    found = sorted(run.glob(f"{ASSIGNMENTS}.*"))
    if not found:
        raise ValueError(f"{run} has no {ASSIGNMENTS}: it is no folder of a run")
    data = read_table(str(found[0])).data
    ids, labels = data.column("id").to_pylist(), data.column("label").to_pylist()
    return {str(i): str(label) for i, label in zip(ids, labels, strict=True)}


def _pair(runs: tuple[Path, ...], labels: list[dict[str, str]], i: int, j: int) -> list[Any]:
    """Return how far two runs agree."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    shared = [name for name in labels[i] if name in labels[j]]
    if not shared:
        return [str(runs[i]), str(runs[j]), 0, None, None]
    a, b = [labels[i][name] for name in shared], [labels[j][name] for name in shared]
    scores = float(adjusted_rand_score(a, b)), float(normalized_mutual_info_score(a, b))
    return [str(runs[i]), str(runs[j]), len(shared), *scores]
