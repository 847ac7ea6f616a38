"""``coem compare``: runs beside each other."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_FOLDER, talk_options
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
    type=RUN_FOLDER,
)
@talk_options
def command(runs: tuple[Path, ...], quiet: bool, as_json: bool) -> None:
    """Compare the groups of two or more runs on the rows that they share, and what they came to.

    A table says which group of a run became which of the next one: it recurs, or it was merged
    with others, split or scattered. Objectives are ranked, the largest first, among runs of the
    same documents, views, settings and number of groups. Those of other runs measure different
    things, and are not shown.
    """
    from coem.cli import _models
    from coem.recipes.matching import labels_by_id
    from coem.recipes.run_file import TABLES, read_run

    talk = Talk(quiet=quiet, as_json=as_json)
    if len(runs) < 2:
        raise click.UsageError("give at least two runs to compare")
    records = [read_run(run) for run in runs]
    if len({run["fingerprint"] for run in records}) > 1:
        talk.note("note: the runs are of different files; rows are matched by their ids")
    for run, record in zip(runs, records, strict=True):
        _models.tell_changes(run, record, talk, TABLES)
    labels = [labels_by_id(run) for run in runs]
    ranks, reason = _ranks(records)
    text, rows = _figures(runs, records, ranks)
    pairs = [_pair(runs, labels, i, j) for i in range(len(runs)) for j in range(i + 1, len(runs))]
    became = [_became(runs, labels, i) for i in range(len(runs) - 1)]
    lines = [
        text,
        *([reason] if reason else []),
        "",
        table(["run", "and", "shared rows", "adjusted Rand", "nmi"], pairs),
        *(f"\n{said}" for said, _ in became),
    ]
    data = {
        "runs": rows,
        "not_ranked": reason,
        "pairs": [
            dict(zip(("run", "and", "shared_rows", "adjusted_rand", "nmi"), p, strict=True))
            for p in pairs
        ],
        "became": [found for _, found in became],
    }
    talk.result("\n".join(lines), data)


def _figures(
    runs: tuple[Path, ...], records: list[dict[str, Any]], ranks: list[int | None]
) -> tuple[str, list[dict[str, Any]]]:
    """Return the figures of the runs, as a table and as data.

    An objective that no other run can be compared with would only mislead: it is not shown.
    """
    rows = [
        {
            "run": str(run),
            "verb": t["verb"],
            "rows": t["rows"],
            "k": t["result"].get("k"),
            "objective": None if rank is None else t["result"].get("objective"),
            "rank": rank,
            "nmi": t["result"].get("nmi"),
            "seconds": t["seconds"],
        }
        for run, t, rank in zip(runs, records, ranks, strict=True)
    ]
    shown = [
        name
        for name in rows[0]
        if name not in ("objective", "rank") or any(rank is not None for rank in ranks)
    ]
    return table(shown, [[row[name] for name in shown] for row in rows]), rows


# -- which group became which -------------------------------------------------------------------


def _became(runs: tuple[Path, ...], labels: list[Any], i: int) -> tuple[str, dict[str, Any]]:
    """Return which group of a run became which of the next one, as text and as data."""
    from coem.recipes.matching import fates, names_by_label, shared

    before, after = str(runs[i]), str(runs[i + 1])
    common = shared(labels[i], labels[i + 1])
    names, new_names = names_by_label(runs[i]), names_by_label(runs[i + 1])
    if not common.n_rows:
        said = f"{before} and {after} share no documents: their groups cannot be matched"
        return said, {"run": before, "next": after, "groups": [], "new": []}
    of_first, of_second = common.of_first, common.of_second
    groups = [
        {
            "group": common.first[g],
            "name": names.get(common.first[g], ""),
            "documents": int(common.counts[g].sum()),
            "fate": fate,
            "into": [
                {
                    "group": common.second[j],
                    "name": new_names.get(common.second[j], ""),
                    "shared": int(common.counts[g, j]),
                    "share": float(of_first[g, j]),
                    "share_of_it": float(of_second[g, j]),
                }
                for j in places
            ],
        }
        for g, (fate, places) in enumerate(fates(common))
    ]
    met = {part["group"] for group in groups for part in group["into"]}
    new = [label for label in common.second if label not in met]
    data = {"run": before, "next": after, "groups": groups, "new": new}
    return _said(data, new_names), data


def _said(data: dict[str, Any], new_names: dict[str, str]) -> str:
    """Return which group became which as a table; shares are of the documents of both runs."""
    rows: list[list[Any]] = []
    for group in data["groups"]:
        own = [group["group"], group["name"], group["documents"], group["fate"]]
        for part in group["into"] or [dict.fromkeys(PART)]:
            rows.append([*own, *(part[name] for name in PART)])
            own = ["", "", None, "and"]
    header = ["group", "name", "documents", "fate", "into", "name there"]
    lines = [
        f"From {data['run']} to {data['next']}:",
        table([*header, "shared", "of the group", "of the group there"], rows),
    ]
    if data["new"]:
        new = ", ".join(f"{label} ({new_names.get(label, '')})" for label in data["new"])
        lines.append(f"New in {data['next']}: {new}")
    return "\n".join(lines)


PART = ("group", "name", "shared", "share", "share_of_it")

# -- which objectives can be compared -----------------------------------------------------------

# Options that decide how a maximum is looked for, or what is written, and not what is maximised.
# An encoder and a file of labels are known by what is in them, wherever they are (`inputs`).
NO_MATTER = {
    *("seed", "restarts", "max_iter", "threads", "doctor", "label", "id", "k"),
    *("date", "names_from", "encoder", "labels"),
}


OPTIONS = {"views": "view"}  # settings whose option has another name


def _ranks(records: list[dict[str, Any]]) -> tuple[list[int | None], str | None]:
    """Return the rank of every run by its objective, and why some have no rank.

    An objective is a sum over the documents, under a model of a certain size. It says which of two
    runs is better only if both have the same documents, views, settings and number of groups.
    """
    objectives = [run["result"].get("objective") for run in records]
    kinds = [_maximised(run) for run in records]
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
        "things, and only those of runs that are alike in this are shown."
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


def _pair(runs: tuple[Path, ...], labels: list[Any], i: int, j: int) -> list[Any]:
    """Return how far two runs agree."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    a, b = labels[i].beside(labels[j])
    if not len(a):
        return [str(runs[i]), str(runs[j]), 0, None, None]
    scores = float(adjusted_rand_score(a, b)), float(normalized_mutual_info_score(a, b))
    return [str(runs[i]), str(runs[j]), len(a), *scores]
