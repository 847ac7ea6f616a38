"""The folder of a stream: a journal of assignments, and the state that goes with it.

A batch is appended to the journal before anything else. Then the latest documents, the record of
the run and the model are written, each whole or not at all. The record knows two states, that of
the model which is there and that of the next one: the digest of the model file says which holds.
So exchanging the model is the one step that counts. What a killed process has appended to the
journal after it is cut off at the next start.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as parquet
from sklearn.pipeline import Pipeline

from coem import report as pages
from coem.io import new_file, new_folder
from coem.io.corpus_writer import writing_in
from coem.io.tables import table_as, write_table
from coem.io.whole import check_new_folder
from coem.kernels import instruction_set
from coem.models import load, save
from coem.recipes.matching import assignments
from coem.recipes.names import NAMES, check_kept, place_in, read_names
from coem.recipes.record import clusters, to_json, versions
from coem.recipes.run_file import (
    CLUSTERS,
    FILES,
    JOURNAL,
    MODEL,
    RECENT,
    REFERENCE,
    REPORT,
    RUN,
    SCHEMA,
    digest,
    read_run,
)
from coem.recipes.settings import recorded
from coem.recipes.stream_inputs import Inputs
from coem.recipes.stream_state import Batch, Counts, Groups

NEXT = "model.next"


class StreamFolder:
    """Where a stream is kept between batches, and between calls.

    It is a context, inside of which no other process can go on with the stream.

    Parameters
    ----------
    path : path
        The folder.
    given : dict
        The parameters of the call, to be compared with those of earlier calls.
    called : str
        What the documents are called on the page.
    report, safe_csv : bool
        Whether there is a page, and whether formulas in .csv files get an apostrophe.
    """

    def __init__(
        self, path: Path, given: dict[str, Any], called: str, *, report: bool, safe_csv: bool
    ) -> None:
        self.path, self.given, self.called = path, given, called
        self.written = {"format": "csv", "report": report, "full": False, "safe_csv": safe_csv}
        self._states: list[dict[str, Any]] = []
        self._length = 0  # bytes of the journal
        self._held = ExitStack()

    def __enter__(self) -> Self:
        self._hold()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.close()

    def _hold(self) -> None:
        """Lock the folder, if there is one."""
        self._held.close()
        folder = Path(os.path.realpath(self.path))
        if folder.is_dir():
            self._held.enter_context(writing_in(folder))

    # -- going on ------------------------------------------------------------------------------

    def resume(self) -> tuple[Groups, Inputs] | None:
        """Return the state of an earlier call, or None if there is none."""
        if not os.path.lexists(self.path / RUN):
            return None
        for name in (*FILES, NEXT):
            place_in(self.path, name)
        run_json = read_run(self.path)
        if run_json["verb"] != "stream":
            raise ValueError(
                f"{self.path} is a run of coem {run_json['verb']} and not a stream; name another "
                "folder, or replace it with --force"
            )
        self._check_same(run_json)
        if self.written["safe_csv"] and not run_json["written"].get("safe_csv", False):
            raise ValueError(
                f"safe_csv was not asked for when the stream {self.path} began, and rows that are "
                "written stay as they are; leave it out, or name another folder"
            )
        now = digest(self.path / MODEL)
        state = next((one for one in run_json["stream"]["states"] if one["model"] == now), None)
        if state is None:
            raise ValueError(
                f"{self.path / MODEL} is not the file that the stream wrote; put it back, or start "
                "anew with --force"
            )
        self._states, self._length = [state], state["length"]
        try:
            self.called, self.written = run_json["called"], self.written | run_json["written"]
            groups = self._groups(run_json, state)
            groups.check()
        except (KeyError, TypeError, OverflowError, pa.ArrowException) as error:
            raise ValueError(
                f"{self.path / RUN} does not fit the other files of the stream ({error}); put it "
                "back, or start anew with --force"
            ) from error
        self._cut()
        return groups, Inputs(deepcopy(state["inputs"]))

    def _check_same(self, run_json: dict[str, Any]) -> None:
        """Refuse to go on with other parameters than those of the first call."""
        before, now = run_json["stream"]["given"], recorded(self.given)
        for name in sorted(before.keys() | now.keys()):
            if name != "threads" and before.get(name) != now.get(name):
                raise ValueError(
                    f"{name} was {before.get(name)!r} when the stream {self.path} began, and is "
                    f"{now.get(name)!r} now; leave it as it was, or name another folder"
                )

    def _cut(self) -> None:
        """Cut off what was appended after the last batch that is complete."""
        path = place_in(self.path, JOURNAL)
        size = path.stat().st_size
        if size < self._length:
            raise ValueError(
                f"{path} has {size:,} bytes, and had {self._length:,}: it was cut or replaced; "
                "put it back, or start anew with --force"
            )
        if size > self._length:
            with path.open("r+b") as file:
                file.truncate(self._length)
                os.fsync(file.fileno())
        (self.path / NEXT).unlink(missing_ok=True)

    def _groups(self, run_json: dict[str, Any], state: dict[str, Any]) -> Groups:
        pipeline = load(self.path / MODEL)
        (_, reader), (_, model) = pipeline.steps
        window = place_in(self.path, RECENT.format(state["recent"]))
        tables = (parquet.read_table(path) for path in (self.path / REFERENCE, window))
        settings = run_json["arguments"] | {"threads": self.given["threads"]}
        column = run_json["stream"]["id"]
        counts = Counts(**deepcopy(state["counts"]))  # the state is written again, as it was
        return Groups(settings, reader, model, state["names"], column, *tables, counts)

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of the documents that were assigned, a part at a time."""
        for table in assignments(self.path, "id"):
            yield table.column("id").to_pylist()

    # -- batches -------------------------------------------------------------------------------

    def check_place(self, *, force: bool) -> None:
        """Refuse, before any work, a place where `begin` could not write."""
        if force:
            check_kept(self.path, None)
        check_new_folder(self.path, force=force, mark=RUN, names=FILES)

    def begin(self, groups: Groups, batch: Batch, inputs: Inputs, *, force: bool) -> None:
        """Write the folder after the first batch, whole or not at all."""
        self.check_place(force=force)  # a long time may have passed
        with new_folder(self.path, force=force, mark=RUN, names=FILES) as folder:
            rows = self._rows(batch)
            (folder / JOURNAL).write_bytes(rows)
            self._length = len(rows)
            parquet.write_table(groups.reference, folder / REFERENCE)
            self._save(folder, groups, inputs)
            os.replace(folder / NEXT, folder / MODEL)
            self._tell(folder, groups)
        self._hold()

    def commit(self, groups: Groups, batch: Batch, inputs: Inputs) -> None:
        """Append a batch, and keep the state after it."""
        rows = self._rows(batch).partition(b"\n")[2]
        with place_in(self.path, JOURNAL).open("r+b") as file:
            file.seek(self._length)
            file.write(rows)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self._length += len(rows)
        self._save(self.path, groups, inputs)
        os.replace(self.path / NEXT, self.path / MODEL)
        if batch.new:
            self.finish(groups)

    def finish(self, groups: Groups) -> None:
        """Write the page and the table of the groups, under the names that people gave."""
        self._tell(self.path, groups)

    def _rows(self, batch: Batch) -> bytes:
        """Return the rows of a batch as CSV, under a header.

        Names are in the table of the groups: they may change, and rows never do.
        """
        columns = vars(batch.assignments) | {"batch": [batch.number] * len(batch.ids)}
        del columns["name"]
        lists = {name: [*map(_plain, values)] for name, values in columns.items()}
        table = pa.table({name: pa.array(v, from_pandas=True) for name, v in lists.items()})
        return table_as(".csv", table, safe=self.written["safe_csv"])

    def _save(self, folder: Path, groups: Groups, inputs: Inputs) -> None:
        """Write the documents of the window, the model under another name, and the record."""
        number = groups.counts.n_batches % 2
        recent = place_in(folder, RECENT.format(number))
        with new_file(recent) as file:
            parquet.write_table(groups.window, file)
        pipeline = Pipeline([("views", groups.reader), ("model", groups.model)])
        fingerprint = digest(recent)
        following = place_in(folder, NEXT)
        save(pipeline, following, extra={"names": groups.names}, fingerprint=fingerprint)
        state = {
            "model": digest(following),
            "length": self._length,
            "recent": number,
            "names": groups.names,
            "counts": asdict(groups.counts),
            "inputs": deepcopy(inputs.seen),
        }
        self._states = [*self._states[-1:], state]
        with new_file(place_in(folder, RUN)) as file:
            run_json = self._record(groups, inputs, fingerprint, recent.name)
            file.write(to_json(run_json, indent=2).encode(errors="backslashreplace") + b"\n")

    def _record(
        self, groups: Groups, inputs: Inputs, fingerprint: str, recent: str
    ) -> dict[str, Any]:
        settings = recorded(groups.settings)
        return {
            "schema": SCHEMA,
            "verb": "stream",
            "arguments": settings,
            "written": self.written,
            "source": recent,  # beside this file
            "called": self.called,
            "fingerprint": fingerprint,
            "rows": groups.window.num_rows,
            "seed": settings["seed"],
            "versions": versions(settings),
            "instruction_set": instruction_set(),
            "seconds": 0,  # a stream has no end
            "result": {"k": groups.model.n_components, "documents": groups.counts.n_rows},
            "files": {MODEL: self._states[-1]["model"]},
            "stream": {
                "states": self._states,
                "given": recorded(self.given),
                "id": groups.id_column,
            },
        }

    def _tell(self, folder: Path, groups: Groups) -> None:
        names = place_in(folder, NAMES)
        naming = read_names(folder, groups.names).naming if names.is_file() else None
        story = groups.story(self.called, naming)
        table = stream_clusters(story, asdict(groups.counts))
        write_table(table, place_in(folder, CLUSTERS), safe=self.written["safe_csv"])
        if self.written["report"]:
            pages.write_report(story, place_in(folder, REPORT))


def stream_clusters(story: Any, counts: dict[str, Any]) -> Any:
    """Return the table of the groups of a stream: sizes are those of all documents so far."""
    table, k = clusters(story), len(counts["sizes"])
    labels = table.column("label").to_pylist()
    into = {
        group.label: group.label if group.gone is None else group.gone for group in story.groups
    }
    sizes = {label: 0 for label in labels}
    for group in range(k):
        sizes[into[group]] += counts["sizes"][group]
    table = table.drop_columns(["empty", "trust"])
    total = max(sum(counts["sizes"]), 1)
    more = {
        "size": [sizes[label] for label in labels],
        "share": [sizes[label] / total for label in labels],
        "recent": table.column("size").to_pylist(),
        "since": [counts["since"][label] for label in labels],
        "faded": [label in counts["faded"] for label in labels],
    }
    for name, values in more.items():
        place = table.column_names.index(name) if name in table.column_names else -1
        column = pa.array(values)
        table = (
            table.append_column(name, column)
            if place < 0
            else table.set_column(place, name, column)
        )
    return table


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
