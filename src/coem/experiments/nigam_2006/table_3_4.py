"""Nigam et al. (2006), Table 3.4: News5, the top ten words of each class.

Words are sorted by the weighted log-likelihood ratio, as the paper does, for a model of annealing
with 20 labelled posts per class, scaled to 600 words. The paper says that anyone could name the
classes from these words, and so repair the correspondence of components and classes.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.nigam_2006._setting import FIRST, LENGTH, NEWS, QUICK, annealing, news5

NEEDS = ("20newsgroups_19997", "cluto")
PAPER = {
    "graphics": "jpeg image graphics images gif format pub ray tiff siggraph",
    "os.ms-windows.misc": "windows ei win um dos ms ini microsoft nt el",
    "sys.ibm.pc.hardware": "scsi ide drive controller bus dx bios drives mb card",
    "sys.mac.hardware": "apple mac lc duo nubus fpu centris quadra iisi powerbook",
    "windows.x": "window widget motif xterm server lib entry openwindows usr sun",
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial."""
    return [{"data": QUICK if quick else NEWS, "labels": 20, "seed": 0}]


def measure(data: str, labels: int, seed: int) -> list[dict[str, Any]]:
    """Return the words of each class."""
    _, annealed, *_ = annealing(data, LENGTH, labels, seed, FIRST)
    names = news5(data, LENGTH)[2]
    best = annealed.top_features(n=10)
    groups = list(PAPER) if data == NEWS else annealed.classes_.astype(str)
    return [
        {"group": groups[c], "words": [str(names[f]) for f, _ in own]}
        for c, own in sorted(zip(annealed.component_classes_.tolist(), best, strict=True))
    ]


def judge(results: Results) -> Verdict:
    """Ask whether the words of a class are nearest to those of the same class in the paper."""
    return Verdict.of(
        Claim(
            f"{row['group']}: {_shared(row)} of ten words are in the paper's list of the class, "
            f"and at most {max(others)} in another",
            _shared(row) > max(others),
        )
        for row in results
        for others in [[_shared(row, name) for name in PAPER if name != row["group"]]]
    )


def _shared(row: Any, group: str | None = None) -> int:
    return len({*row["words"]} & {*PAPER.get(group or row["group"], "").split()})


def tabulate(results: Results) -> Table:
    """Return the words, ours and the paper's."""
    rows = [[r["group"], " ".join(r["words"]), PAPER.get(r["group"]), _shared(r)] for r in results]
    return Table(["group", "words", "words (paper)", "shared"], rows)


def draw(results: Results, figure: Any) -> None:
    """Write the words in columns, those of the paper's list in bold."""
    figure.set_size_inches(1.35 * len(results), 2.4)
    ax = figure.subplots()
    for x, row in enumerate(results):
        known = {*PAPER.get(row["group"], "").split()}
        ax.text(x, 0.0, row["group"], fontsize=7, ha="center", style="italic")
        for y, word in enumerate(row["words"], start=1):
            ax.text(x, -y, word, ha="center", weight="bold" if word in known else "normal")
    ax.set(xlim=(-0.6, len(results) - 0.4), ylim=(-10.5, 0.8))
    ax.set_axis_off()
