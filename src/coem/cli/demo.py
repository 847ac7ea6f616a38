"""``coem demo``: the standard library of Python, grouped, on any machine."""

import json
from pathlib import Path
from typing import Any

import click

from coem.cli._options import talk_options
from coem.cli._process import will_write
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem demo
  coem demo --out somewhere
"""
FILE, GROUPS = "modules.jsonl", "groups"
VIEWS = ("words=words", "names=names", "imports=imports:list", "imported_by=imports:inbound")
FEW = 3  # labels a chapter


@click.command("demo", epilog=EXAMPLE)
@click.option("--out", type=click.Path(path_type=Path), default="coem-demo", show_default=True)
@talk_options
def command(out: Path, quiet: bool, as_json: bool) -> None:
    """Group the modules of Python's standard library, and find their chapters from a few labels.

    Every module is seen through four views: the words of its docstrings and comments, its
    identifiers, what it imports, and what imports it. The chapter of the manual that describes it
    is known, and only used to judge.
    """
    from coem.io.whole import is_stream
    from coem.recipes.labels import labels_of

    talk = Talk(quiet=quiet, as_json=as_json)
    file = out / FILE
    if is_stream(out) or out.is_file():
        raise ValueError(f"{out} is not a folder; choose another one with --out")
    if out.exists() and any(out.iterdir()) and not file.is_file():
        raise ValueError(f"{out} is there, and not from a demo; choose another folder with --out")
    will_write(file)
    talk.note("reading the standard library ...")
    written = _write_table(file)
    options = _options(file, len(set(written["chapter"])), out / GROUPS)
    found = _cluster(options, talk)
    chapters = labels_of(found.documents, options["label"]).astype(str)
    figures = {**_scores(found, chapters), **_few_labels(found.views, chapters, options["seed"])}
    talk.result(_printed(figures, options), figures)


def _write_table(file: Path) -> dict[str, list[Any]]:
    """Write the modules as a file that anyone can look at."""
    from coem.datasets import load_stdlib_modules
    from coem.io import new_file

    columns: dict[str, list[Any]] = load_stdlib_modules().table
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    file.parent.mkdir(parents=True, exist_ok=True)
    with new_file(file) as target:
        target.write("".join(f"{line}\n" for line in lines).encode())
    return columns


def _options(file: Path, k: int, folder: Path) -> dict[str, Any]:
    """Return the options of ``coem cluster`` that the demo stands for."""
    from coem.cli.cluster import command as cluster

    views = [part for view in VIEWS for part in ("--view", view)]
    arguments = [str(file), *views, "--id", "id", "--label", "chapter", "-k", str(k)]
    arguments += ["--restarts", "5", "--out", str(folder), "--force"]
    return dict(cluster.make_context("cluster", arguments).params)


def _cluster(options: dict[str, Any], talk: Talk) -> Any:
    """Return the groups by all views, written as `coem cluster` writes them."""
    from coem.cli import cluster

    talk.note(f"\n$ {shown(options)}")
    return cluster.run(options, Talk(quiet=talk.quiet, silent=talk.as_json))


def _scores(found: Any, chapters: Any) -> dict[str, Any]:
    """Return how good the groups are that know only the words, and those of all views."""
    from sklearn.metrics import normalized_mutual_info_score

    from coem.metrics import cluster_entropy
    from coem.recipes import cluster

    given = found.settings | {"views": {"words": found.settings["views"]["words"]}}
    labels = cluster(found.documents.path, **given, listener=Talk(quiet=True)).labels
    return {
        "modules": len(chapters),
        "chapters": len(set(chapters)),
        "words_entropy": cluster_entropy(chapters, labels),
        "words_nmi": float(normalized_mutual_info_score(chapters, labels)),
        "co_em_entropy": found.figures["entropy_bits"],
        "co_em_nmi": found.figures["nmi"],
    }


def _few_labels(views: Any, chapters: Any, seed: int) -> dict[str, Any]:
    """Return the accuracy on modules without a label, from a few labels a chapter."""
    import numpy as np

    from coem import MixtureClassifier
    from coem.recipes.defaults import TOL
    from coem.text import ScaleLength

    rng = np.random.default_rng(seed)
    few = np.full(len(chapters), "", dtype=object)
    for chapter in sorted(set(chapters)):
        rows = np.flatnonzero(chapters == chapter)
        few[rng.permutation(rows)[:FEW]] = chapter
    rest = few == ""
    found = {"labels": int((~rest).sum())}
    for name, data in (("words_accuracy", views[["words"]]), ("co_em_accuracy", views)):
        with Talk(quiet=True).noting_warnings():
            model = MixtureClassifier(tol=TOL).fit(ScaleLength().fit_transform(data), few)
        found[name] = float(
            (model.predict(ScaleLength().fit_transform(data)) == chapters)[rest].mean()
        )
    return found


def shown(options: dict[str, Any]) -> str:
    """Return the command that a run of the demo is."""
    views = " ".join(f"--view {view}" for view in VIEWS)
    return (
        f"coem cluster {options['source']} {views} --id id --label chapter -k {options['k']} "
        f"--restarts {options['restarts']} --out {options['out']} --force"
    )


def _printed(figures: dict[str, Any], options: dict[str, Any]) -> str:
    from coem.recipes.run_file import REPORT

    scores = [
        ["words alone", *(figures[f"words_{name}"] for name in ("entropy", "nmi", "accuracy"))],
        [
            "four views (co-EM)",
            *(figures[f"co_em_{name}"] for name in ("entropy", "nmi", "accuracy")),
        ],
    ]
    return "\n".join(
        [
            f"{figures['modules']} modules, {figures['chapters']} chapters of the manual. Entropy "
            "in bits and NMI of groups",
            f"found without labels; accuracy on the others from {figures['labels']} labels:",
            "",
            table(["", "entropy", "NMI", "accuracy"], scores),
            "",
            f"The page to look at: {Path(options['out']) / REPORT}",
        ]
    )
