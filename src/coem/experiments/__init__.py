"""The experiments of the papers, each in a short file: `coem reproduce` runs them.

A folder holds the experiments of one paper, and a module one figure or table. Such a module has

- a docstring, whose first line is the title of the experiment;
- ``NEEDS``, the data sets that it reads, as a tuple of the names of their folders;
- ``trials(quick)``, the list of its independent runs. Each is a dict of plain JSON values, with its
  seed. With `quick`, they take a second or two altogether;
- ``measure(**trial)``, which returns a dict of what was measured, or a list of such dicts;
- ``judge(results)``, which returns a `Verdict`: what the paper says, and whether it is so;
- ``tabulate(results)``, which returns a `Table`;
- ``draw(results, figure)``, which draws on a figure of matplotlib, as the paper does.
"""

from coem.experiments.registry import Experiment, find, load, names
from coem.experiments.results import Estimate, Results, Table
from coem.experiments.running import Outcome, run
from coem.experiments.verdict import Claim, Verdict, chance

__all__ = [
    "Claim",
    "Estimate",
    "Experiment",
    "Outcome",
    "Results",
    "Table",
    "Verdict",
    "chance",
    "find",
    "load",
    "names",
    "run",
]
