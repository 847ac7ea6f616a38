"""``coem classify``: learn from a few labels, and predict the others."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from coem.cli._options import (
    config_option,
    date_option,
    encoder_option,
    evidence_option,
    folder_options,
    full_option,
    latent_option,
    machine_options,
    needed_label,
    reading_options,
    rounds_option,
    source_argument,
    state_options,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, in_options, table
from coem.recipes.defaults import CLASS_LENGTH, FOLDS, UNLABELED_WEIGHT

EXAMPLE = """\b
Examples:
  coem classify mail.csv --text body --label folder
  coem classify posts.jsonl --label topic --view title=title --view body=text --doctor
"""


class Weight(click.ParamType):
    """A number between 0 and 1, or the word auto."""

    name = "weight"
    numbers = (int, float)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the weight."""
        if value == "auto":
            return value
        try:
            return click.FloatRange(0, 1).convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not auto or a number from 0 to 1", param, ctx)


@click.command("classify", epilog=EXAMPLE)
@source_argument
@view_options
@encoder_option
@date_option
@latent_option
@evidence_option
@click.option(
    "--label",
    metavar="COLUMN",
    callback=needed_label,
    help="The classes; empty, NA, NaN, None, null, -1 or [] where unknown. A list allows several; "
    "COLUMN:list if it is text. [sub-folders, if FILE is a folder]",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Another file with the ids of rows and their labels.",
)
@click.option(
    "--multi", is_flag=True, help="Refuse rows with several labels, and say why. [one of them]"
)
@click.option(
    "--unlabeled-weight",
    type=Weight(),
    default=UNLABELED_WEIGHT,
    show_default=True,
    help="Weight of a row without a label, 0 to 1; auto finds it by held-out labels.",
)
@click.option(
    "--max-length",
    type=click.FloatRange(0),
    default=CLASS_LENGTH,
    show_default=True,
    help="Words that a document counts at most: longer ones are scaled down. 0 counts all.",
)
@click.option("--doctor", is_flag=True, help="Test if the unlabelled rows help, and act on it.")
@click.option("--folds", type=click.IntRange(2), default=FOLDS, show_default=True)
@rounds_option
@machine_options
@click.option("--strict", is_flag=True, help="Exit with 3 if there is no convergence.")
@folder_options
@state_options
@full_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Learn classes from rows with a label, and predict the classes of the other rows.

    Rows without a label help to learn (semi-supervised EM). A regression on the labelled rows
    helps too; labels that are held out decide how much each counts. Prints the number of rows per
    class, and the accuracy on held-out labels. In the assignments, the column label is what
    the model predicts for each row, and the column given is the label in the file.
    """
    from coem.cli import _recipes
    from coem.recipes import classify

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    _recipes.run(_in_options(classify), options, talk, _printed)


def _in_options(recipe: Callable[..., Any]) -> Callable[..., Any]:
    """Return the recipe with the advice of its doctor in terms of options."""

    @wraps(recipe)
    def advised(source: str, **given: Any) -> Any:
        result = recipe(source, **given)
        if "doctor" in result.figures:
            result.figures["doctor"] = in_options(result.figures["doctor"])
        return result

    return advised


def _printed(result: Any) -> str:
    """Return the text to print: a table of the classes, and the accuracy."""
    figures = result.figures
    rows = [[c["class"], c["labelled"], c["predicted"]] for c in figures["classes"]]
    empty = sum(c["empty"] for c in figures["classes"])
    lines = [
        table(["class", "labelled", "predicted"], rows),
        "",
        f"{figures['labelled']:,} rows had a label and taught, {figures['unlabelled']:,} were "
        f"predicted{f', {empty:,} of them empty' if empty else ''}",
    ]
    if figures["accuracy"] is None:
        lines.append("too few labels to hold some out, so that the accuracy is not known")
    else:
        lines.append(
            f"accuracy on held-out labels: {figures['accuracy']:.1%} "
            f"+- {figures['accuracy_error']:.1%} ({figures['folds']} folds)"
        )
    return "\n".join(lines)
