"""From documents to views: count words, choose a vocabulary, make all documents equally long.

`TextViews` turns a table into views, and `split_paragraphs` cuts documents into sequences. The
other transformers work on any counts: `LatentDirections` adds a view of unit rows to them.

The preprocessing of Nigam, McCallum & Mitchell (2006, Sec. 3.3 and 3.5.2) is one Pipeline: stop
words belong to the vectorizer, the vocabulary is chosen by mutual information with the labels there
are, and the counts of every document are scaled to a constant length.

>>> from sklearn.feature_extraction.text import CountVectorizer
>>> from sklearn.pipeline import make_pipeline
>>> from coem import MixtureClassifier
>>> from coem.text import ScaleLength, SelectWords
>>> model = make_pipeline(
...     CountVectorizer(stop_words="english"),
...     SelectWords(4000),
...     ScaleLength(),
...     MixtureClassifier(),
... )
>>> texts = ["the puck and the goal", "a cpu and a disk", "goal after goal", "the disk of the cpu"]
>>> model.fit(texts, ["hockey", "hardware", "", ""]).predict(texts[2:]).tolist()
['hockey', 'hardware']

The paper fixed the 4,000 words of Sec. 3.5.2 once, by the labels of the whole data set. A Pipeline
chooses them anew from the labels that it is fitted with, so that no label of a test row takes part.
"""

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from coem.text import _saved  # noqa: F401  (it registers them with model files)
from coem.text._parts import take_rows
from coem.text._tables import as_arrow
from coem.text.directions import LatentDirections
from coem.text.embed import Embed
from coem.text.encoders import NamedEncoder
from coem.text.paragraphs import Paragraphs, split_paragraphs
from coem.text.scaling import DEFAULT_LENGTH, ScaleLength, scale_length
from coem.text.views_of_tables import TextViews
from coem.text.vocabulary import SelectWords

__all__ = [
    "TextViews",
    "Embed",
    "NamedEncoder",
    "SelectWords",
    "ScaleLength",
    "scale_length",
    "LatentDirections",
    "DEFAULT_LENGTH",
    "split_paragraphs",
    "Paragraphs",
    "ENGLISH_STOP_WORDS",
    "as_arrow",
    "take_rows",
]
