"""Fitted models of every kind, what they say of their data, and whether two are the same."""

import hashlib
import pickle
import sys
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline, make_pipeline

import coem
from coem import (
    AspectModel,
    HiddenMarkovModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    PooledClassifier,
    RunCoupling,
    SphericalKMeans,
    TrafficModel,
    Views,
)
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial, VonMisesFisher
from coem.kernels.counts import is_table
from coem.schedules import Geometric, Linear, Steps, StepSize
from coem.text import LatentDirections, ScaleLength, SelectWords, TextViews

N, K = 90, 3
RNG = np.random.default_rng(7)
GROUP = RNG.integers(K, size=N)
WORDS = RNG.poisson(np.exp(RNG.standard_normal((K, 14)))[GROUP])
LINKS = sp.csr_matrix(RNG.poisson(np.exp(RNG.standard_normal((K, 9)) - 1)[GROUP]))
TAGS = (RNG.random((N, 6)) < RNG.random((K, 6))[GROUP]) * 1.0
POINTS = RNG.standard_normal((N, 2)) + 3 * GROUP[:, np.newaxis]
CODES = np.where(RNG.random((N, 3)) < 0.7, GROUP[:, np.newaxis], 3).astype(float)
CODES[3, 1] = np.nan
UNIT = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
MIXED = Views(words=WORDS, tags=TAGS, points=POINTS, codes=CODES, unit=UNIT)
TEXT = Views(words=WORDS, links=LINKS)
FRAME = pd.DataFrame(WORDS, columns=[f"w{i}ä" for i in range(14)])
NAMES = np.array(["ham", "news", "spam"], dtype=object)[GROUP]
SOME = np.where(np.arange(N) % 4, "", NAMES)
NUMBERS = np.where(np.arange(N) % 4, -1, GROUP * 10)
TEXTS = [" ".join(f"word{j}" for j in np.flatnonzero(row)) for row in WORDS]
TABLE = {
    "id": [f"d{i}" for i in range(N)],
    "text": [f"{text} na\u00efve" if i % 7 else None for i, text in enumerate(TEXTS)],
    "refs": [[f"d{(i * k) % N}" for k in (3, 5)] if i % 5 else [] for i in range(N)],
    "x": POINTS[:, 0].tolist(),
    "vec": UNIT.tolist(),
}
TABLE_VIEWS = {
    "words": ["text"],
    "links": "refs:list",
    "inbound": "refs:inbound",
    "x": "x:number",
    "vec": "vec:vector",
    "given": UNIT,
}
FAMILIES = {
    "words": Multinomial(0.5),
    "tags": "bernoulli",
    "points": Gaussian("full"),
    "codes": Categorical(),
    "unit": VonMisesFisher(),
}
FIXED = {"random_state": 0, "tol": 0, "max_iter": 6}
RUNS = {"random_state": 0, "max_iter": 5}


def clusterer(**params):
    return MixtureClusterer(**({"n_components": K} | FIXED | params))


def classifier(**params):
    return MixtureClassifier(**(FIXED | params))


def batches():
    model = clusterer(weights="per_view", step=StepSize(0.8, 2.0))
    for rows in (slice(0, 50), slice(50, N)):
        model.partial_fit(TEXT[rows])
    return model


def relabelled():
    model = classifier(components_per_class={"spam": 2}, correspondence={0: "ham"})
    return model.fit(WORDS, SOME)


