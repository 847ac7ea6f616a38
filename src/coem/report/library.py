"""The texts of documents, their words and their marks, packed into the bytes that a page has."""

from dataclasses import dataclass, field

import numpy as np

from coem.report.index import WordIndex
from coem.report.packing import pack

BLOCK = 200_000  # characters of the texts that are packed, and unpacked, together
LOOKED_AT = 60_000_000  # characters that are looked at for an index, unless all room is given
SHARE = 0.75  # of the room that the index may take
LEAST = 80  # characters of a text that are there in any case
RATE = 0.55  # bytes that a character takes when it is packed, about
FULL = 0.85  # a room that is filled to this is full
TRIES = 8
CUT, NEXT = "\x01", "\0"  # signs that no text holds


@dataclass(frozen=True, eq=False)
class Packed:
    """What is packed: parts by the name of the pack, and what the page must know of them."""

    packs: dict
    facts: dict


@dataclass(frozen=True, eq=False)
class Library:
    """All texts of a story, of which a page takes what it has room for.

    Attributes
    ----------
    texts : Texts
        Ids, titles and texts of all rows.
    all : callable
        Returns the documents of all rows.
    marks : list of Marks
        What words weigh, one a view.
    links : dict of view to dict
        For views whose columns are documents: id -> what to call it.
    """

    texts: object
    all: object
    marks: list = field(default_factory=list)
    links: dict = field(default_factory=dict)

    def packed(self, documents, first, room):
        """Return what fits into so many bytes.

        Parameters
        ----------
        documents : list of Document
            Those on the page.
        first : set of int
            Rows whose text should be whole: those that the page shows elsewhere.
        room : float
            Bytes; infinite if all shall be there.
        """
        marks = [part for found in self.marks for part in found.packed()]
        room -= sum(map(len, marks))
        rows = [d.row for d in documents]
        words, cut = self._index(rows, SHARE * room)
        room -= sum(len(part) for pack in words.values() for part in pack)
        blocks, starts, n_cut = self._texts(rows, first, room)
        about = [{"name": m.view, "place": m.place, "step": m.step} for m in self.marks]
        return Packed(
            packs={**words, "texts": blocks, "telling": marks},
            facts={
                "index": {"cut": cut},
                "blocks": starts,
                "cut": n_cut,
                "texts": self.texts.there,
                "telling": about,
            },
        )

    def _index(self, rows, room):
        """Return the packs of the index, and the characters of a text that it saw if not all."""
        own = self.texts
        texts = [own.whole(row) for row in rows]
        sizes = np.array([len(text) for text in texts])
        most = _level(sizes, LOOKED_AT) if np.isfinite(room) else None
        for _ in range(TRIES):
            heads = [f"{own.ids[r]} {own.title(r)}" for r in rows]
            seen = [f"{h} {t[:most]}" for h, t in zip(heads, texts, strict=True)]
            words, places = WordIndex.of(seen).packed()
            size = sum(map(len, [*words, *places]))
            if size <= room or most == 0:
                break
            total = np.minimum(sizes, sizes.max(initial=0) if most is None else most).sum()
            most = _level(sizes, 0.85 * total * max(room, 0) / size)
        return {"words": words, "places": places}, most

    def _texts(self, rows, first, room):
        """Return the packed texts, where their blocks begin, and how many are cut."""
        texts = [self.texts.whole(row) for row in rows]
        whole = np.array([row in first for row in rows], dtype=bool)
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        total = room / RATE
        for turn in range(TRIES):
            limits = _limits(sizes, whole, total)
            blocks, starts = _blocks(texts, limits)
            size, n_cut = sum(map(len, blocks)), int((sizes > limits).sum())
            if turn == TRIES - 1 or (size <= room and (not n_cut or size >= FULL * room)):
                break
            total = 0.96 * min(np.minimum(sizes, limits).sum(), total) * max(room, 0) / size
        return blocks, starts, n_cut


def _limits(sizes, whole, total):
    """Return how many characters of each text are kept, so that they add up to a total.

    Those that should be whole may take a third of it; none is cut below `LEAST`.
    """
    limits = np.full(len(sizes), np.iinfo(np.int64).max)
    for which, share in ((whole, total / 3), (~whole, None)):
        used = np.minimum(sizes, limits)[whole].sum()
        level = _level(sizes[which], total - used if share is None else share)
        if level is not None:
            limits[which] = max(LEAST, level)
    return limits


def _level(sizes, total):
    """Return where sizes must be cut so that they add up to a total; None if they need not be.

    Examples
    --------
    >>> _level(np.array([1, 5, 10]), 9), _level(np.array([1, 5]), 6)
    (4, None)
    """
    if sizes.sum() <= total:
        return None
    rising = np.sort(sizes)
    # What is left for each of the longer ones, if all up to here are whole.
    before = np.concatenate([[0], rising.cumsum()[:-1]])
    level = (total - before) / np.arange(len(rising), 0, -1)
    return max(0, int(level[np.argmax(level <= rising)]))


def _blocks(texts, limits):
    """Return packed blocks of texts, and the place of the first text of each."""
    blocks, starts, held, size = [], [], [], 0
    for place, (text, limit) in enumerate(zip(texts, limits.tolist(), strict=True)):
        if not held:
            starts.append(place)
        cut = text if len(text) <= limit else f"{text[:limit].rstrip()}{CUT}{len(text)}"
        held.append(cut)
        size += len(cut)
        if size >= BLOCK:
            blocks.append(_packed(held))
            held, size = [], 0
    if held:
        blocks.append(_packed(held))
    return blocks, starts


def _packed(texts):
    return pack(NEXT.join(texts).encode("utf-8"))
