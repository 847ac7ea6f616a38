"""Slow float64 transcription of Nigam, McCallum & Mitchell (2006), as an oracle for the fast code.

Nothing of coem is imported and nothing is clever: dense arrays, and a loop wherever the paper has
a sum over documents, classes or components. Equation numbers are the paper's. There is one set of
equations, those of several components per class (Eq. 3.9 to 3.13), of which naive Bayes (Eq. 3.5
to 3.7) is the case of one; `test_nigam.py` says so with a transcription of Eq. 3.5 and 3.6.

X is (n, words). `q` is (M, N), the paper's q_aj: 1 where component j belongs to class a. `allowed`
has for every document the set of the classes (as numbers) that it may belong to: one for a
labelled document, all for an unlabelled one. `beta` is a function of the E step, 0 the first.

Beyond the paper: sets of allowed classes, a weight `lam` for unlabelled documents, `alpha` pseudo-
counts instead of one for the words. A document without words says nothing and is left out.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Model:
    """The parameters of Sec. 3.4.1."""

    words: np.ndarray  # (N, words): P(w_t | c_j)
    classes: np.ndarray  # (M,): P(t_a)
    topics: np.ndarray  # (M, N): P(c_j | t_a), zero where q_aj is

    @property
    def weights(self):
        """Return P(t_a) P(c_j | t_a) of every component j and the class a it belongs to."""
        return sum(p * row for p, row in zip(self.classes, self.topics, strict=True))


@dataclass(frozen=True)
class State:
    """What is known at the end of a round."""

    model: Model
    objective: float
    beta: float  # of the E step of the round


def correspondence(numbers):
    """Return q_aj for so many components in every class, those of a class side by side."""
    return np.repeat(np.eye(len(numbers)), numbers, axis=1)


def geometric(start, factor, stop):
    """Return the schedule of Sec. 3.5.2: times `factor` at each step until `stop` is reached."""
    return lambda t: min(start * factor**t, stop)


# -- the steps ------------------------------------------------------------------------------------


def m_step(X, z, q, alpha):
    """Return the MAP parameters for memberships `z` (n, N), which have the weights in them."""
    n_classes, n_components = q.shape
    words = np.full((n_components, X.shape[1]), float(alpha))
    in_component, in_class = np.zeros(n_components), np.zeros(n_classes)
    for x_i, z_i in zip(X, z, strict=True):
        words += np.outer(z_i, x_i)
        in_component += z_i
        in_class += q @ z_i  # Eq. 3.13
    words /= words.sum(axis=1, keepdims=True)  # Eq. 3.9
    classes = (1 + in_class) / (n_classes + in_class.sum())  # Eq. 3.10
    topics = np.zeros(q.shape)
    for a in range(n_classes):
        topics[a] = q[a] * (1 + in_component) / (q[a].sum() + in_class[a])  # Eq. 3.11
    return Model(words, classes, topics)


def log_joint(x_i, model):
    """Return log P(t_a) P(c_j | t_a) P(x_i | c_j) of every component (Eq. 3.2, 3.12)."""
    return np.log(model.weights) + np.log(model.words) @ x_i


def log_sum_exp(terms):
    """Return log sum exp of the terms."""
    return terms.max() + np.log(np.exp(terms - terms.max()).sum())


def allowed_components(classes, q):
    """Return where a component belongs to one of the classes."""
    return q[sorted(classes)].any(axis=0)


def e_step(X, model, allowed, q, beta):
    """Return Eq. 3.15 (Eq. 3.12 if beta is 1): zero where not allowed, normalised over the rest."""
    z = np.zeros((len(X), q.shape[1]))
    for i, x_i in enumerate(X):
        may = allowed_components(allowed[i], q)
        logs = beta * log_joint(x_i, model)[may]
        z[i, may] = np.exp(logs - log_sum_exp(logs))
    return z


def log_prior(model, q, alpha):
    """Return the log of Eq. 3.4 for words, classes and sub-topics, constants dropped."""
    belongs = q == 1
    return (
        alpha * np.log(model.words).sum()
        + np.log(model.classes).sum()
        + np.log(model.topics[belongs]).sum()
    )


def objective(X, model, allowed, q, beta, weight, alpha):
    """Return Eq. 3.8, or Eq. 3.14 over beta with the prior it leaves out."""
    total = log_prior(model, q, alpha)
    for x_i, classes, w_i in zip(X, allowed, weight, strict=True):
        logs = log_joint(x_i, model)[allowed_components(classes, q)]
        total += w_i * log_sum_exp(beta * logs) / beta
    return total


# -- the algorithm --------------------------------------------------------------------------------


def labelled_part(allowed, n_classes):
    """Return how far every document is labelled: 1 with one class, 0 if all are allowed."""
    return np.array([(n_classes - len(classes)) / (n_classes - 1) for classes in allowed])


def priming(X, allowed, q, alpha):
    """Return the model from the labelled documents alone (first step of Table 3.1)."""
    delta = np.zeros((len(X), q.shape[1]))
    part = labelled_part(allowed, len(q)) * X.any(axis=1)
    for i, classes in enumerate(allowed):
        delta[i, allowed_components(classes, q)] = part[i] / len(classes)
    return m_step(X, delta, q, alpha)


def em(X, allowed, q, rounds, *, start=None, lam=1.0, beta=lambda t: 1.0, alpha=1.0):
    """Return the states of Table 3.1 after every round, an M step and the E step that follows.

    It begins with the priming M step and an E step, for one component per class, or with the
    memberships `start` (n, N) of all documents.
    """
    part = labelled_part(allowed, len(q))
    weight = (part + lam * (1 - part)) * X.any(axis=1)
    done, z, states = 0, start, []
    if start is None:
        z = e_step(X, priming(X, allowed, q, alpha), allowed, q, beta(0))
        done = 1
    for t in range(done, done + rounds):
        model = m_step(X, weight[:, None] * z, q, alpha)
        z = e_step(X, model, allowed, q, beta(t))
        value = objective(X, model, allowed, q, beta(t), weight, alpha)
        states.append(State(model, value, beta(t)))
    return states


def class_proba(X, state, q):
    """Return Eq. 3.13 of new documents at the last temperature; for empty ones the prior."""
    anything = [range(len(q))] * len(X)
    z = e_step(X, state.model, anything, q, state.beta)
    z[~X.any(axis=1)] = state.model.weights
    return z @ q.T
