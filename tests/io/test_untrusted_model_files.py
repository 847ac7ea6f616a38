"""What a model file must not decide: how the machine works, how long, and with what memory."""

import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import coem
from coem import MixtureClusterer, ModelFileError
from coem.families import Gaussian
from coem.io import archive
from coem.io.patterns import LONGEST, LONGEST_NGRAM, is_plain
from coem.latent.mixture import Mixture
from coem.text import TextViews
from tests.io import fits
from tests.io.forging import forge, members, refused, state, write

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.coem"


# -- how the machine works -------------------------------------------------------------------------


def nested(value):
    """Yield all objects of a document that have keys."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from nested(item)


MACHINE = {"n_jobs", "verbose", "engine", "checkpoint", "memory"}


@pytest.mark.parametrize("case", ["bernoulli", "pool", "text pipeline", "latent text", "chain"])
def test_how_the_machine_works_is_not_saved(case, path):
    coem.save(fits.fitted(case), path)
    document = json.loads(members(path)["model.json"])
    assert not [part for part in nested(document["model"]) if MACHINE & set(part)]


def test_a_loaded_model_works_as_its_machine_does(path, tmp_path):
    X = fits.WORDS
    model = MixtureClusterer(2, n_jobs=2, verbose=0, checkpoint=tmp_path / "runs", random_state=0)
    model.fit(X).save(path)
    said = dict(n_jobs=10**6, verbose=3, engine="dask", checkpoint="/tmp", memory="/tmp")
    forge(path, lambda meta: state(meta, "params").update(said))  # as a file of another version
    loaded = coem.load(path)
    default, own = MixtureClusterer().get_params(), loaded.get_params()
    names = MACHINE & set(default)
    assert {name: own[name] for name in names} == {name: default[name] for name in names}
    assert not hasattr(loaded, "memory")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


# -- patterns --------------------------------------------------------------------------------------

PLAIN = [
    r"(?u)\b\w\w+\b",
    r"\b\w+\b",
    r"\b[a-z]{3,}\b",
    "[a-z]{2,}",
    r"\S+",
    r"[^\W\d_]+",
    r"\w",
    r"#\w{1,99}",
    r"[^,;|]+",
    r"(?i)\b[a-z]\w*",
    "ab",
]
LONG = [
    "(a+)+b",
    r"(a|a)*b",
    r"a*a*a*b",
    r"\w+x",
    r"[a-z]+\b",
    r"a?a?a?aaa",
    r"(.*)\1",
    r"(?=a+)b",
    r"\w+?",
    "a{1000}",
    "a{9,99999}",
    "a{2}{3}",
    "a++b",
    "a|b",
    r"(\w+)",
    r"\1",
    "x" * (LONGEST + 1),
    "",
    None,
    7,
]


@pytest.mark.parametrize("pattern", PLAIN)
def test_plain_patterns(pattern):
    assert is_plain(pattern)
    compiled = re.compile(pattern)
    # Hard for patterns that go back: runs that never end as they should, and ends without runs.
    hard = ["a" * 10**5 + "!", "a1" * 50_000, "a " * 50_000, "#" * 10**5, "a" * 10**5 + "_"]
    begun = time.thread_time()
    for text in hard:
        compiled.findall(text)
    assert time.thread_time() - begun < 5  # some hundredths; a quadratic one would take minutes


@pytest.mark.parametrize("pattern", LONG)
def test_other_patterns(pattern):
    assert not is_plain(pattern)


def texts(token_pattern, views=None):
    return TextViews(views or {"words": "text"}, token_pattern=token_pattern).fit(fits.TABLE)


MAKERS = {
    "views": lambda pattern: texts(pattern),
    "one view": lambda pattern: texts({"words": pattern}),
    "vectorizer": lambda pattern: make_pipeline(CountVectorizer(token_pattern=pattern)).fit(
        fits.TEXTS
    ),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_pattern_that_could_take_for_ever_is_refused_unless_it_is_trusted(maker, path):
    model = MAKERS[maker](r"(?:word)?(\w+)")
    coem.save(model, path)
    with pytest.raises(ModelFileError, match=r"token_pattern of .*trust_patterns=True") as caught:
        coem.load(path)
    assert str(path) in str(caught.value)
    assert "damaged" not in str(caught.value)
    loaded = coem.load(path, trust_patterns=True)
    one, two = (fits.mark(fits.outputs(each, DATA[maker])) for each in (model, loaded))
    assert one == two


DATA = {"views": fits.TABLE, "one view": fits.TABLE, "vectorizer": fits.TEXTS}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_plain_pattern_is_loaded(maker, path):
    coem.save(MAKERS[maker]("[a-z]{3,}"), path)
    coem.load(path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "/dev"])
def test_a_path_of_a_file_names_no_device(device, path):
    model = TextViews({"given": fits.UNIT, "words": "text"}).fit(fits.TABLE)
    coem.save(model, path)

    def change(meta):
        views = state(meta, "params")["views"]["dict"]
        views[0][1] = {"path": device}

    forge(path, change)
    with pytest.raises(ValueError, match=f"view 'given': {device} is not a file"):
        coem.load(path).transform(fits.TABLE)


# -- size ------------------------------------------------------------------------------------------


def with_document(path, document):
    """Write a file whose document is this text."""
    coem.save(fits.fitted("scaled"), path)
    write(path, members(path) | {"model.json": document})


TOO_MANY = {
    "sets": b'{"set":[]},' * (archive.MOST_NESTED // 2 + 1),
    "numbers": b"1," * (archive.MOST_VALUES + 1),
    "after a quote in a string": rb'"\"",' + b"[]," * (archive.MOST_NESTED + 1),
    "after a backslash in a string": rb'"\\",' + b"[]," * (archive.MOST_NESTED + 1),
}


@pytest.mark.parametrize("case", TOO_MANY)
def test_a_document_of_too_many_values_is_never_built(case, path, monkeypatch):
    with_document(path, b'{"model":[' + TOO_MANY[case] + b"0]}")
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("it was built"))
    refused(path, "too many values")


def test_strings_are_one_value_whatever_is_in_them():
    text = json.dumps({"a": '[{,"\\', "b": ["\\", '"[', [1, 2]]}).encode()
    assert archive._outside_strings(text, b"[{,") == {b"[": 2, b"{": 1, b",": 4}
    halves = b'["' + b"[" * archive.CHUNK + b'"]'  # a string from one piece into the next
    assert archive._outside_strings(halves, b"[{,") == {b"[": 1, b"{": 0, b",": 0}


def test_a_document_in_another_encoding_is_refused(path):
    with_document(path, '{"model": "\u2200"}'.encode("utf-16"))
    refused(path)


def test_a_deep_document_is_refused(path):
    with_document(path, b'{"model":' + b"[" * 10**5 + b"]" * 10**5 + b"}")
    refused(path)


def test_a_large_vocabulary_is_no_deep_document(path):
    words = {f"w{i}": i for i in range(200_000)}
    vectorizer = CountVectorizer(vocabulary=words)
    vectorizer.fit([])
    coem.save(make_pipeline(vectorizer), path)
    assert len(members(path)["model.json"]) < 20 * 2 * len(words)
    (_, loaded), *_ = coem.load(path).steps
    assert loaded.vocabulary_ == words
    assert list(loaded.vocabulary_) == list(words)


@pytest.mark.parametrize("kind", [int, np.int64])
def test_words_and_their_numbers_keep_their_type(kind, path):
    words = {f"w{i}": kind(5000 - i) for i in range(3000)}
    coem.save(make_pipeline(CountVectorizer(vocabulary=words)), path)
    ((_, loaded),) = coem.load(path).steps
    fits.same(loaded.vocabulary, words)


@pytest.mark.parametrize("number", [1 << 63, True, 0.5, None])
def test_other_dicts_are_saved_as_they_are(number, path):
    words = {f"w{i}": number for i in range(3000)}
    coem.save(fits.clusterer(n_init=words), path)
    fits.same(coem.load(path).n_init, words)


def test_digests_of_members_that_are_not_there_are_never_read(path):
    """Each line becomes a list: so many empty ones would take a hundred times their bytes."""
    coem.save(fits.fitted("scaled"), path)
    write(path, members(path) | {archive.SUMS: b"\n" * 10**6}, sums=False)
    for read in (coem.load, coem.read_info):
        with pytest.raises(ModelFileError, match="SHA256SUMS is too large"):
            read(path)


# -- what a model says of its sizes ----------------------------------------------------------------


@pytest.mark.parametrize("span", [[-(10**15), 2], [-1, 2], [2, 1], [1, "2"], [1], None])
def test_a_vectorizer_whose_words_have_no_sound_number_is_refused(span, path):
    coem.save(fits.fitted("tf-idf"), path)

    def change(meta):
        vectorizer = state(meta, "params")["steps"][0]["tuple"][1]["object"][1]
        vectorizer["params"]["ngram_range"] = span and {"tuple": span}

    forge(path, change)
    refused(path, "ngram_range does not fit")


LONG_SPANS = {
    "views": (lambda span: words_with(span), fits.TABLE),
    "one view": (lambda span: words_with({"words": span}), fits.TABLE),
    "vectorizer": (lambda span: make_pipeline(CountVectorizer(ngram_range=span)), fits.TEXTS),
}


def words_with(ngram_range):
    return TextViews({"words": "text"}, ngram_range=ngram_range)


@pytest.mark.parametrize("maker", LONG_SPANS)
def test_long_ngrams_are_refused_unless_they_are_trusted(maker, path):
    make, data = LONG_SPANS[maker]
    coem.save(make((1, LONGEST_NGRAM)).fit(data), path)
    coem.load(path)
    model = make((1, LONGEST_NGRAM + 1)).fit(data)
    coem.save(model, path)
    with pytest.raises(ModelFileError, match=r"ngram_range of .*more than 10 .*trust_p"):
        coem.load(path)
    loaded = coem.load(path, trust_patterns=True)
    one, two = (fits.mark(fits.outputs(each, data)) for each in (model, loaded))
    assert one == two


@pytest.mark.parametrize("most", [10**9, 10**30, 1e9])
def test_ngrams_of_any_length_are_refused(most, path):
    coem.save(LONG_SPANS["vectorizer"][0]((1, 2)).fit(fits.TEXTS), path)

    def change(meta):
        vectorizer = state(meta, "params")["steps"][0]["tuple"][1]["object"][1]
        vectorizer["params"] |= {"ngram_range": {"tuple": [1, most]}, "analyzer": "char"}

    forge(path, change)
    with pytest.raises(ModelFileError, match="ngram_range"):
        coem.load(path)


HUGE = 10**15
WIDE = {"view_names_": {"tuple": ["view0"]}, "view_widths_": {"tuple": [HUGE]}}
WIDE |= {"n_features_in_": HUGE, "_several": False}
STEPS = {
    "scaled": ("ScaleLength", WIDE),
    "selected": ("SelectWords", WIDE | {"scores_": None, "_chosen": {"dict": [["view0", None]]}}),
    "tf-idf": ("TfidfTransformer", {"n_features_in_": HUGE}),
    "centres": ("SphericalKMeans", {"_n_features_out": HUGE}),
}


@pytest.mark.parametrize("case", STEPS)
def test_names_of_columns_that_are_not_there_are_never_made(case, path):
    coem.save(make_pipeline(fits.fitted("scaled"), fits.fitted("scaled")), path)
    name, fitted = STEPS[case]

    def change(meta):
        first, second = (step["tuple"][1]["object"] for step in state(meta, "params")["steps"])
        second[1]["fitted"] = dict(WIDE)
        first[:] = [name, {"params": {"n_features": 3} if case == "selected" else {}}]
        first[1]["fitted"] = fitted

    forge(path, change)
    coem.load(path)  # the steps fit each other
    forge(path, lambda meta: at_second(meta).update(n_features_in_=5, view_widths_={"tuple": [5]}))
    refused(path, "the input of ScaleLength does not fit")


def at_second(meta):
    return state(meta, "params")["steps"][1]["tuple"][1]["object"][1]["fitted"]


def of_sums(stats):
    """Let statistics of counts be sums of more components than there are."""
    names = ("offsets", "components", "sums")
    arrays = {name: {"array": name} for name in names}
    stats["counts"] = {"object": ["SparseSums", {**arrays, "n_components": 3 * 10**8}]}


STATISTICS = {
    "sparse": (fits.clusterer(), fits.WORDS, "MultinomialStats", of_sums),
    "tied": (
        fits.clusterer(family=Gaussian("tied")),
        fits.POINTS,
        "GaussianStats",
        lambda stats: stats.update(sums={"array": "long"}, squares={"array": "flat"}),
    ),
}


@pytest.mark.parametrize("case", STATISTICS)
def test_statistics_that_are_larger_than_the_parameters_are_refused(case, path, monkeypatch):
    model, X, kind, change = STATISTICS[case]
    coem.save(model.partial_fit(X), path)
    arrays = {
        "offsets": np.zeros(15, np.int64),
        "components": np.zeros(0, np.int32),
        "sums": np.zeros(0),
        "long": np.zeros((3, 20_000)),
        "flat": np.ones((1, 1, 1)),
    }
    more = {f"{name}.npy": as_bytes(array) for name, array in arrays.items()}
    write(path, members(path) | more)

    def forged(meta):
        own = [o["object"] for o in nested(meta["model"]) if o.get("object", [""])[0] == kind]
        change(own[0][1])

    forge(path, forged)
    monkeypatch.setattr(Mixture, "estimate", lambda *args: pytest.fail("an M step was done"))
    refused(path, "the statistics does not fit")


@pytest.mark.parametrize("n_components", [2**31, 2**62, None, "3", True])
def test_tables_of_states_that_are_not_there_are_never_made(n_components, path):
    coem.save(fits.fitted("chain"), path)
    forge(path, lambda meta: state(meta, "params").update(n_components=n_components))
    refused(path, "does not fit")


def as_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


# -- all places ------------------------------------------------------------------------------------

KINDS = (
    *("mixed", "classes", "pool", "chain", "sphere", "tree", "aspects", "traffic"),
    *("text pipeline", "latent text", "pipeline", "tf-idf"),
)
EVERY = 151  # one forgery in so many, from all over the models; `make fuzz` tries others


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_forgeries_hang_nothing_and_take_no_memory():
    ran = subprocess.run(
        [sys.executable, "-m", "tests.io.forgery", *KINDS, "--every", str(EVERY)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert int(ran.stdout.split()[-4]) > 30 * len(KINDS)
