"""The languages that have stop words, and which of them texts are in."""

import unicodedata
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

ENGLISH = "en"
SAMPLE = 2000  # rows of a view that are looked at
LEAST_SHARE = 0.1  # of the rows whose language is known, for a language beside the first
LEAST_ROWS = 3  # the same as a number of rows

# The languages of stopwordsiso, by their codes of ISO 639-1.
LANGUAGES = {
    "af": "afrikaans",
    "ar": "arabic",
    "bg": "bulgarian",
    "bn": "bengali",
    "br": "breton",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "gl": "galician",
    "gu": "gujarati",
    "ha": "hausa",
    "he": "hebrew",
    "hi": "hindi",
    "hr": "croatian",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "ku": "kurdish",
    "la": "latin",
    "lt": "lithuanian",
    "lv": "latvian",
    "mr": "marathi",
    "ms": "malay",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sk": "slovak",
    "sl": "slovenian",
    "so": "somali",
    "st": "sotho",
    "sv": "swedish",
    "sw": "swahili",
    "th": "thai",
    "tl": "tagalog",
    "tr": "turkish",
    "uk": "ukrainian",
    "ur": "urdu",
    "vi": "vietnamese",
    "yo": "yoruba",
    "zh": "chinese",
    "zu": "zulu",
}
CODES = {name: code for code, name in LANGUAGES.items()}
# What the languages that texts are known to be in call themselves, without accents.
OWN = {
    "cestina": "cs",
    "dansk": "da",
    "deutsch": "de",
    "espanol": "es",
    "suomi": "fi",
    "francais": "fr",
    "magyar": "hu",
    "italiano": "it",
    "nederlands": "nl",
    "norsk": "no",
    "polski": "pl",
    "portugues": "pt",
    "romana": "ro",
    "русскии": "ru",
    "svenska": "sv",
    "turkce": "tr",
}

# Some of the commonest words of a language, of two letters or more. Words that are also frequent in
# English, such as the German "die" and "in", are not among them. A word that several languages
# have, such as "de", is in the signatures of all: a single one shall not decide.
SIGNATURES = {
    "cs": "se na je že jsem jako ale jsou který pro není jeho také bylo při nebo až která aby už",
    "da": "og af er ikke til har jeg det på som den med en et var kan blev efter også meget hvad",
    "de": "und der das ist nicht ein eine mit sich auf den von auch für dem des im wird sind zu",
    "en": "the of and to is that for it with was are this from have be by not which you they",
    "es": "de la el en los las que una por con para del es como se más pero su este está también",
    "fi": "ja ei se että oli hän mutta kun joka myös ovat niin kuin ole tai hänen sen olla jos",
    "fr": "de la le en les des est une dans pour que qui sur pas avec du et au ne il ce sont",
    "hu": "az és hogy nem egy van volt ez meg csak már mint még azt lehet vagy ezt amely ha ki",
    "it": "di che il la non una per con del della gli sono le si nel più anche alla da dei questo",
    "nl": "de het een van en dat niet zijn op te met voor er aan ook om bij naar wordt uit deze",
    "no": "og av er ikke til har jeg det på som den med en et var kan ble etter også mye hva",
    "pl": "się nie na jest że jak po ale dla przez jego od który był są czy także oraz ze tym",
    "pt": "de que não uma os da em para com por mais como dos ao se na foi ele são também pela",
    "ro": "de la și să nu cu pe este din care mai că pentru dar fost sunt sau fi prin această",
    "ru": "не на что он как это по но из за то все от так же для был она они его",  # noqa: RUF001
    "sv": "och att det som en på är av för med den till inte om ett han jag var från också de",
    "tr": "bir ve bu için çok ile da de ne gibi daha olarak ama sonra kadar olan değil var",
}
_CODES = sorted(SIGNATURES)
_WORDS = np.array(sorted({word for text in SIGNATURES.values() for word in text.split()}), object)


def code_of(name):
    """Return the code of a language that is given by its name or its code, or None.

    Examples
    --------
    >>> code_of("German"), code_of("Deutsch"), code_of("Français")
    ('de', 'de', 'fr')
    """
    name = name.strip().lower()
    plain = "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c))
    return name if name in LANGUAGES else CODES.get(name) or OWN.get(plain)


def close_to(name, more=()):
    """Return the names and codes that look most like an unknown name."""
    known = [*more, *CODES] if len(name) > 3 else [*more, *CODES, *LANGUAGES]
    return get_close_matches(name.strip().lower(), known, n=3, cutoff=0.6)


def find_languages(texts, count):
    """Return the languages of texts with their shares of the rows, the most frequent first.

    Every row of every view speaks for the language that has the most of its words in it. Rows
    without such words, or with as many of another language, say nothing. A language beside the
    first must have a tenth of the rows that say something, and three at least.

    Parameters
    ----------
    texts : list of pyarrow.LargeStringArray
        The texts of each view.
    count : function of (texts, words)
        Returns the counts of some words in texts, as CSR.

    Returns
    -------
    languages : dict of str to float
        Shares by code; empty if no row says anything.
    """
    found = np.concatenate([_of_rows(_some(column), count) for column in texts] or [[]])
    rows = np.bincount(found[found >= 0].astype(np.intp), minlength=len(_CODES))
    order = np.argsort(-rows, kind="stable")
    least = max(LEAST_ROWS, LEAST_SHARE * rows.sum())
    kept = [i for place, i in enumerate(order) if rows[i] >= (least if place else 1)]
    return {_CODES[i]: float(rows[i] / rows.sum()) for i in kept}


def _some(texts):
    """Return at most `SAMPLE` rows, at equal distances."""
    return texts if len(texts) <= SAMPLE else texts.take(pa.array(sampled_rows(len(texts))))


def sampled_rows(n_rows):
    """Return the rows whose languages are looked at."""
    return np.arange(SAMPLE) * n_rows // SAMPLE if n_rows > SAMPLE else np.arange(n_rows)


def _of_rows(texts, count):
    """Return for each row the number of its language, or -1."""
    hits = (count(texts, _WORDS) @ _membership()).toarray()
    best = hits.max(axis=1)
    alone = (hits == best[:, None]).sum(axis=1) == 1
    return np.where((best > 0) & alone, hits.argmax(axis=1), -1)


def _membership():
    """Return which word (row) is in the signature of which language (column)."""
    own = [set(SIGNATURES[code].split()) for code in _CODES]
    return sp.csr_array([[float(word in words) for words in own] for word in _WORDS])
