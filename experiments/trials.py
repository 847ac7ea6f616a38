"""What the tables of accuracy share: which rows are labelled, runs side by side, Markdown."""

import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits


def each_class(rng, target, rows, n):
    """Return `n` of the rows of each class, in turns: any number of turns is a fair choice."""
    classes = np.unique(target[rows])
    chosen = [rng.choice(rows[target[rows] == c], n, replace=False) for c in classes]
    return np.transpose(chosen).ravel()


def hide(y, n_labelled):
    """Return the labels with -1 for all but the first rows."""
    return np.where(np.arange(len(y)) < n_labelled, y, -1)


def side_by_side(task, arguments):
    """Return `task` of each tuple of arguments, two at a time, each in a process of one thread."""
    return Parallel(n_jobs=2)(delayed(_quietly)(task, given) for given in arguments)


def _quietly(task, given):
    with warnings.catch_warnings(), threadpool_limits(1):
        # Co-EM with a fixed eta may go round in circles; label spreading divides by zero where no
        # label arrives. Both are what a user would get.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return task(*given)


def table(header, rows):
    """Print a table in Markdown."""
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("| " + " | ".join(cells) + " |")
    print(flush=True)
