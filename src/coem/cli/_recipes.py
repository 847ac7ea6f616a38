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
from coem.recipes.record import NOT_FULL, changed_files, files_read, write_run
from coem.recipes.result import job_of
from coem.recipes.run_file import FILES, REPORT, RUN, read_run

# Options that do not change the result.
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
    """Call a recipe, write the folder, print what was found, and return it.

    If an earlier call like this one was killed between its results and the end of its state, the
    state is removed, and nothing is returned.
    """
    if options.get("full"):
        _check_full(options["source"])
    state, target = state_of(options, place(options)), place(options)
    _check_apart(state, target)
    there = (target / RUN).is_file() and not options["force"]
    with keeping(state, talk, goes_on=not there) as part:
        run_json = _finished(recipe, options, part) if there and state is not None else None
        if run_json is None:
            with _new_run(options) as folder:
                given = {**arguments(options), "checkpoint": part}
                result = recipe(options["source"], **given, listener=talk)
                found = write_run(folder, result, **_written(options))
    if run_json is not None:
        talk.note(f"{target} is complete: there is nothing to resume")
        talk.result(str(target), {"folder": str(target), **run_json["result"]})
        _finish(options, talk, run_json["result"].get("converged", True))
        return None
    talk.formulas(found)
    talk.result(printed(result), {"folder": str(target), **result.figures})
    _finish(options, talk, getattr(result.model, "converged_", True))
    return result


def _written(options: dict[str, Any]) -> dict[str, Any]:
    """Return what the options say of the files to write."""
    pages = {"report": not options["no_report"], "full": options.get("full", False)}
    return {"format": options["form"], "safe_csv": options["safe_csv"], **pages}


def _finished(
    recipe: Callable[..., Any], options: dict[str, Any], part: Any
) -> dict[str, Any] | None:
    """Return the record of the results, if they are whole and those of this very call.

    A state that is there must be that of the call, too: it is going to be removed.
    """
    target = place(options)
    try:
        run_json = read_run(target)
        job = job_of(recipe, options["source"], **arguments(options), checkpoint=part)
        inputs = files_read(job.settings)
    except (ValueError, OSError):  # the folder is not the result of this call
        return None
    same = run_json.get("call") == job.call and run_json["written"] == _written(options)
    same = same and inputs.items() <= run_json.get("inputs", {}).items()
    return run_json if same and not changed_files(target, run_json) else None


def _check_full(source: str) -> None:
    """Refuse, before any work, to put more documents on a page than fit in memory."""
    from coem.corpus import Corpus
    from coem.recipes.corpora import goes_in_parts
    from coem.stored import is_corpus

    if is_corpus(source) and goes_in_parts(Corpus(source)):
        raise ValueError(NOT_FULL)


def _check_apart(state: Path | None, target: Path) -> None:
    """Refuse to keep the state in the folder of the results, which must be empty, or a run."""
    if state is None:
        return
    results = Path(os.path.realpath(target))
    if Path(os.path.realpath(state)).is_relative_to(results):
        raise ValueError(
            f"--checkpoint {state} is in the folder of the results, {target}; name a folder of its "
            "own"
        )


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


def _finish(options: dict[str, Any], talk: Talk, converged: bool) -> None:
    """Say where the results are; with --strict, end with 3 if there was no convergence."""
    folder = place(options)
    talk.note(
        f"results in {folder}{'' if options['no_report'] else f', the page is {folder / REPORT}'}"
    )
    if options.get("strict") and not converged:
        talk.note(f"no convergence after {options['max_iter']} rounds; raise --max-iter")
        sys.exit(NOT_CONVERGED)
