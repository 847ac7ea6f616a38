"""Names of an earlier run for the groups of a later one that have most of the same documents."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coem.io.whole import recover
from coem.recipes.documents import Documents
from coem.recipes.listener import Listener
from coem.recipes.matching import MAJORITY, Assigned, Shared, labels_by_id, shared
from coem.recipes.names import read_names
from coem.recipes.record import own_names
from coem.recipes.run_file import read_run
from coem.report import Naming


@dataclass(frozen=True)
class Earlier:
    """What is known of an earlier run. It is read first, because the run may be replaced later."""

    path: str
    fingerprint: str
    naming: Naming
    labels: Assigned


def read_earlier(run: str | os.PathLike[str] | None) -> Earlier | None:
    """Return the names and the documents of an earlier run; raise if it has no names."""
    if run is None:
        return None
    folder = Path(run)
    recover(folder)  # a killed process may have moved it away
    if not folder.is_dir():
        raise ValueError(f"names_from: there is no folder {run}")
    run_json = read_run(folder)
    naming = read_names(folder, own_names(folder)).naming
    if not naming:
        raise ValueError(
            f"names_from: the groups of {run} have no names; give some with coem name {run} 0=NAME"
        )
    return Earlier(str(run), run_json["fingerprint"], naming, labels_by_id(folder))


def with_names(result: Any, earlier: Earlier | None, listener: Listener) -> Any:
    """Return a result with the names of an earlier run, if there is one."""
    if earlier is None:
        return result
    own = [group.name for group in result.story.groups]
    rows = result.story.assignments  # if there are too many for memory, those that are shown
    now = Assigned.of([([*map(str, rows.id)], [*map(str, rows.label)])])
    naming = take_over(earlier, result.documents, now, own, listener)
    return replace(result.renamed(naming), names_from=earlier.path)


def take_over(
    earlier: Earlier, documents: Documents, now: Assigned, own: list[str], listener: Listener
) -> Naming:
    """Return the names of an earlier run for the groups that most of its documents are in now.

    `now` has the groups of the documents.

    A group that was merged is matched with all groups that have most of their documents in it.
    They are merged again if they have most of its documents.
    """
    if documents.id_column is None and documents.fingerprint != earlier.fingerprint:
        listener.note(
            f"the documents have no ids, and are not those of {earlier.path}: they are matched by "
            "their numbers"
        )
    common = shared(earlier.labels, now)
    naming, found = _merged(Naming(tuple(own)), earlier.naming, common)
    for i, j in common.pairs():
        before, after = int(common.first[i]), int(common.second[j])
        if before in earlier.naming.given and before not in found:
            naming = naming.name({after: earlier.naming.given[before]})
            found[before] = after
    _say(earlier, naming, found, common, listener)
    return naming


def _merged(naming: Naming, before: Naming, common: Shared) -> tuple[Naming, dict[int, int]]:
    """Return the naming with the merges of an earlier run, and which group became which."""
    found: dict[int, int] = {}
    for parts in before.merged:
        group = min(parts)
        if str(group) not in common.first:
            continue
        row = common.first.index(str(group))
        inside = (common.of_second[row] > MAJORITY).nonzero()[0]
        if common.of_first[row, inside].sum() <= MAJORITY:
            continue
        groups = [int(common.second[j]) for j in inside]
        naming = naming.merge(groups) if len(groups) > 1 else naming
        naming = naming.name({min(groups): before.given.get(group, "")})
        found[group] = min(groups)
    return naming, found


def _say(
    earlier: Earlier, naming: Naming, found: dict[int, int], common: Shared, listener: Listener
) -> None:
    """Tell which names were taken over, and which were not."""
    merged = {min(parts) for parts in earlier.naming.merged}
    for group in sorted(earlier.naming.given.keys() | merged):
        name = f"{earlier.naming.names[group]!r} of {earlier.path}"
        if group not in found:
            listener.note(f"{name} is not taken over: no group has most of its documents")
            continue
        parts = naming.parts(found[group])
        counts = common.counts[common.first.index(str(group))]
        places = [common.second.index(str(part)) for part in parts]
        many = "groups" if len(parts) > 1 else "group"
        listener.note(
            f"{name} is now {many} {' and '.join(map(str, parts))}, which "
            f"{'have' if len(parts) > 1 else 'has'} {int(counts[places].sum()):,} of its "
            f"{int(counts.sum()):,} shared documents"
        )
