"""Models that were saved by a run, and the documents that they were fitted on."""

import os
from collections.abc import Container, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from coem.cli._talk import Talk
from coem.io import Absent
from coem.io.regular import no_file
from coem.phrases import first_few
from coem.recipes.documents import WHOLE, Documents, Renamed, fit_in_memory, read_documents
from coem.recipes.encoders import embeds_of, encoding, prepare
from coem.recipes.in_parts import shown_of
from coem.recipes.listener import Listener
from coem.recipes.names import names_of, read_names
from coem.recipes.paragraphs import NoText, Sequences, cut, read_how
from coem.recipes.record import as_table, changed_files, known_as
from coem.recipes.run_file import MODEL, RUN, check_model, digest, read_run
from coem.recipes.settings import READING
from coem.report import Naming


@dataclass(frozen=True)
class Saved:
    """A model file: what makes views, what assigns them, and what groups are called."""

    path: Path
    reader: Any
    model: Any
    naming: Naming  # what groups are called, and which of them count as one
    fingerprint: str | None
    paragraphs: dict[str, Any] | None = None  # how documents are cut, if they are

    @property
    def names(self) -> list[str]:
        """The names of all groups."""
        return self.naming.names

    def name_of(self, label: Any) -> str:
        """Return what a group is called; a class is called what it is."""
        is_number = isinstance(label, int | np.integer) and not hasattr(self.model, "classes_")
        return self.names[label] if is_number and self.names else str(label)


def load_model(path: Path, encoder: str | None = None, *, trust_patterns: bool = False) -> Saved:
    """Return the model of a file, or of the folder of a run.

    An encoder is loaded by the name that the user gives, or that the user's run has; a model file
    alone says what it was, and loads nothing. `trust_patterns` is that of `coem.load`.
    """
    import coem

    path = path / MODEL if path.is_dir() else path
    if not path.is_file():
        raise ValueError(no_file(path))
    in_run = (path.parent / RUN).is_file() and path.name == MODEL
    if in_run:
        check_model(path.parent, read_run(path.parent))
    fill = _encoder(path, encoder, in_run)
    pipeline = coem.load(path, fill=fill, trust_patterns=trust_patterns)
    info = coem.read_info(path)
    steps = getattr(pipeline, "steps", [])
    if len(steps) != 2 or not hasattr(steps[0][1], "vocabulary_"):
        raise ValueError(f"{path} holds no model that reads documents; use coem.load in Python")
    (_, reader), (_, model) = steps
    how = read_how(info.extra.get("paragraphs"))
    if hasattr(model, "transmat_") and how is None:
        raise ValueError(
            f"{path} holds a hidden Markov model that coem segment did not write; use coem.load in "
            "Python"
        )
    own = names_of(info, _n_groups(model))
    if encoder is not None and not embeds_of(reader):
        raise ValueError(f"{path} has no view that an encoder made; leave --encoder out")
    naming = read_names(path.parent, own).naming if in_run else Naming(tuple(own))
    return Saved(path, reader, model, naming, info.fingerprint, how)


def _n_groups(model: Any) -> int | None:
    """Return how many groups a model has, or None if it does not say so."""
    for name in ("classes_", "weights_"):
        if hasattr(model, name):
            return len(getattr(model, name))
    return getattr(model, "n_clusters", None)


def _encoder(path: Path, given: str | None, in_run: bool) -> dict[str, Any] | None:
    """Return what takes the place of the encoder: what the user names, or named for the run."""
    name = given or (read_run(path.parent)["arguments"].get("encoder") if in_run else None)
    if name is None:
        return None
    from coem.text import NamedEncoder

    try:
        return {"encoder": NamedEncoder(str(name))}
    except ValueError as error:
        hint = "" if given else "; if it has moved, name it with --encoder"
        raise ValueError(f"{error}{hint}") from None


def check_encoders(saved: Saved) -> None:
    """Refuse to go on without the encoder of a view, or with another one."""
    for view, embed in embeds_of(saved.reader).items():
        if isinstance(embed.encoder, Absent):
            raise ValueError(
                f"view {view!r} was made by the {embed.encoder.what}, and a model file loads none; "
                "name it with --encoder NAME"
            )
        embed.check(view)


def read_rows(
    saved: Saved, source: Any, options: dict[str, Any], talk: Talk, id: str | None = None
) -> Documents:
    """Return the rows that a model is asked about: documents, or their paragraphs.

    Documents of a corpus that is too large for memory are not cut: `parts_of` does it.
    """
    reading = {name: options[name] for name in READING if name in options}
    documents = read_documents(source, talk, **_ids(saved, id), **reading)
    return documents if documents.in_parts else as_cut(saved, documents, options, talk)


