"""The numbers of a story are those that NumPy finds."""

import json
import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import normalized_mutual_info_score

from coem import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    SphericalKMeans,
    TrafficModel,
    Views,
)
from coem.families import Multinomial
from coem.metrics import agreement_rate, cluster_entropy, expected_calibration_error
from coem.report import group_words, name_groups, read, render, tell
from coem.report.closeness import Space
from coem.report.words import Word, Words, shared_columns
from coem.selection import stability


@pytest.fixture(scope="module")
def story(collection, model):
    return tell(model, collection.views, **collection.named())


def test_groups_are_those_of_the_model(story, collection, model):
    labels = model.predict(collection.views)
    sizes = np.bincount(labels, minlength=3)
    assert [group.size for group in story.groups] == sizes.tolist()
    assert [group.share for group in story.groups] == pytest.approx(sizes / 90)
    proba = model.predict_proba(collection.views).max(axis=1)
    for g, group in enumerate(story.groups):
        assert group.label == g
        assert group.probability == pytest.approx(proba[labels == g].mean())


def test_assignments_have_an_entry_for_every_row(story, collection, model):
    a, proba = story.assignments, model.predict_proba(collection.views)
    order = np.argsort(-proba, axis=1, kind="stable")
    assert a.id.tolist() == collection.ids
    assert a.label.tolist() == order[:, 0].tolist()
    assert a.second.tolist() == order[:, 1].tolist()
    np.testing.assert_allclose(a.probability, np.sort(proba, axis=1)[:, -1])
    np.testing.assert_allclose(a.second_probability, np.sort(proba, axis=1)[:, -2])
    np.testing.assert_allclose(a.disagreement, model.disagreement(collection.views))
    names = [group.name for group in story.groups]
    assert a.name.tolist() == [names[label] for label in a.label]


def test_words_are_those_of_top_features(story, collection, model):
    for by, kind in (("wllr", "discriminating"), ("prob", "descriptive")):
        found = model.top_features("body", n=12, by=by)
        for group, top in zip(story.groups, found, strict=True):
            words = getattr(group.words["body"], kind)
            if by == "prob":  # frequent words of many groups are apart
                words = sorted([*group.words["body"].shared, *words], key=lambda w: -w.weight)[:12]
            names = collection.feature_names["body"]
            assert [w.word for w in words] == [names[f] for f, value in top if value > 0]
            assert [w.weight for w in words] == pytest.approx([v for _, v in top if v > 0])


def test_names_are_telling_words_and_distinct(story, collection):
    names = [group.name for group in story.groups]
    assert len(set(names)) == 3
    for group in story.groups:
        topic = collection.truth[story.assignments.label == group.label][2]
        first = "goal match keeper team league|vote bill house law senate|star orbit moon comet sky"
        assert set(group.name.split(", ")) <= set(first.split("|")[topic].split())


def test_typical_documents_are_sure_and_doubtful_ones_are_not(story, collection, model):
    proba = model.predict_proba(collection.views)
    margin = np.sort(proba, axis=1)[:, -1] - np.sort(proba, axis=1)[:, -2]
    for g, group in enumerate(story.groups):
        inside = np.flatnonzero(proba.argmax(axis=1) == g)
        assert len(group.typical) == len(group.doubtful) == 5
        assert group.doubtful[0].row == inside[margin[inside].argmin()]
        margins = [margin[d.row] for d in group.doubtful]
        assert margins == sorted(margins)
        assert all(d.group == g for d in (*group.typical, *group.doubtful))
        assert min(d.probability for d in group.typical) >= np.median(proba[inside, g]) - 0.01
        assert all(len(d.excerpt) <= 300 for d in (*group.typical, *group.doubtful))


