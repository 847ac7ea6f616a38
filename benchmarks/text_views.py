"""Counting the words of 20 Newsgroups: TextViews against CountVectorizer, in one run."""

import time

import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer

from coem.datasets import fetch_20newsgroups
from coem.text import TextViews

REPEATS = 5
CASES = {
    "words": {},
    "stop words, min_df=2": {"stop_words": "english", "min_df": 2},
    "words and pairs": {"ngram_range": (1, 2)},
}


def main():
    texts = fetch_20newsgroups(views=("subject",)).text
    size, plain = sum(map(len, texts)) / 1e6, sum(map(str.isascii, texts))
    print(f"{len(texts):,} bodies, {size:.0f} million characters, {plain:,} all ASCII; best of 5")
    print("that alternate; ratio to CountVectorizer (5 or more with 2 threads)\n")
    print(f"{'':<22}{'CountVectorizer':>16}{'1 thread':>15}{'2 threads':>15}{'2, Arrow':>15}")
    for name, options in CASES.items():
        compare(name, options, texts)
    one_row(texts)


def one_row(texts):
    """Print what few rows take: up to 200 do without a table of the vocabulary."""
    model = TextViews({"body": "text"}, n_jobs=1).fit({"text": texts})
    print(f"\ntransform with {len(model.vocabulary_['body']):,} words, processor time of a call")
    for n_rows in (1, 200, 201):
        rows = {"text": texts[:n_rows]}
        model.transform(rows)
        start = time.process_time()
        for _ in range(20):
            model.transform(rows)
        print(f"{n_rows:>4} rows {(time.process_time() - start) / 20 * 1e3:>8.2f} ms", flush=True)


def compare(name, options, texts):
    """Print one line: fit_transform of a list of str, and of an Arrow table."""
    inputs = {"1": {"text": texts}, "2": {"text": texts}, "2, Arrow": pa.table({"text": texts})}
    runs = {key: lambda k=key: count(int(k[0]), inputs[k], options) for key in inputs}
    runs["sklearn"] = lambda: CountVectorizer(**options).fit_transform(texts)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(2 if name == "words and pairs" else REPEATS):
        for key, run in runs.items():
            start = time.perf_counter()
            run()
            best[key] = min(best[key], time.perf_counter() - start)
    theirs = best.pop("sklearn")
    cells = "".join(f"{f'{t * 1e3:.0f} ms, {theirs / t:.1f}x':>15}" for t in best.values())
    print(f"{name:<22}{theirs * 1e3:>13.0f} ms{cells}", flush=True)


def count(n_jobs, table, options):
    return TextViews({"body": "text"}, n_jobs=n_jobs, **options).fit_transform(table)


if __name__ == "__main__":
    main()
