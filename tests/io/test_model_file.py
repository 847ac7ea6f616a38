"""A model that was saved and loaded is the model, to the last bit."""

import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import coem
from coem import MixtureClassifier, MixtureClusterer, ModelFileError, RunCoupling
from coem.coupling import CoEM, Joint
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.io import Absent, register
from coem.io.registry import entry_named, entry_of
from coem.posterior import Hard
from coem.text import Embed, ScaleLength, TextViews
from tests.io import fits

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.coem"


def again(model, path, **options):
    coem.save(model, path)
    return coem.load(path, **options)


@pytest.mark.parametrize("case", fits.CASES)
def test_every_attribute_is_carried_over(case, path):
    model = fits.fitted(case)
    loaded = again(model, path)
    if case == "bernoulli":  # how many threads a machine takes is its own business
        assert (model.n_jobs, loaded.n_jobs) == (2, None)
        loaded.n_jobs = model.n_jobs
    fits.same(model, loaded, case)


@pytest.mark.parametrize("case", fits.CASES)
def test_a_loaded_model_can_be_saved_cloned_and_pickled(case, path, tmp_path):
    model = again(fits.fitted(case), path)
    other = again(model, tmp_path / "other.coem")
    assert path.read_bytes() == (tmp_path / "other.coem").read_bytes()
    fits.same(other, model)
    pickle.dumps(model)
    clone(model)
    repr(model)


@pytest.mark.slow
def test_a_fresh_process_says_the_same_to_the_last_bit(tmp_path):
    asked, expected = [], []
    for i, case in enumerate(fits.CASES):
        model, X = fits.fitted(case), fits.data_of(case)
        coem.save(model, tmp_path / f"{i}.coem")
        asked.append((str(tmp_path / f"{i}.coem"), X))
        expected.append(fits.mark(fits.outputs(model, X)))
    (tmp_path / "asked").write_bytes(pickle.dumps(asked))
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "tests.io.fits", tmp_path / "asked"],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
    )
    wrong = [
        case
        for case, here, there in zip(fits.CASES, expected, done.stdout.split(), strict=True)
        if here != there
    ]
    assert not wrong
    assert len(set(expected)) > len(expected) // 2  # they do say something


@pytest.mark.parametrize("case", ["batches", "one view", "mixed"])
def test_partial_fit_goes_on(case, path):
    X = fits.data_of(case)[20:60]
    first, second = fits.CASES[case](), again(fits.fitted(case), path)
    same = first.partial_fit(X), second.partial_fit(X)
    fits.same(same[0].theta_, same[1].theta_)
    assert first.weights_.tobytes() == second.weights_.tobytes()


def test_a_classifier_goes_on_too(path):
    first, second = fits.CASES["classes"](), again(fits.fitted("classes"), path)
    for model in (first, second):
        model.partial_fit(fits.WORDS[:30], fits.SOME[:30]).partial_fit(fits.WORDS, fits.SOME)
    for name in ("theta_", "weights_", "_stats", "labels_"):
        fits.same(getattr(first, name), getattr(second, name), name)


def test_a_loaded_model_is_a_start(path):
    old = fits.fitted("one view")
    new = again(old, path)
    fitted = [fits.clusterer(init=start).fit(fits.WORDS).weights_ for start in (old, new)]
    assert fitted[0].tobytes() == fitted[1].tobytes()


def test_save_is_a_method_of_all(path):
    known = [cls for cls in subclasses(BaseEstimator) if entry_of(cls) is not None]
    ours = [cls for cls in known if cls.__module__.startswith("coem.")]
    assert len(ours) >= 8
    for cls in ours:
        assert callable(cls.save)
    ScaleLength(5).save(path, extra={"a": [1]}, fingerprint="abc")
    assert coem.load(path).length == 5


def subclasses(cls):
    return {cls}.union(*(subclasses(c) for c in cls.__subclasses__()))


def test_all_public_estimators_are_registered():
    public = [getattr(coem, name) for name in coem.__all__]
    estimators = [c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)]
    assert len(estimators) == 8
    assert [c for c in estimators if entry_of(c) is None] == []


# -- what a file says of itself --------------------------------------------------------------------


def test_info(path):
    fits.fitted("calibrated").save(path, extra={"title": "ä", "n": 3}, fingerprint="f00")
    info = coem.read_info(path)
    assert info.summary == {
        "class": "MixtureClassifier",
        "views": {"words": 14, "links": 9},
        "components": 3,
        "rows": fits.N,
        "classes": ["ham", "news", "spam"],
    }
    assert (info.extra, info.fingerprint) == ({"title": "ä", "n": 3}, "f00")
    assert (info.schema, info.size) == (2, path.stat().st_size)
    assert info.versions["coem"] == coem.__version__
    assert info.left_out == []


