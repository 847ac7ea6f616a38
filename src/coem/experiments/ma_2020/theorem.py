"""Ma (2020), the theorem: no round of EM lowers the likelihood.

The models that the review names, on the documents of tr11, from ten starts of random rows; the
hidden Markov model takes them in the order of the file, in 18 sequences. M steps are exact: nothing
is added to variances, and priors are part of the objective. The figure shows the gain by round.
"""

from typing import Any

import numpy as np

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.experiments.ma_2020._setting import documents, rows
from coem.families import Gaussian, Multinomial

NEEDS = ("cluto",)
RUNS, ROUNDS, ROUNDING = 10, 40, 1e-12
SHOWN = (1, 2, 3, 5, 8, 12, 20, 30, 40)
DATA, LENGTH = "tr11", 23  # rows of a sequence
GAUSSIAN, K_MEANS, CHAIN = "Gaussian mixture", "k-means", "hidden Markov model"
BAYES, LABELS = "naive Bayes", "naive Bayes, 10 % labelled"
MODELS = (GAUSSIAN, K_MEANS, BAYES, LABELS, CHAIN)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per model and seed."""
    return [{"model": m, "seed": seed} for m in MODELS for seed in range(2 if quick else RUNS)]


def measure(model: str, seed: int) -> list[dict[str, Any]]:
    """Return the share of the whole gain after some rounds, and how many rounds lost something."""
    values = np.array([record.objective for record in _fit(model, seed).history_])
    falls = int((np.diff(values) < -ROUNDING * np.abs(values[1:])).sum())
    gain = (values - values[0]) / (values[-1] - values[0])
    return [{"round": t, "gain": gain[t - 1], "falls": falls} for t in SHOWN]


def _fit(model: str, seed: int) -> Any:
    latent, counts, target = rows(DATA, "latent"), rows(DATA, "counts"), documents(DATA).target
    how: dict[str, Any] = {"max_iter": ROUNDS, "tol": 0, "random_state": seed, "dtype": np.float64}
    k, exact = len(np.unique(target)), Gaussian("diag", reg=0)
    if model == CHAIN:
        chain = HiddenMarkovModel(k, family=exact, init="rows", **how)
        return chain.fit(latent, lengths=[LENGTH] * (len(target) // LENGTH))
    how |= {"init": "rows", "evidence": "fixed"}
    if model == LABELS:
        known = np.random.default_rng(seed).random(len(target)) < 0.1
        y = np.where(known, target, -1)
        return MixtureClassifier(family=Multinomial(), **how).fit(counts, y)
    if model == K_MEANS:
        how |= {"posterior": "hard", "weights": "uniform"}
    families: Any = {GAUSSIAN: exact, BAYES: Multinomial(), K_MEANS: Gaussian("unit")}
    return MixtureClusterer(k, family=families[model], **how).fit(
        counts if model == BAYES else latent
    )


def judge(results: Results) -> Verdict:
    """Count the rounds that lowered the objective."""
    models = results.where(round=ROUNDS).groups("model").items()
    falls = [(model, mine.values("falls").sum(), len(mine)) for (model,), mine in models]
    text = "{}: the objective falls in {} of {} rounds"
    return Verdict.of(Claim(text.format(m, n, r * (ROUNDS - 1)), n == 0) for m, n, r in falls)


def tabulate(results: Results) -> Table:
    """Return the share of the gain by round, models side by side."""
    return results.pivot("gain", by=["round"], across="model")


def draw(results: Results, figure: Any) -> None:
    """Draw the share of the gain along the rounds."""
    labels = "round", "share of the gain"
    (ax,) = charts(figure, results, x="round", y="gain", line="model", labels=labels)
    ax.set(xscale="log", xticks=SHOWN, xticklabels=SHOWN)
    ax.minorticks_off()
    figure.set_size_inches(4.2, 3.0)
