"""A tiny model of model2vec: eight numbers for each of a few words."""

import numpy as np
import pytest


def save_tiny(folder, words, *, seed=0, width=8, probed=("two", "views")):
    """Save a model in a folder; words of one list point in one direction, and return the folder."""
    StaticModel = pytest.importorskip("model2vec").StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    rng = np.random.default_rng(seed)
    known, vectors = ["[UNK]"], [np.zeros(width)]
    for group in [*words, probed]:  # the last are in a known sentence
        centre = rng.normal(size=width)
        known += group
        vectors += [centre + 0.3 * rng.normal(size=width) for _ in group]
    places = {word: i for i, word in enumerate(known)}
    tokenizer = Tokenizer(WordLevel(places, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    StaticModel(np.array(vectors, dtype=np.float32), tokenizer).save_pretrained(str(folder))
    return folder
