"""``coem explain``: why a document is where it is."""

from typing import Any

import click

from coem.cli._options import (
    RUN_OR_MODEL,
    config_option,
    other_text_option,
    reading_options,
    talk_options,
    trust_option,
    vectors_options,
)
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem explain coem-posts --id 17
  coem explain model.coem --id 17 --file new.csv
"""


@click.command("explain", epilog=EXAMPLE)
@click.argument("model", metavar="MODEL|RUN", type=RUN_OR_MODEL)
@click.option("--id", "wanted", required=True, help="The document.")
@click.option("--file", "source", metavar="FILE", help="Where it is. [the file of the run]")
@click.option("-n", "--words", type=click.IntRange(1), default=10, show_default=True)
@other_text_option
@vectors_options
@trust_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Show which words of a document speak for its group, and against the next best one.

    What the words and the sizes of the groups contribute adds up to the log odds. The probability
    is that of `coem predict`. Groups of coem cluster have less sure probabilities than these log
    odds say, and both are shown. Of a run of coem segment it explains a paragraph:
    --id book.txt#12.
    """
    from coem.cli import _models
    from coem.recipes.views import shown_texts
    from coem.report.texts import excerpt

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    trust = options["trust_patterns"]
    saved = _models.load_model(options["model"], options["encoder"], trust_patterns=trust)
    if not hasattr(saved.model, "explain"):
        kind = type(saved.model).__name__
        article = "an" if kind[0] in "AEIOU" else "a"
        raise ValueError(f"{saved.path} is {article} {kind}, which cannot explain rows")
    _models.check_text_option(saved, options["text"])
    reading = {
        name: options[name] for name in ("encoding", "delimiter", "sheet", "skip_bad", "text")
    }
    documents = _models.documents_of(saved, options["source"], talk, **reading)
    documents = _models.only(saved, documents, options["wanted"], options, talk)
    _check_id(documents, options["wanted"])
    row = documents.ids.index(options["wanted"])
    with talk.noting_warnings():
        views = _models.views_of(saved, documents, options["vectors"], talk)
    explanation, odds = _of_row(saved, views, _models.lengths_of(documents), row)
    _name_features(saved.reader, explanation, documents.table.slice(row, 1))
    text = excerpt(shown_texts(documents, saved.reader)[row], 200)
    talk.result(*_described(saved, explanation, odds, options["words"], text))


def _check_id(documents: Any, wanted: str) -> None:
    """Refuse an id that no row has; the rows of coem segment are paragraphs."""
    if wanted in documents.ids:
        return
    if wanted in getattr(documents, "names", ()):
        size = int(documents.lengths[documents.names.index(wanted)])
        last = f", and {wanted}#{size} the last" if size > 1 else ""
        advice = f"--id {wanted}#1 is its first{last}" if size else "it has none"
        raise ValueError(f"{wanted!r} is a document, and explain needs a paragraph: {advice}")
    what = "paragraph" if hasattr(documents, "names") else "document"
    raise ValueError(f"{documents.source} has no {what} with the id {wanted!r}")


def _of_row(saved: Any, views: Any, lengths: Any, row: int) -> tuple[Any, dict[str, Any]]:
    """Return the explanation of a row, and its odds; a paragraph needs its whole document."""
    model = saved.model
    if lengths is None:
        views = views[[row]]
        if saved.naming.merged:
            return _of_merged(model, views, saved.naming)
        return model.explain(views)[0], _odds(model, views)
    ends = lengths.cumsum()
    document = int(ends.searchsorted(row, side="right"))
    start = int(ends[document] - lengths[document])
    views = views[list(range(start, int(ends[document])))]
    explanation = model.explain(views)[row - start]
    first, second = sorted(model.predict_proba(views)[row - start].tolist(), reverse=True)[:2]
    odds = {"probability": first, "against_probability": second, "calibrated_log_odds": None}
    return explanation, odds


def _of_merged(model: Any, views: Any, naming: Any) -> tuple[Any, dict[str, Any]]:
    """Return the explanation of a row if groups are merged, and its odds.

    It compares the best parts of the two groups, whose probabilities are the sums of their parts.
    """
    import numpy as np
    from scipy.special import logsumexp

    groups = np.unique(naming.into)
    if len(groups) < 2:
        raise ValueError("all groups are merged into one, and there is none to compare it with")
    log_proba = model.predict_log_proba(views)[0]
    sums = np.array([logsumexp(log_proba[naming.parts(group)]) for group in groups])
    best, second = np.argsort(-sums, kind="stable")[:2]
    pair = [max(naming.parts(groups[g]), key=log_proba.__getitem__) for g in (best, second)]
    (explanation,) = model.explain_pairs(views, np.array([pair]))
    explanation.label, explanation.against = int(groups[best]), int(groups[second])
    return explanation, {
        "probability": float(np.exp(sums[best])),
        "against_probability": float(np.exp(sums[second])),
        "calibrated_log_odds": float(sums[best] - sums[second]),
    }