def test_of_documents_equally_sure_the_central_ones_are_typical():
    X = np.array([[9, 9, 0, 0], [18, 1, 0, 0], [9, 8, 0, 0], [0, 0, 9, 9], [0, 0, 8, 9]])
    story = tell(MixtureClusterer(2, random_state=0).fit(X), X, n_examples=2)
    group = next(g for g in story.groups if g.size == 3)
    assert [d.probability for d in group.typical] == pytest.approx([1, 1], abs=0.004)
    assert {d.row for d in group.typical} == {0, 2}


def test_agreement_is_counted_over_rows_that_neither_view_lacks(story, collection, model):
    views = model.view_proba(collection.views).argmax(axis=2)
    views[0, 0] = views[1, 1] = -1
    both = (views >= 0).all(axis=1)
    same = (views[both, 0] == views[both, 1]).mean()
    a = story.agreement
    assert a.rate == pytest.approx(agreement_rate(views)) == pytest.approx(same)
    np.testing.assert_allclose(a.matrix, [[1, same], [same, 1]])
    assert a.n_rows == [[89, 88], [88, 89]]
    assert a.apart == pytest.approx({"title": 1 - same, "body": 1 - same})
    (pair,) = a.pairs
    assert np.trace(pair.table) / np.sum(pair.table) == pytest.approx(pair.rate)
    expected = np.zeros((3, 3), dtype=int)
    np.add.at(expected, tuple(views[both].T), 1)
    assert pair.table == expected.tolist()
    labels = model.predict(collection.views)
    agrees = (views[:, 0] == views[:, 1]) | ~both
    assert a.groups == pytest.approx([agrees[labels == g].mean() for g in range(3)])


def test_the_bound_holds_for_independent_views_and_any_number_of_components():
    rng = np.random.default_rng(0)
    for k, errors in ((2, (0.1, 0.3)), (5, (0.2, 0.45)), (4, (0.0, 0.4))):
        truth = rng.integers(k, size=200_000)
        guesses = []
        for error in errors:
            wrong = rng.random(len(truth)) < error
            guesses.append(np.where(wrong, (truth + rng.integers(1, k, len(truth))) % k, truth))
        apart = (guesses[0] != guesses[1]).mean()
        assert apart >= max((guess != truth).mean() for guess in guesses) - 0.003


def test_the_documents_that_views_disagree_on_come_first(story, collection, model):
    value = model.disagreement(collection.views)
    views = model.view_proba(collection.views).argmax(axis=2)
    for document in story.agreement.documents:
        first, second = views[document.row]
        assert first != second
        assert document.votes["title"] == story.groups[first].name
        assert document.disagreement == pytest.approx(value[document.row])
    shown = [document.disagreement for document in story.agreement.documents]
    assert shown == sorted(shown, reverse=True)


def test_labels_are_compared_with_the_groups(story, collection, model):
    labels, truth = model.predict(collection.views), story.truth
    codes = {name: i for i, name in enumerate(truth.classes)}
    table = np.zeros((3, 3), dtype=int)
    for group, label in zip(labels, collection.labels, strict=True):
        table[group, codes[label]] += 1
    assert truth.table == table.tolist()
    assert np.trace(table) == table.max(axis=1).sum()  # classes stand beside their groups
    assert truth.scores["entropy"] == pytest.approx(cluster_entropy(collection.labels, labels))
    nmi = normalized_mutual_info_score(collection.labels, labels)
    assert truth.scores["normalised mutual information"] == pytest.approx(nmi)
    curve = truth.reliability
    gaps = np.abs(np.subtract(curve["accuracy"], curve["confidence"])) * curve["rows"]
    assert curve["error"] == pytest.approx(np.nansum(gaps) / 90)
    assert sum(curve["rows"]) == truth.n_rows == 90


def test_rows_without_a_label_do_not_count(collection, model):
    labels = collection.labels.astype(object)
    labels[::2] = None
    story = tell(model, collection.views, labels=labels)
    assert story.truth.n_rows == 45
    assert np.sum(story.truth.table) == 45
    assert tell(model, collection.views, labels=[None] * 90).truth is None


