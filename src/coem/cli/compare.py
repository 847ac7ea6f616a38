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
    """Compare the groups of two or more runs on the rows that they share, and what they came to.

    Objectives are ranked, the largest first, among runs of the same documents, views, settings
    and number of groups. Those of other runs measure different things.
    """
    from coem.recipes.record import read_run

    talk = Talk(quiet=quiet, as_json=as_json)
    if len(runs) < 2:
        raise click.UsageError("give at least two runs to compare")
    told = [read_run(run) for run in runs]
    if len({run["fingerprint"] for run in told}) > 1:
        talk.note("note: the runs are of different files; rows are matched by their ids")
    labels = [_labels(run) for run in runs]
    ranks, reason = _ranks(told)
    rows = [
        [
            str(run),
            t["verb"],
            t["rows"],
            t["result"].get("k"),
            t["result"].get("objective"),
            rank,
            t["result"].get("nmi"),
            t["seconds"],
        ]
        for run, t, rank in zip(runs, told, ranks, strict=True)
    ]
    header = ["run", "verb", "rows", "k", "objective", "rank", "nmi", "seconds"]
    pairs = [_pair(runs, labels, i, j) for i in range(len(runs)) for j in range(i + 1, len(runs))]
    lines = [
        table(header, rows),
        *([reason] if reason else []),
        "",
        table(["run", "and", "shared rows", "adjusted Rand", "nmi"], pairs),
    ]
    data = {
        "runs": [dict(zip(header, row, strict=True)) for row in rows],
        "not_ranked": reason,
        "pairs": [
            dict(zip(("run", "and", "shared_rows", "adjusted_rand", "nmi"), p, strict=True))
            for p in pairs
        ],
    }
    talk.result("\n".join(lines), data)


# -- which objectives can be compared -----------------------------------------------------------

# Options that decide how a maximum is looked for, or what is written, and not what is maximised.
NO_MATTER = {
    *("seed", "restarts", "max_iter", "threads", "doctor", "label", "id", "k"),
}


OPTIONS = {"views": "view"}  # settings whose option has another name


def _ranks(told: list[dict[str, Any]]) -> tuple[list[int | None], str | None]:
    """Return the rank of every run by its objective, and why some runs have none.

    An objective is a sum over the documents, under a model of a certain size. It says which of two
    runs is better only if both have the same documents, views, settings and number of groups.
    """
    objectives = [run["result"].get("objective") for run in told]
    kinds = [_maximised(run) for run in told]
    ranks: list[int | None] = []
    for kind, mine in zip(kinds, objectives, strict=True):
        alike = [o for other, o in zip(kinds, objectives, strict=True) if other == kind]
        known = mine is not None and len(alike) > 1
        ranks.append(1 + sum(o > mine for o in alike if o is not None) if known else None)
    differing = {
        name
        for kind in kinds
        for name in kind.keys() | kinds[0].keys()
        if kind.get(name) != kinds[0].get(name)
    }
    if not differing or all(o is None for o in objectives):
        return ranks, None
    return ranks, (
        f"The runs differ in {', '.join(sorted(differing))}: their objectives measure different "
        "things, and only those of runs that are alike in this are ranked."
    )


def _maximised(run: dict[str, Any]) -> dict[str, Any]:
    """Return what decides what the objective of a run measures, by names that people know."""
    given = run["arguments"]
    # Labels teach a classifier, and are left out of the views that are guessed.
    guessed = not (given.get("text") or given.get("views"))
    matters = {"label"} if run["verb"] == "classify" or guessed else set()
    settings = {
        OPTIONS.get(name, name.replace("_", "-")): value
        for name, value in given.items()
        if name not in NO_MATTER - matters
    }
    return settings | {
        "documents": (run["fingerprint"], run.get("bad_rows")),
        "vectors": run.get("inputs"),
        "verb": run["verb"],
        "k": run["result"].get("k"),
    }


def _labels(run: Path) -> dict[str, str]:
    """Return id -> label of a run."""
    from coem.io.tables import read_table
    from coem.recipes.record import ASSIGNMENTS

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
