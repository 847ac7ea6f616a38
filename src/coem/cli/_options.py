"""The options that verbs share, and the file that can hold them."""

import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from coem.cli._config import read_config
from coem.recipes import defaults
from coem.recipes.defaults import FORMATS

Decorator = Callable[[Any], Any]


def options(*decorators: Decorator) -> Decorator:
    """Return one decorator for several, shown in this order."""
    return lambda function: reduce(lambda f, d: d(f), reversed(decorators), function)


def _named(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    """Return views by name, as recipes take them."""
    views: dict[str, str] = {}
    for item in value:
        name, found, spec = item.partition("=")
        if not (name and found and spec):
            raise click.BadParameter(f"{item!r} is not NAME=COLUMN")
        if not name.isprintable():  # also bytes that are not UTF-8: no file can hold them
            raise click.BadParameter(f"the name {name!r} has characters that cannot be printed")
        if name in views:
            raise click.BadParameter(f"there are two views {name!r}")
        views[name] = spec
    return views


def _delimiter(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Return what parts cells; shells hand on a tab that is written as two characters."""
    from coem.io.delimited import check_delimiter

    value = "\t" if value == r"\t" else value
    try:
        check_delimiter(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _stop_words(context: click.Context, parameter: click.Parameter, value: str) -> Any:
    """Return names of lists as they are, and the words of a text file."""
    if not value.endswith(".txt"):
        return value
    try:
        return Path(value).read_text(encoding="utf-8").lower().split()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{value} cannot be read: {error}") from None


def needed_label(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """Return the column of the labels; you can leave it out only for a folder."""
    # Parameters that were given come first, so that the source is known.
    source = context.params.get("source")
    elsewhere = context.params.get("labels") is not None
    if value is None and source is not None and not os.path.isdir(source) and not elsewhere:
        raise click.MissingParameter(ctx=context, param=parameter)
    return value


config_option = click.option(
    "--config",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="Options in a file: `k = 20`, or under [cluster] for one verb.",
)


class RunPath(click.Path):
    """A run, a corpus or a file; what a killed process moved away is put back."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path."""
        if not os.fspath(value):  # it would be the folder one is in
            self.fail("the name is empty; name a file or a folder", param, ctx)
        if not os.path.exists(value):
            from coem.io.whole import recover

            recover(value)
            recover(os.path.dirname(os.path.abspath(value)))
        return super().convert(value, param, ctx)


RUN_FOLDER = RunPath(exists=True, file_okay=False, path_type=Path)
RUN_OR_MODEL = RunPath(exists=True, path_type=Path)

source_argument = click.argument("source", metavar="FILE", type=RunPath(path_type=str))

reading_options = options(
    click.option("--encoding", help="Encoding of the file. [UTF-8, what is marked, or guessed]"),
    click.option(
        "--delimiter",
        callback=_delimiter,
        help=r"Delimiter of a .csv file, if it is not a comma; \t is a tab.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of an .xlsx file. [the first with rows]"),
    click.option(
        "--skip-bad", is_flag=True, help="Leave out rows that cannot be read, and count them."
    ),
)

text_option = click.option(
    "--text", multiple=True, metavar="COLUMN", help="A text column; several make one view."
)

other_text_option = click.option(
    "--text",
    multiple=True,
    metavar="COLUMN",
    help="A text column, for a model of coem segment. [as when it was fitted]",
)

id_option = click.option(
    "--id", metavar="COLUMN", help="What rows are called; none numbers them. [id]"
)

word_options = options(
    click.option(
        "--stop-words",
        callback=_stop_words,
        metavar="LIST",
        default=defaults.STOP_WORDS,
        show_default=True,
        help="Words that do not count: a language (german, de, de+en), auto for those of the "
        "texts, corpus for words spread evenly over the rows, none, or words.txt.",
    ),
    click.option(
        "--min-df",
        type=click.IntRange(1),
        default=defaults.MIN_DF,
        show_default=True,
        help="Rows a word must be in.",
    ),
    click.option(
        "--max-df",
        type=click.FloatRange(0, 1, min_open=True),
        default=defaults.MAX_DF,
        show_default=True,
        help="Largest share of the rows.",
    ),
    click.option(
        "--max-features", type=click.IntRange(1), help="Most frequent words of a view to keep."
    ),
    click.option(
        "--ngrams",
        type=click.IntRange(1, 5),
        default=defaults.NGRAMS,
        show_default=True,
        help="Longest run of words that counts as one.",
    ),
)

view_options = options(
    text_option,
    click.option(
        "--view",
        "views",
        multiple=True,
        callback=_named,
        metavar="NAME=COLUMN",
        help="A view of its own: title=title, both=title+body, links=refs:list, "
        "cited=refs:inbound, maker=maker:category, price=price:number, meaning=body:embed, "
        "meaning=emb:vector or meaning=emb.npy.",
    ),
    id_option,
    word_options,
)

encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    help="What makes the vectors of views such as meaning=body:embed: the folder or the name of a "
    "model, also as model2vec:NAME or sentence-transformers:NAME.",
)


def no_encoder_option(reason: str) -> Any:
    """Return an option that other verbs have, and that this one refuses with the reason."""

    def refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            raise click.UsageError(f"coem {context.info_name} takes no --encoder: {reason}")

    return click.option("--encoder", hidden=True, expose_value=False, callback=refuse)


plain_option = click.option(
    "--plain", is_flag=True, help="FILE is one plain text, as a .txt file is in any case."
)

date_option = click.option(
    "--date",
    metavar="COLUMN",
    default="auto",
    show_default=True,
    help="Dates of the documents, for the page: a column, none, or auto, which looks for one. "
    "COLUMN:dmy and COLUMN:mdy say what comes first in 1/2/2025, the day or the month.",
)

evidence_option = click.option(
    "--evidence",
    type=click.Choice(["auto", "fixed"]),
    default="auto",
    show_default=True,
    help="auto leaves out views that share nothing with the others; in coem cluster it also finds "
    "how loudly each view speaks, and makes probabilities as sure as the other runs. fixed does "
    "none of it.",
)


class Directions(click.ParamType):
    """A number of latent directions, or the word auto or none."""

    name = "number"
    numbers = (int,)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the number."""
        if value in ("auto", "none"):
            return value
        try:
            return click.IntRange(1).convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not auto, none or a number of at least 1", param, ctx)


latent_option = click.option(
    "--latent",
    type=Directions(),
    default="auto",
    show_default=True,
    metavar="N",
    help="Latent directions of the texts, a further view: how many, none, or auto.",
)

length_option = click.option(
    "--max-length",
    type=click.FloatRange(0),
    default=defaults.LENGTH,
    show_default=True,
    help="Words that a document counts at most: longer ones are scaled down. 0 counts all.",
)


def _typed(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Return what was typed: a view in a file of options is one of the documents of the fit."""
    source = context.get_parameter_source(str(parameter.name))
    if source is click.core.ParameterSource.DEFAULT_MAP:
        return () if parameter.multiple else None
    return value


other_encoder_option = click.option(
    "--encoder",
    metavar="NAME",
    callback=_typed,
    help="The encoder of the fit, if its folder has moved or MODEL is a single file. [that of the "
    "run]",
)

trust_option = click.option(
    "--trust-patterns",
    is_flag=True,
    help="Take any token_pattern and ngram_range that MODEL has, even if they could take for ever.",
)

vectors_options = options(
    click.option(
        "--view",
        "vectors",
        multiple=True,
        metavar="NAME=FILE.npy",
        callback=_typed,
        help="The vectors of these documents, for a view that was a .npy file when it was fitted.",
    ),
    other_encoder_option,
)

size_option = click.option(
    "-k", "--k", type=click.IntRange(1), help="How many. If not given, it is chosen."
)

machine_options = options(
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True),
    click.option("--threads", type=click.IntRange(1), help="Threads. [all processors]"),
)

