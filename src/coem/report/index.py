"""An index of all words of the documents of a page, in few bytes."""

import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from coem.report.packing import pack, plain_pack, rising, varints

# Writing in which no blanks part words: Thai, Lao, Burmese, Khmer, kana and Han.
UNPARTED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_RUNS = re.compile(rf"[{UNPARTED}]+|[^\W{UNPARTED}]+")
_PAIRED = re.compile(rf"[{UNPARTED}]")
LONGEST = 40  # characters of a word; what is longer is no word, and is found by its beginning


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
        place, rows, sizes = {}, [], []
        for text in texts:
            found = words_of(text)
            if any(len(word) > LONGEST for word in found):
                found = {word[:LONGEST] for word in found}
            rows.extend([place.setdefault(word, len(place)) for word in found])
            sizes.append(len(found))
        # As JavaScript compares texts: by halves of characters.
        words = sorted(place, key=lambda word: word.encode("utf-16-be"))
        rank = np.empty(len(words), dtype=np.int64)
        rank[[place[word] for word in words]] = np.arange(len(words))
        columns = rank[np.array(rows, dtype=np.int64)]
        documents = np.repeat(np.arange(len(sizes)), sizes)[np.argsort(columns, kind="stable")]
        return cls(words, np.bincount(columns, minlength=len(words)), documents, len(sizes))

    def packed(self):
        """Return the words with their counts, and the documents, as parts of packs."""
        words = "\n".join(_front_coded(self.words)).encode("utf-8")
        places = rising(self.counts, self.documents, self.n_documents)
        return [pack(words), pack(varints(self.counts))], [plain_pack(places)]


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
