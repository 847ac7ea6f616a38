"""Nigam et al. (2006), Fig. 3.5: News5, model probability against accuracy, EM and annealing.

The setting is that of Fig. 3.4 with posts of 100 words. The components of annealing have the
classes that are best on the test posts. The probability is that of all test posts, per post, so
that models of different training sets compare. Ten draws each.
"""

from typing import Any

import numpy as np

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.nigam_2006._setting import FIRST, NEWS, QUICK, annealing
from coem.metrics import aligned_accuracy, paired_t_test

NEEDS = ("20newsgroups_19997", "cluto")
EM, ANNEALED, LENGTH = "EM", "annealing", 100


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of labels and draw."""
    data, sizes, draws = (QUICK, (2, 5), 2) if quick else (NEWS, (2, 5, 20), 10)
    return [{"data": data, "labels": n, "seed": seed} for n in sizes for seed in range(draws)]


def measure(data: str, labels: int, seed: int) -> list[dict[str, Any]]:
    """Return objectives, log probabilities of the test posts, and accuracies."""
    plain, annealed, X, y = annealing(data, LENGTH, labels, seed, FIRST)
    right = {
        EM: (plain.predict(X) == y).mean(),
        ANNEALED: aligned_accuracy(y, annealed.component_proba(X).argmax(axis=1)),
    }
    return [
        {
            "method": method,
            "objective": model.objective_,
            "log probability": float(np.mean(model.score_samples(X))),
            "accuracy": 100 * right[method],
        }
        for method, model in ((EM, plain), (ANNEALED, annealed))
    ]


def judge(results: Results) -> Verdict:
    """Ask whether annealing finds more probable models, and whether all lie along one line."""
    pair = results.paired("objective", method=(ANNEALED, EM), on=["labels", "seed"])
    wins, test = int((pair[0] > pair[1]).sum()), paired_t_test(*pair)
    r = float(np.corrcoef(results.values("log probability"), results.values("accuracy"))[0, 1])
    text = f"annealing finds the more probable model in {wins} of {len(pair[0])} trials"
    return Verdict.of(
        [
            Claim(f"{text} (p = {test.p_value:.2g})", test.difference > 0 and test.p_value < 0.05),
            Claim(f"the more probable models are the more accurate ones: r = {r:.2f}", r > 0.5),
        ]
    )


def tabulate(results: Results) -> Table:
    """Return mean log probabilities and accuracies."""
    rows = [
        [*key, *mine.mean("log probability")[:2], *mine.mean("accuracy")]
        for key, mine in results.groups("labels", "method").items()
    ]
    heads = ["log probability", "log probability error", "accuracy", "accuracy error", "n"]
    return Table(["labels", "method", *heads], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw a point per model."""
    figure.set_size_inches(3.4, 2.6)
    ax = figure.subplots()
    for marker, ((method,), mine) in zip("ox", results.groups("method").items(), strict=True):
        ax.plot(mine.values("log probability"), mine.values("accuracy"), marker, label=method)
    ax.set(xlabel="log probability per test post", ylabel="accuracy, %")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend()
