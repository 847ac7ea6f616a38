"""Files whose digests are right and whose content was never saved: refused in one sentence."""

import io
import json

import numpy as np
import pytest

import coem
from coem import ModelFileError
from coem.text import Embed, TextViews
from tests.io import fits
from tests.io.forging import forge, members, refused, state, write

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.coem"


@pytest.fixture
def model(path):
    fits.fitted("mixed").save(path)
    return path


def other_shape(name, view=None, field=None):
    """Return what makes an attribute hold an array of another shape."""

    def change(meta):
        place = state(meta)[name]
        place = dict(place["dict"])[view] if view else place
        place = place["object"][1][field] if field else place
        ((tag, _),) = place.items()
        place[tag] = "odd"

    return change


SHAPES = {
    "words": ("mixed", "theta_", "words", None),
    "tags": ("mixed", "theta_", "tags", "log_odds"),
    "none": ("mixed", "theta_", "tags", "log_none"),
    "points": ("mixed", "theta_", "points", "means"),
    "covariances": ("mixed", "theta_", "points", "covariances"),
    "codes": ("mixed", "theta_", "codes", None),
    "unit": ("mixed", "theta_", "unit", "directions"),
    "weights": ("mixed", "weights_", None, None),
    "view weights": ("mixed", "view_weights_", None, None),
    "columns": ("selected, one view", "feature_names_in_", None, None),
    "components": ("classes", "component_classes_", None, None),
    "classes": ("classes", "classes_", None, None),
    "centres": ("sphere", "cluster_centers_", "links", None),
    "consensus": ("sphere", "consensus_centers_", "words", None),
    "tree": ("tree", "children_", None, None),
    "aspects": ("aspects", "y_given_h_", None, None),
    "weights of aspects": ("aspects", "weights_", None, None),
    "start": ("chain", "startprob_", None, None),
    "transitions": ("chain", "transmat_", None, None),
    "states": ("chain", "theta_", "points", "means"),
    "alpha": ("traffic", "alpha_", None, None),
    "beta": ("traffic", "beta_", None, None),
    "chosen": ("selected", "_chosen", "words", None),
}
ODD = [
    np.zeros((3, 5)),
    np.zeros((2, 14)),
    np.zeros(0),
    np.zeros((0, 0)),
    np.full((3, 14), "a"),
    np.full(3, -7),
    np.array(3.0),
    np.zeros((3, 14), complex),
]


FITS = {("none", 5), ("classes", 5), ("alpha", 1)}  # of the right shape by chance


@pytest.mark.parametrize(
    ("case", "odd"), [(c, o) for c in SHAPES for o in range(len(ODD)) if (c, o) not in FITS]
)
def test_arrays_that_do_not_fit(case, odd, path):
    name, *place = SHAPES[case]
    coem.save(fits.fitted(name), path)
    buffer = io.BytesIO()
    np.save(buffer, ODD[odd])
    write(path, members(path) | {"odd.npy": buffer.getvalue()})
    if case == "columns":
        forge(path, lambda meta: state(meta)["feature_names_in_"].update(objects=[[1], ["a"]]))
    else:
        forge(path, other_shape(*place))
    refused(path)


