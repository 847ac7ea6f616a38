"""The verbs, as a person uses them."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import coem as library
from coem.cli._program import VERBS
from coem.recipes.matching import Assigned, fates, shared
from coem.report.wording import TRUSTED
from coem.selection.trust import MEANING

from .conftest import TOPICS, posts, read_json, rows_of, write_csv

FILES = ["assignments.csv", "clusters.csv", "model.coem", "report.html", "run.json", "trace.jsonl"]


def test_cluster_writes_everything(finished):
    assert sorted(path.name for path in finished.iterdir()) == FILES
    rows = rows_of(finished / "assignments.csv")
    assert list(rows[0]) == [
        "id",
        "label",
        "name",
        "probability",
        "second",
        "second_probability",
        "disagreement",
        "empty",
        "trust",
    ]
    assert {row["empty"] for row in rows} == {"false"}
    assert [row["id"] for row in rows] == [f"p{i}" for i in range(90)]
    groups = rows_of(finished / "clusters.csv")
    assert sum(int(group["size"]) for group in groups) == 90
    assert {"name", "discriminating_text", "descriptive_title", "examples", "trust"} <= set(
        groups[0]
    )
    told = read_json(finished / "run.json")
    for group, said in zip(groups, told["result"]["groups"], strict=True):
        mine = [float(row["trust"]) for row in rows if row["label"] == group["label"]]
        assert float(group["trust"]) == said["trust"] == pytest.approx(np.mean(mine))
    assert told["result"]["nmi"] == pytest.approx(1.0)
    assert told["result"]["converged"]
    lines = (finished / "trace.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["objective"] == told["result"]["objective"]


def test_predict_says_what_cluster_said(finished, coem):
    result = coem("predict", finished, finished.parent / "posts.csv")
    wanted = rows_of(finished / "assignments.csv")
    for row in wanted:
        del row["trust"]  # of other documents other runs have said nothing
    assert list(csv.DictReader(result.stdout.splitlines())) == wanted


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_predict_writes_a_file(form, finished, coem, here):
    coem("predict", finished, finished.parent / "posts.csv", "--out", f"a.{form}")
    coem("predict", finished, finished.parent / "posts.csv", "--out", f"a.{form}", code=1)
    coem("predict", finished, finished.parent / "posts.csv", "--out", f"a.{form}", "--force")
    assert "90 rows" in coem("info", f"a.{form}").stdout


def test_a_model_is_read_in_python(finished):
    model = library.load(finished / "model.coem")
    rows = [{"body": "the captain of the ship in the harbour", "title": "a storm"}]
    wanted = next(r["label"] for r in rows_of(finished / "assignments.csv") if r["id"] == "p0")
    assert str(model.predict(rows)[0]) == wanted


def test_rerun_tells_what_differs(finished, coem, here):
    file = write_csv(here / "other.csv", posts(seed=1))
    result = coem("rerun", finished, "--file", file, code=1)
    assert "the documents have changed" in result.stdout
    assert "assignments.csv differs" in result.stdout


def test_explain_adds_up(finished, coem):
    told = json.loads(coem("explain", finished, "--id", "p0", "--json").stdout)
    assert sum(part["contribution"] for part in told["parts"]) == pytest.approx(told["log_odds"])
    row = next(r for r in rows_of(finished / "assignments.csv") if r["id"] == "p0")
    assert told["probability"] == pytest.approx(float(row["probability"]))
    odds = told["probability"] / told["against_probability"]
    assert told["calibrated_log_odds"] == pytest.approx(math.log(odds))
    assert told["calibrated_log_odds"] < told["log_odds"]
    assert "after calibration" in coem("explain", finished, "--id", "p0").stdout


def test_compare(finished, table, coem):
    coem("cluster", table, "--text", "body", "-k", "4", "--restarts", "2", "--out", "four", "-q")
    told = json.loads(coem("compare", finished, "four", "--json").stdout)
    assert told["pairs"][0]["shared_rows"] == 90
    assert 0 < told["pairs"][0]["nmi"] <= 1
    assert [run["rank"] for run in told["runs"]] == [None, None]
    text = coem("compare", finished, "four").stdout
    assert "adjusted Rand" in text
    assert "The runs differ in k, view: their objectives" in text
    assert [run["objective"] for run in told["runs"]] == [None, None]
    assert "objective" not in text.splitlines()[0]
    objective = read_json(finished / "run.json")["result"]["objective"]
    assert f"{objective:.3f}" not in text


def test_compare_tells_which_group_became_which(finished, table, coem):
    coem("cluster", table, "--text", "body", "-k", "4", "--restarts", "2", "--out", "four", "-q")
    told = json.loads(coem("compare", finished, "four", "--json").stdout)
    ((before, after),) = [(t["run"], t["next"]) for t in told["became"]]
    assert (before, after) == (str(finished), "four")
    folders = finished, table.parent / "four"
    mine, other = ({row["id"]: row for row in rows_of(f / "assignments.csv")} for f in folders)
    groups = told["became"][0]["groups"]
    assert [group["group"] for group in groups] == ["0", "1", "2"]
    for group in groups:
        own = {name for name, row in mine.items() if row["label"] == group["group"]}
        assert group["documents"] == len(own)
        assert group["name"] == mine[next(iter(own))]["name"]
        for part in group["into"]:
            there = {name for name, row in other.items() if row["label"] == part["group"]}
            assert part["shared"] == len(own & there)
            assert part["share"] == pytest.approx(len(own & there) / len(own))
            assert part["share_of_it"] == pytest.approx(len(own & there) / len(there))
    text = coem("compare", finished, "four").stdout
    assert f"From {finished} to four:" in text
    assert "recurs" in text
    same = json.loads(coem("compare", finished, finished, "--json").stdout)["became"][0]
    assert [g["fate"] for g in same["groups"]] == ["recurs"] * 3
    assert [g["into"][0]["group"] for g in same["groups"]] == ["0", "1", "2"]


def assigned(labels):
    return Assigned.of([([*labels], [*labels.values()])])


def test_fates_of_groups():
    letters = {"a": "0" * 10, "b": "1" * 10, "c": "2" * 10, "d": "3" * 9, "e": "4" * 8}
    before = {f"{k}{i}": label for k, v in letters.items() for i, label in enumerate(v)}
    # 0 recurs; 1 and 2 are merged, 3 is split into three, 4 is scattered over groups of others.
    after = {name: {"0": "x", "1": "y", "2": "y"}.get(label) for name, label in before.items()}
    after |= {f"d{i}": "pqr"[i % 3] for i in range(9)}
    after |= {f"e{i}": "xyyx"[i % 4] for i in range(8)}
    del after["a9"]
    common = shared(*(assigned(labels) for labels in (before, after)))
    assert common.n_rows == 46
    told = [(fate, [common.second[j] for j in places]) for fate, places in fates(common)]
    assert told[0] == ("recurs", ["x"])
    assert [told[1], told[2]] == [("merged", ["y"])] * 2
    assert (told[3][0], sorted(told[3][1])) == ("split", ["p", "q", "r"])
    assert told[4] == ("scattered", ["x"])
    strangers = shared(assigned({"a": "0"}), assigned({"b": "0"}))
    assert fates(strangers) == [("gone", [])]


def test_compare_ranks_what_can_be_compared(table, coem):
    given = ("cluster", table, "--text", "body", "--restarts", "2", "-q")
    for out, own in {"a": ["3"], "b": ["3", "--seed", "1"], "c": ["4"]}.items():
        coem(*given, "--out", out, "-k", *own)
    told = json.loads(coem("compare", "a", "b", "c", "--json").stdout)
    a, b, c = told["runs"]
    assert c["rank"] is None
    assert c["objective"] is None
    assert told["not_ranked"].startswith("The runs differ in k:")
    wanted = [1, 1] if a["objective"] == b["objective"] else [1, 2]
    assert sorted([a["rank"], b["rank"]]) == wanted
    assert min((a, b), key=lambda run: run["rank"])["objective"] == max(
        a["objective"], b["objective"]
    )
    assert json.loads(coem("compare", "a", "b", "--json").stdout)["not_ranked"] is None


def test_what_has_no_part_in_the_fit_hides_no_objective(here, coem):
    rows = [{**row, "day": f"2024-01-{1 + i % 28:02}"} for i, row in enumerate(posts())]
    write_csv(here / "dated.csv", rows)
    given = ("cluster", "dated.csv", "--text", "body", "--restarts", "2", "-q", "-k", "3")
    coem(*given, "--date", "none", "--out", "a")
    coem("name", "a", "0=Named")
    coem(*given, "--date", "day", "--out", "b", "--names-from", "a")
    told = json.loads(coem("compare", "a", "b", "--json").stdout)
    assert told["not_ranked"] is None
    assert [run["rank"] for run in told["runs"]] == [1, 1]


def test_the_table_of_groups_says_what_trust_is(table, coem):
    text = coem("cluster", table, "--text", "body", "-k", "3", "--restarts", "2").stdout
    assert text.splitlines()[0].split() == ["group", "size", "trust", "name"]
    assert MEANING in text
    page = (table.parent / "coem-posts" / "report.html").read_text(encoding="utf-8")
    assert TRUSTED in page
    assert ">Strength<" not in page


def test_without_any_flag(table, coem):
    result = coem("cluster", table)
    told = read_json(table.parent / "coem-posts" / "run.json")
    assert told["result"]["k"] == 3
    assert "-k was not given" in result.stderr
    assert "body" in result.stderr


def test_classify(here, coem):
    rows = [{**row, "topic": row["topic"] if i < 30 else ""} for i, row in enumerate(posts())]
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--json")
    told = json.loads(result.stdout)
    assert told["labelled"] == 30
    assert told["unlabelled"] == 60
    assert told["accuracy"] > 0.9
    found = {row["id"]: row["label"] for row in rows_of(here / "coem-a" / "assignments.csv")}
    assert all(found[row["id"]] == row["topic"] for row in posts())
    text = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--force").stdout
    assert "30 rows had a label" in text


def test_classify_with_a_doctor(here, coem):
    rows = [{**row, "topic": row["topic"] if i < 45 else ""} for i, row in enumerate(posts())]
    write_csv(here / "a.csv", rows)
    result = coem("classify", "a.csv", "--text", "body", "--label", "topic", "--doctor")
    told = read_json(here / "coem-a" / "run.json")
    assert told["result"]["doctor"] in result.stderr


def test_topics(table, coem):
    result = coem("topics", table, "--text", "body", "-k", "3")
    words = set(result.stdout.replace(",", "").split())
    assert all(words & set(topic) for topic in TOPICS.values())
    assert sorted(p.name for p in (table.parent / "coem-posts").iterdir()) == FILES


def test_choose_k(table, coem):
    told = json.loads(coem("choose-k", table, "--text", "body", "--json").stdout)
    assert told["k"] == 3
    assert 3 in told["possible"]
    printed = coem("choose-k", table, "--text", "body", "--among", "2,3,4").stdout
    assert printed.startswith("k  bits shared  error  of the most  held out")
    assert printed.splitlines()[2].endswith("<- chosen")
    assert "3 groups: the fewest that keep 95% of what two fits can share" in printed


def test_info(table, finished, coem):
    assert "body" in coem("info", table).stdout
    assert "MixtureClusterer" in coem("info", finished / "model.coem").stdout
    assert json.loads(coem("info", finished, "--json").stdout)["verb"] == "cluster"


def test_stdin(table, coem):
    content = table.read_text(encoding="utf-8")
    coem("cluster", "-", "--text", "body", "-k", "3", "--restarts", "2", input=content)
    assert (table.parent / "coem-stdin" / "run.json").is_file()


def test_links_and_numbers(table, coem):
    views = [
        "--view",
        "links=refs:list",
        "--view",
        "cited=refs:inbound",
        "--view",
        "p=price:number",
    ]
    coem(
        "cluster",
        table,
        *views,
        "--id",
        "id",
        "-k",
        "3",
        "--restarts",
        "2",
        "--label",
        "topic",
        "--out",
        "out",
    )
    told = read_json(table.parent / "out" / "run.json")
    assert told["result"]["nmi"] > 0.9


def test_a_view_that_says_nothing_is_named(here, coem):
    rows = ["text,nr,day"]
    for i in range(60):
        words = ("ball goal team", "disk byte code")[i % 2]
        rows.append(
            f"{words} {words.split()[i % 3]} word{i % 5},{1000 + i},2024-03-{1 + i % 28:02}"
        )
    (here / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    asked = ("cluster", here / "rows.csv", "-k", "2", "--restarts", "2")
    guessed = coem(*asked, "--out", "guessed").stderr
    assert re.search(r"^day +dates$", guessed, re.MULTILINE)
    assert re.search(r"^text +view 'text', text ", guessed, re.MULTILINE)
    quiet = coem(*asked, "--out", "quiet", "--quiet").stderr
    assert quiet == ""
    given = coem(*asked, "--text", "text", "--view", "lager=nr:number", "--out", "given").stderr
    assert "note: view 'lager' can disturb the groups" in given
    assert "its values are running numbers" in given


def test_vectors(table, coem):
    rng = np.random.default_rng(0)
    vectors = np.eye(3)[np.arange(90) % 3] + 0.1 * rng.standard_normal((90, 3))
    np.save("v.npy", vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    coem("cluster", table, "--view", "meaning=v.npy", "-k", "3", "--restarts", "3", "--out", "out")


def test_a_folder_of_texts(here, coem):
    for row in posts(30):
        folder = here / "texts" / row["topic"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{row['id']}.txt").write_text(row["body"], encoding="utf-8")
    (here / "texts" / "p0.txt").write_text(posts(1)[0]["body"], encoding="utf-8")
    result = coem("cluster", "texts", "-k", "3", "--restarts", "3")
    assert "the 3 sub-folders are the classes" in result.stderr
    assert read_json(here / "coem-texts" / "run.json")["result"]["nmi"] > 0.9
    coem("classify", "texts", "--out", "out")
    told = read_json(here / "out" / "run.json")
    assert told["arguments"]["label"] == "label"
    assert told["result"]["labelled"] == 30
    assert "the same" in coem("rerun", "out").stdout


def test_a_folder_without_classes(here, coem):
    for row in posts(30):
        (here / f"{row['id']}.txt").write_text(row["body"], encoding="utf-8")
    result = coem("cluster", here, "-k", "3", "--restarts", "2", "--out", "../out")
    assert "classes" not in result.stderr + result.stdout
    assert "sub-folders" in coem("classify", here, "--out", "../other", code=1).stderr


def test_config(table, coem):
    (table.parent / "c.toml").write_text('text = "body"\n[cluster]\nk = 3\nrestarts = 2\n')
    coem("cluster", table, "--config", "c.toml", "--out", "a")
    assert read_json(table.parent / "a" / "run.json")["arguments"]["k"] == 3
    coem("cluster", table, "--config", "c.toml", "-k", "4", "--out", "b")
    assert read_json(table.parent / "b" / "run.json")["arguments"]["k"] == 4


def test_strict(table, coem):
    arguments = ["--text", "body", "-k", "3", "--restarts", "2", "--max-iter", "1"]
    coem("cluster", table, *arguments, "--strict", "--out", "a", code=3)
    assert (table.parent / "a" / "run.json").is_file()
    coem("cluster", table, *arguments, "--out", "b")


def test_quiet_and_json(table, coem):
    result = coem("cluster", table, "--text", "body", "-k", "3", "--restarts", "2", "--json", "-q")
    assert result.stderr == ""
    assert json.loads(result.stdout)["k"] == 3


@pytest.mark.parametrize("verb", [v for v in VERBS])
def test_help_has_an_example(verb, coem):
    assert f"coem {verb}" in coem(verb, "--help").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, coem):
    assert "_COEM_COMPLETE" in coem("completion", shell).stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from coem.cli import main; main(['--help'], standalone_mode=False); "
        "print({'numpy', 'sklearn', 'pyarrow'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "cluster" in result.stdout
    assert result.stdout.splitlines()[-1] == "set()"


@pytest.mark.slow
def test_killed_half_way(table):
    program = [sys.executable, "-m", "coem", "cluster", str(table), "--text", "body", "-k", "3"]
    environment = {**os.environ, "COEM_DEBUG": "1"}
    process = subprocess.Popen(
        [*program, "--restarts", "400", "--out", "out"],
        cwd=table.parent,
        env=environment,
        stderr=subprocess.PIPE,
    )
    process.stderr.readline()  # it has begun
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (table.parent / "out").exists()


def test_ids_are_no_view(here, coem):
    for row in posts(30):
        folder = here / "texts" / f"all about {row['topic']}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{row['id']} of them.txt").write_text(row["body"], encoding="utf-8")
    result = coem("cluster", "texts", "-k", "3", "--restarts", "2")
    assert "views: text (" in result.stderr


def test_ids_are_kept_as_they_are(here, coem):
    rows = [{**row, "id": f"{'x' * 300}  {i}\t"} for i, row in enumerate(posts(30))]
    write_csv(here / "a.csv", rows)
    coem("cluster", "a.csv", "--text", "body", "-k", "3", "--restarts", "2", "--out", "out")
    assert [r["id"] for r in rows_of(here / "out" / "assignments.csv")] == [r["id"] for r in rows]
    found = [json.loads(group["examples"]) for group in rows_of(here / "out" / "clusters.csv")]
    assert [len(ids) for ids in found] == [5, 5, 5]
    assert {name for ids in found for name in ids} <= {row["id"] for row in rows}


def test_words_of_a_group_are_a_list(here, coem):
    write_csv(here / "a.csv", posts(30))
    arguments = ["--text", "body", "--ngrams", "2", "-k", "3", "--restarts", "2", "--out", "out"]
    coem("cluster", "a.csv", *arguments)
    words = [json.loads(g["discriminating_text"]) for g in rows_of(here / "out" / "clusters.csv")]
    assert all(isinstance(word, str) for group in words for word in group)
    assert any(" " in word for group in words for word in group)


@pytest.mark.parametrize("verb", ["cluster", "classify", "topics"])
def test_empty_documents_are_marked(verb, here, coem):
    rows = [{key: row[key] for key in ("id", "body", "topic")} for row in posts()]
    for i in (4, 5, 80):
        rows[i]["body"] = ""
    for i in range(60, 90):
        rows[i]["topic"] = ""
    write_csv(here / "a.csv", rows)
    own = ["--label", "topic"] if verb == "classify" else ["-k", "3"]
    told = coem(verb, "a.csv", "--text", "body", *own, "--out", "out").stdout
    found = rows_of(here / "out" / "assignments.csv")
    assert [row["id"] for row in found if row["empty"] == "true"] == ["p4", "p5", "p80"]
    groups = rows_of(here / "out" / "clusters.csv")
    assert sum(int(group["size"]) for group in groups) == 90
    assert sum(int(group["empty"]) for group in groups) == 3
    assert not {"p4", "p5", "p80"} & {i for g in groups for i in json.loads(g["examples"])}
    page = (here / "out" / "report.html").read_text(encoding="utf-8")
    assert "3 documents are empty in every view" in page
    assert "of them empty" in page
    assert verb != "classify" or "30 were predicted, 1 of them empty" in told


def test_topics_of_all_text_columns_and_of_new_documents(here, coem):
    rows = [{key: row[key] for key in ("id", "title", "body")} for row in posts()]
    write_csv(here / "a.csv", rows)
    coem("topics", "a.csv", "-k", "3", "--out", "out")
    told = list(csv.DictReader(coem("predict", "out", "a.csv").stdout.splitlines()))
    assert len({row["label"] for row in told}) == 3


def test_vectors_of_any_length_are_directions(table, coem):
    rng = np.random.default_rng(0)
    np.save("v.npy", 5 * np.eye(3)[np.arange(90) % 3] + rng.normal(size=(90, 3)))
    arguments = ["--view", "m=v.npy", "-k", "3", "--restarts", "3", "--label", "topic"]
    coem("cluster", table, *arguments, "--out", "out")
    assert read_json(table.parent / "out" / "run.json")["result"]["nmi"] > 0.9


def test_rerun_looks_at_the_vectors(table, coem, monkeypatch):
    vectors = np.eye(3)[np.arange(90) % 3]
    np.save("v.npy", vectors)
    coem("cluster", table, "--view", "meaning=v.npy", "-k", "3", "--restarts", "2", "--out", "out")
    (table.parent / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert "the same" in coem("rerun", "../out").stdout
    np.save("../v.npy", 2 * vectors)  # the same directions, so that nothing else tells
    assert "the vectors of view 'meaning' have changed" in coem("rerun", "../out", code=1).stdout


def test_rerun_of_a_strict_run(table, coem):
    arguments = ["--text", "body", "-k", "3", "--restarts", "2", "--max-iter", "1", "--strict"]
    coem("cluster", table, *arguments, "--out", "out", code=3)
    assert "the same" in coem("rerun", "out").stdout


@pytest.mark.parametrize("spec", ["title+body", "a+b", "x:y", "price:number", "price+year:number"])
def test_columns_of_any_name(spec, here, coem):
    rows = [
        {"id": i, "title": row["title"], "body": row["body"], "a+b": row["body"]}
        | {"x:y": row["body"], "price": i % 3 + 0.1 * i, "year": 2000 + i % 3}
        for i, row in enumerate(posts(30))
    ]
    write_csv(here / "a.csv", rows)
    coem("cluster", "a.csv", "--view", f"v={spec}", "-k", "3", "--restarts", "2", "--out", "out")


def test_long_documents_are_shortened_and_pseudo_counts_with_them(here, coem):
    rows = posts(30)
    rows[0]["body"] = f"{rows[0]['body']} " * 40
    table = write_csv(here / "posts.csv", rows)
    command = ("cluster", table, "--text", "body", "-k", "3", "--restarts", "2")
    coem(*command, "--max-length", "20", "--out", "short")
    coem(*command, "--max-length", "0", "--out", "whole")
    short, whole = (library.load(f"{name}/model.coem") for name in ("short", "whole"))
    lengths = np.asarray(short[0].transform(rows)["text"].sum(axis=1)).ravel()
    assert lengths.max() == pytest.approx(20)
    everything = whole[0].transform(rows)["text"].sum()
    assert short[1].families_["text"].alpha == pytest.approx(lengths.sum() / everything)
    assert whole[1].families_["text"].alpha == 1.0
    coem("classify", table, "--text", "body", "--label", "topic", "--max-length", "5", "--out", "c")
    classes = library.load("c/model.coem")
    lengths = np.asarray(classes[0].transform(rows)["text"].sum(axis=1)).ravel()
    assert lengths.max() == pytest.approx(5)
    assert classes[1].families_["text"].alpha == pytest.approx(lengths.mean() / 600)


def test_a_column_of_noise_is_left_out(here, coem):
    rng = np.random.default_rng(0)
    kinds = [[f"{c}{i}" for i in range(12)] for c in "abcd"]
    rows = [f"{' '.join(rng.choice(kinds[i % 4], 8))},{rng.random():.6f}" for i in range(400)]
    (here / "goods.csv").write_text("\n".join(["text,stock", *rows]), encoding="utf-8")
    asked = "cluster", "goods.csv", "--text", "text", "--view", "stock=stock:number", "-k", "4"
    told = coem(*asked, "--restarts", "3", "--out", "auto")
    assert "view 'stock' is left out: its groups share nothing with those of 'text'" in told.stderr
    assert "pass --evidence fixed to use it all the same" in told.stderr
    groups = [row["label"] for row in read_rows(here / "auto" / "assignments.csv")]
    assert all(len(set(groups[kind::4])) == 1 for kind in range(4))
    assert len(set(groups)) == 4
    fixed = coem(*asked, "--restarts", "3", "--evidence", "fixed", "--out", "fixed")
    assert "left out" not in fixed.stderr


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
