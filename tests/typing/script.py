"""A script of a user, which `make lint` lets mypy check: no test runs it."""

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
results = labels, proba, first.n_views, score, found, where, names, classes.labels

# mypy must reject these, or it says that the comments are not needed.
coem.cluster({}, k="three")  # type: ignore[arg-type]
groups.name([1])  # type: ignore[arg-type]
