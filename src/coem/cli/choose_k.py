"""``coem choose-k``: how many groups."""

from typing import Any

import click

from coem.cli._config import Numbers
from coem.cli._options import (
    config_option,
    length_option,
    machine_options,
    reading_options,
    rounds_option,
    source_argument,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem choose-k posts.csv
  coem choose-k posts.csv --text body --among 5,10,20,40
"""


@click.command("choose-k", epilog=EXAMPLE)
@source_argument
@view_options
@length_option
@click.option("--among", metavar="K,K,...", type=Numbers(), help="Numbers to try. [2 to 64]")
@rounds_option
@machine_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Say how many groups the documents have, and what speaks for other numbers."""
    from coem.cli import _job

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    documents = _job.read_documents(options, talk)
    reader = _job.text_views(options, documents)
    views = _job.to_views(reader, documents, talk)
    choice = choose(options, views, _job.families(reader), talk)
    header = list(choice.table[0])
    rows = [list(row.values()) for row in choice.table]
    text = f"{table(header, rows)}\n\n{choice.best} groups: {choice.reason}"
    data = {"k": choice.best, "reason": choice.reason, "table": [dict(r) for r in choice.table]}
    talk.result(text, data)


def choose(options: dict[str, Any], views: Any, family: Any, talk: Talk) -> Any:
    """Return the choice of the number of groups."""
    from coem import MixtureClusterer
    from coem.cli._job import threads
    from coem.cli.defaults import TOL
    from coem.selection import choose_k

    with talk.progress("numbers of groups", len(options.get("among") or ()) or None) as bar:
        return choose_k(
            MixtureClusterer(family=family, max_iter=options["max_iter"], tol=TOL),
            views,
            options.get("among"),
            n_jobs=threads(options),
            random_state=options["seed"],
            on_size=lambda size, held_out: bar.step(f"k = {size}: {held_out:.6g}"),
        )