def test_info_of_a_pipeline(path):
    coem.save(fits.fitted("pipeline"), path)
    steps = coem.read_info(path).summary["steps"]
    assert [step["class"] for step in steps][:2] == ["CountVectorizer", "SelectWords"]
    assert steps[0]["vocabulary"] == 13
    assert steps[3]["views"] == {"view0": 9}


def test_info_of_text_views(path):
    coem.save(fits.fitted("text views"), path)
    sizes = coem.read_info(path).summary["vocabulary"]
    assert sizes == {name: len(w) for name, w in fits.fitted("text views").vocabulary_.items()}


def test_info_reads_no_array(path, monkeypatch):
    fits.fitted("mixed").save(path)
    monkeypatch.setattr(coem.io.archive, "_read_array", None)
    assert coem.read_info(path).summary["components"] == 3


@pytest.mark.parametrize("extra", [{"a": float("nan")}, {"a": {1, 2}}, [1], {1: 2}, "a"])
def test_extra_is_plain_json(extra, path):
    with pytest.raises(ModelFileError, match="extra must be a dict of plain JSON"):
        ScaleLength().save(path, extra=extra)
    assert not path.exists()


def test_fingerprint_is_a_string(path):
    with pytest.raises(ModelFileError, match="fingerprint must be None or a str, got 3"):
        ScaleLength().save(path, fingerprint=3)


def test_the_same_model_is_the_same_file(tmp_path):
    for name in "ab":
        fits.fitted("mixed").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_digests_are_those_of_sha256sum(path, tmp_path):
    import zipfile

    fits.fitted("mixed").save(path)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "members")
    subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / "members", check=True)


def test_others_may_read_the_file(path):
    before = os.umask(0o022)
    try:
        ScaleLength().save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644


# -- what no file can hold -------------------------------------------------------------------------


def test_the_machine_of_the_fit_is_not_saved(path, tmp_path):
    model = fits.clusterer(engine=LocalEngine(1), checkpoint=tmp_path / "run")
    model.fit(fits.WORDS)
    loaded = again(model, path)
    assert loaded.engine is None
    assert loaded.checkpoint is None
    np.testing.assert_array_equal(loaded.predict(fits.WORDS), model.labels_)


def test_parameters_of_the_fit_alone_may_be_left_out(path):
    state = np.random.RandomState(0)
    model = fits.classifier(random_state=state, cv=StratifiedKFold(3)).fit(fits.WORDS, fits.SOME)
    loaded = again(model, path)
    assert (loaded.random_state, loaded.cv) == (None, 5)
    assert coem.read_info(path).left_out == [
        "MixtureClassifier.cv: a StratifiedKFold",
        "MixtureClassifier.random_state: a RandomState",
    ]


class MyFamily(Multinomial):
    pass


def test_a_family_of_ones_own_has_to_be_registered(path, monkeypatch):
    model = fits.clusterer(family={"view0": MyFamily()}).fit(fits.WORDS)
    message = r"^MixtureClusterer.family.view0: a MyFamily \(of .*\) cannot be saved; .*register"
    with pytest.raises(ModelFileError, match=message):
        model.save(path)
    assert not path.exists()
    for table in ("_by_name", "_by_class"):
        monkeypatch.setattr(coem.io.registry, table, dict(getattr(coem.io.registry, table)))
    register(MyFamily)
    fits.same(model, again(model, path))
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"contains a 'MyFamily', .*coem.io.register first"):
        coem.load(path)


def test_two_classes_of_one_name():
    with pytest.raises(ValueError, match=r"'Linear' is .* already"):
        register(type("Linear", (), {}))


class Mine(MixtureClusterer):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(FunctionTransformer(), ScaleLength()), "a FunctionTransformer"),
        (make_pipeline(ScaleLength(lambda x: x)), "a function"),
        (Mine(), "a Mine"),
        ([MixtureClusterer()], "a list cannot be saved as a model"),
        (3, "a int cannot be saved as a model"),
        (MixtureClusterer(tol=np.longdouble(1)), "tol: a longdouble"),
        (MixtureClusterer(tol=np.ma.masked_array([1])), "tol: a MaskedArray"),
        (MixtureClusterer(tol=np.zeros(2, "i4,f4")), "tol: a"),
    ],
)
def test_what_is_no_model(model, message, path):
    with pytest.raises(ModelFileError, match=message):
        coem.save(model, path)
    assert not path.exists()


def test_a_model_that_holds_itself(path):
    model = ScaleLength()
    model.length = model
    with pytest.raises(ModelFileError, match="holds itself"):
        model.save(path)


@dataclass(frozen=True)
class Embedding:
    column: str
    encoder: object = None


@pytest.fixture
def embedding(monkeypatch):
    for table in ("_by_name", "_by_class"):
        monkeypatch.setattr(coem.io.registry, table, dict(getattr(coem.io.registry, table)))
    register(Embedding, absent=("encoder",))


