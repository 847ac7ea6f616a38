"""All latent structures. The type checker proves here that each fits its protocol.

`tests/laws/test_latent_laws.py` runs the laws of the protocols on every entry.
"""

from collections.abc import Callable
from typing import Any

from coem.latent.aspect import Aspect, AspectData, AspectState, AspectSummary, AspectTheta
from coem.latent.block import Partition
from coem.latent.chain import Chain, ChainState, ChainStats, ChainSummary, ChainTheta
from coem.latent.mixture import Expected, Mixture, MixtureState, MixtureTheta
from coem.latent.parted_sphere import PartedSphere, PartedState, SphereStats
from coem.latent.sequences import Sequences
from coem.latent.sphere import Concepts, Sphere, SphereState, SphereSummary
from coem.latent.summaries import MixtureSummary
from coem.latent.traffic import TrafficFlow, TrafficState, TrafficTheta
from coem.protocols import AdditiveLatent, Latent

_mixture: Callable[
    ..., AdditiveLatent[Partition, MixtureTheta, MixtureState, MixtureSummary, Expected]
] = Mixture
_chain: Callable[
    ..., AdditiveLatent[Sequences, ChainTheta, ChainState, ChainSummary, ChainStats]
] = Chain
_parted: Callable[
    ..., AdditiveLatent[Partition, Concepts, PartedState, SphereSummary, SphereStats]
] = PartedSphere
_sphere: Callable[..., Latent[Partition, Concepts, SphereState, SphereSummary]] = Sphere
_aspect: Callable[..., Latent[AspectData, AspectTheta, AspectState, AspectSummary]] = Aspect
_traffic: Callable[..., Latent[AspectData, TrafficTheta, TrafficState, AspectSummary]] = TrafficFlow

ADDITIVE: dict[str, Callable[..., AdditiveLatent[Any, Any, Any, Any, Any]]] = {
    "mixture": _mixture,
    "chain": _chain,
    "parted": _parted,
}
"""Latent structures whose rows can be cut into partitions."""

WHOLE: dict[str, Callable[..., Latent[Any, Any, Any, Any]]] = {
    "sphere": _sphere,
    "aspect": _aspect,
    "traffic": _traffic,
}
"""Latent structures that need all rows in one place."""
