"""The words of groups, and names made of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from coem.kernels.sparse_tables import SparseTable
from coem.ranking import best_columns, wllr
from coem.report.readers import read
from coem.report.texts import clean

MANY = 4  # times more columns than are shown for each group, where most are never looked at
LONGEST = 28  # characters of a word in a name


class Word(NamedTuple):
    """A feature and what it weighs."""

    word: str
    weight: float


class Words(NamedTuple):
    """The words of one group in one view."""

    descriptive: list  # of Word, by p(word | group), without shared ones
    discriminating: list  # of Word, by the weighted log-likelihood ratio, or standard scores
    shared: list | tuple = ()  # of Word, by p(word | group): those that are frequent in many groups
    means: Mapping = MappingProxyType({})  # of numbers: word -> (mean of the group, mean of all)


def group_words(model, X, *, feature_names=None, n=12):
    """Return the words that describe the groups of a model, and those that tell them apart.

    Parameters
    ----------
    model : estimator
        A fitted model that a report can be made of.
    X : matrix, list, dict or Views
        The rows.
    feature_names : dict of view to sequence of str, or sequence of str, optional
        Names of the columns; a sequence if there is one view.
    n : int, default=12
        Number of words of each kind.

    Returns
    -------
    words : list of dict
        For every group view -> `Words`. *Descriptive* words are the most probable ones. Words that
        would be among the descriptive ones of many groups are *shared* instead, and make room for
        others: more than a third of the groups have them, three at least (or both of two), and
        half as often as the mean of all groups at least.
        *Discriminating* words are ranked by p(w | g) log(p(w | g) / p(w | not g)), as by
        `coem.ranking.wllr`; the columns of a dense view without probabilities by how many standard
        deviations the group is off the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.report import group_words, name_groups
    >>> X = np.array([[5, 1, 0], [4, 2, 0], [0, 1, 6], [0, 2, 5]])
    >>> model = MixtureClusterer(2, random_state=0).fit(X)
    >>> words = group_words(model, X, feature_names=["goal", "the", "vote"])
    >>> sorted(name_groups(words, n=1))
    ['goal', 'vote']
    """
    reading = read(model, X)
    return words_of(reading, names_of(model, reading.views, feature_names), n)


def names_of(model, views, feature_names):
    """Return view -> names of its columns, as text, for the views that have any."""
    widths = {name: matrix.shape[1] for name, matrix in views.items()}
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
        if feature_names is None or len(widths) > 1:
            return {}
    if not hasattr(feature_names, "items"):
        if len(widths) > 1:
            raise ValueError("feature_names must be a dict from view to names: there are views")
        feature_names = dict.fromkeys(widths, feature_names)
    for view, names in feature_names.items():
        if view in widths and len(names) != widths[view]:
            raise ValueError(
                f"feature_names of view {view!r}: {len(names)} names for {widths[view]} columns"
            )
    return {v: [clean(name) for name in n] for v, n in feature_names.items() if v in widths}


def words_of(reading, names, n=12):
    """Return for every group view -> `Words`; a view that the model leaves out says nothing."""
    out = [{} for _ in reading.keys]
    for view, matrix in reading.views.items():
        if view in reading.silent:
            continue
        found = _of_view(reading, view, matrix, names.get(view), n)
        for words, group in zip(out, found or [], strict=bool(found)):
            words[view] = group
    return out


def _of_view(reading, view, matrix, names, n):
    """Return the words of every group in one view, or None if it has none to show."""
    table, locate = table_of(reading, view, matrix)
    if table is None:
        return _standing_out(matrix, reading, names, n) if names else None
    if isinstance(table, SparseTable):
        columns, place = best_columns(table, reading.weights, MANY * n), locate
        table, locate = table[:, columns], lambda f: place(int(columns[f]))
    telling = wllr(table, reading.weights) if len(table) > 1 else table
    # A group without rows or weight has the words of nothing.
    there = (reading.sizes > 0) | (reading.weights * len(reading.groups) > 0.5)

    shared = shared_columns(table[there], n)

    def best(values, group, among):
        kept = [int(f) for f in among if there[group] and values[group][f] > 0][:n]
        return [Word(_name(locate(f), names, view), float(values[group][f])) for f in kept]

    def words(group):
        frequent, apart = (_largest(x[group], n + len(shared)) for x in (table, telling))
        own = [f for f in frequent if f not in shared]
        common = [f for f in frequent[:n] if f in shared]
        return Words(
            best(table, group, own), best(telling, group, apart), best(table, group, common)
        )

    return [words(group) for group in range(len(table))]


def _largest(values, n):
    """Return the columns with the largest values, the first of equals first."""
    return np.argsort(-values, kind="stable")[:n].tolist()


def shared_columns(table, n):
    """Return the columns that are among the `n` largest of many rows, as a set.

    Many are more than a third, and at least three, or both of two. A row counts if the column has
    at least half its mean there: in a table of few columns all are among the largest.
    """
    if len(table) < 2:
        return set()
    among = np.zeros(table.shape, dtype=bool)
    for row, values in zip(among, table, strict=True):
        row[_largest(values, n)] = True
    times = (among & (table >= 0.5 * table.mean(axis=0)) & (table > 0)).sum(axis=0)
    least = max(min(3, len(table)), len(table) // 3 + 1)
    return set(np.flatnonzero(times >= least).tolist())


def table_of(reading, view, matrix):
    """Return p(feature | group) of a view or None, and what maps a feature to its column."""
    table, locate = reading.tables.get(view), reading.locate.get(view, int)
    if table is None and sp.issparse(matrix) and matrix.nnz and matrix.data.min() >= 0:
        return _shares(matrix, reading), int
    return table, locate


def _shares(matrix, reading):
    """Return the share that every column has in the sum of the rows of a group."""
    rows = np.arange(len(reading.groups))
    ones = np.ones(len(rows))
    members = sp.csr_array((ones, (reading.groups, rows)), (reading.n_groups, len(rows)))
    sums = (members @ sp.csr_array(matrix, dtype=np.float64)).toarray()
    return sums / np.maximum(sums.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _standing_out(matrix, reading, names, n):
    """Return by how many standard deviations the means of a group differ from those of all."""
    values = np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
    there = np.isfinite(values).all(axis=1)
    out = []
    spread = values[there].std(axis=0) if there.any() else np.ones(values.shape[1])
    for group in range(reading.n_groups):
        inside = there & (reading.groups == group)
        if not inside.any():
            out.append(Words([], []))
            continue
        own, whole = values[inside].mean(axis=0), values[there].mean(axis=0)
        off = own - whole
        score = off / np.where(spread > 0, spread, np.inf)
        top = np.argsort(-np.abs(score), kind="stable")[:n]
        top = [f for f in top.tolist() if score[f] != 0]
        means = {names[f]: (float(own[f]), float(whole[f])) for f in top}
        out.append(Words([], [Word(names[f], float(score[f])) for f in top], means=means))
    return out


def _name(place, names, view):
    """Return the name of a feature: its column, and its level if it is categorical."""
    column, *level = np.atleast_1d(place).tolist()
    text = names[int(column)] if names else f"{view} {column}"
    return f"{text} = {level[0]}" if level else text


def lengths_of(views):
    """Return view -> mean sum of a row, of the views of numbers that are not negative."""
    found = {}
    for name, matrix in views.items():
        values = matrix.data if sp.issparse(matrix) else matrix
        if values.size and np.isfinite(values).all() and values.min() >= 0:
            found[name] = float(values.sum(dtype=np.float64) / len(views))
    return found


def name_groups(words, n=3, lengths=None):
    """Return a short name for every group, no two alike.

    Parameters
    ----------
    words : list of dict
        What `group_words` returns.
    n : int, default=3
        Number of words of a name.
    lengths : dict of view to float, optional
        Mean number of words of a row. A weight is that of one occurrence: times the root of the
        length it lies between what one word of a view says and what all of them say.

    Returns
    -------
    names : list of str
        The discriminating words that weigh most, added up over the views. A word belongs to the
        group in which it weighs most, and words that begin alike, such as a plural, count as one.
        Shared words come after all others of a group. A group without words has its number.
    """
    scores = [_scores(group, lengths or {}) for group in words]
    owner = {}
    for group, found in enumerate(scores):
        for word, score in found.items():
            if word not in owner or score > scores[owner[word]][word]:
                owner[word] = group
    shared = {_short(word) for group in words for one in group.values() for word, _ in one.shared}
    names = []
    for group, found in enumerate(scores):
        places = {w: (owner[w] != group, w in shared, -found[w], w) for w in found}
        chosen = _unlike(sorted(found, key=places.get), n)
        names.append(", ".join(chosen) or f"group {group}")
    return _distinct(names)


def _scores(views, lengths):
    """Return word -> weight of one group over its views."""
    # Columns of numbers have no probabilities; they name a group that has nothing else.
    words = {v: found for v, found in views.items() if found.descriptive or found.shared}
    return _weights(words, lengths) or _weights(views, {})


def _weights(views, lengths):
    """Return word -> weight, added up over views."""
    total = {}
    for view, words in views.items():
        scale = lengths.get(view, 1.0) ** 0.5
        for word, weight in words.discriminating:
            if weight > 0:
                short = _short(word)
                total[short] = total.get(short, 0.0) + scale * weight * _is_word(short)
    return total


def _is_word(text):
    """Return how much text looks like a word: numbers and codes of two letters do not name much."""
    letters = sum(3 - 2 * c.isascii() for c in text if c.isalpha())
    return 1.0 if letters >= 3 else 0.2


def _unlike(words, n):
    """Return the first words that do not begin with one another."""
    kept = []
    for word in words:
        if len(kept) == n:
            break
        if not any(word.startswith(other[:5]) or other.startswith(word) for other in kept):
            kept.append(word)
    return kept


def _short(word):
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"


def _distinct(names):
    """Return the names with a number after those that occur again."""
    seen = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [f"{name} ({i})" if seen[name] > 1 else name for i, name in enumerate(names)]
