"""What is shown while models are fitted, to those who can see it."""

import threading

import pytest

from coem import AspectModel, MixtureClusterer
from coem.cli._talk import Bar, Talk
from coem.records import watch

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
