"""The recipes of the library give the bits of the program."""

import csv
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from sklearn.base import clone

import coem
from coem import evidence
from coem.cli import main
from coem.recipes import Listener, directions, how_many
from coem.text import Embed

WORDS = {
    "sea": "ship sail harbour captain wave anchor deck storm crew mast",
    "kitchen": "oven bread butter flour sugar spoon recipe salt pepper knife",
    "court": "judge trial jury lawyer witness verdict appeal crime prison law",
}
N = 60


def rows():
    """Return rows of three topics; every third of them has a label."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(N):
        topic = list(WORDS)[i % 3]
        words = WORDS[topic].split()
        found.append(
            {
                "id": f"p{i}",
                "title": " ".join(rng.choice(words, 3)),
                "body": " ".join(rng.choice(words, 25)) + " and the common rest",
                "topic": topic if i < N // 3 else None,
                "price": round(10 * (i % 3) + float(rng.normal()), 2),
                "refs": [f"p{j}" for j in rng.choice(np.arange(i % 3, N, 3), 3)],
            }
        )
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the rows as CSV, vectors of them, and letters of several paragraphs."""
    folder = tmp_path_factory.mktemp("recipes")
    table = rows()
    with (folder / "posts.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows({**row, "refs": "|".join(row["refs"])} for row in table)
    vectors = np.random.default_rng(1).normal(size=(N, 6)) + 3 * np.eye(6)[np.arange(N) % 3]
    np.save(folder / "v.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    for kind in ("old", "new"):
        (folder / "letters" / kind).mkdir(parents=True)
        for i in range(3):
            text = "\n\n".join(table[3 * j + (i + j // 4) % 3]["body"] for j in range(12))
            (folder / "letters" / kind / f"{i}.txt").write_text(text, encoding="utf-8")
    return folder


CASES = {
    "views": (
        [
            "cluster",
            "posts.csv",
            "--text",
            "body",
            "--view",
            "title=title",
            "--view",
            "price=price:number",
            "--view",
            "links=refs:list",
            "-k",
            "3",
            "--restarts",
            "3",
            "--label",
            "topic",
        ],
        {
            "text": "body",
            "views": {"title": "title", "price": "price:number", "links": "refs:list"},
            "k": 3,
            "restarts": 3,
            "label": "topic",
        },
    ),
    "vectors": (
        [
            "cluster",
            "posts.csv",
            "--view",
            "both=title+body",
            "--view",
            "m=v.npy",
            "-k",
            "3",
            "--restarts",
            "2",
            "--max-length",
            "10",
            "--seed",
            "4",
            "--min-df",
            "1",
        ],
        {
            "views": {"both": "title+body", "m": "v.npy"},
            "k": 3,
            "restarts": 2,
            "max_length": 10,
            "seed": 4,
            "min_df": 1,
        },
    ),
    "guessed": (
        ["cluster", "posts.csv", "--restarts", "2", "--max-iter", "20", "--stop-words", "none"],
        {"restarts": 2, "max_iter": 20, "stop_words": None},
    ),
    "k-means": (
        ["cluster", "posts.csv", "--view", "m=v.npy", "-k", "3", "--method", "k-means"],
        {"views": {"m": "v.npy"}, "k": 3, "method": "k-means"},
    ),
    "labels": (
        ["classify", "posts.csv", "--text", "body", "--view", "title=title", "--label", "topic"],
        {"text": ["body"], "views": {"title": "title"}, "label": "topic"},
    ),
    "doctor": (
        [
            "classify",
            "posts.csv",
            "--text",
            "body",
            "--label",
            "topic",
            "--doctor",
            "--folds",
            "3",
            "--unlabeled-weight",
            "0.5",
        ],
        {"text": "body", "label": "topic", "doctor": True, "folds": 3, "unlabeled_weight": 0.5},
    ),
    "topics": (["topics", "posts.csv", "-k", "3"], {"k": 3}),
    "alone": (
        ["topics", "posts.csv", "--text", "body", "-k", "4", "--coupling", "none"],
        {"text": "body", "k": 4, "coupling": None},
    ),
    "segments": (["segment", "letters", "--split", "paragraphs"], {"split": "paragraphs"}),
    "folders": (
        ["cluster", "letters", "-k", "2", "--restarts", "2", "--max-length", "0"],
        {"k": 2, "restarts": 2, "max_length": None},
    ),
}


def quietly(recipe, table, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recipe(table, **given)


def contents(folder):
    """Return the bytes of the files of a run, and its record without the time."""
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    told = json.loads(files.pop("run.json"))
    del told["seconds"]
    return files, told


@pytest.mark.parametrize("case", CASES)
def test_the_library_writes_what_the_program_writes(case, files, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    arguments, given = CASES[case]
    told = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "program")])
    assert told.exit_code == 0, told.stderr
    result = quietly(getattr(coem, arguments[0]), arguments[1], **given)
    assert result.save(tmp_path / "library") == tmp_path / "library"
    ours, record = contents(tmp_path / "library")
    theirs, other = contents(tmp_path / "program")
    assert ours.keys() == theirs.keys()
    assert {"model.coem", "assignments.csv", "clusters.csv", "report.html"} <= ours.keys()
    for name in ours:
        assert ours[name] == theirs[name], name
    if case == "doctor":  # the program speaks of options
        assert "(unlabeled_weight=0)" in record["result"].pop("doctor")
        assert "(--unlabeled-weight 0)" in other["result"].pop("doctor")
    assert record == other


@pytest.mark.slow
@pytest.mark.parametrize("case", ["views", "k-means", "labels", "topics", "segments"])
def test_a_run_of_the_library_can_be_run_again(case, files, tmp_path, monkeypatch):
    monkeypatch.chdir(files)
    arguments, given = CASES[case]
    quietly(getattr(coem, arguments[0]), arguments[1], **given).save(tmp_path / "run")
    told = CliRunner().invoke(main, ["rerun", str(tmp_path / "run")])
    assert told.exit_code == 0, told.stdout + told.stderr
    page = (tmp_path / "run" / "report.html").read_bytes()
    told = CliRunner().invoke(main, ["report", str(tmp_path / "run")])
    assert told.exit_code == 0, told.stderr
    assert (tmp_path / "run" / "report.html").read_bytes() == page


# -- tables ----------------------------------------------------------------------------------------

TABLES = {
    "list": lambda: rows(),
    "dict": lambda: {name: [row[name] for row in rows()] for name in rows()[0]},
    "pandas": lambda: pd.DataFrame(rows()),
    "polars": lambda: pl.DataFrame(rows()),
    "arrow": lambda: pl.DataFrame(rows()).to_arrow(),
}


@pytest.fixture(scope="module")
def of_the_file(files):
    """Results of recipes on the file."""
    chosen = {case: CASES[case] for case in ("views", "labels", "alone")}
    return {
        case: getattr(coem, arguments[0])(files / "posts.csv", **given)
        for case, (arguments, given) in chosen.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_any_kind_are_the_file(kind, of_the_file):
    table = TABLES[kind]()
    for case, theirs in of_the_file.items():
        if case == "labels" and kind not in ("list", "pandas"):  # it takes twenty fits
            continue
        arguments, given = CASES[case]
        ours = quietly(getattr(coem, arguments[0]), table, **given)
        for name, column in vars(theirs.assignments).items():
            np.testing.assert_array_equal(getattr(ours.assignments, name), column)
        assert ours.figures == theirs.figures
        assert ours.notes == theirs.notes


@pytest.mark.slow
def test_tables_have_one_fingerprint(tmp_path):
    _, given = CASES["views"]
    found = [quietly(coem.cluster, make(), **given) for make in TABLES.values()]
    assert len({result.documents.fingerprint for result in found}) == 1
    saved = [r.save(tmp_path / str(i)) / "model.coem" for i, r in enumerate(found)]
    assert len({path.read_bytes() for path in saved}) == 1
    other = coem.cluster([{**row, "title": "x y"} for row in rows()], text="body", k=2, restarts=2)
    assert other.documents.fingerprint != found[0].documents.fingerprint


def test_what_a_result_has(files, tmp_path):
    result = coem.cluster(files / "posts.csv", text="body", label="topic", k=3, restarts=2)
    assert repr(result) == "<Result of cluster: 3 groups, 60 rows>"
    assert sorted(group.size for group in result.groups) == [20, 20, 20]
    assert set(result.groups[0].name.split(", ")) <= set(" ".join(WORDS.values()).split())
    assert result.figures["nmi"] == pytest.approx(1)
    assert result.notes == ["60 rows; views: text (32 columns); stop words: English"]
    assert result.model.n_components == 3
    assert list(result.reader.views_) == list(result.views.names) == ["text"]
    assert np.array_equal(result.pipeline.predict(rows()), result.labels)
    assert result.report(tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!")
    assert not any("seconds" in record for record in result.model.history_)
    with pytest.raises(FileExistsError, match="there already"):
        result.save(result.save(tmp_path / "run"))
    result.save(tmp_path / "run", force=True, format="parquet", report=False)
    assert (tmp_path / "run" / "assignments.parquet").is_file()
    assert not (tmp_path / "run" / "report.html").exists()


def test_probabilities_are_those_that_other_runs_bear_out(files):
    table = pd.read_csv(files / "posts.csv")
    given = {"text": "body", "k": 4, "restarts": 4}
    modest = coem.cluster(table, **given)
    exact = coem.cluster(table, **given, evidence="fixed")
    np.testing.assert_array_equal(modest.labels, exact.labels)
    limit = modest.model.calibration_.limit
    assert (modest.figures["evidence_limit"], exact.figures["evidence_limit"]) == (limit, None)
    assert not hasattr(exact.model, "calibration_")
    for found in (modest, exact):
        proba = found.pipeline.predict_proba(table).max(axis=1)
        np.testing.assert_array_equal(found.assignments.probability, proba)
        assert found.figures["mean_probability"] == proba.mean()
    assert modest.figures["mean_probability"] < exact.figures["mean_probability"]


def test_k_means_has_groups_names_and_trust_but_no_probabilities(files, tmp_path):
    found = quietly(coem.cluster, files / "posts.csv", text="body", k=3, method="k-means")
    assert type(found.model) is coem.SphericalKMeans
    assert found.labels[:3].tolist() != found.labels[1:4].tolist()
    np.testing.assert_array_equal(found.labels, np.tile(found.labels[:3], N // 3))  # topics in turn
    assert min(group.stability["trust"] for group in found.groups) > 0.9
    assert np.isnan(found.assignments.probability).all()
    assert found.figures["mean_probability"] is None
    folder = found.save(tmp_path / "run")
    np.testing.assert_array_equal(coem.load(folder / "model.coem").predict(rows()), found.labels)
    told = CliRunner().invoke(main, ["predict", str(folder), str(files / "posts.csv")])
    assert told.exit_code == 0, told.stderr
    labels = [int(row["label"]) for row in csv.DictReader(told.stdout.splitlines())]
    assert labels == found.labels.tolist()
    told = CliRunner().invoke(main, ["explain", str(folder), "--id", "p1"])
    assert told.exit_code != 0
    assert "is a SphericalKMeans, which cannot explain rows" in told.stderr


def test_objects_as_views(files, tmp_path):
    vectors = np.load(files / "v.npy")
    views = {"m": vectors, "n": Embed("body", lambda texts: vectors[: len(texts)])}
    result = coem.cluster(rows(), text="body", views=views, k=3, restarts=2)
    named = coem.cluster(rows(), text="body", views={"m": files / "v.npy"}, k=3, restarts=2)
    given = coem.cluster(rows(), text="body", views={"m": vectors}, k=3, restarts=2)
    assert np.array_equal(named.assignments.probability, given.assignments.probability)
    result.save(tmp_path / "run")
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["arguments"]["views"] == {"m": None, "n": None}
    assert told["source"] is None
    again = CliRunner().invoke(main, ["rerun", str(tmp_path / "run")])
    assert "no file; name one with --file" in again.stderr
    file = ["--file", str(files / "posts.csv")]
    again = CliRunner().invoke(main, ["rerun", str(tmp_path / "run"), *file])
    assert "view 'm' was an object in Python" in again.stderr
    given.save(tmp_path / "given")
    again = CliRunner().invoke(main, ["report", str(tmp_path / "given"), *file, "--force"])
    assert "hand in theirs with --view m=FILE.npy" in again.stderr


def test_notes_and_progress(files):
    class Seen(Listener):
        def fitting(self, what, total, **how):
            self.bars = [*getattr(self, "bars", []), (what, total)]
            return super().fitting(what, total, **how)

    seen = Seen()
    result = coem.cluster(files / "letters", restarts=3, k=2, listener=seen)
    assert seen.bars == [("runs", 3)]
    assert result.notes is seen.notes
    assert seen.notes[0] == "the 2 sub-folders are the classes (label='label')"
    assert any(note.startswith("Column 'text' is a view") for note in seen.notes)
    result = coem.cluster(files / "posts.csv", text="body", restarts=2)
    assert result.notes[-1].startswith(f"k was not given: {len(result.groups)} groups")
    best = how_many(files / "posts.csv", text="body").best
    assert best == len(result.groups)


def test_warnings_stay_warnings(files):
    with pytest.warns(UserWarning, match="max_iter"):
        coem.classify(files / "posts.csv", text="body", label="topic", max_iter=1)


# -- what cannot be done ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "given", "message"),
    [
        ("cluster", {"k": 0}, "k must be an integer of 1 or more, got 0"),
        ("cluster", {"restarts": 1}, "restarts must be an integer of 2 or more"),
        ("cluster", {"restarts": 2**31}, "restarts must be at most 10,000"),
        ("cluster", {"seed": None}, "seed must be an integer of 0 or more"),
        ("cluster", {"max_length": -1}, "max_length must be a number of 0 or more"),
        ("cluster", {"method": "ward"}, "method must be one of 'em', 'k-means', got 'ward'"),
        ("cluster", {"method": "k-means", "evidence": "fixed"}, "evidence='fixed' is for method"),
        ("cluster", {"method": "k-means", "max_length": 20}, "max_length=20 is for method='em'"),
        (
            "cluster",
            {"method": "k-means", "views": {"p": "price:number"}},
            "view 'p' has numbers, which k-means on directions cannot compare",
        ),
        ("cluster", {"skip_bad": 1}, "skip_bad must be True or False"),
        ("cluster", {"encoding": "cp1252"}, "encoding is for files"),
        ("cluster", {"text": "nobody"}, "no column 'nobody'"),
        ("cluster", {"text": "body", "views": {"text": "title"}}, "two views 'text'"),
        ("cluster", {"text": "body", "k": 61}, "^k=61 groups cannot be made of 60 rows"),
        ("cluster", {"id": "title2"}, "the table has no column 'title2' for the ids"),
        ("cluster", {"id": "topic"}, "rows 0 and 3 are both called 'sea'.*with id="),
        ("cluster", {"text": "body", "label": "no"}, "no column 'no' for the labels"),
        ("classify", {"text": "body"}, "label='COLUMN'"),
        ("classify", {"text": "body", "label": "id"}, "is it an id or a text"),
        ("classify", {"text": "body", "label": "topic", "folds": 1}, "folds must be"),
        ("classify", {"text": "body", "label": "topic", "unlabeled_weight": 2}, "unlabeled_weight"),
        ("topics", {"k": None}, "k must be an integer"),
        ("topics", {"views": {"p": "price:number"}, "k": 2}, "with text=, or use coem.cluster"),
        ("topics", {"text": "body", "k": 2, "coupling": "z"}, "coupling"),
        ("segment", {"text": "body", "split": "pages"}, "pages"),
    ],
)
def test_bad_input_is_told_in_words_of_python(verb, given, message):
    with pytest.raises(ValueError, match=message) as error:
        getattr(coem, verb)(rows(), **given)
    assert "--" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [{"text": "nobody"}, {"text": "t1", "label": "nobody"}, {"text": "t1", "id": "nobody"}],
    ids=["text", "label", "id"],
)
def test_a_message_names_ten_columns_of_many(given):
    with pytest.raises(ValueError, match=r"has '?t1'?, .*, '?t10'? and 23 more$"):
        coem.cluster({f"t{i}": ["some words", "others"] for i in range(1, 34)}, **given)


def test_what_is_no_table():
    with pytest.raises(ValueError, match="no rows"):
        coem.cluster({"text": []})
    with pytest.raises(TypeError, match="a table is a pandas or polars DataFrame"):
        coem.cluster(["one text", "another"])
    with pytest.raises(TypeError, match="views must be a dict"):
        coem.cluster(rows(), views=["title"])
    with pytest.raises(TypeError, match="text must be the name of a column"):
        coem.cluster(rows(), text=[1])
    with pytest.raises(AttributeError, match="nothing"):
        coem.recipes.nothing  # noqa: B018
    with pytest.raises(ValueError, match="format must be one of"):
        coem.topics(rows(), text="body", k=2).save("x", format="xml")


def many_letters(n=120):
    """Return texts of two topics with more than 100 words that occur in three rows, and links."""
    rng = np.random.default_rng(0)
    words = np.array([f"{one}{two}m" for one in "bcdfghjklmnprstv" for two in "aeiourlnsy"])
    texts = [" ".join(rng.choice(words[80 * (i % 2) :][:80], 40)) for i in range(n)]
    return {"body": texts, "refs": [[f"r{i % 2}", f"r{i % 7}"] for i in range(n)]}


@pytest.mark.slow
def test_groups_have_a_view_of_latent_directions_unless_there_are_lists():
    table = many_letters()
    found = coem.cluster(table, text="body", k=2, restarts=2)
    assert found.model.view_names_ == ("text", "latent")
    assert len(set(found.labels[::2].tolist())) == 1 != len(set(found.labels.tolist()))
    linked = coem.cluster(table, text="body", views={"links": "refs:list"}, k=2, restarts=2)
    assert linked.model.view_names_ == ("text", "links")
    guessed = coem.cluster({"body": table["body"], "kind": ["a b", "c d"] * 60}, k=2, restarts=2)
    assert "latent" in guessed.model.view_names_
    chosen = coem.cluster(table, text="body", restarts=2)
    assert chosen.figures["k"] == how_many(table, text="body").best
    few = coem.cluster(many_letters(60), text="body", k=2, restarts=2)
    assert few.model.view_names_ == ("text",)


def test_the_number_of_latent_directions_can_be_given():
    table = many_letters()
    asked = {"text": "body", "k": 2, "restarts": 2}
    without = coem.cluster(table, **asked, latent=None)
    assert without.model.view_names_ == ("text",)
    assert without.settings["latent"] == "none"
    assert coem.cluster(table, **asked, latent="none").model.view_names_ == ("text",)
    linked = coem.cluster(table, **asked, views={"links": "refs:list"}, latent=4)
    assert linked.model.view_names_ == ("text", "links", "latent")
    assert linked.model.view_widths_[-1] == 4
    classes = table | {"kind": ["a", "b"] * 20 + [""] * 80}
    found = coem.classify(classes, text="body", label="kind", latent=None)
    assert found.model.view_names_ == ("text",)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_a_wrong_number_of_latent_directions_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="latent"):
        coem.cluster(many_letters(), text="body", k=2, latent=wrong)


def test_a_wrong_word_for_latent_directions_is_refused():
    with pytest.raises(ValueError, match="latent must be a number of directions, 'auto' or None"):
        coem.cluster(many_letters(), text="body", k=2, latent="some")


def two_texts(n=240, first=True, second=True):
    """Return two texts per row: of two topics each, or random words."""
    rng = np.random.default_rng(0)
    words = np.array([f"{one}{two}m" for one in "bcdfghjklmnprstv" for two in "aeiourlnsy"])

    def text(i, topics):
        return " ".join(rng.choice(words[80 * (i % 2) :][:80] if topics else words, 30))

    return {
        "title": [text(i, first) for i in range(n)],
        "body": [text(i, second) for i in range(n)],
    }


BOTH = {"title": "title", "body": "body"}


@pytest.mark.slow
def test_texts_that_find_groups_together_need_no_directions(tmp_path):
    found = coem.cluster(two_texts(), views=BOTH, k=2, restarts=2)
    assert found.model.view_names_ == ("title", "body")
    assert any("latent directions are left out" in note for note in found.notes)
    found.save(tmp_path / "run")
    model = coem.load(tmp_path / "run" / "model.coem")
    table = two_texts()
    assert (model.predict(pd.DataFrame(table)) == found.labels).all()
    for more in ({"latent": 20}, {"evidence": "fixed"}):
        kept = coem.cluster(two_texts(), views=BOTH, k=2, restarts=2, **more)
        assert kept.model.view_names_ == ("title", "body", "latent")


def test_texts_that_end_in_one_group_get_directions(monkeypatch):
    monkeypatch.setattr(directions, "kept_groups", lambda *given: 0.49)
    found = coem.cluster(two_texts(), views=BOTH, k=2, restarts=2)
    assert found.model.view_names_ == ("title", "body", "latent")
    assert not any("latent directions are left out" in note for note in found.notes)


def test_the_effective_number_of_groups():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.1), size=4)
    truth = np.repeat(np.arange(4), [70, 10, 10, 10])
    views = coem.Views(a=rng.poisson(40 * topics[truth]), b=rng.poisson(40 * topics[truth]))
    shares = np.array([0.7, 0.1, 0.1, 0.1])
    want = np.exp(-(shares * np.log(shares)).sum()) / 4
    assert directions.kept_groups(views, "multinomial", 4) == pytest.approx(want)


def constant(table):
    return table | {"title": ["one same title"] * len(table["body"])}


def rare(table):
    return table | {"title": [t if i % 20 == 0 else "" for i, t in enumerate(table["title"])]}


@pytest.mark.parametrize(
    "table",
    [two_texts(first=False), constant(two_texts()), rare(two_texts())],
    ids=["noise", "constant", "mostly empty"],
)
def test_one_text_that_speaks_keeps_its_directions(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "view 'title' is left out: ..."
        found = coem.cluster(table, views=BOTH, k=2, restarts=2)
    assert "latent" in found.model.view_names_


def test_a_reader_without_directions_makes_none_when_it_is_fitted_again():
    table = pd.DataFrame(two_texts())
    found = coem.cluster(table, views=BOTH, k=2, restarts=2)
    again = clone(found.pipeline).fit(table)
    assert again[-1].view_names_ == ("title", "body")


def test_more_groups_than_rows_of_a_trial_keep_directions(monkeypatch):
    monkeypatch.setattr(evidence, "SAMPLE", 4)
    found = coem.cluster(two_texts(), views=BOTH, k=5, restarts=2)
    assert "latent" in found.model.view_names_


def test_a_view_of_the_name_of_the_directions():
    found = coem.cluster(two_texts(), views={"latent": "title", "body": "body"}, k=2, restarts=2)
    assert found.model.view_names_ == ("latent", "body")


def test_correlations_of_very_many_numbers_are_left_out():
    """They would take memory and time that grow with the square and the cube of the columns."""
    rng = np.random.default_rng(0)
    for n_columns, covariance in ((3, "full"), (257, "diag")):
        numbers = rng.random((20, n_columns)) + 5 * (np.arange(20) % 2)[:, np.newaxis]
        table = {f"c{i}": column for i, column in enumerate(numbers.T)}
        found = coem.cluster(
            pd.DataFrame(table), views={"n": [f"{c}:number" for c in table]}, k=2, restarts=2
        )
        assert found.model.families_["n"].covariance == covariance