def _odds(model: Any, views: Any) -> dict[str, Any]:
    """Return what ``coem predict`` says of the row that is explained."""
    first, second = sorted(model.predict_proba(views)[0].tolist(), reverse=True)[:2]
    calibrated = None
    if hasattr(model, "calibration_"):
        # Of the logarithms, which tell classes apart where probabilities are 0 and 1.
        low, high = sorted(model.predict_log_proba(views)[0].tolist())[-2:]
        calibrated = high - low
    return {
        "probability": first,
        "against_probability": second,
        "calibrated_log_odds": calibrated,
    }


def _name_features(reader: Any, explanation: Any, row: Any) -> None:
    """Set the features of an explanation to words, for the views that have any.

    Latent directions are sums over words. Single numbers of a sentence vector mean nothing.
    """
    import numpy as np

    for view, part in explanation.views.items():
        kind = reader.views_[view]["kind"]
        if kind == "latent":
            shares = np.zeros(len(reader.vocabulary_[view]))
            shares[part.features] = part.contributions
            words, part.contributions, rest = reader.latent_words(row, shares)
            part.features, part.rest = words, part.rest + rest
        elif kind in ("vector", "array", "embed"):
            part.rest += float(np.sum(part.contributions))
            part.features, part.contributions = [], []
        else:
            part.features = [str(reader.vocabulary_[view][feature]) for feature in part.features]


def _whole(reader: Any, view: str) -> str:
    """Return what to call a view of which no single column speaks."""
    what = "numbers" if reader.views_[view]["kind"] == "number" else "vector"
    return f"(the {what} as a whole)"


def _parts(saved: Any, explanation: Any, n_words: int) -> list[list[Any]]:
    """Return what speaks for a group, view by view; it all adds up to the log odds."""
    rest = "size of the groups" if saved.paragraphs is None else "the other paragraphs"
    rows: list[list[Any]] = [["", rest, explanation.prior]]
    for view, part in explanation.views.items():
        order = sorted(range(len(part.features)), key=lambda i: -abs(part.contributions[i]))
        for i in order[:n_words]:
            rows.append([view, part.features[i], float(part.contributions[i])])
        left = sum(float(part.contributions[i]) for i in order[n_words:]) + part.rest
        n_others = len(order) - n_words
        if n_others > 0 or left or not order:
            rest = f"({n_others} others)" if n_others > 0 else "(the rest)"
            rows.append([view, rest if order else _whole(saved.reader, view), left])
    return rows


def _said_of_nothing(saved: Any) -> str:
    """Return the text for a row without words."""
    if saved.paragraphs is None:
        return "the document is empty in every view: only the size of the groups speaks"
    return "the paragraph has no word that the model knows: only the other paragraphs speak"


def _described(
    saved: Any, explanation: Any, odds: dict[str, Any], n_words: int, text: str
) -> tuple[str, dict[str, Any]]:
    """Return an explanation as text and as data."""
    name, rival = (saved.name_of(label) for label in (explanation.label, explanation.against))
    rows = _parts(saved, explanation, n_words)
    tempered = odds["calibrated_log_odds"]
    after = "" if tempered is None else f"; after calibration {tempered:.2f}"
    lines = [
        text,
        "",
        f"{name!r} against {rival!r}: log odds {explanation.log_odds:.2f}{after}, "
        f"probability {odds['probability']:.3f}",
        "",
        table(["view", "word", "speaks for it"], rows),
    ]
    if not explanation.views:
        said = _said_of_nothing(saved)
        lines[:1] = [text, said] if text else [said]  # it may consist of stop words
    data = {
        "label": explanation.label,
        "name": name,
        "against": explanation.against,
        "against_name": rival,
        "log_odds": explanation.log_odds,
        "empty": not explanation.views,
        **odds,
        "parts": [dict(zip(("view", "word", "contribution"), row, strict=True)) for row in rows],
    }
    return "\n".join(lines), data
