import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from coem.cli import main

TOPICS = {
    "sea": [
        "ship",
        "sail",
        "harbour",
        "captain",
        "wave",
        "anchor",
        "deck",
        "storm",
        "crew",
        "mast",
    ],
    "kitchen": [
        "oven",
        "bread",
        "butter",
        "flour",
        "sugar",
        "spoon",
        "recipe",
        "salt",
        "pepper",
        "knife",
    ],
    "court": [
        "judge",
        "trial",
        "jury",
        "lawyer",
        "witness",
        "verdict",
        "appeal",
        "crime",
        "prison",
        "law",
    ],
}


def posts(n=90, seed=0):
    """Rows of three topics: id, title, body, topic, price, refs."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        topic = list(TOPICS)[i % 3]
        words = TOPICS[topic]
        rows.append(
            {
                "id": f"p{i}",
                "title": " ".join(rng.choice(words, 3)),
                "body": " ".join(rng.choice(words, 25)) + " and the common rest of it",
                "topic": topic,
                "price": f"{10 * (i % 3) + rng.normal():.2f}",
                "refs": [f"p{j}" for j in rng.choice(np.arange(i % 3, n, 3), 3)],
            }
        )
    return rows


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({**row, "refs": "|".join(row["refs"])} if "refs" in row else row)
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table(here):
    """A CSV file of three topics."""
    return write_csv(here / "posts.csv", posts())


@pytest.fixture
def coem():
    """The program: `coem("cluster", path, ...)` returns what click's runner does."""

    def run(*arguments, code=0, **settings):
        result = CliRunner().invoke(main, [str(a) for a in arguments], **settings)
        shown = f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
        assert result.exit_code == code, shown
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run of ``coem cluster`` that all tests may read, and its file."""
    folder = tmp_path_factory.mktemp("run")
    file = write_csv(folder / "posts.csv", posts())
    arguments = ["cluster", file, "--text", "body", "--view", "title=title", "-k", "3"]
    arguments += ["--label", "topic", "--restarts", "3", "--out", folder / "groups", "--quiet"]
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.stderr
    return folder / "groups"


def read_json(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
