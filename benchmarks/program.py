"""20 Newsgroups as one CSV file: `coem cluster` against the usual script, in one run.

Both read the file, count words and group the posts 20 ways from ten starts; `coem` also judges how
stable the groups are, names them and writes its folder with the page.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from coem.datasets import fetch_20newsgroups

SCRIPT = """
import csv, sys
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from coem.metrics import cluster_entropy
csv.field_size_limit(1 << 30)
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8", newline="")))
counts = CountVectorizer(stop_words="english", min_df=2).fit_transform(r["body"] for r in rows)
labels = KMeans(20, n_init=10, random_state=0).fit_predict(TfidfTransformer().fit_transform(counts))
truth = [r["group"] for r in rows]
print(cluster_entropy(truth, labels), normalized_mutual_info_score(truth, labels))
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "posts.csv", Path(folder) / "groups"
        write_posts(file)
        command = ["cluster", file, "--text", "body", "--label", "group", "-k", "20", "--out", out]
        ours, _ = clock("-m", "coem", *command, "--quiet")
        theirs, told = clock("-c", SCRIPT, file)
        result = json.loads((out / "run.json").read_text(encoding="utf-8"))["result"]
        size = (out / "report.html").stat().st_size / 1e6
    entropy, nmi = map(float, told.split())
    print("               seconds  entropy   NMI")
    print(f"KMeans script  {theirs:7.1f}  {entropy:7.2f}  {nmi:.3f}")
    print(f"coem cluster   {ours:7.1f}  {result['entropy_bits']:7.2f}  {result['nmi']:.3f}")
    print(f"ratio {theirs / ours:.1f} (at least 3); the page has {size:.1f} MB (at most 5)")


def write_posts(file):
    """Write all posts that have a word, one per row."""
    data = fetch_20newsgroups(views=("subject",))
    pairs = zip(data.text, data.target_names[data.target], strict=True)
    posts = [(body, group) for body, group in pairs if body.strip()]
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["id", "body", "group"])
        for number, (body, group) in enumerate(posts):
            writer.writerow([number, body.replace("\0", " "), group])


def clock(*arguments):
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - start, done.stdout


if __name__ == "__main__":
    main()
