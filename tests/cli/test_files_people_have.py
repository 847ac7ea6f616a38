"""Ten files as people have them: each clusters and classifies without an option, and says how."""

import csv
import json
import re
from datetime import date, datetime, timedelta

import numpy as np
import openpyxl
import pytest
from sklearn.metrics import normalized_mutual_info_score

N = 60
GROUPS = ["Küche", "Garten", "Büro"]
WORDS = {
    "Küche": ["Messer", "Pfanne", "Topf", "Herd", "Löffel", "Teller", "Brot", "Ofen"],
    "Garten": ["Spaten", "Rasen", "Blumen", "Erde", "Hecke", "Gießkanne", "Beet", "Baum"],
    "Büro": ["Drucker", "Papier", "Mappe", "Stuhl", "Schreibtisch", "Lampe", "Stift", "Akte"],
}
FAST = ("--restarts", "2", "--max-iter", "30", "-k", "3", "--threads", "1", "--no-report")


def goods(seed=0):
    """Return rows of three planted groups: group, text, price, amount, maker, day, tags."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(N):
        group = GROUPS[i % 3]
        rows.append(
            {
                "id": f"a{i}",
                "group": group,
                "text": " ".join(rng.choice(WORDS[group], 12)),
                "price": round(float(np.exp(rng.normal(2 + 2.5 * (i % 3), 0.3))), 2),
                "amount": int(rng.integers(1000, 99999)),
                "maker": ["Bosch", "Gardena", "Leitz"][i % 3 if rng.random() < 0.9 else 0],
                "size": ["klein", "mittel", "groß"][i % 3 if rng.random() < 0.9 else 1],
                "day": date(2021, 1, 1) + timedelta(days=int(rng.integers(700))),
                "tags": sorted({WORDS[group][int(j)] for j in rng.integers(0, 8, 4)}),
            }
        )
    return rows


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def write_rows(path, rows, names, delimiter=",", encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([names, *rows])


def excel_export(here, rows):
    cells = [
        [r["id"], r["text"], german(r["price"]), f"{r['day']:%d.%m.%Y}", r.get("group", "")]
        for r in rows
    ]
    names = ["Nr", "Beschreibung", "Preis", "Datum", "Gruppe"]
    write_rows(here / "export.csv", cells, names, ";", "cp1252")
    return "export.csv", "Gruppe", ["cp1252", "is read as|read as", r"Beschreibung.*text"]


def workbook(here, rows):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Artikel"
    sheet.append(["Artikel", "Beschreibung", "Preis", "Datum", "Gruppe"])
    for r in rows:
        day = datetime(r["day"].year, r["day"].month, r["day"].day)
        sheet.append([r["id"], r["text"], r["price"], day, r.get("group")])
    book.create_sheet("Notizen").append(["nothing"])
    book.save(here / "goods.xlsx")
    return "goods.xlsx", "Gruppe", ["'Artikel', is read", r"Datum +dates", "Beschreibung.*text"]


def json_lines(here, rows):
    records = [
        {
            "id": i,
            "type": "article",
            "attributes": {"body": r["text"], "created_at": f"{r['day']}T10:00:00Z"},
            "tag_ids": [10 + WORDS[GROUPS[i % 3]].index(t) + 100 * (i % 3) for t in r["tags"]],
            "group": r.get("group"),
        }
        for i, r in enumerate(rows)
    ]
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    (here / "api.jsonl").write_text(text, encoding="utf-8")
    return "api.jsonl", "group", ["attributes.body.*text", "tag_ids.*list", "created_at +dates"]


def json_array(here, rows):
    items = [{"key": r["id"], "text": r["text"], "group": r.get("group")} for r in rows]
    content = json.dumps({"total": N, "page": 1, "items": items}, indent=1)
    (here / "answer.json").write_text(content, encoding="utf-8")
    return "answer.json", "group", ["60 items of 'items'", "text.*view 'text', text"]


def folder(here, rows, write, name):
    for r in rows:
        place = here / name / r["group"] if "group" in r else here / name
        place.mkdir(parents=True, exist_ok=True)
        write(place / r["id"], r)


def markdown(here, rows):
    def write(path, r):
        text = f"---\ntags: [x]\n---\n# Notiz\n\n**{r['text']}** [mehr](http://a.org/{r['id']})\n"
        path.with_suffix(".md").write_text(text, encoding="utf-8")

    folder(here, rows, write, "notes")
    return "notes", None, [r"60 \.md; tags and marks", "view 'text', text"]


def pages(here, rows):
    def write(path, r):
        text = (
            "<html><head><title>Seite</title><style>p {color: red}</style></head><body>"
            f"<script>var kopf = 1;</script><p>{r['text']}</p></body></html>"
        )
        path.with_suffix(".html").write_bytes(text.encode("cp1252"))

    folder(here, rows, write, "pages")
    return "pages", None, [r"60 \.html", "read as cp1252"]


def shop(here, rows):
    cells = [[r["day"], r["maker"], r["size"], r["price"], r.get("group", "")] for r in rows]
    write_rows(here / "shop.csv", cells, ["date", "maker", "size", "price", "group"])
    said = [r"maker +view 'categories', category", "price +view 'price', number", r"date +dates"]
    return "shop.csv", "group", said


def reuters(here, rows):
    records = [
        {"newid": i, "body": r["text"], "topics": [r["group"]] if "group" in r else []}
        for i, r in enumerate(rows)
    ]
    for i, record in enumerate(records):
        if record["topics"] and i % 4 == 0:
            record["topics"] = [] if i % 8 else [*record["topics"], GROUPS[(i + 1) % 3]]
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    (here / "reuters.jsonl").write_text(text, encoding="utf-8")
    return "reuters.jsonl", "topics", ["body.*view 'body', text"]


def wide(here, rows):
    cells = [[r["id"], r["text"], r.get("group", "")] for r in rows]
    write_rows(here / "wide.tsv", cells, ["id", "text", "group"], "\t", "utf-16")
    return "wide.tsv", "group", ["id +ids", "text +view 'text', text"]


def gaps(here, rows):
    cells = [
        [f"{r['amount']:,}", price, r["maker"], r["size"], r.get("group", "")]
        for i, r in enumerate(rows)
        for price in ("NULL" if i % 9 == 0 else f"{r['price']:,.2f}",)
    ]
    write_rows(here / "gaps.csv", cells, ["stock", "price", "maker", "size", "group"])
    said = ["'NULL' in 7 cells", "stock.*'numbers', number", "maker.*'categories', category"]
    return "gaps.csv", "group", said


FILES = (excel_export, workbook, json_lines, json_array, markdown)
FILES += (pages, shop, reuters, wide, gaps)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
def test_it_clusters(file, here, coem):
    rows = goods()
    unknown = [{k: v for k, v in row.items() if k != "group"} for row in rows]
    name, _, said = file(here, unknown)
    told = coem("cluster", name, *FAST, "--out", "out").stderr
    for part in said:
        assert np.any([re.search(part, line) for line in told.splitlines()]), told
    with (here / "out" / "assignments.csv").open(encoding="utf-8") as table:
        found = list(csv.DictReader(table))
    order = sorted(range(N), key=lambda i: f"a{i}") if file in (markdown, pages) else range(N)
    truth = [i % 3 for i in order]
    assert normalized_mutual_info_score(truth, [row["label"] for row in found]) > 0.5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
def test_it_classifies(file, here, coem):
    rows = goods()
    name, label, _ = file(here, rows)
    given = () if label is None else ("--label", label)
    coem("classify", name, *given, *FAST[2:4], *FAST[6:], "--out", "out")
    told = json.loads((here / "out" / "run.json").read_text(encoding="utf-8"))["result"]
    assert told["accuracy"] > 0.8
    assert {c["class"] for c in told["classes"]} == set(GROUPS)


@pytest.mark.parametrize("write", [excel_export, json_lines])
def test_info_says_what_cluster_does(write, here, coem):
    name, _, _ = write(here, goods())
    info = coem("info", name)
    *_, holds, taken = info.stdout.rstrip().split("\n\n")
    told = coem("cluster", name, "--out", "out", *FAST).stderr
    assert taken in told
    assert re.search(r"left out +its values repeat like labels", taken)
    assert not re.search(r"double|int64|string|<item", info.stdout)
    assert "numbers" in holds
    shared = [line for line in info.stderr.splitlines() if line.startswith(("read as", "dates"))]
    assert shared
    assert all(line in told.splitlines() for line in shared)


def test_info_looks_at_ids_that_are_none(here, coem):
    write_rows(here / "a.csv", [[1, "some words"], [1, "other words"]], ["id", "text"])
    result = coem("info", "a.csv")
    assert "column 'id' of a.csv cannot be the ids: rows 2 and 3" in result.stderr
    (first, text) = json.loads(coem("info", "a.csv", "--json").stdout)["columns"]
    assert first["taken_as"] == "left out"
    assert (text["holds"], text["taken_as"]) == ("text", "view 'text', text")


def test_a_date_is_named_with_its_order(here, coem):
    rows = [[r["text"], f"{i % 12 + 1}/{i % 5 + 1}/2024"] for i, r in enumerate(goods())]
    write_rows(here / "a.csv", rows, ["text", "when"])
    told = coem("cluster", "a.csv", "--date", "when", "--out", "out", *FAST, code=1).stderr
    assert "say which with --date when:dmy or --date when:mdy" in told
    told = coem("cluster", "a.csv", "--date", "when:mdy", "--out", "out", *FAST).stderr
    assert re.search(r"dates are in column 'when' .*US.* 2024-01-01 to 2024-12-\d\d\n", told)
    assert re.search(r"when +dates", told)
    run = json.loads((here / "out" / "run.json").read_text(encoding="utf-8"))
    assert run["arguments"]["date"] == "when:mdy"
    coem("report", "out", "--out", "page.html")


def test_labels_that_look_like_lists(here, coem):
    rows = goods()
    cells = [
        [r["text"], "|".join([r["group"]] + ["Garten"] * (i % 6 == 0))] for i, r in enumerate(rows)
    ]
    write_rows(here / "a.csv", cells, ["text", "labels"])
    given = ("--max-iter", "10", "--threads", "1", "--no-report", "--out", "out", "--force")
    told = coem("classify", "a.csv", "--label", "labels", *given).stderr
    assert "look like lists, such as 'Küche|Garten'" in told
    assert "with --label labels:list\n" in told
    assert (
        "look like lists" not in coem("classify", "a.csv", "--label", "labels:list", *given).stderr
    )
