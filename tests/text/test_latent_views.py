"""The view of latent directions of TextViews, and what the program makes of it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.cli import main
from coem.families import VonMisesFisher
from coem.report import assign, group_words, name_groups, tell
from coem.report.words import Word, Words
from coem.text import LatentDirections, TextViews

WORDS = {
    "sea": ["ship", "sail", "harbour", "captain", "wave", "anchor", "deck", "storm", "mast"],
    "oven": ["bread", "butter", "flour", "sugar", "spoon", "recipe", "salt", "pepper", "knife"],
}


def table(n=60, seed=0):
    """Return rows of two topics: title, body, price, refs."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        words = list(WORDS.values())[i % 2]
        drawn = [" ".join(rng.choice(words, size)) for size in (3, 12)]
        rows.append(
            {
                "title": drawn[0],
                "body": drawn[1],
                "price": 7 * i % 11 + 0.5,
                "refs": [f"r{i % 2}", "r"],
            }
        )
    return rows


TABLE = table()
VIEWS = {"title": "title", "price": "price:number", "body": "body", "refs": "refs:list"}


def fitted(**options):
    reader = TextViews(VIEWS, latent=5, **options)
    return reader, reader.fit_transform(TABLE)


@pytest.mark.parametrize(
    "options", [{}, {"max_length": 5, "scale_length": 9, "n_jobs": 2}, {"min_df": 2}], ids=str
)
def test_the_view_is_made_of_whole_counts_of_words(options):
    reader, views = fitted(**options)
    kept = {k: v for k, v in options.items() if k == "min_df"}
    words = TextViews({"title": "title", "body": "body"}, **kept).fit_transform(TABLE)
    assert views.names == ("title", "price", "body", "refs", "latent")
    expected = LatentDirections(5).fit_transform(words)["latent"]
    np.testing.assert_array_equal(views["latent"], expected)
    np.testing.assert_array_equal(reader.transform(TABLE)["latent"], expected)
    np.testing.assert_array_equal(reader.transform(TABLE[3:4])["latent"], expected[3:4])
    assert reader.views_["latent"] == {"kind": "latent", "columns": []}
    names = reader.get_feature_names_out("latent").tolist()
    assert names == [f"latent{i}" for i in range(5)]
    assert reader.get_feature_names_out()[-1] == "latent__latent4"


def test_the_other_views_stay_as_they_are():
    _, views = fitted(max_length=5)
    plain = TextViews(VIEWS, max_length=5).fit_transform(TABLE)
    for name, matrix in plain.items():
        if name == "price":
            np.testing.assert_array_equal(views[name], matrix)
        else:
            assert (views[name] != matrix).nnz == 0


def test_the_parameter_takes_a_number_a_flag_or_a_transformer():
    for latent in (None, False):
        reader = TextViews({"body": "body"}, latent=latent).fit(TABLE)
        assert reader.latent_ is None
        assert list(reader.views_) == ["body"]
    assert TextViews({"body": "body"}, latent=True).fit(TABLE).latent_.n_directions == 100
    own = LatentDirections(3, min_df=1, name="lsa")
    reader = clone(TextViews({"body": "body"}, latent=own)).set_params(latent__n_directions=2)
    assert reader.fit_transform(TABLE)["lsa"].shape == (60, 2)
    assert not hasattr(own, "components_")
    for latent in (0, 1.5, "yes"):
        with pytest.raises(ValueError, match="latent must be None, True, 'auto', a number"):
            TextViews({"body": "body"}, latent=latent).fit(TABLE)


def test_what_cannot_be_is_explained():
    with pytest.raises(ValueError, match="latent: the directions are made of views of text"):
        TextViews({"refs": "refs:list"}, latent=True).fit(TABLE)
    with pytest.raises(ValueError, match="there is a view 'latent' already; rename it"):
        TextViews({"latent": "body"}, latent=True).fit(TABLE)
    with pytest.raises(ValueError, match="no word occurs in min_df=3 rows"):
        TextViews({"body": "body"}, latent=True).fit(TABLE[:2])
    with pytest.raises(ValueError, match="view 'latent': all rows have the same words"):
        TextViews({"body": "body"}, latent=True).fit([{"body": "a word"}] * 5)
    with pytest.raises(ValueError, match="there is no view of latent directions"):
        TextViews({"body": "body"}).fit(TABLE).latent_words(TABLE[:1], [1.0])


def test_rows_without_known_words_are_empty():
    reader, _ = fitted()
    row = {**TABLE[0], "title": "unknown", "body": ""}
    assert np.isnan(reader.transform([row])["latent"]).all()


