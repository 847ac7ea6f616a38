"""``coem reproduce``: the experiments of the papers."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import talk_options
from coem.cli._process import STOPPED, will_write
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem reproduce --list
  coem reproduce bickel-scheffer-2005/figure-1 --quick
  coem reproduce bickel-scheffer-2005 --out results
"""


def _complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from coem.experiments.registry import names

    known = names()
    return [
        n for n in [*sorted({n.partition("/")[0] for n in known}), *known] if n.startswith(begun)
    ]


@click.command("reproduce", epilog=EXAMPLE)
@click.argument("wanted", metavar="[NAME]...", nargs=-1, shell_complete=_complete)
@click.option("--list", "listing", is_flag=True, help="List the experiments, and run none.")
@click.option("--quick", is_flag=True, help="A few small trials, to see that everything works.")
@click.option("--again", is_flag=True, help="Run all trials, also those that were run before.")
@click.option("--jobs", type=click.IntRange(1), help="Trials at a time. [all processors]")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default="coem-papers",
    show_default=True,
    help="Where the results go, and where earlier trials are found.",
)
@click.option(
    "--pages",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Run nothing: fill the marked places of DIR/*.md with the results in DIR/results.",
)
@talk_options
def command(wanted: tuple[str, ...], listing: bool, pages: Path | None, **options: Any) -> None:
    """Run the experiments of papers, and say whether what the papers state holds.

    NAME is an experiment or a paper; without one, all are run. Each experiment writes a table, a
    figure in the style of the paper, and a verdict. If a run is stopped, the next one continues
    where it was.
    """
    from coem.experiments.registry import find

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    if pages is not None:
        if wanted:
            raise click.UsageError("--pages runs no experiment: give it no NAME")
        _fill(pages, talk)
    elif listing:
        _list(find(wanted), talk)
    else:
        _run(find(wanted), options, talk)


def _fill(pages: Path, talk: Talk) -> None:
    from coem.experiments.pages import fill_pages

    will_write(*sorted(pages.glob("*.md")))
    changed = [page.name for page in fill_pages(pages)]
    talk.result(f"pages that changed: {', '.join(changed) or 'none'}", {"changed": changed})


def _list(names: list[str], talk: Talk) -> None:
    from coem.experiments.registry import load

    header = ["experiment", "trials", "needs", "title"]
    found = [load(name) for name in names]
    rows = [[e.name, len(e.trials(False)), ", ".join(e.needs), e.title] for e in found]
    talk.result(table(header, rows), [dict(zip(header, row, strict=True)) for row in rows])


def _run(names: list[str], options: dict[str, Any], talk: Talk) -> None:
    from coem.cli._program import ERROR
    from coem.experiments.registry import load
    from coem.experiments.running import run

    click.get_current_context().meta[STOPPED] = (
        "the trials that ended are kept; run it again to go on"
    )
    out, how = options["out"], {name: options[name] for name in ("quick", "again")}
    outcomes, skipped = [], {}
    for name in names:
        try:
            given = {"n_jobs": options["jobs"], "listener": talk}
            outcomes.append(run(load(name), out, **how, **given))
        except OSError as error:  # a data set that is not there, or damaged
            skipped[name] = str(error)
            talk.note(f"{name} was skipped: {error}")
    _tell(outcomes, skipped, out, talk)
    if skipped:
        raise click.exceptions.Exit(ERROR)


def _tell(outcomes: list[Any], skipped: dict[str, str], out: Path, talk: Talk) -> None:
    header = ["experiment", "verdict", "trials", "seconds"]
    rows = [[o.name, o.verdict.verdict, o.trials, round(o.seconds, 1)] for o in outcomes]
    rows += [[name, "skipped", None, None] for name in skipped]
    reasons = [f"\n{o.name}\n{o.verdict.reason}" for o in outcomes]
    minutes = sum(o.seconds for o in outcomes) / 60
    took = f"{minutes:.1f} minutes of processor time"
    lines = [table(header, rows), took, *reasons, f"\nTables, figures and verdicts: {out}"]
    verdicts = [
        dict(zip(header, row, strict=True)) | {"claims": [c._asdict() for c in o.verdict.claims]}
        for row, o in zip(rows, outcomes, strict=False)
    ]
    data = {"experiments": verdicts, "skipped": skipped, "out": str(out)}
    talk.result("\n".join(lines), data)
