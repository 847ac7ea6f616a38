"""``coem cluster``: groups of documents."""

import time
from typing import Any

import click

from coem.cli._options import (
    config_option,
    fitting_options,
    folder_options,
    length_option,
    reading_options,
    size_option,
    source_argument,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem cluster posts.csv
  coem cluster posts.csv --text body -k 20 --out groups
  coem cluster papers.jsonl --view title=title --view links=refs:list -k 7
  coem cluster posts.csv --text body --view meaning=vectors.npy -k 20
"""


@click.command("cluster", epilog=EXAMPLE)
@source_argument
@view_options
@length_option
@size_option
@click.option(
    "--label",
    metavar="COLUMN",
    help="True classes, to judge the groups by; not learned from. [sub-folders, if there are]",
)
@fitting_options
@folder_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Find groups of documents, name them, and write a page about them.

    FILE is .csv, .tsv, .jsonl or .parquet (also .gz or .zst), a folder of .txt files, or - for
    stdin. Several views teach each other (co-EM). Without --text or --view columns are guessed;
    without -k the number of groups is chosen.
    """
    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    run(options, talk)


def run(options: dict[str, Any], talk: Talk) -> None:
    """Cluster the documents, write the folder, and print the groups."""
    from coem.cli import _job, _run

    started = time.time()
    with _run.new_run(options) as folder:
        documents = _job.read_documents(options, talk)
        options["label"] = _job.label_of(options, documents, talk)
        reader = _job.text_views(options, documents)
        views = _job.to_views(reader, documents, talk, leave_out=options["label"])
        k = options["k"] or _choose(options, views, _job.families(reader), talk)
        _job.check_size(k, views)
        found = fit_groups(options, views, k, _job.families(reader), talk)
        with talk.noting_warnings():
            outcome = _outcome(options, documents, reader, views, found, started)
        _run.write_run(folder, outcome)
    data = {"folder": str(_run.place(options)), **outcome.figures}
    talk.result(tell_groups(outcome.story, outcome.figures), data)
    _run.finish(talk, options, converged=found.estimator.converged_)


def _choose(options: dict[str, Any], views: Any, family: Any, talk: Talk) -> int:
    """Return the number of groups that `choose_k` recommends."""
    from coem.cli.choose_k import choose

    choice = choose(options, views, family, talk)
    talk.note(f"-k was not given: {choice.best} groups ({choice.reason})")
    return int(choice.best)


def fit_groups(options: dict[str, Any], views: Any, k: int, family: Any, talk: Talk) -> Any:
    """Fit several runs, and return the central one with the stability of its groups."""
    from coem import MixtureClusterer
    from coem.cli._job import threads
    from coem.cli.defaults import TOL
    from coem.selection import stability

    model = MixtureClusterer(k, family=family, max_iter=options["max_iter"], tol=TOL)
    with talk.fitting("runs", options["restarts"]) as bar, talk.noting_warnings():
        return stability(
            model,
            views,
            n_runs=options["restarts"],
            keep="central",
            random_state=options["seed"],
            n_jobs=threads(options),
            on_run=lambda fit: bar.step(),
        )


def _outcome(options, documents, reader, views, found, started):
    """Return everything that the folder of the run contains.

    The story reads the rows once; all files and figures use that reading.
    """
    from sklearn.pipeline import Pipeline

    from coem.cli import _job, _run

    labels = _job.labels_of(documents, options["label"]) if options["label"] else None
    model = found.estimator
    story = _run.story_of(model, views, reader, documents, options, labels=labels, stability=found)
    pipeline = Pipeline([("views", reader), ("model", model)])
    figures = _figures(story, found, labels)
    rows = {"trust": found.row_trust.round(6)}  # more digits would be noise
    return _run.Outcome("cluster", options, documents, pipeline, story, figures, started, rows)


def _figures(story, found, labels):
    """Return the numbers of run.json and --json."""
    from coem.cli._run import trust_of

    model = found.estimator
    figures = {
        "k": len(story.groups),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "agreement_of_runs": found.mean_agreement,
        "groups": [
            {"label": g.label, "name": g.name, "size": g.size, "trust": trust_of(g)}
            for g in story.groups
        ],
    }
    if labels is not None:
        figures |= _against_classes(labels, story.assignments.label)
    return figures


def _against_classes(labels, groups):
    """Return how well the groups match the known classes."""
    from sklearn.metrics import normalized_mutual_info_score

    from coem.metrics import cluster_entropy

    known = labels != ""
    if not known.any():
        return {}
    truth, groups = labels[known].astype(str), groups[known]
    return {
        "entropy_bits": cluster_entropy(truth, groups),
        "nmi": float(normalized_mutual_info_score(truth, groups)),
    }


def tell_groups(story: Any, figures: dict[str, Any]) -> str:
    """Return the text to print: a table of the groups, the largest first, and their scores."""
    from coem.cli._run import trust_of
    from coem.selection.trust import MEANING

    groups = sorted(story.groups, key=lambda group: -group.size)
    rows = [[g.label, g.size, trust_of(g), g.name] for g in groups if g.size > 0]
    lines = [table(["group", "size", "trust", "name"], rows), "", MEANING]
    if len(rows) < len(groups):
        lines.append(f"\n{len(groups) - len(rows)} of {len(groups)} groups ended without rows")
    if "nmi" in figures:
        lines.append(
            f"\nagainst the classes: entropy {figures['entropy_bits']:.2f} bits, "
            f"NMI {figures['nmi']:.2f}"
        )
    return "\n".join(lines)
