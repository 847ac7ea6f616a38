"""names.json: the names and merges that people gave to the groups of a run.

It lies beside the files of the run, which stay what the run computed: ``run.json`` has their
digests. Tables and pages that were written again with names have theirs in ``names.json``.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coem.io import new_file
from coem.io.loaded import is_texts
from coem.io.model_file import ModelInfo
from coem.io.whole import recover
from coem.report import Naming

NAMES = "names.json"
SCHEMA = 1
MOST = 1_000_000  # bytes that are read; a hundred thousand groups have shorter names


@dataclass(frozen=True)
class Names:
    """A naming, and the digests of the files that were written again with it.

    While they are, each of them may also be what it was `earlier`.
    """

    naming: Naming
    files: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, str] = field(default_factory=dict)


def names_of(info: ModelInfo, n_groups: int | None = None) -> list[str]:
    """Return what the groups of a model are called before any is named by hand, if it is known.

    Another user may have written the file: anything else than a text for each group is an error.
    """
    names = info.extra.get("names", [])
    if not isinstance(names, list) or not is_texts(names):
        raise ValueError(f"{info.path} does not have the names of its groups, but {names!r:.80}")
    if names and n_groups is not None and len(names) != n_groups:
        raise ValueError(f"{info.path} has {len(names):,} names for {n_groups:,} groups")
    return names


def read_names(folder: Path, own: list[str]) -> Names:
    """Return the names of a run; `own` are those that the model file has.

    Another user may have written the file, so any fault in it raises an error of one sentence.
    """
    path = folder / NAMES
    if not path.is_file():
        return Names(Naming(tuple(own)))
    if path.stat().st_size > MOST:
        raise ValueError(f"{path} is too large for names of groups; delete it")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return _checked(content, own)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}; mend it, or delete it") from None


def _checked(content: Any, own: list[str]) -> Names:
    """Return the names that a file has; raise if it has anything else."""
    kinds = {"schema": int, "names": dict, "merged": list, "files": dict}
    if not isinstance(content, dict) or {key: type(content.get(key)) for key in kinds} != kinds:
        raise ValueError("it does not have the names of a run")
    if content["schema"] > SCHEMA:
        raise ValueError(f"it was written by a newer coem; this one reads schema {SCHEMA}")
    earlier = content.get("earlier", {})
    for digests in (content["files"], earlier):
        if not isinstance(digests, dict) or not all(isinstance(t, str) for t in digests.values()):
            raise ValueError("a digest is a text")
    if not all(isinstance(parts, list) for parts in content["merged"]):
        raise ValueError("a merged group is a list of numbers")
    given = {_number(key): name for key, name in content["names"].items()}
    merged = tuple(sorted(tuple(sorted(parts)) for parts in content["merged"]))
    return Names(Naming(tuple(own), given, merged), content["files"], earlier)


def _number(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise ValueError(f"{key[:40]!r} is not the number of a group")
    return int(key)


def place_in(folder: Path, name: str) -> Path:
    """Return where a file of a run is written again; raise if that is not in the folder itself.

    Other users may have written the run, so links and FIFOs in it are refused.
    """
    path = folder / name
    if name != os.path.basename(name) or name in ("", ".", ".."):
        raise ValueError(f"{name!r:.80} is not the name of a file of a run")
    if path.is_symlink():
        raise ValueError(
            f"{path} is a link, and what it leads to would be replaced; put the file itself there, "
            "or remove the link"
        )
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file; replace it with one, or remove it")
    return path


def write_names(folder: Path, names: Names) -> None:
    """Write the names of a run; remove the file if there are no names and no files with names."""
    path = place_in(folder, NAMES)
    if not (names.naming or names.files or names.earlier):
        path.unlink(missing_ok=True)
        return
    content = {
        "schema": SCHEMA,
        "names": {str(group): name for group, name in sorted(names.naming.given.items())},
        "merged": [[int(group) for group in parts] for parts in names.naming.merged],
        "files": names.files,
        **({"earlier": names.earlier} if names.earlier else {}),
    }
    with new_file(path) as file:
        file.write((json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())


def check_kept(folder: Path, names_from: Any) -> None:
    """Refuse to replace a run if its groups have names that would be lost."""
    recover(folder)  # a killed process may have moved it away
    same = names_from is not None and os.path.realpath(names_from) == os.path.realpath(folder)
    if (folder / NAMES).is_file() and not same:
        raise ValueError(
            f"{folder} has names that you gave to its groups; take them over with "
            f"names_from={str(folder)!r}, or delete {folder / NAMES}"
        )
