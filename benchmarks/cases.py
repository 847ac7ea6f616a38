"""What `side_by_side.py` runs on each of two checkouts: for each case its data and one call.

Whatever is not public in `coem` itself is imported inside a case, so that a name that moved fails
one case and not all of them. Files that cases share are in the working directory.
"""

import contextlib
import csv
import io
import json
import os
import pickle
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from zipf import zipf_counts

import coem

N_GROUPS = 20
LEAST_ROWS, LEAST_WORDS = 400, 2_000  # of a scaled case: more than there are components


@dataclass(frozen=True)
class Case:
    """Something to measure: `run` takes what `data` returns for a scale between 0 and 1.

    `inside` does the work of `run` in this process, where `run` starts one of its own: memory can
    only be measured inside.
    """

    data: Callable
    run: Callable
    inside: Callable | None = None


# -- data --------------------------------------------------------------------------------------


def rows(n, scale):
    """Return the number of rows of a case of `n` rows."""
    return max(int(n * scale), LEAST_ROWS)


def words(n, scale):
    """Return the number of columns of a case of `n` columns of counts."""
    return max(int(n * scale), LEAST_WORDS)


def groups_of(n_rows):
    """Return the group of each row: the same in all views."""
    return np.random.default_rng(0).integers(N_GROUPS, size=n_rows)


@cache
def counts(n_rows, n_words, n_draws=110, seed=0):
    """Return Zipf counts; one word in four is drawn in the order of the row's group."""
    own = n_draws // 4
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(n_words) for _ in range(N_GROUPS)])
    prob = 1.0 / np.arange(1, n_words + 1)
    ranks = rng.choice(n_words, size=(n_rows, own), p=prob / prob.sum())
    columns = orders[groups_of(n_rows)[:, np.newaxis], ranks].ravel()
    places = np.repeat(np.arange(n_rows), own)
    drawn = sp.csr_matrix((np.ones(len(columns)), (places, columns)), shape=(n_rows, n_words))
    return (drawn + zipf_counts(n_rows, n_words, n_draws - own, seed)).tocsr()


