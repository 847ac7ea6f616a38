"""Counts and parameters of aspect models as a user gives them."""

from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from coem.checks import check_choice
from coem.estimators._coupled import couple_mixtures
from coem.families.base import check_magnitude, check_values
from coem.kernels.aspect import Pairs, as_table
from coem.latent.aspect import Aspects, AspectTheta, fold_in, log_likelihood
from coem.latent.runs import VIAS, RunCoupling, couple_runs
from coem.latent.traffic import Traffic
from coem.views import as_views

SMALL = 1 << 20  # products of a round below which single precision is not worth it
FOLD_IN = 200, 1e-6  # most rounds for a new row, and by how much its shares may still move
OFF = 1e-6  # by how much a distribution may miss one before it is scaled


def check_counts(X, name):
    """Return counts if they are finite and not negative."""
    check_values(X, name, nonnegative=True, advice="")
    check_magnitude(X, name)
    return X


def as_counts(X, name):
    """Return a matrix of counts that is no input of scikit-learn's."""
    views = as_views(X, what=name)
    if len(views.names) > 1:
        raise ValueError(f"{name} must be one matrix of counts, got {len(views.names)} views")
    return check_counts(views[views.names[0]], name)


def precision(dtype, counts, n_components, extra=0):
    """Return the dtype of the parameters; `extra` products do not depend on the counts."""
    if dtype is not None:
        return np.dtype(dtype)
    size = counts.nnz if sp.issparse(counts) else np.count_nonzero(counts)
    return np.dtype(np.float64 if size * n_components + extra < SMALL else np.float32)


def held_out_pairs(validation, shape, names, dtype):
    """Return the held-out counts that a user gives, or None; `names` are those of the columns."""
    if validation is None:
        return None
    counts = as_counts(validation, "validation")
    if counts.shape != shape:
        raise ValueError(
            f"validation must hold counts of the same rows and columns as X, {shape}; it has the "
            f"shape {counts.shape}"
        )
    theirs = _get_feature_names(validation)
    if names is not None and theirs is not None and (names != theirs).any():
        where = int(np.flatnonzero(names != theirs)[0])
        raise ValueError(
            f"validation must have the columns of X in their order: column {where} is "
            f"{theirs[where]!r} there and {names[where]!r} in X"
        )
    pairs = Pairs.of(counts, None, dtype)
    if not pairs.total > 0:
        raise ValueError("validation has no counts: hold some out, or leave it None")
    return pairs


def pseudo_counts(smoothing):
    """Return the pseudo-counts of p(x|h) and p(y|h); one number is for p(y|h)."""
    pair = smoothing if isinstance(smoothing, tuple | list) else (0.0, smoothing)
    usable = len(pair) == 2 and all(
        isinstance(v, Real) and not isinstance(v, bool) and 0 <= v < np.inf for v in pair
    )
    if not usable:
        raise ValueError(
            "smoothing must be a number of 0 or more for p(y|h), or two for (p(x|h), p(y|h)), "
            f"got {smoothing!r}"
        )
    return tuple(map(float, pair))


# -- parameters ---------------------------------------------------------------------------------


def given_starts(init, n_parts, read, form):
    """Return the starts that a user gives, one a run, or None if they are to be drawn.

    A start has `n_parts` arrays or is a fitted model, which `form` says in words; `read` checks
    one of that name.
    """
    if isinstance(init, str):
        check_choice("init", init, ("random",))
        return None
    several = isinstance(init, tuple) and any(map(_is_start, init))
    one = hasattr(init, "fit") or (isinstance(init, tuple) and len(init) == n_parts)
    starts = [init] if one and not several else init
    if not isinstance(starts, list | tuple) or len(starts) == 0:
        raise ValueError(
            f"init must be 'random', or a list with {form} for each run, got {type(init).__name__}"
        )
    return [read(start, f"init[{i}]") for i, start in enumerate(starts)]


def _is_start(part):
    """Tell a whole start from an array of one: a model, or arrays that make no matrix."""
    try:
        return hasattr(part, "fit") or np.ndim(part) > 2
    except ValueError:  # of different shapes
        return True


