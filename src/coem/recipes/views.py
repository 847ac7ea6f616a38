"""Which views are made of the documents, and with which families they are fitted."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from coem.families import Gaussian, Multinomial, as_family
from coem.phrases import enumerated, first_few
from coem.recipes.columns import tell_columns
from coem.recipes.corpora import corpus_reader, reader_of, rows_of
from coem.recipes.defaults import CORRELATED, SMOOTHING
from coem.recipes.documents import Documents, check_column
from coem.recipes.encoders import encoding, prepare, with_encoder
from coem.recipes.labels import label_column
from coem.recipes.listener import Listener
from coem.report.marks import TITLES
from coem.text import TextViews
from coem.text.guess import guess_views
from coem.text.languages import LANGUAGES
from coem.text.specs import COUNTS, KINDS, parse_views
from coem.text.stop_words import CORPUS, parts_of
from coem.views import Views


def text_views(settings: dict[str, Any], documents: Documents, **more: Any) -> TextViews:
    """Return the transformer that makes the views; `more` are parameters of its own."""
    if documents.corpus is not None:
        limit = {"max_length": settings.get("max_length") or None, "n_jobs": n_jobs(settings)}
        return corpus_reader(documents.corpus, **limit, **more)
    return TextViews(
        chosen_views(settings, documents.table.column_names) or None,
        id=documents.id_column,
        stop_words=settings["stop_words"],
        min_df=settings["min_df"],
        max_df=settings["max_df"],
        max_features=settings["max_features"],
        max_length=settings.get("max_length") or None,
        ngram_range=(1, settings["ngrams"]),
        n_jobs=n_jobs(settings),
        **more,
    )


def group_views(
    settings: dict[str, Any], documents: Documents, leave_out: str | None = None
) -> TextViews:
    """Return the transformer that makes the views of groups.

    By default latent directions are a further view, but not beside links or lists: they are made
    of the same words as the texts, and would outvote the links.
    """
    if settings["latent"] != "auto":
        return text_views(settings, documents, latent=latent_of(settings))
    table = documents.table
    chosen = chosen_views(settings, table.column_names)
    if documents.corpus is not None:
        specs = reader_of(documents.corpus).views_
    elif chosen:
        specs = parse_views(chosen)
    else:
        own = label_column(leave_out, table) if leave_out else None
        table = table.drop_columns([own]) if own in table.column_names else table
        specs = guess_views(table, documents.id_column)[0]
    links = any(spec["kind"] in ("list", "inbound") for spec in specs.values())
    return text_views(settings, documents, latent=None if links else "auto")


def latent_of(settings: dict[str, Any]) -> int | str | None:
    """Return the parameter `latent` of `TextViews`."""
    latent: int | str = settings["latent"]
    return None if latent == "none" else latent


def check_directions(reader: TextViews) -> None:
    """Refuse views of numbers, which have no direction."""
    for name, spec in reader.views_.items():
        if spec["kind"] == "number":
            raise ValueError(
                f"view {name!r} has numbers, which k-means on directions cannot compare; leave it "
                "out, or use the method 'em'"
            )


def chosen_views(settings: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    """Return view -> specification, as `TextViews` takes it, from `text` and `views`."""
    views: dict[str, Any] = {}
    texts = settings["text"]
    if texts:
        views["text"] = list(texts) if len(texts) > 1 else texts[0]
    for name, spec in settings["views"].items():
        joined = isinstance(spec, str) and not spec.endswith(".npy")
        views[name] = _columns(spec, columns) if joined else spec
    return with_encoder(views, settings.get("encoder"))


def _columns(spec: str, known: list[str]) -> str | list[str]:
    """Return the columns of ``title+body`` or ``a+b:number``, where the kind is that of all."""
    if spec in known or spec.rpartition(":")[0] in known:
        return spec
    parts = spec.split("+")
    kinds = [part.rpartition(":")[2] for part in parts]
    if kinds[-1] in KINDS:
        pairs = zip(parts, kinds, strict=True)
        parts = [part if kind in KINDS else f"{part}:{kinds[-1]}" for part, kind in pairs]
    return parts if len(parts) > 1 else parts[0]


def n_jobs(settings: dict[str, Any]) -> int:
    """Return the number of threads: what was asked for, or all processors."""
    return settings.get("threads") or -1


def to_views(
    reader: TextViews,
    documents: Documents,
    settings: dict[str, Any],
    listener: Listener,
    *,
    label: str | None = None,
) -> Any:
    """Return the views of the documents, and say what they are; labels are not guessed a view."""
    table = documents.table
    if label:
        label = label_column(label, table)
        check_column(table.column_names, documents.source, label, "labels")
        table = table.drop_columns([label])
    prepare(reader, listener)
    with listener.noting_warnings(), encoding(reader, len(documents), listener):
        if documents.corpus is None:
            views = reader.fit_transform(table)
        else:
            about = documents.corpus, reader, listener, documents.rows
            views = rows_of(*about, in_parts=documents.in_parts)
    if isinstance(views, Views):  # those of a corpus are looked at when a model is fitted
        for name, family in _dense(reader).items():
            as_family(family).check(views[name], name)  # while all are here: a fit may see a part
    tell_columns(reader, documents, listener, label=label, date=settings.get("date"))
    widths = dict(zip(views.names, views.widths, strict=True))
    sizes = first_few(f"{name} ({n:,} column{'s' * (n != 1)})" for name, n in widths.items())
    words = said_stop_words(reader, settings)
    listener.note(f"{len(documents):,} rows; views: {sizes}{words}")
    if all(spec["kind"] == "embed" for spec in reader.views_.values()):
        listener.note(
            "sentence vectors have no words to name groups by; text='COLUMN' adds a view of words"
        )
    empty = sum(int((~_filled(reader, part)).sum()) for part in _parts(views))
    if empty:
        rows = "row is" if empty == 1 else "rows are"
        listener.note(
            f"{empty:,} {rows} empty in every view: nothing is known of where they belong"
        )
    return views


def said_stop_words(reader: TextViews, settings: dict[str, Any]) -> str:
    """Return a text about the stop words, and put the lists that were found into the settings.

    In place of "auto" are the lists that it chose, so that the run can be repeated with them.
    """
    if not reader.stop_lists_:
        n_words = len(settings["stop_words"])
        return f"; stop words: {n_words:,} of your own" if reader.stop_words_ else ""
    settings["stop_words"] = reader.name_stop_words().stop_words
    found = parts_of(settings["stop_words"])
    return f"; stop words: {enumerated(list(map(_said_list, found))) or 'none'}"


def _said_list(part: str) -> str:
    """Return what people call a list of stop words."""
    return "those spread evenly over the rows" if part == CORPUS else LANGUAGES[part].title()


def _parts(views: Any) -> Iterator[Views]:
    """Yield all rows, or those of a corpus a shard at a time; without what is made when read."""
    if isinstance(views, Views):
        yield views
        return
    stored = getattr(views, "base", views)
    yield from (shard.read() for shard in stored.shards)


def _filled(reader: TextViews, views: Views) -> Any:
    """Return which rows have content in any view; the number 0 is content."""
    filled = ~views.empty
    for v, name in enumerate(views.names):
        if reader.views_[name]["kind"] == "number":
            filled[:, v] = ~np.isnan(views[name]).all(axis=1)
    return filled.any(axis=1)


def families(reader: TextViews) -> dict[str, Any]:
    """Return the families of the views: numbers are Gaussian, and vectors are directions.

    Where long documents were shortened the pseudo-counts go down with them: they would drown a
    small collection otherwise.
    """
    shortened = {name: Multinomial(alpha=kept) for name, kept in reader.kept_.items()}
    return dict.fromkeys(reader.views_, "auto") | _dense(reader) | shortened


def class_families(reader: TextViews, views: Any) -> dict[str, Any]:
    """Return the families of the views of a classifier.

    Pseudo-counts are in proportion to the counts of a row: one pseudo-count per word would drown
    short texts, and few labels.
    """
    names = [name for name, spec in reader.views_.items() if spec["kind"] in COUNTS]
    alphas = {name: min(1.0, _mean_count(views[[name]]) / SMOOTHING) for name in names}
    counts = {name: Multinomial(alpha=alpha) for name, alpha in alphas.items()}
    return dict.fromkeys(reader.views_, "auto") | _dense(reader) | counts


def _mean_count(view: Any) -> float:
    """Return the mean of the counts of rows that are not empty; 1 if all are."""
    totals = [
        np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
        for part in _parts(view)
        for _, matrix in part.items()
    ]
    every = np.concatenate(totals)
    return float(every[every > 0].mean()) if every.any() else 1.0


def _dense(reader: TextViews) -> dict[str, Any]:
    """Return the families of the dense views."""
    kinds = dict.fromkeys(("vector", "array", "embed", "latent"), "von_mises_fisher")
    found: dict[str, Any] = {}
    for name, spec in reader.views_.items():
        if spec["kind"] == "number":
            is_wide = len(reader.vocabulary_[name]) > CORRELATED
            found[name] = Gaussian("diag") if is_wide else "gaussian"
        elif spec["kind"] in kinds:
            found[name] = kinds[spec["kind"]]
    return found


def named_columns(reader: TextViews) -> dict[str, Any]:
    """Return the names of the columns by view.

    A single latent direction, or one number of a sentence vector, says nothing to people.
    """
    silent, names = ("latent", "embed"), reader.vocabulary_.items()
    return {view: words for view, words in names if reader.views_[view]["kind"] not in silent}


def n_filled(views: Any) -> int:
    """Return how many rows are not empty in every view."""
    return sum(int((~part.empty.all(axis=1)).sum()) for part in _parts(views))


def check_size(k: int, views: Any) -> None:
    """Refuse more groups than there are rows with anything in them."""
    filled = n_filled(views)
    if k > filled:
        raise ValueError(
            f"k={k} groups cannot be made of {filled} rows that are not empty; ask for fewer"
        )


def shown_texts(documents: Documents, reader: TextViews) -> list[str]:
    """Return what can be said of every row in one line: its title, then the other texts."""
    titles, texts = titles_and_texts(documents, reader)
    if titles is None:
        return texts
    return [f"{title}  {text}".strip() for title, text in zip(titles, texts, strict=True)]


def titles_and_texts(documents: Documents, reader: TextViews) -> tuple[list[str] | None, list[str]]:
    """Return the titles of the rows, if a column has them, and the texts of the other columns.

    A column that is called a title is one if there are other columns of text.
    """
    texts = [spec for spec in reader.views_.values() if spec["kind"] in ("text", "embed")]
    columns = list(dict.fromkeys(name for spec in texts for name in spec["columns"]))
    title = next((name for name in columns if name.lower() in TITLES), None)
    if title is None or len(columns) < 2:
        return None, _joined(documents, columns)
    others = [name for name in columns if name != title]
    return _joined(documents, [title]), _joined(documents, others)


def _joined(documents: Documents, columns: list[str]) -> list[str]:
    """Return the texts of some columns, one below the other."""
    if not columns:
        return [""] * len(documents)
    parts = [documents.table.column(name).to_pylist() for name in columns]
    return ["\n\n".join(str(p) for p in row if p) for row in zip(*parts, strict=True)]