def test_a_classifier_has_classes_for_groups(collection):
    y = collection.labels.astype(object)
    y[30:] = None
    judge = MixtureClassifier(
        family=Multinomial(0.01), components_per_class={"law": 2}, init="rows", random_state=0
    )
    judge.fit(collection.views, y)
    story = tell(judge, collection.views, labels=collection.labels, **_words(collection))
    assert [g.label for g in story.groups] == [g.name for g in story.groups]
    assert [g.label for g in story.groups] == ["law", "space", "sport"]
    proba = judge.predict_proba(collection.views)
    right = judge.predict(collection.views) == collection.labels
    assert story.truth.scores == {"accuracy": pytest.approx(right.mean())}
    error = expected_calibration_error(collection.labels, proba, classes=judge.classes_, n_bins=10)
    assert story.truth.reliability["error"] == pytest.approx(error)
    # The words of a class are those of its components, by their weights.
    both = judge.component_classes_ == 0
    prob = judge.families_["body"].feature_probs(judge.theta_["body"])[both]
    mixed = np.average(prob, axis=0, weights=judge.weights_[both])
    top = story.groups[0].words["body"].shared[0]
    assert top.weight == pytest.approx(mixed.max())
    assert top.word == collection.feature_names["body"][mixed.argmax()]


def _words(collection):
    return {"feature_names": collection.feature_names}


def test_spherical_k_means_has_choices_but_no_probabilities(collection):
    model = SphericalKMeans(3, random_state=0).fit(collection.views)
    story = tell(model, collection.views, **_words(collection))
    angles = model.transform(collection.views)
    assert story.assignments.label.tolist() == model.labels_.tolist()
    assert np.isnan(story.assignments.probability).all()
    filled = ~collection.views.empty.all(axis=1)
    second = np.argsort(angles, axis=1)[:, 1]
    assert (story.assignments.second == second)[filled].all()
    reading = read(model, collection.views)
    assert (reading.view_groups == model.view_labels_).all()
    pairs = (model.view_labels_ >= 0).all(axis=1)
    apart = (model.view_labels_[:, 0] != model.view_labels_[:, 1]) & pairs
    np.testing.assert_allclose(story.assignments.disagreement, apart)
    assert all(group.name.split(", ")[0] in sum_of_words(collection) for group in story.groups)


def sum_of_words(collection):
    return set(collection.feature_names["body"]) - {"the", "and"}


def test_a_tree_tells_of_its_rows(collection):
    model = MultiViewAgglomerative(3).fit(collection.views)
    story = tell(model, collection.views, **_words(collection))
    assert story.assignments.label.tolist() == model.labels_.tolist()
    assert story.trace == {"objective": []}
    with pytest.raises(ValueError, match="pass the rows of fit"):
        tell(model, collection.views[:10])


def test_a_tree_of_given_distances_has_no_words():
    places = np.array([0.0, 0.1, 0.2, 5.0, 5.1])[:, np.newaxis]
    distances = np.abs(places - places.T)
    model = MultiViewAgglomerative(2, metric="precomputed").fit(distances)
    story = tell(model, distances, n_examples=1)
    assert [group.name for group in story.groups] == ["group 0", "group 1"]
    assert story.groups[0].doubtful[0].row == 2  # the nearest to the others


def test_topics_of_an_aspect_model(collection):
    counts = collection.views["body"]
    model = AspectModel(3, random_state=0).fit(counts)
    names = collection.feature_names["body"]
    story = tell(model, counts, feature_names=names)
    shares = model.transform(counts)
    assert story.model["noun"] == "topic"
    np.testing.assert_allclose(story.assignments.probability, shares.max(axis=1))
    top = [[names[f] for f, _ in topic] for topic in model.top_features(n=3)]
    shown = [[w.word for w in g.words["view0"].discriminating[:3]] for g in story.groups]
    assert shown == top
    assert story.agreement is None
    assert np.isnan(story.assignments.disagreement).all()
    with pytest.raises(ValueError, match="one matrix"):
        tell(model, collection.views)