@cache
def blobs(n_rows, n_columns, spread, seed=0):
    """Return dense rows about one centre per group."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(N_GROUPS, n_columns))
    return centres[groups_of(n_rows)] + spread * rng.normal(size=(n_rows, n_columns))


def unit_rows(n_rows, n_columns=384):
    X = blobs(n_rows, n_columns, 2.0).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def one_view(scale, n=20_000):
    return counts(rows(n, scale), words(50_000, scale))


def two_views(scale, n=20_000):
    links = counts(rows(n, scale), words(10_000, scale), 30, seed=1)
    return {"words": one_view(scale, n), "links": links}


def counts_and_vectors(scale):
    return {"words": one_view(scale, 10_000), "vectors": unit_rows(rows(10_000, scale))}


def numbers(scale):
    return blobs(rows(50_000, scale), 16, 0.7)


def pairs(scale):
    return counts(rows(5_000, scale), words(20_000, scale), 105)


@cache
def graph(scale):
    """Return a random graph in which half of the links stay in the group."""
    n = rows(5_000, scale)
    rng = np.random.default_rng(0)
    sources, targets = rng.integers(n, size=(2, 20 * n))
    groups = groups_of(n)
    kept = (groups[sources] == groups[targets]) | (rng.random(20 * n) < 1 / N_GROUPS)
    links = (np.ones(kept.sum()), (sources[kept], targets[kept]))
    return sp.csr_matrix(links, shape=(n, n))


def few_labels(scale, data=two_views):
    """Return views and labels; one row in a hundred has a label, and no fewer than 200 rows."""
    X = data(scale)
    groups = groups_of(rows(20_000, scale))
    labelled = np.random.default_rng(1).permutation(len(groups))[: max(200, len(groups) // 100)]
    y = np.full(len(groups), -1)
    y[labelled] = groups[labelled]
    return X, y


def fitted(scale):
    """Return a model and the rows to predict."""
    X = two_views(scale)
    return cluster(X, 20, max_iter=5), X


# -- posts: 20 Newsgroups, or the standard library's documentation where COEM_DATA is not set -----


@cache
def posts():
    """Return counts of two views and a table; the first process to ask writes them to a file."""
    file = Path("posts.pickle")
    if not file.exists():
        made = read_posts() if os.environ.get("COEM_DATA") else read_stdlib()
        file.write_bytes(pickle.dumps(made))
    return pickle.loads(file.read_bytes())


def read_posts():
    from coem.datasets import fetch_20newsgroups

    data = fetch_20newsgroups()
    chosen = np.linspace(0, len(data.ids) - 1, 3_000).astype(int)
    table = [
        {
            "id": str(data.ids[n]),
            "subject": data.subjects[n].replace("\0", " "),
            "body": data.text[n].replace("\0", " "),
            "group": str(data.target_names[data.target[n]]),
        }
        for n in chosen
    ]
    return {"views": {name: data.views[name] for name in ("subject", "body")}, "table": table}


def read_stdlib():
    from coem.datasets import load_stdlib

    data = load_stdlib()
    subject, body = (texts(data, name) for name in ("name", "doc"))
    names = data.target_names[data.target]
    columns = zip(map(str, data.ids), subject, body, map(str, names), strict=True)
    keys = ("id", "subject", "body", "group")
    table = [dict(zip(keys, row, strict=True)) for row in columns][:3_000]
    return {"views": {"subject": data.views["name"], "body": data.views["doc"]}, "table": table}


def texts(data, view):
    """Return the words of each row, each as often as it was counted."""
    names = np.asarray(data.vocabularies[view])
    for row in data.views[view]:
        yield " ".join(np.repeat(names[row.indices], row.data.astype(int)))


def some(items, scale):
    """Return evenly spaced items of a list."""
    n = min(rows(len(items), scale), len(items))
    return [items[place] for place in np.linspace(0, len(items) - 1, n).astype(int)]


def post_views(scale):
    views = posts()["views"]
    chosen = some(range(views["body"].shape[0]), scale)
    return {name: X[chosen] for name, X in views.items()}


def post_table(scale):
    return some(posts()["table"], scale)


def post_file(scale):
    """Return the path of a CSV file of posts."""
    file = Path(f"posts-{os.getpid()}-{scale}.csv").absolute()
    if not file.exists():
        table = post_table(scale)
        with file.open("w", encoding="utf-8", newline="") as target:
            writer = csv.DictWriter(target, table[0])
            writer.writeheader()
            writer.writerows(table)
    return file


def told(scale):
    """Return a model with all that its report is made of."""
    table = post_table(scale)
    maker = text_views()
    views = maker.fit_transform(table)
    return cluster(views, 20, max_iter=5), views, maker.vocabulary_, table


def cora(scale):
    from coem.datasets import fetch_cora

    data = fetch_cora()
    return {name: data.views[name][: rows(2_708, scale)] for name in data.views.names}


# -- calls -------------------------------------------------------------------------------------


def cluster(X, k, **settings):
    """Fit a mixture with a fixed number of rounds, ten if not told."""
    settings = {"max_iter": 10, "tol": 0, "random_state": 0} | settings
    return coem.MixtureClusterer(k, **settings).fit(X)


def gaussian(X, covariance):
    from coem.families import Gaussian

    return cluster(X, 16, family=Gaussian(covariance), init="random")


def classify(data, **settings):
    settings = {"max_iter": 10, "tol": 0, "random_state": 0} | settings
    return coem.MixtureClassifier(**settings).fit(*data)


def spherical(X):
    return coem.SphericalKMeans(20, max_iter=20, random_state=0).fit(X)


def aspect(X, **settings):
    return coem.AspectModel(25, random_state=0, **settings).fit(X)


def traffic(X):
    return coem.TrafficModel(20, n_runs=1, max_iter=50, random_state=0).fit(X)


def recur(X):
    from coem.selection import stability

    model = coem.MixtureClusterer(20, max_iter=5, tol=0)
    found = stability(model, X, n_runs=4, n_jobs=2, random_state=0)
    agreed = found.mean_agreement
    return SimpleNamespace(labels_=found.labels, objective_=agreed, theta_=found.row_trust)


def text_views():
    from coem.text import TextViews

    views = {"title": "subject", "text": "body"}
    return TextViews(views, id="id", stop_words="english", min_df=2, n_jobs=2)


def tell(data):
    from coem.report import tell

    model, views, names, table = data
    ids, subjects, bodies, groups = ([post[key] for post in table] for key in table[0])
    return tell(
        model, views, feature_names=names, ids=ids, titles=subjects, texts=bodies, labels=groups
    )


def in_process(arguments):
    """Run the program by a process of its own, with the path of this one."""
    command = [sys.executable, "-S", "-m", "coem", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def in_module(arguments):
    """Run the program in this process."""
    before, sys.argv = sys.argv, ["coem", *arguments]
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            runpy.run_module("coem", run_name="__main__")
    finally:
        sys.argv = before


def program(file, start):
    """Run `coem cluster` and return what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        start(["cluster", str(file), *PROGRAM, "--out", str(out)])
        table = (out / "assignments.csv").read_text(encoding="utf-8")
        result = json.loads((out / "run.json").read_text(encoding="utf-8"))["result"]
    labels = [int(row["label"]) for row in csv.DictReader(table.splitlines())]
    return SimpleNamespace(
        labels_=np.array(labels), objective_=result["objective"], theta_=[table, result]
    )