@pytest.mark.usefixtures("embedding")
def test_a_function_leaves_a_place_to_be_filled(path, tmp_path):
    model = ScaleLength({"a": Embedding("text", len)})
    loaded = again(model, path)
    stand_in = loaded.length["a"].encoder
    assert isinstance(stand_in, Absent)
    for use in (stand_in, stand_in.encode):
        with pytest.raises(ModelFileError, match=r"without its encoder .*fill="):
            use(["some text"])
    left = "ScaleLength.length.a.encoder: a builtin_function_or_method"
    assert coem.read_info(path).left_out == [left]
    assert coem.load(path, fill={"encoder": len}).length["a"].encoder is len
    assert isinstance(again(loaded, tmp_path / "b").length["a"].encoder, Absent)


def test_an_encoder_of_text_views_is_given_again(path, tmp_path):
    def encode(texts):
        return [[len(text), 1.0] for text in texts]

    views = {"words": "text", "meaning": Embed("text", encode, cache=tmp_path / "vectors")}
    model = TextViews(views).fit(fits.TABLE)
    loaded = again(model, path)
    assert loaded.views["meaning"].cache is None
    with pytest.raises(ModelFileError, match=r"without its encoder \(function\), .*fill="):
        loaded.transform(fits.TABLE)
    filled = coem.load(path, fill={"encoder": encode})
    assert fits.mark(filled.transform(fits.TABLE)) == fits.mark(model.transform(fits.TABLE))


@pytest.mark.usefixtures("embedding")
def test_what_can_be_saved_leaves_no_gap(path):
    loaded = again(ScaleLength({"a": Embedding("text", "name")}), path)
    assert loaded.length["a"] == Embedding("text", "name")


# -- values ----------------------------------------------------------------------------------------

SHARED = np.arange(6.0)
VALUES = [
    *(None, True, 3, -(10**30), 0.1, 5e-324, float("nan"), float("-inf"), "", "ä\x00\ud800"),
    *([], (), {}, [1, (2, [3])], {1: "a", (2, 3): None, "b": {4.5: [True]}, None: 1}),
    *({1, "a", None}, frozenset([(1, 2)]), slice(1, None, 2), range(3)),
    *(np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("x"), np.float64("nan")),
    *(np.dtype("<f4"), np.float64, np.int32, int, float, Path("a/b")),
    *(np.arange(3), np.zeros((0, 3), np.float32), np.array(2.5), np.ones((2, 3, 4))),
    *(np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.arange(24.0).reshape(4, 6)[:, ::2].T),
    *(np.array(["a", "bcd"]), np.array([b"x"]), np.array(["2020-01-01"], "M8[D]")),
    *(np.array(["a", None, 3, np.float32(2)], dtype=object), np.array([["a"], ["b"]], object)),
    [SHARED, {"again": SHARED}],
]


# Numbered: a set is written in another order by every process.
@pytest.mark.parametrize(
    "value", VALUES, ids=[f"{i}-{type(v).__name__}" for i, v in enumerate(VALUES)]
)
def test_values(value, path):
    fits.same(value, again(ScaleLength(value), path).length)


def test_an_array_in_two_places_is_one(path):
    first, second = again(ScaleLength([SHARED, {"again": SHARED}]), path).length
    assert first is second["again"]


def test_bytes_in_the_order_of_another_machine(path):
    loaded = again(ScaleLength(np.arange(3, dtype=">i4")), path).length
    assert loaded.dtype == np.dtype("=i4")
    assert loaded.tolist() == [0, 1, 2]


def test_a_large_table_is_read_by_parts(path):
    table = np.random.default_rng(0).random((3, 100_000))
    np.testing.assert_array_equal(again(ScaleLength(table), path).length, table)


def test_metadata_routing_is_left_out(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        model = MixtureClassifier().set_fit_request(sample_weight=True)
        assert "_metadata_request" not in vars(again(model, path))


@pytest.mark.parametrize(
    "values", [{"coupling": Joint()}, {"coupling": CoEM()}, {"posterior": Hard()}]
)
def test_couplings_and_rules_as_values(values, tmp_path):
    model = fits.clusterer(**values).fit(fits.TEXT)
    model.save(tmp_path / "m.coem")
    loaded = coem.load(tmp_path / "m.coem")
    assert loaded.get_params(deep=False)[next(iter(values))] == next(iter(values.values()))
    np.testing.assert_array_equal(loaded.predict_proba(fits.TEXT), model.predict_proba(fits.TEXT))


def test_a_row_coupling_of_an_old_file_is_read():
    entry = entry_named("RowCoupling")
    old = entry.cls(times=2, after=4, among="ring", own=False)
    assert old == RunCoupling("rows", "ring", include_self=False, n_couplings=2, n_rounds=4)