def test_columns_of_numbers_say_how_far_a_group_is_off():
    rng = np.random.default_rng(0)
    price = np.repeat([1.0, 9.0], 30) + 0.1 * rng.standard_normal(60)
    X = np.column_stack([price, rng.standard_normal(60)])
    model = MixtureClusterer(2, family="gaussian", random_state=0).fit(X)
    words = group_words(model, X, feature_names=["price", "noise"])
    high = int(model.labels_[-1])
    (first, _) = words[high]["view0"].discriminating
    assert first.word == "price"
    score = (X[model.labels_ == high, 0].mean() - X[:, 0].mean()) / X[:, 0].std()
    assert first.weight == pytest.approx(score)
    assert group_words(model, X) == [{}, {}]
    assert name_groups(words)[high] == "price"


def test_stability_is_told_for_every_group(collection, model):
    found = stability(model, collection.views, n_runs=3, random_state=0)
    story = tell(model, collection.views, stability=found)
    for group, row in zip(story.groups, found.table, strict=True):
        assert (group.stability["recurs"], group.stability["n_others"]) == (row.recurs, 3)
        assert group.stability["trust"] == row.trust
    assert story.stability["summary"] == found.summary
    other = MixtureClusterer(3, random_state=5, max_iter=1, tol=0).fit(collection.views)
    assert (other.labels_ != model.labels_).any()
    with pytest.raises(ValueError, match=r"pass stability\.estimator"):
        tell(other, collection.views, stability=found)


def test_stability_can_be_told_again(collection, model):
    found = stability(model, collection.views, n_runs=3, random_state=0)
    story = tell(model, collection.views, stability=found)
    kept = json.loads(json.dumps(story.to_dict()["stability"]))
    assert render(tell(model, collection.views, stability=kept)) == render(story)
    with pytest.raises(ValueError, match="neither"):
        tell(model, collection.views, stability={"summary": "no"})
    with pytest.raises(ValueError, match="2 groups"):
        tell(model, collection.views, stability={**kept, "table": kept["table"][:2]})


def test_a_story_is_json(story):
    text = json.dumps(story.to_dict(), allow_nan=False)
    again = json.loads(text)
    assert again["groups"][0]["size"] == story.groups[0].size
    assert len(again["assignments"]["label"]) == 90


def test_one_group_has_no_second_choice():
    X = np.array([[1, 2], [2, 1], [3, 3]])
    story = tell(MixtureClusterer(1, random_state=0).fit(X), X)
    assert story.assignments.second.tolist() == [None] * 3
    assert story.groups[0].doubtful == []
    assert story.documents[0].second is None


def test_new_rows_are_told_by_the_model_that_was_fitted(collection, model):
    story = tell(model, collection.views[10:40])
    assert story.assignments.label.tolist() == model.predict(collection.views[10:40]).tolist()


