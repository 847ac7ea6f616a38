"""The options that verbs share, and the file that can hold them."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Any], Any]

LENGTH = 150.0  # docs/design.md, "The program", has the measurements
FORMATS = ("csv", "jsonl", "parquet")


def options(*decorators: Decorator) -> Decorator:
    """Return one decorator for several, shown in this order."""
    return lambda function: reduce(lambda f, d: d(f), reversed(decorators), function)


def _read_config(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Take what a TOML file says as the defaults of this verb; the command line wins."""
    if value is None:
        return
    import tomllib

    try:
        settings = tomllib.loads(Path(value).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value} is no TOML: {error}") from None
    verb = context.info_name or ""
    plain = {key: item for key, item in settings.items() if not isinstance(item, dict)}
    own = settings.get(verb, {})
    if not isinstance(own, dict):
        raise click.BadParameter(f"{value}: {verb} must be a table, [{verb}]")
    known = {name for p in context.command.params for name in _names(p)}
    _check_known(plain, value)
    for key in own:
        if key not in known:
            raise click.BadParameter(f"{value}: [{verb}] has no option {key!r}")
    chosen = {key: item for key, item in {**plain, **own}.items() if key in known}
    context.default_map = {**(context.default_map or {}), **_by_name(context.command, chosen)}


def _check_known(plain: dict[str, Any], source: str) -> None:
    """Refuse what is an option of no verb at all."""
    from coem.cli._program import VERBS, main

    context = click.Context(main)
    verbs = [main.get_command(context, verb) for verb in VERBS]
    known = {name for verb in verbs if verb for p in verb.params for name in _names(p)}
    for key in plain:
        if key not in known:
            raise click.BadParameter(f"{source}: no verb has an option {key!r}")


def _names(parameter: click.Parameter) -> list[str]:
    """Return what an option is called in a file: its long names without dashes."""
    return [name.lstrip("-") for name in parameter.opts if name.startswith("-")]


def _by_name(command: click.Command, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return settings under the names of the parameters."""
    homes = {name: p for p in command.params for name in _names(p)}
    return {
        str(homes[key].name): [item] if homes[key].multiple and isinstance(item, str) else item
        for key, item in chosen.items()
    }


config_option = click.option(
    "--config",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="Options in a file: `k = 20`, or under [cluster] for one verb.",
)

source_argument = click.argument("source", metavar="FILE", type=click.Path(path_type=str))

reading_options = options(
    click.option("--encoding", help="Encoding of the file, if it is not UTF-8 or marked."),
    click.option("--delimiter", help="What parts the cells of a .csv file, if no comma."),
    click.option(
        "--skip-bad", is_flag=True, help="Leave out rows that cannot be read, and count them."
    ),
)

view_options = options(
    click.option(
        "--text", multiple=True, metavar="COLUMN", help="A text column; several make one view."
    ),
    click.option(
        "--view",
        multiple=True,
        metavar="NAME=COLUMN",
        help="A view of its own: title=title, both=title+body, links=refs:list, "
        "cited=refs:inbound, price=price:number, meaning=emb:vector or meaning=emb.npy.",
    ),
    click.option("--id", "id_column", metavar="COLUMN", help="What rows are called. [id]"),
    click.option(
        "--stop-words", type=click.Choice(["english", "none"]), default="english", show_default=True
    ),
    click.option(
        "--min-df",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Rows a word must be in.",
    ),
    click.option(
        "--max-df",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=True,
        help="Largest share of the rows.",
    ),
    click.option(
        "--max-features", type=click.IntRange(1), help="Most frequent words of a view to keep."
    ),
    click.option(
        "--ngrams",
        type=click.IntRange(1, 5),
        default=1,
        show_default=True,
        help="Longest run of words that counts as one.",
    ),
)

length_option = click.option(
    "--max-length",
    type=click.FloatRange(0),
    default=LENGTH,
    show_default=True,
    help="Words that a document counts at most: longer ones are scaled down. 0 counts all.",
)

size_option = click.option(
    "-k", "--k", type=click.IntRange(1), help="How many. If not given, it is chosen."
)

machine_options = options(
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
    click.option("--threads", type=click.IntRange(1), help="Threads. [all processors]"),
)

fitting_options = options(
    click.option(
        "--restarts",
        type=click.IntRange(2),
        default=10,
        show_default=True,
        help="Runs from other starts; the one that agrees most with the others is kept.",
    ),
    click.option(
        "--max-iter",
        type=click.IntRange(1),
        default=200,
        show_default=True,
        help="Most rounds of a run.",
    ),
    machine_options,
    click.option("--strict", is_flag=True, help="Exit with 3 if the best run did not converge."),
)

folder_options = options(
    click.option(
        "--out",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Where the results go. [coem-FILE]",
    ),
    click.option("--force", is_flag=True, help="Replace DIR if it is there."),
    click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="csv",
        show_default=True,
        help="Of the assignments.",
    ),
    click.option("--no-report", is_flag=True, help="Write no report.html."),
)

talk_options = options(
    click.option("--json", "as_json", is_flag=True, help="Results on stdout as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no notes."),
)