def as_cut(saved: Saved, documents: Documents, options: dict[str, Any], talk: Listener) -> Any:
    """Return documents, or their paragraphs if the model is one of coem segment."""
    columns, how = list(options.get("text") or ()), saved.paragraphs
    if how is None:
        return documents
    return cut(documents, {**how, "columns": columns or how["columns"]}, talk)


def parts_of(
    saved: Saved,
    documents: Documents,
    options: dict[str, Any],
    vectors: tuple[str, ...],
    talk: Talk | None = None,
) -> Iterator[tuple[Documents, Any]]:
    """Yield documents and their views: all of them, or those of a corpus a shard at a time."""
    if not documents.in_parts:
        yield documents, views_of(saved, documents, vectors, talk)
        return
    check_no_vectors(documents, vectors)
    none: NoText | None = None
    n_found = 0
    for lo, hi in pairwise(documents.corpus.bounds):
        try:
            part = as_cut(saved, documents.part(lo, hi), options, Listener())
        except NoText as error:  # a shard may have none, and has no paragraphs then
            none = error
            continue
        n_found += 1
        yield part, views_of(saved, part, vectors)
    if none is not None and not n_found:
        raise none


def only(
    saved: Saved, documents: Documents, wanted: str, options: dict[str, Any], talk: Talk
) -> Documents:
    """Return what is needed to explain a row: of a large corpus, the document alone."""
    if not documents.in_parts:
        return documents
    name = wanted.rpartition("#")[0] if saved.paragraphs is not None else wanted
    names = [name, wanted] if saved.paragraphs is not None else [wanted]
    found = next((documents.ids.index(name) for name in names if name in documents.ids), None)
    if found is None:
        what = "document" if saved.paragraphs is None else "paragraph"
        raise ValueError(f"{documents.source} has no {what} with the id {wanted!r}")
    return as_cut(saved, documents.take(np.array([found])), options, talk)


def check_text_option(saved: Saved, columns: tuple[str, ...]) -> None:
    """Refuse other columns of text if a model is not one of `coem segment`.

    A configuration file may have columns for other verbs.
    """
    source = click.get_current_context().get_parameter_source("text")
    given = columns and source is ParameterSource.COMMANDLINE
    if given and saved.paragraphs is None:
        raise ValueError(
            f"--text is for models of coem segment; {saved.path} reads the columns that it was "
            "fitted with: rename those of the file"
        )


def lengths_of(documents: Documents) -> Any:
    """Return the lengths of sequences, or None if rows are documents."""
    return documents.filled if isinstance(documents, Sequences) else None


def views_of(
    saved: Saved, documents: Documents, vectors: tuple[str, ...], talk: Talk | None = None
) -> Any:
    """Return the views of documents, with vectors of NAME=FILE.npy where a view was such a file.

    A file has a row for each document of the fit, so that other documents need one of their own.
    Texts are encoded with bars and the store of vectors if `talk` is given.
    """
    check_encoders(saved)
    reader = copy(saved.reader)
    files = [name for name, spec in reader.views_.items() if spec["kind"] == "array"]
    given = _read_vectors(saved, files, len(documents), vectors)
    for name in files:
        if name in given:
            continue
        if documents.fingerprint != saved.fingerprint:
            raise ValueError(
                f"view {name!r} came from a .npy file that has no rows for {documents.source}; "
                f"hand in theirs with --view {name}=FILE.npy"
            )
        if isinstance(reader.views[name], str):  # else the model holds the vectors
            _check_vectors(saved, name, reader.views[name])
    if given:
        reader.set_params(views={**reader.views, **given})
    if talk is None:
        return reader.transform(documents.table)
    prepare(reader, talk)
    with encoding(reader, len(documents), talk):
        return reader.transform(documents.table)


def shown_views(saved: Saved, documents: Documents, vectors: tuple[str, ...], talk: Talk) -> Any:
    """Return the views of the documents that a page shows; None if they must be cut first."""
    if documents.in_parts and saved.paragraphs is not None:
        return None
    if documents.in_parts:
        check_no_vectors(documents, vectors)
        documents, _ = shown_of(documents)
    return views_of(saved, documents, vectors, talk)


def check_no_vectors(documents: Documents, vectors: tuple[str, ...]) -> None:
    """Refuse files of vectors for documents that are read a part at a time."""
    if vectors:
        raise ValueError(
            f"{documents.source} is read a part at a time, and a .npy file has all rows; make the "
            "vectors a column, and ingest the documents again"
        )