def given_aspects(init, k, shape):
    """Return the starts of an aspect model that a user gives, or None."""
    wanted = (k,), (k, shape[0]), (k, shape[1])
    form = "(p_h, x_given_h, y_given_h) or a fitted AspectModel"
    return given_starts(init, 3, lambda start, name: as_aspects(start, name, wanted), form)


def given_traffic(init, k, n):
    """Return the starts of a traffic model that a user gives, or None."""
    form = "(alpha, beta) or a fitted TrafficModel"

    def read(given, name):
        shaped = f"{form} of the shapes (k, n_nodes) and (k, k)"
        given = _fitted(given, name, ("alpha_", "beta_"), shaped)
        alpha, beta = _arrays(given, name, shaped, (2, 2))
        _check_shapes((alpha, beta), ((k, n), (k, k)), name)
        return Traffic(_distribution(alpha, name), _distribution(beta.ravel(), name).reshape(k, k))

    return given_starts(init, 2, read, form)


def as_aspects(given, name, shapes=None):
    """Return a fitted model's parameters, or three given arrays, as distributions in double."""
    form = (
        "a fitted AspectModel or (p_h, x_given_h, y_given_h) of the shapes (k,), (k, n_rows) and "
        "(k, n_columns)"
    )
    given = _fitted(given, name, ("weights_", "x_given_h_", "y_given_h_"), form)
    arrays = _arrays(given, name, form, (1, 2, 2))
    if shapes is not None:
        _check_shapes(arrays, shapes, name)
    return Aspects(*(_distribution(a, name) for a in arrays))


def _fitted(given, name, attributes, form):
    """Return the parameters of a fitted model, or what is given if it is no model."""
    if not hasattr(given, "fit"):
        return given
    if not all(hasattr(given, attribute) for attribute in attributes):
        check_is_fitted(given)
        raise TypeError(f"{name} must be {form}, got {type(given).__name__}")
    return tuple(getattr(given, attribute) for attribute in attributes)


def _arrays(given, name, form, ndims):
    """Return given arrays in double, if their first axes are the same component."""
    try:
        arrays = [np.asarray(part, dtype=np.float64) for part in given]
    except (TypeError, ValueError):
        arrays = []
    if tuple(a.ndim for a in arrays) != ndims or len({len(a) for a in arrays}) != 1:
        raise ValueError(f"{name} must be {form}")
    return arrays


def _check_shapes(arrays, wanted, name):
    got = tuple(a.shape for a in arrays)
    if got != wanted:
        raise ValueError(f"{name} must have arrays of the shapes {wanted}, got {got}")


def _distribution(values, name):
    """Return values whose last axis sums to one."""
    if not np.isfinite(values).all() or values.min(initial=0.0) < 0:
        raise ValueError(f"{name} must hold probabilities, finite and 0 or more")
    sums = values.sum(axis=-1, keepdims=True)
    if not sums.all():
        raise ValueError(f"{name}: a distribution has no probability above 0")
    return values / sums if np.abs(sums - 1).max() > OFF else values


