"""An index of all words of the documents of a page, in few bytes."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from coem.report.packing import pack, plain_pack, rising, varints
from coem.text.counting import Options, count_text, matrix

# Writing in which no blanks part words: Thai, Lao, Burmese, Khmer, kana and Han.
UNPARTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_RUNS = re.compile(rf"[{UNPARTED}]+|[^\W{UNPARTED}]+")
_PAIRED = re.compile(rf"[{UNPARTED}]")
ROWS = 2000  # texts that are looked through at a time
BEYOND = 0xFFFF  # stands for itself and all characters after it
LONGEST = 40  # characters of a word; a longer one is found by its beginning


def words_of(text):
    """Return the words of a text as the search of a page has them.

    Where no blanks part words, every two characters that follow each other are one.

    Examples
    --------
    >>> sorted(words_of("To be, or NOT to be?"))
    ['be', 'not', 'or', 'to']
    >>> sorted(words_of("東京都 3"))
    ['3', '京都', '東京', '都']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    words = set(_RUNS.findall(text.lower()))
    if text.isascii():
        return words
    for run in [word for word in words if _PAIRED.match(word)]:
        words.discard(run)
        words.update(run[i : i + 2] for i in range(len(run)))
    return words


@dataclass(frozen=True, eq=False)
class WordIndex:
    """The words of documents, sorted, and the documents that have each of them."""

    words: list
    counts: np.ndarray
    documents: np.ndarray
    n_documents: int

    @classmethod
    def of(cls, texts):
        """Return the index of texts."""
        texts = [t if t.isascii() else unicodedata.normalize("NFC", t).lower() for t in texts]
        paired = [not t.isascii() and _PAIRED.search(t) is not None for t in texts]
        plain = ["" if p else t for t, p in zip(texts, paired, strict=True)]
        names, rows, columns = [], [], []
        by_python = [(i, words_of(texts[i])) for i in np.flatnonzero(paired).tolist()]
        for found, row, column in (_long_words(plain), _lone_letters(plain), _coded(by_python)):
            columns.append(column + len(names))
            rows.append(row)
            names += [word[:LONGEST] for word in found]
        # As JavaScript compares texts: by halves of characters.
        words = sorted(set(names), key=lambda word: word.encode("utf-16-be"))
        place = {word: i for i, word in enumerate(words)}
        rank = np.array([place[name] for name in names], dtype=np.int64)
        pairs = rank[np.concatenate(columns)] * len(texts) + np.concatenate(rows)
        columns, rows = np.divmod(_once(pairs), max(len(texts), 1))
        return cls(words, np.bincount(columns, minlength=len(words)), rows, len(texts))

    def packed(self):
        """Return the words with their counts, and the documents, as parts of packs."""
        words = "\n".join(_front_coded(self.words)).encode("utf-8")
        places = rising(self.counts, self.documents, self.n_documents)
        return [pack(words), pack(varints(self.counts))], [plain_pack(places)]


def _long_words(texts):
    """Return the words of two characters or more, and the rows and the words of their pairs."""
    tally = count_text(pa.array(texts, pa.large_string()), Options(), "texts")
    data, ends = tally.words.data.tobytes(), tally.words.offsets.tolist()
    words = [data[a:b].decode("utf-8") for a, b in pairwise(ends)]
    counts = matrix(tally, len(texts)).tocoo()
    return words, counts.row.astype(np.int64), counts.col.astype(np.int64)


def _lone_letters(texts):
    """Return the words of one character, which the kernel leaves out, as `_long_words` does."""
    found = []
    for first in range(0, len(texts), ROWS):
        block = texts[first : first + ROWS]
        codes = np.frombuffer("\n".join([*block, ""]).encode("utf-32-le"), dtype="<u4")
        inside = _letters()[np.minimum(codes, BEYOND)]
        alone = inside.copy()
        alone[1:] &= ~inside[:-1]
        alone[:-1] &= ~inside[1:]
        ends = np.cumsum([len(text) + 1 for text in block])
        places = np.flatnonzero(alone)
        rows = np.searchsorted(ends, places, side="right") + first
        found.append(_once(rows * (BEYOND + 1) + codes[places]))
    rows, codes = np.divmod(np.concatenate([np.zeros(0, np.int64), *found]), BEYOND + 1)
    letters, column = np.unique(codes, return_inverse=True)
    return [chr(code).lower() for code in letters.tolist()], rows, column


def _once(values):
    """Return numbers sorted, each once; in an eighth of the time of `numpy.unique`."""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]


def _coded(pairs):
    """Return the words of rows and sets of words, as `_long_words` does."""
    place = {}
    columns = [place.setdefault(word, len(place)) for _, words in pairs for word in words]
    rows = np.repeat([row for row, _ in pairs], [len(words) for _, words in pairs])
    return list(place), rows.astype(np.int64), np.array(columns, dtype=np.int64)


@cache
def _letters():
    """Return which characters words consist of; what is beyond the first 65,535 is left out."""
    return np.array([chr(c).isalnum() or c == ord("_") for c in range(BEYOND)] + [False])


def _front_coded(words):
    """Yield every word with a sign for how much of the word before it begins with."""
    before = ""
    for word in words:
        shared = 0
        for a, b in zip(before, word, strict=False):
            # One character in UTF-16 is one or two signs; a long one ends what is shared.
            if a != b or a > "\uffff" or shared == LONGEST:
                break
            shared += 1
        yield chr(32 + shared) + word[shared:]
        before = word
