"""What a recipe begins with, and what it gives."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from coem.checks import check_choice, check_folder
from coem.io import new_folder
from coem.io.kept import Kept, Part, part_of
from coem.recipes.corpora import adopt
from coem.recipes.dates import find_dates
from coem.recipes.defaults import FORMATS
from coem.recipes.documents import WHOLE, Documents, all_rows, read_documents
from coem.recipes.keeping import about_call, digest_of_call, kept_recipe
from coem.recipes.listener import Listener
from coem.recipes.names import check_kept
from coem.recipes.record import write_page, write_run
from coem.recipes.run_file import FILES, RUN
from coem.recipes.settings import READING, normal, on_page
from coem.recipes.views import named_columns, titles_and_texts
from coem.report import Naming, tell

NO_NAMES = "classes are called what their labels say; rename the labels in the table"
NO_MERGE = "topics of segments depend on their order and cannot be merged; ask for fewer with k"
# Parameters that do not change what is computed.
OWN = ("table", "listener", "names_from", "checkpoint")


@dataclass(frozen=True, eq=False)
class Result:
    """What a recipe found, equal bit by bit to what the program writes.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        The group, class or topic of every row.
    groups : list of coem.report.Group
        The groups with their names, sizes and words.
    assignments : coem.report.Assignments
        What the file of assignments says of the rows: ids, labels, probabilities, the second best.
        If the rows do not fit in memory, the ids are a sequence that reads them from the corpus.
    model, reader, pipeline : estimator, TextViews, Pipeline
        The fitted model, what makes views of a table, and both: ``pipeline.predict(new_table)``.
    views : Views or Corpus
        The views of the rows; None of paragraphs that do not fit in memory.
    figures : dict
        The numbers of the result, as run.json has them.
    story : coem.report.Story
        All that the page tells.
    notes : list of str
        The sentences that the program prints on the way: which columns were guessed, and why.
    settings : dict
        The parameters of the recipe.
    seconds : float
        The time that it took.
    """

    verb: str
    settings: dict[str, Any]
    documents: Documents
    pipeline: Pipeline
    views: Any
    story: Any
    figures: dict[str, Any]
    notes: list[str]
    seconds: float
    columns: dict[str, Any] = field(default_factory=dict)  # more of the rows, in assignments
    extra: dict[str, Any] = field(default_factory=dict)  # more for the model file
    tables: dict[str, Any] = field(default_factory=dict)  # more files: name -> table
    rows: Any = None  # the assignments of all rows, if the story is of a sample of them
    journal: bool = False  # whether assignments are those of a stream, and never written again
    page: Any = None  # what writes the page, if it is not that of all models
    naming: Naming | None = None  # names and merges, if there are any
    computed: "Result | None" = None  # what it was before anything was named
    retell: Callable[[Naming], dict[str, Any]] | None = None  # the fields under other names
    names_from: str | None = None  # the run whose names were taken over
    call: str | None = None  # a digest of what was asked for, and of which documents

    @property
    def labels(self) -> Any:
        """The group, class or topic of every row."""
        return self.assignments.label

    @property
    def groups(self) -> list[Any]:
        """The groups with their names, sizes and words."""
        return list(self.story.whole)

    @property
    def assignments(self) -> Any:
        """The rows as columns: ids, labels, probabilities, the second best."""
        return self.rows or self.story.assignments

    @property
    def reader(self) -> Any:
        """The `TextViews` that makes the views."""
        return self.pipeline.steps[0][1]

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.pipeline.steps[-1][1]

    def __repr__(self) -> str:
        """Return what it is of, in one line."""
        groups = f"{len(self.story.whole)} groups, {len(self.documents):,} rows"
        return f"<Result of {self.verb}: {groups}>"

    def name(self, names: Mapping[int, str]) -> "Result":
        """Return the result with names for groups, as ``coem name`` gives them.

        Parameters
        ----------
        names : dict of int to str
            Names by the numbers of the groups; an empty name takes a name back.
        """
        return self.renamed(self._naming().name(names))

    def merge(self, *groups: int, name: str | None = None) -> "Result":
        """Return the result with two or more groups as one, as ``coem merge`` makes it.

        The posteriors are added. The group has the smallest of the numbers.

        Parameters
        ----------
        *groups : int
            The numbers of the groups.
        name : str, optional
            What the group is called. Otherwise it has the names of its parts.
        """
        if self.verb == "segment":
            raise ValueError(NO_MERGE)
        return self.renamed(self._naming().merge(groups, name))

    def renamed(self, naming: Naming) -> "Result":
        """Return the result under a naming of its groups."""
        if self.retell is None:
            raise ValueError(NO_NAMES)
        first = self.computed or self
        if not naming:
            return first
        return replace(first, **self.retell(naming), naming=naming, computed=first)

    def _naming(self) -> Naming:
        own = tuple(group.name for group in self.story.groups)
        return self.naming or Naming(own)

    def report(self, path: str | os.PathLike[str], *, full: bool = False) -> Path:
        """Write the page about the result, one HTML file, and return its path.

        With `full` it has all documents with their whole texts, however large it becomes.
        """
        write_page(self, Path(path), full=full)
        return Path(path)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        format: str = "csv",
        report: bool = True,
        full: bool = False,
        safe_csv: bool = False,
    ) -> Path:
        """Write the folder that the program writes: model, tables, page, record of the run.

        Parameters
        ----------
        folder : path
            A folder that is not there, or is empty.
        force : bool, default=False
            Replace the folder of another run.
        format : {"csv", "jsonl", "parquet"}, default="csv"
            Of the assignments.
        report : bool, default=True
            Write report.html, too.
        full : bool, default=False
            All documents with their whole texts on the page, however large it becomes.
        safe_csv : bool, default=False
            Put an apostrophe before cells of .csv files that a spreadsheet would run as formulas.
        """
        check_choice("format", format, FORMATS)
        if force:
            check_kept(Path(folder), self.names_from)
        with new_folder(folder, force=force, mark=RUN, names=FILES) as place:
            about = {"format": format, "report": report, "full": full, "safe_csv": safe_csv}
            write_run(place, self, **about)
        return Path(folder)


@dataclass(frozen=True)
class Job:
    """One call of a recipe: its parameters, its documents and its listener."""

    verb: str
    settings: dict[str, Any]
    documents: Documents
    listener: Listener
    started: float
    dates: Any = None  # of the rows, if there is a column of dates
    kept: Kept | None = None  # the folder that keeps the fits, if there is one
    call: str | None = None  # as `Result` has it

    @contextmanager
    def fits(self) -> Iterator[None]:
        """Keep the fits inside, and remove what was kept when all of them are done."""
        with self.kept or nullcontext():
            yield
        if self.kept is not None:
            self.kept.clear()

    def part(self, name: str) -> Part | None:
        """Return the folder for one of the fits, or None if nothing is kept."""
        return part_of(self.kept, name)

    def tell(self, model: Any, views: Any, reader: Any, **more: Any) -> Any:
        """Return the story; `more` is for `coem.report.tell`."""
        about = model, views, reader, self.documents, self.settings
        return story_of(*about, dates=self.dates, **more)

    def result(self, model: Any, views: Any, reader: Any, story: Any, **more: Any) -> Result:
        """Return what was found; `more` are fields of `Result`."""
        _forget_times(model)
        return Result(
            verb=self.verb,
            settings=self.settings,
            documents=self.documents,
            pipeline=Pipeline([("views", reader), ("model", model)]),
            views=views,
            story=story,
            notes=self.listener.notes,
            seconds=time.time() - self.started,
            call=self.call,
            **more,
        )


def begin(verb: str, given: dict[str, Any]) -> Job:
    """Check the parameters of a recipe, and read its documents.

    `given` has all parameters by name: `table`, `listener`, and those that are recorded.
    """
    started = time.time()
    settings = {name: value for name, value in given.items() if name not in OWN}
    settings = normal(settings)
    check_folder("checkpoint", given.get("checkpoint"))
    listener = Listener() if given["listener"] is None else given["listener"]
    reading = {name: settings[name] for name in READING if name in settings}
    documents = read_documents(given["table"], listener, id=settings["id"], **reading)
    if documents.in_parts and verb in WHOLE:
        documents = all_rows(documents)
    if documents.corpus is not None and verb != "segment":
        adopt(settings, documents.corpus)
    dates = None
    if "date" in settings:
        settings["date"], dates = find_dates(settings["date"], documents, listener)
    about = about_call(verb, settings, documents)
    kept = kept_recipe(given.get("checkpoint"), about)
    call = digest_of_call(about, given.get("names_from"))
    return Job(verb, settings, documents, listener, started, dates, kept, call)


def job_of(recipe: Callable[..., Result], *given: Any, **named: Any) -> Job:
    """Return what a recipe would begin with if it were called like this."""
    call = signature(recipe).bind(*given, **named)
    call.apply_defaults()
    return begin(recipe.__name__, call.arguments)


def story_of(
    model: Any,
    views: Any,
    reader: Any,
    documents: Documents,
    settings: dict[str, Any],
    **more: Any,
) -> Any:
    """Return the story about a model and its rows; `more` is for `tell`."""
    titles, texts = titles_and_texts(documents, reader)
    return tell(
        model,
        views,
        feature_names=named_columns(reader),
        ids=documents.ids,
        texts=texts,
        titles=titles,
        settings=on_page(settings, documents.called),
        **more,
    )


def _forget_times(model: Any) -> None:
    """Take the times out of the records of a fit: the same call shall give the same files."""
    for name in ("history_", "runs_"):
        for record in getattr(model, name, ()):
            record.pop("seconds", None)