METHODS = ("read", "predict", "predict_proba", "predict_log_proba", "view_proba", "disagreement")


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("clusterer", ["read"]),
        ("clusterer, one view", ["predict_proba"]),
        ("classifier", ["predict_proba", "predict_log_proba", "read"]),
        ("classifier, one view", ["predict_proba", "predict_log_proba"]),
        ("k-means", ["transform"]),
        ("k-means, one view", ["transform", "predict"]),
        ("k-means, blank row", ["transform", "predict"]),
        ("aspects", ["transform"]),
        ("tree", []),
    ],
)
def test_a_model_is_asked_about_its_rows_once(collection, kind, asked, monkeypatch):
    views = collection.views[2:]  # the first two rows are empty in a view
    models = {
        "clusterer": MixtureClusterer(3, random_state=0),
        "classifier": MixtureClassifier(),
        "k-means": SphericalKMeans(3, random_state=0),
        "aspects": AspectModel(3, random_state=0),
        "tree": MultiViewAgglomerative(3),
    }
    model = models[kind.split(",")[0]]
    if kind == "aspects" or kind.endswith("one view"):
        views = views["body"]
    elif kind.endswith("blank row"):
        filled = np.arange(len(views))[:, np.newaxis] > 0
        views = Views({name: X * filled for name, X in views.items()})
    model.fit(views, collection.labels[2:])
    expected = model.labels_ if hasattr(model, "labels_") else model.transform(views).argmax(axis=1)
    calls = []
    for name in (*METHODS, "transform"):
        if hasattr(type(model), name):
            method = getattr(type(model), name)

            def counted(self, X, name=name, method=method):
                calls.append(name)
                return method(self, X)

            monkeypatch.setattr(type(model), name, counted)
    reading = read(model, views)
    assert calls == asked
    story = tell(model, views, reading=reading)
    assert calls == asked
    assert story.assignments.label.tolist() == expected.tolist()


def test_a_tree_finds_the_directions_of_its_rows_once(collection, monkeypatch):
    model = MultiViewAgglomerative(3).fit(collection.views)
    calls, of = [], Space.of
    monkeypatch.setattr(Space, "of", lambda views: calls.append(views) or of(views))
    tell(model, collection.views, feature_names=collection.feature_names)  # shown by their words
    assert len(calls) == 1


def test_a_reading_makes_the_same_story(collection, model):
    reading = read(model, collection.views)
    told = tell(model, collection.views, reading=reading, **collection.named())
    assert told.to_dict() == tell(model, collection.views, **collection.named()).to_dict()
    with pytest.raises(ValueError, match="reading has 90 rows and views 89"):
        tell(model, collection.views[1:], reading=reading)


@pytest.mark.parametrize("components_per_class", [1, 2])
def test_the_classes_of_views_are_sums_over_their_components(collection, components_per_class):
    model = MixtureClassifier(
        components_per_class=components_per_class, max_iter=3, tol=0, random_state=0
    )
    model.fit(collection.views, collection.labels)
    reading = read(model, collection.views)
    np.testing.assert_array_equal(reading.proba, model.predict_proba(collection.views))
    members = np.eye(3)[model.component_classes_]
    own = (model.view_proba(collection.views) @ members).argmax(axis=2)
    np.testing.assert_array_equal(reading.view_groups, np.where(reading.empty, -1, own))
    np.testing.assert_array_equal(reading.disagreement, model.disagreement(collection.views))
    empty = [family.empty(collection.views[name]) for name, family in model.families_.items()]
    np.testing.assert_array_equal(reading.empty, np.column_stack(empty))
    for table in reading.tables.values():
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-5)  # float32 parameters


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": ["a"]}, "ids has 1 entries for 90 rows"),
        ({"texts": ["a"]}, "texts has 1 entries"),
        ({"feature_names": ["a"]}, "dict from view to names"),
        ({"feature_names": {"body": ["a"]}}, "view 'body': 1 names for 17 columns"),
        ({"labels": ["a"]}, "1 labels for 90 rows"),
    ],
)
def test_what_does_not_fit_the_rows_is_refused(collection, model, given, message):
    with pytest.raises(ValueError, match=message):
        tell(model, collection.views, **given)


def test_other_models_are_refused():
    X = np.array([[0, 3], [2, 0]])
    model = TrafficModel(1, random_state=0).fit(X)
    with pytest.raises(TypeError, match="not of TrafficModel"):
        tell(model, X)


def test_the_search_has_as_many_documents_as_there_is_room_for(collection, model, monkeypatch):
    everything = tell(model, collection.views, texts=collection.texts)
    assert [d.row for d in everything.documents] == list(range(90))
    monkeypatch.setattr("coem.report.choice.PAGE", 0)
    monkeypatch.setattr("coem.report.choice.LEAST", 20_000)
    some = tell(model, collection.views, texts=collection.texts)
    shown = {d.row for g in some.groups for d in (*g.typical, *g.doubtful)}
    assert shown <= {d.row for d in some.documents}
    assert len(shown) < len(some.documents) < 90
    assert len(some.assignments.id) == 90