CASES = {
    "one view": lambda: clusterer(n_init=2).fit(WORDS),
    "double": lambda: clusterer(dtype=np.float64, init="random").fit(WORDS),
    "frame": lambda: clusterer(dtype=np.dtype("float32")).fit(FRAME),
    "mixed": lambda: clusterer(family=FAMILIES, init="random", eta=Linear(1, 0, 3)).fit(MIXED),
    "joint": lambda: clusterer(coupling="joint", beta=Geometric(0.5, 1.5)).fit(TEXT),
    "hard": lambda: clusterer(posterior="hard", assign="average", weights="uniform").fit(TEXT),
    "steps": lambda: clusterer(beta=Steps([0.5, 1.0], 2), patience=3).fit(WORDS),
    "tied": lambda: clusterer(family=Gaussian("tied"), init="rows").fit(POINTS),
    "diag": lambda: clusterer(family=Gaussian("diag"), n_components=np.int64(2)).fit(POINTS),
    "bernoulli": lambda: clusterer(family=Bernoulli(0.3), n_jobs=2).fit(TAGS),
    "given start": lambda: clusterer(init=np.eye(K)[GROUP]).fit(WORDS),
    "warm": lambda: clusterer(init=clusterer().fit(WORDS)).fit(WORDS),
    "coupled": lambda: clusterer(
        n_init=2, coupling_of_runs=RunCoupling("rows", n_couplings=1, n_rounds=2)
    ).fit(TEXT),
    "batches": batches,
    "one component": lambda: clusterer(n_components=1, init="random").fit(WORDS),
    "classes": lambda: classifier().fit(WORDS, SOME),
    "numbers": lambda: classifier(unlabeled_weight=0.5).fit(TEXT, NUMBERS),
    "objects": lambda: classifier().fit(WORDS, [{"ham", "spam"}, *SOME[1:]]),
    "chosen": lambda: classifier(components_per_class=[1, 2], cv=3).fit(WORDS, SOME),
    "calibrated": lambda: classifier(calibrate=True, cv=3).fit(TEXT, SOME),
    "relabelled": relabelled,
    "annealed": lambda: classifier(beta=Geometric(0.5, 1.5), correspondence="em").fit(WORDS, SOME),
    "pool": lambda: PooledClassifier(classifier(unlabeled_weight="auto"), cv=3).fit(TEXT, SOME),
    "chain": lambda: HiddenMarkovModel(K, family=FAMILIES, init="random", **FIXED).fit(
        MIXED, lengths=[40, 1, 49]
    ),
    "chain, left-right": lambda: HiddenMarkovModel(
        2,
        startprob=[1, 0],
        transmat=[[0.5, 0.5], [0, 1]],
        transmat_prior=np.full((2, 2), 2),
        **FIXED,
    ).fit(WORDS),
    "sphere": lambda: SphericalKMeans(K, n_init=2, random_state=0).fit(TEXT),
    "sphere, one view": lambda: SphericalKMeans(K, init=WORDS[:K]).fit(WORDS),
    "tree": lambda: MultiViewAgglomerative(K, metric="euclidean").fit(TEXT),
    "aspects": lambda: AspectModel(K, coupling="xy", **RUNS).fit(FRAME),
    "aspects, held out": lambda: AspectModel(
        K, validation=LINKS, coupling=RunCoupling("c"), n_runs=3, dtype=np.float32, **RUNS
    ).fit(LINKS),
    "aspects, warm": lambda: AspectModel(K, init=[AspectModel(K, **RUNS).fit(WORDS)], **RUNS).fit(
        WORDS
    ),
    "traffic": lambda: TrafficModel(2, coupling="x", **RUNS).fit(WORDS.T @ WORDS),
    "scaled": lambda: ScaleLength({"words": 10, "links": None}).fit(TEXT),
    "directions": lambda: LatentDirections(3, min_df=1).fit(TEXT),
    "latent text": lambda: TextViews({"words": "text"}, latent=3).fit(TABLE),
    "selected": lambda: SelectWords({"words": 5, "links": None}).fit(TEXT, NAMES),
    "selected, one view": lambda: SelectWords(5).fit(FRAME, NAMES),
    "pipeline": lambda: make_pipeline(
        CountVectorizer(stop_words=["word3"]), SelectWords(9), ScaleLength(50), classifier()
    ).fit(TEXTS, SOME),
    "tf-idf": lambda: make_pipeline(
        CountVectorizer(ngram_range=(1, 2), dtype=np.float32),
        TfidfTransformer(sublinear_tf=True),
        SphericalKMeans(K, random_state=0),
    ).fit(TEXTS),
    "text views": lambda: TextViews(TABLE_VIEWS, id="id", min_df=2, stop_words=["word3"]).fit(
        TABLE
    ),
    "selected text": lambda: TextViews(
        {"words": "text"}, max_features=5, select="mutual_info", scale_length={"words": 20}
    ).fit(TABLE, NAMES),
    "guessed": lambda: TextViews(ngram_range=(1, 2)).fit(TABLE),
    "text pipeline": lambda: make_pipeline(
        TextViews({"words": "text", "links": "refs:list"}), classifier()
    ).fit(TABLE, SOME),
    "not fitted": lambda: clusterer(family={"a": "gaussian", "b": Multinomial()}),
}
DATA = (
    {
        "frame": FRAME,
        "directions": TEXT,
        "mixed": MIXED,
        "chain": MIXED,
        "tied": POINTS,
        "diag": POINTS,
        "bernoulli": TAGS,
        "aspects": FRAME,
        "aspects, held out": LINKS,
        "traffic": WORDS.T @ WORDS,
        "selected, one view": FRAME,
        "pipeline": TEXTS,
        "tf-idf": TEXTS,
        "not fitted": None,
    }
    | dict.fromkeys(
        ["text views", "latent text", "selected text", "guessed", "text pipeline"], TABLE
    )
    | dict.fromkeys(
        ["joint", "hard", "coupled", "batches", "numbers", "calibrated", "pool", "sphere", "tree"],
        TEXT,
    )
    | dict.fromkeys(["scaled", "selected"], TEXT)
)
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "component_proba",
    "score_samples",
    "view_proba",
    "disagreement",
    "transform",
    "explain",
    "get_support",
    "get_feature_names_out",
)


