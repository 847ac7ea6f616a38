"""What is shown while models are fitted, to those who can see it."""

import re
import threading
import time

import numpy as np
import pytest

from coem import AspectModel, MixtureClassifier, MixtureClusterer
from coem.cli._talk import Bar, Pace, Talk
from coem.records import watch
from coem.selection import doctor, doctor_cost

from .conftest import posts, write_csv

VERBS = {
    "cluster": ["--text", "body", "-k", "3", "--restarts", "3"],
    "classify": ["--text", "body", "--label", "topic", "--doctor"],
    "topics": ["--text", "body", "-k", "3", "--max-iter", "20"],
}


@pytest.fixture
def file(here):
    rows = [{**row, "topic": row["topic"] if i < 45 else ""} for i, row in enumerate(posts())]
    return write_csv(here / "a.csv", rows)


@pytest.fixture
def terminal(monkeypatch):
    """Make the program believe that somebody looks at it."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("verb", VERBS)
def test_the_objective_of_the_round_is_shown(verb, file, terminal, coem):
    result = coem(verb, file, *VERBS[verb], "--out", "out")
    assert "round" in result.stderr
    assert "objective" in result.stderr
    assert "objective" not in result.stdout
    assert not watched()


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_shown_to_the_quiet(verb, file, terminal, coem):
    assert coem(verb, file, *VERBS[verb], "--out", "out", "--quiet").stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_drawn_without_a_terminal(verb, file, coem):
    assert "objective" not in coem(verb, file, *VERBS[verb], "--out", "out").stderr


@pytest.mark.parametrize("coupling", ["c", "none"])
def test_the_bar_of_topics_ends_at_its_end(coupling, file, terminal, coem):
    result = coem("topics", file, *VERBS["topics"], "--coupling", coupling, "--out", "out")
    total = 80 if coupling == "c" else 20
    assert f"{total}/{total}" in result.stderr


def test_the_time_that_is_left():
    now = [0.0]
    pace = Pace(10, clock=lambda: now[0])
    assert str(pace) == ""
    now[0] = 0.5
    pace.step()
    assert str(pace) == ""  # half a second is nothing to go by
    for second in range(1, 5):
        now[0] = 0.5 + 30 * second
        pace.step()
    # Five steps are left, of a mean that counts the slow ones more than the quick first one.
    weights = 0.9 ** np.arange(5)[::-1]
    mean = weights @ np.array([0.5, 30, 30, 30, 30]) / weights.sum()
    assert 25 < mean < 30
    assert str(pace) == f"about {int(np.ceil(5 * mean / 60))} min left"
    now[0] += 5 * mean - 4.5
    assert str(pace) == "about 5 s left"
    now[0] += 100  # later than expected: soon, and never less than nothing
    assert str(pace) == "about 1 s left"
    for _ in range(5):
        pace.step()
    assert str(pace) == ""


def test_the_time_that_is_left_may_be_a_bound_or_unknown():
    now = [0.0]
    bound = Pace(3, at_most=True, clock=lambda: now[0])
    unknown = Pace(None, clock=lambda: now[0])
    now[0] = 20.0
    for pace in (bound, unknown):
        pace.step()
    assert (str(bound), str(unknown)) == ("at most 40 s left", "")


def test_the_bar_tells_what_is_left(terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(Pace, "FIRST", 0.0)
    with Talk().progress("fits", 200) as bar:
        for _ in range(3):
            bar.step()
            time.sleep(0.15)
    assert re.search(r"about \d+ (s|min) left", capsys.readouterr().err)


def test_the_doctor_says_first_what_it_costs(file, coem):
    said = coem("classify", file, *VERBS["classify"], "--out", "out").stderr
    cost, expected, advice = (said.index(x) for x in ("the doctor makes", "the doctor will", "Use"))
    assert cost < expected < advice
    labels = [row["topic"] if i < 45 else "" for i, row in enumerate(posts())]
    found = doctor_cost(np.array(labels, dtype=object))
    assert f"up to {found.n_fits} fits" in said


def test_the_doctor_makes_the_fits_that_it_counts():
    rng = np.random.default_rng(0)
    topic = rng.integers(2, size=100)
    X = rng.poisson(np.array([[2, 1, 1, 0.5], [0.5, 1, 1, 2]])[topic])
    y = np.where(np.arange(100) < 20, topic, -1)
    seen = []
    how = {"n_splits": 2, "n_repeats": 1, "n_restarts": 3}
    doctor(MixtureClassifier(), X, y, random_state=0, on_fit=lambda: seen.append(1), **how)
    cost = doctor_cost(y, **how)
    assert len(seen) in (cost.n_fits, cost.n_fits - 3)  # restarts of a second variant, or not
    assert cost.plain_fits > 0


def test_rounds_are_seen_from_all_threads():
    rows = [[5, 1, 0], [4, 0, 0], [0, 1, 3], [0, 0, 6]] * 10
    seen = []
    with watch(lambda record: seen.append((threading.get_ident(), record))):
        model = MixtureClusterer(2, n_init=4, n_jobs=2, random_state=0).fit(rows)
    assert len(seen) == sum(run.n_iter for run in model.runs_)
    assert {record.objective for _, record in seen} >= {r.objective for r in model.history_}
    assert not watched()


def test_a_fit_that_is_watched_is_a_fit_like_any_other():
    rows = [[5, 1, 0], [4, 0, 0], [0, 1, 3], [0, 0, 6]] * 10
    for model in (MixtureClusterer(2, random_state=0), AspectModel(2, random_state=0)):
        plain = model.fit(rows).objective_
        with watch(lambda record: None):
            assert model.fit(rows).objective_ == plain


def watched():
    from coem import records

    return records._watchers


def test_a_bar_that_is_not_there():
    with Talk(quiet=True).fitting("fits", 3) as bar:
        bar.step()
        bar.show("here")
    assert not bar.is_there
    assert not Bar(None, None).is_there
