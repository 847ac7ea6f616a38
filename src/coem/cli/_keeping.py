"""The state that a verb keeps of its fits: where it is, and how to go on from it."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from coem.cli._process import GO_ON, stopping_after_rounds
from coem.cli._talk import Talk

HIDDEN = "coem-checkpoint"  # how the name of the folder beside the results ends


def state_of(options: dict[str, Any], target: Path | None) -> Path | None:
    """Return the folder of the state, or None if none is to be kept; `target` gets the results."""
    if options.get("checkpoint") is not None:
        return Path(options["checkpoint"])
    if target is None or not options.get("resume"):
        return None
    from coem.stored import stem_of

    return target.parent / f".{stem_of(target.name)}.{HIDDEN}"


@contextmanager
def keeping(folder: Path | None, talk: Talk, *, goes_on: bool = True) -> Iterator[Any]:
    """Give the place for the state of the fits, or None; it is removed when all is written.

    `goes_on` says whether fits are to go on from a state that is there.
    """
    if folder is None:
        yield None
        return
    from coem.checks import check_folder
    from coem.io.kept import Kept, has_state, kept_fits

    check_folder("checkpoint", folder)
    found = has_state(folder)
    kept = kept_fits(folder, {}, [])
    assert isinstance(kept, Kept)
    if found and goes_on:
        talk.note(f"going on from the state in {folder}")
    try:
        with kept, stopping_after_rounds(_waits):
            yield kept.part("recipe")
    except BaseException as error:
        if not has_state(folder):
            kept.clear()
        elif isinstance(error, KeyboardInterrupt | OSError | MemoryError):
            _tell(folder)
        raise
    kept.clear()


def _waits() -> None:
    """Say that the program goes on to the end of the round."""
    click.echo("coem: stopping after this round; once more stops at once", err=True)


def _tell(folder: Path) -> None:
    """Leave word of how to go on."""
    context = click.get_current_context(silent=True)
    if context is not None:
        command = shlex.join(["coem", *sys.argv[1:]])
        context.find_root().meta[GO_ON] = (
            f"the state of the fit is kept in {folder}, and the same command goes on from it: "
            f"{command}"
        )
