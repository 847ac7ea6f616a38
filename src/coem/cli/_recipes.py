"""From options to a recipe, and from its result to a folder."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coem.cli._keeping import keeping, state_of
from coem.cli._process import will_write
from coem.cli._program import NOT_CONVERGED
from coem.cli._talk import Talk
from coem.recipes.names import check_kept
from coem.recipes.record import NOT_FULL, write_run
from coem.recipes.run_file import FILES, REPORT, RUN

# Options that are no matter of what is found.
OWN = {"source", "out", "force", "form", "no_report", "full", "safe_csv"}
OWN |= {"strict", "as_json", "quiet", "checkpoint", "resume", "stream", "batch"}


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a recipe."""
    return {name: value for name, value in options.items() if name not in OWN}


def run(
    recipe: Callable[..., Any],
    options: dict[str, Any],
    talk: Talk,
    printed: Callable[[Any], str],
) -> Any:
    """Call a recipe, write the folder, print what was found, and return it."""
    if options.get("full"):
        _check_full(options["source"])
    state = state_of(options, place(options))
    with keeping(state, talk) as part, _new_run(options) as folder:
        given = {**arguments(options), "checkpoint": part}
        result = recipe(options["source"], **given, listener=talk)
        pages = {"report": not options["no_report"], "full": options.get("full", False)}
        tables = {"format": options["form"], "safe_csv": options["safe_csv"]}
        found = write_run(folder, result, **tables, **pages)
    talk.formulas(found)
    talk.result(printed(result), {"folder": str(place(options)), **result.figures})
    _finish(options, talk, result)
    return result


def _check_full(source: str) -> None:
    """Refuse, before any work, to put more documents on a page than fit in memory."""
    from coem.corpus import Corpus
    from coem.recipes.corpora import goes_in_parts
    from coem.stored import is_corpus

    if is_corpus(source) and goes_in_parts(Corpus(source)):
        raise ValueError(NOT_FULL)


def place(options: dict[str, Any]) -> Path:
    """Return the folder that results go to."""
    if options["out"] is not None:
        return Path(options["out"])
    source = options["source"]
    name = "stdin" if source == "-" else os.path.basename(os.path.realpath(source))
    return Path(f"coem-{name.split('.')[0] or 'run'}")


@contextmanager
def _new_run(options: dict[str, Any]) -> Iterator[Path]:
    """Give the folder to write to, which gets its name when all is done.

    A place that cannot be written, or must not be, is refused here, before any work.
    """
    from coem.io import new_folder

    target = place(options)
    if options["force"]:
        check_kept(target, options.get("names_from"))
    if os.path.dirname(os.path.realpath(options["source"])) == os.path.realpath(target):
        raise ValueError(f"{options['source']} is in {target}; name another folder with --out")
    will_write(target)
    try:
        with new_folder(target, force=options["force"], mark=RUN, names=FILES) as folder:
            yield folder
    except FileExistsError as error:
        raise refused(error) from None


def refused(error: FileExistsError) -> ValueError:
    """Return what the program says of a place that must not be replaced."""
    return ValueError(str(error).replace("force its replacement", "replace it with --force"))


def _finish(options: dict[str, Any], talk: Talk, result: Any) -> None:
    """Say where the results are; with --strict, end with 3 if there was no convergence."""
    folder = place(options)
    talk.note(
        f"results in {folder}{'' if options['no_report'] else f', the page is {folder / REPORT}'}"
    )
    if options.get("strict") and not result.model.converged_:
        talk.note(f"no convergence after {options['max_iter']} rounds; raise --max-iter")
        sys.exit(NOT_CONVERGED)
