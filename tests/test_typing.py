"""What mypy says to those who use the public names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import coem

SOURCE = Path(coem.__file__).parents[1]
SCRIPT = """
from pathlib import Path

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.text import TextViews

X = [[5.0, 1.0, 0.0], [4.0, 0.0, 0.0], [0.0, 1.0, 3.0], [0.0, 0.0, 6.0]]
views = Views({"words": X, "links": X})
model = MixtureClusterer(2, n_init=3, random_state=0).fit(views)
labels = model.predict(views)
proba = model.predict_proba(views)
first = views[[0, 1]]
classifier = MixtureClassifier(random_state=0).fit(X, ["a", None, "b", None])
score: float = classifier.score(X, ["a", "a", "b", "b"])
reader = TextViews(views={"body": "text"}, min_df=1)
table = {"id": ["1", "2"], "text": ["a ship", "a loaf"], "kind": ["sea", None]}
found = reader.fit_transform(table)
groups = coem.cluster(table, text="text", k=2, restarts=2, names_from=Path("earlier"))
named = groups.name({0: "Sailing"}).merge(0, 1, name="All")
where: Path = named.save("run", force=True, format="csv")
names: list[str] = [group.name for group in named.groups]
classes = coem.classify(table, label="kind", text="text")
print(labels, proba, first.n_views, score, found, where, names, classes.labels)
"""
WRONG = "import coem\ncoem.cluster({}, k='three').name([1])\n"


def test_the_package_says_that_it_has_types():
    assert (SOURCE / "coem" / "py.typed").is_file()


@pytest.mark.slow
def test_mypy_accepts_a_script_of_a_user(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--ignore-missing-imports",
    ]
    result = subprocess.run(
        [*command, "--config-file", "mypy.ini", "right.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    said = [line for line in result.stdout.splitlines() if "error" in line]
    assert not [line for line in said if line.startswith("right.py")], result.stdout
    assert [line for line in said if line.startswith("wrong.py")], result.stdout + result.stderr