def _check_vectors(saved: Saved, name: str, file: str) -> None:
    """Refuse a file of vectors that is gone, or other than it was at the fit."""
    if not os.path.exists(file):
        raise ValueError(
            f"view {name!r}: {file} is not there any more; say where it is with "
            f"--view {name}=FILE.npy"
        )
    run = saved.path.parent
    known = read_run(run).get("inputs", {}).get(name) if (run / RUN).is_file() else None
    if known not in (None, digest(Path(file))):
        raise ValueError(
            f"view {name!r}: {file} has changed since the fit; if it is what you want, hand it in "
            f"with --view {name}={file}"
        )


def tell_changes(run: Path, run_json: dict[str, Any], talk: Talk, names: Container[str]) -> None:
    """Say which of some files of a run are no longer what it wrote."""
    for name, what in changed_files(run, run_json).items():
        if name in names:
            talk.note(f"note: {run / name} {what}")


def changed(run_json: dict[str, Any], documents: Documents, vectors: tuple[str, ...]) -> list[str]:
    """Return what has changed since a run, in sentences."""
    found = []
    if documents.fingerprint != run_json["fingerprint"]:
        found.append(f"{documents.source} has other content than the run's documents")
    return found + [f"{item} is not what the run read" for item in vectors]


def _read_vectors(
    saved: Saved, files: list[str], n_rows: int, vectors: tuple[str, ...]
) -> dict[str, Any]:
    """Return the arrays that were handed in by view, each of the right shape."""
    from coem.text.dense import read_array

    given: dict[str, Any] = {}
    for item in vectors:
        name, found, path = item.partition("=")
        if not (name and found and path.endswith(".npy")):
            raise click.BadParameter(f"{item!r} is not NAME=FILE.npy", param_hint="--view")
        if name in given:
            raise click.BadParameter(f"there are two files for {name!r}", param_hint="--view")
        if name not in files:
            known = f"it has {first_few(files)}" if files else "it has none"
            raise ValueError(f"{saved.path} has no view {name!r} from a .npy file; {known}")
        given[name] = read_array(path, n_rows, name)
        columns, width = given[name].shape[1], len(saved.reader.vocabulary_[name])
        if columns != width:
            raise ValueError(
                f"view {name!r}: {path} has {columns} columns, but the model was fitted with "
                f"{width}"
            )
    return given


def assign(saved: Saved, views: Any, documents: Documents) -> Any:
    """Return the table of the groups or classes of rows."""
    from coem.report import assign

    about = saved.model, views, documents.ids, saved.names or None, lengths_of(documents)
    found = assign(*about, naming=saved.naming or None)
    if not isinstance(documents, Sequences):
        return as_table(found)
    return as_table(found, {**documents.columns(), "segment": documents.segment_of(found.label)})


def documents_of(saved: Saved, source: str | None, talk: Talk, **reading: Any) -> Documents:
    """Return the documents for a model: those of a file, or of its run."""
    run = saved.path.parent
    run_json = read_run(run) if (run / RUN).is_file() else None
    source = source or (run_json and _source_of(run, run_json))
    if source is None:
        raise ValueError(
            f"it is not known which documents {saved.path} was fitted on; name them with --file"
        )
    if not os.path.exists(source):
        raise ValueError(f"{source} is not there any more; name the documents with --file")
    options = {**(run_json["arguments"] if run_json else {})}
    options |= {name: value for name, value in reading.items() if value}
    documents = Renamed(source, *known_as(run_json)) if run_json else source
    found = read_rows(saved, documents, options, talk)
    # What is said of a run is about the rows that it was made of.
    whole = found.in_parts and run_json is not None and run_json["verb"] in WHOLE
    return found.loaded() if whole and fit_in_memory(found) else found


def _source_of(run: Path, run_json: dict[str, Any]) -> str | None:
    """Return where the documents of a run are; a stream keeps the latest ones beside its record."""
    if run_json["verb"] != "stream":
        found: str | None = run_json["source"]
        return found
    return str(run / os.path.basename(run_json["source"] or ""))


def _ids(saved: Saved, given: str | None) -> dict[str, Any]:
    """Return where the ids of documents are: as given, as in the fit, or anywhere.

    Only inbound links need the column of the fit: other documents may have no ids.
    """
    needed = any(spec["kind"] == "inbound" for spec in saved.reader.views_.values())
    if given is not None or needed:
        return {"id": given or saved.reader.id}
    return {"id_guess": saved.reader.id or "id"}
