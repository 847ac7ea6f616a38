"""How often the doctor is right, on ten Reuters topics.

Whether unlabelled stories help differs from topic to topic (Nigam et al. 2006, Sec. 3.4). `doctor`
advises, by tests on the labelled stories alone. Here each of the ten largest topics is a class
against all others: 10 stories of the topic and 40 others have a label, as in the paper, and 1,000
have none. All variants that the doctor compares are fitted, and judged by their accuracy on 3,000
stories that it never sees. The advice is right if no variant is better by more than a point. "No
topic" says of all stories that they have another topic. Three draws per topic, 600 words per story.
"""

from typing import Any

from sklearn.base import clone

from coem import MixtureClassifier
from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.beyond._reuters import QUICK, REUTERS, TOPICS, stories
from coem.experiments.drawing import bars, charts, slant
from coem.metrics import paired_t_test
from coem.selection import doctor

NEEDS = ("reuters21578", "cluto")
NB, EM, ADVICE, BEST = "always naive Bayes", "always EM", "the doctor", "the best variant"
NONE, POINT = "no topic", 1.0


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per topic and draw."""
    data, topics, n, seeds = (QUICK, ("11",), 50, 2) if quick else (REUTERS, TOPICS, 1000, 3)
    what = {"data": data, "unlabelled": n}
    return [{**what, "topic": topic, "seed": seed} for topic in topics for seed in range(seeds)]


def measure(data: str, topic: str, unlabelled: int, seed: int) -> dict[str, Any]:
    """Return accuracies in %: of the advice, of the best variant, of naive Bayes and of EM."""
    X, given, test, truth = stories(data, topic, unlabelled, seed)
    model = MixtureClassifier(family="multinomial", tol=1e-4, random_state=seed)
    advice = doctor(model, X, given, n_repeats=1, n_restarts=0, random_state=seed)
    found = {}
    for row in advice.table:
        fit = clone(model).set_params(**row.settings).fit(X, given)
        found[row.variant] = 100 * float((fit.predict(test) == truth).mean())
    taken = next(row.variant for row in advice.table if row.settings == advice.settings)
    best = max(found, key=found.__getitem__)
    rules = {NB: found["naive Bayes"], EM: found["EM"], ADVICE: found[taken], BEST: found[best]}
    return {**rules, NONE: 100 * float((truth == 0).mean()), "advice": taken, "best": best}


def judge(results: Results) -> Verdict:
    """Ask how often the advice is right, and whether it is better than one rule for all topics."""
    loss = {name: results.values(BEST) - results.values(name) for name in (ADVICE, NB, EM)}
    right = {name: f"{(lost <= POINT).sum()} of {len(lost)}" for name, lost in loss.items()}
    text = f"the advice is right in four of five cases: {right[ADVICE]} ({NB}: {right[NB]}, "
    claims = [Claim(f"{text}{EM}: {right[EM]})", (loss[ADVICE] <= POINT).mean() >= 0.8)]
    for rule in (NB, EM):
        p = paired_t_test(loss[ADVICE], loss[rule], alternative="less").p_value
        costs = f"{loss[ADVICE].mean():.1f} points below the best variant, {loss[rule].mean():.1f}"
        text = f"it is better than {rule}: {costs} ({chance(p)})"
        claims.append(Claim(text, loss[ADVICE].mean() < loss[rule].mean() and p < 0.05))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the mean accuracies by topic, and the part of the advice that is right."""
    rules, rows = (NONE, NB, EM, ADVICE, BEST), []
    for (topic,), mine in results.groups("topic").items():
        right = mine.values(BEST) - mine.values(ADVICE) <= POINT
        rows.append([topic, *(v for rule in rules for v in mine.mean(rule)[:2]), right.mean()])
    heads = [head for rule in rules for head in (rule, f"{rule} error")]
    return Table(["topic", *heads, "right"], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw the mean accuracies of every topic."""
    pairs = [(row, rule) for row in results for rule in (NB, EM, ADVICE, BEST)]
    rows = [{**row, "rule": rule, "accuracy": row[rule]} for row, rule in pairs]
    what: Any = {"x": "topic", "y": "accuracy", "line": "rule", "marks": bars}
    slant(charts(figure, Results(rows), "data", labels=("", "accuracy, %"), **what)[0])
    figure.set_size_inches(6, 3.5)