def test_a_model_file_gives_the_same_bits(tmp_path):
    model = make_pipeline(
        TextViews({"body": "body"}, latent=LatentDirections(4)), MixtureClusterer(2, random_state=0)
    ).fit(TABLE)
    coem.save(model, tmp_path / "model.coem")
    loaded, new = coem.load(tmp_path / "model.coem"), table(20, seed=1)
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    reader = model[0]
    reader.latent_.view_widths_ = (3,)
    reader.latent_.n_features_in_ = 3
    coem.save(model, tmp_path / "bad.coem")
    with pytest.raises(ValueError, match="does not fit"):
        coem.load(tmp_path / "bad.coem")


def model_of(views, **params):
    return MixtureClusterer(2, random_state=0, n_init=2, **params).fit(views)


def test_groups_are_named_by_words():
    reader, views = fitted()
    views = views[["title", "body", "latent"]]
    model = model_of(views)
    assert isinstance(model.families_["latent"], VonMisesFisher)
    words = group_words(model, views, feature_names=reader.vocabulary_)
    names = name_groups(words)
    known = {word for topic in WORDS.values() for word in topic}
    assert all(set(name.split(", ")) <= known for name in names)
    story = tell(model, views, feature_names=reader.vocabulary_)
    assert all(set(group.name.split(", ")) <= known for group in story.groups)
    assert assign(model, views, range(60), names).name[0] in names


def test_columns_without_probabilities_name_only_groups_without_words():
    latent = Words([], [Word("latent3", 9.0)])
    text = Words([Word("ship", 0.5)], [Word("ship", 0.1)])
    nothing = Words([Word("the", 0.5)], [])
    groups = [{"text": text, "latent": latent}, {"text": nothing, "latent": latent}]
    assert name_groups(groups) == ["ship", "latent3"]


def test_explanations_add_up_by_direction_and_by_word():
    reader = TextViews({"title": "title", "body": "body"}, latent=5, max_length=5)
    views = reader.fit_transform(TABLE)
    model = model_of(views)
    told = model.explain(views[[7]])[0]
    part = told.views["latent"]
    z, theta = views["latent"][7].astype(float), model.theta_["latent"]
    a, b = told.label, told.against
    expected = z * (theta.kappas[a] * theta.directions[a] - theta.kappas[b] * theta.directions[b])
    np.testing.assert_allclose(part.contributions, expected[part.features], rtol=1e-5)
    total = told.prior + sum(p.contributions.sum() + p.rest for p in told.views.values())
    assert total == pytest.approx(told.log_odds, rel=1e-12)
    names, contributions, rest = reader.latent_words(TABLE[7:8], part.contributions)
    assert contributions.sum() + rest == pytest.approx(part.contributions.sum(), rel=1e-9)
    own = {f"{v}: {word}" for v in ("title", "body") for word in TABLE[7][v].split()}
    assert set(names) <= own
    assert contributions.max() > 0


# -- the program, with a model that has the view ----------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that calls the program beside a model file and its documents."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"p{i}", "text": row["body"]} for i, row in enumerate(table())]
    with open("posts.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    model = make_pipeline(
        TextViews({"text": "text"}, id="id", latent=4, max_length=6),
        MixtureClassifier(random_state=0),
    )
    y = np.array(["sea", "oven"] * 30, dtype=object)
    y[10:] = ""
    coem.save(model.fit(rows, y), "model.coem")

    def call(*arguments):
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


def test_the_program_explains_by_words(run):
    arguments = ("explain", "model.coem", "--id", "p6", "--file", "posts.jsonl", "--json")
    told = json.loads(run(*arguments))
    latent = [p for p in told["parts"] if p["view"] == "latent"]
    assert len(latent) > 2
    assert {p["word"] for p in latent[:-1]} <= set(WORDS["sea"])
    total = sum(p["contribution"] for p in told["parts"])
    assert total == pytest.approx(told["log_odds"], rel=1e-9)


def test_the_program_predicts_and_informs(run):
    lines = run("predict", "model.coem", "posts.jsonl").splitlines()
    assert len(lines) == 61
    assert [line.split(",")[1].strip('"') for line in lines[1:5]] == ["sea", "oven"] * 2
    told = json.loads(run("info", "model.coem", "--json"))
    assert told["summary"]["steps"][0]["vocabulary"]["latent"] == 4


def test_families_of_the_program():
    from coem.recipes.views import families as families_of

    reader, views = fitted(max_length=5)
    families = families_of(reader)
    assert families["latent"] == "von_mises_fisher"
    assert set(families) == set(views.names)
    assert isinstance(views, Views)
