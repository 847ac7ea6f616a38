"""``coem rerun``: a run once more, and whether it comes out the same."""

import tempfile
from inspect import signature
from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_FOLDER, other_encoder_option, talk_options
from coem.cli._process import will_write
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem rerun coem-posts
  coem rerun coem-posts --out again
  coem rerun coem-posts --file moved/posts.csv --encoder moved/model
"""


@click.command("rerun", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=RUN_FOLDER)
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Keep the new run.")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@other_encoder_option
@talk_options
def command(
    run: Path,
    out: Path | None,
    source: str | None,
    encoder: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Repeat a run with its arguments and its seed, and say if anything differs.

    Exits with 1 if it does.
    """
    from coem.recipes.run_file import read_run

    talk = Talk(quiet=quiet, as_json=as_json)
    run_json = read_run(run)
    if out is not None and out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ValueError(f"{out} is there already; name a folder that is not")
    if out is not None:
        will_write(out)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run" if out is None else out
        _repeat(run, run_json, folder, source, encoder)
        differing = [*changes(run, run_json), *differences(run_json, read_run(folder))]
    text = "\n".join(differing) if differing else "the same, to the last bit"
    talk.result(text, {"same": not differing, "differences": differing})
    if differing:
        raise click.exceptions.Exit(1)


def _repeat(
    run: Path, run_json: dict[str, Any], folder: Path, source: str | None, encoder: str | None
) -> None:
    """Call the recipe of a run again, and save what it finds in a folder, under its names."""
    from coem import recipes
    from coem.recipes.documents import Renamed
    from coem.recipes.record import known_as, naming_in
    from coem.recipes.result import OWN
    from coem.recipes.run_file import RUN

    if run_json["verb"] == "stream":
        raise ValueError(
            f"{run} is a stream, whose documents came in batches and are not kept; a new stream of "
            "the same documents in the same batches gives the same groups"
        )
    source = source or run_json["source"]
    if source is None:
        raise ValueError("the run read its documents from no file; name one with --file")
    if not Path(source).exists():
        raise ValueError(f"{source} is not there any more; name it with --file")
    for name, spec in run_json["arguments"].get("views", {}).items():
        if spec is None:
            raise ValueError(f"view {name!r} was an object in Python; repeat the run there")
    recipe = getattr(recipes, run_json["verb"])
    known = signature(recipe).parameters.keys() - set(OWN)
    for name in run_json["arguments"].keys() - known:
        raise ValueError(
            f"{run / RUN} has the argument {name!r:.80}, which coem {run_json['verb']} does not "
            "know; take it out"
        )
    documents = Renamed(source, *known_as(run_json))
    result = recipe(documents, **_arguments(run, run_json, encoder), listener=Talk(quiet=True))
    naming = naming_in(run)
    if naming and naming.own == tuple(group.name for group in result.groups):
        result = result.renamed(naming)
    result.save(folder, **run_json["written"])


def _arguments(run: Path, run_json: dict[str, Any], encoder: str | None) -> dict[str, Any]:
    """Return the arguments of a run, its encoder from another place if one is named."""
    arguments: dict[str, Any] = run_json["arguments"]
    if arguments.get("encoder") is None and encoder is None:
        return arguments
    from coem.cli import _models
    from coem.text import NamedEncoder

    saved = _models.load_model(run, encoder)  # which says what to do if the encoder is not there
    if encoder is None:
        return arguments
    _models.check_encoders(saved)
    return arguments | {"encoder": NamedEncoder(arguments["encoder"], encoder)}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return what differs between two records of runs, in sentences."""
    from coem.recipes.record import ENCODER, LABELS

    others = {LABELS: "the labels have", ENCODER: "the encoder has"}
    found = []
    if old["fingerprint"] != new["fingerprint"]:
        found.append("the documents have changed")
    for view, before in old.get("inputs", {}).items():
        if new["inputs"].get(view) != before:
            found.append(f"{others.get(view, f'the vectors of view {view!r} have')} changed")
    for name in sorted(old["versions"].keys() | new["versions"].keys()):
        before, after = old["versions"].get(name), new["versions"].get(name)
        if before != after:
            found.append(f"{name} is {after}, and was {before}")
    files = _differing_files(old["files"], new["files"])
    return [*found, *(_other_instructions(old, new) if files else []), *files]


def _differing_files(old: dict[str, str], new: dict[str, str]) -> list[str]:
    alone = [f"{name} is in one run only" for name in sorted(old.keys() ^ new.keys())]
    shared = sorted(old.keys() & new.keys())
    return alone + [f"{name} differs" for name in shared if old[name] != new[name]]


def _other_instructions(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return why files may differ if the runs had other instruction sets; older runs say none."""
    before, after = old.get("instruction_set"), new["instruction_set"]
    if before in (None, after):
        return []
    return [
        f"the instruction set is {after}, and was {before}: the bits are the same on one set only; "
        f"COEM_ISA={before} in the environment takes that one, if the processor has it"
    ]


def changes(run: Path, run_json: dict[str, Any]) -> list[str]:
    """Return which files of a run are no longer what it wrote, in sentences."""
    from coem.recipes.record import changed_files

    return [f"{run / name} {what}" for name, what in changed_files(run, run_json).items()]