def couple(a, b, via="xy", X=None):
    """Couple two models, so that each may go on from what the other has learnt.

    Parameters
    ----------
    a, b : AspectModel or (p_h, x_given_h, y_given_h); with "rows", mixture or responsibilities
        Fitted models of the same rows and columns, or their parameters. With "rows", fitted
        mixtures of any families, views and numbers of components, or P(component | row).
    via : {"xy", "a", "b", "c", "d", "rows"}, default="xy"
        What the components of the two have in common, as the parameter `coupling` of
        `AspectModel` says (Lin 2006, Sec. 3.3 and 4.3). "rows" is for mixtures.
    X : matrix of shape (n_rows, n_columns), or views, optional
        The counts; "c" and "d" need them. With "rows", the rows that both mixtures can read.

    Returns
    -------
    a, b : tuples (weights, x_given_h, y_given_h), or arrays (n_rows, n_components)
        The coupled parameters. p(h) is left as it was. With "rows", responsibilities: what the
        other model says of every row, told in one's own components. `init` takes either.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import AspectModel, couple
    >>> X = np.array([[5, 1, 0, 0], [4, 2, 0, 0], [0, 0, 3, 3], [0, 0, 6, 1]])
    >>> one, two = (AspectModel(2, n_runs=1, random_state=seed).fit(X) for seed in (0, 1))
    >>> model = AspectModel(2, init=[*couple(one, two, "c", X)]).fit(X)
    >>> len(model.runs_)
    2
    """
    check_choice("via", via, (*VIAS, "rows"))
    if via == "rows":
        return couple_mixtures(a, b, X)
    coupling = RunCoupling(via)
    for given, name in ((a, "a"), (b, "b")):
        check_aspect(given, name, via)
    first, second = as_aspects(a, "a"), as_aspects(b, "b")
    if any(p.shape[1] != q.shape[1] for p, q in zip(first[1:], second[1:], strict=True)):
        raise ValueError("a and b must be models of the same rows and columns")
    counts = None
    if coupling.needs_counts:
        if X is None:
            raise ValueError(f"via={via!r} goes from rows to columns: pass the counts as X")
        counts = sp.csr_matrix(as_counts(X, "X"))
        shape = first.x_given_h.shape[1], first.y_given_h.shape[1]
        if counts.shape != shape:
            raise ValueError(f"X must have the shape {shape} of the models, got {counts.shape}")
    coupled, _ = couple_runs([first, second], coupling, counts)
    # p(h) stays as it was, and yet belongs to who asks.
    first, second = (run._replace(weights=run.weights.copy()) for run in coupled)
    return first, second


def check_aspect(given, name, via):
    """Refuse models that are coupled in another way, and say in which."""
    kind = type(given).__name__
    if hasattr(given, "fit") and hasattr(given, "predict_proba"):
        raise TypeError(
            f"via={via!r} couples aspect models, and {name} is none: {kind}; couple mixtures with "
            "via='rows' and the rows as X"
        )
    if hasattr(given, "n_hubs"):
        raise TypeError(
            f"via={via!r} couples aspect models, and {name} is none: {kind}; runs of a traffic "
            "model are coupled within it, by coupling='x'"
        )


# -- scores -------------------------------------------------------------------------------------


def per_count(pairs, theta):
    """Return the log likelihood per count; 0 without counts."""
    return log_likelihood(pairs, theta) / pairs.total if pairs.total > 0 else 0.0


def completion(X, theta):
    """Return the mean of log p(y | x) over the counts of new rows.

    Each row is folded in on the odd ones of its non-zeros and scored on the even ones, and the
    other way round, so that no count is scored by shares that it had a part in. Those shares are
    of few counts: one more count, of p(h), is added, or a component that half of a row does not
    show would be impossible in the other half.
    """
    counts = sp.csr_matrix(X, dtype=np.float64, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    odd = (np.arange(counts.nnz) - np.repeat(counts.indptr[:-1], np.diff(counts.indptr))) % 2 > 0
    total = 0.0
    for known in (odd, ~odd):
        half = _some(counts, known, theta)
        mass = np.asarray(half.matrix.sum(axis=1), np.float64).reshape(-1, 1) * half.unit
        shares = (fold_in(half, theta, *FOLD_IN) * mass + theta.weights) / (mass + 1)
        rest = _some(counts, ~known, theta)
        # p(y | x) is p(x, y) of a model with p(h) = 1 for every h and the shares for p(x|h).
        table = as_table(shares.T, theta.y.dtype)
        total += log_likelihood(rest, AspectTheta(np.ones(shares.shape[1]), table, theta.y))
    whole = float(counts.sum())
    return total / whole if whole > 0 else 0.0


def _some(counts, chosen, theta):
    """Return some of the non-zeros of a matrix."""
    kept = counts.copy()
    kept.data = counts.data * chosen
    return Pairs.of(kept, None, theta.y.dtype)