@cache
def fitted(case):
    """Return the fitted model of a case."""
    return CASES[case]()


def data_of(case):
    """Return what the model of a case is asked about."""
    return DATA.get(case, WORDS)


def outputs(model, X):
    """Return all that a model says about its data."""
    if X is None:
        return []
    said = []
    for name in METHODS:
        method = getattr(model, name, None)
        lone = name == "explain" and len(getattr(model, "weights_", ())) == 1
        lone |= name.startswith("get") and isinstance(model, Pipeline)
        if method is not None and not lone:
            said.append((name, method() if name.startswith("get") else method(X)))
    if hasattr(model, "top_features"):
        views = [view for view in model.view_names_ if _has_probs(model, view)]
        args = [{"view": view} for view in views] if hasattr(model, "families_") else [{}]
        said += [("top_features", model.top_features(n=4, **arg)) for arg in args]
    if isinstance(model, AspectModel | TrafficModel):
        said.append(("score", model.score(X)))
    if isinstance(model, MultiViewAgglomerative):
        said.append(("cut", [model.cut(k) for k in range(1, 9)]))
    return said


def _has_probs(model, view):
    families = getattr(model, "families_", None)
    return families is None or not isinstance(families[view], Gaussian | VonMisesFisher)


def mark(value, digest=None):
    """Return a digest of a value, to the last bit: of arrays with their types."""
    outer = digest is None
    digest = hashlib.sha256() if outer else digest
    if isinstance(value, Views):
        value = dict(value.items())
    if sp.issparse(value):
        value = (value.shape, value.data, value.indices, value.indptr)
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).data)
    elif isinstance(value, dict):
        mark(list(value.items()), digest)
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"{type(value).__name__}{len(value)}".encode())
        for item in value:
            mark(item, digest)
    else:
        digest.update(f"{type(value).__name__} {value!r}".encode())
    return digest.hexdigest() if outer else None


def same(one, two, where="model"):
    """Assert that two values are the same in all that can matter, attribute by attribute."""
    assert type(one) is type(two), where
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape), where
        if one.flags.forc:  # else it is packed, along its shorter strides first
            assert one.flags.f_contiguous == two.flags.f_contiguous, where
            assert is_table(one) == is_table(two), where
        same(one.tolist(), two.tolist(), where)
    elif sp.issparse(one):
        same(vars(one)["_shape"], vars(two)["_shape"], where)
        for name in ("data", "indices", "indptr"):
            same(getattr(one, name), getattr(two, name), where)
    elif isinstance(one, dict):
        same(list(one), list(two), where)
        for key in one:
            same(one[key], two[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), where
        for i, (a, b) in enumerate(zip(one, two, strict=True)):
            same(a, b, f"{where}[{i}]")
    elif isinstance(one, float) and np.isnan(one):
        assert np.isnan(two), where
    elif hasattr(one, "__dict__") and not isinstance(one, type):
        same(*(_without_ids(vars(value)) for value in (one, two)), where)
    else:
        assert one == two, where


def _without_ids(attributes):
    """Leave out where scikit-learn has seen an object in this process."""
    return {name: attributes[name] for name in sorted(attributes) if name != "_stop_words_id"}


if __name__ == "__main__":  # in a fresh process: what do the models of a folder say?
    with open(sys.argv[1], "rb") as asked:
        for place, X in pickle.load(asked):
            sys.stdout.write(mark(outputs(coem.load(place), X)) + "\n")