PROGRAM = ["--text", "body", "--label", "group", "-k", "20", "--restarts", "4", "--quiet"]
rounds_20 = partial(cluster, k=20, init="random", max_iter=20)
rounds_10 = partial(cluster, k=20, init="random")

CASES = {
    "multinomial-20": Case(one_view, rounds_20),
    "multinomial-20-2t": Case(one_view, partial(rounds_20, n_jobs=2)),
    "multinomial-100": Case(one_view, partial(rounds_10, k=100)),
    "multinomial-100-2t": Case(one_view, partial(rounds_10, k=100, n_jobs=2)),
    "multinomial-spherical": Case(one_view, partial(cluster, k=20)),
    "co-em": Case(two_views, rounds_20),
    "co-em-2t": Case(two_views, partial(rounds_20, n_jobs=2)),
    "co-em-vectors": Case(counts_and_vectors, rounds_20),
    "joint": Case(two_views, partial(rounds_10, coupling="joint")),
    "hard": Case(two_views, partial(rounds_10, posterior="hard")),
    "gaussian-diag": Case(numbers, partial(gaussian, covariance="diag")),
    "gaussian-full": Case(numbers, partial(gaussian, covariance="full")),
    "restarts-2t": Case(partial(one_view, n=5_000), partial(cluster, k=20, n_init=4, n_jobs=2)),
    "few-labels": Case(few_labels, classify),
    "few-labels-3-each": Case(
        partial(few_labels, data=one_view), partial(classify, components_per_class=3)
    ),
    "spherical-one-view": Case(one_view, spherical),
    "spherical-two-views": Case(two_views, spherical),
    "aspect": Case(pairs, partial(aspect, n_runs=1, max_iter=50)),
    "aspect-coupled": Case(pairs, partial(aspect, n_runs=2, coupling="c", max_iter=10)),
    "traffic": Case(graph, traffic),
    "stability-2t": Case(partial(two_views, n=4_000), recur),
    "predict-proba": Case(fitted, lambda data: data[0].predict_proba(data[1])),
    "posts-co-em": Case(post_views, partial(cluster, k=20, max_iter=5)),
    "text-views": Case(post_table, lambda table: text_views().fit_transform(table)),
    "report": Case(told, tell),
    "program": Case(
        post_file, partial(program, start=in_process), partial(program, start=in_module)
    ),
}
if os.environ.get("COEM_DATA"):
    CASES["cora"] = Case(cora, partial(cluster, k=7, max_iter=200, tol=1e-6))
