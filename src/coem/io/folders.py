"""A folder of documents: one row for each file."""

import codecs
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from coem.io.encodings import NoText, Text, decode
from coem.io.markup import markdown_text, page_text
from coem.io.rows import Bad, Parsed
from coem.io.sources import Content, TableError, read_file


def _page(content: str) -> str:
    return page_text(content, paragraphs=True)


WORDS: dict[str, Callable[[str], str]] = {
    ".txt": str,
    ".md": markdown_text,
    ".markdown": markdown_text,
    ".html": _page,
    ".htm": _page,
}
CHARSET = re.compile(rb"<meta[^>]{1,200}charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]+)", re.IGNORECASE)
PLACE = 4096  # bytes of a page that may say its encoding


def read_folder(
    path: Path, encoding: str | None, skip_bad: bool, max_line: int
) -> tuple[Parsed, str]:
    """Return a row for every text below a folder, in the order of names, and their digest."""
    folder = Folder(path, encoding, skip_bad, max_line)
    rows = list(folder)
    if not rows:
        raise TableError(folder.nothing())
    return Parsed(folder.table(rows), folder.bad, notes=folder.notes()), folder.fingerprint


Row = tuple[str, str, str | None]  # name, text, first sub-folder


class Folder:
    """The texts below a folder, one file after the other.

    Attributes
    ----------
    bad : list
        The files that were left out so far.
    """

    names = ("id", "text", "label")

    def __init__(self, path: Path, encoding: str | None, skip_bad: bool, max_line: int) -> None:
        self.path, self.bad = path, Bad()
        self._how = encoding, skip_bad, max_line
        self.files = _files(path)
        self._guessed: Counter[str] = Counter()
        self._digest = hashlib.sha256()

    def leave_out(self, known: Callable[[list[str]], Sequence[bool]]) -> int:
        """Leave out the files whose ids are known, and return how many they are."""
        places = known([as_text(file.relative_to(self.path)) for file in self.files])
        kept = [file for file, out in zip(self.files, places, strict=True) if not out]
        n_out, self.files = len(self.files) - len(kept), kept
        return n_out

    @property
    def fingerprint(self) -> str:
        """The digest of the files that were read so far."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Row]:
        """Return the rows, in the order of names."""
        encoding, skip_bad, max_line = self._how
        for number, file in enumerate(self.files, start=1):
            name = file.relative_to(self.path)
            content = read_file(file, ".txt", "", max_line)
            known = f"{name}\x00{content.fingerprint}\n"
            self._digest.update(known.encode("utf-8", "surrogateescape"))
            text = _decode(content, file.suffix.lower(), encoding)
            if text.flaw is not None:
                row, reason = text.flaw
                if not skip_bad:
                    raise TableError(f"{file}, row {row}: {reason}")
                self.bad.append((number, f"{name}: {reason}"))
                continue
            self._guessed.update([text.guessed] if text.guessed else [])
            shown, words = as_text(name), WORDS[file.suffix.lower()](text.data.decode())
            yield shown, words, shown.split("/")[0] if "/" in shown else None

    @classmethod
    def table(cls, rows: list[Row]) -> Any:
        """Return rows as a table."""
        columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
        return pa.table(columns, names=list(cls.names))

    def nothing(self) -> str:
        """Say that no file can be read."""
        return f"{self.path} has no text that can be read; {self.bad[0][1]}"

    def notes(self) -> list[str]:
        """Return what a reader has to know of how the files were read."""
        return [*_said_kinds(self.files), *_said(self._guessed)]


def _files(path: Path) -> list[Path]:
    """Return the texts below a folder."""
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in WORDS and file.is_file() and not _is_hidden(file, path)
    )
    if not files:
        raise TableError(
            f"{path} is a folder without .txt, .md or .html files; if it holds tables, name one "
            "of them"
        )
    return files


def _decode(content: Content, suffix: str, encoding: str | None) -> Text:
    """Return the text of a file; a web page may say in which encoding it is."""
    try:
        text = decode(content, encoding)
        named = CHARSET.search(content.data[:PLACE]) if WORDS[suffix] is _page else None
        if named is None or encoding is not None or (text.flaw is None and text.guessed is None):
            return text
        return _decode_as(content, named[1].decode()) or text
    except NoText as error:
        return Text(b"", error.flaw)


def _decode_as(content: Content, named: str) -> Text | None:
    """Return the text of a page in the encoding that it names, or None if there is no such."""
    try:
        return decode(content, codecs.lookup(named).name)
    except LookupError:
        return None
    except NoText:
        raise
    except TableError:  # Python has codecs that are not of text
        return None


def _said_kinds(files: list[Path]) -> list[str]:
    """Say how many files of which kind there are, if not all are plain texts."""
    kinds = Counter(file.suffix.lower() for file in files)
    if kinds.keys() == {".txt"}:
        return []
    which = ", ".join(f"{n:,} {kind}" for kind, n in kinds.most_common())
    return [f"the folder has {which}; tags and marks are removed"]


def _said(guessed: Counter[str]) -> list[str]:
    """Say which encodings were guessed."""
    which = ", ".join(
        f"{n:,} file{'s are' if n > 1 else ' is'} read as {name}"
        for name, n in guessed.most_common()
    )
    advice = "if letters look wrong, give the encoding (--encoding, encoding=)"
    return [f"not UTF-8: {which}; {advice}"] if guessed else []


def as_text(name: Path) -> str:
    """Return a name as text, with escapes for invalid bytes, so that different names differ."""
    return os.fsencode(name.as_posix()).decode("utf-8", "backslashreplace")


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