CHANGES = {
    "no model": lambda meta: meta.pop("model"),
    "a list": lambda meta: meta.update(model=[]) or [1],
    "unknown class": lambda meta: meta.update(model={"object": ["os.system", {}]}),
    "a module": lambda meta: meta.update(model={"object": ["subprocess.Popen", {"args": "ls"}]}),
    "unknown tag": lambda meta: meta.update(model={"eval": "1"}),
    "two tags": lambda meta: meta.update(model={"tuple": [], "dict": []}),
    "no estimator": lambda meta: meta.update(model={"object": ["MixtureClusterer", {"a": 1}]}),
    "no state": lambda meta: meta.update(model={"object": ["MixtureClusterer", None]}),
    "odd parameter": lambda meta: state(meta, "params").update(shell="rm"),
    "bad parameter": lambda meta: state(meta, "params").update(assign="nobody"),
    "a method": lambda meta: state(meta).update(predict=3),
    "a dunder": lambda meta: state(meta).update(__class__=3),
    "twice": lambda meta: state(meta).update(n_components=3),
    "missing array": lambda meta: state(meta).update(weights_={"array": "nowhere"}),
    "array of arrays": lambda meta: state(meta).update(weights_={"array": ["0"]}),
    "a string": lambda meta: state(meta).update(theta_="text"),
    "a number": lambda meta: state(meta).update(view_names_=3),
    "other views": lambda meta: state(meta).update(view_names_={"tuple": ["a", "b"]}),
    "huge view": lambda meta: state(meta).update(
        view_widths_={"tuple": [14, 6, 2, 3, 10**13]}, n_features_in_=10**13 + 25
    ),
    "no family": lambda meta: state(meta).pop("families_"),
    "another family": lambda meta: dict(state(meta)["families_"]["dict"])["tags"].update(
        object=["Multinomial", {}]
    ),
    "a family without its field": lambda meta: dict(state(meta)["families_"]["dict"])[
        "tags"
    ].update(object=["Bernoulli", {"nothing": 1}]),
    "no history": lambda meta: state(meta).update(history_=[]),
    "beta": lambda meta: state(meta).update(beta_={"float": "nan"}),
    "statistics": lambda meta: state(meta).update(_stats=[1]),
    "absent": lambda meta: state(meta).update(weights_={"absent": "weights"}),
    "a dict of lists": lambda meta: state(meta).update(theta_={"dict": [[[1], 2]]}),
    "infinite range": lambda meta: state(meta).update(weights_={"range": [0, 10**18, 1]}),
    "a range of widths": lambda meta: state(meta).update(view_widths_={"range": [0, 10**15, 1]}),
    "many ranges": lambda meta: state(meta).update(extra_=[{"range": [0, 10**4, 1]}] * 20),
    "keys of one hash": lambda meta: state(meta).update(
        theta_={"dict": [[i * ((1 << 61) - 1), 0] for i in range(100)]}
    ),
    "a scalar of a list": lambda meta: state(meta).update(beta_={"scalar": ["float64", [1, 2]]}),
    "a long dtype": lambda meta: state(meta, "params").update(dtype={"dtype": "f8," * 1000}),
    "a shape below 0": lambda meta: state(meta).update(weights_={"objects": [[-1], ["a"]]}),
    "words and numbers": lambda meta: state(meta).update(extra_={"index": [["a"], "int", 3]}),
    "object array": lambda meta: state(meta).update(weights_={"objects": [[10**15], []]}),
    "a type": lambda meta: state(meta).update(weights_={"type": "Popen"}),
    "a dtype": lambda meta: state(meta, "params").update(dtype={"dtype": "O"}),
    "a scalar": lambda meta: state(meta).update(beta_={"scalar": ["object_", 1]}),
    "a sparse matrix": lambda meta: state(meta).update(weights_={"sparse": ["dok_matrix", [1], 1]}),
    "another float": lambda meta: state(meta).update(beta_={"float": "1e400"}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_documents_that_were_never_saved(case, model):
    forge(model, CHANGES[case])
    refused(model)


def test_a_sparse_matrix_that_points_outside(path):
    coem.save(fits.fitted("aspects, held out"), path)

    def change(meta):
        parts = state(meta, "params")["validation"]["sparse"]
        parts[3] = {"array": "far"}

    parts = members(path)
    meta = json.loads(parts["model.json"])
    name = state(meta, "params")["validation"]["sparse"][3]["array"]
    indices = np.load(io.BytesIO(parts[f"{name}.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, indices + 1000)
    write(path, parts | {"far.npy": buffer.getvalue()})
    forge(path, change)
    refused(path)


TEXT_CHANGES = {
    "a range of views": lambda own: own.update(views_={"range": [0, 10**15, 1]}),
    "a range for a view": lambda own: own["views_"]["dict"][0].__setitem__(
        1, {"range": [0, 10**15, 1]}
    ),
    "a range of columns": lambda own: dict(own["views_"]["dict"])["words"]["dict"].append(
        ["columns", {"range": [0, 10**4, 1]}]
    ),
    "views": lambda own: own["views_"]["dict"].pop(),
    "words": lambda own: own["vocabulary_"]["dict"][0][1].update(objects=[[2], ["a", 3]]),
    "no words": lambda own: own["vocabulary_"]["dict"][0].__setitem__(1, "text"),
    "kind": lambda own: dict(own["views_"]["dict"])["words"].update(dict=[["kind", "x"]]),
    "columns": lambda own: own.update(n_features_in_=99),
    "links": lambda own: own.update(links_={"dict": []}),
    "ends": lambda own: dict(dict(own["links_"]["dict"])["inbound"]["dict"])["sources"].update(
        objects=[[0], []]
    ),
}


@pytest.mark.parametrize("case", TEXT_CHANGES)
def test_text_views_that_were_never_saved(case, path):
    coem.save(fits.fitted("text views"), path)

    def change(meta):
        TEXT_CHANGES[case](state(meta))

    forge(path, change)
    refused(path)


def test_the_folder_of_an_embedding_is_never_read_from_a_file(path):
    coem.save(TextViews({"meaning": Embed("text", len)}), path)

    def change(meta):
        views = dict(state(meta, "params")["views"]["dict"])
        views["meaning"]["object"][1]["cache"] = "/tmp"

    forge(path, change)
    refused(path, "never saved")


@pytest.mark.parametrize("encoder", ["model2vec:model", {"object": ["NamedEncoder", {}]}])
def test_no_encoder_is_loaded_by_a_name_in_a_file(path, encoder):
    coem.save(TextViews({"meaning": Embed("text", len)}), path)

    def change(meta):
        views = dict(state(meta, "params")["views"]["dict"])
        views["meaning"]["object"][1]["encoder"] = encoder

    forge(path, change)
    if isinstance(encoder, dict):
        refused(path, "does not know")
        return
    with pytest.raises(ValueError, match="must have a method encode or be a function"):
        coem.load(path).fit({"text": ["some", "words"]})


@pytest.mark.parametrize("probe", [7, "text", {"scalar": ["float64", 1.0]}])
def test_a_probe_is_a_vector(path, probe):
    coem.save(TextViews({"meaning": Embed("text", len)}), path)

    def change(meta):
        views = dict(state(meta, "params")["views"]["dict"])
        views["meaning"]["object"][1]["probe"] = probe

    forge(path, change)
    refused(path, "the probe of an Embed")


def test_steps_that_do_not_fit_each_other(path):
    coem.save(fits.fitted("pipeline"), path)

    def change(meta):
        vectorizer = state(meta, "params")["steps"][0]["tuple"][1]["object"][1]["fitted"]
        del vectorizer["vocabulary_"]["dict"][3:]

    forge(path, change)
    refused(path)


@pytest.mark.parametrize("column", [-1, 1, 10**15, "a"])
def test_words_of_a_vectorizer_that_have_no_columns(path, column):
    coem.save(fits.fitted("pipeline"), path)

    def change(meta):
        vectorizer = state(meta, "params")["steps"][0]["tuple"][1]["object"][1]["fitted"]
        vectorizer["vocabulary_"]["dict"][0][1] = column
        vectorizer["vocabulary_"]["dict"][1][1] = column

    forge(path, change)
    refused(path, "vocabulary_")


def test_an_array_in_very_many_places(path):
    X = np.ones((2, 30_000))
    coem.save(coem.MixtureClusterer(1, max_iter=1, tol=1).fit(X), path)

    def change(meta):
        ((_, theta),) = state(meta)["theta_"]["dict"]
        state(meta).update(extra_=[theta] * 1000)

    forge(path, change)
    refused(path, "too many places")


def test_steps_that_are_none(path):
    coem.save(fits.fitted("pipeline"), path)
    forge(
        path, lambda meta: state(meta, "params").update(steps=[{"tuple": ["a", {"float": "nan"}]}])
    )
    refused(path)


@pytest.mark.parametrize("part", ["extra", "summary", "versions", "left_out"])
def test_info_that_is_none(part, model):
    forge(model, lambda meta: meta.update({part: 3}))
    with pytest.raises(ModelFileError, match=r"model\.coem is damaged"):
        coem.read_info(model)
