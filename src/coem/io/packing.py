"""Parameters of latent structures as named arrays, for checkpoints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from coem.kernels.aspect import new_table
from coem.kernels.sparse_tables import SparseTable
from coem.latent.aspect import AspectTheta
from coem.latent.chain import Chain, ChainTheta
from coem.latent.emissions import Emissions
from coem.latent.markov import MarkovTheta
from coem.latent.mixture import Mixture, MixtureTheta
from coem.latent.sphere import Concepts, LazyConcepts
from coem.latent.traffic import TrafficTheta
from coem.protocols import Theta as ThetaT
from coem.typing import Array, Theta

SPARSE = "sparse."  # before the numbers of the arrays of a sparse table


class Packing(Protocol[ThetaT]):
    """How parameters become arrays, and arrays become parameters."""

    @property
    def n_views(self) -> int:
        """Number of views."""
        ...

    def pack(self, theta: ThetaT) -> dict[str, Array]:
        """Return the parameters as arrays."""
        ...

    def unpack(self, arrays: dict[str, Array]) -> ThetaT:
        """Return the parameters; raise KeyError, TypeError or ValueError if arrays are wrong."""
        ...


@dataclass(frozen=True)
class MixturePacking:
    """The arrays of a mixture."""

    model: Mixture

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.model.emissions.families)

    def pack(self, theta: MixtureTheta) -> dict[str, Array]:
        """Return the parameters as arrays."""
        arrays = {
            "log_weights": theta.log_weights,
            "version": np.array([*theta.version, theta.latest]),
        }
        return arrays | _pack_views(theta.of_views)

    def unpack(self, arrays: dict[str, Array]) -> MixtureTheta:
        """Return the parameters."""
        log_weights = arrays["log_weights"]
        *version, latest = arrays["version"].tolist()
        params = _unpack_views(self.model.emissions, arrays)
        _check_lengths([log_weights.T, *flat_theta(params)], self.model.n_components)
        return MixtureTheta(params, log_weights, tuple(version), latest)


@dataclass(frozen=True)
class ChainPacking:
    """The arrays of a chain."""

    model: Chain

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.model.emissions.families)

    def pack(self, theta: ChainTheta) -> dict[str, Array]:
        """Return the parameters as arrays."""
        chain = {f"markov.{name}": logs for name, logs in vars(theta.of_chain).items()}
        return {"version": np.array(theta.version)} | chain | _pack_views(theta.of_views)

    def unpack(self, arrays: dict[str, Array]) -> ChainTheta:
        """Return the parameters."""
        markov = MarkovTheta(arrays["markov.log_start"], arrays["markov.log_transition"])
        params = _unpack_views(self.model.emissions, arrays)
        tables = [*vars(markov).values(), markov.log_transition.T, *flat_theta(params)]
        _check_lengths(tables, self.model.n_components)
        return ChainTheta(params, markov, int(arrays["version"]))


@dataclass(frozen=True)
class AspectPacking:
    """The arrays of an aspect model of counts of some shape."""

    shape: tuple[int, int]
    n_components: int
    dtype: Any
    n_views: int = 1

    def pack(self, theta: AspectTheta) -> dict[str, Array]:
        """Return the parameters as arrays."""
        return {"weights": theta.weights, "x": theta.x, "y": theta.y}

    def unpack(self, arrays: dict[str, Array]) -> AspectTheta:
        """Return the parameters."""
        weights, k = arrays["weights"], self.n_components
        tables = (
            _as_table(arrays[n], r, k, self.dtype) for n, r in zip("xy", self.shape, strict=True)
        )
        if weights.shape != (k,) or weights.dtype != np.float64:
            raise ValueError(f"it does not have {k} components")
        return AspectTheta(weights, *tables)


@dataclass(frozen=True)
class TrafficPacking:
    """The arrays of a traffic model of counts of some shape."""

    shape: tuple[int, int]
    n_components: int
    dtype: Any
    n_views: int = 1

    def pack(self, theta: TrafficTheta) -> dict[str, Array]:
        """Return the parameters as arrays."""
        return {"x": theta.x, "beta": theta.beta}

    def unpack(self, arrays: dict[str, Array]) -> TrafficTheta:
        """Return the parameters."""
        beta, k = arrays["beta"], self.n_components
        if beta.shape != (k, k) or beta.dtype != np.float64:
            raise ValueError(f"it does not have {k} components")
        return TrafficTheta(_as_table(arrays["x"], self.shape[0], k, self.dtype), beta)


@dataclass(frozen=True)
class SpherePacking:
    """The arrays of spherical k-means.

    `widths` and `dtypes` are those of the views. In memory, concept vectors may be stored as
    the clusters of the `n_rows` rows; in a corpus, where `n_rows` is None, they are arrays.
    """

    n_clusters: int
    widths: tuple[int, ...]
    dtypes: tuple[Any, ...]
    n_rows: int | None

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.widths)

    def pack(self, theta: Concepts) -> dict[str, Array]:
        """Return the parameters as arrays."""
        arrays = {"version": np.array(theta.version)}
        for v, own in enumerate(theta.directions):
            if isinstance(own, LazyConcepts):
                arrays[f"{v}.labels"] = own.labels
            elif own is not None:
                arrays[f"{v}.directions"] = own
        return arrays

    def unpack(self, arrays: dict[str, Array]) -> Concepts:
        """Return the parameters."""
        version = tuple(arrays["version"].tolist())
        if len(version) != self.n_views or min(version) < 1:
            raise ValueError(f"it does not have {self.n_views} views")
        directions = tuple(self._view(arrays, v) for v in range(self.n_views))
        return Concepts(directions, version, ((),) * self.n_views)

    def _view(self, arrays: dict[str, Array], v: int) -> Array | LazyConcepts:
        """Return the concept vectors of a view."""
        if f"{v}.labels" in arrays:
            labels = arrays[f"{v}.labels"]
            if labels.shape != (self.n_rows,) or labels.dtype != np.int32:
                raise ValueError("it does not have the clusters of these rows")
            if labels.min(initial=0) < -1 or labels.max(initial=0) >= self.n_clusters:
                raise ValueError("it has rows in clusters that are not there")
            return LazyConcepts(labels)
        directions = arrays[f"{v}.directions"]
        shape = self.n_clusters, self.widths[v]
        if (directions.shape, directions.dtype) != (shape, self.dtypes[v]):
            raise ValueError(f"it does not have {shape[0]} concept vectors of {shape[1]} features")
        return directions


def _as_table(values: Array, n_rows: int, k: int, dtype: Any) -> Array:
    """Return a table of the kernels with the values of an array; raise if it is of another kind."""
    table = new_table(n_rows, k, dtype)
    if (values.shape, values.dtype) != (table.shape, table.dtype):
        raise ValueError(f"it does not have {k} components of {n_rows} probabilities")
    table[...] = values
    return table


def flat_theta(params: Iterable[Theta]) -> list[Any]:
    """Return the arrays of the parameters of some views as one list; some may be sparse tables."""
    return [part for theta in params for part in (theta if isinstance(theta, tuple) else (theta,))]


def _pack_views(params: Sequence[Theta]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for v, own in enumerate(params):
        if isinstance(own, SparseTable):
            arrays |= {f"{v}.{SPARSE}{i}": part for i, part in enumerate(own.parts)}
        else:
            arrays |= {f"{v}.{i}": part for i, part in enumerate(flat_theta((own,)))}
    return arrays


def _unpack_views(emissions: Emissions, arrays: dict[str, Array]) -> tuple[Theta, ...]:
    return tuple(
        family.restore(_parts_of(arrays, v)) for v, family in enumerate(emissions.families)
    )


def _parts_of(arrays: dict[str, Array], v: int) -> list[Any]:
    """Return what the parameters of a view consist of."""
    prefix = f"{v}.{SPARSE}"
    sparse = _numbered(arrays, prefix)
    if not sparse:
        return [arrays[key] for key in _numbered(arrays, f"{v}.")]
    table = SparseTable(*(arrays[key] for key in sparse))
    table.check()
    return [table]


def _check_lengths(tables: Sequence[Array], k: int) -> None:
    if {len(part) for part in tables} != {k}:
        raise ValueError(f"it does not have {k} components")


def _numbered(arrays: dict[str, Array], prefix: str) -> list[str]:
    names = [name for name in arrays if name.startswith(prefix)]
    return sorted(names, key=lambda name: int(name.removeprefix(prefix)))