rounds_option = click.option(
    "--max-iter",
    type=click.IntRange(1),
    default=defaults.MAX_ITER,
    show_default=True,
    help="Most rounds of a run.",
)

fitting_options = options(
    click.option(
        "--restarts",
        type=click.IntRange(2),
        default=defaults.RESTARTS,
        show_default=True,
        help="Runs from other starts; the one that agrees most with the others is kept.",
    ),
    rounds_option,
    machine_options,
    click.option("--strict", is_flag=True, help="Exit with 3 if the best run did not converge."),
)

checkpoint_option = click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep the state of the fits in DIR, and go on from it if a run was stopped there.",
)

state_options = options(
    click.option(
        "--resume",
        is_flag=True,
        help="Keep the state of the fits beside the results until they are written, and go on from "
        "it if a run was stopped.",
    ),
    checkpoint_option,
)

safe_option = click.option(
    "--safe-csv",
    is_flag=True,
    help="Put an apostrophe before cells of .csv files that a spreadsheet would run as formulas.",
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
    safe_option,
    click.option("--no-report", is_flag=True, help="Write no report.html."),
)

names_option = click.option(
    "--names-from",
    metavar="RUN",
    type=RunPath(exists=True, file_okay=False),
    help="A run whose groups coem name or coem merge changed: the groups with most of the same "
    "documents have these names.",
)

full_option = click.option(
    "--full",
    is_flag=True,
    help="All documents with their whole texts on the page, however large it becomes. [at most "
    "8 MB, which says what is left out]",
)

talk_options = options(
    click.option("--json", "as_json", is_flag=True, help="Results on stdout as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, no notes."),
)
