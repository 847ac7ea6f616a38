"""Bickel & Scheffer (2005), Fig. 2, left: words split at random into one to six views.

Six sets of documents of CLUTO, as many clusters as classes, entropy in bits. The paper does not
name its six sets; these are public. Its M step has no pseudo-counts (Eq. 22, alpha = 0); alpha = 1
is shown beside it. 20 random splits with alpha = 0, and 10 with alpha = 1.
"""

from typing import Any

from coem import Views
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2005._setting import mixture, plain, splits
from coem.experiments.drawing import charts
from coem.metrics import cluster_entropy, paired_t_test

NEEDS = ("cluto",)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, number of views and split."""
    return splits(quick, views=range(1, 4 if quick else 7))


def measure(data: str, alpha: float, views: int, seed: int) -> dict[str, float]:
    """Return the entropy of the clusters of a split."""
    words, target, k = plain(data)
    split = Views.split(words, views, random_state=seed)
    return {"entropy": cluster_entropy(target, mixture(k, alpha, seed).fit(split).labels_)}


def judge(results: Results) -> Verdict:
    """Compare the numbers of sets with those that the paper names."""
    return Verdict.of(
        Claim(
            f"alpha = {alpha}: {text} on {len(sets)} of {n} sets ({', '.join(sets) or 'none'}); "
            f"the paper says {least} of 6",
            len(sets) * 6 >= least * n,
        )
        for (alpha,), mine in results.groups("alpha").items()
        for n in [len(mine.unique("data"))]
        for (text, sets), least in zip(_found(mine).items(), (5, 4, 2, 4), strict=True)
    )


def _found(results: Results) -> dict[str, list[str]]:
    """Return the sets for which each of the sentences of the paper is true."""
    sets, best = results.groups("data"), {}
    for (data,), mine in sets.items():
        means = {views: r.mean("entropy").mean for (views,), r in mine.groups("views").items()}
        best[data] = min(means, key=means.__getitem__)

    def clear(views: tuple[int, int]) -> list[str]:
        pairs = {d: r.paired("entropy", views=views, on=["seed"]) for (d,), r in sets.items()}
        return [d for d, p in pairs.items() if paired_t_test(*p, alternative="less").p_value < 0.01]

    return {
        "more than one view is best": [d for d in best if best[d] > 1],
        "two views are better than one (p < .01)": clear((2, 1)),
        "three views are better than two (p < .01)": clear((3, 2)),
        "more than two views are best": [d for d in best if best[d] > 2],
    }


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side, and that of a single cluster."""
    table = results.pivot("entropy", by=["data", "alpha"], across="views")
    single = {data: plain(data)[1] for data in results.unique("data")}
    rows = [[*row, cluster_entropy(y := single[row[0]], 0 * y)] for row in table.rows]
    return Table([*table.columns, "one cluster"], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw a line per set, as the paper does."""
    labels = "number of views", "entropy"
    charts(figure, results, "alpha", x="views", y="entropy", line="data", labels=labels)