def test_names_differ_where_words_do_not():
    alike = {"v": Words([Word("same", 1.0)], [Word("same", 1.0)])}
    assert name_groups([alike, alike, {}]) == ["same (0)", "same (1)", "group 2"]


def test_a_word_belongs_to_the_group_in_which_it_weighs_most():
    def group(**weights):
        words = [Word(word, weight) for word, weight in weights.items()]
        return {"v": Words(words, words)}

    names = name_groups([group(sun=3, moon=2, star=1), group(sun=4, sea=2, ship=1)], n=2)
    assert names == ["moon, star", "sun, sea"]
    names = name_groups([group(window=3, windows=2, door=1)], n=2)
    assert names == ["window, door"]


def test_centrality_is_the_cosine_with_the_own_group():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (20, 6))
    groups = np.arange(20) % 3
    for matrix in (csr_array(X), rng.standard_normal((20, 6))):
        space = Space.of(Views([matrix]))
        every = space.cosines(groups, 3)
        own = space.centrality(groups, 3)
        np.testing.assert_allclose(own, every[np.arange(20), groups])
        rows = space.rows["view0"]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        centre = rows[groups == 1].sum(axis=0)
        np.testing.assert_allclose(every[:, 1], rows @ centre / np.linalg.norm(centre))


def slow_shared(table, n):
    """Return the columns that many rows share, by the definition."""
    found, k = set(), len(table)
    for column in range(len(table[0])):
        mean = sum(row[column] for row in table) / k
        times = 0
        for row in table:
            before = sum(v > row[column] for v in row) + sum(v == row[column] for v in row[:column])
            times += before < n and row[column] > 0 and row[column] >= mean / 2
        if 3 * times > k and times >= min(3, k):
            found.add(column)
    return found if k > 1 else set()


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 20])
def test_shared_columns_are_those_of_a_slow_twin(k):
    rng = np.random.default_rng(k)
    table = rng.dirichlet(np.full(30, 0.3), k).round(2)
    table[:, :3] = 0.2 * rng.random(3)
    found = shared_columns(table, 6)
    assert found == slow_shared(table.tolist(), 6)
    assert bool(found) == (k > 1)


def test_words_of_many_groups_are_said_once(collection):
    counts = np.column_stack([collection.views["body"], np.full((90, 2), 4)])
    names = [*collection.feature_names["body"], "writes", "article"]
    model = MixtureClusterer(3, random_state=0).fit(counts)
    story = tell(model, counts, feature_names=names)
    shared = {"writes", "article", "and", "the"}
    assert {view: set(words) for view, words in story.shared.items()} == {"view0": shared}
    for group in story.groups:
        words = group.words["view0"]
        assert {w.word for w in words.shared} == shared
        assert not shared & {w.word for w in words.descriptive}
        assert len(words.descriptive) == 12
    page = render(story)
    assert "Frequent in many groups, and not repeated below: <bdi>" in page
    lines = re.findall(r'<p class="frequent">.*?</p>', page)
    assert len(lines) == 3
    assert not any("writes" in line for line in lines)


def test_shared_words_name_a_group_that_has_no_others():
    edu, goal, vote = Word("edu", 3.0), Word("goal", 2.0), Word("vote", 1.0)
    sport, law = Words([goal], [edu, goal], [edu]), Words([vote], [vote], [edu])
    assert name_groups([{"v": sport}, {"v": law}], n=1) == ["goal", "vote"]
    assert name_groups([{"v": sport}, {"v": law}], n=2) == ["goal, edu", "vote"]
    assert name_groups([{"v": Words([], [edu], [edu])}, {"v": law}], n=1) == ["edu", "vote"]
