"""A folder to which files are added, as the source of a stream."""

from collections.abc import Callable, Sequence
from pathlib import Path

from coem.io.batches import TableSource
from coem.io.folders import Folder
from coem.io.tables import MAX_LINE


class FolderSource(TableSource):
    """The files of a folder whose names are new, each a document.

    Parameters
    ----------
    path : path
        The folder.
    known : callable
        Says which of some ids were read by an earlier call: those files are not opened.
    encoding, skip_bad : optional
        As in `coem.io.tables.read_table`.

    Attributes
    ----------
    n_known : int
        The number of files that were left out because an earlier call has read them.
    notes : list of str
        What a reader has to know of how the files were read.
    """

    def __init__(
        self,
        path: Path,
        known: Callable[[list[str]], Sequence[bool]],
        *,
        encoding: str | None = None,
        skip_bad: bool = False,
    ) -> None:
        folder = Folder(path, encoding, skip_bad, MAX_LINE)
        self.n_known = folder.leave_out(known)
        rows = list(folder)
        self.notes = folder.notes() if rows else []
        if folder.bad:
            n_bad, why = len(folder.bad), folder.bad[0][1]
            self.notes.append(
                f"files that cannot be read are left out: {n_bad:,}, the first is {why}"
            )
        super().__init__([folder.table(rows)] if rows else [], str(path))
