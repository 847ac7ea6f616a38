"""Views that say nothing, and fits that gather all rows in one component."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.evidence import SHARED, compare
from coem.families import Gaussian, Multinomial

N, K = 600, 4
RNG = np.random.default_rng(11)
GROUPS = np.arange(N) % K
TEXT = RNG.poisson(30 * RNG.dirichlet(np.full(40, 0.2), size=K)[GROUPS])
POINTS = 3 * RNG.standard_normal((K, 2))[GROUPS] + RNG.standard_normal((N, 2))
FAMILIES = {"text": "multinomial", "points": "gaussian"}


def noise():
    """Return views that have nothing to do with the groups, and their families."""
    rng = np.random.default_rng(7)
    stamp = np.column_stack([np.eye(12)[rng.integers(12, size=N)] for _ in range(3)])
    return {
        "number": ("gaussian", rng.random((N, 1))),
        "words": ("multinomial", rng.poisson(0.3, size=(N, 60))),
        "stamp": ("multinomial", stamp),
        "constant": ("gaussian", np.ones((N, 1))),
        "id": ("multinomial", sp.eye_array(N, format="csr")),
    }


def fit(views, families, **params):
    model = MixtureClusterer(K, family=families, tol=1e-5, random_state=0, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Views(views))
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", noise())
def test_a_view_that_says_nothing_changes_nothing_and_is_named(name):
    family, X = noise()[name]
    alone, _ = fit({"text": TEXT}, {"text": "multinomial"})
    model, said = fit({"text": TEXT, name: X}, {"text": "multinomial", name: family})
    assert model.silent_views_ == (name,)
    assert any(repr(name) in text and "left out" in text for text in said)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_allclose(model.theta_["text"], alone.theta_["text"], rtol=1e-6)


def test_all_of_them_beside_two_views_that_speak():
    extra = noise()
    families = FAMILIES | {name: family for name, (family, _) in extra.items()}
    views = {"text": TEXT, "points": POINTS} | {name: X for name, (_, X) in extra.items()}
    model, _ = fit(views, families)
    pair, said = fit({"text": TEXT, "points": POINTS}, FAMILIES)
    assert set(model.silent_views_) == set(extra)
    assert pair.silent_views_ == ()
    assert not any("left out" in text for text in said)
    np.testing.assert_array_equal(model.labels_, pair.labels_)


def test_shared_information_says_why():
    views = {"text": TEXT, "points": POINTS, "number": noise()["number"][1]}
    model, _ = fit(views, FAMILIES | {"number": "gaussian"})
    shared = model.shared_information_
    assert shared[0, 1] > 0.3
    assert abs(shared[0, 2]) < SHARED
    assert np.isnan(shared[2, 2])  # one column has no halves
    np.testing.assert_array_equal(shared, shared.T)


def test_fixed_evidence_uses_every_view():
    views = {"text": TEXT, "number": noise()["number"][1]}
    families = {"text": "multinomial", "number": "gaussian"}
    model, said = fit(views, families, evidence="fixed")
    assert model.silent_views_ == ()
    assert model.shared_information_.shape == (0, 0)
    assert not any("left out" in text for text in said)
    assert not np.array_equal(model.labels_, fit(views, families)[0].labels_)


def test_new_rows_ignore_the_silent_view(tmp_path):
    views = {"text": TEXT, "number": noise()["number"][1]}
    model, _ = fit(views, {"text": "multinomial", "number": "gaussian"})
    other = Views(text=TEXT, number=1e3 * RNG.standard_normal((N, 1)))
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(Views(views)))
    assert (model.predict(other) == model.labels_).all()
    assert all("number" not in row.views for row in model.explain(other[:5]))
    model.save(tmp_path / "m.coem")
    loaded = coem.load(tmp_path / "m.coem")
    assert loaded.silent_views_ == ("number",)
    np.testing.assert_array_equal(loaded.predict_proba(other), model.predict_proba(other))


def test_a_warm_start_keeps_what_was_left_out():
    views = Views(text=TEXT, number=noise()["number"][1])
    families = {"text": "multinomial", "number": "gaussian"}
    first, _ = fit(views, families)
    again = MixtureClusterer(K, family=families, init=first, tol=1e-5).fit(views)
    assert again.silent_views_ == ("number",)


def test_batches_keep_what_the_first_one_left_out():
    views = Views(text=TEXT, number=noise()["number"][1])
    families = {"text": "multinomial", "number": "gaussian"}
    model = MixtureClusterer(K, family=families, random_state=0)
    with pytest.warns(UserWarning, match="'number' is left out"):
        model.partial_fit(views[:300])
    model.partial_fit(views[300:])
    assert model.silent_views_ == ("number",)


def test_neither_order_nor_weights_change_the_judgement():
    views = Views(text=TEXT, points=POINTS, number=noise()["number"][1])
    families = FAMILIES | {"number": "gaussian"}
    weight = RNG.integers(0, 3, size=N)
    rows = RNG.permutation(np.repeat(np.arange(N), weight))
    model = MixtureClusterer(K, family=families, tol=1e-5, random_state=0)
    with pytest.warns(UserWarning, match="'number' is left out"):
        weighted = model.fit(views, sample_weight=weight).shared_information_
    with pytest.warns(UserWarning, match="'number' is left out"):
        repeated = model.fit(views[rows]).shared_information_
    np.testing.assert_allclose(weighted[0, 1], repeated[0, 1], atol=0.05)


def test_a_classifier_leaves_it_out_too():
    views = Views(text=TEXT, number=noise()["number"][1])
    y = np.where(np.arange(N) < 5 * K, GROUPS, -1)
    model = MixtureClassifier(family={"text": "multinomial", "number": "gaussian"})
    with pytest.warns(UserWarning, match="'number' is left out"):
        model.fit(views, y)
    assert model.silent_views_ == ("number",)


def test_few_rows_are_not_judged():
    rows = slice(0, 100)
    views = {"text": TEXT[rows], "number": noise()["number"][1][rows]}
    model, _ = fit(views, {"text": "multinomial", "number": "gaussian"})
    assert model.silent_views_ == ()


def test_views_that_all_share_nothing_are_all_used():
    rng = np.random.default_rng(2)
    views = {"one": rng.random((N, 1)), "two": rng.random((N, 1))}
    model, _ = fit(views, "gaussian")
    assert model.silent_views_ == ()


def twin(one, other):
    """Return the share of information by its definition, over all rows."""
    n = len(one)
    joint = {}
    for pair in zip(one.tolist(), other.tolist(), strict=True):
        joint[pair] = joint.get(pair, 0) + 1 / n
    first, second = {}, {}
    for (a, b), p in joint.items():
        first[a], second[b] = first.get(a, 0) + p, second.get(b, 0) + p
    information = sum(p * np.log(p / first[a] / second[b]) for (a, b), p in joint.items())
    smaller = min(-sum(p * np.log(p) for p in part.values()) for part in (first, second))
    chance = (len(first) - 1) * (len(second) - 1) / (2 * n)
    return (information - chance) / (smaller - chance)


def test_the_comparison_equals_its_twin():
    rng = np.random.default_rng(0)
    one, noisy = rng.integers(5, size=N), rng.integers(3, size=N)
    other = np.where(rng.random(N) < 0.5, one % 3, noisy)
    share, sure = compare(one, other, None)
    assert share == pytest.approx(twin(one, other))
    assert sure
    assert compare(one, one, None) == (pytest.approx(1.0), True)
    share, sure = compare(one, noisy, None)
    assert share == pytest.approx(twin(one, noisy))
    assert not sure
    doubled = compare(one, other, np.full(N, 2.0))
    assert doubled[0] == pytest.approx(compare(np.tile(one, 2), np.tile(other, 2), None)[0])


def test_a_fit_that_gathers_all_rows_starts_again(monkeypatch):
    """The first start is spoiled, and the others are not."""
    model = MixtureClusterer(K, tol=1e-5, random_state=0)
    whole = type(model)._fit
    seeds = []

    def spoiled(self, part, *args, **kwargs):
        seeds.append(self.random_state)
        saved = whole(self, part, *args, **kwargs)
        if len(seeds) == 1:
            self.labels_ = np.zeros_like(self.labels_)
        return saved

    monkeypatch.setattr(type(model), "_fit", spoiled)
    model.fit(TEXT)
    assert len(seeds) == 2
    assert seeds[0] == 0 != seeds[1]
    assert model.random_state == 0
    assert len(np.unique(model.labels_)) == K


def test_a_fit_that_stays_gathered_says_so():
    rng = np.random.default_rng(0)
    sizes = 5 + 0.1 * rng.random((300, 4))  # lengths in cm are no counts
    with pytest.warns(UserWarning, match="in one of 5 components"):
        MixtureClusterer(5, family=Multinomial(), random_state=0).fit(sizes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fixed = MixtureClusterer(5, family=Multinomial(), random_state=0, evidence="fixed").fit(
            sizes
        )
    assert not any("in one of" in str(warning.message) for warning in caught)
    assert np.bincount(fixed.labels_).max() > 285


def test_evidence_is_checked():
    with pytest.raises(ValueError, match="evidence must be one of 'auto', 'fixed'"):
        MixtureClusterer(2, evidence="none").fit(TEXT)
    with pytest.raises(ValueError, match="evidence"):
        MixtureClassifier(evidence=1.0, family=Gaussian()).fit(POINTS, GROUPS)
